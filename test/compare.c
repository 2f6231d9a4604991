/* Single LAPACK calls through the exported entries, bit by bit against netlib: every
 * routine in every precision, every class of input, sizes to 600, all options, padded
 * leading dimensions, guard words.
 *
 *     compare [MATRICES [ROUTINE]]    matrices a precision, at least; preset 300
 *
 * The engine is the one that BATCHLAPACK_ENGINE names or that lies beside the library.
 * The program runs itself twice, under BATCHLAPACK_ARITHMETIC=exact and =auto, with
 * MODE=gpu and REPORT=1, and reads in the report that no legal, non-empty call ran on the
 * CPU. Under exact, all but getri and potri must have netlib's bits; those two, and under
 * auto the solves that may be fast, are held to residuals. It must not link LAPACK.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batchlapack.h"
#include "reference.h"

#define PRESET 300
#define FAST_FROM 64 /* auto may take fast arithmetic above this n */
#define GUARD 16

/* ---- one matrix ---- */

struct task {
    enum bl_routine_id routine;
    enum bl_precision precision;
    enum matrix_class class;
    int index; /* within routine, precision and class */
    char why[600];
    int64_t elements, differing; /* of what must have netlib's bits */
    bool inverse, inverse_equal;
};

static bool automatic;     /* this run is under BATCHLAPACK_ARITHMETIC=auto */
static int64_t tasks_each; /* per routine, precision and class */

/* Half of the sizes within 32, one in ten from 300 to 600. */
static int32_t size_from(struct rng *r)
{
    int64_t dice = rng_below(r, 20);
    if (dice < 10)
        return (int32_t)rng_between(r, 1, 32);
    if (dice < 15)
        return (int32_t)rng_between(r, 33, 130);
    if (dice < 18)
        return (int32_t)rng_between(r, 129, 300);
    return rng_below(r, 4) ? (int32_t)rng_between(r, 300, 600) : 600;
}

static int32_t padded(struct rng *r, int32_t rows)
{
    return rows + (int32_t[]){0, 1, 7}[rng_below(r, 3)];
}

/* Sizes and options of a call. */
static void choose(struct call *c, const struct task *t, struct rng *r)
{
    c->routine = t->routine;
    c->precision = t->precision;
    c->uplo = rng_below(r, 2) ? "U" : "L";
    c->trans = (const char *[]){"N", "T", "C"}[rng_below(r, 3)];
    c->m = c->n = size_from(r);
    if (routine_has(t->routine, 'm') && rng_below(r, 10) >= 4) {
        c->m = rng_below(r, 8) ? size_from(r) : 1;
        c->n = c->m > 1 && rng_below(r, 8) == 0 ? 1 : c->n;
    }
    c->nrhs = (int32_t[]){1, 3, 17, 70, 0}[(t->index + (int)t->class) % 5];
    if (t->class == CLASS_RANDOM && t->index == 1 && routine_has(t->routine, 'B')) {
        c->m = c->n = (int32_t)rng_between(r, 1, 4);
        c->nrhs = 70000;
    }
    c->lda = padded(r, c->m);
    c->ldb = padded(r, c->n);
    int64_t least = c->n, best = 64 * (int64_t)c->n;
    int64_t lwork[] = {best, rng_between(r, least, best), least, best + 100};
    c->lwork = (int32_t)lwork[t->index % 4];
}

/* What getrs, getri, potrs and potri take: the factor of `a`, in its place. */
static bool factor(const struct call *c, struct matrix *a, int32_t *ipiv)
{
    struct call f = *c;
    f.routine = routine_has(c->routine, 'u') ? BL_POTRF : BL_GETRF;
    f.a = a->data;
    f.ipiv = ipiv;
    reference_call(&f);
    return f.info == 0;
}

/* Netlib checks the diagonal before it inverts: give it a zero to find. */
static void spoil(struct matrix *a, struct rng *r)
{
    int64_t k = rng_below(r, a->cols);
    matrix_put(a, k, k, 0, 0);
}

/* Columns like those of an identity: netlib leaves out a zero's products, even those with
 * a NaN or an infinity, until it comes to the first other element. */
static void begin_with_zeros(struct matrix *b, struct rng *r)
{
    for (int64_t j = 0; j < b->cols; j++) {
        const int64_t from = rng_below(r, b->rows), to = rng_between(r, from, b->rows);
        for (int64_t i = from; i < to; i++)
            matrix_put(b, i, j, 0, 0);
    }
}

static bool takes_factor(enum bl_routine_id r)
{
    return r == BL_GETRS || r == BL_GETRI || r == BL_POTRS || r == BL_POTRI;
}

/* May this call be fast under auto? (A transposed or Cholesky solve above FAST_FROM.) */
static bool may_be_fast(const struct call *c)
{
    bool solve = routine_has(c->routine, 'B');
    return automatic && c->n > FAST_FROM && solve &&
           (routine_has(c->routine, 'u') ||
            (routine_has(c->routine, 't') && *c->trans != 'N'));
}

struct side {
    struct call call;
    struct matrix a, b, work;
    int32_t *ipiv;
};

static struct side side_of(const struct call *c, const struct matrix *a,
                           const struct matrix *b, const struct matrix *work,
                           const int32_t *ipiv, size_t pivots)
{
    struct side s = {*c, matrix_copy(a), matrix_copy(b), matrix_copy(work), NULL};
    s.ipiv = malloc(pivots * sizeof *ipiv);
    memcpy(s.ipiv, ipiv, pivots * sizeof *ipiv);
    s.call.a = s.a.data;
    s.call.b = s.b.data;
    s.call.work = s.work.data;
    s.call.ipiv = s.ipiv;
    s.call.info = -77;
    return s;
}

static void drop(struct side *s)
{
    matrix_free(&s->a);
    matrix_free(&s->b);
    matrix_free(&s->work);
    free(s->ipiv);
}

static void complain(struct task *t, const struct call *c, const char *what,
                     const char *detail)
{
    if (*t->why)
        return;
    snprintf(
        t->why, sizeof t->why,
        "%s m=%d n=%d nrhs=%d uplo=%s trans=%s lda=%d ldb=%d lwork=%d %s #%d: %s%s%s",
        routine_name(c->routine, c->precision), c->m, c->n, c->nrhs,
        routine_has(c->routine, 'u') ? c->uplo : "-",
        routine_has(c->routine, 't') ? c->trans : "-", c->lda, c->ldb, c->lwork,
        matrix_class_name[t->class], t->index, what, *detail ? ": " : "", detail);
}

/* Values that must have netlib's bits. */
static void same_bits(struct task *t, const struct call *c, const char *what,
                      const struct matrix *got, const struct matrix *want, char triangle,
                      int64_t minor, bool zeros)
{
    char first[256] = "";
    int64_t n = differing(got, want, triangle, minor, zeros, first, sizeof first);
    t->elements += got->rows * got->cols;
    t->differing += n;
    if (n)
        complain(t, c, what, first);
}

static void check_inverse(struct task *t, const struct side *got, const struct side *want,
                          const struct matrix *original, bool has_original, char triangle)
{
    char first[256], why[400];
    t->inverse = true;
    t->inverse_equal =
        differing(&got->a, &want->a, triangle, -1, true, first, sizeof first) == 0;
    if (t->inverse_equal || !has_original || !is_finite(&want->a, triangle))
        return;
    if (!is_finite(original, triangle)) { /* no residual can be formed */
        if (misplaced(&got->a, &want->a, first, sizeof first))
            complain(t, &got->call, "NaN or Inf in the inverse", first);
        return;
    }
    double ours = inverse_residual(original, &got->a, triangle);
    double theirs = inverse_residual(original, &want->a, triangle);
    snprintf(why, sizeof why, "residual %.3g, netlib's %.3g; %s", ours, theirs, first);
    if (!(ours <= 5 * theirs + 1))
        complain(t, &got->call, "inverse", why);
}

static void check_fast(struct task *t, const struct side *got, const struct side *want,
                       const struct matrix *original, const struct matrix *b,
                       char triangle)
{
    char trans = routine_has(got->call.routine, 't') ? *got->call.trans : 'N';
    char why[200];
    if (t->class == CLASS_NAN || t->class == CLASS_INF) {
        /* Rounded otherwise, but NaN and Inf stand where netlib has them. */
        char first[256];
        if (misplaced(&got->b, &want->b, first, sizeof first))
            complain(t, &got->call, "NaN or Inf in B", first);
        return;
    }
    if (t->class != CLASS_RANDOM && t->class != CLASS_INTEGER && t->class != CLASS_GRADED)
        return; /* singular, or out of range */
    double ours = solve_residual(original, triangle, trans, b, &got->b);
    double theirs = solve_residual(original, triangle, trans, b, &want->b);
    snprintf(why, sizeof why, "%.3g, netlib's %.3g", ours, theirs);
    if (theirs <= 30 && !(ours <= 30))
        complain(t, &got->call, "residual of X above 30", why);
}

static void check(struct task *t, const struct side *got, const struct side *want,
                  const struct side *before, const struct matrix *original,
                  bool has_original, size_t pivots)
{
    const struct call *c = &got->call;
    char triangle = routine_has(c->routine, 'u') ? *c->uplo : 0, first[256] = "";
    bool fast = may_be_fast(c), edge = fast && c->routine == BL_POSV;
    bool has_b = routine_has(c->routine, 'B');
    bool zeros = holds_negative_zero(&before->a, triangle) ||
                 (has_b && holds_negative_zero(&before->b, 0));
    snprintf(first, sizeof first, "%d, netlib's is %d", c->info, want->call.info);
    /* Fast arithmetic may decide a semi-definite matrix otherwise. */
    edge = edge && (t->class == CLASS_DEFICIENT || t->class == CLASS_TIED);
    if (c->info != want->call.info) {
        if (!edge)
            complain(t, c, "INFO", first);
        return;
    }
    for (size_t k = 0; k < pivots; k++)
        if (got->ipiv[k] != want->ipiv[k]) {
            snprintf(first, sizeof first, "%d, netlib's is %d", got->ipiv[k],
                     want->ipiv[k]);
            char what[40];
            snprintf(what, sizeof what, "IPIV(%zu)", k + 1);
            complain(t, c, what, first);
            break;
        }
    /* A getrs or potrs reads A: all of it is as it was. */
    bool written = routine_has(c->routine, 'A');
    if (written ? touched(&got->a, &before->a, triangle, first, sizeof first)
                : memcmp(got->a.data, before->a.data, matrix_bytes(&got->a)) != 0)
        complain(t, c, "A outside of what is written", written ? first : "");
    if (touched(&got->b, &before->b, 0, first, sizeof first) ||
        (!has_b && memcmp(got->b.data, before->b.data, matrix_bytes(&got->b))))
        complain(t, c, "B outside of what is written", first);
    if (touched(&got->work, &before->work, 0, first, sizeof first))
        complain(t, c, "WORK beyond LWORK", first);
    if (routine_has(c->routine, 'W')) {
        struct matrix one = got->work, other = want->work;
        one.rows = other.rows = 1;
        same_bits(t, c, "WORK(1)", &one, &other, 0, -1, false);
    }
    bool inverse = (c->routine == BL_GETRI || c->routine == BL_POTRI) && c->info == 0;
    bool cholesky = c->routine == BL_POTRF || c->routine == BL_POSV;
    if (inverse)
        check_inverse(t, got, want, original, has_original, triangle);
    else if (!(fast && c->routine == BL_POSV))
        same_bits(t, c, "A", &got->a, &want->a, triangle,
                  cholesky && c->info > 0 ? c->info - 1 : -1, zeros);
    if (has_b && fast && c->info == 0 && has_original)
        check_fast(t, got, want, original, &before->b, triangle);
    else if (has_b && !(fast && c->info == 0))
        same_bits(t, c, "B", &got->b, &want->b, 0, -1, zeros);
}

static void run_task(int64_t item, void *data)
{
    struct task *t = (struct task *)data + item;
    struct rng r = {(((uint64_t)t->routine * 4 + t->precision) * 64 + t->class) *
                        1000003 +
                    (uint64_t)t->index + (automatic ? 77777 : 0)};
    struct call c = {.info = 0};
    choose(&c, t, &r);
    bool hermitian = routine_has(t->routine, 'u'), has_original = true;
    struct matrix original = matrix_new(t->precision, c.m, c.n, c.lda, GUARD);
    if (hermitian)
        matrix_fill_hermitian(&original, *c.uplo, t->class, rng_next(&r));
    else
        matrix_fill(&original, t->class, rng_next(&r));
    struct matrix a = matrix_copy(&original);
    struct matrix b = matrix_new(t->precision, c.n, c.nrhs, c.ldb, GUARD);
    bool plain = t->class == CLASS_INDEFINITE || (hermitian && t->class == CLASS_NEGZERO);
    matrix_fill(&b, plain ? CLASS_RANDOM : t->class, rng_next(&r));
    if (t->index % 3 == 1)
        begin_with_zeros(&b, &r);
    struct matrix work = matrix_new(t->precision, c.lwork, 1, c.lwork, GUARD);
    size_t pivots = (size_t)(c.m < c.n ? c.m : c.n) + 4;
    int32_t *ipiv = malloc(pivots * sizeof *ipiv);
    for (size_t k = 0; k < pivots; k++)
        ipiv[k] = -99;
    if (takes_factor(t->routine)) {
        has_original = factor(&c, &a, ipiv);
        if (!routine_has(t->routine, 'B') && t->class == CLASS_DEFICIENT) {
            has_original = false;
            spoil(&a, &r);
        }
    }
    struct side before = side_of(&c, &a, &b, &work, ipiv, pivots);
    struct side got = side_of(&c, &a, &b, &work, ipiv, pivots);
    struct side want = side_of(&c, &a, &b, &work, ipiv, pivots);
    reference_call(&want.call);
    entry_call(&got.call);
    check(t, &got, &want, &before, &original, has_original, pivots);
    drop(&before);
    drop(&got);
    drop(&want);
    matrix_free(&original);
    matrix_free(&a);
    matrix_free(&b);
    matrix_free(&work);
    free(ipiv);
}

/* ---- all of them ---- */

static bool belongs(enum bl_routine_id r, enum matrix_class c)
{
    return c != CLASS_INDEFINITE || routine_has(r, 'u');
}

/* One line a group of tasks, and the sums a precision. */
static void report(const struct task *tasks, int64_t count)
{
    const char *pass = automatic ? "compare-auto" : "compare";
    int64_t matrices[BL_PRECISIONS] = {0}, bits[BL_PRECISIONS] = {0};
    int64_t elements[BL_PRECISIONS] = {0}, inverses[BL_PRECISIONS] = {0};
    int64_t equal[BL_PRECISIONS] = {0};
    for (int64_t i = 0, end; i < count; i = end) {
        const struct task *t = &tasks[i];
        int bad = 0;
        char why[800] = "", place[700] = "";
        for (end = i;
             end < count && tasks[end].routine == t->routine &&
             tasks[end].precision == t->precision && tasks[end].class == t->class;
             end++) {
            const struct task *u = &tasks[end];
            if (*u->why && bad++ == 0)
                snprintf(place, sizeof place, "%s", u->why);
            matrices[t->precision]++;
            elements[t->precision] += u->elements;
            bits[t->precision] += u->differing;
            inverses[t->precision] += u->inverse;
            equal[t->precision] += u->inverse_equal;
        }
        if (bad)
            snprintf(why, sizeof why, "%d of %lld; first: %s", bad, (long long)(end - i),
                     place);
        const char *name = routine_name(t->routine, t->precision);
        verdict(why, "%s-%s-%c-%s", pass, name + 1, *name, matrix_class_name[t->class]);
    }
    for (int p = 0; p < BL_PRECISIONS; p++)
        printf("# %s %c: %lld matrices, %lld of %lld elements differ; inverses: %lld of "
               "%lld "
               "bit-equal\n",
               pass, "sdcz"[p], (long long)matrices[p], (long long)bits[p],
               (long long)elements[p], (long long)equal[p], (long long)inverses[p]);
    fflush(stdout); /* before the library's report, which the first run prints as well */
}

static int run_all(const char *only)
{
    if (!reference_open())
        return 0;
    size_t most =
        (size_t)tasks_each * BL_LAPACK_ROUTINES * BL_PRECISIONS * MATRIX_CLASS_COUNT;
    struct task *tasks = calloc(most, sizeof *tasks);
    int64_t count = 0;
    for (int r = 0; r < BL_LAPACK_ROUTINES; r++)
        for (int p = 0; p < BL_PRECISIONS; p++)
            for (int c = 0; c < MATRIX_CLASS_COUNT; c++)
                for (int i = 0; i < tasks_each; i++) {
                    enum bl_routine_id routine = (enum bl_routine_id)r;
                    if (belongs(routine, (enum matrix_class)c) &&
                        (!only ||
                         strstr(routine_name(routine, (enum bl_precision)p), only)))
                        tasks[count++] = (struct task){.routine = routine,
                                                       .precision = (enum bl_precision)p,
                                                       .class = (enum matrix_class)c,
                                                       .index = i};
                }
    in_parallel(count, run_task, tasks);
    report(tasks, count);
    free(tasks);
    return failures() != 0;
}

int main(int argc, char **argv)
{
    const char *child = rerun_name(), *only = argc > 2 ? argv[2] : NULL;
    int64_t matrices = argc > 1 ? atoll(argv[1]) : PRESET;
    int64_t groups = (int64_t)BL_LAPACK_ROUTINES * (MATRIX_CLASS_COUNT - 1);
    if (child) {
        automatic = strcmp(child, "compare-auto") == 0;
        /* Under auto only what differs from exact is new: fewer matrices. */
        matrices = automatic ? matrices / 3 : matrices;
        tasks_each = (matrices + groups - 1) / groups;
        if (!batchlapack_version())
            return 2;
        return run_all(only);
    }
    if (!reference_open())
        return 0;
    bool exact = rerun_served(argv, "compare-exact", "gpu", "exact");
    bool automatically = rerun_served(argv, "compare-auto", "gpu", "auto");
    return !exact || !automatically || failures() != 0;
}
