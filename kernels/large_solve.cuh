/* A triangular solve with a block of rows, on columns that stay in registers.
 *
 * Used by the kernels of large_step.cuh and large_triangle.cuh. A warp owns one or two
 * columns, its lane l their rows l, l + 32, ... The triangle comes through shared memory,
 * eight columns at a time, several such chunks in flight.
 */
#ifndef BL_LARGE_SOLVE_CUH
#define BL_LARGE_SOLVE_CUH

#include "large.h"
#include "large_fetch.cuh"
#include "problem.cuh"

namespace bl
{

/* What a block of threads owns: HELD columns a warp, RUN rows of which are solved for at
 * once. */
template <int HELD_, int WARPS, int RUN_>
struct StepShape {
    static constexpr int HELD = HELD_, COLUMNS = HELD * WARPS, THREADS = 32 * WARPS,
                         RUN = RUN_;
};
/* For what only solves; for what fetches the columns' rows from afar, too; and where
 * there are few columns and it is the time of one that counts. */
using WideStep = StepShape<2, 8, 1>;
using MiddleStep = StepShape<1, 8, 1>;
using NarrowStep = StepShape<1, 4, 4>;
constexpr int STEP_CHUNK = 8; /* columns of the triangle that come at once */
constexpr int STEP_STAGES = 4;

/* Which products with a zero of the solution are left out: none, those that netlib's
 * xGETRF leaves out, which solves 64 rows and then multiplies, or all, as xTRSM does. */
enum Skip { NEVER, IN_BLOCK, ALWAYS };

/* A warp's columns: row lane + 32 q of column c. */
template <class T, int W, class S>
using Columns = T[W / 32][S::HELD];

/* act(i, c, x): element i of the warp's column c, for all that a lane has. */
template <int W, class S, class T, class Act>
__device__ __forceinline__ void each_held(Columns<T, W, S> &x, const Act &act)
{
    BL_UNROLL
    for (int q = 0; q < W / 32; q++)
        BL_UNROLL
    for (int c = 0; c < S::HELD; c++)
        act(int(threadIdx.x) % 32 + 32 * q, c, x[q][c]);
}

/* Shared memory for what is on its way of the triangle. */
template <class T, int W>
using Chunks = T[STEP_STAGES][STEP_CHUNK * W];

/* element(i, k) is the address of the triangle's element in row i >= column k. PLACING
 * says which of the two is contiguous in memory; a chunk has W rows. */
template <int W, class S, Placing PLACING, class T, class Element>
__device__ __forceinline__ void fetch_chunk(int k0, int w, Element element, T *chunk)
{
    static_assert(S::THREADS % W == 0, "a thread fetches of one row, or one column");
    BL_UNROLL
    for (int r = 0; r < STEP_CHUNK * W / S::THREADS; r++) {
        const int e = threadIdx.x + r * S::THREADS;
        const int i = PLACING == PLAIN ? e % W : e / STEP_CHUNK,
                  l = PLACING == PLAIN ? e / W : e % STEP_CHUNK;
        const bool there = i >= k0 + l && i < w;
        fetch(chunk + l * W + i, there ? element(i, k0 + l) : element(0, 0), there);
    }
}

template <int W, class S, Placing PLACING, class T, class Element>
__device__ __forceinline__ void begin_solve(int w, Element element, Chunks<T, W> &chunks)
{
    for (int q = 0; q < STEP_STAGES - 1; q++) {
        if (q * STEP_CHUNK < w)
            fetch_chunk<W, S, PLACING>(q * STEP_CHUNK, w, element, chunks[q]);
        fetched_so_far();
    }
}

/* The rows 32 BLOCK .. 32 BLOCK + 31 are solved for and each is taken from all below.
 * This is a chain: a row's product waits for the row before. So that few of its links go
 * from lane to lane, all lanes solve for RUN rows, with the same operations as the
 * lanes that own these. */
template <int W, class S, Placing PLACING, Skip SKIP, int BLOCK, class T, class Element>
__device__ __forceinline__ void solve_rows(int w, bool unit, Element element,
                                           Chunks<T, W> &chunks, Columns<T, W, S> &x,
                                           unsigned &zeros)
{
    constexpr int BLOCKS = W / 32, HELD = S::HELD, RUN = S::RUN;
    const int lane = threadIdx.x % 32;
    auto used = [](T a) { return PLACING == TURNED ? conj(a) : a; };
    const int end = min(w, 32 * BLOCK + 32);
    for (int k0 = 32 * BLOCK; k0 < end; k0 += STEP_CHUNK) {
        await_fetched<STEP_STAGES - 2>();
        __syncthreads();
        const int ahead = k0 + (STEP_STAGES - 1) * STEP_CHUNK;
        if (ahead < w)
            fetch_chunk<W, S, PLACING>(ahead, w, element,
                                       chunks[ahead / STEP_CHUNK % STEP_STAGES]);
        fetched_so_far();
        BL_UNROLL
        for (int t0 = 0; t0 < STEP_CHUNK; t0 += RUN) {
            const T *chunk = chunks[k0 / STEP_CHUNK % STEP_STAGES] + t0 * W;
            const int k = k0 % 32 + t0;
            T y[RUN][HELD];
            bool zero[RUN][HELD] = {};
            BL_UNROLL
            for (int r = 0; r < RUN; r++)
                BL_UNROLL
            for (int c = 0; c < HELD; c++)
                y[r][c] = from_lane(x[BLOCK][c], k + r);
            BL_UNROLL
            for (int r = 0; r < RUN; r++)
                BL_UNROLL
            for (int c = 0; c < HELD; c++) {
                T &own = y[r][c];
                if (SKIP == ALWAYS) /* xTRSM asks before it divides */
                    zero[r][c] = is_zero(own);
                if (!unit && k0 + t0 + r < w && !(SKIP == ALWAYS && zero[r][c]))
                    own = div(own, used(chunk[r * W + 32 * BLOCK + k + r]));
                if (SKIP == IN_BLOCK)
                    zero[r][c] = is_zero(own);
                BL_UNROLL
                for (int i = r + 1; i < RUN; i++) {
                    const T a = used(chunk[r * W + 32 * BLOCK + k + i]),
                            z = sub(y[i][c], mul(own, a));
                    if (SKIP == NEVER || !zero[r][c])
                        y[i][c] = z;
                }
            }
            BL_UNROLL
            for (int q = BLOCK; q < BLOCKS; q++) {
                const bool skips = SKIP == ALWAYS ||
                                   (SKIP == IN_BLOCK && q * 32 / NB == BLOCK * 32 / NB);
                BL_UNROLL
                for (int r = 0; r < RUN; r++) {
                    const T a = used(chunk[r * W + 32 * q + lane]);
                    BL_UNROLL
                    for (int c = 0; c < HELD; c++) {
                        const T z = sub(x[q][c], mul(y[r][c], a));
                        if ((q > BLOCK || lane >= k + RUN) && !(skips && zero[r][c]))
                            x[q][c] = z;
                    }
                }
            }
            BL_UNROLL
            for (int r = 0; r < RUN; r++)
                BL_UNROLL
            for (int c = 0; c < HELD; c++)
                if (lane == k + r) {
                    x[BLOCK][c] = y[r][c];
                    zeros |= unsigned(zero[r][c]) << (BLOCK * HELD + c);
                }
        }
    }
    if constexpr (BLOCK + 1 < BLOCKS)
        if (end < w)
            solve_rows<W, S, PLACING, SKIP, BLOCK + 1>(w, unit, element, chunks, x,
                                                       zeros);
}

/* x := (triangle of order w)^-1 x, the triangle conjugated where it is TURNED. All
 * threads of the block call it, after begin_solve(). Of the elements whose products are
 * left out a lane gets the bits, in the order of each_held(). */
template <int W, class S, Placing PLACING, Skip SKIP, class T, class Element>
__device__ __forceinline__ unsigned solve_columns(int w, bool unit, Element element,
                                                  Chunks<T, W> &chunks,
                                                  Columns<T, W, S> &x)
{
    static_assert(W / 32 * S::HELD <= 32, "a bit an element");
    unsigned zeros = 0;
    solve_rows<W, S, PLACING, SKIP, 0>(w, unit, element, chunks, x, zeros);
    return zeros;
}

} // namespace bl
#endif
