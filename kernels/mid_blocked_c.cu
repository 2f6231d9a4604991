/* The kernels of getrf by panels, complex. */
#include "mid_blocked.cuh"

namespace bl
{
const BlockedKernels mid_blocked_c = blocked<Complex<float>, 8, FUSED, 256>();
} // namespace bl
