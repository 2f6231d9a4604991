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

/* The same of a matrix by rows, of which row i begins at u.c + i u.ldc. A is by columns;
 * so is B, or by rows if it is turned, but it is not conjugate. An error where there is
 * no cuBLAS: has_large_blas(). */
template <class T>
cudaError_t large_blas_update_rows(const LargeUpdate<T> &u, void *work,
                                   cudaStream_t stream);

template <class T>
bool has_large_blas();

} // namespace bl
#endif
