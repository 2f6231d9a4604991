/* The exported LAPACK symbols: every row of routines.def in four precisions and four
 * spellings. An entry packs its argument pointers and calls the dispatcher, nothing more.
 *
 * Hidden string lengths are not declared: C callers do not pass them, and a callee that
 * owns stack slots the caller never made may overwrite the caller's frame.
 */
#include "bl.h"

/* A row whose letters are not as many as its arguments does not compile. */
#define R_SDCZ(name, NAME, nargs, args)                                                  \
    _Static_assert(sizeof(args) - 1 == (nargs), #name ": letters and argument count");
#include "routines.def"
#undef R_SDCZ

#define PARAMS_5 void *a, void *b, void *c, void *d, void *e
#define PARAMS_6 PARAMS_5, void *f
#define PARAMS_7 PARAMS_6, void *g
#define PARAMS_8 PARAMS_7, void *h
#define PARAMS_9 PARAMS_8, void *i
#define PARAMS_10 PARAMS_9, void *j
#define PACK_5 a, b, c, d, e
#define PACK_6 PACK_5, f
#define PACK_7 PACK_6, g
#define PACK_8 PACK_7, h
#define PACK_9 PACK_8, i
#define PACK_10 PACK_9, j

#define ENTRY(symbol, NAME, P, spelling, nargs)                                          \
    BL_EXPORT void symbol(PARAMS_##nargs);                                               \
    void symbol(PARAMS_##nargs)                                                          \
    {                                                                                    \
        void *v[] = {PACK_##nargs};                                                      \
        bl_dispatch(BL_##NAME *BL_PRECISIONS + BL_##P, spelling, v,                      \
                    __builtin_return_address(0));                                        \
    }
#define SPELLINGS(p, P, name, NAME, nargs)                                               \
    ENTRY(p##name##_, NAME, P, 0, nargs)                                                 \
    ENTRY(p##name##_64_, NAME, P, BL_WIDE, nargs)                                        \
    ENTRY(scipy_##p##name##_, NAME, P, BL_SCIPY, nargs)                                  \
    ENTRY(scipy_##p##name##_64_, NAME, P, BL_SCIPY | BL_WIDE, nargs)
#define R_SDCZ(name, NAME, nargs, args)                                                  \
    SPELLINGS(s, S, name, NAME, nargs)                                                   \
    SPELLINGS(d, D, name, NAME, nargs)                                                   \
    SPELLINGS(c, C, name, NAME, nargs)                                                   \
    SPELLINGS(z, Z, name, NAME, nargs)
#include "routines.def"
