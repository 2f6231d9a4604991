/* The interchanges of many blocks at once: those that the columns of a factorisation put
 * off to its end, those of an inverse's columns, and those of a solution's rows.
 *
 * Called by large.cu through large.h. A map says of each row where its content stood.
 */
#include "cluster.cuh"
#include "large.h"
#include "problem.cuh"
#include "shared_memory.h"

namespace bl
{

namespace
{

constexpr int MOVES_THREADS = 512;
constexpr int MOST_PIVOTS = MOVES_THREADS; /* of a block */

/* A thread block owns a block of pivots, from x.begin on, and writes the map of its own
 * interchanges, for the rows from its diagonal on. A thread traces one of them back;
 * shared memory holds all pivots. */
__global__ void __launch_bounds__(MOVES_THREADS) map_blocks(const LargeMaps x)
{
    __shared__ int pivot[MOST_PIVOTS];
    const int block = int(blockIdx.x) + x.begin, k = int(threadIdx.x);
    const int64_t first = block * x.width;
    const int rows = int(x.m - first), w = int(min(x.width, x.order - first));
    int *map = x.maps + block * x.m + first;
    const Pivots pivots = {(void *)x.ipiv, x.int_size, first};
    if (k < w)
        pivot[k] = int(pivots.get(k));
    for (int i = k; i < rows; i += MOVES_THREADS)
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

/* A thread owns a row and writes, from the last block of pivots down to x.begin, where
 * this row's content stood before this block's interchanges and all later ones. */
__global__ void __launch_bounds__(MOVES_THREADS) join_maps(const LargeMaps x, int blocks)
{
    const int64_t row = blockIdx.x * int64_t(MOVES_THREADS) + threadIdx.x;
    int64_t from = row;
    for (int64_t b = blocks - 1; b >= x.begin; b--) {
        const int64_t first = b * x.width;
        if (row < first || row >= x.m)
            continue;
        from = first + x.maps[b * x.m + from];
        x.maps[(blocks + b) * x.m + row] = int(from - first);
    }
}

/* A block owns a column; shared memory holds what is below its block, or before the first
 * of them. */
template <class T>
__global__ void __launch_bounds__(MOVES_THREADS)
    move_left(const LargeMaps x, const LargeBlocks wide, int maps, T *a, int64_t lda)
{
    extern __shared__ __align__(16) char shared[];
    T *const old = (T *)shared;
    const int64_t first = wide.end_of(blockIdx.x), which = first / x.width;
    if (first >= x.order)
        return;
    const int rows = int(x.m - first);
    const int *map = x.maps + (maps + which) * x.m + first;
    T *column = a + first + blockIdx.x * lda;
    for (int i = int(threadIdx.x); i < rows; i += MOVES_THREADS)
        old[i] = column[i];
    __syncthreads();
    for (int i = int(threadIdx.x); i < rows; i += MOVES_THREADS) {
        const int from = map[i];
        if (from != i)
            column[i] = old[from];
    }
}

/* A cluster owns a column; every block's shared memory holds SHARE rows of it. */
constexpr size_t SHARE_BYTES = 64 << 10;
constexpr int MOST_SHARES = 8;
template <class T>
constexpr int SHARE = int(SHARE_BYTES / sizeof(T));

template <class T>
__global__ void __launch_bounds__(MOVES_THREADS)
    move_left_of_cluster(const LargeMaps x, const LargeBlocks wide, int maps, T *a,
                         int64_t lda)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) char shared[];
    T *const old = (T *)shared;
    const int64_t j = blockIdx.x / cluster::blocks(), first = wide.end_of(j),
                  which = first / x.width;
    if (first >= x.order)
        return;
    const int begin = cluster::rank() * SHARE<T>,
              end = min(begin + SHARE<T>, int(x.m - first));
    const int *map = x.maps + (maps + which) * x.m + first;
    T *column = a + first + j * lda;
    for (int i = begin + int(threadIdx.x); i < end; i += MOVES_THREADS)
        old[i - begin] = column[i];
    cluster::release();
    cluster::acquire();
    for (int i = begin + int(threadIdx.x); i < end; i += MOVES_THREADS) {
        const int from = map[i];
        if (from != i)
            column[i] = cluster::load(old + from % SHARE<T>, from / SHARE<T>);
    }
    cluster::release(); /* until all have read */
    cluster::acquire();
#else
    (void)x, (void)wide, (void)maps, (void)a, (void)lda;
#endif
}

/* A block owns a tile of B: see large_turn(). With a map, column i of the transpose is
 * column map[i] of what is in memory. */
constexpr int TURN_TILE = 32, TURN_THREADS = 256;

template <class T>
__global__ void __launch_bounds__(TURN_THREADS)
    turn(int64_t m, int64_t n, const T *a, int64_t lda, const int *map, T *b, int64_t ldb)
{
    __shared__ T tile[TURN_TILE][TURN_TILE + 1];
    const int lane = int(threadIdx.x) % TURN_TILE, warp = int(threadIdx.x) / TURN_TILE;
    const int64_t i0 = int64_t(blockIdx.x) * TURN_TILE,
                  j0 = int64_t(blockIdx.y) * TURN_TILE;
    BL_UNROLL
    for (int r = warp; r < TURN_TILE; r += TURN_THREADS / TURN_TILE) {
        const int64_t i = i0 + r;
        if (i < m && j0 + lane < n)
            tile[r][lane] = a[j0 + lane + (map ? map[i] : i) * lda];
    }
    __syncthreads();
    BL_UNROLL
    for (int c = warp; c < TURN_TILE; c += TURN_THREADS / TURN_TILE)
        if (i0 + lane < m && j0 + c < n)
            b[i0 + lane + (j0 + c) * ldb] = tile[lane][c];
}

/* A block owns a pivot and some columns of a matrix by rows. The contents of the block of
 * pivots' own rows are there until the end. */
constexpr int ROW_PIECE = 4 * TURN_THREADS;

template <class T>
__global__ void __launch_bounds__(TURN_THREADS)
    make_room(const LargeMaps x, T *t, int64_t ldt, int64_t columns)
{
    const int64_t first = x.begin * x.width, from = int64_t(blockIdx.y) * ROW_PIECE;
    const int w = int(min(x.width, x.order - first));
    const Pivots pivots = {(void *)x.ipiv, x.int_size, first};
    const int64_t place = pivots.get(blockIdx.x);
    if (place < w)
        return;
    const T *const old = t + x.maps[x.begin * x.m + first + place] * ldt;
    BL_UNROLL
    for (int e = 0; e < ROW_PIECE; e += TURN_THREADS) {
        const int64_t j = from + e + threadIdx.x;
        if (j < columns)
            t[j + place * ldt] = old[j];
    }
}

/* Of the block of pivots x.begin; a thread owns one of them and a thread block some
 * neighbouring columns, from which all is read before anything is written. */
constexpr int MOVES_AT_ONCE = 4;

template <class T>
__global__ void __launch_bounds__(MOVES_THREADS)
    move_rows(const LargeMaps x, T *a, int64_t lda, int64_t left_blocks, int64_t left,
              int64_t left_end, int64_t right, int64_t right_end)
{
    const int64_t first = x.begin * x.width;
    const int w = int(min(x.width, x.order - first)), k = int(threadIdx.x);
    const int *map = x.maps + x.begin * x.m + first;
    const bool is_right = blockIdx.x >= left_blocks;
    const int64_t j = is_right ? right + (blockIdx.x - left_blocks) * MOVES_AT_ONCE
                               : left + blockIdx.x * int64_t(MOVES_AT_ONCE),
                  columns = (is_right ? right_end : left_end) - j;
    T *const top = a + first + j * lda;
    const Pivots pivots = {(void *)x.ipiv, x.int_size, first};
    T up[MOVES_AT_ONCE], down[MOVES_AT_ONCE];
    int source = 0, place = 0;
    if (k < w) {
        source = map[k];
        place = int(pivots.get(k));
        const int former = place < w ? 0 : map[place];
        BL_UNROLL
        for (int c = 0; c < MOVES_AT_ONCE; c++)
            if (c < columns) {
                up[c] = top[source + c * lda];
                down[c] = top[former + c * lda];
            }
    }
    __syncthreads();
    if (k >= w)
        return;
    BL_UNROLL
    for (int c = 0; c < MOVES_AT_ONCE; c++)
        if (c < columns) {
            top[k + c * lda] = up[c];
            if (place >= w)
                top[place + c * lda] = down[c];
        }
}

/* A block owns a column of B, of m rows, which shared memory holds. */
template <class T>
__global__ void __launch_bounds__(MOVES_THREADS)
    move_back(const LargeMaps x, const int *map, T *b, int64_t ldb)
{
    extern __shared__ __align__(16) char shared[];
    T *const old = (T *)shared;
    T *column = b + blockIdx.x * ldb;
    for (int i = int(threadIdx.x); i < x.m; i += MOVES_THREADS)
        old[i] = column[i];
    __syncthreads();
    for (int i = int(threadIdx.x); i < x.m; i += MOVES_THREADS)
        column[map[i]] = old[i];
}

/* The same the other way. */
template <class T>
__global__ void __launch_bounds__(MOVES_THREADS)
    move_forth(const LargeMaps x, const int *map, T *b, int64_t ldb,
               const int64_t *unless)
{
    extern __shared__ __align__(16) char shared[];
    T *const old = (T *)shared;
    T *column = b + blockIdx.x * ldb;
    if (unless && *unless)
        return;
    for (int i = int(threadIdx.x); i < x.m; i += MOVES_THREADS)
        old[i] = column[i];
    __syncthreads();
    for (int i = int(threadIdx.x); i < x.m; i += MOVES_THREADS)
        column[i] = old[map[i]];
}

/* A block owns a column of the inverse. */
template <class T>
__global__ void __launch_bounds__(MOVES_THREADS)
    move_columns(const LargeMaps x, const int *map, const T *y, T *a, int64_t lda,
                 const int64_t *unless)
{
    if (*unless)
        return;
    const T *from = y + blockIdx.x * x.m;
    T *to = a + map[blockIdx.x] * lda;
    for (int64_t i = threadIdx.x; i < x.m; i += MOVES_THREADS)
        to[i] = from[i];
}

/* For one block. */
template <class T>
__global__ void __launch_bounds__(MOVES_THREADS)
    find_zero(const T *a, int64_t n, int64_t lda, int64_t *info)
{
    __shared__ unsigned first;
    if (threadIdx.x == 0)
        first = ~0u;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < n; i += MOVES_THREADS)
        if (is_zero(a[i + i * lda]))
            atomicMin(&first, unsigned(i));
    __syncthreads();
    if (threadIdx.x == 0)
        *info = first == ~0u ? 0 : int64_t(first) + 1;
}

/* A thread owns an element of the diagonal. */
template <class T>
__global__ void __launch_bounds__(MOVES_THREADS) put_ones(T *y, int64_t n)
{
    const int64_t i = blockIdx.x * int64_t(MOVES_THREADS) + threadIdx.x;
    if (i < n)
        y[i + i * n] = one<T>();
}

int64_t quotient(int64_t x, int64_t y)
{
    return (x + y - 1) / y;
}

/* `blocks` of them; where the whole map of x.begin's block begins is returned. */
const int *make_maps(const LargeMaps &x, int blocks, cudaStream_t stream)
{
    map_blocks<<<blocks - x.begin, MOVES_THREADS, 0, stream>>>(x);
    join_maps<<<unsigned(quotient(x.m, MOVES_THREADS)), MOVES_THREADS, 0, stream>>>(
        x, blocks);
    return x.maps + (blocks + x.begin) * x.m;
}

cudaLaunchConfig_t cluster_config(int64_t blocks, int size,
                                  cudaLaunchAttribute &attribute)
{
    attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = unsigned(size);
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(unsigned(blocks));
    config.blockDim = dim3(MOVES_THREADS);
    config.dynamicSmemBytes = SHARE_BYTES;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return config;
}

} // namespace

size_t large_maps_bytes(int64_t m, int64_t order, int64_t width)
{
    return size_t(2 * quotient(order, width) * m) * sizeof(int);
}

template <class T>
bool large_takes_left(int64_t m, const Card &card)
{
    if (size_t(m) * sizeof(T) <= card.shared_bytes)
        return true;
    if (card.capability < 90 || m > MOST_SHARES * SHARE<T>)
        return false;
    static const bool has_room = [&card] {
        cudaLaunchAttribute attribute;
        const cudaLaunchConfig_t config =
            cluster_config(MOST_SHARES, MOST_SHARES, attribute);
        int clusters = 0;
        const bool known =
            allow_all_shared((const void *)move_left_of_cluster<T>, card) ==
                cudaSuccess &&
            cudaOccupancyMaxActiveClusters(&clusters, move_left_of_cluster<T>, &config) ==
                cudaSuccess;
        if (!known)
            (void)cudaGetLastError();
        return known && clusters > 0;
    }();
    return has_room;
}

template <class T>
cudaError_t large_left(LargeMaps x, const LargeBlocks &blocks, int64_t until, T *a,
                       int64_t lda, const Card &card, cudaStream_t stream)
{
    const int64_t first = blocks.end_of(0), rows = x.m - first;
    const int maps = int(quotient(x.order, x.width));
    x.begin = int(first / x.width);
    if (first >= x.order || until <= 0)
        return cudaSuccess;
    make_maps(x, maps, stream);
    const size_t bytes = size_t(rows) * sizeof(T);
    if (bytes > card.shared_bytes) {
        cudaError_t error = allow_all_shared((const void *)move_left_of_cluster<T>, card);
        if (error != cudaSuccess)
            return error;
        cudaLaunchAttribute attribute;
        int shares = 1;
        while (shares * SHARE<T> < rows)
            shares *= 2;
        cudaLaunchConfig_t config = cluster_config(until * shares, shares, attribute);
        config.stream = stream;
        return cudaLaunchKernelEx(&config, move_left_of_cluster<T>, (const LargeMaps)x,
                                  blocks, maps, a, lda);
    }
    cudaError_t error = allow_all_shared((const void *)move_left<T>, card);
    if (error != cudaSuccess)
        return error;
    move_left<<<unsigned(until), MOVES_THREADS, bytes, stream>>>(x, blocks, maps, a, lda);
    return cudaGetLastError();
}

template <class T>
cudaError_t large_turn(int64_t m, int64_t n, const T *a, int64_t lda, T *b, int64_t ldb,
                       cudaStream_t stream)
{
    if (m <= 0 || n <= 0)
        return cudaSuccess;
    const dim3 grid(unsigned(quotient(m, TURN_TILE)), unsigned(quotient(n, TURN_TILE)));
    turn<T><<<grid, TURN_THREADS, 0, stream>>>(m, n, a, lda, nullptr, b, ldb);
    return cudaGetLastError();
}

template <class T>
cudaError_t large_take_rows(const LargeMaps &x, T *t, int64_t ldt, T *a, int64_t lda,
                            int64_t columns, cudaStream_t stream)
{
    const int64_t first = x.begin * x.width,
                  w = x.order - first < x.width ? x.order - first : x.width;
    if (columns <= 0)
        return cudaSuccess;
    const int *const map = x.maps + x.begin * x.m + first;
    map_blocks<<<1, MOVES_THREADS, 0, stream>>>(x);
    turn<T>
        <<<dim3(unsigned(quotient(w, TURN_TILE)), unsigned(quotient(columns, TURN_TILE))),
           TURN_THREADS, 0, stream>>>(w, columns, t, ldt, map, a, lda);
    make_room<<<dim3(unsigned(w), unsigned(quotient(columns, ROW_PIECE))), TURN_THREADS,
                0, stream>>>(x, t, ldt, columns);
    return cudaGetLastError();
}

template <class T>
cudaError_t large_moves(const LargeMaps &x, T *a, int64_t lda, int64_t left,
                        int64_t left_end, int64_t right, int64_t right_end,
                        cudaStream_t stream)
{
    const int64_t left_blocks = quotient(left_end - left, MOVES_AT_ONCE),
                  blocks = left_blocks + quotient(right_end - right, MOVES_AT_ONCE);
    if (blocks == 0)
        return cudaSuccess;
    map_blocks<<<1, MOVES_THREADS, 0, stream>>>(x);
    move_rows<<<unsigned(blocks), MOVES_THREADS, 0, stream>>>(
        x, a, lda, left_blocks, left, left_end, right, right_end);
    return cudaGetLastError();
}

template <class T>
cudaError_t large_back(const LargeMaps &x, T *b, int64_t ldb, int64_t nrhs,
                       const Card &card, cudaStream_t stream)
{
    const size_t bytes = size_t(x.m) * sizeof(T);
    cudaError_t error = allow_all_shared((const void *)move_back<T>, card);
    if (error != cudaSuccess)
        return error;
    const int *map = make_maps(x, int(quotient(x.order, x.width)), stream);
    move_back<<<unsigned(nrhs), MOVES_THREADS, bytes, stream>>>(x, map, b, ldb);
    return cudaGetLastError();
}

template <class T>
cudaError_t large_forth(const LargeMaps &x, T *b, int64_t ldb, int64_t nrhs,
                        const int64_t *unless, const Card &card, cudaStream_t stream)
{
    const size_t bytes = size_t(x.m) * sizeof(T);
    cudaError_t error = allow_all_shared((const void *)move_forth<T>, card);
    if (error != cudaSuccess)
        return error;
    const int *map = make_maps(x, int(quotient(x.order, x.width)), stream);
    move_forth<<<unsigned(nrhs), MOVES_THREADS, bytes, stream>>>(x, map, b, ldb, unless);
    return cudaGetLastError();
}

template <class T>
cudaError_t large_begin_inverse(const T *a, int64_t n, int64_t lda, T *y, int64_t *info,
                                cudaStream_t stream)
{
    cudaError_t error = cudaMemsetAsync(y, 0, size_t(n * n) * sizeof(T), stream);
    if (error != cudaSuccess)
        return error;
    find_zero<<<1, MOVES_THREADS, 0, stream>>>(a, n, lda, info);
    put_ones<<<unsigned(quotient(n, MOVES_THREADS)), MOVES_THREADS, 0, stream>>>(y, n);
    return cudaGetLastError();
}

template <class T>
cudaError_t large_end_inverse(const LargeMaps &x, const T *y, T *a, int64_t lda,
                              const int64_t *info, cudaStream_t stream)
{
    const int *map = make_maps(x, int(quotient(x.order, x.width)), stream);
    move_columns<<<unsigned(x.m), MOVES_THREADS, 0, stream>>>(x, map, y, a, lda, info);
    return cudaGetLastError();
}

#define BL_INSTANCE(T)                                                                   \
    template bool large_takes_left<T>(int64_t, const Card &);                            \
    template cudaError_t large_left(LargeMaps, const LargeBlocks &, int64_t, T *,        \
                                    int64_t, const Card &, cudaStream_t);                \
    template cudaError_t large_turn(int64_t, int64_t, const T *, int64_t, T *, int64_t,  \
                                    cudaStream_t);                                       \
    template cudaError_t large_take_rows(const LargeMaps &, T *, int64_t, T *, int64_t,  \
                                         int64_t, cudaStream_t);                         \
    template cudaError_t large_moves(const LargeMaps &, T *, int64_t, int64_t, int64_t,  \
                                     int64_t, int64_t, cudaStream_t);                    \
    template cudaError_t large_back(const LargeMaps &, T *, int64_t, int64_t,            \
                                    const Card &, cudaStream_t);                         \
    template cudaError_t large_forth(const LargeMaps &, T *, int64_t, int64_t,           \
                                     const int64_t *, const Card &, cudaStream_t);       \
    template cudaError_t large_begin_inverse(const T *, int64_t, int64_t, T *,           \
                                             int64_t *, cudaStream_t);                   \
    template cudaError_t large_end_inverse(const LargeMaps &, const T *, T *, int64_t,   \
                                           const int64_t *, cudaStream_t);
BL_FOR_EACH_TYPE(BL_INSTANCE)

} // namespace bl
