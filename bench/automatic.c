/* What the library itself takes where no arithmetic is asked for: for bench/batched,
 * which talks to the engine and is C++, linked with the library's own objects. */
#include "bl.h"
#include "automatic.h"

int automatic_arithmetic(const struct bl_job *job)
{
    struct bl_call call = {.uplo = job->uplo,
                           .trans = job->trans,
                           .m = job->m,
                           .n = job->n,
                           .nrhs = job->nrhs,
                           .batch = job->batch,
                           .has_b = job->nrhs > 0};
    unsigned row = 0;
    while (bl_rows[row].operation != job->routine)
        row++;
    call.id = bl_id(row, job->precision);
    return bl_arithmetic_of(&call);
}
