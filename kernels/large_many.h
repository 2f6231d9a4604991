/* What a triangular solve with many right-hand sides is told; see large_many.cuh. */
#ifndef BL_LARGE_MANY_H
#define BL_LARGE_MANY_H

#include "large.h"

namespace bl
{

/* B := op(A)^-1 B for a triangle of order n <= LARGE_MANY_ORDER<T>, in fast arithmetic.
 * Counted in the order of the solve, element (i, k), i >= k, of op(A) is at a + i * down
 * + k * across, conjugated where `turned`, and element i of side r of B at b + i * step +
 * r * apart; `unit`: with ones on the diagonal. */
template <class T>
struct LargeMany {
    int64_t n;
    const T *a;
    int64_t down, across;
    bool turned, unit;
    T *b;
    int64_t step, apart;
    int64_t sides;
    const int64_t *unless; /* nothing is done where that is not 0 */
    bool chained;          /* see large_launch.h */
};

/* As many rows as the shared memory of a block has room for. */
template <class T>
constexpr int64_t LARGE_MANY_ORDER = sizeof(T) == 16 ? 256 : 512;

/* Whether this card can. */
template <class T>
bool large_has_many(const Card &card);

template <class T>
cudaError_t large_many(const LargeMany<T> &s, const Card &card, cudaStream_t stream);

} // namespace bl
#endif
