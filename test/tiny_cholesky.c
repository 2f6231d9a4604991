/* Cholesky of matrices up to 32 x 32 against netlib, straight through the engine, so that
 * the other triangle and what lies between and behind the columns can be poisoned and
 * looked at again.
 *
 *     tiny_cholesky [matrices a precision [PART [PRECISIONS]]]
 *
 * potrf, potrs and posv by bits: every n in 1..32, both triangles, every class of input,
 * strided and by pointers, 32- and 64-bit integers, batches around the limits of a grid
 * (the largest of them where 10000 matrices a precision are asked for, as on a device),
 * batches of different shapes. potri by residual against netlib's. A result may depend
 * neither on the place in the batch nor on the run. No engine gets a batch of 0:
 * entries.c has those. PART:
 * `beyond`: potrf, potrs and posv of the sizes after the tiny ones, and potri; potrf,
 * potrs and posv in fast arithmetic, too. `more`, of those sizes: factors that are known
 * exactly around the orders where one kernel hands over to another, up to 2000 right-hand
 * sides, and a hundred runs. For tools that slow everything down: `small`, a few matrices
 * of a few orders, and fast potrf and potrs of order 65; `brief`, a few of each kind of
 * kernel after those; `spread`, large ones with several blocks each. "sdcz". Links
 * libshim; the engine is the one that BATCHLAPACK_ENGINE names or that lies beside the
 * program.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bl.h"
#include "reference.h"

enum { MOST = 32, GAP = 5, GUARD = -99, CLASSES = CLASS_INDEFINITE + 1 };

static const struct bl_engine *engine;
static int64_t wanted = 1000; /* matrices a precision */
static bool beyond;           /* the sizes after the tiny ones */
static const char *letters = "sdcz";

/* A problem as it goes in, netlib's answer, and the engine's. */
struct entry {
    struct matrix a, b, want_a, want_b, got_a, got_b;
    struct matrix original; /* of a factor: what it is the factor of; else empty */
    int64_t want_info, got_info;
    double ours, theirs; /* residuals of an inverse; 0: not judged */
};

struct batch {
    enum bl_routine_id routine;
    enum bl_precision precision;
    char uplo;
    int int_size;
    bool pointers, shapes; /* arrays of pointers in reverse order; items */
    bool fast;             /* arithmetic */
    int64_t count, nrhs;
    int64_t inputs; /* from this item on the first ones come again */
    struct entry *entry;
    char *host, *device; /* both of `size` bytes, the latter the engine's */
    void *queue;
    size_t size;
    char why[500];
};

static void fault(struct batch *s, int64_t i, const char *what, const char *detail)
{
    const struct entry *e = &s->entry[i];
    if (!*s->why)
        snprintf(s->why, sizeof s->why,
                 "%s %c n=%lld lda=%lld nrhs=%lld, item %lld of %lld, %s: %s %s",
                 routine_name(s->routine, s->precision), s->uplo, (long long)e->a.cols,
                 (long long)e->a.ld, (long long)s->nrhs, (long long)i,
                 (long long)s->count, s->pointers ? "pointers" : "strided", what, detail);
}

/* ---- a batch ---- */

static struct batch new_batch(enum bl_routine_id r, enum bl_precision p, char uplo,
                              int64_t count)
{
    return (struct batch){.routine = r,
                          .precision = p,
                          .uplo = uplo,
                          .int_size = 4,
                          .count = count,
                          .inputs = count,
                          .nrhs = routine_has(r, 'B') ? 1 : 0,
                          .entry = calloc((size_t)count, sizeof(struct entry))};
}

static void drop_entry(struct entry *e)
{
    struct matrix *all[] = {&e->a,     &e->b,     &e->want_a,  &e->want_b,
                            &e->got_a, &e->got_b, &e->original};
    for (int k = 0; k < 7; k++)
        matrix_free(all[k]);
}

static void drop(struct batch *s)
{
    for (int64_t i = 0; i < s->count; i++)
        drop_entry(&s->entry[i]);
    free(s->entry);
}

/* `r` on copies: want_a, want_b, want_info. */
static void ask_netlib(const struct batch *s, struct entry *e, enum bl_routine_id r)
{
    matrix_free(&e->want_a);
    matrix_free(&e->want_b);
    e->want_a = matrix_copy(&e->a);
    e->want_b = matrix_copy(&e->b);
    struct call c = {.routine = r,
                     .precision = s->precision,
                     .uplo = s->uplo == 'U' ? "U" : "L",
                     .n = (int32_t)e->a.cols,
                     .nrhs = (int32_t)s->nrhs,
                     .lda = (int32_t)e->a.ld,
                     .ldb = (int32_t)e->b.ld,
                     .a = e->want_a.data,
                     .b = e->want_b.data};
    reference_call(&c);
    e->want_info = c.info;
}

/* Item i: order n, its classes, this much below each column. */
static void pose(struct batch *s, int64_t i, int64_t n, enum matrix_class of_a,
                 enum matrix_class of_b, int64_t below, uint64_t seed)
{
    struct entry *e = &s->entry[i];
    e->a = matrix_new(s->precision, n, n, n + below, GAP);
    e->b = matrix_new(s->precision, n, s->nrhs, n + below, GAP);
    matrix_fill_hermitian(&e->a, s->uplo, of_a, seed);
    matrix_fill(&e->b, of_b == CLASS_INDEFINITE ? CLASS_RANDOM : of_b, seed + 1);
    if (s->routine == BL_POTRS || s->routine == BL_POTRI) {
        ask_netlib(s, e, BL_POTRF);
        if (e->want_info == 0) { /* else A itself may pass for a factor */
            e->original = e->a;
            e->a = matrix_copy(&e->want_a);
        }
    }
    ask_netlib(s, e, s->routine);
}

/* ---- run ---- */

static bool open_memory(struct batch *s, size_t size)
{
    void *host = NULL, *device = NULL;
    s->size = size;
    if (engine->queue_open(&s->queue) != BL_OK ||
        engine->host_alloc(size, &host) != BL_OK ||
        engine->device_alloc(size, &device) != BL_OK) {
        fault(s, 0, "no memory", "");
        return false;
    }
    s->host = host;
    s->device = device;
    return true;
}

/* Memory opened once serves one batch after the other: pinned memory is slow to get, and
 * one thread at a time gets it. */
static void lend_memory(const struct batch *from, struct batch *s)
{
    s->host = from->host;
    s->device = from->device;
    s->queue = from->queue;
    s->size = from->size;
}

static void close_memory(const struct batch *s)
{
    engine->host_free(s->host);
    engine->device_free(s->device);
    engine->queue_close(s->queue);
}

/* `bytes` at a multiple of 16. */
static size_t take(const struct batch *s, size_t *used, size_t bytes)
{
    size_t at = (*used + 15) / 16 * 16;
    *used = at + bytes;
    if (*used > s->size) {
        verdict("a test needs more memory than it has", "tiny-cholesky-memory");
        exit(1);
    }
    return at;
}

/* Where item i begins among equal places. */
static size_t place(const struct batch *s, int64_t i, size_t each)
{
    return each * (size_t)(s->pointers ? s->count - 1 - i : i);
}

static struct bl_operand lay_out(struct batch *s, size_t *used, bool is_b, size_t *from,
                                 size_t *each)
{
    size_t element = element_bytes(s->precision);
    struct bl_operand o = {NULL, NULL, 0, 0};
    *each = 0;
    for (int64_t i = 0; i < s->count; i++) {
        const struct matrix *m = is_b ? &s->entry[i].b : &s->entry[i].a;
        *each = matrix_bytes(m) > *each ? matrix_bytes(m) : *each;
        o.ld = m->ld;
    }
    /* Aligned as a matrix may be, or only as its numbers must be. */
    const bool whole = (s->int_size == 8) == s->pointers;
    *from = take(s, used, *each * (size_t)s->count + 16) +
            (whole ? 0 : real_bytes(s->precision));
    size_t list = s->pointers ? take(s, used, (size_t)s->count * sizeof(void *)) : 0;
    for (int64_t i = 0; i < s->count; i++) {
        const struct matrix *m = is_b ? &s->entry[i].b : &s->entry[i].a;
        size_t at = *from + place(s, i, *each);
        void *there = s->device + at;
        memcpy(s->host + at, m->data, matrix_bytes(m));
        if (s->pointers)
            memcpy(s->host + list + (size_t)i * sizeof there, &there, sizeof there);
    }
    o.p = s->device + *from;
    o.stride = (int64_t)(*each / element);
    if (s->pointers)
        o.array = (void *const *)(void *)(s->device + list);
    return o;
}

/* Run it; the views got_a and got_b and got_info are the answers. */
static bool run(struct batch *s)
{
    size_t used = 0, integer = (size_t)s->int_size, count = (size_t)s->count;
    size_t info = take(s, &used, (count + 1) * integer);
    size_t from_a, each_a, from_b = 0, each_b = 0, items = 0;
    struct bl_job job = {.routine = s->routine,
                         .precision = s->precision,
                         .arithmetic = s->fast ? BL_FAST : BL_EXACT,
                         .uplo = s->uplo,
                         .int_size = s->int_size,
                         .nrhs = s->nrhs,
                         .batch = s->count};
    job.a = lay_out(s, &used, false, &from_a, &each_a);
    if (s->nrhs > 0)
        job.b = lay_out(s, &used, true, &from_b, &each_b);
    if (s->shapes)
        items = take(s, &used, count * sizeof(struct bl_item));
    int64_t guard = GUARD;
    int32_t narrow = GUARD;
    for (size_t i = 0; i <= count; i++)
        memcpy(s->host + info + i * integer,
               s->int_size == 8 ? (void *)&guard : (void *)&narrow, integer);
    for (size_t i = 0; i < count; i++) {
        const struct matrix *a = &s->entry[i].a;
        struct bl_item item = {(int64_t)i, a->cols, a->cols, a->ld, 0};
        job.n = a->cols > job.n ? a->cols : job.n;
        if (s->shapes)
            memcpy(s->host + items + i * sizeof item, &item, sizeof item);
    }
    job.m = job.n;
    if (s->shapes)
        job.items = (const struct bl_item *)(void *)(s->device + items);
    job.info = (struct bl_operand){s->device + info, NULL, 0, 1};
    size_t work = engine->workspace(&job);
    size_t at = (take(s, &used, work + 256) + 255) / 256 * 256;
    job.work = work ? s->device + at : NULL;
    if (engine->copy_in(s->queue, s->device, s->host, used) != BL_OK ||
        engine->run(&job, s->queue) != BL_OK ||
        engine->copy_out(s->queue, s->host, s->device, used) != BL_OK ||
        engine->wait(s->queue) != BL_OK) {
        fault(s, 0, "the engine", "failed");
        return false;
    }
    for (size_t i = 0; i <= count; i++) {
        int64_t wide = 0;
        memcpy(&narrow, s->host + info + i * integer, 4);
        if (s->int_size == 8)
            memcpy(&wide, s->host + info + i * integer, 8);
        int64_t value = s->int_size == 8 ? wide : narrow;
        if (i < count)
            s->entry[i].got_info = value;
        else if (value != GUARD)
            fault(s, 0, "INFO", "was written behind its end");
    }
    for (int64_t i = 0; i < s->count; i++) {
        struct entry *e = &s->entry[i];
        e->got_a = e->a;
        e->got_b = e->b;
        e->got_a.data = s->host + from_a + place(s, i, each_a);
        e->got_b.data = s->host + from_b + place(s, i, each_b);
    }
    return true;
}

/* The views belong to the batch's memory. */
static void forget(struct batch *s)
{
    for (int64_t i = 0; i < s->count; i++)
        s->entry[i].got_a.data = s->entry[i].got_b.data = NULL;
}

/* ---- judge ---- */

/* An inverse may have other bits than netlib's, but not a larger error. Not of a matrix
 * alone, where it may be 0 by chance; the largest of a class is judged, too. */
static void check_inverse(struct batch *s, int64_t i)
{
    struct entry *e = &s->entry[i];
    char text[200];
    if (e->want_info || !e->original.data || !is_finite(&e->want_a, s->uplo))
        return;
    double ours = inverse_residual(&e->original, &e->got_a, s->uplo);
    double theirs = inverse_residual(&e->original, &e->want_a, s->uplo);
    if (isnan(theirs)) /* beyond the range even of the residual */
        return;
    e->ours = ours;
    e->theirs = theirs;
    snprintf(text, sizeof text, "%.3g, netlib's %.3g", ours, theirs);
    if (!(ours <= 5 * theirs + 1))
        fault(s, i, "residual of the inverse", text);
}

/* To the last byte. */
static bool same_results(const struct entry *x, const struct entry *y)
{
    return x->got_info == y->got_info &&
           memcmp(x->got_a.data, y->got_a.data, matrix_bytes(&x->a)) == 0 &&
           memcmp(x->got_b.data, y->got_b.data, matrix_bytes(&x->b)) == 0;
}

static void check(struct batch *s)
{
    char first[300] = "";
    for (int64_t i = 0; i < s->count && !*s->why; i++) {
        const struct entry *e = &s->entry[i];
        bool factors = s->routine == BL_POTRF || s->routine == BL_POSV;
        int64_t minor = factors && e->want_info > 0 ? e->want_info - 1 : -1;
        bool zeros = holds_negative_zero(&e->a, s->uplo) ||
                     (s->nrhs > 0 && holds_negative_zero(&e->b, 0));
        if (i >= s->inputs) {
            if (!same_results(e, &s->entry[i % s->inputs]))
                fault(s, i, "other results", "in another place");
            continue;
        }
        if (e->got_info != e->want_info) {
            snprintf(first, sizeof first, "is %lld, not %lld", (long long)e->got_info,
                     (long long)e->want_info);
            fault(s, i, "INFO", first);
        }
        if (touched(&e->got_a, &e->a, s->uplo, first, sizeof first))
            fault(s, i, "A outside of its triangle", first);
        if (s->routine == BL_POTRI && e->want_info == 0)
            check_inverse(s, i);
        else if (differing(&e->got_a, &e->want_a, s->uplo, minor, zeros, first,
                           sizeof first))
            fault(s, i, "A", first);
        if (s->nrhs > 0 &&
            (differing(&e->got_b, &e->want_b, 0, -1, zeros, first, sizeof first) ||
             touched(&e->got_b, &e->b, 0, first, sizeof first)))
            fault(s, i, "B", first);
    }
}

static void run_and_check(struct batch *s)
{
    if (run(s))
        check(s);
    forget(s);
}

/* ---- every size, triangle and class ---- */

/* The largest residuals of an order's inverses of a class. */
struct largest {
    double ours, theirs;
};

struct sweep {
    enum bl_routine_id routine;
    enum bl_precision precision;
    char why[500];
    int64_t matrices;
    struct largest of[MOST][CLASSES]; /* by order, by class */
};

static double greater(double most, double residual)
{
    return residual > most || isnan(residual) ? residual : most;
}

static uint64_t seed_of(int64_t p, int64_t n, int64_t turn, int64_t i)
{
    return (uint64_t)(((p * 40 + n) * 40 + turn) * 1000003 + i);
}

/* Sizes around what fits how many warps and how much shared memory, a matrix of every
 * class for A and several for B; of the largest a few. */
static const int64_t larger[] = {33,  40,  63,  64,  65,  96,  97,  100, 128,
                                 129, 161, 200, 225, 257, 321, 513, 777, 1024};
enum {
    LARGER = sizeof larger / sizeof *larger,
    OF_65 = 4,
    ENOUGH = 45,
    FEW = 5, /* of a batch of the mid kernels, at least */
    LAST_BATCH = 161,
    SLOW = 500 /* netlib is, from here on */
};

/* How many orders, in turn, a routine is asked for: netlib takes too long for the last
 * but in potrf. */
static int orders_of(enum bl_routine_id r)
{
    return r == BL_POTRF ? LARGER : LARGER - 1;
}

static const int64_t sides_beyond[] = {1, 2, 3, 9, 40}, fast_sides[] = {1, 2, 4, 7, 17};
enum { SIDES = 5, MOST_SIDES = 40 };

/* Bytes for matrices of order n with up to `most_sides` right-hand sides, one of `list`,
 * and for the most work space that the engine asks for. */
static size_t memory_for(enum bl_routine_id r, enum bl_precision p, int64_t n,
                         int64_t count, bool fast, const int64_t *list, int lists,
                         int64_t most_sides)
{
    size_t most = 0;
    for (int k = 0; k < 2 * lists; k++) {
        const int64_t sides = list[k / 2];
        const struct bl_job job = {.routine = r,
                                   .precision = p,
                                   .arithmetic = fast ? BL_FAST : BL_EXACT,
                                   .uplo = k % 2 ? 'U' : 'L',
                                   .int_size = 8,
                                   .m = n,
                                   .n = n,
                                   .nrhs = routine_has(r, 'B') ? sides : 0,
                                   .batch = count};
        const size_t work = engine->workspace(&job);
        most = work > most ? work : most;
    }
    return (size_t)(n * count * (n + most_sides + 10)) * element_bytes(p) + most +
           ((size_t)1 << 20);
}

static size_t memory_beyond(enum bl_routine_id r, enum bl_precision p, int64_t n,
                            int64_t count, bool fast)
{
    return memory_for(r, p, n, count, fast, fast ? fast_sides : sides_beyond, SIDES,
                      MOST_SIDES);
}

/* How the items of a batch are posed. */
struct posing {
    struct batch *s;
    int64_t n, turn, seed;
    enum matrix_class (*class_of)(const struct posing *, int64_t i);
    bool random_b;
};

static void pose_item(int64_t i, void *data)
{
    const struct posing *q = data;
    /* another class for B than for A */
    pose(q->s, i, q->n, q->class_of(q, i),
         q->random_b ? CLASS_RANDOM
                     : (enum matrix_class)((i * 5 + q->turn * 7) % CLASSES),
         q->turn % 4, seed_of(q->s->precision, q->n, q->turn, i + q->seed));
}

/* Large ones beside each other. */
static void pose_all(struct posing q)
{
    if (q.n > LAST_BATCH) {
        in_parallel(q.s->count, pose_item, &q);
        return;
    }
    for (int64_t i = 0; i < q.s->count; i++)
        pose_item(i, &q);
}

/* Every class in three turns of a triangle. */
static enum matrix_class any_class(const struct posing *q, int64_t i)
{
    return (enum matrix_class)((i + (beyond ? q->s->count * (q->turn / 2) : q->turn)) %
                               CLASSES);
}

/* One order: both triangles, with more and more right-hand sides. */
static void sweep_order(int64_t item, void *data)
{
    enum { MOST_TURNS = 10 };
    struct sweep *w = data;
    const int64_t n = beyond ? larger[item] : item + 1;
    const int64_t turns = !beyond ? MOST_TURNS : n > SLOW ? 2 : 6;
    const int64_t each = !beyond          ? 1 + wanted / (MOST * MOST_TURNS)
                         : n > LAST_BATCH ? FEW
                                          : ENOUGH;
    struct batch memory = new_batch(w->routine, w->precision, 'L', 1);
    bool there = open_memory(
        &memory, beyond ? memory_beyond(w->routine, w->precision, n, each, false)
                        : (size_t)8 << 20);
    if (!there)
        memcpy(w->why, memory.why, sizeof w->why);
    for (int64_t turn = 0; turn < turns && !*w->why; turn++) {
        struct batch s = new_batch(w->routine, w->precision, turn % 2 ? 'U' : 'L', each);
        s.int_size = turn / 2 % 2 ? 8 : 4;
        s.pointers = turn % 3 == 1;
        s.nrhs = s.nrhs ? sides_beyond[turn / 2] : 0;
        lend_memory(&memory, &s);
        const struct posing q = {&s, n, turn, 0, any_class, false};
        pose_all(q);
        run_and_check(&s);
        for (int64_t i = 0; i < each; i++) {
            struct largest *of = &w->of[item][any_class(&q, i)];
            of->ours = greater(of->ours, s.entry[i].ours);
            of->theirs = greater(of->theirs, s.entry[i].theirs);
        }
        if (*s.why && !*w->why)
            memcpy(w->why, s.why, sizeof w->why);
        __atomic_fetch_add(&w->matrices, each, __ATOMIC_RELAXED);
        drop(&s);
    }
    if (there)
        close_memory(&memory);
    drop(&memory);
}

static void every_order(enum bl_routine_id r, enum bl_precision p)
{
    struct sweep w = {.routine = r, .precision = p};
    in_parallel(beyond ? orders_of(r) : MOST, sweep_order, &w);
    for (int class = 0; class < CLASSES && r == BL_POTRI && !*w.why; class ++) {
        struct largest all = {0, 0};
        for (int item = 0; item < MOST; item++) {
            all.ours = greater(all.ours, w.of[item][class].ours);
            all.theirs = greater(all.theirs, w.of[item][class].theirs);
        }
        if (!(all.ours <= 5 * all.theirs) || (class == CLASS_RANDOM && all.theirs == 0))
            snprintf(w.why, sizeof w.why,
                     "class %d: largest residual %.3g, netlib's %.3g", class, all.ours,
                     all.theirs);
    }
    verdict(w.why, "%s-%s-%lld-matrices", beyond ? "mid" : "tiny", routine_name(r, p),
            (long long)w.matrices);
}

/* ---- fast arithmetic: by residual, at most five times netlib's largest ---- */

struct residuals {
    enum bl_routine_id routine;
    enum bl_precision precision;
    double ours[LARGER], theirs[LARGER];
    char why[500];
};

static enum matrix_class fast_class(const struct posing *q, int64_t i)
{
    static const enum matrix_class classes[] = {CLASS_RANDOM, CLASS_GRADED,
                                                CLASS_INDEFINITE};
    return classes[(i + q->turn) % 3];
}

static void fast_order(int64_t item, void *data)
{
    struct residuals *r = data;
    const int64_t n = larger[item];
    /* There are other kernels for many, of orders that do not fit the chip. */
    const bool many =
        r->routine == BL_POTRF && !is_complex(r->precision) && n > 256 && n < 1000;
    const int64_t count = many ? BL_MANY + 1 : n > LAST_BATCH ? FEW : 7;
    /* Without sides the turns differ in little. */
    const int turns =
        n > SLOW && !routine_has(r->routine, 'B') ? (many ? 4 : 2) : 2 * SIDES;
    struct batch memory = new_batch(r->routine, r->precision, 'L', 1);
    const bool there =
        open_memory(&memory, memory_beyond(r->routine, r->precision, n, count, true));
    if (!there)
        memcpy(r->why, memory.why, sizeof r->why);
    for (int turn = 0; turn < turns && !*r->why; turn++) {
        struct batch s = new_batch(r->routine, r->precision, turn % 2 ? 'U' : 'L',
                                   many && turn >= 2 ? FEW : count);
        lend_memory(&memory, &s);
        s.fast = true;
        s.pointers = turn % 3 == 1;
        s.nrhs = s.nrhs ? fast_sides[turn / 2] : 0;
        pose_all((struct posing){&s, n, turn, 100, fast_class, true});
        if (run(&s))
            for (int64_t i = 0; i < s.count; i++) {
                const struct entry *e = &s.entry[i];
                const struct matrix *a = e->original.data ? &e->original : &e->a;
                char first[300] = "";
                if (e->got_info != e->want_info)
                    fault(&s, i, "INFO", "is not netlib's");
                if (touched(&e->got_a, &e->a, s.uplo, first, sizeof first))
                    fault(&s, i, "A outside of its triangle", first);
                if (s.nrhs > 0 && touched(&e->got_b, &e->b, 0, first, sizeof first))
                    fault(&s, i, "B's surroundings:", first);
                if (s.nrhs > 0 && e->want_info &&
                    differing(&e->got_b, &e->b, 0, -1, false, first, sizeof first))
                    fault(&s, i, "B of no solution:", first);
                if (e->want_info || (r->routine == BL_POTRS && !e->original.data))
                    continue;
                if (i >= FEW && i < s.count - 3) /* a residual takes its time */
                    continue;
                const bool factors = r->routine == BL_POTRF;
                const double theirs =
                    factors ? factor_residual(a, s.uplo, &e->want_a)
                            : solve_residual(a, s.uplo, 'N', &e->b, &e->want_b);
                if (isnan(theirs)) /* netlib has met an overflow */
                    continue;
                r->theirs[item] = greater(r->theirs[item], theirs);
                r->ours[item] =
                    greater(r->ours[item],
                            factors ? factor_residual(a, s.uplo, &e->got_a)
                                    : solve_residual(a, s.uplo, 'N', &e->b, &e->got_b));
            }
        forget(&s);
        if (*s.why && !*r->why)
            memcpy(r->why, s.why, sizeof r->why);
        drop(&s);
    }
    if (there)
        close_memory(&memory);
    drop(&memory);
}

/* Of all orders, or of the number `only`. */
static void in_fast(enum bl_routine_id routine, enum bl_precision p, int only)
{
    struct residuals r = {.routine = routine, .precision = p};
    double ours = 0, theirs = 0;
    if (only < 0)
        in_parallel(orders_of(routine), fast_order, &r);
    else
        fast_order(only, &r);
    for (int i = 0; i < LARGER; i++) {
        ours = greater(ours, r.ours[i]);
        theirs = greater(theirs, r.theirs[i]);
    }
    if (!*r.why && !(ours <= 5 * theirs))
        snprintf(r.why, sizeof r.why, "largest residual %.3g, netlib's %.3g", ours,
                 theirs);
    verdict(r.why, "mid-%s-fast", routine_name(routine, p));
    printf("# %s, fast: largest residual %.3g, netlib's %.3g\n", routine_name(routine, p),
           ours, theirs);
}

/* potri of a factor whose squares are beyond the range: of none that potrf gives, but a
 * triangle all the same. */
static void large_factor(enum bl_precision p, char uplo)
{
    const int64_t n = 33;
    const double size = is_double(p) ? 1e154 : 1.6e19;
    struct batch s = new_batch(BL_POTRI, p, uplo, 1);
    struct entry *e = &s.entry[0];
    e->a = matrix_new(p, n, n, n, GAP);
    e->b = matrix_new(p, n, 0, n, GAP);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
            if (in_triangle(uplo, i, j))
                matrix_put(&e->a, i, j, i == j, 0);
    matrix_put(&e->a, 1, 1, 1.5 * size, 0);
    matrix_put(&e->a, uplo == 'U' ? 1 : 2, uplo == 'U' ? 2 : 1, size, 0);
    ask_netlib(&s, e, BL_POTRI);
    if (open_memory(&s, (size_t)4 << 20)) {
        if (run(&s))
            for (int64_t j = 0; j < n; j++)
                for (int64_t i = 0; i < n; i++)
                    if (in_triangle(uplo, i, j) &&
                        !(cabsl(matrix_get(&e->got_a, i, j) -
                                matrix_get(&e->want_a, i, j)) < 1e-5))
                        fault(&s, 0, "A", "is another inverse");
        close_memory(&s);
    }
    forget(&s);
    verdict(s.why, "mid-%s-%c-large-factor", routine_name(BL_POTRI, p), uplo);
    drop(&s);
}

/* ---- batches of different shapes; counts around the limits of a grid; repeats ---- */

static void different_shapes(enum bl_precision p, char uplo)
{
    struct batch s = new_batch(BL_POTRF, p, uplo, beyond ? ENOUGH : 600);
    struct rng r = {(uint64_t)p + 77};
    s.shapes = s.pointers = true; /* the place of an item in memory is no matter */
    for (int64_t i = 0; i < s.count; i++)
        pose(&s, i,
             rng_between(&r, 1,
                         i % 3 == 0   ? 5
                         : i % 3 == 1 ? 14
                         : beyond     ? 150
                                      : MOST),
             (enum matrix_class)(i % CLASSES), CLASS_RANDOM, rng_below(&r, 4),
             rng_next(&r));
    if (open_memory(&s, (size_t)80 << 20)) {
        run_and_check(&s);
        close_memory(&s);
    }
    verdict(s.why, "%s-%s-%c-shapes", beyond ? "mid" : "tiny", routine_name(BL_POTRF, p),
            uplo);
    drop(&s);
}

/* A few matrices, again and again. */
static void counts(enum bl_routine_id r, enum bl_precision p)
{
    static const struct {
        int64_t count, order;
    } load[] = {{1, 32},
                {2, 13},
                {31, 24},
                {31, 7},
                {33, 6},
                {65535, 2},
                /* where many are asked for */
                {65536, 3},
                {65535, 4},
                {524281, 2},
                {65536, 11},
                {65535, 17},
                {65536, 20}};
    enum { ALWAYS = 6, LOADS = sizeof load / sizeof *load, INPUTS = 97 };
    char why[500] = "";
    for (int k = 0; k < 2 * (wanted >= 10000 ? LOADS : ALWAYS) && !*why; k++) {
        const int64_t n = load[k / 2].order, count = load[k / 2].count;
        struct batch few = new_batch(r, p, k % 2 ? 'U' : 'L', INPUTS);
        struct batch s = new_batch(r, p, few.uplo, count);
        for (int64_t i = 0; i < INPUTS; i++)
            pose(&few, i, n, (enum matrix_class)(i % CLASSES), CLASS_RANDOM, 0,
                 (uint64_t)(i * 7 + k));
        for (int64_t i = 0; i < count; i++)
            s.entry[i] = few.entry[i % INPUTS];
        s.inputs = INPUTS;
        const size_t elements = (size_t)(n * n + n + 2 * GAP);
        if (open_memory(&s, (size_t)count * (elements * element_bytes(p) + 8) + 4096)) {
            run_and_check(&s);
            close_memory(&s);
        }
        memcpy(why, s.why, sizeof why);
        free(s.entry);
        drop(&few);
    }
    verdict(why, "tiny-counts-%s", routine_name(r, p));
}

/* The same bits in a hundred runs, and in the reverse order. */
static void repeats(enum bl_routine_id r, enum bl_precision p)
{
    enum { COUNT = 331, RUNS = 102, BYTES = 2 << 20 };
    static const int64_t tiny[] = {4, 7, 11, 16, 19, 23, 32}, mid[] = {48, 97, 190, 300};
    const int orders = beyond ? 4 : 7;
    char why[500] = "";
    for (int k = 0; k < 2 * orders && !*why; k++) {
        const int64_t n = (beyond ? mid : tiny)[k / 2];
        const int64_t fit = BYTES / (n * n * (int64_t)element_bytes(p));
        const int64_t count = !beyond ? COUNT : fit > 140 ? 140 : fit > 12 ? fit : 12;
        struct batch s = new_batch(r, p, k % 2 ? 'U' : 'L', count);
        for (int64_t i = 0; i < count; i++)
            pose(&s, i, n, (enum matrix_class)(i % CLASSES), CLASS_RANDOM, 1,
                 (uint64_t)(i + 31 * k));
        const size_t a = matrix_bytes(&s.entry[0].a), b = matrix_bytes(&s.entry[0].b);
        char *kept = malloc((size_t)count * (a + b));
        bool there = open_memory(&s, beyond ? memory_beyond(r, p, n, count, false)
                                            : (size_t)32 << 20);
        int64_t infos[count];
        for (int turn = 0; turn < RUNS && !*s.why && there; turn++) {
            bool back = turn >= RUNS - 2;
            for (int64_t i = 0; turn == RUNS - 2 && i < count / 2; i++) {
                struct entry other = s.entry[i];
                s.entry[i] = s.entry[count - 1 - i];
                s.entry[count - 1 - i] = other;
            }
            if (!run(&s))
                break;
            for (int64_t i = 0; i < count; i++) {
                const struct entry *e = &s.entry[i];
                char *old = kept + (size_t)(back ? count - 1 - i : i) * (a + b);
                if (turn == 0) {
                    infos[i] = e->got_info;
                    memcpy(old, e->got_a.data, a);
                    if (s.nrhs > 0)
                        memcpy(old + a, e->got_b.data, b);
                } else if (infos[back ? count - 1 - i : i] != e->got_info ||
                           memcmp(old, e->got_a.data, a) ||
                           (s.nrhs > 0 && memcmp(old + a, e->got_b.data, b))) {
                    fault(&s, i, "other results", back ? "in another place" : "again");
                }
            }
            forget(&s);
        }
        if (there)
            close_memory(&s);
        free(kept);
        memcpy(why, s.why, sizeof why);
        drop(&s);
    }
    verdict(why, "%s-repeats-%s", beyond ? "mid" : "tiny", routine_name(r, p));
}

/* ---- beyond the tiny orders: exact factors, many sides, a few of each kernel ---- */

/* The largest orders of a kernel: a slice or a block of 32 more; what the chip holds in
 * mid_cholesky_kernels.cuh; SHARED_FROM, FAST_FROM and potri's in mid_*.cu. */
static const int64_t hand_over[] = {33,  48,  64,  96,  128, 160, 192,
                                    224, 256, 320, 383, 512, 575, 1023};
enum { HAND_OVERS = sizeof hand_over / sizeof *hand_over };

/* FEW copies of a factor of integers times itself: its bits. */
static void exact_factors(enum bl_precision p)
{
    char why[500] = "", first[300] = "";
    for (int k = 0; k < 6 * HAND_OVERS && !*why; k++) {
        const int64_t n = hand_over[k / 6] - 1 + k / 2 % 3;
        struct batch s = new_batch(BL_POTRF, p, k % 2 ? 'U' : 'L', FEW);
        s.pointers = k % 4 > 1;
        for (int64_t i = 0; i < FEW; i++) {
            struct entry *e = &s.entry[i];
            e->a = matrix_new(p, n, n, n + 1, GAP);
            e->b = matrix_new(p, n, 0, n + 1, GAP);
            matrix_fill_banded(&e->a, s.uplo);
            e->want_a = matrix_copy(&e->a);
            for (int64_t c = 0; c < n; c++)
                for (int64_t d = c; d < n; d++) {
                    const double complex l = banded_factor(p, d, c);
                    if (s.uplo == 'L')
                        matrix_put(&e->want_a, d, c, creal(l), cimag(l));
                    else
                        matrix_put(&e->want_a, c, d, creal(l), -cimag(l));
                }
        }
        if (open_memory(&s, memory_beyond(BL_POTRF, p, n, FEW, false))) {
            if (run(&s))
                for (int64_t i = 0; i < FEW; i++) {
                    struct entry *e = &s.entry[i];
                    if (e->got_info)
                        fault(&s, i, "INFO", "is not 0");
                    if (differing(&e->got_a, &e->want_a, s.uplo, -1, true, first,
                                  sizeof first) ||
                        touched(&e->got_a, &e->a, s.uplo, first, sizeof first))
                        fault(&s, i, "A", first);
                }
            forget(&s);
            close_memory(&s);
        }
        memcpy(why, s.why, sizeof why);
        drop(&s);
    }
    verdict(why, "mid-exact-factors-%s", routine_name(BL_POTRF, p));
}

/* Also in a batch that fills the card: it has kernels of its own. */
static void many_sides(enum bl_routine_id r, enum bl_precision p)
{
    static const struct {
        int64_t n, sides, count;
    } load[] = {{64, 500, FEW},  {64, 2000, FEW},  {150, 500, FEW}, {150, 2000, FEW},
                {300, 500, FEW}, {300, 2000, FEW}, {64, 500, 150}};
    char why[500] = "";
    for (size_t k = 0; k < 2 * sizeof load / sizeof *load && !*why; k++) {
        const int64_t n = load[k / 2].n, sides = load[k / 2].sides;
        struct batch s = new_batch(r, p, k % 2 ? 'U' : 'L', load[k / 2].count);
        s.nrhs = sides;
        s.pointers = k % 4 == 1;
        for (int64_t i = 0; i < s.count; i++)
            pose(&s, i, n, (enum matrix_class)(i % CLASS_SUBNORMAL), CLASS_RANDOM, 1,
                 (uint64_t)(i + 31 * (int64_t)k));
        if (open_memory(&s, memory_for(r, p, n, s.count, false, &sides, 1, sides))) {
            run_and_check(&s);
            close_memory(&s);
        }
        memcpy(why, s.why, sizeof why);
        drop(&s);
    }
    verdict(why, "mid-many-sides-%s", routine_name(r, p));
}

/* Those that take longest come first. */
static void more(int64_t item, void *data)
{
    const enum bl_precision p = (enum bl_precision)(BL_Z - item % BL_PRECISIONS);
    (void)data;
    if (!strchr(letters, "sdcz"[p]))
        return;
    switch (item / BL_PRECISIONS) {
    case 0:
        many_sides(BL_POSV, p);
        break;
    case 1:
        many_sides(BL_POTRS, p);
        break;
    case 2:
        exact_factors(p);
        break;
    case 3:
        repeats(BL_POSV, p);
        break;
    case 4:
        repeats(BL_POTRI, p);
        break;
    case 5:
        repeats(BL_POTRS, p);
        break;
    default:
        repeats(BL_POTRF, p);
    }
}
enum { MORE = 7 };

/* On the chip and by slices, a few sides and tiles, the kernels of potri; or potrf with
 * several blocks a matrix. */
static void brief(enum bl_precision p, bool spread)
{
    static const struct {
        enum bl_routine_id routine;
        int64_t n, sides;
        bool fast;
    } jobs[] = {{BL_POTRF, 129, 0, false},
                {BL_POTRF, 257, 0, false},
                {BL_POTRF, 129, 0, true},
                {BL_POTRF, 257, 0, true},
                {BL_POTRS, 70, 1, false},
                {BL_POTRS, 70, 9, false},
                {BL_POTRS, 70, 70, true},
                {BL_POSV, 70, 3, false},
                {BL_POTRI, 70, 0, false},
                {BL_POTRI, 130, 0, false},
                /* spread */
                {BL_POTRF, 577, 0, false},
                {BL_POTRF, 577, 0, true}};
    const size_t count = sizeof jobs / sizeof *jobs;
    for (size_t k = spread ? 2 * count - 4 : 0; k < 2 * (spread ? count : count - 2);
         k++) {
        const enum bl_routine_id r = jobs[k / 2].routine;
        const int64_t sides = jobs[k / 2].sides,
                      n = spread && is_complex(p) ? 385 : jobs[k / 2].n;
        struct batch s = new_batch(r, p, k % 2 ? 'U' : 'L', spread ? 1 : FEW);
        s.nrhs = sides;
        s.pointers = spread; /* or a few would be for the kernels of one large matrix */
        s.fast = jobs[k / 2].fast;
        for (int64_t i = 0; i < s.count; i++)
            pose(&s, i, n, s.fast ? CLASS_INTEGER : (enum matrix_class)(i % CLASSES),
                 CLASS_INTEGER, 1, (uint64_t)(i + 31 * (int64_t)k));
        if (open_memory(&s, memory_for(r, p, n, s.count, s.fast, &sides, 1, sides))) {
            if (!s.fast)
                run_and_check(&s);
            else if (run(&s))
                for (int64_t i = 0; i < s.count; i++)
                    if (s.entry[i].got_info != s.entry[i].want_info)
                        fault(&s, i, "INFO", "is not netlib's");
            forget(&s);
            close_memory(&s);
        }
        verdict(s.why, "mid-brief-%s-%c%s-%lld-%lld", routine_name(r, p), s.uplo,
                s.fast ? "-fast" : "", (long long)n, (long long)sides);
        drop(&s);
    }
}

/* ---- everything ---- */

static const enum bl_routine_id routines[] = {BL_POTRF, BL_POTRS, BL_POSV, BL_POTRI};

/* Orders of every kernel, both triangles, a warp more than full, every class. */
static void few(enum bl_routine_id r, enum bl_precision p)
{
    static const int64_t order[] = {1,  3,  4,  7,  8,  11, 12, 13,
                                    16, 19, 24, 27, 31, 32, 40};
    enum { ORDERS = sizeof order / sizeof *order, COUNT = 37 };
    const int orders = r == BL_POTRI ? ORDERS : ORDERS - 1; /* the last is of potri */
    char why[500] = "";
    for (int k = 0; k < 2 * orders && !*why; k++) {
        struct batch s = new_batch(r, p, k % 2 ? 'U' : 'L', COUNT);
        s.nrhs *= 1 + k % 3;
        s.pointers = k % 4 == 3;
        s.int_size = k % 3 ? 4 : 8;
        for (int64_t i = 0; i < COUNT; i++)
            pose(&s, i, order[k / 2], (enum matrix_class)(i % CLASSES), CLASS_RANDOM,
                 k % 3, (uint64_t)(i + 31 * k));
        if (open_memory(&s, (size_t)16 << 20)) {
            run_and_check(&s);
            close_memory(&s);
        }
        memcpy(why, s.why, sizeof why);
        drop(&s);
    }
    verdict(why, "tiny-few-%s", routine_name(r, p));
}

/* Those that take longest come first. */
static void rest(int64_t item, void *data)
{
    enum bl_precision p = (enum bl_precision)(BL_Z - item % BL_PRECISIONS);
    int64_t which = item / BL_PRECISIONS;
    (void)data;
    if (which < 4)
        counts(routines[which], p);
    else if (which < 8)
        repeats(routines[which - 4], p);
    else
        different_shapes(p, which == 8 ? 'L' : 'U');
}

int main(int argc, char **argv)
{
    if (argc > 1)
        wanted = atoll(argv[1]);
    const char *part = argc > 2 ? argv[2] : "";
    const bool small = !strcmp(part, "small"), spread = !strcmp(part, "spread"),
               is_brief = spread || !strcmp(part, "brief"),
               is_more = !strcmp(part, "more");
    beyond = *part && !small;
    if (argc > 3)
        letters = argv[3];
    if (!reference_open())
        return 0;
    enum bl_reason why = BL_REASONS;
    engine = bl_engine_for(0, true, &why);
    verdict(engine ? "" : bl_engine_why(), "tiny-cholesky-engine");
    if (!engine)
        return 1;
    if (is_more)
        in_parallel(MORE * BL_PRECISIONS, more, NULL);
    for (int p = 0; p < BL_PRECISIONS && is_brief; p++)
        if (strchr(letters, "sdcz"[p]))
            brief((enum bl_precision)p, spread);
    if (is_more || is_brief)
        return failures() != 0;
    for (int p = 0; p < BL_PRECISIONS && beyond; p++) {
        if (!strchr(letters, "sdcz"[p]))
            continue;
        every_order(BL_POTRF, (enum bl_precision)p);
        every_order(BL_POTRS, (enum bl_precision)p);
        every_order(BL_POSV, (enum bl_precision)p);
        every_order(BL_POTRI, (enum bl_precision)p);
        in_fast(BL_POTRF, (enum bl_precision)p, -1);
        in_fast(BL_POTRS, (enum bl_precision)p, -1);
        in_fast(BL_POSV, (enum bl_precision)p, -1);
        different_shapes((enum bl_precision)p, 'L');
        different_shapes((enum bl_precision)p, 'U');
        large_factor((enum bl_precision)p, 'L');
        large_factor((enum bl_precision)p, 'U');
    }
    for (int i = 0; small && i < 4 * BL_PRECISIONS; i++)
        few(routines[i / BL_PRECISIONS], (enum bl_precision)(i % BL_PRECISIONS));
    for (int p = BL_D; small && p <= BL_C; p++) {
        in_fast(BL_POTRF, (enum bl_precision)p, OF_65);
        in_fast(BL_POTRS, (enum bl_precision)p, OF_65);
    }
    if (beyond || small)
        return failures() != 0;
    for (int r = 0; r < 4; r++)
        for (int p = 0; p < BL_PRECISIONS; p++)
            every_order(routines[r], (enum bl_precision)p);
    in_parallel(10 * BL_PRECISIONS, rest, NULL);
    return failures() != 0;
}
