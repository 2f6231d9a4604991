/* The kernels of getrf by panels, double. */
#include "mid_blocked.cuh"

namespace bl
{
const BlockedKernels mid_blocked_d = blocked<double, 8, SEPARATE, 0>();
} // namespace bl
