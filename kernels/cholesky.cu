/* The kernels of potrf, potrs, posv and potri, for the table in engine.cu. */
#include "cholesky.cuh"
#include "kernel.cuh"

namespace bl
{
BL_KERNEL(potrf)
BL_KERNEL(potrs)
BL_KERNEL(posv)
BL_KERNEL(potri)
} // namespace bl
