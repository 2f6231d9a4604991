/* A matrix of at most 32 rows in the registers of one warp, or of a part of it.
 *
 * Used by tiny_lu.cuh, tiny_inverse.cuh and tiny_solve.cuh. A group of 4, 8, 16 or 32
 * lanes holds a matrix, a lane one row of it from the one read to the one write, so a
 * warp works on up to eight matrices at once. Rows never move: interchanges only change
 * the position that a lane writes to. What is here knows about groups, rows and memory,
 * not about factorizations. Nothing may depend on what the other groups of the warp hold.
 */
#ifndef BL_TINY_CUH
#define BL_TINY_CUH

#include "blas.cuh"
#include "quick_divide.cuh"
#include "tiny.h"

namespace bl
{

constexpr unsigned WARP = ~0u;

/* At most so many blocks does a multiprocessor take, and a compiler a wish for. */
#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ == 800 ||                                    \
    (__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200)
constexpr int MOST_BLOCKS = 32;
#else
constexpr int MOST_BLOCKS = 16;
#endif
#define BL_TINY_BOUNDS(WARPS, BLOCKS)                                                    \
    __launch_bounds__(32 * WARPS, BLOCKS < MOST_BLOCKS ? BLOCKS : MOST_BLOCKS)

/* Lanes a matrix of order n <= 32 gets. */
__host__ __device__ constexpr int lanes_for(int n)
{
    return n <= 4 ? 4 : n <= 8 ? 8 : n <= 16 ? 16 : 32;
}

/* The same value, of which the compiler is to know nothing. */
__device__ __forceinline__ int renewed(int x)
{
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(x));
#endif
    return x;
}
__device__ __forceinline__ unsigned renewed(unsigned x)
{
    return unsigned(renewed(int(x)));
}
template <class T>
__device__ __forceinline__ T *renewed(T *p)
{
#ifdef __CUDA_ARCH__
    asm volatile("" : "+l"(p));
#endif
    return p;
}

/* ---- groups of lanes ---- */

template <int L>
struct Group {
    int row;   /* the lane in its group: the row it holds */
    int first; /* the group's first lane in the warp */

    __device__ __forceinline__ Group()
    {
        int lane = threadIdx.x % 32;
        row = lane % L;
        first = lane - row;
    }

    /* The value of the lane that holds row r; r is the same in the whole group. */
    template <class V>
    __device__ __forceinline__ V from(V x, int r) const
    {
        return from_lane(x, first + r);
    }

    /* Bit r: the lane of row r says yes. */
    __device__ __forceinline__ unsigned ballot(bool yes) const
    {
        unsigned all = __ballot_sync(WARP, yes);
        return L == 32 ? all : all >> first & ((1u << L % 32) - 1);
    }

    __device__ __forceinline__ unsigned max(unsigned x) const
    {
#if __CUDA_ARCH__ >= 800
        if constexpr (L == 32) {
            return __reduce_max_sync(WARP, x);
        } else if constexpr (L == 16) {
            unsigned low = __reduce_max_sync(WARP, first ? 0 : x);
            unsigned high = __reduce_max_sync(WARP, first ? x : 0);
            return first ? high : low;
        } else
#endif
        {
            BL_UNROLL
            for (int step = L / 2; step > 0; step /= 2)
                x = ::max(x, __shfl_xor_sync(WARP, x, step));
            return x;
        }
    }
};

/* ---- memory ---- */

/* A complex number in one access where its address allows. */
template <class T>
struct Whole {
    using Type = T;
};
template <>
struct Whole<Complex<float>> {
    using Type = float2;
};
template <>
struct Whole<Complex<double>> {
    using Type = double2;
};

template <class T>
__device__ __forceinline__ bool is_whole(const T *p)
{
    return !Traits<T>::complex || (uintptr_t)p % sizeof(T) == 0;
}

template <class T>
__device__ __forceinline__ T fetch(const T *p)
{
    if constexpr (Traits<T>::complex) {
        auto v = *(const typename Whole<T>::Type *)p;
        return {v.x, v.y};
    } else {
        return *p;
    }
}

template <class T>
__device__ __forceinline__ void put(T *p, T x)
{
    if constexpr (Traits<T>::complex)
        *(typename Whole<T>::Type *)p = {x.re, x.im};
    else
        *p = x;
}

/* The first n elements of a row, zeros behind; `inside`: there is such a row. */
template <class T, int N>
__device__ __forceinline__ void load_row(T (&a)[N], const T *p, int64_t lda, int n,
                                         bool inside)
{
    if (is_whole(p)) {
        BL_UNROLL
        for (int j = 0; j < N; j++)
            a[j] = inside && j < n ? fetch(p + j * lda) : from_real<T>(0);
    } else {
        BL_UNROLL
        for (int j = 0; j < N; j++)
            a[j] = inside && j < n ? p[j * lda] : from_real<T>(0);
    }
}

template <class T, int N>
__device__ __forceinline__ void store_row(const T (&a)[N], T *p, int64_t lda, int n,
                                          bool inside)
{
    if (!inside)
        return;
    if (is_whole(p)) {
        BL_UNROLL
        for (int j = 0; j < N; j++)
            if (j < n)
                put(p + j * lda, a[j]);
    } else {
        BL_UNROLL
        for (int j = 0; j < N; j++)
            if (j < n)
                p[j * lda] = a[j];
    }
}

__device__ __forceinline__ void *tiny_operand(const struct bl_operand &x, int64_t item,
                                              int element)
{
    return x.array ? x.array[item] : (char *)x.p + item * x.stride * element;
}

__device__ __forceinline__ void put_integer(const struct bl_operand &x, int64_t item,
                                            int size, int element, int64_t value)
{
    void *p = tiny_operand(x, item, size);
    if (size == 4)
        ((int32_t *)p)[element] = int32_t(value);
    else
        ((int64_t *)p)[element] = value;
}

__device__ __forceinline__ int64_t tiny_info(const TinyArguments &g, int64_t item)
{
    void *p = tiny_operand(g.info, item, g.int_size);
    return g.int_size == 4 ? *(int32_t *)p : *(int64_t *)p;
}

__device__ __forceinline__ Pivots tiny_pivots(const TinyArguments &g, int64_t item)
{
    return {tiny_operand(g.ipiv, item, g.int_size), g.int_size, 0};
}

/* The problem that a group works on. Groups behind the end of the batch repeat the last
 * problem and write nothing. */
template <class T>
struct TinyProblem {
    bool there;
    int m, n;
    int64_t item; /* its place in the operands */
    int64_t lda, ldx;
    T *a;

    __device__ __forceinline__ TinyProblem(const TinyArguments &g, int64_t number)
    {
        there = number < g.batch;
        item = there ? number : g.batch - 1;
        m = g.m;
        n = g.n;
        lda = g.a.ld;
        ldx = g.x.ld;
        if (g.items) {
            const struct bl_item *shape = &g.items[item];
            item = shape->index;
            m = int(shape->m);
            n = int(shape->n);
            lda = shape->lda;
            ldx = shape->ldx;
        }
        a = (T *)tiny_operand(g.a, item, sizeof(T));
    }
};

/* The number of this group in the launch. */
template <int L>
__device__ __forceinline__ int64_t group_number()
{
    return (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / L;
}

/* ---- arithmetic ---- */

/* c - a b with fewer roundings, where bits are not promised. */
__device__ __forceinline__ float fused(float c, float a, float b)
{
    return fmaf(-a, b, c);
}
__device__ __forceinline__ double fused(double c, double a, double b)
{
    return fma(-a, b, c);
}
template <class R>
__device__ __forceinline__ Complex<R> fused(Complex<R> c, Complex<R> a, Complex<R> b)
{
    return {fma(a.im, b.im, fma(-a.re, b.re, c.re)),
            fma(-a.im, b.re, fma(-a.re, b.im, c.im))};
}

/* Stays a zero as long as what is added is finite, else becomes NaN. */
template <class T>
struct Finite {
    Real<T> sum[2] = {0, 0};

    __device__ __forceinline__ void add(T x, int which)
    {
        if constexpr (Traits<T>::complex) {
            sum[0] = fma(x.re, Real<T>(0), sum[0]);
            sum[1] = fma(x.im, Real<T>(0), sum[1]);
        } else {
            sum[which % 2] = fma(x, Real<T>(0), sum[which % 2]);
        }
    }
    __device__ __forceinline__ explicit operator bool() const
    {
        return sum[0] + sum[1] == 0;
    }
};

/* What pivots are compared by: an unsigned integer that grows with a magnitude, its high
 * part and what is left. The top bit tells a row that may be chosen from one that may
 * not. */
constexpr unsigned CHOSEN = 0x80000000u;

__device__ __forceinline__ unsigned high_bits(float x)
{
    return __float_as_uint(x);
}
__device__ __forceinline__ unsigned high_bits(double x)
{
    return unsigned(__double2hiint(x));
}
template <class R>
__device__ __forceinline__ unsigned high_image(R x)
{
    return high_bits(x) | CHOSEN;
}
__device__ __forceinline__ unsigned low_image(float)
{
    return 0;
}
__device__ __forceinline__ unsigned low_image(double x)
{
    return unsigned(__double2loint(x));
}
/* Images of the magnitudes that quick_reciprocal() is for. Below LEAST a modulus may also
 * be under sfmin. Complex: so that neither the quotient of the parts nor what corrects it
 * leaves the normal numbers, where the smaller part is 0 or at least SMALLEST_PART. */
template <class T>
struct Moderate;
template <>
struct Moderate<float> {
    static constexpr unsigned LEAST = CHOSEN + 0x00800000u, MOST = CHOSEN + 0x7e000000u;
};
template <>
struct Moderate<double> {
    static constexpr unsigned LEAST = CHOSEN + 0x00100000u, MOST = CHOSEN + 0x7fc00000u;
};
template <>
struct Moderate<Complex<float>> { /* 2^-30, 2^30; 2^-60 */
    static constexpr unsigned LEAST = CHOSEN + 0x30800000u, MOST = CHOSEN + 0x4e800000u;
    static constexpr unsigned SMALLEST_PART = CHOSEN + 0x21800000u;
};
template <>
struct Moderate<Complex<double>> { /* 2^-400, 2^400; 2^-500 */
    static constexpr unsigned LEAST = CHOSEN + 0x26f00000u, MOST = CHOSEN + 0x58f00000u;
    static constexpr unsigned SMALLEST_PART = CHOSEN + 0x20b00000u;
};

template <class T>
__device__ __forceinline__ bool is_moderate(unsigned image)
{
    return image - Moderate<T>::LEAST < Moderate<T>::MOST - Moderate<T>::LEAST;
}

/* Of a complex number's parts, its sum being looked at elsewhere. */
template <class T>
__device__ __forceinline__ bool has_moderate_parts(T x)
{
    if constexpr (Traits<T>::complex) {
        auto small = fmin(fabs(x.re), fabs(x.im));
        return small == 0 || high_image(small) >= Moderate<T>::SMALLEST_PART;
    } else {
        return true;
    }
}

} // namespace bl
#endif
