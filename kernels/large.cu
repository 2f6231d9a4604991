/* The family of kernels for one large matrix: LU and Cholesky.
 *
 * Called by engine.cu. A job is a sequence of kernels from large.h and large_panel.h,
 * enqueued on the job's stream for one matrix after another; nothing is decided by the
 * data, so it can be captured. The outer block is as wide as the update needs to be
 * limited by arithmetic rather than by memory; within it narrow panels are factored and
 * applied to its rest.
 */
#include "large.h"
#include "large_panel.h"

namespace bl
{

namespace
{

constexpr int64_t SMALLEST = 257; /* min(m, n) from which it is ahead of the others */
constexpr int64_t MOST_MATRICES = 4;
constexpr int CHOLESKY_BLOCK = 64; /* netlib's, which its order for 'U' depends on */

int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

const size_t element[BL_PRECISIONS] = {4, 8, 8, 16};

/* How a job's work space is laid out; all matrices of a batch use the same in turn. */
struct Layout {
    size_t state, moves, panel, sums, reversed, all;
};

bool has_lu(const struct bl_job *job)
{
    return job->routine == BL_GETRF || job->routine == BL_GESV;
}

bool has_cholesky(const struct bl_job *job)
{
    return job->routine == BL_POTRF || job->routine == BL_POSV;
}

bool has_solve(const struct bl_job *job)
{
    return job->routine != BL_GETRF && job->routine != BL_POTRF;
}

/* What the steps of a matrix tell each other. */
struct State {
    int64_t info;
    int odd;
};

Layout layout_of(const struct bl_job *job, const Card &card)
{
    Layout at = {};
    at.moves = aligned(sizeof(State));
    at.panel = at.moves + aligned(sizeof(LargeMoves));
    at.sums = at.panel;
    if (has_lu(job))
        at.sums += aligned(large_panel_workspace(job->precision, job->m, card));
    at.reversed = at.sums;
    if (has_cholesky(job) && job->uplo == 'U')
        at.reversed += aligned(job->n * job->n * element[job->precision]);
    at.all = at.reversed;
    if (has_solve(job)) /* 128 is the most that LARGE_BLOCK is */
        at.all += aligned(128 * job->nrhs * element[job->precision]);
    return at;
}

__global__ void write_info(const State *state, void *info, int int_size)
{
    if (int_size == 4)
        *(int32_t *)info = int32_t(state->info);
    else
        *(int64_t *)info = state->info;
}

/* One matrix in work, and the first error so far. */
template <class T>
struct Matrix {
    const struct bl_job *job;
    const Card &card;
    cudaStream_t stream;
    int64_t m, n;
    T *a;
    int64_t lda;
    char *ipiv;
    State *state;
    LargeMoves *moves;
    void *panel_work;
    T *sums;
    T *b;
    int64_t ldb;
    T *reversed;
    cudaError_t error;

    T *at(int64_t i, int64_t j) const
    {
        return a + i + j * lda;
    }
    void *pivots(int64_t k) const
    {
        return ipiv + k * job->int_size;
    }
    void then(cudaError_t next)
    {
        if (error == cudaSuccess)
            error = next;
    }
};

template <class T>
void factor_panel(Matrix<T> &x, int64_t j, int w)
{
    x.then(large_panel_launch({x.job->precision, x.m - j, w, x.at(j, j), x.lda, j,
                               x.pivots(j), x.job->int_size, &x.state->info,
                               &x.state->odd, x.moves, x.panel_work},
                              x.card, x.stream));
}

/* Rows from j on of the columns j .. j + w - 1 have been factored: interchanges in the
 * columns from `left` to j and from j + w to `right`; of the latter also the rows of U
 * and the update of all rows below. */
template <class T>
void apply_block(Matrix<T> &x, int64_t j, int w, int64_t left, int64_t right)
{
    const int64_t next = j + w;
    x.then(large_step(LargeStep<T>{w, x.pivots(j), x.job->int_size, j, x.at(j, j), x.lda,
                                   x.at(j, 0), x.lda, left, j, next, right},
                      x.stream));
    x.then(large_update(LargeUpdate<T>{x.m - next, right - next, w, x.at(next, j), x.lda,
                                       x.at(j, next), x.lda, x.at(next, next), x.lda,
                                       PLAIN, PLAIN, WHOLE},
                        x.card, x.stream));
}

template <class T>
void factor_lu(Matrix<T> &x)
{
    const int64_t order = least(x.m, x.n);
    for (int64_t j = 0; j < order; j += LARGE_BLOCK<T>) {
        const int64_t end = least(j + LARGE_BLOCK<T>, order);
        for (int64_t i = j, w; i < end; i += w) {
            w = least(large_panel_width(x.job->precision, x.m - i, x.card), end - i);
            factor_panel(x, i, int(w));
            apply_block(x, i, int(w), j, end);
        }
        apply_block(x, j, int(end - j), 0, x.n); /* its own columns have had theirs */
    }
}

/* From the triangle's point of view: element (i, k) of v in large_cholesky.cuh. */
template <class T>
T *in_triangle(const Matrix<T> &x, T *a, int64_t lda, int64_t i, int64_t k)
{
    return x.job->uplo == 'U' ? a + k + i * lda : a + i + k * lda;
}

/* The rows and columns of v from `first` on, the latter up to `last`, less the products
 * of the columns j .. j + w - 1. For 'U' the negative sums of the products. */
template <class T>
void update_triangle(Matrix<T> &x, int64_t j, int64_t w, int64_t first, int64_t last)
{
    const bool upper = x.job->uplo == 'U';
    const int64_t rows = x.n - first, columns = last - first;
    const T *v = in_triangle(x, x.a, x.lda, first, j);
    if (upper)
        x.then(large_update(LargeUpdate<T>{columns, rows, w, v, x.lda, v, x.lda,
                                           x.sums + first + first * x.n, x.n, TURNED,
                                           PLAIN, UPPER_PART},
                            x.card, x.stream));
    else
        x.then(large_update(LargeUpdate<T>{rows, columns, w, v, x.lda, v, x.lda,
                                           x.at(first, first), x.lda, PLAIN, TURNED,
                                           LOWER_PART},
                            x.card, x.stream));
}

template <class T>
void factor_cholesky(Matrix<T> &x)
{
    constexpr int64_t OUTER = LARGE_BLOCK<T>;
    const bool upper = x.job->uplo == 'U';
    if (upper)
        x.then(cudaMemsetAsync(x.sums, 0, x.n * x.n * sizeof(T), x.stream));
    for (int64_t j = 0; j < x.n; j += OUTER) {
        const int64_t end = least(j + OUTER, x.n);
        for (int64_t i = j, w; i < end; i += w) {
            w = least(CHOLESKY_BLOCK, end - i);
            x.then(large_diagonal(
                LargeDiagonal<T>{upper, int(w), x.at(i, i), x.lda,
                                 upper && i > 0 ? x.sums + i + i * x.n : nullptr, x.n,
                                 x.n - i - w, &x.state->info, i},
                x.stream));
            if (i + w < end)
                update_triangle(x, i, w, i + w, end);
        }
        update_triangle(x, j, end - j, end, x.n);
    }
}

/* The rows of B from `to` to `end`, less rows and columns j .. j + w - 1 of A times the
 * solution there. */
template <class T>
void update_sides(Matrix<T> &x, Placing placing, bool upwards, int64_t j, int64_t w)
{
    const int64_t to = upwards ? 0 : j + w, end = upwards ? j : x.n;
    LargeUpdate<T> u = {
        end - to,      x.job->nrhs, w,     placing == PLAIN ? x.at(to, j) : x.at(j, to),
        x.lda,         x.b + j,     x.ldb, x.b + to,
        x.ldb,         placing,     PLAIN, WHOLE,
        &x.state->info};
    if (upwards && placing == PLAIN) { /* the last column's product comes first */
        u.a = x.at(to, j + w - 1);
        u.lda = -x.lda;
        u.b = x.reversed;
        u.ldb = LARGE_BLOCK<T>;
    }
    x.then(large_update(u, x.card, x.stream));
}

/* B := P L^-1 B, as in xGETRS. */
template <class T>
void solve_with_l(Matrix<T> &x)
{
    for (int64_t j = 0, w; j < x.n; j += w) {
        w = least(LARGE_BLOCK<T>, x.n - j);
        x.then(large_step(LargeStep<T>{int(w), x.pivots(j), x.job->int_size, j,
                                       x.at(j, j), x.lda, x.b + j, x.ldb, 0, 0, 0,
                                       x.job->nrhs, &x.state->info},
                          x.stream));
        update_sides(x, PLAIN, false, j, w);
    }
}

/* B := op(A)^-1 B for a triangle with its diagonal. */
template <class T>
void solve_with_triangle(Matrix<T> &x, bool upper, Placing placing)
{
    const bool upwards = upper == (placing == PLAIN);
    const int64_t blocks = (x.n + LARGE_BLOCK<T> - 1) / LARGE_BLOCK<T>;
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t j = (upwards ? blocks - 1 - i : i) * LARGE_BLOCK<T>,
                      w = least(LARGE_BLOCK<T>, x.n - j);
        x.then(large_triangle(LargeTriangle<T>{int(w), x.at(j, j), x.lda, placing,
                                               upwards, false, x.b + j, x.ldb,
                                               x.job->nrhs, x.reversed, &x.state->info},
                              x.stream));
        update_sides(x, placing, upwards, j, w);
    }
}

template <class T>
void solve(Matrix<T> &x)
{
    const bool upper = x.job->uplo == 'U';
    if (x.job->routine == BL_GETRS || x.job->routine == BL_GESV) {
        solve_with_l(x);
        solve_with_triangle(x, true, PLAIN);
    } else {
        solve_with_triangle(x, upper, upper ? TURNED : PLAIN);
        solve_with_triangle(x, upper, upper ? PLAIN : TURNED);
    }
}

template <class T>
cudaError_t run(const struct bl_job *job, const Card &card, cudaStream_t stream)
{
    const Layout at = layout_of(job, card);
    char *work = (char *)job->work;
    cudaError_t error = cudaSuccess;
    for (int64_t i = 0; i < job->batch && error == cudaSuccess; i++) {
        Matrix<T> x = {job,
                       card,
                       stream,
                       job->m,
                       job->n,
                       (T *)job->a.p + i * job->a.stride,
                       job->a.ld,
                       (char *)job->ipiv.p + i * job->ipiv.stride * job->int_size,
                       (State *)(work + at.state),
                       (LargeMoves *)(work + at.moves),
                       work + at.panel,
                       (T *)(work + at.sums),
                       (T *)job->b.p + i * job->b.stride,
                       job->b.ld,
                       (T *)(work + at.reversed),
                       cudaSuccess};
        char *info = (char *)job->info.p + i * job->info.stride * job->int_size;
        x.then(cudaMemsetAsync(x.state, 0, sizeof(State), stream));
        if (has_lu(job))
            factor_lu(x);
        if (has_cholesky(job))
            factor_cholesky(x);
        if (has_solve(job))
            solve(x);
        write_info<<<1, 1, 0, stream>>>(x.state, info, job->int_size);
        x.then(cudaGetLastError());
        error = x.error;
    }
    return error;
}

/* Of shared memory, for the block on the diagonal of a complex Cholesky factorisation. */
constexpr size_t SHARED_NEEDED = 72 * 1024;

bool takes(const struct bl_job *job, const Card &card)
{
    if (least(job->m, job->n) < SMALLEST || job->batch > MOST_MATRICES || job->items ||
        job->a.array || job->b.array || job->ipiv.array || job->info.array)
        return false;
    return job->routine == BL_GETRF ||
           (job->routine == BL_POTRF && card.shared_bytes >= SHARED_NEEDED);
}

size_t workspace(const struct bl_job *job, const Card &card)
{
    return layout_of(job, card).all;
}

cudaError_t launch(const struct bl_job *job, const Card &card, cudaStream_t stream)
{
#ifdef ONLY
    return run<ONLY>(job, card, stream);
#else
    switch (job->precision) {
    case BL_S:
        return run<float>(job, card, stream);
    case BL_D:
        return run<double>(job, card, stream);
    case BL_C:
        return run<Complex<float>>(job, card, stream);
    default:
        return run<Complex<double>>(job, card, stream);
    }
#endif
}

} // namespace

const Family large = {takes, workspace, launch};

} // namespace bl
