/* Cholesky factorisation and what is solved with it: POTRF, POTRS, POSV, POTRI.
 *
 * Called by the kernels of cholesky.cu and by test/host_kernels.cc. The structure is
 * netlib's: left-looking by blocks of 64, each factored by halves. It decides which sums
 * start from the element and which from zero. The other triangle is never touched.
 */
#ifndef BL_CHOLESKY_CUH
#define BL_CHOLESKY_CUH

#include "inverse.cuh"

namespace bl
{

/* xPOTRF2: factor n <= NB by halves, on a stack of nodes as in lu_panel. One block's
 * work. INFO stops it where it stands. */
template <class T>
BL_CALL int cholesky_block(Team &team, bool upper, int n, T *a, int64_t lda)
{
    enum { NEW, LEFT };
    struct Node {
        int first, n, state;
    } stack[10];
    int top = 0;
    stack[0] = {0, n, NEW};
    while (top >= 0) {
        Node &node = stack[top];
        int f = node.first, n1 = node.n / 2, n2 = node.n - n1;
        T *d = a + f + f * lda;
        if (node.n == 1) {
            Real<T> x = real(*d);
            if (!(x > 0)) /* NaN too */
                return f + 1;
            team.sync();
            if (team.thread == 0)
                *d = from_real<T>(root(x));
            team.sync();
            top--;
        } else if (node.state == NEW) {
            node.state = LEFT;
            stack[++top] = {f, n1, NEW};
        } else {
            T *trailing = d + n1 + n1 * lda, minus = negative(from_real<T>(1));
            Triangle<T> t = {d, lda, upper, 'C', false};
            if (upper) {
                T *right = d + n1 * lda;
                solve_left(team, t, n1, right, lda, n2);
                team.sync();
                herk(team, true, 'C', n2, n1, minus, right, lda, trailing, lda);
            } else {
                T *below = d + n1;
                solve_right(team, t, one<T>(), n2, n1, below, lda);
                team.sync();
                herk(team, false, 'N', n2, n1, minus, below, lda, trailing, lda);
            }
            team.sync();
            node = {f + n1, n2, NEW}; /* nothing is left to do after the second half */
        }
    }
    return 0;
}

template <class T>
BL_CALL int64_t cholesky_factor(Team &team, bool upper, int64_t n, T *a, int64_t lda)
{
    const T minus = negative(from_real<T>(1));
    for (int64_t j = 0; j < n; j += NB) {
        int64_t jb = least(NB, n - j), next = j + jb, rest = n - next;
        T *d = a + j + j * lda;
        T *done = upper ? a + j * lda : a + j; /* what is left of or above d */
        T *beside = upper ? d + jb * lda : d + jb;
        herk(team, upper, upper ? 'C' : 'N', jb, j, minus, done, lda, d, lda);
        team.sync();
        int64_t info = 0;
        if (team.block == 0) {
            Team solo = team.solo();
            info = cholesky_block(solo, upper, int(jb), d, lda);
        }
        info = team.from_first(info);
        if (info)
            return j + info; /* what lies beside the block stays as it is */
        if (upper)
            gemm(team, 'C', 'N', jb, rest, j, minus, done, lda, a + next * lda, lda,
                 beside, lda);
        else
            gemm(team, 'N', 'C', rest, jb, j, minus, a + next, lda, done, lda, beside,
                 lda);
        team.sync();
        Triangle<T> t = {d, lda, upper, 'C', false};
        if (upper)
            solve_left(team, t, jb, beside, lda, rest);
        else
            solve_right(team, t, one<T>(), rest, jb, beside, lda);
        team.sync();
    }
    return 0;
}

template <class T>
BL_CALL void cholesky_solve(Team &team, bool upper, int64_t n, int64_t nrhs, const T *a,
                            int64_t lda, T *b, int64_t ldb)
{
    Triangle<T> plain = {a, lda, upper, 'N', false}, turned = {a, lda, upper, 'C', false};
    solve_left(team, upper ? turned : plain, n, b, ldb, nrhs);
    team.sync();
    solve_left(team, upper ? plain : turned, n, b, ldb, nrhs);
}

/* xTRMM, side right, upper, conjugate transposed, alpha = 1: B := B A', B is m x n. A
 * thread owns a row. */
template <class T>
BL_CALL void multiply_right(const Team &team, int64_t m, int n, const T *a, int64_t lda,
                            T *b, int64_t ldb)
{
    for (int64_t i = team.rank(); i < m; i += team.size())
        for (int j = 0; j < n; j++) {
            T factor = times_one(conj(a[j + j * lda])), x = b[i + j * ldb];
            if (!is_one(factor))
                x = mul(factor, x);
            for (int k = j + 1; k < n; k++) {
                T y = a[j + k * lda];
                if (!is_zero(y))
                    x = add(x, mul(times_one(conj(y)), b[i + k * ldb]));
            }
            b[i + j * ldb] = x;
        }
}

/* xTRMM, side left, lower, conjugate transposed, alpha = 1: B := A' B, A of order m <=
 * NB. A warp owns a column, its lane l the rows l, l + LANES, ... */
template <class T>
BL_CALL void multiply_left(const Team &team, int m, int64_t n, const T *a, int64_t lda,
                           T *b, int64_t ldb)
{
    constexpr int ROWS = NB / LANES;
    const int lane = team.lane();
    for (int64_t j = team.warp(); j < n; j += team.warps()) {
        T old[ROWS], x[ROWS];
        BL_UNROLL
        for (int r = 0; r < ROWS; r++) {
            int i = lane + LANES * r;
            old[r] = x[r] = from_real<T>(0);
            if (i < m) {
                old[r] = b[i + j * ldb];
                x[r] = mul(old[r], conj(a[i + i * lda]));
            }
        }
        BL_UNROLL
        for (int owner = 0; owner < ROWS; owner++)
            for (int from = 0; from < LANES && owner * LANES + from < m; from++) {
                int k = owner * LANES + from;
                T y = from_lane(old[owner], from);
                BL_UNROLL
                for (int r = 0; r <= owner; r++) {
                    int i = lane + LANES * r;
                    if (i < k)
                        x[r] = add(x[r], mul(conj(a[k + i * lda]), y));
                }
            }
        BL_UNROLL
        for (int r = 0; r < ROWS; r++) {
            int i = lane + LANES * r;
            if (i < m)
                b[i + j * ldb] = times_one(x[r]);
        }
    }
}

/* The square of a row's or column's length as xLAUU2 takes it: real matrices by a dot
 * product that includes the diagonal, complex ones by adding its square to one that does
 * not. `x` holds the n elements after the diagonal, `step` apart. */
template <class T>
BL_HD T squared_length(Real<T> diagonal, int n, const T *x, int64_t step)
{
    Real<T> sum = Traits<T>::complex ? 0 : add(Real<T>(0), mul(diagonal, diagonal));
    for (int k = 0; k < n; k++)
        sum = add(sum, real(mul(conj(x[k * step]), x[k * step])));
    if (Traits<T>::complex)
        sum = add(mul(diagonal, diagonal), sum);
    return from_real<T>(sum);
}

/* xLAUU2: U U' or L' L in place, order n <= NB. One block's work; a thread owns rows of
 * the column (upper) or columns of the row (lower) that a step forms. */
template <class T>
BL_CALL void square_block(Team &team, bool upper, int n, T *a, int64_t lda)
{
    for (int i = 0; i < n; i++) {
        const Real<T> diagonal = real(a[i + i * lda]);
        const int rest = n - 1 - i;
        const T beta = from_real<T>(diagonal);
        team.sync(); /* everyone has read the diagonal */
        for (int e = team.thread; e <= i; e += team.threads) {
            T *p = upper ? &a[e + i * lda] : &a[i + e * lda];
            if (rest == 0) {
                /* xDSCAL: a real factor times each part. */
                if (diagonal != 1) {
                    if constexpr (Traits<T>::complex)
                        *p = {mul(diagonal, p->re), mul(diagonal, p->im)};
                    else
                        *p = mul(diagonal, *p);
                }
                continue;
            }
            if (e == i) {
                *p = upper ? squared_length<T>(diagonal, rest, p + lda, lda)
                           : squared_length<T>(diagonal, rest, p + 1, 1);
                continue;
            }
            /* xGEMV with beta: the matrix is what lies after this row and column. */
            T x = upper ? *p : conj(*p);
            if (is_zero(beta))
                x = from_real<T>(0);
            else if (!is_one(beta))
                x = mul(beta, x);
            if (upper) {
                for (int k = i + 1; k < n; k++)
                    x = add(x, mul(times_one(conj(a[i + k * lda])), a[e + k * lda]));
                *p = x;
            } else {
                T sum = from_real<T>(0);
                for (int k = i + 1; k < n; k++)
                    sum = add(sum, mul(conj(a[k + e * lda]), a[k + i * lda]));
                *p = conj(add(x, times_one(sum)));
            }
        }
        team.sync();
    }
}

/* xLAUUM: U U' or L' L in place. Meets at its end. */
template <class T>
BL_CALL void square_triangle(Team &team, bool upper, int64_t n, T *a, int64_t lda)
{
    for (int64_t i = 0; i < n; i += NB) {
        int64_t ib = least(NB, n - i), next = i + ib, rest = n - next;
        T *d = a + i + i * lda;
        T *done = upper ? a + i * lda : a + i;
        if (upper)
            multiply_right(team, i, int(ib), d, lda, done, lda);
        else
            multiply_left(team, int(ib), i, d, lda, done, lda);
        team.sync();
        if (team.block == 0) {
            Team solo = team.solo();
            square_block(solo, upper, int(ib), d, lda);
        }
        team.sync();
        if (rest == 0)
            break;
        T *beyond = upper ? d + ib * lda : d + ib;
        herk(team, upper, upper ? 'N' : 'C', ib, rest, one<T>(), beyond, lda, d, lda);
        if (upper)
            gemm(team, 'N', 'C', i, ib, rest, one<T>(), a + next * lda, lda, beyond, lda,
                 done, lda, 1);
        else
            gemm(team, 'C', 'N', ib, i, rest, one<T>(), beyond, lda, a + next, lda, done,
                 lda, 1);
        team.sync();
    }
}

template <class T>
BL_HD int64_t potrf(Team &team, const Problem<T> &p)
{
    return cholesky_factor(team, p.uplo == 'U', p.n, p.a, p.lda);
}

template <class T>
BL_HD int64_t potrs(Team &team, const Problem<T> &p)
{
    cholesky_solve(team, p.uplo == 'U', p.n, p.nrhs, p.a, p.lda, p.b, p.ldb);
    return 0;
}

template <class T>
BL_HD int64_t posv(Team &team, const Problem<T> &p)
{
    int64_t info = cholesky_factor(team, p.uplo == 'U', p.n, p.a, p.lda);
    if (info == 0)
        cholesky_solve(team, p.uplo == 'U', p.n, p.nrhs, p.a, p.lda, p.b, p.ldb);
    return info;
}

template <class T>
BL_HD int64_t potri(Team &team, const Problem<T> &p)
{
    int64_t info = invert_triangle(team, p.uplo == 'U', p.n, p.a, p.lda, p.work);
    if (info == 0)
        square_triangle(team, p.uplo == 'U', p.n, p.a, p.lda);
    return info;
}

} // namespace bl
#endif
