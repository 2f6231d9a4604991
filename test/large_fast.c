/* Fast arithmetic of large matrices where netlib is not asked: families with a known
 * answer, and others by what a factorisation, a solution and an inverse are to satisfy.
 *
 *     large_fast [largest order [precision letters [test]]]
 *
 * Residuals are in units of LAPACK's thresholds, and of n eps where those are.
 * Links libshim; the engine is the one that BATCHLAPACK_ENGINE names or that lies beside
 * the program.
 */
#include <complex.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bl.h"
#include "large_job.h"
#include "reference.h"

static const struct bl_engine *engine;

struct test {
    enum bl_precision p;
    int64_t n;
    char why[WHY_ROOM];
};

static void expect_small(struct test *t, const char *what, double residual, double most)
{
    if (!(residual >= 0 && residual <= most))
        fail(t->why, "%s: residual %.3g", what, residual);
}

/* LAPACK allows 30; netlib's are below 0.003, and those of solutions, which are in units
 * of eps, below 6. */
static const double MOST = 0.05, MOST_OF_SOLUTION = 30;

static int64_t call(struct test *t, struct large_job x)
{
    if (!large_run(engine, &x))
        fail(t->why, "the engine failed");
    return x.info;
}

static int64_t getrf(struct test *t, struct matrix *a, int64_t *pivots)
{
    return call(
        t, (struct large_job){
               .routine = BL_GETRF, .arithmetic = BL_FAST, .a = a, .pivots = pivots});
}

static int64_t potrf(struct test *t, char uplo, struct matrix *a)
{
    return call(t, (struct large_job){
                       .routine = BL_POTRF, .arithmetic = BL_FAST, .uplo = uplo, .a = a});
}

static void expect_info(struct test *t, const char *what, int64_t info, int64_t want)
{
    if (info != want)
        fail(t->why, "%s: INFO is %" PRId64 ", not %" PRId64, what, info, want);
}

static int64_t *new_pivots(int64_t n)
{
    return calloc((size_t)n, sizeof(int64_t));
}

static struct matrix new_square(const struct test *t)
{
    return matrix_new(t->p, t->n, t->n, t->n + 1, 3);
}

static struct matrix random_square(const struct test *t)
{
    struct matrix a = new_square(t);
    matrix_fill(&a, CLASS_RANDOM, (uint64_t)t->n + 17);
    return a;
}

/* The strict triangle is there for the residuals' sake. */
static struct matrix definite(const struct test *t, char uplo)
{
    struct matrix a = new_square(t);
    matrix_fill_hermitian(&a, uplo, CLASS_RANDOM, (uint64_t)t->n + 71);
    return a;
}

static void scale(struct matrix *a, char triangle, int power)
{
    for (int64_t j = 0; j < a->cols; j++)
        for (int64_t i = 0; i < a->rows; i++)
            if (in_triangle(triangle, i, j)) {
                const long double complex x = matrix_get(a, i, j);
                matrix_put(a, i, j, (double)ldexpl(creall(x), power),
                           (double)ldexpl(cimagl(x), power));
            }
}

/* 1e300, or 1e30 in single precision. */
static int far(const struct test *t)
{
    return is_double(t->p) ? 997 : 100;
}

/* ---- LU by its residual ---- */

/* Takes A. A singular matrix must be called so, and no other. */
static void factor(struct test *t, const char *what, struct matrix before)
{
    struct matrix a = matrix_copy(&before);
    int64_t *pivots = new_pivots(t->n);
    char first[200];
    const int64_t info = getrf(t, &a, pivots);
    int64_t zero = 0;
    for (int64_t k = t->n - 1; k >= 0; k--) {
        zero = matrix_get(&a, k, k) == 0 ? k + 1 : zero;
        if (pivots[k] <= k || pivots[k] > t->n) {
            fail(t->why, "%s: IPIV(%" PRId64 ") is %" PRId64, what, k + 1, pivots[k]);
            pivots[k] = k + 1;
        }
    }
    expect_info(t, what, info, zero);
    expect_small(t, what, lu_residual(&before, &a, pivots), MOST);
    if (touched(&a, &before, 0, first, sizeof first))
        fail(t->why, "%s: outside of the matrix: %s", what, first);
    matrix_free(&a);
    matrix_free(&before);
    free(pivots);
}

static void graded(struct test *t)
{
    struct matrix a = new_square(t);
    matrix_fill(&a, CLASS_GRADED, 7);
    factor(t, "graded", a);
}

static void hilbert(struct test *t)
{
    struct matrix a = new_square(t);
    for (int64_t j = 0; j < t->n; j++)
        for (int64_t i = 0; i < t->n; i++)
            matrix_put(&a, i, j, 1. / (double)(i + j + 1), 1. / (double)(i + 2 * j + 2));
    factor(t, "Hilbert", a);
}

static void far_lu(struct test *t)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        struct matrix a = random_square(t);
        scale(&a, 0, sign * far(t));
        factor(t, sign < 0 ? "1e-300" : "1e300", a);
    }
}

/* Memory is short: the other way through the same matrix. */
static void lean(struct test *t)
{
    struct matrix before = random_square(t), a = matrix_copy(&before),
                  other = matrix_copy(&before);
    int64_t *pivots = new_pivots(t->n), *others = new_pivots(t->n);
    expect_info(t, "lean",
                call(t, (struct large_job){.routine = BL_GETRF,
                                           .arithmetic = BL_FAST,
                                           .lean = true,
                                           .a = &a,
                                           .pivots = pivots}),
                0);
    expect_info(t, "not lean", getrf(t, &other, others), 0);
    for (int64_t k = 0; is_double(t->p) && k < t->n; k++)
        if (pivots[k] != others[k])
            fail(t->why, "IPIV(%" PRId64 ") is %" PRId64 ", and %" PRId64 " with memory",
                 k + 1, pivots[k], others[k]);
    if (!*t->why) {
        expect_small(t, "lean", lu_residual(&before, &a, pivots), MOST);
        expect_small(t, "not lean", lu_residual(&before, &other, others), MOST);
    }
    matrix_free(&before);
    matrix_free(&a);
    matrix_free(&other);
    free(pivots);
    free(others);
}

/* ---- LU with a known answer ---- */

static int bits_of(int64_t x)
{
    return __builtin_popcountll((unsigned long long)x);
}

/* Sylvester's matrix of +1 and -1: every number on the way is an integer that any
 * precision holds, all candidates for a pivot are of one size, and the factors are
 * powers of those of order 2. */
static void hadamard(struct test *t)
{
    while (t->n & (t->n - 1))
        t->n &= t->n - 1;
    struct matrix a = new_square(t);
    int64_t *pivots = new_pivots(t->n);
    for (int64_t j = 0; j < t->n; j++)
        for (int64_t i = 0; i < t->n; i++)
            matrix_put(&a, i, j, bits_of(i & j) % 2 ? -1 : 1, 0);
    expect_info(t, "Hadamard", getrf(t, &a, pivots), 0);
    for (int64_t k = 0; k < t->n; k++)
        if (pivots[k] != k + 1)
            fail(t->why, "IPIV(%" PRId64 ") is %" PRId64, k + 1, pivots[k]);
    for (int64_t j = 0; j < t->n; j++)
        for (int64_t i = 0; i < t->n; i++) {
            const double want = i > j ? (j & ~i) == 0
                                : (i & ~j) != 0
                                    ? 0
                                    : ldexp(bits_of(i) % 2 ? -1 : 1, bits_of(i));
            if (matrix_get(&a, i, j) != (long double)want)
                fail(t->why, "element (%" PRId64 ",%" PRId64 ") is %Lg, not %g", i + 1,
                     j + 1, creall(matrix_get(&a, i, j)), want);
        }
    matrix_free(&a);
    free(pivots);
}

static bool is_nan_at(const struct matrix *a, int64_t i, int64_t j)
{
    const long double complex x = matrix_get(a, i, j);
    return isnan(creall(x)) || isnan(cimagl(x));
}

/* The first `rows` elements of column j. */
static bool same_rows(const struct matrix *a, const struct matrix *b, int64_t rows,
                      int64_t j)
{
    return memcmp(matrix_at(a, 0, j), matrix_at(b, 0, j),
                  (size_t)rows * element_bytes(a->precision)) == 0;
}

/* A row of zeros is never chosen, and with a NaN in it neither: all other rows are as if
 * it were none, and from the NaN on the row is NaN. */
static void nan_in_a_row(struct test *t)
{
    const int64_t n = t->n, last = n - 1, columns[] = {0, n / 2, last};
    struct matrix a = random_square(t);
    for (int64_t j = 0; j < n; j++)
        matrix_put(&a, last, j, 0, 0);
    struct matrix without = matrix_copy(&a);
    int64_t *others = new_pivots(n), *pivots = new_pivots(n);
    expect_info(t, "without NaN", getrf(t, &without, others), n);
    for (int k = 0; k < 3 && !*t->why; k++) {
        const int64_t c = columns[k];
        struct matrix x = matrix_copy(&a);
        matrix_put(&x, last, c, (double)NAN, 0);
        expect_info(t, "NaN", getrf(t, &x, pivots), 0);
        if (memcmp(pivots, others, (size_t)n * sizeof *pivots) != 0)
            fail(t->why, "NaN in column %" PRId64 ": other rows are chosen", c + 1);
        for (int64_t j = 0; j < n; j++) {
            if (!same_rows(&x, &without, last, j))
                fail(t->why, "NaN in column %" PRId64 ": column %" PRId64 " is another",
                     c + 1, j + 1);
            if (j < c ? matrix_get(&x, last, j) != 0 : !is_nan_at(&x, last, j))
                fail(t->why,
                     "NaN in column %" PRId64 ": the last row's column %" PRId64
                     " is %Lg",
                     c + 1, j + 1, creall(matrix_get(&x, last, j)));
        }
        matrix_free(&x);
    }
    matrix_free(&a);
    matrix_free(&without);
    free(pivots);
    free(others);
}

/* In the row that is chosen first: its column is NaN, after which no rows are
 * interchanged and everything behind it is NaN. What is before and above it is as without
 * it. */
static void nan_in_a_pivot(struct test *t)
{
    const int64_t n = t->n, columns[] = {0, n / 2, n - 1};
    struct matrix a = random_square(t), without = matrix_copy(&a);
    int64_t *others = new_pivots(n), *pivots = new_pivots(n);
    expect_info(t, "without NaN", getrf(t, &without, others), 0);
    for (int k = 0; k < 3 && !*t->why; k++) {
        const int64_t c = columns[k];
        struct matrix x = matrix_copy(&a);
        matrix_put(&x, c ? others[0] - 1 : 0, c, (double)NAN, 0);
        expect_info(t, "NaN", getrf(t, &x, pivots), 0);
        for (int64_t j = 0; j < n; j++) {
            const int64_t want = j < c ? others[j] : j + 1;
            if (pivots[j] != want)
                fail(t->why,
                     "NaN in column %" PRId64 ": IPIV(%" PRId64 ") is %" PRId64
                     ", not %" PRId64,
                     c + 1, j + 1, pivots[j], want);
            if (j != c && !same_rows(&x, &without, c, j))
                fail(t->why, "NaN in column %" PRId64 ": column %" PRId64 " is another",
                     c + 1, j + 1);
            for (int64_t i = 0; i < n && !*t->why; i++)
                if (is_nan_at(&x, i, j) != (j == c || (i > c && j > c)))
                    fail(t->why,
                         "NaN in column %" PRId64 ": element (%" PRId64 ",%" PRId64
                         ") is %Lg",
                         c + 1, i + 1, j + 1, creall(matrix_get(&x, i, j)));
        }
        matrix_free(&x);
    }
    matrix_free(&a);
    matrix_free(&without);
    free(pivots);
    free(others);
}

/* ---- Cholesky ---- */

static void cholesky(struct test *t)
{
    for (int u = 0; u < 2; u++) {
        struct matrix before = definite(t, "LU"[u]), a = matrix_copy(&before);
        char what[] = {"LU"[u], 0}, first[200];
        expect_info(t, what, potrf(t, "LU"[u], &a), 0);
        expect_small(t, what, factor_residual(&before, "LU"[u], &a), MOST);
        if (touched(&a, &before, "LU"[u], first, sizeof first))
            fail(t->why, "%s: outside of the triangle: %s", what, first);
        matrix_free(&a);
        matrix_free(&before);
    }
}

static void far_cholesky(struct test *t)
{
    for (int k = 0; k < 4; k++) {
        const char uplo = "LU"[k % 2];
        struct matrix before = definite(t, uplo);
        scale(&before, uplo, k < 2 ? far(t) : -far(t));
        struct matrix a = matrix_copy(&before);
        const char *what = k < 2 ? "1e300" : "1e-300";
        expect_info(t, what, potrf(t, uplo, &a), 0);
        expect_small(t, what, factor_residual(&before, uplo, &a), MOST);
        matrix_free(&a);
        matrix_free(&before);
    }
}

/* On the diagonal, and in the last row's first column, which comes to the diagonal last.
 */
static void nan_cholesky(struct test *t)
{
    const int64_t n = t->n, rows[] = {0, n / 2, n - 1, n - 1},
                  columns[] = {0, n / 2, n - 1, 0};
    for (int u = 0; u < 2; u++) {
        struct matrix before = definite(t, "LU"[u]);
        for (int k = 0; k < 4; k++) {
            struct matrix a = matrix_copy(&before);
            char what[] = {"LU"[u], 0};
            matrix_put(&a, u ? columns[k] : rows[k], u ? rows[k] : columns[k],
                       (double)NAN, 0);
            expect_info(t, what, potrf(t, "LU"[u], &a), rows[k] + 1);
            matrix_free(&a);
        }
        matrix_free(&before);
    }
}

/* ---- solutions and inverses ---- */

static void inverses(struct test *t)
{
    struct matrix before = random_square(t), a = matrix_copy(&before);
    int64_t *pivots = new_pivots(t->n);
    expect_info(t, "getrf", getrf(t, &a, pivots), 0);
    expect_info(t, "getri",
                call(t, (struct large_job){.routine = BL_GETRI,
                                           .arithmetic = BL_FAST,
                                           .a = &a,
                                           .pivots = pivots}),
                0);
    expect_small(t, "getri", inverse_residual(&before, &a, 0), MOST);
    matrix_free(&a);
    matrix_free(&before);
    free(pivots);
    for (int u = 0; u < 2; u++) {
        before = definite(t, "LU"[u]);
        a = matrix_copy(&before);
        expect_info(t, "potrf", potrf(t, "LU"[u], &a), 0);
        expect_info(t, "potri",
                    call(t, (struct large_job){.routine = BL_POTRI,
                                               .arithmetic = BL_FAST,
                                               .uplo = "LU"[u],
                                               .a = &a}),
                    0);
        expect_small(t, "potri", inverse_residual(&before, &a, "LU"[u]), MOST);
        matrix_free(&a);
        matrix_free(&before);
    }
}

static void solve(struct test *t, enum bl_routine_id routine, char uplo, char trans,
                  const struct matrix *before, const struct matrix *right)
{
    struct matrix a = matrix_copy(before), b = matrix_copy(right);
    int64_t *pivots = new_pivots(t->n);
    char what[40], first[200];
    snprintf(what, sizeof what, "%s %c", routine_name(routine, t->p),
             uplo    ? uplo
             : trans ? trans
                     : 'x');
    if (routine == BL_GETRS)
        expect_info(t, what, getrf(t, &a, pivots), 0);
    if (routine == BL_POTRS)
        expect_info(t, what, potrf(t, uplo, &a), 0);
    expect_info(t, what,
                call(t, (struct large_job){.routine = routine,
                                           .arithmetic = BL_FAST,
                                           .uplo = uplo,
                                           .trans = trans,
                                           .a = &a,
                                           .b = &b,
                                           .pivots = pivots}),
                0);
    expect_small(t, what, solve_residual(before, uplo, trans ? trans : 'N', right, &b),
                 MOST_OF_SOLUTION);
    if (touched(&b, right, 0, first, sizeof first))
        fail(t->why, "%s: outside of B: %s", what, first);
    matrix_free(&a);
    matrix_free(&b);
    free(pivots);
}

static void many_sides(struct test *t)
{
    struct matrix general = random_square(t), lower = definite(t, 'L'),
                  upper = definite(t, 'U'),
                  b = matrix_new(t->p, t->n, 5 * t->n, t->n + 2, 3);
    matrix_fill(&b, CLASS_RANDOM, 5);
    solve(t, BL_GESV, 0, 0, &general, &b);
    solve(t, BL_GETRS, 0, 'N', &general, &b);
    solve(t, BL_GETRS, 0, is_complex(t->p) ? 'C' : 'T', &general, &b);
    solve(t, BL_POSV, 'L', 0, &lower, &b);
    solve(t, BL_POSV, 'U', 0, &upper, &b);
    solve(t, BL_POTRS, 'L', 0, &lower, &b);
    solve(t, BL_POTRS, 'U', 0, &upper, &b);
    matrix_free(&general);
    matrix_free(&lower);
    matrix_free(&upper);
    matrix_free(&b);
}

/* ---- all of it ---- */

/* The longest first. */
static const struct {
    const char *name;
    void (*run)(struct test *t);
    int64_t n;
    const char *letters;
} tests[] = {{"nan-pivot", nan_in_a_pivot, 6300, "sdcz"},
             {"nan-row", nan_in_a_row, 6300, "sdcz"},
             {"nan-cholesky", nan_cholesky, 6300, "sdcz"},
             {"cholesky", cholesky, 6300, "sdcz"},
             {"lean", lean, 6300, "sdc"}, /* z has but one way */
             {"hadamard", hadamard, 8192, "d"},
             {"many-sides", many_sides, 1000, "sdcz"},
             {"inverses", inverses, 2100, "sdcz"},
             {"cholesky", cholesky, 2100, "sdcz"},
             {"hadamard", hadamard, 2048, "sdcz"},
             {"far-cholesky", far_cholesky, 1500, "sdcz"},
             {"far", far_lu, 1500, "sdcz"},
             {"graded", graded, 1500, "sdcz"},
             {"hilbert", hilbert, 1500, "sdcz"},
             {"nan-pivot", nan_in_a_pivot, 1500, "sdcz"},
             {"nan-row", nan_in_a_row, 1500, "sdcz"},
             {"nan-cholesky", nan_cholesky, 1500, "sdcz"}};
enum { TESTS = sizeof tests / sizeof *tests };

static int64_t largest = 300;
static const char *letters = "sdcz", *only;

static void run(int64_t i, void *data)
{
    (void)data;
    const int64_t k = i / BL_PRECISIONS;
    struct test t = {.p = (enum bl_precision)(i % BL_PRECISIONS), .n = tests[k].n};
    const char letter = "sdcz"[t.p];
    if (!strchr(letters, letter) || !strchr(tests[k].letters, letter) ||
        (only && strcmp(only, tests[k].name) != 0))
        return;
    t.n = bl_min(t.n, largest);
    tests[k].run(&t);
    verdict(t.why, "large-fast-%s-%c-%" PRId64, tests[k].name, letter, t.n);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        largest = atoll(argv[1]);
    if (argc > 2)
        letters = argv[2];
    only = argc > 3 ? argv[3] : NULL;
    enum bl_reason why = BL_REASONS;
    engine = bl_engine_for(0, true, &why);
    verdict(engine ? "" : bl_engine_why(), "large-fast-engine");
    if (!engine)
        return 1;
    in_parallel(TESTS * BL_PRECISIONS, run, NULL);
    return failures() != 0;
}
