/* The family of kernels beyond the tiny ones: which jobs it takes, which kernels they get,
 * and their launch.
 *
 * Called by engine.cu. The choice depends on the shape, the precision and the card alone.
 */
#include "family.h"
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
size_t shared_limit(const Card &card)
{
    return card.shared_bytes - 1024; /* what a kernel has of its own */
}

/* The kernel that keeps m x n on the chip; NULL: none. */
const MidKernel *on_chip(const struct bl_job *job, const Card &card)
{
    for (const MidKernel *k = kernels[job->precision]; k->kernel; k++)
        if (job->m <= k->rows)
            return k->shared_bytes(int(job->m), int(job->n)) <= shared_limit(card)
                       ? k
                       : nullptr;
    return nullptr;
}

/* Launches on a stream, until one fails. */
class Launcher
{
  public:
    Launcher(const Card &c, cudaStream_t s) : card(c), stream(s)
    {
    }

    void start(const void *kernel, int64_t blocks, int threads, size_t bytes,
               void **parameters)
    {
        if (error == cudaSuccess && blocks > INT32_MAX)
            error = cudaErrorInvalidConfiguration;
        /* The same for every launch: another thread may be between this call and its own.
         */
        if (error == cudaSuccess)
            error = cudaFuncSetAttribute(kernel,
                                         cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         int(shared_limit(card)));
        if (error == cudaSuccess)
            error = cudaLaunchKernel(kernel, dim3(unsigned(blocks)), dim3(threads),
                                     parameters, bytes, stream);
    }

    const Card &card;
    const cudaStream_t stream;
    cudaError_t error = cudaSuccess;
};

void launch_blocked(const struct bl_job *job, MidArguments *g, Launcher &launcher)
{
    const BlockedKernels *k = blocked[job->precision];
    const int m = int(job->m), n = int(job->n);
    /* Of items one may be square where the largest sides are not. */
    const int order = m < n ? m : n;
    void *moves = job->work;
    for (int first = 0; first < order; first += WIDTH) {
        int i = 0;
        while (m - first > k->panel[i].rows)
            i++;
        void *panel[] = {g, &first, &moves};
        launcher.start(k->panel[i].kernel, job->batch, k->panel[i].threads,
                       k->panel_bytes, panel);
        int strips = (n - first - 1) / WIDTH;
        if (order - first < WIDTH) /* a last, narrow panel */
            strips = (n - order + WIDTH - 1) / WIDTH;
        if (job->items) /* whose own last panel is narrow earlier */
            strips = (n - first + WIDTH - 1) / WIDTH;
        void *strip[] = {g, &first, &strips, &moves};
        if (strips > 0)
            launcher.start(k->strip, job->batch * strips, k->strip_threads,
                           k->strip_bytes, strip);
    }
    int panels = (order - 1) / WIDTH;
    void *arrange[] = {g, &panels};
    if (panels > 0)
        launcher.start(k->arrange, job->batch * panels, k->strip_threads, 0, arrange);
}

void factor(const struct bl_job *job, Launcher &launcher)
{
    MidArguments g = {job->a, job->ipiv, job->info,    job->items,
                      job->m, job->n,    job->int_size};
    const MidKernel *k = on_chip(job, launcher.card);
    if (!k)
        return launch_blocked(job, &g, launcher);
    void *parameters[] = {&g};
    launcher.start(k->kernel, job->batch, k->threads,
                   k->shared_bytes(int(job->m), int(job->n)), parameters);
}

bool takes(const struct bl_job *job, const Card &card)
{
    if (job->routine != BL_GETRF || job->batch < 1 || job->m < 1 || job->n < 1 ||
        job->n > MID_COLUMNS || job->m > MID_ROWS)
        return false;
    return on_chip(job, card) || (job->m > WIDTH && blocked[job->precision]->strip_bytes <=
                                                        shared_limit(card));
}

size_t workspace(const struct bl_job *job, const Card &card)
{
    return on_chip(job, card) ? 0 : job->batch * blocked[job->precision]->moves_bytes;
}

cudaError_t launch(const struct bl_job *job, const Card &card, cudaStream_t stream)
{
    Launcher launcher(card, stream);
    factor(job, launcher);
    return launcher.error;
}

} // namespace

const Family mid = {takes, workspace, launch};

} // namespace bl
