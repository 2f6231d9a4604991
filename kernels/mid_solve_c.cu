/* The kernels that solve and invert with LU factors, complex. */
#include "mid_solve.cuh"

namespace bl
{
const SolveKernels mid_solve_c = solve_kernels<Complex<float>>();
} // namespace bl
