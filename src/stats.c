/* What happened to every call: counters, the table at exit (BATCHLAPACK_REPORT) and a
 * line a call (BATCHLAPACK_VERBOSE). With neither option set nothing is counted or timed.
 *
 * The table goes to stderr when the process ends, and only from a process that made an
 * eligible call (legal, not empty, no query).
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bl.h"

static const char *const why[BL_REASONS] = {
#define W(name, text) text,
#include "reasons.def"
#undef W
};

static struct {
    _Atomic uint64_t nested, smallest, largest;
    _Atomic uint64_t gpu, forwarded[BL_REASONS];
    _Atomic uint64_t ns[2], kflops[2]; /* 0: CPU, 1: GPU */
    _Atomic uint64_t in, out;
} stats[BL_IDS];
static _Atomic bool eligible;

uint64_t bl_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void bl_stats_nested(unsigned id)
{
    atomic_fetch_add_explicit(&stats[id].nested, 1, memory_order_relaxed);
}

static void add(_Atomic uint64_t *to, uint64_t n)
{
    atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

void bl_stats_call(const struct bl_call *c, enum bl_reason where, uint64_t ns,
                   const struct bl_traffic *traffic)
{
    bool gpu = where == BL_ON_GPU;
    if (bl_option(BL_OPTION_VERBOSE))
        bl_say("%c%s m=%" PRId64 " n=%" PRId64 " nrhs=%" PRId64 " %s%s%s %.3f ms",
               bl_prefix(c->id), bl_row(c->id)->name, c->m, c->n, c->nrhs,
               gpu ? "GPU" : "CPU (", gpu ? "" : why[where], gpu ? "" : ")",
               (double)ns * 1e-6);
    add(gpu ? &stats[c->id].gpu : &stats[c->id].forwarded[where], 1);
    if (!c->legal || c->query || c->empty)
        return;
    atomic_store_explicit(&eligible, true, memory_order_relaxed);
    /* Smallest is kept as UINT64_MAX - n, so that both are maxima that start from 0. */
    uint64_t n = (uint64_t)bl_max(c->m, c->n), value[2] = {UINT64_MAX - n, n};
    _Atomic uint64_t *to[2] = {&stats[c->id].smallest, &stats[c->id].largest};
    for (int i = 0; i < 2; i++) {
        uint64_t seen = atomic_load_explicit(to[i], memory_order_relaxed);
        while (seen < value[i] && !atomic_compare_exchange_weak(to[i], &seen, value[i]))
            ;
    }
    add(&stats[c->id].ns[gpu], ns);
    add(&stats[c->id].kflops[gpu],
        (uint64_t)(bl_flops(c->id, (double)c->m, (double)c->n, (double)c->nrhs) / 1000));
    add(&stats[c->id].in, traffic->in);
    add(&stats[c->id].out, traffic->out);
}

/* ---- the table ---- */

static const char *count(char *buffer, size_t size, uint64_t n)
{
    snprintf(buffer, size, "%" PRIu64, n);
    return buffer;
}

static void side(FILE *f, unsigned id, int gpu)
{
    double s = (double)stats[id].ns[gpu] * 1e-9;
    double flops = (double)stats[id].kflops[gpu] * 1e3;
    if (s > 0)
        fprintf(f, " %10.4f %9.2f", s, flops / s * 1e-9);
    else
        fprintf(f, " %10s %9s", "-", "-");
}

static void report(FILE *f)
{
    const struct bl_device *device = bl_engine_device();
    fprintf(f, "\nbatchlapack %s, %s, process %ld: ", PACKAGE_VERSION,
            program_invocation_short_name, (long)getpid());
    if (device)
        fprintf(f, "%s\n", device->name);
    else
        fprintf(f, "no GPU used (%s)\n", bl_engine_why());
    fprintf(f, "%-8s %8s %8s %13s %8s %8s %10s %9s %10s %9s %9s %9s\n", "routine",
            "calls", "nested", "n", "on GPU", "on CPU", "GPU s", "GFLOP/s", "CPU s",
            "GFLOP/s", "MB in", "MB out");
    for (unsigned id = 0; id < BL_IDS; id++) {
        uint64_t cpu = 0, gpu = stats[id].gpu, nested = stats[id].nested;
        for (int w = 0; w < BL_REASONS; w++)
            cpu += stats[id].forwarded[w];
        if (cpu + gpu + nested == 0)
            continue;
        char name[16], range[48] = "-", number[24];
        snprintf(name, sizeof name, "%c%s", bl_prefix(id), bl_row(id)->name);
        if (stats[id].smallest) {
            uint64_t low = UINT64_MAX - stats[id].smallest, high = stats[id].largest;
            if (low == high)
                count(range, sizeof range, low);
            else
                snprintf(range, sizeof range, "%" PRIu64 "..%" PRIu64, low, high);
        }
        fprintf(f, "%-8s %8s", name, count(number, sizeof number, cpu + gpu));
        fprintf(f, " %8s %13s", count(number, sizeof number, nested), range);
        fprintf(f, " %8" PRIu64 " %8" PRIu64, gpu, cpu);
        side(f, id, 1);
        side(f, id, 0);
        fprintf(f, " %9.1f %9.1f\n", (double)stats[id].in * 1e-6,
                (double)stats[id].out * 1e-6);
        for (int w = 0; w < BL_REASONS; w++)
            if (stats[id].forwarded[w])
                fprintf(f, "         %8s on the CPU: %s\n",
                        count(number, sizeof number, stats[id].forwarded[w]), why[w]);
    }
}

/* A forked child reports its own calls. */
static void forget(void)
{
    memset((void *)stats, 0, sizeof stats);
    atomic_store(&eligible, false);
}

__attribute__((constructor)) static void watch_fork(void)
{
    pthread_atfork(NULL, NULL, forget);
}

/* Built in memory, written at once: one table, whatever other processes print. */
__attribute__((destructor)) static void report_at_exit(void)
{
    if (!atomic_load(&eligible) || !bl_option(BL_OPTION_REPORT))
        return;
    char *text = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);
    if (!f)
        return;
    report(f);
    if (fclose(f) == 0)
        bl_write_stderr(text, length);
    free(text);
}
