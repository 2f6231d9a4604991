/* The rows of routines.def as data, and what can be read off their letters.
 *
 * Used by every step of the shim, the launcher's tests and the mock engine. No state.
 */
#include <stdio.h>
#include <string.h>

#include "bl.h"

const struct bl_routine bl_routines[BL_ROUTINES] = {
#define R_SDCZ(name, NAME, nargs, args) {#name, args, nargs},
#include "routines.def"
#undef R_SDCZ
};

void bl_symbol(char out[BL_SYMBOL_MAX], unsigned id, unsigned spelling)
{
    snprintf(out, BL_SYMBOL_MAX, "%s%c%s%s", spelling & BL_SCIPY ? "scipy_" : "",
             bl_prefix(id), bl_row(id)->name, spelling & BL_WIDE ? "_64_" : "_");
}

bool bl_writes(enum bl_routine_id r, char letter)
{
    return strchr(bl_routines[r].args, letter - 'a' + 'A') != NULL;
}

/* Matrices that are written are read as well; a pivot vector is one or the other. */
bool bl_reads(enum bl_routine_id r, char letter)
{
    return strchr(bl_routines[r].args, letter) != NULL ||
           (letter != 'p' && bl_writes(r, letter));
}
