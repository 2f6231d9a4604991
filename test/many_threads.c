/* Many threads on the engine at once: dgetrf_ of mixed sizes, for so many seconds.
 *
 *     many_threads [SECONDS [THREADS [LARGEST]]]         (60, 32, 1100; with the mock
 *                                                         engine 2, 32, 190)
 *
 * Each thread takes one matrix after another, in an order of its own. Every result must
 * have netlib's bits, no thread may be starved (the fewest calls of a thread against the
 * mean, and the longest call against the run), and memory must be bounded: once all
 * threads have made some calls, the process's address space, what the device has free
 * and, with the mock engine, the device memory held must not grow any more. Every call
 * must have been served by the engine. The engine is the one that BATCHLAPACK_ENGINE
 * names or that lies beside the library; the program must not link LAPACK.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "batchlapack.h"
#include "mock_controls.h"
#include "reference.h"

#define MOST_THREADS 256
#define ROOM 16 /* MiB that may come and go: stacks and heaps of the C library */

static const int32_t sizes[] = {5,   16,  31,  32,  33,  64,  100,
                                190, 256, 257, 400, 600, 1100};
#define SIZES (sizeof sizes / sizeof *sizes)
static struct {
    struct matrix start, factors;
    int32_t *ipiv;
} problem[SIZES];
static size_t problems;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- memory: each in MiB, or 0 where it cannot be told ---- */

struct memory {
    double address_space, device_used, held;
};

static double address_space(void)
{
    char line[256];
    double kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmSize: %lf", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib / 1024;
}

/* By the driver, which is in the process if the CUDA engine is. */
static double device_used(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), *context;
    if (!driver)
        return 0;
    int (*retain)(void **, int), (*push)(void *), (*pop)(void **);
    int (*info)(size_t *, size_t *);
    *(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
    *(void **)&push = dlsym(driver, "cuCtxPushCurrent_v2");
    *(void **)&pop = dlsym(driver, "cuCtxPopCurrent_v2");
    *(void **)&info = dlsym(driver, "cuMemGetInfo_v2");
    size_t available = 0, total = 0;
    if (retain && push && pop && info && retain(&context, 0) == 0 && push(context) == 0) {
        info(&available, &total);
        pop(&context);
    }
    return (double)(total - available) / 0x1p20;
}

static double held(void)
{
    struct mock_counts counts = {.held = 0};
    if (mock_counts)
        mock_counts(&counts);
    return (double)counts.held / 0x1p20;
}

static struct memory memory_now(void)
{
    return (struct memory){address_space(), device_used(), held()};
}

/* ---- the threads ---- */

struct worker {
    pthread_t thread;
    int number;
    double until, longest;
    _Atomic int64_t calls;
    int64_t wrong;
    char first[200]; /* of what was wrong */
};
static struct worker worker[MOST_THREADS];

static void one_call(struct worker *w, size_t which, struct matrix *a, int32_t *ipiv)
{
    int32_t n = sizes[which];
    struct call c = {.routine = BL_GETRF,
                     .precision = BL_D,
                     .m = n,
                     .n = n,
                     .lda = n,
                     .a = a->data,
                     .ipiv = ipiv,
                     .info = -99};
    memcpy(a->data, problem[which].start.data, matrix_bytes(&problem[which].start));
    double begin = now();
    entry_call(&c);
    double seconds = now() - begin;
    w->longest = seconds > w->longest ? seconds : w->longest;
    w->calls++;
    bool good = c.info == 0 &&
                !memcmp(ipiv, problem[which].ipiv, (size_t)n * sizeof *ipiv) &&
                !memcmp(a->data, problem[which].factors.data,
                        matrix_bytes(&problem[which].factors));
    if (!good && w->wrong++ == 0)
        snprintf(w->first, sizeof w->first, "thread %d, call %lld, n = %d, INFO %d",
                 w->number, (long long)w->calls, n, c.info);
}

static void *run(void *arg)
{
    struct worker *w = arg;
    struct rng r = {(uint64_t)w->number + 1};
    int32_t largest = sizes[problems - 1];
    struct matrix a = matrix_new(BL_D, largest, largest, largest, 0);
    int32_t *ipiv = malloc((size_t)largest * sizeof *ipiv);
    while (now() < w->until)
        one_call(w, (size_t)rng_below(&r, (int64_t)problems), &a, ipiv);
    matrix_free(&a);
    free(ipiv);
    return NULL;
}

/* When every thread has made some calls; or when the run is half over. */
static void warm_up(int threads, double half)
{
    struct timespec moment = {0, 10000000};
    for (bool all = false; !all && now() < half;) {
        nanosleep(&moment, NULL);
        all = true;
        for (int i = 0; i < threads; i++)
            all = all && worker[i].calls >= 20;
    }
}

static void judge(int threads, double seconds, const struct memory *warm,
                  const struct memory *end)
{
    int64_t sum = 0, fewest = INT64_MAX, wrong = 0;
    double longest = 0;
    char why[300] = "";
    for (int i = 0; i < threads; i++) {
        const struct worker *w = &worker[i];
        sum += w->calls;
        fewest = w->calls < fewest ? w->calls : fewest;
        longest = w->longest > longest ? w->longest : longest;
        if (w->wrong && !wrong)
            snprintf(why, sizeof why, "%s", w->first);
        wrong += w->wrong;
    }
    double mean = (double)sum / threads;
    printf(
        "# %d threads, %.1f s: %lld calls, fewest of a thread %lld, mean %.0f, longest "
        "call %.0f ms; MiB warm and at the end: address space %.0f %.0f, device %.0f "
        "%.0f, held %.1f %.1f\n",
        threads, seconds, (long long)sum, (long long)fewest, mean, longest * 1e3,
        warm->address_space, end->address_space, warm->device_used, end->device_used,
        warm->held, end->held);
    verdict(why, "threads-results");
    why[0] = 0;
    if ((double)fewest < mean / 4 || longest > seconds / 4)
        snprintf(why, sizeof why, "fewest %lld of mean %.0f, longest %.2f s",
                 (long long)fewest, mean, longest);
    verdict(why, "threads-none-starved");
    why[0] = 0;
    if (end->address_space > warm->address_space + ROOM ||
        end->device_used > warm->device_used + ROOM || end->held > warm->held + ROOM)
        snprintf(why, sizeof why, "MiB: address space %.0f to %.0f, device %.0f to %.0f",
                 warm->address_space, end->address_space, warm->device_used,
                 end->device_used);
    verdict(why, "threads-memory-bounded");
}

static void prepare(int32_t largest)
{
    for (size_t i = 0; i < SIZES && sizes[i] <= largest; i++, problems++) {
        int32_t n = sizes[i];
        struct matrix *a = &problem[i].start;
        *a = matrix_new(BL_D, n, n, n, 0);
        matrix_fill(a, CLASS_RANDOM, i + 1);
        problem[i].factors = matrix_copy(a);
        problem[i].ipiv = malloc((size_t)n * sizeof *problem[i].ipiv);
        struct call c = {.routine = BL_GETRF,
                         .precision = BL_D,
                         .m = n,
                         .n = n,
                         .lda = n,
                         .a = problem[i].factors.data,
                         .ipiv = problem[i].ipiv};
        reference_call(&c);
    }
}

int main(int argc, char **argv)
{
    const bool is_mock = find_mock();
    double seconds = argc > 1 ? atof(argv[1]) : is_mock ? 2 : 60;
    int threads = argc > 2 ? atoi(argv[2]) : 32;
    int32_t largest = argc > 3 ? atoi(argv[3]) : is_mock ? 190 : 1100;
    if (threads < 1 || threads > MOST_THREADS || largest < sizes[0] ||
        !reference_open() || !batchlapack_version()) /* links the library */
        return 1;
    if (!rerun_name())
        return !rerun_served(argv, "threads", "gpu", "exact") || failures() > 0;
    prepare(largest);
    double begin = now();
    for (int i = 0; i < threads; i++) {
        worker[i].number = i;
        worker[i].until = begin + seconds;
        if (pthread_create(&worker[i].thread, NULL, run, &worker[i]) != 0)
            return 1;
    }
    warm_up(threads, begin + seconds / 2);
    struct memory warm = memory_now();
    struct timespec rest = {0, 0};
    double left = begin + seconds - now() - 0.05;
    if (left > 0) {
        rest =
            (struct timespec){(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
        nanosleep(&rest, NULL);
    }
    struct memory end = memory_now();
    for (int i = 0; i < threads; i++)
        pthread_join(worker[i].thread, NULL);
    judge(threads, now() - begin, &warm, &end);
    return failures() > 0;
}
