/* How the kernels of the middle sizes read and write memory: a complex number in one
 * access where its address allows, rows of shared memory 16 bytes at a time, stores that
 * a predicate and no branch leaves out, and integers of either size.
 *
 * Included by those that factor. Says nothing of what is stored where.
 */
#ifndef BL_MID_ACCESS_CUH
#define BL_MID_ACCESS_CUH

#include "tiny.cuh"

namespace bl
{

/* ---- memory: a complex number in one access where its address allows ---- */

template <class T>
__device__ __forceinline__ T load(const T *p, bool whole)
{
    return whole ? fetch(p) : *p;
}

template <class T>
__device__ __forceinline__ void store(T *p, T x, bool whole)
{
    if (whole)
        put(p, x);
    else
        *p = x;
}

/* ---- 16 bytes at a time ---- */

template <class T>
constexpr int PER_VECTOR = 16 / int(sizeof(T));

/* u[first..C-1], from the vector that holds `first` on, out of a row in shared memory. */
template <class T, int C>
__device__ __forceinline__ void read_row(T (&u)[C], const T *row, int first = 0)
{
    constexpr int V = PER_VECTOR<T>;
    BL_UNROLL
    for (int j = 0; j < C; j += V)
        if (j + V > first) {
            uint4 v = *(const uint4 *)(row + j);
            memcpy(&u[j], &v, 16);
        }
}

/* The same way back, where `yes`; a predicate, not a branch. */
template <class T, int C>
__device__ __forceinline__ void write_row(bool yes, T *row, const T (&u)[C],
                                          int first = 0)
{
    constexpr int V = PER_VECTOR<T>;
#ifdef BL_HOST_CUDA /* test/host_cuda.h */
    for (int j = 0; j < C; j += V)
        if (j + V > first && yes)
            memcpy(row + j, &u[j], 16);
#else
    const unsigned address = unsigned(__cvta_generic_to_shared(row));
    BL_UNROLL
    for (int j = 0; j < C; j += V)
        if (j + V > first) {
            uint4 v;
            memcpy(&v, &u[j], 16);
            asm volatile(
                "{ .reg .pred p;\n"
                "setp.ne.u32 p, %0, 0;\n"
                "@p st.shared.v4.u32 [%1], {%2, %3, %4, %5}; }" ::"r"(unsigned(yes)),
                "r"(address + unsigned(j * sizeof(T))), "r"(v.x), "r"(v.y), "r"(v.z),
                "r"(v.w)
                : "memory");
        }
#endif
}

/* To shared memory, where `yes`; a predicate, not a branch. */
template <class V>
__device__ __forceinline__ void put_where(bool yes, V *to, V v)
{
#ifdef __CUDA_ARCH__
    const unsigned address = unsigned(__cvta_generic_to_shared(to));
    static_assert(sizeof v == 1 || sizeof v == 2 || sizeof v % 4 == 0);
    if constexpr (sizeof v == 1) {
        asm volatile("{ .reg .pred p;\n"
                     "setp.ne.u32 p, %0, 0;\n"
                     "@p st.shared.u8 [%1], %2; }" ::"r"(unsigned(yes)),
                     "r"(address), "r"(unsigned(v))
                     : "memory");
    } else if constexpr (sizeof v == 2) {
        asm volatile("{ .reg .pred p;\n"
                     "setp.ne.u32 p, %0, 0;\n"
                     "@p st.shared.u16 [%1], %2; }" ::"r"(unsigned(yes)),
                     "r"(address), "r"(unsigned(v))
                     : "memory");
    } else {
        unsigned w[sizeof v / 4];
        memcpy(w, &v, sizeof v);
        BL_UNROLL
        for (int i = 0; i < int(sizeof v) / 4; i += sizeof v == 4 ? 1 : 2)
            if constexpr (sizeof v == 4)
                asm volatile("{ .reg .pred p;\n"
                             "setp.ne.u32 p, %0, 0;\n"
                             "@p st.shared.u32 [%1], %2; }" ::"r"(unsigned(yes)),
                             "r"(address), "r"(w[0])
                             : "memory");
            else
                asm volatile("{ .reg .pred p;\n"
                             "setp.ne.u32 p, %0, 0;\n"
                             "@p st.shared.v2.u32 [%1], {%2, %3}; }" ::"r"(unsigned(yes)),
                             "r"(address + i * 4), "r"(w[i]), "r"(w[i + 1])
                             : "memory");
    }
#else
    if (yes)
        *to = v;
#endif
}

/* x -= y, where `yes`; a predicate, not a branch. */
__device__ __forceinline__ void subtract_where(bool yes, float &x, float y)
{
#ifdef __CUDA_ARCH__
    asm("{ .reg .pred p;\n"
        "setp.ne.u32 p, %2, 0;\n"
        "@p sub.rn.f32 %0, %0, %1; }"
        : "+f"(x)
        : "f"(y), "r"(unsigned(yes)));
#else
    if (yes)
        x = sub(x, y);
#endif
}
__device__ __forceinline__ void subtract_where(bool yes, double &x, double y)
{
#ifdef __CUDA_ARCH__
    asm("{ .reg .pred p;\n"
        "setp.ne.u32 p, %2, 0;\n"
        "@p sub.rn.f64 %0, %0, %1; }"
        : "+d"(x)
        : "d"(y), "r"(unsigned(yes)));
#else
    if (yes)
        x = sub(x, y);
#endif
}
template <class R>
__device__ __forceinline__ void subtract_where(bool yes, Complex<R> &x, Complex<R> y)
{
    subtract_where(yes, x.re, y.re);
    subtract_where(yes, x.im, y.im);
}

__device__ __forceinline__ void put_integer(void *p, int size, int64_t value)
{
    if (size == 4)
        *(int32_t *)p = int32_t(value);
    else
        *(int64_t *)p = value;
}

__device__ __forceinline__ int64_t get_integer(const void *p, int size)
{
    return size == 4 ? *(const int32_t *)p : *(const int64_t *)p;
}

} // namespace bl
#endif
