/* More shared memory than every kernel gets.
 *
 * Used by launches in transposed.cu and large_moves.cu.
 */
#ifndef BL_SHARED_MEMORY_H
#define BL_SHARED_MEMORY_H

#include <cuda_runtime.h>

namespace bl
{

/* Let `kernel` have all that a block of this device may ask for. Never less: another
 * thread may be between this call and its own launch, which then fails even if what it
 * asks for is below what needs no permission. */
inline cudaError_t allow_all_shared(const void *kernel)
{
    cudaFuncAttributes of_kernel;
    int device = 0, most = 0;
    cudaError_t error = cudaFuncGetAttributes(&of_kernel, kernel);
    if (error == cudaSuccess)
        error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                       device);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     most - int(of_kernel.sharedSizeBytes));
    return error;
}

} // namespace bl
#endif
