/* What of the calling thread must not leak into our work on the GPU, nor our work into
 * it.
 *
 * The dispatcher enters the guard before the engine is asked for and leaves it when the
 * call has run or is to be forwarded. In between no handler of the program can run on
 * this thread (it might call LAPACK again, fork, or leave by longjmp, with a lane of ours
 * in hand), the thread cannot be cancelled, and floating-point traps are off; flags and
 * errno come back as they were. Signals that would end the process still do, at once.
 */
#include <errno.h>

#include "guard.h"

/* The signals that have a handler, less those that tell of a fault in our own code. */
static void handled_signals(sigset_t *set)
{
    static const int synchronous[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    sigfillset(set);
    for (int s = 1; s < SIGRTMIN; s++) {
        struct sigaction action;
        if (sigaction(s, NULL, &action) == 0 &&
            (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN))
            sigdelset(set, s);
    }
    for (size_t i = 0; i < sizeof synchronous / sizeof *synchronous; i++)
        sigdelset(set, synchronous[i]);
}

void bl_guard_add_handled(sigset_t *set)
{
    sigset_t handled;
    handled_signals(&handled);
    sigorset(set, set, &handled);
}

void bl_guard_enter(struct bl_guard *g)
{
    sigset_t set;
    g->saved_errno = errno;
    handled_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, &g->signals);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &g->cancel);
    feholdexcept(&g->floating_point);
}

void bl_guard_leave(const struct bl_guard *g)
{
    fesetenv(&g->floating_point);
    pthread_setcancelstate(g->cancel, NULL);
    pthread_sigmask(SIG_SETMASK, &g->signals, NULL);
    errno = g->saved_errno;
}
