/* What a step of a large Cholesky factorisation is told; see large.h and
 * large_cholesky.cuh. Knows nothing of CUDA: the host test includes it.
 */
#ifndef BL_LARGE_DIAGONAL_H
#define BL_LARGE_DIAGONAL_H

#include <stdint.h>

namespace bl
{

/* A block of n <= 64 columns of a Cholesky factorisation from its diagonal on, and the
 * `beside` rows below it or, where `upper`, columns to the right of it; none where n <
 * 64. To these are added first what lies at the same places from `sums` on, if it is not
 * NULL. The first minor that is not positive, counted from `base` + 1, goes to `info`;
 * where that is not 0 already nothing is done. `arrived` is 0 before and after.
 *
 * `fused`: fast arithmetic, from sm_90 on. The block then takes the products of the
 * `before` columns to the left of it or, where `upper`, rows above it first: of other
 * blocks of 64 just factored, one after the other, each by a launch that let the next one
 * begin only when the one before it had ended. */
template <class T>
struct LargeDiagonal {
    bool upper;
    int n;
    T *a;
    int64_t lda;
    const T *sums;
    int64_t ld_sums;
    int64_t beside;
    int64_t *info;
    int64_t base;
    unsigned *arrived;
    bool chained; /* see large_launch.h */
    bool fused;
    int64_t before;
};

/* `rows` rows, or where `upper` columns, of the 64 columns from the diagonal block at `a`
 * on, the first of them `far` behind the block's first: in fast arithmetic they lose the
 * products of the `before` columns to the left of the block and are solved for with its
 * triangle, unless *info is not 0. */
template <class T>
struct LargeFar {
    bool upper;
    T *a;
    int64_t lda;
    int64_t far, rows, before;
    const int64_t *info;
    bool chained; /* see large_launch.h */
};

} // namespace bl
#endif
