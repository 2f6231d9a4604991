/* LU factorisation of batched matrices too large for one chip: panels of 64 columns.
 *
 * Launched by mid.cu, panel after panel: lu_panel factors it, one block a matrix;
 * lu_strip brings the columns to its right up to date, a block for 64 of them; at the end
 * lu_arrange carries later interchanges into the L of earlier panels. The panels are
 * netlib's blocks and lu_strip its xTRSM and xGEMM, so NaN and Inf go netlib's way;
 * inside a panel with NaN or Inf mid_rest.cuh does. Every element is updated in ascending
 * order, product and difference rounded separately, but by lu_strip in fast arithmetic.
 */
#ifndef BL_MID_BLOCKED_CUH
#define BL_MID_BLOCKED_CUH

#include "kernel.cuh"
#include "mid.h"
#include "mid_access.cuh"
#include "mid_moves.cuh"
#include "mid_rest.cuh"
#include "mid_scaled_rest.cuh"
#include "mid_strip.cuh"
#include "tiny.cuh"

namespace bl
{

struct Candidate {
    double value;
    int position, row;
};

/* Shared memory of lu_panel. */
template <class T, int C>
struct PanelShared {
    T u[NB * C];        /* rows of the steps before, in the columns at hand */
    T row[2][16][C];    /* the row of each warp's candidate, from the pivot's column on */
    T l[NB * (NB + 1)]; /* L of the pivot rows; column k from k * (NB + 1) on */
    Candidate best[2][16];
    int pivot[NB], ipiv[NB];
    Source<T> source;
    Moves moves;
};

/* The larger of two candidates, the first of equals; one that is none has value -1. */
__device__ __forceinline__ Candidate larger(Candidate x, Candidate y)
{
    return y.value > x.value || (y.value == x.value && y.position < x.position) ? y : x;
}

__device__ __forceinline__ Candidate largest(Candidate x)
{
    BL_UNROLL
    for (int step = 16; step > 0; step /= 2)
        x = larger(x, {__shfl_xor_sync(ALL_LANES, x.value, step),
                       __shfl_xor_sync(ALL_LANES, x.position, step),
                       __shfl_xor_sync(ALL_LANES, x.row, step)});
    return x;
}

/* The largest of the lanes' candidates, whose keys are the magnitude_key() of their
 * values. Every lane gets it where several may be largest; else the one that has it.
 * True: this lane has it. */
__device__ __forceinline__ bool largest_here(unsigned key, bool twice, Candidate &mine,
                                             unsigned &all)
{
    all = largest_of_warp(key);
    const unsigned ballot = __ballot_sync(ALL_LANES, key == all);
    if ((ballot & (ballot - 1)) == 0 && !__any_sync(ALL_LANES, twice && key == all))
        return key == all;
    const int row = mine.row;
    mine = largest(mine);
    return row == mine.row && key == all;
}

/* A block: the panel at column `first` of a matrix, C columns at a time in registers. A
 * thread: rows thread + PANEL_THREADS * i. Rows stay where they are until the end. The
 * column at hand always stands first in the registers, so that the steps are one loop.
 * SCALED: pivots as GETRFSP chooses them. */
template <class T, int R, int C, int PANEL_THREADS, int BLOCKS, bool SCALED = false>
__global__ void __launch_bounds__(PANEL_THREADS, BLOCKS)
    lu_panel(const MidArguments g, int first, Moves *all_moves)
{
    constexpr int WARPS = PANEL_THREADS / 32;
    extern __shared__ __align__(16) char memory[];
    auto &s = *(PanelShared<T, C> *)memory;
    const Matrix<T> w(g, blockIdx.x);
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    int64_t info = 0;
    void *const info_at = operand_at(g.info, w.index, g.int_size);
    if (first > 0)
        info = get_integer(info_at, g.int_size);
    if (first >= w.order && first > 0)
        return;
    if (thread == 0)
        s.source = w.source(g, first);
    __syncthreads();
    T *const A = w.a + first + first * w.lda;
    const int64_t lda = w.lda;
    /* GETRFSP finds all in place. */
    auto read_from = [&]() -> Source<T> {
        if constexpr (SCALED)
            return {A, lda};
        else
            return s.source;
    };
    const int m = w.m - first, width = w.order - first < NB ? w.order - first : NB;
    const Pivots pivots = {operand_at(g.ipiv, w.index, g.int_size), g.int_size, first};
    int position[R], zero = 0, done = 0, fresh = width; /* done: columns finished */
    bool strange = false;
    BL_UNROLL
    for (int i = 0; i < R; i++)
        position[i] = thread + i * PANEL_THREADS;

    Real<T> *scales = nullptr, scale[R]; /* by position, at first a row's; the thread's */
    if constexpr (SCALED) {
        scales = (Real<T> *)((char *)all_moves + scales_at(gridDim.x)) +
                 g.m * blockIdx.x + first;
        BL_UNROLL
        for (int i = 0; i < R; i++) {
            if (position[i] < m && first == 0)
                scales[position[i]] = row_scale(A + position[i], lda, w.n);
            scale[i] = position[i] < m ? scales[position[i]] : Real<T>(0);
        }
    }
    /* What row i of the thread is compared by. */
    auto size = [&](const T &x, int i) {
        if constexpr (SCALED)
            return mul(abs1(x), scale[i]);
        else
            return x;
    };

    while (done < width && !strange) {
        const int columns = width - done < C ? width - done : C;
        T a[R][C];
        const Source<T> source = read_from();
        BL_UNROLL
        for (int i = 0; i < R; i++)
            BL_UNROLL
        for (int c = 0; c < C; c++) {
            int row = thread + i * PANEL_THREADS;
            row = row < m ? row : m - 1;
            a[i][c] = source.p[row + (done + (c < columns ? c : 0)) * source.ld];
        }
        constexpr int EACH = C / (R * sizeof(T) > 16 ? 4 : 2); /* what registers allow */
        T at_hand[R][EACH], ahead[R][EACH];
        auto read_left = [&](T(&l)[R][EACH], int from) {
            BL_UNROLL
            for (int k = 0; k < EACH; k++)
                BL_UNROLL
            for (int i = 0; i < R; i++) {
                const int row = thread + i * PANEL_THREADS;
                l[i][k] = A[(row < m ? row : m - 1) + (from + k) * lda];
            }
        };
        auto take_out = [&](const T(&l)[R][EACH], int from) {
            BL_UNROLL
            for (int k = 0; k < EACH; k++) {
                T u[C];
                read_row(u, s.u + (from + k) * C);
                BL_UNROLL
                for (int i = 0; i < R; i++)
                    BL_UNROLL
                for (int c = 0; c < C; c++)
                    a[i][c] = sub(a[i][c], mul(l[i][k], u[c]));
            }
        };
        if (done > 0)
            read_left(at_hand, 0);
        for (int e = thread; e < done * C; e += PANEL_THREADS) {
            int k = e / C, c = e % C;
            const Source<T> from = read_from();
            s.u[e] = from.p[s.pivot[k] + (done + (c < columns ? c : 0)) * from.ld];
        }
        __syncthreads();
        /* A warp solves a column; a lane has two of its rows. */
        for (int c = warp; c < C && done > 0; c += WARPS) {
            T low = s.u[lane * C + c], high = s.u[(lane + 32) * C + c];
#pragma unroll 4
            for (int k = 0; k < done; k++) {
                const T x = from_lane(k < 32 ? low : high, k % 32);
                const T *l = s.l + k * (NB + 1);
                if (lane > k)
                    low = sub(low, mul(l[lane], x));
                if (lane + 32 > k)
                    high = sub(high, mul(l[lane + 32], x));
            }
            if (lane < done)
                s.u[lane * C + c] = low;
            if (lane + 32 < done)
                s.u[(lane + 32) * C + c] = high;
        }
        __syncthreads();
        /* Some columns of L are on their way while others are multiplied. */
        for (int from = 0; from < done; from += 2 * EACH) {
            read_left(ahead, from + EACH);
            take_out(at_hand, from);
            read_left(at_hand, min(from + 2 * EACH, done - EACH));
            take_out(ahead, from + EACH);
        }
        /* The rows of the steps before have their final values. */
        for (int e = thread; e < done * columns; e += PANEL_THREADS) {
            int k = e % done, c = e / done;
            A[s.pivot[k] + (done + c) * lda] = s.u[k * C + c];
        }
#pragma unroll 1
        for (int c = 0; c < columns; c++) {
            const int k = done + c;
            unsigned key = 0, all;
            Candidate mine = {-1, NONE, 0};
            bool twice = false;
            BL_UNROLL
            for (int i = 0; i < R; i++) {
                const int row = thread + i * PANEL_THREADS;
                if (position[i] >= k && row < m) {
                    const unsigned other = magnitude_key(size(a[i][0], i));
                    twice = twice || other == key;
                    key = max(key, other);
                    mine =
                        larger(mine, {double(abs1(size(a[i][0], i))), position[i], row});
                }
            }
            const bool here = largest_here(key, twice, mine, all);
            const bool nan = all >= infinity_key<Real<T>>(); /* or Inf */
            if (nan)
                mine = {INFINITY, -1, 0};
            if (nan || all == 0 ? lane == 0 : here) {
                s.best[k % 2][warp] = mine;
                BL_UNROLL
                for (int i = 0; i < R; i++)
                    if (thread + i * PANEL_THREADS == mine.row)
                        write_row(true, s.row[k % 2][warp], a[i]);
            }
            __syncthreads();
            mine = lane < WARPS ? s.best[k % 2][lane] : Candidate{-1, NONE, 0};
            const bool any = mine.value >= 0;
            const bool won = largest_here(any ? magnitude_key(Real<T>(mine.value)) : 0,
                                          false, mine, all);
            const int winner = __ffs(int(__ballot_sync(ALL_LANES, won))) - 1;
            mine = s.best[k % 2][winner];
            if (mine.position < 0) { /* put down what there is, for lu_rest */
                strange = true;
                BL_UNROLL
                for (int i = 0; i < R; i++) {
                    const int row = thread + i * PANEL_THREADS;
                    if (position[i] >= done && row < m)
                        BL_UNROLL
                    for (int j = 0; j < C; j++)
                        if (c + j < columns)
                            A[row + (k + j) * lda] = a[i][j];
                }
                fresh = done + columns;
                done = k;
                break;
            }
            if (thread == 0) {
                s.pivot[k] = mine.row;
                s.ipiv[k] = mine.position;
            }
            T u[C];
            read_row(u, s.row[k % 2][winner]);
            const T factor = reciprocal(u[0]);
            const int how = scaling(u[0], factor);
            if (zero == 0 && is_zero(u[0]))
                zero = k + 1;
            BL_UNROLL
            for (int i = 0; i < R; i++) {
                const int row = thread + i * PANEL_THREADS;
                if (position[i] == k)
                    position[i] = mine.position;
                if (row == mine.row)
                    position[i] = k;
                const bool below = position[i] > k;
                T x = a[i][0];
                if (below)
                    x = how == MULTIPLY ? mul(factor, x)
                        : how == LEAVE  ? x
                                        : quotient(x, u[0]);
                if (position[i] >= done && row < m)
                    A[row + k * lda] = x;
                BL_UNROLL
                for (int j = 1; j < C; j++)
                    a[i][j - 1] = below ? sub(a[i][j], mul(x, u[j])) : a[i][j];
            }
        }
        if (strange)
            break;
        /* L of the new pivot rows. */
        __syncthreads();
        for (int e = thread; e < columns * (done + columns); e += PANEL_THREADS) {
            int r = done + e % columns, k = e / columns;
            if (r > k)
                s.l[k * (NB + 1) + r] = A[s.pivot[r] + k * lda];
        }
        done += columns;
    }

    /* `done` steps are in A, rows not yet moved; so is then what has not been read. */
    for (int row = thread; strange && read_from().p != A && row < m; row += PANEL_THREADS)
        for (int c = fresh; c < width; c++)
            A[row + c * lda] = read_from().p[row + c * read_from().ld];
    __syncthreads();
    if (thread == 0)
        s.moves.count = done;
    __syncthreads();
    BL_UNROLL
    for (int i = 0; i < R; i++) {
        const int row = thread + i * PANEL_THREADS;
        int k = position[i];
        if (row < m && (k < done || k != row)) {
            if (k >= done)
                k = atomicAdd(&s.moves.count, 1);
            s.moves.from[k] = short(row);
            s.moves.to[k] = short(position[i]);
        }
    }
    for (int k = thread; k < done; k += PANEL_THREADS)
        pivots.set(k, s.ipiv[k]);
    __syncthreads();
    const int moved = s.moves.count;
    constexpr int EACH = 2 * NB * C / PANEL_THREADS;
    for (int from = 0; from < width; from += C) {
        T x[EACH];
        BL_UNROLL
        for (int e = 0; e < EACH; e++) {
            int at = thread + e * PANEL_THREADS, k = at % (2 * NB),
                c = from + at / (2 * NB);
            if (k < moved && c < width)
                x[e] = A[s.moves.from[k] + c * lda];
        }
        __syncthreads();
        BL_UNROLL
        for (int e = 0; e < EACH; e++) {
            int at = thread + e * PANEL_THREADS, k = at % (2 * NB),
                c = from + at / (2 * NB);
            if (k < moved && c < width)
                A[s.moves.to[k] + c * lda] = x[e];
        }
    }
    __syncthreads();
    int64_t here = zero;
    if constexpr (SCALED) {
        const Real<T> moving = thread < moved ? scales[s.moves.from[thread]] : Real<T>(0);
        __syncthreads();
        if (thread < moved)
            scales[s.moves.to[thread]] = moving;
        __syncthreads();
    }
    if (strange) {
        Team team = block_team(PANEL_THREADS);
        if constexpr (SCALED)
            here = scaled_rest(team, m, width, A, lda, pivots, scales, done, fresh, zero);
        else
            here = lu_rest(team, m, width, A, lda, pivots, done, fresh, zero);
        __syncthreads();
        if (thread == 0)
            s.moves.count = moves_of(pivots, width, s.moves.from, s.moves.to);
        __syncthreads();
    }
    if (thread == 0) {
        if (info == 0 && here)
            info = first + here;
        put_integer(info_at, g.int_size, info);
    }
    __syncthreads();
    int *to = (int *)&all_moves[blockIdx.x], *from = (int *)&s.moves;
    for (int i = thread; i < int(sizeof(Moves) / sizeof(int)); i += PANEL_THREADS)
        to[i] = from[i];
}

/* C: columns that lu_panel holds in registers. FAST: how strips take products out in fast
 * arithmetic, in matrices of order FAST_FROM and more, where that gains more than a
 * tenth; SEPARATE where it nowhere does. */
template <class T, int C, Products FAST, int FAST_FROM>
constexpr BlockedKernels blocked()
{
    constexpr int MOST = sizeof(T) == 16 ? 2 : 3; /* blocks a multiprocessor */
    return {{{(const void *)lu_panel<T, 1, C, 128, 2 * MOST>, 128, 128},
             {(const void *)lu_panel<T, 1, C, 256, MOST>, 256, 256},
             {(const void *)lu_panel<T, 2, C, 256, 2>, 512, 256},
             {(const void *)lu_panel<T, 2, C, 512, 1>, 1024, 512}},
            {{(const void *)lu_panel<T, 1, C, 256, MOST, true>, 256, 256},
             {(const void *)lu_panel<T, 1, C, 512, 1, true>, 512, 512},
             {(const void *)lu_panel<T, 2, C, 512, 1, true>, 1024, 512}},
            {(const void *)lu_strip<T, SEPARATE>, STRIP_BYTES<T, SEPARATE>, 0, 0},
            {(const void *)lu_strip<T, FAST>, STRIP_BYTES<T, FAST>,
             FAST == FRAGMENTS ? 90 : 0, FAST_FROM},
            {(const void *)lu_strip<T, EVERY>, STRIP_BYTES<T, EVERY>, 0, 0},
            (const void *)lu_arrange<T>,
            STRIP_THREADS,
            sizeof(PanelShared<T, C>)};
}

} // namespace bl
#endif
