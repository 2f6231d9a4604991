/* LU factorisation of a matrix that stays on the chip, for up to a few hundred rows.
 *
 * Instantiated by mid_lu_*.cu and mid_scaled_*.cu. A block takes one matrix, a warp takes
 * panels of C whole columns of it: every row, in registers. A warp factors its panel with
 * no block barrier and publishes each finished column in shared memory; the others
 * follow, column by column where they are next, else by whole panels. The order of
 * operations on an element is ascending, each rounded separately, so the bits are
 * netlib's. Rows never move: a lane keeps its rows, and interchanges change positions
 * only. The first column with a NaN or Inf in it ends all this, and mid_rest.cuh goes on.
 */
#ifndef BL_MID_LU_CUH
#define BL_MID_LU_CUH

#include "kernel.cuh"
#include "mid.h"
#include "mid_chip.cuh"
#include "mid_moves.cuh"
#include "mid_panel.cuh"
#include "mid_scaled.cuh"
#include "tiny.cuh" /* MOST_BLOCKS */

namespace bl
{

/* Of a square matrix whose U's diagonal is in A. A warp. */
template <class T, class Shared>
__device__ __noinline__ void put_determinant(const Shared &s, const T *A, int64_t lda,
                                             int n, T *phase, Real<T> *logabs)
{
    const int lane = threadIdx.x % 32;
    const Product<T> det = product_of_all<T>(n, lane, [&](int64_t k) {
        const T u = A[k * (lda + 1)];
        return s.ipiv[k] == k ? u : negative(u);
    });
    if (lane == 0)
        phase_and_logarithm(det, *phase, *logabs);
}

__device__ __forceinline__ struct bl_item item_of(const MidArguments &g)
{
    if (g.items)
        return g.items[blockIdx.x];
    return {blockIdx.x, g.m, g.n, g.a.ld, 0};
}

/* Where it pays that the same kernel solves: while a warp does, the others of its block
 * have nothing to do, and there must be enough other blocks. */
template <class T, int R>
constexpr bool solves_on_chip = !Traits<T>::complex && R <= 3;

/* All of GETRF by netlib's rules for NaN and Inf. The block, for its own matrix. */
template <class T>
__device__ __noinline__ void factor_slowly(const MidArguments &g, int m, int n, T *A,
                                           int64_t lda)
{
    const Pivots pivots = {operand_at(g.ipiv, blockIdx.x, g.int_size), g.int_size, 0};
    Team team = block_team();
    const int64_t info = lu_rest(team, m, n, A, lda, pivots, 0, n, 0);
    if (threadIdx.x == 0)
        put_integer(operand_at(g.info, blockIdx.x, g.int_size), g.int_size, info);
}

/* Chip, and what else there is with a head. */
template <class T, int R, int C, int W, bool SCALED, bool HEAD>
struct ChipOf : Chip<T, R, C, W, SCALED> {
};
template <class T, int R, int C, int W>
struct ChipOf<T, R, C, W, false, true> : Chip<T, R, C, W, false> {
    MidHead<T, R, C> head;
};

/* A block: a matrix. Warp w: panels w, w + W, ... of C columns. A thread: rows lane,
 * lane + 32, ... of the panel. HEAD: what is said here of the matrix holds for it without
 * its first C rows and columns; items, moves and what else may be asked for beside the
 * factors are not for these kernels. Shared memory: Chip, then L, packed, and the head's.
 */
template <class T, int R, int C, int W, int BLOCKS, bool SCALED, bool HEAD>
__global__ void __launch_bounds__(W * 32, BLOCKS < MOST_BLOCKS ? BLOCKS : MOST_BLOCKS)
    lu_on_chip(const MidArguments g)
{
    extern __shared__ __align__(16) char memory[];
    using Shared = ChipOf<T, R, C, W, SCALED, HEAD>;
    constexpr int AHEAD = HEAD ? C : 0; /* rows and columns of the head */
    constexpr bool SOLVES = !SCALED && !HEAD && solves_on_chip<T, R>;
    Shared &s = *(Shared *)memory;
    T *const packed_l = (T *)(memory + (sizeof(Shared) + 15) / 16 * 16);
    /* Whether nothing but the determinant is asked for. */
    const bool quiet = !SCALED && !HEAD && (g.phase.p || g.phase.array);
    const struct bl_item item = item_of(g);
    int m = int(item.m), n = int(item.n), order = m < n ? m : n;
    const int64_t lda = item.lda;
    T *A = (T *)operand_at(g.a, item.index, sizeof(T));
    const T *from = A;
    int64_t ld_from = lda;
    if (g.moves && g.first > 0) {
        if (g.first >= order)
            return;
    } else if (order < 1) { /* one item of many */
        if (threadIdx.x == 0)
            put_integer(operand_at(g.info, item.index, g.int_size), g.int_size, 0);
        return;
    }
    if (g.moves) {
        A += g.first + g.first * lda;
        from = A;
        m -= g.first;
        n = order = min(order - g.first, NB);
    }
    if (g.first == 0 && (g.from.p || g.from.array)) {
        from = (const T *)operand_at(g.from, g.number + item.index, sizeof(T));
        ld_from = g.from.ld;
    }
    A = (T *)__cvta_global_to_generic(__cvta_generic_to_global(A));
    A += AHEAD + AHEAD * lda;
    m -= AHEAD;
    n -= AHEAD;
    order -= AHEAD;
    const int panels = (n + C - 1) / C, pivoting = (order + C - 1) / C;
    /* From a lane, or else the compiler asks for the thread's number again and again. */
    const int warp = __shfl_sync(ALL_LANES, int(threadIdx.x / 32), 0);

    for (int i = threadIdx.x; i < Shared::ROWS + C; i += W * 32) {
        s.pivot[i] = -1;
        if (i < Shared::ROWS) {
            s.step[i] = i < m ? NONE : OUTSIDE;
            s.position[i] = s.at[i] = (unsigned char)i;
            s.column[i].clear();
        }
        if (i < Shared::PANELS) {
            s.panel[i].clear();
            s.placed[i].clear();
        }
    }
    if (threadIdx.x == 0) {
        s.interchanges = s.zero = s.strange = 0;
        s.steps = order;
    }
    if constexpr (SCALED)
        find_scales(s, from, ld_from, m, n);
    [[maybe_unused]] T *const head_l = packed_l + packed<C>(m, pivoting);
    if constexpr (HEAD) {
        if (warp == 0)
            make_head(s.head, head_l, from, lda, m);
        __syncthreads();
        if (s.head.strange) {
            factor_slowly(g, C + m, C + n, A - C - C * lda, lda);
            return;
        }
    }
    Panel<T, R, C, W, SCALED> panel(s, warp);
    bool begun = false;
    for (int p = warp; p < panels; p += W) {
        T *const own = A + int64_t(p * C) * lda;
        const int columns = n - p * C;
        if constexpr (HEAD) {
            panel.read_behind(s.head, head_l, own - C, lda, m, columns);
            panel.write_rows(own - C, lda, C, columns);
            __syncwarp(); /* before the pivot rows are written over */
        } else {
            panel.read(from + int64_t(p * C) * ld_from, ld_from, m, columns);
        }
        if (!begun)
            __syncthreads();
        begun = true;

        const int before = p < pivoting ? p : pivoting;
        typename decltype(panel)::Candidate next;
        bool known = false;
        int q = 0, first = 0; /* of the panel's columns, the first not to have a pivot */
        for (; q < before; q++) {
            const T *l = packed_l + packed<C>(m, q);
            const int height = m - q * C;
            int count;
            known = false;
            if (q < p - 1 || s.panel[q].is_set()) {
                s.panel[q].wait();
                count = s.count[q];
                panel.apply(q, count, l, height);
            } else {
                count = panel.follow(q, l, height, next);
                known = true;
            }
            __syncwarp();
            if (!quiet)
                panel.write_rows(own + q * C, lda, count, columns);
            __syncwarp(); /* before the pivot rows are written over */
            if (count < C)
                break;
        }
        bool all = q == before && p >= pivoting;
        if (q == before && p < pivoting) {
            const int steps = min(C, order - p * C);
            first = panel.factor(p, steps, packed_l + packed<C>(m, p), m - p * C, known,
                                 next);
            all = first == steps;
            if (threadIdx.x % 32 == 0 && !all)
                s.steps = p * C + first;
            for (int j = first; j < C; j++)
                s.column[p * C + j].set();
            s.panel[p].set();
            if (!quiet)
                panel.write_rows(own + p * C, lda, first, columns, s.corner[p]);
            else if (int(threadIdx.x % 32) < first)
                panel.write_diagonal(own + p * C, lda);
            if (p > 0)
                s.placed[p - 1].wait();
            if (threadIdx.x % 32 == 0)
                interchange_on(s, p * C + first);
            __syncwarp(); /* before the pivot rows are written over */
            s.placed[p].set();
        }
        /* What ended the steps has been published; else `steps` is as it was. */
        if (!all && s.steps < order && !quiet) {
            s.placed[s.steps / C].wait();
            panel.write_left(own + first * lda, lda, min(C, columns) - first);
        }
    }
    if (!begun)
        __syncthreads();
    auto right_side = [&](int c) {
        return (T *)operand_at(g.b, item_of(g).index, sizeof(T)) + c * g.b.ld;
    };
    /* The warp whose turn it were rides along. */
    const int column = (warp - panels % W + W) % W;
    T y[R];
    bool solves = false;
    if constexpr (SOLVES)
        solves =
            column < g.nrhs && ride_along<T, R, C>(s.column, s.pivot, s.place, packed_l,
                                                   n, right_side(column), y);
    __syncthreads();
    const bool rest = s.steps < order || (Traits<T>::complex && !SCALED && s.strange);
    if constexpr (SOLVES)
        if (solves && !rest && s.zero == 0)
            solve_upper<T, R>(s.step, A, lda, n, y, right_side(column));

    /* L below the corners, in the order of the positions. */
    const int steps = s.steps;
    const bool whole = is_whole(A);
    for (int q = warp; q * C < steps && !quiet; q += W) {
        const T *l = packed_l + packed<C>(m, q);
        const int height = m - q * C, count = min(C, steps - q * C);
        T *to = A + int64_t(q * C) * lda;
        for (int i = q * C + count + threadIdx.x % 32; i < m; i += 32) {
            const int place = s.place[q][s.at[i]];
            BL_UNROLL
            for (int j = 0; j < C; j++)
                if (j < count)
                    store(to + i + j * lda, l[j * height + place], whole);
        }
    }
    if constexpr (HEAD)
        store_head(s.head, head_l, A - C - C * lda, lda, m, s.at);
    const int64_t index = item_of(g).index, number = index + (quiet ? g.number : 0);
    const Pivots pivots = {operand_at(g.ipiv, index, g.int_size), g.int_size, g.first};
    for (int k = threadIdx.x; k < steps && !quiet; k += W * 32)
        pivots.set(AHEAD + k, AHEAD + s.ipiv[k]);
    int64_t zero = s.zero;
    if constexpr (HEAD) {
        zero = s.head.info ? s.head.info : zero ? AHEAD + zero : 0;
        if (threadIdx.x < C)
            pivots.set(threadIdx.x, s.head.pivot[threadIdx.x]);
    }
    if (rest) {
        Team team = block_team(W * 32);
        if (quiet) /* from the beginning */
            copy(team, m, n, from, ld_from, A, lda);
        __syncthreads();
        if constexpr (SCALED) {
            for (int i = threadIdx.x; i < m; i += W * 32)
                s.magnitude[i] = s.scale[s.at[i]];
            __syncthreads();
            zero = plain_rest(team, m, n, A, lda, pivots, s.magnitude, steps, zero);
        } else
            zero =
                lu_rest(team, AHEAD + m, AHEAD + n, A - AHEAD - AHEAD * lda, lda, pivots,
                        quiet ? 0 : AHEAD + steps, AHEAD + n, quiet ? 0 : zero);
        __syncthreads();
        if (quiet)
            determinant(team, n, A, lda, pivots,
                        (T *)operand_at(g.phase, number, sizeof(T)),
                        (Real<T> *)operand_at(g.logabs, number, sizeof(Real<T>)));
    }
    if constexpr (!SCALED)
        if (quiet && !rest && warp == 0)
            put_determinant(s, A, lda, n, (T *)operand_at(g.phase, number, sizeof(T)),
                            (Real<T> *)operand_at(g.logabs, number, sizeof(Real<T>)));
    if (threadIdx.x == 0) {
        void *const at = operand_at(g.info, number, g.int_size);
        const int64_t before = g.moves && g.first > 0 ? get_integer(at, g.int_size) : 0;
        put_integer(at, g.int_size, before ? before : zero ? g.first + zero : 0);
    }
    if constexpr (SOLVES)
        if (rest && zero == 0 && warp < g.nrhs)
            solve_slowly(A, lda, n, pivots, right_side(warp));
    if (g.moves)
        write_moves(s, g.moves[blockIdx.x], pivots, m, order, rest);
}

template <class T, int R, int C, int W, bool SCALED, bool HEAD>
size_t lu_shared_bytes(int m, int n)
{
    const int head = HEAD ? C : 0, order = (m < n ? m : n) - head;
    return (sizeof(ChipOf<T, R, C, W, SCALED, HEAD>) + 15) / 16 * 16 +
           (packed<C>(m - head, (order + C - 1) / C) + head * (m - head)) * sizeof(T);
}

/* For up to `rows` rows, as a rule as many as it can have. */
template <class T, int R, int C, int W, int BLOCKS, bool SCALED = false>
constexpr MidKernel on_chip(int rows = 32 * R)
{
    static_assert(R <= 8, "a place in a column is a byte");
    return {(const void *)lu_on_chip<T, R, C, W, BLOCKS, SCALED, false>,
            rows,
            32 * W,
            lu_shared_bytes<T, R, C, W, SCALED, false>,
            !SCALED && solves_on_chip<T, R>,
            0};
}

/* For C rows more, the first C columns being a head. */
template <class T, int R, int C, int W, int BLOCKS>
constexpr MidKernel with_head(int rows = 32 * R + C)
{
    static_assert(R < 8, "a row's number is a byte");
    return {(const void *)lu_on_chip<T, R, C, W, BLOCKS, false, true>,
            rows,
            32 * W,
            lu_shared_bytes<T, R, C, W, false, true>,
            false,
            C};
}

} // namespace bl
#endif
