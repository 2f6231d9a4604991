/* The kernels of getrf by panels, double complex. */
#include "mid_blocked.cuh"

namespace bl
{
const BlockedKernels mid_blocked_z = blocked<Complex<double>, 8, FRAGMENTS, 256>();
} // namespace bl
