/* The kernels that solve and invert with LU factors, double. */
#include "mid_invert.cuh"
#include "mid_solve.cuh"

namespace bl
{
const InvertKernel inverting[] = {
    invert_kernel<6, 3, 4>(),  invert_kernel<8, 4, 3>(),  invert_kernel<10, 8, 1>(),
    invert_kernel<12, 8, 1>(), invert_kernel<14, 8, 1>(), invert_kernel<16, 8, 1>(),
};

const SolveKernels mid_solve_d = solve_kernels<double>(inverting);
} // namespace bl
