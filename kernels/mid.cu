/* Which of the kernels beyond the tiny ones a job gets, and its launch.
 *
 * Called by engine.cu. The choice depends on the shape, the precision and the card alone.
 */
#include "mid.h"

namespace bl
{
namespace
{

constexpr int64_t LARGEST = 1024; /* columns */

const MidKernel *const kernels[BL_PRECISIONS] = {mid_lu_s, mid_lu_d, mid_lu_c, mid_lu_z};

/* Bytes of shared memory that a block may ask for. */
size_t shared_limit()
{
    int device = 0, bytes = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) !=
            cudaSuccess)
        return 0;
    return size_t(bytes) - 1024; /* what a kernel has of its own */
}

/* The kernel that keeps m x n on the chip; NULL: none. */
const MidKernel *on_chip(const struct bl_job *job)
{
    if (job->routine != BL_GETRF || job->m < 1 || job->n < 1 || job->n > LARGEST)
        return nullptr;
    for (const MidKernel *k = kernels[job->precision]; k->kernel; k++)
        if (job->m <= k->rows)
            return k->shared_bytes(int(job->m), int(job->n)) <= shared_limit() ? k
                                                                               : nullptr;
    return nullptr;
}

} // namespace

bool mid_takes(const struct bl_job *job)
{
    return on_chip(job) != nullptr;
}

cudaError_t mid_launch(const struct bl_job *job, cudaStream_t stream)
{
    const MidKernel *k = on_chip(job);
    const size_t bytes = k->shared_bytes(int(job->m), int(job->n));
    MidArguments g = {job->a, job->ipiv, job->info, job->items,
                      job->m, job->n,    job->int_size};
    void *parameters[] = {&g};
    cudaError_t error = cudaFuncSetAttribute(
        k->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes));
    if (error != cudaSuccess)
        return error;
    return cudaLaunchKernel(k->kernel, dim3(unsigned(job->batch)), dim3(k->threads),
                            parameters, bytes, stream);
}

} // namespace bl
