/* Which calls come back in from LAPACK itself: netlib's dgesv calls our dgetrf_.
 *
 * The dispatcher and the workers enter a frame before they call LAPACK and leave it
 * after. A counter would not do: R and Octave leave xerbla by longjmp.
 */
#include "bl.h"

static _Thread_local BL_FAST_TLS const struct bl_frame *outermost;

#define MARK(frame) ((uintptr_t)(frame) ^ (uintptr_t)0x6c61706b62617463)
#define STACK_LIMIT ((uintptr_t)64 << 20) /* farther away is another stack */

bool bl_nested(const void *here)
{
    const struct bl_frame *f = outermost;
    uintptr_t distance = (uintptr_t)f - (uintptr_t)here;
    if (!f || (uintptr_t)here >= (uintptr_t)f || distance > STACK_LIMIT)
        return false;
    return f->self == f && f->mark == MARK(f);
}

void bl_enter(struct bl_frame *f)
{
    f->self = f;
    f->mark = MARK(f);
    outermost = f;
}

void bl_leave(struct bl_frame *f)
{
    f->self = NULL;
    f->mark = 0;
    outermost = NULL;
}
