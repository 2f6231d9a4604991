/* The workers: every unit once, whoever calls, forks, fails or raises; and faster than
 * one thread.
 *
 *     workers [--light]        all cases; light ones for tools that slow everything down
 *     workers CASE             one, in this process
 *
 * Links libshim. Each case runs in a process of its own with as many CPUs
 * (sched_getaffinity is answered here) and as high a BATCHLAPACK_THREADS as it asks for,
 * and is killed when it hangs.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bl.h"
#include "workers.h"

#define MOST 16         /* more threads than any case has */
#define HUGE_NS 1000000 /* worth all workers, a unit a range */

/* ---- the system's answers ---- */

static _Atomic int creations_left = 1000;

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                   void *arg)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return atomic_fetch_sub(&creations_left, 1) > 0 ? real(thread, attr, start, arg)
                                                    : EAGAIN;
}

int sched_getaffinity(pid_t thread, size_t size, cpu_set_t *set)
{
    int (*real)(pid_t, size_t, cpu_set_t *);
    const char *cpus = getenv("TEST_CPUS");
    *(void **)&real = dlsym(RTLD_NEXT, "sched_getaffinity");
    if (!cpus)
        return real(thread, size, set);
    memset(set, 0, size);
    for (int i = 0; i < atoi(cpus); i++)
        CPU_SET_S(i, size, set);
    return 0;
}

/* ---- what a case says ---- */

static char why[300];

static bool check(bool right, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool check(bool right, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    if (!right && !*why)
        vsnprintf(why, sizeof why, format, ap);
    va_end(ap);
    return right;
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static int threads_of_process(void)
{
    DIR *d = opendir("/proc/self/task");
    int n = 0;
    for (struct dirent *e; (e = readdir(d));)
        n += *e->d_name != '.';
    closedir(d);
    return n;
}

/* ---- a run that is looked at ---- */

struct watched {
    int64_t count;
    _Atomic unsigned char *times; /* how often each unit was done */
    _Atomic int in_use[MOST];     /* worker numbers */
    _Atomic int wrong, threads, ranges;
    _Atomic pid_t thread[MOST]; /* by worker number */
    long ms;                    /* that a range takes */
    void (*extra)(struct watched *w, int64_t from, int worker);
};

static void watch_part(void *arg, int64_t from, int64_t to, int worker)
{
    struct watched *w = arg;
    if (worker < 0 || worker >= MOST || worker >= bl_workers_count() || from >= to ||
        from < 0 || to > w->count || atomic_exchange(&w->in_use[worker], 1)) {
        w->wrong++;
        return;
    }
    if (!atomic_exchange(&w->thread[worker], gettid()))
        w->threads++;
    w->ranges++;
    for (int64_t i = from; i < to; i++)
        w->times[i]++;
    if (w->ms)
        pause_ms(w->ms);
    if (w->extra)
        w->extra(w, from, worker);
    w->in_use[worker] = 0;
}

static void watch(struct watched *w, int64_t ns)
{
    w->times = calloc((size_t)w->count + 1, 1);
    bl_workers_run(ns, w->count, watch_part, w);
    for (int64_t i = 0; i < w->count; i++)
        if (!check(w->times[i] == 1, "unit %lld of %lld done %d times", (long long)i,
                   (long long)w->count, w->times[i]))
            break;
    check(!w->wrong, "%d wrong ranges or worker numbers", w->wrong);
    free(w->times);
}

/* All threads that there are, each in for certain: a range takes long. */
static int threads_that_help(int n)
{
    struct watched w = {.count = 4 * n, .ms = 10};
    watch(&w, HUGE_NS);
    return w.threads;
}

/* ---- the cases ---- */

static void coverage(void)
{
    static const int64_t counts[] = {0, 1, 2, 3, 7, 1000, 1000000};
    static const int64_t ns[] = {0, 1, 100, 5000, HUGE_NS};
    for (int k = 0; k < 20; k++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            for (size_t j = 0; j < sizeof ns / sizeof *ns; j++)
                if ((k == 0 && ns[j] < HUGE_NS) || counts[i] <= 1000)
                    watch(&(struct watched){.count = counts[i]}, ns[j]);
}

/* As many threads as the option says, no thread for little work or one unit. */
static void count(void)
{
    int want = atoi(getenv("TEST_WANT"));
    check(bl_workers_count() == want, "%d workers", bl_workers_count());
    watch(&(struct watched){.count = 90}, 1000);
    watch(&(struct watched){.count = 1}, HUGE_NS);
    check(threads_of_process() == 1, "threads started for little work");
    int help = threads_that_help(want);
    check(help == want, "%d threads worked, not %d", help, want);
    check(threads_of_process() == want, "%d threads in the process, not %d",
          threads_of_process(), want);
}

static void one_cpu(void)
{
    cpu_set_t set, one;
    sched_getaffinity(0, sizeof set, &set);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &set))
            CPU_SET(i, &one);
    sched_setaffinity(0, sizeof one, &one);
    check(bl_workers_count() == 1, "%d workers", bl_workers_count());
    check(threads_that_help(3) == 1 && threads_of_process() == 1, "threads started");
}

/* As under OpenMP: the calling thread is bound to a CPU, another one is not. */
static void bound(void)
{
    cpu_set_t set, one;
    sched_getaffinity(0, sizeof set, &set);
    int want = CPU_COUNT(&set);
    pthread_t other;
    pthread_create(&other, NULL, (void *(*)(void *))(void *)pause, NULL);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &set))
            CPU_SET(i, &one);
    sched_setaffinity(0, sizeof one, &one);
    check(bl_workers_count() == want, "%d workers, not %d", bl_workers_count(), want);
    struct watched w = {.count = 4 * want, .ms = 10};
    watch(&w, HUGE_NS);
    for (int i = 1; i < want && w.thread[i]; i++) {
        sched_getaffinity(w.thread[i], sizeof set, &set);
        check(CPU_COUNT(&set) == want, "a worker is bound to the caller's CPU");
    }
    sched_getaffinity(0, sizeof set, &set);
    check(CPU_COUNT(&set) == 1, "the caller is no longer bound");
}

static void *caller(void *seed)
{
    for (int i = 0; i < 150; i++)
        watch(&(struct watched){.count = (i * 37 + (int)(intptr_t)seed * 11) % 500},
              i % 3 ? HUGE_NS : 3000);
    return NULL;
}

static void callers(void)
{
    pthread_t thread[12];
    for (intptr_t i = 0; i < 12; i++)
        pthread_create(&thread[i], NULL, caller, (void *)i);
    for (int i = 0; i < 12; i++)
        pthread_join(thread[i], NULL);
}

static void run_nested(struct watched *w, int64_t from, int worker)
{
    (void)w, (void)from, (void)worker;
    struct watched inner = {.count = 50, .ms = 1};
    watch(&inner, HUGE_NS);
    check(inner.threads == 1 && inner.thread[0] == gettid() && inner.ranges == 1,
          "a nested run is not alone");
}

static void nested(void)
{
    for (int i = 0; i < 10; i++)
        watch(&(struct watched){.count = 40, .extra = run_nested}, HUGE_NS);
}

/* In a child: alone, on this thread; and so in its child. */
static int in_child(int generation, pid_t (*fork_it)(void))
{
    alarm(20);
    struct watched w = {.count = 3000};
    watch(&w, HUGE_NS);
    check(w.threads == 1 && w.thread[0] == gettid() && bl_workers_count() == 1,
          "a child uses workers");
    check(threads_of_process() == 1, "a child has threads");
    if (*why)
        fprintf(stderr, "child %d: %s\n", generation, why);
    int status = *why != 0;
    pid_t pid = generation < 2 ? fork_it() : -1;
    if (pid == 0)
        _exit(in_child(generation + 1, fork_it));
    if (pid > 0 && (waitpid(pid, &status, 0) != pid || status))
        status = 1;
    return status;
}

static _Atomic bool stop;

static void *busy(void *unused)
{
    while (!stop)
        watch(&(struct watched){.count = 300}, HUGE_NS);
    return unused;
}

static void fork_while_busy(pid_t (*fork_it)(void), int times)
{
    pthread_t thread[2];
    pthread_create(&thread[0], NULL, busy, NULL);
    pthread_create(&thread[1], NULL, busy, NULL);
    for (int i = 0; i < times; i++) {
        int status;
        pid_t pid = fork_it();
        if (pid == 0)
            _exit(in_child(1, fork_it));
        waitpid(pid, &status, 0);
        check(status == 0, "child %d ended with status %x", i, status);
        usleep(100);
    }
    stop = true;
    pthread_join(thread[0], NULL);
    pthread_join(thread[1], NULL);
    check(threads_that_help(5) == 5, "the parent has lost workers");
}

static void forks(void)
{
    fork_while_busy(fork, 200);
}

/* malloc in such a child may hang when another thread forks in malloc: from an idle
 * process, then, but with workers asleep. */
static void bare_forks(void)
{
    int status;
    threads_that_help(5);
    pid_t pid = _Fork();
    if (pid == 0)
        _exit(in_child(1, _Fork));
    waitpid(pid, &status, 0);
    check(status == 0, "child ended with status %x", status);
}

static void fork_before_use(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(in_child(1, fork));
    waitpid(pid, &status, 0);
    check(status == 0, "child ended with status %x", status);
}

/* ---- signals ---- */

static _Atomic int handled, handled_elsewhere;
static pid_t program_thread;

static void on_signal(int s)
{
    (void)s;
    handled++;
    handled_elsewhere += gettid() != program_thread;
}

static void *shoot(void *unused)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    while (!stop) {
        kill(getpid(), SIGUSR1);
        usleep(200);
    }
    return unused;
}

static void signals(void)
{
    pthread_t thread;
    program_thread = gettid();
    threads_that_help(5); /* the workers are older than the handler */
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal}, NULL);
    pthread_create(&thread, NULL, shoot, NULL);
    for (int i = 0; i < 10; i++)
        threads_that_help(5);
    stop = true;
    pthread_join(thread, NULL);
    check(handled > 3, "only %d signals came", handled);
    check(!handled_elsewhere, "%d of %d handled by a worker", handled_elsewhere, handled);
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    check(!sigismember(&set, SIGUSR1), "the caller's mask is not as it was");
}

/* A fault on a worker is the program's to mend. */
static char *page;
static void mend(int s)
{
    (void)s;
    handled++;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void touch(struct watched *w, int64_t from, int worker)
{
    (void)w, (void)from;
    if (worker > 0)
        ((volatile char *)page)[worker] = 1;
}

static void faults(void)
{
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &(struct sigaction){.sa_handler = mend}, NULL);
    watch(&(struct watched){.count = 40, .ms = 5, .extra = touch}, HUGE_NS);
    check(handled > 0, "no fault came");
}

/* ---- the rest of a thread's state ---- */

static _Atomic int other_rounding;
static double zero = 0;

static void floating_point(struct watched *w, int64_t from, int worker)
{
    (void)w, (void)from;
    other_rounding += fegetround() != FE_UPWARD;
    if (worker == 3) {
        volatile double infinite = 1 / zero;
        (void)infinite;
    }
}

static void environment(void)
{
    threads_that_help(5); /* the workers are older than the rounding mode */
    fesetround(FE_UPWARD);
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(FE_UNDERFLOW);
    struct watched w = {.count = 40, .ms = 5, .extra = floating_point};
    watch(&w, HUGE_NS);
    check(w.threads == 5, "%d threads", w.threads);
    check(!other_rounding, "%d ranges with another rounding mode", other_rounding);
    check(fegetround() == FE_UPWARD, "the caller's rounding mode has changed");
    check(fetestexcept(FE_UNDERFLOW) && fetestexcept(FE_DIVBYZERO) &&
              !fetestexcept(FE_INVALID),
          "flags %x", fetestexcept(FE_ALL_EXCEPT));
    feenableexcept(FE_INVALID);
    w = (struct watched){.count = 40, .ms = 1};
    watch(&w, HUGE_NS);
    check(w.threads == 1, "a thread with traps is helped");
    check(fegetexcept() == FE_INVALID, "traps have changed");
}

static void idle(void)
{
    struct rusage before, after;
    threads_that_help(5);
    pause_ms(20);
    getrusage(RUSAGE_SELF, &before);
    pause_ms(200);
    getrusage(RUSAGE_SELF, &after);
    long us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 +
              after.ru_utime.tv_usec - before.ru_utime.tv_usec +
              (after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000 +
              after.ru_stime.tv_usec - before.ru_stime.tv_usec;
    check(us < 2000, "%ld us of CPU time in 200 ms", us);
    check(threads_of_process() == 5, "%d threads sleep", threads_of_process());
}

/* No thread to be had, or only some; later, all. */
static void creation_fails(void)
{
    for (int k = 0; k < 4; k++) {
        creations_left = k > 0;
        int help = threads_that_help(5);
        check(help == 1 + k, "%d threads worked, not %d", help, 1 + k);
    }
    creations_left = 1000;
    check(threads_that_help(5) == 5, "no threads later");
}

/* ---- the end ---- */

static void *leave(void *unused)
{
    pause_ms(5);
    printf("ok %s\n", getenv("TEST_NAME"));
    exit(0);
    return unused;
}

static void exit_asleep(void)
{
    threads_that_help(5);
}

static void exit_busy(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, leave, NULL);
    for (;;)
        threads_that_help(5);
}

/* The process ends with its last thread, which must not be a sleeping worker. */
static void leave_main(void)
{
    threads_that_help(5);
    printf("ok %s\n", getenv("TEST_NAME"));
    fflush(stdout);
    pthread_exit(NULL);
}

/* ---- speed ---- */

#define N 64
#define MATRICES 400
static double *matrices, *original;
static int32_t (*pivots)[N], *info;
static void (*dgetrf)(const int32_t *, const int32_t *, double *, const int32_t *,
                      int32_t *, int32_t *);

static void factor(void *arg, int64_t from, int64_t to, int worker)
{
    static const int32_t n = N;
    (void)arg, (void)worker;
    for (int64_t i = from; i < to; i++)
        dgetrf(&n, &n, matrices + i * N * N, &n, pivots[i], &info[i]);
}

static void *half(void *arg)
{
    int64_t from = arg ? 0 : MATRICES / 2;
    factor(NULL, from, from + MATRICES / 2, 0);
    return NULL;
}

static void two_threads(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, half, NULL);
    half(&thread);
    pthread_join(thread, NULL);
}

static void plain_loop(void)
{
    factor(NULL, 0, MATRICES, 0);
}

static void workers_run(void)
{
    bl_workers_run(60000, MATRICES, factor, NULL);
}

static double seconds(void (*way)(void))
{
    memcpy(matrices, original, sizeof *matrices * N * N * MATRICES);
    int64_t begin = now_ns();
    way();
    return (double)(now_ns() - begin) * 1e-9;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Two CPUs, netlib: at least 1.6 times the plain loop, and the same bits. Whatever else
 * runs comes and goes, so a turn counts only where two bare threads, with half the
 * matrices each, reach 1.8 times the loop just before and just after; the middle of the
 * turns that count is judged. */
static void speed(void)
{
    enum { TURNS = 300, ENOUGH = 25, FEW = 9, SECONDS = 15 };
    size_t bytes = sizeof *matrices * N * N * MATRICES;
    void *lapack = dlopen("liblapack.so.3", RTLD_NOW);
    *(void **)&dgetrf = lapack ? dlsym(lapack, "dgetrf_") : NULL;
    if (!dgetrf || bl_workers_count() < 2) {
        printf("skip %s - no LAPACK, or one CPU\n", getenv("TEST_NAME"));
        exit(0);
    }
    matrices = malloc(bytes);
    original = malloc(bytes);
    pivots = malloc(sizeof *pivots * MATRICES);
    info = malloc(sizeof *info * MATRICES);
    double *expected = malloc(bytes), ours[TURNS], best_bare = 0;
    for (int i = 0; i < N * N * MATRICES; i++)
        original[i] = (double)rand() / RAND_MAX - 0.5;
    seconds(plain_loop);
    memcpy(expected, matrices, bytes);
    int counted = 0, turns = 0;
    int64_t until = now_ns() + SECONDS * (int64_t)1000000000;
    while (turns++ < TURNS && counted < ENOUGH && !*why && now_ns() < until) {
        double before = seconds(two_threads), loop = seconds(plain_loop);
        double workers = seconds(workers_run);
        check(memcmp(expected, matrices, bytes) == 0, "other bits");
        double bare = loop / fmax(before, seconds(two_threads));
        best_bare = fmax(best_bare, bare);
        if (bare >= 1.8)
            ours[counted++] = loop / workers;
    }
    if (!*why && counted < FEW) {
        printf("skip %s - the machine is busy (two bare threads: %.2f times at best)\n",
               getenv("TEST_NAME"), best_bare);
        exit(0);
    }
    qsort(ours, (size_t)counted, sizeof *ours, ascending);
    fprintf(stderr, "# %d of %d turns count: workers %.2f to %.2f times\n", counted,
            turns, ours[0], ours[counted - 1]);
    check(ours[counted / 2] >= 1.6,
          "%.2f times the plain loop where two bare threads "
          "reach 1.8",
          ours[counted / 2]);
}

/* ---- running ---- */

static const struct test {
    const char *name;
    void (*run)(void);
    const char *cpus, *option, *want;
    bool heavy;
} tests[] = {
    {"coverage-one", coverage, "8", "1", NULL, false},
    {"coverage", coverage, "5", NULL, NULL, false},
    {"count-option-0-ignored", count, "8", "0", "8", false},
    {"count-option-1", count, "8", "1", "1", false},
    {"count-option-2", count, "8", "2", "2", false},
    {"count-option-5", count, "8", "5", "5", false},
    {"count-option-above-cpus", count, "3", "9", "3", false},
    {"count-cpus", count, "7", NULL, "7", false},
    {"one-cpu", one_cpu, NULL, NULL, NULL, false},
    {"bound-caller", bound, NULL, NULL, NULL, false},
    {"callers", callers, "5", NULL, NULL, false},
    {"nested", nested, "5", NULL, NULL, false},
    {"fork-while-busy", forks, "5", NULL, NULL, true},
    {"fork-unseen", bare_forks, "5", NULL, NULL, true},
    {"fork-before-use", fork_before_use, "5", NULL, NULL, true},
    {"signals", signals, "5", NULL, NULL, true},
    {"faults", faults, "5", NULL, NULL, true},
    {"floating-point", environment, "5", NULL, NULL, true},
    {"idle", idle, "5", NULL, NULL, true},
    {"creation-fails", creation_fails, "5", NULL, NULL, false},
    {"exit-asleep", exit_asleep, "5", NULL, NULL, false},
    {"exit-busy", exit_busy, "5", NULL, NULL, false},
    {"main-leaves", leave_main, "5", NULL, NULL, false},
    {"speed", speed, NULL, "2", NULL, true},
};

static void set_or_clear(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static bool run_alone(const char *self, const struct test *t)
{
    char name[64];
    int status;
    snprintf(name, sizeof name, "workers-%s", t->name);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        set_or_clear("TEST_CPUS", t->cpus);
        set_or_clear("TEST_WANT", t->want);
        set_or_clear("BATCHLAPACK_THREADS", t->option);
        setenv("TEST_NAME", name, 1);
        alarm(120); /* execl keeps it */
        execl(self, self, t->name, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status))
        printf("not ok %s - ended by signal %d\n", name, WTERMSIG(status));
    else if (WEXITSTATUS(status) > 1)
        printf("not ok %s - ended with status %d\n", name, WEXITSTATUS(status));
    return status == 0;
}

static int run_here(const char *name)
{
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (strcmp(name, tests[i].name) == 0) {
            tests[i].run();
            if (*why)
                printf("not ok %s - %s\n", getenv("TEST_NAME"), why);
            else
                printf("ok %s\n", getenv("TEST_NAME"));
            return *why != 0;
        }
    return 2;
}

int main(int argc, char **argv)
{
    bool light = argc == 2 && strcmp(argv[1], "--light") == 0;
    if (argc == 2 && !light)
        return run_here(argv[1]);
    bool right = true;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (!light || !tests[i].heavy)
            right &= run_alone("/proc/self/exe", &tests[i]);
    return !right;
}
