/* LU and Cholesky of large matrices against netlib's results, which take it too long to
 * be made at test time (minutes for all): $SRC/test/large-references.txt holds hashes of
 * them.
 *
 *     large_references [largest order [precision letters]]          compare the engine's
 *     large_references write [largest order [precision letters]]    print a table
 *
 * Exact arithmetic must give the hashes of the factors, of IPIV, and INFO. Fast LU of
 * random matrices must choose the same rows in double precision; in single precision the
 * first other row must be as good as the same: the two candidates differ by what rounding
 * can do. Its residual and its growth are to be those of the exact factors.
 *
 * Links libshim; the engine is the one that BATCHLAPACK_ENGINE names or that lies beside
 * the program.
 */
#include <complex.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bl.h"
#include "large_job.h"
#include "reference.h"

struct problem {
    enum bl_routine_id routine;
    enum bl_precision precision;
    char uplo; /* 0: LU */
    int64_t m, n;
    enum matrix_class of;
};

/* What a table says of it. */
struct answer {
    int64_t info;
    uint64_t a, pivots;
};

enum { MOST = 500 };
static struct problem problems[MOST];
static struct answer answers[MOST];
static int64_t count;

static void pose(enum bl_routine_id routine, enum bl_precision p, char uplo, int64_t m,
                 int64_t n, enum matrix_class of)
{
    if (count < MOST)
        problems[count++] = (struct problem){routine, p, uplo, m, n, of};
}

static void pose_all(int64_t largest, const char *letters)
{
    static const int64_t shapes[][2] = {
        {600, 600},   {1000, 1000}, {1024, 1024}, {1500, 1500}, {2047, 2047}, {4096, 512},
        {3000, 1000}, {1000, 3000}, {2048, 2048}, {3000, 3000}, {4096, 4096}};
    static const enum matrix_class classes[] = {CLASS_RANDOM, CLASS_INTEGER,
                                                CLASS_DEFICIENT, CLASS_TIED};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int p = 0; p < BL_PRECISIONS; p++)
            for (int c = 0; c < 4; c++) {
                const int64_t m = shapes[s][0], n = shapes[s][1];
                if (!strchr(letters, "sdcz"[p]) || (m < n ? m : n) > largest)
                    continue;
                pose(BL_GETRF, (enum bl_precision)p, 0, m, n, classes[c]);
                if (m != n)
                    continue;
                pose(BL_POTRF, (enum bl_precision)p, 'L', n, n, classes[c]);
                pose(BL_POTRF, (enum bl_precision)p, 'U', n, n, classes[c]);
            }
}

static void name_of(const struct problem *x, char *name, size_t size)
{
    snprintf(name, size, "%s-%c-%" PRId64 "x%" PRId64 "-%s",
             routine_name(x->routine, x->precision), x->uplo ? x->uplo : 'x', x->m, x->n,
             matrix_class_name[x->of]);
}

static struct matrix matrix_of(const struct problem *x)
{
    struct matrix a = matrix_new(x->precision, x->m, x->n, x->m + x->n % 3, 3);
    const uint64_t seed =
        (uint64_t)(x->m * 31 + x->n * 7 + (int64_t)x->of * 3 + (int64_t)x->precision);
    if (x->uplo)
        matrix_fill_hermitian(&a, x->uplo, x->of, seed);
    else
        matrix_fill(&a, x->of, seed);
    return a;
}

/* ---- hashes ---- */

static uint64_t mixed(uint64_t hash, uint64_t bits)
{
    hash = (hash ^ bits) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 29;
}

/* A part of a number: every NaN is the same, and where `zeros` is set every zero. */
static uint64_t part_bits(const char *at, bool wide, bool zeros)
{
    double value;
    float narrow;
    uint64_t bits = 0;
    if (wide) {
        memcpy(&value, at, 8);
    } else {
        memcpy(&narrow, at, 4);
        value = (double)narrow;
    }
    if (isnan(value))
        return 1;
    if (zeros && value == 0)
        value = 0;
    memcpy(&bits, &value, 8);
    return bits;
}

/* Of the triangle (0: of all), and of what is before `minor` where that is not negative.
 */
static uint64_t hash_of(const struct matrix *a, char triangle, int64_t minor, bool zeros)
{
    const bool wide = is_double(a->precision), parts = is_complex(a->precision);
    const size_t part = real_bytes(a->precision);
    const int64_t columns = minor < 0 ? a->cols : minor,
                  rows = minor < 0 ? a->rows : minor;
    uint64_t hash = 0;
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = triangle == 'L' ? j : 0; i < (triangle == 'U' ? j + 1 : rows);
             i++) {
            const char *at = matrix_at(a, i, j);
            hash = mixed(hash, part_bits(at, wide, zeros));
            if (parts)
                hash = mixed(hash, part_bits(at + part, wide, zeros));
        }
    return hash;
}

static uint64_t hash_of_pivots(const int64_t *pivots, int64_t order)
{
    uint64_t hash = 0;
    for (int64_t k = 0; k < order; k++)
        hash = mixed(hash, (uint64_t)pivots[k]);
    return hash;
}

static struct answer answer_of(const struct problem *x, const struct matrix *a,
                               bool zeros, const int64_t *pivots, int64_t info)
{
    const int64_t minor = x->uplo && info > 0 ? info - 1 : -1,
                  order = x->m < x->n ? x->m : x->n;
    return (struct answer){info, hash_of(a, x->uplo, minor, zeros),
                           x->uplo ? 0 : hash_of_pivots(pivots, order)};
}

/* ---- a table ---- */

static void write_one(const struct problem *x)
{
    struct matrix a = matrix_of(x);
    const bool zeros = holds_negative_zero(&a, x->uplo);
    const int64_t order = x->m < x->n ? x->m : x->n;
    int32_t *narrow = calloc((size_t)order, sizeof *narrow);
    int64_t *pivots = calloc((size_t)order, sizeof *pivots);
    char name[100];
    struct call c = {.routine = x->routine,
                     .precision = x->precision,
                     .uplo = x->uplo == 'U' ? "U" : "L",
                     .m = (int32_t)x->m,
                     .n = (int32_t)x->n,
                     .lda = (int32_t)a.ld,
                     .a = a.data,
                     .ipiv = narrow};
    reference_call(&c);
    for (int64_t k = 0; k < order; k++)
        pivots[k] = narrow[k];
    const struct answer is = answer_of(x, &a, zeros, pivots, c.info);
    name_of(x, name, sizeof name);
    printf("%s %" PRId64 " %016" PRIx64 " %016" PRIx64 "\n", name, is.info, is.a,
           is.pivots);
    fflush(stdout);
    matrix_free(&a);
    free(narrow);
    free(pivots);
}

/* False: it does not speak of all problems. */
static bool read_table(const char *path)
{
    FILE *f = fopen(path, "r");
    int64_t found = 0;
    char line[200], name[100], wanted[100];
    while (f && fgets(line, sizeof line, f)) {
        struct answer is;
        if (sscanf(line, "%99s %" SCNd64 " %" SCNx64 " %" SCNx64, name, &is.info, &is.a,
                   &is.pivots) != 4)
            continue;
        for (int64_t i = 0; i < count; i++) {
            name_of(&problems[i], wanted, sizeof wanted);
            if (strcmp(name, wanted) != 0)
                continue;
            answers[i] = is;
            found++;
        }
    }
    if (f)
        fclose(f);
    return found == count;
}

/* ---- the engine's ---- */

static const struct bl_engine *engine;

/* What netlib compares candidates for a pivot by. */
static double size_at(const struct matrix *a, int64_t i, int64_t j)
{
    const long double complex x = matrix_get(a, i, j);
    return (double)(fabsl(creall(x)) + fabsl(cimagl(x)));
}

static double largest_of_u(const struct matrix *lu, int64_t first, int64_t last)
{
    double most = 0;
    for (int64_t j = first; j <= last; j++)
        for (int64_t i = 0; i <= j && i < lu->rows; i++)
            most = fmax(most, size_at(lu, i, j));
    return most;
}

/* By how much pivot k of these factors was larger than what row `other` had there, which
 * the interchanges from k on have moved; in units of what rounding can do to either: n
 * eps times the largest number in the column. */
static double lead(const struct matrix *lu, const int64_t *pivots, int64_t k,
                   int64_t other)
{
    const int64_t order = lu->rows < lu->cols ? lu->rows : lu->cols;
    for (int64_t j = k; j < order; j++) {
        const int64_t p = pivots[j] - 1;
        other = other == j ? p : other == p ? j : other;
    }
    const long double complex l = matrix_get(lu, other, k), u = matrix_get(lu, k, k),
                              v = CMPLXL(creall(l) * creall(u) - cimagl(l) * cimagl(u),
                                         creall(l) * cimagl(u) + cimagl(l) * creall(u));
    const double gap = size_at(lu, k, k) - (double)(fabsl(creall(v)) + fabsl(cimagl(v)));
    return gap / ((double)lu->cols * epsilon_of(lu->precision) * largest_of_u(lu, k, k));
}

/* The fast factors of a random matrix against the exact ones, which are netlib's. */
static void compare_fast(const char *name, const struct matrix *before,
                         const struct matrix *exact, const int64_t *exact_pivots)
{
    enum { MOST_LEAD = 4, GROWTH = 2 };
    const int64_t order = before->rows < before->cols ? before->rows : before->cols;
    struct matrix a = matrix_copy(before);
    int64_t *pivots = calloc((size_t)order, sizeof *pivots), k = 0;
    char why[300] = "", first[200];
    struct large_job job = {
        .routine = BL_GETRF, .arithmetic = BL_FAST, .a = &a, .pivots = pivots};
    if (!large_run(engine, &job))
        snprintf(why, sizeof why, "the engine failed");
    else if (job.info != 0)
        snprintf(why, sizeof why, "INFO is %" PRId64, job.info);
    else if (touched(&a, before, 0, first, sizeof first))
        snprintf(why, sizeof why, "outside of the matrix: %s", first);
    for (k = 0; !*why && k < order; k++)
        if (pivots[k] <= k || pivots[k] > before->rows)
            snprintf(why, sizeof why, "IPIV(%" PRId64 ") is %" PRId64, k + 1, pivots[k]);
    for (k = 0; !*why && k < order && pivots[k] == exact_pivots[k];)
        k++;
    if (!*why && k < order) {
        const double led = lead(&a, pivots, k, exact_pivots[k] - 1);
        printf("# large-fast-%s: IPIV(%" PRId64 ") is another by a lead of %.3g\n", name,
               k + 1, led);
        if (is_double(before->precision) || !(fabs(led) <= MOST_LEAD))
            snprintf(why, sizeof why,
                     "IPIV(%" PRId64 ") is %" PRId64 ", not %" PRId64 ": lead %.3g",
                     k + 1, pivots[k], exact_pivots[k], led);
    }
    if (!*why) {
        const double ours = lu_residual(before, &a, pivots),
                     theirs = lu_residual(before, exact, exact_pivots);
        const double grown = largest_of_u(&a, 0, a.cols - 1),
                     theirs_grown = largest_of_u(exact, 0, a.cols - 1);
        if (!(ours >= 0 && ours <= 5 * theirs + 0.01))
            snprintf(why, sizeof why, "residual %.3g, netlib's %.3g", ours, theirs);
        else if (!(grown <= GROWTH * theirs_grown))
            snprintf(why, sizeof why, "the largest of U is %.3g, netlib's %.3g", grown,
                     theirs_grown);
    }
    verdict(why, "large-fast-%s", name);
    matrix_free(&a);
    free(pivots);
}

static void compare(int64_t turn, void *data)
{
    const int64_t i = count - 1 - turn; /* the longest first */
    (void)data;
    const struct problem *x = &problems[i];
    const int64_t order = x->m < x->n ? x->m : x->n;
    struct matrix before = matrix_of(x), a = matrix_copy(&before);
    const bool zeros = holds_negative_zero(&before, x->uplo);
    int64_t *pivots = calloc((size_t)order, sizeof *pivots);
    char name[100], why[300] = "", first[200];
    struct large_job job = {
        .routine = x->routine, .uplo = x->uplo, .a = &a, .pivots = pivots};
    name_of(x, name, sizeof name);
    if (!large_run(engine, &job)) {
        snprintf(why, sizeof why, "the engine failed");
    } else {
        const struct answer is = answer_of(x, &a, zeros, pivots, job.info),
                            want = answers[i];
        if (is.info != want.info)
            snprintf(why, sizeof why, "INFO is %" PRId64 ", not %" PRId64, is.info,
                     want.info);
        else if (is.pivots != want.pivots)
            snprintf(why, sizeof why, "IPIV is another");
        else if (is.a != want.a)
            snprintf(why, sizeof why, "other bits");
        else if (touched(&a, &before, x->uplo, first, sizeof first))
            snprintf(why, sizeof why, "outside of the matrix: %s", first);
    }
    verdict(why, "large-exact-%s", name);
    if (!*why && !x->uplo && x->of == CLASS_RANDOM)
        compare_fast(name, &before, &a, pivots);
    matrix_free(&before);
    matrix_free(&a);
    free(pivots);
}

int main(int argc, char **argv)
{
    const bool writes = argc > 1 && strcmp(argv[1], "write") == 0;
    const char *source = getenv("SRC");
    char table[4096];
    argc -= writes;
    argv += writes;
    pose_all(argc > 1 ? atoll(argv[1])
             : writes ? INT64_MAX
                      : 600,
             argc > 2 ? argv[2] : "sdcz");
    if (!reference_open())
        return 0;
    for (int64_t i = 0; writes && i < count; i++)
        write_one(&problems[i]);
    if (writes)
        return 0;
    enum bl_reason why = BL_REASONS;
    engine = bl_engine_for(0, true, &why);
    snprintf(table, sizeof table, "%s/test/large-references.txt", source ? source : ".");
    const bool complete = read_table(table);
    verdict(!engine    ? bl_engine_why()
            : complete ? ""
                       : "the table is not there or does not speak of all",
            "large-references");
    if (!engine || !complete)
        return 1;
    in_parallel(count, compare, NULL);
    return failures() != 0;
}
