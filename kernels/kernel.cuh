/* From a job to the algorithms: the one kernel that every routine is an instance of.
 *
 * The other .cu files instantiate it with BL_KERNEL, which also defines
 * kernel_NAME(precision) for the table in engine.cu. Nothing is decided here: engine.cu
 * chooses how many threads and blocks a matrix gets.
 */
#ifndef BL_KERNEL_CUH
#define BL_KERNEL_CUH

#include "problem.cuh"
#include "../src/engine.h"

namespace bl
{

/* Threads a block at most. */
constexpr int THREADS = 256;

struct Arguments {
    struct bl_operand a, b, x, ipiv, info, phase, logabs;
    const struct bl_item *items;
    int64_t m, n, nrhs, block, batch;
    char uplo, trans, exact;
    int int_size;
    int blocks;    /* a team's */
    char *control; /* a team's Control after the other, `control_bytes` apart */
    size_t control_bytes;
    char *work; /* a team's work space after the other, `work_bytes` apart */
    size_t work_bytes;
};

/* NULL where the routine has no such operand. */
__device__ __forceinline__ void *operand_at(const struct bl_operand &x, int64_t item,
                                            int64_t element)
{
    if (x.array)
        return x.array[item];
    return x.p ? (char *)x.p + item * x.stride * element : nullptr;
}

/* A team of `blocks` thread blocks takes every (number of teams)-th problem. Of an empty
 * matrix INFO is 0 and the determinant 1. */
template <class T, int64_t (*routine)(Team &, const Problem<T> &)>
__global__ void __launch_bounds__(THREADS) solve_batch(const Arguments g)
{
    int64_t index = blockIdx.x / g.blocks, teams = gridDim.x / g.blocks;
    Team team = block_team();
    team.block = blockIdx.x % g.blocks;
    team.blocks = g.blocks;
    team.control = (Control *)(g.control + index * g.control_bytes);
    team.exact = g.exact;
    for (int64_t turn = index; turn < g.batch; turn += teams) {
        struct bl_item item = {turn, g.m, g.n, g.a.ld, g.x.ld};
        if (g.items)
            item = g.items[turn];
        Problem<T> p = {item.m,
                        item.n,
                        g.nrhs,
                        g.block,
                        g.uplo,
                        g.trans,
                        (T *)operand_at(g.a, item.index, sizeof(T)),
                        item.lda,
                        (T *)operand_at(g.b, item.index, sizeof(T)),
                        g.b.ld,
                        {operand_at(g.ipiv, item.index, g.int_size), g.int_size, 0},
                        (T *)(g.work + index * g.work_bytes),
                        (T *)operand_at(g.x, item.index, sizeof(T)),
                        item.ldx,
                        (T *)operand_at(g.phase, item.index, sizeof(T)),
                        (Real<T> *)operand_at(g.logabs, item.index, sizeof(Real<T>))};
        int64_t info = 0;
        if (p.m > 0 && p.n > 0) {
            info = routine(team, p);
        } else if (p.phase && team.rank() == 0) {
            *p.phase = one<T>();
            *p.logabs = 0;
        }
        if (team.rank() == 0) {
            void *to = operand_at(g.info, item.index, g.int_size);
            if (g.int_size == 4)
                *(int32_t *)to = int32_t(info);
            else
                *(int64_t *)to = info;
        }
        team.sync(); /* before the work space is used again */
    }
}

#define BL_KERNEL(name)                                                                  \
    const void *kernel_##name(int precision)                                             \
    {                                                                                    \
        switch (precision) {                                                             \
        case BL_S:                                                                       \
            return (const void *)solve_batch<float, name<float>>;                        \
        case BL_D:                                                                       \
            return (const void *)solve_batch<double, name<double>>;                      \
        case BL_C:                                                                       \
            return (const void *)solve_batch<Complex<float>, name<Complex<float>>>;      \
        default:                                                                         \
            return (const void *)solve_batch<Complex<double>, name<Complex<double>>>;    \
        }                                                                                \
    }

} // namespace bl
#endif
