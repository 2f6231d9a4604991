/* A block of 64 columns of a large Cholesky factorisation: its diagonal block, and what
 * lies below it or, for 'U', to its right.
 *
 * Called by the kernel of large_cholesky.cu and by test/host_large_cholesky.cc, where
 * threads are fibers. Both triangles are the same numbers v(i, k), i >= k: l(i, k), or
 * u(k, i), of which v(j, k)' v(i, k) is subtracted from v(i, j). They differ in the
 * order: 'L' subtracts one product after another; 'U' adds up the products of all earlier
 * blocks of 64 first, which the caller has done in `sums` (negative), and within the
 * block those of the left halves of netlib's recursion. Only the part of the triangle
 * itself is read and written. Netlib's bits depend on the order of every operation.
 *
 * The chain of 64 pivots is all that a step waits for, so every thread block goes through
 * it for itself rather than wait for another, and solves for ROWS of the rows beside. The
 * first warp, the leader, finishes a leaf of few columns at a time: all lanes factor the
 * leaf's triangle, each solves for two rows, and gives the next leaf's columns the
 * products with this one. Three helpers give them to the columns from there on, which the
 * leader needs a leaf later. The other four warps solve for the rows beside, strip by
 * strip of columns, as the leader publishes them.
 *
 * FAST takes no one's order: operations are fused, 'U' is done as 'L' is, and the rows
 * beside take the products of the strips before on the matrix units. It has a leader and
 * helpers of its own, see large_cholesky_fast.cuh.
 */
#ifndef BL_LARGE_CHOLESKY_CUH
#define BL_LARGE_CHOLESKY_CUH

#include "blas.cuh"
#include "large_diagonal.h"
#include "mid_tile.cuh"
#include "tiny_pieces.cuh"
#ifdef __CUDACC__
#    include "cluster.cuh"
#endif

namespace bl
{

template <class T>
BL_HD T *element(bool upper, T *a, int64_t lda, int64_t i, int64_t k)
{
    return upper ? a + k + i * lda : a + i + k * lda;
}

/* x over a positive number, given its reciprocal correctly rounded:
 * quick_signed_quotient() with the sign of a zero put right by its bit alone. */
BL_HD float quick_over(float x, float length, float inverse)
{
    return quick_signed_quotient(x, length, inverse);
}

BL_HD double quick_over(double x, double length, double inverse)
{
#ifdef __CUDA_ARCH__
    double q = mul(x, inverse);
    q = fma(fma(-length, q, x), inverse, q);
    const int sign = int(0x80000000u),
              high = (__double2hiint(q) & ~sign) | (__double2hiint(x) & sign);
    return __hiloint2double(high, __double2loint(q));
#else
    return quick_signed_quotient(x, length, inverse);
#endif
}

/* x over a positive real number as netlib divides by the conjugate of a complex one, and
 * whether the quotient could be had by its reciprocal. */
template <class R>
BL_HD R over(R x, R length, R inverse, bool &fine)
{
    fine &= is_plain(x);
    return quick_over(x, length, inverse);
}

template <class R>
BL_HD Complex<R> over(Complex<R> x, R length, R inverse, bool &fine)
{
    const R ratio = R(-0.0);
    return {over(add(x.re, mul(x.im, ratio)), length, inverse, fine),
            over(sub(x.im, mul(x.re, ratio)), length, inverse, fine)};
}

/* Any numbers. */
template <class R>
BL_HD R over(R x, R length)
{
    return careful_quotient(x, length);
}

template <class R>
BL_HD Complex<R> over(Complex<R> x, R length)
{
    const R ratio = R(-0.0);
    return {over(add(x.re, mul(x.im, ratio)), length),
            over(sub(x.im, mul(x.re, ratio)), length)};
}

/* The real or imaginary part. */
template <class R>
BL_HD R &part(R &x, int)
{
    return x;
}

template <class R>
BL_HD R &part(Complex<R> &x, int which)
{
    return which ? x.im : x.re;
}

/* c += a b' in fragments, see multiply_tile(). */
template <class R>
BL_HD void multiply_parts(R (&c)[1][4], const R (&a)[4], const R (&b)[2])
{
    multiply_tile(c[0], a, b[0], b[1]);
}

template <class R>
BL_HD void multiply_parts(R (&c)[2][4], const Complex<R> (&a)[4],
                          const Complex<R> (&b)[2])
{
    const R re[4] = {a[0].re, a[1].re, a[2].re, a[3].re},
            im[4] = {a[0].im, a[1].im, a[2].im, a[3].im};
    multiply_tile(c[0], re, b[0].re, b[1].re);
    multiply_tile(c[1], im, b[0].re, b[1].re);
    multiply_tile(c[0], im, b[0].im, b[1].im);
    multiply_tile(c[1], re, -b[0].im, -b[1].im);
}

/* Each part of x times y. */
template <class R>
BL_HD R each_times(R x, R y)
{
    return x * y;
}

template <class R>
BL_HD Complex<R> each_times(Complex<R> x, R y)
{
    return {x.re * y, x.im * y};
}

template <class T, bool UPPER, bool FAST = false>
struct CholeskyPanel {
    using R = Real<T>;
    static constexpr bool PARTED = UPPER && !FAST; /* netlib's order for 'U' */
    static constexpr int LEAF = Traits<T>::complex && !FAST ? 2 : 4, LEAVES = NB / LEAF;
    static constexpr int HELPERS = 3 * 32;               /* threads */
    static constexpr int STRIP = 8, STRIPS = NB / STRIP; /* columns for the rows beside */
    static constexpr int SHARE = 4;                      /* lanes that share such a row */
    static constexpr int SOLVERS = 4 * 32, ROWS = SOLVERS / SHARE;
    static constexpr int EACH = STRIP / SHARE; /* columns of a strip that a lane has */
    static constexpr int THREADS = 32 + HELPERS + SOLVERS;
    static constexpr int PITCH = NB + 16 / int(sizeof(T));
    static constexpr int NONE = NB; /* no pivot has failed */

    /* Of the diagonal block v(i, k), i >= k, is at k PITCH + i, and for 'U' the sum that
     * has not been added to it yet at i PITCH + k; that of the diagonal at k PITCH + NB,
     * which is otherwise free. Rows beside lie one after the other. */
    struct Memory {
        alignas(16) T block[NB * PITCH];
        alignas(16) T rows[ROWS * PITCH];
        R length[NB],
            inverse[NB]; /* of the diagonal; 0 in 'U': only a division will do */
        int row_of[NB];  /* where n < NB: at a position of the block; -1: none */
        int bad;         /* the first pivot that is not positive */
        bool writes;     /* this block writes the diagonal block back */
    };

    /* Barriers: the leader has published a leaf and the helpers have done with the one
     * before; the leader has published a strip. */
    enum { LEAF_DONE = 1, STRIP_DONE = 8 };

    static BL_HD void meet_warp()
    {
#ifdef __CUDACC__
        __syncwarp();
#else
        host_warp::meet();
#endif
    }

    static BL_HD void meet_block()
    {
#ifdef __CUDACC__
        __syncthreads();
#else
        host_warp::meet_at(0, THREADS);
#endif
    }

    static BL_HD void arrive_at(int barrier, int threads)
    {
#ifdef __CUDACC__
        cluster::come(barrier, threads);
#else
        host_warp::arrive_at(barrier, threads);
#endif
    }

    static BL_HD void meet_at(int barrier, int threads)
    {
#ifdef __CUDACC__
        cluster::await(barrier, threads);
#else
        host_warp::meet_at(barrier, threads);
#endif
    }

    static BL_HD bool anywhere(bool yes)
    {
#ifdef __CUDACC__
        return __any_sync(~0u, yes);
#else
        return host_warp::ballot(yes) != 0;
#endif
    }

    /* v(j, k)' v(i, k) */
    static BL_HD T product(T j, T i)
    {
        return mul(conj(j), i);
    }

    /* c - x y */
    static BL_HD T less(T c, T x, T y)
    {
        if constexpr (FAST)
            return fused(negative(x), y, c);
        else
            return sub(c, mul(x, y));
    }

    /* Is there a row at position p of 64, if the tree of halves of n <= 64 is to fit into
     * that of 64? Halving the smaller number never leaves more. */
    static BL_HD bool reached(int n, int p)
    {
        for (int size = NB; size > 1; size /= 2) {
            const int half = size / 2, left = n / 2;
            n = p >= half ? n - left : left;
            p -= p >= half ? half : 0;
        }
        return n > 0;
    }

    /* Positions that no row is at behave as rows of the unit matrix. */
    static BL_HD void place_rows(Memory &m, int n, int thread)
    {
        if (thread >= NB)
            return;
        int before = 0;
        for (int p = 0; PARTED && p < thread; p++)
            before += reached(n, p);
        if (!PARTED)
            m.row_of[thread] = thread < n ? thread : -1;
        else
            m.row_of[thread] = reached(n, thread) ? before : -1;
    }

    static BL_HD int row_at(const Memory &m, int n, int position)
    {
        return n == NB ? position : m.row_of[position];
    }

    /* The i-th row and k of the block, or of the rows beside, that a thread moves. */
    struct Place {
        int i, k;
        BL_HD Place(int e, int rows)
            : i(UPPER ? e / NB : e % rows), k(UPPER ? e % NB : e / rows)
        {
        }
    };

    static constexpr int MOVERS = 256; /* threads that fetch and put */
    static constexpr int COUNT = NB * NB / MOVERS, BESIDE = ROWS * NB / MOVERS;

    /* What a thread moves of the block of 64 or of the rows beside, all loads under way
     * at once. `there`: whether an element is. */
    template <int N, class There>
    static BL_HD void fetch_some(T (&x)[N], const LargeDiagonal<T> &d, int64_t first,
                                 int rows, int thread, const There &there)
    {
        const Place at(thread, rows);
        const int64_t step = UPPER ? MOVERS / NB : MOVERS / rows;
        const T *p = element<const T>(UPPER, d.a, d.lda, first + at.i, at.k);
        const T *sum = UPPER && d.sums ? element<const T>(UPPER, d.sums, d.ld_sums,
                                                          first + at.i, at.k)
                                       : nullptr;
        BL_UNROLL
        for (int q = 0; q < N; q++) {
            x[q] = from_real<T>(0);
            if (there(Place(q * MOVERS + thread, rows)))
                x[q] = p[q * step * d.lda];
        }
        if (UPPER && sum)
            BL_UNROLL
        for (int q = 0; q < N; q++)
            if (there(Place(q * MOVERS + thread, rows)))
                x[q] = add(x[q], sum[q * step * d.ld_sums]);
    }

    static BL_HD void put_rows_there(Memory &m, const T (&y)[BESIDE], int thread)
    {
        BL_UNROLL
        for (int q = 0; q < BESIDE; q++) {
            const Place at(q * MOVERS + thread, ROWS);
            m.rows[at.i * PITCH + at.k] = y[q];
        }
    }

    static BL_HD void fetch_rows(Memory &m, const LargeDiagonal<T> &d, int64_t first,
                                 int thread)
    {
        T y[BESIDE];
        if (thread >= MOVERS)
            return;
        fetch_some(y, d, d.n + first, ROWS, thread,
                   [&](Place at) { return first + at.i < d.beside; });
        put_rows_there(m, y, thread);
    }

    static BL_HD void fetch_all(Memory &m, const LargeDiagonal<T> &d, int64_t first,
                                int thread)
    {
        T x[COUNT], y[BESIDE];
        if (thread >= MOVERS)
            return;
        fetch_some(y, d, d.n + first, ROWS, thread,
                   [&](Place at) { return first + at.i < d.beside; });
        if (d.n == NB) {
            fetch_some(x, d, 0, NB, thread, [](Place at) { return at.i >= at.k; });
            BL_UNROLL
            for (int q = 0; q < COUNT; q++) {
                const Place at(q * MOVERS + thread, NB);
                m.block[at.k * PITCH + at.i] =
                    at.i == at.k ? from_real<T>(real(x[q])) : x[q];
            }
        } else {
            BL_ROLLED
            for (int e = thread; e < NB * NB; e += MOVERS) {
                const Place at(e, NB);
                const int i = m.row_of[at.i], k = m.row_of[at.k];
                T z = from_real<T>(at.i == at.k ? 1 : 0);
                if (at.i >= at.k && i >= 0 && k >= 0) {
                    z = *element(UPPER, d.a, d.lda, i, k);
                    if (UPPER && d.sums)
                        z = add(z, *element<const T>(UPPER, d.sums, d.ld_sums, i, k));
                }
                m.block[at.k * PITCH + at.i] = at.i == at.k ? from_real<T>(real(z)) : z;
            }
        }
        put_rows_there(m, y, thread);
    }

    static BL_HD void put_rows_back(const Memory &m, const LargeDiagonal<T> &d,
                                    int64_t first, int thread)
    {
        if (thread >= MOVERS)
            return;
        const Place mine(thread, ROWS);
        const int64_t step = UPPER ? MOVERS / NB : MOVERS / ROWS;
        T *to = element(UPPER, d.a, d.lda, d.n + first + mine.i, mine.k);
        T x[BESIDE];
        BL_UNROLL
        for (int q = 0; q < BESIDE; q++) {
            const Place at(q * MOVERS + thread, ROWS);
            x[q] = m.rows[at.i * PITCH + at.k];
        }
        BL_UNROLL
        for (int q = 0; q < BESIDE; q++)
            if (first + Place(q * MOVERS + thread, ROWS).i < d.beside)
                to[q * step * d.lda] = x[q];
    }

    static BL_HD void put_block(const Memory &m, const LargeDiagonal<T> &d, int thread)
    {
        BL_UNROLL_BY_FOUR
        for (int e = thread; e < NB * NB && thread < MOVERS; e += MOVERS) {
            const Place at(e, NB);
            const int i = row_at(m, d.n, at.i), k = row_at(m, d.n, at.k);
            if (at.i >= at.k && i >= 0 && k >= 0)
                *element(UPPER, d.a, d.lda, i, k) = m.block[at.k * PITCH + at.i];
        }
    }

    /* ---- leader ---- */

    /* That of a leaf; the diagonal has lengths. */
    struct Triangle {
        T d[LEAF][LEAF];
        R length[LEAF], inverse[LEAF];
    };

    struct Leaf : Triangle {
        T y[2][LEAF]; /* its columns in rows `lane` and 32 + lane */
    };

    template <bool CAREFUL>
    static BL_HD T scaled(T x, R length, R inverse, bool &fine)
    {
        if constexpr (FAST)
            return each_times(x, inverse);
        else if constexpr (!UPPER)
            return mul(from_real<T>(inverse), x);
        else if constexpr (CAREFUL)
            return over(x, length);
        else
            return over(x, length, inverse, fine);
    }

    /* Of four columns the first two are a left half; a sum of one product is no other
     * number. */
    static BL_HD constexpr bool parted(int k, int j)
    {
        return PARTED && LEAF == 4 && k < 2 && j >= 2;
    }

    /* False: there was something that only CAREFUL can do. Rows that are not below the
     * leaf are `dead`. `bad`: the first pivot that is not positive. */
    template <bool CAREFUL>
    static BL_HD bool finish(Leaf &leaf, const bool (&dead)[2], int &bad)
    {
        bool fine = true;
        T sum[LEAF][LEAF];
        BL_UNROLL
        for (int k = 0; k < LEAF; k++) {
            const R pivot = real(leaf.d[k][k]);
            R &length = leaf.length[k], &inverse = leaf.inverse[k];
            if (CAREFUL) {
                if (!(pivot > 0) && bad == NONE)
                    bad = k;
                length = root(pivot);
                inverse = PARTED ? R(0) : careful_quotient(R(1), length);
            } else {
                fine &= (pivot >= Quick<R>::LEAST) & (pivot <= Quick<R>::MOST);
                fine &= quick_root(pivot, length, inverse);
            }
            leaf.d[k][k] = from_real<T>(length);
            BL_UNROLL
            for (int i = k + 1; i < LEAF; i++)
                leaf.d[i][k] = scaled<CAREFUL>(leaf.d[i][k], length, inverse, fine);
            BL_UNROLL
            for (int i = k + 1; i < LEAF; i++)
                BL_UNROLL
            for (int j = k + 1; j <= i; j++) {
                if (!parted(k, j)) {
                    leaf.d[i][j] = less(leaf.d[i][j], conj(leaf.d[j][k]), leaf.d[i][k]);
                    continue;
                }
                const T p = product(leaf.d[j][k], leaf.d[i][k]);
                if (k == 0) {
                    sum[i][j] = negative(p);
                } else {
                    sum[i][j] = sub(sum[i][j], p);
                    leaf.d[i][j] = add(leaf.d[i][j], sum[i][j]);
                }
            }
            BL_UNROLL
            for (int s = 0; s < 2; s++) {
                bool good = true;
                BL_UNROLL
                for (int j = 0; j < k; j++)
                    leaf.y[s][k] = less(leaf.y[s][k], conj(leaf.d[k][j]), leaf.y[s][j]);
                leaf.y[s][k] = scaled<CAREFUL>(leaf.y[s][k], length, inverse, good);
                fine &= good | dead[s];
            }
        }
        return fine;
    }

    /* The lane's rows below the leaf; its triangle, which is the same in all lanes. */
    static BL_HD void put_rows(Memory &m, const Leaf &leaf, int first, int lane)
    {
        BL_UNROLL
        for (int s = 0; s < 2; s++)
            BL_UNROLL
        for (int w = 0; w < LEAF; w++)
            if (lane + 32 * s >= first + LEAF)
                m.block[(first + w) * PITCH + lane + 32 * s] = leaf.y[s][w];
    }

    static BL_HD void put_triangle(Memory &m, const Triangle &leaf, int first)
    {
        BL_UNROLL
        for (int w = 0; w < LEAF; w++) {
            BL_UNROLL
            for (int i = w; i < LEAF; i++)
                m.block[(first + w) * PITCH + first + i] = leaf.d[i][w];
            m.length[first + w] = leaf.length[w];
            m.inverse[first + w] = leaf.inverse[w];
        }
    }

    static BL_HD void get_triangle(const Memory &m, Triangle &leaf, int first)
    {
        BL_UNROLL
        for (int w = 0; w < LEAF; w++)
            BL_UNROLL
        for (int i = w; i < LEAF; i++)
            leaf.d[i][w] = m.block[(first + w) * PITCH + first + i];
    }

    static BL_HD void get_rows(const Memory &m, Leaf &leaf, int first, int lane)
    {
        BL_UNROLL
        for (int s = 0; s < 2; s++)
            BL_UNROLL
        for (int w = 0; w < LEAF; w++)
            leaf.y[s][w] = m.block[(first + w) * PITCH + lane + 32 * s];
    }

    /* A leaf that lies in shared memory as it was before, for any numbers. Not inlined:
     * it is rare and long. The first pivot of it that is not positive. */
    static BL_CALL int finish_carefully(Memory &m, int first, int lane)
    {
        Leaf leaf;
        int bad = NONE;
        get_triangle(m, leaf, first);
        get_rows(m, leaf, first, lane);
        meet_warp();
        finish<true>(leaf, {true, true}, bad);
        put_rows(m, leaf, first, lane);
        if (lane == 0)
            put_triangle(m, leaf, first);
        meet_warp();
        return bad == NONE ? NONE : first + bad;
    }

    /* Where k and j > k, leaves, are parted by netlib's halves: the end of that node, and
     * whether k is the first or the last of its left half. */
    struct Node {
        int end;
        bool first, last;
        BL_HD Node(int k, int j)
        {
#ifdef __CUDACC__
            const int half = 1 << (31 - __clz(k ^ j));
#else
            const int half = 1 << (31 - __builtin_clz(unsigned(k ^ j)));
#endif
            end = (k / half + 2) * half;
            first = k % half == 0;
            last = k % half == half - 1;
        }
    };

    static BL_HD int sum_at(int i, int j)
    {
        return i == j ? j * PITCH + NB : i * PITCH + j;
    }

    /* Leaf `to` loses its products with leaf `from`, of which y has rows `lane` and 32 +
     * lane. c: what becomes of these rows, as far as it has no sum that is still to be
     * added. All is read before anything is calculated, without branches, and written
     * by the caller: see put_leaf(). */
    struct Update {
        T c[2][LEAF];
        bool is_sum[2];
    };

    template <bool BOTH>
    static BL_HD void subtract(const Memory &m, Update &u, int from, int to, int lane,
                               const T (&y)[2][LEAF])
    {
        const Node node(from, to);
        const int first = from * LEAF, next = to * LEAF;
        T l[LEAF][LEAF], x[2][LEAF];
        BL_UNROLL
        for (int w = 0; w < LEAF; w++)
            BL_UNROLL
        for (int k = 0; k < LEAF; k++)
            l[w][k] = conj(m.block[(first + k) * PITCH + next + w]);
        BL_UNROLL
        for (int s = BOTH ? 0 : 1; s < 2; s++) {
            const int i = lane + 32 * s;
            const bool within = PARTED && i / LEAF < node.end;
            u.is_sum[s] = within && !node.last;
            BL_UNROLL
            for (int w = 0; w < LEAF; w++) {
                x[s][w] = m.block[(next + w) * PITCH + i];
                u.c[s][w] = x[s][w];
                if (PARTED && within)
                    u.c[s][w] =
                        node.first ? from_real<T>(0) : m.block[sum_at(i, next + w)];
            }
        }
        BL_UNROLL
        for (int k = 0; k < LEAF; k++)
            BL_UNROLL
        for (int s = BOTH ? 0 : 1; s < 2; s++)
            BL_UNROLL
        for (int w = 0; w < LEAF; w++)
            u.c[s][w] = less(u.c[s][w], l[w][k], y[s][k]);
        if constexpr (PARTED) {
            BL_UNROLL
            for (int s = BOTH ? 0 : 1; s < 2; s++)
                BL_UNROLL
            for (int w = 0; w < LEAF; w++)
                if (node.last && (lane + 32 * s) / LEAF < node.end)
                    u.c[s][w] = add(x[s][w], u.c[s][w]);
        }
    }

    /* The rows up to `end` of it. */
    template <bool BOTH>
    static BL_HD void put_leaf(Memory &m, const Update &u, int to, int lane, int end)
    {
        BL_UNROLL
        for (int s = BOTH ? 0 : 1; s < 2; s++)
            BL_UNROLL
        for (int w = 0; w < LEAF; w++) {
            const int i = lane + 32 * s, j = to * LEAF + w;
            if (i >= j && i < end)
                m.block[PARTED && u.is_sum[s] ? sum_at(i, j) : j * PITCH + i] = u.c[s][w];
        }
    }

    /* The first pivot that is not positive. */
    static BL_HD int lead(Memory &m, int lane)
    {
        Leaf leaf;
        int bad = NONE;
        get_triangle(m, leaf, 0);
        get_rows(m, leaf, 0, lane);
        Triangle last;
        bool pending = false; /* it is still to be written */
        BL_ROLLED
        for (int q = 0; q < LEAVES; q++) {
            const int first = q * LEAF, next = first + LEAF;
            /* Of the leaf before, while this one's chain is under way. */
            if (pending && lane == 0)
                put_triangle(m, last, first - LEAF);
            if (q > 0 && first % STRIP == 0)
                arrive_at(STRIP_DONE + first / STRIP - 1, 32 + SOLVERS);
            T before[2][LEAF];
            BL_UNROLL
            for (int s = 0; s < 2; s++)
                BL_UNROLL
            for (int w = 0; w < LEAF; w++)
                before[s][w] = leaf.y[s][w];
            bool fine = finish<false>(leaf, {lane < next, lane + 32 < next}, bad);
            if (PARTED) /* the others' triangles are the same, their rows are not */
                fine = !anywhere(!fine);
            if (fine) {
                put_rows(m, leaf, first, lane);
                meet_warp(); /* all have the triangle as it was, too */
            } else {
                BL_UNROLL
                for (int s = 0; s < 2; s++)
                    BL_UNROLL
                for (int w = 0; w < LEAF; w++)
                    if (lane + 32 * s >= next)
                        m.block[(first + w) * PITCH + lane + 32 * s] = before[s][w];
                meet_warp();
                const int failed = finish_carefully(m, first, lane);
                bad = bad == NONE ? failed : bad;
                get_rows(m, leaf, first, lane);
            }
            if (next == NB) {
                if (fine && lane == 0)
                    put_triangle(m, leaf, first);
                arrive_at(STRIP_DONE + STRIPS - 1, 32 + SOLVERS);
                break;
            }
            meet_at(LEAF_DONE, 32 + HELPERS);
            last = leaf;
            pending = fine;
            Update u;
            if (next < 32) {
                subtract<true>(m, u, q, q + 1, lane, leaf.y);
                put_leaf<true>(m, u, q + 1, lane, next + LEAF);
            } else {
                subtract<false>(m, u, q, q + 1, lane, leaf.y);
                put_leaf<false>(m, u, q + 1, lane, next + LEAF);
            }
            meet_warp();
            BL_UNROLL
            for (int w = 0; w < LEAF; w++) {
                leaf.y[0][w] = next < 32 ? u.c[0][w] : from_real<T>(0);
                leaf.y[1][w] = u.c[1][w];
            }
            get_triangle(m, leaf, next);
        }
        return bad;
    }

    /* ---- helpers ---- */

    static BL_HD void help(Memory &m, int helper, int lane)
    {
        BL_ROLLED
        for (int q = 0; q < LEAVES - 2; q++) {
            const int first = q * LEAF;
            meet_at(LEAF_DONE, 32 + HELPERS);
            T y[2][LEAF]; /* the leaf's triangle is still to be written */
            BL_UNROLL
            for (int s = 0; s < 2; s++) {
                const int i = lane + 32 * s;
                BL_UNROLL
                for (int k = 0; k < LEAF; k++)
                    y[s][k] = i < first + LEAF ? from_real<T>(0)
                                               : m.block[(first + k) * PITCH + i];
            }
            BL_ROLLED
            for (int to = q + 2 + helper; to < LEAVES; to += HELPERS / 32) {
                Update u;
                if (to < LEAVES / 2) {
                    subtract<true>(m, u, q, to, lane, y);
                    put_leaf<true>(m, u, to, lane, NB);
                } else {
                    subtract<false>(m, u, q, to, lane, y);
                    put_leaf<false>(m, u, to, lane, NB);
                }
            }
        }
        meet_at(LEAF_DONE, 32 + HELPERS);
    }

    /* ---- rows beside ---- */

    /* c less the products of `begin` columns: as the strip is shared out, a lane's
     * numbers are half of a fragment; the other half, of rows that are not there, is
     * zero. */
    static BL_HD void take_strips(const Memory &m, const T *own, int begin, int lane,
                                  T (&x)[EACH])
    {
        static_assert(STRIP == TILE_SIDE && SHARE == 4 && EACH == 2);
        constexpr int PARTS = Traits<T>::complex ? 2 : 1;
        const int share = lane % SHARE;
        R c[PARTS][4] = {};
        BL_UNROLL
        for (int e = 0; e < EACH; e++)
            BL_UNROLL
        for (int p = 0; p < PARTS; p++)
            c[p][e] = -part(x[e], p);
        BL_UNROLL_BY_TWO
        for (int k = 0; k < begin; k += TILE_SIDE) {
            const T *l = m.block + (k + share) * PITCH + begin + lane / SHARE;
            const T y[2] = {own[k + share], own[k + share + 4]},
                    z[2] = {l[0], l[4 * PITCH]};
            multiply_parts(c, {y[0], T(), y[1], T()}, z);
        }
        BL_UNROLL
        for (int e = 0; e < EACH; e++)
            BL_UNROLL
        for (int p = 0; p < PARTS; p++)
            part(x[e], p) = -c[p][e];
    }

    /* The lane's columns of a strip are c, c + 1, ...: `own` is its row, and what becomes
     * of it there is what done() is told. */
    template <bool WAITS, class Done>
    static BL_HD void solve_strip(Memory &m, T *own, int strip, int lane,
                                  const Done &done)
    {
        const int begin = strip * STRIP, share = lane % SHARE, c = begin + EACH * share;
        T x[EACH];
        BL_UNROLL
        for (int e = 0; e < EACH; e++)
            x[e] = own[c + e];
        if constexpr (FAST) {
            take_strips(m, own, begin, lane, x);
        } else {
            BL_UNROLL_BY_FOUR
            for (int k = 0; k < begin; k++) {
                const T y = own[k];
                BL_UNROLL
                for (int e = 0; e < EACH; e++)
                    x[e] = sub(x[e], product(m.block[k * PITCH + c + e], y));
            }
        }
        if (WAITS)
            meet_at(STRIP_DONE + strip, 32 + SOLVERS);
        BL_UNROLL
        for (int t = 0; t < STRIP; t++) {
            const int k = begin + t;
            bool fine = m.inverse[k] != 0;
            T y = x[t % EACH];
            if constexpr (PARTED) {
                const T quotient = over(y, m.length[k], m.inverse[k], fine);
                y = fine ? quotient : over(y, m.length[k]);
            } else if constexpr (FAST) {
                y = each_times(y, m.inverse[k]);
            } else {
                y = mul(from_real<T>(m.inverse[k]), y);
            }
            if (share == t / EACH)
                x[t % EACH] = y;
            y = from_lane(y, lane - share + t / EACH);
            BL_UNROLL
            for (int e = 0; e < EACH; e++)
                if (c + e > k)
                    x[e] = less(x[e], conj(m.block[k * PITCH + c + e]), y);
        }
        BL_UNROLL
        for (int e = 0; e < EACH; e++)
            own[c + e] = x[e];
        done(strip, x);
        meet_warp();
    }

    struct Nothing {
        BL_HD void operator()(int, const T (&)[EACH]) const
        {
        }
    };

    /* WAITS: while the leader is at work. */
    template <bool WAITS, class Done = Nothing>
    static BL_HD void solve(Memory &m, int solver, const Done &done = Done())
    {
        T *own = m.rows + solver / SHARE * PITCH;
        BL_ROLLED
        for (int strip = 0; strip < STRIPS; strip++)
            solve_strip<WAITS>(m, own, strip, solver % 32, done);
    }

    /* All threads; before it fetch_all(), before that place_rows() where n < NB, and
     * meetings between them; after it a meeting. */
    static BL_HD void factor(Memory &m, int thread)
    {
        const int lane = thread % 32;
        if (thread < 32) {
            const int bad = lead(m, lane);
            if (lane == 0)
                m.bad = bad;
        } else if (thread < 32 + HELPERS) {
            help(m, thread / 32 - 1, lane);
        } else {
            solve<true>(m, thread - 32 - HELPERS);
        }
    }

    /* Other rows, with the same block. */
    static BL_HD void factor_more(Memory &m, int thread)
    {
        if (thread >= 32 + HELPERS)
            solve<false>(m, thread - 32 - HELPERS);
    }

    static BL_HD void put_info(const Memory &m, const LargeDiagonal<T> &d)
    {
        if (m.writes && m.bad < NONE)
            *d.info = d.base + row_at(m, d.n, m.bad) + 1;
    }
};

} // namespace bl
#endif
