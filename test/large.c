/* One large matrix against netlib, straight through the engine, so that what lies between
 * and behind the columns, and the other triangle, can be poisoned and looked at again.
 *
 *     large [largest order [precision letters [routine]]]
 *
 * -1: only what is beyond netlib's reach. The routine, as "potrf", is the only one then.
 *
 * getrf, getrs 'N', gesv, potrf, and of 'U' potrs and posv by bits: square, tall and
 * wide, every class of input, zero pivots and minors that are not positive, a NaN in the
 * first, a middle and the last column (IPIV and INFO; values can then differ from
 * netlib's), one and more right-hand sides, 32- and 64-bit integers, a few matrices in
 * one job. Fast potrf, gesv, posv, getri and getrs, and potri, by residual. Beyond
 * netlib's reach: matrices made of known factors, fast and exact. Each job runs twice and
 * must give the same bits. Links libshim; the engine is the one that BATCHLAPACK_ENGINE
 * names or that lies beside the program.
 */
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bl.h"
#include "reference.h"

enum { GAP = 5, GUARD = -99, MOST_ITEMS = 1000 };

static const struct bl_engine *engine;
static int64_t largest = 330;
static const char *only; /* NULL: all routines */

/* A problem as it goes in, and netlib's answer. */
struct item {
    enum bl_routine_id routine;
    char uplo, trans;
    int int_size;
    bool by_pivots; /* values are not compared */
    bool fast;      /* fast arithmetic: the solution is judged by its residual */
    bool known;     /* made of its factors: every arithmetic gives these */
    enum matrix_class of;
    int64_t nrhs;
    struct matrix a, b, want, want_b; /* B has no elements where nrhs is 0 */
    struct matrix origin, unit;       /* a fast solve's A, an inverse's right-hand side */
    int32_t *pivots, info;
};

static struct item items[MOST_ITEMS];
static int64_t count;

static int64_t order_of(const struct item *t)
{
    return t->a.rows < t->a.cols ? t->a.rows : t->a.cols;
}

static void ask(const struct item *t, enum bl_routine_id routine, struct matrix *a,
                struct matrix *b, int32_t *info)
{
    const int64_t most = routine == BL_GETRI ? 64 * a->cols : 0;
    struct matrix work = matrix_new(a->precision, most, 1, most, 0);
    struct call c = {.routine = routine,
                     .precision = t->a.precision,
                     .uplo = t->uplo == 'U' ? "U" : "L",
                     .trans = (char[]){t->trans, 0},
                     .m = (int32_t)a->rows,
                     .n = (int32_t)a->cols,
                     .nrhs = (int32_t)t->nrhs,
                     .lda = (int32_t)a->ld,
                     .ldb = (int32_t)b->ld,
                     .a = a->data,
                     .b = b->data,
                     .ipiv = t->pivots,
                     .work = work.data,
                     .lwork = (int32_t)most};
    reference_call(&c);
    matrix_free(&work);
    *info = c.info;
}

/* Sizes above the largest order that was asked for are left out. */
static struct item *pose(enum bl_routine_id routine, enum bl_precision p, char uplo,
                         int64_t m, int64_t n, int64_t nrhs, enum matrix_class of)
{
    if ((m < n ? m : n) > largest || count == MOST_ITEMS ||
        (only && strcmp(routine_name(routine, p) + 1, only) != 0))
        return NULL;
    struct item *t = &items[count];
    uint64_t seed = (uint64_t)count * 7919 + 5;
    t->routine = routine;
    t->uplo = uplo;
    t->trans = 'N';
    t->int_size = count % 3 == 2 ? 8 : 4;
    t->of = of;
    t->by_pivots = !uplo && (of == CLASS_NAN || of == CLASS_INF);
    t->nrhs = nrhs;
    t->a = matrix_new(p, m, n, m + count % 4, GAP);
    t->b = matrix_new(p, n, nrhs, n + count % 3, nrhs ? GAP : 0);
    if (uplo)
        matrix_fill_hermitian(&t->a, uplo, of, seed);
    else
        matrix_fill(&t->a, of, seed);
    matrix_fill(&t->b, CLASS_RANDOM, seed + 1);
    t->pivots = calloc((size_t)order_of(t) + 1, sizeof *t->pivots);
    count++;
    return t;
}

/* A matrix of known factors: thin ones whose elements and sums need few bits, so that
 * nothing is ever rounded; below the pivot every multiplier is at most 1/2. */
static struct item *pose_known(enum bl_precision p, int64_t m, int64_t n, bool fast)
{
    if (count == MOST_ITEMS)
        return NULL;
    struct item *t = &items[count];
    *t = (struct item){.routine = BL_GETRF,
                       .int_size = count % 2 ? 4 : 8,
                       .fast = fast,
                       .known = true,
                       .a = matrix_new(p, m, n, m + 3, GAP),
                       .b = matrix_new(p, n, 0, n, 0)};
    t->pivots = calloc((size_t)order_of(t) + 1, sizeof *t->pivots);
    count++;
    return t;
}

static void put_zeros(struct matrix *a)
{
    for (int64_t j = 0; j < a->cols; j++)
        memset(matrix_at(a, 0, j), 0, (size_t)a->rows * element_bytes(a->precision));
}

enum { DENSITY = 6 }; /* elements of a column of L and of U beside the diagonal */

static void multiply_factors(struct item *t)
{
    const int64_t m = t->a.rows, n = t->a.cols, order = order_of(t);
    const bool parts = is_complex(t->a.precision);
    struct rng r = {(uint64_t)(m * 31 + n * 7 + t->fast)};
    struct {
        int64_t row;
        double value;
    } *l = calloc((size_t)order * DENSITY, sizeof *l);
    int64_t *home = malloc((size_t)m * sizeof *home); /* of row i of L: its row in A */
    t->want = matrix_copy(&t->a);
    t->want_b = matrix_copy(&t->b);
    put_zeros(&t->a);
    put_zeros(&t->want);
    for (int64_t i = 0; i < m; i++)
        home[i] = i;
    for (int64_t k = 0; k < order; k++) {
        const int64_t p = rng_between(&r, k, m - 1), row = home[k];
        t->pivots[k] = (int32_t)(p + 1);
        home[k] = home[p];
        home[p] = row;
        for (int e = 0; e < DENSITY && k + 1 < m; e++) {
            const int64_t i = rng_between(&r, k + 1, m - 1);
            bool taken = false;
            for (int f = 0; f < e; f++)
                taken = taken || l[k * DENSITY + f].row == i;
            l[k * DENSITY + e].row = i;
            l[k * DENSITY + e].value = taken ? 0 : rng_below(&r, 2) ? 0.5 : -0.25;
            if (!taken)
                matrix_put(&t->want, i, k, l[k * DENSITY + e].value, 0);
        }
    }
    for (int64_t j = 0; j < n; j++)
        for (int e = 0; e <= DENSITY; e++) {
            const int64_t k = e == DENSITY ? j : rng_below(&r, j < order ? j + 1 : order);
            if (k >= order || (e < DENSITY && k == j) || matrix_get(&t->want, k, j) != 0)
                continue;
            const double re = e == DENSITY ? (double)(1 << rng_below(&r, 3))
                                           : (double)rng_between(&r, 1, 5),
                         im = parts && e < DENSITY ? (double)rng_between(&r, -3, 3) : 0;
            matrix_put(&t->want, k, j, re, im);
            for (int f = -1; f < DENSITY; f++) {
                const int64_t i = f < 0 ? k : l[k * DENSITY + f].row;
                const double factor = f < 0 ? 1 : l[k * DENSITY + f].value;
                const long double complex old = matrix_get(&t->a, home[i], j);
                matrix_put(&t->a, home[i], j, (double)creall(old) + factor * re,
                           (double)cimagl(old) + factor * im);
            }
        }
    free(home);
    free(l);
}

/* What only solves gets factors. */
static bool gets_factors(const struct item *t)
{
    return t->routine == BL_GETRS || t->routine == BL_POTRS || t->routine == BL_GETRI ||
           t->routine == BL_POTRI;
}

static void ask_netlib(int64_t i, void *data)
{
    struct item *t = &items[i];
    (void)data;
    if (t->known) {
        multiply_factors(t);
        return;
    }
    t->origin = matrix_copy(&t->a);
    if (gets_factors(t))
        ask(t, t->uplo ? BL_POTRF : BL_GETRF, &t->a, &t->b, &t->info);
    if (t->routine == BL_GETRI) {
        const int64_t n = t->a.rows;
        t->unit = matrix_new(t->a.precision, n, n, n, 0);
        put_zeros(&t->unit);
        for (int64_t k = 0; k < n; k++)
            matrix_put(&t->unit, k, k, 1, 0);
    }
    t->want = matrix_copy(&t->a);
    t->want_b = matrix_copy(&t->b);
    ask(t, t->routine, &t->want, &t->want_b, &t->info);
}

/* ---- run ---- */

static size_t rounded(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Where everything lies in a job's memory: matrices and right-hand sides 8 bytes after a
 * multiple of 16, IPIV with one entry too many, INFO, work space. */
struct places {
    size_t a, b, pivots, info, work;
};

static struct places places_of(const struct item *t, int64_t copies)
{
    const size_t all = (size_t)copies, integer = (size_t)t->int_size;
    struct places at = {.a = 8};
    at.b = rounded(at.a + matrix_bytes(&t->a) * all) + 8;
    at.pivots = rounded(at.b + matrix_bytes(&t->b) * all);
    at.info = rounded(at.pivots + ((size_t)order_of(t) + 1) * all * integer);
    at.work = rounded(at.info + (all + 1) * integer);
    return at;
}

/* `copies` of the problem in one job. What comes back lies in *host. */
static bool run(const struct item *t, int64_t copies, char **host, void **queue)
{
    const struct places at = places_of(t, copies);
    const size_t one = matrix_bytes(&t->a), side = matrix_bytes(&t->b),
                 order = (size_t)order_of(t), all = (size_t)copies;
    void *device = NULL, *h = NULL;
    struct bl_job job = {.routine = t->routine,
                         .precision = t->a.precision,
                         .arithmetic = t->fast ? BL_FAST : BL_EXACT,
                         .uplo = t->uplo,
                         .trans = t->routine == BL_GETRS ? t->trans : 0,
                         .nrhs = t->nrhs,
                         .int_size = t->int_size,
                         .m = t->a.rows,
                         .n = t->a.cols,
                         .batch = copies,
                         .redo = 1};
    const size_t workspace = engine->workspace(&job);
    if (engine->queue_open(queue) != BL_OK || engine->host_alloc(at.work, &h) != BL_OK ||
        engine->device_alloc(at.work + workspace, &device) != BL_OK)
        return false;
    *host = h;
    memset(h, GUARD, at.work);
    for (size_t k = 0; k < all; k++) {
        memcpy(*host + at.a + k * one, t->a.data, one);
        memcpy(*host + at.b + k * side, t->b.data, side);
        for (size_t i = 0; gets_factors(t) && !t->uplo && i < order; i++) {
            char *to = *host + at.pivots + (k * (order + 1) + i) * (size_t)t->int_size;
            int64_t wide = t->pivots[i];
            memcpy(to, t->int_size == 8 ? (void *)&wide : (void *)&t->pivots[i],
                   (size_t)t->int_size);
        }
    }
    char *d = device;
    const size_t element = element_bytes(t->a.precision);
    job.a = (struct bl_operand){d + at.a, NULL, t->a.ld, (int64_t)(one / element)};
    if (t->nrhs > 0)
        job.b = (struct bl_operand){d + at.b, NULL, t->b.ld, (int64_t)(side / element)};
    job.ipiv = (struct bl_operand){d + at.pivots, NULL, 0, (int64_t)order + 1};
    job.info = (struct bl_operand){d + at.info, NULL, 0, 1};
    job.work = workspace ? d + at.work : NULL;
    bool good = engine->copy_in(*queue, d, h, at.work) == BL_OK &&
                engine->run(&job, *queue) == BL_OK &&
                engine->copy_out(*queue, h, d, at.work) == BL_OK &&
                engine->wait(*queue) == BL_OK;
    return engine->device_free(device) == BL_OK && good;
}

static int64_t integer_at(const char *from, size_t k, int size)
{
    int32_t narrow;
    int64_t wide;
    if (size == 4) {
        memcpy(&narrow, from + 4 * k, 4);
        return narrow;
    }
    memcpy(&wide, from + 8 * k, 8);
    return wide;
}

static int64_t guard_of(int size)
{
    char bytes[8];
    memset(bytes, GUARD, sizeof bytes);
    return integer_at(bytes, 0, size);
}

/* ---- judge ---- */

/* Whether the engine may leave the problem to netlib: a complex LU factorisation in which
 * something is not finite. */
static bool may_hand_back(const struct item *t)
{
    const struct matrix *a = &t->want;
    bool odd = false;
    for (int64_t j = 0; j < a->cols && !odd; j++)
        for (int64_t i = 0; i < a->rows && !odd; i++) {
            long double complex x = matrix_get(a, i, j);
            odd = !isfinite(creall(x)) || !isfinite(cimagl(x));
        }
    return odd && a->precision >= BL_C && !t->fast &&
           (t->routine == BL_GETRF || t->routine == BL_GESV);
}

static void check(const struct item *t, const char *host, int64_t copy, int64_t copies,
                  char *why, size_t size)
{
    const struct places from = places_of(t, copies);
    const size_t one = matrix_bytes(&t->a), side = matrix_bytes(&t->b),
                 order = (size_t)order_of(t), at = (size_t)copy;
    const char *p = host + from.pivots + at * (order + 1) * (size_t)t->int_size;
    /* Fast arithmetic promises no sign of a zero. */
    const bool zeros = t->fast || holds_negative_zero(&t->a, t->uplo);
    struct matrix got = t->a, got_b = t->b;
    char first[300] = "";
    got.data = malloc(one); /* aligned */
    got_b.data = malloc(side + 1);
    memcpy(got.data, host + from.a + at * one, one);
    memcpy(got_b.data, host + from.b + at * side, side);
    const int64_t info = integer_at(host + from.info, at, t->int_size);
    const int64_t minor = t->uplo && t->info > 0 ? t->info - 1 : -1;
    const bool back = info == BL_INFO_REDO && may_hand_back(t);
    if (info != t->info && !back)
        snprintf(why, size, "INFO is %lld, not %d", (long long)info, t->info);
    const bool solved = t->fast && !t->known;
    const bool pivots =
        !solved && !back && (t->routine == BL_GETRF || t->routine == BL_GESV);
    for (size_t k = 0; pivots && k < order && !*why; k++)
        if (integer_at(p, k, t->int_size) != t->pivots[k])
            snprintf(why, size, "IPIV(%zu) is %lld, not %d", k + 1,
                     (long long)integer_at(p, k, t->int_size), t->pivots[k]);
    if (!*why && integer_at(p, order, t->int_size) != guard_of(t->int_size))
        snprintf(why, size, "IPIV was written behind its end");
    if (!*why && touched(&got, &t->a, t->uplo, first, sizeof first))
        snprintf(why, size, "outside of the matrix: %.200s", first);
    if (!*why && !t->by_pivots && !solved && !back &&
        differing(&got, &t->want, t->uplo, minor, zeros, first, sizeof first))
        snprintf(why, size, "A: %.200s", first);
    if (!*why && touched(&got_b, &t->b, 0, first, sizeof first))
        snprintf(why, size, "outside of B: %.200s", first);
    if (!*why && t->routine == BL_POTRI && t->info == 0) {
        double ours = inverse_residual(&t->origin, &got, t->uplo);
        double theirs = inverse_residual(&t->origin, &t->want, t->uplo);
        if (!(ours <= 5 * theirs + 1))
            snprintf(why, size, "residual %.3g, netlib's %.3g", ours, theirs);
    } else if (!*why && solved && t->routine == BL_POTRF) {
        struct matrix a = t->origin, want = t->want;
        a.rows = a.cols = minor < 0 ? a.cols : minor;
        double ours = factor_residual(&a, t->uplo, &got);
        double theirs = factor_residual(&a, t->uplo, &want);
        if (!(ours <= 5 * theirs + 1))
            snprintf(why, size, "residual %.3g, netlib's %.3g", ours, theirs);
    } else if (!*why && solved && t->info == 0) {
        const bool inverse = t->routine == BL_GETRI;
        const struct matrix *b = inverse ? &t->unit : &t->b;
        double ours =
            solve_residual(&t->origin, t->uplo, t->trans, b, inverse ? &got : &got_b);
        double theirs = solve_residual(&t->origin, t->uplo, t->trans, b,
                                       inverse ? &t->want : &t->want_b);
        if (!(ours <= 5 * theirs + 1))
            snprintf(why, size, "residual %.3g, netlib's %.3g", ours, theirs);
    }
    if (!*why && !t->by_pivots && !solved && !back &&
        differing(&got_b, &t->want_b, 0, -1, zeros, first, sizeof first))
        snprintf(why, size, "B: %.200s", first);
    free(got.data);
    free(got_b.data);
}

static void judge(const struct item *t, int64_t copies)
{
    char why[400] = "", *host[2] = {NULL, NULL};
    void *queue[2] = {NULL, NULL};
    for (int turn = 0; turn < 2 && !*why; turn++)
        if (!run(t, copies, &host[turn], &queue[turn]))
            snprintf(why, sizeof why, "the engine failed");
    for (int64_t k = 0; k < copies && !*why; k++)
        check(t, host[0], k, copies, why, sizeof why);
    const struct places at = places_of(t, copies);
    if (!*why && memcmp(host[0] + at.a, host[1] + at.a, at.info - at.a))
        snprintf(why, sizeof why, "other bits the second time");
    for (int turn = 0; turn < 2; turn++) {
        if (host[turn])
            engine->host_free(host[turn]);
        if (queue[turn])
            engine->queue_close(queue[turn]);
    }
    verdict(why, "large-%s-%c-%lldx%lld-%s%s%s%s",
            routine_name(t->routine, t->a.precision), t->uplo ? t->uplo : 'x',
            (long long)t->a.rows, (long long)t->a.cols,
            t->known ? "known" : matrix_class_name[t->of], t->fast ? "-fast" : "",
            t->int_size == 8 ? "-64" : "", copies > 1 ? "-batch" : "");
}

/* ---- what is asked ---- */

static void pose_all(enum bl_precision p)
{
    static const int64_t orders[] = {257, 320, 330, 512, 600, 1000, 1024, 1500, 2047};
    static const int64_t sides[][2] = {
        {2000, 300}, {300, 2000}, {5000, 260}, {260, 3000},  {321, 320},
        {320, 321},  {1200, 700}, {700, 1200}, {3000, 1000}, {1025, 33},
        {40, 1500},  {9000, 70},  {130, 2500}};
    static const int64_t middle[] = {0, 150, 299};
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
        const int64_t n = orders[k];
        const enum matrix_class one = k % 2 ? CLASS_INTEGER : CLASS_RANDOM,
                                other = k % 2 ? CLASS_RANDOM : CLASS_INTEGER;
        pose(BL_GETRF, p, 0, n, n, 0, one);
        pose(BL_POTRF, p, 'L', n, n, 0, other);
        pose(BL_POTRF, p, 'U', n, n, 0, one);
        pose(BL_GETRS, p, 0, n, n, 1 + (int64_t)k * 9, CLASS_RANDOM);
        pose(BL_POTRS, p, 'U', n, n, 40 - (int64_t)k * 4, other);
        if (n > 1024)
            continue;
        pose(BL_GESV, p, 0, n, n, k % 2 ? 1 : 130, CLASS_RANDOM);
        pose(BL_POSV, p, 'U', n, n, k % 2 ? 17 : 1, one);
    }
    for (size_t k = 0; k < sizeof sides / sizeof *sides; k++)
        pose(BL_GETRF, p, 0, sides[k][0], sides[k][1], 0,
             k % 2 ? CLASS_RANDOM : CLASS_TIED);
    for (int of = 0; of < MATRIX_CLASS_COUNT; of++) {
        int64_t n = largest < 620 ? 300 : 600 + of;
        if (of != CLASS_INDEFINITE) {
            pose(BL_GETRF, p, 0, n, n, 0, (enum matrix_class)of);
            if (of != CLASS_NAN && of != CLASS_INF)
                pose(BL_GESV, p, 0, n, n, 3, (enum matrix_class)of);
        }
        pose(BL_POTRF, p, 'L', n, n, 0, (enum matrix_class)of);
        pose(BL_POTRF, p, 'U', n, n, 0, (enum matrix_class)of);
        pose(BL_POSV, p, 'U', n, n, 2, (enum matrix_class)of);
        const int64_t small = 97 + 31 * of % 160;
        pose(BL_POTRF, p, 'L', small, small, 0, (enum matrix_class)of);
        pose(BL_POTRF, p, 'U', small, small, 0, (enum matrix_class)of);
    }
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++)
        for (int of = 0; of < 3 && (of == 0 || orders[k] <= 1024); of++) {
            struct item *t =
                pose(of ? BL_POSV : BL_GESV, p, of ? "?UL"[of] : 0, orders[k], orders[k],
                     1 + (int64_t)k * 20, CLASS_RANDOM);
            if (t)
                t->fast = true;
        }
    static const int64_t fast_orders[] = {257, 300, 513, 1000, 1024, 2048};
    for (size_t k = 0; k < sizeof fast_orders / sizeof *fast_orders; k++)
        for (int of = 0; of < 4; of++) {
            struct item *t =
                pose(BL_POTRF, p, "LU"[of % 2], fast_orders[k], fast_orders[k], 0,
                     of < 2 ? CLASS_RANDOM : CLASS_INDEFINITE);
            if (t)
                t->fast = true;
        }
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) { /* few sides */
        const int64_t n = orders[k], few = 1 + (int64_t)k * 2;
        pose(BL_GETRS, p, 0, n, n, few, CLASS_INTEGER);
        pose(BL_POTRS, p, 'U', n, n, 1 + (int64_t)k % 4, CLASS_RANDOM);
        struct item *t[] = {pose(BL_POTRS, p, 'L', n, n, few, CLASS_RANDOM),
                            pose(BL_GETRS, p, 0, n, n, few, CLASS_RANDOM)};
        for (int i = 0; i < 2; i++)
            if (t[i])
                t[i]->fast = true;
        if (t[1] && k % 2)
            t[1]->trans = is_complex(p) ? 'C' : 'T';
    }
    for (size_t k = 0; k < sizeof orders / sizeof *orders && orders[k] <= 1024; k++)
        for (int of = 0; of < 2; of++) {
            struct item *t =
                pose(BL_POTRI, p, "LU"[of], orders[k], orders[k], 0, CLASS_RANDOM);
            if (t)
                t->fast = true;
        }
    for (int k = 0; k < 4; k++) {
        const int64_t n = 300 + 87 * k;
        struct item *t[3] = {pose(BL_GETRI, p, 0, n, n, 0, CLASS_RANDOM),
                             pose(BL_GETRS, p, 0, n, n, 1 + 130 * k, CLASS_RANDOM),
                             pose(BL_GETRS, p, 0, n, n, 300 - 90 * k, CLASS_RANDOM)};
        for (int i = 0; i < 3; i++)
            if (t[i])
                t[i]->fast = true;
        if (t[1])
            t[1]->trans = is_complex(p) ? 'C' : "TC"[k % 2];
    }
    struct item *singular = pose(BL_GETRI, p, 0, 310, 310, 0, CLASS_DEFICIENT);
    if (singular)
        singular->fast = true;
    for (int k = 0; k < 3; k++) {
        struct item *t = pose(BL_GETRF, p, 0, 300, 300, 0, CLASS_RANDOM);
        if (t) {
            matrix_put(&t->a, 299 - middle[k], middle[k], (double)NAN, 0);
            t->by_pivots = true;
        }
    }
}

/* Sizes at which blocks become wider and interchanges are put off. */
static void pose_beyond(enum bl_precision p)
{
    static const int64_t sides[][2] = {
        {33000, 300}, {300, 9000}, {2100, 2500}, {6200, 6160}};
    for (size_t k = 0; k < sizeof sides / sizeof *sides; k++)
        for (int fast = 0; fast < 2; fast++)
            if (fast || k < 3 || p == BL_D) /* the last one takes seconds */
                pose_known(p, sides[k][0], sides[k][1], fast);
    /* By rows, with blocks of every width; and longer than a block of threads holds. */
    if (p == BL_D)
        pose_known(p, 14700, 14600, true);
    if (p == BL_S || p == BL_D)
        pose_known(p, p == BL_S ? 59000 : 30000, 7700, true);
}

int main(int argc, char **argv)
{
    const char *letters = argc > 2 ? argv[2] : "sdcz";
    if (argc > 1)
        largest = atoll(argv[1]);
    only = argc > 3 ? argv[3] : NULL;
    if (!reference_open())
        return 0;
    enum bl_reason why = BL_REASONS;
    engine = bl_engine_for(0, true, &why);
    verdict(engine ? "" : bl_engine_why(), "large-engine");
    if (!engine)
        return 1;
    for (int p = 0; p < BL_PRECISIONS; p++)
        if (strchr(letters, "sdcz"[p])) {
            pose_all((enum bl_precision)p);
            if (!only && (largest < 0 || largest >= 1000))
                pose_beyond((enum bl_precision)p);
        }
    in_parallel(count, ask_netlib, NULL);
    for (int64_t i = 0; i < count; i++) {
        judge(&items[i], 1);
        if (i % 16 == 0)
            judge(&items[i], 3);
    }
    for (int64_t i = 0; i < count; i++) {
        matrix_free(&items[i].a);
        matrix_free(&items[i].b);
        matrix_free(&items[i].want);
        matrix_free(&items[i].want_b);
        matrix_free(&items[i].origin);
        matrix_free(&items[i].unit);
        free(items[i].pivots);
    }
    return failures() != 0;
}
