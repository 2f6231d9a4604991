/* The few threads that run the CPU side of a batch (workers.c).
 *
 * A run covers [0, count) once, in ranges taken by whoever is free, on the calling thread
 * and the workers:
 *
 *     struct bl_single_thread one;
 *     bool at_once = bl_single_thread_begin(&one, lapack);
 *     bl_workers_run(at_once ? ns_of_a_matrix : 0, count, part, &arguments);
 *     bl_single_thread_end(&one);
 *
 * where `part` first calls bl_single_thread_here(&one) (single_thread.h).
 */
#ifndef WORKERS_H
#define WORKERS_H

#include <stdint.h>

/* Units from <= i < to. It may run on any thread, at the same time as other ranges; no
 * two ranges that run at once have the same `worker`, 0 <= worker < bl_workers_count().
 */
typedef void bl_part(void *arg, int64_t from, int64_t to, int worker);

/* Returns when all is done. A unit takes about `ns`: what is not worth waking anybody for
 * (or ns 0) runs on the calling thread, as one range. So does the run of a thread that
 * traps floating-point exceptions, a run while another one goes on (nested ones, too),
 * and every run in a forked child. `part` must return: no longjmp, no throw. */
void bl_workers_run(int64_t ns, int64_t count, bl_part *part, void *arg);

/* The same for copies, on behalf of a thread that is inside the guard already: `part`
 * touches no floating-point state. Another run is soon to come, so workers look out for
 * it for a moment before they sleep. `progress`, where not NULL, is called on the calling
 * thread after each of its own ranges, while it waits, and at the end. */
void bl_workers_copy(int64_t ns, int64_t count, bl_part *part, void (*progress)(void *),
                     void *arg);

/* The most threads that work on a run, the calling one included; at least 1. */
int bl_workers_count(void);

#endif
