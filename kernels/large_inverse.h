/* What moves in the inversion of one large matrix from its Cholesky factor.
 *
 * Called by large.cu. Enqueues only; see large_inverse.cu.
 */
#ifndef BL_LARGE_INVERSE_H
#define BL_LARGE_INVERSE_H

#include "large.h"

namespace bl
{

/* With v(i, k), i >= k, for l(i, k) or u(k, i)': the rows j .. j + w - 1 of v to `rows`
 * and, of the block on the diagonal, to `triangle`, in whose place in `rows` there is the
 * unit matrix; what is below that block (right of it in 'U') to `beside`, as it lies.
 * Zeros in their place. `rows`, `minus` and `triangle` have LARGE_BLOCK<T> elements a
 * column, and so has `beside` for 'U'; for 'L' n. */
template <class T>
struct LargeInverse {
    bool upper;
    int w;
    int64_t n, j;
    T *a;
    int64_t lda;
    T *rows, *minus, *triangle, *beside;
    const int64_t *info;
};

template <class T>
cudaError_t large_take_out(const LargeInverse<T> &s, cudaStream_t stream);

/* minus := -rows, columns 0 .. j + w - 1. */
template <class T>
cudaError_t large_negate(const LargeInverse<T> &s, cudaStream_t stream);

/* 1 + the first zero of the diagonal to info, if there is one. */
template <class T>
cudaError_t large_find_zero(const T *a, int64_t lda, int64_t n, int64_t *info,
                            cudaStream_t stream);

/* The diagonal loses its imaginary part where *info is 0. */
template <class T>
cudaError_t large_make_real(T *a, int64_t lda, int64_t n, const int64_t *info,
                            cudaStream_t stream);

} // namespace bl
#endif
