/* What is solved, inverted and computed with LU factors of order 33 to 1024, straight
 * through an engine: gesv and getrs bit by bit against netlib, fast getrs by residual,
 * the inverses by INFO, by where they are NaN and Inf, and by their residual
 * (the largest at most five times netlib's), gedet by netlib's factors.
 *
 *     mid_solve [MATRICES [LARGEST [PRECISIONS]]]
 *     mid_solve shapes | repeats | small [PRECISIONS]
 *
 * MATRICES: of gesv and of getrs 'N' in a precision, about (320); of all others half as
 * many, of transposed getrs a sixth. LARGEST: the largest order (300). "sdcz". The
 * engine is the one that BATCHLAPACK_ENGINE names.
 *
 * `shapes`: a few matrices of given orders to 1024, with up to 2000 right-hand sides.
 * `repeats`: some batches a hundred times; the bits may not change. `small`: a few
 * matrices for each kind of kernel, for tools that slow everything down.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bl.h"
#include "reference.h"

enum {
    GAP = 5,
    GUARD = -99,
    EACH = 11, /* problems of a batch */
    FEW = 5,   /* of a batch of the mid kernels, at least */
    CLASSES = CLASS_INDEFINITE,
    ILL = CLASSES, /* random, of a large condition */
    JUDGED = ILL + 1,
    ENOUGH = 60, /* matrices of a class that have a largest residual */
    REPEATS = 100
};

struct problem {
    enum matrix_class class;
    int64_t n;
    struct matrix original, a, b, x; /* as they go in, but `original`: getrf's input */
    struct matrix want_a, want_b;    /* want_a of the inverses: netlib's */
    int32_t *ipiv, *want_ipiv;
    int64_t want_info;
    bool ill; /* of a large condition */
    size_t at_a, at_b, at_x;
};

/* The largest residuals. */
struct largest {
    double ours, theirs;
    int64_t matrices;
};

struct batch {
    enum bl_routine_id routine;
    char trans; /* of getrs */
    bool fast;
    enum bl_precision precision;
    int int_size;
    bool pointers, items, in_place;
    bool ordinary; /* no subnormal numbers, which take netlib long */
    int64_t n, nrhs, count;
    struct problem *problem; /* number i is a copy of problem i modulo EACH */
    char *host, *device;     /* all that the engine is given */
    void *queue, *work;
    size_t used, ipiv, info, phase, logabs;
    struct largest of[JUDGED]; /* by class */
    char why[500];
};

static const struct bl_engine *engine;
static int64_t largest = 300;

static bool apart(const struct batch *b)
{
    return b->routine == BL_GEINV || b->routine == BL_GETRI_OOP;
}

static bool factors_given(const struct batch *b)
{
    return b->routine == BL_GETRS || b->routine == BL_GETRI || b->routine == BL_GETRI_OOP;
}

static bool inverts(const struct batch *b)
{
    return apart(b) || b->routine == BL_GETRI;
}

static void fault(struct batch *b, int64_t i, const char *what, const char *detail)
{
    if (!*b->why)
        snprintf(b->why, sizeof b->why,
                 "n = %lld of %lld, %lld right, %s%s%s, item %lld (%s): %s %s",
                 (long long)b->problem[i].n, (long long)b->n, (long long)b->nrhs,
                 b->pointers ? "pointers" : "strided", b->items ? ", items" : "",
                 b->in_place ? ", in place" : "", (long long)i,
                 matrix_class_name[b->problem[i].class], what, detail);
}

/* ---- what is asked and what netlib says ---- */

static int64_t netlib(const struct batch *b, struct problem *p, enum bl_routine_id r,
                      struct matrix *a, struct matrix *x, int32_t *ipiv)
{
    struct matrix work = matrix_new(b->precision, 64 * p->n, 1, 64 * p->n, 0);
    struct call c = {.routine = r,
                     .precision = b->precision,
                     .trans = (char[]){b->trans, 0},
                     .m = (int32_t)p->n,
                     .n = (int32_t)p->n,
                     .nrhs = (int32_t)b->nrhs,
                     .lda = (int32_t)a->ld,
                     .ldb = (int32_t)(x ? x->ld : p->n),
                     .lwork = (int32_t)(64 * p->n),
                     .a = a->data,
                     .b = x ? x->data : NULL,
                     .work = work.data,
                     .ipiv = ipiv};
    reference_call(&c);
    matrix_free(&work);
    return c.info;
}

/* Of the condition 10^exponent. */
static void fill_ill(struct matrix *a, double exponent, struct rng *r)
{
    int64_t n = a->cols;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
            matrix_put(a, i, j,
                       i == j ? pow(10, -exponent * (double)i / (double)(n - 1)) : 0, 0);
    for (int k = 0; k < 2; k++) {
        matrix_reflect(a, r, true);
        matrix_reflect(a, r, false);
    }
}

static void pose(int64_t number, void *data)
{
    struct batch *b = (struct batch *)data + number / EACH;
    struct problem *p = &b->problem[number % EACH];
    struct rng r = {(uint64_t)number * 65537 + 5 + (uint64_t)b->routine * 99991};
    if (number % EACH >= b->count)
        return;
    p->class = (enum matrix_class)(number % CLASSES);
    enum matrix_class of_b = (enum matrix_class)(number / EACH % CLASSES);
    if (b->ordinary) { /* every class in two batches of a few */
        p->class =
            (enum matrix_class)((number / EACH * FEW + number % EACH) % CLASS_SUBNORMAL);
        of_b = of_b % CLASS_SUBNORMAL;
    }
    p->n = b->items && number % EACH > 0 ? rng_between(&r, b->n / 2 + 1, b->n) : b->n;
    int64_t below = b->n % 3;
    p->original = matrix_new(b->precision, p->n, p->n, b->n + below, GAP);
    p->b = matrix_new(b->precision, p->n, b->nrhs, b->n + 2 - below, GAP);
    p->x = matrix_new(b->precision, p->n, p->n, b->n + (b->in_place ? below : 1), GAP);
    p->ipiv = calloc((size_t)b->n + 1, sizeof *p->ipiv);
    p->want_ipiv = calloc((size_t)b->n + 1, sizeof *p->want_ipiv);
    matrix_fill(&p->original, p->class, rng_next(&r));
    p->ill = inverts(b) && p->class == CLASS_RANDOM && number / EACH % 2;
    if (p->ill)
        fill_ill(&p->original,
                 (is_double(b->precision) ? 1.0 : 0.4) * (double)rng_between(&r, 1, 13),
                 &r);
    matrix_fill(&p->b, of_b, rng_next(&r));
    p->want_a = matrix_copy(&p->original);
    p->want_b = matrix_copy(&p->b);
    if (b->routine == BL_GESV) {
        p->a = matrix_copy(&p->original);
        p->want_info = netlib(b, p, BL_GESV, &p->want_a, &p->want_b, p->want_ipiv);
        return;
    }
    p->want_info = netlib(b, p, BL_GETRF, &p->want_a, NULL, p->want_ipiv);
    p->a = matrix_copy(factors_given(b) ? &p->want_a : &p->original);
    if (factors_given(b))
        memcpy(p->ipiv, p->want_ipiv, (size_t)p->n * sizeof *p->ipiv);
    if (b->routine == BL_GETRS)
        p->want_info = netlib(b, p, BL_GETRS, &p->want_a, &p->want_b, p->want_ipiv);
    if (inverts(b))
        p->want_info = netlib(b, p, BL_GETRI, &p->want_a, NULL, p->want_ipiv);
}

static void drop(struct batch *b)
{
    for (int64_t i = 0; i < b->count && i < EACH; i++) {
        struct problem *p = &b->problem[i];
        struct matrix *all[] = {&p->original, &p->a,      &p->b,
                                &p->x,        &p->want_a, &p->want_b};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            matrix_free(all[k]);
        free(p->ipiv);
        free(p->want_ipiv);
    }
    free(b->problem);
}

/* ---- on the device ---- */

static void must(enum bl_status status, const char *what)
{
    if (status != BL_OK) {
        printf("not ok mid-solve-%s - status %d\n", what, (int)status);
        exit(1);
    }
}

/* At a multiple of 16. */
static size_t take(struct batch *b, size_t bytes)
{
    size_t at = (b->used + 15) / 16 * 16;
    b->used = at + bytes;
    return at;
}

static struct matrix *matrix_of(struct problem *p, char which, size_t **at)
{
    *at = which == 'a' ? &p->at_a : which == 'b' ? &p->at_b : &p->at_x;
    return which == 'a' ? &p->a : which == 'b' ? &p->b : &p->x;
}

/* The first time for the offsets alone, the second to fill memory. */
static struct bl_operand place(struct batch *b, char which)
{
    struct bl_operand o = {NULL, NULL, 0, 0};
    size_t most = 0, *at;
    for (int64_t i = 0; i < b->count; i++) {
        const struct matrix *m = matrix_of(&b->problem[i], which, &at);
        most = matrix_bytes(m) > most ? matrix_bytes(m) : most;
        o.ld = m->ld;
    }
    /* Aligned as a matrix may be, or only as its numbers must be. */
    const bool whole = (b->int_size == 8) == b->pointers;
    size_t all =
        take(b, most * (size_t)b->count + 16) + (whole ? 0 : real_bytes(b->precision));
    size_t list = take(b, (size_t)b->count * sizeof(void *));
    for (int64_t i = 0; i < b->count; i++) {
        const struct matrix *m = matrix_of(&b->problem[i], which, &at);
        *at = all + most * (size_t)(b->pointers ? b->count - 1 - i : i);
        void *there = b->device + *at;
        if (!b->host)
            continue;
        memcpy(b->host + *at, m->data, matrix_bytes(m));
        memcpy(b->host + list + (size_t)i * sizeof there, &there, sizeof there);
    }
    o.p = b->device + all;
    o.stride = (int64_t)(most / element_bytes(b->precision));
    if (b->pointers)
        o.array = (void *const *)(void *)(b->device + list);
    return o;
}

static void put_integer(const struct batch *b, size_t at, int64_t k, int64_t value)
{
    if (b->host)
        integer_put(b->host + at, k, b->int_size, value);
}

static struct bl_job job_of(struct batch *b)
{
    const size_t count = (size_t)b->count, integer = (size_t)b->int_size;
    const int64_t stride = b->n + 1;
    b->used = 0;
    struct bl_job job = {.routine = b->routine,
                         .precision = b->precision,
                         .arithmetic = b->fast ? BL_FAST : BL_EXACT,
                         .trans = b->routine == BL_GETRS ? b->trans : 0,
                         .int_size = b->int_size,
                         .m = b->n,
                         .n = b->n,
                         .nrhs = b->nrhs,
                         .block = 64,
                         .batch = b->count};
    b->ipiv = take(b, count * (size_t)stride * integer);
    b->info = take(b, count * integer);
    b->phase = take(b, count * 16);
    b->logabs = take(b, count * 8);
    job.a = place(b, 'a');
    if (b->nrhs > 0)
        job.b = place(b, 'b');
    if (apart(b))
        job.x = b->in_place ? job.a : place(b, 'x');
    size_t items = take(b, count * sizeof(struct bl_item));
    for (int64_t i = 0; i < b->count; i++) {
        const struct problem *p = &b->problem[i];
        struct bl_item item = {i, p->n, p->n, p->a.ld, p->x.ld};
        for (int64_t k = 0; k < stride; k++)
            put_integer(b, b->ipiv, i * stride + k,
                        k < p->n && p->ipiv[k] ? p->ipiv[k] : GUARD);
        put_integer(b, b->info, i, GUARD);
        if (b->host)
            memcpy(b->host + items + (size_t)i * sizeof item, &item, sizeof item);
    }
    if (b->items)
        job.items = (const struct bl_item *)(void *)(b->device + items);
    job.ipiv = (struct bl_operand){b->device + b->ipiv, NULL, 0, stride};
    job.info = (struct bl_operand){b->device + b->info, NULL, 0, 1};
    if (b->routine == BL_GEDET) {
        job.phase = (struct bl_operand){b->device + b->phase, NULL, 0, 1};
        job.logabs = (struct bl_operand){b->device + b->logabs, NULL, 0, 1};
    }
    return job;
}

static void open_memory(struct batch *b)
{
    void *p;
    (void)job_of(b);
    must(engine->queue_open(&b->queue), "queue");
    must(engine->host_alloc(b->used, &p), "host-memory");
    b->host = p;
    memset(b->host, 0, b->used);
    must(engine->device_alloc(b->used, &p), "device-memory");
    b->device = p;
    struct bl_job job = job_of(b);
    size_t work = engine->workspace(&job);
    if (work)
        must(engine->device_alloc(work, &b->work), "work-space");
}

static void run(struct batch *b)
{
    struct bl_job job = job_of(b);
    job.work = b->work;
    must(engine->copy_in(b->queue, b->device, b->host, b->used), "copy-in");
    must(engine->run(&job, b->queue), "run");
    must(engine->copy_out(b->queue, b->host, b->device, b->used), "copy-out");
    must(engine->wait(b->queue), "wait");
}

static void close_memory(struct batch *b)
{
    if (b->work)
        must(engine->device_free(b->work), "work-free");
    must(engine->device_free(b->device), "device-free");
    must(engine->host_free(b->host), "host-free");
    must(engine->queue_close(b->queue), "queue-close");
}

/* ---- whether it is right ---- */

static struct matrix view(const struct batch *b, const struct matrix *m, size_t at)
{
    struct matrix v = *m;
    v.data = b->host + at;
    return v;
}

static void note(struct largest *l, double ours, double theirs)
{
    l->ours = ours > l->ours || isnan(ours) ? ours : l->ours;
    l->theirs = theirs > l->theirs || isnan(theirs) ? theirs : l->theirs;
    l->matrices++;
}

static void check_inverse(struct batch *b, int64_t i)
{
    struct problem *p = &b->problem[i];
    char first[300] = "";
    bool x_is_a = !apart(b) || b->in_place;
    const struct matrix *before = x_is_a ? &p->a : &p->x;
    struct matrix a = view(b, &p->a, p->at_a);
    struct matrix x = view(b, before, x_is_a ? p->at_a : p->at_x);
    if (touched(&x, before, 0, first, sizeof first))
        fault(b, i, "the inverse's surroundings:", first);
    if (!x_is_a && memcmp(a.data, p->a.data, matrix_bytes(&p->a)))
        fault(b, i, "A", "was written");
    if (p->want_info && b->routine == BL_GETRI &&
        differing(&a, &p->a, 0, -1, false, first, sizeof first))
        fault(b, i, "A of a singular matrix", first);
    if (p->want_info)
        return;
    if (!is_finite(&p->original, 0)) {
        if (misplaced(&x, &p->want_a, first, sizeof first))
            fault(b, i, "the inverse", first);
    } else if (!is_finite(&p->want_a, 0)) {
        return; /* something on netlib's way has overflowed */
    } else if (p->class == CLASS_RANDOM || p->class == CLASS_INTEGER ||
               p->class == CLASS_TIED || p->class == CLASS_NEGZERO ||
               p->class == CLASS_GRADED) {
        note(&b->of[p->ill ? (int)ILL : (int)p->class],
             inverse_residual(&p->original, &x, 0),
             inverse_residual(&p->original, &p->want_a, 0));
    }
}

static void check_determinant(struct batch *b, int64_t i)
{
    struct problem *p = &b->problem[i];
    const bool wide = is_double(b->precision);
    const size_t real = wide ? 8 : 4, parts = is_complex(b->precision) ? 2 : 1;
    double got[3] = {0};
    for (size_t k = 0; k < 3; k++) {
        const char *from = b->host + (k < 2 ? b->phase + ((size_t)i * parts + k) * real
                                            : b->logabs + (size_t)i * real);
        float narrow;
        if (k == 1 && parts == 1)
            continue;
        memcpy(&narrow, from, 4);
        got[k] = (double)narrow;
        if (wide)
            memcpy(&got[k], from, 8);
    }
    char text[200];
    double eps = epsilon_of(b->precision) * (double)(4 * p->n + 8);
    long double complex phase = 1;
    long double logabs = 0;
    for (int64_t k = 0; k < p->n; k++) {
        long double complex u = matrix_get(&p->want_a, k, k);
        phase *= u / cabsl(u) * (p->want_ipiv[k] == k + 1 ? 1 : -1);
        logabs += logl(cabsl(u));
    }
    snprintf(text, sizeof text, "%g,%g %g, not %Lg,%Lg %Lg", got[0], got[1], got[2],
             creall(phase), cimagl(phase), logabs);
    if (memcmp(b->host + p->at_a, p->a.data, matrix_bytes(&p->a)))
        fault(b, i, "A", "was written");
    if (p->want_info) {
        if (got[0] != 0 || got[1] != 0 || got[2] != -HUGE_VAL)
            fault(b, i, "a singular matrix's determinant", text);
    } else if (is_finite(&p->want_a, 0)) {
        if (!(fabsl(creall(phase) - got[0]) <= eps) ||
            !(fabsl(cimagl(phase) - got[1]) <= eps) ||
            !(fabsl(logabs - got[2]) <= eps * (1 + fabsl(logabs) + 90 * wide)))
            fault(b, i, "determinant", text);
    }
}

static double largest_of(const struct matrix *m)
{
    double most = 0;
    for (int64_t j = 0; j < m->cols; j++)
        for (int64_t i = 0; i < m->rows; i++) {
            const double x = (double)cabsl(matrix_get(m, i, j));
            most = x > most || isnan(x) ? x : most;
        }
    return most;
}

/* Whether no sum on the way to netlib's solution overflows, whatever its order: |L| is at
 * most 1, in abs1. */
static bool far_from_overflow(const struct batch *b, const struct problem *p)
{
    const double n = (double)p->n, huge = is_double(b->precision) ? 0x1p1023 : 0x1p127;
    const double x = 4 * n * largest_of(&p->want_b), u = n * largest_of(&p->want_a);
    return x < huge && (u < 1 || x < huge / u);
}

static void check(struct batch *b, int64_t i)
{
    struct problem *p = &b->problem[i];
    char first[300] = "";
    int64_t info = integer_get(b->host + b->info, i, b->int_size);
    bool zeros =
        holds_negative_zero(&p->a, 0) || (b->nrhs > 0 && holds_negative_zero(&p->b, 0));
    snprintf(first, sizeof first, "%lld, not %lld", (long long)info,
             (long long)p->want_info);
    if (info != p->want_info)
        fault(b, i, "INFO", first);
    for (int64_t k = 0; k <= b->n; k++) {
        int64_t want = k >= p->n               ? GUARD
                       : b->routine == BL_GESV ? p->want_ipiv[k]
                       : p->ipiv[k]            ? p->ipiv[k]
                                               : GUARD;
        if (integer_get(b->host + b->ipiv, i * (b->n + 1) + k, b->int_size) != want)
            fault(b, i, "IPIV", "");
    }
    if (inverts(b)) {
        check_inverse(b, i);
        return;
    }
    if (b->routine == BL_GEDET) {
        check_determinant(b, i);
        return;
    }
    struct matrix a = view(b, &p->a, p->at_a), x = view(b, &p->b, p->at_b);
    if (differing(&a, &p->want_a, 0, -1, zeros, first, sizeof first) ||
        touched(&a, &p->a, 0, first, sizeof first))
        fault(b, i, "A", first);
    if (touched(&x, &p->b, 0, first, sizeof first) ||
        (!b->fast && differing(&x, &p->want_b, 0, -1, zeros, first, sizeof first)))
        fault(b, i, "B", first);
    if (b->fast && is_finite(&p->original, 0) && far_from_overflow(b, p)) {
        double residual = solve_residual(&p->original, 0, b->trans, &p->b, &x);
        if (isnan(residual))
            fault(b, i, "B", "is not finite, netlib's is");
        note(&b->of[p->class], residual,
             solve_residual(&p->original, 0, b->trans, &p->b, &p->want_b));
    }
}

/* ---- all of it ---- */

struct operation {
    enum bl_routine_id routine;
    char trans;
    bool fast;
};

static void set(struct batch *b, struct operation o, enum bl_precision precision,
                int64_t count)
{
    b->routine = o.routine;
    b->trans = o.trans;
    b->fast = o.fast;
    b->precision = precision;
    b->count = count;
    b->problem = calloc((size_t)(count > EACH ? count : EACH), sizeof *b->problem);
}

static void add(struct largest *to, const struct largest *l)
{
    if (l->matrices) {
        note(to, l->ours, l->theirs);
        to->matrices += l->matrices - 1;
    }
}

/* An inverse's largest residual is judged by class where there are matrices enough: of a
 * few, netlib's may be small by chance. */
static void judge(struct largest of[JUDGED], bool by_class, char *why, size_t size)
{
    for (int c = 0; c <= JUDGED && !*why; c++) {
        struct largest l = {0, 0, 0};
        for (int k = 0; c == JUDGED && k < JUDGED; k++)
            add(&l, &of[k]);
        if (c < JUDGED && by_class && of[c].matrices >= ENOUGH)
            l = of[c];
        if (!(l.ours <= 5 * l.theirs))
            snprintf(why, size, "%s: largest residual of %lld %.3g, netlib's %.3g",
                     c == JUDGED ? "all"
                     : c == ILL  ? "ill-conditioned"
                                 : matrix_class_name[c],
                     (long long)l.matrices, l.ours, l.theirs);
    }
}

/* Pose them, run them, check them; a verdict. */
static void try(struct batch *b, int64_t batches, const char *part)
{
    const struct batch *first = b;
    const enum bl_routine_id routine = b->routine;
    struct largest of[JUDGED] = {{0, 0, 0}}, all = {0, 0, 0};
    char why[600] = "";
    int64_t matrices = 0;
    in_parallel(batches * EACH, pose, b);
    for (int64_t i = 0; i < batches; i++) {
        open_memory(&b[i]);
        run(&b[i]);
        for (int64_t j = 0; j < b[i].count; j++)
            check(&b[i], j);
        matrices += b[i].count;
        for (int c = 0; c < JUDGED; c++)
            add(&of[c], &b[i].of[c]);
        if (*b[i].why && !*why)
            memcpy(why, b[i].why, sizeof b[i].why);
        close_memory(&b[i]);
        drop(&b[i]);
    }
    judge(of, inverts(first), why, sizeof why);
    char name[60];
    snprintf(name, sizeof name, routine == BL_GETRS ? "%s%s-%c" : "%s%s",
             routine_name(routine, first->precision), first->fast ? "-fast" : "",
             first->trans);
    verdict(why, "mid-%s%s-of-%lld", part, name, (long long)matrices);
    for (int c = 0; c < JUDGED; c++)
        add(&all, &of[c]);
    if (all.theirs > 0)
        printf("# %s: largest residual %.3g, netlib's %.3g\n", name, all.ours,
               all.theirs);
    fflush(stdout);
}

static void compare(struct operation o, enum bl_precision precision, int64_t batches)
{
    static const int64_t sides[] = {1, 2, 4, 5, 9, 64, 70};
    if (batches < 1)
        return;
    struct batch *b = calloc((size_t)batches, sizeof *b);
    for (int64_t i = 0; i < batches; i++) {
        struct rng r = {(uint64_t)precision * 1000 + (uint64_t)i};
        int64_t limit = i % 4 || i > 60 ? (largest < 150 ? largest : 150) : largest;
        set(&b[i], o, precision, EACH);
        b[i].n = i == 0       ? largest
                 : i == 1     ? 64
                 : i % 4 == 2 ? 33 + i / 4 % 16 /* the orders of tiny_head.cuh */
                              : rng_between(&r, 33, limit);
        b[i].int_size = rng_below(&r, 2) ? 8 : 4;
        b[i].pointers = rng_below(&r, 2);
        b[i].nrhs = routine_has(o.routine, 'B') ? sides[i % 7] : 0;
        b[i].items = !b[i].nrhs && rng_below(&r, 3) == 0;
        b[i].in_place = apart(&b[i]) && !b[i].items && rng_below(&r, 3) == 0;
    }
    try(b, batches, "");
    free(b);
}

struct shape {
    int64_t n, nrhs;
};

/* A batch of a few for each shape; those of operations without B once an order. */
static void compare_shapes(struct operation o, enum bl_precision precision,
                           const struct shape *shapes, int count, const char *part)
{
    const bool has_b = routine_has(o.routine, 'B');
    struct batch *b = calloc((size_t)count, sizeof *b);
    int64_t batches = 0;
    for (int i = 0; i < count; i++) {
        if (has_b != (shapes[i].nrhs > 0))
            continue;
        struct batch *one = &b[batches++];
        set(one, o, precision, FEW);
        one->ordinary = true;
        one->n = shapes[i].n;
        one->nrhs = shapes[i].nrhs;
        one->int_size = i % 3 ? 4 : 8;
        one->pointers = i % 2;
    }
    try(b, batches, part);
    free(b);
}

/* What random orders leave out: large ones, many sides, and the orders and numbers of
 * sides around those from which mid.cu gives another kernel, or a warp more. */
static void large_and_many(struct operation o, enum bl_precision precision)
{
    static const struct shape shapes[] = {
        {1024, 1},  {1024, 70}, {777, 4},    {513, 9},   {300, 500}, {300, 2000},
        {150, 500}, {64, 500},  {150, 2000}, {64, 2000}, {64, 1},    {65, 1},
        {64, 8},    {65, 9},    {128, 1},    {129, 1},   {128, 8},   {129, 9},
        {256, 1},   {257, 1},   {256, 8},    {257, 9},   {700, 0},   {513, 0}};
    compare_shapes(o, precision, shapes, sizeof shapes / sizeof *shapes, "shapes-");
}

static void small(struct operation o, enum bl_precision precision)
{
    static const struct shape shapes[] = {{70, 1}, {70, 4}, {130, 9}, {70, 0}, {130, 0}};
    compare_shapes(o, precision, shapes, sizeof shapes / sizeof *shapes, "small-");
}

/* The same bits in a hundred runs. */
static void repeat(struct operation o, enum bl_precision precision, int64_t n)
{
    enum { BYTES = 2 << 20, MOST = 140 };
    const int64_t fit = BYTES / (n * n * (int64_t)element_bytes(precision));
    struct batch b = {0};
    set(&b, o, precision, fit > MOST ? MOST : fit > EACH ? fit : EACH);
    b.n = n;
    b.int_size = 4;
    b.nrhs = routine_has(o.routine, 'B') ? (n % 2 ? 9 : 3) : 0;
    in_parallel(EACH, pose, &b);
    for (int64_t i = EACH; i < b.count; i++)
        b.problem[i] = b.problem[i % EACH];
    open_memory(&b);
    const size_t bytes = b.used;
    char *first = malloc(bytes);
    run(&b);
    memcpy(first, b.host, bytes);
    for (int64_t i = 0; i < b.count; i++)
        check(&b, i);
    int64_t changed = 0;
    for (int i = 1; i < REPEATS; i++) {
        run(&b);
        changed += memcmp(first, b.host, bytes) != 0;
    }
    if (changed && !*b.why)
        snprintf(b.why, sizeof b.why, "%lld of %d runs gave other bits",
                 (long long)changed, REPEATS);
    verdict(b.why, "mid-repeated-%s%s-%lld", routine_name(o.routine, precision),
            o.fast ? "-fast" : "", (long long)n);
    free(first);
    close_memory(&b);
    drop(&b);
}

static void repeats(struct operation o, enum bl_precision precision)
{
    static const int64_t orders[] = {48, 97, 190, 300};
    for (int k = 0; k < 4; k++)
        repeat(o, precision, orders[k]);
}

int main(int argc, char **argv)
{
    static const struct operation operations[] = {
        {BL_GESV, 'N', false},  {BL_GETRS, 'N', false}, {BL_GETRS, 'N', true},
        {BL_GETRS, 'T', false}, {BL_GETRS, 'C', false}, {BL_GETRS, 'T', true},
        {BL_GETRS, 'C', true},  {BL_GETRI, 'N', false}, {BL_GETRI_OOP, 'N', false},
        {BL_GEINV, 'N', false}, {BL_GEDET, 'N', false}};
    const char *part = argc > 1 && !isdigit((unsigned char)*argv[1]) ? argv[1] : "";
    const char *letters = argc > (*part ? 2 : 3) ? argv[*part ? 2 : 3] : "sdcz";
    const int64_t matrices = argc > 1 ? atoll(argv[1]) : 320;
    if (argc > 2 && !*part)
        largest = atoll(argv[2]);
    if (!reference_open())
        return 0;
    enum bl_reason why = BL_REASONS;
    engine = bl_engine_for(0, true, &why);
    verdict(engine ? "" : bl_engine_why(), "mid-solve-engine");
    if (!engine)
        return 1;
    for (size_t k = 0; k < sizeof operations / sizeof *operations; k++)
        for (int p = 0; p < BL_PRECISIONS; p++) {
            const enum bl_precision precision = (enum bl_precision)p;
            const struct operation o = operations[k];
            const int64_t some = k < 2            ? matrices
                                 : o.trans == 'N' ? matrices / 2 + 1
                                                  : matrices / 6 + 1;
            if (!strchr(letters, "sdcz"[p]))
                continue;
            if (!*part)
                compare(o, precision, (some + EACH - 1) / EACH);
            else if (o.trans != 'N') /* not of these kernels */
                continue;
            else if (!strcmp(part, "shapes"))
                large_and_many(o, precision);
            else if (!strcmp(part, "repeats"))
                repeats(o, precision);
            else if (!strcmp(part, "small"))
                small(o, precision);
            else
                return 2;
        }
    return failures() != 0;
}
