/* A fault at every step in turn, for every routine and precision: after each the caller
 * holds exactly what its own LAPACK gives, and the next call is served again.
 *
 * Linked with the library and run with the mock engine, which fails the k-th allocation,
 * copy in, launch, wait or copy out on order. Cases that end the process or switch the
 * engine off run in a child process of this program (first argument).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arguments.h"
#include "batchlapack.h"
#include "mock_controls.h"

static const struct mock_order none = {.step = MOCK_STEPS};
static const char *const step_names[] = {
    "queue", "device allocation", "host allocation", "copy in", "launch",
    "wait",  "copy out"};
static int failures;

static void say(bool ok, const char *name, const char *why)
{
    printf(ok ? "ok %s\n" : "not ok %s - %s\n", name, why);
    failures += !ok;
}

/* ---- one problem ---- */

enum { A, B, IPIV, WORK, ARRAYS };
struct problem {
    unsigned id;
    struct arguments x;
    size_t bytes[ARRAYS];
    void *start[ARRAYS], *now[ARRAYS]; /* as given to the call, and the call's own copy */
};

static void set_element(void *p, size_t k, enum bl_precision precision, double value)
{
    bool is_double = precision == BL_D || precision == BL_Z;
    size_t parts = precision >= BL_C ? 2 : 1;
    for (size_t part = 0; part < parts; part++) {
        double v = part ? value / 3 : value;
        if (is_double)
            ((double *)p)[k * parts + part] = v;
        else
            ((float *)p)[k * parts + part] = (float)v;
    }
}

static double uniform(void)
{
    static _Thread_local uint64_t state = 12345;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-52 - 1;
}

static bl_fn *entry(unsigned id)
{
    char name[BL_SYMBOL_MAX];
    bl_fn *fn;
    bl_symbol(name, id, 0);
    void *symbol = dlsym(RTLD_DEFAULT, name);
    memcpy(&fn, &symbol, sizeof fn);
    return fn;
}

/* Positive definite where the routine is Cholesky's, factored or inverse-ready where it
 * takes factors: the routine's own predecessor prepares it on the CPU. */
static struct problem make(unsigned id, int32_t n, int32_t nrhs)
{
    struct problem p = {.id = id};
    enum bl_precision precision = (enum bl_precision)(id % BL_PRECISIONS);
    enum bl_routine_id routine = (enum bl_routine_id)(id / BL_PRECISIONS);
    size_t element = bl_element(precision), lda = (size_t)n + 3, ldb = (size_t)n + 1;
    bool cholesky = strchr(bl_row(id)->args, 'u') != NULL;
    p.x = (struct arguments){.uplo = 'L',
                             .trans = 'N',
                             .m = n,
                             .n = n,
                             .nrhs = nrhs,
                             .lda = (int32_t)lda,
                             .ldb = (int32_t)ldb,
                             .lwork = 64 * n};
    p.bytes[A] = lda * (size_t)n * element;
    p.bytes[B] = ldb * (size_t)nrhs * element;
    p.bytes[IPIV] = ((size_t)n + 2) * sizeof(int32_t);
    p.bytes[WORK] = 64 * (size_t)n * element;
    for (int i = 0; i < ARRAYS; i++) {
        p.start[i] = calloc(1, p.bytes[i] + 1);
        p.now[i] = malloc(p.bytes[i] + 1);
    }
    for (size_t j = 0; j < (size_t)n; j++)
        for (size_t i = 0; i < lda; i++)
            set_element(p.start[A], j * lda + i, precision,
                        cholesky && i == j ? 2.0 * n : uniform());
    for (size_t k = 0; k < ldb * (size_t)nrhs; k++)
        set_element(p.start[B], k, precision, uniform());
    memset(p.start[IPIV], 0x55, p.bytes[IPIV]);
    if (routine == BL_GETRS || routine == BL_GETRI || routine == BL_POTRS ||
        routine == BL_POTRI) {
        struct arguments x = p.x;
        unsigned first = bl_id(cholesky ? BL_POTRF : BL_GETRF, precision);
        x.a = p.start[A];
        x.ipiv = p.start[IPIV];
        pack_arguments(&x, first);
        batchlapack_set_mode(BATCHLAPACK_MODE_CPU);
        bl_call_lapack(entry(first), x.count, x.v);
    }
    return p;
}

static void destroy(struct problem *p, void *expected)
{
    free(expected);
    for (int i = 0; i < ARRAYS; i++) {
        free(p->start[i]);
        free(p->now[i]);
    }
}

static void call(struct problem *p, int mode)
{
    for (int i = 0; i < ARRAYS; i++)
        memcpy(p->now[i], p->start[i], p->bytes[i]);
    p->x.a = p->now[A];
    p->x.b = p->now[B];
    p->x.ipiv = p->now[IPIV];
    p->x.work = p->now[WORK];
    p->x.info = -77;
    pack_arguments(&p->x, p->id);
    batchlapack_set_mode(mode);
    bl_call_lapack(entry(p->id), p->x.count, p->x.v);
}

/* What the caller holds: everything but WORK beyond its first element. */
static void *snapshot(const struct problem *p, size_t *bytes)
{
    size_t first = bl_element((enum bl_precision)(p->id % BL_PRECISIONS));
    size_t work = strchr(bl_row(p->id)->args, 'W') ? first : 0;
    *bytes = p->bytes[A] + p->bytes[B] + p->bytes[IPIV] + work + sizeof p->x.info;
    char *all = malloc(*bytes), *to = all;
    for (int i = A; i <= IPIV; i++) {
        memcpy(to, p->now[i], p->bytes[i]);
        to += p->bytes[i];
    }
    memcpy(to, p->now[WORK], work);
    memcpy(to + work, &p->x.info, sizeof p->x.info);
    return all;
}

static bool same(const struct problem *p, const void *expected)
{
    size_t bytes;
    void *now = snapshot(p, &bytes);
    bool equal = memcmp(now, expected, bytes) == 0;
    free(now);
    return equal;
}

/* ---- every step of every routine ---- */

/* One fault at the k-th occurrence of a step, for k = 1, 2, ... until the call has no
 * k-th. */
static void each_step(unsigned id, enum bl_status status)
{
    char name[96], why[160] = "";
    struct problem p = make(id, 37, 5);
    size_t bytes;
    unsigned injected = 0;
    call(&p, BATCHLAPACK_MODE_CPU);
    void *expected = snapshot(&p, &bytes);
    for (int s = 0; s < MOCK_STEPS; s++)
        for (uint64_t k = 1; !*why; k++) {
            struct mock_counts before, after, clean;
            struct mock_order order = {
                .step = (enum mock_step)s, .at = k, .status = status};
            mock_order(&order);
            mock_counts(&before);
            call(&p, BATCHLAPACK_MODE_GPU);
            mock_counts(&after);
            bool right = same(&p, expected);
            mock_order(&none);
            call(&p, BATCHLAPACK_MODE_GPU);
            mock_counts(&clean);
            if (!right)
                snprintf(why, sizeof why, "wrong data after %s %d failed", step_names[s],
                         (int)k);
            else if (!same(&p, expected) || clean.problems == after.problems)
                snprintf(why, sizeof why, "not served after %s %d had failed",
                         step_names[s], (int)k);
            if (after.faults == before.faults)
                break;
            injected++;
        }
    /* Memory and queue stay between calls; a copy each way, a launch and a wait must
     * fail.
     */
    if (!*why && injected < 4)
        snprintf(why, sizeof why, "only %u faults were injected", injected);
    snprintf(name, sizeof name, "fault-%c%s-%s", bl_prefix(id), bl_row(id)->name,
             status == BL_NOMEM ? "memory" : "device");
    say(!*why, name, why);
    destroy(&p, expected);
}

/* The k-th allocation of the first call fails: in a process whose lane is still empty.
 * Status 0: right, 9: there is no k-th. */
static int first_call(unsigned id, int s, int k)
{
    struct problem p = make(id, 50, 2);
    struct mock_counts c;
    size_t bytes;
    call(&p, BATCHLAPACK_MODE_CPU);
    void *expected = snapshot(&p, &bytes);
    struct mock_order order = {
        .step = (enum mock_step)s, .at = (uint64_t)k, .status = BL_NOMEM};
    mock_order(&order);
    call(&p, BATCHLAPACK_MODE_GPU);
    mock_counts(&c);
    bool right = same(&p, expected) && c.problems == !c.faults, injected = c.faults;
    call(&p, BATCHLAPACK_MODE_GPU);
    mock_counts(&c);
    right = right && same(&p, expected) && c.problems == (injected ? 1 : 2);
    destroy(&p, expected);
    return !right ? 1 : injected ? 0 : 9;
}

/* ---- a result larger than a slot ---- */

/* getrs with so many right-hand sides that B does not fit the ring. status 9: served, 0:
 * right
 */
static int large(int s, int at)
{
    struct problem p = make(bl_id(BL_GETRS, BL_D), 4, 2900000);
    struct mock_counts c;
    size_t bytes;
    call(&p, BATCHLAPACK_MODE_CPU);
    void *expected = snapshot(&p, &bytes);
    struct mock_order order = {
        .step = (enum mock_step)s, .at = (uint64_t)at, .status = BL_LOST};
    mock_order(&order);
    call(&p, BATCHLAPACK_MODE_GPU);
    mock_counts(&c);
    bool right = same(&p, expected);
    destroy(&p, expected);
    return !right ? 2 : c.faults ? 0 : 9;
}

/* ---- others ---- */

/* A launch that was lost without an error: INFO comes back unwritten. */
static void lost_launch(void)
{
    struct mock_order order = {.step = MOCK_STEPS, .lose_launch = 1};
    struct problem p = make(bl_id(BL_GETRF, BL_D), 20, 1);
    size_t bytes;
    call(&p, BATCHLAPACK_MODE_CPU);
    void *expected = snapshot(&p, &bytes);
    mock_order(&order);
    call(&p, BATCHLAPACK_MODE_GPU);
    say(same(&p, expected), "fault-launch-without-effect", "wrong data");
    mock_order(&none);
    call(&p, BATCHLAPACK_MODE_GPU);
    destroy(&p, expected);
}

/* Memory for the matrix, but not for the work space that its job would like: the device
 * does it with less. */
static void short_of_work_space(void)
{
    struct mock_order order = {
        .step = MOCK_STEPS, .memory = 1 << 20, .work = 1 << 20, .status = BL_NOMEM};
    struct problem p = make(bl_id(BL_GETRF, BL_D), 40, 1);
    struct mock_counts before, after;
    size_t bytes;
    call(&p, BATCHLAPACK_MODE_CPU);
    void *expected = snapshot(&p, &bytes);
    mock_order(&order);
    mock_counts(&before);
    call(&p, BATCHLAPACK_MODE_GPU);
    mock_counts(&after);
    mock_order(&none);
    say(same(&p, expected) && after.problems == before.problems + 1, "work-space-short",
        "wrong data, or not served");
    destroy(&p, expected);
}

/* A problem that the engine hands back is no fault, however often it does. */
static void handed_back(void)
{
    struct mock_order order = {.step = MOCK_STEPS, .hand_back = 1};
    struct problem p = make(bl_id(BL_GESV, BL_Z), 20, 2);
    struct mock_counts before, after;
    size_t bytes;
    bool right = true;
    call(&p, BATCHLAPACK_MODE_CPU);
    void *expected = snapshot(&p, &bytes);
    mock_order(&order);
    for (int i = 0; i < 10; i++) {
        call(&p, BATCHLAPACK_MODE_GPU);
        right = right && same(&p, expected);
    }
    mock_order(&none);
    mock_counts(&before);
    call(&p, BATCHLAPACK_MODE_GPU);
    mock_counts(&after);
    say(right && same(&p, expected), "handed-back", "wrong data");
    say(after.problems == before.problems + 1, "handed-back-engine-stays-on",
        "it is off");
    destroy(&p, expected);
}

/* Every launch fails: three calls try, the others no longer do. */
static int switch_off(void)
{
    struct mock_order order = {
        .step = MOCK_RUN, .at = 1, .always = 1, .status = BL_FAULT};
    struct problem p = make(bl_id(BL_POTRF, BL_Z), 20, 1);
    struct mock_counts c;
    size_t bytes;
    call(&p, BATCHLAPACK_MODE_CPU);
    void *expected = snapshot(&p, &bytes);
    mock_order(&order);
    for (int i = 0; i < 10; i++) {
        call(&p, BATCHLAPACK_MODE_GPU);
        if (!same(&p, expected))
            return 1;
    }
    mock_counts(&c);
    destroy(&p, expected);
    return c.faults == 3 ? 0 : 2;
}

/* Memory that BL_IDLE_CALLS calls did not need is given back, and taken again. */
static int idle(void)
{
    struct problem p = make(bl_id(BL_GESV, BL_D), 90, 4);
    struct mock_counts first, later, again;
    size_t bytes;
    call(&p, BATCHLAPACK_MODE_CPU);
    void *expected = snapshot(&p, &bytes);
    call(&p, BATCHLAPACK_MODE_GPU);
    mock_counts(&first);
    for (int i = 0; i < 2 * BL_IDLE_CALLS; i++)
        call(&p, BATCHLAPACK_MODE_CPU);
    mock_counts(&later);
    call(&p, BATCHLAPACK_MODE_GPU);
    mock_counts(&again);
    bool right = same(&p, expected) && again.problems == 2;
    destroy(&p, expected);
    return right && first.held > 0 && later.held == 0 && again.held > 0 ? 0 : 1;
}

/* Memory limits: this call does not fit. */
static int limited(void)
{
    struct problem p = make(bl_id(BL_GESV, BL_D), 90, 4);
    struct mock_counts c;
    size_t bytes;
    call(&p, BATCHLAPACK_MODE_CPU);
    void *expected = snapshot(&p, &bytes);
    call(&p, BATCHLAPACK_MODE_GPU);
    mock_counts(&c);
    bool right = same(&p, expected) && c.problems == 0 && c.held == 0;
    destroy(&p, expected);
    return right ? 0 : 1;
}

/* ---- a handler that is installed while a call waits ---- */

static sigjmp_buf back;
static void jump_back(int signal)
{
    siglongjmp(back, signal);
}

static void *one_call(void *arg)
{
    call(arg, BATCHLAPACK_MODE_GPU);
    return arg;
}

/* It leaves by longjmp. */
static void *a_call_that_is_left(void *arg)
{
    if (sigsetjmp(back, 1) == 0)
        call(arg, BATCHLAPACK_MODE_GPU);
    return arg;
}

/* Four calls have all lanes of a slow device; a fifth waits for one when its thread is
 * sent a signal. Neither its place in the queue nor a lane is lost: all are served again,
 * one by one and all at once. */
static int left_while_waiting(void)
{
    enum { CALLS = 4, ROUNDS = 5 };
    struct mock_order slow = {.step = MOCK_STEPS, .slow_us = 60000};
    struct problem p[CALLS + 1];
    pthread_t thread[CALLS + 1];
    void *expected[CALLS + 1];
    size_t bytes;
    bool right = true;
    for (int i = 0; i <= CALLS; i++) {
        p[i] = make(bl_id(BL_GETRF, BL_D), 30, 1);
        call(&p[i], BATCHLAPACK_MODE_CPU);
        expected[i] = snapshot(&p[i], &bytes);
    }
    call(&p[0], BATCHLAPACK_MODE_GPU);
    for (int round = 0; round < ROUNDS; round++) {
        mock_order(&slow);
        signal(SIGUSR1, SIG_DFL);
        for (int i = 0; i < CALLS; i++)
            pthread_create(&thread[i], NULL, one_call, &p[i]);
        usleep(40000);
        pthread_create(&thread[CALLS], NULL, a_call_that_is_left, &p[CALLS]);
        usleep(40000);
        signal(SIGUSR1, jump_back);
        pthread_kill(thread[CALLS], SIGUSR1);
        for (int i = 0; i <= CALLS; i++)
            pthread_join(thread[i], NULL);
        mock_order(&none);
        for (int i = 0; i < CALLS; i++)
            right = right && same(&p[i], expected[i]);
    }
    struct mock_counts before, after;
    mock_counts(&before);
    mock_order(&slow);
    for (int i = 0; i <= CALLS; i++)
        pthread_create(&thread[i], NULL, one_call, &p[i]);
    for (int i = 0; i <= CALLS; i++) {
        pthread_join(thread[i], NULL);
        right = right && same(&p[i], expected[i]);
    }
    mock_counts(&after);
    for (int i = 0; i <= CALLS; i++)
        destroy(&p[i], expected[i]);
    return !right ? 1 : after.problems - before.problems != CALLS + 1 ? 2 : 0;
}

/* ---- running ----  */

/* This program again, for one case. Its stderr is kept in `said`. */
static char said[4096];

static int child(const char *self, const char *what, int s, int at, unsigned id,
                 bool staged)
{
    int ends[2];
    if (pipe(ends) != 0)
        return 127;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        char first[16], second[16], third[16];
        snprintf(first, sizeof first, "%d", s);
        snprintf(second, sizeof second, "%d", at);
        snprintf(third, sizeof third, "%u", id);
        setenv("BATCHLAPACK_WRITEBACK", staged ? "staged" : "slots", 1);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        execl(self, self, what, first, second, third, (char *)NULL);
        _exit(126);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t n; (n = read(ends[0], said + used, sizeof said - 1 - used)) > 0;)
        used += (size_t)n;
    said[used] = 0;
    close(ends[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void each_allocation(const char *self, unsigned id)
{
    char name[96], why[96] = "";
    unsigned injected = 0;
    for (int s = MOCK_QUEUE; s <= MOCK_HOST_ALLOC && !*why; s++)
        for (int k = 1, rc = 0; rc != 9 && !*why; k++) {
            rc = child(self, "first", s, k, id, false);
            injected += rc == 0;
            if (rc != 0 && rc != 9)
                snprintf(why, sizeof why, "status %d after %s %d failed", rc,
                         step_names[s], k);
        }
    /* A queue, device memory, a ring. */
    if (!*why && injected != 3)
        snprintf(why, sizeof why, "%u allocations failed, not 3", injected);
    snprintf(name, sizeof name, "fault-first-call-%c%s", bl_prefix(id), bl_row(id)->name);
    say(!*why, name, why);
}

/* B goes and comes in pieces. When a copy out or a wait fails after the first piece was
 * written back, a part of it is with the caller already: the process is told and aborted.
 * Before that, and always when staged, the caller gets the right answer. */
static void large_results(const char *self)
{
    char name[96], why[96] = "";
    for (int staged = 0; staged < 2; staged++)
        for (int s = MOCK_COPY_IN; s <= MOCK_COPY_OUT; s++) {
            int lost = 0, served = 0;
            *why = 0;
            for (int at = 1, rc = 0; rc != 9 && !*why; at++) {
                rc = child(self, "large", s, at, 0, staged);
                bool told =
                    strstr(said, "incomplete") && strstr(said, "WRITEBACK=staged");
                bool right = (rc == 0 || rc == 9) && !told;
                bool aborted = rc == 128 + SIGABRT && told;
                lost += aborted;
                served += rc == 0;
                if (!right && !aborted)
                    snprintf(why, sizeof why, "at %d: status %d, %s", at, rc,
                             told ? "told" : "not told");
                else if (right && rc == 0 && lost)
                    snprintf(why, sizeof why, "at %d: right after it had begun", at);
            }
            bool may_be_lost = !staged && (s == MOCK_WAIT || s == MOCK_COPY_OUT);
            if (!*why && (may_be_lost ? lost < 4 : lost > 0)) /* of six sections */
                snprintf(why, sizeof why, "lost %d times", lost);
            if (!*why && served == 0)
                snprintf(why, sizeof why, "no fault came before it had begun");
            snprintf(name, sizeof name, "fault-large-%s-%s", staged ? "staged" : "slots",
                     step_names[s]);
            say(!*why, name, why);
        }
}

/* More threads than lanes, each step slow: all right, and memory bounded by the lanes. */
static void *slow_thread(void *arg)
{
    struct problem p = make(*(unsigned *)arg, 60, 3);
    size_t bytes;
    call(&p, BATCHLAPACK_MODE_CPU);
    void *expected = snapshot(&p, &bytes);
    bool right = true;
    for (int i = 0; i < 5; i++) {
        call(&p, BATCHLAPACK_MODE_GPU);
        right &= same(&p, expected);
    }
    destroy(&p, expected);
    return right ? arg : NULL;
}

static void crowd(void)
{
    enum { THREADS = 16 };
    struct mock_order slow = {.step = MOCK_STEPS, .slow_us = 300};
    pthread_t thread[THREADS];
    unsigned id[THREADS];
    bool right = true;
    mock_order(&slow);
    for (unsigned i = 0; i < THREADS; i++) {
        id[i] = i * 7 % BL_LAPACK_IDS;
        pthread_create(&thread[i], NULL, slow_thread, &id[i]);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(thread[i], &result);
        right &= result != NULL;
    }
    mock_order(&none);
    say(right, "threads-on-a-slow-device", "wrong data");
}

int main(int argc, char **argv)
{
    need_mock("faults");
    if (argc == 5) {
        int s = atoi(argv[2]), at = atoi(argv[3]);
        unsigned id = (unsigned)atoi(argv[4]);
        if (strcmp(argv[1], "large") == 0)
            return large(s, at);
        if (strcmp(argv[1], "first") == 0)
            return first_call(id, s, at);
        if (strcmp(argv[1], "off") == 0)
            return switch_off();
        if (strcmp(argv[1], "idle") == 0)
            return idle();
        if (strcmp(argv[1], "left") == 0) {
            alarm(60);
            return left_while_waiting();
        }
        if (strcmp(argv[1], "limited") == 0)
            return limited();
        for (unsigned r = 0; r < BL_LAPACK_ROUTINES; r++) /* "some": for slow tools */
            each_step(bl_id(r, r % BL_PRECISIONS), BL_FAULT);
        return failures != 0;
    }
    for (unsigned id = 0; id < BL_LAPACK_IDS; id++)
        each_allocation(argv[0], id);
    for (unsigned id = 0; id < BL_LAPACK_IDS; id++) {
        each_step(id, BL_FAULT);
        each_step(id, BL_NOMEM);
    }
    lost_launch();
    short_of_work_space();
    handed_back();
    crowd();
    say(child(argv[0], "off", 0, 0, 0, false) == 0, "fault-repeated-switches-off",
        "wrong data, or the engine was asked too often");
    say(child(argv[0], "idle", 0, 0, 0, false) == 0, "idle-memory-given-back",
        "wrong data, or memory kept or not taken again");
    say(child(argv[0], "left", 0, 0, 0, false) == 0, "left-while-waiting",
        "wrong data, or a lane or a place in the queue was lost");
    setenv("BATCHLAPACK_MEMORY", "20K", 1);
    say(child(argv[0], "limited", 0, 0, 0, false) == 0, "memory-limit", "exceeded");
    unsetenv("BATCHLAPACK_MEMORY");
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "1000000", 1);
    say(child(argv[0], "limited", 0, 0, 0, false) == 0, "memory-shared-by-ranks",
        "a rank took more than its part");
    unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    large_results(argv[0]);
    return failures != 0;
}
