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
#include "large_draw.h"
#include "large_inverse.h"
#include "large_many.h"
#include "large_panel.h"
#include "large_side.h"

namespace bl
{

namespace
{

/* min(m, n) from which it is ahead of the others, by `bench/large`: of most routines; of
 * potrf; of solves, and of those with many right-hand sides; of gesv, and of complex
 * gesv. */
constexpr int64_t SMALLEST = 257, SMALLEST_POTRF = 97, SMALLEST_SOLVE = 97,
                  SMALLEST_WITH_MANY = 65, SMALLEST_GESV = 225,
                  SMALLEST_COMPLEX_GESV = 129;
constexpr int64_t FEWEST = 33;
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
    size_t state, panel, sums, solved, blocks, inverse, maps, few, blas, beside, rows,
        all;
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

/* Whether NaN and infinities need another order of operations, and can have it: netlib
 * takes seconds for the largest. */
constexpr int64_t MOST_HANDED_BACK = 2048;
bool hands_back(const struct bl_job *job)
{
    return job->redo && least(job->m, job->n) <= MOST_HANDED_BACK &&
           job->arithmetic == BL_EXACT && has_lu(job) &&
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

/* An inverse solves for the columns of the identity. */
bool is_inverse(const struct bl_job *job)
{
    return job->routine == BL_GETRI;
}

int64_t sides_of(const struct bl_job *job)
{
    return is_inverse(job) ? job->n : job->nrhs;
}

/* Right-hand sides from which a fast solve takes wider blocks and inverses of the blocks
 * on the diagonal. */
constexpr int64_t MANY_SIDES = 256;

bool is_deep(const struct bl_job *job)
{
    return is_fast(job) && sides_of(job) >= MANY_SIDES;
}

/* Right-hand sides up to which one kernel solves for all of them. */
constexpr int64_t FEW_SIDES = 16;

bool is_few(const struct bl_job *job, const Card &card)
{
    static const size_t needed[BL_PRECISIONS] = {
        large_few_memory<float>(), large_few_memory<double>(),
        large_few_memory<Complex<float>>(), large_few_memory<Complex<double>>()};
    return has_solve(job) && !is_inverse(job) && job->nrhs <= FEW_SIDES &&
           needed[job->precision] <= card.shared_bytes;
}

/* Whether the card has the kernel of large_many.h for the job's precision. */
bool has_many_on(const struct bl_job *job, const Card &card)
{
    static bool (*const has[])(const Card &) = {
        large_has_many<float>, large_has_many<double>, large_has_many<Complex<float>>,
        large_has_many<Complex<double>>};
    return has[job->precision](card);
}

/* Whether blocks of right-hand sides are solved for by one kernel. In single precision
 * the matrix units lose two bits of a factor, which is for many sides only. */
bool has_many(const struct bl_job *job, const Card &card)
{
    const bool single = job->precision == BL_S || job->precision == BL_C;
    return is_fast(job) && has_solve(job) && !is_few(job, card) &&
           (!single || is_deep(job)) && has_many_on(job, card);
}

bool is_turned(const struct bl_job *job)
{
    return job->routine == BL_GETRS && job->trans != 'N';
}

/* Panels of a long matrix take longer than what could be done beside them: they get the
 * whole card, where that is ahead of a cluster. */
bool is_long(const struct bl_job *job, const Card &card)
{
    return job->m >= 4 * job->n && large_panel_on_card(job->precision, job->m, card);
}

int64_t least_block(const struct bl_job *job)
{
    return job->precision >= BL_C ? LARGE_BLOCK<Complex<double>> : LARGE_BLOCK<double>;
}

/* Of a Cholesky factorization in fast arithmetic, as long as there are so many rows a
 * multiprocessor, an outer block is factored first and the rows below it are solved for
 * then; of fewer, each panel takes all rows. From some more on, outer blocks are as wide
 * as an update needs. */
constexpr int64_t FAR_ROWS[BL_PRECISIONS] = {16, 16, 16, 32}, WIDE_ROWS = 48;

/* The least width of an outer block, and what a part's is a multiple of. */
constexpr int64_t CHOLESKY_OUTER = 256;

bool has_far_rows(const struct bl_job *job, const Card &card, int64_t j)
{
    return is_fast(job) && has_many_on(job, card) &&
           job->n - j > FAR_ROWS[job->precision] * card.processors;
}

/* The outer block at column j is as wide as the update of what is behind it needs: cuBLAS
 * is at its best only where the inner dimension is several hundred, and panels of a wide
 * block take longer. */
int64_t outer_block(const struct bl_job *job, const Card &card, int64_t j = 0)
{
    const int64_t order = least(job->m, job->n), rest = order - j;
    if (!is_fast(job))
        return least_block(job);
    if (has_cholesky(job)) {
        const bool wide = rest > WIDE_ROWS * card.processors;
        return !has_far_rows(job, card, j) ? CHOLESKY_OUTER : wide ? 1024 : 512;
    }
    if (is_long(job, card))
        return 256;
    if (order > 6144) {
        if (rest > 14000)
            return 1024;
        if (rest > 7000)
            return 512;
        if (rest > 2560)
            return 256;
    }
    return (job->precision == BL_Z && order > 2048 ? 2 : 1) * least_block(job);
}

/* Interchanges are put together for so many columns: every wide block has a multiple. */
int64_t maps_width(const struct bl_job *job)
{
    return !is_fast(job) ? least_block(job) : job->precision == BL_Z ? 128 : 256;
}

bool fits_on_chip(const struct bl_job *job, const Card &card)
{
    return size_t(job->m) * element[job->precision] <= card.shared_bytes;
}

/* The orders from which a matrix may come in parts, measured by bench/pipeline: LU of
 * 4096 is slower so by 5 %, of 8192 faster by 8 %. */
constexpr int64_t LU_PARTS_FROM = 6144, CHOLESKY_PARTS_FROM = 3072;

bool has_parts(const struct bl_job *job, const Card &card)
{
    if (job->batch != 1)
        return false;
    if (has_lu(job))
        return least(job->m, job->n) >= LU_PARTS_FROM && fits_on_chip(job, card);
    return has_cholesky(job) && job->n >= CHOLESKY_PARTS_FROM;
}

/* Whether the interchanges left of a block are put off to the end of its part. */
bool puts_off(const struct bl_job *job, const Card &card)
{
    static bool (*const takes_left[])(int64_t, const Card &) = {
        large_takes_left<float>, large_takes_left<double>,
        large_takes_left<Complex<float>>, large_takes_left<Complex<double>>};
    return has_lu(job) && (least(job->m, job->n) > 6144 || job->to > 0) &&
           takes_left[job->precision](job->m, card);
}

/* Above which order what is left of a matrix lies by rows, where a row moves as a whole
 * and not an element here and there, or that is slower than it would be by columns. */
constexpr int64_t NEVER = INT64_MAX,
                  ROWS_ABOVE[BL_PRECISIONS] = {6144, 6144, 6144, NEVER};

bool goes_by_rows(const struct bl_job *job, const Card &card)
{
    static bool (*const has_blas[])() = {has_large_blas<float>, has_large_blas<double>,
                                         has_large_blas<Complex<float>>,
                                         has_large_blas<Complex<double>>};
    return is_fast(job) && puts_off(job, card) &&
           least(job->m, job->n) > ROWS_ABOVE[job->precision] && !job->lean &&
           has_blas[job->precision]();
}

/* Elements from row to row. */
int64_t ld_by_rows(const struct bl_job *job)
{
    return (job->n + 31) / 32 * 32;
}

/* Whether all of the right-hand sides' interchanges are done at once. */
bool has_forth(const struct bl_job *job, const Card &card)
{
    return (is_few(job, card) || is_fast(job)) && !is_turned(job) &&
           (job->routine == BL_GETRS || job->routine == BL_GESV) &&
           size_t(job->n) * element[job->precision] <= card.shared_bytes;
}

/* The blocks in which an inverse's columns, or the rows of a transposed solution, take
 * their interchanges. */
constexpr int64_t MAPS_WIDTH = 512;

/* What the steps of a matrix tell each other. */
struct State {
    int64_t info;
    int odd;
    unsigned arrived;
    unsigned drawn; /* tiles of updates */
};

/* Of a triangle's solution, as far as it is known, and of the counter behind it: see
 * large_few.h. */
size_t shown_bytes(const struct bl_job *job)
{
    return size_t(job->n) * size_t(large_few_sides(job->nrhs)) * element[job->precision];
}

size_t few_bytes(const struct bl_job *job)
{
    return aligned(shown_bytes(job) + sizeof(unsigned));
}

Layout layout_of(const struct bl_job *job, const Card &card)
{
    Layout at = {};
    at.panel = aligned(sizeof(State));
    at.sums = at.panel;
    if (has_lu(job))
        at.sums += aligned(large_panel_workspace(job->precision, job->m, card));
    at.solved = at.sums;
    if (has_sums(job))
        at.solved += aligned(job->n * job->n * element[job->precision]);
    at.blocks = at.solved;
    if (has_solve(job)) /* 128 is the most that LARGE_BLOCK is */
        at.blocks += aligned(128 * sides_of(job) * element[job->precision]);
    at.inverse = at.blocks;
    if (has_solve(job) && is_deep(job) && !has_many(job, card))
        at.inverse += aligned(128 * (job->n + 128) * element[job->precision]);
    at.maps = at.inverse;
    if (is_inverse(job))
        at.maps += aligned(job->n * job->n * element[job->precision]);
    if (job->routine == BL_POTRI)
        at.maps += aligned((3 * job->n + 128) * 128 * element[job->precision]);
    at.few = at.maps;
    if (has_lu(job))
        at.few +=
            aligned(large_maps_bytes(job->m, least(job->m, job->n), maps_width(job)));
    if (is_inverse(job) || is_turned(job) || has_forth(job, card))
        at.few += aligned(large_maps_bytes(job->n, job->n, MAPS_WIDTH));
    at.blas = at.few;
    if (is_few(job, card)) /* of two triangles */
        at.blas += 2 * few_bytes(job);
    at.beside = at.blas + (is_fast(job) ? LARGE_BLAS_BYTES : 0);
    at.rows = at.beside + (is_fast(job) ? LARGE_BLAS_BYTES : 0);
    at.all = at.rows;
    if (goes_by_rows(job, card))
        at.all += job->m * ld_by_rows(job) * element[job->precision];
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

    void *panel_work;
    T *sums;
    T *b;
    int64_t ldb, sides;
    T *solved, *blocks, *inverse;
    int *maps;
    char *few; /* of the next triangle with few right-hand sides; NULL: there are more */
    void *blas_work, *beside_work; /* on the job's stream, and beside it */
    T *rows;                       /* the matrix by rows; NULL: it is not */
    int64_t ld_rows;
    cudaError_t error;
    bool chains = false;         /* launches may be chained, see large_launch.h */
    bool follows = false;        /* the last thing in the stream is such a launch */
    bool brief = false;          /* updates make room for what runs beside them */
    bool alone = false;          /* nothing runs beside the panels */
    unsigned drawn = 0;          /* of tiles so far */
    cudaEvent_t begun = nullptr; /* for the next panel to record when it has begun */

    T *at(int64_t i, int64_t j) const
    {
        return a + i + j * lda;
    }
    T *at_row(int64_t i, int64_t j) const
    {
        return rows + j + i * ld_rows;
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
    /* For a launch: whether it is chained. */
    bool link()
    {
        const bool chained = chains && follows;
        follows = true;
        return chained;
    }
    /* The tiles of an update, but for a hole, for so many blocks in all. */
    LargeDraw draw(const LargeUpdate<T> &u, int64_t hole, int blocks)
    {
        const unsigned begin = drawn,
                       end = begin + unsigned(large_tiles_to_draw(u, hole));
        drawn = end + unsigned(blocks);
        return {&state->drawn, begin, end, hole};
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

/* By our own matrix product of single precision, which is by the matrix units and twice
 * as fast as cuBLAS's: false where it is not for that. */
template <class T>
bool update_by_tiles(Matrix<T> &x, LargeUpdate<T> u, bool by_rows = false)
{
    if (sizeof(Real<T>) == 8 || !is_fast(x.job) || x.brief || u.k < BLAS_DEPTH ||
        !large_has_draw(u, x.card) || large_tiles_to_draw(u) < x.card.processors)
        return false;
    u.chained = x.link();
    x.then(large_by_tiles(u, by_rows, x.stream));
    return true;
}

/* Whether cuBLAS is to do it. */
template <class T>
bool suits_blas(const Matrix<T> &x, const LargeUpdate<T> &u)
{
    return is_fast(x.job) && !u.unless && !x.brief && u.k >= BLAS_DEPTH &&
           double(u.m) * double(u.n) * double(u.k) >= BLAS_OPERATIONS;
}

template <class T>
void update(Matrix<T> &x, LargeUpdate<T> u)
{
    if (x.error != cudaSuccess)
        return;
    u.fused = is_fast(x.job);
    u.brief = x.brief;
    if (update_by_tiles(x, u))
        return;
    if (suits_blas(x, u) && large_blas_update(u, x.blas_work, x.stream)) {
        x.follows = false;
        return;
    }
    /* A singular matrix is to stay as it is, but a product with zeros on the matrix units
     * turns the sign of a zero. */
    if (x.job->routine == BL_POTRI)
        u.unless = &x.state->info;
    u.chained = x.link();
    x.then(large_update(u, x.card, x.stream));
}

/* The part of C from row and column `from` on. */
template <class T>
LargeUpdate<T> rows_and_columns(LargeUpdate<T> u, int64_t row, int64_t column)
{
    u.a += u.of_a == PLAIN ? row : row * u.lda;
    u.b += u.of_b == PLAIN ? column * u.ldb : column;
    u.c += row + column * u.ldc;
    u.m -= row;
    u.n -= column;
    return u;
}

/* An update of a part. cuBLAS has good kernels for rectangles: as long as they are large
 * enough, those beside the squares on the part's diagonal are left to it. The squares are
 * one launch, and what is behind the last of them another. */
template <class T>
void update_part(Matrix<T> &x, LargeUpdate<T> u)
{
    constexpr int64_t SQUARE = int64_t(1) << SQUARES;
    if (x.error != cudaSuccess || update_by_tiles(x, u))
        return;
    const bool lower = u.part == LOWER_PART;
    const int64_t length = lower ? u.m : u.n, width = lower ? u.n : u.m;
    int64_t done = 0;
    for (; done < width && length > SQUARE; done += SQUARE) {
        const int64_t next = done + SQUARE;
        if (next >= length) /* the last square */
            continue;
        LargeUpdate<T> piece =
            rows_and_columns(u, lower ? next : done, lower ? done : next);
        piece.part = WHOLE;
        (lower ? piece.n : piece.m) = least(SQUARE, width - done);
        if (!suits_blas(x, piece))
            break;
        update(x, piece);
    }
    if (done > 0) {
        LargeUpdate<T> squares = u;
        squares.squares = SQUARES;
        squares.m = least(u.m, done);
        squares.n = least(u.n, done);
        update(x, squares);
    }
    if (done < width)
        update(x, rows_and_columns(u, done, done));
}

template <class T>
void factor_panel(Matrix<T> &x, int64_t j, int w)
{
    const cudaEvent_t begun = x.begun;
    x.begun = nullptr;
    x.then(large_panel_launch({x.job->precision, x.m - j, w, x.at(j, j), x.lda, j,
                               x.pivots(j), x.job->int_size, &x.state->info,
                               &x.state->odd, x.panel_work, x.alone, x.link()},
                              x.card, x.stream, begun));
}

/* The block of columns j .. j + w - 1 from row j on. */
template <class T>
LargeStep<T> step_of(const Matrix<T> &x, int64_t j, int64_t w)
{
    LargeStep<T> step = {int(w),     x.pivots(j), x.job->int_size,
                         j,          x.at(j, j),  x.lda,
                         x.at(j, 0), x.lda,       0,
                         0,          0,           0};
    step.fused = is_fast(x.job);
    return step;
}

struct Range {
    int64_t from, to;
};

/* The columns of A that are new in this run. */
Range part_of(const struct bl_job *job)
{
    return {job->from, job->to ? job->to : job->n};
}

bool is_last(const struct bl_job *job)
{
    return part_of(job).to == job->n;
}

/* Rows `rows` of the columns `right`, less the products of the columns `of` of A, or of
 * its conjugate transpose for 'U' of Cholesky, and the rows of these numbers. */
template <class T>
void take_products(Matrix<T> &x, Range of, Range rows, Range right)
{
    const bool turned = x.job->uplo == 'U';
    const int64_t i = rows.from, j = of.from;
    update(x, LargeUpdate<T>{rows.to - i, right.to - right.from, of.to - j,
                             turned ? x.at(j, i) : x.at(i, j), x.lda, x.at(j, right.from),
                             x.lda, x.at(i, right.from), x.lda, turned ? TURNED : PLAIN,
                             PLAIN, WHOLE});
}

/* The rows of U from i to i + w in the columns `right`, whose rows from j to i are there:
 * less the products of the latter, and solved for. */
template <class T>
void solve_row(Matrix<T> &x, int64_t j, int64_t i, int64_t w, Range right)
{
    take_products(x, {j, i}, {i, i + w}, right);
    LargeStep<T> step = step_of(x, i, w);
    step.ipiv = nullptr;
    step.right = right.from;
    step.right_end = right.to;
    step.odd = &x.state->odd;
    step.chained = x.link();
    x.then(large_step(step, x.card, x.stream));
}

/* The interchanges of A with `order` pivots; those that begin with pivot i count. */
template <class T>
LargeMaps maps_of(const Matrix<T> &x, int64_t order, int64_t i = 0)
{
    const int64_t width = maps_width(x.job);
    return {x.m, order, width, x.ipiv, x.job->int_size, x.maps, int(i / width)};
}

/* The block of columns from j to `next` has been factored: interchanges in the columns
 * `left` of it and `right` of it; of the latter also the rows of U and the update of all
 * rows below. A block that is too wide for one step takes several, for each of which the
 * rows are updated with those before. */
template <class T>
void apply_block(Matrix<T> &x, int64_t j, int64_t next, Range left, Range right)
{
    if (next - j > LARGE_BLOCK<T>) {
        const int64_t width = maps_width(x.job);
        for (int64_t i = j; i < next; i += width)
            x.then(large_moves(maps_of(x, next, i), x.a, x.lda, left.from, left.to,
                               right.from, right.to, x.stream));
        x.follows = false;
        for (int64_t i = j; i < next && right.from < right.to; i += LARGE_BLOCK<T>)
            solve_row(x, j, i, least(LARGE_BLOCK<T>, next - i), right);
        take_products(x, {j, next}, {next, x.m}, right);
        return;
    }
    LargeStep<T> step = step_of(x, j, next - j);
    step.left = left.from;
    step.left_end = left.to;
    step.right = right.from;
    step.right_end = right.to;
    step.odd = &x.state->odd;
    step.chained = x.link();
    if (large_takes_beside(step, x.m - j, x.card)) {
        x.then(large_beside(step, x.m - j, x.card, x.stream));
        return;
    }
    x.then(large_step(step, x.card, x.stream));
    take_products(x, {j, next}, {next, x.m}, right);
}

/* The same of the columns `right`, which lie by rows; the rows of U go to A. */
template <class T>
void apply_block_by_rows(Matrix<T> &x, int64_t j, int64_t next, Range right)
{
    const int64_t from = right.from, columns = right.to - from;
    for (int64_t i = j; i < next; i += maps_width(x.job))
        x.then(large_take_rows(maps_of(x, next, i), x.at_row(i, from), x.ld_rows,
                               x.at(i, from), x.lda, columns, x.stream));
    x.follows = false;
    for (int64_t i = j; i < next && columns > 0; i += LARGE_BLOCK<T>)
        solve_row(x, j, i, least(LARGE_BLOCK<T>, next - i), right);
    LargeUpdate<T> u = {x.m - next, columns,       next - j, x.at(next, j),
                        x.lda,      x.at(j, from), x.lda,    x.at_row(next, from),
                        x.ld_rows,  PLAIN,         PLAIN,    WHOLE};
    if (update_by_tiles(x, u, true))
        return;
    if (sizeof(T) == 4) { /* cuBLAS is slow by a fifth with both factors turned */
        x.then(large_turn(columns, next - j, u.b, x.lda, x.at_row(j, from), x.ld_rows,
                          x.stream));
        u.b = x.at_row(j, from);
        u.ldb = x.ld_rows;
        u.of_b = TURNED;
    }
    x.then(large_blas_update_rows(u, x.blas_work, x.stream));
    x.follows = false;
}

/* From row i on, the columns `right` come to lie by rows, or again by columns. */
template <class T>
void to_rows(Matrix<T> &x, int64_t i, Range right)
{
    x.then(large_turn(right.to - right.from, x.m - i, x.at(i, right.from), x.lda,
                      x.at_row(i, right.from), x.ld_rows, x.stream));
    x.follows = false;
}

template <class T>
void to_columns(Matrix<T> &x, int64_t i, Range right)
{
    x.then(large_turn(x.m - i, right.to - right.from, x.at_row(i, right.from), x.ld_rows,
                      x.at(i, right.from), x.lda, x.stream));
    x.follows = false;
}

/* The columns from j to `end`, at most LARGE_BLOCK, by panels. */
template <class T>
void factor_block(Matrix<T> &x, int64_t j, int64_t end)
{
    for (int64_t i = j, w; i < end; i += w) {
        w = least(large_panel_width(x.job->precision, x.m - i, x.alone, x.card), end - i);
        factor_panel(x, i, int(w));
        apply_block(x, i, i + w, {j, i}, {i + w, end});
    }
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

/* The chain of a factorization: block after block is brought up to date and factored, on
 * a second stream with priority if that is worth while; what is left of a block's update
 * runs beside it on the job's stream. A panel needs whole multiprocessors, all at once:
 * where it can, the update that waited for the same block begins after it. */
template <class T>
class Chain
{
  public:
    Chain(Matrix<T> &x, bool worth)
        : rest(x), side(worth ? LargeSide::borrow(x.stream) : nullptr), beside(x)
    {
        if (!side)
            return;
        beside.follows = rest.follows = rest.chains = false;
        beside.stream = side->stream();
        beside.blas_work = rest.beside_work;
        rest.then(side->fork());
        beside.error = rest.error;
    }
    Chain(const Chain &) = delete;
    /* The matrix as the chain sees it. */
    Matrix<T> &matrix()
    {
        return side ? beside : rest;
    }
    bool has_side() const
    {
        return side;
    }
    /* The rest of the job: all multiprocessors but `own` draw the tiles of an update, and
     * when they have begun to, the chain goes on with `blocks` on its own; these help
     * then. */
    template <class Blocks>
    void share_update(const LargeUpdate<T> &u, int64_t hole, int own,
                      const Blocks &blocks)
    {
        const int all = rest.card.processors;
        const LargeDraw draw = rest.draw(u, hole, all);
        const cudaEvent_t begun = side->beginning();
        rest.then(large_draw(u, draw, all - own, rest.stream, begun));
        if (begun)
            beside.then(side->here_after_beginning());
        beside.follows = false;
        blocks(beside);
        beside.then(large_draw(u, draw, own, beside.stream));
        beside.follows = false;
    }
    /* The chain goes on when the job's stream has done what it was told so far. */
    void wait_for_rest()
    {
        if (side)
            beside.then(side->fork());
        beside.follows = beside.follows && !side;
    }
    /* The job's stream goes on when the chain has done what it was told so far. */
    void let_rest_follow()
    {
        if (side)
            rest.then(side->join());
        beside.follows = beside.follows && !side;
    }
    /* And when `panels` has begun, if it is to be `first`, or when it is told to begin.
     */
    template <class Panels>
    void begin_before_rest(bool first, const Panels &panels)
    {
        beside.begun = side && first ? side->beginning() : nullptr;
        if (!beside.begun)
            let_rest_follow();
        const bool begins = beside.begun;
        panels(matrix());
        if (begins && !beside.begun)
            rest.then(side->after_beginning());
        beside.begun = nullptr;
    }
    bool failed() const
    {
        return rest.error != cudaSuccess || beside.error != cudaSuccess;
    }
    /* Even after a failure: nothing may be left beside the job. */
    void end()
    {
        if (!side)
            return;
        rest.then(beside.error);
        rest.then(side->join());
        side->give_back();
    }

  private:
    Matrix<T> &rest;
    LargeSide *const side;
    Matrix<T> beside;
};

/* Operations a second of an update by brief blocks, exact and fast, and of panels columns
 * a second: which of the two is the longer one. */
constexpr double BRIEF_RATE[BL_PRECISIONS][2] = {
    {15e12, 15e12}, {8e12, 20e12}, {23e12, 31e12}, {12e12, 31e12}};
constexpr double COLUMN_RATE = 0.7e6;

/* Whether the panels of the columns from `next` to `end` take longer than the update of
 * the columns behind them with w columns. */
template <class T>
bool waits_for_panels(const Matrix<T> &x, int64_t w, int64_t next, int64_t end)
{
    const double operations = (Traits<T>::complex ? 8.0 : 2.0) * double(x.m - next) *
                              double(x.n - end) * double(w);
    return operations / BRIEF_RATE[x.job->precision][is_fast(x.job)] <
           double(end - next) / COLUMN_RATE;
}

/* Rows of columns that have come now are solved for in blocks of so many, whose products
 * the rows behind them take in one update: deep enough for cuBLAS, and of many rows,
 * which an update of a step's rows with all before them is not. */
constexpr int64_t CATCH_UP = 512;

/* The columns `part`, which have come now, take what the columns before them, up to
 * `first`, do to them: all interchanges at once, the rows of U, and one update of all
 * rows below, which is as wide as it can be. The columns before them have had all of
 * these interchanges. */
template <class T>
void catch_up(Matrix<T> &x, int64_t first, Range part)
{
    x.then(large_forth(maps_of(x, first), x.at(0, part.from), x.lda, part.to - part.from,
                       nullptr, x.card, x.stream));
    for (Range block = {0, 0}; block.from < first; block.from = block.to) {
        block.to = least(block.from + CATCH_UP, first);
        for (int64_t i = block.from, w; i < block.to; i += w) {
            w = least(LARGE_BLOCK<T>, block.to - i);
            solve_row(x, block.from, i, w, part);
        }
        take_products(x, block, {block.to, first}, part);
    }
    take_products(x, {0, first}, {first, x.m}, part);
}

LargeBlocks blocks_of(const struct bl_job *job, const Card &card, int64_t first,
                      int64_t order)
{
    LargeBlocks blocks = {};
    blocks.from = first;
    for (int64_t j = first, w; j < order; j += w) {
        w = outer_block(job, card, j);
        blocks.kinds += blocks.kinds == 0 || blocks.width[blocks.kinds - 1] != w;
        blocks.width[blocks.kinds - 1] = w;
        blocks.to[blocks.kinds - 1] = least(j + w, order);
    }
    return blocks;
}

/* Before which column interchanges left of a block are put off: those of the last ones,
 * which are narrow, come with their steps. */
int64_t put_off_until(const struct bl_job *job, const LargeBlocks &blocks)
{
    const int last = blocks.kinds - 1;
    return blocks.width[last] >= maps_width(job) ? blocks.to[last]
           : last > 0                            ? blocks.to[last - 1]
                                                 : blocks.from;
}

/* A part of A catches up with the columns before it. Then the next outer block takes its
 * products first and is then factored beside the update of all others. */
template <class T>
void factor_lu(Matrix<T> &x)
{
    const Range part = part_of(x.job);
    x.n = part.to;
    const int64_t order = least(x.m, x.n), first = least(part.from, order);
    auto after = [&](int64_t j) {
        return least(j + outer_block(x.job, x.card, j), order);
    };
    const LargeBlocks blocks = blocks_of(x.job, x.card, first, order);
    const int64_t until =
        puts_off(x.job, x.card) && first < order ? put_off_until(x.job, blocks) : 0;
    bool by_rows = x.rows && first < until && after(after(first)) < x.n;
    x.chains = x.card.capability >= 90;
    if (first > 0)
        catch_up(x, first, part);
    Chain<T> chain(x, after(first) < order && !x.alone);
    factor_outer(chain.matrix(), first, after(first));
    if (by_rows)
        to_rows(x, first, {after(after(first)), x.n});
    for (int64_t j = first, next, end; j < order && !chain.failed(); j = next) {
        next = after(j);
        end = after(next);
        x.brief =
            chain.has_side() && !by_rows && waits_for_panels(x, next - j, next, end);
        /* Of no use to other precisions, as measured. */
        const bool panels_first = x.brief && x.job->precision == BL_D;
        if (panels_first)
            chain.let_rest_follow();
        if (j > first)
            chain.wait_for_rest();
        if (j > first && by_rows)
            to_columns(chain.matrix(), j, {next, end});
        if (next < end)
            apply_block(chain.matrix(), j, next, {0, 0}, {next, end});
        chain.begin_before_rest(panels_first,
                                [&](Matrix<T> &y) { factor_outer(y, next, end); });
        if (by_rows)
            apply_block_by_rows(x, j, next, {end, x.n});
        else
            apply_block(x, j, next, {least(until, j), j}, {end, x.n});
        if (by_rows && next >= until) {
            to_columns(x, next, {end, x.n});
            by_rows = false;
        }
        x.brief = false;
    }
    chain.end();
    x.chains = x.follows = false;
    if (until > 0 && first < order)
        x.then(
            large_left(maps_of(x, order), blocks, until, x.a, x.lda, x.card, x.stream));
}

/* From the triangle's point of view: element (i, k) of v in large_cholesky.cuh. */
template <class T>
T *in_triangle(const Matrix<T> &x, T *a, int64_t lda, int64_t i, int64_t k)
{
    return x.job->uplo == 'U' ? a + k + i * lda : a + i + k * lda;
}

/* The rows and columns of v from `first` on, those up to `bottom`, these up to `last`,
 * less the products of the columns j .. j + w - 1. For 'U' the negative sums of the
 * products. */
template <class T>
LargeUpdate<T> update_of_triangle(const Matrix<T> &x, int64_t j, int64_t w, int64_t first,
                                  int64_t last, int64_t bottom)
{
    const bool upper = x.job->uplo == 'U';
    const int64_t rows = bottom - first, columns = last - first;
    const T *v = in_triangle(x, x.a, x.lda, first, j);
    T *to = has_sums(x.job) ? x.sums + first + first * x.n : x.at(first, first);
    const int64_t ld = has_sums(x.job) ? x.n : x.lda;
    if (upper)
        return {columns, rows, w, v, x.lda, v, x.lda, to, ld, TURNED, PLAIN, UPPER_PART};
    return {rows, columns, w, v, x.lda, v, x.lda, to, ld, PLAIN, TURNED, LOWER_PART};
}

template <class T>
void update_triangle(Matrix<T> &x, int64_t j, int64_t w, int64_t first, int64_t last,
                     int64_t bottom)
{
    update_part(x, update_of_triangle(x, j, w, first, last, bottom));
}

/* Whether a block of columns takes the products of others itself, and of how many. */
constexpr int64_t TAKEN = 3;

template <class T>
bool takes_products(const Matrix<T> &x, bool far)
{
    /* Single precision has its products from three on the matrix units: of many rows they
     * take longer here than in an update, but for 'U'. */
    return is_fast(x.job) && x.card.capability >= 90 &&
           (x.job->precision != BL_S || x.job->uplo == 'U' || far);
}

/* The columns of v from j to `end`, which have had the products of all before, and of
 * them the rows up to `bottom`. For fast arithmetic by halves, so that most products come
 * in updates with many at a time. */
template <class T>
void factor_triangle(Matrix<T> &x, int64_t j, int64_t end, int64_t bottom)
{
    const bool upper = x.job->uplo == 'U';
    const int64_t blocks = (end - j + CHOLESKY_BLOCK - 1) / CHOLESKY_BLOCK;
    const bool takes = takes_products(x, has_far_rows(x.job, x.card, j));
    if (is_fast(x.job) && blocks > (takes ? TAKEN + 1 : 1)) {
        const int64_t middle = j + blocks / 2 * CHOLESKY_BLOCK;
        factor_triangle(x, j, middle, bottom);
        update_triangle(x, j, middle - j, middle, end, bottom);
        factor_triangle(x, middle, end, bottom);
        return;
    }
    for (int64_t i = j, w; i < end; i += w) {
        w = least(CHOLESKY_BLOCK, end - i);
        x.then(large_diagonal(
            LargeDiagonal<T>{upper, int(w), x.at(i, i), x.lda,
                             has_sums(x.job) && i > 0 ? x.sums + i + i * x.n : nullptr,
                             x.n, bottom - i - w, &x.state->info, i, &x.state->arrived,
                             x.link(), takes, takes ? i - j : 0},
            x.card, x.stream));
        if (i + w < end && !takes)
            update_triangle(x, i, w, i + w, end, bottom);
    }
}

/* The rows of v from `bottom` on: the columns behind `of`, up to `end`, lose their
 * products with those. */
template <class T>
void take_far_products(Matrix<T> &x, Range of, int64_t end, int64_t bottom)
{
    if (x.job->uplo == 'U')
        take_products(x, of, {of.to, end}, {bottom, x.n});
    else
        update(x,
               LargeUpdate<T>{x.n - bottom, end - of.to, of.to - of.from,
                              x.at(bottom, of.from), x.lda, x.at(of.to, of.from), x.lda,
                              x.at(bottom, of.to), x.lda, PLAIN, TURNED, WHOLE});
}

/* The rows below an outer block from j to `end` are solved for by one kernel for all
 * multiprocessors, or, where that is no faster, by one for each 64 columns beside the
 * update. */
template <class T>
bool solves_beside(const Matrix<T> &x)
{
    return x.job->precision == BL_Z;
}

/* The columns of v from j to `end`, after those before it: the rows from `bottom` on, by
 * 64 columns. */
template <class T>
void solve_by_blocks(Matrix<T> &x, int64_t j, int64_t end, int64_t bottom)
{
    const bool upper = x.job->uplo == 'U';
    const int64_t blocks = (end - j) / CHOLESKY_BLOCK, rows = x.n - bottom;
    if (blocks > TAKEN + 1) {
        const int64_t middle = j + blocks / 2 * CHOLESKY_BLOCK;
        solve_by_blocks(x, j, middle, bottom);
        take_far_products(x, {j, middle}, end, bottom);
        solve_by_blocks(x, middle, end, bottom);
        return;
    }
    for (int64_t i = j; i < end; i += CHOLESKY_BLOCK)
        x.then(large_far(LargeFar<T>{upper, x.at(i, i), x.lda, bottom - i, rows, i - j,
                                     &x.state->info, x.link()},
                         x.stream));
}

/* The columns of v from j to `end`, of which the rows up to `end` have been factored: the
 * rows below. */
template <class T>
void solve_far(Matrix<T> &x, int64_t j, int64_t end)
{
    const bool upper = x.job->uplo == 'U';
    const int64_t rows = x.n - end;
    if (rows == 0)
        return;
    for (int64_t i = j, to; i < end; i = to) {
        to = least(i + LARGE_MANY_ORDER<T>, end);
        if (i > j)
            take_far_products(x, {j, i}, to, end);
        x.then(large_many(
            LargeMany<T>{to - i, x.at(i, i), upper ? x.lda : 1, upper ? 1 : x.lda, true,
                         false, upper ? x.at(i, end) : x.at(end, i), upper ? 1 : x.lda,
                         upper ? x.lda : 1, rows, &x.state->info, x.link()},
            x.card, x.stream));
    }
}

/* Whether the update of what is behind `end` with w columns makes room for the blocks
 * before it: if these take longer, or in double precision and for 'L' even if they take a
 * part of its time, as measured on an H100 to order 8192. */
template <class T>
bool gives_way_to_blocks(const Matrix<T> &x, int64_t w, int64_t end)
{
    const double rate = x.job->precision == BL_D && x.job->uplo == 'L' ? 3e5 : 2.5e6,
                 rest = double(x.n - end),
                 operations = (Traits<T>::complex ? 4 : 1) * rest * rest * double(w);
    return operations / BRIEF_RATE[x.job->precision][1] < double(w) / rate;
}

/* An outer block, its rows below later if they are far. */
template <class T>
void factor_outer_triangle(Matrix<T> &x, int64_t j, int64_t end)
{
    const bool far = has_far_rows(x.job, x.card, j);
    factor_triangle(x, j, end, far ? end : x.n);
    if (far && solves_beside(x) && end < x.n)
        solve_by_blocks(x, j, end, end);
}

/* The columns before j have had all their products; those behind lose the products of the
 * w columns from j - w on, and the chain goes on with the outer block from j to `end`
 * beside that. What the chain waits for is the block on the diagonal alone where the rows
 * below it are solved for later. */
template <class T>
void update_and_factor(Matrix<T> &x, Chain<T> &chain, int64_t w, int64_t j, int64_t end)
{
    const int64_t last = part_of(x.job).to;
    const bool far = has_far_rows(x.job, x.card, j) && chain.has_side(),
               later = far && !solves_beside(x) && end < x.n;
    const int own = x.card.processors / 6 + 1;
    const LargeUpdate<T> all = update_of_triangle(x, j - w, w, j, last, x.n),
                         rest = update_of_triangle(x, j - w, w, end, last, x.n);
    if (later && large_has_draw(all, x.card)) {
        chain.let_rest_follow();
        chain.share_update(all, end - j, own, [&](Matrix<T> &y) {
            update_triangle(y, j - w, w, j, end, end);
            factor_outer_triangle(y, j, end);
        });
        return;
    }
    update_triangle(chain.matrix(), j - w, w, j, end, x.n);
    auto blocks = [&](Matrix<T> &y) { factor_outer_triangle(y, j, end); };
    if (end == last) {
        blocks(chain.matrix());
        return;
    }
    chain.let_rest_follow();
    if (far && large_has_draw(rest, x.card) &&
        large_tiles_to_draw(rest) >= 2 * x.card.processors) {
        chain.share_update(rest, 0, own, blocks);
        return;
    }
    blocks(chain.matrix());
    x.brief = chain.has_side() && gives_way_to_blocks(x, w, end);
    update_part(x, rest);
    x.brief = false;
}

template <class T>
void factor_cholesky(Matrix<T> &x)
{
    const Range part = part_of(x.job);
    if (has_sums(x.job) && part.from == 0)
        x.then(cudaMemsetAsync(x.sums, 0, x.n * x.n * sizeof(T), x.stream));
    x.chains = x.card.capability >= 90;
    if (part.from > 0) { /* x.drawn begins anew, too */
        x.then(cudaMemsetAsync(&x.state->drawn, 0, sizeof x.state->drawn, x.stream));
        update_triangle(x, 0, part.from, part.from, part.to, x.n);
    }
    auto after = [&](int64_t j) {
        return is_fast(x.job) ? least(j + outer_block(x.job, x.card, j), part.to)
                              : part.to;
    };
    int64_t j = part.from, next = after(j);
    Chain<T> chain(x, after(next) < part.to);
    factor_outer_triangle(chain.matrix(), j, next);
    for (int64_t end; !chain.failed(); j = next, next = end) {
        if (has_far_rows(x.job, x.card, j) && !solves_beside(x))
            solve_far(chain.matrix(), j, next);
        if (next == part.to)
            break;
        end = after(next);
        update_and_factor(x, chain, next - j, next, end);
        chain.wait_for_rest();
    }
    chain.end();
    x.chains = x.follows = false;
}

/* Whether an update needs more of a solution than B: which products are left out. */
template <class T>
bool has_solved(const Matrix<T> &x, Placing placing)
{
    return placing == PLAIN && !is_fast(x.job);
}

/* Rows `rows` of B, its first `sides` columns, less rows and columns j .. j + w - 1 of A
 * times the solution there. */
template <class T>
void update_sides(Matrix<T> &x, Placing placing, bool upwards, int64_t j, int64_t w,
                  Range rows, int64_t sides)
{
    const int64_t to = rows.from;
    if (rows.to <= to)
        return;
    LargeUpdate<T> u = {
        rows.to - to, sides,   w,     placing == PLAIN ? x.at(to, j) : x.at(j, to),
        x.lda,        x.b + j, x.ldb, x.b + to,
        x.ldb,        placing, PLAIN, WHOLE,
        x.unless()};
    if (has_solved(x, placing)) {
        if (upwards) {
            u.a = x.at(to, j + w - 1); /* the last column's product comes first */
            u.lda = -x.lda;
        }
        u.b = x.solved;
        u.ldb = LARGE_BLOCK<T>;
        u.leaves_out = true;
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
        step.right_end = x.sides;
        step.unless = x.unless();
        x.then(large_step(step, x.card, x.stream));
    }
}

/* The block on the diagonal at j, by its inverse: the first `sides` columns of B. */
template <class T>
void solve_by_inverse(Matrix<T> &x, int64_t j, int64_t w, int64_t sides)
{
    constexpr int64_t W = LARGE_BLOCK<T>;
    LargeUpdate<T> u = {
        w,     sides, w,     x.blocks + j * W, W, x.b + j, x.ldb, x.solved, W,
        PLAIN, PLAIN, WHOLE, x.unless()};
    u.fused = u.fresh = true;
    x.then(large_update(u, x.card, x.stream));
    x.then(large_copy(int(w), sides, x.solved, x.b + j, x.ldb, x.unless(), x.stream));
}

/* B := op(A)^-1 B, all in one kernel. */
template <class T>
void solve_few(Matrix<T> &x, bool upwards, Placing placing, bool unit)
{
    const int64_t corner = upwards ? x.n - 1 : 0, sign = upwards ? -1 : 1;
    const bool turned = placing == TURNED;
    const LargeFew<T> s = {x.n,
                           x.at(corner, corner),
                           sign * (turned ? x.lda : 1),
                           sign * (turned ? 1 : x.lda),
                           turned,
                           unit,
                           x.b + corner,
                           sign,
                           x.ldb,
                           int(x.sides),
                           (T *)x.few,
                           (unsigned *)(x.few + shown_bytes(x.job)),
                           x.unless()};
    x.then(large_few(s, is_fast(x.job), x.stream));
    x.few += few_bytes(x.job);
}

/* B := op(A)^-1 B by blocks of rows that one kernel solves for; see below. */
template <class T>
void solve_many(Matrix<T> &x, bool upwards, Placing placing, bool unit, bool growing)
{
    constexpr int64_t BLOCK = LARGE_MANY_ORDER<T>;
    const int64_t count = (x.n + BLOCK - 1) / BLOCK, sign = upwards ? -1 : 1;
    const bool turned = placing == TURNED;
    for (int64_t o = 0; o < count; o++) {
        const int64_t from = (upwards ? count - 1 - o : o) * BLOCK,
                      to = least(from + BLOCK, x.n), corner = upwards ? to - 1 : from,
                      sides = growing ? to : x.sides;
        x.then(large_many(
            LargeMany<T>{to - from, x.at(corner, corner), sign * (turned ? x.lda : 1),
                         sign * (turned ? 1 : x.lda), turned, unit, x.b + corner, sign,
                         x.ldb, sides, x.unless(), x.link()},
            x.card, x.stream));
        update_sides(x, placing, upwards, from, to - from,
                     upwards ? Range{0, from} : Range{to, x.n}, sides);
    }
}

/* B := op(A)^-1 B for a triangle, `unit`: with ones on its diagonal. `growing`: B is the
 * identity and the triangle a lower one, so that the solution is lower triangular. */
template <class T>
void solve_with_triangle(Matrix<T> &x, bool upper, Placing placing, bool unit,
                         bool growing = false)
{
    const bool upwards = upper == (placing == PLAIN);
    if (x.few) {
        solve_few(x, upwards, placing, unit);
        return;
    }
    if (has_many(x.job, x.card)) {
        solve_many(x, upwards, placing, unit, growing);
        return;
    }
    const int64_t block = LARGE_BLOCK<T>, outer = is_deep(x.job) ? 512 : block,
                  count = (x.n + outer - 1) / outer;
    const bool inverts = is_deep(x.job) && placing == PLAIN;
    if (inverts)
        x.then(large_inverses(LargeInverses<T>{x.n, x.a, x.lda, upper, unit, x.blocks},
                              x.stream));
    for (int64_t o = 0; o < count; o++) {
        const int64_t from = (upwards ? count - 1 - o : o) * outer,
                      to = least(from + outer, x.n),
                      inner = (to - from + block - 1) / block;
        for (int64_t i = 0; i < inner; i++) {
            const int64_t j = from + (upwards ? inner - 1 - i : i) * block,
                          w = least(block, to - j), sides = growing ? j + w : x.sides;
            if (inverts)
                solve_by_inverse(x, j, w, sides);
            else
                x.then(large_triangle(
                    LargeTriangle<T>{
                        int(w), x.at(j, j), x.lda, placing, upwards, unit, x.b + j, x.ldb,
                        sides, has_solved(x, placing) ? x.solved : nullptr, x.unless()},
                    x.stream));
            update_sides(x, placing, upwards, j, w,
                         upwards ? Range{from, j} : Range{j + w, to}, sides);
        }
        update_sides(x, placing, upwards, from, to - from,
                     upwards ? Range{0, from} : Range{to, x.n}, growing ? to : x.sides);
    }
}

template <class T>
void solve(Matrix<T> &x)
{
    const bool upper = x.job->uplo == 'U';
    if (x.few)
        x.then(cudaMemsetAsync(x.few, 0xff, 2 * few_bytes(x.job), x.stream));
    const LargeMaps maps = {x.n, x.n, MAPS_WIDTH, x.ipiv, x.job->int_size, x.maps};
    if (is_inverse(x.job)) {
        x.then(large_begin_inverse(x.a, x.n, x.lda, x.b, &x.state->info, x.stream));
        solve_with_triangle(x, false, PLAIN, true, true);
        solve_with_triangle(x, true, PLAIN, false);
        x.then(large_end_inverse(maps, x.b, x.a, x.lda, &x.state->info, x.stream));
    } else if (is_turned(x.job)) {
        solve_with_triangle(x, true, TURNED, false);
        solve_with_triangle(x, false, TURNED, true);
        x.then(large_back(maps, x.b, x.ldb, x.sides, x.card, x.stream));
    } else if (x.job->routine == BL_GETRS || x.job->routine == BL_GESV) {
        if (has_forth(x.job, x.card))
            x.then(large_forth(maps, x.b, x.ldb, x.sides, x.unless(), x.card, x.stream));
        else
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

                       work + at.panel,
                       (T *)(work + at.sums),
                       is_inverse(job) ? (T *)(work + at.inverse)
                                       : (T *)job->b.p + i * job->b.stride,
                       is_inverse(job) ? job->n : job->b.ld,
                       sides_of(job),
                       (T *)(work + at.solved),
                       (T *)(work + at.blocks),
                       (T *)(work + at.inverse),
                       (int *)(work + at.maps),
                       is_few(job, card) ? work + at.few : nullptr,
                       work + at.blas,
                       work + at.beside,
                       goes_by_rows(job, card) ? (T *)(work + at.rows) : nullptr,
                       ld_by_rows(job),
                       cudaSuccess};
        char *info = (char *)job->info.p + i * job->info.stride * job->int_size;
        if (job->from == 0)
            x.then(cudaMemsetAsync(x.state, 0, sizeof(State), stream));
        x.alone = has_lu(job) && is_long(job, card);
        if (has_lu(job))
            factor_lu(x);
        if (has_cholesky(job))
            factor_cholesky(x);
        error = x.error;
        if (!is_last(job))
            continue;
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

int64_t smallest(const struct bl_job *job)
{
    switch (job->routine) {
    case BL_POTRF:
        return SMALLEST_POTRF;
    case BL_GETRS:
    case BL_POTRS:
    case BL_POSV:
        return job->nrhs > SIDES_BY_WARPS ? SMALLEST_WITH_MANY : SMALLEST_SOLVE;
    case BL_GESV:
        return job->precision >= BL_C ? SMALLEST_COMPLEX_GESV : SMALLEST_GESV;
    default:
        return SMALLEST;
    }
}

bool has_size(const struct bl_job *job)
{
    const int64_t order = least(job->m, job->n), other = job->m + job->n - order;
    return order >= smallest(job) ||
           (job->routine == BL_GETRF && order >= FEWEST && other > BL_LARGEST_TOGETHER);
}

/* Up to how many matrices are worked on one after the other: BL_FEW at most of those that
 * have kernels for batches, whose blocks share a matrix's latency; LU and small ones are
 * shorter so from fewer on, by `bench/batched small`. Small Cholesky solves with many
 * right-hand sides have no such kernels for few matrices. */
int64_t most_matrices(const struct bl_job *job)
{
    const int64_t order = least(job->m, job->n), other = job->m + job->n - order;
    const int complex = job->precision >= BL_C;
    if (other > BL_LARGEST_TOGETHER)
        return order > 512 ? INT64_MAX : BL_FEW;
    if (has_lu(job))
        return other <= 512 ? 1 + complex : 2 + 2 * complex;
    if (order >= SMALLEST)
        return BL_FEW;
    return job->routine == BL_POTRF   ? 2
           : job->routine == BL_GETRS ? 1
                                      : (job->nrhs > SIDES_BY_WARPS ? BL_FEW : 1);
}

bool takes(const struct bl_job *job, const Card &card)
{
    if (!has_size(job) || job->batch > most_matrices(job) || job->items || job->a.array ||
        job->b.array || job->ipiv.array || job->info.array)
        return false;
    switch (job->routine) {
    case BL_GETRF:
        return true;
    case BL_GETRS: /* netlib's transposed solve is a chain */
        return job->nrhs > 0 &&
               (job->trans == 'N' ||
                (is_fast(job) && (job->trans == 'C' || job->precision < BL_C) &&
                 size_t(job->n) * element[job->precision] <= card.shared_bytes));
    case BL_GETRI: /* netlib's own way is another */
        return is_fast(job);
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

/* They end where blocks end. Parts of LU are three: the first is short, so that work
 * begins early, and its panels take about as long as the second one's copy; every part
 * more would apply all blocks once more. Of Cholesky, whose first blocks hold the most
 * and are the longest to copy, in sixteenths. */
int64_t part(const struct bl_job *job, const Card &card, int64_t from)
{
    const int64_t n = job->n, block = !has_cholesky(job) ? outer_block(job, card)
                                      : is_fast(job)     ? CHOLESKY_OUTER
                                                         : CHOLESKY_BLOCK;
    if (!has_parts(job, card))
        return n;
    static const int64_t of_lu[] = {4, 10, 16}, of_cholesky[] = {1, 3, 5, 8, 11, 16};
    const int64_t *sixteenths = has_lu(job) ? of_lu : of_cholesky;
    for (; *sixteenths < 16; sixteenths++) {
        const int64_t to = n * *sixteenths / 16 / block * block;
        if (to > from)
            return to;
    }
    return n;
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

const Family large = {takes, workspace, launch, part};

} // namespace bl
