/* Host data to the device and back.
 *
 * A batch goes through in chunks: pack the operands into pinned slots, copy in, run, copy
 * out, unpack. The write-back rule: the caller's arrays are first written when the
 * chunk's result has been waited for, found clean and, where it fits a slot, lies in host
 * memory. Until then any failure leaves the caller's data as it was, so that the
 * dispatcher can forward the call. Only what the routine reads and writes is touched: the
 * triangle, the rows within the leading dimension, the entries of IPIV that exist.
 *
 * Device memory, pinned slots and a queue make a lane. Lanes belong to no thread; a
 * thread takes one for a call and gives it back, so memory does not grow with threads.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bl.h"

/* ---- lanes ---- */

#define LANES 4
#define SLOTS 2
#define ALIGNMENT ((size_t)256)

struct lane {
    bool taken;
    bool used;   /* since release_idle() last looked */
    size_t most; /* largest arena needed since then */
    void *queue;
    char *arena, *slot[SLOTS];
    size_t arena_bytes, slot_bytes;
};
static struct lane lanes[LANES];
_Atomic bool bl_lanes_hold_memory;
static _Atomic unsigned calls; /* of any kind, since release_idle() last looked */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given_back = PTHREAD_COND_INITIALIZER;

/* The child has none of the parent's device memory; its engine is off as well. */
void bl_pipeline_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&given_back, NULL);
    memset(lanes, 0, sizeof lanes);
    atomic_store(&bl_lanes_hold_memory, false);
}

static struct lane *take_lane(void)
{
    struct lane *lane = NULL;
    pthread_mutex_lock(&lock);
    while (!lane) {
        /* One that has its memory already comes first. */
        for (int i = 0; i < LANES; i++)
            if (!lanes[i].taken && (!lane || lanes[i].arena_bytes > lane->arena_bytes))
                lane = &lanes[i];
        if (!lane)
            pthread_cond_wait(&given_back, &lock);
    }
    lane->taken = true;
    pthread_mutex_unlock(&lock);
    return lane;
}

static void give_lane(struct lane *lane)
{
    pthread_mutex_lock(&lock);
    lane->taken = false;
    pthread_cond_broadcast(&given_back);
    pthread_mutex_unlock(&lock);
}

static void drop_arena(const struct bl_engine *e, struct lane *lane)
{
    if (lane->arena)
        e->device_free(lane->arena);
    lane->arena = NULL;
    lane->arena_bytes = 0;
}

static void drop_slots(const struct bl_engine *e, struct lane *lane)
{
    for (int s = 0; s < SLOTS; s++) {
        if (lane->slot[s])
            e->host_free(lane->slot[s]);
        lane->slot[s] = NULL;
    }
    lane->slot_bytes = 0;
}

/* Give up what no call has needed for BL_IDLE_CALLS calls: all of a lane that was not
 * used, and an arena more than twice as large as what its calls asked for. */
static void release_idle(const struct bl_engine *e)
{
    bool holds = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < LANES; i++) {
        struct lane *lane = &lanes[i];
        if (!lane->taken && !lane->used)
            drop_slots(e, lane);
        if (!lane->taken && (!lane->used || lane->arena_bytes / 2 > lane->most))
            drop_arena(e, lane);
        lane->used = lane->taken;
        lane->most = lane->taken ? lane->arena_bytes : 0;
        holds |= lane->arena != NULL || lane->slot_bytes;
    }
    atomic_store(&bl_lanes_hold_memory, holds);
    pthread_mutex_unlock(&lock);
}

void bl_pipeline_count_call(void)
{
    if (atomic_fetch_add(&calls, 1) + 1 < BL_IDLE_CALLS)
        return;
    const struct bl_engine *e = bl_engine_now();
    atomic_store(&calls, 0);
    if (e)
        release_idle(e);
}

static enum bl_status allocate(const struct bl_engine *e, struct lane *lane, size_t bytes)
{
    uint64_t limit = bl_memory_limit();
    uint64_t held = bytes;
    for (int i = 0; i < LANES; i++)
        held += lanes[i].arena_bytes;
    if (held > limit)
        return BL_NOMEM;
    void *p = NULL;
    enum bl_status status = e->device_alloc(bytes, &p);
    if (status == BL_OK) {
        lane->arena = p;
        lane->arena_bytes = bytes;
    }
    return status;
}

/* Memory for `bytes`, within the limit of BATCHLAPACK_MEMORY over all lanes. What idle
 * lanes hold is given up for it, and what busy ones hold is waited for: who else is busy
 * decides when a call runs, never where. Only a lane without an arena waits, so one
 * always goes on. */
static enum bl_status need_arena(const struct bl_engine *e, struct lane *lane,
                                 size_t bytes)
{
    lane->used = true;
    lane->most = (size_t)bl_max((int64_t)lane->most, (int64_t)bytes);
    atomic_store_explicit(&bl_lanes_hold_memory, true, memory_order_relaxed);
    if (lane->arena_bytes >= bytes)
        return BL_OK;
    pthread_mutex_lock(&lock);
    drop_arena(e, lane);
    enum bl_status status = allocate(e, lane, bytes);
    while (status == BL_NOMEM) {
        bool dropped = false, busy = false;
        for (int i = 0; i < LANES; i++) {
            busy |= lanes[i].taken && lanes[i].arena;
            if (!lanes[i].taken && lanes[i].arena) {
                drop_arena(e, &lanes[i]);
                dropped = true;
            }
        }
        if (!dropped && !busy)
            break;
        if (!dropped)
            pthread_cond_wait(&given_back, &lock);
        status = allocate(e, lane, bytes);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static enum bl_status need_slots(const struct bl_engine *e, struct lane *lane,
                                 size_t bytes)
{
    size_t size = (size_t)64 << 10;
    while (size < bytes && size < BL_SLOT_BYTES)
        size *= 2;
    if (lane->slot_bytes >= size)
        return BL_OK;
    enum bl_status status = BL_OK;
    drop_slots(e, lane);
    for (int s = 0; s < SLOTS && status == BL_OK; s++) {
        void *p = NULL;
        status = e->host_alloc(size, &p);
        lane->slot[s] = p;
    }
    if (status == BL_OK)
        lane->slot_bytes = size;
    return status;
}

static enum bl_status open_lane(const struct bl_engine *e, struct lane *lane)
{
    return lane->queue ? BL_OK : e->queue_open(&lane->queue);
}

/* After a failure the queue may hold work that still reads the slots: wait for it, and
 * where even that fails, leave its memory alone for good. */
static void settle(const struct bl_engine *e, struct lane *lane)
{
    if (lane->queue && e->wait(lane->queue) != BL_OK) {
        e->queue_close(lane->queue);
        pthread_mutex_lock(&lock);
        lane->queue = NULL;
        for (int s = 0; s < SLOTS; s++)
            lane->slot[s] = NULL;
        lane->slot_bytes = 0;
        lane->arena = NULL;
        lane->arena_bytes = 0;
        pthread_mutex_unlock(&lock);
    }
}

/* ---- operands ---- */

enum { INFO, A, B, IPIV, X, PHASE, LOGABS, TABLE, REGIONS };

/* One operand of a chunk: where it lies, packed without gaps, in the arena. TABLE is what
 * a job with items needs beside its data: the items, then the arrays of pointers. */
struct region {
    size_t element, item_bytes; /* item_bytes: where all items are alike */
    size_t *offset;             /* else where each begins, and the end of the last */
    size_t at, bytes;           /* in the arena; whole chunk */
    bool in, out;
};

struct chunk {
    const struct bl_job *host;
    int64_t first, count; /* problems of the host's job */
    struct region region[REGIONS];
    size_t in_from, in_to, out_from, out_to; /* spans of the arena that are copied */
    size_t work_at, work_bytes, total;
    char *table;
    struct bl_job job; /* device pointers are set when the arena is known */
};

/* An item of an operand in the caller's memory. */
struct view {
    char *p;
    int64_t rows, cols, ld;
};

static struct view view_of(const struct chunk *c, int which, int64_t item)
{
    struct bl_problem p = bl_problem_of(c->host, c->first + item);
    switch (which) {
    case A:
        return (struct view){p.a, p.m, p.n, p.lda};
    case B:
        return (struct view){p.b, p.n, c->host->nrhs, c->host->b.ld};
    case X:
        return (struct view){p.x, p.n, p.n, p.ldx};
    case IPIV:
        return (struct view){p.ipiv, bl_min(p.m, p.n), 1, 0};
    case PHASE:
        return (struct view){p.phase, 1, 1, 0};
    case LOGABS:
        return (struct view){p.logabs, 1, 1, 0};
    default:
        return (struct view){p.info, 1, 1, 0};
    }
}

/* Which item holds byte `at` of a region? */
static int64_t item_at(const struct chunk *c, const struct region *r, size_t at)
{
    if (!r->offset)
        return (int64_t)(at / r->item_bytes);
    int64_t low = 0, high = c->count;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        *(r->offset[middle] <= at ? &low : &high) = middle;
    }
    return low;
}

/* INFO goes in as this value: if it comes back, the routine never ran. */
#define UNWRITTEN 0x7f

/* Copy bytes [from, to) of an item, counted in its packed layout, between the caller's
 * memory and `packed`, which holds byte `from`. */
static void move_item(struct view v, size_t element, char triangle, size_t from,
                      size_t to, char *packed, bool unpack)
{
    size_t column_bytes = (size_t)v.rows * element;
    for (int64_t col = (int64_t)(from / column_bytes); from < to; col++) {
        size_t start = from % column_bytes, end = bl_min(column_bytes, start + to - from);
        size_t first = start, last = end;
        if (triangle == 'L')
            first = bl_max(first, (size_t)bl_min(col, v.rows) * element);
        if (triangle == 'U')
            last = bl_min(last, (size_t)bl_min(col + 1, v.rows) * element);
        char *theirs = v.p + (size_t)(col * v.ld) * element;
        if (first < last) {
            char *ours = packed + (first - start);
            memcpy(unpack ? theirs + first : ours, unpack ? ours : theirs + first,
                   last - first);
        }
        packed += end - start;
        from += end - start;
    }
}

/* The same for a region's bytes [from, to). */
static void move(const struct chunk *c, int which, size_t from, size_t to, char *packed,
                 bool unpack)
{
    const struct region *r = &c->region[which];
    if (which == TABLE) {
        memcpy(packed, c->table + from, to - from);
        return;
    }
    for (int64_t item = item_at(c, r, from); from < to; item++) {
        size_t begin = r->offset ? r->offset[item] : (size_t)item * r->item_bytes;
        size_t end = r->offset ? r->offset[item + 1] : begin + r->item_bytes;
        size_t stop = bl_min(to, end);
        if (stop == from)
            continue; /* an empty matrix */
        move_item(view_of(c, which, item), r->element, which == A ? c->host->uplo : 0,
                  from - begin, stop - begin, packed, unpack);
        packed += stop - from;
        from = stop;
    }
}

/* ---- a chunk ---- */

#define LIMIT ((size_t)1 << 60)

static bool product(size_t *out, uint64_t a, uint64_t b, uint64_t c)
{
    return !__builtin_mul_overflow(a, b, out) && !__builtin_mul_overflow(*out, c, out) &&
           *out < LIMIT;
}

/* The bytes of a region; false when they are too many, or there is no memory. */
static bool measure(struct chunk *c, int which)
{
    struct region *r = &c->region[which];
    bool alike = !c->host->items || which == INFO;
    if (!r->in && !r->out)
        return true;
    if (which == TABLE)
        return product(&r->bytes, (uint64_t)c->count,
                       sizeof(struct bl_item) + 3 * sizeof(void *), 1);
    struct view v = view_of(c, which, 0);
    if (alike)
        return product(&r->item_bytes, (uint64_t)v.rows, (uint64_t)v.cols, r->element) &&
               product(&r->bytes, r->item_bytes, (uint64_t)c->count, 1);
    r->offset = malloc(((size_t)c->count + 1) * sizeof *r->offset);
    if (!r->offset)
        return false;
    for (int64_t i = 0; i < c->count; i++) {
        size_t bytes;
        v = view_of(c, which, i);
        r->offset[i] = r->bytes;
        if (!product(&bytes, (uint64_t)v.rows, (uint64_t)v.cols, r->element) ||
            (r->bytes += bytes) >= LIMIT)
            return false;
    }
    r->offset[c->count] = r->bytes;
    return true;
}

static void drop_chunk(struct chunk *c)
{
    for (int i = 0; i < REGIONS; i++)
        free(c->region[i].offset);
    free(c->table);
}

/* Regions in the order read only, read and written, written only, INFO first among those
 * that are both: one span goes in, one comes out, and INFO is in its first slot. */
static bool lay_out(struct chunk *c, const struct bl_engine *e, const struct bl_job *host,
                    int64_t first, int64_t count)
{
    static const char letter[] = {[A] = 'a',     [B] = 'b',      [IPIV] = 'p', [X] = 'x',
                                  [PHASE] = 'd', [LOGABS] = 'g', [TABLE] = 0};
    size_t element = bl_element(host->precision);
    memset(c, 0, sizeof *c);
    c->host = host;
    c->first = first;
    c->count = count;
    for (int i = 0; i < REGIONS; i++) {
        struct region *r = &c->region[i];
        r->element = i == INFO || i == IPIV                   ? (size_t)host->int_size
                     : i == LOGABS && host->precision >= BL_C ? element / 2
                                                              : element;
        r->in = i == INFO || (letter[i] && bl_reads(host->routine, letter[i])) ||
                (i == TABLE && host->items);
        r->out = i == INFO || (letter[i] && bl_writes(host->routine, letter[i]));
        if (!measure(c, i))
            return false;
    }
    size_t at = 0;
    for (int group = 0; group < 3; group++) {
        bool in = group<2, out = group> 0;
        if (group == 1)
            c->out_from = at;
        for (int i = 0; i < REGIONS; i++) {
            struct region *r = &c->region[i];
            if (r->in != in || r->out != out)
                continue;
            r->at = at;
            at += (r->bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
        }
        if (group == 1)
            c->in_to = at;
    }
    c->out_to = at;
    c->job = *host;
    c->job.batch = count;
    c->job.a.ld = host->m;
    c->job.b.ld = host->n;
    c->job.x.ld = host->n;
    c->work_at = at;
    c->work_bytes = e->workspace(&c->job);
    c->total = at + c->work_bytes;
    if (host->items)
        c->table = malloc(c->region[TABLE].bytes);
    return c->work_bytes < LIMIT && (c->table || !host->items);
}

static struct bl_operand on_device(const struct chunk *c, int which, int64_t ld,
                                   char *arena)
{
    const struct region *r = &c->region[which];
    return (struct bl_operand){arena + r->at, NULL, ld,
                               (int64_t)(r->item_bytes / r->element)};
}

/* The table of a job with items: their shapes as packed, and pointers into the arena. */
static void fill_table(struct chunk *c, char *arena)
{
    static const int with_pointers[] = {A, X, IPIV};
    struct bl_operand *const operands[] = {&c->job.a, &c->job.x, &c->job.ipiv};
    struct bl_item *items = (struct bl_item *)c->table;
    void **pointers = (void **)(items + c->count);
    char *on_arena = arena + c->region[TABLE].at;
    for (int64_t i = 0; i < c->count; i++) {
        struct bl_problem p = bl_problem_of(c->host, c->first + i);
        items[i] = (struct bl_item){i, p.m, p.n, bl_max(1, p.m), bl_max(1, p.n)};
    }
    c->job.items = (const struct bl_item *)on_arena;
    for (int k = 0; k < 3; k++) {
        const struct region *r = &c->region[with_pointers[k]];
        for (int64_t i = 0; r->offset && i < c->count; i++)
            pointers[k * c->count + i] = arena + r->at + r->offset[i];
        operands[k]->array =
            (void *const *)(on_arena + ((char *)(pointers + k * c->count) - c->table));
    }
}

static void place(struct chunk *c, char *arena)
{
    c->job.a = on_device(c, A, c->host->m, arena);
    c->job.b = on_device(c, B, c->host->n, arena);
    c->job.x = on_device(c, X, c->host->n, arena);
    c->job.ipiv = on_device(c, IPIV, 0, arena);
    c->job.info = on_device(c, INFO, 0, arena);
    c->job.phase = on_device(c, PHASE, 0, arena);
    c->job.logabs = on_device(c, LOGABS, 0, arena);
    c->job.work = arena + c->work_at;
    if (c->table)
        fill_table(c, arena);
}

/* Pack or unpack the arena's bytes [from, to) from or to `slot`. */
static void move_span(const struct chunk *c, size_t from, size_t to, char *slot,
                      bool unpack)
{
    for (int i = 0; i < REGIONS; i++) {
        const struct region *r = &c->region[i];
        size_t low = bl_max(from, r->at), high = bl_min(to, r->at + r->bytes);
        if (!(unpack ? r->out : r->in) || low >= high)
            continue;
        if (i == INFO && !unpack)
            memset(slot + (low - from), UNWRITTEN, high - low);
        else
            move(c, i, low - r->at, high - r->at, slot + (low - from), unpack);
    }
}

static enum bl_status copy_in(const struct bl_engine *e, struct lane *lane,
                              struct chunk *c, struct bl_traffic *traffic)
{
    int s = 0;
    for (size_t from = c->in_from; from < c->in_to; s++) {
        size_t to = bl_min(c->in_to, from + lane->slot_bytes);
        if (s >= SLOTS) {
            enum bl_status status = e->wait(lane->queue);
            if (status != BL_OK)
                return status;
            s = 0;
        }
        move_span(c, from, to, lane->slot[s], false);
        enum bl_status status =
            e->copy_in(lane->queue, lane->arena + from, lane->slot[s], to - from);
        if (status != BL_OK)
            return status;
        traffic->in += to - from;
        from = to;
    }
    return BL_OK;
}

/* INFO lies in the first slot of the span; every problem must have written its own. */
static bool all_written(const struct chunk *c, const char *slot)
{
    const struct region *r = &c->region[INFO];
    const char *info = slot + (r->at - c->out_from);
    char unwritten[8];
    memset(unwritten, UNWRITTEN, sizeof unwritten);
    for (size_t i = 0; i < r->bytes; i += r->element)
        if (memcmp(info + i, unwritten, r->element) == 0)
            return false;
    return true;
}

_Noreturn static void lost_in_write_back(void)
{
    bl_say("the device was lost while a result was being written back; the matrix is "
           "incomplete and the process is aborted. BATCHLAPACK_WRITEBACK=staged avoids "
           "this at the price of one more copy in memory");
    abort();
}

static enum bl_status fetch(const struct bl_engine *e, struct lane *lane, size_t from,
                            size_t to, struct bl_traffic *traffic)
{
    enum bl_status status =
        e->copy_out(lane->queue, lane->slot[0], lane->arena + from, to - from);
    if (status == BL_OK)
        status = e->wait(lane->queue);
    if (status == BL_OK)
        traffic->out += to - from;
    return status;
}

/* The result, and only a whole one, to the caller. One that fits a slot is in host memory
 * before the first byte is written; `staged` holds a larger one in ordinary memory. */
static enum bl_status copy_out(const struct bl_engine *e, struct lane *lane,
                               struct chunk *c, struct bl_traffic *traffic)
{
    size_t span = c->out_to - c->out_from;
    bool single = span <= lane->slot_bytes;
    bool staged = !single && bl_option(BL_OPTION_WRITEBACK) == BL_WRITEBACK_STAGED;
    char *stage = staged ? malloc(span) : NULL;
    if (staged && !stage)
        return BL_NOMEM;
    bool begun = false;
    enum bl_status status = e->wait(lane->queue);
    for (size_t from = c->out_from; from < c->out_to && status == BL_OK;) {
        size_t to = bl_min(c->out_to, from + lane->slot_bytes);
        status = fetch(e, lane, from, to, traffic);
        if (status != BL_OK && begun)
            lost_in_write_back();
        if (status == BL_OK && from == c->out_from && !all_written(c, lane->slot[0]))
            status = BL_FAULT;
        if (status != BL_OK)
            break;
        if (staged) {
            memcpy(stage + (from - c->out_from), lane->slot[0], to - from);
        } else {
            begun = true;
            move_span(c, from, to, lane->slot[0], true);
        }
        from = to;
    }
    if (staged && status == BL_OK)
        move_span(c, c->out_from, c->out_to, stage, true);
    free(stage);
    return status;
}

static enum bl_status run_chunk(const struct bl_engine *e, struct lane *lane,
                                struct chunk *c, struct bl_traffic *traffic)
{
    size_t span = bl_max(c->in_to - c->in_from, c->out_to - c->out_from);
    enum bl_status status = open_lane(e, lane);
    if (status == BL_OK)
        status = need_slots(e, lane, span);
    if (status == BL_OK)
        status = need_arena(e, lane, c->total);
    if (status != BL_OK)
        return status;
    place(c, lane->arena);
    status = copy_in(e, lane, c, traffic);
    if (status == BL_OK)
        status = e->run(&c->job, lane->queue);
    if (status == BL_OK)
        status = copy_out(e, lane, c, traffic);
    if (status != BL_OK)
        settle(e, lane);
    return status;
}

/* ---- the batch ---- */

enum bl_status bl_pipeline(const struct bl_engine *e, const struct bl_job *host,
                           int64_t *done, struct bl_traffic *traffic)
{
    struct lane *lane = take_lane();
    enum bl_status status = BL_OK;
    struct chunk c;
    int64_t count = host->batch;
    *done = 0;
    while (*done < host->batch && status == BL_OK) {
        count = bl_min(count, host->batch - *done);
        bool sane = lay_out(&c, e, host, *done, count);
        /* More than one problem is a chunk only if its result fits a slot. */
        size_t span = sane ? (size_t)bl_max(c.in_to, c.out_to - c.out_from) : SIZE_MAX;
        if (count > 1 && span > BL_SLOT_BYTES) {
            drop_chunk(&c);
            count = (count + 1) / 2;
            continue;
        }
        status = sane ? run_chunk(e, lane, &c, traffic) : BL_NOMEM;
        drop_chunk(&c);
        if (status == BL_OK) {
            *done += count;
        } else if (status == BL_NOMEM && count > 1) {
            count = (count + 1) / 2;
            status = BL_OK;
        }
    }
    give_lane(lane);
    return status;
}
