/* LU factorization of matrices of up to 32 rows and columns with several rows a lane.
 *
 * Used by tiny_kernels.cuh where it is faster than the row a lane of tiny_lu.cuh: what a
 * step costs beside its arithmetic, the search for the pivot and handing its row round,
 * is shared by the 32 / L matrices of a warp. Row i lies in lane i % L of its group, slot
 * i / L. Rows stay where they are until all steps are done; they then move through shared
 * memory to their places, so that memory is written by whole columns. Arithmetic, rules
 * and what is done again are those of tiny_lu.cuh.
 */
#ifndef BL_TINY_ROWS_CUH
#define BL_TINY_ROWS_CUH

#include "tiny_lu.cuh"
#include "tiny_pivot.cuh"

namespace bl
{

/* Steps that share their code: the columns move up by one in each. More code does not
 * stay in the instruction cache, less looks at more columns in vain. */
constexpr int SHARED_STEPS = 4;

/* Step k. `active`: the group's matrix has such a step. Of R rows a lane the first W
 * columns are looked at, at most SHARED_STEPS - 1 more than are left. */
template <int R, int W, bool EXTRA, int L, class T, int N>
__device__ __forceinline__ void eliminate_step(const Group<L> &group, Rows<T, N, L> &r,
                                               int k, bool active,
                                               const TinyBoard<T, N, L> &board)
{
    constexpr int UNIT = board.UNIT, UNITS = W / UNIT;
    constexpr int AHEAD = 2; /* units of the pivot's row on their way */
    T factor;
    const PivotChoice pivot_row = choose_row<R>(group, r, active, factor);
    const int lane = pivot_row.row & (L - 1), start = board.start(k);
    const int at = board.place(group.from(pivot_row.at, lane));
    factor = group.from(factor, lane);
    bool mine[R];
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        mine[s] = pivot_row.row - group.row == s * L;
        if (mine[s]) {
            const int to = board.place(r.at[s]) + start;
            board.pivot[k] = r.position[s];
            BL_UNROLL
            for (int i = 0; i < UNITS; i++) {
                TinyUnit<T> u;
                BL_UNROLL
                for (int t = 0; t < UNIT; t++)
                    u.x[t] = r.a[s][i * UNIT + t];
                if ((i + 1) * UNIT <= W - SHARED_STEPS ||
                    start + (i + 1) * UNIT <= board.PITCH)
                    board.unit(to + i * UNIT) = u;
            }
            if (EXTRA)
                board.b[k] = r.b[s];
        }
    }
    __syncwarp();
    /* Never beyond the row's end, where nothing of use lies. */
    auto unit = [&](int i) {
        const int j = start + i * UNIT;
        return board.unit(
            at + ((i + 1) * UNIT <= W - SHARED_STEPS ? j : min(j, board.PITCH - UNIT)));
    };
    TinyUnit<T> u[UNITS];
    BL_UNROLL
    for (int i = 0; i < UNITS && i < AHEAD; i++)
        u[i] = unit(i);
    const int place = board.pivot[k];
    if (pivot_row.careful) {
        const T pivot = u[0].x[0];
        if (active && r.info == 0 && is_zero(pivot))
            r.info = k + 1;
        factor = careful_factor(pivot);
    }
    T l[R];
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        r.position[s] = active && r.position[s] == k ? place : r.position[s];
        r.position[s] = mine[s] ? k : r.position[s];
        r.open[s] = mine[s] ? 0 : r.open[s];
        r.open[s] = renewed(r.open[s]); /* or predicates run out */
        const bool below = active && r.open[s];
        l[s] = mul(r.a[s][0], factor);
        if (below)
            board.p[board.lower(r.at[s], k)] = l[s];
        l[s] = select(below, l[s], from_real<T>(0));
    }
    BL_UNROLL
    for (int i = 0; i < UNITS; i++) {
        if (i + AHEAD < UNITS)
            u[i + AHEAD] = unit(i + AHEAD);
        BL_UNROLL
        for (int t = 0; t < UNIT; t++) {
            const int j = i * UNIT + t;
            BL_UNROLL
            for (int s = 0; s < R; s++)
                if (j > 0)
                    r.a[s][j - 1] = sub(r.a[s][j], mul(l[s], u[i].x[t]));
        }
    }
    if (EXTRA) {
        const T y = board.b[k];
        BL_UNROLL
        for (int s = 0; s < R; s++)
            r.b[s] = sub(r.b[s], mul(l[s], y));
    }
}

/* Where the lane's rows lie becomes known to the group. */
template <int R, bool EXTRA, int L, class T, int N>
__device__ __forceinline__ void note_order(const Rows<T, N, L> &r,
                                           const TinyBoard<T, N, L> &board)
{
    BL_UNROLL
    for (int s = 0; s < R; s++)
        if (r.position[s] >= 0) {
            board.order[r.position[s]] = r.at[s];
            if (EXTRA && r.open[s])
                board.b[r.position[s]] = r.b[s];
        }
}

/* L steps are done, so a lane needs one row less: the open rows, W columns of which are
 * left, are dealt out again in the order of their positions, from k on. */
template <int R, int W, bool EXTRA, int L, class T, int N>
__device__ __forceinline__ void deal_rows(const Group<L> &group, Rows<T, N, L> &r, int k,
                                          int m, const TinyBoard<T, N, L> &board)
{
    constexpr int UNIT = board.UNIT;
    note_order<R, EXTRA>(r, board);
    BL_UNROLL
    for (int s = 0; s < R; s++)
        if (r.open[s]) {
            BL_UNROLL
            for (int i = 0; i < W; i += UNIT) {
                TinyUnit<T> u;
                BL_UNROLL
                for (int t = 0; t < UNIT; t++)
                    u.x[t] = r.a[s][i + t];
                board.unit(board.place(r.at[s]) + k + i) = u;
            }
        }
    __syncwarp();
    BL_UNROLL
    for (int s = 0; s < R - 1; s++) {
        const int position = k + s * L + group.row;
        const bool inside = position < m;
        r.position[s] = inside ? position : -1;
        r.open[s] = inside ? ~0u : 0;
        r.at[s] = board.order[inside ? position : 0];
        if (EXTRA)
            r.b[s] = board.b[inside ? position : 0];
        BL_UNROLL
        for (int i = 0; i < W; i += UNIT) {
            TinyUnit<T> u = board.unit(board.place(r.at[s]) + k + i);
            BL_UNROLL
            for (int t = 0; t < UNIT; t++)
                r.a[s][i + t] = u.x[t];
        }
    }
    __syncwarp();
}

/* Steps from K on. */
template <int K, bool EXTRA, int L, class T, int N>
__device__ __forceinline__ void eliminate_from(const Group<L> &group, Rows<T, N, L> &r,
                                               int m, int own_steps, int steps,
                                               const TinyBoard<T, N, L> &board)
{
    constexpr int S = SHARED_STEPS, R = Rows<T, N, L>::R - K / L, W = N - K;
    static_assert(L % S == 0 && L % board.UNIT == 0, "rows are dealt out between units");
    const int end = min(K + S, steps);
#pragma unroll 1
    for (int k = K; k < end; k++)
        eliminate_step<R, W, EXTRA>(group, r, k, k < own_steps, board);
    if constexpr (W > S)
        if (K + S < steps) {
            if constexpr ((K + S) % L == 0)
                deal_rows<R, W - S, EXTRA>(group, r, K + S, m, board);
            eliminate_from<K + S, EXTRA>(group, r, m, own_steps, steps, board);
            return;
        }
    note_order<R, EXTRA>(r, board);
}

/* All steps. `steps` is the same in the warp; a group whose matrix has fewer rests after
 * its own. Ends with the factors in the board. EXCHANGED: elements of L within units. */
template <bool EXTRA, bool EXCHANGED, int L, class T, int N>
__device__ __forceinline__ void eliminate_rows(const Group<L> &group, Rows<T, N, L> &r,
                                               int m, int n, int steps,
                                               const TinyBoard<T, N, L> &board)
{
    r.info = 0;
    /* A matrix among others may be empty: it has no row that would say where it lies. */
    if (m <= 0 && group.row == 0)
        board.order[0] = group.first / L * board.SIZE;
    BL_UNROLL
    for (int s = 0; s < r.R; s++) {
        const int row = max(r.position[s], 0), number = group.first / L;
        r.open[s] = r.position[s] >= 0 ? ~0u : 0;
        r.at[s] = number * board.SIZE + row * board.PITCH;
        if (EXCHANGED)
            r.at[s] += (row / 8 + number) % board.UNIT;
    }
    eliminate_from<0, EXTRA>(group, r, m, min(m, n), steps, board);
    __syncwarp();
}

} // namespace bl
#endif
