/* The tiny LU kernels in double complex precision, for tiny.cu. */
#include "tiny_kernels.cuh"

namespace bl
{
TinyKernel tiny_kernel_z(enum bl_routine_id routine, int size)
{
    return tiny_kernel<Complex<double>>(routine, size);
}
} // namespace bl
