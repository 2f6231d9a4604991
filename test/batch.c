/* Batches through the pipeline, item by item against netlib: strided and by pointers,
 * with gaps, 32- and 64-bit integers, every routine, precision and size to 70, counts
 * around the limits of a grid, batches of several chunks from ordinary and from pinned
 * memory, single problems in pieces; and the batched faults of the
 * field.
 *
 *     batch [--heavy | --small | --tiny]
 *
 * Links libshim and calls bl_pipeline() with the engine that BATCHLAPACK_ENGINE names or
 * that lies beside the program. With the mock engine, device memory is also made to run
 * out and launches to fail in mid-batch. An item's bits may depend on nothing but its
 * input: getri and potri, which may differ from netlib, must at least agree with
 * themselves.
 */
#include <complex.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bl.h"
#include "lane.h"
#include "mock_controls.h"
#include "reference.h"
#include "workers.h"

static const struct bl_engine *engine;
static bool heavy, small, tiny; /* few sizes, for tools that slow everything down */

#define GAP 3
#define INTEGER_GUARD (-99)
#define MOST_INPUTS 97

/* ---- a batch ---- */

/* Different problems of one shape, each with netlib's answer. Item i of a batch is a copy
 * of problem i modulo their number. */
struct problem {
    struct matrix a, b, want_a, want_b, original,
        first;                 /* first: the first item's answer */
    int64_t *ipiv, *want_ipiv; /* min(m, n) */
    int64_t want_info;
    bool has_original, seen, zeros;
};

struct batch {
    char name[96];
    enum bl_routine_id routine;
    enum bl_precision precision;
    char uplo, trans;
    int64_t m, n, nrhs, lda, ldb, count;
    int64_t inputs; /* number of different problems */
    int int_size;
    bool pointers; /* arrays of pointers, items in reverse order in memory */
    bool pinned;   /* A and B lie in pinned memory */
    bool tight;    /* without gaps: pinned memory is read by the device itself */
    bool turned;   /* item i is a copy of problem inputs - 1 - i modulo inputs */
    struct problem *problem;
    char why[600];
};

static int64_t pivots_of(const struct batch *s)
{
    return s->m < s->n ? s->m : s->n;
}

static char triangle_of(const struct batch *s)
{
    return routine_has(s->routine, 'u') ? s->uplo : 0;
}

static struct call call_of(const struct batch *s)
{
    return (struct call){.routine = s->routine,
                         .precision = s->precision,
                         .uplo = s->uplo == 'U' ? "U" : "L",
                         .trans = s->trans == 'N'   ? "N"
                                  : s->trans == 'T' ? "T"
                                                    : "C",
                         .m = (int32_t)s->m,
                         .n = (int32_t)s->n,
                         .nrhs = (int32_t)s->nrhs,
                         .lda = (int32_t)s->lda,
                         .ldb = (int32_t)s->ldb,
                         .lwork = (int32_t)(64 * s->n)};
}

static void answer(const struct batch *s, struct problem *p)
{
    struct call c = call_of(s);
    int64_t k = pivots_of(s);
    int32_t *ipiv = calloc((size_t)k + 1, sizeof *ipiv);
    struct matrix work = matrix_new(s->precision, c.lwork, 1, c.lwork, 0);
    for (int64_t i = 0; i < k; i++)
        ipiv[i] = (int32_t)p->ipiv[i];
    p->want_a = matrix_copy(&p->a);
    p->want_b = matrix_copy(&p->b);
    c.a = p->want_a.data;
    c.b = p->want_b.data;
    c.work = work.data;
    c.ipiv = ipiv;
    reference_call(&c);
    p->want_info = c.info;
    p->want_ipiv = calloc((size_t)k + 1, sizeof *p->want_ipiv);
    for (int64_t i = 0; i < k; i++)
        p->want_ipiv[i] = ipiv[i];
    p->zeros =
        holds_negative_zero(&p->a, triangle_of(s)) || holds_negative_zero(&p->b, 0);
    free(ipiv);
    matrix_free(&work);
}

/* What getrs, getri, potrs and potri take. */
static bool factored(const struct batch *s, struct problem *p)
{
    struct call c = call_of(s);
    int32_t *ipiv = calloc((size_t)s->n + 1, sizeof *ipiv);
    c.routine = routine_has(s->routine, 'u') ? BL_POTRF : BL_GETRF;
    c.a = p->a.data;
    c.ipiv = ipiv;
    reference_call(&c);
    for (int64_t i = 0; i < s->n; i++)
        p->ipiv[i] = ipiv[i];
    free(ipiv);
    return c.info == 0;
}

static bool takes_factor(enum bl_routine_id r)
{
    return r == BL_GETRS || r == BL_GETRI || r == BL_POTRS || r == BL_POTRI;
}

/* Problem k of the batch from a matrix given by rows, or of a class. */
static void pose(struct batch *s, int64_t k, const double *rows, enum matrix_class class,
                 uint64_t seed)
{
    struct problem *p = &s->problem[k];
    p->a = matrix_new(s->precision, s->m, s->n, s->lda, s->tight ? 0 : GAP);
    p->b = matrix_new(s->precision, s->n, s->nrhs, s->ldb, s->tight ? 0 : GAP);
    p->ipiv = calloc((size_t)s->n + 1, sizeof *p->ipiv);
    for (int64_t i = 0; i < pivots_of(s); i++)
        p->ipiv[i] = INTEGER_GUARD;
    for (int64_t i = 0; rows && i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++)
            if (in_triangle(triangle_of(s), i, j))
                matrix_put(&p->a, i, j, rows[i * s->n + j], 0);
    if (!rows && triangle_of(s))
        matrix_fill_hermitian(&p->a, s->uplo, class, seed);
    else if (!rows)
        matrix_fill(&p->a, class, seed);
    matrix_fill(&p->b, class == CLASS_INDEFINITE ? CLASS_RANDOM : class, seed + 1);
    p->original = matrix_copy(&p->a);
    p->has_original = !takes_factor(s->routine) || factored(s, p);
    answer(s, p);
}

static void new_problems(struct batch *s, int64_t inputs)
{
    s->inputs = inputs;
    s->problem = calloc((size_t)inputs, sizeof *s->problem);
}

static void drop_problems(struct batch *s)
{
    for (int64_t k = 0; k < s->inputs; k++) {
        struct problem *p = &s->problem[k];
        matrix_free(&p->a);
        matrix_free(&p->b);
        matrix_free(&p->want_a);
        matrix_free(&p->want_b);
        matrix_free(&p->original);
        matrix_free(&p->first);
        free(p->ipiv);
        free(p->want_ipiv);
    }
    free(s->problem);
    s->problem = NULL;
}

/* ---- its memory ---- */

struct slab {
    char *a, *b, *ipiv, *info;
    size_t a_bytes, b_bytes;          /* an item with its gap */
    int64_t ipiv_stride, info_stride; /* elements */
    void **a_array, **b_array, **ipiv_array;
};

static int64_t place(const struct batch *s, int64_t item)
{
    return s->pointers ? s->count - 1 - item : item;
}

static struct problem *problem_of(const struct batch *s, int64_t item)
{
    int64_t k = item % s->inputs;
    return &s->problem[s->turned ? s->inputs - 1 - k : k];
}

static void *memory(size_t bytes)
{
    void *p = malloc(bytes + 1);
    if (!p) {
        verdict("no host memory", "batch-memory");
        exit(1);
    }
    return p;
}

static void fill(const struct batch *s, struct slab *slab)
{
    for (int64_t i = 0; i < s->count; i++) {
        const struct problem *p = problem_of(s, i);
        int64_t at = place(s, i);
        memcpy(slab->a + (size_t)at * slab->a_bytes, p->a.data, slab->a_bytes);
        memcpy(slab->b + (size_t)at * slab->b_bytes, p->b.data, slab->b_bytes);
        for (int64_t k = 0; k < slab->ipiv_stride; k++)
            integer_put(slab->ipiv, at * slab->ipiv_stride + k, s->int_size,
                        k < pivots_of(s) ? p->ipiv[k] : INTEGER_GUARD);
        for (int64_t k = 0; k < slab->info_stride; k++)
            integer_put(slab->info, i * slab->info_stride + k, s->int_size,
                        INTEGER_GUARD);
        if (s->pointers) {
            slab->a_array[i] = slab->a + (size_t)at * slab->a_bytes;
            slab->b_array[i] = slab->b + (size_t)at * slab->b_bytes;
            slab->ipiv_array[i] = slab->ipiv + at * slab->ipiv_stride * s->int_size;
        }
    }
}

static char *plain_memory(size_t bytes)
{
    return memory(bytes);
}

static char *pinned_memory(size_t bytes)
{
    void *p = NULL;
    if (engine->host_alloc(bytes + 1, &p) != BL_OK) {
        printf("not ok batch - no pinned memory\n");
        exit(1);
    }
    return p;
}

static struct slab new_slab(const struct batch *s)
{
    const struct problem *p = &s->problem[0];
    size_t count = (size_t)s->count;
    struct slab slab = {.a_bytes = matrix_bytes(&p->a),
                        .b_bytes = matrix_bytes(&p->b),
                        .ipiv_stride = pivots_of(s) + (s->count % 2 ? 0 : GAP),
                        .info_stride = s->pointers ? 2 : 1};
    char *(*get)(size_t) = s->pinned ? pinned_memory : plain_memory;
    slab.a = get(count * slab.a_bytes);
    slab.b = get(count * slab.b_bytes);
    slab.ipiv = memory(count * (size_t)slab.ipiv_stride * (size_t)s->int_size);
    slab.info = memory(count * (size_t)slab.info_stride * (size_t)s->int_size);
    if (s->pointers) {
        slab.a_array = memory(count * sizeof *slab.a_array);
        slab.b_array = memory(count * sizeof *slab.b_array);
        slab.ipiv_array = memory(count * sizeof *slab.ipiv_array);
    }
    fill(s, &slab);
    return slab;
}

static void drop_slab(const struct batch *s, struct slab *slab)
{
    if (s->pinned) {
        engine->host_free(slab->a);
        engine->host_free(slab->b);
    } else {
        free(slab->a);
        free(slab->b);
    }
    free(slab->ipiv);
    free(slab->info);
    free(slab->a_array);
    free(slab->b_array);
    free(slab->ipiv_array);
}

static struct bl_job job_of(const struct batch *s, const struct slab *slab)
{
    bool has_b = routine_has(s->routine, 'B'), has_ipiv = s->routine <= BL_GESV;
    int64_t element = (int64_t)element_bytes(s->precision);
    struct bl_job job = {.routine = s->routine,
                         .precision = s->precision,
                         .arithmetic = BL_EXACT,
                         .uplo = triangle_of(s),
                         .trans = routine_has(s->routine, 't') ? s->trans : 0,
                         .int_size = s->int_size,
                         .m = s->m,
                         .n = s->n,
                         .nrhs = has_b ? s->nrhs : 0,
                         .block = s->routine == BL_GETRI && s->n > 64 ? 64 : 0,
                         .batch = s->count};
    job.a = (struct bl_operand){slab->a, slab->a_array, s->lda,
                                (int64_t)slab->a_bytes / element};
    if (has_b)
        job.b = (struct bl_operand){slab->b, slab->b_array, s->ldb,
                                    (int64_t)slab->b_bytes / element};
    if (has_ipiv)
        job.ipiv =
            (struct bl_operand){slab->ipiv, slab->ipiv_array, 0, slab->ipiv_stride};
    job.info = (struct bl_operand){slab->info, NULL, 0, slab->info_stride};
    return job;
}

/* ---- checking ---- */

static bool complain(struct batch *s, int64_t item, const char *what, const char *detail)
{
    if (!*s->why)
        snprintf(
            s->why, sizeof s->why,
            "%s m=%lld n=%lld nrhs=%lld uplo=%c trans=%c lda=%lld ldb=%lld count=%lld "
            "%d-byte integers, %s%s: item %lld: %s: %s",
            routine_name(s->routine, s->precision), (long long)s->m, (long long)s->n,
            (long long)s->nrhs, s->uplo, s->trans, (long long)s->lda, (long long)s->ldb,
            (long long)s->count, s->int_size, s->pointers ? "pointers" : "strided",
            s->pinned ? ", pinned" : "", (long long)item, what, detail);
    return false;
}

static bool integers_differ(struct batch *s, int64_t item, const char *what, int64_t k,
                            int64_t got, int64_t want)
{
    char detail[120];
    snprintf(detail, sizeof detail, "(%lld) is %lld, not %lld", (long long)k + 1,
             (long long)got, (long long)want);
    return complain(s, item, what, detail);
}

/* An inverse may differ from netlib's, not from the first item of the same input. */
static bool check_inverse(struct batch *s, struct problem *p, int64_t item,
                          const struct matrix *a, char *first, size_t size)
{
    char triangle = triangle_of(s);
    if (p->seen)
        return differing(a, &p->first, triangle, -1, false, first, size) == 0 ||
               complain(s, item, "not the bits of an equal item", first);
    p->first = matrix_copy(a);
    p->seen = true;
    if (differing(a, &p->want_a, triangle, -1, true, first, size) == 0 ||
        !p->has_original || !is_finite(&p->want_a, triangle))
        return true;
    if (!is_finite(&p->original, triangle)) /* no residual can be formed */
        return misplaced(a, &p->want_a, first, size) == 0 ||
               complain(s, item, "NaN or Inf in the inverse", first);
    double ours = inverse_residual(&p->original, a, triangle);
    double theirs = inverse_residual(&p->original, &p->want_a, triangle);
    snprintf(first, size, "%.3g, netlib's is %.3g", ours, theirs);
    return ours <= 5 * theirs + 1 || complain(s, item, "residual of the inverse", first);
}

static bool check_item(struct batch *s, const struct slab *slab, int64_t i)
{
    struct problem *p = problem_of(s, i);
    struct matrix a = p->a, b = p->b;
    int64_t at = place(s, i),
            info = integer_get(slab->info, i * slab->info_stride, s->int_size);
    char triangle = triangle_of(s), first[256] = "";
    a.data = slab->a + (size_t)at * slab->a_bytes;
    b.data = slab->b + (size_t)at * slab->b_bytes;
    if (info != p->want_info)
        return integers_differ(s, i, "INFO", 0, info, p->want_info);
    for (int64_t k = 1; k < slab->info_stride; k++)
        if (integer_get(slab->info, i * slab->info_stride + k, s->int_size) !=
            INTEGER_GUARD)
            return complain(s, i, "INFO", "the gap was written");
    for (int64_t k = 0; k < slab->ipiv_stride; k++) {
        int64_t got = integer_get(slab->ipiv, at * slab->ipiv_stride + k, s->int_size);
        int64_t want = k < pivots_of(s) ? p->want_ipiv[k] : INTEGER_GUARD;
        if (got != want)
            return integers_differ(s, i, "IPIV", k, got, want);
    }
    /* Most items are right to the last bit, gaps and all. */
    bool inverse = s->routine == BL_GETRI || s->routine == BL_POTRI;
    if (!inverse && memcmp(a.data, p->want_a.data, slab->a_bytes) == 0 &&
        memcmp(b.data, p->want_b.data, slab->b_bytes) == 0)
        return true;
    if (touched(&a, &p->a, triangle, first, sizeof first))
        return complain(s, i, "A outside of what is written", first);
    if (touched(&b, &p->b, 0, first, sizeof first))
        return complain(s, i, "B outside of what is written", first);
    if (inverse && info == 0)
        return check_inverse(s, p, i, &a, first, sizeof first);
    bool cholesky = s->routine == BL_POTRF || s->routine == BL_POSV;
    if (differing(&a, &p->want_a, triangle, cholesky && info > 0 ? info - 1 : -1,
                  p->zeros, first, sizeof first))
        return complain(s, i, "A", first);
    if (differing(&b, &p->want_b, 0, -1, p->zeros, first, sizeof first))
        return complain(s, i, "B", first);
    return true;
}

/* Item i is as it was before the call, but for its INFO, which is this. */
static bool check_only_info(struct batch *s, const struct slab *slab, int64_t i,
                            int64_t info)
{
    const struct problem *p = problem_of(s, i);
    int64_t at = place(s, i);
    if (memcmp(slab->a + (size_t)at * slab->a_bytes, p->a.data, slab->a_bytes) ||
        memcmp(slab->b + (size_t)at * slab->b_bytes, p->b.data, slab->b_bytes) ||
        integer_get(slab->info, i * slab->info_stride, s->int_size) != info)
        return complain(s, i, "not done, but", "it was written");
    for (int64_t k = 0; k < pivots_of(s); k++)
        if (integer_get(slab->ipiv, at * slab->ipiv_stride + k, s->int_size) !=
            p->ipiv[k])
            return complain(s, i, "not done, but", "IPIV was written");
    return true;
}

static bool check_untouched(struct batch *s, const struct slab *slab, int64_t i)
{
    return check_only_info(s, slab, i, INTEGER_GUARD);
}

/* Run the batch as it is posed: `done` items must come out right, the rest untouched. */
static bool run_expecting(struct batch *s, enum bl_status expected, int64_t expected_done)
{
    struct slab slab = new_slab(s);
    struct bl_job job = job_of(s, &slab);
    struct bl_traffic traffic = {0};
    int64_t done = -1;
    enum bl_status status = bl_pipeline(engine, &job, &done, &traffic);
    char detail[80];
    snprintf(detail, sizeof detail, "%d, %lld done", (int)status, (long long)done);
    bool good = status == expected && (expected_done < 0 || done == expected_done);
    if (!good)
        complain(s, -1, "status", detail);
    for (int64_t i = 0; i < s->count && good; i++)
        good = i < done ? check_item(s, &slab, i) : check_untouched(s, &slab, i);
    drop_slab(s, &slab);
    return good;
}

static bool run(struct batch *s)
{
    return run_expecting(s, BL_OK, s->count);
}

/* ---- every routine, precision and size ---- */

#define LARGEST 70

static void vary(struct batch *s, struct rng *r)
{
    s->uplo = rng_below(r, 2) ? 'U' : 'L';
    s->trans = "NTC"[rng_below(r, 3)];
    s->m = s->n;
    if (routine_has(s->routine, 'm') && rng_below(r, 2))
        s->m = rng_between(r, 1, LARGEST);
    s->nrhs = routine_has(s->routine, 'B') ? (int64_t[]){1, 3, 17}[rng_below(r, 3)] : 0;
    s->lda = s->m + (int64_t[]){0, 1, 5}[rng_below(r, 3)];
    s->ldb = s->n + (int64_t[]){0, 2}[rng_below(r, 2)];
    s->int_size = rng_below(r, 2) ? 8 : 4;
    s->pointers = rng_below(r, 2);
}

static void sizes(int64_t item, void *data)
{
    (void)data;
    struct batch s = {.routine = (enum bl_routine_id)(item / BL_PRECISIONS),
                      .precision = (enum bl_precision)(item % BL_PRECISIONS)};
    struct rng r = {(uint64_t)item * 7919 + 1};
    bool good = true;
    /* Beyond LARGEST, two sizes that an engine may share out among several blocks. */
    for (int64_t step = 1; step <= LARGEST + 2 && good; step++) {
        int64_t n = step <= LARGEST ? step : step == LARGEST + 1 ? 150 : 301;
        if (small && n != 2 && n != 7 && n != 17 && n != 33 && n != 65 && n != 150)
            continue;
        if (tiny && n != 7 && n != 65)
            continue;
        s.n = n;
        vary(&s, &r);
        s.count = n <= 4 && !small ? 1000 : (int64_t[]){1, 2, 31}[n % 3];
        if (n > LARGEST || small)
            s.count = tiny ? 1 : n % 2 + 1;
        new_problems(&s, s.count < MOST_INPUTS ? s.count : MOST_INPUTS);
        bool hermitian = routine_has(s.routine, 'u');
        for (int64_t k = 0; k < s.inputs; k++)
            pose(&s, k, NULL,
                 (enum matrix_class)(
                     k % (hermitian ? CLASS_INDEFINITE + 1 : CLASS_INDEFINITE)),
                 rng_next(&r));
        good = run(&s);
        s.turned = true;
        good = good && run(&s);
        s.turned = false;
        drop_problems(&s);
    }
    const char *name = routine_name(s.routine, s.precision);
    verdict(s.why, "batch-sizes-%s-%c", name + 1, *name);
}

/* ---- counts around the limits of a grid ---- */

/* Field fault 4: item 65537 differs from the rest. */
#define ODD_ITEM 65536

static const double regular[] = {0, 2, 1, 3}, singular[] = {1, 2, 2, 4};
static const double definite[] = {4, 2, 2, 5}, semidefinite[] = {1, 1, 1, 1};

static void counts(int64_t item, void *data)
{
    (void)data;
    static const int64_t count[] = {65535, 65536, 65537, 262141, 524281};
    struct batch s = {.routine = (enum bl_routine_id)(item / BL_PRECISIONS),
                      .precision = (enum bl_precision)(item % BL_PRECISIONS),
                      .uplo = 'L',
                      .trans = 'N',
                      .int_size = 4};
    bool good = true, hermitian = routine_has(s.routine, 'u');
    int64_t most = heavy ? 5 : 4;
    for (int64_t k = 0; k < most && good; k++) {
        /* The odd item is one of a second kind: a cycle of 65536 or so, one of them odd.
         */
        s.m = s.n = s.lda = s.ldb = 2;
        s.nrhs = routine_has(s.routine, 'B') ? 1 : 0;
        s.count = count[k];
        s.pointers = k % 2;
        new_problems(&s, ODD_ITEM + 1);
        pose(&s, 0, hermitian ? definite : regular, CLASS_INTEGER, 5);
        for (int64_t i = 1; i < ODD_ITEM; i++)
            s.problem[i] = s.problem[0];
        pose(&s, ODD_ITEM, hermitian ? semidefinite : singular, CLASS_INTEGER, 5);
        if (!hermitian && s.problem[0].want_ipiv[0] != 2)
            complain(&s, 0, "netlib's IPIV", "is not [2,2]");
        if (s.routine <= BL_GESV && s.routine != BL_GETRS && s.routine != BL_GESV &&
            s.problem[ODD_ITEM].want_info != 2)
            complain(&s, ODD_ITEM, "netlib's INFO", "is not 2");
        good = run(&s) && !*s.why;
        for (int64_t i = 1; i < ODD_ITEM; i++) { /* copies own nothing but `first` */
            if (s.problem[i].seen)
                matrix_free(&s.problem[i].first);
            s.problem[i] = (struct problem){.seen = false};
        }
        drop_problems(&s);
        /* And 3 x 3, all sorts. */
        s.m = s.n = s.lda = 3;
        s.ldb = 4;
        s.int_size = 12 - s.int_size;
        new_problems(&s, MOST_INPUTS);
        for (int64_t i = 0; i < s.inputs; i++)
            pose(&s, i, NULL, i % 2 ? CLASS_RANDOM : CLASS_DEFICIENT,
                 (uint64_t)(i + k) * 31);
        good = good && run(&s);
        drop_problems(&s);
    }
    const char *name = routine_name(s.routine, s.precision);
    verdict(s.why, "field-04-counts-to-%lld-%s-%c-batch", (long long)count[most - 1],
            name + 1, *name);
}

/* ---- several chunks, and single problems that go in pieces ---- */

/* From here on a column is `gap` rows longer than the matrix; without one, pinned memory
 * is read by the device itself. */
static const struct {
    enum bl_routine_id routine;
    enum bl_precision precision;
    int64_t n, nrhs, count, gap;
    bool pointers, pinned;
} large[] = {
    {BL_GETRF, BL_D, 64, 0, 3000, 1, false, false},
    {BL_GETRF, BL_D, 64, 0, 3000, 0, false, false},
    {BL_GETRF, BL_D, 64, 0, 3000, 0, false, true},
    {BL_GETRF, BL_C, 96, 0, 151, 1, false, true},
    {BL_GESV, BL_Z, 33, 40, 2100, 1, true, false},
    {BL_GESV, BL_Z, 33, 40, 1100, 0, false, true},
    {BL_GETRS, BL_S, 8, 200, 12000, 1, true, false},
    {BL_GETRS, BL_S, 8, 200, 12000, 0, false, true},
    {BL_POTRF, BL_C, 50, 0, 4000, 1, false, false},
    {BL_POTRF, BL_C, 50, 0, 4000, 0, false, true},
    {BL_GETRI, BL_Z, 20, 0, 12000, 1, true, false},
    {BL_POTRS, BL_D, 16, 64, 9000, 1, false, false},
    /* The result fits the ring, and not. */
    {BL_GETRS, BL_D, 4, 400000, 1, 0, false, false},
    {BL_GETRS, BL_D, 4, 400000, 1, 0, false, true},
    {BL_GETRS, BL_Z, 4, 300000, 1, 3, false, true},
    {BL_GETRS, BL_D, 4, 2300000, 1, 0, false, false},
    {BL_GETRS, BL_D, 4, 2300000, 1, 0, false, true},
    {BL_POTRS, BL_D, 4, 2300000, 1, 1, true, false},
    /* A triangle in blocks. */
    {BL_POTRF, BL_D, 1101, 0, 1, 1, false, false},
    {BL_POTRF, BL_D, 1102, 0, 1, 0, false, true},
    {BL_POTRS, BL_D, 1057, 3, 1, 0, true, false},
    {BL_POSV, BL_C, 1033, 2, 1, 0, false, true},
    {BL_POTRI, BL_Z, 731, 0, 1, 1, false, false},
};

static struct batch large_batch(int64_t item)
{
    struct batch s = {.routine = large[item].routine,
                      .precision = large[item].precision,
                      .uplo = item % 2 ? 'L' : 'U',
                      .trans = 'N',
                      .m = large[item].n,
                      .n = large[item].n,
                      .nrhs = large[item].nrhs,
                      .lda = large[item].n + large[item].gap,
                      .ldb = large[item].n + large[item].gap,
                      .count = large[item].count,
                      .int_size = 4,
                      .pinned = large[item].pinned,
                      .tight = large[item].gap == 0,
                      .pointers = large[item].pointers};
    struct rng r = {(uint64_t)item};
    new_problems(&s, bl_min(11, s.count));
    for (int64_t k = 0; k < s.inputs; k++)
        pose(&s, k, NULL, CLASS_RANDOM, rng_next(&r));
    return s;
}

static void several_chunks(int64_t item, void *data)
{
    (void)data;
    struct batch s = large_batch(item);
    run(&s);
    drop_problems(&s);
    const char *name = routine_name(s.routine, s.precision);
    verdict(s.why, "batch-%s%s-%s-%c-%lld", s.count > 1 ? "several-chunks" : "in-pieces",
            s.pinned ? "-pinned" : "", name + 1, *name, (long long)item);
}

/* potrf of z matrices whose triangle alone is larger than the ring. The factor has 2 on
 * its diagonal and 1 beside it, so A has 4 and then 5 there, and 2; the other triangle
 * belongs to the caller. Those with a part are worked on as they arrive. */
static const struct {
    bool lower, pinned;
    int64_t gap, part;
} triangles[] = {{false, false, 0, 0},   {false, false, 1, 0},  {true, false, 0, 0},
                 {true, false, 1, 0},    {true, false, 0, 700}, {true, true, 0, 700},
                 {false, false, 0, 700}, {false, true, 1, 700}};
enum { WHOLE_TRIANGLES = 4, TRIANGLES = sizeof triangles / sizeof *triangles };

static void large_triangle(int64_t item, void *data)
{
    const int64_t n = 3001, lda = n + triangles[item].gap;
    bool lower = triangles[item].lower, pinned = triangles[item].pinned;
    size_t bytes = (size_t)(lda * n) * sizeof(double complex);
    double complex *a = (void *)(pinned ? pinned_memory(bytes) : plain_memory(bytes));
    struct mock_counts before = {.parts = 0}, after = {.parts = 0};
    int32_t info = -1;
    char why[100] = "";
    (void)data;
    if (triangles[item].part) {
        mock_order(
            &(struct mock_order){.step = MOCK_STEPS, .part = triangles[item].part});
        mock_counts(&before);
    }
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < lda; i++) {
            int64_t away = lower ? i - j : j - i;
            a[j * lda + i] = i >= n || away < 0 ? 77.0
                             : away == 0        ? (i ? 5.0 : 4.0)
                             : away == 1        ? 2.0
                                                : 0.0;
        }
    struct bl_job job = {.routine = BL_POTRF,
                         .precision = BL_Z,
                         .uplo = lower ? 'L' : 'U',
                         .int_size = 4,
                         .m = n,
                         .n = n,
                         .batch = 1,
                         .a = {a, NULL, lda, 0},
                         .info = {&info, NULL, 0, 0}};
    struct bl_traffic traffic = {0};
    int64_t done = 0;
    if (bl_pipeline(engine, &job, &done, &traffic) != BL_OK || info != 0)
        snprintf(why, sizeof why, "status or INFO");
    for (int64_t j = 0; j < n && !*why; j++)
        for (int64_t i = 0; i < lda; i++) {
            int64_t away = lower ? i - j : j - i;
            double want = i >= n || away < 0 ? 77 : away == 0 ? 2 : away == 1 ? 1 : 0;
            if (a[j * lda + i] != want)
                snprintf(why, sizeof why, "A(%lld,%lld)", (long long)i + 1,
                         (long long)j + 1);
        }
    uint64_t square = (uint64_t)(n * n) * sizeof *a;
    if (traffic.in * 10 > square * 6 || traffic.out * 10 > square * 6)
        snprintf(why, sizeof why, "more than the triangle crossed the link");
    if (triangles[item].part) {
        mock_counts(&after);
        if (after.parts - before.parts != (uint64_t)(n / triangles[item].part))
            snprintf(why, sizeof why, "not as many parts as ordered");
        mock_order(&(struct mock_order){.step = MOCK_STEPS});
    }
    if (pinned)
        engine->host_free(a);
    else
        free(a);
    verdict(why, "batch-large-triangle-%c-%lld%s%s", job.uplo, (long long)(lda - n),
            pinned ? "-pinned" : "", triangles[item].part ? "-in-parts" : "");
}

/* ---- what crosses the link ---- */

/* As the report counts it: each operand once in, and only what is written back out; no
 * rows beyond m, IPIV and INFO without gaps. INFO goes in, too. */
static const struct {
    enum bl_routine_id routine;
    enum bl_precision precision;
    int64_t m, n, nrhs, count;
    const char *in, *out; /* letters as in routines.def */
    bool pinned;
} crossings[] = {
    {BL_GETRF, BL_D, 40, 40, 0, 3000, "a", "ap", false},
    {BL_GETRF, BL_Z, 90, 33, 0, 701, "a", "ap", false},
    {BL_GETRF, BL_D, 40, 40, 0, 3000, "a", "ap", true},
    {BL_GETRF, BL_S, 900, 700, 0, 1, "a", "ap", false},
    {BL_GETRF, BL_D, 400000, 9, 0, 1, "a", "ap", false},
    {BL_GETRF, BL_D, 1200000, 9, 0, 1, "a", "ap", false},
    {BL_GETRF, BL_D, 1200000, 9, 0, 1, "a", "ap", true},
    {BL_GETRS, BL_D, 30, 30, 7, 3000, "apb", "b", false},
    {BL_GETRS, BL_C, 200, 200, 300, 1, "apb", "b", false},
    {BL_GESV, BL_S, 30, 30, 5, 3000, "ab", "apb", false},
    {BL_GESV, BL_D, 90, 90, 100000, 1, "ab", "apb", false},
    {BL_POTRS, BL_D, 30, 30, 7, 3000, "ab", "b", false},
    {BL_POTRS, BL_Z, 200, 200, 300, 1, "ab", "b", false},
    {BL_POSV, BL_C, 30, 30, 7, 3000, "ab", "ab", false},
    {BL_POSV, BL_D, 200, 200, 300, 1, "ab", "ab", false},
};

static int64_t bytes_of(const struct batch *s, const char *letters)
{
    int64_t element = (int64_t)element_bytes(s->precision), sum = s->int_size;
    for (; *letters; letters++)
        sum += *letters == 'a'   ? s->m * s->n * element
               : *letters == 'b' ? s->n * s->nrhs * element
                                 : pivots_of(s) * s->int_size;
    return sum * s->count;
}

/* Regions and pieces begin at multiples of 256 bytes: that, of each chunk, may come on
 * top. */
static bool about(uint64_t counted, int64_t bytes, int64_t count)
{
    int64_t chunks = count > 1 ? 16 : 1;
    return (int64_t)counted >= bytes && (int64_t)counted <= bytes + chunks * 4 * 256;
}

static void crossing(int64_t item, void *data)
{
    (void)data;
    struct batch s = {.routine = crossings[item].routine,
                      .precision = crossings[item].precision,
                      .uplo = item % 2 ? 'L' : 'U',
                      .trans = 'N',
                      .m = crossings[item].m,
                      .n = crossings[item].n,
                      .nrhs = crossings[item].nrhs,
                      .lda = crossings[item].m + 13,
                      .ldb = crossings[item].n + 5,
                      .count = crossings[item].count,
                      .int_size = item % 2 ? 8 : 4,
                      .pinned = crossings[item].pinned};
    new_problems(&s, 1);
    pose(&s, 0, NULL, CLASS_RANDOM, (uint64_t)item);
    struct slab slab = new_slab(&s);
    struct bl_job job = job_of(&s, &slab);
    struct bl_traffic traffic = {0};
    int64_t done = 0;
    if (bl_pipeline(engine, &job, &done, &traffic) != BL_OK || done != s.count)
        complain(&s, -1, "status", "not as if all had been done");
    char detail[120];
    int64_t in = bytes_of(&s, crossings[item].in),
            out = bytes_of(&s, crossings[item].out);
    snprintf(detail, sizeof detail, "%lld in and %lld out, not %lld and %lld",
             (long long)traffic.in, (long long)traffic.out, (long long)in,
             (long long)out);
    if (!about(traffic.in, in, s.count) || !about(traffic.out, out, s.count))
        complain(&s, -1, "bytes over the link", detail);
    drop_slab(&s, &slab);
    drop_problems(&s);
    const char *name = routine_name(s.routine, s.precision);
    verdict(s.why, "batch-bytes-%s-%c-%lld", name + 1, *name, (long long)item);
}

/* ---- faults of the field, batched ---- */

static struct batch small_batch(enum bl_routine_id r, enum bl_precision p, int64_t n,
                                int64_t count, int64_t inputs)
{
    struct batch s = {.routine = r,
                      .precision = p,
                      .uplo = 'L',
                      .trans = 'N',
                      .m = n,
                      .n = n,
                      .lda = n,
                      .ldb = n,
                      .count = count,
                      .int_size = 4,
                      .nrhs = routine_has(r, 'B') ? 1 : 0};
    new_problems(&s, inputs);
    return s;
}

static void expect_info(struct batch *s, const int64_t *info)
{
    for (int64_t k = 0; k < s->inputs; k++)
        if (s->problem[k].want_info != info[k])
            integers_differ(s, k, "netlib's INFO", 0, s->problem[k].want_info, info[k]);
}

/* Field fault 2: seven items, the third and the fifth singular. */
static void zero_pivots(enum bl_precision p)
{
    static const double leading_zero[] = {0, 1, 0, 0};
    static const int64_t info[] = {0, 0, 2, 0, 1, 0, 0};
    struct batch s = small_batch(BL_GETRF, p, 2, 7, 7);
    for (int64_t k = 0; k < 7; k++)
        pose(&s, k, k == 2 ? singular : k == 4 ? leading_zero : regular, CLASS_RANDOM, 1);
    expect_info(&s, info);
    run(&s);
    drop_problems(&s);
    verdict(s.why, "field-02-zero-pivots-%c-batch", "sdcz"[p]);
}

/* Field fault 6: the second of five not definite; both triangles, and posv. */
static void indefinite_item(enum bl_precision p)
{
    static const int64_t info[] = {0, 2, 0, 0, 0};
    struct batch s = {.count = 0};
    for (int k = 0; k < 4 && !*s.why; k++) {
        s = small_batch(k / 2 ? BL_POSV : BL_POTRF, p, 2, 5, 5);
        s.uplo = k % 2 ? 'U' : 'L';
        for (int64_t i = 0; i < 5; i++)
            pose(&s, i, i == 1 ? semidefinite : definite, CLASS_RANDOM, (uint64_t)i);
        expect_info(&s, info);
        run(&s);
        drop_problems(&s);
    }
    verdict(s.why, "field-06-indefinite-item-%c-batch", "sdcz"[p]);
}

/* Field fault 14: one matrix 1e5 times, the same bits in every item and run. */
static void race(enum bl_precision p)
{
    static const double six[] = {1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0,
                                 0, 1, 2, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1};
    static const int64_t ipiv[] = {1, 3, 4, 4, 5, 6};
    struct batch s = small_batch(BL_GETRF, p, 6, heavy ? 1000000 : 100000, 1);
    pose(&s, 0, six, CLASS_RANDOM, 1);
    for (int64_t k = 0; k < 6; k++)
        if (s.problem[0].want_ipiv[k] != ipiv[k])
            integers_differ(&s, 0, "netlib's IPIV", k, s.problem[0].want_ipiv[k],
                            ipiv[k]);
    for (int repeat = 0; repeat < 2 && !*s.why; repeat++)
        run(&s);
    drop_problems(&s);
    verdict(s.why, "field-14-six-by-six-%c-batch", "sdcz"[p]);
}

static void repeated_inverse(enum bl_precision p)
{
    static const double turn[] = {.8, .6, 0, -.6, .8, 0, 0, 0, 1};
    struct batch s = small_batch(BL_GETRI, p, 3, 2, 1);
    pose(&s, 0, turn, CLASS_RANDOM, 1);
    for (int64_t repeat = heavy ? 100000 : 5000; repeat > 0 && !*s.why; repeat--)
        run(&s);
    drop_problems(&s);
    verdict(s.why, "field-14-repeated-inverse-%c-batch", "sdcz"[p]);
}

static void many_cholesky(enum bl_precision p)
{
    struct batch s = small_batch(BL_POTRF, p, 64, heavy ? 10240 : 700, 1);
    pose(&s, 0, NULL, CLASS_RANDOM, 1);
    for (int repeat = 0; repeat < 2 && !*s.why; repeat++)
        run(&s);
    drop_problems(&s);
    verdict(s.why, "field-14-many-cholesky-%c-batch", "sdcz"[p]);
}

/* Field fault 16: 11 matrices with 200 right-hand sides, as a batch, singly, and a column
 * at a time; all have netlib's bits. */
static void batch_and_single(enum bl_precision p)
{
    static const enum bl_routine_id with_b[] = {BL_GESV, BL_GETRS, BL_POSV, BL_POTRS};
    struct batch s = {.count = 0};
    for (int k = 0; k < 4 && !*s.why; k++)
        for (int how = 0; how < 3 && !*s.why; how++) {
            s = small_batch(with_b[k], p, 100, how ? 1 : 11, 11);
            s.nrhs = how == 2 ? 1 : is_complex(p) ? 40 : 200;
            for (int64_t i = 0; i < s.inputs; i++)
                pose(&s, i, NULL, CLASS_INTEGER, (uint64_t)i);
            struct problem *all = s.problem;
            int64_t inputs = s.inputs;
            for (int64_t i = 0; i < (how ? inputs : 1) && !*s.why; i++) {
                s.problem = all + i;
                s.inputs = how ? 1 : inputs;
                run(&s);
            }
            s.problem = all;
            s.inputs = inputs;
            drop_problems(&s);
        }
    verdict(s.why, "field-16-batch-and-single-%c-batch", "sdcz"[p]);
}

static void anti_identity(struct matrix *a)
{
    for (int64_t j = 0; j < a->cols; j++)
        for (int64_t i = 0; i < a->rows; i++)
            matrix_put(a, i, j, i == a->cols - 1 - j, 0);
}

/* Field fault 17: offsets above 2^31 and 2^32. Sparse memory: five items far apart. With
 * --heavy the true thing, 524289 items that fill 2^32 bytes. */
static void far_apart(enum bl_precision p)
{
    enum { N = 32, ITEMS = 5 };
    int64_t element = (int64_t)element_bytes(p),
            stride = ((int64_t)1 << 32) / element + 7;
    bool full = heavy && p == BL_D;
    int64_t items = full ? 524289 : ITEMS, ipiv_stride = full ? N : stride;
    char why[200] = "";
    if (full)
        stride = N * N;
    size_t bytes = (size_t)(items * stride * element);
    size_t pivots = (size_t)(items * ipiv_stride) * sizeof(int32_t);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *a = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    int32_t *ipiv = mmap(NULL, pivots, PROT_READ | PROT_WRITE, flags, -1, 0);
    int32_t *info = calloc((size_t)items, sizeof *info);
    if (a == MAP_FAILED || (void *)ipiv == MAP_FAILED || !info) {
        printf("skip field-17-far-apart-%c-batch - no address space\n", "sdcz"[p]);
        return;
    }
    struct matrix view = {p, N, N, N, 0, a};
    for (int64_t i = 0; i < items; i++) {
        view.data = a + i * stride * element;
        anti_identity(&view);
        for (int64_t k = 0; k < N && i == items - 1; k++)
            matrix_put(&view, k, N - 1, 0, 0);
    }
    struct bl_job job = {.routine = BL_GETRF,
                         .precision = p,
                         .int_size = 4,
                         .m = N,
                         .n = N,
                         .batch = items,
                         .a = {a, NULL, N, stride},
                         .ipiv = {ipiv, NULL, 0, ipiv_stride},
                         .info = {info, NULL, 0, 1}};
    struct bl_traffic traffic = {0};
    int64_t done = 0;
    if (bl_pipeline(engine, &job, &done, &traffic) != BL_OK || done != items)
        snprintf(why, sizeof why, "%lld of %lld done", (long long)done, (long long)items);
    for (int64_t i = 0; i < items && !*why; i++) {
        bool last = i == items - 1;
        if (info[i] != (last ? N : 0))
            snprintf(why, sizeof why, "item %lld: INFO %d", (long long)i, info[i]);
        for (int64_t k = 0; k < N && !*why; k++)
            if (ipiv[i * ipiv_stride + k] != (k < N / 2 ? N - k : k + 1))
                snprintf(why, sizeof why, "item %lld: IPIV(%lld) is %d", (long long)i,
                         (long long)k + 1, ipiv[i * ipiv_stride + k]);
        view.data = a + i * stride * element;
        for (int64_t k = 0; k < N * N && !*why; k++) {
            bool one = k % N == k / N && !(last && k / N == N - 1);
            if (matrix_get(&view, k % N, k / N) != one)
                snprintf(why, sizeof why, "item %lld: A is not the identity",
                         (long long)i);
        }
    }
    munmap(a, bytes);
    munmap(ipiv, pivots);
    free(info);
    verdict(why, "field-17-far-apart-%c-batch", "sdcz"[p]);
}

static void (*const field[])(enum bl_precision) = {
    zero_pivots,   indefinite_item,  race,     repeated_inverse,
    many_cholesky, batch_and_single, far_apart};
#define FIELD_TESTS ((int64_t)(sizeof field / sizeof *field))

static void field_test(int64_t item, void *data)
{
    (void)data;
    field[item / BL_PRECISIONS]((enum bl_precision)(item % BL_PRECISIONS));
}

/* ---- out of memory and failing in mid-batch, by the mock's order ---- */

static const struct mock_order nothing = {.step = MOCK_STEPS};

static struct batch random_batch(enum bl_routine_id r, int64_t n, int64_t count,
                                 bool tight)
{
    struct batch s = small_batch(r, BL_D, n, count, 13);
    s.tight = tight;
    for (int64_t k = 0; k < s.inputs; k++)
        pose(&s, k, NULL, CLASS_RANDOM, (uint64_t)k);
    return s;
}

static uint64_t steps_taken(enum mock_step step)
{
    struct mock_counts counted;
    mock_counts(&counted);
    return counted.step[step];
}

/* Must come first: the pipeline keeps the memory that it has got. */
static void out_of_memory(void)
{
    struct batch s = random_batch(BL_GESV, 70, 1, false);
    mock_order(&(struct mock_order){.step = MOCK_STEPS, .memory = 4096});
    run_expecting(&s, BL_NOMEM, 0);
    drop_problems(&s);
    verdict(s.why, "batch-no-memory-for-one");

    s = random_batch(BL_GESV, 70, 200, false);
    mock_order(&(struct mock_order){.step = MOCK_STEPS, .memory = 4096});
    run_expecting(&s, BL_NOMEM, 0);
    drop_problems(&s);
    verdict(s.why, "batch-no-memory-for-any");

    s = random_batch(BL_GETRI, 40, 2000, false);
    mock_order(&(struct mock_order){.step = MOCK_STEPS, .memory = (uint64_t)1 << 20});
    if (run(&s) && steps_taken(MOCK_RUN) < 20)
        complain(&s, -1, "chunks", "not as many as 1 MiB of device memory makes");
    drop_problems(&s);
    verdict(s.why, "batch-little-memory");
    mock_order(&nothing);
}

/* The k-th launch, copy or wait of a batch of several chunks fails: what is done is
 * right, the rest is untouched, and a later call is served. Where the device can not read
 * pinned memory itself, as where a part of it is not, the call is served by the ring. */
static void failing_in_mid_batch(bool pinned)
{
    static const enum mock_step step[] = {MOCK_RUN, MOCK_COPY_IN, MOCK_COPY_OUT,
                                          MOCK_WAIT};
    static const uint64_t at[] = {1, 2, 3, 5, 8, 9, 13, 18, 21, 34};
    struct batch s = random_batch(BL_GETRF, 16, 70000, pinned);
    int partly = 0, by_ring = 0;
    s.pinned = pinned;
    for (int k = 0; k < 4; k++)
        for (size_t i = 0; i < sizeof at / sizeof *at && !*s.why; i++) {
            mock_order(
                &(struct mock_order){.step = step[k], .at = at[i], .status = BL_FAULT});
            struct slab slab = new_slab(&s);
            struct bl_job job = job_of(&s, &slab);
            struct bl_traffic traffic = {0};
            int64_t done = -1;
            enum bl_status status = bl_pipeline(engine, &job, &done, &traffic);
            bool fired = steps_taken(step[k]) >= at[i];
            partly += done > 0 && done < s.count;
            const bool served = pinned && step[k] == MOCK_COPY_IN && status == BL_OK;
            by_ring += fired && served;
            if (status != (fired ? BL_FAULT : BL_OK) && !served)
                complain(&s, -1, "status", "not the one ordered");
            for (int64_t item = 0; item < s.count && !*s.why; item++)
                if (!(item < done ? check_item(&s, &slab, item)
                                  : check_untouched(&s, &slab, item)))
                    break;
            drop_slab(&s, &slab);
            mock_order(&nothing);
        }
    if (partly < 8)
        complain(&s, -1, "faults", "too few came between the first and the last chunk");
    if (pinned && by_ring == 0)
        complain(&s, -1, "faults", "no refused copy was made good by the ring");
    if (!*s.why)
        run(&s);
    mock_order(&(struct mock_order){.step = MOCK_STEPS, .lose_launch = 1});
    if (!*s.why)
        run_expecting(&s, BL_FAULT, 0);
    mock_order(&nothing);
    drop_problems(&s);
    verdict(s.why, "batch-failing-in-the-middle%s", pinned ? "-pinned" : "");
}

/* Every third problem of a chunk, or the only one, comes back to be done elsewhere: the
 * others are right, and of these nothing but INFO is written. */
static void handed_back(int64_t item)
{
    struct batch s = large_batch(item);
    struct slab slab = new_slab(&s);
    struct bl_job job = job_of(&s, &slab);
    struct bl_traffic traffic = {0};
    int64_t done = -1, again = 0;
    mock_order(
        &(struct mock_order){.step = MOCK_STEPS, .hand_back = s.count > 1 ? 3 : 1});
    enum bl_status status = bl_pipeline(engine, &job, &done, &traffic);
    mock_order(&nothing);
    if (status != BL_OK || done != s.count)
        complain(&s, -1, "status", "not as if all had been done");
    for (int64_t i = 0; i < s.count && !*s.why; i++) {
        int64_t info = integer_get(slab.info, i * slab.info_stride, s.int_size);
        again += info == BL_INFO_REDO;
        if (info == BL_INFO_REDO)
            check_only_info(&s, &slab, i, info);
        else
            check_item(&s, &slab, i);
    }
    if (!*s.why && (again != (int64_t)traffic.again || again < (s.count + 3) / 4 ||
                    again > (s.count + 2) / 3))
        complain(&s, -1, "handed back", "not as many as there are");
    drop_slab(&s, &slab);
    drop_problems(&s);
    const char *name = routine_name(s.routine, s.precision);
    verdict(s.why, "batch-handed-back-%s-%c-%lld", name + 1, *name, (long long)item);
}

/* One matrix whose first columns are worked on while the others are on their way: the
 * right result, also where a step of it fails, and then nothing written. The mock turns
 * the bits of columns it was given, so one that is copied later, or again, comes out
 * wrong. */
static const struct {
    enum bl_routine_id routine;
    enum bl_precision precision;
    int64_t m, n, nrhs, gap, part;
    bool pinned;
} arriving[] = {
    {BL_GETRF, BL_D, 1200000, 16, 0, 0, 5, false},
    {BL_GETRF, BL_Z, 250000, 33, 0, 1, 10, false},
    {BL_GETRF, BL_S, 1500000, 13, 0, 3, 1, true},
    {BL_GESV, BL_D, 100, 100, 90000, 0, 30, false}, /* B is what takes long */
    {BL_GESV, BL_D, 100, 100, 90000, 0, 30, true},
    {BL_GETRF, BL_D, 1200000, 16, 0, 0, 5, true},
};

#define PINNED_FAULTS 5 /* the item */

static void in_parts(int64_t item)
{
    struct batch s = {.routine = arriving[item].routine,
                      .precision = arriving[item].precision,
                      .uplo = 'L',
                      .trans = 'N',
                      .m = arriving[item].m,
                      .n = arriving[item].n,
                      .nrhs = arriving[item].nrhs,
                      .lda = arriving[item].m + arriving[item].gap,
                      .ldb = arriving[item].m,
                      .count = 1,
                      .int_size = 4,
                      .pinned = arriving[item].pinned};
    /* Slow enough for a part to be run as soon as it may be. */
    const struct mock_order parts = {
        .step = MOCK_STEPS, .part = arriving[item].part, .slow_us = 3000};
    struct mock_counts before, after;
    new_problems(&s, 1);
    pose(&s, 0, NULL, CLASS_RANDOM, (uint64_t)item);
    mock_order(&parts);
    mock_counts(&before);
    run(&s);
    mock_counts(&after);
    int64_t wanted = (s.n + parts.part - 1) / parts.part;
    if (!*s.why && (int64_t)(after.parts - before.parts) != wanted - 1)
        complain(&s, -1, "parts", "not as many as ordered");
    static const enum mock_step steps[] = {MOCK_RUN, MOCK_COPY_IN, MOCK_WAIT};
    int faults = item == 0 ? 3 : item == PINNED_FAULTS ? 2 : 0;
    for (int k = 0; k < faults; k++)
        for (uint64_t at = 1; at < 20 && !*s.why; at += k ? 3 : 1) {
            struct mock_order order = parts;
            order.step = steps[k];
            order.at = at;
            order.status = BL_FAULT;
            mock_order(&order);
            struct slab slab = new_slab(&s);
            struct bl_job job = job_of(&s, &slab);
            struct bl_traffic traffic = {0};
            int64_t done = -1;
            /* From the first wait for results on the process would end. */
            if (k < 2 || at <= 4) {
                enum bl_status status = bl_pipeline(engine, &job, &done, &traffic);
                bool fired = steps_taken(steps[k]) >= at;
                const bool by_ring =
                    s.pinned && steps[k] == MOCK_COPY_IN && status == BL_OK && done == 1;
                if (by_ring)
                    check_item(&s, &slab, 0);
                else if (status != (fired ? BL_FAULT : BL_OK) || done != !fired)
                    complain(&s, -1, "status", "not the one ordered");
                else if (fired)
                    check_untouched(&s, &slab, 0);
            }
            drop_slab(&s, &slab);
        }
    mock_order(&nothing);
    if (!*s.why)
        run(&s); /* and as a whole */
    drop_problems(&s);
    const char *name = routine_name(s.routine, s.precision);
    verdict(s.why, "batch-in-parts-%s-%c-%lld%s", name + 1, *name, (long long)item,
            bl_workers_count() == 1 ? "-without-threads" : "");
}

static void all_in_parts(void)
{
    for (int64_t i = 0; i < (int64_t)(sizeof arriving / sizeof *arriving); i++)
        in_parts(i);
}

/* This program again, with an option that lets it start no thread. */
static void all_without_threads(void)
{
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setenv("BATCHLAPACK_THREADS", "1", 1);
        execl("/proc/self/exe", "batch", "--parts", (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    verdict(status == 0 ? "" : "see above", "batch-in-parts-without-threads");
}

static int64_t threads_now(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int64_t count = 0;
    for (struct dirent *d; tasks && (d = readdir(tasks));)
        count += *d->d_name != '.';
    closedir(tasks);
    return count;
}

/* Managed memory goes through the ring, as pageable memory does. */
static void managed(void)
{
    static const int64_t count[] = {1, 3000};
    struct batch s = {.count = 0};
    uint64_t copies[2];
    for (int k = 0; k < 4 && !*s.why; k++) {
        s = random_batch(BL_GETRF, k < 2 ? 1500 : 32, count[k / 2], true);
        s.pinned = k % 2;
        mock_order(&(struct mock_order){.step = MOCK_STEPS, .managed = k % 2});
        run(&s);
        copies[k % 2] = steps_taken(MOCK_COPY_IN);
        if (k % 2 && !*s.why && copies[0] != copies[1])
            complain(&s, -1, "copies", "not as from pageable memory");
        mock_order(&nothing);
        drop_problems(&s);
    }
    verdict(s.why, "batch-managed");
}

/* A chunk's matrices lie one behind the other, however the caller's do: its work space is
 * what such ones need. */
static void workspace_of_pointers(void)
{
    struct batch s = {.count = 0};
    for (int k = 0; k < 4 && !*s.why; k++) {
        s = random_batch(BL_GETRF, 32, k < 2 ? 3 : 300, false);
        s.pointers = k % 2 == 0; /* first: memory is kept */
        mock_order(&(struct mock_order){.step = MOCK_STEPS,
                                        .strided_work = (uint64_t)256 << 20});
        run(&s);
        mock_order(&nothing);
        drop_problems(&s);
    }
    verdict(s.why, "batch-workspace-of-pointers");
}

/* Chunks of one batch are under way at the same time, in bounded memory. */
static void overlap(void)
{
    struct batch s = random_batch(BL_GETRF, 32, 4000, true);
    struct mock_counts counted;
    for (int pinned = 0; pinned < 2; pinned++) {
        uint64_t least =
            (uint64_t)(BL_TRACKS - 1 + pinned); /* one more that needs no packing */
        s.pinned = pinned;
        mock_order(&nothing);
        run(&s);
        mock_counts(&counted);
        if (counted.most_under_way < least || counted.most_under_way > 8)
            complain(&s, -1, "chunks under way",
                     counted.most_under_way < least ? "few" : "many");
    }
    drop_problems(&s);
    verdict(s.why, "batch-overlap");
}

/* ---- past 2^31 elements ---- */

/* One s matrix of 2^27 + 1 rows and 17 columns. Column j holds a 1 in the row m - 1 - j
 * and a half in the middle, so every pivot comes from the last rows, L is the halves, and
 * the products of the updates are all zero. */
static void beyond_32_bits(void)
{
    const int64_t m = ((int64_t)1 << 27) + 1, n = 17, middle = m / 2;
    float *a = calloc((size_t)(m * n), sizeof *a);
    int32_t ipiv[17], info = -1;
    struct bl_job job = {.routine = BL_GETRF,
                         .precision = BL_S,
                         .int_size = 4,
                         .m = m,
                         .n = n,
                         .batch = 1,
                         .a = {a, NULL, m, 0},
                         .ipiv = {ipiv, NULL, 0, 0},
                         .info = {&info, NULL, 0, 0}};
    struct bl_traffic traffic = {0};
    int64_t done = 0;
    if (!a) {
        printf("skip batch-beyond-32-bits - no 9 GB of memory\n");
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        a[j * m + m - 1 - j] = 1;
        a[j * m + middle + j] = 0.5f;
    }
    bool good = bl_pipeline(engine, &job, &done, &traffic) == BL_OK && info == 0;
    for (int64_t j = 0; j < n && good; j++) {
        good = ipiv[j] == m - j;
        /* Row k has gone to row m - 1 - k, a row of zeros but for the pivots. */
        for (int64_t i = 0; i < m && good; i++)
            good = a[j * m + i] == (i == j ? 1 : i == middle + j ? 0.5f : 0);
    }
    verdict(good ? "" : "wrong factors, IPIV or INFO", "batch-beyond-32-bits");
    free(a);
}

int main(int argc, char **argv)
{
    bool parts = argc > 1 && strcmp(argv[1], "--parts") == 0; /* these alone */
    heavy = argc > 1 && strcmp(argv[1], "--heavy") == 0;
    tiny = argc > 1 && strcmp(argv[1], "--tiny") == 0;
    small = tiny || (argc > 1 && strcmp(argv[1], "--small") == 0);
    if (!reference_open())
        return 0;
    enum bl_reason why = BL_REASONS;
    engine = bl_engine_for(0, true, &why);
    verdict(engine ? "" : bl_engine_why(), "batch-engine");
    if (!engine)
        return 1;
    find_mock();
    if (parts) {
        all_in_parts();
        if (bl_workers_count() == 1)
            verdict(threads_now() == 1 ? "" : "some are left", "batch-no-threads");
        return failures() != 0;
    }
    if (mock_order)
        out_of_memory();
    else
        printf("skip batch-out-of-memory - only the mock engine runs out on order\n");
    in_parallel((int64_t)BL_LAPACK_ROUTINES * BL_PRECISIONS, sizes, NULL);
    if (small)
        return failures() != 0;
    in_parallel((int64_t)BL_LAPACK_ROUTINES * BL_PRECISIONS, counts, NULL);
    in_parallel((int64_t)(sizeof large / sizeof *large), several_chunks, NULL);
    in_parallel(WHOLE_TRIANGLES, large_triangle, NULL);
    in_parallel((int64_t)(sizeof crossings / sizeof *crossings), crossing, NULL);
    in_parallel(FIELD_TESTS * BL_PRECISIONS, field_test, NULL);
    if (heavy && !mock_order) /* netlib would take minutes */
        beyond_32_bits();
    if (mock_order) {
        overlap();
        managed();
        workspace_of_pointers();
        failing_in_mid_batch(false);
        failing_in_mid_batch(true);
        for (int64_t i = 0; i < (int64_t)(sizeof large / sizeof *large); i++)
            handed_back(i);
        all_in_parts();
        all_without_threads();
        for (int64_t i = WHOLE_TRIANGLES; i < TRIANGLES; i++)
            large_triangle(i, NULL);
    }
    return failures() != 0;
}
