/* A call's way: decode it, decide where it runs, run it or forward it, count it.
 *
 * Called by every exported entry. A call that comes back in from LAPACK itself (netlib's
 * dgesv calls our dgetrf_) is nested and goes straight on. Whatever fails on the GPU's
 * side ends in the program's own LAPACK with the caller's data as it was.
 */
#include <fenv.h>
#include <string.h>

#include "batchlapack.h"
#include "bl.h"
#include "guard.h"

/* ---- the mode of this thread ---- */

static _Thread_local BL_FAST_TLS int thread_mode = BATCHLAPACK_MODE_DEFAULT;

BL_EXPORT int batchlapack_set_mode(int mode)
{
    int before = thread_mode;
    if (mode < BATCHLAPACK_MODE_DEFAULT || mode > BATCHLAPACK_MODE_CPU)
        return -2;
    thread_mode = mode;
    return before;
}

BL_EXPORT void batchlapack_set_mode_(const int *mode);
BL_EXPORT void batchlapack_set_mode_(const int *mode)
{
    batchlapack_set_mode(*mode);
}

BL_EXPORT const char *batchlapack_version(void)
{
    return PACKAGE_VERSION;
}

/* ---- deciding ---- */

int bl_mode(void)
{
    return thread_mode == BATCHLAPACK_MODE_DEFAULT ? (int)bl_option(BL_OPTION_MODE)
                                                   : thread_mode;
}

bool bl_worthwhile(const struct bl_call *c, int mode, double saving, enum bl_reason *why)
{
    if (c->query)
        *why = BL_WHY_QUERY;
    else if (!c->legal)
        *why = BL_WHY_ILLEGAL;
    else if (c->empty)
        *why = BL_WHY_EMPTY;
    else if (mode == BATCHLAPACK_MODE_CPU)
        *why = BL_WHY_MODE;
    else if (bl_config()->excluded)
        *why = BL_WHY_EXCLUDED;
    else if (mode == BATCHLAPACK_MODE_AUTO && saving <= 0)
        *why = BL_WHY_SMALL;
    else if (fegetround() != FE_TONEAREST)
        *why = BL_WHY_ROUNDING;
    else
        return true;
    return false;
}

/* WORK(1), in the routine's own precision. */
static void set_work(const struct bl_call *c)
{
    if (!c->has_work)
        return;
    int64_t info = c->wide ? *(int64_t *)c->info : *(int32_t *)c->info;
    double size = (double)bl_work_size(c, info);
    float single = (float)size;
    enum bl_precision p = bl_precision(c->id);
    size_t element = bl_element(p);
    bool is_double = p == BL_D || p == BL_Z;
    memset(c->work, 0, element);
    memcpy(c->work, is_double ? (void *)&size : (void *)&single,
           is_double ? sizeof size : sizeof single);
}

static enum bl_reason run_on(const struct bl_engine *engine, const struct bl_call *c,
                             struct bl_traffic *traffic)
{
    struct bl_job job;
    int64_t done;
    bl_job_of_call(&job, c);
    enum bl_status status = bl_pipeline(engine, &job, &done, traffic);
    if (status != BL_OK)
        return bl_engine_failed(status);
    bl_engine_succeeded();
    if (traffic->again)
        return BL_WHY_NOTFINITE;
    set_work(c);
    return BL_ON_GPU;
}

/* On the engine, or a reason why not; then nothing of the caller's was written. */
static enum bl_reason offload(const struct bl_call *c, struct bl_traffic *traffic)
{
    int mode = bl_mode();
    bool weighed = mode == BATCHLAPACK_MODE_AUTO && c->legal && !c->query && !c->empty;
    double saving = weighed ? bl_saving(c) : 0;
    enum bl_reason where;
    if (!bl_worthwhile(c, mode, saving, &where) ||
        !bl_engine_due(saving, mode == BATCHLAPACK_MODE_GPU, &where))
        return where;
    struct bl_guard guard;
    bl_guard_enter(&guard);
    const struct bl_engine *engine = bl_engine_start(&where);
    if (engine)
        where = run_on(engine, c, traffic);
    bl_guard_leave(&guard);
    return where;
}

/* ---- one call ---- */

static void run(const struct bl_call *c, unsigned spelling, void **v, struct bl_target t)
{
    bool counted = bl_config()->counted;
    uint64_t begin = counted ? bl_now() : 0;
    struct bl_traffic traffic = {0};
    enum bl_reason where = offload(c, &traffic);
    if (where != BL_ON_GPU)
        bl_forward(t, c->id, spelling, v);
    if (counted)
        bl_stats_call(c, where, bl_now() - begin, &traffic);
}

/* The frame is left on every way out that runs cleanups: return, throw, cancellation. */
static void outer(const struct bl_call *c, unsigned spelling, void **v,
                  struct bl_target t)
{
    __attribute__((cleanup(bl_leave))) struct bl_frame here = {NULL, 0};
    /* An illegal call ends in xerbla, which may never return: no frame to nest in. */
    if (c->legal)
        bl_enter(&here);
    run(c, spelling, v, t);
}

/* The smallest calls, where every nanosecond shows, need not be decoded: they and what
 * LAPACK calls for them are forwarded, whatever else they are. */
static bool goes_straight_on(unsigned id, bool wide, void *const *v, bool reference)
{
    if (bl_config()->counted || bl_mode() == BATCHLAPACK_MODE_GPU ||
        !bl_hopeless(id, reference, wide, v))
        return false;
    bl_pipeline_count_call();
    return true;
}

void bl_dispatch(unsigned id, unsigned spelling, void **v, const void *caller)
{
    struct bl_call c;
    struct bl_target t = bl_find(id, spelling, caller);
    bool wide = (spelling & BL_WIDE) || t.wide;
    if (goes_straight_on(id, wide, v, t.reference)) {
        bl_forward(t, id, spelling, v);
        return;
    }
    if (bl_nested(__builtin_frame_address(0))) {
        if (bl_config()->counted)
            bl_stats_nested(id);
        bl_forward(t, id, spelling, v);
        return;
    }
    bl_pipeline_count_call();
    bl_decode(&c, id, wide, v);
    c.reference = t.reference;
    outer(&c, spelling, v, t);
}
