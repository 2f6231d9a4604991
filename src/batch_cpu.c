/* The CPU side of a batch: the program's own LAPACK over the matrices, on our workers.
 *
 * Called by batch.c for the problems that the GPU does not do. Every matrix goes through
 * the routine that the program itself would have called for it, so INFO, IPIV and bits
 * are that LAPACK's; operations that LAPACK does not have are put together from those it
 * has, or come from host_lu.c. What is written does not depend on who does which matrix.
 */
#include <stdlib.h>
#include <string.h>

#include "bl.h"
#include "host_lu.h"
#include "single_thread.h"
#include "workers.h"

struct cpu {
    const struct bl_job *job;
    int64_t from;
    unsigned spelling;
    const void *caller;
    size_t element;
    const struct bl_single_thread *single;
};

/* A LAPACK call's scalars. A 64-bit integer is read as a 32-bit one at the same address.
 */
struct scalars {
    char uplo, trans;
    int64_t m, n, nrhs, lda, ldb, lwork;
    void *a, *b, *ipiv, *work, *info;
};
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#    error "32-bit integers are read at the address of 64-bit ones"
#endif

static void lapack(const struct cpu *x, enum bl_row row, struct scalars *s)
{
    void *v[BL_MAX_ARGS], **next = v;
    unsigned id = bl_id(row, x->job->precision);
    bool of_b = false;
    for (const char *letter = bl_row(id)->args; *letter; letter++)
        switch (*letter) {
        case 'm':
            *next++ = &s->m;
            break;
        case 'n':
            *next++ = &s->n;
            break;
        case 'r':
            *next++ = &s->nrhs;
            break;
        case 'u':
            *next++ = &s->uplo;
            break;
        case 't':
            *next++ = &s->trans;
            break;
        case 'a':
        case 'A':
            *next++ = s->a;
            break;
        case 'B':
            *next++ = s->b;
            of_b = true;
            break;
        case 'l':
            *next++ = of_b ? &s->ldb : &s->lda;
            break;
        case 'p':
        case 'P':
            *next++ = s->ipiv;
            break;
        case 'W':
            *next++ = s->work;
            break;
        case 'q':
            *next++ = &s->lwork;
            break;
        case 'i':
            *next++ = s->info;
            break;
        }
    bl_forward(bl_find(id, x->spelling, x->caller), id, x->spelling, v);
}

static void *need(size_t count, size_t size)
{
    void *p = malloc((count ? count : 1) * size);
    if (!p) {
        bl_say("out of memory in a batch on the CPU");
        abort(); /* not exit(): this may be a worker, amid others */
    }
    return p;
}

static int64_t info_of(const struct cpu *x, const void *info)
{
    return x->job->int_size == 8 ? *(const int64_t *)info : *(const int32_t *)info;
}

static void set_info(const struct cpu *x, void *info, int64_t value)
{
    if (x->job->int_size == 8)
        *(int64_t *)info = value;
    else
        *(int32_t *)info = (int32_t)value;
}

static void copy_matrix(const struct cpu *x, int64_t n, const char *a, int64_t lda,
                        char *to, int64_t ldto)
{
    for (int64_t j = 0; j < n && to != a; j++)
        memcpy(to + (size_t)(j * ldto) * x->element, a + (size_t)(j * lda) * x->element,
               (size_t)n * x->element);
}

/* What netlib's ILAENV would ask for. */
#define GETRI_COLUMNS 64

static void invert(const struct cpu *x, struct scalars *s)
{
    s->lwork = bl_max(1, s->n * GETRI_COLUMNS);
    s->work = need((size_t)s->lwork, x->element);
    lapack(x, BL_ROW_GETRI, s);
    free(s->work);
}

static void solve_without_pivots(const struct cpu *x, struct scalars *s)
{
    int64_t *ipiv = need((size_t)s->n, sizeof *ipiv);
    for (int64_t k = 0; k < s->n; k++)
        if (x->job->int_size == 8)
            ipiv[k] = k + 1;
        else
            ((int32_t *)ipiv)[k] = (int32_t)(k + 1);
    s->ipiv = ipiv;
    lapack(x, BL_ROW_GETRS, s);
    free(ipiv);
}

static void determinant(const struct cpu *x, struct scalars *s,
                        const struct bl_problem *p)
{
    size_t n = (size_t)s->n;
    char *lu = need(n * n, x->element);
    copy_matrix(x, s->n, p->a, p->lda, lu, bl_max(1, s->n));
    s->a = lu;
    s->lda = bl_max(1, s->n);
    s->ipiv = need(n, sizeof(int64_t));
    lapack(x, BL_ROW_GETRF, s);
    bl_host_det(x->job->precision, s->n, lu, s->lda, s->ipiv, x->job->int_size, p->phase,
                p->logabs);
    free(s->ipiv);
    free(lu);
}

/* LU and inverse of a copy. */
static void factor_and_invert(const struct cpu *x, struct scalars *s)
{
    s->ipiv = need((size_t)s->n, sizeof(int64_t));
    lapack(x, BL_ROW_GETRF, s);
    if (info_of(x, s->info) == 0)
        invert(x, s);
    free(s->ipiv);
}

static void solve(const struct cpu *x, int64_t i)
{
    const struct bl_job *job = x->job;
    struct bl_problem p = bl_problem_of(job, i);
    struct scalars s = {.uplo = job->uplo,
                        .trans = job->trans,
                        .m = p.m,
                        .n = p.n,
                        .nrhs = job->nrhs,
                        .lda = p.lda,
                        .ldb = job->b.ld,
                        .a = p.a,
                        .b = p.b,
                        .ipiv = p.ipiv,
                        .info = p.info};
    void *scale;
    bool apart = job->routine == BL_GETRI_OOP || job->routine == BL_GEINV;
    if (apart) {
        copy_matrix(x, p.n, p.a, p.lda, p.x, p.ldx);
        s.a = p.x;
        s.lda = p.ldx;
    }
    switch (job->routine) {
    case BL_GETRI:
    case BL_GETRI_OOP:
        invert(x, &s);
        break;
    case BL_GEINV:
        factor_and_invert(x, &s);
        break;
    case BL_GEDET:
        determinant(x, &s, &p);
        break;
    case BL_GETRSNP:
        solve_without_pivots(x, &s);
        break;
    case BL_GETRFNP:
        set_info(x, p.info, bl_host_getrfnp(job->precision, p.m, p.n, p.a, p.lda));
        break;
    case BL_GETRFSP:
        scale = need((size_t)p.m, x->element);
        set_info(x, p.info,
                 bl_host_getrfsp(job->precision, p.m, p.n, p.a, p.lda, p.ipiv,
                                 job->int_size, scale));
        free(scale);
        break;
    default:
        lapack(x, (enum bl_row)job->routine, &s); /* LAPACK's rows come first in both */
    }
}

static void part(void *arg, int64_t from, int64_t to, int worker)
{
    const struct cpu *x = arg;
    (void)worker;
    __attribute__((cleanup(bl_leave))) struct bl_frame here = {NULL, 0};
    bl_enter(&here);
    bl_single_thread_here(x->single);
    for (int64_t i = from; i < to; i++)
        solve(x, x->from + i);
}

#define CALL_NS 200.0
#define FLOP_NS 0.5
#define LARGE 256 /* from here on a threaded LAPACK makes good use of its threads */

void bl_batch_on_cpu(const struct bl_job *job, int64_t from, unsigned spelling,
                     const void *caller)
{
    struct bl_single_thread single = {.of = NULL};
    struct cpu x = {.job = job,
                    .from = from,
                    .spelling = spelling,
                    .caller = caller,
                    .element = bl_element(job->precision),
                    .single = &single};
    bl_fn *fn = bl_find(bl_id(BL_ROW_GETRF, job->precision), spelling, caller).fn;
    int64_t count = job->batch - from;
    double each =
        CALL_NS + FLOP_NS * bl_operations(job->routine, job->precision, (double)job->m,
                                          (double)job->n, (double)job->nrhs);
    /* Too few to go round, each large: one after the other, on the LAPACK's threads. */
    if (bl_max(job->m, job->n) >= LARGE && job->batch < bl_threads_of(fn)) {
        part(&x, 0, count, 0);
        return;
    }
    bool at_once = bl_single_thread_begin(&single, fn);
    bl_workers_run(at_once ? (int64_t)each : 0, count, part, &x);
    bl_single_thread_end(&single);
}

struct bl_problem bl_problem_of(const struct bl_job *job, int64_t i)
{
    size_t element = bl_element(job->precision), integer = (size_t)job->int_size;
    size_t magnitude = job->precision >= BL_C ? element / 2 : element;
    struct bl_item uniform = {i, job->m, job->n, job->a.ld, job->x.ld};
    const struct bl_item *item = job->items ? &job->items[i] : &uniform;
#define AT(x, size)                                                                      \
    (job->x.array ? job->x.array[item->index]                                            \
     : job->x.p   ? (char *)job->x.p + (size_t)(item->index * job->x.stride) * (size)    \
                  : NULL)
    return (struct bl_problem){.m = item->m,
                               .n = item->n,
                               .lda = item->lda,
                               .ldx = item->ldx,
                               .index = item->index,
                               .a = AT(a, element),
                               .b = AT(b, element),
                               .x = AT(x, element),
                               .ipiv = AT(ipiv, integer),
                               .info = AT(info, integer),
                               .phase = AT(phase, element),
                               .logabs = AT(logabs, magnitude)};
#undef AT
}
