/* The calling thread's floating point as at a program's start, and back: its flags, traps
 * and rounding notice nothing of what is computed between the two, in a function that is
 * not inlined. Where SSE does all of the arithmetic its register is enough: to save the
 * x87's takes longer than the rest of a forwarded call.
 */
#ifndef FLOATING_POINT_H
#define FLOATING_POINT_H

#ifdef __SSE2_MATH__
#    include <xmmintrin.h>

typedef unsigned bl_floating_point;
static inline void bl_hold(bl_floating_point *before)
{
    *before = _mm_getcsr();
    _mm_setcsr(_MM_MASK_MASK | _MM_ROUND_NEAREST);
}
static inline void bl_release(const bl_floating_point *before)
{
    _mm_setcsr(*before);
}
#else
#    include <fenv.h>

typedef fenv_t bl_floating_point;
static inline void bl_hold(bl_floating_point *before)
{
    feholdexcept(before);
}
static inline void bl_release(const bl_floating_point *before)
{
    fesetenv(before);
}
#endif

#endif
