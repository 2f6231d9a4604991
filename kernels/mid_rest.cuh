/* The rest of an LU factorisation where NaN or Inf have come up, as netlib goes on.
 *
 * Called by the kernels of mid_lu.cuh, by all threads of a block, for a matrix in global
 * memory whose first steps are done. Without NaN and Inf it does not matter which
 * products with a zero factor are left out, so the fast kernels do not ask; here
 * xGETRF2's recursion decides, element by element. It goes column by column, so that all
 * row positions are known; speed is no aim.
 */
#ifndef BL_MID_REST_CUH
#define BL_MID_REST_CUH

#include "lu.cuh"

namespace bl
{

/* Netlib takes column k out of column j > k of an m x n matrix twice: by xTRSM in the
 * rows above the one returned, which leaves zero factors out, and by xGEMM from there on.
 */
static BL_CALL int lu_split(int m, int n, int k, int j)
{
    int order = m < n ? m : n, first = 0, rows = m, columns = n;
    if (order > NB) {
        first = k / NB * NB;
        columns = order - first < NB ? order - first : NB;
        if (j >= first + columns)
            return first + columns;
        rows = m - first;
    }
    for (;;) {
        int half = (rows < columns ? rows : columns) / 2;
        if (half == 0)
            return m;
        if (j < first + half) {
            columns = half;
        } else if (k < first + half) {
            return first + half;
        } else {
            first += half;
            rows -= half;
            columns -= half;
        }
    }
}

/* xGEMM forms -1 times a complex u first, which makes both parts NaN where one is not
 * finite. The fast kernels do not: put it right in column j, where it has been updated
 * with columns before `done`, in the first `rows` rows. They must be where they will
 * stay. One thread. */
template <class T>
BL_CALL void lu_spread_nan(int m, int n, T *c, int rows, int j, int done)
{
    int from = m;
    for (int i = 0; i < rows && Traits<T>::complex; i++) {
        if (i >= from)
            c[i] = mul(from_real<T>(Real<T>(INFINITY)), from_real<T>(0));
        if (i < done && i < j && !is_finite(c[i])) {
            int split = lu_split(m, n, i, j);
            from = split < from ? split : from;
        }
    }
}

/* Column k of L, l, out of column j > k, c. Meets at its end. */
template <class T>
BL_CALL void lu_take(Team &team, int m, int n, T *c, int j, int k, const T *l)
{
    const T u = c[k], minus = mul(from_real<T>(-1), u);
    const int split = lu_split(m, n, k, j);
    for (int i = k + 1 + int(team.rank()); i < m; i += int(team.size()))
        if (i >= split)
            c[i] = add(c[i], mul(minus, l[i]));
        else if (!is_zero(u))
            c[i] = sub(c[i], mul(u, l[i]));
    team.sync();
}

/* Columns from `done` on, after steps 0 .. done - 1 with their interchanges in all of the
 * matrix; they have not been taken out of the columns from `fresh` on. `info` is theirs;
 * the whole one is returned. */
template <class T>
BL_CALL int64_t lu_rest(Team &team, int m, int n, T *a, int64_t lda, const Pivots &pivots,
                        int done, int fresh, int64_t info)
{
    const int order = m < n ? m : n;
    for (int j = int(team.rank()); j < done; j += int(team.size()))
        lu_spread_nan(m, n, a + j * lda, j < m ? j : m, j, done);
    for (int j = done; j < n; j++) {
        T *c = a + j * lda;
        const int steps = j < order ? j : order, taken = j < fresh ? done : 0;
        if (team.rank() == 0) {
            for (int k = done; k < steps; k++) {
                int64_t p = pivots.from(k).get(0) + k;
                T x = c[k];
                c[k] = c[p];
                c[p] = x;
            }
            lu_spread_nan(m, n, c, m, j, taken);
        }
        team.sync();
        for (int k = taken; k < steps; k++)
            lu_take(team, m, n, c, j, k, a + k * lda);
        if (j >= order)
            continue;
        if (lu_column(team, m - j, c + j, pivots.from(j)) && info == 0)
            info = j + 1;
        const int64_t p = pivots.from(j).get(0) + j;
        for (int64_t i = team.rank(); i < j && p != j; i += team.size()) {
            T x = a[j + i * lda];
            a[j + i * lda] = a[p + i * lda];
            a[p + i * lda] = x;
        }
        team.sync();
    }
    return info;
}

/* GETRS('N') of one right-hand side with factors in memory. A warp. */
template <class T>
__device__ __noinline__ void solve_slowly(const T *A, int64_t lda, int n,
                                          const Pivots &pivots, T *b)
{
    const int lane = threadIdx.x % 32;
    if (lane == 0)
        for (int k = 0; k < n; k++) {
            const int64_t p = pivots.get(k);
            const T x = b[k];
            b[k] = b[p];
            b[p] = x;
        }
    for (int step = 0; step < 2 * n; step++) {
        const bool up = step >= n;
        const int k = up ? 2 * n - 1 - step : step;
        __syncwarp();
        T y = b[k];
        __syncwarp();
        if (is_zero(y))
            continue;
        if (up) {
            y = div(y, A[k + k * lda]);
            if (lane == 0)
                b[k] = y;
        }
        for (int i = (up ? 0 : k + 1) + lane; i < (up ? k : n); i += 32)
            b[i] = sub(b[i], mul(y, A[i + k * lda]));
    }
    __syncwarp();
}

} // namespace bl
#endif
