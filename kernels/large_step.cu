/* Launches of the step between a block of columns and the others.
 *
 * Called by large.cu through large.h.
 */
#include "large_launch.h"
#include "large_step.cuh"

namespace bl
{

template <class T>
cudaError_t large_step(const LargeStep<T> &s, cudaStream_t stream)
{
    const int64_t left = (s.left_end - s.left + STEP_COLUMNS - 1) / STEP_COLUMNS;
    const int64_t right = (s.right_end - s.right + STEP_COLUMNS - 1) / STEP_COLUMNS;
    if (left + right == 0 || s.w == 0)
        return cudaSuccess;
    const void *kernel = s.w <= 32   ? (const void *)take_step<T, 32>
                         : s.w <= 64 ? (const void *)take_step<T, 64>
                                     : (const void *)take_step<T, LARGE_BLOCK<T>>;
    return launch_large(kernel, left + right, STEP_THREADS, 0, s, s.chained, stream);
}

#define BL_INSTANCE(T)                                                                   \
    template cudaError_t large_step(const LargeStep<T> &, cudaStream_t);
BL_FOR_EACH_TYPE(BL_INSTANCE)

} // namespace bl
