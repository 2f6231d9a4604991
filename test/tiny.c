/* Matrices up to 32 x 32 against netlib, straight through the engine, so that what lies
 * between and behind the columns can be poisoned and looked at again.
 *
 *     tiny [matrices a precision [small]]
 *
 * getrf, gesv, getrs and their relatives by bits: every m, n in 1..32, every class of
 * input, strided and by pointers, 32- and 64-bit integers, batches around the limits of a
 * grid, batches of different shapes. Inverses by residual against netlib's over classes
 * of ill-conditioned matrices. A result may depend neither on the place in the batch nor
 * on the run. small: only that, of few matrices, for tools that slow everything down.
 * getrfnp, getrfsp and gedet are led back to netlib's getrf. Links libshim;
 * the engine is the one that BATCHLAPACK_ENGINE names or that lies beside the program.
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

/* An offset into both. Not aligned to more than 8 bytes, so that complex matrices are not
 * always whole. */
static size_t take(struct arena *arena, size_t bytes)
{
    size_t at = arena->used + (arena->used % 16 ? 0 : 8);
    arena->used = (at + bytes + 7) / 8 * 8;
    if (arena->used > arena->size) {
        verdict("a test needs more memory than it has", "tiny-arena");
        exit(1);
    }
    return at;
}

/* ---- a batch: matrices with everything that a job may name ---- */

struct entry {
    struct matrix a, b, x; /* as they go in; a.ld and so on are of this one */
    struct matrix want_a, want_b;
    int64_t m, n, want_info, got_info;
    int32_t ipiv[MOST], want_ipiv[MOST];
    int64_t got_ipiv[MOST];
    double phase[2], logabs;
    size_t at_a, at_b, at_x;
};

struct batch {
    enum bl_routine_id routine;
    enum bl_precision precision;
    int int_size;
    bool pointers, shapes; /* arrays of pointers in reverse order; items */
    int64_t count, nrhs;
    struct entry *entry;
    char why[500];
};

static void fault(struct batch *s, int64_t i, const char *what, const char *detail)
{
    const struct entry *e = &s->entry[i];
    if (!*s->why)
        snprintf(s->why, sizeof s->why, "%s %lld x %lld, %lld right, item %lld: %s %s",
                 routine_name(s->routine, s->precision), (long long)e->m, (long long)e->n,
                 (long long)s->nrhs, (long long)i, what, detail);
}

static struct batch new_batch(enum bl_routine_id r, enum bl_precision p, int64_t count)
{
    return (struct batch){.routine = r,
                          .precision = p,
                          .int_size = 4,
                          .count = count,
                          .nrhs = routine_has(r, 'B') ? 1 : 0,
                          .entry = calloc((size_t)count, sizeof(struct entry))};
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
    for (int64_t i = 0; i < s->count; i++) {
        struct entry *e = &s->entry[i];
        matrix_free(&e->a);
        matrix_free(&e->b);
        matrix_free(&e->x);
        matrix_free(&e->want_a);
        matrix_free(&e->want_b);
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
                     .trans = "N",
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
    struct matrix factors = e->want_a;
    e->want_a = e->a;
    e->a = factors;
    memcpy(e->ipiv, e->want_ipiv, sizeof e->ipiv);
}

static struct bl_operand place_all(struct batch *s, struct arena *arena, char which)
{
    struct bl_operand o = {NULL, NULL, 0, 0};
    size_t most = 0, element = element_bytes(s->precision);
    for (int64_t i = 0; i < s->count; i++) {
        struct entry *e = &s->entry[i];
        const struct matrix *m = which == 'a' ? &e->a : which == 'b' ? &e->b : &e->x;
        size_t bytes = matrix_bytes(m);
        most = bytes > most ? bytes : most;
        o.ld = m->ld;
    }
    size_t all = take(arena, most * (size_t)s->count);
    size_t list = s->pointers ? take(arena, (size_t)s->count * sizeof(void *)) : 0;
    for (int64_t i = 0; i < s->count; i++) {
        struct entry *e = &s->entry[i];
        const struct matrix *m = which == 'a' ? &e->a : which == 'b' ? &e->b : &e->x;
        size_t at = all + most * (size_t)(s->pointers ? s->count - 1 - i : i);
        memcpy(arena->host + at, m->data, matrix_bytes(m));
        *(which == 'a' ? &e->at_a : which == 'b' ? &e->at_b : &e->at_x) = at;
        void *there = arena->device + at;
        if (s->pointers)
            memcpy(arena->host + list + (size_t)i * sizeof there, &there, sizeof there);
    }
    o.p = arena->device + all;
    o.stride = (int64_t)(most / element);
    if (s->pointers)
        o.array = (void *const *)(void *)(arena->device + list);
    return o;
}

/* Run it and fetch everything. Entries keep what went in; the answers lie in the arena.
 */
static bool run(struct batch *s, struct arena *arena)
{
    enum { IPIV_STRIDE = MOST + 1 };
    size_t integer = (size_t)s->int_size, count = (size_t)s->count;
    arena->used = 0;
    struct bl_job job = {.routine = s->routine,
                         .precision = s->precision,
                         .trans = routine_has(s->routine, 't') ? 'N' : 0,
                         .int_size = s->int_size,
                         .nrhs = s->nrhs,
                         .batch = s->count};
    bool apart = routine_has(s->routine, 'X');
    bool determinant = routine_has(s->routine, 'D');
    size_t ipiv = take(arena, count * IPIV_STRIDE * integer);
    size_t info = take(arena, count * integer), items = 0;
    size_t phase = take(arena, count * 16), logabs = take(arena, count * 8);
    job.a = place_all(s, arena, 'a');
    if (s->nrhs > 0)
        job.b = place_all(s, arena, 'b');
    if (apart)
        job.x = place_all(s, arena, 'x');
    if (s->shapes)
        items = take(arena, count * sizeof(struct bl_item));
    for (int64_t i = 0; i < s->count; i++) {
        const struct entry *e = &s->entry[i];
        job.m = e->m > job.m ? e->m : job.m;
        job.n = e->n > job.n ? e->n : job.n;
        for (int64_t k = 0; k < IPIV_STRIDE; k++)
            integer_put(arena->host + ipiv, i * IPIV_STRIDE + k, s->int_size,
                        k < MOST && e->ipiv[k] ? e->ipiv[k] : GUARD);
        integer_put(arena->host + info, i, s->int_size, GUARD);
        struct bl_item item = {i, e->m, e->n, e->a.ld, e->x.ld};
        if (s->shapes)
            memcpy(arena->host + items + (size_t)i * sizeof item, &item, sizeof item);
    }
    if (s->shapes)
        job.items = (const struct bl_item *)(void *)(arena->device + items);
    job.ipiv = (struct bl_operand){arena->device + ipiv, NULL, 0, IPIV_STRIDE};
    job.info = (struct bl_operand){arena->device + info, NULL, 0, 1};
    if (determinant) {
        job.phase = (struct bl_operand){arena->device + phase, NULL, 0, 1};
        job.logabs = (struct bl_operand){arena->device + logabs, NULL, 0, 1};
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
    for (int64_t i = 0; i < s->count; i++) {
        struct entry *e = &s->entry[i];
        e->got_info = integer_get(arena->host + info, i, s->int_size);
        for (int64_t k = 0; k < MOST; k++)
            e->got_ipiv[k] =
                integer_get(arena->host + ipiv, i * IPIV_STRIDE + k, s->int_size);
        bool wide = is_double(s->precision);
        for (int64_t k = 0; determinant && k < 3; k++) {
            size_t real = wide ? 8 : 4, part = is_complex(s->precision) ? 2 : 1;
            size_t from = k < 2 ? phase + ((size_t)i * part + (size_t)k) * real
                                : logabs + (size_t)i * real;
            float narrow;
            double value = 0;
            memcpy(&narrow, arena->host + from, 4);
            if (wide)
                memcpy(&value, arena->host + from, 8);
            if (k == 1 && part == 1)
                continue;
            *(k < 2 ? &e->phase[k] : &e->logabs) = wide ? value : (double)narrow;
        }
    }
    return true;
}

static struct matrix view(const struct arena *arena, const struct matrix *m, size_t at)
{
    struct matrix v = *m;
    v.data = arena->host + at;
    return v;
}

/* ---- by bits ---- */

static void check_integers(struct batch *s, int64_t i)
{
    const struct entry *e = &s->entry[i];
    char text[100];
    if (e->got_info != e->want_info) {
        snprintf(text, sizeof text, "is %lld, not %lld", (long long)e->got_info,
                 (long long)e->want_info);
        fault(s, i, "INFO", text);
    }
    if (!routine_has(s->routine, 'P') && !routine_has(s->routine, 'p'))
        return;
    for (int64_t k = 0; k < MOST; k++) {
        int64_t want = k < pivots_of(e) ? e->want_ipiv[k] : e->ipiv[k];
        if (e->got_ipiv[k] != (want ? want : GUARD)) {
            snprintf(text, sizeof text, "(%lld) is %lld, not %lld", (long long)k + 1,
                     (long long)e->got_ipiv[k], (long long)want);
            fault(s, i, "IPIV", text);
        }
    }
}

static void check_bits(struct batch *s, const struct arena *arena)
{
    char first[300] = "";
    for (int64_t i = 0; i < s->count && !*s->why; i++) {
        struct entry *e = &s->entry[i];
        check_integers(s, i);
        bool zeros = holds_negative_zero(&e->a, 0) ||
                     (s->nrhs > 0 && holds_negative_zero(&e->b, 0));
        struct matrix a = view(arena, &e->a, e->at_a), b = view(arena, &e->b, e->at_b);
        if (differing(&a, &e->want_a, 0, -1, zeros, first, sizeof first) ||
            touched(&a, &e->a, 0, first, sizeof first))
            fault(s, i, "A", first);
        if (s->nrhs > 0 &&
            (differing(&b, &e->want_b, 0, -1, zeros, first, sizeof first) ||
             touched(&b, &e->b, 0, first, sizeof first)))
            fault(s, i, "B", first);
    }
}

/* Thread by thread: one shape after the other. */
struct sweep {
    enum bl_routine_id routine;
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
    bool square = !routine_has(w->routine, 'm');
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
        struct batch s = new_batch(w->routine, w->precision, each);
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
            if (w->routine == BL_GETRS)
                make_factors(&s, e);
            ask_netlib(&s, e, w->routine);
        }
        if (run(&s, &arena))
            check_bits(&s, &arena);
        tell(w, &s);
        __atomic_fetch_add(&w->matrices, each, __ATOMIC_RELAXED);
        drop(&s);
    }
    arena_close(&arena);
}

static void by_bits(enum bl_routine_id r, enum bl_precision p)
{
    struct sweep w = {.routine = r, .precision = p};
    in_parallel(MOST, sweep_rows, &w);
    verdict(w.why, "tiny-%s-bits-of-%lld", routine_name(r, p), (long long)w.matrices);
}

/* ---- batches of different shapes ---- */

static void different_shapes(enum bl_precision p)
{
    struct arena arena;
    struct rng r = {(uint64_t)p + 77};
    struct batch s = new_batch(BL_GETRF, p, 600);
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

/* ---- counts around the limits of a grid; repeats; places ---- */

static void counts(enum bl_precision p)
{
    static const int64_t count[] = {1, 2, 31, 33, 9001, 20011, 65535, 65536, 524281};
    static const int64_t order[] = {32, 13, 7, 6, 27, 18, 4, 3, 2};
    enum { INPUTS = 97 };
    char why[500] = "";
    struct arena arena;
    if (!arena_open(&arena, (size_t)512 << 20)) {
        verdict("no memory", "tiny-counts-%c", "sdcz"[p]);
        return;
    }
    for (int k = 0; k < 9 && !*why; k++) {
        struct batch few = new_batch(BL_GETRF, p, INPUTS);
        struct batch s = new_batch(BL_GETRF, p, count[k]);
        for (int64_t i = 0; i < INPUTS; i++) {
            struct entry *e = shape(&few, i, order[k], order[k], 0);
            matrix_fill(&e->a, (enum matrix_class)(i % CLASSES), (uint64_t)(i * 7 + k));
            ask_netlib(&few, e, BL_GETRF);
        }
        for (int64_t i = 0; i < count[k]; i++)
            s.entry[i] = few.entry[i % INPUTS];
        if (run(&s, &arena))
            check_bits(&s, &arena);
        memcpy(why, s.why, sizeof why);
        free(s.entry);
        drop(&few);
    }
    verdict(why, "tiny-counts-%c", "sdcz"[p]);
    arena_close(&arena);
}

/* The same bits in a hundred runs, and in the reverse order. */
static void repeats(enum bl_routine_id r, enum bl_precision p)
{
    static const int64_t order[] = {4, 7, 16, 19, 23, 27, 32};
    const int64_t COUNT = small ? 37 : 331;
    char why[500] = "";
    struct arena arena;
    if (!arena_open(&arena, (size_t)32 << 20)) {
        verdict("no memory", "tiny-repeats-%s", routine_name(r, p));
        return;
    }
    for (int k = 0; k < 7 && !*why; k++) {
        const int64_t n = order[k];
        struct batch s = new_batch(r, p, COUNT);
        size_t bytes = 0;
        char *kept[2] = {NULL, NULL};
        for (int64_t i = 0; i < COUNT; i++) {
            struct entry *e = shape(&s, i, n, n, 1);
            matrix_fill(&e->a, (enum matrix_class)(i % CLASSES), (uint64_t)(i + 31 * k));
            matrix_fill(&e->b, CLASS_RANDOM, (uint64_t)i);
            if (routine_has(r, 'p'))
                make_factors(&s, e);
        }
        for (int turn = 0; turn < (small ? 2 : 102) && !*s.why; turn++) {
            bool back = turn >= 100;
            for (int64_t i = 0; back && turn == 100 && i < COUNT / 2; i++) {
                struct entry swap = s.entry[i];
                s.entry[i] = s.entry[COUNT - 1 - i];
                s.entry[COUNT - 1 - i] = swap;
            }
            if (!run(&s, &arena))
                break;
            bytes = matrix_bytes(&s.entry[0].a);
            if (turn == 0)
                for (int m = 0; m < 2; m++)
                    kept[m] = malloc((size_t)COUNT * bytes);
            for (int64_t i = 0; i < COUNT; i++) {
                struct entry *e = &s.entry[i];
                bool x = routine_has(r, 'X');
                const char *got[2] = {arena.host + (x ? e->at_x : e->at_a),
                                      s.nrhs ? arena.host + e->at_b : NULL};
                int64_t at = back ? COUNT - 1 - i : i;
                for (int m = 0; m < 2; m++) {
                    size_t size = m ? matrix_bytes(&e->b) : bytes;
                    char *old = kept[m] + (size_t)at * bytes;
                    if (!got[m])
                        continue;
                    if (turn == 0)
                        memcpy(old, got[m], size < bytes ? size : bytes);
                    else if (memcmp(old, got[m], size < bytes ? size : bytes))
                        fault(&s, i, "other bits", back ? "in another place" : "again");
                }
            }
        }
        free(kept[0]);
        free(kept[1]);
        memcpy(why, s.why, sizeof why);
        drop(&s);
    }
    arena_close(&arena);
    verdict(why, "tiny-repeats-%s", routine_name(r, p));
}

/* ---- inverses ---- */

#define ILL_CLASSES 9

/* Condition 10^2, 10^4, ... as the precision allows, graded rows and columns, Hilbert. */
static void fill_ill(struct matrix *a, int class, int64_t which, struct rng *r)
{
    static const double exponent[2][7] = {{1, 2, 3, 4, 5, 5.5, 6},
                                          {2, 4, 7, 9, 11, 13, 15}};
    int64_t n = a->cols;
    double range = class < 7 ? exponent[is_double(a->precision)][class] : 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            double d = n > 1 ? pow(10, -range * (double)i / (double)(n - 1)) : 1;
            double h = 1 / (double)(i + j + 1 + which % 7);
            matrix_put(a, i, j, class == 8 ? h : i == j ? d : 0, 0);
        }
    for (int k = 0; k < 3 && class < 7; k++) {
        matrix_reflect(a, r, true);
        matrix_reflect(a, r, false);
    }
    if (class == 7)
        matrix_fill(a, CLASS_GRADED, rng_next(r));
}

static void inverse_error(enum bl_routine_id r, enum bl_precision p)
{
    enum { COUNT = 93 };
    const double threshold = 30; /* LAPACK's own */
    char why[500] = "", figures[200] = "";
    struct arena arena;
    if (!arena_open(&arena, (size_t)32 << 20)) {
        verdict("no memory", "tiny-error-%s", routine_name(r, p));
        return;
    }
    for (int class = 0; class < ILL_CLASSES && !*why; class ++) {
        struct rng rng = {(uint64_t)(class * 4 + (int)p)};
        struct batch s = new_batch(r, p, COUNT);
        struct matrix original[COUNT];
        double ours = 0, theirs = 0;
        int judged = 0;
        for (int64_t i = 0; i < COUNT; i++) {
            int64_t most = class < 8 ? MOST : is_double(p) ? 12 : 6;
            int64_t n = class < 8 ? 2 + i % (most - 1) : 2 + i % (most - 1);
            struct entry *e = shape(&s, i, n, n, i % 3);
            fill_ill(&e->a, class, i, &rng);
            original[i] = matrix_copy(&e->a);
        }
        /* One shape a run: the largest of a batch of one shape is the shape. */
        for (int64_t i = 0; i < COUNT && !*s.why; i++) {
            struct batch one = s;
            one.count = 1;
            one.entry = &s.entry[i];
            struct entry *e = one.entry;
            make_factors(&one, e);
            struct matrix factors = matrix_copy(&e->a);
            int64_t singular = e->want_info;
            ask_netlib(&one, e, BL_GETRI);
            struct matrix netlibs = matrix_copy(&e->want_a);
            if (r == BL_GEINV) {
                matrix_free(&e->a);
                e->a = matrix_copy(&original[i]);
            }
            if (run(&one, &arena)) {
                bool x = routine_has(r, 'X');
                struct matrix got =
                    view(&arena, x ? &e->x : &e->a, x ? e->at_x : e->at_a);
                char first[300] = "";
                if (e->got_info != singular)
                    fault(&one, 0, "INFO", "is not netlib's");
                if (touched(&got, x ? &e->x : &e->a, 0, first, sizeof first))
                    fault(&one, 0, "the inverse's surroundings:", first);
                if (!singular && is_finite(&netlibs, 0)) {
                    double own = inverse_residual(&original[i], &got, 0);
                    double their = inverse_residual(&original[i], &netlibs, 0);
                    ours = own > ours || isnan(own) ? own : ours;
                    theirs = their > theirs ? their : theirs;
                    judged++;
                }
            }
            memcpy(s.why, one.why, sizeof s.why);
            matrix_free(&factors);
            matrix_free(&netlibs);
        }
        snprintf(figures, sizeof figures, "%.3g, netlib's %.3g, class %d", ours, theirs,
                 class);
        if (!(ours <= 5 * theirs) || !(ours < threshold))
            fault(&s, 0, "largest residual", figures);
        if (judged < 60)
            fault(&s, 0, "fewer than 60 matrices had an inverse:", figures);
        printf("# %s: largest residual %s, of %d matrices\n", routine_name(r, p), figures,
               judged);
        memcpy(why, s.why, sizeof why);
        for (int64_t i = 0; i < COUNT; i++)
            matrix_free(&original[i]);
        drop(&s);
    }
    arena_close(&arena);
    verdict(why, "tiny-error-%s", routine_name(r, p));
}

/* Every class and size: INFO, what is singular, and the bits where netlib's is exact
 * (integer matrices with an integer inverse come close to it: a residual of 0). */
static void inverse_info(enum bl_routine_id r, enum bl_precision p)
{
    char why[500] = "", first[300] = "";
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
            struct matrix original = matrix_copy(&e->a);
            make_factors(&s, e);
            if (r == BL_GEINV) {
                matrix_free(&e->want_a);
                e->want_a = e->a;
                e->a = original;
            } else {
                int64_t info = e->want_info;
                matrix_free(&original);
                ask_netlib(&s, e, BL_GETRI);
                if (info != e->want_info)
                    fault(&s, i, "netlib's INFO", "of getri is not getrf's");
            }
        }
        s.pointers = n % 2;
        if (!*s.why && run(&s, &arena))
            for (int64_t i = 0; i < s.count && !*s.why; i++) {
                struct entry *e = &s.entry[i];
                struct matrix a = view(&arena, &e->a, e->at_a);
                if (e->got_info != e->want_info)
                    fault(&s, i, "INFO", "is not netlib's");
                if (e->want_info == 0)
                    continue;
                /* getri leaves A, getri_oop X alone; geinv leaves the factors in X. */
                struct matrix x = view(&arena, &e->x, e->at_x);
                if (r == BL_GEINV &&
                    differing(&x, &e->want_a, 0, -1, holds_negative_zero(&e->a, 0), first,
                              sizeof first))
                    fault(&s, i, "the factors of a singular matrix", first);
                if (r != BL_GEINV &&
                    differing(&a, &e->a, 0, -1, false, first, sizeof first))
                    fault(&s, i, "A of a singular matrix", first);
            }
        memcpy(why, s.why, sizeof why);
        drop(&s);
    }
    arena_close(&arena);
    verdict(why, "tiny-info-%s", routine_name(r, p));
}

/* ---- getrfnp, getrfsp, gedet: led back to getrf ---- */

/* With its rows in the order that getrf chooses, a matrix needs no interchanges, and
 * getrfnp's factors are getrf's. */
static void no_pivoting(enum bl_precision p)
{
    struct arena arena;
    struct batch s = new_batch(BL_GETRFNP, p, 24 * MOST);
    struct batch one;
    for (int64_t i = 0; i < s.count; i++) {
        int64_t m = 1 + i % MOST, n = 1 + (i * 7 + i / MOST) % MOST;
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
            one = s;
            one.entry = &s.entry[i];
            one.count = 1;
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
    struct batch s = new_batch(BL_GETRFSP, p, 24 * MOST), one;
    for (int64_t i = 0; i < s.count; i++) {
        int64_t m = 1 + i % MOST, n = 1 + (i * 7 + i / MOST) % MOST;
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
            one = s;
            one.entry = &s.entry[i];
            one.count = 1;
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
        printf("skip tiny-%s - no memory\n", routine_name(BL_GEDET, p));
        return;
    }
    for (int64_t n = 1; n <= MOST && !*why; n++) {
        struct batch s = new_batch(BL_GEDET, p, 4 * CLASSES);
        for (int64_t i = 0; i < s.count; i++) {
            struct entry *e = shape(&s, i, n, n, n % 3);
            matrix_fill(&e->a, (enum matrix_class)(i % CLASSES), seed_of(p, n, n, i));
            ask_netlib(&s, e, BL_GETRF);
        }
        if (run(&s, &arena))
            for (int64_t i = 0; i < s.count && !*s.why; i++) {
                struct entry *e = &s.entry[i];
                struct matrix a = view(&arena, &e->a, e->at_a);
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
                if (e->got_info != e->want_info)
                    fault(&s, i, "INFO", "is not netlib's");
                snprintf(text, sizeof text, "%g,%g %g, not %Lg,%Lg %Lg", e->phase[0],
                         e->phase[1], e->logabs, creall(phase), cimagl(phase), logabs);
                if (e->want_info) {
                    if (e->phase[0] != 0 || e->phase[1] != 0 || e->logabs != -HUGE_VAL)
                        fault(&s, i, "a singular matrix's determinant", text);
                } else if (is_finite(&e->want_a, 0)) {
                    if (!(fabsl(creall(phase) - e->phase[0]) <= eps) ||
                        !(fabsl(cimagl(phase) - e->phase[1]) <= eps) ||
                        !(fabsl(logabs - e->logabs) <=
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

static const enum bl_routine_id inverses[] = {BL_GEINV, BL_GETRI, BL_GETRI_OOP};
static const enum bl_routine_id repeated[] = {BL_GETRF, BL_GESV,    BL_GETRS,  BL_GETRI,
                                              BL_GEINV, BL_GETRFNP, BL_GETRFSP};

static void rest(int64_t item, void *data)
{
    enum bl_precision p = (enum bl_precision)(item % BL_PRECISIONS);
    int64_t which = item / BL_PRECISIONS;
    (void)data;
    if (which < 3)
        inverse_error(inverses[which], p);
    else if (which < 6)
        inverse_info(inverses[which - 3], p);
    else if (which < 13)
        repeats(repeated[which - 6], p);
    else if (which == 13)
        different_shapes(p);
    else if (which == 14)
        no_pivoting(p);
    else if (which == 15)
        scaled_pivoting(p);
    else
        determinants(p);
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
    for (int p = 0; small && p < BL_PRECISIONS; p++) {
        repeats(BL_GETRF, (enum bl_precision)p);
        repeats(BL_GESV, (enum bl_precision)p);
        repeats(BL_GETRS, (enum bl_precision)p);
        repeats(BL_GEINV, (enum bl_precision)p);
    }
    if (small)
        return failures() != 0;
    for (int p = 0; p < BL_PRECISIONS; p++) {
        by_bits(BL_GETRF, (enum bl_precision)p);
        by_bits(BL_GESV, (enum bl_precision)p);
        by_bits(BL_GETRS, (enum bl_precision)p);
    }
    in_parallel(17 * BL_PRECISIONS, rest, NULL);
    for (int p = 0; p < BL_PRECISIONS; p++)
        counts((enum bl_precision)p);
    return failures() != 0;
}
