/* What the tiny Cholesky kernels are made of: numbers in one access, copies between
 * global and shared memory, loops whose counter is a constant.
 *
 * Used by tiny_cholesky.cuh and large_cholesky.cuh. What is here knows nothing of
 * matrices and lanes.
 */
#ifndef BL_TINY_PIECES_CUH
#define BL_TINY_PIECES_CUH

#include "quick_root.cuh"
#include "team.cuh"

#ifdef __CUDACC__
#    define BL_UNROLL_BY_FOUR _Pragma("unroll 4")
#    define BL_ROLLED _Pragma("unroll 1")
#else
#    define BL_ROLLED
#    define BL_UNROLL_BY_TWO
#    define BL_UNROLL_BY_FOUR
#endif

namespace bl
{

/* A number in one access, complex or not. */
template <class T>
struct alignas(sizeof(T)) Cell {
    T x;
};

template <class T>
BL_HD bool is_whole(const T *p)
{
    return !Traits<T>::complex || (uintptr_t)p % sizeof(T) == 0;
}

/* A piece of global memory to shared memory, past the registers, if `asked`; zeros if it
 * is not `there`. arrived() waits for all that this thread has asked for. No branches:
 * they would take longer. Older cards go the usual way. */
template <class V>
BL_HD void bring(V *to, const V *from, bool asked, bool there)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    asm volatile("{\n\t"
                 ".reg .pred asked;\n\t"
                 "setp.ne.b32 asked, %3, 0;\n\t"
                 "@asked cp.async.ca.shared.global [%0], [%1], %2, %4;\n\t"
                 "}" ::"r"(unsigned(__cvta_generic_to_shared(to))),
                 "l"(from), "n"(sizeof(V)), "r"(int(asked)),
                 "r"(there ? int(sizeof(V)) : 0)
                 : "memory");
#else
    if (asked)
        *to = there ? *from : V{};
#endif
}

BL_HD void arrived()
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/* And back, in one access. */
template <class R>
BL_HD void send(R *to, R x)
{
#ifdef __CUDACC__
    __stwb(to, x);
#else
    *to = x;
#endif
}

template <class R>
BL_HD void send(Complex<R> *to, Complex<R> x)
{
#ifdef __CUDACC__
    if constexpr (sizeof(R) == 4)
        __stwb((float2 *)to, make_float2(x.re, x.im));
    else
        __stwb((double2 *)to, make_double2(x.re, x.im));
#else
    *to = x;
#endif
}

/* f(B), ..., f(E - 1), where the number is a constant expression. The compiler unrolls
 * nests of loops too late to keep arrays in registers. */
template <int I>
struct Index {
    BL_HD constexpr int operator()() const
    {
        return I;
    }
};

template <int B, int E, class F>
BL_HD void each(const F &f)
{
    if constexpr (B < E) {
        f(Index<B>());
        each<B + 1, E>(f);
    }
}

/* Right-hand sides that a warp of groups of `lanes` lanes has in shared memory at a time,
 * and one to pad: no two rows of a column in one bank. */
#ifdef __CUDACC__
__host__ __device__
#endif
    constexpr int
    sides_for(int lanes, int64_t nrhs)
{
    return (32 / lanes * int(nrhs < 2 ? 2 : nrhs < lanes ? nrhs : lanes)) | 1;
}

/* How many bits are set. */
BL_HD int count_bits(unsigned x)
{
#ifdef __CUDACC__
    return __popc(x);
#else
    return __builtin_popcount(x);
#endif
}

/* c + a b, rounded once on the device: where bits are not promised. */
template <class R>
BL_HD R fused(R a, R b, R c)
{
    return fma(a, b, c);
}

template <class R>
BL_HD Complex<R> fused(Complex<R> a, Complex<R> b, Complex<R> c)
{
    return {fma(-a.im, b.im, fma(a.re, b.re, c.re)),
            fma(a.im, b.re, fma(a.re, b.im, c.im))};
}

/* Each part of x over y. */
template <class R>
BL_HD R each_over(R x, R y)
{
    return div(x, y);
}

template <class R>
BL_HD Complex<R> each_over(Complex<R> x, R y)
{
    return {div(x.re, y), div(x.im, y)};
}

/* x / (y + 0i)' as Smith's rule has it: other zeros, and more NaN. */
template <class R>
BL_HD R over_real(R x, R y)
{
    return div(x, y);
}

template <class R>
BL_HD Complex<R> over_real(Complex<R> x, R y)
{
    return quotient(x, Complex<R>{R(0), y}, false, true);
}

} // namespace bl
#endif
