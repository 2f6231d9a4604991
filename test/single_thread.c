/* A LAPACK is told to take one thread for the time of a batch, and gets back what it had.
 *
 *     single_thread LIBRARY SYMBOL threaded|single|serial SIZE
 *
 * Run by providers.sh with the dgetrf of each LAPACK it knows, whose environment asks for
 * 2 threads. In a batch no call may take more than one, on any thread; before and after,
 * a call of that SIZE of a threaded LAPACK takes both.
 * "serial" ones must be called from one thread only.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bl.h"
#include "single_thread.h"
#include "workers.h"

static bl_fn *lapack; /* dgetrf */
static int64_t large; /* a size that it takes threads for */
static const char *why;

static void check(bool right, const char *text)
{
    if (!right && !why)
        why = text;
}

static double cpu_seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* INFO of an n by n random matrix; 32- and 64-bit integers alike. */
static int factor(int64_t n)
{
    double *a = malloc((size_t)(n * n) * sizeof *a);
    int64_t *ipiv = malloc((size_t)n * sizeof *ipiv), info = 0;
    uint64_t state = 1;
    for (int64_t i = 0; i < n * n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        a[i] = (double)(state >> 11) * 0x1p-53 - 0.5;
    }
    ((void (*)(void *, void *, void *, void *, void *, void *))lapack)(&n, &n, a, &n,
                                                                       ipiv, &info);
    free(a);
    free(ipiv);
    return (int)info;
}

/* Does a large call, on this thread, use others? By the CPU time of the process, once
 * threads that wait for more by spinning have given up. */
static bool takes_threads(void)
{
    nanosleep(&(struct timespec){0, 300000000}, NULL);
    double others =
        cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    factor(large);
    others = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) -
             cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - others;
    return others > 1e-4;
}

static _Atomic int wrong;

static void part(void *arg, int64_t from, int64_t to, int worker)
{
    (void)worker;
    bl_single_thread_here(arg);
    wrong += bl_threads_of(lapack) != 1;
    for (int64_t i = from; i < to; i++)
        wrong += factor(90) != 0;
}

static void run_batch(void)
{
    struct bl_single_thread one;
    bool at_once = bl_single_thread_begin(&one, lapack);
    bl_workers_run(at_once ? 100000 : 0, 100, part, &one);
    bl_single_thread_end(&one);
}

/* Alone in the process: no other thread computes while this one has the LAPACK at one. */
static void check_alone(bool threaded)
{
    struct bl_single_thread one;
    check(bl_threads_of(lapack) == (threaded ? 2 : 1), "not the threads asked for");
    check(takes_threads() == threaded, "threads taken before, or none");
    bl_single_thread_begin(&one, lapack);
    check(!takes_threads(), "a call takes threads in a batch");
    bl_single_thread_end(&one);
    check(takes_threads() == threaded, "threads not given back");
}

static void *program_thread(void *unused)
{
    int before = bl_threads_of(lapack);
    for (int i = 0; i < 20; i++)
        run_batch();
    /* A setting of the process is back when the last batch has ended, not before. */
    int after = bl_threads_of(lapack);
    check(after == before || after == 1 || before == 1, "a thread's number has changed");
    return unused;
}

static pthread_barrier_t barrier;

static void *hold(void *unused)
{
    struct bl_single_thread one;
    bl_single_thread_begin(&one, lapack);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    bl_single_thread_end(&one);
    return unused;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    bool threaded = strcmp(argv[3], "threaded") == 0;
    bool serial = strcmp(argv[3], "serial") == 0;
    large = atoi(argv[4]);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    *(void **)&lapack = library ? dlsym(library, argv[2]) : NULL;
    if (!lapack) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    struct bl_single_thread one;
    pthread_barrier_init(&barrier, NULL, 2);
    check(bl_single_thread_begin(&one, lapack) != serial, "may it be called at once?");
    bl_single_thread_end(&one);
    check_alone(threaded);
    run_batch();
    check_alone(threaded);
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, program_thread, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    check_alone(threaded);
    /* A child forked in another thread's batch knows what to give back after its own. */
    pthread_create(&thread[0], NULL, hold, NULL);
    pthread_barrier_wait(&barrier);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        run_batch();
        check(bl_threads_of(lapack) == (threaded ? 2 : 1), "threads lost in the child");
        if (why)
            fprintf(stderr, "child: %s\n", why);
        _exit(why != NULL);
    }
    int status = 1;
    waitpid(pid, &status, 0);
    pthread_barrier_wait(&barrier);
    pthread_join(thread[0], NULL);
    check(status == 0, "the child failed");
    check_alone(threaded);
    check(wrong == 0, "a call in a batch failed, or saw more than one thread");
    if (why)
        printf("%s\n", why);
    return why != NULL;
}
