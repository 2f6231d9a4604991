/* The family of kernels for one large matrix: LU and Cholesky.
 *
 * Called by engine.cu. A job is a sequence of kernels from large.h and large_panel.h,
 * enqueued on the job's stream for one matrix after another; nothing is decided by the
 * data, so it can be captured. The outer block is as wide as the update needs to be
 * limited by arithmetic rather than by memory; within it narrow panels are factored and
 * applied to its rest.
 */
#include "large.h"
#include "large_blas.h"
#include "large_inverse.h"
#include "large_panel.h"
#include "large_side.h"

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
    size_t state, moves, panel, sums, reversed, inverse, blas, beside, all;
};

bool has_lu(const struct bl_job *job)
{
    return job->routine == BL_GETRF || job->routine == BL_GESV;
}

bool has_cholesky(const struct bl_job *job)
{
    return job->routine == BL_POTRF || job->routine == BL_POSV;
}

/* No order of operations is promised for an inverse. */
bool is_fast(const struct bl_job *job)
{
    return job->arithmetic == BL_FAST || job->routine == BL_POTRI;
}

/* Whether NaN and infinities need another order of operations, and can have it. */
bool hands_back(const struct bl_job *job)
{
    return job->redo && job->arithmetic == BL_EXACT && has_lu(job) &&
           (job->precision == BL_C || job->precision == BL_Z);
}

/* netlib's order for 'U' adds up products apart from the element. */
bool has_sums(const struct bl_job *job)
{
    return has_cholesky(job) && job->uplo == 'U' && !is_fast(job);
}

bool has_solve(const struct bl_job *job)
{
    return job->routine != BL_GETRF && job->routine != BL_POTRF &&
           job->routine != BL_POTRI;
}

/* What the steps of a matrix tell each other. */
struct State {
    int64_t info;
    int odd;
    unsigned arrived;
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
    if (has_sums(job))
        at.reversed += aligned(job->n * job->n * element[job->precision]);
    at.inverse = at.reversed;
    if (has_solve(job)) /* 128 is the most that LARGE_BLOCK is */
        at.inverse += aligned(128 * job->nrhs * element[job->precision]);
    at.blas = at.inverse;
    if (job->routine == BL_POTRI)
        at.blas += aligned((3 * job->n + 128) * 128 * element[job->precision]);
    at.beside = at.blas + (is_fast(job) ? LARGE_BLAS_BYTES : 0);
    at.all = at.beside + (is_fast(job) ? LARGE_BLAS_BYTES : 0);
    return at;
}

/* A product in netlib begins with -1 times a complex number, which makes a NaN of an
 * infinity's other part; in a triangular solve it does not. Which of them an element
 * takes when is netlib's recursion, which is not followed here: `redo`. */
__global__ void write_info(const State *state, bool redo, void *info, int int_size)
{
    const int64_t value = redo && state->odd ? BL_INFO_REDO : state->info;
    if (int_size == 4)
        *(int32_t *)info = int32_t(value);
    else
        *(int64_t *)info = value;
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
    T *reversed, *inverse;
    void *blas_work, *beside_work; /* on the job's stream, and beside it */
    cudaError_t error;

    T *at(int64_t i, int64_t j) const
    {
        return a + i + j * lda;
    }
    void *pivots(int64_t k) const
    {
        return ipiv + k * job->int_size;
    }
    /* Where the same job factors, a singular matrix leaves B as it is. */
    const int64_t *unless() const
    {
        return has_solve(job) && (has_lu(job) || has_cholesky(job)) ? &state->info
                                                                    : nullptr;
    }
    void then(cudaError_t next)
    {
        if (error == cudaSuccess)
            error = next;
    }
};

/* m n k from which cuBLAS is ahead of our own kernel, and the k. */
constexpr double BLAS_OPERATIONS = double(1 << 30);
constexpr int64_t BLAS_DEPTH = 128;
constexpr int SQUARES = 10;

template <class T>
void update(Matrix<T> &x, LargeUpdate<T> u)
{
    if (x.error != cudaSuccess)
        return;
    u.fused = is_fast(x.job);
    if (is_fast(x.job) && !u.unless && u.k >= BLAS_DEPTH &&
        double(u.m) * double(u.n) * double(u.k) >= BLAS_OPERATIONS &&
        large_blas_update(u, x.blas_work, x.stream))
        return;
    x.then(large_update(u, x.card, x.stream));
}

/* An update of a part. cuBLAS has good kernels for rectangles: what is left of the part
 * are squares on its diagonal, all in one launch. */
template <class T>
void update_part(Matrix<T> &x, LargeUpdate<T> u)
{
    constexpr int64_t SQUARE = int64_t(1) << SQUARES;
    const bool lower = u.part == LOWER_PART;
    const int64_t length = lower ? u.m : u.n, width = lower ? u.n : u.m;
    if (!is_fast(x.job) || u.k < BLAS_DEPTH || length < 2 * SQUARE) {
        update(x, u);
        return;
    }
    for (int64_t i = 0, next = SQUARE; i < width && next < length;
         i = next, next += SQUARE) {
        LargeUpdate<T> piece = u;
        piece.part = WHOLE;
        (lower ? piece.n : piece.m) = least(SQUARE, width - i);
        (lower ? piece.m : piece.n) = length - next;
        const int64_t row = lower ? next : i, column = lower ? i : next;
        piece.a += u.of_a == PLAIN ? row : row * u.lda;
        piece.b += u.of_b == PLAIN ? column * u.ldb : column;
        piece.c += row + column * u.ldc;
        update(x, piece);
    }
    u.squares = SQUARES;
    (lower ? u.m : u.n) = least(length, (width + SQUARE - 1) / SQUARE * SQUARE);
    update(x, u);
}

template <class T>
void factor_panel(Matrix<T> &x, int64_t j, int w)
{
    x.then(large_panel_launch({x.job->precision, x.m - j, w, x.at(j, j), x.lda, j,
                               x.pivots(j), x.job->int_size, &x.state->info,
                               &x.state->odd, x.moves, x.panel_work},
                              x.card, x.stream));
}

/* The block of columns j .. j + w - 1 from row j on. */
template <class T>
LargeStep<T> step_of(const Matrix<T> &x, int64_t j, int64_t w)
{
    return {int(w),     x.pivots(j), x.job->int_size,
            j,          x.at(j, j),  x.lda,
            x.at(j, 0), x.lda,       0,
            0,          0,           0};
}

struct Range {
    int64_t from, to;
};

/* The block of columns from j to `next` has been factored: interchanges in the columns
 * `left` of it and `right` of it; of the latter also the rows of U and the update of all
 * rows below. A block that is too wide for one step takes several, after each of which
 * the rows of the following one are updated. */
template <class T>
void apply_block(Matrix<T> &x, int64_t j, int64_t next, Range left, Range right)
{
    const int64_t first = right.from, columns = right.to - first;
    for (int64_t i = j, w; i < next; i += w) {
        w = least(LARGE_BLOCK<T>, next - i);
        LargeStep<T> step = step_of(x, i, w);
        step.left = left.from;
        step.left_end = left.to;
        step.right = first;
        step.right_end = right.to;
        step.odd = &x.state->odd;
        if (i > j)
            step.l = nullptr;
        x.then(large_step(step, x.stream));
        if (i == j || columns == 0)
            continue;
        update(x, LargeUpdate<T>{w, columns, i - j, x.at(i, j), x.lda, x.at(j, first),
                                 x.lda, x.at(i, first), x.lda, PLAIN, PLAIN, WHOLE});
        x.then(large_triangle(LargeTriangle<T>{int(w), x.at(i, i), x.lda, PLAIN, false,
                                               true, x.at(i, first), x.lda, columns,
                                               nullptr, nullptr},
                              x.stream));
    }
    update(x, LargeUpdate<T>{x.m - next, columns, next - j, x.at(next, j), x.lda,
                             x.at(j, first), x.lda, x.at(next, first), x.lda, PLAIN,
                             PLAIN, WHOLE});
}

/* The columns from j to `end`, at most LARGE_BLOCK, by panels. */
template <class T>
void factor_block(Matrix<T> &x, int64_t j, int64_t end)
{
    for (int64_t i = j, w; i < end; i += w) {
        w = least(large_panel_width(x.job->precision, x.m - i, x.card), end - i);
        factor_panel(x, i, int(w));
        apply_block(x, i, i + w, {j, i}, {i + w, end});
    }
}

/* An outer block is as wide as the update needs; cuBLAS is at its best only where the
 * inner dimension is several hundred. */
template <class T>
int64_t outer_block(const Matrix<T> &x)
{
    const int64_t order = least(x.m, x.n);
    if (!is_fast(x.job))
        return LARGE_BLOCK<T>;
    if (has_cholesky(x.job))
        return order > 6144 ? 512 : 256;
    return order > 12288 ? 512 : order > 8192 ? 256 : 128;
}

template <class T>
void factor_outer(Matrix<T> &x, int64_t j, int64_t end)
{
    for (int64_t i = j; i < end; i += LARGE_BLOCK<T>) {
        const int64_t next = least(i + LARGE_BLOCK<T>, end);
        factor_block(x, i, next);
        if (end - j > LARGE_BLOCK<T>)
            apply_block(x, i, next, {j, i}, {next, end});
    }
}

/* What `chain` enqueues, on another stream if that is `worth` while, and `rest`. */
template <class T, class Chain, class Rest>
void factor_beside(Matrix<T> &x, bool worth, const Chain &chain, const Rest &rest)
{
    LargeSide *side = worth ? LargeSide::borrow(x.stream) : nullptr;
    if (!side) {
        chain(x);
        if (worth)
            rest(x);
        return;
    }
    Matrix<T> beside = x;
    beside.stream = side->stream();
    beside.blas_work = x.beside_work;
    x.then(side->fork());
    chain(beside);
    rest(x);
    x.then(beside.error);
    x.then(side->join());
    side->give_back();
}

/* The next outer block takes its products first and is then factored beside the update of
 * all others. */
template <class T>
void factor_lu(Matrix<T> &x)
{
    const int64_t order = least(x.m, x.n), outer = outer_block(x);
    factor_outer(x, 0, least(outer, order));
    for (int64_t j = 0, next, end; j < order; j = next) {
        next = least(j + outer, order);
        end = least(next + outer, order);
        LargeSide *side = next < end && end < x.n ? LargeSide::borrow(x.stream) : nullptr;
        if (next < end)
            apply_block(x, j, next, {0, 0}, {next, end});
        Matrix<T> beside = x;
        if (side) {
            beside.stream = side->stream();
            beside.blas_work = x.beside_work;
            x.then(side->fork());
        }
        factor_outer(beside, next, end);
        if (!side)
            x.then(beside.error);
        apply_block(x, j, next, {0, j}, {end, x.n});
        if (side) {
            x.then(beside.error);
            x.then(side->join());
            side->give_back();
        }
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
    T *to = has_sums(x.job) ? x.sums + first + first * x.n : x.at(first, first);
    const int64_t ld = has_sums(x.job) ? x.n : x.lda;
    if (upper)
        update_part(x, LargeUpdate<T>{columns, rows, w, v, x.lda, v, x.lda, to, ld,
                                      TURNED, PLAIN, UPPER_PART});
    else
        update_part(x, LargeUpdate<T>{rows, columns, w, v, x.lda, v, x.lda, to, ld, PLAIN,
                                      TURNED, LOWER_PART});
}

/* The columns of v from j to `end`, which have had the products of all before. For fast
 * arithmetic by halves, so that most products come in updates with many at a time. */
template <class T>
void factor_triangle(Matrix<T> &x, int64_t j, int64_t end)
{
    const bool upper = x.job->uplo == 'U';
    const int64_t blocks = (end - j + CHOLESKY_BLOCK - 1) / CHOLESKY_BLOCK;
    if (is_fast(x.job) && blocks > 1) {
        const int64_t middle = j + blocks / 2 * CHOLESKY_BLOCK;
        factor_triangle(x, j, middle);
        update_triangle(x, j, middle - j, middle, end);
        factor_triangle(x, middle, end);
        return;
    }
    for (int64_t i = j, w; i < end; i += w) {
        w = least(CHOLESKY_BLOCK, end - i);
        x.then(large_diagonal(
            LargeDiagonal<T>{upper, int(w), x.at(i, i), x.lda,
                             has_sums(x.job) && i > 0 ? x.sums + i + i * x.n : nullptr,
                             x.n, x.n - i - w, &x.state->info, i, &x.state->arrived},
            x.card, x.stream));
        if (i + w < end)
            update_triangle(x, i, w, i + w, end);
    }
}

template <class T>
void factor_cholesky(Matrix<T> &x)
{
    const int64_t outer = is_fast(x.job) ? outer_block(x) : x.n;
    if (has_sums(x.job))
        x.then(cudaMemsetAsync(x.sums, 0, x.n * x.n * sizeof(T), x.stream));
    factor_triangle(x, 0, least(outer, x.n));
    for (int64_t j = 0, next = outer, end; next < x.n; j = next, next = end) {
        end = least(next + outer, x.n);
        update_triangle(x, j, outer, next, end);
        factor_beside(
            x, end < x.n, [&](Matrix<T> &other) { factor_triangle(other, next, end); },
            [&](Matrix<T> &rest) { update_triangle(rest, j, outer, end, x.n); });
    }
}

/* The rows of B from `to` to `end`, less rows and columns j .. j + w - 1 of A times the
 * solution there. */
template <class T>
void update_sides(Matrix<T> &x, Placing placing, bool upwards, int64_t j, int64_t w)
{
    const int64_t to = upwards ? 0 : j + w, end = upwards ? j : x.n;
    LargeUpdate<T> u = {
        end - to,  x.job->nrhs, w,     placing == PLAIN ? x.at(to, j) : x.at(j, to),
        x.lda,     x.b + j,     x.ldb, x.b + to,
        x.ldb,     placing,     PLAIN, WHOLE,
        x.unless()};
    if (upwards && placing == PLAIN &&
        !is_fast(x.job)) { /* the last column's product comes first */
        u.a = x.at(to, j + w - 1);
        u.lda = -x.lda;
        u.b = x.reversed;
        u.ldb = LARGE_BLOCK<T>;
    }
    update(x, u);
}

/* B := P B. */
template <class T>
void interchange_sides(Matrix<T> &x)
{
    for (int64_t j = 0, w; j < x.n; j += w) {
        w = least(LARGE_BLOCK<T>, x.n - j);
        LargeStep<T> step = step_of(x, j, w);
        step.l = nullptr;
        step.b = x.b + j;
        step.ldb = x.ldb;
        step.right_end = x.job->nrhs;
        step.unless = x.unless();
        x.then(large_step(step, x.stream));
    }
}

/* B := op(A)^-1 B for a triangle, `unit`: with ones on its diagonal. */
template <class T>
void solve_with_triangle(Matrix<T> &x, bool upper, Placing placing, bool unit)
{
    const bool upwards = upper == (placing == PLAIN);
    const int64_t blocks = (x.n + LARGE_BLOCK<T> - 1) / LARGE_BLOCK<T>;
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t j = (upwards ? blocks - 1 - i : i) * LARGE_BLOCK<T>,
                      w = least(LARGE_BLOCK<T>, x.n - j);
        x.then(large_triangle(LargeTriangle<T>{int(w), x.at(j, j), x.lda, placing,
                                               upwards, unit, x.b + j, x.ldb, x.job->nrhs,
                                               x.reversed, x.unless()},
                              x.stream));
        update_sides(x, placing, upwards, j, w);
    }
}

template <class T>
void solve(Matrix<T> &x)
{
    const bool upper = x.job->uplo == 'U';
    if (x.job->routine == BL_GETRS || x.job->routine == BL_GESV) {
        interchange_sides(x);
        solve_with_triangle(x, false, PLAIN, true);
        solve_with_triangle(x, true, PLAIN, false);
    } else {
        solve_with_triangle(x, upper, upper ? TURNED : PLAIN, false);
        solve_with_triangle(x, upper, upper ? PLAIN : TURNED, false);
    }
}

/* A = L L' becomes A^-1 = W' W with W = L^-1, and likewise for 'U', a block of rows of W
 * after the other: the block's rows of L, which have had the products of all rows of W
 * before, are solved for with its triangle and become the rows; what is below the block
 * loses its product with them, and what is above it, where the inverse is, gets that of
 * the rows with themselves. */
template <class T>
void invert(Matrix<T> &x)
{
    constexpr int64_t BLOCK = LARGE_BLOCK<T>;
    const bool upper = x.job->uplo == 'U';
    T *rows = x.inverse, *minus = rows + x.n * BLOCK, *beside = minus + x.n * BLOCK,
      *triangle = beside + x.n * BLOCK;
    x.then(large_find_zero(x.a, x.lda, x.n, &x.state->info, x.stream));
    for (int64_t j = 0, w; j < x.n; j += w) {
        w = least(BLOCK, x.n - j);
        const int64_t next = j + w, rest = x.n - next;
        const LargeInverse<T> s = {upper, int(w), x.n,      j,      x.a,           x.lda,
                                   rows,  minus,  triangle, beside, &x.state->info};
        x.then(large_take_out(s, x.stream));
        x.then(
            large_triangle(LargeTriangle<T>{int(w), triangle, BLOCK, PLAIN, false, false,
                                            rows, BLOCK, next, nullptr, &x.state->info},
                           x.stream));
        x.then(large_negate(s, x.stream));
        if (upper)
            update(x, LargeUpdate<T>{next, rest, w, rows, BLOCK, beside, BLOCK,
                                     x.at(0, next), x.lda, TURNED, PLAIN, WHOLE});
        else
            update(x, LargeUpdate<T>{rest, next, w, beside, x.n, rows, BLOCK,
                                     x.at(next, 0), x.lda, PLAIN, PLAIN, WHOLE});
        update_part(x,
                    LargeUpdate<T>{next, next, w, minus, BLOCK, rows, BLOCK, x.a, x.lda,
                                   TURNED, PLAIN, upper ? UPPER_PART : LOWER_PART});
    }
    if (Traits<T>::complex)
        x.then(large_make_real(x.a, x.lda, x.n, &x.state->info, x.stream));
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
                       (T *)(work + at.inverse),
                       work + at.blas,
                       work + at.beside,
                       cudaSuccess};
        char *info = (char *)job->info.p + i * job->info.stride * job->int_size;
        x.then(cudaMemsetAsync(x.state, 0, sizeof(State), stream));
        if (has_lu(job))
            factor_lu(x);
        if (has_cholesky(job))
            factor_cholesky(x);
        if (has_solve(job))
            solve(x);
        if (job->routine == BL_POTRI)
            invert(x);
        write_info<<<1, 1, 0, stream>>>(x.state, hands_back(job), info, job->int_size);
        x.then(cudaGetLastError());
        error = x.error;
    }
    return error;
}

bool fits(const struct bl_job *job, const Card &card)
{
    static const size_t needed[BL_PRECISIONS] = {
        large_diagonal_memory<float>(), large_diagonal_memory<double>(),
        large_diagonal_memory<Complex<float>>(),
        large_diagonal_memory<Complex<double>>()};
    return needed[job->precision] <= card.shared_bytes;
}

bool takes(const struct bl_job *job, const Card &card)
{
    if (least(job->m, job->n) < SMALLEST || job->batch > MOST_MATRICES || job->items ||
        job->a.array || job->b.array || job->ipiv.array || job->info.array)
        return false;
    switch (job->routine) {
    case BL_GETRF:
        return true;
    case BL_GETRS: /* netlib's transposed solve is a chain */
        return job->trans == 'N' && job->nrhs > 0;
    case BL_GESV:
        return job->nrhs > 0;
    case BL_POTRI:
        return true;
    case BL_POTRF:
        return fits(job, card);
    case BL_POTRS:
    case BL_POSV: /* and so is that of 'L' */
        return fits(job, card) && job->nrhs > 0 &&
               (job->uplo == 'U' || job->arithmetic == BL_FAST);
    default:
        return false;
    }
}

size_t workspace(const struct bl_job *job, const Card &card)
{
    return layout_of(job, card).all;
}

cudaError_t launch(const struct bl_job *job, const Card &card, cudaStream_t stream)
{
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
}

} // namespace

const Family large = {takes, workspace, launch};

} // namespace bl
