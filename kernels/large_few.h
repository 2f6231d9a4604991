/* What a triangular solve with few right-hand sides is told; see large.h and
 * large_few.cuh. Knows nothing of CUDA: the host test includes it.
 */
#ifndef BL_LARGE_FEW_H
#define BL_LARGE_FEW_H

#include <stdint.h>

namespace bl
{

/* B := op(A)^-1 B for a triangle of order n. Counted in the order of the solve, element
 * (i, k), i >= k, of op(A) is at a + i * down + k * across, conjugated where `turned`,
 * and row i of B at b + i * step; `unit`: with ones on the diagonal. `shown` has n
 * elements for each of large_few_sides() columns, `drawn` counts the blocks that have
 * begun: before the solve all their bits are set. */
template <class T>
struct LargeFew {
    int64_t n;
    const T *a;
    int64_t down, across;
    bool turned, unit;
    T *b;
    int64_t step, ldb;
    int nrhs;
    T *shown;
    unsigned *drawn;
    const int64_t *unless; /* nothing is done where that is not 0 */
    unsigned groups = 1;   /* of right-hand sides */
};

/* Right-hand sides that a block solves for, if there is more than one; of `nrhs`, those
 * of all groups. */
constexpr int LARGE_FEW_GROUP = 4;

constexpr int large_few_sides(int64_t nrhs)
{
    return nrhs == 1
               ? 1
               : int((nrhs + LARGE_FEW_GROUP - 1) / LARGE_FEW_GROUP * LARGE_FEW_GROUP);
}

} // namespace bl
#endif
