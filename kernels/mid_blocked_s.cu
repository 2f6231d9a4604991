/* The kernels of getrf by panels, single. */
#include "mid_blocked.cuh"

namespace bl
{
const BlockedKernels mid_blocked_s = blocked<float, 8, FUSED, 1024>();
} // namespace bl
