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
    const int64_t blocks = (s.n + STEP_COLUMNS - 1) / STEP_COLUMNS;
    return launch_large(kernel, blocks, STEP_THREADS, 0, s, s.chained, stream);
}

#define BL_INSTANCE(T)                                                                   \
    template cudaError_t large_triangle(const LargeTriangle<T> &, cudaStream_t);
BL_INSTANCE(float)
BL_INSTANCE(double)
BL_INSTANCE(Complex<float>)
BL_INSTANCE(Complex<double>)

} // namespace bl
