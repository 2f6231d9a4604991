/* The kernels of mid_cholesky.cuh for all precisions, in one order of their sums.
 *
 * Instantiated by mid_cholesky.cu in netlib's orders and by mid_cholesky_fused.cu with
 * fused operations.
 */
#ifndef BL_MID_CHOLESKY_KERNELS_CUH
#define BL_MID_CHOLESKY_KERNELS_CUH

#include "mid_cholesky.cuh"

namespace bl
{

/* Threads of a block on the chip at most, and blocks that share a multiprocessor. */
template <class T>
constexpr int ON_CHIP_THREADS = sizeof(T) == 4   ? 320
                                : sizeof(T) == 8 ? 224
                                                 : 160;
template <class T>
constexpr int ON_CHIP_BLOCKS = sizeof(T) == 16 ? 1 : 2;

/* A block a matrix; a warp the rows of a panel. Shared memory: the blocks of 32 x 32. */
template <class T, bool UPPER, CholeskyOrder ORDER>
__global__ void __launch_bounds__(ON_CHIP_THREADS<T>, ON_CHIP_BLOCKS<T>)
    potrf_on_chip(const __grid_constant__ MidCholesky g)
{
    extern __shared__ __align__(16) char memory[];
    __shared__ MidCholeskyShared<T> shared;
    const Team team = block_team();
    cholesky_on_chip<T, UPPER, ORDER>(g, shared, (T *)memory, team, blockIdx.x);
}

/* A block a matrix. Shared memory: slices of it. */
template <class T, bool UPPER, CholeskyOrder ORDER>
__global__ void __launch_bounds__(CholeskySlices<T>::WARPS *LANES, 2)
    potrf_by_slices(const __grid_constant__ MidCholesky g)
{
    extern __shared__ __align__(16) char memory[];
    __shared__ MidCholeskyShared<T> shared;
    const Team team = block_team();
    cholesky_by_slices<T, UPPER, false, ORDER>(g, shared, (T *)memory, team, blockIdx.x);
}

/* The same of a panel, several blocks a matrix. */
template <class T, bool UPPER, CholeskyOrder ORDER>
__global__ void __launch_bounds__(CholeskySlices<T>::WARPS *LANES, 2)
    potrf_shared(const __grid_constant__ MidCholesky g, int panel, int blocks, T *kept)
{
    extern __shared__ __align__(16) char memory[];
    __shared__ MidCholeskyShared<T> shared;
    const Team team = block_team();
    const CholeskyShare share = {panel, int(blockIdx.x % blocks), kept};
    cholesky_by_slices<T, UPPER, true, ORDER>(g, shared, (T *)memory, team,
                                              blockIdx.x / blocks, share);
}

struct MidCholeskyKernels {
    const void *on_chip[2], *by_slices[2], *shared[2];           /* 'L', 'U' */
    int block_bytes, slices_bytes, slices_threads, most_on_chip; /* panels */
};

/* LOWER and UPPER: the orders of the two triangles. */
template <class T, CholeskyOrder LOWER, CholeskyOrder UPPER>
MidCholeskyKernels kernels_of()
{
    return {{(const void *)potrf_on_chip<T, false, LOWER>,
             (const void *)potrf_on_chip<T, true, UPPER>},
            {(const void *)potrf_by_slices<T, false, LOWER>,
             (const void *)potrf_by_slices<T, true, UPPER>},
            {(const void *)potrf_shared<T, false, LOWER>,
             (const void *)potrf_shared<T, true, UPPER>},
            BLOCK_ELEMENTS<T> * int(sizeof(T)),
            CholeskySlices<T>::ELEMENTS * int(sizeof(T)),
            CholeskySlices<T>::WARPS * LANES,
            ON_CHIP_THREADS<T> / LANES};
}

extern const MidCholeskyKernels mid_cholesky_fused[BL_PRECISIONS]; /* ...fused.cu */

} // namespace bl
#endif
