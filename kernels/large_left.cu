/* The interchanges of blocks of columns that are put off to the end: each block takes
 * those of all later blocks at once, a column through shared memory.
 *
 * Called by large.cu through large.h. A map says of each row where its content stood.
 */
#include "large.h"
#include "problem.cuh"

namespace bl
{

namespace
{

constexpr int LEFT_THREADS = 512;
constexpr int MOST_PIVOTS = LEFT_THREADS; /* of a block of columns */

/* A thread block owns a block of columns, from the second one on, and writes the map of
 * its own interchanges, for the rows from its diagonal on. A thread traces one of them
 * back; shared memory holds all pivots. */
template <class T>
__global__ void __launch_bounds__(LEFT_THREADS) map_blocks(const LargeLeft<T> x)
{
    __shared__ int pivot[MOST_PIVOTS];
    const int block = int(blockIdx.x) + 1, k = int(threadIdx.x);
    const int64_t first = block * x.width;
    const int rows = int(x.m - first), w = int(min(x.width, x.order - first));
    int *map = x.maps + block * x.m + first;
    const Pivots pivots = {(void *)x.ipiv, x.int_size, first};
    if (k < w)
        pivot[k] = int(pivots.get(k));
    for (int i = k; i < rows; i += LEFT_THREADS)
        map[i] = i;
    __syncthreads();
    if (k >= w)
        return;
    const int own = pivot[k];
    int source = own, former = k;
    bool last = true;
    for (int s = w - 1; s >= 0; s--) {
        const int p = pivot[s];
        if (s > k)
            last = last && p != own;
        source = s < k && p == source ? s : source;
        former = s < k && p == former ? s : former;
    }
    map[k] = source;
    if (last && own >= w)
        map[own] = former;
}

/* A thread owns a row and writes, from the last block of columns to the second, where
 * this row's content stood before this block's interchanges and all later ones. */
template <class T>
__global__ void __launch_bounds__(LEFT_THREADS)
    join_maps(const LargeLeft<T> x, int blocks)
{
    const int64_t row = blockIdx.x * int64_t(LEFT_THREADS) + threadIdx.x;
    int64_t from = row;
    for (int64_t b = blocks - 1; b > 0; b--) {
        const int64_t first = b * x.width;
        if (row < first || row >= x.m)
            continue;
        from = first + x.maps[b * x.m + from];
        x.maps[(blocks + b) * x.m + row] = int(from - first);
    }
}

/* A block owns a column; shared memory holds what is below its block's diagonal. */
template <class T>
__global__ void __launch_bounds__(LEFT_THREADS)
    take_maps(const LargeLeft<T> x, int blocks)
{
    extern __shared__ __align__(16) char shared[];
    T *const old = (T *)shared;
    const int64_t b = blockIdx.x / x.width + 1, first = b * x.width;
    const int rows = int(x.m - first);
    const int *map = x.maps + (blocks + b) * x.m + first;
    T *column = x.a + first + blockIdx.x * x.lda;
    for (int i = int(threadIdx.x); i < rows; i += LEFT_THREADS)
        old[i] = column[i];
    __syncthreads();
    for (int i = int(threadIdx.x); i < rows; i += LEFT_THREADS) {
        const int from = map[i];
        if (from != i)
            column[i] = old[from];
    }
}

int64_t blocks_of(int64_t order, int64_t width)
{
    return (order + width - 1) / width;
}

} // namespace

bool large_left_takes(int64_t m, int64_t width, size_t element, const Card &card)
{
    return width <= MOST_PIVOTS && m > width &&
           size_t(m - width) * element <= card.shared_bytes;
}

size_t large_left_workspace(int64_t m, int64_t order, int64_t width)
{
    return size_t(2 * blocks_of(order, width) * m) * sizeof(int);
}

template <class T>
cudaError_t large_left(const LargeLeft<T> &x, cudaStream_t stream)
{
    const int blocks = int(blocks_of(x.order, x.width));
    if (blocks < 2)
        return cudaSuccess;
    const size_t bytes = size_t(x.m - x.width) * sizeof(T);
    cudaError_t error = cudaFuncSetAttribute(
        take_maps<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes));
    if (error != cudaSuccess)
        return error;
    map_blocks<<<blocks - 1, LEFT_THREADS, 0, stream>>>(x);
    join_maps<<<unsigned(blocks_of(x.m, LEFT_THREADS)), LEFT_THREADS, 0, stream>>>(
        x, blocks);
    take_maps<<<unsigned((blocks - 1) * x.width), LEFT_THREADS, bytes, stream>>>(x,
                                                                                 blocks);
    return cudaGetLastError();
}

#define BL_INSTANCE(T)                                                                   \
    template cudaError_t large_left(const LargeLeft<T> &, cudaStream_t);
BL_INSTANCE(float)
BL_INSTANCE(double)
BL_INSTANCE(Complex<float>)
BL_INSTANCE(Complex<double>)

} // namespace bl
