/* The cost model of tune.def: is this call worth the GPU, and in which arithmetic?
 *
 * A call's predicted saving depends on its sizes and the table alone, never on a clock or
 * on what else runs, so the same calls take the same way every time. BATCHLAPACK_TUNE
 * names a file that replaces thresholds: lines "dgetrf 512", # begins a comment.
 */
#include <fcntl.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bl.h"
#include "floating_point.h"
#include "guard.h"
#include "workers.h"

enum {
#define MODEL(name, value) MODEL_##name,
#include "tune.def"
#undef MODEL
    MODELS
};
static const double model[MODELS] = {
#define MODEL(name, value) value,
#include "tune.def"
#undef MODEL
};
#define RATE(s, d, c, z) static const double rate[BL_PRECISIONS] = {s, d, c, z};
#include "tune.def"
#undef RATE

enum { FAST, REFERENCE, KINDS }; /* the program's LAPACK */
static double cpu_rate[KINDS][BL_LAPACK_IDS];
/* Shapes below this in every dimension cost the CPU less than LATENCY. */
static int64_t hopeless[KINDS][BL_LAPACK_IDS];
/* The same, also of what LAPACK's routine calls. */
static int64_t hopeless_within[KINDS][BL_LAPACK_IDS];
static const int fast_from[BL_ROUTINES] = {
#define T(name, flops, fast_lapack, reference, chain) chain,
#define E(name, flops, chain) chain,
#include "tune.def"
#undef T
#undef E
};
static const int exact_to[BL_ROUTINES][BL_PRECISIONS] = {
#define LIMIT(NAME, s, d, c, z) [BL_##NAME] = {s, d, c, z},
#include "tune.def"
#undef LIMIT
};
static const int upper_exact_to[BL_ROUTINES][BL_PRECISIONS] = {
#define UPPER_LIMIT(NAME, s, d, c, z) [BL_##NAME] = {s, d, c, z},
#include "tune.def"
#undef UPPER_LIMIT
};
static const int batch_exact_to[BL_ROUTINES][BL_PRECISIONS] = {
#define BATCH_LIMIT(NAME, s, d, c, z) [BL_##NAME] = {s, d, c, z},
#include "tune.def"
#undef BATCH_LIMIT
};
static _Atomic bool ready;

/* The rows of tune.def stand in the order of routines.def. */
#define T(name, flops, fast_lapack, reference, chain) tune_##name,
#define E(name, flops, chain) tune_##name,
enum {
#include "tune.def"
};
#undef T
#undef E
#define R_SDCZ(name, NAME, nargs, args)                                                  \
    _Static_assert((int)tune_##name == (int)BL_##NAME, "tune.def: order of " #name);
#define E_SDCZ(name, NAME, args) R_SDCZ(name, NAME, 0, args)
#include "routines.def"

/* Operations of one call; a complex operation pair counts four times, as is usual. */
double bl_operations(enum bl_routine_id routine, enum bl_precision p, double m, double n,
                     double r)
{
    double k = m < n ? m : n;
    (void)k;
    double count[] = {
#define T(name, flops, fast_lapack, reference, chain) flops,
#define E(name, flops, chain) flops,
#include "tune.def"
#undef T
#undef E
    };
    return count[routine] * (p >= BL_C ? 4 : 1);
}

/* One problem's bytes over the link and its operations, as seconds. */
static double moved_and_computed(unsigned id, double m, double n, double nrhs,
                                 double link_in, double link_out)
{
    enum bl_routine_id r = bl_operation(id);
    enum bl_precision p = bl_precision(id);
    double es = (double)bl_element(p), a = m * n * es, b = n * nrhs * es;
    double in = a + (bl_reads(r, 'b') ? b : 0);
    double out = (bl_writes(r, 'a') ? a : 0) + (bl_writes(r, 'b') ? b : 0) +
                 (bl_writes(r, 'x') ? a : 0);
    return in / link_in + out / link_out + bl_flops(id, m, n, nrhs) / rate[p];
}

static double gpu_seconds(unsigned id, double m, double n, double nrhs)
{
    return model[MODEL_LATENCY] + model[MODEL_COLUMN] * (m < n ? m : n) +
           model[MODEL_PANEL] * m * n +
           moved_and_computed(id, m, n, nrhs, model[MODEL_LINK_IN],
                              model[MODEL_LINK_OUT]);
}

#define IN_FLIGHT 1024 /* matrices that the card works on at a time, about */
#define TINY 32        /* up to this order no column is waited for */

static double column_seconds(const struct bl_call *c)
{
    int64_t k = bl_min(c->m, c->n);
    return k > TINY ? model[MODEL_BATCH_COLUMN] * (double)k : 0;
}

double bl_batch_latency(const struct bl_call *c)
{
    return model[MODEL_LATENCY] + column_seconds(c);
}

static struct bl_cost batch_cost(const struct bl_call *c)
{
    double m = (double)c->m, n = (double)c->n, r = (double)c->nrhs, b = (double)c->batch;
    double one = model[c->reference ? MODEL_CPU_RATE_REFERENCE : MODEL_CPU_RATE];
    int threads = bl_workers_count();
    double lock = c->reference || threads == 1 ? 0 : model[MODEL_CPU_LOCK];
    struct bl_cost seconds = {
        b * (lock + (model[MODEL_CPU_CALL] + bl_flops(c->id, m, n, r) / one) / threads),
        bl_batch_latency(c) +
            b * (column_seconds(c) / IN_FLIGHT +
                 moved_and_computed(c->id, m, n, r, model[MODEL_BATCH_LINK],
                                    model[MODEL_BATCH_LINK]))};
    return seconds;
}

static void set_threshold(int kind, unsigned id, double n)
{
    cpu_rate[kind][id] = bl_flops(id, n, n, n) / gpu_seconds(id, n, n, n);
    double size = 1;
    while (bl_flops(id, size, size, size) / cpu_rate[kind][id] < model[MODEL_LATENCY])
        size++;
    hopeless[kind][id] = (int64_t)size;
}

/* A regular file, or NULL: a pipe or a device could keep the program waiting. */
static FILE *open_regular(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fdopen(fd, "r");
    if (fd >= 0)
        close(fd);
    return NULL;
}

static void read_tune_file(const char *path)
{
    FILE *f = open_regular(path);
    if (!f) {
        bl_say("option BATCHLAPACK_TUNE ignored: cannot read %s", path);
        return;
    }
    char *line = NULL, name[BL_SYMBOL_MAX], want[BL_SYMBOL_MAX];
    size_t space = 0;
    for (int number = 1; getline(&line, &space, f) >= 0; number++) {
        line[strcspn(line, "#\n")] = 0;
        double n;
        char rest;
        int items = sscanf(line, "%30s %lf %c", name, &n, &rest);
        if (items < 1)
            continue;
        unsigned id = 0;
        for (; id < BL_LAPACK_IDS; id++) {
            snprintf(want, sizeof want, "%c%s", bl_prefix(id), bl_row(id)->name);
            if (strcmp(want, name) == 0)
                break;
        }
        if (items != 2 || id == BL_LAPACK_IDS || !(n >= 1 && n <= 1e9))
            bl_say("%s:%d ignored: a line is a routine and an n", path, number);
        else
            for (int kind = 0; kind < KINDS; kind++)
                set_threshold(kind, id, n);
    }
    free(line);
    fclose(f);
}

static void read_tune(void)
{
#define N(s, d, c, z)                                                                    \
    {                                                                                    \
        s, d, c, z                                                                       \
    }
#define E(name, flops, chain)
    static const int built_in[KINDS][BL_LAPACK_ROUTINES][BL_PRECISIONS] = {
        {
#define T(name, flops, fast_lapack, reference, chain) fast_lapack,
#include "tune.def"
#undef T
        },
        {
#define T(name, flops, fast_lapack, reference, chain) reference,
#include "tune.def"
#undef T
        },
    };
#undef E
#undef N
    for (int kind = 0; kind < KINDS; kind++)
        for (unsigned id = 0; id < BL_LAPACK_IDS; id++)
            set_threshold(kind, id,
                          built_in[kind][id / BL_PRECISIONS][id % BL_PRECISIONS]);
    const char *path = bl_option_text(BL_OPTION_TUNE);
    if (path)
        read_tune_file(path);
    for (int kind = 0; kind < KINDS; kind++)
        for (unsigned id = 0; id < BL_LAPACK_IDS; id++) {
            const int64_t *of = hopeless[kind];
            enum bl_precision p = bl_precision(id);
            int64_t least = of[id];
            if (bl_operation(id) == BL_GESV)
                least = bl_min(least, bl_min(of[bl_id(BL_ROW_GETRF, p)],
                                             of[bl_id(BL_ROW_GETRS, p)]));
            if (bl_operation(id) == BL_POSV)
                least = bl_min(least, bl_min(of[bl_id(BL_ROW_POTRF, p)],
                                             of[bl_id(BL_ROW_POTRS, p)]));
            hopeless_within[kind][id] = least;
        }
    atomic_store_explicit(&ready, true, memory_order_release);
}

/* Guarded: a signal handler that calls LAPACK must not wait for what it interrupted. */
static void need_tune(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct bl_guard guard;
    if (atomic_load_explicit(&ready, memory_order_acquire))
        return;
    bl_guard_enter(&guard);
    pthread_once(&once, read_tune);
    bl_guard_leave(&guard);
}

/* Does the routine's exact order hold the transposed lower solve, one chain of dependent
 * subtractions? With trans 'T' or 'C', and with Cholesky's 'L'. */
static bool is_chain(const struct bl_call *c)
{
    return (c->trans && c->trans != 'N') || (c->has_b && c->uplo == 'L');
}

/* Not inlined: nothing of it may move out of bl_hold() and bl_release(). */
static __attribute__((noinline)) struct bl_cost cost(const struct bl_call *c)
{
    double m = (double)c->m, n = (double)c->n, r = (double)c->nrhs;
    struct bl_cost seconds;
    if (c->id < BL_LAPACK_IDS)
        seconds =
            (struct bl_cost){bl_flops(c->id, m, n, r) / cpu_rate[c->reference][c->id],
                             gpu_seconds(c->id, m, n, r)};
    else
        seconds = batch_cost(c);
    if (is_chain(c) && bl_arithmetic_of(c) == BL_EXACT)
        seconds.gpu += model[MODEL_CHAIN] * n * n * ceil(r / 1000);
    return seconds;
}

/* The program's floating-point flags and traps do not notice. */
static double cost_unnoticed(const struct bl_call *c, struct bl_cost *seconds)
{
    bl_floating_point before;
    bl_hold(&before);
    *seconds = cost(c);
    volatile double saving = seconds->cpu - seconds->gpu;
    bl_release(&before);
    return saving;
}

struct bl_cost bl_cost(const struct bl_call *c)
{
    struct bl_cost seconds = c->cost;
    need_tune();
    if (c->operations <= 0)
        cost_unnoticed(c, &seconds);
    return seconds;
}

bool bl_hopeless(unsigned id, bool reference, bool wide, void *const *v)
{
    need_tune();
    const int64_t bound = hopeless_within[reference][id];
    int64_t n = 0, sides = 0;
    for (const char *letter = bl_row(id)->args; *letter; letter++, v++)
        if (*letter == 'n' || *letter == 'm' || *letter == 'r') {
            int64_t size = wide ? *(const int64_t *)*v : *(const int32_t *)*v;
            *(*letter == 'r' ? &sides : &n) = bl_max(*letter == 'r' ? 0 : n, size);
        }
    if (bl_max(n, sides) < bound)
        return true;
    /* Few sides: the operations of a solve alone count. Integers leave no flags behind.
     */
    enum bl_routine_id r = bl_operation(id);
    return (r == BL_GETRS || r == BL_POTRS) && bl_max(n, sides) < 1 << 16 &&
           n * n * sides < bound * bound * bound;
}

double bl_saving(const struct bl_call *c)
{
    need_tune();
    /* Below that no shape can win; this is the small call's quick way out. */
    if (c->id < BL_LAPACK_IDS &&
        bl_max(bl_max(c->m, c->n), c->nrhs) < hopeless[c->reference][c->id])
        return 0;
    struct bl_cost seconds;
    return cost_unnoticed(c, &seconds);
}

enum bl_arithmetic bl_arithmetic_of(const struct bl_call *c)
{
    switch (bl_option(BL_OPTION_ARITHMETIC)) {
    case BL_ARITHMETIC_EXACT:
        return BL_EXACT;
    case BL_ARITHMETIC_FAST:
        return BL_FAST;
    }
    enum bl_routine_id r = bl_operation(c->id);
    enum bl_precision p = bl_precision(c->id);
    int from = fast_from[r], limit = exact_to[r][p];
    int of_batch = c->uplo == 'U' ? upper_exact_to[r][p] : batch_exact_to[r][p];
    if (c->batch > BL_FEW && of_batch)
        limit = of_batch;
    if (limit && bl_min(c->m, c->n) > limit)
        return BL_FAST;
    return is_chain(c) && from && c->n > from ? BL_FAST : BL_EXACT;
}
