/* Which Cholesky jobs mid_cholesky.cuh takes, its kernels, and the launch. Called by
 * engine.cu. What mid_cholesky_fast.cu takes is passed on to it. */
#include "family.h"
#include "mid_cholesky_kernels.cuh"
#include "shared_memory.h"

namespace bl
{
namespace
{

const MidCholeskyKernels exact[BL_PRECISIONS] = {
    kernels_of<float, BY_PRODUCTS, BY_SUMS>(), kernels_of<double, BY_PRODUCTS, BY_SUMS>(),
    kernels_of<Complex<float>, BY_PRODUCTS, BY_SUMS>(),
    kernels_of<Complex<double>, BY_PRODUCTS, BY_SUMS>()};

const MidCholeskyKernels &kernels_for(const struct bl_job *job)
{
    return (job->arithmetic == BL_FAST ? mid_cholesky_fused : exact)[job->precision];
}

/* Shared memory that the kernels have of their own. */
constexpr int OWN_BYTES = 1024;

struct Plan {
    const void *kernel;
    int threads, bytes;
};

/* One matrix on the chip alone leaves the multiprocessor waiting; for 'U' in netlib's
 * order, where slices are slower, that is still the best. */
Plan plan_of(const struct bl_job *job, const Card &card)
{
    const MidCholeskyKernels &k = kernels_for(job);
    const int upper = job->uplo == 'U', most = int(card.shared_bytes) - OWN_BYTES;
    const int panels = Panels(int(job->n)).count;
    const int bytes = blocks_on_chip(panels) * k.block_bytes;
    const Plan on_chip = {k.on_chip[upper], panels * LANES, bytes},
               by_slices = {k.by_slices[upper], k.slices_threads, k.slices_bytes};
    const bool chip = panels <= k.most_on_chip && bytes <= most,
               by_sums = upper && job->arithmetic == BL_EXACT;
    if (chip && (by_sums || 2 * bytes <= most || k.slices_bytes > most))
        return on_chip;
    return k.slices_bytes <= most ? by_slices : Plan{};
}

/* The orders from which several blocks a matrix, with a launch a panel, are ahead of one:
 * s, d, c, z. */
constexpr int SHARED_FROM[BL_PRECISIONS] = {576, 576, 384, 384};

/* A matrix has several blocks where one for each leaves half of the card waiting. Warps
 * of a block: so few that there are blocks for the card, but one alone would only do what
 * all others do too. */
struct Share {
    int warps, panels;
    int64_t blocks(int panel) const /* a matrix */
    {
        const int rest = panels - 1 - panel;
        return rest > 0 ? (rest + warps - 2) / (warps - 1) : 1;
    }
};

bool is_shared(const struct bl_job *job, const Card &card, Share &share)
{
    const MidCholeskyKernels &k = kernels_for(job);
    if (job->n < SHARED_FROM[job->precision] || 2 * job->batch > card.processors ||
        k.slices_bytes > int(card.shared_bytes) - OWN_BYTES)
        return false;
    share = {k.slices_threads / LANES, Panels(int(job->n)).count};
    while (share.warps > 2 && share.blocks(0) * job->batch < card.processors)
        share.warps /= 2;
    return true;
}

cudaError_t launch_shared(const struct bl_job *job, const Card &card, const Share &share,
                          MidCholesky g, cudaStream_t stream)
{
    const MidCholeskyKernels &k = kernels_for(job);
    const void *kernel = k.shared[job->uplo == 'U'];
    void *kept = job->work;
    cudaError_t error = allow_all_shared(kernel, card, OWN_BYTES);
    for (int panel = 0; panel < share.panels && error == cudaSuccess; panel++) {
        int blocks = int(share.blocks(panel));
        void *parameters[] = {&g, &panel, &blocks, &kept};
        error = cudaLaunchKernel(kernel, dim3(unsigned(job->batch * blocks)),
                                 dim3(unsigned(share.warps * LANES)), parameters,
                                 size_t(k.slices_bytes), stream);
    }
    return error;
}

bool takes(const struct bl_job *job, const Card &card)
{
    return job->routine == BL_POTRF && job->n >= 1 && job->n <= 1024 && job->batch >= 1 &&
           plan_of(job, card).kernel;
}

size_t workspace(const struct bl_job *job, const Card &card)
{
    Share share;
    if (mid_cholesky_fast.takes(job, card))
        return mid_cholesky_fast.workspace(job, card);
    return is_shared(job, card, share) ? size_t(job->batch) * kernels_for(job).block_bytes
                                       : 0;
}

cudaError_t launch(const struct bl_job *job, const Card &card, cudaStream_t stream)
{
    if (mid_cholesky_fast.takes(job, card))
        return mid_cholesky_fast.launch(job, card, stream);
    MidCholesky g = {job->a, job->info, job->items, int(job->n), job->int_size};
    Share share;
    if (is_shared(job, card, share))
        return launch_shared(job, card, share, g, stream);
    const Plan plan = plan_of(job, card);
    void *parameters[] = {&g};
    cudaError_t error = allow_all_shared(plan.kernel, card, OWN_BYTES);
    if (error == cudaSuccess)
        error = cudaLaunchKernel(plan.kernel, dim3(unsigned(job->batch)),
                                 dim3(unsigned(plan.threads)), parameters,
                                 size_t(plan.bytes), stream);
    return error;
}

} // namespace

const Family mid_cholesky = {takes, workspace, launch};

} // namespace bl
