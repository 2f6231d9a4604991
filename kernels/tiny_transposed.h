/* The launch of GETRS('T') and ('C') of order n <= 32. Called by tiny.cu. */
#ifndef BL_TINY_TRANSPOSED_H
#define BL_TINY_TRANSPOSED_H

#include "tiny.h"

namespace bl
{

/* g: the job, as tiny kernels are told. */
cudaError_t launch_getrs_transposed(const struct bl_job *job, TinyArguments g,
                                    cudaStream_t stream);

} // namespace bl
#endif
