/* GETRFSP beyond the tiny orders: a row's scale, and the steps that are left where a NaN
 * or Inf has come up.
 *
 * Called by lu_on_chip of mid_lu.cuh and lu_panel of mid_blocked.cuh; the rest by all
 * threads of a block, for a matrix in global memory. plain.cuh says what GETRFSP is: no
 * product is left out, so no order of blocks shows. Speed is no aim.
 */
#ifndef BL_MID_SCALED_REST_CUH
#define BL_MID_SCALED_REST_CUH

#include "plain.cuh"

namespace bl
{

/* One over the largest element of a row, as row_scales() of plain.cuh. */
template <class T>
__device__ __forceinline__ Real<T> row_scale(const T *row, int64_t lda, int n)
{
    Real<T> most = sfmin<Real<T>>();
#pragma unroll 8
    for (int j = 0; j < n; j++) {
        const Real<T> x = abs1(row[j * lda]);
        most = x > most ? x : most; /* never a NaN */
    }
    return div(Real<T>(1), most);
}

/* The rest of GETRFSP from step `done` on, where a NaN or Inf has come up; scales by
 * positions. */
template <class T>
BL_CALL int64_t plain_rest(Team &team, int m, int n, T *a, int64_t lda,
                           const Pivots &pivots, Real<T> *scale, int done, int64_t info)
{
    for (int k = done; k < m && k < n; k++) {
        T *const column = a + k + k * lda;
        if (plain_column(team, m - k, column, pivots.from(k), scale + k) && info == 0)
            info = k + 1;
        const int64_t p = pivots.from(k).get(0) + k;
        for (int j = int(team.rank()); j < n; j += int(team.size()))
            if (j != k && p != k) {
                T *const c = a + j * lda, x = c[k];
                c[k] = c[p];
                c[p] = x;
            }
        team.sync();
        for (int j = k + 1; j < n; j++)
            for (int i = k + 1 + int(team.rank()); i < m; i += int(team.size()))
                a[i + j * lda] = sub(a[i + j * lda], mul(column[i - k], a[k + j * lda]));
        team.sync();
    }
    return info;
}

/* The same for a panel of `width` columns, of which those from `fresh` on have not seen
 * the steps before `done`. */
template <class T>
BL_CALL int64_t scaled_rest(Team &team, int m, int width, T *a, int64_t lda,
                            const Pivots &pivots, Real<T> *scale, int done, int fresh,
                            int64_t info)
{
    for (int k = 0; k < done; k++) {
        for (int j = fresh; j < width; j++)
            for (int i = k + 1 + int(team.rank()); i < m; i += int(team.size()))
                a[i + j * lda] = sub(a[i + j * lda], mul(a[i + k * lda], a[k + j * lda]));
        team.sync();
    }
    return plain_rest(team, m, width, a, lda, pivots, scale, done, info);
}

} // namespace bl
#endif
