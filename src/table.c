/* The rows of routines.def as data, and what can be read off their letters.
 *
 * Used by every step of the shim, the launcher's tests and the mock engine. No state.
 */
#include <stdio.h>
#include <string.h>

#include "bl.h"

const struct bl_routine bl_rows[BL_ROWS] = {
#define R_SDCZ(name, NAME, nargs, args) {#name, args, nargs, BL_##NAME},
#define B_SDCZ(name, NAME, OPERATION, nargs, args) {#name, args, nargs, BL_##OPERATION},
#include "routines.def"
};

const struct bl_routine bl_routines[BL_ROUTINES] = {
#define R_SDCZ(name, NAME, nargs, args) {#name, args, nargs, BL_##NAME},
#define E_SDCZ(name, NAME, args) {#name, args, sizeof(args) - 1, BL_##NAME},
#include "routines.def"
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

/* A and B are read where they are written, too; the other results are not. */
bool bl_reads(enum bl_routine_id r, char letter)
{
    return strchr(bl_routines[r].args, letter) != NULL ||
           ((letter == 'a' || letter == 'b') && bl_writes(r, letter));
}
