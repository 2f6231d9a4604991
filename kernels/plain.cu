/* The kernels of getrfnp and getrfsp, for the table in engine.cu. */
#include "plain.cuh"
#include "kernel.cuh"

namespace bl
{
BL_KERNEL(getrfnp)
BL_KERNEL(getrfsp)
} // namespace bl
