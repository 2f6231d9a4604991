/* The kernels that solve and invert with LU factors, double complex. */
#include "mid_solve.cuh"

namespace bl
{
const SolveKernels mid_solve_z = solve_kernels<Complex<double>>();
} // namespace bl
