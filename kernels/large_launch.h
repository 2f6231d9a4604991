/* Launches of the kernels for one large matrix.
 *
 * Used by large_*.cu. A chained kernel begins while the one before it in the stream still
 * runs (from sm_90 on), which hides what a launch costs; see large_fetch.cuh.
 */
#ifndef BL_LARGE_LAUNCH_H
#define BL_LARGE_LAUNCH_H

#include <cuda_runtime.h>
#include <stdint.h>

namespace bl
{

inline cudaLaunchAttribute chain_attribute()
{
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    return attribute;
}

template <class P>
cudaError_t launch_large(const void *kernel, int64_t blocks, int threads, size_t shared,
                         P parameter, bool chained, cudaStream_t stream)
{
    if (blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    cudaLaunchAttribute attribute = chain_attribute();
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(unsigned(blocks));
    config.blockDim = dim3(unsigned(threads));
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = chained;
    void *parameters[] = {&parameter};
    return cudaLaunchKernelExC(&config, kernel, parameters);
}

} // namespace bl
#endif
