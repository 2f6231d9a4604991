/* POTRF('U') of any order, left-looking by netlib's blocks of NB rows.
 *
 * Instantiated by mid_cholesky_columns.cu. A thread owns a column and keeps a panel's
 * rows of it in registers. The sums are netlib's: what lies above the block is summed up
 * from zero and then subtracted, and so is, inside the block on the diagonal, what the
 * left half of each node of xPOTRF2's recursion gives to the right one; the rest is
 * subtracted product by product. Nothing is ever skipped, so NaN and Inf need no care.
 */
#ifndef BL_MID_CHOLESKY_COLUMNS_CUH
#define BL_MID_CHOLESKY_COLUMNS_CUH

#include "mid_cholesky_rows.cuh"

namespace bl
{

template <class T>
struct CholeskyColumnsShared {
    static constexpr int W = ROW_PANEL<T>;
    static constexpr int PITCH_ = W + 16 / int(sizeof(T)); /* whole units of 16 bytes */
    /* Conjugated: [row above][column of the panel's block on the diagonal]. */
    alignas(16) T above[2][ROW_DEPTH][PITCH_];
    alignas(16) T factor[W][PITCH_]; /* that block itself */
    int bad;                         /* 1 + the first row that is not positive, or 0 */
};

/* An element less a sum, as xGEMM or, on the diagonal, xHERK with alpha = -1 forms it. */
template <class T>
BL_HD T less_sum(T x, T sum, bool diagonal)
{
    if (diagonal)
        return from_real<T>(add(-real(sum), real(x)));
    if constexpr (Traits<T>::complex)
        return add(mul(negative(one<T>()), sum), times_one(x));
    else
        return sub(x, sum);
}

/* Row i of the block of order n on the diagonal, from its columns' own rows before i: the
 * element of column c >= i. On the diagonal still the square. */
template <class T>
BL_HD T block_element(const T *d, int64_t lda, int n, int i, int c)
{
    const T *of_row = d + i * lda, *of_column = d + c * lda;
    T x = of_column[i];
    int first = 0;
    if (i == c)
        x = from_real<T>(real(x));
    while (n > 1) {
        const int half = n / 2;
        if (i - first >= half) {
            T sum = from_real<T>(0);
            BL_UNROLL_BY_TWO
            for (int l = first; l < first + half; l++)
                sum = add(sum, mul(of_column[l], conj(of_row[l])));
            x = less_sum(x, sum, i == c);
            first += half;
            n -= half;
        } else if (c - first < half)
            n = half;
        else
            break;
    }
    if (i == c)
        return x;
    x = times_one(x);
    BL_UNROLL_BY_TWO
    for (int l = first; l < i; l++)
        x = sub(x, mul(of_column[l], conj(of_row[l])));
    return x;
}

/* The block on the diagonal that begins at column j0, a thread a column, row after row.
 * INFO counted from its first row. Team of at least NB threads. */
template <class T>
BL_CALL int factor_block(CholeskyColumnsShared<T> &s, const Team &team, int n, T *d,
                         int64_t lda)
{
    const int c = team.thread;
    if (c == 0)
        s.bad = 0;
    for (int i = 0; i < n; i++) {
        T x = from_real<T>(0);
        if (c >= i && c < n)
            x = block_element(d, lda, n, i, c);
        if (c == i) {
            if (real(x) > 0)
                d[i + i * lda] = from_real<T>(root(real(x)));
            else
                s.bad = i + 1;
        }
        team.block_sync();
        if (s.bad)
            break;
        if (c > i && c < n)
            d[i + c * lda] = div(x, conj(d[i + i * lda]));
        team.block_sync();
    }
    return s.bad;
}

/* Rows p .. p + W - 1 of column c, in registers. */
template <class T>
struct CholeskyColumn {
    static constexpr int W = ROW_PANEL<T>;
    T x[W];

    template <bool SUM>
    BL_HD void products(const T (&above)[ROW_DEPTH][CholeskyColumnsShared<T>::PITCH_],
                        const T *column)
    {
        BL_UNROLL
        for (int half = 0; half < ROW_DEPTH; half += ROW_AHEAD) {
            T y[ROW_AHEAD];
            BL_UNROLL
            for (int k = 0; k < ROW_AHEAD; k++)
                y[k] = column[half + k];
            BL_UNROLL
            for (int k = 0; k < ROW_AHEAD; k++)
                BL_UNROLL
            for (int j = 0; j < W; j++) {
                T product = mul(above[half + k][j], y[k]);
                x[j] = SUM ? add(x[j], product) : sub(x[j], product);
            }
        }
    }
};

/* Products of rows `from` up to `to` with the panel at p, added up or subtracted. */
template <bool SUM, class T>
BL_HD void take_rows(CholeskyColumnsShared<T> &s, const Team &team, const T *a,
                     int64_t lda, int n, int p, int from, int to, bool busy,
                     const T *column, CholeskyColumn<T> &r)
{
    constexpr int W = ROW_PANEL<T>;
    for (int k = from; k < to; k += ROW_DEPTH) {
        auto &above = s.above[k / ROW_DEPTH % 2];
        for (int e = team.thread; e < ROW_DEPTH * W; e += team.threads) {
            const int l = e % ROW_DEPTH, j = e / ROW_DEPTH;
            above[l][j] = p + j < n ? conj(a[k + l + (p + j) * lda]) : from_real<T>(0);
        }
        team.block_sync();
        if (busy)
            r.template products<SUM>(above, column + k);
    }
    team.block_sync();
}

/* One matrix by the calling block, of at least NB threads. */
template <class T>
BL_HD void cholesky_columns(const CholeskyRows &g, CholeskyColumnsShared<T> &s,
                            const Team &team, int64_t number)
{
    constexpr int W = ROW_PANEL<T>;
    const CholeskyRowsItem<T> item(g, number);
    const int n = item.n, thread = team.thread, warp_first = thread / LANES * LANES;
    const int64_t lda = item.lda;
    T *a = item.a;

    for (int j0 = 0; j0 < n; j0 += NB) {
        const int next = n - j0 < NB ? n : j0 + NB;
        T *d = a + j0 * (lda + 1);
        /* First the block's own columns, then those to the right of it. */
        for (int base = j0; base < n; base = base == j0 ? next : base + team.threads) {
            const bool inside = base == j0;
            const int end = inside ? next : n, c = base + thread;
            const bool busy = base + warp_first < end;
            T *column = a + (c < n ? c : n - 1) * lda;
            for (int p = j0; p < next && !(inside && j0 == 0); p += W) {
                CholeskyColumn<T> r;
                BL_UNROLL
                for (int j = 0; j < W; j++)
                    r.x[j] = from_real<T>(0);
                take_rows<true>(s, team, a, lda, n, p, 0, j0, busy, column, r);
                BL_UNROLL
                for (int j = 0; j < W; j++)
                    if (c < end && p + j <= c) {
                        T x = column[p + j];
                        r.x[j] = j0 > 0 ? less_sum(x, r.x[j], p + j == c) : x;
                    }
                if (!inside) {
                    BL_UNROLL
                    for (int j = 0; j < W; j++)
                        r.x[j] = times_one(r.x[j]);
                    take_rows<false>(s, team, a, lda, n, p, j0, p, busy, column, r);
                    for (int e = thread; e < W * W; e += team.threads)
                        if (e % W <= e / W)
                            s.factor[e % W][e / W] =
                                conj(a[p + e % W + (p + e / W) * lda]);
                    team.block_sync();
                    if (busy) {
                        BL_UNROLL
                        for (int k = 0; k < W; k++) {
                            r.x[k] = div(r.x[k], s.factor[k][k]);
                            BL_UNROLL
                            for (int j = k + 1; j < W; j++)
                                r.x[j] = sub(r.x[j], mul(s.factor[k][j], r.x[k]));
                        }
                    }
                }
                BL_UNROLL
                for (int j = 0; j < W; j++)
                    if (c < end && p + j <= c && p + j < next)
                        column[p + j] = r.x[j];
                team.block_sync();
            }
            if (!inside)
                continue;
            const int bad = factor_block(s, team, next - j0, d, lda);
            if (bad) {
                if (thread == 0)
                    item.put_info(g, j0 + bad);
                return;
            }
        }
    }
    if (thread == 0)
        item.put_info(g, 0);
}

} // namespace bl
#endif
