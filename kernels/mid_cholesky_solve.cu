/* POTRS and POSV beyond the tiny orders: which jobs mid_cholesky_solve.cuh takes, its
 * kernels, and the launches. Called by engine.cu. */
#include "family.h"
#include "mid_cholesky_solve.cuh"
#include "shared_memory.h"

namespace bl
{
namespace
{

constexpr int WARPS = 4; /* a block, each for itself */

/* A warp takes some columns of B of one matrix. Shared memory: each warp's own part. */
template <class T, bool UPPER>
__global__ void __launch_bounds__(WARPS *LANES)
    cholesky_solve(const __grid_constant__ MidCholeskySolve g)
{
    extern __shared__ __align__(16) char memory[];
    const Team team = block_team();
    const int64_t number = int64_t(blockIdx.x) * WARPS + threadIdx.x / LANES;
    if (number < g.batch * g.groups)
        cholesky_solve_some<T, UPPER>(
            g, (T *)memory + threadIdx.x / LANES * solve_elements<T>(g.n, g.group), team,
            number);
}

struct Kernels {
    const void *kernel[2]; /* 'L', 'U' */
    int64_t (*elements)(int64_t n, int64_t group);
    int64_t element; /* bytes */
};

template <class T>
Kernels kernels_of()
{
    return {
        {(const void *)cholesky_solve<T, false>, (const void *)cholesky_solve<T, true>},
        solve_elements<T>,
        int64_t(sizeof(T))};
}

const Kernels kernels[BL_PRECISIONS] = {kernels_of<float>(), kernels_of<double>(),
                                        kernels_of<Complex<float>>(),
                                        kernels_of<Complex<double>>()};

/* Bytes of a warp's columns of B at most, so that several blocks share a multiprocessor;
 * one column of order 1024 takes no more. */
constexpr int64_t MOST_BYTES = 16 * 1024;

struct Plan {
    int64_t group, groups, bytes;
};

Plan plan_of(const struct bl_job *job)
{
    const Kernels &k = kernels[job->precision];
    const int64_t most = MOST_BYTES / (job->n * k.element);
    const int64_t least_groups = most < LANES ? most : LANES;
    Plan plan;
    plan.groups = (job->nrhs + least_groups - 1) / least_groups;
    plan.group = (job->nrhs + plan.groups - 1) / plan.groups;
    plan.bytes = WARPS * k.elements(job->n, plan.group) * k.element;
    return plan;
}

struct bl_job factoring_of(const struct bl_job *job)
{
    struct bl_job factor = *job;
    factor.routine = BL_POTRF;
    return factor;
}

bool takes(const struct bl_job *job, const Card &card)
{
    if ((job->routine != BL_POSV && job->routine != BL_POTRS) || job->n < 1 ||
        job->n > 1024 || job->batch < 1 || job->nrhs < 1)
        return false;
    const Plan plan = plan_of(job);
    if (plan.bytes > int64_t(card.shared_bytes) ||
        (job->nrhs > SIDES_BY_WARPS && job->batch < card.processors) ||
        (job->batch * plan.groups + WARPS - 1) / WARPS > INT32_MAX)
        return false;
    const struct bl_job factor = factoring_of(job);
    return job->routine == BL_POTRS || mid_cholesky.takes(&factor, card);
}

size_t workspace(const struct bl_job *job, const Card &card)
{
    const struct bl_job factor = factoring_of(job);
    return job->routine == BL_POSV ? mid_cholesky.workspace(&factor, card) : 0;
}

cudaError_t launch(const struct bl_job *job, const Card &card, cudaStream_t stream)
{
    cudaError_t error = cudaSuccess;
    const bool factors = job->routine == BL_POSV;
    if (factors) {
        const struct bl_job factor = factoring_of(job);
        error = mid_cholesky.launch(&factor, card, stream);
    }
    if (error == cudaSuccess && triangles_after_potrf.takes(job, card))
        return triangles_after_potrf.launch(job, card, stream);
    const Plan plan = plan_of(job);
    const void *kernel = kernels[job->precision].kernel[job->uplo == 'U'];
    MidCholeskySolve g = {job->a,          job->b,           job->info,   job->items,
                          job->nrhs,       job->batch,       int(job->n), job->int_size,
                          int(plan.group), int(plan.groups), factors};
    void *parameters[] = {&g};
    if (error == cudaSuccess)
        error = allow_all_shared(kernel, card);
    if (error == cudaSuccess)
        error = cudaLaunchKernel(
            kernel, dim3(unsigned((job->batch * plan.groups + WARPS - 1) / WARPS)),
            dim3(WARPS * LANES), parameters, size_t(plan.bytes), stream);
    return error;
}

} // namespace

const Family mid_cholesky_solve = {takes, workspace, launch};

} // namespace bl
