/* A program that is interrupted in its LAPACK calls, or that changes its surroundings
 * before the first one. interrupted WHAT:
 *
 *   longjmp    an alarm handler leaves the call by siglongjmp, six times over
 *   altstack   an alarm handler on a stack of its own calls LAPACK itself
 *   fork       an alarm handler forks, and the child returns into the call
 *   rawfork    a child that pthread_atfork does not see makes a call of its own
 *   cancel     a thread is cancelled in its first call (while the engine starts)
 *   flags      a mid-sized call, and the floating-point flags after it
 *   nul        options that are the empty string
 *   quiet      a call in a process that may make no system call any more
 *   chdir      the first call is made from another directory
 */
#define _GNU_SOURCE
#include <fenv.h>
#include <pthread.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

void dgetrf_(const int *m, const int *n, double *a, const int *lda, int *ipiv, int *info);
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info,
             size_t);
void xerbla_(const char *name, const int *argument, size_t length);

void xerbla_(const char *name, const int *argument, size_t length)
{
    (void)length;
    printf("%.6s %d ", name, *argument);
}

enum { LARGEST = 400 };
static _Thread_local double a[LARGEST * LARGEST];

/* LU of a matrix with a dominant diagonal; whether INFO is 0. */
static int factor(int n)
{
    static _Thread_local int ipiv[LARGEST];
    int info = -1;
    for (int k = 0; k < n * n; k++)
        a[k] = k % (n + 1) == 0 ? 2 * n : (k * 7919 % 101) / 101.0;
    dgetrf_(&n, &n, a, &n, ipiv, &info);
    return info == 0;
}

static void alarm_every(int us, int again)
{
    struct itimerval t = {{0, again ? us : 0}, {0, us}};
    setitimer(ITIMER_REAL, &t, NULL);
}

static sigjmp_buf back;
static void leave(int signal)
{
    siglongjmp(back, signal);
}

static int by_longjmp(void)
{
    volatile int times = 0;
    signal(SIGALRM, leave);
    while (times < 6)
        if (sigsetjmp(back, 1) == 0) {
            alarm_every(15000, 0);
            for (;;)
                factor(300);
        } else {
            times++;
        }
    return factor(50);
}

static volatile sig_atomic_t handled, handled_right = 1;
static void call_again(int signal)
{
    static double own[16 * 16];
    static int ipiv[16], n = 16, info;
    (void)signal;
    for (int k = 0; k < n * n; k++)
        own[k] = k % (n + 1) == 0 ? 3 : 0.1;
    dgetrf_(&n, &n, own, &n, ipiv, &info);
    handled_right &= info == 0;
    handled++;
}

static int on_altstack(void)
{
    stack_t stack = {.ss_sp = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                     .ss_size = 1 << 20};
    struct sigaction action = {.sa_handler = call_again,
                               .sa_flags = SA_ONSTACK | SA_RESTART};
    int right = 1;
    sigaltstack(&stack, NULL);
    sigaction(SIGALRM, &action, NULL);
    alarm_every(300, 1);
    for (int i = 0; i < 5000; i++)
        right &= factor(30);
    alarm_every(0, 0);
    return right && handled > 0 && handled_right;
}

static volatile sig_atomic_t is_child, child_right = 1;
static void fork_here(int signal)
{
    int status = 0;
    (void)signal;
    if (fork() == 0)
        is_child = 1;
    else if (wait(&status) > 0)
        child_right = status == 0;
}

static int by_fork(void)
{
    int right = 1;
    signal(SIGALRM, fork_here);
    alarm_every(50000, 0);
    for (int i = 0; i < 60 && !is_child; i++)
        right &= factor(300);
    if (is_child)
        _exit(!(right && factor(30)));
    return right && child_right;
}

static int by_raw_fork(void)
{
    int status = -1;
    if (!factor(40))
        return 0;
    fflush(stdout);
    pid_t pid = (pid_t)syscall(SYS_fork);
    if (pid == 0)
        _exit(!factor(41));
    return waitpid(pid, &status, 0) == pid && status == 0 && factor(42);
}

static void *first_call(void *unused)
{
    (void)unused;
    factor(10);
    return NULL;
}

static int by_cancel(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, first_call, NULL);
    usleep(100000);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    return factor(20);
}

static int flags(void)
{
    static int ipiv[LARGEST], n = LARGEST, info;
    for (int k = 0; k < n * n; k++)
        a[k] = k % (n + 1) == 0; /* nothing to round */
    feclearexcept(FE_ALL_EXCEPT);
    dgetrf_(&n, &n, a, &n, ipiv, &info);
    return info == 0 && fetestexcept(FE_ALL_EXCEPT) == 0;
}

static int nul(void)
{
    int n = 2, info = 77;
    double b[4] = {4, 2, 2, 5};
    dpotrf_("", &n, b, &n, &info, 0);
    return info == -1 && b[0] == 4;
}

/* The child's first call finds whatever there is to find. The next one ends it if it asks
 * the kernel for anything. */
static int quiet(void)
{
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        bool right = factor(LARGEST) && factor(LARGEST);
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0)
            right = factor(LARGEST) && right;
        syscall(SYS_exit, !right);
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } cases[] = {{"longjmp", by_longjmp},  {"altstack", on_altstack},
                 {"fork", by_fork},        {"cancel", by_cancel},
                 {"rawfork", by_raw_fork}, {"flags", flags},
                 {"quiet", quiet},         {"nul", nul}};
    if (argc > 1 && strcmp(argv[1], "chdir") == 0)
        puts(chdir("/") == 0 && factor(20) ? "fine" : "wrong");
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(argv[1], cases[i].name) == 0)
            puts(cases[i].run() ? "fine" : "wrong");
    return 0;
}
