/* Cholesky factorisation of matrices of order n <= 32, each read once and written once.
 *
 * Called by the kernels of tiny_potrf.cu and tiny_posv.cu, which own the launch, and by
 * test/host_tiny_cholesky.cc, where a warp is 32 fibers. A group of G lanes of a warp
 * works on a matrix; the triangle lies packed in shared memory, L(i,k) or U(k,i) at
 * i (i + 1) / 2 + k, where the input waits and its factor takes its place. A lane owns
 * the rows t, t + G, ... of L (columns of U). Four columns are finished at a time, and
 * all that they get from those before is subtracted in registers by loops, so that the
 * code stays in the instruction cache. Nothing may be read or written in global memory
 * outside the triangle, nor depend on what the other groups of the warp hold. Netlib's
 * bits depend on the order of every operation.
 */
#ifndef BL_TINY_CHOLESKY_CUH
#define BL_TINY_CHOLESKY_CUH

#include "tiny_pieces.cuh"

namespace bl
{

/* Lanes that a matrix of order N gets: few enough that not all of them wait for one
 * pivot, so many that its rows fit their registers and that they read whole sectors. Who
 * solves waits for chains, and has more matrices in a warp. */
template <class T>
constexpr int lanes_of(int N, bool solves)
{
    return N <= 8 ? 4 : sizeof(T) == 16 ? (N <= 16 ? 8 : 16) : N <= 16 && solves ? 4 : 8;
}

/* N: the order the code is for, n <= N. U is factored in halves whose sums are formed
 * apart, and where the halves are depends on n. But halving n <= N never leaves more than
 * halving N does, so the tree of n fits into the tree of N: rows go to `positions` 0 ..
 * N-1 in their order, some of which stay free and behave as rows of the unit matrix. L,
 * and whatever is no factorisation, leaves the last positions free.
 */
template <class T, int N, int G, bool UPPER>
struct TinyCholesky {
    static constexpr int SLOTS = (N + G - 1) / G; /* positions a lane owns: t + G s */
    static constexpr int GROUPS = LANES / G;
    /* Cells between a group's triangle and the next: no two groups meet in a bank. */
    static constexpr int PITCH =
        GROUPS == 1 ? N * (N + 1) / 2
                    : N * (N + 1) / 2 + (G + 32 - N * (N + 1) / 2 % 32) % 32;
    using R = Real<T>;

    int t;            /* the lane in its group */
    int group;        /* the group in its warp */
    Cell<T> *packed;  /* the group's triangle */
    unsigned taken;   /* bit p: position p holds a row */
    int info = 0;     /* 1 + the first position where the matrix is not definite */
    bool odd = false; /* it met NaN or Inf: netlib's result can be another */

    BL_HD TinyCholesky(int lane, Cell<T> *warp_packed)
        : t(lane % G), group(lane / G), packed(warp_packed + lane / G * PITCH)
    {
    }

    /* Bits of the group's lanes that say yes. */
    BL_HD unsigned ballot(bool yes) const
    {
#ifdef __CUDACC__
        unsigned all = __ballot_sync(~0u, yes);
#else
        unsigned all = host_warp::ballot(yes);
#endif
        return G == 32 ? all : all >> (group * G) & ((1u << G % 32) - 1);
    }

    /* Does any lane of the warp, not only of the group, say yes. */
    static BL_HD bool anywhere(bool yes)
    {
#ifdef __CUDACC__
        return __any_sync(~0u, yes);
#else
        return host_warp::ballot(yes) != 0;
#endif
    }

    static BL_HD void meet()
    {
#ifdef __CUDACC__
        __syncwarp();
#else
        host_warp::meet();
#endif
    }

    static BL_HD constexpr int least(int x, int y)
    {
        return x < y ? x : y;
    }

    BL_HD int position(int s) const
    {
        return t + G * s;
    }

    static BL_HD constexpr int at(int i, int k)
    {
        return i * (i + 1) / 2 + k;
    }

    BL_HD bool holds(int p) const
    {
        return taken >> p & 1;
    }

    /* The row of the matrix at position p. */
    BL_HD int row_at(int p) const
    {
        return count_bits(taken & ((1u << p) - 1));
    }

    BL_HD void take_first(int n)
    {
        taken = n >= 32 ? ~0u : (1u << n) - 1;
    }

    /* Go down the tree of N with that of n to the position: is there a row? */
    static BL_HD bool reached(int n, int p)
    {
        int size = N;
        while (size > 1) {
            int half = size / 2, left = n / 2;
            bool right = p >= half;
            p -= right ? half : 0;
            size = right ? size - half : half;
            n = right ? n - left : left;
        }
        return n > 0;
    }

    BL_HD void take_by_halves(int n)
    {
        taken = 0;
        BL_UNROLL
        for (int s = 0; s < SLOTS; s++) {
            unsigned bits = ballot(position(s) < N && reached(n, position(s)));
            taken |= bits << (G * s) % 32;
        }
    }

    /* Memory is read and written column by column, a row a lane, whichever the triangle:
     * f(j, column j in memory, the first slot that has some of it, the first behind). */
    template <bool UP, class F>
    BL_HD void columns(int64_t lda, const F &f) const
    {
        int64_t place = 0;
        each<0, SLOTS>([&](auto slot) {
            constexpr int END = least(N, G * (slot() + 1));
            constexpr int FROM = UP ? 0 : slot(), TO = UP ? slot() + 1 : SLOTS;
            BL_UNROLL_BY_TWO
            for (int j = G * slot(); j < END; j += 2) {
                /* Only U by halves has columns that are not held among others. */
                const int64_t next = place + (!UPPER || holds(j) ? lda : 0);
                f(j, place, next, Index<FROM>(), Index<TO>());
                place = next + (!UPPER || holds(j + 1) ? lda : 0);
            }
        });
    }

    /* The lane's row in slot s, as rows of the matrix count; dense but for U by halves.
     */
    BL_HD int row_of(int s) const
    {
        return UPPER ? row_at(position(s)) : position(s);
    }

    /* The same element by element, where complex numbers are not aligned as a whole:
     * f(their place in memory, their cell, is there such a row and column). */
    template <bool UP, class F>
    BL_HD void elements(int64_t lda, const F &f) const
    {
        BL_ROLLED
        for (int j = 0; j < N; j++)
            BL_ROLLED
        for (int i = t; i < N; i += G)
            if (UP ? i <= j : i >= j)
                f(row_at(i) + row_at(j) * lda, UP ? at(j, i) : at(i, j),
                  holds(i) && holds(j));
    }

    /* The triangle to shared memory; what no row and column is held for becomes that of
     * the unit matrix. The caller meets, before and after. */
    template <bool UP>
    BL_HD void fetch(const T *a, int64_t lda)
    {
        if (is_whole(a))
            columns<UP>(lda, [&](int first, int64_t place, int64_t next, auto b, auto e) {
                BL_UNROLL
                for (int j = first; j < first + 2; j++)
                    BL_UNROLL
                for (int s = b(); s < e(); s++) {
                    const int p = position(s);
                    bring(packed + (UP ? at(j, p) : at(p, j)),
                          (const Cell<T> *)(a + (j == first ? place : next) + row_of(s)),
                          (N % G == 0 || p < N) && (UP ? p <= j : p >= j),
                          holds(p) && holds(j));
                }
            });
        else
            elements<UP>(lda, [&](int64_t place, int cell, bool there) {
                for (int i = 0; i < int(sizeof(T) / sizeof(R)); i++)
                    bring((R *)(packed + cell) + i, (const R *)(a + place) + i, true,
                          there);
            });
        arrived();
        BL_UNROLL
        for (int s = 0; s < SLOTS; s++)
            if (position(s) < N && !holds(position(s)))
                packed[at(position(s), position(s))].x = one<T>();
    }

    /* And back. The caller has met. */
    template <bool UP>
    BL_HD void put(T *a, int64_t lda) const
    {
        if (is_whole(a))
            columns<UP>(lda, [&](int first, int64_t place, int64_t next, auto b, auto e) {
                T x[2][SLOTS];
                BL_UNROLL
                for (int j = 0; j < 2; j++)
                    BL_UNROLL
                for (int s = b(); s < e(); s++) {
                    const int p = N % G == 0 || position(s) < N ? position(s) : N - 1;
                    x[j][s] = packed[UP ? at(first + j, p) : at(p, first + j)].x;
                }
                BL_UNROLL
                for (int j = first; j < first + 2; j++)
                    BL_UNROLL
                for (int s = b(); s < e(); s++) {
                    const int p = position(s);
                    if ((N % G == 0 || p < N) && (UP ? p <= j : p >= j) && holds(p) &&
                        holds(j))
                        send(a + (j == first ? place : next) + row_of(s),
                             x[j - first][s]);
                }
            });
        else
            elements<UP>(lda, [&](int64_t place, int cell, bool there) {
                if (there)
                    a[place] = packed[cell].x;
            });
    }

    /* ---- factorisation ----
     * A leaf is what the halves of the tree have come to when they have WIDE positions:
     * so many columns of L (rows of U) are finished at a time. All they get from those
     * before is subtracted in registers, where a lane has the leaf's part of its rows
     * (columns of U), c[s][w] = L(position(s), begin + w); the leaf's own triangle is
     * factored by every lane for itself. Below, L stands for U' too. */

    static constexpr int WIDE = UPPER && N == 24 ? 3 : 4;
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

    /* x over the root of a pivot, or times its reciprocal. */
    static BL_HD R over(R x, R root, R inverse, bool &fine)
    {
        fine &= !((fabs(x) < Quick<R>::LEAST) & (x != 0)); /* no branches */
        return quick_quotient(x, root, inverse);
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
            const T inverse = from_real<T>(inverse_of(r));
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

    /* The end of the half of xPOTRF2's tree of n in which k and j > k are parted. */
    static BL_HD int end_of_node(int n, int k, int j)
    {
        int first = 0, end = n;
        while (true) {
            int middle = first + (end - first) / 2;
            if (j < middle)
                end = middle;
            else if (k >= middle)
                first = middle;
            else
                return end;
        }
    }

    /* Once more, from a triangle that is still the input, in rows 0 .. n-1 of shared
     * memory, for those that met NaN or Inf: netlib's operations to the letter, also
     * those with zeros and on complex numbers that change nothing else. Meets at its end.
     */
    BL_HD void factor_odd()
    {
        const int n = odd ? count_bits(taken) : 0;
        if (odd)
            info = 0;
        BL_ROLLED
        for (int k = 0; k < N; k++) {
            if (UPPER) {
                BL_ROLLED
                for (int j = t; k < n && info == 0 && j < n; j += G)
                    if (j >= k)
                        packed[at(j, k)].x = less_products(n, k, j);
                meet();
            }
            R d = 0;
            if (k < n && info == 0) {
                d = real(packed[at(k, k)].x);
                if (!(d > 0))
                    info = k + 1;
            }
            const bool live = k < n && info == 0;
            meet();
            R r = root(d);
            const T inverse = from_real<T>(inverse_of(r));
            BL_ROLLED
            for (int i = t; live && i < n; i += G) {
                Cell<T> &c = packed[at(i, k)];
                if (i == k)
                    c.x = from_real<T>(r);
                else if (i > k)
                    c.x = UPPER ? over_real(c.x, r) : mul(inverse, c.x);
            }
            meet();
            if (!UPPER)
                BL_ROLLED
            for (int i = t; live && i < n; i += G)
                BL_ROLLED
            for (int j = k + 1; j <= i; j++) {
                T l = conj(packed[at(j, k)].x), c = packed[at(i, j)].x;
                bool by_product = i < end_of_node(n, k, j);
                if (by_product && Traits<T>::complex)
                    l = mul(negative(one<T>()), l);
                if (i == j)
                    c = from_real<T>(real(c));
                if (is_zero(l))
                    continue;
                T p = mul(l, packed[at(i, k)].x);
                c = by_product && Traits<T>::complex ? add(c, p) : sub(c, p);
                packed[at(i, j)].x = i == j ? from_real<T>(real(c)) : c;
            }
            meet();
        }
    }

    /* U(i, j) before its division, or the pivot. */
    BL_HD T less_products(int n, int i, int j) const
    {
        T c = packed[at(j, i)].x;
        if (i == j)
            c = from_real<T>(real(c));
        int first = 0, end = n;
        while (end - first > 1) {
            const int middle = first + (end - first) / 2;
            const bool apart = i >= middle;
            if (j < middle) {
                end = middle;
                continue;
            }
            T sum = apart ? from_real<T>(0) : times_one(c);
            BL_ROLLED
            for (int k = first; k < (apart ? middle : i); k++)
                sum = sub(sum, mul(conj(packed[at(i, k)].x), packed[at(j, k)].x));
            if (!apart)
                return sum;
            c = i == j ? from_real<T>(add(real(c), real(sum)))
                       : add(times_one(c), times_one(sum));
            first = middle;
        }
        return c;
    }

    /* An element at a time, for what is rare. */
    template <bool TO>
    BL_HD void move_odd(T *a, int64_t lda)
    {
        const int n = count_bits(taken);
        BL_ROLLED
        for (int j = 0; odd && j < N; j++)
            BL_ROLLED
        for (int i = t; i < N; i += G) {
            if (i < j)
                continue;
            T *p = a + (UPPER ? j + i * lda : i + j * lda), &x = packed[at(i, j)].x;
            if (TO)
                x = i < n ? *p : from_real<T>(i == j ? 1 : 0);
            else if (i < n)
                *p = x;
        }
        meet();
    }

    /* The factorisation of what fetch() has brought, in memory and left in shared memory.
     * The caller has met; meets at its end. */
    BL_HD void factor(T *a, int64_t lda)
    {
        factor_held();
        if (!odd)
            put<UPPER>(a, lda);
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

    /* ---- solution: a lane owns a right-hand side, x(p) = x[side p] ---- */

    static constexpr int SIDE = LANES + 1; /* the most that `side` can be */
    static constexpr int SIDES = SIDE * N;
    /* Rows a lane has in registers at once. */
    static constexpr int WIDTH = N <= 8 || Traits<T>::complex ? 4 : 8;

    /* The diagonal becomes divisors. Bit p of the result: that of position p is steep.
     * Meets at its end. */
    BL_HD unsigned prepare_diagonal() const
    {
        unsigned steeps = 0;
        if constexpr (Traits<T>::complex) {
            BL_UNROLL
            for (int s = 0; s < SLOTS; s++) {
                int p = position(s);
                bool steep = false;
                if (p < N)
                    packed[at(p, p)].x = prepared(packed[at(p, p)].x, steep);
                steeps |= ballot(steep) << (G * s) % 32;
            }
            meet();
        }
        return steeps;
    }

    BL_HD T divided(T x, int k, unsigned steeps, bool conjugate) const
    {
        return quotient(x, packed[at(k, k)].x, steeps >> k & 1, conjugate);
    }

    /* x := L^-1 x, or U'^-1 x for TURNED; L skips zeros of x. Begins at a position that
     * is a multiple of WIDTH. */
    template <bool TURNED>
    BL_HD void forward(Cell<T> *x, int side, unsigned steeps, int begin) const
    {
        unsigned zeros = 0; /* bit p: x(p) was zero before the division */
        BL_ROLLED
        for (int first = begin; first < N; first += WIDTH) {
            T y[WIDTH];
            BL_UNROLL
            for (int i = 0; i < WIDTH; i++) {
                y[i] = x[side * (first + i)].x;
                if (TURNED)
                    y[i] = times_one(y[i]);
            }
            const Cell<T> *rows = packed + at(first, 0);
            BL_ROLLED
            for (int k = begin; k < first; k++) {
                if (!TURNED && zeros >> k & 1)
                    continue;
                T xk = x[side * k].x;
                BL_UNROLL
                for (int i = 0; i < WIDTH; i++) {
                    T l = rows[first * i + at(i, 0) + k].x;
                    y[i] = sub(y[i], mul(xk, TURNED ? conj(l) : l));
                }
            }
            BL_UNROLL
            for (int k = 0; k < WIDTH; k++) {
                if (!holds(first + k))
                    y[k] = from_real<T>(0);
                const bool skip = !TURNED && is_zero(y[k]);
                zeros |= unsigned(skip) << (first + k);
                if (!skip && holds(first + k))
                    y[k] = divided(y[k], first + k, steeps, TURNED);
                BL_UNROLL
                for (int i = k + 1; i < WIDTH; i++) {
                    T l = rows[first * i + at(i, 0) + first + k].x;
                    if (!skip)
                        y[i] = sub(y[i], mul(y[k], TURNED ? conj(l) : l));
                }
            }
            BL_UNROLL
            for (int i = 0; i < WIDTH; i++)
                x[side * (first + i)].x = y[i];
        }
    }

    /* x := U^-1 x, zeros of x skipped. */
    BL_HD void backward(Cell<T> *x, int side, unsigned steeps) const
    {
        unsigned zeros = 0;
        BL_ROLLED
        for (int first = N - WIDTH; first >= 0; first -= WIDTH) {
            T y[WIDTH];
            BL_UNROLL
            for (int i = 0; i < WIDTH; i++)
                y[i] = x[side * (first + i)].x;
            BL_ROLLED
            for (int k = N - 1; k >= first + WIDTH; k--) {
                if (zeros >> k & 1)
                    continue;
                T xk = x[side * k].x;
                const Cell<T> *row = packed + at(k, first);
                BL_UNROLL
                for (int i = 0; i < WIDTH; i++)
                    y[i] = sub(y[i], mul(xk, row[i].x));
            }
            BL_UNROLL
            for (int k = WIDTH - 1; k >= 0; k--) {
                if (!holds(first + k))
                    y[k] = from_real<T>(0);
                const bool skip = is_zero(y[k]);
                zeros |= unsigned(skip) << (first + k);
                if (!skip)
                    y[k] = divided(y[k], first + k, steeps, false);
                const Cell<T> *row = packed + at(first + k, first);
                BL_UNROLL
                for (int i = 0; i < k; i++)
                    if (!skip)
                        y[i] = sub(y[i], mul(y[k], row[i].x));
            }
            BL_UNROLL
            for (int i = 0; i < WIDTH; i++)
                x[side * (first + i)].x = y[i];
        }
    }

    /* x := L'^-1 x: netlib lets row i take the product with row i + 1 first, the last to
     * be known, so this is one chain. QUICK: the reciprocals of the diagonal are in the
     * cells behind x's. */
    template <bool QUICK>
    BL_HD void backward_chain(Cell<T> *x, int side, unsigned steeps) const
    {
        BL_ROLLED
        for (int i = N - 1; i >= 0; i--) {
            T sum = times_one(x[side * i].x);
            const Cell<T> *l = packed + at(i + 1, i);
            BL_UNROLL_BY_FOUR
            for (int k = i + 1; k < N; k++) {
                sum = sub(sum, mul(conj(l->x), x[side * k].x));
                l += k + 1;
            }
            if (QUICK)
                sum = quotient(sum, packed[at(i, i)].x, steeps >> i & 1, true,
                               real(x[side * i + 1].x));
            else
                sum = divided(sum, i, steeps, true);
            x[side * i].x = holds(i) ? sum : from_real<T>(0);
        }
    }

    /* One right-hand side: a lane owns its rows, and all lanes form each quotient. */

    /* y := L^-1 y, or U'^-1 y; L skips zeros. */
    BL_HD void sweep_down(T (&y)[SLOTS], const Cell<T> *inverse, int side,
                          unsigned steeps) const
    {
        each<0, SLOTS>([&](auto slot) {
            constexpr int FIRST = slot();
            BL_ROLLED
            for (int k = G * FIRST; k < least(N, G * (FIRST + 1)); k++) {
                if (!anywhere(holds(k)))
                    continue;
                T q = from_lane(y[FIRST], group * G + k % G);
                const bool takes = holds(k) && (UPPER || !is_zero(q));
                q = quotient(q, packed[at(k, k)].x, steeps >> k & 1, UPPER,
                             real(inverse[side * k].x));
                BL_UNROLL
                for (int s = FIRST; s < SLOTS; s++) {
                    const int p = position(s);
                    const bool here = (N % G == 0 || p < N) && holds(p) && takes;
                    if (here && p > k) {
                        T l = packed[at(p, k)].x;
                        y[s] = sub(y[s], mul(q, UPPER ? conj(l) : l));
                    }
                    if (s == FIRST && here && p == k)
                        y[s] = q;
                }
            }
        });
    }

    /* y := U^-1 y, zeros skipped. */
    BL_HD void sweep_up(T (&y)[SLOTS], const Cell<T> *inverse, int side,
                        unsigned steeps) const
    {
        each<0, SLOTS>([&](auto slot) {
            constexpr int LAST = SLOTS - 1 - slot();
            BL_ROLLED
            for (int k = least(N, G * (LAST + 1)) - 1; k >= G * LAST; k--) {
                if (!anywhere(holds(k)))
                    continue;
                T q = from_lane(y[LAST], group * G + k % G);
                const bool takes = holds(k) && !is_zero(q);
                q = quotient(q, packed[at(k, k)].x, steeps >> k & 1, false,
                             real(inverse[side * k].x));
                BL_UNROLL
                for (int s = 0; s <= LAST; s++) {
                    const int p = position(s);
                    const bool here = (N % G == 0 || p < N) && holds(p) && takes;
                    if (here && p < k)
                        y[s] = sub(y[s], mul(q, packed[at(k, p)].x));
                    if (s == LAST && here && p == k)
                        y[s] = q;
                }
            }
        });
    }

    BL_HD void solve_one(Cell<T> *x, int side, T *b, unsigned steeps, bool live) const
    {
        T y[SLOTS];
        BL_UNROLL
        for (int s = 0; s < SLOTS; s++) {
            const int p = position(s);
            y[s] = from_real<T>(0);
            if (N % G != 0 && p >= N)
                continue;
            if (live && holds(p))
                y[s] = UPPER ? times_one(b[row_at(p)]) : b[row_at(p)];
            x[side * p + 1].x = from_real<T>(inverse_for(packed[at(p, p)].x));
        }
        meet();
        sweep_down(y, x + 1, side, steeps);
        if constexpr (UPPER) {
            sweep_up(y, x + 1, side, steeps);
        } else {
            BL_UNROLL
            for (int s = 0; s < SLOTS; s++)
                if (N % G == 0 || position(s) < N)
                    x[side * position(s)].x = y[s];
            meet();
            if (live && t == 0)
                backward_chain<true>(x, side, steeps);
            meet();
            BL_UNROLL
            for (int s = 0; s < SLOTS; s++)
                if (N % G == 0 || position(s) < N)
                    y[s] = x[side * position(s)].x;
        }
        BL_UNROLL
        for (int s = 0; s < SLOTS; s++)
            if ((N % G == 0 || position(s) < N) && live && holds(position(s)))
                b[row_at(position(s))] = y[s];
    }

    /* Columns c .. c + G - 1 of B, n x nrhs, to or from the group's cells, a row a lane.
     */
    template <bool TO>
    BL_HD void move(Cell<T> *x, int side, T *b, int64_t ldb, int columns) const
    {
        BL_UNROLL
        for (int s = 0; s < SLOTS; s++) {
            int p = position(s);
            if (G * (s + 1) > N && p >= N)
                continue;
            T *row = b + row_at(p);
            BL_ROLLED
            for (int c = 0; c < columns; c++) {
                if (TO)
                    x[side * p + c].x = holds(p) ? row[c * ldb] : from_real<T>(0);
                else if (holds(p))
                    row[c * ldb] = x[side * p + c].x;
            }
        }
    }

    /* B := (L L')^-1 B or (U' U)^-1 B. `sides` has N sides_for(G, nrhs) cells; all groups
     * of a warp have as many right-hand sides, but only those that are `live` touch them.
     * Not inlined: the factorisation gets its registers as if it were alone. */
    static BL_CALL void solve_apart(const TinyCholesky m, Cell<T> *sides, T *b,
                                    int64_t ldb, int64_t nrhs, bool live)
    {
        const unsigned steeps = m.prepare_diagonal();
        const int side = sides_for(G, nrhs), most = side / GROUPS;
        Cell<T> *x = sides + m.group * most;
        if (nrhs == 1)
            m.solve_one(x, side, b, steeps, live);
        else
            m.solve(x, side, most, b, ldb, nrhs, steeps, live);
    }

    /* `most` of them at a time. */
    BL_HD void solve(Cell<T> *x, int side, int most, T *b, int64_t ldb, int64_t nrhs,
                     unsigned steeps, bool live) const
    {
        for (int64_t c = 0; c < nrhs; c += most) {
            int columns = nrhs - c < most ? int(nrhs - c) : most;
            if (live)
                move<true>(x, side, b + c * ldb, ldb, columns);
            meet();
            if (live && t < columns) {
                forward<UPPER>(x + t, side, steeps, 0);
                if (UPPER)
                    backward(x + t, side, steeps);
                else
                    backward_chain<false>(x + t, side, steeps);
            }
            meet();
            if (live)
                move<false>(x, side, b + c * ldb, ldb, columns);
            meet();
        }
    }

    /* ---- inverse: a lane owns a column ---- */

    /* The factor becomes the triangle of the inverse: columns of W = L^-1 from the first,
     * each taking the place of L's, which those that follow do not need; likewise those
     * of W' W. U is taken for L: the inverse then comes out conjugated, which is its
     * upper triangle. INFO is the first zero of the diagonal, and then nothing is done.
     * `sides` has SIDES cells. Meets at its end. */
    BL_HD void invert(Cell<T> *sides)
    {
        constexpr int STEP = G < WIDTH ? WIDTH : G;
        unsigned zeros = 0;
        BL_UNROLL
        for (int s = 0; s < SLOTS; s++) {
            int p = position(s);
            bool zero = p < N && is_zero(packed[p < N ? at(p, p) : 0].x);
            zeros |= ballot(zero) << (G * s) % 32;
        }
        if (zeros)
            info = count_bits((zeros & (0 - zeros)) - 1) + 1;
        meet();
        const unsigned steeps = prepare_diagonal();
        Cell<T> *x = sides + group * G + t;
        BL_ROLLED
        for (int column = 0; column < N; column += G) {
            const int j = column + t, begin = column / STEP * STEP;
            BL_ROLLED
            for (int i = begin; i < N; i++)
                x[SIDE * i].x = from_real<T>(i == j ? 1 : 0);
            forward<false>(x, SIDE, steeps, begin);
            meet();
            BL_ROLLED
            for (int i = j; i < N; i++)
                packed[at(i, j)].x = x[SIDE * i].x;
            meet();
        }
        BL_ROLLED
        for (int column = 0; column < N; column += G) {
            const int j = column + t;
            BL_ROLLED
            for (int i = column; i < N; i++)
                x[SIDE * i].x = i >= j ? packed[at(i, j)].x : from_real<T>(0);
            BL_ROLLED
            for (int first = column / WIDTH * WIDTH; first < N; first += WIDTH) {
                T y[WIDTH];
                BL_UNROLL
                for (int i = 0; i < WIDTH; i++)
                    y[i] = from_real<T>(0);
                BL_UNROLL
                for (int k = 0; k < WIDTH; k++) {
                    T xk = first + k < column ? from_real<T>(0) : x[SIDE * (first + k)].x;
                    BL_UNROLL
                    for (int i = 0; i <= k; i++)
                        y[i] = fused(conj(packed[at(first + k, first) + i].x), xk, y[i]);
                }
                BL_ROLLED
                for (int k = first + WIDTH; k < N; k++) {
                    T xk = x[SIDE * k].x;
                    const Cell<T> *row = packed + at(k, first);
                    BL_UNROLL
                    for (int i = 0; i < WIDTH; i++)
                        y[i] = fused(conj(row[i].x), xk, y[i]);
                }
                BL_UNROLL
                for (int i = 0; i < WIDTH; i++)
                    if (first + i >= column)
                        x[SIDE * (first + i)].x =
                            first + i == j ? from_real<T>(real(y[i])) : y[i];
            }
            meet();
            BL_ROLLED
            for (int i = j; i < N; i++)
                packed[at(i, j)].x = x[SIDE * i].x;
            meet();
        }
    }
};

} // namespace bl
#endif
