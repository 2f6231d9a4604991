/* The exported symbols: every row of routines.def in four precisions and four spellings
 * (LAPACK's: Fortran's, 64-bit integers, SciPy's prefix; batched: from C and Fortran, 32-
 * and 64-bit integers). An entry packs its argument pointers and calls the dispatcher,
 * nothing more.
 *
 * Hidden string lengths are not declared: C callers do not pass them, and a callee that
 * owns stack slots the caller never made may overwrite the caller's frame.
 */
#include "bl.h"

/* A row whose letters are not as many as its arguments does not compile. */
#define R_SDCZ(name, NAME, nargs, args)                                                  \
    _Static_assert(sizeof(args) - 1 == (nargs), #name ": letters and argument count");
#define B_SDCZ(name, NAME, OPERATION, nargs, args) R_SDCZ(name, NAME, nargs, args)
#include "routines.def"

#define PARAMS_5 void *a, void *b, void *c, void *d, void *e
#define PARAMS_6 PARAMS_5, void *f
#define PARAMS_7 PARAMS_6, void *g
#define PARAMS_8 PARAMS_7, void *h
#define PARAMS_9 PARAMS_8, void *i
#define PARAMS_10 PARAMS_9, void *j
#define PARAMS_11 PARAMS_10, void *k
#define PARAMS_12 PARAMS_11, void *l
#define PARAMS_13 PARAMS_12, void *m
#define PACK_5 a, b, c, d, e
#define PACK_6 PACK_5, f
#define PACK_7 PACK_6, g
#define PACK_8 PACK_7, h
#define PACK_9 PACK_8, i
#define PACK_10 PACK_9, j
#define PACK_11 PACK_10, k
#define PACK_12 PACK_11, l
#define PACK_13 PACK_12, m

#define ENTRY(symbol, dispatch, NAME, P, spelling, nargs)                                \
    BL_EXPORT void symbol(PARAMS_##nargs);                                               \
    void symbol(PARAMS_##nargs)                                                          \
    {                                                                                    \
        void *v[] = {PACK_##nargs};                                                      \
        dispatch(BL_ROW_##NAME *BL_PRECISIONS + BL_##P, spelling, v,                     \
                 __builtin_return_address(0));                                           \
    }
#define LAPACK(p, P, name, NAME, nargs)                                                  \
    ENTRY(p##name##_, bl_dispatch, NAME, P, 0, nargs)                                    \
    ENTRY(p##name##_64_, bl_dispatch, NAME, P, BL_WIDE, nargs)                           \
    ENTRY(scipy_##p##name##_, bl_dispatch, NAME, P, BL_SCIPY, nargs)                     \
    ENTRY(scipy_##p##name##_64_, bl_dispatch, NAME, P, BL_SCIPY | BL_WIDE, nargs)
#define BATCHED(p, P, name, NAME, nargs)                                                 \
    ENTRY(p##name, bl_batch, NAME, P, 0, nargs)                                          \
    ENTRY(p##name##_, bl_batch, NAME, P, 0, nargs)                                       \
    ENTRY(p##name##_64, bl_batch, NAME, P, BL_WIDE, nargs)                               \
    ENTRY(p##name##_64_, bl_batch, NAME, P, BL_WIDE, nargs)
#define SDCZ(spellings, name, NAME, nargs)                                               \
    spellings(s, S, name, NAME, nargs) spellings(d, D, name, NAME, nargs)                \
        spellings(c, C, name, NAME, nargs) spellings(z, Z, name, NAME, nargs)
#define R_SDCZ(name, NAME, nargs, args) SDCZ(LAPACK, name, NAME, nargs)
#define B_SDCZ(name, NAME, OPERATION, nargs, args) SDCZ(BATCHED, name, NAME, nargs)
#include "routines.def"
