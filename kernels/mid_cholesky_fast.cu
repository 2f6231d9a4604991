/* Which Cholesky jobs mid_cholesky_fast.cuh takes, its kernel, and the launches. Called
 * by mid_cholesky.cu. */
#include "family.h"
#include "mid_cholesky_fast.cuh"

namespace bl
{
namespace
{

/* Blocks that share a multiprocessor. */
constexpr int SHARING = 2;

/* A block some rows of every panel, a warp 16 of them. Shared memory: slices of the
 * columns on the left, the triangle in work and the inverses of its tiles. */
template <bool UPPER>
__global__ void __launch_bounds__(FastCholesky<UPPER>::WARPS *LANES, SHARING)
    potrf_fast(const __grid_constant__ MidCholeskyFast g)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) char memory[];
    __shared__ MidCholeskyShared<double> shared;
    Team team;
    team.thread = threadIdx.x;
    team.threads = blockDim.x;
    FastCholesky<UPPER>(g, shared, (double *)memory, team, blockIdx.x / g.blocks)
        .run(int(blockIdx.x % g.blocks));
#endif
}

constexpr int WIDTH = FastCholesky<false>::WIDTH,
              THREADS = FastCholesky<false>::WARPS * LANES,
              BYTES = FastCholesky<false>::ELEMENTS * int(sizeof(double)),
              KEPT_BYTES = FastCholesky<false>::KEPT * int(sizeof(double));

/* Orders from which it is ahead of the exact kernels by more than a tenth; 'L', 'U'. */
constexpr int64_t FAST_FROM[2] = {161, 97};

/* Blocks a matrix, so that few of them fill the card. */
int64_t blocks_of(const struct bl_job *job, const Card &card)
{
    const int64_t room = int64_t(SHARING) * card.processors / job->batch;
    const int64_t units = (job->n - 1) / WIDTH;
    return room < 1 || units < 1 ? 1 : room < units ? room : units;
}

bool takes(const struct bl_job *job, const Card &card)
{
    return job->routine == BL_POTRF && job->arithmetic == BL_FAST &&
           job->precision == BL_D && card.capability >= 90 &&
           job->n >= FAST_FROM[job->uplo == 'U'] && job->n <= 1024 && job->batch >= 1 &&
           job->batch <= INT32_MAX &&
           card.shared_bytes >= BYTES + sizeof(MidCholeskyShared<double>);
}

size_t workspace(const struct bl_job *job, const Card &card)
{
    return blocks_of(job, card) > 1 ? size_t(job->batch) * KEPT_BYTES : 0;
}

cudaError_t launch(const struct bl_job *job, const Card &card, cudaStream_t stream)
{
    const void *kernel = job->uplo == 'U' ? (const void *)potrf_fast<true>
                                          : (const void *)potrf_fast<false>;
    const int64_t most = blocks_of(job, card);
    const int panels = int((job->n + WIDTH - 1) / WIDTH), step = most > 1 ? 1 : panels;
    MidCholeskyFast g = {};
    g.job = {job->a, job->info, job->items, int(job->n), job->int_size};
    g.kept = most > 1 ? (double *)job->work : nullptr;
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
    for (int p = 0; p < panels && error == cudaSuccess; p += step) {
        const int64_t units = p + 1 < panels ? panels - 1 - p : 1;
        g.first_panel = p;
        g.end_panel = p + step;
        g.blocks = int(units < most ? units : most);
        void *parameters[] = {&g};
        error = cudaLaunchKernel(kernel, dim3(unsigned(job->batch * g.blocks)),
                                 dim3(THREADS), parameters, BYTES, stream);
    }
    return error;
}

} // namespace

const Family mid_cholesky_fast = {takes, workspace, launch};

} // namespace bl
