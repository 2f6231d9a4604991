/* From which n does the GPU beat the program's own LAPACK? The whole call, host memory to
 * host memory, per routine and precision: time on each side at growing n, and the n where
 * they cross, as a row to paste into src/tune.def.
 *
 *     BATCHLAPACK_ENGINE=FILE BATCHLAPACK_LAPACK=FILE bench/crossover [largest n]
 *         [routine ...]
 *
 * OPENBLAS_NUM_THREADS=1 measures OpenBLAS with one thread; bench/thresholds reads a
 * record of all three (bench/host). A routine is dgetrf, or getrf for all precisions;
 * none stands for all. Square calls with n right-hand sides, as tune.def defines a
 * threshold, with 64-bit integers, which any LAPACK can serve; random matrices, for
 * Cholesky with a dominant diagonal. First all sizes on the GPU, after a rest: OpenBLAS's
 * threads spin for a tenth of a second after each of its calls, on all CPUs. The engine
 * is started before the first measurement. Medians of 3, after one call that is not
 * timed; of calls of over 0.2 s there is one, and a side that takes over 1 s is not
 * measured further. The row keeps src/tune.def's thresholds over the other kind of LAPACK
 * (a reference one or not), those of precisions that were not asked for, and those that
 * were not reached: there the GPU was never ahead.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "batchlapack.h"
#include "bl.h"

static const int sizes[] = {32,   64,   96,   128,  192,  256,  384,  512, 768,
                            1024, 1536, 2048, 3072, 4096, 6144, 8192, 0};

static int largest = 8192;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct call {
    unsigned id;
    int64_t n, lwork, info;
    char uplo, trans;
    void *a, *b, *a0, *b0, *work;
    int64_t *ipiv;
    size_t bytes;
};

/* Random, with a dominant diagonal for Cholesky. */
static void fill(const struct call *c, void *p, bool dominant)
{
    bool wide = c->id % BL_PRECISIONS == BL_D || c->id % BL_PRECISIONS == BL_Z;
    bool complex_ = c->id % BL_PRECISIONS >= BL_C;
    size_t parts = complex_ ? 2 : 1, count = (size_t)(c->n * c->n) * parts;
    unsigned seed = 1;
    for (size_t k = 0; k < count; k++) {
        seed = seed * 1664525u + 1013904223u;
        size_t element = k / parts, i = element % (size_t)c->n,
               j = element / (size_t)c->n;
        double v = (double)(seed >> 8) * 0x1p-23 - 1;
        if (dominant && i == j)
            v = k % parts ? 0 : 2.0 * (double)c->n;
        if (wide)
            ((double *)p)[k] = v;
        else
            ((float *)p)[k] = (float)v;
    }
}

/* tune.def's operation count of the square call. */
static double flops_of(const struct call *c)
{
    double n = (double)c->n, m = n, k = n, r = n;
    double count[] = {
#define T(name, flops, fast_lapack, reference, chain) flops,
#define E(name, operations, chain)
#include "tune.def"
#undef T
#undef E
    };
    (void)m, (void)k, (void)r;
    return count[c->id / BL_PRECISIONS] * (c->id % BL_PRECISIONS >= BL_C ? 4 : 1);
}

static void call(struct call *c)
{
    void *v[BL_MAX_ARGS];
    unsigned count = 0;
    char matrix = 0;
    for (const char *letter = bl_row(c->id)->args; *letter; letter++)
        switch (*letter) {
        case 'u':
            v[count++] = &c->uplo;
            break;
        case 't':
            v[count++] = &c->trans;
            break;
        case 'a':
        case 'A':
        case 'B':
            matrix = *letter;
            v[count++] = matrix == 'B' ? c->b : c->a;
            break;
        case 'p':
        case 'P':
            v[count++] = c->ipiv;
            break;
        case 'W':
            v[count++] = c->work;
            break;
        case 'q':
            v[count++] = &c->lwork;
            break;
        case 'i':
            v[count++] = &c->info;
            break;
        default: /* every dimension is n */
            v[count++] = &c->n;
        }
    bl_dispatch(c->id, BL_WIDE, v, (const void *)(uintptr_t)call);
}

#define LONG_CALL 0.2 /* seconds: one will do */
#define TOO_LONG 1.0

/* Seconds of one call in a mode; the median of `repeats`. */
static double measure(struct call *c, int mode, unsigned first, int repeats)
{
    double t[3];
    for (int i = 0; i < repeats; i++) {
        memcpy(c->a, c->a0, c->bytes);
        if (strchr(bl_row(c->id)->args, 'B'))
            memcpy(c->b, c->b0, c->bytes);
        if (first != c->id) { /* factors, by the routine's own predecessor */
            struct call f = *c;
            f.id = first;
            batchlapack_set_mode(BATCHLAPACK_MODE_GPU);
            call(&f);
        }
        batchlapack_set_mode(mode);
        double begin = seconds();
        call(c);
        t[i] = seconds() - begin;
        if (t[i] > LONG_CALL || repeats < 3)
            return t[i];
    }
    double low = fmin(fmin(t[0], t[1]), t[2]), high = fmax(fmax(t[0], t[1]), t[2]);
    return t[0] + t[1] + t[2] - low - high;
}

/* As `largest` asks, one for all calls. */
static void allocate(struct call *c)
{
    size_t bytes = (size_t)largest * (size_t)largest * sizeof(double) * 2;
    c->a = malloc(bytes);
    c->a0 = malloc(bytes);
    c->b = malloc(bytes);
    c->b0 = malloc(bytes);
    c->work = malloc((size_t)largest * 64 * sizeof(double) * 2);
    c->ipiv = calloc((size_t)largest, sizeof *c->ipiv);
    if (!c->a || !c->a0 || !c->b || !c->b0 || !c->work || !c->ipiv) {
        fprintf(stderr, "crossover: no memory\n");
        exit(1);
    }
}

/* Ready for calls of order n. */
static void prepare(struct call *c, int n)
{
    c->n = n;
    c->bytes =
        (size_t)(c->n * c->n) * bl_element((enum bl_precision)(c->id % BL_PRECISIONS));
    c->lwork = 64 * c->n;
    fill(c, c->a0, bl_row(c->id)->name[0] == 'p');
    fill(c, c->b0, false);
}

static double crossover(struct call c, bool reference)
{
    enum bl_routine_id r = (enum bl_routine_id)(c.id / BL_PRECISIONS);
    enum bl_precision p = (enum bl_precision)(c.id % BL_PRECISIONS);
    unsigned first = r == BL_GETRS || r == BL_GETRI   ? bl_id(BL_GETRF, p)
                     : r == BL_POTRS || r == BL_POTRI ? bl_id(BL_POTRF, p)
                                                      : c.id;
    double before = 0, before_n = 0, cross = 0, gpu[sizeof sizes / sizeof *sizes];
    static const struct timespec rest = {0, 150000000};
    int count = 0;
    if (!reference)
        nanosleep(&rest, NULL);
    for (int i = 0; sizes[i] && sizes[i] <= largest; i++) {
        prepare(&c, sizes[i]);
        measure(&c, BATCHLAPACK_MODE_GPU, first, 1);
        gpu[count++] = measure(&c, BATCHLAPACK_MODE_GPU, first, 3);
        if (gpu[i] > TOO_LONG)
            break;
    }
    for (int i = 0; i < count; i++) {
        prepare(&c, sizes[i]);
        measure(&c, BATCHLAPACK_MODE_CPU, first, 1);
        double cpu = measure(&c, BATCHLAPACK_MODE_CPU, first, 3);
        double flops = flops_of(&c);
        printf("%c%-6s %6d  CPU %10.3f ms %8.1f GFLOP/s  GPU %10.3f ms %8.1f GFLOP/s  "
               "%7.2f\n",
               bl_prefix(c.id), bl_row(c.id)->name, sizes[i], cpu * 1e3,
               flops / cpu * 1e-9, gpu[i] * 1e3, flops / gpu[i] * 1e-9, cpu / gpu[i]);
        fflush(stdout);
        double ratio = log(cpu / gpu[i]);
        /* The last crossing counts: from there on the GPU stays ahead. */
        if (ratio > 0 && before <= 0)
            cross = before_n == 0
                        ? sizes[i]
                        : before_n * pow(sizes[i] / before_n, -before / (ratio - before));
        if (ratio <= 0)
            cross = 0;
        before = ratio;
        before_n = sizes[i];
        if (cpu > TOO_LONG)
            break;
    }
    return cross;
}

/* ---- rows of tune.def ---- */

#define N(s, d, c, z)                                                                    \
    {                                                                                    \
        s, d, c, z                                                                       \
    }
#define E(name, operations, chain)
#define T(name, operations, fast_lapack, reference, chain) {#operations, chain},
static const struct {
    const char *operations;
    int chain;
} row[] = {
#include "tune.def"
};
#undef T
static const double thresholds[][2][BL_PRECISIONS] = {
#define T(name, operations, fast_lapack, reference, chain) {fast_lapack, reference},
#include "tune.def"
#undef T
};
#undef E
#undef N

/* To two digits, upwards. */
static double rounded(double n)
{
    double unit = pow(10, floor(log10(n)) - 1);
    return unit * ceil(n / unit);
}

static void print_row(unsigned r, const double cross[BL_PRECISIONS], bool reference)
{
    printf("T(%s, %s,", bl_routines[r].name, row[r].operations);
    for (int kind = 0; kind < 2; kind++) {
        printf(kind ? ", N(" : " N(");
        for (unsigned p = 0; p < BL_PRECISIONS; p++)
            printf(p ? ", %.0f" : "%.0f", kind == reference && cross[p] > 0
                                              ? rounded(cross[p])
                                              : thresholds[r][kind][p]);
        printf(")");
    }
    printf(", %d)\n", row[r].chain);
}

static bool is_wanted(unsigned id, int argc, char **argv)
{
    char name[BL_SYMBOL_MAX];
    snprintf(name, sizeof name, "%c%s", bl_prefix(id), bl_row(id)->name);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0 || strcmp(argv[i], name + 1) == 0)
            return true;
    return argc == 1;
}

int main(int argc, char **argv)
{
    struct bl_target lapack =
        bl_find(bl_id(BL_GETRF, BL_D), BL_WIDE, (const void *)(uintptr_t)main);

    if (argc > 1 && atoi(argv[1]) > 0) {
        largest = atoi(argv[1]);
        argc--;
        argv++;
    }
    enum bl_reason why;
    if (!bl_engine_start(&why)) { /* the CPU would be held against itself */
        fprintf(stderr, "crossover: no GPU: %s\n", bl_engine_why());
        return 1;
    }
    struct call c = {.uplo = 'L', .trans = 'N'};
    allocate(&c);
    for (unsigned r = 0; r < BL_LAPACK_ROUTINES; r++) {
        double n[BL_PRECISIONS] = {0};
        bool any = false;
        for (unsigned p = 0; p < BL_PRECISIONS; p++) {
            c.id = bl_id(r, p);
            if (!is_wanted(c.id, argc, argv))
                continue;
            n[p] = crossover(c, lapack.reference);
            any = true;
        }
        if (any)
            print_row(r, n, lapack.reference);
        fflush(stdout);
    }
    return 0;
}
