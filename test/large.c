/* One large matrix against netlib, straight through the engine, so that what lies between
 * and behind the columns, and the other triangle, can be poisoned and looked at again.
 *
 *     large [largest order]
 *
 * getrf and potrf by bits: square, tall and wide, every class of input, zero pivots and
 * minors that are not positive, a NaN in the first, a middle and the last column (IPIV
 * and INFO; values can then differ from netlib's), 32- and 64-bit integers, a few
 * matrices in one job. Each job runs twice and must give the same bits. Links libshim;
 * the engine is the one that BATCHLAPACK_ENGINE names or that lies beside the program.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bl.h"
#include "reference.h"

enum { GAP = 5, GUARD = -99, MOST_ITEMS = 400 };

static const struct bl_engine *engine;
static int64_t largest = 330;

/* A problem as it goes in, and netlib's answer. */
struct item {
    enum bl_routine_id routine;
    char uplo;
    int int_size;
    bool by_pivots; /* values are not compared */
    enum matrix_class of;
    struct matrix a, want;
    int32_t *pivots, info;
};

static struct item items[MOST_ITEMS];
static int64_t count;

static int64_t order_of(const struct item *t)
{
    return t->a.rows < t->a.cols ? t->a.rows : t->a.cols;
}

/* Sizes above the largest order that was asked for are left out. */
static struct item *pose(enum bl_precision p, char uplo, int64_t m, int64_t n,
                         enum matrix_class of)
{
    if ((m < n ? m : n) > largest || count == MOST_ITEMS)
        return NULL;
    struct item *t = &items[count];
    uint64_t seed = (uint64_t)count * 7919 + 5;
    t->routine = uplo ? BL_POTRF : BL_GETRF;
    t->uplo = uplo;
    t->int_size = count % 3 == 2 ? 8 : 4;
    t->of = of;
    t->by_pivots = !uplo && (of == CLASS_NAN || of == CLASS_INF);
    t->a = matrix_new(p, m, n, m + count % 4, GAP);
    if (uplo)
        matrix_fill_hermitian(&t->a, uplo, of, seed);
    else
        matrix_fill(&t->a, of, seed);
    t->pivots = calloc((size_t)order_of(t) + 1, sizeof *t->pivots);
    count++;
    return t;
}

static void ask_netlib(int64_t i, void *data)
{
    struct item *t = &items[i];
    (void)data;
    t->want = matrix_copy(&t->a);
    struct call c = {.routine = t->routine,
                     .precision = t->a.precision,
                     .uplo = t->uplo == 'U' ? "U" : "L",
                     .m = (int32_t)t->a.rows,
                     .n = (int32_t)t->a.cols,
                     .lda = (int32_t)t->a.ld,
                     .a = t->want.data,
                     .ipiv = t->pivots};
    reference_call(&c);
    t->info = c.info;
}

/* ---- run ---- */

static size_t rounded(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* `copies` of the matrix in one job; what comes back lies in *host, then pivots and INFO
 * of each. The matrix begins 8 bytes after a multiple of 16. */
static bool run(const struct item *t, int64_t copies, char **host, void **queue)
{
    const size_t one = matrix_bytes(&t->a), integer = (size_t)t->int_size,
                 order = (size_t)order_of(t), all = (size_t)copies;
    const size_t pivots = rounded(8 + one * all),
                 info = rounded(pivots + (order + 1) * all * integer),
                 work = rounded(info + (all + 1) * integer);
    void *device = NULL, *h = NULL;
    struct bl_job job = {.routine = t->routine,
                         .precision = t->a.precision,
                         .arithmetic = BL_EXACT,
                         .uplo = t->uplo,
                         .int_size = t->int_size,
                         .m = t->a.rows,
                         .n = t->a.cols,
                         .batch = copies};
    const size_t workspace = engine->workspace(&job);
    if (engine->queue_open(queue) != BL_OK || engine->host_alloc(work, &h) != BL_OK ||
        engine->device_alloc(work + workspace, &device) != BL_OK)
        return false;
    *host = h;
    memset(h, GUARD, work);
    for (size_t k = 0; k < all; k++)
        memcpy(*host + 8 + k * one, t->a.data, one);
    char *d = device;
    job.a = (struct bl_operand){d + 8, NULL, t->a.ld,
                                (int64_t)(one / element_bytes(t->a.precision))};
    job.ipiv = (struct bl_operand){d + pivots, NULL, 0, (int64_t)order + 1};
    job.info = (struct bl_operand){d + info, NULL, 0, 1};
    job.work = workspace ? d + work : NULL;
    bool good = engine->copy_in(*queue, d, h, work) == BL_OK &&
                engine->run(&job, *queue) == BL_OK &&
                engine->copy_out(*queue, h, d, work) == BL_OK &&
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

static void check(const struct item *t, const char *host, int64_t copy, int64_t copies,
                  char *why, size_t size)
{
    const size_t one = matrix_bytes(&t->a), integer = (size_t)t->int_size,
                 order = (size_t)order_of(t), at = (size_t)copy;
    const size_t pivots = rounded(8 + one * (size_t)copies),
                 infos = rounded(pivots + (order + 1) * (size_t)copies * integer);
    const char *p = host + pivots + at * (order + 1) * integer;
    struct matrix got = t->a;
    char first[300] = "";
    got.data = malloc(one); /* aligned */
    memcpy(got.data, host + 8 + at * one, one);
    const int64_t info = integer_at(host + infos, at, t->int_size);
    const int64_t minor = t->uplo && t->info > 0 ? t->info - 1 : -1;
    if (info != t->info)
        snprintf(why, size, "INFO is %lld, not %d", (long long)info, t->info);
    for (size_t k = 0; !t->uplo && k < order && !*why; k++)
        if (integer_at(p, k, t->int_size) != t->pivots[k])
            snprintf(why, size, "IPIV(%zu) is %lld, not %d", k + 1,
                     (long long)integer_at(p, k, t->int_size), t->pivots[k]);
    if (!*why && integer_at(p, order, t->int_size) != guard_of(t->int_size))
        snprintf(why, size, "IPIV was written behind its end");
    if (!*why && touched(&got, &t->a, t->uplo, first, sizeof first))
        snprintf(why, size, "outside of the matrix: %.200s", first);
    if (!*why && !t->by_pivots &&
        differing(&got, &t->want, t->uplo, minor, holds_negative_zero(&t->a, t->uplo),
                  first, sizeof first))
        snprintf(why, size, "A: %.200s", first);
    free(got.data);
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
    if (!*why && memcmp(host[0] + 8, host[1] + 8, matrix_bytes(&t->a) * (size_t)copies))
        snprintf(why, sizeof why, "other bits the second time");
    for (int turn = 0; turn < 2; turn++) {
        if (host[turn])
            engine->host_free(host[turn]);
        if (queue[turn])
            engine->queue_close(queue[turn]);
    }
    verdict(why, "large-%s%s%c-%lldx%lld-%s%s", routine_name(t->routine, t->a.precision),
            t->uplo ? "-" : "", t->uplo ? t->uplo : '-', (long long)t->a.rows,
            (long long)t->a.cols, matrix_class_name[t->of], copies > 1 ? "-batch" : "");
}

/* ---- what is asked ---- */

static void pose_all(enum bl_precision p)
{
    static const int64_t orders[] = {257, 320, 330, 512, 600, 1000, 1024, 1500, 2047};
    static const int64_t sides[][2] = {{2000, 300}, {300, 2000}, {5000, 260},
                                       {260, 3000}, {321, 320},  {320, 321},
                                       {1200, 700}, {700, 1200}, {3000, 1000}};
    static const int64_t middle[] = {0, 150, 299};
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
        pose(p, 0, orders[k], orders[k], k % 2 ? CLASS_INTEGER : CLASS_RANDOM);
        pose(p, 'L', orders[k], orders[k], k % 2 ? CLASS_RANDOM : CLASS_INTEGER);
        pose(p, 'U', orders[k], orders[k], k % 2 ? CLASS_INTEGER : CLASS_RANDOM);
    }
    for (size_t k = 0; k < sizeof sides / sizeof *sides; k++)
        pose(p, 0, sides[k][0], sides[k][1], k % 2 ? CLASS_RANDOM : CLASS_TIED);
    for (int of = 0; of < MATRIX_CLASS_COUNT; of++) {
        int64_t n = largest < 600 ? 300 : 600 + of;
        if (of != CLASS_INDEFINITE)
            pose(p, 0, n, n, (enum matrix_class)of);
        pose(p, 'L', n, n, (enum matrix_class)of);
        pose(p, 'U', n, n, (enum matrix_class)of);
    }
    for (int k = 0; k < 3; k++) {
        struct item *t = pose(p, 0, 300, 300, CLASS_RANDOM);
        if (t) {
            matrix_put(&t->a, 299 - middle[k], middle[k], (double)NAN, 0);
            t->by_pivots = true;
        }
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        largest = atoll(argv[1]);
    if (!reference_open())
        return 0;
    enum bl_reason why = BL_REASONS;
    engine = bl_engine_for(0, true, &why);
    verdict(engine ? "" : bl_engine_why(), "large-engine");
    if (!engine)
        return 1;
    for (int p = 0; p < BL_PRECISIONS; p++)
        pose_all((enum bl_precision)p);
    in_parallel(count, ask_netlib, NULL);
    for (int64_t i = 0; i < count; i++) {
        judge(&items[i], 1);
        if (i % 16 == 0)
            judge(&items[i], 3);
    }
    for (int64_t i = 0; i < count; i++) {
        matrix_free(&items[i].a);
        matrix_free(&items[i].want);
        free(items[i].pivots);
    }
    return failures() != 0;
}
