/* From a call's argument pointers to named values, and from those to a job.
 *
 * One function for all rows, driven by the letters of routines.def. It checks what LAPACK
 * checks, and for batches strides and NULL as well; an illegal call is only recognized
 * here: the program's own LAPACK then reports it (INFO, xerbla) as it always did, of a
 * batch batch.c. Nothing of the caller's is written.
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

/* Where a call's arguments are found: those of a group lie at its place in arrays. */
struct place {
    bool wide;
    int64_t group, first; /* of this group; its first matrix */
};

static int64_t number(const void *p, const struct place *at)
{
    return integer((const char *)p + at->group * (at->wide ? 8 : 4), at->wide);
}

/* One argument. `last` is the operand that l and s belong to. */
static void take(struct bl_call *c, char letter, void *p, const struct place *at,
                 char *last)
{
    size_t pointers = (size_t)at->first * sizeof(void *);
    switch (letter) {
    case 'm':
        c->m = number(p, at);
        c->has_m = true;
        break;
    case 'n':
        c->n = number(p, at);
        break;
    case 'r':
        c->nrhs = number(p, at);
        break;
    case 'u':
        c->uplo = option((const char *)p + at->group);
        break;
    case 't':
        c->trans = option((const char *)p + at->group);
        break;
    case 'a':
    case 'A':
        c->a = p ? (char *)p + pointers : NULL;
        *last = 'a';
        break;
    case 'B':
        c->b = p;
        c->has_b = true;
        *last = 'b';
        break;
    case 'X':
        c->x = p ? (char *)p + pointers : NULL;
        *last = 'x';
        break;
    case 'p':
    case 'P':
        c->ipiv = p ? (char *)p + pointers : NULL;
        *last = 'p';
        break;
    case 'l':
        *(*last == 'a' ? &c->lda : *last == 'b' ? &c->ldb : &c->ldx) = number(p, at);
        break;
    case 's':
        *(*last == 'a'   ? &c->stride_a
          : *last == 'b' ? &c->stride_b
          : *last == 'x' ? &c->stride_x
                         : &c->stride_ipiv) = number(p, at);
        break;
    case 'D':
        c->phase = p;
        break;
    case 'G':
        c->logabs = p;
        break;
    case 'W':
        c->work = p;
        c->has_work = true;
        break;
    case 'q':
        c->lwork = number(p, at);
        break;
    case 'k':
    case 'z':
        c->batch = number(p, at);
        break;
    case 'i':
        c->info = p ? (char *)p + at->first * (at->wide ? 8 : 4) : NULL;
        break;
    }
}

static bool too_small(int64_t stride, int64_t ld, int64_t columns)
{
    int64_t least;
    return __builtin_mul_overflow(ld, columns, &least) || stride < least;
}

/* Is this argument of a batched call illegal? The ones before it are legal. */
static bool illegal(const struct bl_call *c, char letter, char *last)
{
    bool null = c->batch > 0 && c->m > 0 && c->n > 0;
    switch (letter) {
    case 'm':
        return c->m < 0;
    case 'n':
        return c->n < 0;
    case 'r':
        return c->nrhs < 0;
    case 'u':
        return c->uplo != 'U' && c->uplo != 'L';
    case 't':
        return c->trans != 'N' && c->trans != 'T' && c->trans != 'C';
    case 'a':
    case 'A':
        *last = 'a';
        return null && !c->a;
    case 'B':
        *last = 'b';
        return null && !c->b && c->nrhs > 0;
    case 'X':
        *last = 'x';
        return null && !c->x;
    case 'p':
    case 'P':
        *last = 'p';
        return null && !c->ipiv;
    case 'D':
        return c->batch > 0 && !c->phase;
    case 'G':
        return c->batch > 0 && !c->logabs;
    case 'l':
        return *last == 'a' ? c->lda < bl_max(1, c->m)
               : *last == 'b'
                   ? c->ldb < bl_max(1, c->n)
                   : c->ldx < bl_max(1, c->n) || (c->x == c->a && c->ldx != c->lda);
    case 's':
        return *last == 'a'   ? too_small(c->stride_a, c->lda, c->n)
               : *last == 'b' ? too_small(c->stride_b, c->ldb, c->nrhs)
               : *last == 'x' ? too_small(c->stride_x, c->ldx, c->n) ||
                                    (c->x == c->a && c->stride_x != c->stride_a)
                              : c->stride_ipiv < bl_min(c->m, c->n);
    case 'k':
    case 'z':
        return c->batch < 0;
    case 'i':
        return c->batch > 0 && !c->info;
    }
    return false;
}

/* All at once: LAPACK itself finds out which one it is. */
static bool legal_for_lapack(const struct bl_call *c)
{
    return (!c->uplo || c->uplo == 'U' || c->uplo == 'L') &&
           (!c->trans || c->trans == 'N' || c->trans == 'T' || c->trans == 'C') &&
           c->m >= 0 && c->n >= 0 && c->nrhs >= 0 && c->lda >= bl_max(1, c->m) &&
           (!c->has_b || c->ldb >= bl_max(1, c->n)) &&
           (!c->has_work || c->query || c->lwork >= bl_max(1, c->n));
}

static void decode(struct bl_call *c, unsigned id, void *const *v, const struct place *at)
{
    const char *args = bl_row(id)->args;
    bool batched = id >= BL_LAPACK_IDS;
    volatile size_t size = sizeof *c; /* of a constant one GCC makes a slow rep stos */
    memset(c, 0, size);
    c->id = id;
    c->wide = at->wide;
    c->batch = 1;
    char last = 0;
    for (unsigned i = 0; args[i]; i++)
        take(c, args[i], v[i], at, &last);
    if (!c->has_m)
        c->m = c->n;
    c->query = c->has_work && c->lwork == -1;
    for (unsigned i = 0; batched && args[i] && !c->bad; i++)
        if (illegal(c, args[i], &last))
            c->bad = i + 1;
    c->legal = batched ? c->bad == 0 : legal_for_lapack(c);
    /* A solve without right-hand sides is empty for us: LAPACK handles it (gesv and posv
     * still factor), and there is nothing to gain. */
    c->empty = c->m == 0 || c->n == 0 || (c->has_b && c->nrhs == 0) || c->batch == 0;
}

void bl_decode(struct bl_call *c, unsigned id, bool wide, void *const *v)
{
    decode(c, id, v, &(struct place){wide, 0, 0});
}

void bl_decode_group(struct bl_call *c, unsigned id, bool wide, void *const *v,
                     int64_t group, int64_t first)
{
    decode(c, id, v, &(struct place){wide, group, first});
}

int64_t bl_group_count(unsigned id, bool wide, void *const *v)
{
    return integer(v[strchr(bl_row(id)->args, 'g') - bl_row(id)->args], wide);
}

void *bl_operand_of(const struct bl_call *c, char letter)
{
    switch (letter) {
    case 'a':
    case 'A':
        return c->a;
    case 'B':
        return c->b;
    case 'X':
        return c->x;
    case 'p':
    case 'P':
        return c->ipiv;
    case 'D':
        return c->phase;
    case 'G':
        return c->logabs;
    case 'i':
        return c->info;
    }
    return NULL;
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
    bool groups = strchr(bl_row(c->id)->args, 'g') != NULL;
    memset(job, 0, sizeof *job);
    job->routine = bl_operation(c->id);
    job->precision = bl_precision(c->id);
    job->arithmetic = bl_arithmetic_of(c);
    job->uplo = c->uplo;
    job->trans = c->trans;
    job->int_size = c->wide ? 8 : 4;
    job->m = c->m;
    job->n = c->n;
    job->nrhs = c->nrhs;
    job->batch = c->batch;
    job->a = (struct bl_operand){c->a, groups ? c->a : NULL, c->lda, c->stride_a};
    job->b = (struct bl_operand){c->b, NULL, c->ldb, c->stride_b};
    job->x = (struct bl_operand){c->x, groups ? c->x : NULL, c->ldx, c->stride_x};
    job->ipiv = (struct bl_operand){c->ipiv, groups ? c->ipiv : NULL, 0, c->stride_ipiv};
    job->info = (struct bl_operand){c->info, NULL, 0, 1};
    job->phase = (struct bl_operand){c->phase, NULL, 0, 1};
    job->logabs = (struct bl_operand){c->logabs, NULL, 0, 1};
    /* A batch of getri brings no WORK: the best block. */
    int64_t iws;
    struct bl_call best = *c;
    if (!c->has_work)
        best.lwork = INT64_MAX;
    if (c->n > 0 && bl_inverts(job->routine))
        job->block = bl_getri_block(&best, &iws);
}
