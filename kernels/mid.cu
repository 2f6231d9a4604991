/* Which of the kernels beyond the tiny ones a job gets, and its launch.
 *
 * Called by engine.cu. The choice depends on the shape, the precision and the card alone.
 */
#include "mid.h"

namespace bl
{
namespace
{

const MidKernel *const kernels[BL_PRECISIONS] = {mid_lu_s, mid_lu_d, mid_lu_c, mid_lu_z};
const BlockedKernels *const blocked[BL_PRECISIONS] = {&mid_blocked_s, &mid_blocked_d,
                                                      &mid_blocked_c, &mid_blocked_z};
constexpr int WIDTH = 64; /* of a panel */

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
    for (const MidKernel *k = kernels[job->precision]; k->kernel; k++)
        if (job->m <= k->rows)
            return k->shared_bytes(int(job->m), int(job->n)) <= shared_limit() ? k
                                                                               : nullptr;
    return nullptr;
}

cudaError_t start(const void *kernel, int64_t blocks, int threads, size_t bytes,
                  void **parameters, cudaStream_t stream)
{
    /* The same for every launch: another thread may be between this call and its own. */
    cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared_limit()));
    if (error != cudaSuccess)
        return error;
    return cudaLaunchKernel(kernel, dim3(unsigned(blocks)), dim3(threads), parameters,
                            bytes, stream);
}

cudaError_t launch_blocked(const struct bl_job *job, MidArguments *g, cudaStream_t stream)
{
    const BlockedKernels *k = blocked[job->precision];
    const int m = int(job->m), n = int(job->n);
    /* Of items one may be square where the largest sides are not. */
    const int order = m < n ? m : n;
    void *moves = job->work;
    cudaError_t error = cudaSuccess;
    for (int first = 0; first < order && error == cudaSuccess; first += WIDTH) {
        int i = 0;
        while (m - first > k->panel[i].rows)
            i++;
        void *panel[] = {g, &first, &moves};
        error = start(k->panel[i].kernel, job->batch, k->panel[i].threads, k->panel_bytes,
                      panel, stream);
        int strips = (n - first - 1) / WIDTH;
        if (order - first < WIDTH) /* a last, narrow panel */
            strips = (n - order + WIDTH - 1) / WIDTH;
        if (job->items) /* whose own last panel is narrow earlier */
            strips = (n - first + WIDTH - 1) / WIDTH;
        void *strip[] = {g, &first, &strips, &moves};
        if (strips > 0 && error == cudaSuccess)
            error = start(k->strip, job->batch * strips, k->strip_threads, k->strip_bytes,
                          strip, stream);
    }
    int panels = (order - 1) / WIDTH;
    void *arrange[] = {g, &panels};
    if (panels > 0 && error == cudaSuccess)
        error =
            start(k->arrange, job->batch * panels, k->strip_threads, 0, arrange, stream);
    return error;
}

} // namespace

bool mid_takes(const struct bl_job *job)
{
    if (job->routine != BL_GETRF || job->m < 1 || job->n < 1 || job->n > MID_COLUMNS ||
        job->m > MID_ROWS)
        return false;
    return on_chip(job) ||
           (job->m > WIDTH && blocked[job->precision]->strip_bytes <= shared_limit());
}

size_t mid_workspace(const struct bl_job *job)
{
    return on_chip(job) ? 0 : job->batch * blocked[job->precision]->moves_bytes;
}

cudaError_t mid_launch(const struct bl_job *job, cudaStream_t stream)
{
    MidArguments g = {job->a, job->ipiv, job->info,    job->items,
                      job->m, job->n,    job->int_size};
    const MidKernel *k = on_chip(job);
    if (!k)
        return launch_blocked(job, &g, stream);
    void *parameters[] = {&g};
    return start(k->kernel, job->batch, k->threads,
                 k->shared_bytes(int(job->m), int(job->n)), parameters, stream);
}

} // namespace bl
