/* A C program linked with LAPACK. Usage: app COMMAND; prints "fine" or what was wrong.
 * Each command is one way in which programs are unlike each other: how they end, fork,
 * run threads, set up arithmetic and use their descriptors.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __SSE__
#    include <xmmintrin.h>
#endif

void dgetrf_(const int *, const int *, double *, const int *, int *, int *);
void dgetrs_(const char *, const int *, const int *, const double *, const int *,
             const int *, double *, const int *, int *, size_t);
void dgesv_(const int *, const int *, double *, const int *, int *, double *, const int *,
            int *);
void dpotrf_(const char *, const int *, double *, const int *, int *, size_t);

static int wrong;

static void expect(int right, const char *what)
{
    if (!right) {
        printf("wrong: %s\n", what);
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    }
}

static int right_gesv(void)
{
    double a[4] = {0, 1, 2, 3}, b[2] = {2, 4};
    int n = 2, one = 1, ipiv[2] = {0, 0}, info = -99;
    dgesv_(&n, &one, a, &n, ipiv, b, &n, &info);
    return info == 0 && ipiv[0] == 2 && ipiv[1] == 2 && b[0] == 1 && b[1] == 1 &&
           a[0] == 1 && a[1] == 0 && a[2] == 3 && a[3] == 2;
}

/* The anti-identity of order n: IPIV(k) = n - k + 1 in the first half, then k. */
static int right_getrf(int n)
{
    double *a = calloc((size_t)n * (size_t)n, sizeof *a);
    int *ipiv = calloc((size_t)n, sizeof *ipiv), info = -99, right;
    for (int i = 0; i < n; i++)
        a[i + (size_t)n * (size_t)(n - 1 - i)] = 1;
    dgetrf_(&n, &n, a, &n, ipiv, &info);
    right = info == 0;
    for (int k = 1; k <= n; k++)
        right &= ipiv[k - 1] == (k <= n / 2 ? n - k + 1 : k);
    free(a);
    free(ipiv);
    return right;
}

static int right_potrf(void)
{
    double c[4] = {4, 2, 99, 5};
    int n = 2, info = -99;
    dpotrf_("lower", &n, c, &n, &info, 5);
    return info == 0 && c[0] == 2 && c[1] == 1 && c[2] == 99 && c[3] == 2;
}

static void solve(void)
{
    expect(right_gesv(), "dgesv");
    expect(right_getrf(5), "dgetrf");
    expect(right_potrf(), "dpotrf");
}

/* ---- the end ------------------------------------------------------------------------
 */

static void solve_at_exit(void)
{
    if (!right_gesv())
        _exit(3);
}

static void *solve_and_exit(void *unused)
{
    (void)unused;
    if (!right_gesv())
        _exit(3);
    puts("fine");
    exit(0);
}

static void exit_on_signal(int signal)
{
    (void)signal;
    exit(0);
}

static void ending(const char *how)
{
    pthread_t t;
    solve();
    if (strcmp(how, "thread") == 0) {
        pthread_create(&t, NULL, solve_and_exit, NULL);
        for (;;)
            pause();
    }
    if (strcmp(how, "atexit-before") == 0) {
        atexit(solve_at_exit); /* runs before anything registered by the calls above */
    } else if (strcmp(how, "dlclose") == 0) {
        void *self = dlopen(getenv("LD_PRELOAD"), RTLD_NOW | RTLD_NOLOAD);
        expect(!self || (dlclose(self) == 0 && dlclose(self) == 0), "dlclose");
        solve();
    } else if (strcmp(how, "sigterm") == 0) {
        signal(SIGTERM, exit_on_signal);
        puts("fine");
        raise(SIGTERM);
    }
}

/* ---- fork
 * ------------------------------------------------------------------------------ */

static int child_right(int deep)
{
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(10);
        int right = right_gesv() && right_getrf(30);
        if (deep)
            right &= child_right(0);
        exit(!right); /* with its report */
    }
    waitpid(child, &status, 0);
    return status == 0;
}

static volatile int stop;

static void *call_until_stopped(void *unused)
{
    (void)unused;
    while (!stop)
        expect(right_gesv() && right_getrf(20), "a call during fork");
    return NULL;
}

static void forks_in_threads(void)
{
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, call_until_stopped, NULL);
    for (int i = 0; i < 50; i++)
        expect(child_right(0), "the child of a threaded parent");
    stop = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
}

/* ---- threads
 * --------------------------------------------------------------------------- */

static pthread_barrier_t barrier;

static void *first_call(void *order)
{
    pthread_barrier_wait(&barrier);
    expect(right_getrf((int)(intptr_t)order), "first call");
    return NULL;
}

static void first_calls(void)
{
    pthread_t t[64];
    pthread_barrier_init(&barrier, NULL, 64);
    for (int i = 0; i < 64; i++)
        pthread_create(&t[i], NULL, first_call, (void *)(intptr_t)(40 + i));
    for (int i = 0; i < 64; i++)
        pthread_join(t[i], NULL);
}

static struct shared {
    double lu[30 * 30];
    int ipiv[30];
} * shared;

static void *solve_shared(void *unused)
{
    (void)unused;
    for (int repeat = 0; repeat < 50; repeat++) {
        double b[30];
        int n = 30, one = 1, info = -99, right;
        for (int i = 0; i < n; i++)
            b[i] = i;
        dgetrs_(repeat % 2 ? "N" : "T", &n, &one, shared->lu, &n, shared->ipiv, b, &n,
                &info, 1);
        right = info == 0;
        for (int i = 0; i < n; i++)
            right &= b[i] == n - 1 - i;
        expect(right, "dgetrs with read-only LU and IPIV");
    }
    return NULL;
}

static void read_only(void)
{
    pthread_t t[16];
    int n = 30, info = -99;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < n; i++)
        shared->lu[i + n * (n - 1 - i)] = 1;
    dgetrf_(&n, &n, shared->lu, &n, shared->ipiv, &info);
    mprotect(shared, sizeof *shared, PROT_READ);
    for (int i = 0; i < 16; i++)
        pthread_create(&t[i], NULL, solve_shared, NULL);
    for (int i = 0; i < 16; i++)
        pthread_join(t[i], NULL);
}

static void *solve_in_thread(void *unused)
{
    (void)unused;
    expect(right_getrf(20) && right_getrf(300), "a thread with a small stack");
    return NULL;
}

static void small_stack(void)
{
    pthread_t t;
    pthread_attr_t attr;
    struct rlimit before, after;
    getrlimit(RLIMIT_STACK, &before);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 256 << 10);
    pthread_create(&t, &attr, solve_in_thread, NULL);
    pthread_join(t, NULL);
    getrlimit(RLIMIT_STACK, &after);
    expect(before.rlim_cur == after.rlim_cur, "the stack's limit");
}

/* ---- arithmetic
 * -------------------------------------------------------------------------- */

static void traps(void)
{
    double s[4] = {1, 3, 3, 9}, b[2] = {1, 2}, c[4] = {1, 1, 1, 1};
    int n = 2, one = 1, ipiv[2], info = -99,
        mask = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW;
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(mask);
    expect(right_getrf(100), "dgetrf");
    dgesv_(&n, &one, s, &n, ipiv, b, &n, &info);
    expect(info == 2, "INFO of a singular dgesv");
    dpotrf_("L", &n, c, &n, &info, 1);
    expect(info == 2, "INFO of a singular dpotrf");
    expect(fegetexcept() == mask, "the traps");
    expect(fegetround() == FE_TONEAREST, "the rounding mode");
    expect(!fetestexcept(mask | FE_UNDERFLOW), "no flag raised");
    fedisableexcept(mask);
    feraiseexcept(FE_UNDERFLOW | FE_OVERFLOW);
    solve();
    expect(fetestexcept(mask | FE_UNDERFLOW) == (FE_UNDERFLOW | FE_OVERFLOW),
           "flags kept");
}

static void upward(void)
{
    fesetround(FE_UPWARD);
    solve();
    expect(fegetround() == FE_UPWARD, "the rounding mode");
}

/* An identity needs no rounding: even the inexact flag stays down. */
static void exact(void)
{
    double a[400] = {0};
    int n = 20, ipiv[20], info = -99;
    for (int i = 0; i < n; i++)
        a[21 * i] = 1;
    feclearexcept(FE_ALL_EXCEPT);
    dgetrf_(&n, &n, a, &n, ipiv, &info);
    expect(info == 0, "dgetrf of an identity");
    expect(!fetestexcept(FE_ALL_EXCEPT), "a flag raised by nothing but the preload");
}

static void *control_word(void *out)
{
    volatile double least = 2.2250738585072014e-308;
    expect(least / 2 > 0, "subnormal numbers");
#ifdef __SSE__
    *(unsigned *)out = _mm_getcsr() & 0xffc0;
#endif
    return out;
}

static void mxcsr(void)
{
    unsigned word[3] = {0x1f80, 0x1f80, 0x1f80};
    pthread_t t;
    control_word(&word[0]);
    solve();
    control_word(&word[1]);
    pthread_create(&t, NULL, control_word, &word[2]);
    pthread_join(t, NULL);
    for (int i = 0; i < 3; i++)
        expect(word[i] == 0x1f80, "the control bits of mxcsr");
}

/* ---- the rest
 * -------------------------------------------------------------------------- */

static void keeps_errno(void)
{
    for (int i = 0; i < 3; i++) {
        errno = 4711;
        int right = right_gesv() && right_getrf(20);
        int after = errno;
        expect(right, "the answer");
        expect(after == 4711, i ? "errno" : "errno after the first call");
    }
}

static void keeps_errno_closed(void)
{
    close(2);
    keeps_errno();
}

/* Started without stderr, the program's own file becomes descriptor 2. */
static void file_as_stderr(void)
{
    int fd = open("data", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    expect(fd == 2, "descriptor 2 was free");
    expect(write(fd, "data", 4) == 4, "write");
    solve();
}

/* The program's stderr is closed and the descriptor taken by a file. */
static void stderr_replaced(void)
{
    close(2);
    file_as_stderr();
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "solve";
    static const struct {
        const char *name;
        void (*run)(void);
    } commands[] = {{"solve", solve},
                    {"first-calls", first_calls},
                    {"read-only", read_only},
                    {"small-stack", small_stack},
                    {"forks-in-threads", forks_in_threads},
                    {"traps", traps},
                    {"upward", upward},
                    {"exact", exact},
                    {"mxcsr", mxcsr},
                    {"errno", keeps_errno},
                    {"errno-closed", keeps_errno_closed},
                    {"file-as-stderr", file_as_stderr},
                    {"stderr-replaced", stderr_replaced}};
    int found = 0;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(command, commands[i].name) == 0) {
            commands[i].run();
            found = 1;
        }
    if (strncmp(command, "end-", 4) == 0) {
        if (strcmp(command, "end-atexit") == 0)
            atexit(solve_at_exit);
        ending(command + 4);
        found = 1;
    } else if (strcmp(command, "fork-after") == 0) {
        solve();
        expect(child_right(1), "the child");
        solve();
        found = 1;
    } else if (strcmp(command, "fork-before") == 0) {
        expect(child_right(1), "the child");
        found = 1;
    } else if (strcmp(command, "pointer") == 0) {
        /* In a program with fixed addresses this is an entry of its own, not the
         * library's. */
        void (*volatile f)(const int *, const int *, double *, const int *, int *,
                           int *) = dgetrf_;
        double a[4] = {0, 1, 2, 3};
        int n = 2, ipiv[2] = {0, 0}, info = -99;
        f(&n, &n, a, &n, ipiv, &info);
        expect(info == 0 && ipiv[0] == 2 && ipiv[1] == 2, "dgetrf by its address");
        found = 1;
    }
    if (!found)
        return 2;
    if (!wrong)
        puts("fine");
    return wrong != 0;
}
