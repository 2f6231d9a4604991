/* POTRF beyond the tiny orders, a block of threads a matrix, left-looking by panels of at
 * most 32 columns; what a warp does with a block of a panel is in mid_cholesky_block.cuh.
 *
 * Instantiated by mid_cholesky.cu. cholesky_on_chip() reads a matrix once and keeps what
 * is needed of it in shared memory; cholesky_by_slices() is for what does not fit there:
 * of the columns on the left, slices go through shared memory.
 */
#ifndef BL_MID_CHOLESKY_CUH
#define BL_MID_CHOLESKY_CUH

#include "large_fetch.cuh"
#include "mid_cholesky_block.cuh"
#include "problem.cuh"
#include "../src/engine.h"

namespace bl
{

/* i, of which nothing is known before, and nothing read before that is written after:
 * keeps addresses and reads from being gathered where there are no registers for them. */
BL_HD int here(int i)
{
#ifdef __CUDACC__
    asm volatile("" : "+r"(i)::"memory");
#endif
    return i;
}

/* What the kernels are told of a job. */
struct MidCholesky {
    struct bl_operand a, info;
    const struct bl_item *items;
    int n, int_size; /* n: the largest */
};

/* Panels of 32 columns; the last 64 or fewer, netlib's last block, are halved as xPOTRF2
 * halves them, if they are more than 32. */
struct Panels {
    int n, count;

    BL_BOTH explicit Panels(int order)
        : n(order), count(order / NB * 2 + (order % NB + SIDE - 1) / SIDE)
    {
    }
    BL_HD int first(int p) const
    {
        const int whole = n / NB * 2;
        return p <= whole ? p * SIDE : p == count ? n : whole * SIDE + n % NB / 2;
    }
    BL_HD int width(int p) const
    {
        return first(p + 1) - first(p);
    }
};

template <class T, bool UPPER>
struct MidCholeskyItem {
    int n;
    int64_t index, lda;
    T *a;

    BL_HD MidCholeskyItem(const MidCholesky &g, int64_t number)
        : n(g.n), index(number), lda(g.a.ld)
    {
        if (g.items) {
            n = int(g.items[number].n);
            index = g.items[number].index;
            lda = g.items[number].lda;
        }
        a = g.a.array ? (T *)g.a.array[index] : (T *)g.a.p + index * g.a.stride;
    }
    BL_HD void put_info(const MidCholesky &g, int info) const
    {
        if (g.int_size == 4)
            *(g.info.array ? (int32_t *)g.info.array[index]
                           : (int32_t *)g.info.p + index * g.info.stride) = info;
        else
            *(g.info.array ? (int64_t *)g.info.array[index]
                           : (int64_t *)g.info.p + index * g.info.stride) = info;
    }
    BL_HD int64_t info_of(const MidCholesky &g) const
    {
        if (g.int_size == 4)
            return *(g.info.array ? (int32_t *)g.info.array[index]
                                  : (int32_t *)g.info.p + index * g.info.stride);
        return *(g.info.array ? (int64_t *)g.info.array[index]
                              : (int64_t *)g.info.p + index * g.info.stride);
    }
    BL_HD T &at(int i, int k) const /* v(i, k) */
    {
        return UPPER ? a[k + i * lda] : a[i + k * lda];
    }

    /* A warp's: the block of rows from i0 and columns from k0 on, or the triangle of it
     * that is in use; neighbours in memory by neighbouring lanes. */
    BL_HD void fetch_block(T *block, int i0, int rows, int k0, int columns, bool triangle,
                           int lane) const
    {
        const int along = UPPER ? columns : rows, across = UPPER ? rows : columns;
        if (lane < along) {
            BL_UNROLL_BY_FOUR
            for (int c = 0; c < across; c++) {
                const int i = UPPER ? c : lane, k = UPPER ? lane : c;
                if (!triangle || i >= k)
                    fetch(block + k * BLOCK_PITCH<T> + i, &at(i0 + i, k0 + k), true);
            }
        }
    }
    /* The same of at most 16 columns; turn `first` and every `step`-th after it. */
    BL_HD void fetch_rows(T *to, int pitch, int i0, int rows, int k0, int columns,
                          int lane, int first, int step) const
    {
        constexpr int DEPTH = 16;
        for (int c = first; c < DEPTH; c += step) {
            const int e = c * SIDE + lane;
            const int i = UPPER ? e / DEPTH : lane, k = UPPER ? e % DEPTH : c;
            if (i < rows && k < columns)
                fetch(to + k * pitch + i, &at(i0 + i, k0 + k), true);
        }
    }
    BL_HD void store_block(const T *block, int i0, int rows, int k0, int columns,
                           bool triangle, int lane) const
    {
        const int along = UPPER ? columns : rows, across = UPPER ? rows : columns;
        if (lane < along) {
            BL_UNROLL_BY_FOUR
            for (int c = 0; c < across; c++) {
                const int i = UPPER ? c : lane, k = UPPER ? lane : c;
                if (!triangle || i >= k)
                    at(i0 + i, k0 + k) = block[k * BLOCK_PITCH<T> + i];
            }
        }
    }
};

/* What all warps of a block know of the panel in work. */
template <class T>
struct MidCholeskyShared {
    Real<T> scale[SIDE]; /* reciprocals of the diagonal */
    int bad;             /* 1 + the first column that is not positive, or 0 */
};

/* A block (i, p) on its way: its products with the columns on the left, panel by panel.
 * read(row, column) gives an element as it was before. */
template <class T, CholeskyOrder ORDER>
struct PanelTile {
    static constexpr bool UPPER = ORDER == BY_SUMS;
    BlockTile<T> tile;
    int p;         /* the panel */
    bool diagonal; /* i == p */

    BL_HD void clear()
    {
        tile.each([](T &y, int, int) { y = from_real<T>(0); });
    }

    template <class Read>
    BL_HD void begin(Read read)
    {
        tile.each([&](T &y, int i, int j) { y = UPPER ? from_real<T>(0) : read(i, j); });
    }

    /* Before the products with panel q. `block`: for what must wait once more. */
    template <class Read>
    BL_HD void before(int q, T *block, Read read)
    {
        if (!UPPER || p % 2 == 0 || q + 1 < p)
            return;
        end_sum(p > 1, read);
        if (diagonal)
            tile.each([&](T &y, int i, int j) {
                block[j * BLOCK_PITCH<T> + i] = y;
                y = from_real<T>(0);
            });
        else
            tile.each([](T &y, int, int) { y = times_one(y); });
    }

    BL_HD void products(int q, const T *a, int pitch_a, const T *b, int pitch_b,
                        int depth)
    {
        if (UPPER && (diagonal || p % 2 == 0 || q + 1 < p))
            tile.template products<true, ORDER>(a, pitch_a, b, pitch_b, depth);
        else
            tile.template products<false, ORDER>(a, pitch_a, b, pitch_b, depth);
    }

    /* Into `block`, where a diagonal one may have waited. */
    template <class Read>
    BL_HD void end(T *block, Read read)
    {
        if (UPPER && p % 2 == 0)
            end_sum(p > 0, read);
        else if (UPPER && diagonal)
            end_sum(true, [&](int i, int j) { return block[j * BLOCK_PITCH<T> + i]; });
        tile.each([&](T y, int i, int j) { block[j * BLOCK_PITCH<T> + i] = y; });
    }

  private:
    template <class Read>
    BL_HD void end_sum(bool any, Read read)
    {
        tile.each([&](T &y, int i, int j) {
            y = any ? less_sum(read(i, j), y, diagonal && i == j) : read(i, j);
        });
    }
};

/* ---- everything on the chip ---- */

/* Blocks below the diagonal, and two on it in turn. */
BL_BOTH int blocks_on_chip(int panels)
{
    return panels * (panels - 1) / 2 + 2;
}

/* One matrix. Warp b has the rows of panel b, and computes its next block as far as it
 * can while the block on the diagonal is factored, which all wait for. `memory`:
 * blocks_on_chip() blocks. */
template <class T, bool UPPER, CholeskyOrder ORDER = UPPER ? BY_SUMS : BY_PRODUCTS>
BL_HD void cholesky_on_chip(const MidCholesky &g, MidCholeskyShared<T> &s, T *memory,
                            const Team &team, int64_t number)
{
    constexpr int PITCH = BLOCK_PITCH<T>;
    const MidCholeskyItem<T, UPPER> item(g, number);
    const Panels panels(item.n);
    const int lane = team.lane(), b = team.thread / LANES;
    const int last = panels.count - 1;
    const bool busy = b <= last;
    const int row = busy ? panels.first(b) : 0, rows = busy ? panels.width(b) : 0;
    auto block_of = [&](int i, int p) {
        return memory + (i == p ? i % 2 : 2 + i * (i - 1) / 2 + p) * BLOCK_ELEMENTS<T>;
    };
    auto fetch_block = [&](int p) {
        item.fetch_block(block_of(b, p), row, rows, panels.first(p), panels.width(p),
                         p == b, lane);
    };

    /* Of the row of blocks i, the panels from `first` in steps. */
    auto store_row = [&](int i, int first, int end, int step) {
        for (int p = first; p < end; p += step)
            item.store_block(block_of(i, p), panels.first(i), panels.width(i),
                             panels.first(p), panels.width(p), false, lane);
    };

    if (team.thread == 0)
        s.bad = 0;
    if (busy)
        fetch_block(0);
    fetched_so_far();
    for (int p = 1; p <= b && busy; p++)
        if (p < b || p < 2)
            fetch_block(p);
    fetched_so_far();
    await_fetched<1>();
    team.warp_sync();

    PanelTile<T, ORDER> x;
    x.tile.lane = lane;
    auto multiply = [&](int q, T *block) {
        auto read = [&](int i, int j) { return block[j * PITCH + i]; };
        x.before(q, block, read);
        x.products(q, block_of(b, q), PITCH, block_of(x.p, q), PITCH, panels.width(q));
    };
    for (int p = 0; p < panels.count; p++) {
        const int width = panels.width(p);
        T *block = block_of(b, p);
        const T *diagonal = block_of(p, p);
        if (busy && b >= p && p > 0) {
            multiply(p - 1, block);
            x.end(block, [&](int i, int j) { return block[j * PITCH + i]; });
            team.warp_sync();
        }
        int good = width; /* rows and columns of the block on the diagonal */
        if (b == p) {
            const int bad = DiagonalBlock<T, ORDER>{block, s.scale, width, team}.factor();
            if (bad && lane == 0)
                s.bad = row + bad;
            if (bad)
                good = bad - 1;
            x.clear(); /* so that no register is kept for it while factoring */
        } else if (busy && b > p) {
            T *next = block_of(b, p + 1);
            await_fetched<0>();
            team.warp_sync();
            x.p = p + 1;
            x.diagonal = b == p + 1;
            x.begin([&](int i, int j) { return next[j * PITCH + i]; });
            for (int q = 0; q < p; q++)
                multiply(q, next);
        }
        team.block_sync();
        if (b == p)
            item.store_block(block, row, good, row, good, true, lane);
        if (s.bad) {
            if (busy && b >= p)
                store_row(b, 0, p, 1);
            break;
        }
        if (busy && b > p)
            solve_block<T, ORDER>(block, diagonal, s.scale, width, p % 2 == 0, team);
        team.block_sync();
        if (b == p && p < last) /* nobody waits for it any more */
            store_row(b, 0, p, 1);
        if (p == last) /* all share the last row */
            store_row(last, b, last, last + 1);
        if (busy && b == p + 2) /* where the last but one was */
            fetch_block(b);
        fetched_so_far();
    }
    if (team.thread == 0)
        item.put_info(g, s.bad);
}

/* ---- by slices ---- */

/* Rows of a slice: those of the panel's block on the diagonal, and a block a warp. */
template <class T>
struct CholeskySlices {
    static constexpr int WARPS = sizeof(T) == 16 ? 4 : 8, DEPTH = 16;
    static constexpr int PITCH = (WARPS + 1) * SIDE + UNIT<T>;
    static constexpr int STAGE = DEPTH * PITCH;
    static constexpr int BLOCKS = WARPS * BLOCK_ELEMENTS<T>; /* in the same place */
    static constexpr int RING = 2 * STAGE > BLOCKS ? 2 * STAGE : BLOCKS;
    static constexpr int ELEMENTS = RING + BLOCK_ELEMENTS<T>;
};

/* Where several blocks of threads share a matrix, a launch is one panel. */
struct CholeskyShare {
    int panel, block;
    /* A matrix: the block on the diagonal of the panel before. It could not go where it
     * belongs while others might still have to read that. */
    void *kept;
};

/* One matrix, by WARPS warps. Of a panel, a warp has every WARPS-th block. `memory`: two
 * slices in turn or, when they are done with, the warps' blocks; and the block on the
 * diagonal. Where the matrix is SHARED, by WARPS or fewer: the first warp has the block
 * on the diagonal, as in every block of threads, and the others one block each. */
template <class T, bool UPPER, bool SHARED = false,
          CholeskyOrder ORDER = UPPER ? BY_SUMS : BY_PRODUCTS>
BL_HD void cholesky_by_slices(const MidCholesky &g, MidCholeskyShared<T> &s, T *memory,
                              const Team &team, int64_t number,
                              const CholeskyShare &share = {})
{
    using S = CholeskySlices<T>;
    const MidCholeskyItem<T, UPPER> item(g, number);
    const Panels panels(item.n);
    const int lane = team.lane(), warp = team.thread / LANES;
    T *diagonal = memory + S::RING;
    int first_panel = 0, end_panel = panels.count, before_own = 0;
    T *kept = nullptr;
    if constexpr (SHARED) {
        first_panel = share.panel;
        before_own = first_panel + share.block * (team.threads / LANES - 1);
        kept = (T *)share.kept + number * BLOCK_ELEMENTS<T>;
        if (first_panel >= panels.count ||
            (share.block > 0 && before_own + 1 >= panels.count))
            return;
        end_panel = first_panel + 1;
        if (first_panel > 0) {
            const int64_t info = item.info_of(g);
            const int before = panels.first(first_panel - 1);
            const int done =
                info ? int(info) - 1 - before : panels.width(first_panel - 1);
            if (share.block == 0 && warp == 0 && done > 0) /* else an earlier panel's */
                item.store_block(kept, before, done, before, done, true, lane);
            if (info)
                return;
        }
    }

    if (team.thread == 0)
        s.bad = 0;
    PanelTile<T, ORDER> x;
    x.tile.lane = lane;
    bool good = true;
    for (int p = first_panel; p < end_panel && good; p++) {
        const int top = panels.first(p), width = panels.width(p);
        x.p = p;
        for (int base = p; base < (SHARED ? p + 1 : panels.count) && good;
             base += S::WARPS) {
            const int b = !SHARED ? base + warp : warp == 0 ? p : before_own + warp;
            const bool busy = b < panels.count;
            const int row = busy ? panels.first(b) : 0, rows = busy ? panels.width(b) : 0;
            const int place = b == p ? 0 : 1 + warp;
            T *block = b == p ? diagonal : memory + warp * BLOCK_ELEMENTS<T>;
            auto read = [&](int i, int j) {
                return i < rows && j < width && row + i >= top + j
                           ? item.at(row + i, top + j)
                           : from_real<T>(0);
            };
            /* For a sum to be subtracted from. */
            auto read_late = [&](int i, int j) { return read(here(i), j); };
            /* Slice t is of panel t / 2. */
            auto depth_of = [&](int t) {
                const int left = panels.width(t / 2) - t % 2 * S::DEPTH;
                return left < S::DEPTH ? left : S::DEPTH;
            };
            auto fetch_slice = [&](int t) {
                T *to = memory + t % 2 * S::STAGE;
                const int k0 = panels.first(t / 2) + t % 2 * S::DEPTH;
                item.fetch_rows(to + place * SIDE, S::PITCH, row, rows, k0, depth_of(t),
                                lane, 0, 1);
                if (base > p)
                    item.fetch_rows(to, S::PITCH, top, width, k0, depth_of(t), lane, warp,
                                    S::WARPS);
                fetched_so_far();
            };
            x.diagonal = b == p;
            if (p > 0)
                fetch_slice(0);
            x.begin(read);
            for (int t = 0; t < 2 * p; t++) {
                await_fetched<0>();
                team.block_sync(); /* it is there, and the one before is done with */
                if (t + 1 < 2 * p)
                    fetch_slice(t + 1);
                if (!busy)
                    continue;
                const T *slice = memory + t % 2 * S::STAGE;
                if (t % 2 == 0)
                    x.before(t / 2, block, read_late);
                x.products(t / 2, slice + place * SIDE, S::PITCH, slice, S::PITCH,
                           depth_of(t));
            }
            team.block_sync();
            if (busy)
                x.end(block, read_late);
            team.warp_sync();
            int done = width; /* rows and columns of the block on the diagonal */
            if (b == p) {
                const int bad =
                    DiagonalBlock<T, ORDER>{block, s.scale, width, team}.factor();
                if (bad && lane == 0)
                    s.bad = row + bad;
                if (bad)
                    done = bad - 1;
            }
            team.block_sync();
            if (SHARED && b == p && p + 1 < panels.count) {
                if (share.block == 0)
                    for (int e = lane; e < BLOCK_ELEMENTS<T>; e += LANES)
                        kept[e] = block[e];
            } else if (b == p && (!SHARED || share.block == 0)) {
                item.store_block(block, row, done, row, done, true, lane);
            }
            good = s.bad == 0;
            if (good && busy && b > p) {
                solve_block<T, ORDER>(block, diagonal, s.scale, width, p % 2 == 0, team);
                team.warp_sync();
                item.store_block(block, row, rows, top, width, false, lane);
            }
            team.block_sync();
        }
    }
    if (team.thread == 0 &&
        (!SHARED || (share.block == 0 && (first_panel == 0 || s.bad))))
        item.put_info(g, s.bad);
}

} // namespace bl
#endif
