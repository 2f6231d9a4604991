/* Rows of right-hand sides solved with a block on the diagonal of a triangular matrix.
 *
 * Instantiated by large_triangle.cu. Where the solve goes upwards, the last row counts as
 * the first, in the copy of the solution for the update, too, which must take its
 * products in this order.
 */
#ifndef BL_LARGE_TRIANGLE_CUH
#define BL_LARGE_TRIANGLE_CUH

#include "absent.cuh"
#include "large_solve.cuh"

namespace bl
{

/* Shared memory: stages of eight columns of the triangle each. */
template <class T, Placing PLACING, bool UPWARDS>
__global__ void __launch_bounds__(WideStep::THREADS) solve_block(const LargeTriangle<T> s)
{
    constexpr int W = LARGE_BLOCK<T>;
    constexpr Skip SKIP = PLACING == PLAIN ? ALWAYS : NEVER;
    __shared__ __align__(16) Chunks<T, W> chunks;
    const int w = s.w;
    const int64_t j =
        int64_t(blockIdx.x) * WideStep::COLUMNS + int(threadIdx.x) / 32 * WideStep::HELD;
    let_next_begin();
    await_previous();
    if (s.unless && *s.unless)
        return;
    auto row = [&](int i) { return UPWARDS ? w - 1 - i : i; };
    auto element = [&](int i, int k) {
        return PLACING == PLAIN ? s.a + row(i) + row(k) * s.lda
                                : s.a + row(k) + row(i) * s.lda;
    };
    begin_solve<W, WideStep, PLACING>(w, element, chunks);
    Columns<T, W, WideStep> x;
    each_held<W, WideStep>(x, [&](int i, int c, T &y) {
        y = i < w && j + c < s.n ? s.b[row(i) + (j + c) * s.ldb] : from_real<T>(0);
    });
    unsigned zeros =
        solve_columns<W, WideStep, PLACING, SKIP>(w, s.unit, element, chunks, x);
    each_held<W, WideStep>(x, [&](int i, int c, T &y) {
        const bool left_out = zeros & 1;
        zeros >>= 1;
        if (i >= w || j + c >= s.n)
            return;
        s.b[row(i) + (j + c) * s.ldb] = y;
        if (PLACING == PLAIN && s.solved)
            s.solved[i + (j + c) * W] = left_out ? absent<T>() : present(y);
    });
}

/* A block of threads owns 16 columns of one inverse: those of the identity, solved for.
 * Shared memory as above. */
template <class T, bool UPPER>
__global__ void __launch_bounds__(WideStep::THREADS)
    invert_blocks(const LargeInverses<T> s)
{
    constexpr int W = LARGE_BLOCK<T>;
    __shared__ __align__(16) Chunks<T, W> chunks;
    const int64_t first = int64_t(blockIdx.y) * W;
    const int w = int(min(int64_t(W), s.n - first)),
              j = int(blockIdx.x) * WideStep::COLUMNS +
                  int(threadIdx.x) / 32 * WideStep::HELD;
    auto row = [&](int i) { return UPPER ? w - 1 - i : i; };
    auto element = [&](int i, int k) {
        return s.a + first + row(i) + (first + row(k)) * s.lda;
    };
    begin_solve<W, WideStep, PLAIN>(w, element, chunks);
    Columns<T, W, WideStep> x;
    each_held<W, WideStep>(
        x, [&](int i, int c, T &y) { y = row(i) == j + c ? one<T>() : from_real<T>(0); });
    solve_columns<W, WideStep, PLAIN, ALWAYS>(w, s.unit, element, chunks, x);
    each_held<W, WideStep>(x, [&](int k, int c, T &y) {
        const int i = row(k);
        if (i >= 0 && i < w && j + c < w)
            s.to[first * W + i + (j + c) * W] = sub(from_real<T>(0), y);
    });
}

/* Thread t has row t % W of a column. */
template <class T>
__global__ void __launch_bounds__(WideStep::THREADS)
    copy_rows(int w, int64_t n, const T *from, T *b, int64_t ldb, const int64_t *unless)
{
    constexpr int W = LARGE_BLOCK<T>;
    const int i = threadIdx.x % W;
    const int64_t j =
        int64_t(blockIdx.x) * (WideStep::THREADS / W) + int(threadIdx.x) / W;
    if (unless && *unless)
        return;
    if (i < w && j < n)
        b[i + j * ldb] = from[i + j * W];
}

} // namespace bl
#endif
