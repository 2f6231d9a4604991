/* Work on one large matrix while its columns are still on their way.
 *
 * Called by pipeline.c, whose thread copies meanwhile: to enqueue the work of a part
 * takes as long as many copies, so a thread of its own does that and ends with the call.
 * When a part is enqueued depends on what has arrived, what is done for it on the part
 * alone. Where no thread may be started, or none can be, the parts come one after another
 * at the end: the bits are the same each time.
 */
#include <pthread.h>
#include <signal.h>

#include "parts.h"
#include "workers.h"

#define STACK_BYTES ((size_t)8 << 20) /* the engine's libraries may start up here */

bool bl_parts_wanted(const struct bl_engine *e, const struct bl_job *job)
{
    return job->batch == 1 && e->part(job, 0) < job->n;
}

static void *enqueue_parts(void *arg)
{
    struct bl_parts *p = arg;
    enum bl_status status = BL_OK;
    int64_t n = p->job.n;
    for (int64_t from = 0; from < n && status == BL_OK; from = p->job.to) {
        p->job.from = from;
        p->job.to = bl_min(n, bl_max(from + 1, p->e->part(&p->job, from)));
        pthread_mutex_lock(&p->lock);
        while (p->there < p->job.to && !p->given_up)
            pthread_cond_wait(&p->more, &p->lock);
        bool given_up = p->given_up;
        pthread_mutex_unlock(&p->lock);
        if (given_up)
            break;
        for (int i = 0; i < BL_COPY_QUEUES && status == BL_OK; i++)
            status = p->e->follow(p->queue, p->copies[i]);
        if (status == BL_OK)
            status = p->e->run(&p->job, p->queue);
    }
    p->status = status;
    return NULL;
}

void bl_parts_begin(struct bl_parts *p, const struct bl_engine *e,
                    const struct bl_job *job, void *queue, void *const *copies)
{
    pthread_attr_t attr;
    sigset_t all, before;
    *p = (struct bl_parts){.e = e, .job = *job, .queue = queue, .copies = copies};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->more, NULL);
    if (bl_workers_count() < 2 || pthread_attr_init(&attr) != 0)
        return;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    p->apart = pthread_create(&p->thread, &attr, enqueue_parts, p) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
}

void bl_parts_there(struct bl_parts *p, int64_t columns)
{
    pthread_mutex_lock(&p->lock);
    p->there = columns;
    pthread_cond_signal(&p->more);
    pthread_mutex_unlock(&p->lock);
}

enum bl_status bl_parts_end(struct bl_parts *p, bool given_up)
{
    pthread_mutex_lock(&p->lock);
    p->given_up = given_up;
    pthread_cond_signal(&p->more);
    pthread_mutex_unlock(&p->lock);
    if (p->apart)
        pthread_join(p->thread, NULL);
    else
        enqueue_parts(p);
    return p->status;
}
