/* POSV beyond the tiny orders: a POTRF by the kernels for it, then, where INFO is 0, the
 * solves of the general kernels. Called by engine.cu.
 */
#include "cholesky.cuh"
#include "family.h"
#include "kernel.cuh"

namespace bl
{
namespace
{

struct Solves {
    struct bl_operand a, b, info;
    const struct bl_item *items;
    int64_t n, nrhs, batch;
    char uplo, exact;
    int int_size;
};

/* A block takes every (number of blocks)-th problem. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    solve_factored(const __grid_constant__ Solves g)
{
    Team team;
    team.thread = threadIdx.x;
    team.threads = blockDim.x;
    team.exact = g.exact;
    for (int64_t turn = blockIdx.x; turn < g.batch; turn += gridDim.x) {
        struct bl_item item = {turn, g.n, g.n, g.a.ld, 0};
        if (g.items)
            item = g.items[turn];
        const void *info = operand_at(g.info, item.index, g.int_size);
        if (g.int_size == 4 ? *(const int32_t *)info : *(const int64_t *)info)
            continue;
        cholesky_solve(team, g.uplo == 'U', item.n, g.nrhs,
                       (const T *)operand_at(g.a, item.index, sizeof(T)), item.lda,
                       (T *)operand_at(g.b, item.index, sizeof(T)), g.b.ld);
        team.sync();
    }
}

const void *const kernels[BL_PRECISIONS] = {
    (const void *)solve_factored<float>, (const void *)solve_factored<double>,
    (const void *)solve_factored<Complex<float>>,
    (const void *)solve_factored<Complex<double>>};

struct bl_job factoring_of(const struct bl_job *job)
{
    struct bl_job factor = *job;
    factor.routine = BL_POTRF;
    return factor;
}

/* Few matrices: the blocks of a team share one in the general kernel. */
bool takes(const struct bl_job *job, const Card &card)
{
    if (job->routine != BL_POSV || job->batch < card.processors / 2)
        return false;
    const struct bl_job factor = factoring_of(job);
    return mid_cholesky.takes(&factor, card);
}

size_t workspace(const struct bl_job *job, const Card &card)
{
    const struct bl_job factor = factoring_of(job);
    return mid_cholesky.workspace(&factor, card);
}

cudaError_t launch(const struct bl_job *job, const Card &card, cudaStream_t stream)
{
    const struct bl_job factor = factoring_of(job);
    cudaError_t error = mid_cholesky.launch(&factor, card, stream);
    if (error != cudaSuccess)
        return error;
    Solves g = {job->a,       job->b,    job->info,
                job->items,   job->n,    job->nrhs,
                job->batch,   job->uplo, job->arithmetic == BL_EXACT,
                job->int_size};
    const int64_t most = int64_t(card.processors) * 16;
    void *parameters[] = {&g};
    return cudaLaunchKernel(
        kernels[job->precision], dim3(unsigned(job->batch < most ? job->batch : most)),
        dim3(unsigned(job->n <= NB && job->nrhs <= NB ? THREADS / 2 : THREADS)),
        parameters, 0, stream);
}

} // namespace

const Family mid_posv = {takes, workspace, launch};

} // namespace bl
