/* The step of a large Cholesky factorisation beside the update: kernel and launch.
 *
 * Called by large.cu through large.h.
 */
#include "large_cholesky_far.cuh"
#include "large.h"
#include "large_fetch.cuh"
#include "large_launch.h"

namespace bl
{

namespace
{

/* A block owns ROWS of the rows beside, and more where there are many; who does what in
 * it, and what is in shared memory, is in large_cholesky.cuh. The last block to have
 * fetched the diagonal block writes it back. */
template <class T, bool UPPER>
__global__ void __launch_bounds__(CholeskyPanel<T, UPPER>::THREADS, 2)
    factor_panel(const __grid_constant__ LargeDiagonal<T> d)
{
    using Panel = CholeskyPanel<T, UPPER>;
    extern __shared__ __align__(16) char memory[];
    typename Panel::Memory &m = *(typename Panel::Memory *)memory;
    const int thread = threadIdx.x;
    const int64_t first = int64_t(blockIdx.x) * Panel::ROWS;
    let_next_begin();
    await_previous();
    const bool failed = *d.info != 0;
    if (d.n < NB) {
        Panel::place_rows(m, d.n, thread);
        __syncthreads();
    }
    Panel::fetch_all(m, d, first, thread);
    if (failed)
        return;
    __syncthreads();
    if (thread == Panel::THREADS - 1) { /* not the leader, who has no time */
        m.writes = atomicAdd(d.arrived, 1) == gridDim.x - 1;
        if (m.writes)
            *d.arrived = 0;
    }
    __syncwarp();
    Panel::factor(m, thread);
    __syncthreads();
    Panel::put_rows_back(m, d, first, thread);
    if (m.writes)
        Panel::put_block(m, d, thread);
    if (thread == 0)
        Panel::put_info(m, d);
    const int64_t stride = int64_t(gridDim.x) * Panel::ROWS;
    for (int64_t more = first + stride; more < d.beside; more += stride) {
        __syncthreads();
        Panel::fetch_rows(m, d, more, thread);
        __syncthreads();
        Panel::factor_more(m, thread);
        __syncthreads();
        Panel::put_rows_back(m, d, more, thread);
    }
}

/* The same in fast arithmetic, after the products of the columns on the left; a block
 * owns ROWS of the rows beside and no more. What shared memory holds in the meantime is
 * in large_cholesky_left.cuh. */
template <class T, bool UPPER>
__global__ void __launch_bounds__(CholeskyLeft<T, UPPER>::THREADS,
                                  CholeskyLeft<T, UPPER>::AT_ONCE)
    factor_panel_fast(const __grid_constant__ LargeDiagonal<T> d)
{
    using Left = CholeskyLeft<T, UPPER>;
    using Panel = typename Left::Panel;
    extern __shared__ __align__(16) char memory[];
    typename Left::Memory &shared = *(typename Left::Memory *)memory;
    typename Panel::Memory &m = shared.panel;
    const int thread = threadIdx.x;
    const int64_t first = int64_t(blockIdx.x) * Panel::ROWS;
    {
        Left left(d, first, shared, thread);
        left.take_early();
        await_previous();
        let_next_begin(); /* which then finds all that was written before */
        const bool failed = *d.info != 0;
        left.take_late();
        if (failed)
            return;
        left.put();
    }
    Panel::place_rows(m, d.n, thread);
    __syncthreads();
    if (thread == Panel::THREADS - 1) {
        m.writes = atomicAdd(d.arrived, 1) == gridDim.x - 1;
        if (m.writes)
            *d.arrived = 0;
    }
    __syncwarp();
    Panel::factor(m, d, first, thread);
    __syncthreads();
    if (thread == 0)
        Panel::put_info(m, d);
}

template <class T, bool UPPER>
__global__ void __launch_bounds__(CholeskyFar<T, UPPER>::THREADS, sizeof(T) == 16 ? 1 : 2)
    solve_far(const __grid_constant__ LargeFar<T> d)
{
    using Far = CholeskyFar<T, UPPER>;
    extern __shared__ __align__(16) char memory[];
    let_next_begin();
    await_previous();
    if (*d.info != 0)
        return;
    Far far(d, int64_t(blockIdx.x) * Far::ROWS, *(typename Far::Memory *)memory,
            threadIdx.x);
    far.take_products();
    far.solve();
}

template <class P>
cudaError_t launch(const void *kernel, int64_t blocks, int threads, int memory,
                   const P &d, cudaStream_t stream)
{
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, memory);
    if (error != cudaSuccess)
        return error;
    return launch_large(kernel, blocks, threads, memory, d, d.chained, stream);
}

template <class T, bool UPPER>
cudaError_t launch(const LargeDiagonal<T> &d, const Card &card, cudaStream_t stream)
{
    using Panel = CholeskyPanel<T, UPPER>;
    using Left = CholeskyLeft<T, UPPER>;
    static_assert(Panel::ROWS == Left::Panel::ROWS && Panel::THREADS == Left::THREADS);
    const int64_t shares = d.beside > 0 ? (d.beside + Panel::ROWS - 1) / Panel::ROWS : 1;
    if (d.fused)
        return launch((const void *)factor_panel_fast<T, UPPER>, shares, Left::THREADS,
                      int(sizeof(typename Left::Memory)), d, stream);
    const int64_t most = 2 * card.processors; /* as many as are there at once */
    return launch((const void *)factor_panel<T, UPPER>, shares > most ? most : shares,
                  Panel::THREADS, int(sizeof(typename Panel::Memory)), d, stream);
}

template <class T, bool UPPER>
cudaError_t launch(const LargeFar<T> &d, cudaStream_t stream)
{
    using Far = CholeskyFar<T, UPPER>;
    return launch((const void *)solve_far<T, UPPER>, (d.rows + Far::ROWS - 1) / Far::ROWS,
                  Far::THREADS, int(sizeof(typename Far::Memory)), d, stream);
}

} // namespace

template <class T>
size_t large_diagonal_memory()
{
    return sizeof(typename CholeskyPanel<T, true>::Memory);
}

template <class T>
cudaError_t large_diagonal(const LargeDiagonal<T> &d, const Card &card,
                           cudaStream_t stream)
{
    return d.upper ? launch<T, true>(d, card, stream) : launch<T, false>(d, card, stream);
}

template <class T>
cudaError_t large_far(const LargeFar<T> &d, cudaStream_t stream)
{
    return d.upper ? launch<T, true>(d, stream) : launch<T, false>(d, stream);
}

#define BL_INSTANCE(T)                                                                   \
    template size_t large_diagonal_memory<T>();                                          \
    template cudaError_t large_diagonal(const LargeDiagonal<T> &, const Card &,          \
                                        cudaStream_t);                                   \
    template cudaError_t large_far(const LargeFar<T> &, cudaStream_t);
BL_FOR_EACH_TYPE(BL_INSTANCE)

} // namespace bl
