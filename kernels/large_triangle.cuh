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
    constexpr int W = LARGE_BLOCK<T>;
    __shared__ __align__(16) Chunks<T, W> chunks;
    const int lane = threadIdx.x % 32, w = s.w;
    const int64_t j =
        int64_t(blockIdx.x) * STEP_COLUMNS + int(threadIdx.x) / 32 * STEP_HELD;
    if (s.unless && *s.unless)
        return;
    auto row = [&](int i) { return UPWARDS ? w - 1 - i : i; };
    auto element = [&](int i, int k) {
        return PLACING == PLAIN ? s.a + row(i) + row(k) * s.lda
                                : s.a + row(k) + row(i) * s.lda;
    };
    begin_solve<W, PLACING>(w, element, chunks);
    Columns<T, W> x;
    auto each = [&](auto act) {
        BL_UNROLL
        for (int q = 0; q < W / 32; q++)
            BL_UNROLL
        for (int c = 0; c < STEP_HELD; c++)
            act(lane + 32 * q, lane + 32 * q < w && j + c < s.n, j + c, x[q][c]);
    };
    each([&](int i, bool there, int64_t k, T &y) {
        y = there ? s.b[row(i) + k * s.ldb] : from_real<T>(0);
    });
    solve_columns<W, PLACING, PLACING == PLAIN ? ALWAYS : NEVER>(w, s.unit, element,
                                                                 chunks, x);
    each([&](int i, bool there, int64_t k, T &y) {
        if (!there)
            return;
        s.b[row(i) + k * s.ldb] = y;
        if (UPWARDS)
            s.reversed[i + k * W] = y;
    });
}

} // namespace bl
#endif
