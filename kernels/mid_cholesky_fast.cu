/* Which Cholesky jobs go to the matrix units, by mid_cholesky_tiles.cuh or, beyond what
 * fits the chip, by mid_cholesky_chunks.cuh or, where few matrices have several blocks
 * each, by mid_cholesky_fast.cuh; the kernels, and the launches. Called by
 * mid_cholesky.cu. */
#include "family.h"
#include "mid_cholesky_chunks.cuh"
#include "mid_cholesky_fast.cuh"
#include "mid_cholesky_tiles.cuh"
#include "shared_memory.h"

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
    const Team team = block_team();
    FastCholesky<T, UPPER>(g, shared, (T *)memory, team, blockIdx.x / g.blocks)
        .run(int(blockIdx.x % g.blocks));
#endif
}

/* A block a matrix of up to 16 OWN W rows. Shared memory: what is done of it. */
template <class T, bool UPPER, int W, int OWN, int BLOCKS>
__global__ void __launch_bounds__(W *LANES, BLOCKS)
    potrf_tiles(const __grid_constant__ MidCholesky g)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) char memory[];
    __shared__ MidCholeskyShared<T> shared;
    const Team team = block_team();
    TileCholesky<T, UPPER, W, OWN>(g, shared, (T *)memory, team, blockIdx.x).run(g);
#endif
}

/* A block a matrix of more rows. Shared memory: slices of the columns on the left, and
 * what is done of a chunk on the diagonal. */
template <class T, bool UPPER, int W, int BLOCKS>
__global__ void __launch_bounds__(W *LANES, BLOCKS)
    potrf_chunks(const __grid_constant__ MidCholesky g)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) char memory[];
    __shared__ MidCholeskyShared<T> shared;
    const Team team = block_team();
    ChunkCholesky<T, UPPER, W>(g, shared, (T *)memory, team, blockIdx.x).run(g);
#endif
}

constexpr int64_t MOST = 1024; /* rows */
constexpr int WIDTH = FastCholesky<double, false>::WIDTH,
              THREADS = FastCholesky<double, false>::WARPS * LANES;

/* By slices, of one or several blocks a matrix. */
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

/* A block a matrix. */
struct BlockKernel {
    const void *kernel[2];  /* 'L', 'U' */
    int warps;              /* of a block */
    int64_t most;           /* rows */
    size_t (*bytes)(int n); /* of shared memory */
};

template <class T, int W, int OWN, int BLOCKS>
constexpr BlockKernel tiles()
{
    using Cholesky = TileCholesky<T, false, W, OWN>;
    return {{(const void *)potrf_tiles<T, false, W, OWN, BLOCKS>,
             (const void *)potrf_tiles<T, true, W, OWN, BLOCKS>},
            W,
            Cholesky::MOST,
            [](int n) { return Cholesky::elements(n) * sizeof(T); }};
}

template <class T, int W, int BLOCKS>
constexpr BlockKernel chunks(int64_t most)
{
    return {{(const void *)potrf_chunks<T, false, W, BLOCKS>,
             (const void *)potrf_chunks<T, true, W, BLOCKS>},
            W,
            most,
            [](int) { return ChunkCholesky<T, false, W>::ELEMENTS * sizeof(T); }};
}

/* What was fastest on an H200, of some that fit. */
const BlockKernel block_kernels[2][10] = {
    {tiles<float, 3, 1, 10>(), tiles<float, 2, 2, 12>(), tiles<float, 3, 2, 7>(),
     tiles<float, 4, 2, 5>(), tiles<float, 5, 2, 4>(), tiles<float, 6, 2, 3>(),
     tiles<float, 16, 1, 1>(), chunks<float, 4, 4>(512), chunks<float, 8, 2>(MOST)},
    {tiles<double, 3, 1, 7>(), tiles<double, 2, 2, 8>(), tiles<double, 5, 1, 4>(),
     tiles<double, 3, 2, 5>(), tiles<double, 4, 2, 3>(), tiles<double, 10, 1, 2>(),
     tiles<double, 12, 1, 1>(), tiles<double, 16, 1, 1>(), chunks<double, 4, 2>(512),
     chunks<double, 8, 1>(MOST)}};

/* Orders up to which a matrix goes by tiles, and from which few go by slices, between
 * which mid_cholesky_fused.cu is ahead of these: s, d. Powers of two, so that matrices
 * that share a launch agree about it. */
constexpr int64_t TILES_TO = 256, SLICES_FROM[2] = {513, 257};

const BlockKernel &block_kernel_of(const struct bl_job *job)
{
    const BlockKernel *k = block_kernels[job->precision];
    while (job->n > k->most)
        k++;
    return *k;
}

bool fits(size_t bytes, const struct bl_job *job, const Card &card)
{
    return bytes + kernels[job->precision].own_bytes <= card.shared_bytes;
}

/* Fewer matrices of more rows get some blocks each. */
bool has_one_block(const struct bl_job *job, const Card &card)
{
    return (job->n <= TILES_TO || (job->batch > BL_MANY && !job->items)) &&
           fits(block_kernel_of(job).bytes(int(job->n)), job, card);
}

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
           job->n >= 1 && job->n <= MOST && job->batch >= 1 && job->batch <= INT32_MAX &&
           (has_one_block(job, card) || job->n >= SLICES_FROM[job->precision]) &&
           (job->n <= TILES_TO || fits(kernels[job->precision].bytes, job, card));
}

size_t workspace(const struct bl_job *job, const Card &card)
{
    return !has_one_block(job, card) && blocks_of(job, card) > 1
               ? job->batch * kernels[job->precision].kept_bytes
               : 0;
}

cudaError_t launch_blocks(const struct bl_job *job, const Card &card, cudaStream_t stream)
{
    const BlockKernel &k = block_kernel_of(job);
    const void *kernel = k.kernel[job->uplo == 'U'];
    MidCholesky g = {job->a, job->info, job->items, int(job->n), job->int_size};
    void *parameters[] = {&g};
    const cudaError_t error =
        allow_all_shared(kernel, card, kernels[job->precision].own_bytes);
    return error != cudaSuccess ? error
                                : cudaLaunchKernel(kernel, dim3(unsigned(job->batch)),
                                                   dim3(unsigned(k.warps * LANES)),
                                                   parameters, k.bytes(g.n), stream);
}

cudaError_t launch(const struct bl_job *job, const Card &card, cudaStream_t stream)
{
    if (has_one_block(job, card))
        return launch_blocks(job, card, stream);
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
