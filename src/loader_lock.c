/* One thread of ours at a time in the dynamic loader, and none across a fork.
 *
 * A child that is forked while another thread is in dlopen finds the loader's state half
 * changed, and dies in its own next dlopen. So whoever of us loads or looks up libraries
 * (forward.c on the first call from an object, engine.c at its start) holds this lock,
 * and a fork waits for it. Recursive, since a library's constructor may call LAPACK, and
 * the CUDA driver may fork while it starts. Never held while a routine runs.
 */
#include <pthread.h>
#include <time.h>

#include "bl.h"

#define FORK_WAITS_SECONDS                                                               \
    10 /* at most: the driver could fork from a thread of its own */

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static bool held_for_fork; /* forks come one at a time */

void bl_loader_lock(void)
{
    pthread_mutex_lock(&lock);
}

void bl_loader_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void before_fork(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FORK_WAITS_SECONDS;
    held_for_fork = pthread_mutex_timedlock(&lock, &until) == 0;
}

static void after_fork_in_parent(void)
{
    if (held_for_fork)
        pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attr);
    pthread_mutexattr_destroy(&attr);
}

__attribute__((constructor)) static void watch_fork(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
