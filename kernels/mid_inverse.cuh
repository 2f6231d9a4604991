/* What inverses and determinants of the middle sizes need beside the factorisation and
 * the solve: copies, the second attempt, the product of the diagonal.
 *
 * Included by mid_solve.cuh, whose file instantiates them; launched by mid.cu.
 */
#ifndef BL_MID_INVERSE_CUH
#define BL_MID_INVERSE_CUH

#include "determinant.cuh"
#include "inverse.cuh"
#include "mid_lu.cuh"

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

/* A block: a matrix. */
template <class T>
__global__ void __launch_bounds__(256) lu_copy(const MidCopy g)
{
    const int64_t slot = blockIdx.x;
    struct bl_item item = {g.first + slot, g.n, g.n, g.from.ld, 0};
    if (g.items)
        item = g.items[g.first + slot];
    const T *from = (const T *)operand_at(g.from, item.index, sizeof(T));
    T *to = (T *)g.to + slot * g.n * g.n;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n = int(item.m);
    for (int j = warp; j < n; j += 8)
        for (int i = lane; i < n; i += 32)
            to[i + int64_t(j) * g.n] = from[i + j * item.lda];
    if (g.own_items && threadIdx.x == 0)
        g.own_items[slot] = {slot, item.m, item.n, g.n, 0};
}

/* A block: the strange ones among every (number of blocks)-th matrix. */
template <class T>
__global__ void __launch_bounds__(256) lu_invert_again(const MidAgain g)
{
    Team team;
    team.thread = threadIdx.x;
    team.threads = blockDim.x;
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
    Team team;
    team.thread = threadIdx.x;
    team.threads = 32;
    determinant(team, w.n, w.lu, w.lda, w.pivots,
                (T *)operand_at(g.phase, w.index, sizeof(T)),
                (Real<T> *)operand_at(g.logabs, w.index, sizeof(Real<T>)));
    if (threadIdx.x == 0)
        put_integer(operand_at(g.solve.info, w.index, g.solve.int_size), g.solve.int_size,
                    get_integer(operand_at(g.solve.lu_info, slot, 4), 4));
}

} // namespace bl
#endif
