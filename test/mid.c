/* Batched getrf of 33 to 1024 rows and columns, straight through an engine, bit by bit
 * against netlib: square, tall and wide, every class of input, strided and by pointers,
 * equal shapes and items, both integer sizes, padded columns, guard words.
 *
 *     mid [MATRICES [LARGEST [PRECISIONS]]]
 *     mid shapes | families | repeats | small [PRECISIONS]
 *
 * MATRICES: a precision, at least (400). LARGEST: the largest size (300). "sdcz".
 *
 * getrfsp by matrices for which getrf has the answer; getrf in fast arithmetic, above
 * 256, by its residual beside netlib's. The engine is the one that BATCHLAPACK_ENGINE
 * names.
 *
 * `shapes`: a few matrices of given shapes to 1024 x 1024. `families`: matrices whose
 * factors are known exactly, around the sizes where one kernel hands over to another.
 * `repeats`: some batches a hundred times; the bits may not change. `small`: a few
 * matrices for each kind of kernel, for tools that slow everything down.
 */
#include <complex.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bl.h"
#include "reference.h"

#define GUARD 8
#define INTEGER_GUARD (-99)
#define REPEATS 100
#define EACH 16 /* problems of a batch */
#define FEW 5   /* of a batch of the mid kernels, at least */

struct problem {
    enum matrix_class class;
    const char *name; /* of the class, or of the family */
    int64_t m, n, lda;
    struct matrix before, want;
    int32_t *ipiv, info;
    bool zeros;
};

struct batch {
    enum bl_precision precision;
    int64_t m, n; /* the largest */
    int64_t count;
    int int_size;
    bool pointers, items;
    bool fast;     /* fast arithmetic */
    bool scaled;   /* getrfsp, of matrices for which netlib's getrf says what comes out */
    bool ordinary; /* no subnormal numbers, which take netlib long */
    bool families; /* known factors */
    struct problem problem[EACH]; /* number i is a copy of problem i modulo EACH */
    char why[600];
};

static const struct bl_engine *engine;
static int64_t largest = 300;

/* ---- what is asked and what netlib says ---- */

static int64_t size_from(struct rng *r)
{
    int64_t dice = rng_below(r, 40);
    if (dice < 34 || largest <= 200)
        return rng_between(r, 33, largest < 200 ? largest : 200);
    if (dice < 38 || largest <= 400)
        return rng_between(r, 200, largest < 400 ? largest : 400);
    return dice < 39 ? rng_between(r, 400, largest) : largest;
}

static void shape(struct rng *r, int64_t *m, int64_t *n)
{
    *m = *n = size_from(r);
    switch (rng_below(r, 6)) {
    case 0:
        *m = size_from(r);
        break;
    case 1: /* tall */
        *n = rng_between(r, 1, 40);
        break;
    case 2: /* wide */
        *m = rng_between(r, 1, 70);
        break;
    case 3: /* tall, the last panel narrow: it may fit a chip that 64 columns do not */
        if (largest < 200)
            break;
        *n = 64 * rng_between(r, 1, 2) + rng_between(r, 1, 24);
        *m = rng_between(r, *n, largest < 300 ? largest : 300);
        break;
    default:
        break;
    }
    if (*m < 33 && *n < 33)
        *m = 33;
}

/* netlib's factors take the place of p->want. */
static void factor(struct problem *p, enum bl_precision precision)
{
    p->ipiv = calloc((size_t)(p->m < p->n ? p->m : p->n) + 1, sizeof *p->ipiv);
    struct call c = {.routine = BL_GETRF,
                     .precision = precision,
                     .m = (int32_t)p->m,
                     .n = (int32_t)p->n,
                     .lda = (int32_t)p->lda,
                     .a = p->want.data,
                     .ipiv = p->ipiv};
    reference_call(&c);
    p->info = c.info;
}

static void answer(struct problem *p, enum bl_precision precision, struct rng *r)
{
    p->before = matrix_new(precision, p->m, p->n, p->lda, GUARD);
    matrix_fill(&p->before, p->class, rng_next(r));
    p->want = matrix_copy(&p->before);
    p->zeros = holds_negative_zero(&p->before, 0);
    factor(p, precision);
}

static void scale_row(struct matrix *a, int64_t i, int power)
{
    for (int64_t j = 0; j < a->cols; j++) {
        long double complex x = matrix_get(a, i, j);
        matrix_put(a, i, j, (double)ldexpl(creall(x), power),
                   (double)ldexpl(cimagl(x), power));
    }
}

/* Rows whose largest element is 1, times powers of 2: getrfsp chooses what getrf chooses
 * without those, and everything else is off by powers of 2 alone. */
static void answer_scaled(struct problem *p, enum bl_precision precision, struct rng *r)
{
    struct matrix a = matrix_new(precision, p->m, p->n, p->lda, GUARD);
    int *power = calloc((size_t)p->m, sizeof *power);
    int64_t k = p->m < p->n ? p->m : p->n;
    matrix_fill(&a, p->class, rng_next(r));
    for (int64_t i = 0; i < p->m; i++) {
        long double most = 0;
        int e;
        for (int64_t j = 0; j < p->n; j++) {
            long double complex x = matrix_get(&a, i, j);
            most = fmaxl(most, fabsl(creall(x)) + fabsl(cimagl(x)));
        }
        (void)frexpl(most, &e);
        scale_row(&a, i, -e - 1);
        matrix_put(&a, i, rng_below(r, p->n), rng_below(r, 2) ? 1 : -1, 0);
        /* What is left of a rank-deficient matrix may be subnormal. */
        power[i] = p->class == CLASS_DEFICIENT ? 0 : (int)rng_between(r, -9, 9);
    }
    p->before = matrix_copy(&a);
    p->want = a;
    p->zeros = true;
    factor(p, precision);
    for (int64_t i = 0; i < p->m; i++)
        scale_row(&p->before, i, power[i]);
    for (int64_t j = 0; j < k; j++) {
        int t = power[j];
        power[j] = power[p->ipiv[j] - 1];
        power[p->ipiv[j] - 1] = t;
    }
    for (int64_t j = 0; j < k; j++) /* L's columns are what is divided by a pivot's row */
        for (int64_t i = j + 1; i < p->m; i++) {
            long double complex x = matrix_get(&p->want, i, j);
            int zero = matrix_get(&p->want, j, j) == 0 ? 0 : -power[j];
            matrix_put(&p->want, i, j, (double)ldexpl(creall(x), zero),
                       (double)ldexpl(cimagl(x), zero));
        }
    for (int64_t i = 0; i < p->m; i++)
        scale_row(&p->want, i, power[i]);
    free(power);
}

static void answer_family(struct problem *p, enum bl_precision precision, enum family f)
{
    const int64_t n = p->n;
    p->name = family_name[f];
    p->before = matrix_new(precision, n, n, p->lda, GUARD);
    p->ipiv = calloc((size_t)n, sizeof *p->ipiv);
    p->zeros = true;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
            matrix_put(&p->before, i, j, family_element(f, n, i, j), 0);
    p->want = matrix_copy(&p->before);
    for (int64_t j = 0; j < n; j++) {
        p->ipiv[j] = family_pivot(f, n, j);
        for (int64_t i = 0; i < n; i++)
            matrix_put(&p->want, i, j,
                       (double)family_factor(f, n, i, j, is_double(precision)), 0);
    }
}

static void pose(int64_t number, void *data)
{
    struct batch *b = (struct batch *)data + number / EACH;
    struct problem *p = &b->problem[number % EACH];
    struct rng r = {(uint64_t)number * 65537 + 11};
    if (number % EACH >= b->count)
        return;
    p->class = (enum matrix_class)(number % CLASS_INDEFINITE);
    if (b->ordinary) /* every class in two batches of a few */
        p->class =
            (enum matrix_class)((number / EACH * FEW + number % EACH) % CLASS_SUBNORMAL);
    p->m = b->m;
    p->n = b->n;
    if (b->items) {
        p->m = rng_between(&r, b->m / 2 + 1, b->m);
        p->n = rng_between(&r, b->n / 2 + 1, b->n);
        if (number % EACH == 0) {
            p->m = b->m;
            p->n = b->n;
        }
    }
    p->lda = b->m + (b->items ? rng_below(&r, 3) : (int64_t[]){0, 1, 5}[b->m % 3]);
    static const enum matrix_class plain[] = {CLASS_RANDOM, CLASS_INTEGER,
                                              CLASS_DEFICIENT, CLASS_TIED};
    if (b->fast || b->scaled)
        p->class = plain[number % 4];
    p->name = matrix_class_name[p->class];
    if (b->families) {
        answer_family(p, b->precision, (enum family)(number % FAMILIES));
        return;
    }
    if (b->scaled) {
        answer_scaled(p, b->precision, &r);
        return;
    }
    answer(p, b->precision, &r);
}

static void drop(struct batch *b)
{
    for (int64_t i = 0; i < EACH; i++) {
        matrix_free(&b->problem[i].before);
        matrix_free(&b->problem[i].want);
        free(b->problem[i].ipiv);
    }
}

/* ---- on the device ---- */

static void must(enum bl_status status, const char *what)
{
    if (status != BL_OK) {
        printf("not ok mid-%s - status %d\n", what, (int)status);
        exit(1);
    }
}

/* All of a batch in one piece of memory, here and there. */
struct slab {
    size_t a_bytes, ipiv_words, ipiv, info, a_array, ipiv_array, items, bytes;
    char *host, *device;
    void *queue;
};

static struct slab new_slab(const struct batch *b)
{
    struct slab s = {.ipiv_words = (size_t)(b->m < b->n ? b->m : b->n) + 2};
    size_t count = (size_t)b->count, word = (size_t)b->int_size;
    for (int64_t i = 0; i < EACH; i++) {
        size_t bytes = matrix_bytes(&b->problem[i].before);
        s.a_bytes = bytes > s.a_bytes ? bytes : s.a_bytes;
    }
    s.ipiv = (count * s.a_bytes + 15) / 16 * 16;
    s.info = s.ipiv + (count * s.ipiv_words * word + 15) / 16 * 16;
    s.a_array = s.info + (count * word + 15) / 16 * 16;
    s.ipiv_array = s.a_array + count * sizeof(void *);
    s.items = s.ipiv_array + count * sizeof(void *);
    s.bytes = s.items + count * sizeof(struct bl_item);
    void *p;
    must(engine->queue_open(&s.queue), "queue");
    must(engine->host_alloc(s.bytes, &p), "host-memory");
    s.host = p;
    must(engine->device_alloc(s.bytes, &p), "device-memory");
    s.device = p;
    return s;
}

static void drop_slab(struct slab *s)
{
    must(engine->host_free(s->host), "host-free");
    must(engine->device_free(s->device), "device-free");
    must(engine->queue_close(s->queue), "queue-close");
}

/* What the engine is given, on the host. */
static void fill(const struct batch *b, struct slab *s)
{
    void **a_array = (void **)(void *)(s->host + s->a_array);
    void **ipiv_array = (void **)(void *)(s->host + s->ipiv_array);
    struct bl_item *items = (struct bl_item *)(void *)(s->host + s->items);
    for (int64_t i = 0; i < b->count; i++) {
        const struct problem *p = &b->problem[i % EACH];
        char *at = s->host + (size_t)i * s->a_bytes;
        memset(at, 0x7f, s->a_bytes);
        memcpy(at, p->before.data, matrix_bytes(&p->before));
        for (int64_t k = 0; k < (int64_t)s->ipiv_words; k++)
            integer_put(s->host + s->ipiv, i * (int64_t)s->ipiv_words + k, b->int_size,
                        INTEGER_GUARD);
        integer_put(s->host + s->info, i, b->int_size, INTEGER_GUARD);
        a_array[i] = s->device + (size_t)i * s->a_bytes;
        ipiv_array[i] =
            s->device + s->ipiv + (size_t)i * s->ipiv_words * (size_t)b->int_size;
        int64_t other = b->count - 1 - i;
        p = &b->problem[other % EACH];
        items[i] = (struct bl_item){other, p->m, p->n, p->lda, 0};
    }
}

static void run(const struct batch *b, struct slab *s)
{
    struct bl_operand a = {s->device, NULL, b->problem[0].lda,
                           (int64_t)(s->a_bytes / element_bytes(b->precision))};
    struct bl_operand ipiv = {s->device + s->ipiv, NULL, 0, (int64_t)s->ipiv_words};
    if (b->pointers) {
        a.array = (void *const *)(void *)(s->device + s->a_array);
        ipiv.array = (void *const *)(void *)(s->device + s->ipiv_array);
    }
    struct bl_job job = {.routine = b->scaled ? BL_GETRFSP : BL_GETRF,
                         .precision = b->precision,
                         .arithmetic = b->fast ? BL_FAST : BL_EXACT,
                         .int_size = b->int_size,
                         .m = b->m,
                         .n = b->n,
                         .batch = b->count,
                         .a = a,
                         .ipiv = ipiv,
                         .info = {s->device + s->info, NULL, 0, 1}};
    if (b->items)
        job.items = (const struct bl_item *)(const void *)(s->device + s->items);
    size_t work = engine->workspace(&job);
    if (work)
        must(engine->device_alloc(work, &job.work), "work-space");
    must(engine->copy_in(s->queue, s->device, s->host, s->bytes), "copy-in");
    must(engine->run(&job, s->queue), "run");
    must(engine->copy_out(s->queue, s->host, s->device, s->bytes), "copy-out");
    must(engine->wait(s->queue), "wait");
    if (work)
        must(engine->device_free(job.work), "work-free");
}

static void complain(struct batch *b, int64_t i, const char *what, const char *detail)
{
    const struct problem *p = &b->problem[i % EACH];
    if (!*b->why)
        snprintf(b->why, sizeof b->why,
                 "m=%lld n=%lld lda=%lld of %lld x %lld, %s, %d-byte integers, %s%s, "
                 "number %lld of %lld: %s: %s",
                 (long long)p->m, (long long)p->n, (long long)p->lda, (long long)b->m,
                 (long long)b->n, p->name, b->int_size,
                 b->pointers ? "pointers" : "strided", b->items ? ", items" : "",
                 (long long)i, (long long)b->count, what, detail);
}

/* Where any arithmetic will do. */
static bool check_fast(struct batch *b, const struct slab *s, int64_t i)
{
    const struct problem *p = &b->problem[i % EACH];
    const int64_t k = p->m < p->n ? p->m : p->n;
    char detail[256] = "";
    struct matrix got = p->before;
    got.data = s->host + (size_t)i * s->a_bytes;
    int64_t info = integer_get(s->host + s->info, i, b->int_size);
    int64_t *ours = calloc((size_t)k, sizeof *ours),
            *theirs = calloc((size_t)k, sizeof *ours);
    bool good = p->class == CLASS_RANDOM ? info == 0 : info >= 0 && info <= k;
    if (!good)
        complain(b, i, "INFO", "of another matrix");
    for (int64_t j = 0; j < k; j++) {
        ours[j] =
            integer_get(s->host + s->ipiv, i * (int64_t)s->ipiv_words + j, b->int_size);
        theirs[j] = p->ipiv[j];
        if (good && (ours[j] <= j || ours[j] > p->m)) {
            complain(b, i, "IPIV", "no row below");
            good = false;
        }
    }
    if (good && touched(&got, &p->before, 0, detail, sizeof detail)) {
        complain(b, i, "outside of A", detail);
        good = false;
    }
    if (good) {
        const double of_ours = lu_residual(&p->before, &got, ours),
                     of_theirs = lu_residual(&p->before, &p->want, theirs);
        good = of_ours >= 0 && of_ours <= 5 * of_theirs + 1;
        snprintf(detail, sizeof detail, "%g, netlib's %g", of_ours, of_theirs);
        if (!good)
            complain(b, i, "residual", detail);
    }
    free(ours);
    free(theirs);
    return good;
}

/* What complex infinities become is not known exactly. */
static void leave_infinities_out(const struct problem *p, const struct matrix *got)
{
    for (int64_t j = 0; j < p->n; j++)
        for (int64_t i = 0; i < p->m; i++)
            if (!isfinite(creall(matrix_get(&p->want, i, j))))
                memcpy(matrix_at(&p->want, i, j), matrix_at(got, i, j),
                       element_bytes(got->precision));
}

static bool check(struct batch *b, const struct slab *s, int64_t i)
{
    if (b->fast)
        return check_fast(b, s, i);
    const struct problem *p = &b->problem[i % EACH];
    char detail[256] = "";
    struct matrix got = p->before;
    got.data = s->host + (size_t)i * s->a_bytes;
    int64_t info = integer_get(s->host + s->info, i, b->int_size),
            k = p->m < p->n ? p->m : p->n;
    if (info != p->info) {
        snprintf(detail, sizeof detail, "%lld, not %d", (long long)info, p->info);
        complain(b, i, "INFO", detail);
        return false;
    }
    for (int64_t j = 0; j < (int64_t)s->ipiv_words; j++) {
        int64_t x =
            integer_get(s->host + s->ipiv, i * (int64_t)s->ipiv_words + j, b->int_size);
        int64_t want = j < k ? p->ipiv[j] : INTEGER_GUARD;
        if (x != want) {
            snprintf(detail, sizeof detail, "(%lld) is %lld, not %lld", (long long)j + 1,
                     (long long)x, (long long)want);
            complain(b, i, "IPIV", detail);
            return false;
        }
    }
    if (b->families && is_complex(b->precision))
        leave_infinities_out(p, &got);
    if (memcmp(got.data, p->want.data, matrix_bytes(&p->want)) == 0)
        return true;
    if (touched(&got, &p->before, 0, detail, sizeof detail))
        complain(b, i, "outside of A", detail);
    else if (differing(&got, &p->want, 0, -1, p->zeros, detail, sizeof detail))
        complain(b, i, "A", detail);
    else
        return true;
    return false;
}

/* ---- all of it ---- */

static void try(struct batch *b)
{
    struct slab s = new_slab(b);
    fill(b, &s);
    run(b, &s);
    for (int64_t i = 0; i < b->count; i++)
        check(b, &s, i);
    drop_slab(&s);
    drop(b);
}

enum kind { EXACT, SCALED, FAST, SHAPES };

/* What random sizes leave out. Of 396 matrices and more to order 512 one half runs beside
 * the other. */
static const struct {
    int64_t m, n, count;
    bool items;
} shapes[] = {{1024, 1024, FEW, false}, {1000, 1000, FEW, false}, {1024, 777, FEW, false},
              {777, 1024, FEW, false},  {1024, 1024, FEW, true},  {700, 900, FEW, false},
              {897, 513, FEW, false},   {577, 577, FEW, false},   {513, 300, FEW, false},
              {300, 513, FEW, false},   {401, 401, FEW, false},   {450, 640, FEW, true},
              {1024, 64, FEW, false},   {64, 1024, FEW, false},   {1024, 40, FEW, false},
              {40, 1024, FEW, false},   {1024, 1, FEW, false},    {1, 1024, FEW, false},
              {1024, 3, FEW, true},     {3, 1024, FEW, true},     {265, 265, 400, false},
              {290, 270, 400, true}};
enum { SHAPE_COUNT = sizeof shapes / sizeof *shapes };

static void choose_shape(struct batch *b, int64_t i, enum kind kind, struct rng *r)
{
    shape(r, &b->m, &b->n);
    if (b->fast) { /* what fits the chip is exact */
        b->m = rng_between(r, 257, largest);
        b->n = rng_between(r, 65, largest);
    }
    if (i < 4) { /* the corners of what is asked */
        b->m = i == 2 ? 40 : i == 3 ? largest / 2 + 1 : largest;
        b->n = i == 1 ? 40 : i == 3 ? largest / 2 + 1 : largest;
    }
    if (b->fast && i == 0 && largest >= 400) /* single is fast from here on */
        b->m = b->n = 1024;
    b->count = EACH;
    b->int_size = rng_below(r, 2) ? 8 : 4;
    b->pointers = rng_below(r, 2);
    b->items = rng_below(r, 3) == 0;
    if (kind == SHAPES) {
        b->m = shapes[i].m;
        b->n = shapes[i].n;
        b->count = shapes[i].count;
        b->items = shapes[i].items;
        b->ordinary = true;
    }
}

static void compare(enum bl_precision precision, int64_t batches, enum kind kind)
{
    static const char *const name[] = {"getrf", "getrfsp", "getrf-fast", "getrf-shapes"};
    struct batch *b = calloc((size_t)batches, sizeof *b);
    int64_t matrices = 0, bad[MATRIX_CLASS_COUNT] = {0}, of[MATRIX_CLASS_COUNT] = {0};
    char why[MATRIX_CLASS_COUNT][700] = {""};
    for (int64_t i = 0; i < batches; i++) {
        struct rng r = {(uint64_t)precision * 1000 + (uint64_t)i};
        b[i].precision = precision;
        b[i].scaled = kind == SCALED;
        b[i].fast = kind == FAST;
        choose_shape(&b[i], i, kind, &r);
    }
    in_parallel(batches * EACH, pose, b);
    for (int64_t i = 0; i < batches; i++) {
        struct slab s = new_slab(&b[i]);
        fill(&b[i], &s);
        run(&b[i], &s);
        for (int64_t j = 0; j < b[i].count; j++) {
            enum matrix_class c = b[i].problem[j % EACH].class;
            of[c]++;
            matrices++;
            *b[i].why = 0;
            if (!check(&b[i], &s, j) && bad[c]++ == 0)
                snprintf(why[c], sizeof why[c], "%s", b[i].why);
        }
        drop_slab(&s);
        drop(&b[i]);
    }
    for (int c = 0; c < CLASS_INDEFINITE; c++) {
        if (of[c] == 0)
            continue;
        char line[800] = "";
        if (bad[c])
            snprintf(line, sizeof line, "%lld of %lld; first: %.600s", (long long)bad[c],
                     (long long)of[c], why[c]);
        verdict(line, "mid-%s-%c-%s", name[kind], "sdcz"[precision],
                matrix_class_name[c]);
    }
    printf("# mid %c: %lld matrices\n", "sdcz"[precision], (long long)matrices);
    fflush(stdout);
    free(b);
}

/* The orders of tiny_head.cuh, and the largest ones of other kernels: the rows of
 * mid_lu_[sdcz].cu and mid_scaled_[sdcz].cu; where 227 KB hold no more of L on the chip
 * (d 214, c 215, z 155) or of a panel beside its strips (z 206); the rows of the panels
 * of mid_blocked.cuh (128 to 512, and 64 more, behind the first panel); the next to last.
 */
static const int64_t hand_over[] = {
    34,  37,  40,  43,  46,  48,  56,  58,  64,  68,  72,  80,  84,  96,  100, 104, 112,
    128, 144, 155, 160, 192, 204, 206, 214, 215, 224, 256, 270, 320, 512, 576, 1023};
enum { HAND_OVERS = sizeof hand_over / sizeof *hand_over };

static void families(enum bl_precision precision, bool scaled)
{
    struct batch *b = calloc(1, sizeof *b);
    char why[sizeof b->why] = "";
    for (int k = 0; k < 3 * HAND_OVERS; k++) {
        const int64_t n = hand_over[k / 3] - 1 + k % 3;
        *b = (struct batch){.precision = precision,
                            .m = n,
                            .n = n,
                            .count = 2 * FAMILIES,
                            .int_size = k % 2 ? 8 : 4,
                            .pointers = k / 2 % 2,
                            .scaled = scaled,
                            .families = true};
        in_parallel(EACH, pose, b);
        try(b);
        if (!*why)
            memcpy(why, b->why, sizeof why);
    }
    verdict(why, "mid-families-%s-%c", scaled ? "getrfsp" : "getrf", "sdcz"[precision]);
    free(b);
}

static void repeat(enum bl_precision precision, int64_t n, bool scaled)
{
    struct batch *b = calloc(1, sizeof *b);
    b->precision = precision;
    b->scaled = scaled;
    b->m = b->n = n;
    b->count = n > 200 ? 40 : 140;
    b->int_size = 4;
    in_parallel(EACH, pose, b);
    struct slab s = new_slab(b);
    char *given = malloc(s.bytes), *first = malloc(s.bytes);
    int64_t changed = 0;
    memset(s.host, 0, s.bytes);
    fill(b, &s);
    memcpy(given, s.host, s.bytes);
    run(b, &s);
    memcpy(first, s.host, s.bytes);
    for (int64_t i = 0; i < b->count; i++)
        check(b, &s, i);
    for (int i = 1; i < REPEATS; i++) {
        memcpy(s.host, given, s.bytes);
        run(b, &s);
        changed += memcmp(first, s.host, s.bytes) != 0;
    }
    if (changed)
        snprintf(b->why, sizeof b->why, "%lld of %d runs gave other bits",
                 (long long)changed, REPEATS);
    verdict(b->why, "mid-repeated-%s%c-%lld", scaled ? "getrfsp-" : "", "sdcz"[precision],
            (long long)n);
    free(given);
    free(first);
    drop_slab(&s);
    drop(b);
    free(b);
}

static void repeats(enum bl_precision precision)
{
    static const int64_t orders[] = {48, 97, 190, 300, 146, 244};
    for (int k = 0; k < 6; k++)
        repeat(precision, orders[k], false);
    for (int k = 0; k < 4; k++)
        repeat(precision, orders[k], true);
}

/* On the chip with few warps and with many, by panels and strips, both of getrfsp too,
 * and by panels in fast arithmetic, which single precision does not have yet. */
static void small(enum bl_precision precision)
{
    static const struct {
        int64_t m, n;
        enum kind kind;
    } jobs[] = {{60, 60, EXACT},    {100, 100, EXACT}, {150, 150, EXACT},
                {270, 130, EXACT},  {70, 70, SCALED},  {150, 150, SCALED},
                {270, 130, SCALED}, {260, 260, FAST}};
    static const char *const name[] = {"getrf", "getrfsp", "getrf-fast"};
    for (size_t k = 0; k < sizeof jobs / sizeof *jobs; k++) {
        struct batch *b = calloc(1, sizeof *b);
        b->precision = precision;
        b->m = jobs[k].m;
        b->n = jobs[k].n;
        b->count = FEW;
        b->int_size = 4;
        b->scaled = jobs[k].kind == SCALED;
        b->fast = jobs[k].kind == FAST;
        in_parallel(EACH, pose, b);
        try(b);
        verdict(b->why, "mid-small-%s-%c-%lldx%lld", name[jobs[k].kind],
                "sdcz"[precision], (long long)b -> m, (long long)b -> n);
        free(b);
    }
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 && !isdigit((unsigned char)*argv[1]) ? argv[1] : "";
    const char *letters = argc > (*part ? 2 : 3) ? argv[*part ? 2 : 3] : "sdcz";
    const int64_t matrices = argc > 1 ? atoll(argv[1]) : 400;
    if (argc > 2 && !*part)
        largest = atoll(argv[2]);
    if (!reference_open())
        return 0;
    enum bl_reason why = BL_REASONS;
    engine = bl_engine_for(0, true, &why);
    verdict(engine ? "" : bl_engine_why(), "mid-engine");
    if (!engine)
        return 1;
    for (int p = 0; p < BL_PRECISIONS; p++) {
        const enum bl_precision precision = (enum bl_precision)p;
        if (!strchr(letters, "sdcz"[p]))
            continue;
        if (!strcmp(part, "shapes")) {
            compare(precision, SHAPE_COUNT, SHAPES);
        } else if (!strcmp(part, "families")) {
            families(precision, false);
            families(precision, true);
        } else if (!strcmp(part, "repeats")) {
            repeats(precision);
        } else if (!strcmp(part, "small")) {
            small(precision);
        } else if (*part) {
            return 2;
        } else {
            compare(precision, (matrices + EACH - 1) / EACH, EXACT);
            compare(precision, (matrices / 4 + EACH - 1) / EACH, SCALED);
            if (largest > 256)
                compare(precision, (matrices / 4 + EACH - 1) / EACH, FAST);
        }
    }
    return failures() != 0;
}
