/* The few threads that run the CPU side of a batch, and copy for the pipeline.
 *
 * Callers hand in a count and a function for a range of it. Nothing here decides a
 * result: who takes which range is chance, so a unit's result may depend on nothing but
 * the unit.
 *
 * Threads start in the first run that is worth them, sleep between runs, and end when
 * nobody has needed them for some seconds: a program whose main thread leaves by
 * pthread_exit() ends only with its last thread. One run has the workers at a time;
 * another one at that time does its work alone, so no call waits for another call. A
 * forked child has no workers and never asks for the lock that it inherited.
 *
 * The calling thread waits only for workers that have entered its run. One that is late,
 * or that could not be started, costs nothing but its help.
 */
#include <dirent.h>
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bl.h"
#include "guard.h"
#include "workers.h"

/* What a sleeping thread must get to do: several times what it takes to wake it. */
#define WORTH_WAKING_NS 50000
#define RANGE_NS 20000     /* of work between two looks at the counter */
#define RANGES_A_THREAD 8  /* at least, so that all end at about the same time */
#define IDLE_SECONDS 5     /* then a worker ends */
#define LOOK_OUT_NS 100000 /* of a worker that has copied, before it sleeps */
/* Of so many CPUs, copies leave one to whatever else runs. The last one adds nothing to
 * their speed, and a worker that has to share its CPU keeps all others waiting. */
#define LEAVE_ONE_FROM 8
#define STACK_BYTES                                                                      \
    (8u << 20) /* what a main thread has: a LAPACK that runs there runs here;            \
                  address space only, until it is touched */
#define MOST_CPUS 8192

struct run {
    bl_part *part;
    void (*progress)(void *); /* NULL, or for the calling thread */
    void *arg;
    int64_t count, grain;
    _Atomic int64_t next;
    fenv_t floating_point; /* of the calling thread */
    _Atomic int raised;    /* exception flags */
    int entered;           /* workers so far; under the lock */
    _Atomic int inside;    /* workers now; changed under the lock */
    bool more_to_come;     /* another run like this one */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER,
                      all_left = PTHREAD_COND_INITIALIZER;
/* Under the lock: */
static struct run *current; /* NULL: the workers are free */
static _Atomic int wanted;  /* so many more may enter the current run */
static int alive;           /* workers started and not ended */

static pid_t home; /* the process that may have workers */
static _Atomic bool forked;

static void after_fork_in_child(void)
{
    atomic_store(&forked, true);
}

__attribute__((constructor)) static void remember_process(void)
{
    home = getpid();
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* pthread_atfork does not see _Fork() or a raw system call, the process number does (but
 * for a new PID namespace, where it may be the same). */
static bool may_have_workers(void)
{
    return !atomic_load_explicit(&forked, memory_order_relaxed) && getpid() == home;
}

/* ---- how many, and where ---- */

/* The CPUs that any thread of this process may use. One thread's mask is too small where
 * OpenMP has bound its threads, the main one among them, to a CPU each. */
static unsigned long cpus[MOST_CPUS / (8 * sizeof(unsigned long))];

static void add_cpus_of(pid_t thread)
{
    unsigned long more[sizeof cpus / sizeof *cpus] = {0};
    if (sched_getaffinity(thread, sizeof more, (cpu_set_t *)more) == 0)
        for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++)
            cpus[i] |= more[i];
}

static int threads; /* the most that work on a run */

static void count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *d; tasks && (d = readdir(tasks));)
        if (*d->d_name != '.')
            add_cpus_of((pid_t)atoi(d->d_name));
    if (tasks)
        closedir(tasks);
    add_cpus_of(0);
    int64_t n = CPU_COUNT_S(sizeof cpus, (cpu_set_t *)cpus);
    int64_t option = bl_option(BL_OPTION_THREADS);
    threads = (int)bl_max(1, option < 0 ? n : bl_min(n, option));
}

int bl_workers_count(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct bl_guard guard;
    if (!may_have_workers())
        return 1;
    bl_guard_enter(&guard); /* a handler that asks, too, must not wait for us */
    pthread_once(&once, count_threads);
    bl_guard_leave(&guard);
    return threads;
}

/* ---- the work ---- */

static void work(struct run *r, int worker)
{
    int64_t from;
    while ((from = atomic_fetch_add_explicit(&r->next, r->grain, memory_order_relaxed)) <
           r->count) {
        r->part(r->arg, from, bl_min(from + r->grain, r->count), worker);
        if (worker == 0 && r->progress)
            r->progress(r->arg);
    }
    atomic_fetch_or(&r->raised, fetestexcept(FE_ALL_EXCEPT));
}

/* Each wakes two more: a hundred workers are awake after seven steps. */
static void wake_two(void)
{
    pthread_cond_signal(&wake);
    pthread_cond_signal(&wake);
}

/* Until there is work, or, for the caller of `r`, until nobody works on it any more; or
 * for LOOK_OUT_NS. Going to sleep and being woken takes as long as copying a megabyte. */
static void look_out(const struct run *r)
{
    uint64_t begin = bl_now();
    while ((r ? atomic_load_explicit(&r->inside, memory_order_relaxed) > 0
              : atomic_load_explicit(&wanted, memory_order_relaxed) <= 0) &&
           bl_now() - begin < LOOK_OUT_NS) {
        sched_yield();
        if (r && r->progress)
            r->progress(r->arg);
    }
}

static void help(void) /* with the lock held */
{
    struct run *r = current;
    int worker = ++r->entered;
    bool more = --wanted > 0, stay = r->more_to_come;
    r->inside++;
    pthread_mutex_unlock(&lock);
    if (more)
        wake_two();
    fesetenv(&r->floating_point);
    work(r, worker);
    pthread_mutex_lock(&lock);
    if (--r->inside == 0)
        pthread_cond_signal(&all_left);
    if (!stay)
        return;
    pthread_mutex_unlock(&lock);
    look_out(NULL);
    pthread_mutex_lock(&lock);
}

static void *worker_thread(void *unused)
{
    pthread_setname_np(pthread_self(), "batchlapack");
    pthread_setaffinity_np(pthread_self(), sizeof cpus, (cpu_set_t *)cpus);
    pthread_mutex_lock(&lock);
    for (int waited = 0; wanted > 0 || waited != ETIMEDOUT;) {
        if (wanted > 0) {
            help();
            waited = 0;
            continue;
        }
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += IDLE_SECONDS;
        waited = pthread_cond_clockwait(&wake, &lock, CLOCK_MONOTONIC, &until);
    }
    alive--;
    pthread_mutex_unlock(&lock);
    return unused;
}

/* Signals are the program's, but for those that tell of a fault: its handler, if it has
 * one, must see that where it happens. */
static void start_workers(int helpers) /* with the lock held */
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t blocked;
    if (alive >= helpers || pthread_attr_init(&attr) != 0)
        return;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&blocked, faults[i]);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setsigmask_np(&attr, &blocked);
    while (alive < helpers && pthread_create(&thread, &attr, worker_thread, NULL) == 0)
        alive++;
    pthread_attr_destroy(&attr);
}

/* ---- a run ---- */

/* How many threads the work is worth. */
static int worth(int64_t ns, int64_t count, bool copies)
{
    double each = (double)ns * (double)count / WORTH_WAKING_NS;
    if (each < 2 || count < 2 || fegetexcept() > 0)
        return 1;
    int all = bl_workers_count();
    int64_t most = bl_min(count, all - (copies && all >= LEAVE_ONE_FROM));
    return (int)(each < (double)most ? (int64_t)each : most);
}

/* False: the workers are busy, and nothing was done. */
static bool run_together(struct run *r, int helpers)
{
    pthread_mutex_lock(&lock);
    bool is_free = !current;
    if (is_free) {
        start_workers(helpers);
        current = r;
        wanted = (int)bl_min(helpers, alive);
    }
    pthread_mutex_unlock(&lock);
    if (!is_free)
        return false;
    wake_two();
    work(r, 0);
    pthread_mutex_lock(&lock);
    wanted = 0;
    if (r->more_to_come) {
        pthread_mutex_unlock(&lock);
        look_out(r);
        pthread_mutex_lock(&lock);
    }
    while (r->inside > 0)
        pthread_cond_wait(&all_left, &lock);
    current = NULL;
    pthread_mutex_unlock(&lock);
    return true;
}

/* In about equal ranges. False: nothing was done. */
static bool share_out(struct run *r, int64_t ns, int together)
{
    int64_t share = r->count / together / RANGES_A_THREAD;
    r->grain = bl_max(1, bl_min(share, RANGE_NS / ns));
    return run_together(r, together - 1);
}

void bl_workers_copy(int64_t ns, int64_t count, bl_part *part, void (*progress)(void *),
                     void *arg)
{
    int together = count > 0 ? worth(ns, count, true) : 0;
    struct run r = {.part = part,
                    .progress = progress,
                    .arg = arg,
                    .count = count,
                    .more_to_come = true};
    fegetenv(&r.floating_point);
    if (together < 2 || !share_out(&r, ns, together)) {
        r.grain = progress ? 1 : bl_max(count, 1);
        work(&r, 0);
    }
    if (progress)
        progress(arg);
}

void bl_workers_run(int64_t ns, int64_t count, bl_part *part, void *arg)
{
    if (count <= 0)
        return;
    int together = worth(ns, count, false);
    if (together > 1) {
        /* No handler may leave by longjmp while workers are in here. The guard's own
         * floating-point environment is for the GPU: LAPACK gets the program's. */
        struct bl_guard guard;
        bl_guard_enter(&guard);
        fesetenv(&guard.floating_point);
        struct run r = {.part = part,
                        .arg = arg,
                        .count = count,
                        .floating_point = guard.floating_point};
        bool done = share_out(&r, ns, together);
        bl_guard_leave(&guard);
        if (done) {
            feraiseexcept(r.raised); /* traps are off */
            return;
        }
    }
    part(arg, 0, count, 0);
}
