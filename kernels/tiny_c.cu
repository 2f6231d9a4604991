/* The tiny LU kernels in single complex precision, for tiny.cu. */
#include "tiny_kernels.cuh"

namespace bl
{
TinyKernel tiny_kernel_c(enum bl_routine_id routine, int size)
{
    return tiny_kernel<Complex<float>>(routine, size);
}
} // namespace bl
