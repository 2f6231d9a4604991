/* The kernels of getri, getri_oop and geinv, for the table in engine.cu. */
#include "inverse.cuh"
#include "kernel.cuh"

namespace bl
{
BL_KERNEL(getri)
BL_KERNEL(getri_oop)
BL_KERNEL(geinv)
} // namespace bl
