/* POTRF in fast arithmetic on the matrix units of sm_90 and up, single and double, beyond
 * the sizes that fit a multiprocessor twice: left-looking by panels of 64 columns.
 *
 * Instantiated by mid_cholesky_fast.cu and by test/host_mid_cholesky.cc, where threads
 * are fibers. A block takes some rows of a panel, 128 at a time, a warp 16 of them, which
 * it holds in registers as minus the sums of its matrix products; slices of the columns
 * on the left go by through shared memory. A column of tiles that is done is also, as it
 * lies in registers, the left factor of what it is to be taken out of, so that a warp
 * solves for its rows without another's help. The first time 64 of the rows are those of
 * the block on the diagonal. Where a matrix has several blocks, each factors that block
 * for itself, and a panel is a launch.
 *
 * Both triangles are the same numbers v(i, k), as in mid_cholesky_block.cuh, and take the
 * same operations; the fast order promises no more than a small residual.
 */
#ifndef BL_MID_CHOLESKY_FAST_CUH
#define BL_MID_CHOLESKY_FAST_CUH

#include "mid_cholesky.cuh"
#include "mid_tile.cuh"

namespace bl
{

/* What the kernel is told besides the job. */
struct MidCholeskyFast {
    MidCholesky job;
    int blocks; /* a matrix */
    int first_panel, end_panel;
    /* Where a matrix has several blocks: the triangle of the panel before, which others
     * might still have had to read where it belongs. */
    void *kept;
};

/* A warp: factors the block of order n on the diagonal; INFO. Then minus the inverses of
 * its tiles of 8 x 8 to `inverse`, row after row: eight lanes a tile, a lane a column.
 */
template <class T>
BL_CALL int factor_and_invert(T *block, T *scale, int n, T *inverse, int lane)
{
    const Team team = {lane, LANES};
    const int bad = DiagonalBlock<T, BY_PRODUCTS>{block, scale, n, team}.factor();
    if (bad)
        return bad;
    team.warp_sync();
    const int own = lane % TILE_SIDE, f = lane - own;
    const T *tile = block + f * BLOCK_PITCH<T> + f;
    T z[TILE_SIDE];
    BL_UNROLL
    for (int i = 0; i < TILE_SIDE; i++) {
        T y = i == own ? 1 : 0;
        BL_UNROLL
        for (int k = 0; k < i; k++)
            y = fma(-tile[k * BLOCK_PITCH<T> + i], z[k], y);
        z[i] = y * scale[f + i];
        if (f + TILE_SIDE <= n) /* others are nobody's */
            inverse[f * TILE_SIDE + i * TILE_SIDE + own] = -z[i];
    }
    return 0;
}

template <class T, bool UPPER>
struct FastCholesky {
    static constexpr int WARPS = 8, WIDTH = 64, TILES = WIDTH / TILE_SIDE;
    static constexpr int WARP_ROWS = 16, ROWS = WARPS * WARP_ROWS;
    /* Slices: of the rows of the block on the diagonal and of ROWS more. Where rows lie
     * along memory they are not padded: the groups of four numbers of a row change
     * places. */
    static constexpr int DEPTH = 16, STAGES = 3, SLICE_ROWS = WIDTH + ROWS;
    static constexpr int PITCH = SLICE_ROWS + 32 / int(sizeof(T)), STAGE = DEPTH * PITCH;
    static constexpr int BLOCK = BLOCK_ELEMENTS<T>, BLOCK_LD = BLOCK_PITCH<T>;
    /* The triangle as three blocks, and minus the inverses of the tiles on its diagonal.
     */
    static constexpr int KEPT = 3 * BLOCK;
    static constexpr int ELEMENTS = STAGES * STAGE + KEPT + TILES * TILE_SIZE;

    const MidCholeskyFast &g;
    MidCholeskyShared<T> &s;
    const Team &team;
    const MidCholeskyItem<T, UPPER> item;
    T *const ring, *const triangle, *const inverse;
    const int64_t number;
    const int lane, warp, row, pair; /* row and pair: lane / 4 and 2 (lane % 4) */
    int end;                         /* of the block's rows */
    T x[TILES][4];

    BL_HD FastCholesky(const MidCholeskyFast &what, MidCholeskyShared<T> &shared,
                       T *memory, const Team &its_team, int64_t which)
        : g(what), s(shared), team(its_team), item(what.job, which), ring(memory),
          triangle(memory + STAGES * STAGE), inverse(triangle + KEPT), number(which),
          lane(its_team.lane()), warp(its_team.thread / LANES), row(lane / 4),
          pair(lane % 4 * 2)
    {
    }

    /* Block (h, k) of the triangle, in halves of the panel. */
    BL_HD T *half(int h, int k) const
    {
        return triangle + (h + k) * BLOCK;
    }
    BL_HD static int place(int i, int k)
    {
        return UPPER ? i * DEPTH + (k ^ i / (8 / int(sizeof(T))) % 4 * 4) : k * PITCH + i;
    }

    /* Columns k0 to k0 + DEPTH of the panel's rows and, from `own` on, of others: `rows`
     * in all. */
    BL_HD void fetch_slice(T *slice, int k0, int top, int own, int rows) const
    {
        const int thread = here(team.thread);
        const int i = UPPER ? thread / DEPTH : thread % LANES,
                  k = UPPER ? thread % DEPTH : thread / LANES;
        auto fetch_some =
            [&](int begin, int from,
                int limit) { /* WIDTH rows */
                             const T *source = &item.at(from + i, k0 + k);
                             T *to = slice + place(begin + i, k);
                             BL_UNROLL
                             for (int q = 0; q < 4; q++) {
                                 const int down = UPPER ? q * 16 : q / 2 * LANES;
                                 const bool there = from + i + down < limit;
                                 fetch(to + (UPPER ? down * DEPTH
                                                   : down + q % 2 * WARPS * PITCH),
                                       there ? source + (UPPER ? down * item.lda
                                                               : down + q % 2 * WARPS *
                                                                            item.lda)
                                             : item.a,
                                       there);
                             }
            };
        static_assert(WARPS * LANES * 4 == WIDTH * DEPTH && DEPTH == 2 * WARPS);
        fetch_some(0, top, item.n);
        for (int begin = WIDTH; begin < rows; begin += WIDTH)
            fetch_some(begin, own + begin - WIDTH, end);
        fetched_so_far();
    }

    /* Products with the columns before `top` of the rows from `first` of a slice on. */
    BL_HD void products(int top, int own, int rows, int first, bool busy)
    {
        const int steps = top / DEPTH;
        for (int step = 0; step < steps; step++) {
            await_fetched<STAGES - 2>();
            team.block_sync(); /* it is there, and the one before is done with */
            const int next = step + STAGES - 1;
            if (next < steps)
                fetch_slice(ring + next % STAGES * STAGE, next * DEPTH, top, own, rows);
            else
                fetched_so_far();
            if (!busy)
                continue;
            const T *slice = ring + step % STAGES * STAGE;
            BL_UNROLL
            for (int step_k = 0; step_k < DEPTH; step_k += 8) {
                const int k = step_k + lane % 4;
                T a[4];
                BL_UNROLL
                for (int e = 0; e < 4; e++)
                    a[e] = slice[place(first + row + e % 2 * 8, k + e / 2 * 4)];
                BL_UNROLL
                for (int j = 0; j < TILES; j++)
                    multiply_tile(x[j], a, slice[place(j * TILE_SIDE + row, k)],
                                  slice[place(j * TILE_SIDE + row, k + 4)]);
            }
        }
    }

    /* act(number, row, column) of the lane's numbers; the warp's rows begin at `first`.
     */
    template <class F>
    BL_HD void each(int first, int column, F act)
    {
        BL_UNROLL
        for (int j = 0; j < TILES; j++)
            BL_UNROLL
        for (int e = 0; e < 4; e++)
            act(x[j][e], first + row + e / 2 * 8, column + j * TILE_SIDE + pair + e % 2);
    }
    BL_HD void begin(int first, int top, bool busy)
    {
        each(first, top, [&](T &y, int i, int k) {
            y = busy && i < item.n && k <= i ? -item.at(i, k) : 0;
        });
    }
    BL_HD void store(int first, int top)
    {
        each(first, top, [&](T y, int i, int k) {
            if (i < end)
                item.at(i, k) = y;
        });
    }

    /* Half `of` of the columns of rows 32 h to 32 h + 31, of which the warp has 16. */
    BL_HD void put_half(int h, int of, bool minus) const
    {
        T *to = half(h, of) + warp % 2 * WARP_ROWS;
        BL_UNROLL
        for (int j = 0; j < TILES / 2; j++)
            BL_UNROLL
        for (int e = 0; e < 4; e++) {
            const T y = x[of * (TILES / 2) + j][e];
            to[(j * TILE_SIDE + pair + e % 2) * BLOCK_LD + row + e / 2 * 8] =
                minus ? -y : y;
        }
    }

    /* x[j] += y L', where L is tile (j, k) of `block`. */
    BL_HD void take_out(T (&c)[4], const T (&y)[4], const T *block, int j, int k) const
    {
        const T a[4] = {y[0], y[2], y[1], y[3]};
        const T *l = block + (k * TILE_SIDE + pair) * BLOCK_LD + j * TILE_SIDE + row;
        multiply_tile(c, a, l[0], l[BLOCK_LD]);
    }
    /* The columns of a half, which have had all products but their own. */
    template <int H>
    BL_HD void solve()
    {
        constexpr int FIRST = H * (TILES / 2);
        BL_UNROLL
        for (int k = 0; k < TILES / 2; k++) {
            (void)here(k);
            T(&own)[4] = x[FIRST + k];
            const T a[4] = {own[0], own[2], own[1], own[3]};
            const T *tile = inverse + (FIRST + k) * TILE_SIZE + row * TILE_SIDE + pair;
            T y[4] = {0, 0, 0, 0};
            multiply_tile(y, a, tile[0], tile[1]);
            BL_UNROLL
            for (int e = 0; e < 4; e++)
                own[e] = y[e];
            BL_UNROLL
            for (int j = k + 1; j < TILES / 2; j++)
                take_out(x[FIRST + j], y, half(H, H), j, k);
        }
    }
    BL_HD void take_out_first_half()
    {
        BL_UNROLL
        for (int k = 0; k < TILES / 2; k++) {
            (void)here(k); /* not all of the triangle is loaded at once */
            BL_UNROLL
            for (int j = 0; j < TILES / 2; j++)
                take_out(x[TILES / 2 + j], x[k], half(1, 0), j, k);
        }
    }

    /* The sums make room for what factors a block, in the slices' place. */
    BL_HD void put_aside() const
    {
        BL_UNROLL
        for (int e = 0; e < TILES * 4; e++)
            ring[e * (WARPS * LANES) + team.thread] = x[e / 4][e % 4];
    }
    BL_HD void take_back()
    {
        BL_UNROLL
        for (int e = 0; e < TILES * 4; e++)
            x[e / 4][e % 4] = ring[e * (WARPS * LANES) + team.thread];
    }
    /* The block, whose first warp factors block (h, h). */
    BL_HD void factor_half(int h, int width)
    {
        team.block_sync(); /* it is there, and the slices are done with */
        put_aside();
        const int rest = width - h * SIDE, columns = rest < SIDE ? rest : SIDE;
        if (warp == 0 && columns > 0 && s.bad == 0) {
            const int bad =
                factor_and_invert(half(h, h), s.scale, columns,
                                  inverse + h * (TILES / 2) * TILE_SIZE, lane);
            if (bad && lane == 0)
                s.bad = h * SIDE + bad;
        }
        team.block_sync();
        take_back();
    }

    /* Warps 0 to 2: `width` rows and columns of the triangle at `top`, which lie at
     * `from`. */
    BL_HD void store_triangle(const T *from, int top, int width) const
    {
        const int h = warp > 0, k = warp == 2, rows = width - h * SIDE;
        const int columns = width - k * SIDE;
        if (warp < 3 && rows > 0)
            item.store_block(from + warp * BLOCK, top + h * SIDE,
                             rows < SIDE ? rows : SIDE, top + k * SIDE,
                             columns < SIDE ? columns : SIDE, h == k, lane);
    }

    BL_HD T *kept() const
    {
        return (T *)g.kept + number * KEPT;
    }

    BL_HD void begin_slices(int top, int own, int rows) const
    {
        team.block_sync(); /* what was there is done with, and written what is read */
        for (int step = 0; step < STAGES - 1; step++) {
            if (step * DEPTH < top)
                fetch_slice(ring + step * STAGE, step * DEPTH, top, own, rows);
            else
                fetched_so_far();
        }
    }
    /* Rows from `own` on: ROWS or, the first time, WIDTH and the triangle, of which the
     * first half of the warps have the rows. False: INFO. */
    BL_HD bool chunk(int p, int own, bool first_time, bool stores)
    {
        const int top = p * WIDTH, width = item.n - top < WIDTH ? item.n - top : WIDTH;
        const bool diagonal = first_time && warp < WARPS / 2;
        const int place_in_slice = (first_time ? 0 : WIDTH) + warp * WARP_ROWS;
        const int first = diagonal ? top + place_in_slice : own + place_in_slice - WIDTH;
        const bool busy = first < (diagonal ? item.n : end);
        const int rows = first_time ? 2 * WIDTH : SLICE_ROWS;
        begin_slices(top, own, rows);
        begin(first, top, busy);
        products(top, own, rows, place_in_slice, busy);
        if (first_time) {
            if (warp < 2)
                put_half(0, 0, true);
            factor_half(0, width);
        }
        if (busy && (!diagonal || warp >= 2) && s.bad == 0)
            solve<0>();
        if (first_time) {
            if (warp == 2 || warp == 3)
                put_half(1, 0, false);
            team.block_sync();
        }
        if (busy && (!diagonal || warp >= 2) && s.bad == 0)
            take_out_first_half();
        if (first_time) {
            if (warp == 2 || warp == 3)
                put_half(1, 1, true);
            factor_half(1, width);
        }
        if (busy && !diagonal && s.bad == 0) {
            solve<1>();
            store(first, top);
        }
        if (first_time && stores)
            finish_triangle(p, width);
        return s.bad == 0;
    }
    BL_HD void finish_triangle(int p, int width) const
    {
        const int top = p * WIDTH, bad = s.bad;
        if (!g.kept || top + WIDTH >= item.n)
            store_triangle(triangle, top, bad ? bad - 1 : width);
        else
            for (int e = team.thread; e < KEPT; e += WARPS * LANES)
                kept()[e] = triangle[e];
        if (team.thread == 0 && (bad || p == 0))
            item.put_info(g.job, bad ? top + bad : 0);
    }

    /* Block `block` of the matrix's. */
    BL_HD void run(int block)
    {
        if (g.first_panel > 0) {
            const int64_t info = item.info_of(g.job);
            const int before = (g.first_panel - 1) * WIDTH;
            const int done = info ? int(info) - 1 - before : WIDTH;
            if (g.kept && block == 0 && before + WIDTH < item.n && done > 0)
                store_triangle(kept(), before, done);
            if (info)
                return;
        }
        if (team.thread == 0)
            s.bad = 0;
        for (int p = g.first_panel; p < g.end_panel && p * WIDTH < item.n; p++) {
            const int below = (p + 1) * WIDTH, rest = item.n - below;
            const int units = rest > 0 ? (rest + WIDTH - 1) / WIDTH : 0;
            const int share = (units + g.blocks - 1) / g.blocks * WIDTH;
            const int own = below + block * share;
            if (block > 0 && own >= item.n)
                return;
            end = own + share < item.n ? own + share : item.n;
            bool first_time = true;
            for (int i = own, next; first_time || i < end; i = next, first_time = false) {
                next = i + (first_time ? WIDTH : ROWS);
                if (!chunk(p, i, first_time, block == 0))
                    return;
            }
        }
    }
};

} // namespace bl
#endif
