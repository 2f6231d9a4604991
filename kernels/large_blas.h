/* cuBLAS for BL_FAST, where the machine has it.
 *
 * Called by large.cu. The library is opened when first asked for and its handles are
 * kept; any thread may call. Where it cannot be had, nothing is done and the caller's own
 * kernels remain.
 */
#ifndef BL_LARGE_BLAS_H
#define BL_LARGE_BLAS_H

#include "large.h"

namespace bl
{

/* Device memory that an update by cuBLAS works in. */
constexpr size_t LARGE_BLAS_BYTES = size_t(32) << 20;

/* True: the update is enqueued. `unless` is not looked at; nothing is done of a triangle.
 */
template <class T>
bool large_blas_update(const LargeUpdate<T> &u, void *work, cudaStream_t stream);

} // namespace bl
#endif
