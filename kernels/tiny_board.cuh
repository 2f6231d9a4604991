/* A group's matrix in shared memory, for rows that stay where they are until all steps of
 * an elimination are done.
 *
 * Used by tiny_pivot.cuh and by what builds on it. Knows where things lie, and nothing of
 * what is done with them.
 */
#ifndef BL_TINY_BOARD_CUH
#define BL_TINY_BOARD_CUH

#include "tiny.cuh"

namespace bl
{

/* 16 bytes of a row. */
template <class T>
struct alignas(16) TinyUnit {
    static constexpr int SIZE = 16 / sizeof(T);
    T x[SIZE];
};

/* A group's matrix in shared memory, where everything goes that is done. Row i of the
 * result lies at order[i], a number whose bits below a unit are not part of the place:
 * they say how the elements of L are exchanged within their units, so that different rows
 * and groups meet in few banks. The elements of U begin at a whole unit. */
template <class T, int N, int L>
struct TinyBoard {
    static constexpr int UNIT = TinyUnit<T>::SIZE;
    static constexpr int PITCH = ((N + 2 * UNIT - 2) / UNIT | 1) * UNIT; /* of a row */
    static constexpr int SIZE = (N * PITCH / UNIT | 1) * UNIT;
    static_assert(N % UNIT == 0 && PITCH >= N + UNIT - 1, "rows are whole units");
    T *p;       /* the warp's */
    int *order; /* where row i of the result lies */
    int *pivot; /* IPIV(i + 1) - 1 */
    T *b;       /* the first right-hand side */

    __device__ __forceinline__ static int start(int k)
    {
        return (k + UNIT - 1) / UNIT * UNIT;
    }
    __device__ __forceinline__ TinyUnit<T> &unit(int at) const
    {
        return *(TinyUnit<T> *)(p + at);
    }
    __device__ __forceinline__ static int place(int at)
    {
        return at & ~(UNIT - 1);
    }
    /* Which row of the input lies there. */
    __device__ __forceinline__ static int row(int at)
    {
        return at % SIZE / PITCH;
    }
    /* Where element j of L lies, and where element j = 0 of row i of U would. */
    __device__ __forceinline__ static int lower(int at, int j)
    {
        return (at ^ (j & (UNIT - 1))) + (j & ~(UNIT - 1));
    }
    __device__ __forceinline__ static int upper(int at, int i)
    {
        return place(at) + start(i) - i;
    }
    __device__ __forceinline__ T element(int i, int j) const
    {
        const int at = order[i];
        return p[j < i ? lower(at, j) : upper(at, i) + j];
    }
};

/* The same address in shared memory, which is then kept in a register and not formed anew
 * for each access. */
template <class V>
__device__ __forceinline__ V *kept(V *p)
{
#ifdef __CUDA_ARCH__
    return (V *)__cvta_shared_to_generic(renewed(unsigned(__cvta_generic_to_shared(p))));
#else
    return p;
#endif
}

template <class T, int N, int L, bool EXTRA>
__device__ __forceinline__ TinyBoard<T, N, L> rows_board(const Group<L> &group)
{
    constexpr int GROUPS = 32 / L;
    __shared__ TinyUnit<T> units[GROUPS * TinyBoard<T, N, L>::SIZE / TinyUnit<T>::SIZE];
    __shared__ int numbers[GROUPS][2][N];
    T *b = nullptr;
    if constexpr (EXTRA) {
        __shared__ T sides[GROUPS][N];
        b = sides[group.first / L];
    }
    int *own = kept(numbers[group.first / L][0]);
    return {kept((T *)units), own, own + N, EXTRA ? kept(b) : nullptr};
}

/* Spares the loads and stores that follow a look at what kind of address it is. */
__device__ __forceinline__ void assume_global(const void *p)
{
#ifdef __CUDA_ARCH__
    __builtin_assume(__isGlobal(p));
#else
    (void)p;
#endif
}

} // namespace bl
#endif
