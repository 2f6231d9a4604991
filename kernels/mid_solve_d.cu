/* The kernels that solve and invert with LU factors, double. */
#include "mid_solve.cuh"

namespace bl
{
const SolveKernels mid_solve_d = solve_kernels<double>();
} // namespace bl
