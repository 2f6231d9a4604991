/* A LAPACK whose routines do nothing but say that all is well. bench/forwarded puts it
 * behind the library: what is left of a call's time is the library's own.
 */
#include "bl.h"

#define PARAMS_5 void *a, void *b, void *c, void *d, int *info
#define PARAMS_6 void *a, void *b, void *c, void *d, void *e, int *info
#define PARAMS_7 void *a, void *b, void *c, void *d, void *e, void *f, int *info
#define PARAMS_8 PARAMS_6_BEFORE, void *g, int *info
#define PARAMS_9 PARAMS_6_BEFORE, void *g, void *h, int *info
#define PARAMS_6_BEFORE void *a, void *b, void *c, void *d, void *e, void *f

#define ENTRY(symbol, nargs)                                                             \
    BL_EXPORT void symbol(PARAMS_##nargs);                                               \
    void symbol(PARAMS_##nargs)                                                          \
    {                                                                                    \
        *info = 0;                                                                       \
    }
#define R_SDCZ(name, NAME, nargs, args)                                                  \
    ENTRY(s##name##_, nargs)                                                             \
    ENTRY(d##name##_, nargs) ENTRY(c##name##_, nargs) ENTRY(z##name##_, nargs)
#include "routines.def"
