/* Batched getrf of 33 to 1024 rows and columns, straight through an engine, bit by bit
 * against netlib: square, tall and wide, every class of input, strided and by pointers,
 * equal shapes and items, both integer sizes, padded columns, guard words.
 *
 *     mid [MATRICES [LARGEST [PRECISIONS]]]
 *
 * MATRICES: a precision, at least (400); fewer than 1000 leave the repetitions out.
 * LARGEST: the largest size (300). "sdcz".
 *
 * getrfsp by matrices for which getrf has the answer; getrf in fast arithmetic, above
 * 256, by its residual beside netlib's. The engine is the one that BATCHLAPACK_ENGINE
 * names. It then repeats some batches a hundred times: the bits may not change.
 */
#include <complex.h>
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

struct problem {
    enum matrix_class class;
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
    bool fast;   /* fast arithmetic */
    bool scaled; /* getrfsp, of matrices for which netlib's getrf says what comes out */
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

static void pose(int64_t number, void *data)
{
    struct batch *b = (struct batch *)data + number / EACH;
    struct problem *p = &b->problem[number % EACH];
    struct rng r = {(uint64_t)number * 65537 + 11};
    p->class = (enum matrix_class)(number % CLASS_INDEFINITE);
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

static void run(const struct batch *b, struct slab *s)
{
    struct bl_operand a = {s->device, NULL, b->problem[0].lda,
                           (int64_t)(s->a_bytes / element_bytes(b->precision))};
    struct bl_operand ipiv = {s->device + s->ipiv, NULL, 0, (int64_t)s->ipiv_words};
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
                 (long long)b->n, matrix_class_name[p->class], b->int_size,
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

enum kind { EXACT, SCALED, FAST };

static void compare(enum bl_precision precision, int64_t batches, enum kind kind)
{
    static const char *const name[] = {"getrf", "getrfsp", "getrf-fast"};
    struct batch *b = calloc((size_t)batches, sizeof *b);
    int64_t matrices = 0, bad[MATRIX_CLASS_COUNT] = {0}, of[MATRIX_CLASS_COUNT] = {0};
    char why[MATRIX_CLASS_COUNT][700] = {""};
    for (int64_t i = 0; i < batches; i++) {
        struct rng r = {(uint64_t)precision * 1000 + (uint64_t)i};
        b[i].precision = precision;
        b[i].scaled = kind == SCALED;
        b[i].fast = kind == FAST;
        shape(&r, &b[i].m, &b[i].n);
        if (b[i].fast) { /* what fits the chip is exact */
            b[i].m = rng_between(&r, 257, largest);
            b[i].n = rng_between(&r, 65, largest);
        }
        if (i < 4) { /* the corners of what is asked */
            b[i].m = i == 2 ? 40 : i == 3 ? largest / 2 + 1 : largest;
            b[i].n = i == 1 ? 40 : i == 3 ? largest / 2 + 1 : largest;
        }
        if (b[i].fast && i == 0 && largest >= 400) /* single is fast from here on */
            b[i].m = b[i].n = 1024;
        b[i].count = EACH;
        b[i].int_size = rng_below(&r, 2) ? 8 : 4;
        b[i].pointers = rng_below(&r, 2);
        b[i].items = rng_below(&r, 3) == 0;
    }
    in_parallel(batches * EACH, pose, b);
    for (int64_t i = 0; i < batches; i++) {
        struct slab s = new_slab(&b[i]);
        run(&b[i], &s);
        for (int64_t j = 0; j < b[i].count; j++) {
            enum matrix_class c = b[i].problem[j].class;
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

static void repeat(enum bl_precision precision, int64_t n)
{
    struct batch *b = calloc(1, sizeof *b);
    b->precision = precision;
    b->m = b->n = n;
    b->count = n > 300 ? 16 : 140;
    b->int_size = 4;
    in_parallel(EACH, pose, b);
    struct slab s = new_slab(b);
    char *first = malloc(s.bytes);
    run(b, &s);
    memcpy(first, s.host, s.bytes);
    int64_t changed = 0;
    for (int64_t i = 0; i < b->count; i++)
        check(b, &s, i);
    for (int i = 1; i < REPEATS; i++) {
        run(b, &s);
        changed += memcmp(first, s.host, s.bytes) != 0;
    }
    if (changed)
        snprintf(b->why, sizeof b->why, "%lld of %d runs gave other bits",
                 (long long)changed, REPEATS);
    verdict(b->why, "mid-repeated-%c-%lld", "sdcz"[precision], (long long)n);
    free(first);
    drop_slab(&s);
    drop(b);
    free(b);
}

int main(int argc, char **argv)
{
    int64_t matrices = argc > 1 ? atoll(argv[1]) : 400;
    if (argc > 2)
        largest = atoll(argv[2]);
    if (!reference_open())
        return 0;
    enum bl_reason why = BL_REASONS;
    engine = bl_engine_for(0, true, &why);
    verdict(engine ? "" : bl_engine_why(), "mid-engine");
    if (!engine)
        return 1;
    const char *letters = argc > 3 ? argv[3] : "sdcz";
    for (int p = 0; p < BL_PRECISIONS; p++)
        if (strchr(letters, "sdcz"[p]))
            compare((enum bl_precision)p, (matrices + EACH - 1) / EACH, EXACT);
    for (int p = 0; p < BL_PRECISIONS; p++)
        if (strchr(letters, "sdcz"[p]))
            compare((enum bl_precision)p, (matrices / 4 + EACH - 1) / EACH, SCALED);
    for (int p = 0; p < BL_PRECISIONS; p++)
        if (largest > 256 && strchr(letters, "sdcz"[p]))
            compare((enum bl_precision)p, (matrices / 4 + EACH - 1) / EACH, FAST);
    for (int p = 0; p < BL_PRECISIONS; p++)
        for (int64_t n = 48;
             matrices >= 1000 && n <= largest && n < 400 && strchr(letters, "sdcz"[p]);
             n += n < 200 ? 49 : 157)
            repeat((enum bl_precision)p, n);
    return failures() != 0;
}
