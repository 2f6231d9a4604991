/* LU factorisation with partial pivoting and what is solved with it: GETRF, GETRS, GESV,
 * and GETRSNP, the solver of factors that were never interchanged.
 *
 * Called by the kernels of lu.cu and by test/host_kernels.cc. The structure is netlib's:
 * blocks of 64 columns, each factored by halves down to single columns. It decides which
 * products with a zero factor are left out (inside a triangular solve) and which are not
 * (inside a matrix product), hence what becomes of NaN, Inf and -0.
 */
#ifndef BL_LU_CUH
#define BL_LU_CUH

#include "problem.cuh"

namespace bl
{

/* The end of xGETRF2 on a column of m rows: row p changes places with row 0, the others
 * are divided by it. True when it is zero, and then nothing is written. Meets at its end.
 */
template <class T>
BL_HD bool lu_divide(Team &team, int64_t m, T *a, int64_t p)
{
    const T top = a[0], pivot = a[p];
    team.sync(); /* both have been read by everyone */
    const bool zero = is_zero(pivot);
    if (!zero) {
        const bool multiply = reaches_sfmin(pivot);
        const T factor = div(one<T>(), pivot);
        const bool unchanged = is_one(factor);
        for (int64_t i = team.rank(); i < m; i += team.size()) {
            T x = i == p ? top : a[i];
            if (i == 0)
                x = pivot;
            else if (!multiply)
                x = div(x, pivot);
            else if (!unchanged)
                x = mul(factor, x);
            a[i] = x;
        }
    }
    team.sync();
    return zero;
}

/* xGETRF2 on a single column of m rows: find the pivot, swap, divide. `pivots` begins at
 * the column. True when the pivot is zero. Meets at its end. */
template <class T>
BL_CALL bool lu_column(Team &team, int64_t m, T *a, const Pivots &pivots)
{
    Best mine = {-1, INT64_MAX};
    for (int64_t i = team.rank(); i < m; i += team.size()) {
        double value = abs1(a[i]);
        if (value > mine.value)
            mine = {value, i};
    }
    int64_t p = team.best(mine).index;
    if (abs1(a[0]) != abs1(a[0]))
        p = 0; /* IxAMAX begins with element 1: a NaN there is never beaten */
    if (team.rank() == 0)
        pivots.set(0, p);
    return lu_divide(team, m, a, p);
}

/* xGETRF2: factor m x n with min(m, n) <= NB by halves. The recursion is kept on a stack
 * of nodes; a node is the columns `first` .. first + n - 1 from row `first` down. */
template <class T>
BL_CALL int64_t lu_panel(Team &team, int64_t m, int64_t n, T *a, int64_t lda,
                         const Pivots &pivots)
{
    enum { NEW, LEFT, RIGHT }; /* which half has been sent off */
    struct Node {
        int first, state;
        int64_t n;
    } stack[10];
    int64_t info = 0;
    int top = 0;
    stack[0] = {0, NEW, n};
    while (top >= 0) {
        Node &node = stack[top];
        int64_t f = node.first, rows = m - f, columns = node.n;
        T *d = a + f + f * lda;
        if (rows == 1) {
            if (team.rank() == 0)
                pivots.set(f, f);
            if (is_zero(*d) && info == 0)
                info = f + 1;
            team.sync();
            top--;
            continue;
        }
        if (columns == 1) {
            if (lu_column(team, rows, d, pivots.from(f)) && info == 0)
                info = f + 1;
            top--;
            continue;
        }
        int64_t n1 = least(rows, columns) / 2, n2 = columns - n1;
        if (node.state == NEW) {
            node.state = LEFT;
            stack[++top] = {node.first, NEW, n1};
        } else if (node.state == LEFT) {
            T *right = d + n1 * lda;
            interchange(team, pivots.from(f), 0, n1, right, lda, n2);
            team.sync();
            solve_left(team, Triangle<T>{d, lda, false, 'N', true}, n1, right, lda, n2);
            team.sync();
            gemm(team, 'N', 'N', rows - n1, n2, n1, negative(one<T>()), d + n1, lda,
                 right, lda, right + n1, lda);
            team.sync();
            node.state = RIGHT;
            stack[++top] = {int(f + n1), NEW, n2};
        } else {
            interchange(team, pivots.from(f), n1, least(rows, columns), d, lda, n1);
            team.sync();
            top--;
        }
    }
    return info;
}

/* A low panel is done by one block, which meets faster than a team does. */
template <class T>
BL_HD int64_t lu_panel_of_team(Team &team, int64_t m, int64_t n, T *a, int64_t lda,
                               const Pivots &pivots)
{
    if (team.blocks == 1 || m > 4096 || n > NB)
        return lu_panel(team, m, n, a, lda, pivots);
    int64_t info = 0;
    if (team.block == 0) {
        Team solo = team.solo();
        info = lu_panel(solo, m, n, a, lda, pivots);
    }
    return team.from_first(info);
}

template <class T>
BL_CALL int64_t lu_factor(Team &team, int64_t m, int64_t n, T *a, int64_t lda,
                          const Pivots &pivots)
{
    int64_t order = least(m, n), info = 0;
    if (order <= NB)
        return lu_panel_of_team(team, m, n, a, lda, pivots);
    for (int64_t j = 0; j < order; j += NB) {
        int64_t jb = least(NB, order - j), rest = n - j - jb;
        T *d = a + j + j * lda, *right = d + jb * lda;
        int64_t zero = lu_panel_of_team(team, m - j, jb, d, lda, pivots.from(j));
        if (zero && info == 0)
            info = j + zero;
        interchange(team, pivots.from(j), 0, jb, a + j, lda, j);
        interchange(team, pivots.from(j), 0, jb, right, lda, rest);
        team.sync();
        if (rest == 0)
            break;
        solve_left(team, Triangle<T>{d, lda, false, 'N', true}, jb, right, lda, rest);
        team.sync();
        gemm(team, 'N', 'N', m - j - jb, rest, jb, negative(one<T>()), d + jb, lda, right,
             lda, right + jb, lda);
        team.sync();
    }
    return info;
}

template <class T>
BL_CALL void lu_solve(Team &team, char trans, int64_t n, int64_t nrhs, const T *a,
                      int64_t lda, const Pivots &pivots, T *b, int64_t ldb)
{
    if (nrhs == 0)
        return;
    Triangle<T> lower = {a, lda, false, trans, true},
                upper = {a, lda, true, trans, false};
    if (trans == 'N') {
        interchange(team, pivots, 0, n, b, ldb, nrhs);
        team.sync();
        solve_left(team, lower, n, b, ldb, nrhs);
        team.sync();
        solve_left(team, upper, n, b, ldb, nrhs);
    } else {
        solve_left(team, upper, n, b, ldb, nrhs);
        team.sync();
        solve_left(team, lower, n, b, ldb, nrhs);
        team.sync();
        interchange(team, pivots, 0, n, b, ldb, nrhs, true);
    }
}

template <class T>
BL_HD int64_t getrf(Team &team, const Problem<T> &p)
{
    return lu_factor(team, p.m, p.n, p.a, p.lda, p.pivots);
}

template <class T>
BL_HD int64_t getrs(Team &team, const Problem<T> &p)
{
    lu_solve(team, p.trans, p.n, p.nrhs, p.a, p.lda, p.pivots, p.b, p.ldb);
    return 0;
}

template <class T>
BL_HD int64_t getrsnp(Team &team, const Problem<T> &p)
{
    lu_solve(team, p.trans, p.n, p.nrhs, p.a, p.lda, Pivots{}, p.b, p.ldb);
    return 0;
}

template <class T>
BL_HD int64_t gesv(Team &team, const Problem<T> &p)
{
    int64_t info = lu_factor(team, p.n, p.n, p.a, p.lda, p.pivots);
    if (info == 0)
        lu_solve(team, 'N', p.n, p.nrhs, p.a, p.lda, p.pivots, p.b, p.ldb);
    return info;
}

} // namespace bl
#endif
