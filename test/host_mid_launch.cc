/* kernels/mid.cu, which launches the kernels of middle sizes, compiled for the host.
 * There a second stream does everything at once too.
 */
#include "cuda_runtime.h"
#include "mid.cu"

namespace bl
{

LargeSide *LargeSide::borrow(cudaStream_t)
{
    static LargeSide only;
    return &only;
}

void LargeSide::give_back()
{
}

cudaError_t LargeSide::fork()
{
    return cudaSuccess;
}

cudaError_t LargeSide::join()
{
    return cudaSuccess;
}

} // namespace bl
