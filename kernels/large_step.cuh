/* What a block of columns does to the others: row interchanges as one gather, and the
 * rows of U.
 *
 * Instantiated by large_step.cu. A warp owns one or two columns; their first rows, up to
 * LARGE_BLOCK, stay in registers from the gather to the end of the solve. Products with a
 * zero are left out where netlib's solve of 64 rows leaves them out and taken where its
 * matrix product takes them.
 */
#ifndef BL_LARGE_STEP_CUH
#define BL_LARGE_STEP_CUH

#include "large_solve.cuh"

namespace bl
{

/* All of a block's interchanges at once: after them row i < w holds what was in row
 * source[i]; row place[i] >= w, where it is not -1, what was in row former[i] < w. For i
 * from w on there is a row to be read, too, but no place. `met` is for compose_moves().
 */
template <int W>
struct Moves {
    int source[W], former[W], place[W], met[W];
};

/* The last of the first k bits that is set, or -1. */
template <int W>
__device__ __forceinline__ int last_before(int k, const unsigned (&bits)[W / 32])
{
    int last = -1;
    BL_UNROLL
    for (int q = 0; q < W / 32; q++) {
        const int n = k - 32 * q;
        const unsigned own = n >= 32 ? bits[q] : n > 0 ? bits[q] & ((1u << n) - 1) : 0;
        last = own ? 32 * q + 31 - __clz(int(own)) : last;
    }
    return last;
}

/* Interchange k takes to row k what is in row pivot[k] by then, and nothing is moved to
 * or from row k later. Where a row was a pivot before, its content came from the top row
 * of that step, and so on. For all threads of a block. */
template <int W>
__device__ __forceinline__ void compose_moves(int w, const int (&pivot)[W],
                                              Moves<W> &moves)
{
    const int k = threadIdx.x;
    unsigned same[W / 32] = {}, met[W / 32] = {}; /* steps that have k's pivot, or k */
    int before = -1;
    if (k < W) {
        const int own = pivot[k]; /* -1 from w on */
        BL_UNROLL
        for (int q = 0; q < W / 32; q++)
            BL_UNROLL
        for (int s = 0; s < 32; s++) {
            const int p = pivot[32 * q + s];
            same[q] |= p == own ? 1u << s : 0;
            met[q] |= p == k ? 1u << s : 0;
        }
        moves.met[k] = last_before<W>(k, met);
        before = last_before<W>(k, same);
    }
    __syncthreads();
    if (k >= W)
        return;
    int source = pivot[k], former = k;
    for (int s = before; s >= 0; s = moves.met[s])
        source = s;
    for (int s = moves.met[k]; s >= 0; s = moves.met[s])
        former = s;
    const bool last = last_before<W>(W, same) == k;
    moves.source[k] = k < w ? source : 0;
    moves.former[k] = k < w ? former : 0;
    moves.place[k] = k < w && last && pivot[k] >= w ? pivot[k] : -1;
}

/* Shared memory: the moves, and stages of eight columns of L each. Where there are no
 * pivots, the rows stay where they are. */
template <class T, int W, class S>
__global__ void __launch_bounds__(S::THREADS) take_step(const LargeStep<T> s)
{
    constexpr int BLOCKS = W / 32, COLUMNS = S::COLUMNS;
    __shared__ Moves<W> moves;
    __shared__ __align__(16) int pivot[W];
    __shared__ __align__(16) Chunks<T, W> chunks;
    const int thread = threadIdx.x, lane = thread % 32, w = s.w;

    /* Left columns first; a block has either left or right ones. */
    const int64_t left_blocks = (s.left_end - s.left + COLUMNS - 1) / COLUMNS;
    const bool right = blockIdx.x >= left_blocks, solves = right && s.l;
    const int64_t j =
        thread / 32 * S::HELD + (right ? s.right + (blockIdx.x - left_blocks) * COLUMNS
                                       : s.left + blockIdx.x * int64_t(COLUMNS));
    const int64_t columns = (right ? s.right_end : s.left_end) - j;
    T *const column = s.b + (columns > 0 ? j : 0) * s.ldb;
    let_next_begin();
    await_previous();
    if (s.unless && *s.unless)
        return;

    auto element_of_l = [&](int i, int k) { return s.l + i + k * s.ldl; };
    if (solves)
        begin_solve<W, S, PLAIN>(w, element_of_l, chunks);

    if (s.ipiv) {
        const Pivots pivots = {(void *)s.ipiv, s.int_size, 0};
        if (thread < W)
            pivot[thread] = thread < w ? int(pivots.get(thread) - s.base) : -1;
        __syncthreads();
        compose_moves(w, pivot, moves);
    } else if (thread < W) {
        moves.source[thread] = moves.former[thread] = thread < w ? thread : 0;
        moves.place[thread] = -1;
    }
    __syncthreads();

    Columns<T, W, S> x, displaced;
    auto each = [&](auto act) {
        BL_UNROLL
        for (int q = 0; q < BLOCKS; q++)
            BL_UNROLL
        for (int c = 0; c < S::HELD; c++)
            act(lane + 32 * q, lane + 32 * q < w && c < columns, column + c * s.ldb,
                x[q][c], displaced[q][c]);
    };
    each([&](int i, bool there, T *from, T &y, T &other) {
        y = other = from_real<T>(0);
        if (there) {
            const int source = moves.source[i];
            if (solves || source != i)
                y = from[source];
            if (moves.place[i] >= 0)
                other = from[moves.former[i]];
        }
    });
    __syncwarp();
    each([&](int i, bool there, T *to, T &, T &other) {
        if (there && moves.place[i] >= 0)
            to[moves.place[i]] = other;
    });
    bool finite = true;
    if (solves)
        solve_columns<W, S, PLAIN, IN_BLOCK>(w, true, element_of_l, chunks, x);
    each([&](int i, bool there, T *to, T &y, T &) {
        if (there && (solves || moves.source[i] != i))
            to[i] = y;
        finite = finite && is_finite(y);
    });
    if (Traits<T>::complex && s.odd && !finite)
        *s.odd = 1;
}

} // namespace bl
#endif
