/* The batched entries through their symbols: every row of routines.def, precision,
 * spelling and kind of memory against netlib, matrix by matrix; mixed sizes; bad
 * arguments; streams, faults, fork and threads.
 *
 *     entries [--heavy | --only NAME]     NAME: of a row, for tools that are slow
 *
 * Linked with the library and run with the mock engine or the CUDA one: it finds the
 * engine as the library does and takes device memory from it. What is expected is a copy
 * of the caller's memory on which netlib has worked in place, so a stray write shows.
 */
#include <complex.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batchlapack.h"
#include "bl.h"
#include "mock_controls.h"
#include "reference.h"

#define FIRST_BATCHED ((enum bl_row)BL_LAPACK_ROUTINES)

static const struct bl_engine *engine;
static bool heavy;

enum memory { PAGEABLE, PINNED, DEVICE, DEVICE_ARRAYS, MEMORIES };
static const char *const memory_name[] = {"pageable", "pinned", "device",
                                          "device arrays"};

/* ---- the arguments of one call ---- */

enum { A, B, X, IPIV, PHASE, LOGABS, INFO, OPERANDS };
#define GUARD 7 /* elements after each item, never to be written */

/* An operand of all matrices in one piece. */
struct operand {
    size_t element, bytes;
    size_t *at; /* where each item begins, in elements */
    char *start, *want, *used;
    void **array; /* of pointers */
};

struct batch {
    enum bl_row row;
    enum bl_precision p;
    unsigned spelling; /* 0..3: name, name_, name_64, name_64_ */
    enum memory memory;
    char uplo, trans, *uplos;
    int64_t groups, count, nrhs, ldb;
    int64_t *m, *n, *lda, *ldx, *size, *of; /* of: the group of each matrix */
    int64_t stride[4];                      /* A, B, X, IPIV */
    struct operand o[OPERANDS];
    char why[300];
};

static bool is_wide(const struct batch *s)
{
    return s->spelling >= 2;
}

static bool grouped(const struct batch *s)
{
    return strchr(bl_rows[s->row].args, 'g') != NULL;
}

static enum bl_routine_id operation(const struct batch *s)
{
    return bl_rows[s->row].operation;
}

static bool has(const struct batch *s, char letter)
{
    return strchr(bl_rows[s->row].args, letter) != NULL;
}

static void *get(size_t bytes)
{
    void *p = calloc(1, bytes + 1);
    if (!p)
        abort();
    return p;
}

/* ---- memory ---- */

static void *queue; /* for the test's own copies */

static void must(enum bl_status status, const char *what)
{
    if (status != BL_OK) {
        printf("not ok entries - %s: status %d\n", what, (int)status);
        exit(1);
    }
}

#define STAGE ((size_t)1 << 20)
static char *stage;

static void copy(void *to, const void *from, size_t bytes, bool in)
{
    for (size_t at = 0; at < bytes; at += STAGE) {
        size_t part = bytes - at < STAGE ? bytes - at : STAGE;
        if (in)
            memcpy(stage, (const char *)from + at, part);
        must(in ? engine->copy_in(queue, (char *)to + at, stage, part)
                : engine->copy_out(queue, stage, (const char *)from + at, part),
             "copy");
        must(engine->wait(queue), "wait");
        if (!in)
            memcpy((char *)to + at, stage, part);
    }
}

static void *place(const void *data, size_t bytes, enum memory memory)
{
    void *p = NULL;
    if (memory == PAGEABLE)
        return memcpy(get(bytes), data, bytes);
    must(memory == PINNED ? engine->host_alloc(bytes + 1, &p)
                          : engine->device_alloc(bytes + 1, &p),
         "allocation");
    if (memory == PINNED)
        memcpy(p, data, bytes);
    else
        copy(p, data, bytes, true);
    return p;
}

static void take_back(void *p, enum memory memory)
{
    if (memory == PAGEABLE)
        free(p);
    else if (memory == PINNED)
        engine->host_free(p);
    else
        engine->device_free(p);
}

/* ---- posing ---- */

static struct matrix view(const struct batch *s, int which, char *base, int64_t i)
{
    int64_t g = s->of[i];
    const struct operand *o = &s->o[which];
    struct matrix a = {s->p,      s->m[g], s->n[g],
                       s->lda[g], 0,       base + o->at[i] * o->element};
    if (which == B) {
        a.rows = s->n[g];
        a.cols = s->nrhs;
        a.ld = s->ldb;
    }
    if (which == X) {
        a.rows = a.cols = s->n[g];
        a.ld = s->ldx[g];
    }
    return a;
}

static void put_integer(char *p, int64_t i, int64_t value, bool wide)
{
    int32_t narrow = (int32_t)value;
    memcpy(p + i * (wide ? 8 : 4), wide ? (void *)&value : (void *)&narrow, wide ? 8 : 4);
}

static int64_t integer_at(const char *p, int64_t i, bool wide)
{
    return wide ? ((const int64_t *)p)[i] : ((const int32_t *)p)[i];
}

static int64_t pivots(const struct batch *s, int64_t i)
{
    int64_t g = s->of[i];
    return s->m[g] < s->n[g] ? s->m[g] : s->n[g];
}

/* Diagonal dominant where nothing pivots or an inverse is compared, definite for
 * Cholesky. */
static void fill_a(const struct batch *s, struct matrix *a, uint64_t seed)
{
    enum bl_routine_id r = operation(s);
    if (has(s, 'u')) {
        matrix_fill_hermitian(a, s->uplos[0] ? s->uplos[0] : s->uplo, CLASS_RANDOM, seed);
        return;
    }
    matrix_fill(a, CLASS_RANDOM, seed);
    /* Some are singular: INFO must stand at its own matrix. */
    if ((r == BL_GETRF || r == BL_GESV) && seed % 5 == 0)
        for (int64_t i = 0; i < a->rows && a->cols > 1; i++)
            matrix_put(a, i, 1, 0, 0);
    if (r == BL_GETRFNP || r == BL_GETRSNP || bl_inverts(r))
        for (int64_t k = 0; k < a->rows && k < a->cols; k++)
            matrix_put(a, k, k, (double)a->rows + (double)k / 8, 0.25);
}

static void netlib(enum bl_routine_id r, const struct batch *s, int64_t i,
                   struct matrix *a, struct matrix *b, int32_t *ipiv, int32_t *info)
{
    char uplo[2] = {s->uplos[s->of[i]] ? s->uplos[s->of[i]] : s->uplo, 0};
    char trans[2] = {s->trans, 0};
    struct matrix work = matrix_new(s->p, 64 * a->cols + 1, 1, 64 * a->cols + 1, 0);
    struct call c = {.routine = r,
                     .precision = s->p,
                     .uplo = uplo,
                     .trans = trans,
                     .m = (int32_t)a->rows,
                     .n = (int32_t)a->cols,
                     .nrhs = (int32_t)s->nrhs,
                     .lda = (int32_t)a->ld,
                     .ldb = (int32_t)s->ldb,
                     .lwork = (int32_t)bl_max(1, 64 * a->cols),
                     .a = a->data,
                     .b = b ? b->data : NULL,
                     .work = work.data,
                     .ipiv = ipiv};
    reference_call(&c);
    *info = c.info;
    matrix_free(&work);
}

/* Factors in place where the routine takes them. */
static void factor(const struct batch *s, int64_t i, struct matrix *a, int32_t *ipiv)
{
    enum bl_routine_id r = operation(s);
    int32_t info;
    if (r == BL_GETRS || r == BL_GETRI || r == BL_GETRI_OOP)
        netlib(BL_GETRF, s, i, a, NULL, ipiv, &info);
    if (r == BL_POTRS || r == BL_POTRI)
        netlib(BL_POTRF, s, i, a, NULL, ipiv, &info);
}

/* Of an element beside the largest of its row. In the type's own precision: in the first
 * column it is often 1, up to the rounding of the reciprocal. */
static double scaled_size(const struct matrix *a, long double complex x, double largest)
{
    double size = (double)(fabsl(creall(x)) + fabsl(cimagl(x)));
    if (is_double(a->precision))
        return size * (1 / largest);
    return (double)((float)size * (1 / (float)largest));
}

/* Textbook elimination in long double, for what LAPACK does not have: without
 * interchanges, or with the row that is largest beside its own largest element. */
static void eliminate(struct matrix *a, int64_t *ipiv, bool scaled)
{
    int64_t k, least = a->rows < a->cols ? a->rows : a->cols;
    double *scale = get((size_t)a->rows * sizeof *scale);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++) {
            long double complex x = matrix_get(a, i, j);
            scale[i] = fmax(scale[i], (double)(fabsl(creall(x)) + fabsl(cimagl(x))));
        }
    for (k = 0; k < least; k++) {
        int64_t p = k;
        double best = -1;
        for (int64_t i = k; scaled && i < a->rows; i++) {
            long double complex x = matrix_get(a, i, k);
            double size = scaled_size(a, x, scale[i]);
            if (size > best) {
                best = size;
                p = i;
            }
        }
        if (scaled)
            ipiv[k] = p + 1;
        for (int64_t j = 0; p != k && j < a->cols; j++) {
            long double complex x = matrix_get(a, k, j), y = matrix_get(a, p, j);
            matrix_put(a, k, j, (double)creall(y), (double)cimagl(y));
            matrix_put(a, p, j, (double)creall(x), (double)cimagl(x));
        }
        double t = scale[k];
        scale[k] = scale[p];
        scale[p] = t;
        for (int64_t i = k + 1; i < a->rows; i++) {
            long double complex l = matrix_get(a, i, k) / matrix_get(a, k, k);
            matrix_put(a, i, k, (double)creall(l), (double)cimagl(l));
            for (int64_t j = k + 1; j < a->cols; j++) {
                long double complex x = matrix_get(a, i, j) - l * matrix_get(a, k, j);
                matrix_put(a, i, j, (double)creall(x), (double)cimagl(x));
            }
        }
    }
    free(scale);
}

static void determinant(const struct batch *s, int64_t i, const struct matrix *lu,
                        const int32_t *ipiv)
{
    long double complex phase = 1;
    long double magnitude = 0;
    for (int64_t k = 0; k < lu->cols; k++) {
        long double complex u = matrix_get(lu, k, k);
        phase *= u / cabsl(u) * (ipiv[k] == k + 1 ? 1 : -1);
        magnitude += logl(cabsl(u));
    }
    struct matrix to = {
        s->p, 1, 1, 1, 0, s->o[PHASE].want + s->o[PHASE].at[i] * s->o[PHASE].element};
    matrix_put(&to, 0, 0, (double)creall(phase), (double)cimagl(phase));
    double d = (double)magnitude;
    float f = (float)magnitude;
    memcpy(s->o[LOGABS].want + s->o[LOGABS].at[i] * s->o[LOGABS].element,
           is_double(s->p) ? (void *)&d : (void *)&f, s->o[LOGABS].element);
}

/* Work on `want` as the routine is to work on the caller's memory. */
static void answer(struct batch *s, int64_t i)
{
    enum bl_routine_id r = operation(s);
    struct matrix a = view(s, A, s->o[A].want, i), b = {0}, x = {0};
    int64_t k = pivots(s, i);
    int32_t *ipiv = get(((size_t)k + 1) * sizeof *ipiv), info = 0;
    int64_t *wide = get(((size_t)k + 1) * sizeof *wide);
    char *theirs = NULL;
    if (has(s, 'B'))
        b = view(s, B, s->o[B].want, i);
    if (has(s, 'X'))
        x = view(s, X, s->o[X].want, i);
    if (has(s, 'p') || has(s, 'P'))
        theirs = s->o[IPIV].want + s->o[IPIV].at[i] * s->o[IPIV].element;
    for (int64_t j = 0; j < k; j++)
        ipiv[j] =
            has(s, 'p') ? (int32_t)integer_at(theirs, j, is_wide(s)) : (int32_t)j + 1;
    if (has(s, 'X') && k > 0)
        for (int64_t j = 0; j < a.cols; j++)
            memcpy(matrix_at(&x, 0, j), matrix_at(&a, 0, j),
                   (size_t)a.rows * element_bytes(s->p));
    if (k == 0) {
        ;
    } else if (r == BL_GETRI_OOP) {
        netlib(BL_GETRI, s, i, &x, NULL, ipiv, &info);
    } else if (r == BL_GEINV) {
        netlib(BL_GETRF, s, i, &x, NULL, ipiv, &info);
        netlib(BL_GETRI, s, i, &x, NULL, ipiv, &info);
    } else if (r == BL_GETRSNP) {
        netlib(BL_GETRS, s, i, &a, &b, ipiv, &info);
    } else if (r == BL_GEDET) {
        struct matrix lu = matrix_copy(&a);
        netlib(BL_GETRF, s, i, &lu, NULL, ipiv, &info);
        determinant(s, i, &lu, ipiv);
        matrix_free(&lu);
    } else if (r == BL_GETRFNP || r == BL_GETRFSP) {
        eliminate(&a, wide, r == BL_GETRFSP);
    } else {
        netlib(r, s, i, &a, &b, ipiv, &info);
    }
    for (int64_t j = 0; has(s, 'P') && j < k; j++)
        put_integer(theirs, j, r == BL_GETRFSP ? wide[j] : ipiv[j], is_wide(s));
    put_integer(s->o[INFO].want, i, info, is_wide(s));
    free(wide);
    free(ipiv);
}

static void lay(struct batch *s, int which, size_t element, bool there)
{
    struct operand *o = &s->o[which];
    if (!there)
        return;
    size_t at = 0;
    o->element = element;
    o->at = get((size_t)(s->count + 1) * sizeof *o->at);
    for (int64_t i = 0; i < s->count; i++) {
        int64_t g = s->of[i];
        size_t item = which == A      ? (size_t)(s->lda[g] * s->n[g])
                      : which == B    ? (size_t)(s->ldb * s->nrhs)
                      : which == X    ? (size_t)(s->ldx[g] * s->n[g])
                      : which == IPIV ? (size_t)pivots(s, i)
                                      : 1;
        o->at[i] = at;
        at += item + (which < PHASE ? GUARD : 0);
        if (which < PHASE)
            s->stride[which] = (int64_t)item + GUARD;
    }
    o->bytes = at * element;
    o->start = get(o->bytes);
    memset(o->start, 0x5b, o->bytes);
    o->array = get((size_t)(s->count + 1) * sizeof *o->array);
}

static void pose(struct batch *s, uint64_t seed)
{
    size_t element = element_bytes(s->p), integer = is_wide(s) ? 8 : 4;
    lay(s, A, element, true);
    lay(s, B, element, has(s, 'B'));
    lay(s, X, element, has(s, 'X'));
    lay(s, IPIV, integer, has(s, 'p') || has(s, 'P'));
    lay(s, PHASE, element, has(s, 'D'));
    lay(s, LOGABS, is_complex(s->p) ? element / 2 : element, has(s, 'G'));
    lay(s, INFO, integer, true);
    for (int64_t i = 0; i < s->count; i++) {
        struct matrix a = view(s, A, s->o[A].start, i);
        int64_t k = pivots(s, i);
        int32_t *ipiv = get(((size_t)k + 1) * sizeof *ipiv);
        char save = s->uplos[0];
        s->uplos[0] = s->uplos[s->of[i]];
        if (k > 0)
            fill_a(s, &a, seed + (uint64_t)i);
        s->uplos[0] = save;
        if (has(s, 'B') && k > 0) {
            struct matrix b = view(s, B, s->o[B].start, i);
            matrix_fill(&b, CLASS_RANDOM, seed + 1000 + (uint64_t)i);
        }
        if (k > 0)
            factor(s, i, &a, ipiv);
        for (int64_t j = 0; has(s, 'p') && j < k; j++)
            put_integer(s->o[IPIV].start + s->o[IPIV].at[i] * integer, j, ipiv[j],
                        is_wide(s));
        free(ipiv);
    }
    for (int w = 0; w < OPERANDS; w++)
        if (s->o[w].start)
            s->o[w].want = memcpy(get(s->o[w].bytes), s->o[w].start, s->o[w].bytes);
    for (int64_t i = 0; i < s->count; i++)
        answer(s, i);
}

static void drop(struct batch *s)
{
    for (int w = 0; w < OPERANDS; w++) {
        free(s->o[w].at);
        free(s->o[w].start);
        free(s->o[w].want);
        free(s->o[w].array);
    }
    free(s->m);
    free(s->n);
    free(s->lda);
    free(s->ldx);
    free(s->size);
    free(s->of);
    free(s->uplos);
}

/* ---- calling ---- */

static bl_fn *entry(const struct batch *s)
{
    static const char *const ending[] = {"", "_", "_64", "_64_"};
    char name[64];
    snprintf(name, sizeof name, "%c%s%s", "sdcz"[s->p], bl_rows[s->row].name,
             ending[s->spelling]);
    void *symbol = dlsym(RTLD_DEFAULT, name);
    bl_fn *f;
    if (!symbol) {
        printf("not ok entries - no symbol %s\n", name);
        exit(1);
    }
    memcpy(&f, &symbol, sizeof f);
    return f;
}

static void call_entry(bl_fn *f, unsigned nargs, void **v)
{
    void *w[13] = {NULL};
    memcpy(w, v, nargs * sizeof *v);
    /* What is passed beyond a function's parameters is not looked at. */
    ((void (*)(void *, void *, void *, void *, void *, void *, void *, void *, void *,
               void *, void *, void *, void *))f)(
        w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12]);
}

/* Integers as the entry reads them. */
struct packed {
    int64_t integer[14][1];
    char *array[14];
    void *v[14];
    unsigned count;
};

static void *integers(const struct batch *s, struct packed *p, const int64_t *x,
                      int64_t count)
{
    char *to = p->array[p->count] = get((size_t)(count + 1) * 8);
    for (int64_t i = 0; i < count; i++)
        put_integer(to, i, x[i], is_wide(s));
    return to;
}

static void pack(struct batch *s, struct packed *p)
{
    memset(p, 0, sizeof *p);
    int64_t sizes = grouped(s) ? s->groups : 1;
    int last = A;
    for (const char *letter = bl_rows[s->row].args; *letter; letter++, p->count++) {
        void **to = &p->v[p->count];
        bool array = grouped(s);
        switch (*letter) {
        case 'm':
            *to = integers(s, p, s->m, sizes);
            break;
        case 'n':
            *to = integers(s, p, s->n, sizes);
            break;
        case 'r':
            *to = integers(s, p, &s->nrhs, 1);
            break;
        case 'u':
            *to = grouped(s) ? s->uplos : &s->uplo;
            break;
        case 't':
            *to = &s->trans;
            break;
        case 'l':
            *to = last == B ? integers(s, p, &s->ldb, 1)
                            : integers(s, p, last == A ? s->lda : s->ldx, sizes);
            break;
        case 's':
            *to = integers(s, p, &s->stride[last], 1);
            break;
        case 'k':
            *to = integers(s, p, &s->count, 1);
            break;
        case 'g':
            *to = integers(s, p, &s->groups, 1);
            break;
        case 'z':
            *to = integers(s, p, s->size, sizes);
            break;
        default:
            last = *letter == 'B'                     ? B
                   : *letter == 'X'                   ? X
                   : *letter == 'p' || *letter == 'P' ? IPIV
                   : *letter == 'D'                   ? PHASE
                   : *letter == 'G'                   ? LOGABS
                   : *letter == 'i'                   ? INFO
                                                      : A;
            array &= last == A || last == X || last == IPIV;
            *to = array ? (void *)s->o[last].array : s->o[last].used;
        }
    }
}

static void unpack(struct packed *p)
{
    for (unsigned i = 0; i < p->count; i++)
        free(p->array[i]);
}

static void place_all(struct batch *s)
{
    for (int w = 0; w < OPERANDS; w++) {
        struct operand *o = &s->o[w];
        if (!o->start)
            continue;
        o->used =
            place(o->start, o->bytes, s->memory == DEVICE_ARRAYS ? DEVICE : s->memory);
        for (int64_t i = 0; i < s->count; i++)
            o->array[i] = o->used + o->at[i] * o->element;
        if (s->memory == DEVICE_ARRAYS && grouped(s)) {
            void *host = o->array;
            o->array = place(host, (size_t)(s->count + 1) * sizeof(void *), DEVICE);
            free(host);
        }
    }
}

/* The caller's memory after the call, in memory of the host's. */
static void fetch_all(struct batch *s)
{
    for (int w = 0; w < OPERANDS; w++) {
        struct operand *o = &s->o[w];
        if (!o->start)
            continue;
        char *host = get(o->bytes);
        bool device = s->memory >= DEVICE;
        if (device)
            copy(host, o->used, o->bytes, false);
        else
            memcpy(host, o->used, o->bytes);
        take_back(o->used, device ? DEVICE : s->memory);
        o->used = host;
        if (s->memory == DEVICE_ARRAYS && grouped(s)) {
            engine->device_free(o->array);
            o->array = NULL;
        }
    }
}

/* ---- checking ---- */

static bool complain(struct batch *s, int64_t i, const char *what, double got,
                     double want)
{
    if (!*s->why) {
        int64_t g = i >= 0 ? s->of[i] : 0;
        snprintf(s->why, sizeof s->why,
                 "%c%s spelling %u, %s, matrix %lld of %lld (m=%lld n=%lld lda=%lld): %s "
                 "%.17g, not %.17g",
                 "sdcz"[s->p], bl_rows[s->row].name, s->spelling, memory_name[s->memory],
                 (long long)i, (long long)s->count, (long long)s->m[g],
                 (long long)s->n[g], (long long)s->lda[g], what, got, want);
    }
    return false;
}

/* Within rounding, where no bits are promised: of the largest element of the column. */
static bool close_to(struct batch *s, int64_t i, const struct matrix *got,
                     const struct matrix *want, const char *what)
{
    for (int64_t c = 0; c < want->cols; c++) {
        long double largest = 0;
        for (int64_t r = 0; r < want->rows; r++)
            largest = fmaxl(largest, cabsl(matrix_get(want, r, c)));
        for (int64_t r = 0; r < want->rows; r++) {
            long double complex x = matrix_get(got, r, c), y = matrix_get(want, r, c);
            if (!(cabsl(x - y) <=
                  (50 + 20 * (long double)want->rows) * epsilon_of(s->p) * largest))
                return complain(s, i, what, (double)creall(x), (double)creall(y));
        }
    }
    return true;
}

static bool exact(const struct batch *s)
{
    enum bl_routine_id r = operation(s);
    return !bl_inverts(r) && r != BL_POTRI && r != BL_GETRFNP && r != BL_GETRFSP &&
           r != BL_GEDET;
}

/* An operand whose bits may differ: compare values, then make them the same so that the
 * rest of the memory can be compared. */
static bool check_values(struct batch *s, int which, int64_t i)
{
    struct matrix got = view(s, which, s->o[which].used, i);
    struct matrix want = view(s, which, s->o[which].want, i);
    if (has(s, 'u')) { /* one triangle was written: the other is compared as it is */
        char triangle = s->uplos[s->of[i]] ? s->uplos[s->of[i]] : s->uplo;
        for (int64_t j = 0; j < got.cols; j++)
            for (int64_t k = 0; k < got.rows; k++)
                if (!in_triangle(triangle, k, j) &&
                    memcmp(matrix_at(&got, k, j), matrix_at(&want, k, j),
                           element_bytes(s->p)) != 0)
                    return complain(s, i, "the other triangle", 0, 0);
        for (int64_t j = 0; j < got.cols; j++)
            for (int64_t k = 0; k < got.rows; k++)
                if (!in_triangle(triangle, k, j)) {
                    memset(matrix_at(&got, k, j), 0, element_bytes(s->p));
                    memset(matrix_at(&want, k, j), 0, element_bytes(s->p));
                }
    }
    if (!close_to(s, i, &got, &want, which == X ? "the inverse" : "A"))
        return false;
    for (int64_t j = 0; j < got.cols; j++)
        memcpy(matrix_at(&got, 0, j), matrix_at(&want, 0, j),
               (size_t)got.rows * element_bytes(s->p));
    return true;
}

static bool check_determinant(struct batch *s, int64_t i)
{
    struct operand *o = &s->o[PHASE], *l = &s->o[LOGABS];
    struct matrix got = {s->p, 1, 1, 1, 0, o->used + (size_t)i * o->element};
    struct matrix want = got;
    want.data = o->want + (size_t)i * o->element;
    bool wide = is_double(s->p);
    void *g = l->used + (size_t)i * l->element, *w = l->want + (size_t)i * l->element;
    double x = wide ? *(double *)g : (double)*(float *)g;
    double y = wide ? *(double *)w : (double)*(float *)w;
    double n = (double)s->n[s->of[i]];
    if (pivots(s, i) == 0)
        return x == 0 || complain(s, i, "log-magnitude", x, 0);
    if (cabsl(matrix_get(&got, 0, 0) - matrix_get(&want, 0, 0)) >
        (100 + 50 * n) * epsilon_of(s->p) * n)
        return complain(s, i, "phase", (double)creall(matrix_get(&got, 0, 0)),
                        (double)creall(matrix_get(&want, 0, 0)));
    if (!(fabs(x - y) <= (100 + 50 * n) * epsilon_of(s->p) * (n + fabs(y))))
        return complain(s, i, "log-magnitude", x, y);
    return true;
}

static bool check(struct batch *s)
{
    bool wide = is_wide(s);
    for (int64_t i = 0; i < s->count; i++) {
        int64_t info = integer_at(s->o[INFO].used, i, wide);
        if (info != integer_at(s->o[INFO].want, i, wide))
            return complain(s, i, "INFO", (double)info,
                            (double)integer_at(s->o[INFO].want, i, wide));
        if (operation(s) == BL_GEDET && !check_determinant(s, i))
            return false;
        if (!exact(s) && operation(s) != BL_GEDET && pivots(s, i) > 0 &&
            !check_values(s, has(s, 'X') ? X : A, i))
            return false;
    }
    for (int w = 0; w < OPERANDS; w++) {
        struct operand *o = &s->o[w];
        if (!o->start || w == PHASE || w == LOGABS)
            continue;
        for (size_t k = 0; k < o->bytes; k++)
            if (o->used[k] != o->want[k]) {
                int64_t i = 0;
                while (i + 1 < s->count && o->at[i + 1] * o->element <= k)
                    i++;
                static const char *const name[] = {"A byte",    "B byte",     "X byte",
                                                   "IPIV byte", "phase byte", "log byte",
                                                   "INFO byte"};
                printf("# byte %zu of %zu, item begins at %zu\n", k, o->bytes,
                       o->at[i] * o->element);
                return complain(s, i, name[w], o->used[k], o->want[k]);
            }
    }
    return true;
}

static void call_batch(struct batch *s)
{
    struct packed p;
    pack(s, &p);
    call_entry(entry(s), p.count, p.v);
    unpack(&p);
}

static void free_used(struct batch *s)
{
    for (int w = 0; w < OPERANDS; w++) {
        free(s->o[w].used);
        s->o[w].used = NULL;
    }
}

/* Call and compare; false with s->why. */
static bool run(struct batch *s)
{
    place_all(s);
    call_batch(s);
    fetch_all(s);
    bool good = batchlapack_status() == BATCHLAPACK_OK ||
                complain(s, -1, "status", batchlapack_status(), 0);
    good = good && check(s);
    free_used(s);
    return good;
}

/* ---- shapes ---- */

static int64_t *list(int64_t count)
{
    return get((size_t)(count + 1) * sizeof(int64_t));
}

static struct batch new_batch(enum bl_row row, enum bl_precision p, unsigned spelling,
                              enum memory memory, int64_t groups, int64_t largest,
                              struct rng *r)
{
    struct batch s = {.row = row,
                      .p = p,
                      .spelling = spelling,
                      .memory = memory,
                      .uplo = rng_below(r, 2) ? 'U' : 'L',
                      .trans = "NTC"[rng_below(r, 3)],
                      .nrhs = rng_between(r, 1, 4)};
    if (!grouped(&s))
        groups = 1;
    s.groups = groups;
    s.m = list(groups);
    s.n = list(groups);
    s.lda = list(groups);
    s.ldx = list(groups);
    s.size = list(groups);
    s.uplos = get((size_t)groups + 1);
    for (int64_t g = 0; g < groups; g++) {
        s.n[g] = grouped(&s) && rng_below(r, 20) == 0 ? 0 : rng_between(r, 1, largest);
        s.m[g] = has(&s, 'm') && rng_below(r, 2) ? rng_between(r, 1, largest) : s.n[g];
        s.lda[g] = bl_max(1, s.m[g]) + rng_below(r, 3);
        s.ldx[g] = bl_max(1, s.n[g]) + rng_below(r, 3);
        s.size[g] = grouped(&s) ? rng_below(r, 4) : 9;
        s.uplos[g] = grouped(&s) ? (rng_below(r, 2) ? 'U' : 'L') : 0;
        s.count += s.size[g];
    }
    s.ldb = s.n[0] + rng_below(r, 2);
    s.of = list(s.count);
    for (int64_t g = 0, i = 0; g < groups; g++)
        for (int64_t k = 0; k < s.size[g]; k++)
            s.of[i++] = g;
    return s;
}

/* ---- the cases ---- */

/* Every spelling and kind of memory of a row in a precision. */
static void each_memory(enum bl_row row, enum bl_precision p, int mode)
{
    struct rng r = {(uint64_t)row * 4 + p + 1};
    char why[300] = "";
    int64_t largest = heavy && mode != BATCHLAPACK_MODE_CPU ? 80 : 40;
    for (int memory = 0; memory < MEMORIES && !*why; memory++)
        for (unsigned spelling = 0; spelling < 4 && !*why; spelling++) {
            if (mode == BATCHLAPACK_MODE_CPU && memory >= DEVICE)
                continue;
            struct batch s = new_batch(row, p, spelling, (enum memory)memory, 12,
                                       spelling < 2 ? largest : 10, &r);
            pose(&s, 77 * (uint64_t)spelling + (uint64_t)memory);
            if (!run(&s))
                memcpy(why, s.why, sizeof why);
            drop(&s);
        }
    verdict(why, "entry-%s-%c%s", mode == BATCHLAPACK_MODE_CPU ? "cpu" : "gpu", "sdcz"[p],
            bl_rows[row].name);
}

static void each_entry(int64_t item, void *data)
{
    int mode = *(int *)data;
    batchlapack_set_mode(mode);
    each_memory((enum bl_row)(FIRST_BATCHED + item / BL_PRECISIONS),
                (enum bl_precision)(item % BL_PRECISIONS), mode);
    batchlapack_set_mode(BATCHLAPACK_MODE_DEFAULT);
}

/* All groups different, sizes mixed at random. */
static void mixed_sizes(enum bl_row row, enum memory memory)
{
    struct rng r = {99 + (uint64_t)row};
    bool large = heavy && row != BL_ROW_GETRFNP_GROUPS; /* long double takes its time */
    for (int p = 0; p < BL_PRECISIONS; p++) {
        struct batch s = new_batch(row, (enum bl_precision)p, 1, memory,
                                   large ? 400 : 150, large ? 200 : 60, &r);
        pose(&s, 4321);
        run(&s);
        verdict(s.why, "mixed-%c%s-%s", "sdcz"[p], bl_rows[row].name,
                memory_name[memory]);
        drop(&s);
    }
}

/* More matrices than a grid has blocks in y, than 16 bits count. */
static void many(enum memory memory)
{
    struct rng r = {5};
    struct batch s = new_batch(BL_ROW_GETRF_STRIDED, BL_D, 0, memory, 1, 3, &r);
    free(s.of);
    s.count = 65536 + 7;
    s.of = list(s.count);
    pose(&s, 9);
    run(&s);
    verdict(s.why, "many-%s", memory_name[memory]);
    drop(&s);
}

/* ---- bad arguments ---- */

static char xerbla_name[64];
static int xerbla_position;

/* LAPACK's and the library's: recorded, and returned from. */
void xerbla_(const char *name, const int32_t *position, size_t length);
__attribute__((visibility("default"))) void
xerbla_(const char *name, const int32_t *position, size_t length)
{
    snprintf(xerbla_name, sizeof xerbla_name, "%.*s", (int)length, name);
    xerbla_position = *position;
}

/* Argument `position` as `bad` says; nothing may be written. */
static void expect(struct batch *s, unsigned position, const char *what,
                   void (*spoil)(void **v, unsigned i, const struct batch *s), char *why)
{
    struct packed p;
    char upper[64];
    int at = snprintf(upper, sizeof upper, "%c%s", "SDCZ"[s->p], bl_rows[s->row].name);
    for (int i = 0; i < at; i++)
        upper[i] = (char)(upper[i] >= 'a' && upper[i] <= 'z' ? upper[i] - 32 : upper[i]);
    xerbla_position = 0;
    xerbla_name[0] = 0;
    place_all(s);
    pack(s, &p);
    spoil(p.v, position - 1, s);
    call_entry(entry(s), p.count, p.v);
    unpack(&p);
    fetch_all(s);
    for (int w = 0; w < OPERANDS && !*why; w++)
        if (s->o[w].start && memcmp(s->o[w].start, s->o[w].used, s->o[w].bytes) != 0)
            snprintf(why, 300, "%s: %s: argument %u: memory was written", upper, what,
                     position);
    if (!*why && (xerbla_position != (int)position || strcmp(xerbla_name, upper) != 0))
        snprintf(why, 300, "%s: %s: argument %u: xerbla said %d of '%s'", upper, what,
                 position, xerbla_position, xerbla_name);
    if (!*why && batchlapack_status() != BATCHLAPACK_BAD_ARGUMENT)
        snprintf(why, 300, "%s: %s: status is %d", upper, what, batchlapack_status());
    free_used(s);
}

static void to_null(void **v, unsigned i, const struct batch *s)
{
    (void)s;
    v[i] = NULL;
}

static void to_negative(void **v, unsigned i, const struct batch *s)
{
    put_integer(v[i], 0, -1, is_wide(s));
}

static void to_less(void **v, unsigned i, const struct batch *s)
{
    int64_t x = bl_rows[s->row].args[i - 1] == 'p' || bl_rows[s->row].args[i - 1] == 'P'
                    ? pivots(s, 0) - 1
                : bl_rows[s->row].args[i] == 's'
                    ? integer_at(v[i - 1], 0, is_wide(s)) *
                              (bl_rows[s->row].args[i - 2] == 'B' ? s->nrhs : s->n[0]) -
                          1
                    : 0;
    put_integer(v[i], 0, x, is_wide(s));
}

static void to_letter(void **v, unsigned i, const struct batch *s)
{
    (void)s;
    v[i] = "X";
}

static char host_memory[1 << 16];

static void to_host(void **v, unsigned i, const struct batch *s)
{
    (void)s;
    v[i] = host_memory;
}

static void null_element(void **v, unsigned i, const struct batch *s)
{
    ((void **)v[i])[s->count - 1] = NULL;
}

static void bad_arguments(enum bl_row row, enum bl_precision p)
{
    char why[300] = "";
    struct rng r = {row + 3};
    for (unsigned spelling = 0; spelling < 4; spelling += 3) {
        struct batch s = new_batch(row, p, spelling, PAGEABLE, 3, 8, &r);
        for (int64_t g = 0; g < s.groups; g++) {
            s.n[g] = bl_max(s.n[g], 2);
            s.m[g] = has(&s, 'm') ? bl_max(s.m[g], 2) : s.n[g];
            s.lda[g] = s.m[g];
            s.ldx[g] = s.n[g];
        }
        s.ldb = bl_max(s.ldb, s.n[0]);
        if (grouped(&s)) { /* at least one matrix in the first and the last group */
            s.size[0] = s.size[2] = 2;
            s.size[1] = 0;
            s.count = 4;
            free(s.of);
            s.of = list(4);
            s.of[2] = s.of[3] = 2;
        }
        pose(&s, 1);
        const char *args = bl_rows[row].args;
        for (unsigned i = 0; args[i]; i++) {
            expect(&s, i + 1, "NULL", to_null, why);
            if (strchr("mnrkgz", args[i]))
                expect(&s, i + 1, "negative", to_negative, why);
            if (strchr("ls", args[i]))
                expect(&s, i + 1, "too small", to_less, why);
            if (strchr("ut", args[i]))
                expect(&s, i + 1, "letter", to_letter, why);
            if (grouped(&s) && strchr("aAXpP", args[i]))
                expect(&s, i + 1, "NULL in the array", null_element, why);
            s.memory = DEVICE;
            if (grouped(&s) && strchr("aAXpP", args[i]))
                expect(&s, i + 1, "NULL in the array", null_element, why);
            if (!grouped(&s) && strchr("aABXpPDGi", args[i]))
                expect(&s, i + 1, "host memory among device memory", to_host, why);
            s.memory = PAGEABLE;
        }
        drop(&s);
    }
    verdict(why, "bad-arguments-%c%s", "sdcz"[p], bl_rows[row].name);
}

/* ---- nothing to do ---- */

static void empty(void)
{
    char why[300] = "";
    struct rng r = {8};
    for (enum bl_row row = FIRST_BATCHED; row < BL_ROWS && !*why; row++)
        for (int memory = PAGEABLE; memory <= DEVICE && !*why; memory += DEVICE) {
            struct batch s = new_batch(row, BL_Z, 1, (enum memory)memory, 3, 5, &r);
            for (int64_t g = 0; g < s.groups; g++) /* n = 0: INFO is 0 */
                s.n[g] = 0, s.m[g] = has(&s, 'm') ? s.m[g] : 0;
            pose(&s, 3);
            if (!run(&s))
                memcpy(why, s.why, sizeof why);
            drop(&s);
            s = new_batch(row, BL_Z, 0, (enum memory)memory, 3, 5, &r);
            pose(&s, 3); /* no matrices: nothing is written */
            for (int w = 0; w < OPERANDS; w++)
                if (s.o[w].start)
                    memcpy(s.o[w].want, s.o[w].start, s.o[w].bytes);
            int64_t count = s.count;
            place_all(&s);
            struct packed p;
            pack(&s, &p);
            const char *batch = strchr(bl_rows[row].args, grouped(&s) ? 'g' : 'k');
            put_integer(p.v[batch - bl_rows[row].args], 0, 0, false);
            call_entry(entry(&s), p.count, p.v);
            unpack(&p);
            fetch_all(&s);
            if (batchlapack_status() != BATCHLAPACK_OK)
                snprintf(why, sizeof why, "%s: status of a batch of 0",
                         bl_rows[row].name);
            for (int w = 0; w < OPERANDS && !*why; w++)
                if (s.o[w].start && memcmp(s.o[w].used, s.o[w].want, s.o[w].bytes) != 0)
                    snprintf(why, sizeof why, "%s: a batch of 0 wrote",
                             bl_rows[row].name);
            (void)count;
            free_used(&s);
            drop(&s);
        }
    verdict(why, "empty");
}

/* ---- streams, faults ---- */

static bool untouched(struct batch *s, char *why)
{
    for (int w = 0; w < OPERANDS; w++) {
        if (!s->o[w].start)
            continue;
        char *host = get(s->o[w].bytes);
        copy(host, s->o[w].used, s->o[w].bytes, false);
        bool same = memcmp(host, s->o[w].start, s->o[w].bytes) == 0;
        free(host);
        if (!same) {
            snprintf(why, 300, "operand %d was written", w);
            return false;
        }
    }
    return true;
}

/* With a stream set the call comes back before it is done (the mock does the work when
 * the stream is waited for), and is right then. */
static void on_stream(enum bl_row row, enum memory memory)
{
    struct rng r = {17};
    struct batch s = new_batch(row, BL_D, 0, memory, 20, 30, &r);
    void *stream;
    char why[300] = "";
    must(engine->queue_open(&stream), "stream");
    pose(&s, 8);
    place_all(&s);
    void *before = batchlapack_set_stream(stream);
    call_batch(&s);
    if (before || batchlapack_set_stream(NULL) != stream)
        snprintf(why, sizeof why, "set_stream does not return the one before");
    if (mock_order && !*why)
        untouched(&s, why);
    if (engine->wait(stream) != BL_OK && !*why)
        snprintf(why, sizeof why, "the stream failed");
    fetch_all(&s);
    if (!*why && !check(&s))
        memcpy(why, s.why, sizeof why);
    verdict(why, "stream-%s-%s", bl_rows[row].name, memory_name[memory]);
    free_used(&s);
    drop(&s);
    engine->queue_close(stream);
}

/* A fault at each step of a call on device memory: INFO and all else stay, and the status
 * says so. */
static void device_faults(enum mock_step step, const char *name)
{
    static const struct mock_order none = {.step = MOCK_STEPS};
    struct rng r = {18};
    struct batch s = new_batch(BL_ROW_GETRF_GROUPS, BL_D, 0, DEVICE, 20, 30, &r);
    char why[300] = "";
    pose(&s, 8);
    place_all(&s);
    mock_order(&(struct mock_order){.step = step, .at = 1, .status = BL_FAULT});
    call_batch(&s);
    mock_order(&none);
    if (batchlapack_status() != BATCHLAPACK_FAULT)
        snprintf(why, sizeof why, "status is %d", batchlapack_status());
    else
        untouched(&s, why);
    fetch_all(&s);
    free_used(&s);
    if (!*why && !run(&s)) /* the next one is served again */
        memcpy(why, s.why, sizeof why);
    verdict(why, "device-fault-%s", name);
    drop(&s);
}

/* Memory for less work space than the jobs would like. */
static void device_is_short(void)
{
    static const struct mock_order none = {.step = MOCK_STEPS};
    struct rng r = {18};
    struct batch s = new_batch(BL_ROW_GETRF_STRIDED, BL_D, 0, DEVICE, 20, 30, &r);
    pose(&s, 8);
    mock_order(&(struct mock_order){
        .step = MOCK_STEPS, .memory = (uint64_t)64 << 20, .work = (uint64_t)65 << 20});
    run(&s);
    mock_order(&none);
    verdict(s.why, "device-work-space-short");
    drop(&s);
}

/* The same on host memory: the program's own LAPACK gives the answer. */
static void host_faults(enum bl_row row, enum mock_step step, const char *name)
{
    static const struct mock_order none = {.step = MOCK_STEPS};
    struct rng r = {18};
    struct batch s = new_batch(row, BL_C, 0, PAGEABLE, 40, 30, &r);
    pose(&s, 8);
    mock_order(
        &(struct mock_order){.step = step, .at = 2, .always = true, .status = BL_FAULT});
    run(&s);
    mock_order(&none);
    verdict(s.why, "host-fault-%s-%s", bl_rows[row].name, name);
    drop(&s);
    s = new_batch(row, BL_C, 0, PAGEABLE, 4, 30, &r);
    pose(&s, 8);
    run(&s); /* resets the count of faults */
    drop(&s);
}

/* The engine hands every third matrix back: it does all of them all the same, once, and
 * the program's own LAPACK does those. */
static void hands_back(enum bl_row row, enum bl_precision p)
{
    static const struct mock_order none = {.step = MOCK_STEPS};
    struct rng r = {19};
    struct batch s = new_batch(row, p, 3 * (row % 2), PAGEABLE, 40, 60, &r);
    struct mock_counts before, after;
    int64_t there = 0;
    pose(&s, 9);
    for (int64_t i = 0; i < s.count; i++)
        there += s.m[s.of[i]] > 0 && s.n[s.of[i]] > 0;
    mock_counts(&before);
    mock_order(&(struct mock_order){.step = MOCK_STEPS, .hand_back = 3});
    run(&s);
    mock_order(&none);
    mock_counts(&after);
    if (!*s.why && (int64_t)(after.problems - before.problems) < there)
        snprintf(s.why, sizeof s.why, "the engine did %lld of %lld",
                 (long long)(after.problems - before.problems), (long long)there);
    verdict(s.why, "handed-back-%c%s", "sdcz"[p], bl_rows[row].name);
    drop(&s);
}

/* ---- threads, fork ---- */

static void one_thread(int64_t item, void *data)
{
    (void)data;
    struct rng r = {(uint64_t)item + 50};
    enum bl_row row = (enum bl_row)(FIRST_BATCHED + item % (BL_ROWS - FIRST_BATCHED));
    struct batch s =
        new_batch(row, (enum bl_precision)(item % 4), 0, PAGEABLE, 10, 20, &r);
    batchlapack_set_mode(item % 2 ? BATCHLAPACK_MODE_GPU : BATCHLAPACK_MODE_CPU);
    pose(&s, (uint64_t)item);
    run(&s);
    batchlapack_set_mode(BATCHLAPACK_MODE_DEFAULT);
    if (*s.why)
        verdict(s.why, "thread-%lld", (long long)item);
    drop(&s);
}

static void in_a_child(void)
{
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct rng r = {4};
        struct batch s = new_batch(BL_ROW_GESV_STRIDED, BL_D, 0, PAGEABLE, 1, 20, &r);
        pose(&s, 2);
        _exit(run(&s) ? 0 : 1);
    }
    waitpid(child, &status, 0);
    verdict(status == 0 ? "" : "the child failed", "forked-child");
}

/* Of the engine that the library uses: the first call has loaded it. */
static bool find_engine(void)
{
    struct rng r = {1};
    struct batch s = new_batch(BL_ROW_GETRF_STRIDED, BL_D, 0, PAGEABLE, 1, 4, &r);
    Dl_info info;
    pose(&s, 1);
    batchlapack_set_mode(BATCHLAPACK_MODE_GPU);
    bool good = run(&s);
    batchlapack_set_mode(BATCHLAPACK_MODE_DEFAULT);
    verdict(s.why, "first-call");
    drop(&s);
    char path[4096] = "";
    const char *given = getenv("BATCHLAPACK_ENGINE");
    if (given)
        snprintf(path, sizeof path, "%s", given);
    else if (dladdr((void *)(uintptr_t)batchlapack_version, &info)) {
        snprintf(path, sizeof path, "%s", info.dli_fname);
        char *slash = strrchr(path, '/');
        snprintf(slash ? slash + 1 : path, 64, "libbatchlapack_cuda.so");
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    void *symbol = handle ? dlsym(handle, BL_ENGINE_SYMBOL) : NULL;
    if (!good || !symbol) {
        verdict(path, "engine-is-loaded");
        return false;
    }
    engine = symbol;
    find_mock();
    must(engine->queue_open(&queue), "queue");
    void *p;
    must(engine->host_alloc(STAGE, &p), "stage");
    stage = p;
    return true;
}

int main(int argc, char **argv)
{
    int gpu = BATCHLAPACK_MODE_GPU, cpu = BATCHLAPACK_MODE_CPU;
    enum { ENTRIES = BL_ROWS - FIRST_BATCHED };
    heavy = argc > 1 && strcmp(argv[1], "--heavy") == 0;
    setenv("BATCHLAPACK_ARITHMETIC", "exact", 1); /* netlib's bits, of whatever order */
    if (!reference_open())
        return 0;
    if (!find_engine())
        return 1;
    if (argc > 2 && strcmp(argv[1], "--only") == 0) {
        for (int64_t i = 0; i < (int64_t)ENTRIES * BL_PRECISIONS; i++)
            if (strcmp(bl_rows[FIRST_BATCHED + i / BL_PRECISIONS].name, argv[2]) == 0)
                each_entry(i, &gpu);
        return failures() > 0;
    }
    for (int64_t i = 0; i < (int64_t)ENTRIES * BL_PRECISIONS; i++)
        each_entry(i, &gpu);
    for (int64_t i = 0; i < (int64_t)ENTRIES * BL_PRECISIONS; i++)
        each_entry(i, &cpu);
    batchlapack_set_mode(gpu);
    for (int memory = 0; memory < MEMORIES; memory++) {
        for (enum bl_row row = BL_ROW_GETRF_GROUPS; row < BL_ROWS; row++)
            mixed_sizes(row, (enum memory)memory);
        many((enum memory)memory);
    }
    for (enum bl_row row = FIRST_BATCHED; row < BL_ROWS; row++)
        bad_arguments(row, (enum bl_precision)(row % BL_PRECISIONS));
    empty();
    for (enum bl_row row = FIRST_BATCHED; row < BL_ROWS; row++)
        on_stream(row, DEVICE);
    on_stream(BL_ROW_GETRF_GROUPS, DEVICE_ARRAYS);
    if (mock_order) {
        device_faults(MOCK_RUN, "run");
        device_faults(MOCK_WAIT, "wait");
        device_faults(MOCK_QUEUE_ALLOC, "allocation");
        device_faults(MOCK_PUT, "put");
        device_is_short();
        host_faults(BL_ROW_GETRF_GROUPS, MOCK_RUN, "run");
        host_faults(BL_ROW_GETRF_GROUPS, MOCK_COPY_IN, "copy-in");
        host_faults(BL_ROW_GESV_STRIDED, MOCK_RUN, "run");
        for (int i = 0; i < ENTRIES; i++)
            hands_back((enum bl_row)(FIRST_BATCHED + i),
                       (enum bl_precision)(i % BL_PRECISIONS));
    }
    batchlapack_set_mode(BATCHLAPACK_MODE_DEFAULT);
    int before = failures();
    in_parallel(heavy ? 200 : 72, one_thread, NULL);
    verdict(failures() == before ? "" : "see above", "threads");
    in_a_child();
    return failures() > 0;
}
