/* An engine in host memory: netlib LAPACK for the kernels, malloc for device memory, and
 * faults on order. It answers the same ABI as the CUDA engine, so everything between a
 * program's call and the device is tested on any machine.
 *
 * Copies, runs and queue_free are only recorded; wait() performs them. A shim that reads
 * a slot, or fills it again, before it has waited is found out. Freed memory is poisoned.
 * The NULL queue is one queue for all threads. What lies in a live block of device memory
 * is device memory, and so on; all else is pageable.
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
#include "host_lu.h"
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
    counts.most_under_way = 0;
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

enum { LAPACK_IDS = BL_LAPACK_ROUTINES * BL_PRECISIONS };
static bl_fn *routines[LAPACK_IDS];

static bool load_netlib(char *why, size_t len)
{
    void *lapack = dlopen("liblapack.so.3", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!lapack) {
        snprintf(why, len, "%s", dlerror());
        return false;
    }
    for (unsigned id = 0; id < LAPACK_IDS; id++) {
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

static int64_t call(enum bl_routine_id routine, enum bl_precision precision,
                    struct arguments *x)
{
    unsigned id = bl_id(routine, precision);
    pack_arguments(x, id);
    bl_call_lapack(routines[id], x->count, x->v);
    return x->info;
}

static void copy_matrix(int64_t n, size_t element, const char *a, int64_t lda, char *x,
                        int64_t ldx)
{
    for (int64_t j = 0; j < n && x != a; j++)
        memcpy(x + (size_t)(j * ldx) * element, a + (size_t)(j * lda) * element,
               (size_t)n * element);
}

/* GETRI takes the block size that the job allows; the others take netlib's. */
static int64_t getri_block(const struct bl_job *job)
{
    return job->routine == BL_GETRI ? bl_max(job->block, 1) : 64;
}

/* One problem through netlib, and through src/host_lu.c where netlib has nothing. IPIV
 * and INFO of 64-bit jobs go through 32-bit copies. */
static void solve(const struct bl_job *job, int64_t i)
{
    enum bl_routine_id r = job->routine;
    enum bl_precision p = job->precision;
    struct bl_item it = {i, job->m, job->n, job->a.ld, job->x.ld};
    if (job->items)
        it = job->items[i];
    i = it.index;
    size_t element = bl_element(p), integer = (size_t)job->int_size;
    size_t real = p == BL_C || p == BL_Z ? element / 2 : element;
    int64_t pivots = bl_min(it.m, it.n);
    int32_t *narrow = malloc(((size_t)pivots + 1) * sizeof *narrow);
    char *theirs = item(&job->ipiv, i, integer), *info = item(&job->info, i, integer);
    char *a = item(&job->a, i, element), *inverse = item(&job->x, i, element);
    for (int64_t k = 0; k < pivots; k++)
        narrow[k] = !bl_reads(r, 'p') ? (int32_t)k + 1
                    : integer == 8    ? (int32_t)((int64_t *)theirs)[k]
                                      : ((int32_t *)theirs)[k];
    struct arguments x = {
        .uplo = job->uplo,
        .trans = job->trans,
        .m = (int32_t)it.m,
        .n = (int32_t)it.n,
        .nrhs = (int32_t)job->nrhs,
        .lda = (int32_t)it.lda,
        .ldb = (int32_t)job->b.ld,
        .lwork = (int32_t)bl_max(1, getri_block(job) * it.n),
        .a = a,
        .b = item(&job->b, i, element),
        .ipiv = narrow,
        .work = job->work,
    };
    int64_t result;
    switch (r) {
    case BL_GETRFNP:
        result = bl_host_getrfnp(p, it.m, it.n, a, it.lda);
        break;
    case BL_GETRFSP:
        result = bl_host_getrfsp(p, it.m, it.n, a, it.lda, narrow, 4, job->work);
        break;
    case BL_GETRSNP:
        result = call(BL_GETRS, p, &x);
        break;
    case BL_GETRI_OOP:
    case BL_GEINV:
        copy_matrix(it.n, element, a, it.lda, inverse, it.ldx);
        x.a = inverse;
        x.lda = (int32_t)it.ldx;
        result = r == BL_GEINV ? call(BL_GETRF, p, &x) : 0;
        if (result == 0)
            result = call(BL_GETRI, p, &x);
        break;
    case BL_GEDET:
        copy_matrix(it.n, element, a, it.lda, job->work, it.n);
        x.a = job->work;
        x.lda = (int32_t)bl_max(1, it.n);
        result = call(BL_GETRF, p, &x);
        bl_host_det(p, it.n, job->work, it.n, narrow, 4, item(&job->phase, i, element),
                    item(&job->logabs, i, real));
        break;
    default:
        result = call(r, p, &x);
    }
    for (int64_t k = 0; bl_writes(r, 'p') && k < pivots; k++)
        if (integer == 8)
            ((int64_t *)theirs)[k] = narrow[k];
        else
            ((int32_t *)theirs)[k] = narrow[k];
    if (integer == 8)
        *(int64_t *)info = result;
    else
        *(int32_t *)info = (int32_t)result;
    free(narrow);
}

static void hand_back(const struct bl_job *job, int64_t i)
{
    void *info = item(&job->info, i, (size_t)job->int_size);
    if (job->int_size == 8)
        *(int64_t *)info = BL_INFO_REDO;
    else
        *(int32_t *)info = BL_INFO_REDO;
}

static size_t own_workspace(const struct bl_job *job)
{
    size_t element = bl_element(job->precision);
    switch (job->routine) {
    case BL_GETRI:
    case BL_GETRI_OOP:
    case BL_GEINV:
        return (size_t)bl_max(1, getri_block(job) * job->n) * element; /* WORK(1) */
    case BL_GEDET:
        return (size_t)(job->n * job->n) * element;
    case BL_GETRFSP:
        return (size_t)job->m * element;
    default:
        return 0;
    }
}

static size_t workspace(const struct bl_job *job)
{
    pthread_mutex_lock(&lock);
    size_t more = job->lean ? 0 : order.work;
    more += job->a.array ? 0 : order.strided_work;
    pthread_mutex_unlock(&lock);
    return own_workspace(job) + more;
}

/* ---- memory ---- */

#define POISON 0xa5
#define HEADER 256 /* before a block, keeps the alignment */

struct block {
    struct block *next, **link; /* all live blocks */
    enum bl_memory kind;
    uint64_t bytes;
};
static struct block *blocks;

static enum bl_status allocate(enum mock_step s, enum bl_memory kind, size_t bytes,
                               void **p)
{
    enum bl_status status = step(s);
    if (status != BL_OK)
        return status;
    bool device = kind == BL_MEMORY_DEVICE;
    pthread_mutex_lock(&lock);
    bool full = device && order.memory && counts.held + bytes > order.memory;
    struct block *b =
        full ? NULL : aligned_alloc(HEADER, HEADER + ((bytes + 255) & ~255ul));
    if (b) {
        *b = (struct block){blocks, &blocks, kind, bytes};
        if (blocks)
            blocks->link = &b->next;
        blocks = b;
        if (device)
            counts.held += bytes;
    }
    pthread_mutex_unlock(&lock);
    if (!b)
        return BL_NOMEM;
    *p = (char *)b + HEADER;
    memset(*p, POISON, bytes);
    return BL_OK;
}

static enum bl_status give_back(void *p)
{
    struct block *b = (struct block *)((char *)p - HEADER);
    memset(p, POISON, b->bytes);
    pthread_mutex_lock(&lock);
    *b->link = b->next;
    if (b->next)
        b->next->link = b->link;
    if (b->kind == BL_MEMORY_DEVICE)
        counts.held -= b->bytes;
    pthread_mutex_unlock(&lock);
    free(b);
    return BL_OK;
}

static enum bl_status device_alloc(size_t bytes, void **p)
{
    return allocate(MOCK_DEVICE_ALLOC, BL_MEMORY_DEVICE, bytes, p);
}

static enum bl_status host_alloc(size_t bytes, void **p)
{
    return allocate(MOCK_HOST_ALLOC, BL_MEMORY_PINNED, bytes, p);
}

/* The live block that has a byte, and how many it has from there on; NULL: none has.
 * Under the lock. */
static const struct block *block_of(const void *p, uint64_t *rest)
{
    const uintptr_t at = (uintptr_t)p;
    for (const struct block *b = blocks; b; b = b->next) {
        const uintptr_t from = (uintptr_t)b + HEADER;
        *rest = from + b->bytes - at;
        if (at >= from && at < from + b->bytes)
            return b;
    }
    return NULL;
}

static enum bl_status memory_kind(const void *p, enum bl_memory *kind)
{
    uint64_t rest;
    pthread_mutex_lock(&lock);
    const struct block *b = block_of(p, &rest);
    *kind = !b                                             ? BL_MEMORY_PAGEABLE
            : b->kind == BL_MEMORY_PINNED && order.managed ? BL_MEMORY_MANAGED
                                                           : b->kind;
    pthread_mutex_unlock(&lock);
    return BL_OK;
}

/* ---- the queue ---- */

enum action { COPY, RUN, FREE };
struct task {
    struct task *next;
    enum action action;
    void *to; /* FREE: what to free */
    const void *from;
    bool in;   /* a copy to the device */
    void *own; /* put()'s copy of its source, or NULL */
    size_t bytes;
    struct bl_job job;
    int hand_back; /* as the order says */
};
struct queue {
    struct task *first, **last;
    pthread_mutex_t performing; /* one drains it, others wait until that is done */
};
static uint64_t under_way; /* runs that are recorded and not performed */
static uint64_t copies_in; /* the same of copies to the device */
static struct queue null_queue = {NULL, &null_queue.first, PTHREAD_MUTEX_INITIALIZER};

static struct queue *queue_of(void *queue)
{
    return queue ? queue : &null_queue;
}

static void record(void *queue, const struct task *task)
{
    struct queue *q = queue_of(queue);
    struct task *t = malloc(sizeof *t);
    if (!t)
        abort();
    *t = *task;
    t->next = NULL;
    pthread_mutex_lock(&lock);
    *q->last = t;
    q->last = &t->next;
    under_way += t->action == RUN;
    copies_in += t->in;
    if (under_way > counts.most_under_way)
        counts.most_under_way = under_way;
    pthread_mutex_unlock(&lock);
}

/* What stands for the work on some columns of A, or rows of an upper triangle: all their
 * bits are turned, so that nothing may be copied there before they are turned back. */
static void turn_part(const struct bl_job *job, int64_t from, int64_t to)
{
    const bool rows = job->uplo == 'U';
    size_t element = bl_element(job->precision), ld = (size_t)job->a.ld * element,
           first = rows ? (size_t)from * element : 0,
           end = rows ? (size_t)to * element : ld;
    for (int64_t j = from; j < (rows ? job->n : to); j++)
        for (size_t i = first; i < end; i++) {
            char *c = (char *)job->a.p + (size_t)j * ld + i;
            *c = (char)~*c;
        }
}

/* What has been recorded, in its order; what is not performed gives its memory back all
 * the same. */
static void drain(void *queue, bool perform)
{
    struct queue *q = queue_of(queue);
    pthread_mutex_lock(&q->performing);
    pthread_mutex_lock(&lock);
    struct task *t = q->first, *next;
    q->first = NULL;
    q->last = &q->first;
    for (const struct task *r = t; r; r = r->next) {
        under_way -= r->action == RUN;
        copies_in -= r->in;
    }
    pthread_mutex_unlock(&lock);
    for (; t; t = next) {
        next = t->next;
        if (t->action == FREE)
            give_back(t->to);
        else if (perform && t->action == COPY)
            memcpy(t->to, t->from, t->bytes);
        else if (perform) {
            turn_part(&t->job, 0, t->job.from);
            for (int64_t i = 0; i < t->job.batch; i++) {
                solve(&t->job, i);
                if (t->hand_back && (i + 1) % t->hand_back == 0)
                    hand_back(&t->job, i);
            }
        }
        free(t->own);
        free(t);
    }
    pthread_mutex_unlock(&q->performing);
}

static enum bl_status queue_open(void **queue)
{
    enum bl_status status = step(MOCK_QUEUE);
    if (status != BL_OK)
        return status;
    struct queue *q = malloc(sizeof *q);
    *q = (struct queue){NULL, &q->first, PTHREAD_MUTEX_INITIALIZER};
    *queue = q;
    return BL_OK;
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

/* What is in the other queue is done at once. */
static enum bl_status follow(void *queue, void *other)
{
    (void)queue;
    return wait_queue(other);
}

static enum bl_status copy(void *queue, enum mock_step s, void *to, const void *from,
                           size_t bytes)
{
    enum bl_status status = step(s);
    if (status == BL_OK)
        record(queue,
               &(struct task){
                   .to = to, .from = from, .bytes = bytes, .in = s == MOCK_COPY_IN});
    return status;
}

static enum bl_status copy_in(void *queue, void *d, const void *h, size_t bytes)
{
    return copy(queue, MOCK_COPY_IN, d, h, bytes);
}

static enum bl_status copy_out(void *queue, void *h, const void *d, size_t bytes)
{
    return copy(queue, MOCK_COPY_OUT, h, d, bytes);
}

static enum bl_status copy_columns(void *queue, enum mock_step s, char *to,
                                   size_t to_pitch, const char *from, size_t from_pitch,
                                   size_t bytes, size_t count)
{
    enum bl_status status = step(s);
    for (size_t i = 0; i < count && status == BL_OK; i++)
        record(queue, &(struct task){.to = to + i * to_pitch,
                                     .from = from + i * from_pitch,
                                     .bytes = bytes,
                                     .in = s == MOCK_COPY_IN});
    return status;
}

static enum bl_status copy_in_columns(void *queue, void *d, size_t pitch, const void *h,
                                      size_t h_pitch, size_t bytes, size_t count)
{
    return copy_columns(queue, MOCK_COPY_IN, d, pitch, h, h_pitch, bytes, count);
}

static enum bl_status copy_out_columns(void *queue, void *h, const void *d, size_t pitch,
                                       size_t bytes, size_t count)
{
    return copy_columns(queue, MOCK_COPY_OUT, h, bytes, d, pitch, bytes, count);
}

static enum bl_status put(void *queue, void *d, const void *h, size_t bytes)
{
    enum bl_status status = step(MOCK_PUT);
    if (status != BL_OK)
        return status;
    void *own = malloc(bytes + 1);
    memcpy(own, h, bytes);
    record(queue, &(struct task){.to = d, .from = own, .own = own, .bytes = bytes});
    return BL_OK;
}

static enum bl_status queue_alloc(void *queue, size_t bytes, void **p)
{
    (void)queue;
    return allocate(MOCK_QUEUE_ALLOC, BL_MEMORY_DEVICE, bytes, p);
}

static enum bl_status queue_free(void *queue, void *p)
{
    record(queue, &(struct task){.action = FREE, .to = p});
    return BL_OK;
}

static enum bl_status reserve(size_t bytes)
{
    void *p = NULL;
    enum bl_status status = queue_alloc(NULL, bytes, &p);
    if (status != BL_OK)
        return status;
    give_back(p);
    pthread_mutex_lock(&lock);
    counts.reserved = (uint64_t)bl_max((int64_t)counts.reserved, (int64_t)bytes);
    pthread_mutex_unlock(&lock);
    return BL_OK;
}

static enum bl_status release(void)
{
    pthread_mutex_lock(&lock);
    counts.reserved = 0;
    pthread_mutex_unlock(&lock);
    return BL_OK;
}

/* Powers of two of the larger side, as the CUDA engine's. */
static int bucket(const struct bl_job *job, int64_t m, int64_t n)
{
    (void)job;
    int b = 0;
    while (b < BL_BUCKETS - 1 && ((int64_t)1 << b) < bl_max(m, n))
        b++;
    return b;
}

static int64_t part(const struct bl_job *job, int64_t from)
{
    bool lu = job->routine == BL_GETRF || job->routine == BL_GESV;
    bool cholesky = job->routine == BL_POTRF || job->routine == BL_POSV;
    pthread_mutex_lock(&lock);
    int64_t columns = order.part;
    pthread_mutex_unlock(&lock);
    bool takes = columns && job->batch == 1 && (lu || cholesky);
    return takes ? bl_min(job->n, from + columns) : job->n;
}

/* Whether its work space ends in the block of memory where it begins. */
static bool has_workspace(const struct bl_job *job)
{
    const size_t bytes = workspace(job);
    uint64_t rest;
    pthread_mutex_lock(&lock);
    const bool has = bytes == 0 || (block_of(job->work, &rest) && bytes <= rest);
    pthread_mutex_unlock(&lock);
    return has;
}

static enum bl_status run(const struct bl_job *job, void *queue)
{
    enum bl_status status = step(MOCK_RUN);
    if (status == BL_OK && !has_workspace(job))
        status = BL_FAULT;
    if (status != BL_OK)
        return status;
    pthread_mutex_lock(&lock);
    if (job->to && job->to < job->n) {
        counts.parts++;
        pthread_mutex_unlock(&lock);
        turn_part(job, job->from, job->to); /* now: they must be there */
        return BL_OK;
    }
    counts.problems += (uint64_t)job->batch;
    counts.fast += job->arithmetic == BL_FAST ? (uint64_t)job->batch : 0;
    if (job->to && copies_in > 0) { /* the last part; tests of parts use one thread */
        pthread_mutex_unlock(&lock);
        return BL_FAULT;
    }
    bool skip = order.lose_launch;
    int again = job->redo ? order.hand_back : 0;
    pthread_mutex_unlock(&lock);
    if (!skip)
        record(queue, &(struct task){.action = RUN, .job = *job, .hand_back = again});
    return BL_OK;
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
    .device_free = give_back,
    .host_alloc = host_alloc,
    .host_free = give_back,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy_in_columns = copy_in_columns,
    .copy_out_columns = copy_out_columns,
    .workspace = workspace,
    .queue_alloc = queue_alloc,
    .queue_free = queue_free,
    .reserve = reserve,
    .release = release,
    .put = put,
    .bucket = bucket,
    .part = part,
    .run = run,
    .follow = follow,
    .wait = wait_queue,
    .memory_kind = memory_kind,
};
