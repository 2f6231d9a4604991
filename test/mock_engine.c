/* An engine in host memory: netlib LAPACK for the kernels, malloc for device memory, and
 * faults on order. It answers the same ABI as the CUDA engine, so everything between a
 * program's call and the device is tested on any machine.
 *
 * Copies and runs are only recorded; wait() performs them. A shim that reads a slot, or
 * fills it again, before it has waited is found out. Freed memory is poisoned.
 *
 * Tests order faults through mock_set(), which they find with dlsym. BL_MOCK_OPEN_MS
 * makes the start-up take so long.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arguments.h"
#include "bl.h"
#include "mock_engine.h"

/* ---- faults on order and counts ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mock_order order = {.step = MOCK_STEPS};
static struct mock_counts counts;

BL_EXPORT void mock_set(const struct mock_order *o)
{
    pthread_mutex_lock(&lock);
    order = *o;
    memset(counts.step, 0, sizeof counts.step);
    pthread_mutex_unlock(&lock);
}

BL_EXPORT void mock_read(struct mock_counts *c)
{
    pthread_mutex_lock(&lock);
    *c = counts;
    pthread_mutex_unlock(&lock);
}

/* The k-th time this step is taken, and from then on if the order says so, it fails. */
static enum bl_status step(enum mock_step s)
{
    pthread_mutex_lock(&lock);
    enum bl_status status = BL_OK;
    uint64_t k = ++counts.step[s];
    if (order.step == s && (k == order.at || (order.always && k > order.at))) {
        status = order.status;
        counts.faults++;
    }
    unsigned sleep_us = order.slow_us;
    pthread_mutex_unlock(&lock);
    if (sleep_us)
        usleep(sleep_us);
    return status;
}

/* ---- netlib ---- */

static bl_fn *routines[BL_IDS];

static bool load_netlib(char *why, size_t len)
{
    void *lapack = dlopen("liblapack.so.3", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!lapack) {
        snprintf(why, len, "%s", dlerror());
        return false;
    }
    for (unsigned id = 0; id < BL_IDS; id++) {
        char name[BL_SYMBOL_MAX];
        snprintf(name, sizeof name, "%c%s_", bl_prefix(id), bl_row(id)->name);
        void *symbol = dlsym(lapack, name);
        if (!symbol) {
            snprintf(why, len, "no %s in liblapack.so.3", name);
            return false;
        }
        memcpy(&routines[id], &symbol, sizeof symbol);
    }
    return true;
}

static char *item(const struct bl_operand *o, int64_t i, size_t element)
{
    return o->array ? o->array[i] : (char *)o->p + (size_t)(i * o->stride) * element;
}

/* One problem through netlib. IPIV and INFO of 64-bit jobs go through 32-bit copies. */
static void solve(const struct bl_job *job, int64_t i)
{
    unsigned id = bl_id(job->routine, job->precision);
    size_t element = bl_element(job->precision), integer = (size_t)job->int_size;
    int64_t pivots = bl_min(job->m, job->n);
    int32_t *narrow = malloc(((size_t)pivots + 1) * sizeof *narrow);
    char *theirs = item(&job->ipiv, i, integer), *info = item(&job->info, i, integer);
    if (bl_reads(job->routine, 'p'))
        for (int64_t k = 0; k < pivots; k++)
            narrow[k] =
                integer == 8 ? (int32_t)((int64_t *)theirs)[k] : ((int32_t *)theirs)[k];
    struct arguments x = {
        .uplo = job->uplo,
        .trans = job->trans,
        .m = (int32_t)job->m,
        .n = (int32_t)job->n,
        .nrhs = (int32_t)job->nrhs,
        .lda = (int32_t)job->a.ld,
        .ldb = (int32_t)job->b.ld,
        .lwork = (int32_t)(job->block ? job->block * job->n : bl_max(1, job->n)),
        .a = item(&job->a, i, element),
        .b = item(&job->b, i, element),
        .ipiv = narrow,
        .work = job->work,
    };
    pack_arguments(&x, id);
    bl_call_lapack(routines[id], x.count, x.v);
    for (int64_t k = 0; bl_writes(job->routine, 'p') && k < pivots; k++)
        if (integer == 8)
            ((int64_t *)theirs)[k] = narrow[k];
        else
            ((int32_t *)theirs)[k] = narrow[k];
    if (integer == 8)
        *(int64_t *)info = x.info;
    else
        *(int32_t *)info = x.info;
    free(narrow);
}

/* ---- the queue ---- */

struct task {
    struct task *next;
    void *to;
    const void *from;
    size_t bytes;
    struct bl_job job; /* when to is NULL */
};
struct queue {
    struct task *first, **last;
};

static struct task *record(struct queue *q)
{
    struct task *t = calloc(1, sizeof *t);
    if (!t)
        abort();
    *q->last = t;
    q->last = &t->next;
    return t;
}

static enum bl_status queue_open(void **queue)
{
    enum bl_status status = step(MOCK_QUEUE);
    if (status != BL_OK)
        return status;
    struct queue *q = calloc(1, sizeof *q);
    q->last = &q->first;
    *queue = q;
    return BL_OK;
}

static void drain(struct queue *q, bool perform)
{
    while (q->first) {
        struct task *t = q->first;
        q->first = t->next;
        if (perform && t->to)
            memcpy(t->to, t->from, t->bytes);
        else if (perform)
            for (int64_t i = 0; i < t->job.batch; i++)
                solve(&t->job, i);
        free(t);
    }
    q->last = &q->first;
}

static enum bl_status queue_close(void *queue)
{
    drain(queue, false);
    free(queue);
    return BL_OK;
}

static enum bl_status wait_queue(void *queue)
{
    enum bl_status status = step(MOCK_WAIT);
    drain(queue, status == BL_OK);
    return status;
}

static enum bl_status copy(void *queue, void *to, const void *from, size_t bytes)
{
    struct task *t = record(queue);
    t->to = to;
    t->from = from;
    t->bytes = bytes;
    return BL_OK;
}

static enum bl_status copy_in(void *queue, void *d, const void *h, size_t bytes)
{
    enum bl_status status = step(MOCK_COPY_IN);
    return status == BL_OK ? copy(queue, d, h, bytes) : status;
}

static enum bl_status copy_out(void *queue, void *h, const void *d, size_t bytes)
{
    enum bl_status status = step(MOCK_COPY_OUT);
    return status == BL_OK ? copy(queue, h, d, bytes) : status;
}

static enum bl_status run(const struct bl_job *job, void *queue)
{
    enum bl_status status = step(MOCK_RUN);
    if (status != BL_OK)
        return status;
    bool skip;
    pthread_mutex_lock(&lock);
    counts.problems += (uint64_t)job->batch;
    skip = order.lose_launch;
    pthread_mutex_unlock(&lock);
    if (!skip)
        record(queue)->job = *job;
    return BL_OK;
}

/* ---- memory ---- */

#define POISON 0xa5
#define HEADER 256 /* keeps the alignment; holds the size */

static enum bl_status allocate(enum mock_step s, bool device, size_t bytes, void **p)
{
    enum bl_status status = step(s);
    if (status != BL_OK)
        return status;
    pthread_mutex_lock(&lock);
    bool full = device && order.memory && counts.held + bytes > order.memory;
    if (!full && device)
        counts.held += bytes;
    pthread_mutex_unlock(&lock);
    char *block = full ? NULL : aligned_alloc(HEADER, HEADER + ((bytes + 255) & ~255ul));
    if (!block)
        return BL_NOMEM;
    *(uint64_t *)block = bytes;
    memset(block + HEADER, POISON, bytes);
    *p = block + HEADER;
    return BL_OK;
}

static void release(void *p, bool device)
{
    char *block = (char *)p - HEADER;
    uint64_t bytes = *(uint64_t *)block;
    memset(p, POISON, bytes);
    pthread_mutex_lock(&lock);
    if (device)
        counts.held -= bytes;
    pthread_mutex_unlock(&lock);
    free(block);
}

static enum bl_status device_alloc(size_t bytes, void **p)
{
    return allocate(MOCK_DEVICE_ALLOC, true, bytes, p);
}

static enum bl_status device_free(void *p)
{
    release(p, true);
    return BL_OK;
}

static enum bl_status host_alloc(size_t bytes, void **p)
{
    return allocate(MOCK_HOST_ALLOC, false, bytes, p);
}

static enum bl_status host_free(void *p)
{
    release(p, false);
    return BL_OK;
}

static enum bl_status memory_kind(const void *p, enum bl_memory *kind)
{
    (void)p;
    *kind = BL_MEMORY_PAGEABLE;
    return BL_OK;
}

static size_t workspace(const struct bl_job *job)
{
    return job->routine == BL_GETRI
               ? (size_t)(bl_max(job->block, 1) * job->n) * bl_element(job->precision)
               : 0;
}

static enum bl_status open_engine(int ordinal, struct bl_device *device, char *why,
                                  size_t len)
{
    const char *ms = getenv("BL_MOCK_OPEN_MS");
    if (ms)
        usleep((unsigned)atoi(ms) * 1000);
    if (!load_netlib(why, len))
        return BL_UNSUPPORTED;
    snprintf(device->name, sizeof device->name, "mock device %d (netlib in host memory)",
             ordinal);
    device->ordinal = ordinal;
    device->devices = 1;
    device->memory = (uint64_t)1 << 34;
    return BL_OK;
}

BL_EXPORT const struct bl_engine bl_engine = {
    .abi = BL_ENGINE_ABI,
    .size = sizeof(struct bl_engine),
    .name = "mock",
    .open = open_engine,
    .queue_open = queue_open,
    .queue_close = queue_close,
    .device_alloc = device_alloc,
    .device_free = device_free,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .workspace = workspace,
    .run = run,
    .wait = wait_queue,
    .memory_kind = memory_kind,
};
