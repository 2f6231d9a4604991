/* What happened to every call: the counters that the account at exit is made of. With
 * neither BATCHLAPACK_REPORT nor BATCHLAPACK_VERBOSE set nothing is counted or timed.
 *
 * The dispatcher tells of each call, from any thread, and the engine of its start-up. At
 * exit a process that made an eligible call (legal, not empty, no query) gives its
 * account (report.c); a forked child begins a new one. Nothing here writes, or may change
 * what the program sees: errno and floating-point flags stay its own.
 */
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "stats.h"

const char *const bl_reason_text[BL_REASONS] = {
#define W(name, text) text,
#include "reasons.def"
#undef W
};

struct bl_counters bl_stats[BL_IDS];
_Atomic uint64_t bl_startup_ns;
static _Atomic bool counting, eligible;
static _Thread_local BL_FAST_TLS uint64_t waited_ns; /* for the start-up, in this call */

uint64_t bl_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void add(_Atomic uint64_t *to, uint64_t n)
{
    atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

static void add_real(_Atomic double *to, double x)
{
    double seen = atomic_load_explicit(to, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(to, &seen, seen + x))
        ;
}

static void raise_to(_Atomic uint64_t *to, uint64_t n)
{
    uint64_t seen = atomic_load_explicit(to, memory_order_relaxed);
    while (seen < n && !atomic_compare_exchange_weak(to, &seen, n))
        ;
}

static int bucket_of(uint64_t n)
{
    int zeros = __builtin_clzll(n);
    int i = 2 * (63 - zeros) + (n << zeros >= 0xB504F333F9DE6485u); /* sqrt(2) * 2^63 */
    return i < BUCKETS ? i : BUCKETS - 1;
}

uint64_t bl_bucket_from(int i)
{
    uint64_t n = (i & 1 ? 0xB504F333F9DE6485u : (uint64_t)1 << 63) >> (63 - i / 2);
    while (bucket_of(n) < i)
        n++;
    return n;
}

void bl_stats_nested(unsigned id)
{
    atomic_store_explicit(&counting, true, memory_order_relaxed);
    add(&bl_stats[id].nested, 1);
}

void bl_stats_startup(uint64_t ns)
{
    waited_ns += ns;
    raise_to(&bl_startup_ns, ns);
}

static void count_call(const struct bl_call *c, enum bl_reason where, uint64_t ns,
                       const struct bl_traffic *traffic)
{
    bool gpu = where == BL_ON_GPU;
    add(gpu ? &bl_stats[c->id].gpu : &bl_stats[c->id].forwarded[where], 1);
    if (!c->legal || c->query || c->empty)
        return;
    atomic_store_explicit(&eligible, true, memory_order_relaxed);
    uint64_t n = (uint64_t)bl_max(c->m, c->n);
    struct bl_bucket *b = &bl_stats[c->id].bucket[bucket_of(n)];
    struct bl_side *side = &b->side[gpu];
    raise_to(&b->smallest, UINT64_MAX - n);
    raise_to(&b->largest, n);
    add(&side->calls, 1);
    add(&side->ns, ns);
    add(&side->in, traffic->in);
    add(&side->out, traffic->out);
    add_real(&side->operations,
             c->operations > 0
                 ? c->operations
                 : bl_flops(c->id, (double)c->m, (double)c->n, (double)c->nrhs));
    if (bl_option(BL_OPTION_REPORT) == BL_OUTPUT_FILE) {
        struct bl_cost cost = bl_cost(c);
        add_real(&side->other, gpu ? cost.cpu : cost.gpu);
    }
}

/* The program has just had its result: none of this is to be seen by it. */
void bl_stats_call(const struct bl_call *c, enum bl_reason where, uint64_t ns,
                   const struct bl_traffic *traffic)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int saved = errno;
    fenv_t env;
    feholdexcept(&env);
    atomic_store_explicit(&counting, true, memory_order_relaxed);
    pthread_once(&once, bl_remember_directory);
    ns -= waited_ns < ns ? waited_ns : ns;
    waited_ns = 0;
    if (bl_option(BL_OPTION_VERBOSE))
        bl_verbose_call(c, where, ns);
    count_call(c, where, ns, traffic);
    fesetenv(&env);
    errno = saved;
}

/* ---- the end, and fork ---- */

__attribute__((destructor)) static void report_at_exit(void)
{
    fenv_t env;
    if (!atomic_load(&eligible) || !bl_option(BL_OPTION_REPORT))
        return;
    feholdexcept(&env);
    bl_report(bl_option(BL_OPTION_REPORT) == BL_OUTPUT_FILE);
    fesetenv(&env);
}

/* A forked child gives account of its own calls, and its files are its own. */
static void after_fork_in_child(void)
{
    if (!atomic_load(&counting))
        return;
    memset((void *)bl_stats, 0, sizeof bl_stats);
    atomic_store(&counting, false);
    atomic_store(&eligible, false);
    bl_verbose_after_fork();
}

__attribute__((constructor)) static void watch_fork(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
}
