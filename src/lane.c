/* Lanes: queues, device memory and pinned memory for the calls that are on the GPU.
 *
 * Called by pipeline.c. Lanes belong to no thread; a thread takes one for a call and
 * gives it back, so memory does not grow with threads. What a lane has it keeps for the
 * next call, until no call has needed it for long. Nothing here looks at a call's data.
 */
#include <pthread.h>
#include <string.h>

#include "guard.h"
#include "lane.h"

#define LANES 4
static struct bl_lane lanes[LANES];
_Atomic bool bl_lanes_hold_memory;
static _Atomic unsigned calls; /* of any kind, since release_idle() last looked */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock: */
static struct waiter {
    pthread_cond_t served;
    struct bl_lane *lane; /* what it got */
    struct waiter *next;
} * first_waiter, **last_waiter = &first_waiter; /* for a lane, in the order they came */
static int hungry;                               /* lanes that wait for device memory */
static pthread_cond_t given_back = PTHREAD_COND_INITIALIZER; /* for these */

/* The guard keeps out the handlers that there were when the call began. One that another
 * thread installs while this one waits must not run here either: it may leave by longjmp,
 * and the lock, or our place among those who wait, would be lost with it. So nothing is
 * delivered while the lock is held or waited for. What would end the process still does:
 * whoever has the lane that we wait for takes it. */
static sigset_t enter(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&lock);
    return before;
}

static void leave(const sigset_t *before)
{
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* With what was installed meanwhile kept out from now on, until the guard is left. */
static void wait_for(pthread_cond_t *event, sigset_t *before)
{
    pthread_cond_wait(event, &lock);
    bl_guard_add_handled(before);
}

/* The child has none of the parent's device memory; its engine is off as well. */
void bl_pipeline_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&given_back, NULL);
    first_waiter = NULL;
    last_waiter = &first_waiter;
    hungry = 0;
    memset(lanes, 0, sizeof lanes);
    atomic_store(&bl_lanes_hold_memory, false);
}

/* One that has its memory already comes first. While a lane waits for the memory that
 * others hold, none is lent: it would never find them idle. */
static struct bl_lane *free_lane(void)
{
    struct bl_lane *lane = NULL;
    for (int i = 0; i < LANES && hungry == 0; i++)
        if (!lanes[i].taken && (!lane || lanes[i].arena_bytes > lane->arena_bytes))
            lane = &lanes[i];
    return lane;
}

/* Whoever comes first is served first: a thread that gives a lane back and at once wants
 * one again has no advantage over those that wait. */
static void serve(void)
{
    struct bl_lane *lane;
    while (first_waiter && (lane = free_lane())) {
        struct waiter *w = first_waiter;
        lane->taken = true;
        w->lane = lane;
        first_waiter = w->next;
        if (!first_waiter)
            last_waiter = &first_waiter;
        pthread_cond_signal(&w->served);
    }
}

struct bl_lane *bl_lane_take(void)
{
    struct waiter w = {.served = PTHREAD_COND_INITIALIZER};
    sigset_t before = enter();
    *last_waiter = &w;
    last_waiter = &w.next;
    serve();
    while (!w.lane)
        wait_for(&w.served, &before);
    leave(&before);
    return w.lane;
}

void bl_lane_give(struct bl_lane *lane)
{
    sigset_t before = enter();
    lane->taken = false;
    pthread_cond_broadcast(&given_back);
    serve();
    leave(&before);
}

static void drop_arena(const struct bl_engine *e, struct bl_lane *lane)
{
    if (lane->arena)
        e->device_free(lane->arena);
    lane->arena = NULL;
    lane->arena_bytes = 0;
}

static void drop_ring(const struct bl_engine *e, struct bl_lane *lane)
{
    if (lane->ring)
        e->host_free(lane->ring);
    lane->ring = NULL;
    lane->ring_bytes = 0;
}

/* Give up what no call has needed for BL_IDLE_CALLS calls: all of a lane that was not
 * used, and an arena more than twice as large as what its calls asked for. */
static void release_idle(const struct bl_engine *e)
{
    bool holds = false;
    sigset_t before = enter();
    for (int i = 0; i < LANES; i++) {
        struct bl_lane *lane = &lanes[i];
        if (!lane->taken && !lane->used)
            drop_ring(e, lane);
        if (!lane->taken && (!lane->used || lane->arena_bytes / 2 > lane->most))
            drop_arena(e, lane);
        lane->used = lane->taken;
        lane->most = lane->taken ? lane->arena_bytes : 0;
        holds |= lane->arena || lane->ring;
    }
    atomic_store(&bl_lanes_hold_memory, holds);
    leave(&before);
}

/* A thread's calls are counted in eights: threads that make nothing but small calls shall
 * not wait for each other's cache line. */
void bl_lanes_count_call(void)
{
    enum { TOGETHER = 8 };
    static _Thread_local BL_FAST_TLS unsigned own;
    if (++own % TOGETHER || atomic_fetch_add(&calls, TOGETHER) + TOGETHER < BL_IDLE_CALLS)
        return;
    const struct bl_engine *e = bl_engine_now();
    atomic_store(&calls, 0);
    if (e)
        release_idle(e);
}

static enum bl_status allocate(const struct bl_engine *e, struct bl_lane *lane,
                               size_t bytes)
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
static enum bl_status need_arena(const struct bl_engine *e, struct bl_lane *lane,
                                 size_t bytes)
{
    lane->used = true;
    lane->most = (size_t)bl_max((int64_t)lane->most, (int64_t)bytes);
    atomic_store_explicit(&bl_lanes_hold_memory, true, memory_order_relaxed);
    if (lane->arena_bytes >= bytes)
        return BL_OK;
    sigset_t before = enter();
    drop_arena(e, lane);
    enum bl_status status = allocate(e, lane, bytes);
    hungry++;
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
            wait_for(&given_back, &before);
        status = allocate(e, lane, bytes);
    }
    hungry--;
    serve();
    leave(&before);
    return status;
}

static enum bl_status need_ring(const struct bl_engine *e, struct bl_lane *lane,
                                size_t bytes)
{
    size_t size = (size_t)64 << 10;
    while (size < bytes && size < BL_RING_BYTES)
        size *= 2;
    if (lane->ring_bytes >= size)
        return BL_OK;
    void *p = NULL;
    drop_ring(e, lane);
    enum bl_status status = e->host_alloc(size, &p);
    if (status == BL_OK) {
        lane->ring = p;
        lane->ring_bytes = size;
    }
    return status;
}

enum bl_status bl_lane_need(const struct bl_engine *e, struct bl_lane *lane, int queues,
                            size_t ring_bytes, size_t arena_bytes)
{
    enum bl_status status = BL_OK;
    for (int i = 0; i < queues && status == BL_OK; i++)
        if (!lane->queue[i])
            status = e->queue_open(&lane->queue[i]);
    if (status == BL_OK)
        status = need_ring(e, lane, ring_bytes);
    return status == BL_OK ? need_arena(e, lane, arena_bytes) : status;
}

/* Work that was enqueued may still use the memory: wait for it, and where even that
 * fails, leave the memory alone for good. */
void bl_lane_settle(const struct bl_engine *e, struct bl_lane *lane)
{
    bool lost = false;
    for (int i = 0; i < BL_QUEUES; i++)
        if (lane->queue[i] && e->wait(lane->queue[i]) != BL_OK) {
            e->queue_close(lane->queue[i]);
            lane->queue[i] = NULL;
            lost = true;
        }
    if (!lost)
        return;
    sigset_t before = enter();
    lane->ring = lane->arena = NULL;
    lane->ring_bytes = lane->arena_bytes = 0;
    leave(&before);
}
