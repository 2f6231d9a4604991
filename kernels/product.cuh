/* The product of a diagonal, as a phase and the logarithm of its modulus.
 *
 * Used by determinant.cuh, mid_lu.cuh and tiny_det.cuh. All precisions multiply in double
 * precision with the exponent apart, in an order that many lanes can share, and the
 * logarithm is formed here from sums, products and quotients: src/host_lu.c does the same
 * and gets the same bits from the same factors.
 */
#ifndef BL_PRODUCT_CUH
#define BL_PRODUCT_CUH

#include "absent.cuh"
#include "team.cuh"

namespace bl
{

BL_HD double in_double(float x)
{
    return x;
}
BL_HD double in_double(double x)
{
    return x;
}
template <class R>
BL_HD Complex<double> in_double(Complex<R> x)
{
    return {x.re, x.im};
}

BL_HD double larger_part(double x)
{
    return fabs(x);
}
BL_HD double larger_part(Complex<double> z)
{
    const double x = fabs(z.re), y = fabs(z.im);
    return x > y ? x : y;
}

/* f of each part. */
template <class F>
BL_HD double of_parts(double x, const F &f)
{
    return f(x);
}
template <class F>
BL_HD Complex<double> of_parts(Complex<double> z, const F &f)
{
    return {f(z.re), f(z.im)};
}

/* value * 2^exponent, of numbers of type T. */
template <class T>
struct Product {
    decltype(in_double(T())) value = one<decltype(in_double(T()))>();
    int exponent = 0;

    /* The larger part of a value that is finite and not 0 goes to [1/2, 1). */
    BL_HD void normalise()
    {
        const double most = larger_part(value);
        int e = int(bits_of(most) >> 52) - 1022;
        if (e > -1000 && e < 1000) {
            const double power = from_bits<double>(Bits<double>(1023 - e) << 52);
            value = of_parts(value, [=](double x) { return mul(x, power); });
        } else if (most > 0 && !isinf(most)) {
            frexp(most, &e);
            value = of_parts(value, [=](double x) { return ldexp(x, -e); });
        } else {
            e = 0;
        }
        exponent += e;
    }
};

template <class T>
BL_HD Product<T> times(const Product<T> &x, const Product<T> &y)
{
    Product<T> z;
    z.value = mul(x.value, y.value);
    z.exponent = x.exponent + y.exponent;
    return z;
}

template <class T>
BL_HD Product<T> from_lane(const Product<T> &x, int from)
{
    Product<T> y;
    y.value = from_lane(x.value, from);
    y.exponent = from_lane(x.exponent, from);
    return y;
}

template <class T>
BL_HD Product<T> product_of(T x)
{
    Product<T> u;
    u.value = in_double(x);
    u.normalise();
    return u;
}

/* Factor k belongs to share k % SHARES, where they are multiplied in ascending order;
 * then the second half of the shares is multiplied to the first one, and so on, for which
 * there is room without normalise(). */
constexpr int SHARES = 32;

/* Of shares s L + lane, which lane `lane` of each L lanes brings. */
template <int L, class T>
BL_HD Product<T> by_halves(Product<T> (&share)[SHARES / L], int lane)
{
    BL_UNROLL
    for (int half = SHARES / L / 2; half > 0; half /= 2)
        BL_UNROLL
    for (int s = 0; s < half; s++)
        share[s] = times(share[s], share[s + half]);
    BL_UNROLL
    for (int step = L / 2; step > 0; step /= 2)
        share[0] = times(share[0], from_lane(share[0], lane ^ step));
    return share[0];
}

/* factor(0) ... factor(n - 1), by a warp. */
template <class T, class F>
BL_HD Product<T> product_of_all(int64_t n, int lane, const F &factor)
{
    Product<T> share[SHARES / LANES];
    for (int s = 0; s < SHARES / LANES; s++)
        for (int64_t k = s * LANES + lane; k < n; k += SHARES) {
            const Product<T> u = product_of(T(factor(k)));
            share[s] = k < SHARES ? u : times(share[s], u);
            share[s].normalise();
        }
    return by_halves<LANES>(share, lane);
}

/* log(x 2^exponent) for x > 0: with f = x - 1, s = f / (2 + f), log x is
 * f - f^2/2 + s (f^2/2 + 2 s^2/3 + 2 s^4/5 + ...). */
BL_HD double logarithm(double x, int exponent)
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
    BL_UNROLL
    for (int i = 23; i >= 3; i -= 2)
        sum = mul(s2, add(sum, 2.0 / i));
    double low = add(mul(s, add(half, sum)), mul(k, ln2_low));
    return sub(mul(k, ln2_high), sub(sub(half, low), f));
}

BL_HD double modulus(double x)
{
    return fabs(x);
}
BL_HD double modulus(Complex<double> z)
{
    return root(add(mul(z.re, z.re), mul(z.im, z.im)));
}

BL_HD void narrow(double x, float &to)
{
    to = float(x);
}
BL_HD void narrow(double x, double &to)
{
    to = x;
}
template <class R>
BL_HD void narrow(Complex<double> z, Complex<R> &to)
{
    to = {R(z.re), R(z.im)};
}

/* A product of 0 has phase 0, which is no number where the product is none. */
template <class T>
BL_HD void phase_and_logarithm(const Product<T> &product, T &phase, Real<T> &logabs)
{
    const double size = modulus(product.value);
    narrow(
        of_parts(product.value, [=](double x) { return size == 0 ? 0 : div(x, size); }),
        phase);
    logabs = size == 0 ? -Real<T>(INFINITY) : Real<T>(logarithm(size, product.exponent));
}

} // namespace bl
#endif
