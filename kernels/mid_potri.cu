/* Which POTRI jobs mid_potri.cuh takes, its kernels, and the launch. Called by engine.cu.
 */
#include "family.h"
#include "mid_potri.cuh"

namespace bl
{
namespace
{

/* A block a matrix, a warp 16 rows of the inverse. Shared memory: the factor and the
 * inverses of its tiles. */
template <bool UPPER, int TILES, int SHARING>
__global__ void __launch_bounds__(MidPotri<UPPER, TILES>::THREADS, SHARING)
    potri_on_chip(const __grid_constant__ MidCholesky g)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) char memory[];
    __shared__ int info;
    const Team team = block_team();
    MidPotri<UPPER, TILES>(g, (double *)memory, team, blockIdx.x).run(g, &info);
#endif
}

struct Kernel {
    int order;             /* at most */
    const void *kernel[2]; /* 'L', 'U' */
    int threads, bytes;
};

template <int TILES, int SHARING>
constexpr Kernel kernel_of()
{
    using Potri = MidPotri<false, TILES>;
    return {TILES * TILE_SIDE,
            {(const void *)potri_on_chip<false, TILES, SHARING>,
             (const void *)potri_on_chip<true, TILES, SHARING>},
            Potri::THREADS,
            Potri::ELEMENTS * int(sizeof(double))};
}

const Kernel kernels[] = {kernel_of<6, 5>(), kernel_of<8, 4>(), kernel_of<12, 2>(),
                          kernel_of<16, 1>()};
constexpr int64_t MOST = 128;

const Kernel &kernel_for(const struct bl_job *job)
{
    const Kernel *k = kernels;
    while (k->order < job->n)
        k++;
    return *k;
}

bool takes(const struct bl_job *job, const Card &card)
{
    return job->routine == BL_POTRI && job->precision == BL_D && card.capability >= 90 &&
           job->n >= 1 && job->n <= MOST && job->batch >= 1 && job->batch <= INT32_MAX &&
           size_t(kernel_for(job).bytes) + sizeof(int) <= card.shared_bytes;
}

size_t workspace(const struct bl_job *, const Card &)
{
    return 0;
}

cudaError_t launch(const struct bl_job *job, const Card &, cudaStream_t stream)
{
    const Kernel &k = kernel_for(job);
    const void *kernel = k.kernel[job->uplo == 'U'];
    MidCholesky g = {job->a, job->info, job->items, int(job->n), job->int_size};
    void *parameters[] = {&g};
    cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, k.bytes);
    if (error == cudaSuccess)
        error = cudaLaunchKernel(kernel, dim3(unsigned(job->batch)),
                                 dim3(unsigned(k.threads)), parameters, size_t(k.bytes),
                                 stream);
    return error;
}

} // namespace

const Family mid_potri = {takes, workspace, launch};

} // namespace bl
