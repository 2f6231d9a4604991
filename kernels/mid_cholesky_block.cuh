/* What a warp does with a block of a Cholesky factorisation: at most 32 rows and columns.
 *
 * Used by mid_cholesky.cuh. Both triangles are the same numbers v(i, k), i >= k: l(i, k),
 * or u(k, i), of which conj(v(j, k)) v(i, k) is subtracted from v(i, j). Every product
 * and difference is rounded on its own, in ascending k. 'L' subtracts one product after
 * the other. 'U' adds up what comes from the earlier columns of 64, and in the block of
 * 64 on the diagonal what the left half of a node of xPOTRF2's recursion gives to the
 * right half, and subtracts the sums; only the rows beyond a node take its products one
 * by one.
 *
 * That netlib skips some products with zeros shows only where a row holds NaN or Inf; its
 * own diagonal element is then not positive, and INFO says that it is of no meaning.
 *
 * A block lies in shared memory column after column. Nothing here waits for other warps.
 */
#ifndef BL_MID_CHOLESKY_BLOCK_CUH
#define BL_MID_CHOLESKY_BLOCK_CUH

#include "quick_root.cuh"
#include "team.cuh"

#ifdef __CUDACC__
#    define BL_ROLLED _Pragma("unroll 1")
#    define BL_UNROLL_BY_FOUR _Pragma("unroll 4")
#    define BL_BOTH __host__ __device__ __forceinline__
#else
#    define BL_BOTH inline
#    define BL_ROLLED
#    define BL_UNROLL_BY_FOUR
#endif

namespace bl
{

constexpr int SIDE = 32; /* of a block */

/* Elements in 16 bytes, and from one column of a block to the next: whole units of 16
 * bytes, and not all columns in the same banks. */
template <class T>
constexpr int UNIT = 16 / int(sizeof(T));
template <class T>
constexpr int BLOCK_PITCH = SIDE + UNIT<T>;
template <class T>
constexpr int BLOCK_ELEMENTS = SIDE *BLOCK_PITCH<T>;

/* In which order a factorization adds up: netlib's of 'L', netlib's of 'U', or that of
 * 'L' with fused operations, for both. */
enum CholeskyOrder { BY_PRODUCTS, BY_SUMS, FUSED };

/* v(j, k)' v(i, k) */
template <class T>
BL_HD T square_product(T j, T i)
{
    return mul(conj(j), i);
}

/* x less v(j, k)' v(i, k) */
template <CholeskyOrder ORDER, class R>
BL_HD R less_product(R x, R j, R i)
{
    if constexpr (ORDER == FUSED)
        return fma(-j, i, x);
    else
        return sub(x, square_product(j, i));
}
template <CholeskyOrder ORDER, class R>
BL_HD Complex<R> less_product(Complex<R> x, Complex<R> j, Complex<R> i)
{
    if constexpr (ORDER == FUSED)
        return {fma(-j.im, i.im, fma(-j.re, i.re, x.re)),
                fma(j.im, i.re, fma(-j.re, i.im, x.im))};
    else
        return sub(x, square_product(j, i));
}

/* An element less a sum, as xGEMM or, on the diagonal, xHERK with alpha = -1 forms it. */
template <class T>
BL_HD T less_sum(T x, T sum, bool diagonal)
{
    if constexpr (Traits<T>::complex) {
        const T y = add(mul(negative(one<T>()), sum), times_one(x));
        return diagonal ? from_real<T>(add(-real(sum), real(x))) : y;
    } else {
        return sub(x, sum);
    }
}

template <int N, class T>
BL_HD void load_units(const T *from, T (&to)[N])
{
    struct alignas(16) Unit {
        T x[UNIT<T>];
    };
    static_assert(N == UNIT<T>);
    const Unit u = *(const Unit *)from;
    BL_UNROLL
    for (int i = 0; i < N; i++)
        to[i] = u.x[i];
}

/* A warp's block in registers: a lane has TALL rows of WIDE columns. */
template <class T>
struct BlockTile {
    static constexpr int TALL = 4, WIDE = 8, RUN = UNIT<T>;
    T x[TALL][WIDE];
    int lane;

    BL_HD int row(int r) const
    {
        return r / RUN * (8 * RUN) + lane % 8 * RUN + r % RUN;
    }
    BL_HD int column(int s) const
    {
        return s / RUN * (4 * RUN) + lane / 8 * RUN + s % RUN;
    }
    template <class F>
    BL_HD void each(F act)
    {
        BL_UNROLL
        for (int s = 0; s < WIDE; s++)
            BL_UNROLL
        for (int r = 0; r < TALL; r++)
            act(x[r][s], row(r), column(s));
    }

    /* Products of `depth` columns, of rows `a` with those of the panel's
     * block on the diagonal `b`, added up or subtracted. */
    template <bool SUM, CholeskyOrder ORDER>
    BL_HD void products(const T *a, int pitch_a, const T *b, int pitch_b, int depth)
    {
        a += lane % 8 * RUN;
        b += lane / 8 * RUN;
        BL_UNROLL_BY_TWO
        for (int k = 0; k < depth; k++) {
            T left[TALL / RUN][RUN], right[WIDE / RUN][RUN];
            BL_UNROLL
            for (int r = 0; r < TALL / RUN; r++)
                load_units(a + r * (8 * RUN), left[r]);
            BL_UNROLL
            for (int s = 0; s < WIDE / RUN; s++)
                load_units(b + s * (4 * RUN), right[s]);
            BL_UNROLL
            for (int s = 0; s < WIDE; s++)
                BL_UNROLL
            for (int r = 0; r < TALL; r++) {
                const T &j = right[s / RUN][s % RUN], &i = left[r / RUN][r % RUN];
                x[r][s] = SUM ? add(x[r][s], square_product(j, i))
                              : less_product<ORDER>(x[r][s], j, i);
            }
            a += pitch_a;
            b += pitch_b;
        }
    }
};

/* ---- the block on the diagonal ---- */

/* Columns that are factored in registers. For 'U' there are sums beside them, and complex
 * code would get too long. */
constexpr int LEAF_OF_L = 16, LEAF = 8;

/* Of xPOTRF2's recursion on n columns, the smallest node that holds both k and j >= k. */
struct Node {
    int first, split, end;

    BL_BOTH constexpr Node(int n, int k, int j) : first(0), split(n / 2), end(n)
    {
        while (end - first > 1 && (j < split || k >= split)) {
            if (j < split)
                end = split;
            else
                first = split;
            split = first + (end - first) / 2;
        }
    }
};

/* Of a leaf of n columns, bit j (j - 1) / 2 + k for column j and the product from k < j:
 * of row i of the leaf, whether it is added to the sum; whether the sum is then complete;
 * of row i, whether it was the last sum. And bit j for column j: whether there is none.
 */
struct LeafRules {
    unsigned adds[LEAF + 1][LEAF + 1], last[LEAF + 1][LEAF + 1], complete[LEAF + 1];
    unsigned char none[LEAF + 1][LEAF + 1];

    constexpr LeafRules() : adds(), last(), complete(), none()
    {
        for (int n = 1; n <= LEAF; n++)
            for (int j = 0; j < n; j++)
                for (int i = j; i < n; i++) {
                    const int entered = i > j ? Node(n, j, i).first : -1;
                    if (entered == 0)
                        none[n][i] = (unsigned char)(none[n][i] | 1 << j);
                    for (int k = 0; k < j; k++) {
                        const unsigned bit = 1u << (j * (j - 1) / 2 + k);
                        if (i < Node(n, k, j).end)
                            adds[n][i] |= bit;
                        if (k + 1 == Node(n, k, j).split) {
                            complete[n] |= bit;
                            if (entered == k + 1)
                                last[n][i] |= bit;
                        }
                    }
                }
    }
};

#ifdef __CUDACC__
static __constant__ const LeafRules leaf_rules;
#else
static constexpr LeafRules leaf_rules;
#endif

template <class R>
BL_HD R choose(bool first, R x, R y)
{
    return first ? x : y;
}

template <class R>
BL_HD Complex<R> choose(bool first, Complex<R> x, Complex<R> y)
{
    return {first ? x.re : y.re, first ? x.im : y.im};
}

/* Lane i of a warp has row i of the block, which is of order n. */
template <class T, CholeskyOrder ORDER>
struct DiagonalBlock {
    using R = Real<T>;
    static constexpr bool UPPER = ORDER == BY_SUMS;
    static constexpr int WIDTH =
        UPPER || Traits<T>::complex ? LEAF : LEAF_OF_L; /* of a leaf */
    T *d;                                               /* the block */
    R *scale;                                           /* reciprocals of its diagonal */
    int n;
    const Team &team;

    BL_HD T &at(int i, int k) const
    {
        return d[k * BLOCK_PITCH<T> + i];
    }

    /* Where leaves are wide, it is all of the block that comes after the first leaf: at
     * most 16 rows and columns, of which a lane has 8 columns of a row. */
    BL_HD void apply_to_half(int j0) const
    {
        constexpr int HALF = WIDTH / 2;
        const int i = j0 + team.lane() % WIDTH, j = j0 + team.lane() / WIDTH * HALF;
        T x[HALF];
        BL_UNROLL
        for (int c = 0; c < HALF; c++)
            x[c] = at(i % SIDE, (j + c) % SIDE);
        BL_UNROLL_BY_FOUR
        for (int k = 0; k < j0; k++) {
            const T y = at(i % SIDE, k);
            BL_UNROLL
            for (int c = 0; c < HALF; c++)
                x[c] = less_product<ORDER>(x[c], at((j + c) % SIDE, k), y);
        }
        BL_UNROLL
        for (int c = 0; c < HALF; c++)
            if (i < n && j + c <= i)
                at(i, j + c) = x[c];
    }

    /* Products of the columns k0 to j0 with those from j0 to j1: a node of the recursion,
     * and its right half. */
    BL_HD void apply(int k0, int j0, int j1) const
    {
        if constexpr (WIDTH == LEAF_OF_L) {
            apply_to_half(j0);
            return;
        }
        const int i = team.lane();
        const bool inside = UPPER && i < j1;
        bool enters = false; /* the row has had its last sum with these columns */
        if constexpr (UPPER && Traits<T>::complex)
            enters = i >= j1 && i < n && Node(n, k0, i).first == k0;
        BL_ROLLED
        for (int j = j0; j < j1; j += WIDTH) {
            T x[WIDTH];
            BL_UNROLL
            for (int c = 0; c < WIDTH; c++) {
                x[c] = at(i, (j + c) % SIDE); /* beyond j1 of no use */
                if (UPPER && Traits<T>::complex)
                    x[c] = choose(enters, times_one(x[c]), x[c]);
                x[c] = choose(inside, from_real<T>(0), x[c]);
            }
            BL_UNROLL_BY_FOUR
            for (int k = k0; k < j0; k++) {
                const T y = at(i, k);
                BL_UNROLL
                for (int c = 0; c < WIDTH; c++) { /* beyond j1 it is of no use */
                    const T z = d[k * BLOCK_PITCH<T> + j + c];
                    if constexpr (UPPER)
                        x[c] = choose(inside, add(x[c], square_product(z, y)),
                                      sub(x[c], square_product(z, y)));
                    else
                        x[c] = less_product<ORDER>(x[c], z, y);
                }
            }
            BL_UNROLL
            for (int c = 0; c < WIDTH; c++)
                if (j + c < j1)
                    at(i, j + c) =
                        inside ? less_sum(at(i, j + c), x[c], i == j + c) : x[c];
        }
    }

    /* Element x less the product of LeafRules' number `bit`. */
    BL_HD static void take(T &x, T &sum, T product, int bit, bool diagonal, unsigned adds,
                           unsigned complete, unsigned last)
    {
        if constexpr (!UPPER) {
            x = sub(x, product);
        } else { /* without branches, which would cost more than what they save */
            const bool inside = adds >> bit & 1, whole = inside && (complete >> bit & 1);
            const T less = sub(x, product), more = add(sum, product);
            T rest = less_sum(x, more, diagonal);
            if (Traits<T>::complex)
                rest = choose(last >> bit & 1, times_one(rest), rest);
            x = choose(whole, rest, choose(inside, x, less));
            sum = choose(whole, from_real<T>(0), choose(inside, more, sum));
        }
    }

    /* The columns from f on, `count` <= WIDTH of them. INFO counted from the block's
     * first column. */
    BL_HD int leaf(int f, int count) const
    {
        const int lane = team.lane(), i = lane - f;
        const int rule = i >= 0 && i < count ? i : LEAF; /* none for rows beyond */
        unsigned adds = 0, complete = 0, last = 0;
        T x[WIDTH], sum[UPPER ? WIDTH : 1], y = from_real<T>(0);
        BL_UNROLL
        for (int c = 0; c < WIDTH; c++)
            x[c] = c < count ? at(lane, f + c) : from_real<T>(0);
        if constexpr (UPPER) {
            adds = leaf_rules.adds[count][rule];
            complete = leaf_rules.complete[count];
            BL_UNROLL
            for (int c = 0; c < WIDTH; c++)
                sum[c] = from_real<T>(0);
            if constexpr (Traits<T>::complex) {
                unsigned none = leaf_rules.none[count][rule];
                last = leaf_rules.last[count][rule];
                if (i >= count && lane < n && Node(n, f, lane).first == f)
                    none = 0xff;
                BL_UNROLL
                for (int c = 0; c < WIDTH; c++)
                    if (none >> c & 1)
                        x[c] = times_one(x[c]);
            }
        }
        /* The chain of roots and reciprocals is what all wait for; the products of a
         * column, but for what the next pivot needs, are done beside the next root. */
        R pivot = from_lane(real(x[0]), f);
        BL_UNROLL
        for (int k = 0; k < WIDTH; k++) {
            const bool usual = k < count && has_quick_root(pivot);
            R length, inverse, near;
            quick_root(pivot, length, inverse, near);
            BL_UNROLL
            for (int c = k; c < WIDTH && k > 0; c++)
                take(x[c], sum[UPPER ? c : 0],
                     square_product(d[(f + k - 1) * BLOCK_PITCH<T> + f + c], y),
                     c * (c - 1) / 2 + k - 1, i == c, adds, complete, last);
            if (!usual) {
                if (k >= count)
                    break;
                if (!(pivot > 0))
                    return f + k + 1;
                length = root(pivot);
                inverse = near = div(R(1), length);
            }
            if constexpr (UPPER)
                y = quotient(x[k], length, inverse, near);
            else
                y = mul(from_real<T>(inverse), x[k]);
            if (i == k)
                y = from_real<T>(length);
            if (k + 1 < WIDTH) {
                const int c = k + 1 < WIDTH ? k + 1 : k;
                const R square = real(square_product(y, y));
                R next;
                if constexpr (UPPER)
                    next = add(-add(real(sum[c]), square), real(x[c]));
                else
                    next = sub(real(x[c]), square);
                pivot = from_lane(next, (f + c) % SIDE);
            }
            at(lane, f + k) = y;
            if (i == k)
                scale[f + k] = inverse;
            team.warp_sync();
        }
        return 0;
    }

    /* INFO. What comes after a pivot that is not positive is of no meaning. */
    BL_HD int factor() const
    {
        const int middle = n > 2 * WIDTH ? n / 2 : 0;
        int bad = 0;
        BL_ROLLED
        for (int turn = 0; turn < 4 && bad == 0; turn++) {
            const int first = turn < 2 ? 0 : middle;
            const int end = turn < 2 && middle ? middle : n;
            const int inner = end - first > WIDTH ? (end - first) / 2 : 0;
            if ((turn >= 2 && !middle) || (turn % 2 && !inner))
                continue;
            if (turn == 2)
                apply(0, middle, n);
            if (turn % 2)
                apply(first, first + inner, end);
            team.warp_sync();
            const int f = turn % 2 ? first + inner : first;
            bad = leaf(f, turn % 2 || !inner ? end - f : inner);
            team.warp_sync();
        }
        return bad;
    }
};

/* ---- the blocks beside it ---- */

/* Lane i has row i of a block that takes up the n columns of the block on the diagonal
 * `d`. `enters`: its elements have had their last sum just now. */
template <class T, CholeskyOrder ORDER>
BL_HD void solve_block(T *block, const T *d, const Real<T> *scale, int n, bool enters,
                       const Team &team)
{
    constexpr bool UPPER = ORDER == BY_SUMS;
    T *own = block + team.lane();
    BL_ROLLED
    for (int j = 0; j < n; j += LEAF) {
        T x[LEAF];
        BL_UNROLL
        for (int c = 0; c < LEAF; c++) {
            x[c] = own[(j + c) * BLOCK_PITCH<T>];
            if (UPPER && enters)
                x[c] = times_one(x[c]);
        }
        BL_UNROLL_BY_FOUR
        for (int k = 0; k < j; k++) {
            const T y = own[k * BLOCK_PITCH<T>];
            T l[LEAF / UNIT<T>][UNIT<T>];
            BL_UNROLL
            for (int c = 0; c < LEAF / UNIT<T>; c++)
                load_units(d + k * BLOCK_PITCH<T> + j + c * UNIT<T>, l[c]);
            BL_UNROLL
            for (int c = 0; c < LEAF; c++)
                x[c] = less_product<ORDER>(x[c], l[c / UNIT<T>][c % UNIT<T>], y);
        }
        BL_UNROLL
        for (int k = 0; k < LEAF; k++) { /* beyond n it is of no use */
            const T *column = d + (j + k) * BLOCK_PITCH<T> + j;
            if constexpr (UPPER)
                x[k] = quotient(x[k], real(column[k]), scale[j + k], scale[j + k]);
            else
                x[k] = mul(from_real<T>(scale[j + k]), x[k]);
            BL_UNROLL
            for (int c = k + 1; c < LEAF; c++)
                x[c] = less_product<ORDER>(x[c], column[c], x[k]);
            own[(j + k) * BLOCK_PITCH<T>] = x[k];
        }
    }
}

} // namespace bl
#endif
