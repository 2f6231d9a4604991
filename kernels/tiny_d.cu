/* The tiny LU kernels in double precision, for tiny.cu. */
#include "tiny_kernels.cuh"

namespace bl
{
TinyKernel tiny_kernel_d(enum bl_routine_id routine, int size)
{
    return tiny_kernel<double>(routine, size);
}
} // namespace bl
