/* Cholesky factorisation of matrices of order n <= 32, each read once and written once.
 *
 * Called by the kernel of tiny_potrf.cu, which owns the launch; the base of
 * tiny_substitution.cuh. Four columns are finished at a time, and all that they get from
 * those before is subtracted in registers by loops, so that the code stays in the
 * instruction cache. Netlib's bits depend on the order of every operation.
 */
#ifndef BL_TINY_CHOLESKY_CUH
#define BL_TINY_CHOLESKY_CUH

#include "tiny_odd.cuh"

namespace bl
{

template <class T, int N, int G, bool UPPER>
struct TinyCholesky : TinyOdd<T, N, G, UPPER> {
    using Base = TinyOdd<T, N, G, UPPER>;
    using Base::anywhere;
    using Base::at;
    using Base::Base;
    using Base::info;
    using Base::least;
    using Base::meet;
    using Base::odd;
    using Base::packed;
    using Base::position;
    using Base::row_at;
    using Base::SLOTS;
    using Base::take_first;
    using Base::taken;
    using R = Real<T>;

    /* ---- factorisation ----
     * A leaf is what the halves of the tree have come to when they have WIDE positions:
     * so many columns of L (rows of U) are finished at a time. All they get from those
     * before is subtracted in registers, where a lane has the leaf's part of its rows
     * (columns of U), c[s][w] = L(position(s), begin + w); the leaf's own triangle is
     * factored by every lane for itself. Below, L stands for U' too. */

    static constexpr int WIDE = UPPER && N % 16 != 0 && N > 8 ? 3 : 4;
    static constexpr int LEAVES = N / WIDE;

    /* A lane's rows from slot FIRST on, where the leaf's columns begin. */
    template <int FIRST>
    struct Leaf {
        static constexpr int LIVE = SLOTS - FIRST;
        int begin;
        const Cell<T> *own[LIVE];
        const Cell<T> *row[WIDE]; /* the leaf's rows of L */
        T c[LIVE][WIDE];
        T d[WIDE][WIDE]; /* its triangle */
    };

    /* c -= the products with columns k .. k + WIDE - 1, one after the other. */
    template <int FIRST>
    static BL_HD void subtract_some(Leaf<FIRST> &leaf, int k)
    {
        BL_UNROLL
        for (int i = 0; i < WIDE; i++) {
            T x[Leaf<FIRST>::LIVE];
            BL_UNROLL
            for (int s = 0; s < leaf.LIVE; s++)
                x[s] = leaf.own[s][k + i].x;
            BL_UNROLL
            for (int w = 0; w < WIDE; w++) {
                const T l = conj(leaf.row[w][k + i].x);
                BL_UNROLL
                for (int s = 0; s < leaf.LIVE; s++)
                    leaf.c[s][w] = sub(leaf.c[s][w], mul(l, x[s]));
            }
        }
    }

    /* With columns from .. to - 1. Few products wait for shared memory together with
     * those that follow. */
    template <int FIRST>
    static BL_HD void subtract(Leaf<FIRST> &leaf, int from, int to)
    {
        if constexpr (Leaf<FIRST>::LIVE * sizeof(T) <= 16) {
            BL_UNROLL_BY_TWO
            for (int k = from; k < to; k += WIDE)
                subtract_some(leaf, k);
        } else {
            BL_ROLLED
            for (int k = from; k < to; k += WIDE)
                subtract_some(leaf, k);
        }
    }

    /* The same for U, from the first column to the leaf's. What a left half gives to the
     * right half is a sum of its own, from zero, for the elements within the node; those
     * beyond it are part of a solution and take product after product. */
    template <int FIRST>
    BL_HD void subtract_by_halves(Leaf<FIRST> &leaf) const
    {
        int from = 0;
        BL_ROLLED
        for (int half = N / 2; half >= WIDE; half /= 2) {
            const int middle = from + half, end = middle + half;
            if (leaf.begin < middle)
                continue;
            T kept[Leaf<FIRST>::LIVE][WIDE];
            BL_UNROLL
            for (int s = 0; s < leaf.LIVE; s++)
                BL_UNROLL
            for (int w = 0; w < WIDE; w++) {
                kept[s][w] = leaf.c[s][w];
                if (position(FIRST + s) < end)
                    leaf.c[s][w] = from_real<T>(0);
            }
            subtract(leaf, from, middle);
            BL_UNROLL
            for (int s = 0; s < leaf.LIVE; s++)
                BL_UNROLL
            for (int w = 0; w < WIDE; w++)
                if (position(FIRST + s) < end)
                    leaf.c[s][w] = add(kept[s][w], leaf.c[s][w]);
            from = middle;
        }
    }

    /* x over the root of a pivot, or times its reciprocal. What is infinite is not fine
     * either: a matrix that is found not to be definite before its row is reached keeps
     * the quotient, which shall not depend on what the warp does for other groups. */
    static BL_HD R over(R x, R root, R inverse, bool &fine)
    {
        fine &= is_plain(x);
        return quick_signed_quotient(x, root, inverse);
    }

    static BL_HD Complex<R> over(Complex<R> x, R root, R inverse, bool &fine)
    {
        return {over(x.re, root, inverse, fine), over(x.im, root, inverse, fine)};
    }

    static BL_HD T scaled(T x, R root, R inverse, bool &fine)
    {
        if constexpr (UPPER)
            return over(x, root, inverse, fine);
        else
            return mul(from_real<T>(inverse), x);
    }

    /* U: columns k and j of a leaf are in different halves of four. Its triangle gets a
     * sum there; a sum of one product, as with two or three, is not another number. */
    static BL_HD constexpr bool parted(int k, int j)
    {
        return UPPER && WIDE == 4 && k < 2 && j >= 2;
    }

    /* Factor the leaf's triangle, of which the lane has a copy, and solve with it for the
     * lane's rows: y. False: there was something that only finish_carefully() can do. */
    template <int FIRST>
    static BL_HD bool finish(Leaf<FIRST> &leaf, T (&y)[SLOTS - FIRST][WIDE])
    {
        T(&d)[WIDE][WIDE] = leaf.d;
        T sum[WIDE][WIDE];
        R r[WIDE], inverse[WIDE];
        bool fine = true;
        BL_UNROLL
        for (int k = 0; k < WIDE; k++) {
            const R pivot = real(d[k][k]);
            fine &= (pivot >= Quick<R>::LEAST) & (pivot <= Quick<R>::MOST);
            fine &= quick_root(pivot, r[k], inverse[k]);
            d[k][k] = from_real<T>(r[k]);
            BL_UNROLL
            for (int i = k + 1; i < WIDE; i++)
                d[i][k] = scaled(d[i][k], r[k], inverse[k], fine);
            BL_UNROLL
            for (int i = k + 1; i < WIDE; i++)
                BL_UNROLL
            for (int j = k + 1; j <= i; j++) {
                const T p = mul(conj(d[j][k]), d[i][k]);
                if (!parted(k, j)) {
                    d[i][j] = sub(d[i][j], p);
                } else if (k == 0) {
                    sum[i][j] = negative(p);
                } else {
                    sum[i][j] = sub(sum[i][j], p);
                    d[i][j] = add(d[i][j], sum[i][j]);
                }
            }
        }
        if (leaf.begin + WIDE < N)
            BL_UNROLL
        for (int w = 0; w < WIDE; w++)
            BL_UNROLL
        for (int s = 0; s < leaf.LIVE; s++) {
            y[s][w] = leaf.c[s][w];
            BL_UNROLL
            for (int k = 0; k < w; k++)
                y[s][w] = sub(y[s][w], mul(conj(d[w][k]), y[s][k]));
            y[s][w] = scaled(y[s][w], r[w], inverse[w], fine);
        }
        return fine;
    }

    /* The same in shared memory and, where all is finite, the same bits; from a position
     * that is not definite on, nothing changes any more. INFO, below 0 if the matrix is
     * odd. Not inlined: what is rare shall neither cost the others registers nor be in
     * their way in the instruction cache. */
    static BL_CALL int finish_carefully(TinyCholesky m, int begin)
    {
        Cell<T> *packed = m.packed;
        BL_ROLLED
        for (int k = begin; k < begin + WIDE; k++) {
            const R pivot = real(packed[at(k, k)].x);
            const bool good = pivot > 0 && is_finite(pivot);
            if (m.info == 0 && !good)
                m.info = is_finite(pivot) ? k + 1 : -k - 1;
            const bool live = m.info == 0;
            const R r = good ? root(pivot) : R(1);
            const T inverse = from_real<T>(reciprocal(r));
            meet();
            BL_ROLLED
            for (int i = m.t; live && i < N; i += G) {
                Cell<T> &c = packed[at(i, k)];
                if (i == k)
                    c.x = from_real<T>(r);
                else if (i > k)
                    c.x = UPPER ? each_over(c.x, r) : mul(inverse, c.x);
            }
            meet();
            BL_ROLLED
            for (int i = m.t; live && i < N; i += G)
                BL_ROLLED
            for (int j = k + 1; j < begin + WIDE && j <= i; j++) {
                T c = packed[at(i, j)].x, sum = c;
                const bool apart = i < begin + WIDE && parted(k - begin, j - begin);
                BL_ROLLED
                for (int l = apart ? begin : k; l <= k; l++) {
                    T p = mul(conj(packed[at(j, l)].x), packed[at(i, l)].x);
                    sum = apart && l == begin ? negative(p) : sub(sum, p);
                }
                if (!apart || k == begin + 1)
                    packed[at(i, j)].x = apart ? add(c, sum) : sum;
            }
            meet();
        }
        return m.info;
    }

    /* The leaf whose columns begin in slot FIRST. */
    template <int FIRST>
    BL_HD void do_leaf(int begin)
    {
        Leaf<FIRST> leaf;
        T y[SLOTS - FIRST][WIDE];
        leaf.begin = begin;
        BL_UNROLL
        for (int w = 0; w < WIDE; w++)
            leaf.row[w] = packed + at(begin + w, 0);
        BL_UNROLL
        for (int s = 0; s < leaf.LIVE; s++) {
            const int p = position(FIRST + s);
            leaf.own[s] = packed + at(N % G == 0 || p < N ? p : N - 1, 0);
            BL_UNROLL
            for (int w = 0; w < WIDE; w++) {
                leaf.c[s][w] = from_real<T>(0);
            }
        }
        each_own<FIRST>(begin,
                        [&](int s, int w, Cell<T> &cell) { leaf.c[s][w] = cell.x; });
        if (UPPER)
            subtract_by_halves(leaf);
        else
            subtract(leaf, 0, begin);
        /* What is read of a row may come with its neighbour, in one access. */
        meet();
        const bool live = info == 0; /* else what is left stays as it is */
        each_own<FIRST>(begin, [&](int s, int w, Cell<T> &cell) {
            if (live && !beyond(s) && position(FIRST + s) < begin + WIDE)
                cell.x = leaf.c[s][w];
        });
        meet();
        BL_UNROLL
        for (int i = 0; i < WIDE; i++)
            BL_UNROLL
        for (int j = 0; j <= i; j++)
            leaf.d[i][j] = leaf.row[i][begin + j].x;
        const bool fine = finish(leaf, y);
        const bool rare = anywhere(!fine && live);
        meet();
        if (rare) {
            each_own<FIRST>(begin, [&](int s, int w, Cell<T> &cell) {
                if (live)
                    cell.x = leaf.c[s][w];
            });
            meet();
            info = finish_carefully(*this, begin);
            odd = odd || info < 0;
            info = info < 0 ? -info : info;
            return;
        }
        each_own<FIRST>(begin, [&](int s, int w, Cell<T> &cell) {
            T x = y[s][w];
            BL_UNROLL
            for (int i = w; i < WIDE && !beyond(s); i++)
                x = position(FIRST + s) == begin + i ? leaf.d[i][w] : x;
            if (live)
                cell.x = x;
        });
        meet();
    }

    /* The leaf's triangle is in its first slot, or in two. */
    static BL_HD constexpr bool beyond(int s)
    {
        return s > (WIDE == 3);
    }

    /* f(s, w, the cell of column begin + w) for the lane's rows in slots FIRST + s. */
    template <int FIRST, class F>
    BL_HD void each_own(int begin, const F &f)
    {
        BL_UNROLL
        for (int s = 0; s < SLOTS - FIRST; s++) {
            const int p = position(FIRST + s);
            BL_UNROLL
            for (int w = 0; w < WIDE; w++)
                if ((beyond(s) || p >= begin + w) && (N % G == 0 || p < N))
                    f(s, w, packed[at(p, begin + w)]);
        }
    }

    /* The triangle in shared memory becomes its factor; a leaf in which a position is not
     * definite stops there, and those after it stay the input, whatever the other groups
     * of the warp do. Meets before its end: the caller may read. */
    BL_HD void factor_held()
    {
        each<0, SLOTS>([&](auto slot) {
            constexpr int FIRST = slot();
            constexpr int BEGIN = (G * FIRST + WIDE - 1) / WIDE * WIDE;
            BL_ROLLED
            for (int begin = BEGIN; begin < least(N, G * (FIRST + 1)); begin += WIDE)
                if (anywhere(taken >> begin & ((1u << WIDE) - 1)))
                    do_leaf<FIRST>(begin);
        });
    }

    /* The factorisation of what fetch() has brought, in memory and left in shared memory.
     * The caller has met; meets at its end. */
    BL_HD void factor(T *a, int64_t lda)
    {
        factor_held();
        if (!odd)
            this->template put<UPPER>(a, lda);
        meet();
        if (anywhere(odd)) {
            info = factor_again(*this, a, lda);
            if (odd)
                take_first(count_bits(taken));
        }
    }

    /* INFO of a matrix that met NaN or Inf, after it has been factored another time. Not
     * inlined: what is rare shall not cost the others registers. */
    static BL_CALL int factor_again(TinyCholesky m, T *a, int64_t lda)
    {
        m.template move_odd<true>(a, lda);
        m.factor_odd();
        m.template move_odd<false>(a, lda);
        return m.info;
    }

    /* INFO as LAPACK counts. */
    BL_HD int info_of_rows() const
    {
        return info == 0 ? 0 : row_at(info - 1) + 1;
    }
};

} // namespace bl
#endif
