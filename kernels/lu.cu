/* The kernels of getrf, getrs, getrsnp and gesv, for the table in engine.cu. */
#include "lu.cuh"
#include "kernel.cuh"

namespace bl
{
BL_KERNEL(getrf)
BL_KERNEL(getrs)
BL_KERNEL(getrsnp)
BL_KERNEL(gesv)
} // namespace bl
