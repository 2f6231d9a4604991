/* The arithmetic of the four precisions, every operation rounded on its own.
 *
 * Used by all of kernels/ and, compiled by g++ with -ffp-contract=off, by
 * test/host_kernels.cc. On the device every product, sum, quotient and root goes through
 * an intrinsic that the compiler never fuses; complex arithmetic is written out as
 * gfortran compiles it (product ac-bd, ad+bc; quotient by Smith's rule). Nothing here may
 * reorder, contract or simplify: netlib's bits depend on it, NaN, Inf and -0 included.
 */
#ifndef BL_SCALAR_CUH
#define BL_SCALAR_CUH

#include <stdint.h>
#include <math.h>

#ifdef __CUDACC__
#    define BL_HD __device__ __forceinline__
#    define BL_CALL __device__ __noinline__
#    define BL_UNROLL _Pragma("unroll")
#    define BL_UNROLL_BY_TWO _Pragma("unroll 2")
#else
#    define BL_HD inline
#    define BL_CALL inline
#    define BL_UNROLL
#    define BL_UNROLL_BY_TWO
#endif

namespace bl
{

/* Not aligned beyond its parts: LAPACK's complex arrays may begin at any 8 bytes. */
template <class R>
struct Complex {
    R re, im;
};

template <class T>
struct Traits;
template <>
struct Traits<float> {
    using Real = float;
    static constexpr bool complex = false;
};
template <>
struct Traits<double> {
    using Real = double;
    static constexpr bool complex = false;
};
template <class R>
struct Traits<Complex<R>> {
    using Real = R;
    static constexpr bool complex = true;
};
template <class T>
using Real = typename Traits<T>::Real;

/* What is instantiated for a type T, for all four. */
#define BL_FOR_EACH_TYPE(INSTANCE)                                                       \
    INSTANCE(float)                                                                      \
    INSTANCE(double)                                                                     \
    INSTANCE(Complex<float>)                                                             \
    INSTANCE(Complex<double>)

#ifdef __CUDA_ARCH__
BL_HD float add(float x, float y)
{
    return __fadd_rn(x, y);
}
BL_HD float sub(float x, float y)
{
    return __fsub_rn(x, y);
}
BL_HD float mul(float x, float y)
{
    return __fmul_rn(x, y);
}
BL_HD float div(float x, float y)
{
    return __fdiv_rn(x, y);
}
BL_HD float root(float x)
{
    return __fsqrt_rn(x);
}
BL_HD double add(double x, double y)
{
    return __dadd_rn(x, y);
}
BL_HD double sub(double x, double y)
{
    return __dsub_rn(x, y);
}
BL_HD double mul(double x, double y)
{
    return __dmul_rn(x, y);
}
BL_HD double div(double x, double y)
{
    return __ddiv_rn(x, y);
}
BL_HD double root(double x)
{
    return __dsqrt_rn(x);
}
#else
#    define BL_REAL_OPERATIONS(R)                                                        \
        BL_HD R add(R x, R y)                                                            \
        {                                                                                \
            return x + y;                                                                \
        }                                                                                \
        BL_HD R sub(R x, R y)                                                            \
        {                                                                                \
            return x - y;                                                                \
        }                                                                                \
        BL_HD R mul(R x, R y)                                                            \
        {                                                                                \
            return x * y;                                                                \
        }                                                                                \
        BL_HD R div(R x, R y)                                                            \
        {                                                                                \
            return x / y;                                                                \
        }                                                                                \
        BL_HD R root(R x)                                                                \
        {                                                                                \
            return sqrt(x);                                                              \
        }
BL_REAL_OPERATIONS(float)
BL_REAL_OPERATIONS(double)
#    undef BL_REAL_OPERATIONS
#endif

template <class R>
BL_HD Complex<R> add(Complex<R> x, Complex<R> y)
{
    return {add(x.re, y.re), add(x.im, y.im)};
}

template <class R>
BL_HD Complex<R> sub(Complex<R> x, Complex<R> y)
{
    return {sub(x.re, y.re), sub(x.im, y.im)};
}

template <class R>
BL_HD Complex<R> mul(Complex<R> x, Complex<R> y)
{
    return {sub(mul(x.re, y.re), mul(x.im, y.im)), add(mul(x.re, y.im), mul(x.im, y.re))};
}

/* Smith's rule with the comparison as gfortran writes it (false for NaN). */
template <class R>
BL_HD Complex<R> div(Complex<R> x, Complex<R> y)
{
    if (fabs(y.re) < fabs(y.im)) {
        R ratio = div(y.re, y.im);
        R den = add(mul(y.re, ratio), y.im);
        return {div(add(mul(x.re, ratio), x.im), den),
                div(sub(mul(x.im, ratio), x.re), den)};
    }
    R ratio = div(y.im, y.re);
    R den = add(mul(y.im, ratio), y.re);
    return {div(add(mul(x.im, ratio), x.re), den), div(sub(x.im, mul(x.re, ratio)), den)};
}

template <class T>
BL_HD T from_real(Real<T> x)
{
    if constexpr (Traits<T>::complex)
        return {x, 0};
    else
        return x;
}

template <class T>
BL_HD T one()
{
    return from_real<T>(1);
}

template <class T>
BL_HD Real<T> real(T x)
{
    if constexpr (Traits<T>::complex)
        return x.re;
    else
        return x;
}

template <class T>
BL_HD T conj(T x)
{
    if constexpr (Traits<T>::complex)
        return {x.re, -x.im};
    else
        return x;
}

template <class T>
BL_HD T negative(T x)
{
    if constexpr (Traits<T>::complex)
        return {-x.re, -x.im};
    else
        return -x;
}

template <class R>
BL_HD bool is_finite(R x)
{
    return fabs(x) <= (sizeof(R) == 4 ? R(0x1.fffffep127) : R(0x1.fffffffffffffp1023));
}

template <class R>
BL_HD bool is_finite(Complex<R> x)
{
    return is_finite(x.re) && is_finite(x.im);
}

template <class T>
BL_HD bool is_zero(T x)
{
    if constexpr (Traits<T>::complex)
        return x.re == 0 && x.im == 0;
    else
        return x == 0;
}

template <class T>
BL_HD bool is_one(T x)
{
    if constexpr (Traits<T>::complex)
        return x.re == 1 && x.im == 0;
    else
        return x == 1;
}

/* |re| + |im|, what IxAMAX compares. */
template <class T>
BL_HD Real<T> abs1(T x)
{
    if constexpr (Traits<T>::complex)
        return add(Real<T>(fabs(x.re)), Real<T>(fabs(x.im)));
    else
        return fabs(x);
}

/* x * y where netlib multiplies by a constant alpha or beta: a full complex product (0 *
 * Inf is NaN), but only a product where the type is complex. */
template <class T>
BL_HD T times_one(T x)
{
    if constexpr (Traits<T>::complex)
        return mul(one<T>(), x);
    else
        return x;
}

/* DLAMCH('S'): the smallest number whose reciprocal does not overflow. */
template <class R>
BL_HD constexpr R sfmin()
{
    return sizeof(R) == 4 ? R(0x1p-126) : R(0x1p-1022);
}

/* ABS(z) >= SFMIN as netlib decides it through the C library's hypot. Only where both
 * parts are below SFMIN does the modulus itself matter; it is then formed with glibc's
 * operations, since a value half a unit below the limit rounds up to it. */
BL_HD bool reaches_sfmin(float x)
{
    return fabs(x) >= sfmin<float>();
}

BL_HD bool reaches_sfmin(double x)
{
    return fabs(x) >= sfmin<double>();
}

BL_HD bool reaches_sfmin(Complex<float> z)
{
    double x = z.re, y = z.im;
    if (isinf(z.re) || isinf(z.im))
        return true;
    return float(root(add(mul(x, x), mul(y, y)))) >= sfmin<float>();
}

BL_HD bool reaches_sfmin(Complex<double> z)
{
    double x = fabs(z.re), y = fabs(z.im);
    if (isinf(x) || isinf(y))
        return true;
    if (x != x || y != y)
        return false;
    if (x < y) {
        double t = x;
        x = y;
        y = t;
    }
    if (x >= sfmin<double>())
        return true;
    if (x >= mul(y, 0x1p54))
        return add(x, y) >= sfmin<double>();
    x = mul(x, 0x1p600);
    y = mul(y, 0x1p600);
    double h = root(add(mul(x, x), mul(y, y))), t1, t2;
    if (h <= mul(2.0, y)) {
        double delta = sub(h, y);
        t1 = mul(x, sub(mul(2.0, delta), x));
        t2 = mul(sub(delta, mul(2.0, sub(x, y))), delta);
    } else {
        double delta = sub(h, x);
        t1 = mul(mul(2.0, delta), sub(x, mul(2.0, y)));
        t2 = add(mul(sub(mul(4.0, delta), y), y), mul(delta, delta));
    }
    h = sub(h, div(add(t1, t2), mul(2.0, h)));
    return mul(h, 0x1p-600) >= sfmin<double>();
}

} // namespace bl
#endif
