/* Which jobs the tiny kernels take, and their launch.
 *
 * Called by engine.cu. A class of sizes is four columns wide, or that of 8, 16 or 32, and
 * has its own kernel; the grid is one-dimensional, so a batch may have any number of
 * problems.
 */
#include "family.h"
#include "tiny.h"

namespace bl
{

TinyKernel tiny_kernel_s(enum bl_routine_id routine, int size);
TinyKernel tiny_kernel_d(enum bl_routine_id routine, int size);
TinyKernel tiny_kernel_c(enum bl_routine_id routine, int size);
TinyKernel tiny_kernel_z(enum bl_routine_id routine, int size);

namespace
{

constexpr int LIMIT = 32; /* rows and columns */

/* By precision: s, d, c, z. Beyond LIMIT go jobs of one shape that the kernels of
 * tiny_head.cuh are made for. */
constexpr int HEADED[BL_PRECISIONS] = {48, 48, 48, 32};
/* Of GESV, with one right-hand side: bench/batched, on an H200. */
constexpr int HEADED_GESV[BL_PRECISIONS] = {48, 44, 48, 32};

/* Right-hand sides that GESV solves for in the kernel that factors. */
constexpr int FUSED_COLUMNS = 8;

int64_t order_of(const struct bl_job *job)
{
    return job->m > job->n ? job->m : job->n;
}

cudaError_t launch(enum bl_routine_id routine, const struct bl_job *job, TinyArguments g,
                   int64_t slices, cudaStream_t stream)
{
    static TinyKernel (*const kernels[])(enum bl_routine_id, int) = {
        tiny_kernel_s, tiny_kernel_d, tiny_kernel_c, tiny_kernel_z};
    TinyKernel k = kernels[job->precision](routine, tiny_class(order_of(job)));
    int64_t blocks = (job->batch + k.problems - 1) / k.problems * slices;
    void *parameters[] = {&g};
    if (blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    return cudaLaunchKernel(k.kernel, dim3(unsigned(blocks)), dim3(unsigned(k.threads)),
                            parameters, 0, stream);
}

} // namespace

int tiny_class(int64_t n)
{
    return n < 1 ? 0 : int((n - 1) / 4);
}

namespace
{

/* Whether the job is for a kernel of tiny_head.cuh. */
bool has_head(const struct bl_job *job)
{
    const int64_t order = order_of(job), least = job->m < job->n ? job->m : job->n;
    if (order <= LIMIT || order > HEADED[job->precision] || job->items)
        return false;
    switch (job->routine) {
    case BL_GETRF:
    case BL_GETRFSP:
        return least > 4 * (tiny_class(order) + 1) - LIMIT; /* the head's columns */
    case BL_GESV:
        return job->nrhs == 1 && order <= HEADED_GESV[job->precision];
    case BL_GEDET:
        return true;
    default:
        return false;
    }
}

bool takes(const struct bl_job *job, const Card &)
{
    if (job->m < 1 || job->n < 1 || job->batch < 1)
        return false;
    if (order_of(job) > LIMIT)
        return has_head(job);
    switch (job->routine) {
    case BL_GETRF:
    case BL_GESV:
    case BL_GETRI:
    case BL_GETRI_OOP:
    case BL_GEINV:
    case BL_GEDET:
    case BL_GETRFNP:
    case BL_GETRFSP:
        return true;
    case BL_GETRS:
        return job->trans == 'N' && job->nrhs > 0;
    default:
        return false;
    }
}

size_t workspace(const struct bl_job *, const Card &)
{
    return 0;
}

cudaError_t launch_job(const struct bl_job *job, const Card &, cudaStream_t stream)
{
    TinyArguments g = tiny_arguments(job);
    int64_t slices = (job->nrhs + TINY_COLUMNS - 1) / TINY_COLUMNS;
    if (job->routine == BL_GETRS)
        return launch(BL_GETRS, job, g, slices, stream);
    if (job->routine != BL_GESV || job->nrhs <= FUSED_COLUMNS)
        return launch(job->routine, job, g, 1, stream);
    /* Many right-hand sides: more groups than there are matrices can share them out. */
    cudaError_t error = launch(BL_GETRF, job, g, 1, stream);
    g.after_factoring = true;
    return error == cudaSuccess ? launch(BL_GETRS, job, g, slices, stream) : error;
}

} // namespace

const Family tiny = {takes, workspace, launch_job};

} // namespace bl
