/* Call a LAPACK routine whose arguments are packed in an array of pointers.
 *
 * Used by forward.c, and by the mock engine and tests for the reference. Decides nothing
 * and keeps nothing: the routine may leave by longjmp or throw.
 */
#include <stdlib.h>

#include "bl.h"

/* One for the hidden length of each option character. No routine of the table has more
 * than two; a routine that has fewer never looks at the surplus. */
#define HIDDEN (size_t)1, (size_t)1
#define P1 void *
#define P2 P1, P1
#define P4 P2, P2
#define AS(...) ((void (*)(__VA_ARGS__, size_t, size_t))f)

void bl_call_lapack(bl_fn *f, unsigned nargs, void *const *v)
{
    switch (nargs) {
    case 5:
        AS(P4, P1)(v[0], v[1], v[2], v[3], v[4], HIDDEN);
        break;
    case 6:
        AS(P4, P2)(v[0], v[1], v[2], v[3], v[4], v[5], HIDDEN);
        break;
    case 7:
        AS(P4, P2, P1)(v[0], v[1], v[2], v[3], v[4], v[5], v[6], HIDDEN);
        break;
    case 8:
        AS(P4, P4)(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], HIDDEN);
        break;
    case 9:
        AS(P4, P4, P1)
        (v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], HIDDEN);
        break;
    case 10:
        AS(P4, P4, P2)
        (v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], HIDDEN);
        break;
    default:
        abort(); /* a row of routines.def with an argument count not listed here */
    }
}
