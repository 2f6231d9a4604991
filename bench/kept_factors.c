/* What would keeping the factors of getrf on the device save the getrs or getri after it?
 *
 *     bench/kept_factors [largest n]         (8192)
 *
 * double, pageable memory. "again" is the call as it is: A goes over the link again.
 * "kept" is what would be left of it: the caller's A compared by all our workers with a
 * copy of what getrf gave it, which proves that it is unchanged, then the routine alone
 * on device memory, with B in and out and for getri the inverse out. "copy" is what each
 * getrf would pay for the copy that is compared with. "cpu" is the program's LAPACK. The
 * better of three, with 64-bit integers, which any LAPACK can serve; that of getri, above
 * 4096, is left out (-). Every side has the arithmetic that a call would take
 * (BATCHLAPACK_ARITHMETIC), and random matrices, whose factors have interchanges. Gain is
 * the lesser of again and cpu over kept, and over kept with the copy. Linked with
 * libshim; BATCHLAPACK_ENGINE says which engine.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "batchlapack.h"
#include "bl.h"
#include "workers.h"

static const struct bl_engine *engine;
static void *queue, *pinned;
static char *device;
static int64_t *ipiv, *pivots;
static double *a, *shadow, *start, *b, *work;

#define WORK_BYTES ((size_t)256 << 20) /* at least, of the device */
#define PART_BYTES ((int64_t)1 << 18)
static _Atomic int differing;

static void compare(void *arg, int64_t from, int64_t to, int worker)
{
    size_t at = (size_t)(from * PART_BYTES);
    (void)worker;
    (void)arg;
    if (memcmp((char *)a + at, (char *)shadow + at, (size_t)((to - from) * PART_BYTES)))
        differing = 1;
}

static void copy(void *arg, int64_t from, int64_t to, int worker)
{
    size_t at = (size_t)(from * PART_BYTES);
    (void)worker;
    (void)arg;
    memcpy((char *)shadow + at, (char *)a + at, (size_t)((to - from) * PART_BYTES));
}

static void call(enum bl_row row, int64_t n, int64_t nrhs)
{
    char no = 'N';
    int64_t info = 0, lwork = 64 * n;
    void *factor[] = {&n, &n, a, &n, ipiv, &info};
    void *solve[] = {&no, &n, &nrhs, a, &n, ipiv, b, &n, &info};
    void *invert[] = {&n, a, &n, ipiv, work, &lwork, &info};
    bl_dispatch(bl_id(row, BL_D), BL_WIDE,
                row == BL_ROW_GETRF   ? factor
                : row == BL_ROW_GETRS ? solve
                                      : invert,
                (const void *)(uintptr_t)call);
}

static void must(enum bl_status status)
{
    if (status != BL_OK) {
        printf("the engine failed: %d\n", (int)status);
        exit(1);
    }
}

/* Factors and pivots are on the device already. */
static void on_device(enum bl_row row, int64_t n, int64_t nrhs)
{
    size_t a_bytes = (size_t)(n * n) * 8, b_bytes = (size_t)(n * nrhs) * 8;
    char *at = device + a_bytes;
    struct bl_call c = {.id = bl_id(row, BL_D),
                        .wide = true,
                        .trans = row == BL_ROW_GETRS ? 'N' : 0,
                        .m = n,
                        .n = n,
                        .nrhs = nrhs,
                        .lwork = 64 * n,
                        .has_work = !nrhs,
                        .batch = 1,
                        .a = device,
                        .lda = n,
                        .b = nrhs ? at : NULL,
                        .ldb = n,
                        .has_b = nrhs > 0,
                        .ipiv = pivots,
                        .info = pivots + n};
    struct bl_job job;
    bl_job_of_call(&job, &c);
    job.work = at + ((b_bytes + 255) & ~(size_t)255);
    if (engine->workspace(&job) > 2 * a_bytes + WORK_BYTES - (b_bytes + 255))
        must(BL_NOMEM);
    if (nrhs)
        must(engine->copy_in(queue, at, pinned, b_bytes));
    must(engine->run(&job, queue));
    must(engine->copy_out(queue, pinned, nrhs ? at : device, nrhs ? b_bytes : a_bytes));
    must(engine->wait(queue));
}

enum what { COMPARE, COPY, KEPT, CALL };

static double seconds(enum what what, enum bl_row row, int32_t n, int32_t nrhs)
{
    double best = 1e30;
    size_t bytes = (size_t)n * (size_t)n * 8;
    for (int i = 0; i < 3; i++) {
        if (what == KEPT)
            must(engine->copy_in(queue, device, pinned, bytes) || engine->wait(queue));
        else
            memcpy(a, shadow, bytes);
        for (int64_t k = 0; k < (int64_t)n * bl_max(nrhs, 1); k++)
            b[k] = 1;
        uint64_t begin = bl_now();
        if (what == COMPARE || what == COPY)
            bl_workers_run(50000, (int64_t)bytes / PART_BYTES,
                           what == COMPARE ? compare : copy, NULL);
        else if (what == KEPT)
            on_device(row, n, nrhs);
        else
            call(row, n, nrhs);
        double s = (double)(bl_now() - begin) * 1e-9;
        best = s < best ? s : best;
        if (s > 2)
            break;
    }
    return best * 1e3;
}

#define LARGEST_GETRI_ON_CPU 4096 /* netlib takes minutes */

static void table(int32_t n)
{
    static const int32_t columns[] = {1, 16, 256, 0}; /* 0: getri */
    size_t bytes = (size_t)n * (size_t)n * 8;
    memcpy(a, start, bytes);
    batchlapack_set_mode(BATCHLAPACK_MODE_GPU);
    call(BL_ROW_GETRF, n, 0);
    memcpy(shadow, a, bytes);
    memcpy(pinned, ipiv, (size_t)n * 8);
    must(engine->copy_in(queue, pivots, pinned, (size_t)n * 8) || engine->wait(queue));
    double compared = seconds(COMPARE, 0, n, 0), copied = seconds(COPY, 0, n, 0);
    for (int i = 0; i < 4; i++) {
        enum bl_row row = columns[i] ? BL_ROW_GETRS : BL_ROW_GETRI;
        nanosleep(&(struct timespec){0, 150000000}, NULL); /* OpenBLAS's threads spin */
        batchlapack_set_mode(BATCHLAPACK_MODE_GPU);
        double again = seconds(CALL, row, n, columns[i]);
        memcpy(pinned, shadow, bytes);
        double kept = seconds(KEPT, row, n, columns[i]) + compared;
        batchlapack_set_mode(BATCHLAPACK_MODE_CPU);
        double cpu = columns[i] || n <= LARGEST_GETRI_ON_CPU
                         ? seconds(CALL, row, n, columns[i])
                         : INFINITY;
        char cpu_ms[32] = "        -";
        if (cpu < INFINITY)
            snprintf(cpu_ms, sizeof cpu_ms, "%9.2f", cpu);
        double today = cpu < again ? cpu : again;
        printf("%5d  %s %4d  again %9.2f ms  kept %9.2f ms (compare %.2f)  copy %6.2f ms "
               " cpu %s ms  gain %5.2f, with the copy %5.2f\n",
               n, columns[i] ? "getrs" : "getri", columns[i], again, kept, compared,
               copied, cpu_ms, today / kept, today / (kept + copied));
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    int32_t largest = argc > 1 ? atoi(argv[1]) : 8192;
    size_t bytes = (size_t)largest * (size_t)largest * 8;
    enum bl_reason why;
    engine = bl_engine_for(0, true, &why);
    if (!engine) {
        printf("no engine: %s\n", bl_engine_why());
        return 1;
    }
    void *p = NULL, *q = NULL;
    must(engine->queue_open(&queue));
    must(engine->host_alloc(bytes + 64, &pinned));
    must(engine->device_alloc(3 * bytes + WORK_BYTES, &p));
    must(engine->device_alloc((size_t)largest * 8 + 64, &q));
    device = p;
    pivots = q;
    a = malloc(bytes);
    shadow = malloc(bytes);
    start = malloc(bytes);
    b = malloc(bytes + 2048 * (size_t)largest);
    work = malloc((size_t)largest * 512);
    ipiv = malloc((size_t)largest * 8);
    if (!a || !shadow || !start || !b || !work || !ipiv)
        return 1;
    uint64_t x = 1;
    for (size_t k = 0; k < bytes / 8; k++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        start[k] = (double)(int64_t)x * 0x1p-63;
    }
    for (int32_t n = 1024; n <= largest; n *= 2)
        table(n);
    return differing;
}
