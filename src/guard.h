/* The state of the calling thread that guard.c keeps and gives back. */
#ifndef GUARD_H
#define GUARD_H

#include <fenv.h>
#include <pthread.h>
#include <signal.h>

struct bl_guard {
    int saved_errno, cancel;
    sigset_t signals;
    fenv_t floating_point;
};
void bl_guard_enter(struct bl_guard *g);
void bl_guard_leave(const struct bl_guard *g);
/* Add the signals that have a handler by now. */
void bl_guard_add_handled(sigset_t *set);

#endif
