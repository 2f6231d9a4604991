/* Many quotients by one number, each correctly rounded.
 *
 * Included by the kernels that solve with the factors of the middle sizes.
 */
#ifndef BL_MID_DIVISOR_CUH
#define BL_MID_DIVISOR_CUH

#include "tiny.cuh"

namespace bl
{

template <class T>
BL_CALL T quotient(T x, T y)
{
    return div(x, y);
}

/* x / d for one d and many x. The quotient by the reciprocal is corrected twice by what
 * it leaves over, which makes it the nearest one as long as nothing is out of range. */
template <class T>
struct Divisor {
    T d, inverse; /* 0 where it can not be used */

    __device__ __forceinline__ explicit Divisor(T x) : d(x), inverse(0)
    {
        if (in_range(x))
            inverse = reciprocal(x);
    }
    static __device__ __forceinline__ bool in_range(T x)
    {
        constexpr T LEAST = sizeof(T) == 4 ? T(0x1p-40) : T(0x1p-300);
        return fabs(x) >= LEAST && fabs(x) <= 1 / LEAST;
    }
    __device__ __forceinline__ T operator()(T x) const
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

    static __device__ __forceinline__ bool is_steep(Complex<R> d)
    {
        return fabs(d.re) < fabs(d.im);
    }
    static __device__ __forceinline__ R ratio_of(Complex<R> d)
    {
        return is_steep(d) ? div(d.re, d.im) : div(d.im, d.re);
    }
    static __device__ __forceinline__ R den_of(Complex<R> d)
    {
        return is_steep(d) ? add(mul(d.re, ratio_of(d)), d.im)
                           : add(mul(d.im, ratio_of(d)), d.re);
    }
    __device__ __forceinline__ explicit Divisor(Complex<R> d)
        : steep(is_steep(d)), ratio(ratio_of(d)), den(den_of(d))
    {
    }
    __device__ __forceinline__ Complex<R> operator()(Complex<R> x) const
    {
        return {den(steep ? add(mul(x.re, ratio), x.im) : add(x.re, mul(x.im, ratio))),
                den(steep ? sub(mul(x.im, ratio), x.re) : sub(x.im, mul(x.re, ratio)))};
    }
};

} // namespace bl
#endif
