/* A square root with its reciprocal, and division by that root: correctly rounded, as
 * root() and div() of scalar.cuh are, in fewer dependent operations.
 *
 * Used by the Cholesky kernels. Where an operand is far from 1, and on the host, the
 * functions of scalar.cuh do it. The last steps are Markstein's: a residual that a fused
 * operation gives exactly corrects what is wrong by a unit in the last place at most.
 */
#ifndef BL_QUICK_ROOT_CUH
#define BL_QUICK_ROOT_CUH

#include "quick_divide.cuh"

namespace bl
{

/* r := sqrt(d) and 1 / r, both correctly rounded, without the intrinsics' look for
 * special cases: a seed for 1 / sqrt(d), made better until it serves both. False: the
 * reciprocal may be wrong, since no approximation of it helps where all bits of r are
 * set. */
BL_HD bool quick_root(float d, float &r, float &inverse)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(d));
    const float first = __fmul_rn(d, y);
    r = fmaf(fmaf(-first, first, d), __fmul_rn(y, 0.5f), first);
    y = fmaf(y, fmaf(-r, y, 1.0f), y);
    inverse = fmaf(y, fmaf(-r, y, 1.0f), y);
    return (__float_as_uint(r) & 0x7fffffu) != 0x7fffffu;
#else
    r = sqrtf(d);
    inverse = 1 / r;
    return true;
#endif
}

BL_HD bool quick_root(double d, double &r, double &inverse)
{
#ifdef __CUDA_ARCH__
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(d));
    /* The lower word makes the seed a little better. */
    y = __hiloint2double(__double2hiint(y), __double2hiint(d) - 0x03500000);
    const double e = fma(d, -__dmul_rn(y, y), 1.0);
    y = fma(fma(e, 0.375, 0.5), __dmul_rn(y, e), y);
    const double first = __dmul_rn(d, y);
    r = fma(fma(-first, first, d), __dmul_rn(y, 0.5), first);
    y = fma(y, fma(-r, y, 1.0), y);
    inverse = fma(y, fma(-r, y, 1.0), y);
    return __double2loint(r) != -1;
#else
    r = sqrt(d);
    inverse = 1 / r;
    return true;
#endif
}

/* An approximation of 1 / sqrt(d), of 20 bits or more, for d in the range of
 * is_near_root(). */
BL_HD float seed_of_root(float d)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(d));
    return y;
#else
    return (1 + 0x1p-22f) / sqrtf(d);
#endif
}

BL_HD double seed_of_root(double d)
{
#ifdef __CUDA_ARCH__
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(d));
    return y;
#else
    return (1 - 0x1p-20) / sqrt(d);
#endif
}

/* ---- where the chain through all columns is what takes time ---- */

#ifdef __CUDA_ARCH__
/* Far enough from underflow and overflow for every step here. Not NaN. */
BL_HD bool is_moderate(double x)
{
    return (unsigned(__double2hiint(x)) & 0x7fffffffu) - (623u << 20) < (800u << 20);
}

BL_HD bool is_moderate(float x)
{
    return (__float_as_uint(x) & 0x7fffffffu) - (67u << 23) < (120u << 23);
}

/* Whether quick_root() can do x: it is positive, not extreme, and its root not one with
 * a mantissa of ones, of whose reciprocal alone the last step could be wrong. */
BL_HD bool has_quick_root(double x)
{
    const unsigned high = unsigned(__double2hiint(x));
    return high - (623u << 20) < (800u << 20) && (~high & 0xfffffu) != 0;
}

BL_HD bool has_quick_root(float x)
{
    const unsigned bits = __float_as_uint(x);
    return bits - (67u << 23) < (120u << 23) && (~bits & 0x7ffff8u) != 0;
}

/* g near sqrt(x) and h near 1 / (2 sqrt(x)), from an approximation of 20 bits. */
BL_HD void near_root(double x, double &g, double &h)
{
    const double y = seed_of_root(x);
    const double g0 = mul(x, y), h0 = mul(0.5, y);
    const double r = fma(-g0, h0, 0.5), t = fma(r, 1.5, 1.0);
    g = fma(mul(g0, r), t, g0);
    h = fma(mul(h0, r), t, h0);
}

BL_HD void near_root(float x, float &g, float &h)
{
    const float y = seed_of_root(x);
    g = mul(x, y);
    h = mul(0.5f, y);
}

/* length = sqrt(x), scale = 1 / length, and what is near it and known earlier; nonsense
 * where it can not do x. */
template <class R>
BL_HD void quick_root(R x, R &length, R &scale, R &near)
{
    R g, h;
    near_root(x, g, h);
    length = fma(fma(-g, g, x), h, g);
    near = mul(R(2), h);
    const R z = fma(fma(-length, near, R(1)), near, near);
    scale = fma(fma(-length, z, R(1)), z, z);
}
#else
template <class R>
BL_HD bool has_quick_root(R)
{
    return false;
}

template <class R>
BL_HD void quick_root(R, R &length, R &scale, R &near)
{
    length = scale = near = 0;
}
#endif

/* ---- where a few units in the last place do not matter ---- */

/* An approximation of 1 / d, of 20 bits or more, for d in the range of is_near_root(). */
BL_HD float seed_of_reciprocal(float d)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(d));
    return y;
#else
    return (1 - 0x1p-22f) / d;
#endif
}

BL_HD double seed_of_reciprocal(double d)
{
#ifdef __CUDA_ARCH__
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(d));
    return y;
#else
    return (1 + 0x1p-20) / d;
#endif
}

/* 1 / d = seed + seed * rest, rounding apart. */
template <class R>
struct NearReciprocal {
    R seed, rest;
    BL_HD explicit NearReciprocal(R d) : seed(seed_of_reciprocal(d))
    {
        const R e = fma(-d, seed, R(1));
        rest = fma(e, e, e);
    }
};

/* Of several pivots the largest is one that is_near_root() if all of them are such that
 * these can do them. */
BL_HD unsigned near_root_key(double x)
{
#ifdef __CUDA_ARCH__
    return unsigned(__double2hiint(x)) - (623u << 20);
#else
    return x >= 0x1p-60 && x <= 0x1p60 ? 0 : ~0u;
#endif
}
BL_HD unsigned near_root_key(float x)
{
#ifdef __CUDA_ARCH__
    return __float_as_uint(x) - (67u << 23);
#else
    return x >= 0x1p-60f && x <= 0x1p60f ? 0 : ~0u;
#endif
}
template <class R>
BL_HD bool is_near_root(unsigned key)
{
    return key < (sizeof(R) == 8 ? 800u << 20 : 120u << 23);
}

/* 1 / sqrt(d), within few units in the last place. */
template <class R>
BL_HD R near_inverse_root(R d)
{
    const R y = seed_of_root(d), e = fma(d, -(y * y), R(1));
    return fma(fma(e, R(0.375), R(0.5)), y * e, y);
}

/* x / length, where scale = 1 / length; `near` is the same within few units. */
template <class R>
BL_HD R quotient(R x, R length, R scale, R near)
{
#ifdef __CUDA_ARCH__
    R q = mul(x, near);
    q = fma(fma(-q, length, x), near, q); /* now by less than a unit */
    q = fma(fma(-q, length, x), scale, q);
    if (!is_moderate(x) || !is_moderate(length))
        q = div(x, length);
    return q;
#else
    (void)scale;
    (void)near;
    return div(x, length);
#endif
}

/* x / conj(length), a real number, as netlib divides by complex ones. */
template <class R>
BL_HD Complex<R> quotient(Complex<R> x, R length, R scale, R near)
{
    const R ratio = R(-0.0);
    return {quotient(add(x.re, mul(x.im, ratio)), length, scale, near),
            quotient(sub(x.im, mul(x.re, ratio)), length, scale, near)};
}

} // namespace bl
#endif
