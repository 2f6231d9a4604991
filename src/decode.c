/* From a call's argument pointers to named values, and from those to a job.
 *
 * One function for all routines, driven by the letters of routines.def. It checks what
 * LAPACK checks; an illegal call is only recognized here, the program's own LAPACK then
 * reports it (INFO, xerbla) as it always did. Nothing of the caller's is written.
 */
#include <string.h>

#include "bl.h"

static int64_t integer(const void *p, bool wide)
{
    return wide ? *(const int64_t *)p : *(const int32_t *)p;
}

/* LSAME: the first letter counts, in either case. NUL is no letter, and not "has none".
 */
static char option(const void *p)
{
    unsigned char c = *(const unsigned char *)p;
    return (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c ? c : '?');
}

void bl_decode(struct bl_call *c, unsigned id, bool wide, void *const *v)
{
    const char *args = bl_row(id)->args;
    memset(c, 0, sizeof *c);
    c->id = id;
    c->wide = wide;
    char matrix = 0;
    for (; *args; args++, v++)
        switch (*args) {
        case 'm':
            c->m = integer(*v, wide);
            c->has_m = true;
            break;
        case 'n':
            c->n = integer(*v, wide);
            break;
        case 'r':
            c->nrhs = integer(*v, wide);
            break;
        case 'u':
            c->uplo = option(*v);
            break;
        case 't':
            c->trans = option(*v);
            break;
        case 'a':
        case 'A':
            c->a = *v;
            matrix = 'a';
            break;
        case 'B':
            c->b = *v;
            c->has_b = true;
            matrix = 'b';
            break;
        case 'l':
            *(matrix == 'a' ? &c->lda : &c->ldb) = integer(*v, wide);
            break;
        case 'p':
        case 'P':
            c->ipiv = *v;
            break;
        case 'W':
            c->work = *v;
            c->has_work = true;
            break;
        case 'q':
            c->lwork = integer(*v, wide);
            break;
        case 'i':
            c->info = *v;
            break;
        }
    if (!c->has_m)
        c->m = c->n;
    c->query = c->has_work && c->lwork == -1;
    c->legal = (!c->uplo || c->uplo == 'U' || c->uplo == 'L') &&
               (!c->trans || c->trans == 'N' || c->trans == 'T' || c->trans == 'C') &&
               c->m >= 0 && c->n >= 0 && c->nrhs >= 0 && c->lda >= bl_max(1, c->m) &&
               (!c->has_b || c->ldb >= bl_max(1, c->n)) &&
               (!c->has_work || c->query || c->lwork >= bl_max(1, c->n));
    /* A solve without right-hand sides is empty for us: LAPACK handles it (gesv and posv
     * still factor), and there is nothing to gain. */
    c->empty = c->m == 0 || c->n == 0 || (c->has_b && c->nrhs == 0);
}

#define GETRI_BLOCK 64 /* what netlib's ILAENV answers */

/* The block size getri takes for this LWORK (netlib 3.11: 64 where the workspace allows
 * it, at least 2, else 0: the unblocked loop), and the WORK(1) that it then returns. */
int64_t bl_getri_block(const struct bl_call *c, int64_t *iws)
{
    int64_t nb = GETRI_BLOCK;
    *iws = c->n;
    if (nb < c->n) {
        *iws = c->n * nb;
        if (c->lwork < *iws)
            nb = c->lwork / c->n;
    }
    return nb < 2 || nb >= c->n ? 0 : nb;
}

/* WORK(1) as netlib leaves it: what was needed, or after INFO > 0 what would be best. */
int64_t bl_work_size(const struct bl_call *c, int64_t info)
{
    int64_t iws;
    bl_getri_block(c, &iws);
    return info > 0 ? c->n * GETRI_BLOCK : iws;
}

void bl_job_of_call(struct bl_job *job, const struct bl_call *c)
{
    memset(job, 0, sizeof *job);
    job->routine = (enum bl_routine_id)(c->id / BL_PRECISIONS);
    job->precision = (enum bl_precision)(c->id % BL_PRECISIONS);
    job->arithmetic = bl_arithmetic_of(c);
    job->uplo = c->uplo;
    job->trans = c->trans;
    job->int_size = c->wide ? 8 : 4;
    job->m = c->m;
    job->n = c->n;
    job->nrhs = c->nrhs;
    job->batch = 1;
    job->a = (struct bl_operand){c->a, NULL, c->lda, 0};
    job->b = (struct bl_operand){c->b, NULL, c->ldb, 0};
    job->ipiv = (struct bl_operand){c->ipiv, NULL, 0, 0};
    job->info = (struct bl_operand){c->info, NULL, 0, 0};
    int64_t iws;
    if (c->has_work)
        job->block = bl_getri_block(c, &iws);
}
