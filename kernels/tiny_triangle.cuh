/* A triangle of order n <= 32 in shared memory, and the group of lanes that owns it.
 *
 * The base of what tiny_cholesky.cuh and its like do with it, for the kernels of
 * tiny_potrf.cu, tiny_posv.cu and tiny_potri.cu, and for test/host_tiny_cholesky.cc,
 * where a warp is 32 fibers. A group of G lanes of a warp works on a matrix; the triangle
 * lies packed, L(i,k) or U(k,i) at i (i + 1) / 2 + k, where the input waits and its
 * factor takes its place. A lane owns the rows t, t + G, ... of L (columns of U). Nothing
 * may be read or written in global memory outside the triangle, nor depend on what the
 * other groups of the warp hold.
 */
#ifndef BL_TINY_TRIANGLE_CUH
#define BL_TINY_TRIANGLE_CUH

#include "tiny_pieces.cuh"

namespace bl
{

/* Lanes that a matrix of order N gets: few enough that not all of them wait for one
 * pivot, so many that its rows fit their registers and that they read whole sectors. Who
 * solves waits for chains, and has more matrices in a warp. */
template <class T>
constexpr int lanes_of(int N, bool solves)
{
    if (sizeof(T) == 16)
        return N <= 12 ? 4 : N <= 24 ? 8 : 16;
    return N <= (solves ? 16 : 12) ? 4 : 8;
}

/* N: the order the code is for, n <= N. U is factored in halves whose sums are formed
 * apart, and where the halves are depends on n. But halving n <= N never leaves more than
 * halving N does, so the tree of n fits into the tree of N: rows go to `positions` 0 ..
 * N-1 in their order, some of which stay free and behave as rows of the unit matrix. L,
 * and whatever is no factorisation, leaves the last positions free.
 */
template <class T, int N, int G, bool UPPER>
struct TinyTriangle {
    static constexpr int SLOTS = (N + G - 1) / G; /* positions a lane owns: t + G s */
    static constexpr int GROUPS = LANES / G;
    /* Cells between a group's triangle and the next: no two groups meet in a bank. */
    static constexpr int PITCH =
        GROUPS == 1 ? N * (N + 1) / 2
                    : N * (N + 1) / 2 + (G + 32 - N * (N + 1) / 2 % 32) % 32;
    static constexpr int SIDES = 0; /* cells that a warp needs besides */
    using R = Real<T>;

    int t;            /* the lane in its group */
    int group;        /* the group in its warp */
    Cell<T> *packed;  /* the group's triangle */
    unsigned taken;   /* bit p: position p holds a row */
    int info = 0;     /* 1 + the first position where the matrix is not definite */
    bool odd = false; /* it met NaN or Inf: netlib's result can be another */

    BL_HD TinyTriangle(int lane, Cell<T> *warp_packed)
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
};

} // namespace bl
#endif
