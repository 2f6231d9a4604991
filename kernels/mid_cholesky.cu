/* Which Cholesky jobs mid_cholesky.cuh's kernels take, and their launch. Called by
 * engine.cu. */
#include "mid_cholesky.cuh"

namespace bl
{
namespace
{

struct MidCholeskyKernels {
    int64_t (*bytes)(int64_t n);
    const void *narrow, *middle, *wide; /* 64, 128, 256 threads */
    const void *again;
};

template <class T>
MidCholeskyKernels kernels_of()
{
    return {mid_cholesky_bytes<T>, (const void *)mid_potrf<T, 64>,
            (const void *)mid_potrf<T, 128>, (const void *)mid_potrf<T, 256>,
            (const void *)mid_potrf_again<T>};
}

const MidCholeskyKernels kernels[BL_PRECISIONS] = {
    kernels_of<float>(), kernels_of<double>(), kernels_of<Complex<float>>(),
    kernels_of<Complex<double>>()};

/* Shared memory that the kernels have of their own. */
constexpr int64_t OWN_BYTES = 1024;

int64_t shared_bytes(const struct bl_job *job)
{
    return kernels[job->precision].bytes(job->n);
}

/* Few matrices: the blocks of a team share one in the general kernel. */
bool takes(const struct bl_job *job, const Card &card)
{
    return job->routine == BL_POTRF && job->uplo == 'L' && job->n >= 1 &&
           job->n <= 1024 && job->batch >= card.processors / 2 &&
           shared_bytes(job) + OWN_BYTES <= int64_t(card.shared_bytes);
}

size_t workspace(const struct bl_job *job, const Card &)
{
    return size_t(job->batch + 1) * sizeof(int64_t);
}

cudaError_t launch(const struct bl_job *job, const Card &card, cudaStream_t stream)
{
    const MidCholeskyKernels &k = kernels[job->precision];
    MidCholesky g = {};
    g.a = job->a;
    g.info = job->info;
    g.items = job->items;
    g.batch = job->batch;
    g.n = int(job->n);
    g.int_size = job->int_size;
    g.again_count = (unsigned long long *)job->work;
    g.again = (int64_t *)job->work + 1;
    void *parameters[] = {&g};
    const void *kernel = job->n <= 64 ? k.narrow : job->n <= 128 ? k.middle : k.wide;
    const int threads = job->n <= 64 ? 64 : job->n <= 128 ? 128 : 256;
    cudaError_t error = cudaMemsetAsync(g.again_count, 0, sizeof *g.again_count, stream);
    if (error == cudaSuccess) /* as much as it may ever be: other threads set it too */
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     int(int64_t(card.shared_bytes) - OWN_BYTES));
    if (error == cudaSuccess)
        error =
            cudaLaunchKernel(kernel, dim3(unsigned(job->batch)), dim3(unsigned(threads)),
                             parameters, size_t(shared_bytes(job)), stream);
    if (error == cudaSuccess)
        error = cudaLaunchKernel(k.again, dim3(unsigned(card.processors)), dim3(THREADS),
                                 parameters, 0, stream);
    return error;
}

} // namespace

const Family mid_cholesky = {takes, workspace, launch};

} // namespace bl
