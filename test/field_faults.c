/* Faults that users of neighbouring libraries met (entries of the collected list), as
 * single calls with the inputs and the answers given there, in every precision that fits,
 * through the exported entries: once forwarded to the program's own LAPACK, once on the
 * engine.
 *
 *     field_faults [--heavy] [--fast]
 *
 * --heavy: also the large sizes of entries 15 and 19. --fast: instead of all this the
 * families of entry 15 on the engine in fast arithmetic.
 *
 * Names are field-NN-WHAT-PRECISION-WAY; batched forms are in batch.c. The answers are
 * those of netlib 3.11 built without fused multiply-add; the forwarded way needs such a
 * LAPACK (BATCHLAPACK_LAPACK or BL_REFERENCE). Must be linked with -rdynamic, so that its
 * xerbla_ is the one that LAPACK calls.
 */
#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "batchlapack.h"
#include "reference.h"

static bool heavy, fast;

/* ---- a test and what it says ---- */

struct test {
    enum bl_precision p;
    bool gpu;
    char why[WHY_ROOM];
};

static void say(struct test *t, const char *name)
{
    verdict(t->why, "field-%s-%c-%s", name, "sdcz"[t->p],
            fast     ? "fast"
            : t->gpu ? "gpu"
                     : "cpu");
    *t->why = 0;
}

/* ---- matrices by rows ---- */

static struct matrix by_rows(enum bl_precision p, int64_t m, int64_t n, int64_t lda,
                             const double complex *x)
{
    struct matrix a = matrix_new(p, m, n, lda, 4);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            matrix_put(&a, i, j, creal(x[i * n + j]), cimag(x[i * n + j]));
    return a;
}

#define ROWS(...) ((const double complex[]){__VA_ARGS__})
#define INTS(...) ((const int32_t[]){__VA_ARGS__})

/* Elements of a triangle (0: all) equal the given rows within `ulps` units of eps; zeros,
 * infinities and NaN are to be matched as such. */
static void expect_rows(struct test *t, const char *what, const struct matrix *a,
                        char triangle, double ulps, const double complex *x)
{
    struct matrix want = by_rows(a->precision, a->rows, a->cols, a->rows, x);
    double tolerance = ulps * epsilon_of(a->precision);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++) {
            if (!in_triangle(triangle, i, j))
                continue;
            long double complex g = matrix_get(a, i, j), w = matrix_get(&want, i, j);
            double part[2][2] = {{(double)creall(g), (double)creall(w)},
                                 {(double)cimagl(g), (double)cimagl(w)}};
            for (int k = 0; k < (is_complex(a->precision) ? 2 : 1); k++) {
                double got = part[k][0], wanted = part[k][1];
                if (got == wanted || (isnan(got) && isnan(wanted)) ||
                    fabs(got - wanted) <= tolerance * fabs(wanted))
                    continue;
                fail(t->why, "%s: %s part of (%lld,%lld) is %.17g, not %.17g", what,
                     k ? "imaginary" : "real", (long long)i + 1, (long long)j + 1, got,
                     wanted);
            }
        }
    matrix_free(&want);
}

static void expect_info(struct test *t, const char *what, int32_t got, int32_t want)
{
    if (got != want)
        fail(t->why, "%s: INFO %d, not %d", what, got, want);
}

static void expect_untouched(struct test *t, const char *what, const struct matrix *a,
                             const struct matrix *before, char triangle)
{
    char first[256];
    if (touched(a, before, triangle, first, sizeof first))
        fail(t->why, "%s: outside of what is written: %s", what, first);
}

static void expect_same(struct test *t, const char *what, const struct matrix *a,
                        const struct matrix *before)
{
    if (memcmp(a->data, before->data, matrix_bytes(a)) != 0)
        fail(t->why, "%s: was written", what);
}

/* ---- calls ---- */

#define GUARD (-99)

static int32_t *pivots(int64_t count)
{
    int32_t *p = malloc(((size_t)count + 4) * sizeof *p);
    for (int64_t i = 0; i < count + 4; i++)
        p[i] = GUARD;
    return p;
}

static void expect_pivots(struct test *t, const char *what, const int32_t *got,
                          const int32_t *want, int64_t count)
{
    for (int64_t k = 0; k < count; k++)
        if (got[k] != want[k])
            fail(t->why, "%s: IPIV(%lld) is %d, not %d", what, (long long)k + 1, got[k],
                 want[k]);
    if (got[count] != GUARD)
        fail(t->why, "%s: the word after IPIV was written", what);
}

static int32_t getrf(struct matrix *a, int32_t *ipiv)
{
    struct call c = {.routine = BL_GETRF,
                     .precision = a->precision,
                     .m = (int32_t)a->rows,
                     .n = (int32_t)a->cols,
                     .lda = (int32_t)a->ld,
                     .a = a->data,
                     .ipiv = ipiv,
                     .info = -77};
    entry_call(&c);
    return c.info;
}

static int32_t cholesky(enum bl_routine_id r, struct matrix *a, const char *uplo)
{
    struct call c = {.routine = r,
                     .precision = a->precision,
                     .n = (int32_t)a->cols,
                     .lda = (int32_t)a->ld,
                     .a = a->data,
                     .uplo = uplo,
                     .info = -77};
    entry_call(&c);
    return c.info;
}

static int32_t potrf(struct matrix *a, const char *uplo)
{
    return cholesky(BL_POTRF, a, uplo);
}

static int32_t solve(enum bl_routine_id r, struct matrix *a, int32_t *ipiv,
                     struct matrix *b, const char *option)
{
    struct call c = {.routine = r,
                     .precision = a->precision,
                     .n = (int32_t)a->cols,
                     .nrhs = (int32_t)b->cols,
                     .lda = (int32_t)a->ld,
                     .ldb = (int32_t)b->ld,
                     .a = a->data,
                     .b = b->data,
                     .ipiv = ipiv,
                     .uplo = option,
                     .trans = option,
                     .info = -77};
    entry_call(&c);
    return c.info;
}

static int32_t getri(struct matrix *a, int32_t *ipiv, struct matrix *work, int32_t lwork)
{
    struct call c = {.routine = BL_GETRI,
                     .precision = a->precision,
                     .n = (int32_t)a->cols,
                     .lda = (int32_t)a->ld,
                     .a = a->data,
                     .ipiv = ipiv,
                     .work = work->data,
                     .lwork = lwork,
                     .info = -77};
    entry_call(&c);
    return c.info;
}

/* getrf of the m x n matrix by rows: INFO and IPIV as given, guard word intact; the
 * factor where `lu` is not NULL. */
static void expect_getrf(struct test *t, const char *what, int64_t m, int64_t n,
                         const double complex *x, int32_t info, const int32_t *ipiv,
                         const double complex *lu, double ulps)
{
    struct matrix a = by_rows(t->p, m, n, m + 1, x), before = matrix_copy(&a);
    int64_t count = m < n ? m : n;
    int32_t *got = pivots(count);
    expect_info(t, what, getrf(&a, got), info);
    expect_pivots(t, what, got, ipiv, count);
    if (lu)
        expect_rows(t, what, &a, 0, ulps, lu);
    expect_untouched(t, what, &a, &before, 0);
    matrix_free(&a);
    matrix_free(&before);
    free(got);
}

/* potrf likewise; the rows hold both triangles and the other one must stay. */
static void expect_potrf(struct test *t, const char *what, const char *uplo, int64_t n,
                         const double complex *x, int32_t info,
                         const double complex *factor)
{
    struct matrix a = by_rows(t->p, n, n, n + 1, x), before = matrix_copy(&a);
    expect_info(t, what, potrf(&a, uplo), info);
    if (factor)
        expect_rows(t, what, &a, *uplo, 2, factor);
    expect_untouched(t, what, &a, &before, *uplo);
    matrix_free(&a);
    matrix_free(&before);
}

/* c * I. */
static struct matrix diagonal(enum bl_precision p, int64_t n, double c)
{
    struct matrix a = matrix_new(p, n, n, n, 4);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
            matrix_put(&a, i, j, i == j ? c : 0, 0);
    return a;
}

/* A xerbla of our own: LAPACK's would end the program. */
static _Thread_local char xerbla_name[8];
static _Thread_local int xerbla_argument;

void xerbla_(const char *name, const int32_t *argument, size_t length);
void xerbla_(const char *name, const int32_t *argument, size_t length)
{
    size_t n = length < sizeof xerbla_name - 1 ? length : sizeof xerbla_name - 1;
    memcpy(xerbla_name, name, n);
    xerbla_name[n] = 0;
    xerbla_argument = *argument;
}

static void expect_xerbla(struct test *t, const char *routine, int argument)
{
    char want[8];
    snprintf(want, sizeof want, "%c%s", "SDCZ"[t->p], routine);
    if (strncmp(want, xerbla_name, strlen(want)) != 0 || xerbla_argument != argument)
        fail(t->why, "xerbla was called with %s %d, not %s %d", xerbla_name,
             xerbla_argument, want, argument);
    xerbla_argument = 0;
}

/* ---- 1: singular, and fused multiply-add says regular ---- */

static void singular_by_rounding(struct test *t)
{
    expect_getrf(t, "a", 2, 2, ROWS(1, 3, 3, 9), 2, INTS(2, 2), ROWS(3, 9, 1 / 3., 0), 2);
    expect_getrf(t, "b", 2, 2, ROWS(4, 4, 12, 12), 2, INTS(2, 2), NULL, 0);
    expect_getrf(t, "c", 3, 3, ROWS(1, 2, 3, 2, 2, 6, 3, 6, 9), 3, INTS(3, 2, 3), NULL,
                 0);
    expect_getrf(t, "d", 3, 3, ROWS(1, 2, 3, 2, 5, 6, 3, 6, 9), 3, INTS(3, 2, 3), NULL,
                 0);
    expect_getrf(t, "e", 3, 3, ROWS(1, 5, 7, 2, 10, -3, 5, 25, 1), 2, INTS(3, 2, 3), NULL,
                 0);
    expect_getrf(t, "f", 3, 3, ROWS(1, 2, 3, 4, 5, 6, 7, 8, 9), is_double(t->p) ? 0 : 3,
                 INTS(3, 3, 3), NULL, 0);
    expect_getrf(t, "control", 3, 3, ROWS(1, 2, 3, 2, 4, 6, 1, 2, 3), 2, INTS(2, 2, 3),
                 NULL, 0);
    /* A solve of the same says so too, and leaves B. */
    struct matrix a = by_rows(t->p, 2, 2, 2, ROWS(1, 3, 3, 9));
    struct matrix b = by_rows(t->p, 2, 1, 2, ROWS(1, 2)), before = matrix_copy(&b);
    int32_t *ipiv = pivots(2);
    expect_info(t, "gesv", solve(BL_GESV, &a, ipiv, &b, "N"), 2);
    expect_pivots(t, "gesv", ipiv, INTS(2, 2), 2);
    expect_same(t, "gesv's B", &b, &before);
    matrix_free(&a);
    matrix_free(&b);
    matrix_free(&before);
    free(ipiv);
    say(t, "01-singular");
}

/* ---- 2: zero pivots ---- */

static void zero_pivots(struct test *t)
{
    double complex zeros[25] = {0};
    expect_getrf(t, "zeros", 5, 5, zeros, 1, INTS(1, 2, 3, 4, 5), zeros, 0);
    expect_getrf(t, "ones", 3, 3, ROWS(1, 1, 1, 1, 1, 1, 1, 1, 1), 2, INTS(1, 2, 3), NULL,
                 0);
    expect_getrf(t, "nilpotent", 2, 2, ROWS(0, 1, 0, 0), 1, INTS(1, 2), ROWS(0, 1, 0, 0),
                 0);
    expect_getrf(t, "zero column", 3, 3, ROWS(0, 1, 2, 0, 3, 4, 0, 5, 7), 1,
                 INTS(1, 3, 3), NULL, 0);
    expect_getrf(t, "4 x 4", 4, 4, ROWS(2, 4, 6, 1, 1, 2, 3, 5, 4, 8, 12, 7, 0, 0, 0, 9),
                 2, INTS(3, 2, 3, 4), NULL, 0);
    say(t, "02-zero-pivot");
    static const int64_t sizes[] = {8, 32, 33, 64, 65, 100, 129, 200};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t n = sizes[s];
        struct matrix a = diagonal(t->p, n, 2);
        int32_t *ipiv = pivots(n), *want = pivots(n);
        for (int64_t k = 0; k < n; k++)
            want[k] = (int32_t)k + 1;
        matrix_put(&a, n / 2 - 1, n / 2 - 1, 0, 0);
        matrix_put(&a, n - 1, n - 1, 0, 0);
        struct matrix before = matrix_copy(&a);
        expect_info(t, "two zero columns", getrf(&a, ipiv), (int32_t)(n / 2));
        expect_pivots(t, "two zero columns", ipiv, want, n);
        expect_same(t, "diagonal A", &a, &before);
        matrix_free(&a);
        matrix_free(&before);
        free(ipiv);
        free(want);
    }
    say(t, "02-zero-columns");
}

/* ---- 4: the 2 x 2 of the batches, singly ---- */

static void two_by_two(struct test *t)
{
    struct matrix a = by_rows(t->p, 2, 2, 2, ROWS(0, 2, 1, 3));
    struct matrix work = matrix_new(t->p, 128, 1, 128, 4);
    int32_t *ipiv = pivots(2);
    expect_info(t, "getrf", getrf(&a, ipiv), 0);
    expect_pivots(t, "getrf", ipiv, INTS(2, 2), 2);
    expect_info(t, "getri", getri(&a, ipiv, &work, 128), 0);
    expect_rows(t, "inverse", &a, 0, 0, ROWS(-1.5, 1, .5, 0));
    expect_getrf(t, "odd item", 2, 2, ROWS(1, 2, 2, 4), 2, INTS(2, 2), NULL, 0);
    matrix_free(&a);
    matrix_free(&work);
    free(ipiv);
    say(t, "04-two-by-two");
}

/* ---- 5, 6: Cholesky of what is not definite ---- */

static void not_a_number(struct test *t)
{
    static const char *const uplo[] = {"L", "U"};
    double nan = (double)NAN, inf = (double)INFINITY;
    for (int u = 0; u < 2; u++) {
        expect_potrf(t, "all NaN", uplo[u], 2, ROWS(nan, nan, nan, nan), 1, NULL);
        expect_potrf(t, "last NaN", uplo[u], 3, ROWS(4, 2, 0, 2, 5, 0, 0, 0, nan), 3,
                     NULL);
        expect_potrf(t, "Inf off the diagonal", uplo[u], 2, ROWS(4, inf, inf, 4), 2,
                     NULL);
        expect_potrf(t, "Inf on the diagonal", uplo[u], 2, ROWS(inf, 1, 1, 4), 0,
                     ROWS(inf, 0, 0, 2));
        static const int64_t sizes[] = {8, 32, 33, 64, 65, 129, 200};
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int64_t i = 0; i < 4; i++) {
                int64_t n = sizes[s], k = (int64_t[]){0, n / 2, n / 3, n - 1}[i];
                struct matrix a = diagonal(t->p, n, 4);
                matrix_put(&a, k, k, nan, 0);
                expect_info(t, "4 I with a NaN", potrf(&a, uplo[u]), (int32_t)k + 1);
                matrix_free(&a);
            }
        struct matrix a = by_rows(t->p, 2, 2, 2, ROWS(nan, 0, 0, 1));
        struct matrix b = by_rows(t->p, 2, 1, 2, ROWS(8, 9)), before = matrix_copy(&b);
        expect_info(t, "posv", solve(BL_POSV, &a, NULL, &b, uplo[u]), 1);
        expect_same(t, "posv's B", &b, &before);
        matrix_free(&a);
        matrix_free(&b);
        matrix_free(&before);
    }
    say(t, "05-nan-cholesky");
}

static void indefinite(struct test *t)
{
    static const char *const uplo[] = {"L", "U"};
    for (int u = 0; u < 2; u++) {
        const char *ul = uplo[u];
        expect_potrf(t, "ones", ul, 2, ROWS(1, 1, 1, 1), 2, NULL);
        expect_potrf(t, "zero", ul, 1, ROWS(0), 1, NULL);
        expect_potrf(t, "-0", ul, 1, ROWS(-0.0), 1, NULL);
        expect_potrf(t, "3 x 3", ul, 3, ROWS(1, 2, 3, 2, 1, 4, 3, 4, 50), 2, NULL);
        expect_potrf(t, "negative", ul, 3, ROWS(-4, -12, 16, -12, -37, 43, 16, 43, -98),
                     1, ROWS(-4, -12, 16, -12, -37, 43, 16, 43, -98));
        expect_potrf(t, "definite", ul, 2, ROWS(4, 2, 2, 5), 0, ROWS(2, 1, 1, 2));
        static const int64_t sizes[] = {1, 2, 8, 32, 33, 64, 65, 129, 200};
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int i = 0; i < 9; i++) {
                int64_t n = sizes[s], k = (int64_t[]){0, n / 2, n - 1}[i % 3];
                struct matrix a = diagonal(t->p, n, 4), before;
                matrix_put(&a, k, k, (double[]){-1, 0, -0.0}[i / 3], 0);
                before = matrix_copy(&a);
                expect_info(t, "4 I with one bad", potrf(&a, ul), (int32_t)k + 1);
                expect_untouched(t, "4 I with one bad", &a, &before, *ul);
                for (int64_t j = 0; j < k; j++)
                    if (matrix_get(&a, j, j) != 2)
                        fail(t->why, "4 I with one bad: the leading minor is not 2 I");
                matrix_free(&a);
                matrix_free(&before);
            }
    }
    say(t, "06-indefinite");
}

/* ---- 7: empty problems ---- */

static void empty(struct test *t)
{
    static const int32_t shapes[][2] = {{0, 0}, {0, 3}, {3, 0}};
    struct matrix a = by_rows(t->p, 3, 3, 3, ROWS(1, 2, 3, 4, 5, 6, 7, 8, 9));
    struct matrix before = matrix_copy(&a), work = matrix_new(t->p, 4, 1, 4, 4);
    int32_t *ipiv = pivots(3);
    for (int s = 0; s < 3; s++) {
        struct matrix part = a;
        part.rows = shapes[s][0];
        part.cols = shapes[s][1];
        expect_info(t, "getrf", getrf(&part, ipiv), 0);
    }
    struct matrix none = {t->p, 0, 0, 1, 0, NULL}, none_b = none;
    expect_info(t, "potrf n=0", potrf(&none, "L"), 0);
    expect_info(t, "gesv n=0", solve(BL_GESV, &none, ipiv, &none_b, "N"), 0);
    expect_info(t, "getri n=0", getri(&none, ipiv, &work, 1), 0);
    for (int k = 0; k < 3; k++)
        if (ipiv[k] != GUARD)
            fail(t->why, "IPIV(%d) was written", k + 1);
    expect_same(t, "A", &a, &before);
    matrix_free(&a);
    matrix_free(&before);
    say(t, "07-empty");

    a = by_rows(t->p, 2, 2, 2, ROWS(1, 2, 4, 5));
    none_b.ld = 2;
    expect_info(t, "gesv nrhs=0", solve(BL_GESV, &a, ipiv, &none_b, "N"), 0);
    expect_pivots(t, "gesv nrhs=0", ipiv, INTS(2, 2), 2);
    expect_rows(t, "gesv nrhs=0", &a, 0, 0, ROWS(4, 5, .25, .75));
    matrix_free(&a);
    a = by_rows(t->p, 2, 2, 2, ROWS(4, 2, 2, 5));
    expect_info(t, "posv nrhs=0", solve(BL_POSV, &a, NULL, &none_b, "L"), 0);
    expect_rows(t, "posv nrhs=0", &a, 'L', 0, ROWS(2, 0, 1, 2));
    matrix_free(&a);
    say(t, "07-no-right-hand-side");

    none.ld = 0;
    none.cols = 2;
    expect_info(t, "getrf lda=0", getrf(&none, ipiv), -4);
    expect_xerbla(t, "GETRF", 4);
    none.ld = 1;
    none.cols = 0;
    expect_info(t, "getri lwork=0", getri(&none, ipiv, &work, 0), -6);
    expect_xerbla(t, "GETRI", 6);
    matrix_free(&work);
    free(ipiv);
    say(t, "07-empty-and-illegal");
}

/* ---- 8: subnormal pivots ---- */

static void subnormal_pivots(struct test *t)
{
    bool wide = is_double(t->p);
    double least = wide ? DBL_TRUE_MIN : (double)FLT_TRUE_MIN;
    double normal = wide ? DBL_MIN : (double)FLT_MIN;
    int32_t *ipiv = pivots(2);
    if (wide) {
        expect_getrf(t, "1e-306", 2, 2, ROWS(0, 1e-306, 1e-306, 0), 0, INTS(2, 2),
                     ROWS(1e-306, 0, 0, 1e-306), 0);
        expect_getrf(t, "1e-310", 2, 2, ROWS(1e-310, 1, 5e-311, 1), 0, INTS(1, 2),
                     ROWS(1e-310, 1, 0.5000000000000248, 0.49999999999997524), 0);
        struct matrix a = by_rows(t->p, 2, 2, 2, ROWS(1e-310, 0, 0, 1e-310));
        struct matrix b = by_rows(t->p, 2, 1, 2, ROWS(1e-310, 2e-310));
        expect_info(t, "gesv", solve(BL_GESV, &a, ipiv, &b, "N"), 0);
        expect_rows(t, "gesv", &b, 0, 0, ROWS(1, 2));
        matrix_free(&a);
        matrix_free(&b);
        a = by_rows(t->p, 1, 1, 1, ROWS(1e-310));
        struct matrix work = matrix_new(t->p, 64, 1, 64, 4);
        ipiv[0] = 1;
        expect_info(t, "getri", getri(&a, ipiv, &work, 64), 0);
        if (!isinf((double)creall(matrix_get(&a, 0, 0))))
            fail(t->why, "getri of 1e-310 is not Inf");
        matrix_free(&a);
        matrix_free(&work);
    }
    expect_getrf(t, "smallest", 2, 2, ROWS(least, 0, least, 1), 0, INTS(1, 2),
                 ROWS(least, 0, 1, 1), 0);
    expect_getrf(t, "smallest normal", 2, 2, ROWS(normal, 1, normal / 2, 1), 0,
                 INTS(1, 2), ROWS(normal, 1, .5, .5), 0);
    struct matrix a = by_rows(t->p, 2, 2, 2, ROWS(least, 0, 0, least));
    struct matrix b = matrix_copy(&a);
    expect_info(t, "gesv, smallest", solve(BL_GESV, &a, ipiv, &b, "N"), 0);
    expect_rows(t, "gesv, smallest", &b, 0, 0, ROWS(1, 0, 0, 1));
    matrix_free(&a);
    matrix_free(&b);
    free(ipiv);
    say(t, "08-subnormal-pivot");
}

/* ---- 9: padding rows and the rule for LDA ---- */

/* The whole array, column by column, against `x`. */
static void expect_array(struct test *t, const char *what, const struct matrix *a,
                         int64_t count, const double *x, double ulps)
{
    for (int64_t k = 0; k < count; k++) {
        double got = (double)creall(matrix_get(a, k % a->ld, k / a->ld));
        if (fabs(got - x[k]) > ulps * epsilon_of(a->precision) * fabs(x[k]))
            fail(t->why, "%s: word %lld is %.17g, not %.17g", what, (long long)k + 1, got,
                 x[k]);
    }
}

static struct matrix array(enum bl_precision p, int64_t m, int64_t n, int64_t lda,
                           const double *x)
{
    struct matrix a = matrix_new(p, m, n, lda, 4);
    for (int64_t k = 0; k < lda * n; k++)
        matrix_put(&a, k % lda, k / lda, x[k], 0);
    return a;
}

#define WORDS(...) ((const double[]){__VA_ARGS__})

static void padding(struct test *t)
{
    int32_t *ipiv = pivots(3);
    struct matrix a =
        array(t->p, 2, 2, 5, WORDS(1, 3, -77, -77, -77, 2, 4, -77, -77, -77));
    expect_info(t, "getrf", getrf(&a, ipiv), 0);
    expect_pivots(t, "getrf", ipiv, INTS(2, 2), 2);
    expect_array(t, "getrf", &a, 10,
                 WORDS(3, 1 / 3., -77, -77, -77, 4, 2 / 3., -77, -77, -77), 2);
    matrix_free(&a);

    a = array(t->p, 2, 2, 4, WORDS(4, 2, -77, -77, 2, 5, -77, -77));
    expect_info(t, "potrf", potrf(&a, "L"), 0);
    expect_array(t, "potrf", &a, 8, WORDS(2, 1, -77, -77, 2, 2, -77, -77), 0);
    matrix_free(&a);

    a = matrix_new(t->p, 4, 4, 4, 4);
    for (int k = 0; k < 16; k++)
        matrix_put(&a, k % 4, k / 4, -77, 0);
    for (int k = 0; k < 4; k++)
        matrix_put(&a, 1 + k % 2, 1 + k / 2, (double[]){1, 3, 2, 4}[k], 0);
    struct matrix part = a;
    part.rows = part.cols = 2;
    part.data = matrix_at(&a, 1, 1);
    expect_info(t, "sub-matrix", getrf(&part, ipiv), 0);
    expect_array(t, "sub-matrix", &a, 16,
                 WORDS(-77, -77, -77, -77, -77, 3, 1 / 3., -77, -77, 4, 2 / 3., -77, -77,
                       -77, -77, -77),
                 2);
    matrix_free(&a);

    for (int k = 0; k < 3; k++)
        ipiv[k] = GUARD;
    a = array(t->p, 1, 3, 1, WORDS(5, 2, 3));
    expect_info(t, "1 x 3 with lda=1", getrf(&a, ipiv), 0);
    expect_pivots(t, "1 x 3 with lda=1", ipiv, INTS(1), 1);
    matrix_free(&a);
    a = matrix_new(t->p, 3, 1, 3, 4);
    a.ld = 2;
    expect_info(t, "3 x 1 with lda=2", getrf(&a, ipiv), -4);
    expect_xerbla(t, "GETRF", 4);
    matrix_free(&a);
    free(ipiv);
    say(t, "09-padding");
}

/* Another thread owns the padding rows and counts in them during the call. */
struct counting {
    volatile int32_t *word;
    size_t step, words;
    _Atomic bool stop;
    int64_t rounds;
};

static void *count_up(void *arg)
{
    struct counting *c = arg;
    do {
        for (size_t k = 0; k < c->words; k++)
            c->word[k * c->step]++;
        c->rounds++;
    } while (!atomic_load(&c->stop));
    return NULL;
}

static void counted_padding(struct test *t)
{
    enum { N = 400, LDA = N + 1 };
    struct matrix a = matrix_new(t->p, N, N, LDA, 4);
    matrix_fill(&a, CLASS_RANDOM, 9);
    int32_t *ipiv = pivots(N), zero = 0;
    size_t column = LDA * element_bytes(t->p);
    struct counting c = {.word = (volatile int32_t *)(void *)matrix_at(&a, N, 0),
                         .step = column / sizeof(int32_t),
                         .words = N,
                         .stop = false};
    for (int64_t j = 0; j < N; j++)
        memcpy(matrix_at(&a, N, j), &zero, sizeof zero);
    pthread_t thread;
    if (pthread_create(&thread, NULL, count_up, &c) != 0)
        return;
    for (int k = 0; k < 3; k++)
        expect_info(t, "getrf", getrf(&a, ipiv), 0);
    atomic_store(&c.stop, true);
    pthread_join(thread, NULL);
    for (size_t k = 0; k < c.words; k++)
        if (c.word[k * c.step] != (int32_t)c.rounds)
            fail(t->why, "padding of column %zu counted to %d, not %d", k + 1,
                 c.word[k * c.step], (int32_t)c.rounds);
    matrix_free(&a);
    free(ipiv);
    say(t, "09-padding-of-another-thread");
}

/* ---- 11: CHARACTER arguments ---- */

static void characters(struct test *t)
{
    struct matrix a = by_rows(t->p, 2, 2, 2, ROWS(4, 99, 2, 5));
    expect_info(t, "'lower'", potrf(&a, "lower"), 0);
    expect_rows(t, "'lower'", &a, 0, 0, ROWS(2, 99, 1, 2));
    matrix_free(&a);
    static const char *const trans[] = {"N", "n", "t", "T", "c", "C", "transposed"};
    for (size_t k = 0; k < sizeof trans / sizeof *trans; k++) {
        struct matrix lu = by_rows(t->p, 2, 2, 2, ROWS(4, 3, .25, 1.25));
        struct matrix b = by_rows(t->p, 2, 1, 2, ROWS(1, 2));
        int32_t ipiv[] = {2, 2};
        expect_info(t, trans[k], solve(BL_GETRS, &lu, ipiv, &b, trans[k]), 0);
        expect_rows(t, trans[k], &b, 0, k < 2 ? 2 : 0,
                    k < 2 ? ROWS(0.19999999999999996, 0.4) : ROWS(1, 0));
        if (k < 2 && t->p == BL_D)
            expect_rows(t, trans[k], &b, 0, 0, ROWS(0.19999999999999996, 0.4));
        matrix_free(&lu);
        matrix_free(&b);
    }
    for (size_t k = 0; is_complex(t->p) && k < 3; k++) {
        struct matrix lu = by_rows(t->p, 1, 1, 1, ROWS(2 * I));
        struct matrix b = by_rows(t->p, 1, 1, 1, ROWS(4));
        int32_t ipiv[] = {1};
        static const char *const option[] = {"N", "T", "C"};
        expect_info(t, "1 x 1", solve(BL_GETRS, &lu, ipiv, &b, option[k]), 0);
        expect_rows(t, option[k], &b, 0, 0, k < 2 ? ROWS(-2 * I) : ROWS(2 * I));
        matrix_free(&lu);
        matrix_free(&b);
    }
    say(t, "11-characters");
}

/* ---- 12, 13: complex ---- */

static void imaginary_pivot(struct test *t)
{
    if (!is_complex(t->p))
        return;
    expect_getrf(t, "i I", 2, 2, ROWS(I, 0, 0, I), 0, INTS(1, 2), ROWS(I, 0, 0, I), 0);
    expect_getrf(t, "4 x 4", 4, 4,
                 ROWS(1, 0, 1, 0, I, .3333, -I, .3333, 1, .6667 * I, 1, -.6667 * I, I,
                      -.3333, -I, -.3333),
                 0, INTS(1, 3, 3, 4), NULL, 0);
    say(t, "12-imaginary-pivot");
}

static void imaginary_diagonal(struct test *t)
{
    if (!is_complex(t->p))
        return;
    for (int k = 0; k < 2; k++) {
        double complex corner = CMPLX(4, k ? (double)NAN : 7.0);
        double complex a12 = CMPLX(2, -2), a21 = CMPLX(2, 2), a22 = CMPLX(6, -9);
        const double complex *x = ROWS(corner, a12, a21, a22);
        expect_potrf(t, "L", "L", 2, x, 0, ROWS(2, 0, CMPLX(1, 1), 2));
        expect_potrf(t, "U", "U", 2, x, 0, ROWS(2, CMPLX(1, -1), 0, 2));
    }
    say(t, "13-imaginary-diagonal");
}

/* ---- 15: hand-over sizes ---- */

static void family(struct test *t, enum family f, int64_t n)
{
    struct matrix a = matrix_new(t->p, n, n, n + 1, 4), before;
    int32_t *ipiv = pivots(n);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
            matrix_put(&a, i, j, family_element(f, n, i, j), 0);
    before = matrix_copy(&a);
    char what[64];
    snprintf(what, sizeof what, "%s n=%lld", family_name[f], (long long)n);
    expect_info(t, what, getrf(&a, ipiv), 0);
    for (int64_t k = 0; k < n; k++)
        if (ipiv[k] != family_pivot(f, n, k))
            fail(t->why, "%s: IPIV(%lld) is %d, not %d", what, (long long)k + 1, ipiv[k],
                 family_pivot(f, n, k));
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            long double complex got = matrix_get(&a, i, j);
            long double want = family_factor(f, n, i, j, is_double(t->p));
            /* Sums of powers of two in another order are rounded; all else is exact. */
            if (fast && f == FAMILY_WILKINSON && j == n - 1 &&
                fabsl(creall(got) - want) <= 4 * n * epsilon_of(t->p) * want)
                continue;
            /* Complex Inf times 0 is NaN in the imaginary part. */
            if (creall(got) != want && !(isinf(want) && is_complex(t->p)))
                fail(t->why, "%s: element (%lld,%lld) is %Lg, not %Lg", what,
                     (long long)i + 1, (long long)j + 1, creall(got), want);
        }
    expect_untouched(t, what, &a, &before, 0);
    matrix_free(&a);
    matrix_free(&before);
    free(ipiv);
}

static void integer_factor(struct test *t, const char *uplo, int64_t n)
{
    const bool upper = *uplo == 'U';
    struct matrix a = matrix_new(t->p, n, n, n, 4);
    matrix_fill_banded(&a, *uplo);
    struct matrix before = matrix_copy(&a);
    char what[64];
    snprintf(what, sizeof what, "potrf %s n=%lld", uplo, (long long)n);
    expect_info(t, what, potrf(&a, uplo), 0);
    if (fast &&
        !(factor_residual(&before, *uplo, &a) <= 1)) /* roots and quotients round */
        fail(t->why, "%s: residual %.3g", what, factor_residual(&before, *uplo, &a));
    for (int64_t j = 0; !fast && j < n; j++)
        for (int64_t i = j; i < n; i++) {
            double complex want = banded_factor(t->p, i, j);
            want = upper ? conj(want) : want;
            if (matrix_get(&a, upper ? j : i, upper ? i : j) != (long double complex)want)
                fail(t->why, "%s: element (%lld,%lld) is not L0's", what,
                     (long long)i + 1, (long long)j + 1);
        }
    expect_untouched(t, what, &a, &before, *uplo);
    matrix_free(&a);
    matrix_free(&before);
}

/* The forwarded way is the program's own LAPACK, slow and not ours: small sizes will do.
 */
static int64_t most_of(const struct test *t, enum family f)
{
    if (fast && f == FAMILY_WILKINSON) /* no infinities */
        return is_double(t->p) ? 1024 : 128;
    if (heavy)
        return t->gpu ? 2049 : 1025;
    if (!t->gpu)
        return 129;
    return f == FAMILY_WILKINSON && t->p == BL_D   ? 1025
           : f == FAMILY_ANTI && !is_complex(t->p) ? 1025
                                                   : 513;
}

static const int64_t hand_over[] = {1,   2,    31,   32,   33,   63,  64,
                                    65,  127,  128,  129,  255,  511, 512,
                                    513, 1023, 1024, 1025, 1537, 2049};
#define HAND_OVERS (sizeof hand_over / sizeof *hand_over)

static void hand_over_of(struct test *t, enum family f)
{
    char name[64];
    for (size_t s = 0; s < HAND_OVERS && hand_over[s] <= most_of(t, f); s++)
        if (f != FAMILY_WILKINSON || hand_over[s] > 1)
            family(t, f, hand_over[s]);
    snprintf(name, sizeof name, "15-%s", family_name[f]);
    say(t, name);
}

static void anti(struct test *t)
{
    hand_over_of(t, FAMILY_ANTI);
}

static void cyclic(struct test *t)
{
    hand_over_of(t, FAMILY_CYCLIC);
}

static void shift(struct test *t)
{
    hand_over_of(t, FAMILY_SHIFT);
}

static void wilkinson(struct test *t)
{
    hand_over_of(t, FAMILY_WILKINSON);
}

static void integer_factors(struct test *t)
{
    int64_t most = heavy          ? (t->gpu ? 2049 : 1025)
                   : !t->gpu      ? 129
                   : t->p == BL_D ? 1025
                                  : 513;
    for (size_t s = 0; s < HAND_OVERS && hand_over[s] <= most; s++) {
        integer_factor(t, "L", hand_over[s]);
        integer_factor(t, "U", hand_over[s]);
    }
    say(t, "15-integer-cholesky");
}

static void bidiagonal_inverse(struct test *t)
{
    enum { N = 100 };
    struct matrix a = diagonal(t->p, N, 1), work = matrix_new(t->p, 64 * N, 1, 64 * N, 4);
    double off = 1 - 1e-6, want = -0.9999010048508397, tolerance = 1e-15;
    for (int64_t i = 0; i + 1 < N; i++)
        matrix_put(&a, i, i + 1, off, 0);
    if (!is_double(t->p)) {
        want = -pow((double)(float)off, N - 1);
        tolerance = N * epsilon_of(t->p);
    }
    int32_t *ipiv = pivots(N);
    expect_info(t, "getrf", getrf(&a, ipiv), 0);
    expect_info(t, "getri", getri(&a, ipiv, &work, 64 * N), 0);
    double got = (double)creall(matrix_get(&a, 0, N - 1));
    if (!(fabs(got - want) <= tolerance))
        fail(t->why, "inverse(1,100) is %.17g, not %.17g", got, want);
    for (int64_t j = 0; j < N; j++)
        for (int64_t i = j + 1; i < N; i++)
            if (matrix_get(&a, i, j) != 0)
                fail(t->why, "inverse(%lld,%lld) is not 0", (long long)i + 1,
                     (long long)j + 1);
    matrix_free(&a);
    matrix_free(&work);
    free(ipiv);
    say(t, "15-bidiagonal-inverse");
}

/* ---- 16: many right-hand sides and one at a time ---- */

static void columns(struct test *t)
{
    enum { N = 100, NRHS = 200 };
    static const enum bl_routine_id with_b[] = {BL_GESV, BL_GETRS, BL_POSV, BL_POTRS};
    for (int k = 0; k < 4; k++) {
        enum bl_routine_id r = with_b[k];
        const char *option = k < 2 ? "N" : "L";
        struct matrix a = matrix_new(t->p, N, N, N, 4),
                      b = matrix_new(t->p, N, NRHS, N, 4);
        int32_t *ipiv = pivots(N);
        if (k < 2)
            matrix_fill(&a, CLASS_RANDOM, 16);
        else
            matrix_fill_hermitian(&a, 'L', CLASS_INTEGER, 16);
        matrix_fill(&b, CLASS_INTEGER, 61);
        if (r == BL_GETRS)
            expect_info(t, "getrf", getrf(&a, ipiv), 0);
        if (r == BL_POTRS)
            expect_info(t, "potrf", potrf(&a, "L"), 0);
        struct matrix all = matrix_copy(&b), again = matrix_copy(&a);
        expect_info(t, "all", solve(r, &again, ipiv, &all, option), 0);
        for (int64_t j = 0; j < NRHS; j++) {
            struct matrix one = b, factor = matrix_copy(&a);
            one.cols = 1;
            one.data = matrix_at(&b, 0, j);
            expect_info(t, "one", solve(r, &factor, ipiv, &one, option), 0);
            if (memcmp(factor.data, again.data, matrix_bytes(&factor)) != 0)
                fail(t->why, "%s: another factor with one right-hand side",
                     routine_name(r, t->p));
            matrix_free(&factor);
        }
        if (memcmp(all.data, b.data, matrix_bytes(&b)) != 0)
            fail(t->why, "%s: another solution with one right-hand side",
                 routine_name(r, t->p));
        matrix_free(&a);
        matrix_free(&b);
        matrix_free(&all);
        matrix_free(&again);
        free(ipiv);
    }
    say(t, "16-columns");
}

/* ---- 18: rectangular getrf ---- */

static void rectangular(struct test *t)
{
    expect_getrf(t, "2 x 3", 2, 3, ROWS(1, 2, 3, 4, 5, 6), 0, INTS(2, 2),
                 ROWS(4, 5, 6, .25, .75, 1.5), 0);
    expect_getrf(t, "3 x 2", 3, 2, ROWS(1, 2, 4, 5, 8, 9), 0, INTS(3, 3),
                 ROWS(8, 9, .125, .875, .5, 4 / 7.), 2);
    expect_getrf(t, "1 x 3", 1, 3, ROWS(5, 2, 3), 0, INTS(1), ROWS(5, 2, 3), 0);
    expect_getrf(t, "3 x 1", 3, 1, ROWS(1, -4, 4), 0, INTS(2), ROWS(-4, -.25, -1), 0);
    expect_getrf(t, "1 x 3 with 0", 1, 3, ROWS(0, 2, 3), 1, INTS(1), ROWS(0, 2, 3), 0);
    expect_getrf(t, "2 x 4", 2, 4, ROWS(0, 0, 3, 1, 0, 0, 5, 2), 1, INTS(1, 2), NULL, 0);
    expect_getrf(t, "4 x 2", 4, 2, ROWS(1, 2, 2, 4, 4, 8, 8, 16), 2, INTS(4, 2), NULL, 0);
    say(t, "18-rectangular");
}

/* ---- 19: nothing spins on NaN or Inf ---- */

#define LIMIT_S 30

static void fill_all(struct matrix *a, double x)
{
    for (int64_t j = 0; j < a->cols; j++)
        for (int64_t i = 0; i < a->rows; i++)
            matrix_put(a, i, j, x, x);
}

/* Calls in progress that have a limit; a watching thread ends the program after it. */
static struct {
    const char *what; /* NULL: free */
    time_t deadline;
} watched[64];
static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;

static int begin_limited(const char *what)
{
    int i = 0;
    pthread_mutex_lock(&watch_lock);
    while (i < 63 && watched[i].what)
        i++;
    watched[i].what = what;
    watched[i].deadline = time(NULL) + LIMIT_S;
    pthread_mutex_unlock(&watch_lock);
    return i;
}

static void end_limited(int i)
{
    pthread_mutex_lock(&watch_lock);
    watched[i].what = NULL;
    pthread_mutex_unlock(&watch_lock);
}

static void *watch(void *unused)
{
    for (;; sleep(1)) {
        pthread_mutex_lock(&watch_lock);
        for (int i = 0; i < 64; i++)
            if (watched[i].what && time(NULL) > watched[i].deadline) {
                printf("not ok field-19-limit - %s: no answer in %d s\n", watched[i].what,
                       LIMIT_S);
                fflush(stdout);
                _exit(1);
            }
        pthread_mutex_unlock(&watch_lock);
    }
    return unused;
}

static void non_finite_n(struct test *t, int64_t n)
{
    struct matrix work = matrix_new(t->p, 64 * n, 1, 64 * n, 4);
    for (int kind = 0; kind < 3; kind++) {
        double bad = kind == 1 ? (double)INFINITY : (double)NAN;
        char what[64];
        snprintf(what, sizeof what, "%s n=%lld",
                 (const char *[]){"all NaN", "all Inf", "last NaN"}[kind], (long long)n);
        struct matrix a = diagonal(t->p, n, 4);
        int32_t *ipiv = pivots(n);
        if (kind < 2)
            fill_all(&a, bad);
        else
            matrix_put(&a, n - 1, n - 1, bad, 0);
        struct matrix h = matrix_copy(&a);
        int limited = begin_limited(what);
        int32_t info = getrf(&a, ipiv);
        end_limited(limited);
        if (kind != 1) { /* what all Inf gives depends on the order of updates */
            expect_info(t, what, info, 0);
            for (int64_t k = 0; k < n; k++)
                if (ipiv[k] != k + 1)
                    fail(t->why, "%s: IPIV(%lld) is %d", what, (long long)k + 1, ipiv[k]);
        }
        limited = begin_limited(what);
        getri(&a, ipiv, &work, (int32_t)(64 * n));
        end_limited(limited);
        limited = begin_limited(what);
        info = potrf(&h, "L");
        end_limited(limited);
        if (kind != 1)
            expect_info(t, what, info, kind == 0 ? 1 : (int32_t)n);
        matrix_free(&a);
        matrix_free(&h);
        free(ipiv);
    }
    matrix_free(&work);
}

static void non_finite(struct test *t)
{
    static const int64_t sizes[] = {33, 200, 512, 1024, 1025, 1537, 4096};
    int64_t most = heavy && t->gpu ? 4096 : t->gpu && t->p == BL_S ? 512 : 200;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes && sizes[s] <= most; s++)
        non_finite_n(t, sizes[s]);
    say(t, "19-non-finite");
}

/* ---- 33: workspace ---- */

static void workspace(struct test *t)
{
    static const int32_t sizes[] = {0, 1, 2, 32, 33, 64, 100, 1000, 262145};
    struct matrix work = matrix_new(t->p, 4, 1, 4, 0);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int32_t n = sizes[s];
        struct matrix none = {t->p, n, n, n ? n : 1, 0, NULL};
        matrix_put(&work, 0, 0, -1, 0);
        expect_info(t, "query", getri(&none, NULL, &work, -1), 0);
        if (creall(matrix_get(&work, 0, 0)) != 64.0L * n)
            fail(t->why, "query n=%d: WORK(1) is %Lg", n,
                 creall(matrix_get(&work, 0, 0)));
    }
    matrix_free(&work);
    say(t, "33-query");

    enum { N = 150 };
    struct matrix a = matrix_new(t->p, N, N, N, 4), before;
    work = matrix_new(t->p, N, 1, N, 4);
    before = matrix_copy(&work);
    int32_t *ipiv = pivots(N);
    matrix_fill(&a, CLASS_RANDOM, 33);
    struct matrix original = matrix_copy(&a);
    expect_info(t, "getrf", getrf(&a, ipiv), 0);
    struct matrix factor = matrix_copy(&a);
    expect_info(t, "lwork=n-1", getri(&a, ipiv, &work, N - 1), -6);
    expect_xerbla(t, "GETRI", 6);
    expect_same(t, "lwork=n-1: A", &a, &factor);
    expect_info(t, "lwork=n", getri(&a, ipiv, &work, N), 0);
    double residual = inverse_residual(&original, &a, 0);
    if (!(residual <= 30))
        fail(t->why, "lwork=n: residual %.3g", residual);
    expect_untouched(t, "WORK beyond LWORK", &work, &before, 0);
    matrix_free(&a);
    matrix_free(&original);
    matrix_free(&factor);
    matrix_free(&work);
    matrix_free(&before);
    say(t, "33-minimum");

    /* WORK(1) after success is what was used; after INFO > 0 it is still the optimum. */
    a = by_rows(t->p, 2, 2, 2, ROWS(0, 2, 1, 3));
    work = matrix_new(t->p, 128, 1, 128, 4);
    expect_info(t, "getrf", getrf(&a, ipiv), 0);
    expect_info(t, "getri", getri(&a, ipiv, &work, 128), 0);
    if (matrix_get(&work, 0, 0) != 2)
        fail(t->why, "n=2 lwork=128: WORK(1) is %Lg, not 2",
             creall(matrix_get(&work, 0, 0)));
    matrix_free(&a);
    say(t, "33-after-success");
    a = by_rows(t->p, 2, 2, 2, ROWS(1, 2, 0, 0));
    before = matrix_copy(&a);
    expect_info(t, "singular", getri(&a, ipiv, &work, 128), 2);
    expect_same(t, "singular: A", &a, &before);
    if (matrix_get(&work, 0, 0) != 128)
        fail(t->why, "INFO=2: WORK(1) is %Lg, not 128", creall(matrix_get(&work, 0, 0)));
    matrix_free(&a);
    matrix_free(&before);
    matrix_free(&work);
    free(ipiv);
    say(t, "33-after-singular");
}

/* ---- 34: U and L round differently ---- */

static void rounding_of_uplo(struct test *t)
{
    bool wide = is_double(t->p);
    double third = wide ? 1 / 3. : (double)(1 / 3.f);
    double ninth = wide ? 1 / 9. : (double)(1 / 9.f);
    if (wide) {
        expect_potrf(t, "2401 L", "L", 2, ROWS(2401, 49, 49, 1), 0, NULL);
        expect_potrf(t, "2401 U", "U", 2, ROWS(2401, 49, 49, 1), 2, NULL);
        expect_potrf(t, "2401, 98 L", "L", 2, ROWS(2401, 98, 98, 4), 0, NULL);
        expect_potrf(t, "2401, 98 U", "U", 2, ROWS(2401, 98, 98, 4), 2, NULL);
    } else {
        expect_potrf(t, "1681 L", "L", 2, ROWS(1681, 41, 41, 1), 0, NULL);
        expect_potrf(t, "1681 U", "U", 2, ROWS(1681, 41, 41, 1), 2, NULL);
    }
    for (int u = 0; u < 2; u++) {
        const char *uplo = u ? "U" : "L";
        expect_potrf(t, "7", uplo, 2, ROWS(7, 7, 7, 7), wide ? 0 : 2, NULL);
        expect_potrf(t, "2", uplo, 2, ROWS(2, 2, 2, 2), 0, NULL);
        expect_potrf(t, "1/3", uplo, 2, ROWS(1, third, third, ninth), 2, NULL);
    }
    say(t, "34-uplo");
}

/* ---- all of them ---- */

static void (*const tests[])(struct test *) = {
    /* the long ones first */
    anti,
    wilkinson,
    cyclic,
    shift,
    integer_factors,
    non_finite,
    columns,
    counted_padding,
    singular_by_rounding,
    zero_pivots,
    two_by_two,
    not_a_number,
    indefinite,
    empty,
    subnormal_pivots,
    padding,
    characters,
    imaginary_pivot,
    imaginary_diagonal,
    bidiagonal_inverse,
    rectangular,
    workspace,
    rounding_of_uplo};
#define TESTS ((int64_t)(sizeof tests / sizeof *tests))
#define FAMILY_TESTS 5 /* the first of them */

static void run_test(int64_t item, void *data)
{
    (void)data;
    struct test t = {.p = (enum bl_precision)(item / 2 % BL_PRECISIONS), .gpu = item % 2};
    if (fast && !t.gpu)
        return;
    batchlapack_set_mode(t.gpu ? BATCHLAPACK_MODE_GPU : BATCHLAPACK_MODE_CPU);
    tests[item / 2 / BL_PRECISIONS](&t);
}

int main(int argc, char **argv)
{
    for (int k = 1; k < argc; k++) {
        heavy = heavy || strcmp(argv[k], "--heavy") == 0;
        fast = fast || strcmp(argv[k], "--fast") == 0;
    }
    if (!reference_open())
        return 0;
    if (dlsym(RTLD_DEFAULT, "xerbla_") != (void *)xerbla_) {
        printf("not ok field-xerbla - link with -rdynamic\n");
        return 1;
    }
    if (!rerun_name())
        return !rerun_served(argv, fast ? "field-fast" : "field", "auto",
                             fast ? "fast" : "exact") ||
               failures() != 0;
    pthread_t watchman;
    if (pthread_create(&watchman, NULL, watch, NULL) != 0)
        return 2;
    in_parallel((fast ? FAMILY_TESTS : TESTS) * BL_PRECISIONS * 2, run_test, NULL);
    return failures() != 0;
}
