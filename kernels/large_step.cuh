/* What a block of columns does to the others: row interchanges as one gather, and the
 * rows of U.
 *
 * Instantiated by large_step.cu. Eight lanes own a column and a warp four; the first rows
 * of the column, up to LARGE_BLOCK, stay in registers from the gather to the end of the
 * solve. Products with a zero are left out where netlib's solve of 64 rows leaves them
 * out and taken where its matrix product takes them.
 */
#ifndef BL_LARGE_STEP_CUH
#define BL_LARGE_STEP_CUH

#include "large_solve.cuh"

namespace bl
{

/* All of a block's interchanges at once: after them row i < w holds what was in row
 * source[i]; row place[i] >= w, where it is not -1, what was in row former[i] < w. */
template <int W>
struct Moves {
    int source[W], former[W], place[W];
};

/* Interchange k takes to row k what is in row pivot[k] by then, and nothing is moved to
 * or from row k later. Going back from k: where a row was a pivot, its content came from
 * the top row of that step. */
template <int W>
__device__ __forceinline__ void compose_moves(int w, const int (&pivot)[W],
                                              Moves<W> &moves)
{
    const int k = threadIdx.x;
    if (k >= w)
        return;
    const int own = pivot[k];
    int source = own, former = k;
    bool last = true;
    _Pragma("unroll 16") for (int s = W - 1; s >= 0; s--)
    {
        const int p = pivot[s]; /* -1 from w on */
        if (s > k)
            last = last && p != own;
        source = s < k && p == source ? s : source;
        former = s < k && p == former ? s : former;
    }
    moves.source[k] = source;
    moves.former[k] = former;
    moves.place[k] = last && own >= w ? own : -1;
}

/* Shared memory: the moves, and stages of eight columns of L each. */
template <class T, int W>
__global__ void __launch_bounds__(STEP_THREADS) take_step(const LargeStep<T> s)
{
    constexpr int HELD = W / STEP_LANES;
    __shared__ Moves<W> moves;
    __shared__ __align__(16) int pivot[W];
    __shared__ __align__(16) T chunks[STEP_STAGES][STEP_LANES * W];
    const int thread = threadIdx.x, lane = thread % STEP_LANES, w = s.w;

    /* Left columns first; a block has either left or right ones. */
    const int64_t left_blocks = (s.left_end - s.left + STEP_COLUMNS - 1) / STEP_COLUMNS;
    const bool right = blockIdx.x >= left_blocks, solves = right && s.l;
    const int64_t j =
        thread / STEP_LANES + (right ? s.right + (blockIdx.x - left_blocks) * STEP_COLUMNS
                                     : s.left + blockIdx.x * STEP_COLUMNS);
    const bool inside = j < (right ? s.right_end : s.left_end);
    T *column = s.b + (inside ? j : 0) * s.ldb;
    if (s.unless && *s.unless)
        return;

    auto element_of_l = [&](int i, int k) { return s.l + i + k * s.ldl; };
    if (solves)
        begin_solve<W, PLAIN>(w, element_of_l, chunks);

    const Pivots pivots = {(void *)s.ipiv, s.int_size, 0};
    if (thread < W)
        pivot[thread] = thread < w ? int(pivots.get(thread) - s.base) : -1;
    __syncthreads();
    compose_moves(w, pivot, moves);
    __syncthreads();

    T x[HELD], displaced[HELD];
    BL_UNROLL
    for (int r = 0; r < HELD; r++) {
        const int i = lane + STEP_LANES * r;
        x[r] = displaced[r] = from_real<T>(0);
        if (i < w && inside) {
            const int source = moves.source[i];
            if (solves || source != i)
                x[r] = column[source];
            if (moves.place[i] >= 0)
                displaced[r] = column[moves.former[i]];
        }
    }
    __syncwarp();
    BL_UNROLL
    for (int r = 0; r < HELD; r++) {
        const int i = lane + STEP_LANES * r;
        if (i < w && inside && moves.place[i] >= 0)
            column[moves.place[i]] = displaced[r];
    }
    bool finite = true;
    if (solves)
        solve_columns<W, PLAIN, IN_BLOCK>(w, true, element_of_l, chunks, x);
    BL_UNROLL
    for (int r = 0; r < HELD; r++) {
        const int i = lane + STEP_LANES * r;
        if (i < w && inside && (solves || moves.source[i] != i))
            column[i] = x[r];
        finite = finite && is_finite(x[r]);
    }
    if (Traits<T>::complex && s.odd && inside && !finite)
        *s.odd = 1;
}

} // namespace bl
#endif
