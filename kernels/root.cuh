/* A square root with its reciprocal, and division by that root: correctly rounded, as
 * root() and div() of scalar.cuh are, in fewer dependent operations.
 *
 * Used by mid_cholesky_block.cuh, where they are the chain through all columns. Where an
 * operand is far from 1, and on the host, the functions of scalar.cuh do it. The last
 * steps are Markstein's: a residual that a fused operation gives exactly corrects what is
 * wrong by a unit in the last place at most.
 */
#ifndef BL_ROOT_CUH
#define BL_ROOT_CUH

#include "scalar.cuh"

namespace bl
{

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

/* Of these alone the reciprocal could come out wrong. */
BL_HD bool is_all_ones(double x)
{
    return (__double2hiint(x) | int(0xfff00000)) == -1 && __double2loint(x) == -1;
}

BL_HD bool is_all_ones(float x)
{
    return (__float_as_int(x) | int(0xff800000)) == -1;
}

/* 1 / sqrt(x), wrong by a unit in the last place at most. */
BL_HD double near_inverse_root(double x)
{
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    const double e = fma(x, -(y * y), 1.0);
    return fma(fma(e, 0.375, 0.5), e * y, y);
}

BL_HD float near_inverse_root(float x)
{
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#endif

/* length = sqrt(x), scale = 1 / length. */
template <class R>
BL_HD void root_and_inverse(R x, R &length, R &scale)
{
#ifdef __CUDA_ARCH__
    if (is_moderate(x) && x > 0) {
        const R y = near_inverse_root(x), g = mul(x, y);
        length = fma(fma(-g, g, x), mul(R(0.5), y), g);
        const R z = fma(fma(-length, y, R(1)), y, y);
        scale = fma(fma(-length, z, R(1)), z, z);
        if (!is_all_ones(length))
            return;
    }
#endif
    length = root(x);
    scale = div(R(1), length);
}

/* x / length, where scale = 1 / length. */
template <class R>
BL_HD R quotient(R x, R length, R scale)
{
#ifdef __CUDA_ARCH__
    if (is_moderate(x) && is_moderate(length)) {
        R q = mul(x, scale); /* by two units at most */
        q = fma(fma(-q, length, x), scale, q);
        return fma(fma(-q, length, x), scale, q);
    }
#else
    (void)scale;
#endif
    return div(x, length);
}

/* x / conj(length), a real number, as netlib divides by complex ones. */
template <class R>
BL_HD Complex<R> quotient(Complex<R> x, R length, R scale)
{
    const R ratio = R(-0.0);
    return {quotient(add(x.re, mul(x.im, ratio)), length, scale),
            quotient(sub(x.im, mul(x.re, ratio)), length, scale)};
}

} // namespace bl
#endif
