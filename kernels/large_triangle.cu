/* Launches of the solve with a diagonal block.
 *
 * Called by large.cu through large.h.
 */
#include "large_launch.h"
#include "large_triangle.cuh"

namespace bl
{

template <class T>
cudaError_t large_triangle(const LargeTriangle<T> &s, cudaStream_t stream)
{
    const void *kernel = s.placing == PLAIN
                             ? (s.upwards ? (const void *)solve_block<T, PLAIN, true>
                                          : (const void *)solve_block<T, PLAIN, false>)
                             : (s.upwards ? (const void *)solve_block<T, TURNED, true>
                                          : (const void *)solve_block<T, TURNED, false>);
    const int64_t blocks = (s.n + WideStep::COLUMNS - 1) / WideStep::COLUMNS;
    return launch_large(kernel, blocks, WideStep::THREADS, 0, s, s.chained, stream);
}

template <class T>
cudaError_t large_inverses(const LargeInverses<T> &s, cudaStream_t stream)
{
    constexpr int W = LARGE_BLOCK<T>;
    const dim3 grid(W / WideStep::COLUMNS, unsigned((s.n + W - 1) / W));
    if (s.upper)
        invert_blocks<T, true><<<grid, WideStep::THREADS, 0, stream>>>(s);
    else
        invert_blocks<T, false><<<grid, WideStep::THREADS, 0, stream>>>(s);
    return cudaGetLastError();
}

template <class T>
cudaError_t large_copy(int w, int64_t n, const T *from, T *b, int64_t ldb,
                       const int64_t *unless, cudaStream_t stream)
{
    constexpr int COLUMNS = WideStep::THREADS / LARGE_BLOCK<T>;
    copy_rows<<<unsigned((n + COLUMNS - 1) / COLUMNS), WideStep::THREADS, 0, stream>>>(
        w, n, from, b, ldb, unless);
    return cudaGetLastError();
}

#define BL_INSTANCE(T)                                                                   \
    template cudaError_t large_triangle(const LargeTriangle<T> &, cudaStream_t);         \
    template cudaError_t large_inverses(const LargeInverses<T> &, cudaStream_t);         \
    template cudaError_t large_copy(int, int64_t, const T *, T *, int64_t,               \
                                    const int64_t *, cudaStream_t);
BL_FOR_EACH_TYPE(BL_INSTANCE)

} // namespace bl
