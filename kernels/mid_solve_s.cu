/* The kernels that solve and invert with LU factors, single. */
#include "mid_solve.cuh"

namespace bl
{
const SolveKernels mid_solve_s = solve_kernels<float>();
} // namespace bl
