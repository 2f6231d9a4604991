/* POTRF in fast arithmetic on the matrix units of sm_90 and up, single and double, of
 * what does not fit a multiprocessor, a block a matrix: left-looking by wide panels.
 *
 * Instantiated by mid_cholesky_fast.cu and by test/host_mid_cholesky.cc, where threads
 * are fibers. A panel goes by chunks of as many rows as it has columns, so that what is
 * read of the columns on the left, for which no cache has room, is read as seldom as can
 * be. A warp holds 16 rows of a chunk in registers, as minus the sums of its matrix
 * products; slices of the left go by through shared memory. The chunk on the diagonal
 * goes back to memory, where mid_cholesky_tiles.cuh factors it; what that keeps in shared
 * memory solves for the rows of the others, by each warp without another's help: a column
 * of tiles that is done is also, as it lies in registers, the left factor of what it is
 * to be taken out of. Meanwhile the next chunk's first slices are on their way.
 *
 * Both triangles are the same numbers v(i, k), as in mid_cholesky_block.cuh, and take the
 * same operations; the fast order promises no more than a small residual.
 */
#ifndef BL_MID_CHOLESKY_CHUNKS_CUH
#define BL_MID_CHOLESKY_CHUNKS_CUH

#include "mid_cholesky_tiles.cuh"

namespace bl
{

/* The first `count` of 16 bytes' elements, and zeros for the rest; with V == 1 of one. */
template <int V, class T>
BL_HD void fetch_some(T *to, const T *from, int count)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    static_assert(V == 1 || V * sizeof(T) == 16);
    if constexpr (V > 1) {
        const unsigned at = unsigned(__cvta_generic_to_shared(to));
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from),
                     "r"(count * int(sizeof(T)))
                     : "memory");
    } else {
        fetch(to, from, count > 0);
    }
#else
    for (int v = 0; v < V; v++)
        fetch(to + v, from + v, v < count);
#endif
}

template <class T, bool UPPER, int WARPS_>
struct ChunkCholesky {
    static constexpr int WARPS = WARPS_, THREADS = WARPS * LANES, HIGH = 16;
    static constexpr int WIDTH = WARPS * HIGH, TILES = WIDTH / TILE_SIDE;
    using Diagonal = TileCholesky<T, UPPER, WARPS, 1, true>;
    /* Slices: of the rows on the diagonal and of the chunk's own. Where rows lie along
     * memory they are not padded: the groups of four numbers of a row change places. */
    static constexpr int DEPTH = 16, STAGES = 3;
    static constexpr int PITCH = 2 * WIDTH + 32 / int(sizeof(T)), STAGE = DEPTH * PITCH;
    static constexpr int ELEMENTS = STAGES * STAGE + Diagonal::elements(WIDTH);
    static constexpr int WIDE = 16 / int(sizeof(T)); /* what one copy moves */

    MidCholeskyShared<T> &s;
    const Team &team;
    const MidCholeskyItem<T, UPPER> item;
    T *const ring, *const triangle;
    const bool is_aligned; /* for copies of WIDE elements */
    const int lane, row, pair, part;
    T x[TILES][4];

    /* The warp's rows of a chunk. Of the one on the diagonal the last ones have the most
     * products; a warp and the fourth after it share a matrix unit. */
    static BL_HD int part_of(int warp)
    {
        return (warp < WARPS / 2 ? warp : WARPS * 3 / 2 - 1 - warp) * HIGH;
    }

    BL_HD ChunkCholesky(const MidCholesky &g, MidCholeskyShared<T> &shared, T *memory,
                        const Team &its_team, int64_t number)
        : s(shared), team(its_team), item(g, number), ring(memory),
          triangle(memory + STAGES * STAGE),
          is_aligned(size_t(item.a) % 16 == 0 && item.lda % WIDE == 0),
          lane(its_team.lane()), row(lane / 4), pair(lane % 4 * 2),
          part(part_of(of_warp(its_team.thread / LANES)))
    {
    }

    BL_HD static unsigned place(unsigned i, unsigned k)
    {
        return UPPER ? i * DEPTH + (k ^ i / (8 / sizeof(T)) % 4 * 4) : k * PITCH + i;
    }

    /* DEPTH columns from k0 on of the WIDTH rows from `from` on; what is below the matrix
     * is zero. */
    template <int V>
    BL_HD void fetch_rows(T *slice, int begin, int from, int k0) const
    {
        constexpr int ALONG = (UPPER ? DEPTH : WIDTH) / V, STEP = THREADS / ALONG,
                      TIMES = (UPPER ? WIDTH : DEPTH) / STEP;
        static_assert(!UPPER || STEP % 8 == 0, "places change with the same period");
        const int along = team.thread % ALONG * V, across = team.thread / ALONG;
        const int i = UPPER ? across : along, k = UPPER ? along : across;
        const T *source = &item.at(from + i, k0 + k);
        T *to = slice + place(begin + i, k);
        BL_UNROLL_BY_TWO
        for (int q = 0; q < TIMES; q++) {
            const int left = item.n - from - i - (UPPER ? q * STEP : 0);
            const int count = left <= 0 ? 0 : UPPER || left > V ? V : left;
            fetch_some<V>(to + q * STEP * (UPPER ? DEPTH : PITCH),
                          count ? source + q * STEP * item.lda : item.a, count);
        }
    }
    BL_HD void fetch_slice(T *slice, int top, int own, int k0) const
    {
        BL_ROLLED
        for (int begin = 0, from = top;; begin = WIDTH, from = own) {
            if (is_aligned)
                fetch_rows<WIDE>(slice, begin, from, k0);
            else
                fetch_rows<1>(slice, begin, from, k0);
            if (from == own)
                break;
        }
        fetched_so_far();
    }
    /* The first slices. */
    BL_HD void begin_slices(int top, int own) const
    {
        BL_ROLLED
        for (int step = 0; step < STAGES - 1; step++)
            fetch_slice(ring + step * STAGE, top, own, step * DEPTH);
    }

    /* Products with the columns before `top`, of LIMIT tiles; the warp's rows begin at
     * `first` of a slice. `begun`: the first slices are on their way. */
    template <int LIMIT>
    BL_HD void products(int top, int own, bool begun, int first, bool busy)
    {
        int stage = begun ? 0 : 1;
        BL_ROLLED
        for (int k0 = begun ? 0 : (1 - STAGES) * DEPTH; k0 < top; k0 += DEPTH) {
            await_fetched<STAGES - 2>();
            team.block_sync(); /* it is there, and the one before is done with */
            const T *slice = ring + stage * STAGE;
            /* i of eight; the place of a row and that of the eighth after it are alike */
            auto element = [&](int i, int k) {
                return slice[place(row, lane % 4 + k) + i * (UPPER ? DEPTH : 1)];
            };
            auto multiply = [&](int k) {
                const T a[4] = {element(first, k), element(first + 8, k),
                                element(first, k + 4), element(first + 8, k + 4)};
                BL_UNROLL
                for (int j = 0; j < LIMIT; j++)
                    multiply_tile(x[j], a, element(j * TILE_SIDE, k),
                                  element(j * TILE_SIDE, k + 4));
            };
            const bool multiplies = busy && k0 >= 0;
            if (multiplies)
                multiply(0);
            const int next = k0 + (STAGES - 1) * DEPTH; /* while others multiply */
            if (next < top)
                fetch_slice(ring + (stage + STAGES - 1) % STAGES * STAGE, top, own, next);
            else
                fetched_so_far();
            stage = stage + 1 < STAGES ? stage + 1 : 0;
            if (multiplies)
                BL_UNROLL
            for (int k = 8; k < DEPTH; k += 8)
                multiply(k);
        }
    }

    /* act(number, element) of the lane's numbers that belong to the triangle. */
    template <class F>
    BL_HD void each(int first, int top, F act)
    {
        const int i = here(first) + row, k = top + pair; /* no address is kept for it */
        T *at = &item.at(i, k);
        const int64_t right = UPPER ? 1 : item.lda, down = UPPER ? 8 * item.lda : 8;
        BL_UNROLL
        for (int j = 0; j < TILES; j++, at += 6 * right)
            BL_UNROLL
        for (int e = 0; e < 2; e++, at += right)
            BL_UNROLL
        for (int half = 0; half < 2; half++)
            if (i + half * 8 < item.n && j * TILE_SIDE + e <= i + half * 8 - k)
                act(x[j][half * 2 + e], at[half * down]);
    }
    /* Minus what is left of the chunk when all products are taken out. */
    BL_HD void sum_up(int top, int own, bool begun)
    {
        const int first = own + part;
        const bool busy = first < item.n;
        each(first, top, [](T &y, T &at) { y = at; });
        (void)here(first); /* all are on their way before one is waited for */
        BL_UNROLL
        for (int e = 0; e < 4 * TILES; e++)
            x[e / 4][e % 4] = -x[e / 4][e % 4];
        if (own > top)
            return products<TILES>(top, own, begun, WIDTH + part, busy);
        switch (part / (WIDTH / 4)) {
        case 0:
            return products<TILES / 4>(top, own, begun, part, busy);
        case 1:
            return products<TILES / 2>(top, own, begun, part, busy);
        case 2:
            return products<TILES * 3 / 4>(top, own, begun, part, busy);
        default:
            return products<TILES>(top, own, begun, part, busy);
        }
    }

    /* The warp's rows, below a chunk on the diagonal. */
    BL_HD void solve()
    {
        const Diagonal d(item, s, triangle, team);
        BL_UNROLL
        for (int c = 0; c < WARPS; c++) {
            (void)here(c); /* not all of the triangle is loaded at once */
            const T *const parts = d.part_of(c) + lane * 2;
            solve_tile(x[2 * c], d.load(parts));
            d.multiply_own(x[2 * c + 1], x[2 * c], d.load(parts + d.BETWEEN));
            solve_tile(x[2 * c + 1], d.load(parts + d.PAIRS));
            BL_UNROLL
            for (int i = c + 1; i < WARPS; i++)
                BL_UNROLL
            for (int q = 2 * c; q < 2 * c + 2; q++) {
                const TilePair<T> even = d.load(d.place(i, q, 0)),
                                  odd = d.load(d.place(i, q, 1));
                d.multiply_own(x[2 * i], x[q], {even.x[0], odd.x[0]});
                d.multiply_own(x[2 * i + 1], x[q], {even.x[1], odd.x[1]});
            }
        }
    }
    static BL_HD void solve_tile(T (&minus)[4], TilePair<T> inverse)
    {
        T y[4] = {0, 0, 0, 0};
        Diagonal::multiply_own(y, minus, {-inverse.x[0], -inverse.x[1]});
        BL_UNROLL
        for (int e = 0; e < 4; e++)
            minus[e] = y[e];
    }

    /* Factors the chunk on the diagonal. INFO. */
    BL_HD int factor(int top)
    {
        MidCholeskyItem<T, UPPER> block = item;
        block.n = item.n - top < WIDTH ? item.n - top : WIDTH;
        block.a = &item.at(top, top);
        Diagonal(block, s, triangle, team).factor_all();
        return s.bad ? top + s.bad : 0;
    }

    BL_HD void run(const MidCholesky &g)
    {
        int bad = 0, top = 0, own = 0;
        bool begun = false;
        BL_ROLLED
        while (top < item.n && !bad) {
            const bool diagonal = own == top, last = own + WIDTH >= item.n;
            const int next_top = last ? top + WIDTH : top,
                      next = last ? next_top : own + WIDTH;
            BL_UNROLL
            for (int e = 0; e < 4 * TILES; e++) /* nothing is kept from chunk to chunk */
                x[e / 4][e % 4] = 0;
            if (top > 0 || !diagonal)
                sum_up(top, own, begun);
            if (top > 0 && diagonal)
                each(own + part, top, [](T &y, T &at) { at = -y; });
            team.block_sync(); /* the slices are done with, and written what is read */
            /* The second panel's first slices may not be solved for yet. */
            begun = top > 0 && next < item.n;
            if (begun)
                begin_slices(next_top, next);
            if (diagonal) {
                bad = factor(top);
            } else {
                solve();
                each(own + part, top, [](T &y, T &at) { at = y; });
            }
            top = next_top;
            own = next;
        }
        await_fetched<0>();
        if (team.thread == 0)
            item.put_info(g, bad);
    }
};

} // namespace bl
#endif
