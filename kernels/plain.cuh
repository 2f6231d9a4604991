/* LU factorisation by the plain loop: GETRFNP, without interchanges, and GETRFSP, with
 * implicit (scaled) partial pivoting: the pivot is the largest in relation to its row of
 * the matrix as it was given.
 *
 * Called by the kernels of plain.cu and by test/host_kernels.cc. LAPACK has neither, so
 * the loop is the definition: for k ascending, choose row k's pivot, divide the column
 * below it as GETRF does, then a(i,j) -= l(i,k) u(k,j) for all i, j > k, product and
 * difference rounded separately and none left out. Crout's order of the same sums and
 * every blocking give the same bits, NaN and -0 included; src/host_lu.c does it on the
 * host.
 */
#ifndef BL_PLAIN_CUH
#define BL_PLAIN_CUH

#include "lu.cuh"

namespace bl
{

/* One over the largest element of each row, which counts as sfmin where it is smaller. A
 * thread owns a row. */
template <class T>
BL_CALL void row_scales(const Team &team, int64_t m, int64_t n, const T *a, int64_t lda,
                        Real<T> *scale)
{
    using R = Real<T>;
    for (int64_t i = team.rank(); i < m; i += team.size()) {
        R most = sfmin<R>();
        for (int64_t j = 0; j < n; j++) {
            R x = abs1(a[i + j * lda]);
            if (x > most) /* never a NaN */
                most = x;
        }
        scale[i] = div(R(1), most);
    }
}

/* A single column of m rows: find the pivot, swap, divide. The scales follow their rows;
 * that of row 0 is not asked for again. True when the pivot is zero. Meets at its end. */
template <class T>
BL_CALL bool plain_column(Team &team, int64_t m, T *a, const Pivots &pivots,
                          Real<T> *scale)
{
    int64_t p = 0;
    if (pivots.p) {
        Best mine = {-1, INT64_MAX};
        for (int64_t i = team.rank(); i < m; i += team.size()) {
            double value = mul(abs1(a[i]), scale[i]);
            if (value > mine.value)
                mine = {value, i};
        }
        p = team.best(mine).index;
        Real<T> first = mul(abs1(a[0]), scale[0]);
        if (first != first)
            p = 0; /* as in IxAMAX a NaN there is never beaten */
        if (team.rank() == 0) {
            pivots.set(0, p);
            scale[p] = scale[0];
        }
    }
    return lu_divide(team, m, a, p);
}

/* m x n by blocks of WIDTH columns, these by blocks of an eighth of it, down to single
 * columns. pivots.p is NULL where there is no pivoting; no scales are read then. Meets at
 * its end. */
template <int WIDTH, class T>
BL_CALL int64_t plain_factor(Team &team, int64_t m, int64_t n, T *a, int64_t lda,
                             const Pivots &pivots, Real<T> *scale)
{
    int64_t order = least(m, n), info = 0;
    for (int64_t j = 0; j < order; j += WIDTH) {
        int64_t jb = least(WIDTH, order - j), rest = n - j - jb, zero = 0;
        T *d = a + j + j * lda, *right = d + jb * lda;
        if constexpr (WIDTH == 1) {
            zero = plain_column(team, m - j, d, pivots.from(j), scale + j);
        } else if (WIDTH < NB || team.blocks == 1 || m - j > 4096) {
            zero = plain_factor<WIDTH / 8>(team, m - j, jb, d, lda, pivots.from(j),
                                           scale + j);
        } else {
            /* A low panel is done by one block, which meets faster than a team does. */
            if (team.block == 0) {
                Team solo = team.solo();
                zero = plain_factor<WIDTH / 8>(solo, m - j, jb, d, lda, pivots.from(j),
                                               scale + j);
            }
            zero = team.from_first(zero);
        }
        if (zero && info == 0)
            info = j + zero;
        interchange(team, pivots.from(j), 0, jb, a + j, lda, j);
        interchange(team, pivots.from(j), 0, jb, right, lda, rest);
        team.sync();
        if (rest == 0)
            break;
        if (WIDTH > 1) {
            solve_left(team, Triangle<T>{d, lda, false, 'N', true, false}, jb, right, lda,
                       rest);
            team.sync();
        }
        update(team, Update<T>{SUB, m - j - jb, rest, jb, one<T>(), 'N', d + jb, lda, 'N',
                               right, lda, right + jb, lda});
        team.sync();
    }
    return info;
}

template <class T>
BL_HD int64_t getrfnp(Team &team, const Problem<T> &p)
{
    return plain_factor<NB>(team, p.m, p.n, p.a, p.lda, Pivots{}, (Real<T> *)nullptr);
}

/* The work space holds the scales of the m rows. */
template <class T>
BL_HD int64_t getrfsp(Team &team, const Problem<T> &p)
{
    Real<T> *scale = (Real<T> *)p.work;
    row_scales(team, p.m, p.n, p.a, p.lda, scale);
    team.sync();
    return plain_factor<NB>(team, p.m, p.n, p.a, p.lda, p.pivots, scale);
}

} // namespace bl
#endif
