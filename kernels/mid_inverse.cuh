/* What inverses and determinants of the middle sizes need beside the factorisation and
 * the solve: copies, the second attempt, the product of the diagonal.
 *
 * Included by mid_solve.cuh, whose file instantiates them; launched by mid.cu.
 */
#ifndef BL_MID_INVERSE_CUH
#define BL_MID_INVERSE_CUH

#include "determinant.cuh"
#include "inverse.cuh"
#include "kernel.cuh"
#include "mid.h"
#include "mid_access.cuh"

namespace bl
{

/* What a block of a launch that is told a MidSolve works on. */
template <class T>
struct Solve {
    const T *lu;
    T *b;
    int64_t lda, ldb, index;
    Pivots pivots;
    int n;

    __device__ __forceinline__ Solve(const MidSolve &g, int64_t slot)
    {
        struct bl_item item = {g.first + slot, g.n, g.n, g.lu.ld, g.b.ld};
        if (g.items)
            item = g.items[g.first + slot];
        index = item.index;
        n = int(item.m);
        lu = (const T *)operand_at(g.lu, g.packed ? slot : index, sizeof(T));
        lda = g.packed || !g.items ? g.lu.ld : item.lda;
        b = (T *)operand_at(g.b, index, sizeof(T));
        ldb = !g.items || g.ld_of_b == g.OF_JOB ? g.b.ld
              : g.ld_of_b == g.OF_A             ? item.lda
                                                : item.ldx;
        pivots = {operand_at(g.ipiv, g.own_pivots ? slot : index, g.ipiv_size),
                  g.ipiv_size, 0};
    }
};

/* row_at[k]: the row of B that comes to row k by the interchanges. `pivot` has room for n
 * numbers. A block. */
__device__ __forceinline__ void find_rows(const Pivots &pivots, int n, short *pivot,
                                          short *row_at)
{
    for (int k = threadIdx.x; k < n; k += blockDim.x)
        pivot[k] = short(pivots.get(k));
    __syncthreads();
    for (int r = threadIdx.x; r < n; r += blockDim.x) {
        int at = r;
#pragma unroll 4
        for (int k = 0; k < n; k++) {
            const int p = pivot[k];
            at = at == k ? p : at == p ? k : at;
        }
        row_at[at] = short(r);
    }
    __syncthreads();
}

/* INFO of an inverse: where there is none of a factorisation, the first zero of the
 * diagonal. The block; with `put` it writes it. */
template <class T>
__device__ __forceinline__ int64_t inverse_info(const MidSolve &g, const Solve<T> &w,
                                                int64_t slot, bool put)
{
    int64_t info = 0;
    if (g.lu_info.p || g.lu_info.array) {
        info =
            get_integer(operand_at(g.lu_info, g.packed ? slot : w.index, g.lu_info_size),
                        g.lu_info_size);
    } else {
        __shared__ int first_zero;
        if (threadIdx.x == 0)
            first_zero = w.n;
        __syncthreads();
        for (int k = threadIdx.x; k < w.n; k += blockDim.x)
            if (is_zero(w.lu[k + k * w.lda]))
                atomicMin(&first_zero, k);
        __syncthreads();
        info = first_zero < w.n ? first_zero + 1 : 0;
    }
    if (put && threadIdx.x == 0 && (g.info.p || g.info.array))
        put_integer(operand_at(g.info, w.index, g.int_size), g.int_size, info);
    return info;
}

/* A block: a matrix. */
template <class T>
__global__ void __launch_bounds__(256) lu_copy(const MidCopy g)
{
    const int64_t slot = blockIdx.x;
    struct bl_item item = {g.first + slot, g.n, g.n, g.from.ld, 0};
    if (g.items)
        item = g.items[g.first + slot];
    const T *from = (const T *)operand_at(g.from, item.index, sizeof(T));
    T *to = (T *)g.to.p + slot * g.to.stride;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n = int(item.m);
    for (int j = warp; j < n; j += 8)
        for (int i = lane; i < n; i += 32)
            to[i + j * g.to.ld] = from[i + j * item.lda];
    if (g.own_items && threadIdx.x == 0)
        g.own_items[slot] = {slot, item.m, item.n, g.to.ld, 0};
}

/* A block: the strange ones among every (number of blocks)-th matrix. */
template <class T>
__global__ void __launch_bounds__(256) lu_invert_again(const MidAgain g)
{
    Team team = block_team();
    for (int64_t slot = blockIdx.x; slot < g.slots; slot += gridDim.x) {
        if (!g.solve.strange[slot])
            continue;
        const Solve<T> w(g.solve, slot);
        __syncthreads();
        copy(team, w.n, w.n, w.lu, w.lda, w.b, w.ldb);
        __syncthreads();
        lu_invert(team, w.n, g.block, w.b, w.ldb, w.pivots,
                  (T *)g.work + blockIdx.x * int64_t(g.solve.n) * NB);
    }
}

/* A warp: a matrix. */
template <class T>
__global__ void __launch_bounds__(32) lu_determinant(const MidDeterminant g)
{
    const int64_t slot = blockIdx.x;
    const Solve<T> w(g.solve, slot);
    const Team team = block_team(32);
    determinant(team, w.n, w.lu, w.lda, w.pivots,
                (T *)operand_at(g.phase, w.index, sizeof(T)),
                (Real<T> *)operand_at(g.logabs, w.index, sizeof(Real<T>)));
    if (threadIdx.x == 0)
        put_integer(operand_at(g.solve.info, w.index, g.solve.int_size), g.solve.int_size,
                    get_integer(operand_at(g.solve.lu_info, slot, 4), 4));
}

} // namespace bl
#endif
