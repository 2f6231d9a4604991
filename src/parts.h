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
    void *mark; /* a queue that follows all parts but the last; NULL: none does */
    bool apart; /* a thread of its own does it, else bl_parts_end() */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    /* Under the lock: columns whose copies are enqueued; no more are coming; columns of
     * the parts that `mark` follows, or 0; nothing more is enqueued. */
    int64_t there;
    bool given_up;
    int64_t marked;
    bool ended;
    enum bl_status status;
};

/* Can the engine take the job in parts? */
bool bl_parts_wanted(const struct bl_engine *e, const struct bl_job *job);
void bl_parts_begin(struct bl_parts *p, const struct bl_engine *e,
                    const struct bl_job *job, void *queue, void *const *copies,
                    void *mark);
/* The copies of so many columns, from the first, are enqueued; all of them: so is all
 * else. */
void bl_parts_there(struct bl_parts *p, int64_t columns);
/* After the last of them: the columns of all parts but the last, which p->mark follows;
 * 0: it follows nothing. */
int64_t bl_parts_marked(struct bl_parts *p);
/* Wait until all that is there has been enqueued, and all of it unless `given_up`. */
enum bl_status bl_parts_end(struct bl_parts *p, bool given_up);

#endif
