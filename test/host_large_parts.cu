/* The order in which one large matrix is worked on, on the host: a matrix whose columns
 * come in parts has the bits of one that is there as a whole, and netlib's.
 *
 * kernels/large.o is linked with steps that are plain loops, in double precision, in
 * place of the kernels, and with as much of a CUDA runtime as it needs; so no device is,
 * and nothing is said of kernels, streams or launches. Columns that have not come yet are
 * NaN.
 */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <type_traits>
#include <vector>

#include "large.h"
#include "large_blas.h"
#include "large_draw.h"
#include "large_inverse.h"
#include "large_many.h"
#include "large_panel.h"
#include "large_side.h"

/* ---- the steps ---- */

namespace bl
{

namespace
{

bool put_off;       /* large_left() was called */
int shared_updates; /* calls of large_draw() */

void step(const LargeUpdate<double> &u)
{
    for (int64_t j = 0; j < u.n; j++)
        for (int64_t k = 0; k < u.k; k++) {
            const double b = u.b[u.of_b == PLAIN ? k + j * u.ldb : j + k * u.ldb];
            double *c = u.c + j * u.ldc;
            const int64_t end = u.part == UPPER_PART ? std::min(j + 1, u.m) : u.m;
            for (int64_t i = u.part == LOWER_PART ? j : 0; i < end; i++)
                c[i] -= u.a[u.of_a == PLAIN ? i + k * u.lda : k + i * u.lda] * b;
        }
}

void step(const LargeStep<double> &s)
{
    const int *pivot = (const int *)s.ipiv;
    const int64_t left = s.left_end - s.left, right = s.right_end - s.right;
    for (int64_t c = 0; c < left + right; c++) {
        double *b = s.b + (c < left ? s.left + c : s.right + c - left) * s.ldb;
        for (int k = 0; k < s.w && pivot; k++)
            std::swap(b[k], b[pivot[k] - 1 - s.base]);
        for (int k = 0; k < s.w && c >= left && s.l; k++)
            for (int i = k + 1; i < s.w; i++)
                b[i] -= b[k] * s.l[i + k * s.ldl];
    }
}

void step(const LargeTriangle<double> &s)
{
    const bool turned = s.placing == TURNED;
    for (int64_t j = 0; j < s.n && !(s.unless && *s.unless); j++)
        for (int k = 0; k < s.w; k++) {
            double *b = s.b + j * s.ldb;
            if (!s.unit)
                b[k] *= 1 / s.a[k + k * s.lda]; /* as the diagonal block has it below */
            for (int i = k + 1; i < s.w; i++)
                b[i] -= b[k] * s.a[turned ? k + i * s.lda : i + k * s.lda];
        }
}

void left(const LargeMaps &x, const LargeBlocks &blocks, int64_t until, double *a,
          int64_t lda)
{
    const int *pivot = (const int *)x.ipiv;
    put_off = true;
    for (int64_t j = 0; j < until; j++)
        for (int64_t k = blocks.end_of(j); k < x.order; k++)
            std::swap(a[k + j * lda], a[pivot[k] - 1 + j * lda]);
}

void moves(const LargeMaps &x, double *a, int64_t lda, int64_t from, int64_t to)
{
    const int *pivot = (const int *)x.ipiv;
    const int64_t first = x.begin * x.width, end = std::min(first + x.width, x.order);
    for (int64_t j = from; j < to; j++)
        for (int64_t k = first; k < end; k++)
            std::swap(a[k + j * lda], a[pivot[k] - 1 + j * lda]);
}

void forth(const LargeMaps &x, double *b, int64_t ldb, int64_t columns)
{
    const int *pivot = (const int *)x.ipiv;
    for (int64_t j = 0; j < columns; j++)
        for (int64_t k = x.begin * x.width; k < x.order; k++)
            std::swap(b[k + j * ldb], b[pivot[k] - 1 + j * ldb]);
}

void step(const LargeDiagonal<double> &d)
{
    const int64_t rows = d.n + d.beside;
    auto l = [&](int64_t i, int64_t k) -> double & {
        return d.a[d.upper ? k + i * d.lda : i + k * d.lda];
    };
    for (int64_t j = 0; j < d.n && d.sums && *d.info == 0; j++)
        for (int64_t i = j; i < rows; i++)
            l(i, j) += d.sums[j + i * d.ld_sums];
    for (int64_t k = -d.before; k < 0 && *d.info == 0; k++)
        for (int64_t j = 0; j < d.n; j++)
            for (int64_t i = j; i < rows; i++)
                l(i, j) -= l(i, k) * l(j, k);
    for (int64_t k = 0; k < d.n && *d.info == 0; k++) {
        if (!(l(k, k) > 0)) {
            *d.info = d.base + k + 1;
            break;
        }
        l(k, k) = sqrt(l(k, k));
        for (int64_t i = k + 1; i < rows; i++)
            l(i, k) *= 1 / l(k, k);
        for (int64_t j = k + 1; j < d.n; j++)
            for (int64_t i = j; i < rows; i++)
                l(i, j) -= l(i, k) * l(j, k);
    }
}

void step(const LargeFar<double> &d)
{
    auto l = [&](int64_t i, int64_t k) -> double & {
        return d.a[d.upper ? k + i * d.lda : i + k * d.lda];
    };
    for (int64_t i = d.far; i < d.far + d.rows && *d.info == 0; i++) {
        for (int64_t k = -d.before; k < 0; k++)
            for (int64_t j = 0; j < 64; j++)
                l(i, j) -= l(i, k) * l(j, k);
        for (int64_t k = 0; k < 64; k++) {
            l(i, k) *= 1 / l(k, k);
            for (int64_t j = k + 1; j < 64; j++)
                l(i, j) -= l(i, k) * l(j, k);
        }
    }
}

void step(const LargeMany<double> &s)
{
    auto a = [&](int64_t i, int64_t k) { return s.a[i * s.down + k * s.across]; };
    for (int64_t r = 0; r < s.sides && !(s.unless && *s.unless); r++)
        for (int64_t k = 0; k < s.n; k++) {
            double *b = s.b + r * s.apart;
            if (!s.unit)
                b[k * s.step] *= 1 / a(k, k); /* as the diagonal block has it above */
            for (int64_t i = k + 1; i < s.n; i++)
                b[i * s.step] -= b[k * s.step] * a(i, k);
        }
}

/* All of an update but the square of the first `hole` rows and columns. */
void step(const LargeUpdate<double> &u, int64_t hole)
{
    const int64_t rows = std::min(hole, u.m), columns = std::min(hole, u.n);
    std::vector<double> square;
    for (int64_t j = 0; j < columns; j++)
        square.insert(square.end(), u.c + j * u.ldc, u.c + j * u.ldc + rows);
    step(u);
    for (int64_t j = 0; j < columns; j++)
        std::copy_n(square.begin() + j * rows, rows, u.c + j * u.ldc);
}

/* Other precisions are not asked for. */
template <template <class> class Step, class T>
cudaError_t take(const Step<T> &s)
{
    if constexpr (std::is_same_v<T, double>)
        step(s);
    else
        abort();
    return cudaSuccess;
}

} // namespace

template <class T>
cudaError_t large_update(const LargeUpdate<T> &u, const Card &, cudaStream_t)
{
    return take(u);
}
template <class T>
cudaError_t large_step(const LargeStep<T> &s, const Card &, cudaStream_t)
{
    return take(s);
}
template <class T>
bool large_takes_beside(const LargeStep<T> &, int64_t, const Card &)
{
    return false;
}
template <class T>
cudaError_t large_beside(const LargeStep<T> &, int64_t, const Card &, cudaStream_t)
{
    abort();
}
template <class T>
cudaError_t large_triangle(const LargeTriangle<T> &s, cudaStream_t)
{
    return take(s);
}
template <class T>
cudaError_t large_diagonal(const LargeDiagonal<T> &d, const Card &, cudaStream_t)
{
    return take(d);
}
template <class T>
cudaError_t large_far(const LargeFar<T> &d, cudaStream_t)
{
    return take(d);
}
template <class T>
bool large_has_many(const Card &)
{
    return true;
}
template <class T>
cudaError_t large_many(const LargeMany<T> &s, const Card &, cudaStream_t)
{
    return take(s);
}
template <class T>
bool large_has_draw(const LargeUpdate<T> &u, const Card &)
{
    return u.part != WHOLE;
}
template <class T>
int64_t large_tiles_to_draw(const LargeUpdate<T> &u, int64_t)
{
    return u.m;
}
/* The first block that comes does all, and the others find nothing more to do. */
template <class T>
cudaError_t large_draw(const LargeUpdate<T> &u, const LargeDraw &draw, int processors,
                       cudaStream_t, cudaEvent_t)
{
    const bool first = *draw.drawn == draw.begin;
    shared_updates++;
    if (*draw.drawn < draw.begin || (!first && *draw.drawn < draw.end))
        abort();
    *draw.drawn = (first ? draw.end : *draw.drawn) + unsigned(processors);
    if constexpr (std::is_same_v<T, double>)
        if (first)
            step(u, draw.hole);
    return cudaSuccess;
}
template <class T>
cudaError_t large_by_tiles(const LargeUpdate<T> &, bool, cudaStream_t)
{
    abort(); /* double precision has none */
}
template <class T>
bool large_takes_left(int64_t, const Card &)
{
    return true;
}
template <class T>
cudaError_t large_left(LargeMaps x, const LargeBlocks &blocks, int64_t until, T *a,
                       int64_t lda, const Card &, cudaStream_t)
{
    left(x, blocks, until, (double *)a, lda);
    return cudaSuccess;
}
template <class T>
cudaError_t large_forth(const LargeMaps &x, T *b, int64_t ldb, int64_t columns,
                        const int64_t *, const Card &, cudaStream_t)
{
    forth(x, (double *)b, ldb, columns);
    return cudaSuccess;
}
template <class T>
cudaError_t large_moves(const LargeMaps &x, T *a, int64_t lda, int64_t left,
                        int64_t left_end, int64_t right, int64_t right_end, cudaStream_t)
{
    moves(x, (double *)a, lda, left, left_end);
    moves(x, (double *)a, lda, right, right_end);
    return cudaSuccess;
}
template <class T>
bool large_blas_update(const LargeUpdate<T> &, void *, cudaStream_t)
{
    return false;
}
/* So nothing goes by rows. */
template <class T>
bool has_large_blas()
{
    return false;
}
template <class T>
size_t large_diagonal_memory()
{
    return 0;
}
template <class T>
size_t large_few_memory()
{
    return 0;
}

/* Solves and inverses begin when all is there. */
#define NEVER(function, ...)                                                             \
    template <class T>                                                                   \
    cudaError_t function(__VA_ARGS__, cudaStream_t)                                      \
    {                                                                                    \
        abort();                                                                         \
    }
NEVER(large_turn, int64_t, int64_t, const T *, int64_t, T *, int64_t)
NEVER(large_take_rows, const LargeMaps &, T *, int64_t, T *, int64_t, int64_t)
NEVER(large_blas_update_rows, const LargeUpdate<T> &, void *)
NEVER(large_back, const LargeMaps &, T *, int64_t, int64_t, const Card &)
NEVER(large_copy, int, int64_t, const T *, T *, int64_t, const int64_t *)
NEVER(large_inverses, const LargeInverses<T> &)
NEVER(large_begin_inverse, const T *, int64_t, int64_t, T *, int64_t *)
NEVER(large_end_inverse, const LargeMaps &, const T *, T *, int64_t, const int64_t *)
NEVER(large_take_out, const LargeInverse<T> &)
NEVER(large_negate, const LargeInverse<T> &)
NEVER(large_find_zero, const T *, int64_t, int64_t, int64_t *)
NEVER(large_make_real, T *, int64_t, int64_t, const int64_t *)
NEVER(large_few, LargeFew<T>, bool)

#define INSTANTIATE(T)                                                                   \
    template cudaError_t large_update(const LargeUpdate<T> &, const Card &,              \
                                      cudaStream_t);                                     \
    template cudaError_t large_step(const LargeStep<T> &, const Card &, cudaStream_t);   \
    template bool large_takes_beside(const LargeStep<T> &, int64_t, const Card &);       \
    template cudaError_t large_beside(const LargeStep<T> &, int64_t, const Card &,       \
                                      cudaStream_t);                                     \
    template cudaError_t large_triangle(const LargeTriangle<T> &, cudaStream_t);         \
    template cudaError_t large_diagonal(const LargeDiagonal<T> &, const Card &,          \
                                        cudaStream_t);                                   \
    template cudaError_t large_far(const LargeFar<T> &, cudaStream_t);                   \
    template bool large_has_many<T>(const Card &);                                       \
    template cudaError_t large_many(const LargeMany<T> &, const Card &, cudaStream_t);   \
    template bool large_has_draw(const LargeUpdate<T> &, const Card &);                  \
    template int64_t large_tiles_to_draw(const LargeUpdate<T> &, int64_t);               \
    template cudaError_t large_draw(const LargeUpdate<T> &, const LargeDraw &, int,      \
                                    cudaStream_t, cudaEvent_t);                          \
    template cudaError_t large_by_tiles(const LargeUpdate<T> &, bool, cudaStream_t);     \
    template bool large_takes_left<T>(int64_t, const Card &);                            \
    template bool has_large_blas<T>();                                                   \
    template cudaError_t large_turn(int64_t, int64_t, const T *, int64_t, T *, int64_t,  \
                                    cudaStream_t);                                       \
    template cudaError_t large_take_rows(const LargeMaps &, T *, int64_t, T *, int64_t,  \
                                         int64_t, cudaStream_t);                         \
    template cudaError_t large_blas_update_rows(const LargeUpdate<T> &, void *,          \
                                                cudaStream_t);                           \
    template cudaError_t large_left(LargeMaps, const LargeBlocks &, int64_t, T *,        \
                                    int64_t, const Card &, cudaStream_t);                \
    template bool large_blas_update(const LargeUpdate<T> &, void *, cudaStream_t);       \
    template size_t large_diagonal_memory<T>();                                          \
    template size_t large_few_memory<T>();                                               \
    template cudaError_t large_few(LargeFew<T>, bool, cudaStream_t);                     \
    template cudaError_t large_forth(const LargeMaps &, T *, int64_t, int64_t,           \
                                     const int64_t *, const Card &, cudaStream_t);       \
    template cudaError_t large_moves(const LargeMaps &, T *, int64_t, int64_t, int64_t,  \
                                     int64_t, int64_t, cudaStream_t);                    \
    template cudaError_t large_back(const LargeMaps &, T *, int64_t, int64_t,            \
                                    const Card &, cudaStream_t);                         \
    template cudaError_t large_copy(int, int64_t, const T *, T *, int64_t,               \
                                    const int64_t *, cudaStream_t);                      \
    template cudaError_t large_inverses(const LargeInverses<T> &, cudaStream_t);         \
    template cudaError_t large_begin_inverse(const T *, int64_t, int64_t, T *,           \
                                             int64_t *, cudaStream_t);                   \
    template cudaError_t large_end_inverse(const LargeMaps &, const T *, T *, int64_t,   \
                                           const int64_t *, cudaStream_t);               \
    template cudaError_t large_take_out(const LargeInverse<T> &, cudaStream_t);          \
    template cudaError_t large_negate(const LargeInverse<T> &, cudaStream_t);            \
    template cudaError_t large_find_zero(const T *, int64_t, int64_t, int64_t *,         \
                                         cudaStream_t);                                  \
    template cudaError_t large_make_real(T *, int64_t, int64_t, const int64_t *,         \
                                         cudaStream_t);
BL_FOR_EACH_TYPE(INSTANTIATE)

size_t large_maps_bytes(int64_t, int64_t, int64_t)
{
    return 256;
}
int large_panel_width(enum bl_precision, int64_t, bool, const Card &)
{
    return 16;
}
bool large_panel_on_card(enum bl_precision, int64_t, const Card &)
{
    return true; /* which makes outer blocks of a long matrix two steps wide */
}
size_t large_panel_workspace(enum bl_precision, int64_t, const Card &)
{
    return 256;
}
cudaError_t large_panel_launch(const LargePanel &p, const Card &, cudaStream_t,
                               cudaEvent_t)
{
    double *const a = (double *)p.a;
    for (int k = 0; k < p.w; k++) {
        double *l = a + k * p.lda;
        int64_t best = k;
        for (int64_t i = k + 1; i < p.m; i++)
            best = fabs(l[i]) > fabs(l[best]) ? i : best;
        ((int *)p.pivots)[k] = int(p.offset + best + 1);
        if (l[best] == 0) {
            *p.info = *p.info ? *p.info : p.offset + k + 1;
            continue;
        }
        for (int j = 0; j < p.w; j++)
            std::swap(a[k + j * p.lda], a[best + j * p.lda]);
        const double scale = 1 / l[k];
        for (int64_t i = k + 1; i < p.m; i++)
            l[i] *= scale;
        for (int j = k + 1; j < p.w; j++)
            for (int64_t i = k + 1; i < p.m; i++)
                a[i + j * p.lda] -= l[i] * a[k + j * p.lda];
    }
    return cudaSuccess;
}

/* Every other job gets a second stream, on which all is done at once too. */
LargeSide *LargeSide::borrow(cudaStream_t)
{
    static LargeSide only;
    static bool has;
    has = !has;
    return has ? &only : nullptr;
}
void LargeSide::give_back()
{
}
cudaError_t LargeSide::fork()
{
    return cudaSuccess;
}
cudaError_t LargeSide::join()
{
    return cudaSuccess;
}
cudaEvent_t LargeSide::beginning() const
{
    return nullptr;
}
cudaError_t LargeSide::after_beginning()
{
    return cudaSuccess;
}
cudaError_t LargeSide::here_after_beginning()
{
    return cudaSuccess;
}

} // namespace bl

/* ---- cases ---- */

namespace
{

using Getrf = void(const int *, const int *, double *, const int *, int *, int *);
using Potrf = void(const char *, const int *, double *, const int *, int *, size_t);
Getrf *dgetrf;
Potrf *dpotrf;
int failed;

enum Kind { RANDOM, TIES, SINGULAR };

struct Result {
    std::vector<double> a;
    std::vector<int> ipiv;
    int64_t info;
};

double uniform()
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return double(int64_t(state)) * 0x1p-63;
}

std::vector<double> pose(bool lu, int m, int n, int lda, Kind kind)
{
    std::vector<double> a(size_t(lda) * n);
    for (double &x : a)
        x = kind == TIES ? floor(3 * uniform()) : uniform();
    for (int k = 0; k < n && !lu; k++)
        a[k + size_t(k) * lda] = kind == SINGULAR && k == n / 2 ? -1 : 2.0 * n;
    for (int i = 0; i < m && lu && kind == SINGULAR; i++)
        a[i + size_t(n / 3) * lda] = 0;
    return a;
}

/* The job with A's columns, or U's rows, up to each of `ends` there in turn; where there
 * are none, up to those that the family asks for. */
Result factor(struct bl_job job, const std::vector<double> &a, std::vector<int64_t> ends,
              int processors)
{
    const bl::Card card = {processors, 90, 227 << 10, true};
    const int64_t lda = job.a.ld;
    Result r = {std::vector<double>(a.size(), NAN),
                std::vector<int>(size_t(std::min(job.m, job.n))), 0};
    int info;
    job.a.p = r.a.data();
    job.ipiv.p = r.ipiv.data();
    job.info.p = &info;
    std::vector<char> work(bl::large.workspace(&job, card), 0x55);
    job.work = work.data();
    for (int64_t from = 0; ends.empty() || ends.back() < job.n;) {
        from = bl::large.part(&job, card, from);
        ends.push_back(from);
    }
    for (const int64_t to : ends) {
        job.to = to;
        const bool rows = job.uplo == 'U';
        for (int64_t j = job.from; j < (rows ? job.n : to); j++) {
            const auto from = a.begin() + j * lda + (rows ? job.from : 0);
            std::copy(from, a.begin() + j * lda + (rows ? to : lda),
                      r.a.begin() + (from - a.begin()));
        }
        bl::large.launch(&job, card, nullptr);
        job.from = to;
    }
    memcpy(&r.info, work.data(), sizeof r.info); /* the state's first */
    return r;
}

/* Of Cholesky's, the triangle, up to the row and column of INFO; `error`: how far off an
 * element may be. */
size_t differences(const Result &x, const Result &y, char uplo, int n, int lda,
                   double error = 0)
{
    const bool lu = !uplo;
    size_t count = x.info != y.info;
    for (size_t k = 0; k < x.ipiv.size() && lu; k++)
        count += x.ipiv[k] != y.ipiv[k];
    const int64_t columns = !lu && x.info ? x.info - 1 : n;
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = uplo == 'L' ? j : 0; i < (lu            ? lda
                                                   : uplo == 'L' ? n
                                                                 : j + 1);
             i++) {
            const double p = x.a[i + j * lda], q = y.a[i + j * lda];
            count += (lu || i < columns) && memcmp(&p, &q, sizeof p) != 0 &&
                     !(fabs(p - q) < error);
        }
    return count;
}

void test(char uplo, enum bl_arithmetic arithmetic, int m, int n, int lda, Kind kind,
          const std::vector<int64_t> &ends, int processors = 132)
{
    const bool lu = !uplo;
    static const char *const kinds[] = {"random", "ties", "singular"};
    struct bl_job job = {};
    job.routine = lu ? BL_GETRF : BL_POTRF;
    job.precision = BL_D;
    job.arithmetic = arithmetic;
    job.uplo = uplo;
    job.int_size = sizeof(int);
    job.m = m;
    job.n = n;
    job.batch = 1;
    job.a.ld = lda;
    const std::vector<double> a = pose(lu, m, n, lda, kind);
    bl::put_off = false;
    const Result whole = factor(job, a, {n}, processors),
                 parts = factor(job, a, ends, processors);
    size_t wrong = differences(whole, parts, uplo, n, lda);
    if (n < 2000) { /* netlib takes its time, and so does pose() for it */
        Result want = {a, parts.ipiv, 0};
        int info = 0;
        if (lu)
            dgetrf(&m, &n, want.a.data(), &lda, want.ipiv.data(), &info);
        else
            dpotrf(&uplo, &n, want.a.data(), &lda, &info, 1);
        want.info = info;
        wrong += differences(want, parts, uplo, n, lda, uplo == 'U' ? 1e-12 : 0);
    }
    if (lu && !bl::put_off)
        wrong++;
    failed += wrong > 0;
    printf("%s large-parts-%s-%s-%dx%d-%s-%zu%s\n", wrong ? "not ok" : "ok",
           lu            ? "getrf"
           : uplo == 'U' ? "potrf-U"
                         : "potrf",
           arithmetic == BL_EXACT ? "exact" : "fast", m, n, kinds[kind], ends.size(),
           wrong ? " - other bits, IPIV or INFO" : "");
    fflush(stdout);
}

/* What is too small to gain needs all of A. */
void test_asked()
{
    const bl::Card card = {132, 90, 227 << 10, true};
    struct bl_job job = {};
    job.routine = BL_POSV;
    job.precision = BL_D;
    job.arithmetic = BL_FAST;
    job.uplo = 'U';
    job.batch = 1;
    auto part = [&](int64_t n, int64_t from) {
        job.m = job.n = n;
        return bl::large.part(&job, card, from);
    };
    const bool good = part(16384, 0) == 1024 && part(16384, 1024) == 3072 &&
                      part(16384, 11264) == 16384 && part(3000, 0) == 3000 &&
                      part(8192, 0) == 512 && part(8192, 4096) == 5632;
    failed += !good;
    printf("%s large-parts-asked-U\n", good ? "ok" : "not ok");
}

} // namespace

int main()
{
    void *lapack = dlopen("liblapack.so.3", RTLD_NOW);
    *(void **)&dgetrf = lapack ? dlsym(lapack, "dgetrf_") : nullptr;
    *(void **)&dpotrf = lapack ? dlsym(lapack, "dpotrf_") : nullptr;
    if (!dgetrf || !dpotrf) {
        printf("skip large-parts - no liblapack.so.3\n");
        return 0;
    }
    for (const Kind kind : {RANDOM, TIES, SINGULAR}) {
        test(0, BL_EXACT, 700, 700, 705, kind, {256, 512, 700});
        test(0, BL_EXACT, 900, 520, 900, kind, {128, 256, 384, 520});
        test(0, BL_EXACT, 400, 1100, 401, kind, {128, 256, 640, 1100});
        test(0, BL_EXACT, 640, 640, 640, kind, {384, 640});
        test(0, BL_FAST, 2500, 620, 2501, kind, {256, 620});
        test(0, BL_FAST, 700, 700, 700, kind, {256, 512, 700});
        if (kind == TIES)
            continue;
        test(0, BL_EXACT, 1300, 1300, 1300, kind, {1152, 1300});
        test('L', BL_EXACT, 700, 700, 705, kind, {192, 448, 700});
        test('L', BL_EXACT, 641, 641, 641, kind, {64, 128, 320, 641});
        test('L', BL_FAST, 700, 700, 705, kind, {256, 512, 700});
        test('L', BL_FAST, 641, 641, 641, kind, {256, 641});
        test('U', BL_FAST, 700, 700, 705, kind, {256, 512, 700});
        test('U', BL_FAST, 1500, 1500, 1500, kind, {768, 1024, 1500});
        test('U', BL_FAST, 641, 641, 641, kind, {200, 641});
        test('U', BL_EXACT, 700, 700, 705, kind, {192, 448, 700});
        test('U', BL_EXACT, 641, 641, 641, kind, {64, 128, 320, 641});
    }
    test(0, BL_EXACT, 3100, 3100, 3100, RANDOM, {});
    bl::shared_updates = 0;
    for (const char uplo : {'L', 'U'})
        for (int turn = 0; turn < 2; turn++) /* with and without a second stream */
            test(uplo, BL_FAST, 2400, 2400, 2400, RANDOM, {1024, 2400}, 4);
    if (bl::shared_updates == 0)
        failed++, printf("not ok large-parts-shared - no update was\n");
    test_asked();
    return failed > 0;
}
