/* A batched call's way: decode it, look where its data is and decide, run it, count it.
 *
 * Called by every batched entry. Data on the device goes to batch_device.c; data in host
 * memory through the pipeline where the GPU is ahead, and to the program's own LAPACK on
 * our workers (batch_cpu.c) where it is not or where the GPU's side failed: the matrices
 * that are not done by then are as they were. A bad argument ends in the program's xerbla
 * and nothing is written.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "batchlapack.h"
#include "bl.h"
#include "guard.h"

struct batch {
    unsigned id, spelling;
    bool wide;
    void *const *v;
    const void *caller;
    int64_t groups;
    struct bl_call one, *group; /* group: `groups` of them, &one for a strided call */
    struct bl_call sum;         /* the whole, for the decision and the account */
    unsigned bad;               /* position of the first bad argument, from 1 */
    uint64_t begin;             /* when the call came, where calls are counted */
};

static bool has_groups(const struct batch *b)
{
    return strchr(bl_row(b->id)->args, 'g') != NULL;
}

/* ---- bad arguments ---- */

/* The program's XERBLA, as a LAPACK of its own would find it. */
static void report(const struct batch *b)
{
    char name[BL_SYMBOL_MAX], *end = name;
    void (*xerbla)(const char *, const int64_t *, size_t) = NULL;
    const int64_t position = b->bad; /* a 32-bit reader finds it too */
    struct bl_guard guard;
    *end++ = (char)toupper(bl_prefix(b->id));
    for (const char *s = bl_row(b->id)->name; *s; s++)
        *end++ = (char)toupper((unsigned char)*s);
    *end = 0;
    struct bl_target t =
        bl_find(bl_id(BL_ROW_GETRF, bl_precision(b->id)), b->spelling, b->caller);
    bl_guard_enter(&guard);
    bl_loader_lock();
    void *symbol = b->spelling & BL_WIDE ? dlsym(RTLD_DEFAULT, "xerbla_64_") : NULL;
    symbol = symbol ? symbol : dlsym(RTLD_DEFAULT, "xerbla_");
    symbol = symbol ? symbol : bl_beside(t.fn, "xerbla_");
    bl_loader_unlock();
    bl_guard_leave(&guard);
    bl_set_status(BL_BAD_ARGUMENT);
    memcpy(&xerbla, &symbol, sizeof xerbla);
    if (xerbla)
        xerbla(name, &position, (size_t)(end - name));
    else
        bl_say("on entry to %s parameter number %u had an illegal value", name, b->bad);
}

/* ---- decoding ---- */

/* Scalars and arrays of sizes have to be there before they can be looked at. */
static unsigned first_null(const struct batch *b)
{
    const char *args = bl_row(b->id)->args;
    const char *g = strchr(args, 'g');
    if (g && !b->v[g - args])
        return (unsigned)(g - args) + 1;
    if (g && bl_group_count(b->id, b->wide, b->v) <= 0)
        return 0;
    for (unsigned i = 0; args[i]; i++)
        if (strchr("mnrutlskz", args[i]) && !b->v[i])
            return i + 1;
    return 0;
}

static void sum_up(struct batch *b)
{
    struct bl_call *sum = &b->sum;
    *sum = b->group[0];
    sum->batch = 0;
    sum->empty = true;  /* and m and n the first group's, while all are */
    double latency = 0; /* once for all groups, which run together */
    for (int64_t g = 0; g < b->groups; g++) {
        const struct bl_call *c = &b->group[g];
        sum->batch += c->batch;
        if (c->empty)
            continue;
        sum->m = sum->empty ? c->m : bl_max(sum->m, c->m);
        sum->n = sum->empty ? c->n : bl_max(sum->n, c->n);
        sum->empty = false;
        struct bl_cost cost = bl_cost(c);
        double once = bl_batch_latency(c);
        sum->cost.cpu += cost.cpu;
        sum->cost.gpu += cost.gpu - once;
        latency = once > latency ? once : latency;
        sum->operations += bl_flops(c->id, (double)c->m, (double)c->n, (double)c->nrhs) *
                           (double)c->batch;
    }
    sum->cost.gpu += latency;
}

/* False: a bad argument (b->bad) or no memory. */
static bool decode(struct batch *b)
{
    b->bad = first_null(b);
    b->sum.id = b->id; /* all that is known until it is summed up */
    if (b->bad)
        return false;
    b->groups = has_groups(b) ? bl_group_count(b->id, b->wide, b->v) : 1;
    if (b->groups < 0) {
        const char *args = bl_row(b->id)->args;
        b->bad = (unsigned)(strchr(args, 'g') - args) + 1;
        return false;
    }
    if (has_groups(b))
        b->group = malloc(((size_t)b->groups + 1) * sizeof *b->group);
    else
        b->group = &b->one;
    if (!b->group)
        return false;
    int64_t first = 0;
    bool reference =
        bl_find(bl_id(BL_ROW_GETRF, bl_precision(b->id)), b->spelling, b->caller)
            .reference;
    for (int64_t g = 0; g < b->groups; g++) {
        struct bl_call *c = &b->group[g];
        if (has_groups(b))
            bl_decode_group(c, b->id, b->wide, b->v, g, first);
        else
            bl_decode(c, b->id, b->wide, b->v);
        c->reference = reference;
        if (c->bad && (!b->bad || c->bad < b->bad)) {
            b->bad = c->bad;
            b->sum = *c;
        }
        if (c->bad == 0 && __builtin_add_overflow(first, c->batch, &first))
            return false;
    }
    return b->bad == 0;
}

/* ---- where the data is ---- */

#define ASKED 64 /* groups, whose first matrices are asked for */

struct places {
    bool pageable, device, managed, foreign;
    unsigned first_pageable; /* position of that argument */
};

/* Can the CPU read there? Where that can not be found out, it is taken for granted. */
static bool readable(const void *p)
{
    char byte;
    struct iovec to = {&byte, 1}, from = {(void *)(uintptr_t)p, 1};
    int saved = errno;
    bool good = process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 || errno != EFAULT;
    errno = saved;
    return good;
}

/* What the engine says; where there is none, or it can not say, what the CPU can not read
 * is on a device. False: on another device. */
static bool kind_of_memory(const struct bl_engine *e, const void *p, enum bl_memory *kind)
{
    enum bl_status status = e ? e->memory_kind(p, kind) : BL_LOST;
    if (status != BL_OK && status != BL_UNSUPPORTED)
        *kind = readable(p) ? BL_MEMORY_PAGEABLE : BL_MEMORY_DEVICE;
    return status != BL_UNSUPPORTED;
}

static void ask(struct places *at, const struct bl_engine *e, const void *p,
                unsigned position)
{
    enum bl_memory kind = BL_MEMORY_PAGEABLE;
    if (!p)
        return;
    at->foreign |= !kind_of_memory(e, p, &kind);
    at->device |= kind == BL_MEMORY_DEVICE;
    at->managed |= kind == BL_MEMORY_MANAGED;
    if (kind == BL_MEMORY_PAGEABLE && !at->pageable) {
        at->pageable = true;
        at->first_pageable = position;
    }
}

static bool on_device(const struct bl_engine *e, const void *p)
{
    enum bl_memory kind = BL_MEMORY_PAGEABLE;
    return kind_of_memory(e, p, &kind) && kind == BL_MEMORY_DEVICE;
}

static void ask_group(struct places *at, const struct bl_engine *e, const struct batch *b,
                      const struct bl_call *c)
{
    const char *args = bl_row(b->id)->args;
    for (unsigned i = 0; args[i]; i++) {
        const void *p = bl_operand_of(c, args[i]);
        bool array = has_groups(b) && p && strchr("aAXpP", args[i]);
        if (array && !on_device(e, p))
            p = *(void *const *)p;
        ask(at, e, p, i + 1);
    }
}

enum place { HOST, DEVICE, FOREIGN /* another device's */ };

/* Where is the data of the call? *bad is the position of an argument that is elsewhere.
 */
static enum place place_of(const struct bl_engine *e, const struct batch *b,
                           unsigned *bad)
{
    struct places at = {0};
    int64_t asked = 0;
    *bad = 0;
    for (int64_t g = 0; g < b->groups && asked < ASKED; g++)
        if (b->group[g].batch > 0 && b->group[g].m > 0 && b->group[g].n > 0) {
            ask_group(&at, e, b, &b->group[g]);
            asked++;
        }
    if (asked == 0)
        ask(&at, e, b->sum.info, 0);
    if (at.device && at.pageable)
        *bad = at.first_pageable;
    if (at.foreign)
        return FOREIGN;
    return at.device || (!at.pageable && (at.managed || bl_stream())) ? DEVICE : HOST;
}

/* The CPU's to look into: neither on a device nor on its way to and fro. */
static bool in_host_memory(const struct bl_engine *e, const void *p)
{
    enum bl_memory kind = BL_MEMORY_PAGEABLE;
    return !e || (kind_of_memory(e, p, &kind) &&
                  (kind == BL_MEMORY_PAGEABLE || kind == BL_MEMORY_PINNED));
}

/* A group's array in host memory may hold NULL. `e` is NULL where all memory is. */
static unsigned null_in_arrays(const struct bl_engine *e, const struct batch *b)
{
    const char *args = bl_row(b->id)->args;
    for (unsigned i = 0; args[i]; i++)
        for (int64_t g = 0; strchr("aAXpP", args[i]) && g < b->groups; g++) {
            void *const *p = bl_operand_of(&b->group[g], args[i]);
            if (!p || (g == 0 && !in_host_memory(e, p)))
                break;
            for (int64_t k = 0;
                 b->group[g].m > 0 && b->group[g].n > 0 && k < b->group[g].batch; k++)
                if (!p[k])
                    return i + 1;
        }
    return 0;
}

/* ---- jobs ---- */

/* The jobs of a call: one where all matrices are alike, else one for each kind that runs
 * together. */
struct jobs {
    struct bl_job job[2 * BL_BUCKETS]; /* of UPLO 'U' and of the rest */
    int count;
    struct bl_item *items;
};

static bool alike(const struct batch *b)
{
    for (int64_t g = 1; g < b->groups; g++) {
        const struct bl_call *c = &b->group[g], *first = &b->group[0];
        if (c->m != first->m || c->n != first->n || c->lda != first->lda ||
            c->ldx != first->ldx || c->uplo != first->uplo)
            return false;
    }
    return true;
}

/* Matrices of a kind run together; QUARTERS orders them within a kind by size. */
#define KINDS (2 * BL_BUCKETS)
#define QUARTERS 4

static int quarter_of(int64_t size)
{
    int top = size > 4 ? 63 - __builtin_clzll((uint64_t)size - 1) : 2;
    return (int)((size - 1) >> (top - 2)) & (QUARTERS - 1);
}

static int kind_of(const struct bl_engine *e, const struct bl_call *c,
                   const struct bl_job *job)
{
    int bucket = e ? e->bucket(job, c->m, c->n) : 0;
    bucket = bucket < 0 ? 0 : bucket < BL_BUCKETS ? bucket : BL_BUCKETS - 1;
    return 2 * bucket + (c->uplo == 'U');
}

/* What is asked for, or suits so many matrices of the job's size and triangle. */
static enum bl_arithmetic arithmetic_of(const struct batch *b, const struct bl_job *job)
{
    struct bl_call c = b->group[0];
    c.m = job->m;
    c.n = job->n;
    c.batch = job->batch;
    c.uplo = job->uplo;
    return bl_arithmetic_of(&c);
}

/* Matrices of one kind stand together, the larger before the smaller: what takes longest
 * begins first. So do the kinds. */
static bool sort_into_jobs(struct jobs *j, const struct batch *b,
                           const struct bl_engine *e, const struct bl_job *whole)
{
    int64_t count[KINDS * QUARTERS] = {0}, next[KINDS * QUARTERS];
    int64_t m[KINDS] = {0}, n[KINDS] = {0};
    int *key = malloc((size_t)b->groups * sizeof *key);
    j->items = malloc((size_t)b->sum.batch * sizeof *j->items);
    if (!key || !j->items) {
        free(key);
        return false;
    }
    for (int64_t g = 0; g < b->groups; g++) {
        const struct bl_call *c = &b->group[g];
        int kind = kind_of(e, c, whole);
        key[g] = kind * QUARTERS + quarter_of(bl_max(c->m, c->n));
        count[key[g]] += c->batch;
        m[kind] = bl_max(m[kind], c->m);
        n[kind] = bl_max(n[kind], c->n);
    }
    int64_t at = 0;
    for (int kind = KINDS - 1; kind >= 0; kind--) {
        int64_t first = at;
        for (int k = QUARTERS * (kind + 1) - 1; k >= QUARTERS * kind; k--) {
            next[k] = at;
            at += count[k];
        }
        if (at == first)
            continue;
        struct bl_job *job = &j->job[j->count++];
        *job = *whole;
        job->uplo = whole->uplo ? kind % 2 ? 'U' : 'L' : 0;
        job->m = m[kind];
        job->n = n[kind];
        job->batch = at - first;
        job->items = j->items + first;
        job->arithmetic = arithmetic_of(b, job);
    }
    int64_t index = 0;
    for (int64_t g = 0; g < b->groups; g++) {
        const struct bl_call *c = &b->group[g];
        for (int64_t i = 0; i < c->batch; i++)
            j->items[next[key[g]]++] =
                (struct bl_item){index++, c->m, c->n, c->lda, c->ldx};
    }
    free(key);
    return true;
}

static bool make_jobs(struct jobs *j, const struct batch *b, const struct bl_engine *e)
{
    j->count = 0;
    j->items = NULL;
    struct bl_job whole;
    bl_job_of_call(&whole, &b->group[0]);
    whole.batch = b->sum.batch;
    if (!alike(b))
        return sort_into_jobs(j, b, e, &whole);
    whole.arithmetic = arithmetic_of(b, &whole);
    j->job[j->count++] = whole;
    return true;
}

/* ---- running ---- */

/* The engine for a call on host memory, or NULL and why not. */
static const struct bl_engine *engine_for(const struct batch *b, enum bl_reason *why)
{
    int mode = bl_mode();
    double saving = b->sum.cost.cpu - b->sum.cost.gpu;
    if (!bl_worthwhile(&b->sum, mode, saving, why))
        return NULL;
    return bl_engine_for(saving, mode == BATCHLAPACK_MODE_GPU, why);
}

static int64_t info_of(const struct bl_job *job, int64_t i)
{
    const void *info = bl_problem_of(job, i).info;
    return job->int_size == 8 ? *(const int64_t *)info : *(const int32_t *)info;
}

/* Of problems [0, done) those that the engine handed back, neighbours together. */
static void redo(const struct batch *b, const struct bl_job *job, int64_t done)
{
    for (int64_t from = 0, to; from < done; from = to + 1) {
        for (to = from; to < done && info_of(job, to) == BL_INFO_REDO;)
            to++;
        struct bl_job some = *job;
        some.batch = to;
        if (from < to)
            bl_batch_on_cpu(&some, from, b->spelling, b->caller);
    }
}

/* On host memory: each job by the engine as far as it gets, the rest by LAPACK. */
static enum bl_reason run_on_host(struct batch *b, struct jobs *j,
                                  struct bl_traffic *traffic, enum bl_status *status)
{
    enum bl_reason where = BL_ON_GPU;
    int64_t done[KINDS] = {0};
    struct bl_guard guard;
    bl_guard_enter(&guard);
    const struct bl_engine *e = engine_for(b, &where);
    bool made = make_jobs(j, b, e);
    for (int i = 0; made && e && i < j->count; i++) {
        *status = bl_pipeline(e, &j->job[i], &done[i], traffic);
        if (*status != BL_OK) {
            where = bl_engine_failed(*status);
            break;
        }
        bl_engine_succeeded();
        where = BL_ON_GPU;
    }
    bl_guard_leave(&guard);
    if (!made) {
        *status = BL_NOMEM;
        return BL_WHY_MEMORY;
    }
    *status = BL_OK;
    for (int i = 0; i < j->count; i++) {
        if (traffic->again)
            redo(b, &j->job[i], done[i]);
        if (done[i] < j->job[i].batch)
            bl_batch_on_cpu(&j->job[i], done[i], b->spelling, b->caller);
    }
    bool all = (int64_t)traffic->again == b->sum.batch;
    return where == BL_ON_GPU && all ? BL_WHY_NOTFINITE : where;
}

static void say_lost(const struct batch *b, enum bl_status status)
{
    bl_set_status(status);
    bl_say("%c%s: %s; nothing of its results is to be used", bl_prefix(b->id),
           bl_row(b->id)->name, batchlapack_status_text((int)status));
}

static enum bl_reason run_on_device(const struct bl_engine *e, struct batch *b,
                                    struct jobs *j)
{
    struct bl_guard guard;
    bl_guard_enter(&guard);
    enum bl_status status =
        make_jobs(j, b, e) ? bl_batch_on_device(e, j->job, j->count) : BL_NOMEM;
    enum bl_reason where = BL_ON_GPU;
    /* A fault may be the stream's, which is the program's: only a lost device counts. */
    if (status != BL_OK)
        where = status == BL_LOST ? bl_engine_failed(status) : BL_WHY_FAULT;
    bl_guard_leave(&guard);
    if (status != BL_OK)
        say_lost(b, status);
    return where;
}

static void count(const struct batch *b, enum bl_reason where,
                  const struct bl_traffic *traffic)
{
    if (bl_config()->counted)
        bl_stats_call(&b->sum, where, bl_now() - b->begin, traffic);
}

/* As a single call is that LAPACK sends back at once. */
static void count_unrun(struct batch *b)
{
    b->sum.legal = b->bad == 0;
    b->sum.empty = true;
    count(b, b->bad ? BL_WHY_ILLEGAL : BL_WHY_EMPTY, &(struct bl_traffic){0});
}

static void run(struct batch *b)
{
    __attribute__((cleanup(bl_leave))) struct bl_frame here = {NULL, 0};
    struct bl_traffic traffic = {0};
    enum bl_status status = BL_OK;
    enum bl_reason where;
    struct jobs jobs = {.count = 0};
    struct bl_guard guard;
    bl_guard_enter(&guard);
    bool possible;
    const struct bl_engine *e = bl_engine_for_device_data(&possible);
    enum place place = possible ? place_of(e, b, &b->bad) : HOST;
    if (!b->bad && place != FOREIGN && has_groups(b))
        b->bad = null_in_arrays(place == DEVICE ? e : NULL, b);
    bl_guard_leave(&guard);
    if (b->bad)
        return;
    bl_enter(&here);
    if (place == FOREIGN || (place == DEVICE && !e)) {
        say_lost(b, place == FOREIGN ? BL_UNSUPPORTED : BL_LOST);
        return;
    }
    if (place == DEVICE)
        where = run_on_device(e, b, &jobs);
    else
        where = run_on_host(b, &jobs, &traffic, &status);
    if (status != BL_OK)
        say_lost(b, status);
    free(jobs.items);
    count(b, b->sum.empty ? BL_WHY_EMPTY : where, &traffic);
}

void bl_batch(unsigned id, unsigned spelling, void **v, const void *caller)
{
    struct bl_target t = bl_find(bl_id(BL_ROW_GETRF, bl_precision(id)), spelling, caller);
    struct batch b = {.id = id,
                      .spelling = spelling,
                      .wide = (spelling & BL_WIDE) || t.wide,
                      .v = v,
                      .caller = caller};
    bl_pipeline_count_call();
    b.begin = bl_config()->counted ? bl_now() : 0;
    bl_set_status(BL_OK);
    bool decoded = decode(&b);
    if (decoded && b.groups > 0)
        sum_up(&b);
    if (decoded && b.sum.batch > 0)
        run(&b);
    else if (!decoded && !b.bad)
        say_lost(&b, BL_NOMEM);
    if (b.bad || (decoded && b.sum.batch == 0))
        count_unrun(&b);
    if (b.group != &b.one)
        free(b.group);
    if (b.bad) /* last: it may never return */
        report(&b);
}
