/* Work on one large matrix while its columns are still on their way (parts.c). */
#ifndef PARTS_H
#define PARTS_H

#include <pthread.h>

#include "bl.h"

#define BL_COPY_QUEUES 2

struct bl_parts {
    const struct bl_engine *e;
    struct bl_job job;   /* on the device */
    void *queue;         /* nobody else's until bl_parts_end() */
    void *const *copies; /* the BL_COPY_QUEUES queues on which the columns come */
    bool apart;          /* a thread of its own does it, else bl_parts_end() */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    int64_t
        there; /* columns whose copies are enqueued; under the lock, like `given_up` */
    bool given_up;
    enum bl_status status;
};

/* Can the engine take the job in parts? */
bool bl_parts_wanted(const struct bl_engine *e, const struct bl_job *job);
void bl_parts_begin(struct bl_parts *p, const struct bl_engine *e,
                    const struct bl_job *job, void *queue, void *const *copies);
/* The copies of so many columns, from the first, are enqueued; all of them: so is all
 * else. */
void bl_parts_there(struct bl_parts *p, int64_t columns);
/* Wait until all that is there has been enqueued, and all of it unless `given_up`. */
enum bl_status bl_parts_end(struct bl_parts *p, bool given_up);

#endif
