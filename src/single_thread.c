/* Each call of the program's LAPACK on one thread, for the time of a batch.
 *
 * batch.c begins before it hands the matrices to the workers and ends when they are done;
 * what was set is then as it was. A LAPACK that takes threads of its own for each small
 * matrix would have them fight our workers for the CPUs. What can be told is told, by the
 * names below; any other library is called as it is, in parallel.
 *
 * Libraries keep the number in one of two places. A setting of the process is changed by
 * the first of the batches that run at a time and put back by the last. A setting of the
 * thread is changed on the calling thread and put back there, and stays 1 on workers,
 * which do nothing else.
 *
 * Calls from several threads at once: netlib keeps no state in our routines, MKL and BLIS
 * lock theirs. OpenBLAS locks its buffers (0.3 and later) when built for threads,
 * pthreads or OpenMP; its sequential builds do so only with a build option that cannot be
 * asked for, so they are called from one thread.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "bl.h"
#include "guard.h"
#include "single_thread.h"

/* The numbers are int, but BLIS's are 64 bits wide: a register holds either. */
typedef int64_t set_fn(int64_t);
typedef int64_t get_fn(void);

/* MKL's tells what it replaces, 0 for none; what it gives a thread without one is the
 * process's number. OpenBLAS's openblas_set_num_threads_local() is not among these: in
 * pthread builds it sets the process's. */
enum place { PROCESS, THREAD, THREAD_TELLS };

static const struct {
    enum place place;
    const char *set, *get;
    const char *parallel; /* OpenBLAS: 0 sequential, 1 pthreads, 2 OpenMP */
} names[] = {{THREAD, "omp_set_num_threads", "omp_get_max_threads", NULL},
             {THREAD_TELLS, "MKL_Set_Num_Threads_Local", "MKL_Get_Max_Threads", NULL},
             {PROCESS, "bli_thread_set_num_threads", "bli_thread_get_num_threads", NULL},
             {PROCESS, "flexiblas_set_num_threads", "flexiblas_get_num_threads", NULL},
#define OPENBLAS(before, after)                                                          \
    {PROCESS, before "openblas_set_num_threads" after,                                   \
     before "openblas_get_num_threads" after, before "openblas_get_parallel" after},
             OPENBLAS("", "") OPENBLAS("", "64_") OPENBLAS("scipy_", "")
                 OPENBLAS("scipy_", "64_")
#undef OPENBLAS
};

struct setting {
    enum place place;
    set_fn *set;
    get_fn *get;
    /* Of the process, under the lock: batches that have it at 1, and what it was. After a
     * fork in mid-batch the child has no users, and still knows what it was. */
    int users, was;
};

/* What is known of the library that a routine lies in; the list only grows. */
struct bl_threading {
    const struct link_map *library;
    struct bl_threading *next;
    bool one_at_a_time;
    int count;
    struct setting setting[BL_THREAD_SETTINGS];
};
static _Atomic(struct bl_threading *) known;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void after_fork_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    for (struct bl_threading *t = atomic_load(&known); t; t = t->next)
        for (int i = 0; i < t->count; i++)
            t->setting[i].users = 0;
}

__attribute__((constructor)) static void watch_fork(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* ---- finding ---- */

/* The names that an object and what it depends on know. */
static void look_in(struct bl_threading *t, void *object)
{
    for (size_t i = 0; object && i < sizeof names / sizeof *names; i++) {
        struct setting s = {.place = names[i].place};
        get_fn *parallel = NULL;
        *(void **)&s.set = dlsym(object, names[i].set);
        *(void **)&s.get = dlsym(object, names[i].get);
        bool usable = s.set && s.get;
        for (int k = 0; k < t->count; k++)
            usable &= t->setting[k].set != s.set;
        if (usable && names[i].parallel) {
            *(void **)&parallel = dlsym(object, names[i].parallel);
            int kind = parallel ? (int)parallel() : 1;
            t->one_at_a_time |= kind == 0;
            usable = kind == 1; /* OpenMP has been told on each thread */
        }
        if (usable && t->count < BL_THREAD_SETTINGS) {
            s.get(); /* MKL loads the rest of itself on its first call */
            t->setting[t->count++] = s;
        }
    }
}

/* A BLAS that is bound before the LAPACK's own: a preload's, or the program's. */
static void look_in_global_blas(struct bl_threading *t, void *lapack)
{
    Dl_info info;
    struct link_map *map;
    void *symbol =
        lapack && dlsym(lapack, "dgemm_") ? dlsym(RTLD_DEFAULT, "dgemm_") : NULL;
    if (!symbol || !dladdr1(symbol, &info, (void **)&map, RTLD_DL_LINKMAP))
        return;
    void *object = bl_handle_of(map->l_name);
    look_in(t, object);
    if (object)
        dlclose(object);
}

static struct bl_threading *find_known(const struct link_map *library)
{
    struct bl_threading *t = atomic_load_explicit(&known, memory_order_acquire);
    while (t && t->library != library)
        t = t->next;
    return t;
}

/* forward.c keeps the libraries that it found, so what is found in them stays good. */
static struct bl_threading *look_up(const struct link_map *library)
{
    struct bl_guard guard;
    bl_guard_enter(
        &guard); /* no handler in between: loader and malloc are entered once */
    bl_loader_lock();
    struct bl_threading *t = find_known(library);
    if (!t && (t = calloc(1, sizeof *t))) {
        void *object = bl_handle_of(library->l_name);
        t->library = library;
        look_in(t, object); /* the reference is kept, as forward.c does */
        look_in_global_blas(t, object);
        t->next = atomic_load(&known);
        atomic_store_explicit(&known, t, memory_order_release);
    }
    bl_loader_unlock();
    bl_guard_leave(&guard);
    return t;
}

static struct bl_threading *threading_of(bl_fn *lapack)
{
    struct dl_find_object of;
    void *symbol;
    memcpy(&symbol, &lapack, sizeof symbol);
    if (_dl_find_object(symbol, &of) != 0)
        return NULL;
    struct bl_threading *t = find_known(of.dlfo_link_map);
    return t ? t : look_up(of.dlfo_link_map);
}

int bl_threads_of(bl_fn *lapack)
{
    struct bl_threading *t = threading_of(lapack);
    int most = 1;
    for (int i = 0; t && i < t->count; i++)
        most = (int)bl_max(most, (int)t->setting[i].get());
    return most;
}

/* ---- the settings of the process ---- */

#define JOINED                                                                           \
    0 /* in `before`: one of the users; more: the thread's own, to put back              \
       */
#define LEFT_ALONE (-1)

/* Under the lock. Above 1 although another batch has it at 1: this version keeps a number
 * a thread (AMD's BLIS), and it is this thread's to put back. */
static int begin_process(struct setting *s)
{
    int now = (int)s->get();
    if (s->users > 0 && now > 1)
        return s->set(1), now;
    if (s->users == 0) {
        s->was = (int)bl_max(now, s->was);
        if (s->was <= 1)
            return LEFT_ALONE;
        s->set(1);
    }
    s->users++;
    return JOINED;
}

static void end_process(struct setting *s, int before)
{
    if (before > 0) {
        s->set(before);
    } else if (before == JOINED && --s->users == 0) {
        s->set(s->was);
        s->was = 0;
    }
}

/* No handler may come in between: it might begin a batch of its own. */
static void enter(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
    pthread_mutex_lock(&lock);
}

static void leave(const sigset_t *before)
{
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* ---- a batch ---- */

bool bl_single_thread_begin(struct bl_single_thread *s, bl_fn *lapack)
{
    struct bl_threading *t = s->of = threading_of(lapack);
    sigset_t before;
    if (!t || t->count == 0)
        return !t || !t->one_at_a_time;
    enter(&before);
    for (int i = 0; i < t->count; i++) {
        struct setting *one = &t->setting[i];
        if (one->place == PROCESS)
            s->before[i] = begin_process(one);
        else if (one->place == THREAD_TELLS)
            s->before[i] = (int)one->set(1);
        else {
            s->before[i] = (int)one->get();
            one->set(1);
        }
    }
    leave(&before);
    return !t->one_at_a_time;
}

void bl_single_thread_end(const struct bl_single_thread *s)
{
    struct bl_threading *t = s->of;
    sigset_t before;
    if (!t || t->count == 0)
        return;
    enter(&before);
    for (int i = t->count; i-- > 0;)
        if (t->setting[i].place == PROCESS)
            end_process(&t->setting[i], s->before[i]);
        else
            t->setting[i].set(s->before[i]);
    leave(&before);
}

void bl_single_thread_here(const struct bl_single_thread *s)
{
    for (int i = 0; s->of && i < s->of->count; i++)
        if (s->of->setting[i].place != PROCESS || s->before[i] != LEFT_ALONE)
            s->of->setting[i].set(1);
}
