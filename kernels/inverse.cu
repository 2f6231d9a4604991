/* The kernels of getri, for the table in engine.cu. */
#include "inverse.cuh"
#include "kernel.cuh"

namespace bl
{
BL_KERNEL(getri)
} // namespace bl
