/* The kernels of gedet, for the table in engine.cu. */
#include "determinant.cuh"
#include "kernel.cuh"

namespace bl
{
BL_KERNEL(gedet)
} // namespace bl
