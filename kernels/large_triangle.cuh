/* Rows of right-hand sides solved with a block on the diagonal of a triangular matrix.
 *
 * Instantiated by large_triangle.cu. Where the solve goes upwards, the last row counts as
 * the first; the solution is then also left upside down for the update, which must take
 * its products in this order.
 */
#ifndef BL_LARGE_TRIANGLE_CUH
#define BL_LARGE_TRIANGLE_CUH

#include "large_solve.cuh"

namespace bl
{

/* Shared memory: stages of eight columns of the triangle each. */
template <class T, Placing PLACING, bool UPWARDS>
__global__ void __launch_bounds__(STEP_THREADS) solve_block(const LargeTriangle<T> s)
{
    constexpr int W = LARGE_BLOCK<T>, HELD = W / STEP_LANES;
    __shared__ __align__(16) T chunks[STEP_STAGES][STEP_LANES * W];
    const int thread = threadIdx.x, lane = thread % STEP_LANES, w = s.w;
    const int64_t j = int64_t(blockIdx.x) * STEP_COLUMNS + thread / STEP_LANES;
    if (s.unless && *s.unless)
        return;
    auto row = [&](int i) { return UPWARDS ? w - 1 - i : i; };
    auto element = [&](int i, int k) {
        return PLACING == PLAIN ? s.a + row(i) + row(k) * s.lda
                                : s.a + row(k) + row(i) * s.lda;
    };
    begin_solve<W, PLACING>(w, element, chunks);
    T x[HELD];
    BL_UNROLL
    for (int r = 0; r < HELD; r++) {
        const int i = lane + STEP_LANES * r;
        x[r] = i < w && j < s.n ? s.b[row(i) + j * s.ldb] : from_real<T>(0);
    }
    solve_columns<W, PLACING, PLACING == PLAIN ? ALWAYS : NEVER>(w, s.unit, element,
                                                                 chunks, x);
    BL_UNROLL
    for (int r = 0; r < HELD; r++) {
        const int i = lane + STEP_LANES * r;
        if (i < w && j < s.n) {
            s.b[row(i) + j * s.ldb] = x[r];
            if (UPWARDS)
                s.reversed[i + j * W] = x[r];
        }
    }
}

} // namespace bl
#endif
