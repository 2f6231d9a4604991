/* POTRF('L') of any order by panels of columns, left-looking: for what does not fit a
 * block's shared memory.
 *
 * Instantiated by mid_cholesky_rows.cu. A thread owns a row of the panel and keeps it in
 * registers from the first product to the last; every element takes its products one by
 * one in ascending order, each rounded on its own, which is all that netlib's bits depend
 * on. That netlib skips some products with zeros shows only where a row holds NaN or Inf;
 * its own diagonal element is then not positive, and INFO says that it is of no meaning.
 */
#ifndef BL_MID_CHOLESKY_ROWS_CUH
#define BL_MID_CHOLESKY_ROWS_CUH

#include "problem.cuh"
#include "../src/engine.h"

namespace bl
{

/* What the kernel is told of a job. */
struct CholeskyRows {
    struct bl_operand a, info;
    const struct bl_item *items;
    int n, int_size; /* n: the largest */
    int parts;       /* blocks that share a matrix; then a launch does one panel */
    /* In the work space, if parts > 1: for each matrix a panel's factor on the diagonal,
     * which the next launch puts into its place, when no other block reads it any more;
     * and whether INFO is not 0, from where on the matrix is left alone. */
    void *factors;
    int *stopped;
};

/* Columns of a panel, and of those to the left that are multiplied with at once. */
template <class T>
constexpr int ROW_PANEL = sizeof(T) == 16 ? 16 : 32;
constexpr int ROW_DEPTH = 16, ROW_AHEAD = 8;

template <class T>
struct CholeskyRowsShared {
    static constexpr int W = ROW_PANEL<T>;
    /* Conjugated rows of the panel: [column on the left][row on the diagonal]. */
    alignas(16) T left[2][ROW_DEPTH][W];
    alignas(16) T factor[W][W]; /* the same of the panel itself */
    Real<T> scale[W];           /* reciprocals of the diagonal */
    int bad;                    /* 1 + the first column that is not positive, or 0 */
};

/* What a thread has of the panel that begins at column p. */
template <class T>
struct CholeskyRow {
    static constexpr int W = ROW_PANEL<T>;
    T x[W];

    BL_HD void fetch(const T *a, int64_t lda, int n, int p, int row)
    {
        BL_UNROLL
        for (int j = 0; j < W; j++) {
            x[j] = from_real<T>(0);
            if (row < n && p + j <= row)
                x[j] = a[row + (p + j) * lda];
            if (p + j == row)
                x[j] = from_real<T>(real(x[j]));
        }
    }

    /* Less the products with ROW_DEPTH columns on the left, the row's own from `a` on. */
    BL_HD void subtract(const T (&left)[ROW_DEPTH][W], const T *a, int64_t lda)
    {
        BL_UNROLL
        for (int half = 0; half < ROW_DEPTH; half += ROW_AHEAD) {
            T y[ROW_AHEAD];
            BL_UNROLL
            for (int k = 0; k < ROW_AHEAD; k++)
                y[k] = a[(half + k) * lda];
            BL_UNROLL
            for (int k = 0; k < ROW_AHEAD; k++)
                BL_UNROLL
            for (int j = 0; j < W; j++)
                x[j] = sub(x[j], mul(left[half + k][j], y[k]));
        }
    }

    /* The block on the diagonal, a warp's work, a lane a row. */
    BL_HD void factor(CholeskyRowsShared<T> &s, const Team &team, int p, int width)
    {
        const int lane = team.lane();
        int bad = 0;
        BL_UNROLL
        for (int k = 0; k < W; k++) {
            if (k >= width)
                break;
            const Real<T> pivot = from_lane(real(x[k]), k);
            if (bad == 0 && !(pivot > 0))
                bad = p + k + 1;
            const Real<T> length = root(pivot), scale = div(Real<T>(1), length);
            x[k] = lane == k ? from_real<T>(length) : mul(from_real<T>(scale), x[k]);
            if (lane < W)
                s.factor[k][lane] = conj(x[k]);
            if (lane == 0)
                s.scale[k] = scale;
            team.warp_sync();
            BL_UNROLL
            for (int j = k + 1; j < W; j++)
                x[j] = sub(x[j], mul(s.factor[k][j], x[k]));
        }
        if (lane == 0)
            s.bad = bad;
    }

    /* A row below it. */
    BL_HD void solve(const CholeskyRowsShared<T> &s)
    {
        BL_UNROLL
        for (int k = 0; k < W; k++) {
            x[k] = mul(from_real<T>(s.scale[k]), x[k]);
            BL_UNROLL
            for (int j = k + 1; j < W; j++)
                x[j] = sub(x[j], mul(s.factor[k][j], x[k]));
        }
    }
};

template <class T>
struct CholeskyRowsItem {
    int n;
    int64_t index, lda;
    T *a;

    BL_HD CholeskyRowsItem(const CholeskyRows &g, int64_t number)
    {
        n = g.n;
        index = number;
        lda = g.a.ld;
        if (g.items) {
            n = int(g.items[number].n);
            index = g.items[number].index;
            lda = g.items[number].lda;
        }
        a = g.a.array ? (T *)g.a.array[index] : (T *)g.a.p + index * g.a.stride;
    }
    BL_HD void put_info(const CholeskyRows &g, int info) const
    {
        if (g.int_size == 4)
            *(g.info.array ? (int32_t *)g.info.array[index]
                           : (int32_t *)g.info.p + index * g.info.stride) = info;
        else
            *(g.info.array ? (int64_t *)g.info.array[index]
                           : (int64_t *)g.info.p + index * g.info.stride) = info;
    }
};

/* Panels `first` up to `last` of one matrix by the calling block, or by its part of it.
 * The first warp has the rows on the diagonal (each part anew), the others 32 rows each
 * below them, as often as it takes. */
template <class T>
BL_HD void cholesky_rows(const CholeskyRows &g, CholeskyRowsShared<T> &s,
                         const Team &team, int64_t number, int part, int first, int last)
{
    constexpr int W = ROW_PANEL<T>;
    const CholeskyRowsItem<T> item(g, number);
    const int n = item.n, thread = team.thread, lane = team.lane();
    const int warp = thread / LANES, others = team.threads / LANES - 1;
    const int64_t lda = item.lda;
    T *a = item.a;

    if (n == 0 && first == 0 && part == 0 && thread == 0)
        item.put_info(g, 0);
    if (n <= first || (g.stopped && first > 0 && g.stopped[number]) ||
        (part > 0 && first + LANES + part * others * LANES >= n))
        return;
    if (g.parts > 1 && first > 0 && part == 0) {
        const T *from = (const T *)g.factors + number * W * W;
        T *to = a + (first - W) * (lda + 1);
        for (int e = thread; e < W * W; e += team.threads)
            if (e % W >= e / W)
                to[e % W + e / W * lda] = conj(from[e]);
        team.block_sync();
    }
    for (int p = first; p < last && p < n; p += W) {
        const int width = n - p < W ? n - p : W;
        for (int pass = 0; pass == 0 || p + LANES + pass * others * LANES < n; pass++) {
            int row = p + lane;
            if (warp > 0)
                row += (1 + (pass * g.parts + part) * others + warp - 1) * LANES;
            const bool busy = row - lane < n && (warp > 0 || pass == 0);
            CholeskyRow<T> r;
            if (busy)
                r.fetch(a, lda, n, p, row);
            const T *own = a + (row < n ? row : n - 1);
            for (int k = 0; k < p; k += ROW_DEPTH) {
                T(&left)[ROW_DEPTH][W] = s.left[k / ROW_DEPTH % 2];
                for (int e = thread; e < ROW_DEPTH * W; e += team.threads) {
                    const int j = e % W, l = e / W;
                    left[l][j] =
                        j < width ? conj(a[p + j + (k + l) * lda]) : from_real<T>(0);
                }
                team.block_sync();
                if (busy)
                    r.subtract(left, own + k * lda, lda);
            }
            const bool diagonal = row < p + width && pass == 0;
            if (warp == 0 && pass == 0)
                r.factor(s, team, p, width);
            team.block_sync();
            const int bad = s.bad;
            const bool apart = g.parts > 1 && p + W < n && bad == 0;
            if (diagonal && part == 0) {
                const int good = bad ? bad - 1 - p : width;
                for (int k = 0; k < good && k <= lane; k++)
                    if (!apart)
                        a[row + (p + k) * lda] = conj(s.factor[k][lane]);
            }
            if (part == 0 && apart)
                for (int e = thread; e < W * W; e += team.threads)
                    ((T *)g.factors)[number * W * W + e] = s.factor[e / W][e % W];
            if (bad) {
                if (part == 0 && thread == 0) {
                    item.put_info(g, bad);
                    if (g.stopped)
                        g.stopped[number] = bad;
                }
                return;
            }
            /* The first warp has such rows where a panel is narrower than it. */
            if (busy && row >= p + W && row < n && (warp > 0 || part == 0)) {
                if (warp > 0) /* else it came along with the diagonal */
                    r.solve(s);
                BL_UNROLL
                for (int k = 0; k < W; k++)
                    a[row + (p + k) * lda] = r.x[k];
            }
            team.block_sync();
            if (g.parts > 1)
                break;
        }
    }
    if (n <= last && part == 0 && thread == 0)
        item.put_info(g, 0);
}

} // namespace bl
#endif
