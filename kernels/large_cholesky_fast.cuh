/* The chain of 64 pivots of a block of a large Cholesky factorisation in fast arithmetic.
 *
 * Called by the kernel of large_cholesky.cu, from sm_90 on, and by
 * test/host_large_cholesky.cc; see large_cholesky.cuh for who does what. From pivot to
 * pivot the chain goes by reciprocals, and from leaf to leaf without a wait: the leader
 * tells the helpers of a leaf and goes on with what they have done to the next one, which
 * was the first thing that they did; the products with the leaf just told are the
 * leader's own.
 */
#ifndef BL_LARGE_CHOLESKY_FAST_CUH
#define BL_LARGE_CHOLESKY_FAST_CUH

#include "large_cholesky.cuh"

namespace bl
{

/* c + x y, y a real number. */
template <class R>
BL_HD R plus_times(R c, R x, R y)
{
    return fma(x, y, c);
}

template <class R>
BL_HD Complex<R> plus_times(Complex<R> c, Complex<R> x, R y)
{
    return {fma(x.re, y, c.re), fma(x.im, y, c.im)};
}

template <class T, bool UPPER>
struct FastCholeskyPanel : CholeskyPanel<T, UPPER, true> {
    using Panel = CholeskyPanel<T, UPPER, true>;
    using R = Real<T>;
    using Memory = typename Panel::Memory;
    static constexpr int LEAF = Panel::LEAF, LEAVES = Panel::LEAVES, NONE = Panel::NONE,
                         PITCH = Panel::PITCH, HELPERS = Panel::HELPERS;

    /* A barrier besides those of the panel: the helpers have done with the leaf that the
     * leader takes next. */
    enum { NEXT_READY = 2 };

    /* The columns of a leaf: its triangle, which is the same in all lanes, and rows
     * `lane` and 32 + lane, of which those of the triangle are some. */
    struct Leaf {
        T d[LEAF][LEAF], y[2][LEAF];
    };

    /* Rows `first` to first + LEAF - 1 of a column, in loads of 16 bytes. */
    static BL_HD void get_rows_of_leaf(const T *column, int first, T (&to)[LEAF])
    {
        constexpr int PACK = 16 / int(sizeof(T));
        struct alignas(16) Pack {
            T x[PACK];
        };
        BL_UNROLL
        for (int i = 0; i < LEAF; i += PACK) {
            const Pack pack = *(const Pack *)(column + first + i);
            BL_UNROLL
            for (int j = 0; j < PACK; j++)
                to[i + j] = pack.x[j];
        }
    }

    template <bool BOTH>
    static BL_HD void get_leaf(const Memory &m, Leaf &leaf, int first, int lane)
    {
        BL_UNROLL
        for (int w = 0; w < LEAF; w++) {
            const T *column = m.block + (first + w) * PITCH;
            T rows[LEAF];
            get_rows_of_leaf(column, first, rows);
            BL_UNROLL
            for (int i = w; i < LEAF; i++)
                leaf.d[i][w] = rows[i];
            BL_UNROLL
            for (int s = BOTH ? 0 : 1; s < 2; s++)
                leaf.y[s][w] = column[lane + 32 * s];
        }
    }

    /* All but the scaling of the columns, which `inverse` is for. With t = d[i][k] /
     * pivot d[i][j] loses t d[j][k], as much of it as is known at once and then the rest.
     * False: not by this arithmetic. */
    template <bool BOTH>
    static BL_HD bool finish(Leaf &leaf, R (&inverse)[LEAF])
    {
        bool fine = true;
        BL_UNROLL
        for (int k = 0; k < LEAF; k++) {
            const R pivot = real(leaf.d[k][k]);
            fine &= (pivot >= Quick<R>::LEAST) & (pivot <= Quick<R>::MOST);
            const NearReciprocal<R> over(pivot);
            const R whole = fma(over.seed, over.rest, over.seed);
            BL_UNROLL
            for (int i = k + 1; i < LEAF; i++) {
                const T t = each_times(leaf.d[i][k], over.seed);
                BL_UNROLL
                for (int j = k + 1; j <= i; j++) {
                    const T l = conj(leaf.d[j][k]), p = Panel::less(T(), l, t);
                    leaf.d[i][j] =
                        plus_times(Panel::less(leaf.d[i][j], l, t), p, over.rest);
                }
            }
            BL_UNROLL
            for (int s = BOTH ? 0 : 1; s < 2; s++) {
                const T t = each_times(leaf.y[s][k], whole);
                BL_UNROLL
                for (int j = k + 1; j < LEAF; j++)
                    leaf.y[s][j] = Panel::less(leaf.y[s][j], conj(leaf.d[j][k]), t);
            }
            inverse[k] = near_inverse_root(pivot);
        }
        return fine;
    }

    template <bool BOTH>
    static BL_HD void scale(Leaf &leaf, const R (&inverse)[LEAF])
    {
        BL_UNROLL
        for (int k = 0; k < LEAF; k++)
            BL_UNROLL
        for (int s = BOTH ? 0 : 1; s < 2; s++)
            leaf.y[s][k] = each_times(leaf.y[s][k], inverse[k]);
    }

    template <bool BOTH>
    static BL_HD void put_leaf(Memory &m, const Leaf &leaf, const R (&inverse)[LEAF],
                               int first, int lane)
    {
        BL_UNROLL
        for (int w = 0; w < LEAF; w++) {
            const int j = first + w;
            BL_UNROLL
            for (int s = BOTH ? 0 : 1; s < 2; s++) {
                const int i = lane + 32 * s;
                const T y = leaf.y[s][w];
                if (i >= j)
                    m.block[j * PITCH + i] = i == j ? from_real<T>(real(y)) : y;
            }
            if (lane == w)
                m.inverse[j] = inverse[w];
        }
    }

    /* The next leaf loses its products with this one, which are in shared memory. */
    template <bool BOTH>
    static BL_HD void take(const Memory &m, Leaf &next, const Leaf &leaf, int first)
    {
        T l[LEAF][LEAF];
        BL_UNROLL
        for (int k = 0; k < LEAF; k++)
            get_rows_of_leaf(m.block + (first + k) * PITCH, first + LEAF, l[k]);
        BL_UNROLL
        for (int k = 0; k < LEAF; k++)
            BL_UNROLL
        for (int w = 0; w < LEAF; w++) {
            const T own = conj(l[k][w]);
            BL_UNROLL
            for (int i = w; i < LEAF; i++)
                next.d[i][w] = Panel::less(next.d[i][w], own, l[k][i]);
            BL_UNROLL
            for (int s = BOTH ? 0 : 1; s < 2; s++)
                next.y[s][w] = Panel::less(next.y[s][w], own, leaf.y[s][k]);
        }
    }

    /* A leaf of any numbers, after the products with the one before, which is in shared
     * memory. Not inlined: it is rare and long. The first pivot that is not positive. */
    static BL_CALL int redo(Memory &m, int q, int lane)
    {
        if (q > 0) {
            typename Panel::Update u;
            T y[2][LEAF];
            BL_UNROLL
            for (int s = 0; s < 2; s++)
                BL_UNROLL
            for (int k = 0; k < LEAF; k++)
                y[s][k] = m.block[((q - 1) * LEAF + k) * PITCH + lane + 32 * s];
            Panel::template subtract<true>(m, u, q - 1, q, lane, y);
            Panel::meet_warp();
            Panel::template put_leaf<true>(m, u, q, lane, NB);
            Panel::meet_warp();
        }
        return Panel::finish_carefully(m, q * LEAF, lane);
    }

    /* Leaf q; BOTH: there are rows of it below 32. */
    template <bool BOTH>
    static BL_HD void step(Memory &m, Leaf &leaf, int q, int lane, int &bad)
    {
        const int first = q * LEAF, next = first + LEAF;
        R inverse[LEAF];
        Leaf following;
        const bool fine = finish<BOTH>(leaf, inverse);
        if (next < NB) {
            if (q > 0)
                Panel::meet_at(NEXT_READY, 32 + HELPERS);
            get_leaf<BOTH>(m, following, next, lane);
        }
        if (fine) {
            scale<BOTH>(leaf, inverse);
            put_leaf<BOTH>(m, leaf, inverse, first, lane);
        } else {
            const int failed = redo(m, q, lane);
            bad = bad == NONE ? failed : bad;
            get_leaf<true>(m, leaf, first, lane);
        }
        Panel::meet_warp();
        if (next % Panel::STRIP == 0)
            Panel::arrive_at(Panel::STRIP_DONE + next / Panel::STRIP - 1,
                             32 + Panel::SOLVERS);
        if (next < NB) {
            Panel::arrive_at(Panel::LEAF_DONE, 32 + HELPERS);
            take<BOTH>(m, following, leaf, first);
            leaf = following;
        }
    }

    /* The first pivot that is not positive. */
    static BL_HD int lead(Memory &m, int lane)
    {
        Leaf leaf;
        int bad = NONE;
        get_leaf<true>(m, leaf, 0, lane);
        Panel::meet_warp(); /* all have read it */
        BL_ROLLED
        for (int q = 0; q < LEAVES / 2; q++)
            step<true>(m, leaf, q, lane, bad);
        BL_ROLLED
        for (int q = LEAVES / 2; q < LEAVES; q++)
            step<false>(m, leaf, q, lane, bad);
        return bad;
    }

    /* A tile of 16 x 8 numbers on and below the diagonal. They are counted from the last
     * strip of columns on, so that those of a strip and all behind it come first; the
     * first strip is the leader's alone. */
    struct Tile {
        int row, column;
        BL_HD explicit Tile(int number)
        {
            constexpr uint64_t ROWS = 0x0123123123232333, STRIPS = 0x1111222333445567;
            row = int(ROWS >> 4 * number) % 16 * 16;
            column = int(STRIPS >> 4 * number) % 16 * TILE_SIDE;
        }
        static BL_HD int count_from(int strip)
        {
            constexpr uint64_t COUNTS = 0x01020406090c1010;
            return int(COUNTS >> 8 * strip) % 256;
        }
    };

    /* Two tiles, the second HELPERS / 32 before the first, as far as there are such, lose
     * their products with the leaf at `first` in the columns from `begin` on. */
    static BL_HD void take_out(Memory &m, int number, int first, int begin, int lane)
    {
        constexpr int PARTS = Traits<T>::complex ? 2 : 1;
        const int row = lane / 4, k = lane % 4, pair = 2 * k;
        const T *leaf = m.block + (first + k) * PITCH, none = from_real<T>(0);
        T a[2][2], b[2];
        R c[2][PARTS][4];
        BL_UNROLL
        for (int s = 0; s < 2; s++) {
            if (number < s * (HELPERS / 32))
                continue;
            const Tile tile(number - s * (HELPERS / 32));
            a[s][0] = negative(leaf[tile.row + row]);
            a[s][1] = negative(leaf[tile.row + row + 8]);
            b[s] = leaf[tile.column + row];
            BL_UNROLL
            for (int e = 0; e < 4; e++) {
                T x = m.block[(tile.column + pair + e % 2) * PITCH + tile.row + row +
                              e / 2 * 8];
                BL_UNROLL
                for (int p = 0; p < PARTS; p++)
                    c[s][p][e] = part(x, p);
            }
        }
        BL_UNROLL
        for (int s = 0; s < 2; s++)
            if (number >= s * (HELPERS / 32))
                multiply_parts(c[s], {a[s][0], a[s][1], none, none}, {b[s], none});
        BL_UNROLL
        for (int s = 0; s < 2; s++) {
            if (number < s * (HELPERS / 32))
                continue;
            const Tile tile(number - s * (HELPERS / 32));
            BL_UNROLL
            for (int e = 0; e < 4; e++) {
                const int column = tile.column + pair + e % 2;
                T x;
                BL_UNROLL
                for (int p = 0; p < PARTS; p++)
                    part(x, p) = c[s][p][e];
                if (column >= begin)
                    m.block[column * PITCH + tile.row + row + e / 2 * 8] = x;
            }
        }
    }

    /* The columns behind the leaf that the leader takes next, those that come first, so
     * that it soon has them. */
    static BL_HD void help(Memory &m, int helper, int lane)
    {
        constexpr int EVERY = 2 * (HELPERS / 32);
        static_assert(LEAF == 4 && EVERY >= NB / 16); /* a strip's are done at once */
        BL_ROLLED
        for (int q = 0; q < LEAVES - 2; q++) {
            Panel::meet_at(Panel::LEAF_DONE, 32 + HELPERS);
            const int first = q * LEAF, begin = first + 2 * LEAF,
                      last = Tile::count_from(begin / TILE_SIDE) - 1 - helper;
            take_out(m, last, first, begin, lane);
            Panel::arrive_at(NEXT_READY, 32 + HELPERS);
            BL_ROLLED
            for (int number = last - EVERY; number >= 0; number -= EVERY)
                take_out(m, number, first, begin, lane);
        }
        Panel::meet_at(Panel::LEAF_DONE, 32 + HELPERS);
    }

    /* A strip of the block on the diagonal to its place, by the solvers. */
    static BL_HD void put_strip(const Memory &m, const LargeDiagonal<T> &d, int strip,
                                int solver)
    {
        constexpr int STRIP = Panel::STRIP;
        BL_UNROLL
        for (int q = 0; q < NB * STRIP / Panel::SOLVERS; q++) {
            const int e = q * Panel::SOLVERS + solver, i = UPPER ? e / STRIP : e % NB,
                      k = strip * STRIP + (UPPER ? e % STRIP : e / NB);
            if (i >= k && i < d.n)
                *element(UPPER, d.a, d.lda, i, k) = m.block[k * PITCH + i];
        }
    }

    /* As the panel's; what is done goes back to memory at once. The last of the solvers
     * has made known before whether this block `writes`. */
    static BL_HD void factor(Memory &m, const LargeDiagonal<T> &d, int64_t first,
                             int thread)
    {
        const int lane = thread % 32, solver = thread - 32 - HELPERS;
        if (thread < 32) {
            const int bad = lead(m, lane);
            if (lane == 0)
                m.bad = bad;
        } else if (thread < 32 + HELPERS) {
            help(m, thread / 32 - 1, lane);
        } else {
            const int64_t row = first + solver / Panel::SHARE;
            Panel::template solve<true>(
                m, solver, [&](int strip, const T(&x)[Panel::EACH]) {
                    const int k =
                        strip * Panel::STRIP + lane % Panel::SHARE * Panel::EACH;
                    BL_UNROLL
                    for (int e = 0; e < Panel::EACH; e++)
                        if (row < d.beside)
                            *element(UPPER, d.a, d.lda, d.n + row, k + e) = x[e];
                    if (m.writes)
                        put_strip(m, d, strip, solver);
                });
        }
    }
};

} // namespace bl
#endif
