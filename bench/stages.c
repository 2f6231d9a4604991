/* Where does the time of host data go? The pipeline's own stages, call by call.
 *
 *     bench/stages [megabytes [n [calls]]]              (1024, 32, 10)
 *     bench/stages [megabytes n calls] single n ...
 *
 * A strided dgetrf batch of so many megabytes of pageable memory goes through the
 * pipeline some ten times, over an engine whose functions are the real one's with a clock
 * round each. A line a call: the whole call, and what of it the calling thread spent in
 * copying (it and our workers pack and unpack), in waiting for the device and in
 * enqueueing; page faults, context switches, CPU time, the time that the hypervisor and
 * the control group kept us from a CPU. Before it, what bounds each stage, alone: the
 * link by way of the engine (chunk by chunk, as the pipeline does it, and both ways), and
 * copying by our workers, with the slowest unit each and the share of the busiest
 * worker. "single": dgetrf and dpotrf of one matrix, and when its last piece was sent and
 * its run was waited for. Linked with libshim; BATCHLAPACK_ENGINE says which engine.
 */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bl.h"
#include "guard.h"
#include "workers.h"

/* ---- the machine ---- */

static void say_file(const char *path)
{
    char line[256];
    FILE *f = fopen(path, "r");
    if (!f)
        return;
    if (fgets(line, sizeof line, f))
        printf("%s: %s", path, line);
    fclose(f);
}

static void say_machine(void)
{
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    printf("CPUs in the mask %d, online %ld; workers %d\n", CPU_COUNT(&set),
           sysconf(_SC_NPROCESSORS_ONLN), bl_workers_count());
    say_file("/proc/version");
    say_file("/proc/loadavg");
    say_file("/sys/fs/cgroup/cpu.max");
    say_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    say_file("/sys/devices/system/node/online");
    say_file("/sys/devices/system/node/node0/cpulist");
    say_file("/sys/devices/system/node/node1/cpulist");
    say_file("/sys/kernel/mm/transparent_hugepage/enabled");
    say_file("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
}

/* A number that follows `key` in a file; 0 where there is none. */
static double number_in(const char *path, const char *key, int skip)
{
    char line[512];
    double value = 0;
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        size_t length = strlen(key);
        char *at = line + length;
        if (strncmp(line, key, length) != 0)
            continue;
        for (int i = 0; i <= skip; i++)
            value = strtod(at, &at);
        break;
    }
    if (f)
        fclose(f);
    return value;
}

struct usage {
    double at, cpu, system, faults, yields, preempted, throttled_us, steal;
};

static struct usage usage_now(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    double system = (double)r.ru_stime.tv_sec + (double)r.ru_stime.tv_usec * 1e-6;
    double user = (double)r.ru_utime.tv_sec + (double)r.ru_utime.tv_usec * 1e-6;
    double throttled =
        number_in("/sys/fs/cgroup/cpu.stat", "throttled_usec", 0) +
        number_in("/sys/fs/cgroup/cpu/cpu.stat", "throttled_time", 0) / 1e3;
    return (struct usage){(double)bl_now() * 1e-9,
                          user + system,
                          system,
                          (double)r.ru_minflt,
                          (double)r.ru_nvcsw,
                          (double)r.ru_nivcsw,
                          throttled,
                          number_in("/proc/stat", "cpu ", 7) / 100};
}

/* ---- an engine with a clock ---- */

static const struct bl_engine *real;
static struct bl_engine timed;
enum stage { COPYING, WAITING, ENQUEUEING, STAGES };
static double spent[STAGES], longest[STAGES];
static uint64_t last;      /* when the engine's last function returned */
static uint64_t sent, ran; /* the last run was enqueued; the first wait after it */

static void add(enum stage s, uint64_t ns)
{
    double seconds = (double)ns * 1e-9;
    spent[s] += seconds;
    longest[s] = fmax(longest[s], seconds);
}

/* What lies between two functions of the engine is the pipeline's own: copying. */
static uint64_t enter(void)
{
    uint64_t now = bl_now();
    add(COPYING, now - last);
    return now;
}

static enum bl_status leave(enum stage s, uint64_t begin, enum bl_status status)
{
    last = bl_now();
    add(s, last - begin);
    return status;
}

static enum bl_status copy_in(void *queue, void *d, const void *h, size_t bytes)
{
    uint64_t begin = enter();
    return leave(ENQUEUEING, begin, real->copy_in(queue, d, h, bytes));
}

static enum bl_status copy_out(void *queue, void *h, const void *d, size_t bytes)
{
    uint64_t begin = enter();
    return leave(ENQUEUEING, begin, real->copy_out(queue, h, d, bytes));
}

static enum bl_status run(const struct bl_job *job, void *queue)
{
    uint64_t begin = sent = enter();
    ran = 0;
    return leave(ENQUEUEING, begin, real->run(job, queue));
}

static enum bl_status wait(void *queue)
{
    uint64_t begin = enter();
    enum bl_status status = leave(WAITING, begin, real->wait(queue));
    ran = ran ? ran : last;
    return status;
}

static void must(enum bl_status status, const char *what)
{
    if (status != BL_OK) {
        printf("%s failed: %d\n", what, (int)status);
        exit(1);
    }
}

/* ---- each stage alone ---- */

#define TRACKS 4
#define CHUNK ((size_t)16 << 20)
static char *ring, *arena;
static void *queue[2 * TRACKS];

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Chunks of one size, in the pipeline's order, without packing or kernels. */
static void link_alone(size_t bytes, bool in, bool out)
{
    double best = 1e30, worst = 0;
    for (int i = 0; i < 5; i++) {
        uint64_t begin = bl_now();
        for (size_t k = 0; k < bytes / CHUNK; k++) {
            size_t at = k % TRACKS * CHUNK;
            void *q = queue[k % TRACKS];
            must(real->wait(q), "wait");
            if (in)
                must(real->copy_in(q, arena + at, ring + at, CHUNK), "copy in");
            if (out)
                must(real->copy_out(q, ring + at, arena + at, CHUNK), "copy out");
        }
        for (int k = 0; k < TRACKS; k++)
            must(real->wait(queue[k]), "wait");
        double s = (double)(bl_now() - begin) * 1e-9;
        best = fmin(best, s);
        worst = fmax(worst, s);
    }
    printf("link alone, 16 MiB at a time, %s: %.1f GB/s (worst of 5 %.1f)\n",
           in && out ? "both ways"
           : in      ? "in"
                     : "out",
           (double)bytes / best * 1e-9, (double)bytes / worst * 1e-9);
    fflush(stdout);
}

#define UNIT ((size_t)128 << 10)
#define MOST_WORKERS 256
struct copying {
    char *theirs, *ours;
    bool unpack, both;
    double slowest[MOST_WORKERS];
    int64_t units[MOST_WORKERS];
};

static void copy_units(void *arg, int64_t from, int64_t to, int worker)
{
    struct copying *c = arg;
    for (int64_t i = from; i < to; i++) {
        uint64_t begin = bl_now();
        char *t = c->theirs + (size_t)i * UNIT,
             *o = c->ours + (size_t)i * UNIT % (4 * CHUNK);
        if (c->unpack)
            memcpy(t, o, UNIT);
        else
            memcpy(o, t, UNIT);
        double s = (double)(bl_now() - begin) * 1e-9;
        c->slowest[worker % MOST_WORKERS] = fmax(c->slowest[worker % MOST_WORKERS], s);
        c->units[worker % MOST_WORKERS]++;
    }
}

static void copying_alone(char *host, size_t bytes, bool unpack)
{
    struct copying *c = calloc(1, sizeof *c);
    size_t count = bytes / CHUNK;
    double *t = malloc(count * sizeof *t), all = 0, slowest = 0;
    int64_t units = 0, most = 0;
    for (size_t k = 0; k < count; k++) {
        c->theirs = host + k * CHUNK;
        c->ours = ring + k % TRACKS * CHUNK;
        c->unpack = unpack;
        uint64_t begin = bl_now();
        bl_workers_copy(25000, (int64_t)(CHUNK / UNIT), copy_units, NULL, c);
        t[k] = (double)(bl_now() - begin) * 1e-9;
        all += t[k];
    }
    qsort(t, count, sizeof *t, ascending);
    int busy = 0;
    for (int i = 0; i < MOST_WORKERS; i++) {
        slowest = fmax(slowest, c->slowest[i]);
        units += c->units[i];
        most = bl_max(most, c->units[i]);
        busy += c->units[i] > 0;
    }
    printf("copying alone, 16 MiB at a time, %s: %.1f GB/s; a chunk %.0f us least, %.0f "
           "median, %.0f worst; %d workers, slowest unit of 128 KiB %.0f us, busiest "
           "worker %.2f of the mean\n",
           unpack ? "to the caller's" : "from the caller's", (double)bytes / all * 1e-9,
           t[0] * 1e6, t[count / 2] * 1e6, t[count - 1] * 1e6, busy, slowest * 1e6,
           (double)most * busy / (double)units);
    fflush(stdout);
    free(c);
    free(t);
}

/* ---- the calls ---- */

static void fill(double *a, int64_t n, int64_t batch)
{
    uint64_t x = 1;
    for (int64_t i = 0; i < n * n * batch; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        a[i] = (double)(int64_t)x * 0x1p-63;
    }
    for (int64_t k = 0; k < batch; k++)
        for (int64_t i = 0; i < n; i++)
            a[k * n * n + i * (n + 1)] = 2.0 * (double)n;
}

/* Seconds; what they were spent on is in `spent`. */
static double one_call(const struct bl_job *job, struct bl_traffic *traffic)
{
    int64_t done = 0;
    struct bl_guard guard;
    memset(spent, 0, sizeof spent);
    memset(longest, 0, sizeof longest);
    *traffic = (struct bl_traffic){0};
    bl_guard_enter(&guard);
    uint64_t begin = last = bl_now();
    must(bl_pipeline(&timed, job, &done, traffic), "the pipeline");
    uint64_t end = bl_now();
    add(COPYING, end - last);
    bl_guard_leave(&guard);
    return (double)(end - begin) * 1e-9;
}

static void batch_call(const struct bl_job *job, int number)
{
    struct bl_traffic traffic;
    struct usage before = usage_now();
    double all = one_call(job, &traffic);
    struct usage after = usage_now();
    printf("call %2d %8.2f ms %5.1f GB/s each way: copying %7.2f (longest %6.2f) waiting "
           "%7.2f (%6.2f) enqueueing %5.2f (%5.2f); CPU %6.1f ms (system %5.1f) faults "
           "%.0f sleeps %.0f preempted %.0f throttled %.1f ms stolen %.0f ms\n",
           number, all * 1e3, (double)traffic.in / all * 1e-9, spent[COPYING] * 1e3,
           longest[COPYING] * 1e3, spent[WAITING] * 1e3, longest[WAITING] * 1e3,
           spent[ENQUEUEING] * 1e3, longest[ENQUEUEING] * 1e3,
           (after.cpu - before.cpu) * 1e3, (after.system - before.system) * 1e3,
           after.faults - before.faults, after.yields - before.yields,
           after.preempted - before.preempted,
           (after.throttled_us - before.throttled_us) * 1e-3,
           (after.steal - before.steal) * 1e3);
    fflush(stdout);
}

static void single(enum bl_row row, int64_t n, double *a, int64_t *ipiv)
{
    int64_t info = 0;
    struct bl_call c = {.id = bl_id(row, BL_D),
                        .wide = true,
                        .uplo = row == BL_ROW_POTRF ? 'L' : 0,
                        .m = n,
                        .n = n,
                        .lda = n,
                        .batch = 1,
                        .a = a,
                        .ipiv = ipiv,
                        .info = &info};
    struct bl_job job;
    bl_job_of_call(&job, &c);
    for (int i = 0; i < 4; i++) {
        struct bl_traffic traffic;
        for (int64_t k = 0; k < n; k++)
            a[k * (n + 1)] = 2.0 * (double)n;
        uint64_t begin = bl_now();
        double all = one_call(&job, &traffic);
        double in = (double)(sent - begin) * 1e-9,
               out = all - (double)(ran - begin) * 1e-9;
        printf("%s n %5lld %8.2f ms: in %7.2f (%5.1f GB/s) run %7.2f out %7.2f (%5.1f "
               "GB/s); copying %7.2f waiting %7.2f enqueueing %6.2f\n",
               bl_rows[row].name, (long long)n, all * 1e3, in * 1e3,
               (double)traffic.in / in * 1e-9, (double)(ran - sent) * 1e-6, out * 1e3,
               (double)traffic.out / out * 1e-9, spent[COPYING] * 1e3,
               spent[WAITING] * 1e3, spent[ENQUEUEING] * 1e3);
        fflush(stdout);
    }
}

static int singles(int count, char **sizes)
{
    int64_t most = 0;
    for (int i = 0; i < count; i++)
        most = bl_max(most, atoi(sizes[i]));
    double *a = malloc((size_t)(most * most) * sizeof *a);
    int64_t *ipiv = calloc((size_t)most, sizeof *ipiv);
    if (!a || !ipiv)
        return 1;
    for (int64_t i = 0; i < most * most; i++)
        a[i] = (double)(i * 7919 % 1009) / 1009 - 0.5;
    for (int i = 0; i < count; i++) {
        single(BL_ROW_GETRF, atoi(sizes[i]), a, ipiv);
        single(BL_ROW_POTRF, atoi(sizes[i]), a, ipiv);
    }
    return 0;
}

static int batches(int argc, char **argv)
{
    size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 1024) << 20;
    int64_t n = argc > 2 ? atoi(argv[2]) : 32;
    int calls = argc > 3 ? atoi(argv[3]) : 10;
    int64_t batch = (int64_t)bytes / (n * n * 8);
    double *a = malloc(bytes);
    int64_t *ipiv = malloc((size_t)(batch * n) * 8), *info = malloc((size_t)batch * 8);
    void *p = NULL, *q = NULL;
    must(real->host_alloc(TRACKS * CHUNK, &p), "pinned memory");
    must(real->device_alloc(TRACKS * CHUNK, &q), "device memory");
    ring = p;
    arena = q;
    for (int i = 0; i < TRACKS; i++)
        must(real->queue_open(&queue[i]), "a queue");
    if (!a || !ipiv || !info)
        return 1;
    memset(ipiv, 1, (size_t)(batch * n) * 8);
    memset(info, 1, (size_t)batch * 8);
    fill(a, n, batch);
    link_alone(bytes, true, false);
    link_alone(bytes, false, true);
    link_alone(bytes, true, true);
    for (int i = 0; i < 3; i++) {
        copying_alone((char *)a, bytes, false);
        copying_alone((char *)a, bytes, true);
    }
    struct bl_job job = {.routine = BL_GETRF,
                         .precision = BL_D,
                         .int_size = 8,
                         .m = n,
                         .n = n,
                         .batch = batch};
    job.a = (struct bl_operand){a, NULL, n, n * n};
    job.ipiv = (struct bl_operand){ipiv, NULL, 0, n};
    job.info = (struct bl_operand){info, NULL, 0, 1};
    for (int i = 0; i < calls; i++)
        batch_call(&job, i);
    return 0;
}

int main(int argc, char **argv)
{
    enum bl_reason why;
    real = bl_engine_for(0, true, &why);
    if (!real) {
        printf("no engine: %s\n", bl_engine_why());
        return 1;
    }
    timed = *real;
    timed.copy_in = copy_in;
    timed.copy_out = copy_out;
    timed.run = run;
    timed.wait = wait;
    int numbers = 1;
    while (numbers < argc && strcmp(argv[numbers], "single") != 0)
        numbers++;
    if (numbers > 1 || argc == 1) {
        say_machine();
        if (batches(numbers, argv) != 0)
            return 1;
    }
    return numbers < argc ? singles(argc - numbers - 1, argv + numbers + 1) : 0;
}
