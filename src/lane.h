/* What a call on the GPU borrows while it runs (lane.c): queues, device memory and one
 * ring of pinned host memory.
 */
#ifndef LANE_H
#define LANE_H

#include "bl.h"

#define BL_QUEUES 4 /* of a lane */
#define BL_TRACKS 3 /* chunks in flight at a time, each on a queue of its own */

/* Fields are the borrower's until it gives the lane back. */
struct bl_lane {
    bool taken;
    bool used;   /* since idle memory was last looked for */
    size_t most; /* largest arena needed since then */
    void *queue[BL_QUEUES];
    char *arena, *ring; /* device memory; pinned host memory */
    size_t arena_bytes, ring_bytes;
};

struct bl_lane *bl_lane_take(void); /* waits for one */
void bl_lane_give(struct bl_lane *lane);

/* At least so many queues and bytes. A ring is a power of two, at most BL_RING_BYTES. */
enum bl_status bl_lane_need(const struct bl_engine *e, struct bl_lane *lane, int queues,
                            size_t ring_bytes, size_t arena_bytes);

/* After a failure: nothing is under way in the lane's memory any more. */
void bl_lane_settle(const struct bl_engine *e, struct bl_lane *lane);

#endif
