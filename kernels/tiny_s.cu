/* The tiny LU kernels in single precision, for tiny.cu. */
#include "tiny_kernels.cuh"

namespace bl
{
TinyKernel tiny_kernel_s(enum bl_routine_id routine, int size)
{
    return tiny_kernel<float>(routine, size);
}
} // namespace bl
