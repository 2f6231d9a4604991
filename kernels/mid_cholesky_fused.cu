/* The kernels of mid_cholesky.cuh with fused operations, both triangles in the order of
 * 'L': fast arithmetic where mid_cholesky_fast.cuh has no kernels. Launched by
 * mid_cholesky.cu. */
#include "mid_cholesky_kernels.cuh"

namespace bl
{

const MidCholeskyKernels mid_cholesky_fused[BL_PRECISIONS] = {
    kernels_of<float, FUSED, FUSED>(), kernels_of<double, FUSED, FUSED>(),
    kernels_of<Complex<float>, FUSED, FUSED>(),
    kernels_of<Complex<double>, FUSED, FUSED>()};

} // namespace bl
