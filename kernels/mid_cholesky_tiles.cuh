/* POTRF in fast arithmetic on the matrix units of sm_90 and up, single and double, of
 * what fits the shared memory of a multiprocessor: left-looking by panels of 16 columns.
 *
 * Instantiated by mid_cholesky_fast.cu and by test/host_mid_cholesky.cc, where threads
 * are fibers. A block takes a matrix, a warp every W-th tile of 16 rows, of which it
 * holds the panel's columns in registers. One warp factors the panel's tile on the
 * diagonal while the others begin with the next panel. What is done is kept in shared
 * memory as the matrix units want it, which is how it lies in registers: a lane's numbers
 * of a tile of 16 x 8 are its part of a left factor and, of either half, of a right
 * factor.
 *
 * Both triangles are the same numbers v(i, k), as in mid_cholesky_block.cuh, and take the
 * same operations; the fast order promises no more than a small residual.
 */
#ifndef BL_MID_CHOLESKY_TILES_CUH
#define BL_MID_CHOLESKY_TILES_CUH

#include "mid_cholesky.cuh"
#include "mid_tile.cuh"

namespace bl
{

/* A tile of 8 x 8 as it lies in registers: a lane has columns 2 t and 2 t + 1 of row g,
 * lane = 4 g + t. In memory that is row after row. */
template <class T>
struct TilePair {
    T x[2];
};

/* What is the same in all lanes of a warp; the compiler sees that it is. */
BL_HD int of_warp(int x)
{
#ifdef __CUDACC__
    return __shfl_sync(~0u, x, 0);
#else
    return x;
#endif
}

/* Eight columns of some rows, a row a lane: lane i < 8 has row i of a tile on the
 * diagonal, which becomes its factor; what the other lanes have, rows of the unit matrix
 * or from below the tile, is solved with that. Columns are divided by their pivots where
 * they are taken out, so that the chain from pivot to pivot has no root in it; the tile's
 * columns come by way of `columns`, 64 elements of shared memory, in the shadow of the
 * reciprocal, and the roots are taken at the end, a lane each. False: there is a pivot
 * that only factor_carefully() can do. */
template <class T>
BL_HD bool factor_rows(T (&x)[TILE_SIDE], T *columns, const Team &team)
{
    const int lane = team.lane();
    unsigned most = 0;
    BL_UNROLL
    for (int k = 0; k < TILE_SIDE; k++) {
        T *const column = columns + k * TILE_SIDE;
        if (lane < TILE_SIDE)
            column[lane] = x[k];
        team.warp_sync();
        T tile[TILE_SIDE];
        BL_UNROLL
        for (int j = k; j < TILE_SIDE; j++)
            tile[j] = column[j];
        const T pivot = tile[k];
        const NearReciprocal<T> over(pivot);
        const unsigned key = near_root_key(pivot);
        most = key > most ? key : most;
        const T seed = x[k] * over.seed, factor = fma(seed, over.rest, seed);
        BL_UNROLL
        for (int j = k + 1; j < TILE_SIDE; j++)
            x[j] = fma(-factor, tile[j], x[j]);
    }
    const int own = lane % TILE_SIDE;
    const T scale = near_inverse_root(columns[own * TILE_SIDE + own]);
    team.warp_sync();
    if (lane < TILE_SIDE)
        columns[lane] = scale;
    team.warp_sync();
    BL_UNROLL
    for (int k = 0; k < TILE_SIDE; k++)
        x[k] = x[k] * columns[k];
    return is_near_root<T>(most);
}

/* The same whatever the pivots are, of rows in shared memory (NULL: the lane has none).
 * INFO, the same in all lanes. */
template <class T>
BL_CALL int factor_carefully(T *row)
{
    T x[TILE_SIDE];
    for (int j = 0; j < TILE_SIDE; j++)
        x[j] = row ? row[j] : 0;
    int bad = 0;
    for (int k = 0; k < TILE_SIDE && !bad; k++) {
        const T pivot = from_lane(x[k], k);
        if (!(pivot > 0)) {
            bad = k + 1;
            continue;
        }
        x[k] = div(x[k], root(pivot));
        for (int j = k + 1; j < TILE_SIDE; j++)
            x[j] = fma(-x[k], from_lane(x[k], j), x[j]);
    }
    for (int j = 0; j < TILE_SIDE && row; j++)
        row[j] = x[j];
    return bad;
}

/* W warps, OWN tiles each at most. WHOLE: what solves with a tile on the diagonal is kept
 * of all panels, for who has rows below the matrix. */
template <class T, bool UPPER, int W, int OWN, bool WHOLE = false>
struct TileCholesky {
    static constexpr int HIGH = 16; /* rows of a tile, columns of a panel */
    static constexpr int MOST = W * OWN * HIGH;
    static constexpr int PAIRS = LANES * 2, TILE = 2 * PAIRS; /* elements */
    /* Rows of tiles that are kept. What there is no room for, and only its own warp looks
     * at, a lane reads again where it has written it. */
    static constexpr int KEPT = sizeof(T) == 8 ? 15 : 16;

    /* Of the panel's own tile: the two inverses, what is between them, and room for who
     * factors it. */
    static constexpr int BETWEEN = 2 * PAIRS, ROOM = 3 * PAIRS, OF_PANEL = 4 * PAIRS;

    static constexpr int OF_PANELS = (WHOLE ? W * OWN : 1) * OF_PANEL;

    /* That, and tiles of 16 x 8 left of the diagonal's. */
    static BL_BOTH constexpr int elements(int n)
    {
        const int tiles = (n + HIGH - 1) / HIGH, kept = tiles < KEPT ? tiles : KEPT;
        return OF_PANELS + kept * (kept - 1) * TILE;
    }

    MidCholeskyShared<T> &s;
    const Team &team;
    const MidCholeskyItem<T, UPPER> item;
    T *const panel_parts, *const done;
    const int lane, warp, row, pair, tiles; /* row and pair: lane / 4 and 2 (lane % 4) */
    using Part = T[OWN][2][4];              /* of a panel, in two halves */

    BL_HD TileCholesky(const MidCholesky &g, MidCholeskyShared<T> &shared, T *memory,
                       const Team &its_team, int64_t number)
        : TileCholesky(MidCholeskyItem<T, UPPER>(g, number), shared, memory, its_team)
    {
    }
    BL_HD TileCholesky(const MidCholeskyItem<T, UPPER> &its_item,
                       MidCholeskyShared<T> &shared, T *memory, const Team &its_team)
        : s(shared), team(its_team), item(its_item), panel_parts(memory),
          done(memory + OF_PANELS), lane(its_team.lane()),
          warp(of_warp(its_team.thread / LANES)), row(lane / 4), pair(lane % 4 * 2),
          tiles((item.n + HIGH - 1) / HIGH)
    {
    }

    BL_HD T *part_of(int p) const
    {
        return panel_parts + (WHOLE ? p * OF_PANEL : 0);
    }
    BL_HD int tile_of(int m) const
    {
        return warp + m * W;
    }
    /* Does the warp have an m-th tile from row `first` of tiles on? */
    BL_HD bool has(int m, int first) const
    {
        return tile_of(m) >= first && tile_of(m) < tiles;
    }
    /* Of tile (i, q), i > q / 2, what a lane has of columns 2 t + e: of row g and of row
     * g + 8, which is the order of a left factor. */
    BL_HD T *place(int i, int q, int e) const
    {
        return done + (i * (i - 1) + q) * TILE + e * PAIRS + lane * 2;
    }
    /* A right factor from there: of half `h` of the rows. */
    static BL_HD TilePair<T> half(const T *at, int h)
    {
        return {at[h], at[PAIRS + h]};
    }
    /* The same of a tile that is in memory alone. */
    BL_HD TilePair<T> written(int i, int q, int h) const
    {
        const int r = i * HIGH + h * 8 + row, k = q * 8 + pair;
        TilePair<T> y = {0, 0};
        if (r < item.n)
            y = {item.at(r, k), item.at(r, k + 1)};
        return y;
    }
    BL_HD TilePair<T> factor_of(int i, int q, int h) const
    {
        return i < KEPT ? half(place(i, q, 0), h) : written(i, q, h);
    }
    static BL_HD TilePair<T> load(const T *from)
    {
        struct alignas(2 * sizeof(T)) Both {
            T x[2];
        };
        const Both both = *(const Both *)from;
        return {both.x[0], both.x[1]};
    }
    static BL_HD void keep(T *to, T a, T b)
    {
        struct alignas(2 * sizeof(T)) Both {
            T x[2];
        };
        *(Both *)to = Both{a, b};
    }
    /* c += a b', a tile of 16 x 8 and one of 8 x 8; `a` as place() has it. */
    static BL_HD void multiply(T (&c)[4], const T (&a)[4], TilePair<T> b)
    {
        multiply_tile(c, a, b.x[0], b.x[1]);
    }
    static BL_HD void multiply_own(T (&c)[4], const T (&a)[4], TilePair<T> b)
    {
        multiply(c, {a[0], a[2], a[1], a[3]}, b);
    }

    /* Is tile i, below panel p, one without an edge of the matrix? */
    BL_HD bool is_inner(int i, int p) const
    {
        return i > p && (i + 1) * HIGH <= item.n;
    }
    /* Element e of a lane's part of tile i of panel p, from the element at `first`, its
     * first. */
    BL_HD T &inner(T *first, int e) const
    {
        const int down = e / 2 % 2 * 8, right = e / 4 * 8 + e % 2;
        return UPPER ? first[right + down * item.lda] : first[down + right * item.lda];
    }
    /* Of panel p what the warp has, as it was; beyond the matrix, of the unit matrix. */
    BL_HD void begin(Part &x, int p) const
    {
        BL_UNROLL
        for (int m = 0; m < OWN; m++) {
            const int i = tile_of(m), r = i * HIGH + row, k = p * HIGH + pair;
            if (!has(m, p))
                continue;
            if (is_inner(i, p)) {
                T *const first = &item.at(r, k);
                BL_UNROLL
                for (int e = 0; e < 8; e++)
                    x[m][e / 4][e % 4] = inner(first, e);
                continue;
            }
            BL_UNROLL
            for (int e = 0; e < 8; e++) {
                const int down = r + e / 2 % 2 * 8, right = k + e / 4 * 8 + e % 2;
                T &y = x[m][e / 4][e % 4];
                y = down == right ? 1 : 0;
                if (down < item.n && right <= down)
                    y = item.at(down, right);
            }
        }
    }
    /* Less its products with columns 8 from .. 8 end. */
    BL_HD void products(Part &x, int p, int from, int end) const
    {
        if (tile_of(OWN - 1) >= KEPT || p >= KEPT) {
            BL_UNROLL_BY_FOUR
            for (int q = from; q < end; q++)
                BL_UNROLL
            for (int m = 0; m < OWN; m++)
                if (has(m, p)) {
                    const TilePair<T> a0 = factor_of(tile_of(m), q, 0),
                                      a1 = factor_of(tile_of(m), q, 1);
                    less_product(x[m], {a0.x[0], a1.x[0], a0.x[1], a1.x[1]},
                                 factor_of(p, q, 0), factor_of(p, q, 1));
                }
            return;
        }
        const T *right = place(p, from, 0), *left[OWN];
        BL_UNROLL
        for (int m = 0; m < OWN; m++)
            left[m] = has(m, p) ? place(tile_of(m), from, 0) : right;
        BL_UNROLL_BY_TWO
        for (int q = from; q < end; q++) {
            const TilePair<T> b0 = half(right, 0), b1 = half(right, 1);
            BL_UNROLL
            for (int m = 0; m < OWN; m++) { /* of what there is not it is of no use */
                const TilePair<T> a0 = load(left[m]), a1 = load(left[m] + PAIRS);
                less_product(x[m], {a0.x[0], a0.x[1], a1.x[0], a1.x[1]}, b0, b1);
                left[m] += TILE;
            }
            right += TILE;
        }
    }
    static BL_HD void less_product(T (&x)[2][4], const T (&a)[4], TilePair<T> b0,
                                   TilePair<T> b1)
    {
        multiply(x[0], a, {-b0.x[0], -b0.x[1]});
        multiply(x[1], a, {-b1.x[0], -b1.x[1]});
    }

    /* The tile on the diagonal of panel p, by the warp that has it: its halves by
     * factor_rows(), where lanes 8 to 15 have the unit matrix and lanes 16 to 23, the
     * first time, the rows below. */
    BL_HD void factor(T (&d)[2][4], int p) const
    {
        const int part = lane / 8, own = lane % 8;
        BL_ROLLED
        for (int h = 0; h < 2; h++) {
            const int top = p * HIGH + h * 8;
            T *const between = part_of(p) + BETWEEN,
                     *const inverse = part_of(p) + h * PAIRS,
                     *const room = part_of(p) + ROOM;
            const bool above = part == 0, unit = part == 1, below = part == 2 && h == 0;
            T *const mine = (above ? inverse : unit ? room : between) + own * TILE_SIDE;
            keep(inverse + lane * 2, choose(h == 0, d[0][0], d[1][2]),
                 choose(h == 0, d[0][1], d[1][3]));
            if (h == 0)
                keep(between + lane * 2, d[0][2], d[0][3]);
            team.warp_sync();
            T x[TILE_SIDE];
            BL_UNROLL
            for (int j = 0; j < TILE_SIDE; j++)
                x[j] = j == own ? 1 : 0;
            if (above || below)
                BL_UNROLL
            for (int j = 0; j < TILE_SIDE; j++)
                x[j] = mine[j];
            int bad = 0;
            if (!factor_rows(x, room, team)) {
                team.warp_sync();
                if (unit)
                    BL_UNROLL
                for (int j = 0; j < TILE_SIDE; j++)
                    mine[j] = j == own ? 1 : 0;
                bad = factor_carefully(above || unit || below ? mine : nullptr);
                if (above || unit || below)
                    BL_UNROLL
                for (int j = 0; j < TILE_SIDE; j++)
                    x[j] = mine[j];
            }
            team.warp_sync();
            const int i = top + lane - part * 4, end = bad ? top + bad - 1 : item.n;
            if (unit) {
                BL_UNROLL
                for (int j = 0; j < TILE_SIDE; j++)
                    inverse[j * TILE_SIDE + own] = x[j];
            } else if ((above || below) && i < end) {
                T *to = &item.at(i, top);
                BL_UNROLL
                for (int j = 0; j < TILE_SIDE; j++) {
                    if (below || j <= own)
                        *to = x[j];
                    to += UPPER ? 1 : item.lda;
                }
                if (below)
                    BL_UNROLL
                for (int j = 0; j < TILE_SIDE; j++)
                    mine[j] = x[j];
            }
            if (bad) {
                if (lane == 0)
                    s.bad = top + bad;
                return;
            }
            team.warp_sync();
            if (h == 0) {
                const TilePair<T> y = load(between + lane * 2);
                multiply_own(d[1], {0, 0, y.x[0], y.x[1]}, {-y.x[0], -y.x[1]});
            }
        }
    }

    /* The tiles below it. */
    BL_HD void solve(Part &x, int p) const
    {
        const TilePair<T> inverse0 = load(part_of(p) + lane * 2),
                          inverse1 = load(part_of(p) + PAIRS + lane * 2),
                          between = load(part_of(p) + BETWEEN + lane * 2);
        BL_UNROLL
        for (int m = 0; m < OWN; m++) {
            const int i = tile_of(m), r = i * HIGH + row, k = p * HIGH + pair;
            if (!has(m, p + 1))
                continue;
            T y[2][4] = {};
            multiply_own(y[0], x[m][0], inverse0);
            multiply_own(x[m][1], y[0], {-between.x[0], -between.x[1]});
            multiply_own(y[1], x[m][1], inverse1);
            if (i < KEPT)
                BL_UNROLL
            for (int e = 0; e < 4; e++)
                keep(place(i, 2 * p + e / 2, e % 2), y[e / 2][e % 2],
                     y[e / 2][e % 2 + 2]);
            const bool whole = is_inner(i, p);
            T *const first = &item.at(r, k);
            BL_UNROLL
            for (int e = 0; e < 8; e++)
                if (whole || r + e / 2 % 2 * 8 < item.n)
                    inner(first, e) = y[e / 4][e % 4];
        }
    }

    BL_HD void run(const MidCholesky &g)
    {
        factor_all();
        if (team.thread == 0)
            item.put_info(g, s.bad);
    }
    /* All but INFO, which is left in `s`. */
    BL_HD void factor_all()
    {
        Part x = {}, ahead = {}; /* what is to be factored of a panel, of the next */
        if (team.thread == 0)
            s.bad = 0;
        begin(x, 0);
        team.block_sync();
        BL_ROLLED
        for (int p = 0; p < tiles; p++) {
            const bool factors = p % W == warp, ends = p + 1 == tiles;
            if (!ends)
                begin(ahead, p + 1);
            if (factors) {
                T d[2][4] = {};
                BL_UNROLL
                for (int m = 0; m < OWN; m++)
                    BL_UNROLL
                for (int e = 0; e < 8 && tile_of(m) == p; e++)
                    d[e / 4][e % 4] = x[m][e / 4][e % 4];
                factor(d, p);
            } else if (!ends) {
                products(ahead, p + 1, 0, 2 * p);
            }
            team.block_sync();
            if (s.bad || ends)
                break;
            solve(x, p);
            team.block_sync();
            products(ahead, p + 1, factors ? 0 : 2 * p, 2 * p + 2);
            BL_UNROLL
            for (int e = 0; e < OWN * 8; e++)
                x[e / 8][e / 4 % 2][e % 4] = ahead[e / 8][e / 4 % 2][e % 4];
        }
    }
};

} // namespace bl
#endif
