/* What a pivot is chosen by and how its column is scaled.
 *
 * Included by the kernels that factor on the chip and by panels. Keys order magnitudes
 * only as far as 32 bits go: where two are equal the caller must look at the numbers.
 */
#ifndef BL_MID_PIVOT_CUH
#define BL_MID_PIVOT_CUH

#include "tiny.cuh"

namespace bl
{

/* The lanes of a warp. */
constexpr unsigned ALL_LANES = ~0u;

/* In place of a row's step: it has no pivot yet, and is no row of the matrix. */
enum { NONE = 1 << 14, OUTSIDE = -1 };

/* ---- magnitudes ---- */

/* The order of |x| in 32 bits, never 0; equal for numbers whose upper halves are. */
__device__ __forceinline__ unsigned magnitude_key(double x)
{
    return unsigned(__double2hiint(x)) | 0x80000000u;
}
__device__ __forceinline__ unsigned magnitude_key(float x)
{
    return __float_as_uint(x) | 0x80000000u;
}
template <class R>
__device__ __forceinline__ unsigned magnitude_key(Complex<R> z)
{
    return magnitude_key(abs1(z));
}
template <class R>
__device__ __forceinline__ constexpr unsigned infinity_key()
{
    return sizeof(R) == 4 ? 0xff800000u : 0xfff00000u;
}

__device__ __forceinline__ unsigned largest_of_warp(unsigned x)
{
#if __CUDA_ARCH__ >= 800 || defined BL_HOST_CUDA /* test/host_cuda.h */
    return __reduce_max_sync(ALL_LANES, x);
#else
    for (int step = 16; step > 0; step /= 2)
        x = max(x, __shfl_xor_sync(ALL_LANES, x, step));
    return x;
#endif
}

/* ---- when reciprocals are used ---- */

/* Keeps the compiler from putting one off until the other is there. */
#ifdef BL_HOST_CUDA
template <class R>
void together(unsigned &, R &)
{
}
#else
__device__ __forceinline__ void together(unsigned &x, float &y)
{
    asm volatile("" : "+r"(x), "+f"(y));
}
__device__ __forceinline__ void together(unsigned &x, double &y)
{
    asm volatile("" : "+r"(x), "+d"(y));
}
#endif
template <class R>
__device__ __forceinline__ void together(unsigned &x, Complex<R> &y)
{
    together(x, y.re);
}

enum Scaling { MULTIPLY, LEAVE, DIVIDE };

template <class T>
BL_CALL int rare_scaling(T pivot)
{
    return is_zero(pivot) ? LEAVE : reaches_sfmin(pivot) ? MULTIPLY : DIVIDE;
}

template <class T>
__device__ __forceinline__ int scaling(T pivot, T factor)
{
    Real<T> size;
    if constexpr (Traits<T>::complex)
        size = fmax(fabs(pivot.re), fabs(pivot.im));
    else
        size = fabs(pivot);
    if (size >= sfmin<Real<T>>())
        return Traits<T>::complex && is_one(factor) ? LEAVE : MULTIPLY;
    return rare_scaling(pivot);
}

} // namespace bl
#endif
