/* Batches on device memory: nothing is staged, and nothing is waited for where the
 * program has set a stream.
 *
 * Called by batch.c inside the guard. What a job needs beside its data (items, arrays of
 * pointers that lie in host memory, work space) is allocated in the order of the stream
 * and filled by launches, so a call can be captured into a graph. There is no LAPACK to
 * fall back to: INFO is only written by the kernels.
 */
#include <string.h>

#include "batchlapack.h"
#include "bl.h"
#include "guard.h"

/* ---- the calling thread's stream and status ---- */

static _Thread_local BL_FAST_TLS void *stream;
static _Thread_local BL_FAST_TLS enum bl_status last_status;

BL_EXPORT void *batchlapack_set_stream(void *s)
{
    void *before = stream;
    stream = s;
    return before;
}

void *bl_stream(void)
{
    return stream;
}

void bl_set_status(enum bl_status status)
{
    last_status = status;
}

BL_EXPORT int batchlapack_status(void)
{
    return (int)last_status;
}

BL_EXPORT const char *batchlapack_status_text(int status)
{
    static const char *const text[] = {
#define S(name, text) text,
#include "status.def"
#undef S
        "bad argument"};
    return status >= 0 && status <= (int)BL_BAD_ARGUMENT ? text[status]
                                                         : "unknown status";
}

/* ---- workspace of the process ---- */

/* The engine, started for this: the program is going to use it. */
static enum bl_status
with_engine(enum bl_status (*call)(const struct bl_engine *, size_t), size_t bytes)
{
    struct bl_guard guard;
    enum bl_reason why;
    enum bl_status status = BL_UNSUPPORTED;
    bl_guard_enter(&guard);
    const struct bl_engine *e =
        bl_config()->excluded ? NULL : bl_engine_for(0, true, &why);
    if (e)
        status = call(e, bytes);
    bl_guard_leave(&guard);
    return status;
}

static enum bl_status reserve(const struct bl_engine *e, size_t bytes)
{
    return e->reserve(bytes);
}

static enum bl_status release(const struct bl_engine *e, size_t bytes)
{
    (void)bytes;
    return e->release();
}

BL_EXPORT int batchlapack_reserve(size_t bytes)
{
    return (int)with_engine(reserve, bytes);
}

BL_EXPORT int batchlapack_release(void)
{
    return bl_engine_now() ? (int)with_engine(release, 0) : (int)BL_OK;
}

/* ---- a call ---- */

#define ALIGNMENT ((size_t)256)

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

/* What goes to the device beside the data; `extra` is its place there. */
struct extra {
    size_t items, pointers, work; /* bytes; pointers: of one array */
    bool host[3];                 /* are A's, X's and IPIV's arrays in host memory? */
    char *at;
};

static bool in_host_memory(const struct bl_engine *e, const void *p)
{
    enum bl_memory kind = BL_MEMORY_PAGEABLE;
    return p && e->memory_kind(p, &kind) == BL_OK &&
           (kind == BL_MEMORY_PAGEABLE || kind == BL_MEMORY_PINNED);
}

static size_t measure(struct extra *x, const struct bl_engine *e,
                      const struct bl_job *jobs, int count)
{
    void *const *arrays[] = {jobs->a.array, jobs->x.array, jobs->ipiv.array};
    int64_t problems = 0;
    for (int i = 0; i < count; i++) {
        problems += jobs[i].batch;
        x->work = (size_t)bl_max((int64_t)x->work, (int64_t)e->workspace(&jobs[i]));
    }
    x->items = jobs->items ? aligned((size_t)problems * sizeof(struct bl_item)) : 0;
    x->pointers = aligned((size_t)problems * sizeof(void *));
    size_t total = aligned(x->work) + x->items;
    for (int i = 0; i < 3; i++) {
        x->host[i] = in_host_memory(e, arrays[i]);
        total += x->host[i] ? x->pointers : 0;
    }
    return total;
}

/* The same of jobs that do with as little work space as they can, from now on. */
static size_t measure_lean(struct extra *x, const struct bl_engine *e,
                           struct bl_job *jobs, int count)
{
    for (int i = 0; i < count; i++)
        jobs[i].lean = 1;
    *x = (struct extra){.at = NULL};
    return measure(x, e, jobs, count);
}

/* Copy them over and let the jobs point there. */
static enum bl_status bring(const struct extra *x, const struct bl_engine *e,
                            struct bl_job *jobs, int count)
{
    struct bl_operand *const first[] = {&jobs->a, &jobs->x, &jobs->ipiv};
    char *at = x->at + aligned(x->work);
    const struct bl_item *items = jobs->items;
    int64_t problems = 0;
    enum bl_status status = BL_OK;
    for (int i = 0; i < count; i++) {
        jobs[i].work = x->at;
        if (items)
            jobs[i].items = (struct bl_item *)at + problems;
        problems += jobs[i].batch;
    }
    if (items)
        status = e->put(stream, at, items, (size_t)problems * sizeof *items);
    at += x->items;
    for (int k = 0; k < 3 && status == BL_OK; k++) {
        if (!x->host[k])
            continue;
        status = e->put(stream, at, first[k]->array, (size_t)problems * sizeof(void *));
        for (int i = 0; i < count; i++) {
            struct bl_operand *of[] = {&jobs[i].a, &jobs[i].x, &jobs[i].ipiv};
            of[k]->array = (void *const *)at;
        }
        at += x->pointers;
    }
    return status;
}

enum bl_status bl_batch_on_device(const struct bl_engine *e, struct bl_job *jobs,
                                  int count)
{
    struct extra x = {.at = NULL};
    size_t bytes = measure(&x, e, jobs, count);
    enum bl_status status = BL_OK, last;
    void *p = NULL;
    if (bytes)
        status = e->queue_alloc(stream, bytes, &p);
    const size_t less = status == BL_NOMEM ? measure_lean(&x, e, jobs, count) : bytes;
    if (less < bytes)
        status = e->queue_alloc(stream, less, &p);
    if (status != BL_OK)
        return status;
    x.at = p;
    status = bring(&x, e, jobs, count);
    for (int i = 0; i < count && status == BL_OK; i++)
        status = e->run(&jobs[i], stream);
    last = p ? e->queue_free(stream, p) : BL_OK;
    status = status == BL_OK ? last : status;
    if (status == BL_OK && !stream)
        status = e->wait(NULL);
    return status;
}
