/* Each call of a LAPACK on one thread, for the time of a batch (single_thread.c). */
#ifndef SINGLE_THREAD_H
#define SINGLE_THREAD_H

#include <stdbool.h>

#include "bl.h"

#define BL_THREAD_SETTINGS 8

/* What one thread's batch has changed. */
struct bl_single_thread {
    struct bl_threading *of; /* NULL: nothing to be said to this LAPACK */
    int before[BL_THREAD_SETTINGS];
};

/* On the thread that calls the batch, before and after. `lapack`: any routine of the
 * library. False: it must not be called from two threads at once. Whether the calls then
 * run on workers must not depend on chance, but this is to be called for either way: some
 * libraries give other bits on several threads. */
bool bl_single_thread_begin(struct bl_single_thread *s, bl_fn *lapack);
void bl_single_thread_end(const struct bl_single_thread *s);

/* In between, on any thread that is about to call the LAPACK: cheap, repeatable. */
void bl_single_thread_here(const struct bl_single_thread *s);

/* How many threads a call would take now, if left alone: 1 also where that is unknown. A
 * batch of fewer matrices than that, large ones, is better left to the LAPACK. */
int bl_threads_of(bl_fn *lapack);

#endif
