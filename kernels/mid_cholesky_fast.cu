/* Which Cholesky jobs mid_cholesky_fast.cuh takes, its kernel, and the launches. Called
 * by mid_cholesky.cu. */
#include "family.h"
#include "mid_cholesky_fast.cuh"

static_assert(BL_S == 0 && BL_D == 1);

namespace bl
{
namespace
{

/* Blocks that share a multiprocessor. */
constexpr int SHARING = 2;

/* A block some rows of every panel, a warp 16 of them. Shared memory: slices of the
 * columns on the left, the triangle in work and the inverses of its tiles. */
template <class T, bool UPPER>
__global__ void __launch_bounds__(FastCholesky<T, UPPER>::WARPS *LANES, SHARING)
    potrf_fast(const __grid_constant__ MidCholeskyFast g)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) char memory[];
    __shared__ MidCholeskyShared<T> shared;
    Team team;
    team.thread = threadIdx.x;
    team.threads = blockDim.x;
    FastCholesky<T, UPPER>(g, shared, (T *)memory, team, blockIdx.x / g.blocks)
        .run(int(blockIdx.x % g.blocks));
#endif
}

constexpr int WIDTH = FastCholesky<double, false>::WIDTH,
              THREADS = FastCholesky<double, false>::WARPS * LANES;

struct Kernels {
    const void *kernel[2]; /* 'L', 'U' */
    int bytes, own_bytes;  /* of shared memory */
    size_t kept_bytes;     /* of work space a matrix */
};

template <class T>
constexpr Kernels kernels_of()
{
    using Fast = FastCholesky<T, false>;
    return {{(const void *)potrf_fast<T, false>, (const void *)potrf_fast<T, true>},
            Fast::ELEMENTS * int(sizeof(T)),
            int(sizeof(MidCholeskyShared<T>)),
            Fast::KEPT * sizeof(T)};
}

const Kernels kernels[2] = {kernels_of<float>(), kernels_of<double>()}; /* s, d */

/* Orders from which it is ahead of mid_cholesky_fused.cu: s, d. Behind powers of two, so
 * that matrices that share a launch agree about it. */
constexpr int64_t FAST_FROM[2] = {513, 257};

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
           (job->precision == BL_S || job->precision == BL_D) && card.capability >= 90 &&
           job->n >= FAST_FROM[job->precision] && job->n <= 1024 && job->batch >= 1 &&
           job->batch <= INT32_MAX &&
           size_t(kernels[job->precision].bytes + kernels[job->precision].own_bytes) <=
               card.shared_bytes;
}

size_t workspace(const struct bl_job *job, const Card &card)
{
    return blocks_of(job, card) > 1 ? job->batch * kernels[job->precision].kept_bytes : 0;
}

cudaError_t launch(const struct bl_job *job, const Card &card, cudaStream_t stream)
{
    const Kernels &k = kernels[job->precision];
    const void *kernel = k.kernel[job->uplo == 'U'];
    const int64_t most = blocks_of(job, card);
    const int panels = int((job->n + WIDTH - 1) / WIDTH), step = most > 1 ? 1 : panels;
    MidCholeskyFast g = {};
    g.job = {job->a, job->info, job->items, int(job->n), job->int_size};
    g.kept = most > 1 ? job->work : nullptr;
    cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, k.bytes);
    for (int p = 0; p < panels && error == cudaSuccess; p += step) {
        const int64_t units = p + 1 < panels ? panels - 1 - p : 1;
        g.first_panel = p;
        g.end_panel = p + step;
        g.blocks = int(units < most ? units : most);
        void *parameters[] = {&g};
        error = cudaLaunchKernel(kernel, dim3(unsigned(job->batch * g.blocks)),
                                 dim3(THREADS), parameters, size_t(k.bytes), stream);
    }
    return error;
}

} // namespace

const Family mid_cholesky_fast = {takes, workspace, launch};

} // namespace bl
