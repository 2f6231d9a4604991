/* Matrices up to 32 x 32 against netlib, straight through the engine, so that what lies
 * between and behind the columns can be poisoned and looked at again.
 *
 *     tiny [matrices a precision [small]]
 *
 * getrf, gesv, getrs and their relatives by bits: every m, n in 1..32, every class of
 * input, strided and by pointers, 32- and 64-bit integers, batches around the limits of a
 * grid (the largest of them where 10000 matrices a precision are asked for, as on a
 * device), batches of different shapes. Inverses by residual against netlib's over
 * classes of ill-conditioned matrices, and in place by the bits of those out of place. A
 * result may depend neither on the place in the batch nor on the run. small: a few
 * matrices of every size class, for tools that slow everything down. No engine gets a
 * batch of 0: entries.c has those. getrfnp, getrfsp and gedet are led back to netlib's
 * getrf. Links libshim; the engine is the one that BATCHLAPACK_ENGINE names or that lies
 * beside the program.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bl.h"
#include "reference.h"

enum { MOST = 32, GAP = 5, GUARD = -99, CLASSES = CLASS_INDEFINITE };

static const struct bl_engine *engine;
static int64_t wanted = 1000; /* matrices a precision */
static bool small;

/* ---- memory that a batch lies in, here and on the device ---- */

struct arena {
    char *host, *device;
    size_t size, used;
    void *queue;
};

static bool arena_open(struct arena *arena, size_t size)
{
    *arena = (struct arena){.size = size};
    void *host = NULL, *device = NULL;
    if (engine->queue_open(&arena->queue) != BL_OK ||
        engine->host_alloc(size, &host) != BL_OK ||
        engine->device_alloc(size, &device) != BL_OK)
        return false;
    arena->host = host;
    arena->device = device;
    return true;
}

static void arena_close(struct arena *arena)
{
    engine->host_free(arena->host);
    engine->device_free(arena->device);
    engine->queue_close(arena->queue);
}

/* An offset into both, a multiple of 16. */
static size_t take(struct arena *arena, size_t bytes)
{
    size_t at = (arena->used + 15) / 16 * 16;
    arena->used = at + bytes;
    if (arena->used > arena->size) {
        verdict("a test needs more memory than it has", "tiny-arena");
        exit(1);
    }
    return at;
}

/* What lies there now, to be looked at after another run. */
static struct arena snapshot(const struct arena *arena)
{
    struct arena kept = {.host = malloc(arena->used), .used = arena->used};
    if (!kept.host)
        abort();
    memcpy(kept.host, arena->host, arena->used);
    return kept;
}

/* ---- a batch: matrices with everything that a job may name ---- */

struct entry {
    struct matrix a, b, x; /* as they go in; a.ld and so on are of this one */
    struct matrix want_a, want_b;
    struct matrix original; /* to be inverted */
    int64_t m, n, want_info;
    int32_t ipiv[MOST], want_ipiv[MOST];
};

enum { IPIV_STRIDE = MOST + 1 };

/* What is called, in any precision. */
struct operation {
    enum bl_routine_id routine;
    char trans; /* of getrs: 'N' (the default), 'T' or 'C' */
};

struct batch {
    enum bl_routine_id routine;
    char trans;
    enum bl_precision precision;
    int int_size;
    bool pointers, shapes; /* arrays of pointers in reverse order; items */
    bool in_place;         /* geinv: X is A */
    int64_t count, nrhs;
    int64_t inputs; /* entries; item i is entry i % inputs */
    struct entry *entry;
    size_t from[3], each[3];          /* where run() put A, B and X; 0: nowhere */
    size_t ipiv, info, phase, logabs; /* and the rest */
    char why[500];
};

static struct entry *entry_of(const struct batch *s, int64_t i)
{
    return &s->entry[i % s->inputs];
}

/* "dgetrs", "dgetrs-T" */
static const char *name_of(struct operation o, enum bl_precision p)
{
    static _Thread_local char name[40];
    bool suffix = o.trans && o.trans != 'N';
    snprintf(name, sizeof name, suffix ? "%s-%c" : "%s", routine_name(o.routine, p),
             o.trans);
    return name;
}

static void fault(struct batch *s, int64_t i, const char *what, const char *detail)
{
    const struct entry *e = entry_of(s, i);
    if (!*s->why)
        snprintf(s->why, sizeof s->why,
                 "%s %lld x %lld, %lld right, item %lld of %lld: %s %s",
                 name_of((struct operation){s->routine, s->trans}, s->precision),
                 (long long)e->m, (long long)e->n, (long long)s->nrhs, (long long)i,
                 (long long)s->count, what, detail);
}

static struct batch new_batch_of(struct operation o, enum bl_precision p, int64_t count)
{
    const enum bl_routine_id r = o.routine;
    return (struct batch){.routine = r,
                          .trans = o.trans ? o.trans : 'N',
                          .precision = p,
                          .int_size = 4,
                          .count = count,
                          .inputs = count,
                          .nrhs = routine_has(r, 'B') ? 1 : 0,
                          .entry = calloc((size_t)count, sizeof(struct entry))};
}

static struct batch new_batch(enum bl_routine_id r, enum bl_precision p, int64_t count)
{
    return new_batch_of((struct operation){.routine = r}, p, count);
}

/* Entry i as a batch of its own, of the same memory. */
static struct batch only(const struct batch *s, int64_t i)
{
    struct batch one = *s;
    one.entry = &s->entry[i];
    one.count = one.inputs = 1;
    return one;
}

/* Item i: m x n, with this much below each column. */
static struct entry *shape(struct batch *s, int64_t i, int64_t m, int64_t n,
                           int64_t below)
{
    struct entry *e = &s->entry[i];
    e->m = m;
    e->n = n;
    e->a = matrix_new(s->precision, m, n, m + below, GAP);
    e->b = matrix_new(s->precision, n, s->nrhs, n + below, GAP);
    e->x = matrix_new(s->precision, n, n, n + below, GAP);
    return e;
}

static void drop(struct batch *s)
{
    for (int64_t i = 0; i < s->inputs; i++) {
        struct entry *e = &s->entry[i];
        matrix_free(&e->a);
        matrix_free(&e->b);
        matrix_free(&e->x);
        matrix_free(&e->want_a);
        matrix_free(&e->want_b);
        matrix_free(&e->original);
    }
    free(s->entry);
}

static int64_t pivots_of(const struct entry *e)
{
    return e->m < e->n ? e->m : e->n;
}

/* netlib on copies: the answer of `r` in want_a, want_b, want_ipiv and want_info. */
static void ask_netlib(struct batch *s, struct entry *e, enum bl_routine_id r)
{
    struct matrix work = matrix_new(s->precision, 64 * MOST, 1, 64 * MOST, 0);
    matrix_free(&e->want_a);
    matrix_free(&e->want_b);
    e->want_a = matrix_copy(&e->a);
    e->want_b = matrix_copy(&e->b);
    memcpy(e->want_ipiv, e->ipiv, sizeof e->ipiv);
    struct call c = {.routine = r,
                     .precision = s->precision,
                     .uplo = "L",
                     .trans = (char[]){s->trans, 0},
                     .m = (int32_t)e->m,
                     .n = (int32_t)e->n,
                     .nrhs = (int32_t)s->nrhs,
                     .lda = (int32_t)e->a.ld,
                     .ldb = (int32_t)e->b.ld,
                     .lwork = 64 * MOST,
                     .a = e->want_a.data,
                     .b = e->want_b.data,
                     .work = work.data,
                     .ipiv = e->want_ipiv};
    reference_call(&c);
    e->want_info = c.info;
    matrix_free(&work);
}

/* What getrs and getri take. */
static void make_factors(struct batch *s, struct entry *e)
{
    ask_netlib(s, e, BL_GETRF);
    e->original = e->a;
    e->a = matrix_copy(&e->want_a);
    memcpy(e->ipiv, e->want_ipiv, sizeof e->ipiv);
}

/* A as it is, or its factors, to be inverted. Netlib's inverse comes to want_a, where
 * there is none the factors. */
static void pose_inverse(struct batch *s, struct entry *e)
{
    make_factors(s, e);
    int64_t info = e->want_info;
    ask_netlib(s, e, BL_GETRI);
    if (info != e->want_info)
        fault(s, e - s->entry, "netlib's INFO", "of getri is not getrf's");
    if (s->routine == BL_GEINV) {
        matrix_free(&e->a);
        e->a = matrix_copy(&e->original);
    }
}

static const struct matrix *operand(const struct entry *e, int which)
{
    return which == 0 ? &e->a : which == 1 ? &e->b : &e->x;
}

/* Item i of A, B or X as run() has left it. */
static struct matrix got(const struct batch *s, const struct arena *arena, int64_t i,
                         int which)
{
    struct matrix m = *operand(entry_of(s, i), which);
    int64_t place = s->pointers ? s->count - 1 - i : i;
    m.data = arena->host + s->from[which] + s->each[which] * (size_t)place;
    return m;
}

static struct bl_operand place_all(struct batch *s, struct arena *arena, int which)
{
    struct bl_operand o = {NULL, NULL, 0, 0};
    size_t most = 0, element = element_bytes(s->precision);
    for (int64_t i = 0; i < s->inputs; i++) {
        const struct matrix *m = operand(&s->entry[i], which);
        most = matrix_bytes(m) > most ? matrix_bytes(m) : most;
        o.ld = m->ld;
    }
    s->each[which] = most;
    /* Aligned as a matrix may be, or only as its numbers must be. */
    const bool whole = (s->int_size == 8) == s->pointers;
    s->from[which] = take(arena, most * (size_t)s->count + 16) +
                     (whole ? 0 : real_bytes(s->precision));
    size_t list = s->pointers ? take(arena, (size_t)s->count * sizeof(void *)) : 0;
    for (int64_t i = 0; i < s->count; i++) {
        const struct matrix *m = operand(entry_of(s, i), which);
        char *here = got(s, arena, i, which).data;
        void *there = arena->device + (here - arena->host);
        memcpy(here, m->data, matrix_bytes(m));
        if (s->pointers)
            memcpy(arena->host + list + (size_t)i * sizeof there, &there, sizeof there);
    }
    o.p = arena->device + s->from[which];
    o.stride = (int64_t)(most / element);
    if (s->pointers)
        o.array = (void *const *)(void *)(arena->device + list);
    return o;
}

/* Run it and fetch everything. Entries keep what went in; the answers lie in the arena.
 */
static bool run(struct batch *s, struct arena *arena)
{
    size_t integer = (size_t)s->int_size, count = (size_t)s->count;
    arena->used = 0;
    struct bl_job job = {.routine = s->routine,
                         .precision = s->precision,
                         .trans = routine_has(s->routine, 't') ? s->trans : 0,
                         .int_size = s->int_size,
                         .nrhs = s->nrhs,
                         .batch = s->count};
    size_t ipiv = take(arena, count * IPIV_STRIDE * integer), items = 0;
    s->ipiv = ipiv;
    s->info = take(arena, count * integer);
    s->phase = take(arena, count * 16);
    s->logabs = take(arena, count * 8);
    memset(arena->host + s->phase, 0xff, arena->used - s->phase);
    memset(s->each, 0, sizeof s->each);
    job.a = place_all(s, arena, 0);
    if (s->nrhs > 0)
        job.b = place_all(s, arena, 1);
    if (s->in_place)
        job.x = job.a;
    else if (routine_has(s->routine, 'X'))
        job.x = place_all(s, arena, 2);
    if (s->shapes)
        items = take(arena, count * sizeof(struct bl_item));
    for (int64_t i = 0; i < s->count; i++) {
        const struct entry *e = entry_of(s, i);
        job.m = e->m > job.m ? e->m : job.m;
        job.n = e->n > job.n ? e->n : job.n;
        for (int64_t k = 0; k < IPIV_STRIDE; k++)
            integer_put(arena->host + ipiv, i * IPIV_STRIDE + k, s->int_size,
                        k < MOST && e->ipiv[k] ? e->ipiv[k] : GUARD);
        integer_put(arena->host + s->info, i, s->int_size, GUARD);
        struct bl_item item = {i, e->m, e->n, e->a.ld, e->x.ld};
        if (s->shapes)
            memcpy(arena->host + items + (size_t)i * sizeof item, &item, sizeof item);
    }
    if (s->shapes)
        job.items = (const struct bl_item *)(void *)(arena->device + items);
    job.ipiv = (struct bl_operand){arena->device + ipiv, NULL, 0, IPIV_STRIDE};
    job.info = (struct bl_operand){arena->device + s->info, NULL, 0, 1};
    if (routine_has(s->routine, 'D')) {
        job.phase = (struct bl_operand){arena->device + s->phase, NULL, 0, 1};
        job.logabs = (struct bl_operand){arena->device + s->logabs, NULL, 0, 1};
    }
    size_t work = engine->workspace(&job);
    size_t at = (take(arena, work + 256) + 255) / 256 * 256;
    job.work = work ? arena->device + at : NULL;
    if (engine->copy_in(arena->queue, arena->device, arena->host, arena->used) != BL_OK ||
        engine->run(&job, arena->queue) != BL_OK ||
        engine->copy_out(arena->queue, arena->host, arena->device, arena->used) !=
            BL_OK ||
        engine->wait(arena->queue) != BL_OK) {
        fault(s, 0, "the engine", "failed");
        return false;
    }
    return true;
}

static int64_t got_info(const struct batch *s, const struct arena *arena, int64_t i)
{
    return integer_get(arena->host + s->info, i, s->int_size);
}

static int64_t got_ipiv(const struct batch *s, const struct arena *arena, int64_t i,
                        int64_t k)
{
    return integer_get(arena->host + s->ipiv, i * IPIV_STRIDE + k, s->int_size);
}

/* Number i of an array of reals of the batch's precision. */
static double got_real(const struct batch *s, const struct arena *arena, size_t from,
                       int64_t i)
{
    float narrow;
    double wide;
    memcpy(&narrow, arena->host + from + (size_t)i * sizeof narrow, sizeof narrow);
    memcpy(&wide, arena->host + from + (size_t)i * sizeof wide, sizeof wide);
    return is_double(s->precision) ? wide : (double)narrow;
}

/* What of item i's results has other bits than item j's in another run of the same batch,
 * or NULL. */
static const char *unlike(const struct batch *s, const struct arena *arena, int64_t i,
                          const struct arena *other, int64_t j)
{
    size_t element = element_bytes(s->precision), integer = (size_t)s->int_size;
    const struct {
        const char *name;
        size_t from, each;
    } vectors[] = {{"IPIV", s->ipiv, IPIV_STRIDE * integer},
                   {"INFO", s->info, integer},
                   {"the phase", s->phase, element},
                   {"the logarithm", s->logabs, is_double(s->precision) ? 8 : 4}};
    for (int which = 0; which < 3; which++) {
        struct matrix x = got(s, arena, i, which), y = got(s, other, j, which);
        if (s->each[which] && memcmp(x.data, y.data, matrix_bytes(&x)) != 0)
            return (const char *[]){"A", "B", "X"}[which];
    }
    for (int v = 0; v < 4; v++)
        if (memcmp(arena->host + vectors[v].from + (size_t)i * vectors[v].each,
                   other->host + vectors[v].from + (size_t)j * vectors[v].each,
                   vectors[v].each) != 0)
            return vectors[v].name;
    return NULL;
}

/* ---- by bits ---- */

static void check_info(struct batch *s, const struct arena *arena, int64_t i)
{
    char text[100];
    snprintf(text, sizeof text, "is %lld, not %lld", (long long)got_info(s, arena, i),
             (long long)entry_of(s, i)->want_info);
    if (got_info(s, arena, i) != entry_of(s, i)->want_info)
        fault(s, i, "INFO", text);
}

static void check_integers(struct batch *s, const struct arena *arena, int64_t i)
{
    const struct entry *e = entry_of(s, i);
    char text[100];
    check_info(s, arena, i);
    if (!routine_has(s->routine, 'P') && !routine_has(s->routine, 'p'))
        return;
    for (int64_t k = 0; k < IPIV_STRIDE; k++) { /* one behind the end, too */
        int64_t had = k < MOST && e->ipiv[k] ? e->ipiv[k] : GUARD;
        int64_t want = k < pivots_of(e) ? e->want_ipiv[k] : had;
        if (got_ipiv(s, arena, i, k) != want) {
            snprintf(text, sizeof text, "(%lld) is %lld, not %lld", (long long)k + 1,
                     (long long)got_ipiv(s, arena, i, k), (long long)want);
            fault(s, i, "IPIV", text);
        }
    }
}

static void check_matrix(struct batch *s, const struct arena *arena, int64_t i, int which,
                         const struct matrix *want)
{
    const struct entry *e = entry_of(s, i);
    struct matrix m = got(s, arena, i, which);
    char first[300] = "";
    if (memcmp(m.data, want->data, matrix_bytes(&m)) == 0) /* mostly, and quickly seen */
        return;
    bool zeros =
        holds_negative_zero(&e->a, 0) || (s->nrhs > 0 && holds_negative_zero(&e->b, 0));
    if (differing(&m, want, 0, -1, zeros, first, sizeof first) ||
        touched(&m, operand(e, which), 0, first, sizeof first))
        fault(s, i, (const char *[]){"A", "B", "X"}[which], first);
}

static void check_bits(struct batch *s, const struct arena *arena)
{
    for (int64_t i = 0; i < s->count && !*s->why; i++) {
        check_integers(s, arena, i);
        check_matrix(s, arena, i, 0, &entry_of(s, i)->want_a);
        if (s->nrhs > 0)
            check_matrix(s, arena, i, 1, &entry_of(s, i)->want_b);
    }
}

/* Thread by thread: one shape after the other. */
struct sweep {
    struct operation operation;
    enum bl_precision precision;
    char why[500];
    int64_t matrices;
};

static void tell(struct sweep *w, const struct batch *s)
{
    if (*s->why && !*w->why)
        memcpy(w->why, s->why, sizeof w->why);
}

static uint64_t seed_of(int64_t p, int64_t m, int64_t n, int64_t i)
{
    return (uint64_t)(((p * 40 + m) * 40 + n) * 1000003 + i);
}

/* All columns of one row count: m x 1 .. m x 32 (getrf), or n = m with more and more
 * right-hand sides. */
static void sweep_rows(int64_t item, void *data)
{
    struct sweep *w = data;
    const int64_t m = item + 1;
    const enum bl_routine_id r = w->operation.routine;
    bool square = !routine_has(r, 'm');
    int64_t each = 1 + wanted / (MOST * (square ? 5 : MOST));
    struct arena arena;
    static const int64_t sides[] = {1, 2, 3, 9, 20};
    if (!arena_open(&arena, (size_t)32 << 20)) {
        if (!*w->why)
            snprintf(w->why, sizeof w->why, "no memory");
        return;
    }
    for (int64_t turn = 0; turn < (square ? 5 : MOST) && !*w->why; turn++) {
        const int64_t n = square ? m : turn + 1;
        struct batch s = new_batch_of(w->operation, w->precision, each);
        s.int_size = turn % 2 ? 8 : 4;
        s.pointers = turn % 3 == 1;
        s.nrhs = s.nrhs ? sides[turn % 5] : 0;
        for (int64_t i = 0; i < each; i++) {
            struct entry *e = shape(&s, i, m, n, turn % 4);
            /* Another class for the right-hand sides than for the matrix. */
            matrix_fill(&e->a, (enum matrix_class)((i + turn) % CLASSES),
                        seed_of(w->precision, m, n, i));
            matrix_fill(&e->b, (enum matrix_class)(i / CLASSES % CLASSES),
                        seed_of(w->precision, n, m, i));
            if (r == BL_GETRS)
                make_factors(&s, e);
            ask_netlib(&s, e, r);
        }
        if (run(&s, &arena))
            check_bits(&s, &arena);
        tell(w, &s);
        __atomic_fetch_add(&w->matrices, each, __ATOMIC_RELAXED);
        drop(&s);
    }
    arena_close(&arena);
}

static void by_bits(struct operation o, enum bl_precision p)
{
    struct sweep w = {.operation = o, .precision = p};
    in_parallel(MOST, sweep_rows, &w);
    verdict(w.why, "tiny-%s-bits-of-%lld", name_of(o, p), (long long)w.matrices);
}

/* ---- batches of different shapes ---- */

static void different_shapes(enum bl_precision p)
{
    struct arena arena;
    struct rng r = {(uint64_t)p + 77};
    struct batch s = new_batch(BL_GETRF, p, small ? 40 : 600);
    s.shapes = true;
    for (int64_t i = 0; i < s.count; i++) {
        int64_t most = i % 3 == 0 ? 5 : i % 3 == 1 ? 14 : MOST;
        struct entry *e = shape(&s, i, rng_between(&r, 1, most), rng_between(&r, 1, most),
                                rng_below(&r, 4));
        matrix_fill(&e->a, (enum matrix_class)(i % CLASSES), rng_next(&r));
        ask_netlib(&s, e, BL_GETRF);
    }
    if (arena_open(&arena, (size_t)64 << 20)) {
        s.pointers = true; /* the place of an item in memory is no matter */
        if (run(&s, &arena))
            check_bits(&s, &arena);
        arena_close(&arena);
    } else {
        fault(&s, 0, "no memory", "");
    }
    verdict(s.why, "tiny-%s-shapes", routine_name(BL_GETRF, p));
    drop(&s);
}

/* ---- inverses ---- */

static int inverse_of(const struct batch *s)
{
    return routine_has(s->routine, 'X') && !s->in_place ? 2 : 0;
}

/* All that is to be seen without a residual. */
static void check_around_inverse(struct batch *s, const struct arena *arena, int64_t i)
{
    const struct entry *e = entry_of(s, i);
    const int which = inverse_of(s);
    struct matrix a = got(s, arena, i, 0), inverse = got(s, arena, i, which);
    char first[300] = "";
    check_integers(s, arena, i); /* of getri IPIV as it was */
    if (which != 0 && memcmp(a.data, e->a.data, matrix_bytes(&a)) != 0)
        fault(s, i, "A", "was written");
    if (touched(&inverse, operand(e, which), 0, first, sizeof first))
        fault(s, i, "the inverse's surroundings:", first);
    /* Singular: getri leaves A alone, geinv the factors in X. */
    if (e->want_info > 0 && s->routine != BL_GETRI_OOP)
        check_matrix(s, arena, i, which, &e->want_a);
}

/* Is there an inverse, netlib's and ours? Their residuals. */
static bool judge(const struct batch *s, const struct arena *arena, int64_t i,
                  double *ours, double *theirs)
{
    const struct entry *e = entry_of(s, i);
    struct matrix inverse = got(s, arena, i, inverse_of(s));
    if (e->want_info > 0 || !is_finite(&e->want_a, 0))
        return false;
    *ours = inverse_residual(&e->original, &inverse, 0);
    *theirs = inverse_residual(&e->original, &e->want_a, 0);
    return true;
}

/* Each entry against netlib's inverse, where it comes again against the first one. */
static void check_inverses(struct batch *s, const struct arena *arena)
{
    double ours, theirs;
    char text[100];
    for (int64_t i = 0; i < s->count && !*s->why; i++) {
        const char *what =
            i < s->inputs ? NULL : unlike(s, arena, i, arena, i % s->inputs);
        if (what)
            fault(s, i, what, "is another in another place");
        if (i >= s->inputs)
            continue;
        check_around_inverse(s, arena, i);
        /* NaN: beyond the range even of the residual. 1: netlib's may be exact. */
        if (judge(s, arena, i, &ours, &theirs) && !isnan(theirs) &&
            !(ours <= 5 * theirs + 1)) {
            snprintf(text, sizeof text, "is %.3g, netlib's %.3g", ours, theirs);
            fault(s, i, "the inverse's residual", text);
        }
    }
}

/* GEINV once more, X the same memory as A: INFO, the bits and what lies around them. */
static void check_in_place(struct batch *s, struct arena *arena)
{
    struct batch apart = *s;
    struct arena kept = snapshot(arena);
    char first[300] = "";
    s->in_place = true;
    for (int64_t i = 0; (i > 0 || run(s, arena)) && i < s->count && !*s->why; i++) {
        struct matrix a = got(s, arena, i, 0), x = got(&apart, &kept, i, 2);
        if (got_info(s, arena, i) != got_info(&apart, &kept, i))
            fault(s, i, "INFO in place", "is another");
        if (differing(&a, &x, 0, -1, false, first, sizeof first) ||
            touched(&a, &entry_of(s, i)->a, 0, first, sizeof first))
            fault(s, i, "in place, not out of it:", first);
    }
    s->in_place = false;
    free(kept.host);
}

/* Condition 10^exponent, then graded rows and columns, then Hilbert's. Beyond 10^7 single
 * precision knows such a matrix no better than some regular one next to it; netlib's
 * residual says what can be asked of its inverse. */
static const double exponent[] = {2, 4, 5.5, 7, 9, 11, 13, 15};
enum { GRADED = sizeof exponent / sizeof *exponent, HILBERT, ILL_CLASSES };
static const char *const ill_class[ILL_CLASSES] = {
    "condition 1e2", "condition 1e4",  "condition 3e5",  "condition 1e7",
    "condition 1e9", "condition 1e11", "condition 1e13", "condition 1e15",
    "graded",        "Hilbert"};

static void fill_ill(struct matrix *a, int class, int64_t which, struct rng *r)
{
    int64_t n = a->cols;
    double range = class < GRADED ? exponent[class] : 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            double d = n > 1 ? pow(10, -range * (double)i / (double)(n - 1)) : 1;
            double h = 1 / (double)(i + j + 1 + which % 7);
            matrix_put(a, i, j, class == HILBERT ? h : i == j ? d : 0, 0);
        }
    for (int k = 0; k < 3 && class < GRADED; k++) {
        matrix_reflect(a, r, true);
        matrix_reflect(a, r, false);
    }
    if (class == GRADED)
        matrix_fill(a, CLASS_GRADED, rng_next(r));
}

static void inverse_error(enum bl_routine_id r, enum bl_precision p)
{
    enum { COUNT = 93, ENOUGH = 60 };
    const double threshold = 30; /* LAPACK's own */
    char why[500] = "", figures[200];
    struct arena arena;
    if (!arena_open(&arena, (size_t)32 << 20)) {
        verdict("no memory", "tiny-error-%s", routine_name(r, p));
        return;
    }
    for (int class = 0; class < ILL_CLASSES && !*why; class ++) {
        struct rng rng = {(uint64_t)(class * 4 + (int)p)};
        struct batch s = new_batch(r, p, COUNT);
        double ours = 0, theirs = 0;
        int judged = 0;
        /* One shape a run: the largest of a batch of one shape is the shape. */
        for (int64_t i = 0; i < COUNT && !*s.why; i++) {
            int64_t most = class == HILBERT ? 12 : MOST;
            int64_t n = 2 + i % (most - 1);
            struct entry *e = shape(&s, i, n, n, i % 3);
            fill_ill(&e->a, class, i, &rng);
            pose_inverse(&s, e);
            struct batch one = only(&s, i);
            double own, their;
            if (!run(&one, &arena))
                break;
            check_around_inverse(&one, &arena, 0);
            if (judge(&one, &arena, 0, &own, &their)) {
                ours = own > ours || isnan(own) ? own : ours;
                theirs = their > theirs ? their : theirs;
                judged++;
            }
            if (r == BL_GEINV)
                check_in_place(&one, &arena);
            memcpy(s.why, one.why, sizeof s.why);
        }
        snprintf(figures, sizeof figures, "%.3g, netlib's %.3g, %s", ours, theirs,
                 ill_class[class]);
        if (!(ours <= 5 * theirs) || !(ours < threshold))
            fault(&s, 0, "largest residual", figures);
        if (judged < ENOUGH)
            fault(&s, 0, "too few matrices had an inverse:", figures);
        printf("# %s: largest residual %s, of %d matrices\n", routine_name(r, p), figures,
               judged);
        memcpy(why, s.why, sizeof why);
        drop(&s);
    }
    arena_close(&arena);
    verdict(why, "tiny-error-%s", routine_name(r, p));
}

/* Every class and size. */
static void every_inverse(enum bl_routine_id r, enum bl_precision p)
{
    char why[500] = "";
    struct arena arena;
    if (!arena_open(&arena, (size_t)32 << 20)) {
        verdict("no memory", "tiny-info-%s", routine_name(r, p));
        return;
    }
    for (int64_t n = 1; n <= MOST && !*why; n++) {
        struct batch s = new_batch(r, p, 6 * CLASSES);
        for (int64_t i = 0; i < s.count; i++) {
            struct entry *e = shape(&s, i, n, n, n % 3);
            matrix_fill(&e->a, (enum matrix_class)(i % CLASSES), seed_of(p, n, n, i));
            pose_inverse(&s, e);
        }
        s.pointers = n % 2;
        if (!*s.why && run(&s, &arena))
            check_inverses(&s, &arena);
        if (!*s.why && r == BL_GEINV)
            check_in_place(&s, &arena);
        memcpy(why, s.why, sizeof why);
        drop(&s);
    }
    arena_close(&arena);
    verdict(why, "tiny-info-%s", routine_name(r, p));
}

/* ---- counts around the limits of a grid; repeats; places ---- */

static bool inverts(enum bl_routine_id r)
{
    return r == BL_GETRI || r == BL_GETRI_OOP || r == BL_GEINV;
}

/* Entry i of order n or m x n, with what its routine takes and netlib's answer. */
static void pose(struct batch *s, int64_t i, int64_t m, int64_t n, int64_t below,
                 uint64_t seed)
{
    struct entry *e = shape(s, i, m, n, below);
    matrix_fill(&e->a, (enum matrix_class)(i % CLASSES), seed);
    matrix_fill(&e->b, CLASS_RANDOM, seed + 1);
    if (inverts(s->routine)) {
        pose_inverse(s, e);
        return;
    }
    if (s->routine == BL_GETRS)
        make_factors(s, e);
    ask_netlib(s, e, s->routine);
}

static void run_and_check(struct batch *s, struct arena *arena)
{
    if (*s->why || !run(s, arena))
        return;
    if (inverts(s->routine))
        check_inverses(s, arena);
    else
        check_bits(s, arena);
}

/* A few matrices, again and again. */
static void counts(struct operation o, enum bl_precision p)
{
    const enum bl_routine_id r = o.routine;
    static const struct {
        int64_t count, order;
    } load[] = {{1, 3},
                {1, 29},
                {2, 13},
                {31, 7},
                {31, 21},
                {33, 6},
                {65535, 2},
                /* where many are asked for */
                {65536, 3},
                {524281, 2},
                {65535, 17},
                {65536, 20},
                /* of getrf */
                {9001, 27},
                {20011, 18},
                {65535, 4},
                {65536, 12},
                {524281, 5}};
    enum { MANY = 7, GETRF = 11, LOADS = sizeof load / sizeof *load, INPUTS = 97 };
    char why[500] = "";
    struct arena arena;
    const int64_t matrices = routine_has(r, 'X') ? 2 : 1;
    size_t most = 0, element = element_bytes(p);
    bool wants[LOADS];
    for (int k = 0; k < LOADS; k++) {
        int64_t n = load[k].order, elements = (n * n + GAP) * matrices + n + GAP;
        size_t each = (size_t)elements * element + (IPIV_STRIDE + 1) * 4 + 24;
        wants[k] = k < MANY || (k < GETRF ? wanted >= 10000 : r == BL_GETRF);
        if (wants[k] && most < each * (size_t)load[k].count)
            most = each * (size_t)load[k].count;
    }
    if (!arena_open(&arena, most + (1 << 20))) {
        verdict("no memory", "tiny-counts-%s", name_of(o, p));
        return;
    }
    for (int k = 0; k < LOADS && !*why; k++) {
        if (!wants[k])
            continue;
        struct batch s = new_batch_of(o, p, INPUTS);
        for (int64_t i = 0; i < INPUTS; i++)
            pose(&s, i, load[k].order, load[k].order, 0, (uint64_t)(i * 7 + k));
        s.count = load[k].count;
        run_and_check(&s, &arena);
        memcpy(why, s.why, sizeof why);
        drop(&s);
    }
    arena_close(&arena);
    verdict(why, "tiny-counts-%s", name_of(o, p));
}

/* The same bits in a hundred runs, and in the reverse order: of all results, and of what
 * lies between them. */
static void repeats(struct operation o, enum bl_precision p)
{
    const enum bl_routine_id r = o.routine;
    static const int64_t order[] = {4, 7, 12, 16, 19, 23, 27, 32};
    enum { ORDERS = sizeof order / sizeof *order };
    enum { COUNT = 331, RUNS = 102 };
    char why[500] = "";
    struct arena arena;
    if (!arena_open(&arena, (size_t)32 << 20)) {
        verdict("no memory", "tiny-repeats-%s", name_of(o, p));
        return;
    }
    for (int k = 0; k < ORDERS && !*why; k++) {
        struct batch s = new_batch_of(o, p, COUNT);
        struct arena kept = {.host = NULL};
        for (int64_t i = 0; i < COUNT; i++) {
            struct entry *e = shape(&s, i, order[k], order[k], 1);
            matrix_fill(&e->a, (enum matrix_class)(i % CLASSES), (uint64_t)(i + 31 * k));
            matrix_fill(&e->b, CLASS_RANDOM, (uint64_t)i);
            if (routine_has(r, 'p'))
                make_factors(&s, e);
        }
        for (int turn = 0; turn < RUNS && !*s.why; turn++) {
            bool back = turn >= RUNS - 2;
            for (int64_t i = 0; turn == RUNS - 2 && i < COUNT / 2; i++) {
                struct entry swap = s.entry[i];
                s.entry[i] = s.entry[COUNT - 1 - i];
                s.entry[COUNT - 1 - i] = swap;
            }
            if (!run(&s, &arena))
                break;
            if (turn == 0)
                kept = snapshot(&arena);
            for (int64_t i = 0; i < COUNT; i++) {
                const char *what = unlike(&s, &arena, i, &kept, back ? COUNT - 1 - i : i);
                if (what)
                    fault(&s, i, what,
                          back ? "is another in another place"
                               : "is another in another run");
            }
        }
        free(kept.host);
        memcpy(why, s.why, sizeof why);
        drop(&s);
    }
    arena_close(&arena);
    verdict(why, "tiny-repeats-%s", name_of(o, p));
}

/* Every size class, whole and in part: warps more than full, of getrf also higher and
 * wider than square, of geinv also in place. */
static void few(struct operation o, enum bl_precision p)
{
    const enum bl_routine_id r = o.routine;
    static const int64_t order[] = {1,  4,  6,  8,  11, 12, 14, 16,
                                    17, 20, 23, 24, 25, 28, 31, 32};
    static const int64_t sides[] = {1, 2, 3, 9, 20};
    enum { ORDERS = sizeof order / sizeof *order };
    char why[500] = "";
    struct arena arena;
    if (!arena_open(&arena, (size_t)4 << 20)) {
        verdict("no memory", "tiny-few-%s", name_of(o, p));
        return;
    }
    for (int k = 0; k < (r == BL_GETRF ? 3 : 1) * ORDERS && !*why; k++) {
        const int64_t n = order[k % ORDERS], half = (n + 1) / 2;
        const bool high = k / ORDERS == 1, wide = k / ORDERS == 2;
        struct batch s = new_batch_of(o, p, n <= 8 ? 37 : 13);
        s.int_size = k % 3 ? 4 : 8;
        s.pointers = (k + 1) / 2 % 2;
        s.nrhs = s.nrhs ? sides[k % 5] : 0;
        for (int64_t i = 0; i < s.count; i++)
            pose(&s, i, wide ? half : n, high ? half : n, k % 3, seed_of(p, n, k, i));
        run_and_check(&s, &arena);
        if (!*s.why && r == BL_GEINV && k % 3 == 1)
            check_in_place(&s, &arena);
        memcpy(why, s.why, sizeof why);
        drop(&s);
    }
    arena_close(&arena);
    verdict(why, "tiny-few-%s", name_of(o, p));
}

/* ---- getrfnp, getrfsp, gedet: led back to getrf ---- */

/* With its rows in the order that getrf chooses, a matrix needs no interchanges, and
 * getrfnp's factors are getrf's. */
static void no_pivoting(enum bl_precision p)
{
    struct arena arena;
    struct batch s = new_batch(BL_GETRFNP, p, small ? 10 : 24 * MOST);
    for (int64_t i = 0; i < s.count; i++) {
        int64_t at = small ? i * 13 : i; /* of a few, all sizes */
        int64_t m = 1 + at % MOST, n = 1 + (at * 7 + at / MOST) % MOST;
        struct entry *e = shape(&s, i, m, n, i % 3);
        matrix_fill(&e->a, i % 2 ? CLASS_RANDOM : CLASS_TINY, (uint64_t)i);
        ask_netlib(&s, e, BL_GETRF);
        for (int64_t k = 0; k < pivots_of(e); k++)
            for (int64_t j = 0; j < n && e->want_ipiv[k] != k + 1; j++) {
                char other[16], *x = matrix_at(&e->a, k, j);
                char *y = matrix_at(&e->a, e->want_ipiv[k] - 1, j);
                memcpy(other, x, element_bytes(p));
                memcpy(x, y, element_bytes(p));
                memcpy(y, other, element_bytes(p));
            }
        ask_netlib(&s, e, BL_GETRF);
    }
    if (arena_open(&arena, (size_t)32 << 20)) {
        for (int64_t i = 0; i < s.count && !*s.why; i++) {
            struct batch one = only(&s, i);
            if (run(&one, &arena))
                check_bits(&one, &arena);
            memcpy(s.why, one.why, sizeof s.why);
        }
        arena_close(&arena);
    } else {
        fault(&s, 0, "no memory", "");
    }
    verdict(s.why, "tiny-%s", routine_name(BL_GETRFNP, p));
    drop(&s);
}

/* Rows whose largest element is 1, times powers of 2: getrfsp chooses what getrf chooses
 * without the powers, and the factors differ by them only. */
static void scaled_pivoting(enum bl_precision p)
{
    struct arena arena;
    struct batch s = new_batch(BL_GETRFSP, p, small ? 10 : 24 * MOST);
    for (int64_t i = 0; i < s.count; i++) {
        int64_t at = small ? i * 13 : i; /* of a few, all sizes */
        int64_t m = 1 + at % MOST, n = 1 + (at * 7 + at / MOST) % MOST;
        struct entry *e = shape(&s, i, m, n, i % 3);
        struct rng r = {(uint64_t)i};
        int power[MOST];
        matrix_fill(&e->a, i % 3 ? CLASS_RANDOM : CLASS_TIED, (uint64_t)i);
        for (int64_t k = 0; k < m; k++) {
            matrix_put(&e->a, k, rng_below(&r, n), rng_below(&r, 2) ? 1 : -1, 0);
            power[k] = (int)rng_between(&r, -12, 12);
            for (int64_t j = 0; j < n; j++) { /* none above 1 */
                long double complex x = matrix_get(&e->a, k, j);
                if (fabsl(creall(x)) + fabsl(cimagl(x)) > 1)
                    matrix_put(&e->a, k, j, (double)creall(x) / 2, (double)cimagl(x) / 2);
            }
        }
        ask_netlib(&s, e, BL_GETRF);
        for (int64_t k = 0; k < m; k++)
            for (int64_t j = 0; j < n; j++) {
                long double complex x = matrix_get(&e->a, k, j);
                matrix_put(&e->a, k, j, ldexp((double)creall(x), power[k]),
                           ldexp((double)cimagl(x), power[k]));
            }
        for (int64_t k = 0; k < pivots_of(e); k++) {
            int other = power[k];
            power[k] = power[e->want_ipiv[k] - 1];
            power[e->want_ipiv[k] - 1] = other;
        }
        for (int64_t k = 0; k < m; k++)
            for (int64_t j = 0; j < n; j++) {
                long double complex x = matrix_get(&e->want_a, k, j);
                /* A column whose pivot is zero is not divided. */
                int by = power[k] - (j < k ? power[j] : 0);
                matrix_put(&e->want_a, k, j, ldexp((double)creall(x), by),
                           ldexp((double)cimagl(x), by));
            }
    }
    if (arena_open(&arena, (size_t)32 << 20)) {
        for (int64_t i = 0; i < s.count && !*s.why; i++) {
            struct batch one = only(&s, i);
            if (run(&one, &arena))
                check_bits(&one, &arena);
            memcpy(s.why, one.why, sizeof s.why);
        }
        arena_close(&arena);
    } else {
        fault(&s, 0, "no memory", "");
    }
    verdict(s.why, "tiny-%s", routine_name(BL_GETRFSP, p));
    drop(&s);
}

static void determinants(enum bl_precision p)
{
    char why[500] = "";
    struct arena arena;
    if (!arena_open(&arena, (size_t)32 << 20)) {
        verdict("no memory", "tiny-%s", routine_name(BL_GEDET, p));
        return;
    }
    for (int64_t n = 1; n <= MOST && !*why; n += small ? 5 : 1) {
        struct batch s = new_batch(BL_GEDET, p, (small ? 1 : 4) * CLASSES);
        for (int64_t i = 0; i < s.count; i++) {
            struct entry *e = shape(&s, i, n, n, n % 3);
            matrix_fill(&e->a, (enum matrix_class)(i % CLASSES), seed_of(p, n, n, i));
            ask_netlib(&s, e, BL_GETRF);
        }
        s.pointers = n / 5 % 2;
        if (run(&s, &arena))
            for (int64_t i = 0; i < s.count && !*s.why; i++) {
                struct entry *e = &s.entry[i];
                struct matrix a = got(&s, &arena, i, 0);
                const int64_t parts = is_complex(p) ? 2 : 1;
                double ours[2] = {0, 0}, our_logabs = got_real(&s, &arena, s.logabs, i);
                for (int64_t k = 0; k < parts; k++)
                    ours[k] = got_real(&s, &arena, s.phase, i * parts + k);
                long double complex phase = 1;
                long double logabs = 0;
                char text[200];
                double eps = epsilon_of(p) * (double)(4 * n + 8);
                for (int64_t k = 0; k < n; k++) {
                    long double complex u = matrix_get(&e->want_a, k, k);
                    phase *= u / cabsl(u) * (e->want_ipiv[k] == k + 1 ? 1 : -1);
                    logabs += logl(cabsl(u));
                }
                if (memcmp(a.data, e->a.data, matrix_bytes(&a)))
                    fault(&s, i, "A", "was written");
                check_info(&s, &arena, i);
                snprintf(text, sizeof text, "%g,%g %g, not %Lg,%Lg %Lg", ours[0], ours[1],
                         our_logabs, creall(phase), cimagl(phase), logabs);
                if (e->want_info) {
                    if (ours[0] != 0 || ours[1] != 0 || our_logabs != -HUGE_VAL)
                        fault(&s, i, "a singular matrix's determinant", text);
                } else if (is_finite(&e->want_a, 0)) {
                    if (!(fabsl(creall(phase) - ours[0]) <= eps) ||
                        !(fabsl(cimagl(phase) - ours[1]) <= eps) ||
                        !(fabsl(logabs - our_logabs) <=
                          eps * (1 + fabsl(logabs) + 90 * is_double(p))))
                        fault(&s, i, "determinant", text);
                }
            }
        memcpy(why, s.why, sizeof why);
        drop(&s);
    }
    arena_close(&arena);
    verdict(why, "tiny-%s", routine_name(BL_GEDET, p));
}

/* ---- everything ---- */

static const struct operation operations[] = {
    {BL_GEINV, 0},   {BL_GETRI_OOP, 0}, {BL_GETRI, 0},   {BL_GESV, 0},
    {BL_GETRS, 'N'}, {BL_GETRS, 'T'},   {BL_GETRS, 'C'}, {BL_GETRF, 0},
    {BL_GETRFNP, 0}, {BL_GETRFSP, 0},   {BL_GEDET, 0}};
enum { ANSWERED = 8, OPERATIONS = 11 }; /* netlib has an answer to the first eight */

/* What a routine is tested by besides. */
static void alone(enum bl_routine_id r, enum bl_precision p)
{
    if (r == BL_GETRF)
        different_shapes(p);
    else if (r == BL_GETRFNP)
        no_pivoting(p);
    else if (r == BL_GETRFSP)
        scaled_pivoting(p);
    else if (r == BL_GEDET)
        determinants(p);
}

static void rest(int64_t item, void *data)
{
    enum bl_precision p = (enum bl_precision)(item % BL_PRECISIONS);
    const struct operation o = operations[item / BL_PRECISIONS];
    const enum bl_routine_id r = o.routine;
    (void)data;
    repeats(o, p);
    alone(r, p);
    if (inverts(r)) {
        inverse_error(r, p);
        every_inverse(r, p);
    }
}

/* Those that take longest come first. */
static void many(int64_t item, void *data)
{
    (void)data;
    counts(operations[item % ANSWERED], (enum bl_precision)(BL_Z - item / ANSWERED));
}

int main(int argc, char **argv)
{
    if (argc > 1)
        wanted = atoll(argv[1]);
    small = argc > 2 && strcmp(argv[2], "small") == 0;
    if (!reference_open())
        return 0;
    enum bl_reason why = BL_REASONS;
    engine = bl_engine_for(0, true, &why);
    verdict(engine ? "" : bl_engine_why(), "tiny-engine");
    if (!engine)
        return 1;
    for (int i = 0; small && i < OPERATIONS * BL_PRECISIONS; i++) {
        enum bl_precision p = (enum bl_precision)(i % BL_PRECISIONS);
        if (i < ANSWERED * BL_PRECISIONS)
            few(operations[i / BL_PRECISIONS], p);
        alone(operations[i / BL_PRECISIONS].routine, p);
    }
    if (small)
        return failures() != 0;
    for (int p = 0; p < BL_PRECISIONS; p++) {
        for (int o = 0; o < ANSWERED; o++)
            if (!inverts(operations[o].routine))
                by_bits(operations[o], (enum bl_precision)p);
    }
    in_parallel(OPERATIONS * BL_PRECISIONS, rest, NULL);
    in_parallel(ANSWERED * BL_PRECISIONS, many, NULL);
    return failures() != 0;
}
