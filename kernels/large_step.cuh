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

#include "large_fetch.cuh"
#include "problem.cuh"

namespace bl
{

constexpr int STEP_LANES = 8;    /* that share a column */
constexpr int STEP_COLUMNS = 16; /* a block */
constexpr int STEP_THREADS = STEP_LANES * STEP_COLUMNS;
constexpr int STEP_STAGES = 4;

/* All of a block's interchanges at once: row i < w comes from row source[i]; row
 * place[i] >= w, where there is one, gets what was in row former[i] < w. */
struct Moves {
    int64_t source[128], place[128];
    int former[128];
};

/* Interchange k takes to row k what is in row pivot[k] by then, and nothing is moved to
 * or from row k later. Going back from k: where a row was a pivot, its content came from
 * the top row of that step. */
__device__ __forceinline__ void compose_moves(int w, const int64_t *pivot, Moves &moves)
{
    for (int k = threadIdx.x; k < w; k += blockDim.x) {
        int64_t source = pivot[k];
        int64_t former = k;
        bool last = true;
        for (int s = k - 1; s >= 0; s--) {
            const int64_t p = pivot[s];
            source = p == source ? s : source;
            former = p == former ? s : former;
        }
        for (int s = k + 1; s < w; s++)
            last = last && pivot[s] != pivot[k];
        moves.source[k] = source;
        moves.former[k] = int(former);
        moves.place[k] = last && pivot[k] >= w ? pivot[k] : -1;
    }
}

/* Shared memory: the moves, and stages of eight columns of L each. */
template <class T>
__global__ void __launch_bounds__(STEP_THREADS) take_step(const LargeStep<T> s)
{
    constexpr int W = LARGE_BLOCK<T>, HELD = W / STEP_LANES, CHUNK = STEP_LANES;
    __shared__ Moves moves;
    __shared__ int64_t pivot[W];
    __shared__ __align__(16) T chunks[STEP_STAGES][CHUNK * W];
    const int thread = threadIdx.x, lane = thread % STEP_LANES, w = s.w;

    /* Left columns first; a block has either left or right ones. */
    const int64_t left_blocks = (s.left_end - s.left + STEP_COLUMNS - 1) / STEP_COLUMNS;
    const bool solves = blockIdx.x >= left_blocks;
    const int64_t j = thread / STEP_LANES +
                      (solves ? s.right + (blockIdx.x - left_blocks) * STEP_COLUMNS
                              : s.left + blockIdx.x * STEP_COLUMNS);
    const bool inside = j < (solves ? s.right_end : s.left_end);
    T *column = s.b + (inside ? j : 0) * s.ldb;

    auto fetch_chunk = [&](int k0) {
        T *to = chunks[k0 / CHUNK % STEP_STAGES];
        for (int e = thread; e < CHUNK * W; e += STEP_THREADS) {
            const int i = e % W, k = k0 + e / W;
            const bool there = i > k && i < w;
            fetch(to + e, s.l + (there ? i + k * s.ldl : 0), there);
        }
    };
    if (solves)
        for (int q = 0; q < STEP_STAGES - 1; q++) {
            if (q * CHUNK < w)
                fetch_chunk(q * CHUNK);
            fetched_so_far();
        }

    const Pivots pivots = {(void *)s.ipiv, s.int_size, 0};
    for (int k = thread; k < w; k += STEP_THREADS)
        pivot[k] = pivots.get(k) - s.base;
    __syncthreads();
    compose_moves(w, pivot, moves);
    __syncthreads();

    T x[HELD], displaced[HELD];
    BL_UNROLL
    for (int r = 0; r < HELD; r++) {
        const int i = lane + STEP_LANES * r;
        x[r] = displaced[r] = from_real<T>(0);
        if (i < w && inside) {
            const int64_t source = moves.source[i];
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
    if (solves) {
        BL_UNROLL
        for (int h = 0; h < HELD; h++) {
            if (h * CHUNK < w) {
                await_fetched<STEP_STAGES - 2>();
                __syncthreads();
                if ((h + STEP_STAGES - 1) * CHUNK < w)
                    fetch_chunk((h + STEP_STAGES - 1) * CHUNK);
                fetched_so_far();
                const T *chunk = chunks[h % STEP_STAGES] + lane;
                for (int t = 0; t < CHUNK; t++) {
                    const T y = from_lane(x[h], thread % 32 / STEP_LANES * STEP_LANES + t);
                    const bool zero = is_zero(y);
                    BL_UNROLL
                    for (int r = h; r < HELD; r++) {
                        const T z = sub(x[r], mul(y, chunk[t * W + STEP_LANES * r]));
                        const bool same = r * STEP_LANES / NB == h * STEP_LANES / NB;
                        if (!(same && zero) && (r > h || lane > t))
                            x[r] = z;
                    }
                }
            }
        }
    }
    BL_UNROLL
    for (int r = 0; r < HELD; r++) {
        const int i = lane + STEP_LANES * r;
        if (i < w && inside && (solves || moves.source[i] != i))
            column[i] = x[r];
    }
}

} // namespace bl
#endif
