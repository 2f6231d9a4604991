/* The determinant as a phase and the logarithm of its modulus: GEDET.
 *
 * Called by the kernels of determinant.cu and by test/host_kernels.cc. All precisions
 * multiply in double precision with the exponent apart, in the order of the diagonal, and
 * the logarithm is formed here from sums, products and quotients: src/host_lu.c does the
 * same and gets the same bits from the same factors.
 */
#ifndef BL_DETERMINANT_CUH
#define BL_DETERMINANT_CUH

#include "lu.cuh"

namespace bl
{

/* value * 2^exponent. The larger part of a value that is finite and not 0 lies in
 * [1/2, 1). */
struct Product {
    Complex<double> value;
    int64_t exponent;

    BL_HD void normalise()
    {
        double x = fabs(value.re), y = fabs(value.im), most = x > y ? x : y;
        int e;
        if (!(most > 0) || isinf(most))
            return;
        frexp(most, &e);
        value = {ldexp(value.re, -e), ldexp(value.im, -e)};
        exponent += e;
    }
};

template <class R>
BL_HD Product product_of(R x)
{
    return {{x, 0}, 0};
}

template <class R>
BL_HD Product product_of(Complex<R> x)
{
    return {{x.re, x.im}, 0};
}

/* log(x 2^exponent) for x > 0: with f = x - 1, s = f / (2 + f), log x is
 * f - f^2/2 + s (f^2/2 + 2 s^2/3 + 2 s^4/5 + ...). */
BL_HD double logarithm(double x, int64_t exponent)
{
    const double ln2_high = 0x1.62e42fep-1, ln2_low = 0x1.f473de6af278fp-30;
    if (!(x < INFINITY))
        return x;
    int e;
    x = frexp(x, &e);
    if (x < 0.70710678118654752) {
        x = mul(x, 2.0);
        e--;
    }
    double f = sub(x, 1.0), s = div(f, add(2.0, f)), s2 = mul(s, s), sum = 0;
    double half = mul(0.5, mul(f, f)), k = double(exponent + e);
    for (int i = 23; i >= 3; i -= 2)
        sum = mul(s2, add(sum, div(2.0, double(i))));
    double low = add(mul(s, add(half, sum)), mul(k, ln2_low));
    return sub(mul(k, ln2_high), sub(sub(half, low), f));
}

/* Times u, an element of the diagonal or minus it. */
template <class T>
BL_HD void multiply_on(Product &det, T x)
{
    Product u = product_of(x);
    u.normalise();
    det.value = mul(det.value, u.value);
    if (!Traits<T>::complex)
        det.value.im = 0;
    det.exponent += u.exponent;
    det.normalise();
}

template <class T>
BL_CALL void put_determinant(const Product &det, T *phase, Real<T> *logabs)
{
    using R = Real<T>;
    Complex<double> z = det.value;
    double modulus = root(add(mul(z.re, z.re), mul(z.im, z.im)));
    z = {div(z.re, modulus), div(z.im, modulus)};
    if (modulus == 0)
        z = {0, 0};
    if constexpr (Traits<T>::complex)
        *phase = {R(z.re), R(z.im)};
    else
        *phase = R(z.re);
    *logabs = modulus == 0 ? -R(INFINITY) : R(logarithm(modulus, det.exponent));
}

/* From the factors of an n x n matrix. The first warp's work: its lanes fetch the
 * diagonal, all of them multiply. Singular: 0 and -Inf. A NaN on the diagonal makes both
 * NaN. */
template <class T>
BL_CALL void determinant(const Team &team, int64_t n, const T *lu, int64_t lda,
                         const Pivots &pivots, T *phase, Real<T> *logabs)
{
    if (team.warp() > 0)
        return;
    Product det = {{1, 0}, 0};
    for (int64_t first = 0; first < n; first += LANES) {
        const int64_t own = first + team.lane();
        T mine = one<T>();
        if (own < n) {
            mine = lu[own + own * lda];
            if (pivots.get(own) != own)
                mine = negative(mine);
        }
        for (int l = 0; l < int(least(LANES, n - first)); l++)
            multiply_on(det, from_lane(mine, l));
    }
    if (team.lane() == 0)
        put_determinant(det, phase, logabs);
}

/* The work space holds IPIV, then the factors. */
template <class T>
BL_HD int64_t gedet(Team &team, const Problem<T> &p)
{
    Pivots pivots = {p.work, sizeof(int64_t), 0};
    T *lu = behind_pivots(p);
    copy(team, p.n, p.n, p.a, p.lda, lu, p.n);
    team.sync();
    int64_t info = lu_factor(team, p.n, p.n, lu, p.n, pivots);
    determinant(team, p.n, lu, p.n, pivots, p.phase, p.logabs);
    return info;
}

} // namespace bl
#endif
