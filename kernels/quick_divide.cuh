/* Reciprocals and quotients, correctly rounded, in fewer operations than div().
 *
 * Used by all kernels that have many of them or wait for them. A quotient by a reciprocal
 * is wrong by units in the last place, which what it leaves over corrects as long as
 * nothing is out of range; who calls sees to that, where no comment says otherwise. On
 * the host most of it is plain division.
 */
#ifndef BL_QUICK_DIVIDE_CUH
#define BL_QUICK_DIVIDE_CUH

#include "scalar.cuh"

namespace bl
{

/* 1 / x, correctly rounded; complex as gfortran writes it (Smith's rule on (1, 0)). */
BL_HD float reciprocal(float x)
{
#ifdef __CUDA_ARCH__
    return __frcp_rn(x);
#else
    return 1 / x;
#endif
}

BL_HD double reciprocal(double x)
{
#ifdef __CUDA_ARCH__
    return __drcp_rn(x);
#else
    return 1 / x;
#endif
}

template <class R>
BL_HD Complex<R> reciprocal(Complex<R> z)
{
    return div(one<Complex<R>>(), z);
}

/* The same where magnitudes are moderate: what the intrinsics do before they look for
 * special cases, which here are looked for all at once and elsewhere. */
BL_HD float quick_reciprocal(float x)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return fmaf(y, fmaf(-x, y, 1.0f), y);
#else
    return 1 / x;
#endif
}

BL_HD double quick_reciprocal(double x)
{
#ifdef __CUDA_ARCH__
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    /* The lower word makes the seed a little too large, without which some results would
     * be rounded the wrong way. */
    y = __hiloint2double(__double2hiint(y), __double2hiint(x) + 0x300402);
    double e = fma(-x, y, 1.0);
    y = fma(y, fma(e, e, e), y);
    return fma(y, fma(-x, y, 1.0), y);
#else
    return 1 / x;
#endif
}

/* x / d, given 1 / d correctly rounded: the quotient's error is a number of the same
 * precision and corrects it exactly. */
template <class R>
BL_HD R quick_quotient(R x, R d, R inverse)
{
    R q = mul(x, inverse);
    return fma(fma(-d, q, x), inverse, q);
}

/* The same, but a zero keeps its sign. */
template <class R>
BL_HD R quick_signed_quotient(R x, R d, R inverse)
{
    R q = mul(x, inverse);
    return x == 0 ? q : fma(fma(-d, q, x), inverse, q);
}

template <class R>
BL_HD Complex<R> quick_reciprocal(Complex<R> z)
{
    const bool steep = fabs(z.re) < fabs(z.im);
    const R large = steep ? z.im : z.re, small = steep ? z.re : z.im;
    const R ratio = quick_quotient(small, large, quick_reciprocal(large));
    const R den = add(mul(small, ratio), large), whole = quick_reciprocal(den);
    /* Adding 0 makes a zero positive, as 1 * ratio + 0 and 0 - 1 * ratio do. */
    const R part = quick_quotient(add(steep ? ratio : -ratio, R(0)), den, whole);
    return steep ? Complex<R>{part, -whole} : Complex<R>{whole, part};
}

/* Not inlined: rare, and long. */
template <class R>
BL_CALL R careful_quotient(R x, R d)
{
    return div(x, d);
}

/* Pivots between these have roots and reciprocals by quick_root(), and elements that are
 * 0 or not below LEAST quotients by quick_signed_quotient(): nothing on the way is too
 * large or loses bits to gradual underflow. */
template <class R>
struct Quick;
template <>
struct Quick<float> {
    static constexpr float LEAST = 0x1p-60f, MOST = 0x1p60f;
};
template <>
struct Quick<double> {
    static constexpr double LEAST = 0x1p-400, MOST = 0x1p400;
};

/* Zero, or in the range of quick_signed_quotient(). On the device by the exponent:
 * comparisons of numbers would take the arithmetic's time. */
BL_HD bool is_plain(float x)
{
    const float size = fabsf(x);
    return (x == 0) | ((size >= Quick<float>::LEAST) & (size <= Quick<float>::MOST));
}

BL_HD bool is_plain(double x)
{
#ifdef __CUDA_ARCH__
    const unsigned high = unsigned(__double2hiint(x)) & 0x7fffffffu;
    return (high - ((1023u - 400u) << 20) < (800u << 20)) |
           ((high | unsigned(__double2loint(x))) == 0);
#else
    const double size = fabs(x);
    return (x == 0) | ((size >= Quick<double>::LEAST) & (size <= Quick<double>::MOST));
#endif
}

/* ---- divisors ---- */

/* A divisor, and Smith's rule as far as it depends on nothing else: complex ones become
 * {ratio, den}, and `steep` says which part was the larger. */
template <class R>
BL_HD R prepared(R x, bool &steep)
{
    steep = false;
    return x;
}

template <class R>
BL_HD Complex<R> prepared(Complex<R> y, bool &steep)
{
    steep = fabs(y.re) < fabs(y.im);
    R large = steep ? y.im : y.re, other = steep ? y.re : y.im;
    R ratio = div(other, large);
    return {ratio, add(mul(other, ratio), large)};
}

/* x / y, or x / conj(y), for a prepared y. */
template <class R>
BL_HD R quotient(R x, R y, bool, bool)
{
    return div(x, y);
}

template <class R>
BL_HD Complex<R> quotient(Complex<R> x, Complex<R> y, bool steep, bool conjugate)
{
    R ratio = conjugate ? -y.re : y.re, den = conjugate && steep ? -y.im : y.im;
    R u = steep ? x.im : x.re, v = steep ? x.re : x.im, p = mul(u, ratio);
    return {div(add(mul(v, ratio), u), den), div(sub(steep ? p : v, steep ? v : p), den)};
}

/* The same with 1 / y, or 1 / den for a complex y, correctly rounded: 0 where it is not
 * for quick_signed_quotient(). */
template <class R>
BL_HD R inverse_for(R y)
{
    const R size = fabs(y);
    return (size >= Quick<R>::LEAST) & (size <= Quick<R>::MOST) ? reciprocal(y) : R(0);
}

template <class R>
BL_HD R inverse_for(Complex<R> y)
{
    return inverse_for(y.im);
}

template <class R>
BL_HD R quotient_by(R x, R y, R inverse)
{
    const R size = fabs(x);
    const bool plain = (size >= Quick<R>::LEAST) & (size <= Quick<R>::MOST);
    return ((x == 0) | plain) & (inverse != 0) ? quick_signed_quotient(x, y, inverse)
                                               : careful_quotient(x, y);
}

template <class R>
BL_HD R quotient(R x, R y, bool, bool, R inverse)
{
    return quotient_by(x, y, inverse);
}

template <class R>
BL_HD Complex<R> quotient(Complex<R> x, Complex<R> y, bool steep, bool conjugate,
                          R inverse)
{
    R ratio = conjugate ? -y.re : y.re, sign = conjugate && steep ? R(-1) : R(1);
    R u = steep ? x.im : x.re, v = steep ? x.re : x.im, p = mul(u, ratio);
    return {quotient_by(add(mul(v, ratio), u), sign * y.im, sign * inverse),
            quotient_by(sub(steep ? p : v, steep ? v : p), sign * y.im, sign * inverse)};
}

/* x / d for many x: equal to div(x, d) unless something under- or overflows, which the
 * caller looks for. */
template <class T>
struct QuickDivisor {
    T d, inverse;

    BL_HD explicit QuickDivisor(T x) : d(x), inverse(reciprocal(x))
    {
    }
    BL_HD T quotient(T x) const
    {
        return quick_quotient(x, d, inverse);
    }
};

/* Smith's rule; what depends on the divisor only is done once. */
template <class R>
struct QuickDivisor<Complex<R>> {
    Complex<R> d;
    R ratio, den, inverse;
    bool steep;

    BL_HD explicit QuickDivisor(Complex<R> y) : d(y)
    {
        steep = fabs(y.re) < fabs(y.im);
        R large = steep ? y.im : y.re, small = steep ? y.re : y.im;
        ratio = div(small, large);
        den = add(mul(small, ratio), large);
        inverse = reciprocal(den);
    }
    BL_HD Complex<R> quotient(Complex<R> x) const
    {
        R s = steep ? x.im : x.re, t = steep ? x.re : x.im;
        R re = add(mul(t, ratio), s), im = mul(s, ratio);
        im = steep ? sub(im, t) : sub(t, im);
        return {quick_quotient(re, den, inverse), quick_quotient(im, den, inverse)};
    }
};

/* Not inlined either; complex numbers too. */
template <class T>
BL_CALL T quotient(T x, T y)
{
    return div(x, y);
}

/* The same for any x: corrected twice, and divided where something is out of range. */
template <class T>
struct Divisor {
    T d, inverse; /* 0 where it can not be used */

    BL_HD explicit Divisor(T x) : d(x), inverse(0)
    {
        if (in_range(x))
            inverse = reciprocal(x);
    }
    static BL_HD bool in_range(T x)
    {
        constexpr T LEAST = sizeof(T) == 4 ? T(0x1p-40) : T(0x1p-300);
        return fabs(x) >= LEAST && fabs(x) <= 1 / LEAST;
    }
    BL_HD T operator()(T x) const
    {
        if (!in_range(x) || inverse == 0)
            return quotient(x, d);
        T q = mul(x, inverse);
        q = fma(fma(-d, q, x), inverse, q);
        return fma(fma(-d, q, x), inverse, q);
    }
};

/* div() with what depends on d alone done once. */
template <class R>
struct Divisor<Complex<R>> {
    bool steep;
    R ratio;
    Divisor<R> den;

    static BL_HD bool is_steep(Complex<R> d)
    {
        return fabs(d.re) < fabs(d.im);
    }
    static BL_HD R ratio_of(Complex<R> d)
    {
        return is_steep(d) ? div(d.re, d.im) : div(d.im, d.re);
    }
    static BL_HD R den_of(Complex<R> d)
    {
        return is_steep(d) ? add(mul(d.re, ratio_of(d)), d.im)
                           : add(mul(d.im, ratio_of(d)), d.re);
    }
    BL_HD explicit Divisor(Complex<R> d)
        : steep(is_steep(d)), ratio(ratio_of(d)), den(den_of(d))
    {
    }
    BL_HD Complex<R> operator()(Complex<R> x) const
    {
        return {den(steep ? add(mul(x.re, ratio), x.im) : add(x.re, mul(x.im, ratio))),
                den(steep ? sub(mul(x.im, ratio), x.re) : sub(x.im, mul(x.re, ratio)))};
    }
};

} // namespace bl
#endif
