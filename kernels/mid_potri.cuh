/* POTRI on the matrix units of sm_90 and up, double, for orders up to 128: the factor is
 * read once into shared memory, the inverse written once.
 *
 * Instantiated by mid_potri.cu and by test/host_mid_cholesky.cc, where threads are
 * fibers. X = inv(A) by rows: Y L' = I, then X L = Y. A warp has 16 rows of X, of which
 * the columns from the diagonal on are enough, in registers as minus the sums of its
 * matrix products, and needs no other warp's: a column of tiles that is done is also, as
 * it lies there, the left factor of what it is to be taken out of. Both triangles are the
 * same numbers v(i, k), as in mid_cholesky_block.cuh. Of a matrix whose factor has a zero
 * on its diagonal nothing is written.
 */
#ifndef BL_MID_POTRI_CUH
#define BL_MID_POTRI_CUH

#include "mid_cholesky.cuh"
#include "mid_tile.cuh"

namespace bl
{

/* Orders up to 8 TILES. Shared memory: the tiles of the triangle, row of tiles after row
 * of tiles, later Y'; and minus the inverses of those on the diagonal. A tile lies by
 * columns, of which those with bit 2 have their halves change places, for the banks'
 * sake. */
template <bool UPPER, int TILES>
struct MidPotri {
    static constexpr int WARPS = TILES / 2, THREADS = WARPS * LANES;
    static constexpr int ON_DIAGONAL = TILES * (TILES + 1) / 2 * TILE_SIZE;
    static constexpr int ELEMENTS = ON_DIAGONAL + TILES * TILE_SIZE;

    const Team &team;
    const MidCholeskyItem<double, UPPER> item;
    double *const tiles;
    const int lane, warp, row, pair; /* row and pair: lane / 4 and 2 (lane % 4) */
    double x[TILES][4];

    BL_HD MidPotri(const MidCholesky &g, double *memory, const Team &its_team,
                   int64_t number)
        : team(its_team), item(g, number), tiles(memory), lane(its_team.lane()),
          warp(its_team.thread / LANES), row(lane / 4), pair(lane % 4 * 2)
    {
    }

    BL_HD static int place(int i, int k)
    {
        return k * TILE_SIDE + (i ^ (k & 4));
    }
    BL_HD double *tile(int i, int k) const
    {
        return tiles + (i * (i + 1) / 2 + k) * TILE_SIZE;
    }
    BL_HD double *inverse(int k) const
    {
        return tiles + ON_DIAGONAL + k * TILE_SIZE;
    }

    /* v, with the identity beyond it; neighbours in memory by neighbouring lanes. */
    BL_HD void fetch_triangle() const
    {
        for (int far = warp; far < TILES * TILE_SIDE; far += WARPS) {
            const int edge = far / TILE_SIDE * TILE_SIDE;
            const int begin = UPPER ? 0 : edge,
                      end = UPPER ? edge + TILE_SIDE : TILES * TILE_SIDE;
            for (int near = begin + lane; near < end; near += LANES) {
                const int i = UPPER ? far : near, k = UPPER ? near : far;
                double *to = tile(i / TILE_SIDE, k / TILE_SIDE) +
                             place(i % TILE_SIDE, k % TILE_SIDE);
                const bool there = i < item.n && k <= i;
                if (i == k && !there)
                    *to = 1;
                else
                    fetch(to, there ? &item.at(i, k) : item.a, there);
            }
        }
        fetched_so_far();
        await_fetched<0>();
    }

    /* INFO: 1 + the first zero of the diagonal, or 0. A warp. */
    BL_HD int first_zero() const
    {
        int first = item.n;
        for (int i = lane; i < item.n; i += LANES)
            if (is_zero(tile(i / TILE_SIDE,
                             i / TILE_SIDE)[place(i % TILE_SIDE, i % TILE_SIDE)]) &&
                i < first)
                first = i;
        for (int step = LANES / 2; step > 0; step /= 2) {
            const int other = from_lane(first, lane ^ step);
            first = other < first ? other : first;
        }
        return first < item.n ? first + 1 : 0;
    }

    /* Eight lanes a tile, a lane a column. */
    BL_HD void invert_tiles() const
    {
        const int own = lane % TILE_SIDE;
        for (int t = warp * 4 + lane / TILE_SIDE; t < TILES; t += WARPS * 4) {
            const double *l = tile(t, t);
            double z[TILE_SIDE];
            BL_UNROLL
            for (int i = 0; i < TILE_SIDE; i++) {
                z[i] = i == own ? 1 : 0;
                BL_UNROLL
                for (int k = 0; k < i; k++)
                    z[i] = fma(-l[place(i, k)], z[k], z[i]);
                z[i] = div(z[i], l[place(i, i)]);
                inverse(t)[place(i, own)] = -z[i];
            }
        }
    }

    /* c += y b, or y b', where `b` is a tile. */
    template <bool TURNED_>
    BL_HD void take_out(double (&c)[4], const double (&y)[4], const double *b) const
    {
        const double a[4] = {y[0], y[2], y[1], y[3]};
        if constexpr (TURNED_)
            multiply_tile(c, a, b[place(row, pair)], b[place(row, pair + 1)]);
        else
            multiply_tile(c, a, b[place(pair, row)], b[place(pair + 1, row)]);
    }
    BL_HD void finish(double (&own)[4], const double *minus_inverse) const
    {
        double y[4] = {0, 0, 0, 0};
        take_out<UPPER>(y, own, minus_inverse);
        BL_UNROLL
        for (int e = 0; e < 4; e++)
            own[e] = y[e];
    }
    template <class F>
    BL_HD void each(F act)
    {
        BL_UNROLL
        for (int j = 0; j < TILES; j++)
            BL_UNROLL
        for (int e = 0; e < 4; e++)
            act(x[j][e], warp * 2 * TILE_SIDE + row + e / 2 * TILE_SIDE,
                j * TILE_SIDE + pair + e % 2);
    }

    BL_HD int first() const
    {
        return 2 * warp;
    }
    BL_HD int count() const
    {
        return (item.n + TILE_SIDE - 1) / TILE_SIDE;
    }
    /* The rows of Y = W', W = inv(L): Y L' = I. For 'L' those of W: W L = I. Which of the
     * two decides which matrices lose how much, and it is what netlib does. */
    BL_HD void solve()
    {
        each([](double &y, int i, int k) { y = i == k ? -1 : 0; });
        BL_UNROLL
        for (int step = 0; step < TILES; step++) {
            const int k = UPPER ? step : TILES - 1 - step;
            (void)here(k); /* few tiles are loaded at once */
            if (k >= count() || (UPPER ? k < first() : k > first() + 1))
                continue;
            finish(x[k], inverse(k));
            BL_UNROLL
            for (int j = UPPER ? k + 1 : 0; j < (UPPER ? TILES : k); j++)
                if (j < count())
                    take_out<UPPER>(x[j], x[k], UPPER ? tile(j, k) : tile(k, j));
        }
    }
    /* Where element e of column k of tiles lies in W. */
    BL_HD double *in_inverse(int k, int e) const
    {
        const int own = first() + e / 2, column = pair + e % 2;
        return UPPER ? tile(k, own) + place(column, row)
                     : tile(own, k) + place(row, column);
    }
    /* W in the factor's place. */
    BL_HD void put() const
    {
        BL_UNROLL
        for (int k = 0; k < TILES; k++)
            BL_UNROLL
        for (int e = 0; e < 4; e++)
            if (k < count() && (UPPER ? k >= first() + e / 2 : k <= first() + e / 2))
                *in_inverse(k, e) = x[k][e];
    }
    /* The rows of Y from there, for 'L'. */
    BL_HD void take()
    {
        BL_UNROLL
        for (int k = 0; k < TILES; k++)
            BL_UNROLL
        for (int e = 0; e < 4; e++)
            x[k][e] = k < count() && k >= first() + e / 2
                          ? tile(k, first() + e / 2)[place(pair + e % 2, row)]
                          : 0;
    }
    /* X = Y Y', two columns of tiles at a time. */
    BL_HD void square()
    {
        BL_UNROLL
        for (int j = 0; j < TILES; j += 2) {
            if (j < first() || j >= count())
                continue;
            double y[2][4] = {};
            BL_UNROLL
            for (int k = j; k < TILES; k++) {
                if (k >= count())
                    continue;
                take_out<false>(y[0], x[k], tile(k, j));
                if (k > j)
                    take_out<false>(y[1], x[k], tile(k, j + 1));
            }
            BL_UNROLL
            for (int e = 0; e < 8; e++) {
                const int i = first() * TILE_SIDE + row + e % 4 / 2 * TILE_SIDE,
                          k = (j + e / 4) * TILE_SIDE + pair + e % 2;
                if (k >= i && k < item.n)
                    item.at(k, i) = y[e / 4][e % 4];
            }
        }
    }

    /* `info`: shared memory. */
    BL_HD void run(const MidCholesky &g, int *info)
    {
        fetch_triangle();
        team.block_sync();
        if (warp == 0) {
            const int zero = first_zero();
            if (lane == 0) {
                *info = zero;
                item.put_info(g, zero);
            }
        }
        invert_tiles();
        team.block_sync();
        if (*info)
            return;
        const bool busy = first() < count();
        if (busy)
            solve();
        team.block_sync();
        if (busy)
            put();
        team.block_sync();
        if (busy) {
            if (!UPPER)
                take();
            square();
        }
    }
};

} // namespace bl
#endif
