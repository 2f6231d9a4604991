/* Inverses of triangles, and GETRI, GETRI_OOP, GEINV.
 *
 * Called by the kernels of inverse.cu and cholesky.cu (POTRI begins with the inverse of
 * its factor) and by test/host_kernels.cc. netlib forms most of this in place, column by
 * column; where several threads would overwrite what others still need, the same sums are
 * formed beside the matrix in the team's work space and copied back.
 */
#ifndef BL_INVERSE_CUH
#define BL_INVERSE_CUH

#include "lu.cuh"

namespace bl
{

/* xTRTI2: invert a triangle of order n <= NB in place, with a diagonal of its own. One
 * block's work. Shared memory: the column as it was. */
template <class T>
BL_CALL void invert_block(Team &team, bool upper, int n, T *a, int64_t lda)
{
#ifdef __CUDACC__
    T *old = shared_tiles<T>();
#else
    T old[NB];
#endif
    for (int step = 0; step < n; step++) {
        int j = upper ? step : n - 1 - step;
        int from = upper ? 0 : j + 1, to = upper ? j : n;
        T *column = a + j * lda;
        T inverse = div(one<T>(), column[j]), factor = negative(inverse);
        for (int i = from + team.thread; i < to; i += team.threads)
            old[i] = column[i];
        team.sync();
        if (team.thread == 0)
            column[j] = inverse;
        for (int i = from + team.thread; i < to; i += team.threads) {
            /* xTRMV: times the diagonal, then the products outwards from it. */
            T x = old[i];
            if (!is_zero(x))
                x = mul(x, a[i + i * lda]);
            for (int s = 1; upper ? i + s < to : i - s >= from; s++) {
                int k = upper ? i + s : i - s;
                if (!is_zero(old[k]))
                    x = add(x, mul(old[k], a[i + k * lda]));
            }
            if (!is_one(factor))
                x = mul(factor, x);
            column[i] = x;
        }
        team.sync();
    }
}

/* xTRMM, side left, not transposed, alpha = 1: W := A B where A is an upper or lower
 * triangle of order m and B is m x n. Every element of W is B's own times the diagonal,
 * then the products outwards from it. Meets inside, not at its end. */
template <class T>
BL_CALL void multiply_left_apart(Team &team, bool upper, int64_t m, int64_t n, const T *a,
                                 int64_t lda, const T *b, int64_t ldb, T *w, int64_t ldw)
{
    for (int64_t e = team.rank(); e < m * n; e += team.size()) {
        int64_t i = e % m, j = e / m, block = i / NB * NB;
        T x = b[i + j * ldb];
        if (!is_zero(x))
            x = mul(times_one(x), a[i + i * lda]);
        int64_t last = upper ? least(block + NB, m) - 1 - i : i - block;
        for (int64_t s = 1; s <= last; s++) {
            int64_t k = upper ? i + s : i - s;
            T y = b[k + j * ldb];
            if (!is_zero(y))
                x = add(x, mul(times_one(y), a[i + k * lda]));
        }
        w[i + j * ldw] = x;
    }
    team.sync();
    int64_t first = 0;
    for (int64_t row = 0; row < m; row += NB, first++) {
        int64_t rows = least(NB, m - row), next = row + rows;
        Update<T> u = {ADD, rows, n, row, one<T>(), 'N', a + row,
                       lda, 'N',  b, ldb, w + row,  ldw};
        if (upper) {
            u.k = m - next;
            u.a = a + row + next * lda;
            u.b = b + next;
        }
        u.skip = true;
        u.reverse = !upper;
        update(team, u, first);
    }
}

/* xTRTRI, not unit: INFO is the first zero of the diagonal, and then nothing is written.
 * Meets at its end. */
template <class T>
BL_CALL int64_t invert_triangle(Team &team, bool upper, int64_t n, T *a, int64_t lda,
                                T *work)
{
    Best zero = {-1, INT64_MAX};
    for (int64_t i = team.rank(); i < n && zero.value < 0; i += team.size())
        if (is_zero(a[i + i * lda]))
            zero = {1, i};
    zero = team.best(zero);
    team.sync();
    if (zero.value > 0)
        return zero.index + 1;
    for (int64_t step = 0; step < n; step += NB) {
        int64_t j = upper ? step : (n - 1) / NB * NB - step, jb = least(NB, n - j);
        int64_t row = upper ? 0 : j + jb, rows = upper ? j : n - row;
        T *d = a + j + j * lda, *b = a + row + j * lda;
        if (rows > 0) {
            multiply_left_apart(team, upper, rows, jb, a + row + row * lda, lda, b, lda,
                                work, n);
            team.sync();
            /* A thread copies the rows that it then solves for. */
            for (int64_t i = team.rank(); i < rows; i += team.size())
                for (int64_t k = 0; k < jb; k++)
                    b[i + k * lda] = work[i + k * n];
            solve_right(team, Triangle<T>{d, lda, upper, 'N', false},
                        negative(from_real<T>(1)), rows, jb, b, lda);
            team.sync();
        }
        if (team.block == 0) {
            Team solo = team.solo();
            invert_block(solo, upper, int(jb), d, lda);
        }
        team.sync();
    }
    return 0;
}

/* xGETRI: the inverse of U, then columns of the inverse of A from the last, `block` at a
 * time with L's columns moved to the work space; then the interchanges of columns. */
template <class T>
BL_CALL int64_t lu_invert(Team &team, int64_t n, int64_t block, T *a, int64_t lda,
                          const Pivots &pivots, T *work)
{
    int64_t info = invert_triangle(team, true, n, a, lda, work);
    if (info)
        return info;
    const bool blocked = block >= 2 && block < n;
    const int64_t nb = blocked ? block : 1;
    for (int64_t j = (n - 1) / nb * nb; j >= 0; j -= nb) {
        int64_t jb = least(nb, n - j), next = j + jb;
        T *columns = a + j * lda;
        for (int64_t e = team.rank(); e < jb * (n - j); e += team.size()) {
            int64_t i = j + e % (n - j), k = e / (n - j);
            if (i <= j + k)
                continue;
            work[i + k * n] = columns[i + k * lda];
            columns[i + k * lda] = from_real<T>(0);
        }
        team.sync();
        gemm(team, 'N', 'N', n, jb, n - next, negative(one<T>()), a + next * lda, lda,
             work + next, n, columns, lda);
        team.sync();
        if (!blocked)
            continue;
        solve_right(team, Triangle<T>{work + j, n, false, 'N', true}, one<T>(), n, jb,
                    columns, lda);
        team.sync();
    }
    for (int64_t i = team.rank(); i < n; i += team.size())
        for (int64_t j = n - 2; j >= 0; j--) {
            int64_t p = pivots.get(j);
            if (p == j)
                continue;
            T x = a[i + j * lda];
            a[i + j * lda] = a[i + p * lda];
            a[i + p * lda] = x;
        }
    return 0;
}

template <class T>
BL_HD int64_t getri(Team &team, const Problem<T> &p)
{
    return lu_invert(team, p.n, p.block, p.a, p.lda, p.pivots, p.work);
}

/* X is A itself or apart from it. */
template <class T>
BL_HD void copy_to_inverse(Team &team, const Problem<T> &p)
{
    if (p.x != p.a)
        copy(team, p.n, p.n, p.a, p.lda, p.x, p.ldx);
    team.sync();
}

/* X := the inverse of A, whose factors A holds: GETRI with all the work space it asks
 * for. INFO > 0: X holds the factors too. */
template <class T>
BL_HD int64_t getri_oop(Team &team, const Problem<T> &p)
{
    copy_to_inverse(team, p);
    return lu_invert(team, p.n, NB, p.x, p.ldx, p.pivots, p.work);
}

/* X := the inverse of A, GETRF and GETRI in one. The work space holds IPIV, then GETRI's.
 * INFO > 0: X holds the factors. */
template <class T>
BL_HD int64_t geinv(Team &team, const Problem<T> &p)
{
    Pivots pivots = {p.work, sizeof(int64_t), 0};
    copy_to_inverse(team, p);
    int64_t info = lu_factor(team, p.n, p.n, p.x, p.ldx, pivots);
    if (info == 0)
        info = lu_invert(team, p.n, NB, p.x, p.ldx, pivots, behind_pivots(p));
    return info;
}

} // namespace bl
#endif
