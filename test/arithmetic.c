/* Which arithmetic `auto` takes for batches in host memory, told by the mock engine that
 * BATCHLAPACK_ENGINE names: by triangle, order and number of matrices, in calls of groups
 * each kind by its own. And that in such a call large matrices are jobs of their own.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batchlapack.h"
#include "mock_controls.h"

enum { MOST = 160, COUNT = 12, GROUPS = 12 };

struct group {
    char uplo;
    int n, count;
};

/* How many matrices of a call of potrf_batch were factored in fast arithmetic. */
static int64_t fast_of(char precision, const struct group *groups, int many)
{
    const size_t element = precision == 'z' ? 16 : 8;
    char *memory = calloc((size_t)GROUPS * COUNT, MOST * MOST * element), uplo[GROUPS];
    int n[GROUPS], size[GROUPS], info[GROUPS * COUNT], at = 0;
    void *a[GROUPS * COUNT];
    if (!memory)
        abort();
    for (int g = 0; g < many; g++) {
        uplo[g] = groups[g].uplo;
        n[g] = groups[g].n;
        size[g] = groups[g].count;
        for (int i = 0; i < size[g]; i++, at++) { /* the unit matrix */
            char *x = memory + (size_t)at * MOST * MOST * element;
            a[at] = x;
            for (int k = 0; k < n[g]; k++, x += (size_t)(n[g] + 1) * element)
                if (precision == 'c')
                    memcpy(x, &(float){1}, sizeof(float));
                else
                    memcpy(x, &(double){1}, sizeof(double));
        }
    }
    struct mock_counts before, after;
    mock_counts(&before);
    if (precision == 'd')
        dpotrf_batch(uplo, n, (double *const *)(void *)a, n, &many, size, info);
    else if (precision == 'c')
        cpotrf_batch(uplo, n, (void *)a, n, &many, size, info);
    else
        zpotrf_batch(uplo, n, (void *)a, n, &many, size, info);
    mock_counts(&after);
    free(memory);
    return after.problems - before.problems == (uint64_t)at
               ? (int64_t)(after.fast - before.fast)
               : -1;
}

/* The same of strided z matrices, all unit matrices, of LU: one right-hand side. */
enum lu { GETRF, GESV, GETRS, LU };

static int64_t fast_of_lu(enum lu routine, int n, int count)
{
    const int64_t each = (int64_t)n * n;
    const int one = 1, stride = (int)each;
    double *a = calloc((size_t)(count * each), 2 * sizeof *a),
           *b = calloc((size_t)(count * n), 2 * sizeof *b);
    int *ipiv = calloc((size_t)(count * n), sizeof *ipiv),
        *info = calloc((size_t)count, sizeof *info);
    if (!a || !b || !ipiv || !info)
        abort();
    for (int64_t i = 0; i < (int64_t)count * n; i++) {
        a[2 * (i / n * each + i % n * (n + 1))] = 1;
        ipiv[i] = (int)(i % n) + 1;
    }
    struct mock_counts before, after;
    mock_counts(&before);
    if (routine == GETRF)
        zgetrf_batch_strided(&n, &n, (void *)a, &n, &stride, ipiv, &n, &count, info);
    else if (routine == GESV)
        zgesv_batch_strided(&n, &one, (void *)a, &n, &stride, ipiv, &n, (void *)b, &n, &n,
                            &count, info);
    else
        zgetrs_batch_strided("N", &n, &one, (void *)a, &n, &stride, ipiv, &n, (void *)b,
                             &n, &n, &count, info);
    mock_counts(&after);
    free(a);
    free(b);
    free(ipiv);
    free(info);
    return after.problems - before.problems == (uint64_t)count
               ? (int64_t)(after.fast - before.fast)
               : -1;
}

/* Up to the limit, above it, and of so few that it is not theirs. */
static bool lu_in_auto(enum lu routine)
{
    enum {
#define BATCH_LIMIT(name, s, d, c, z) LIMIT_##name = z,
#include "tune.def"
#undef BATCH_LIMIT
    };
    static const char *const name[LU] = {"getrf", "gesv", "getrs"};
    static const int limit[LU] = {LIMIT_GETRF, LIMIT_GESV, LIMIT_GETRS};
    const int n = limit[routine];
    const int64_t to = fast_of_lu(routine, n, 5), above = fast_of_lu(routine, n + 1, 5),
                  few = fast_of_lu(routine, n + 1, 4);
    const bool good = n > 0 && to == 0 && above == 5 && few == 0;
    if (good)
        printf("ok arithmetic-z%s\n", name[routine]);
    else
        printf("not ok arithmetic-z%s - of order %d and above, fast: %lld, %lld, of four "
               "%lld\n",
               name[routine], n, (long long)to, (long long)above, (long long)few);
    return good;
}

/* Anti-identities of orders that do not all go together: identities come back, the
 * interchanges are known, and those above 1024 have a run each; by bytes some of them
 * would share a chunk. */
static bool large_alone(void)
{
    enum { MANY = 12, LARGE = 10 };
    int n[MANY], size[MANY], info[MANY], many = MANY;
    float *a[MANY];
    int *ipiv[MANY];
    for (int g = 0; g < MANY; g++) {
        n[g] = g < LARGE ? 1025 + g : 40 + g;
        const size_t order = (size_t)n[g];
        size[g] = 1;
        info[g] = -1;
        a[g] = calloc(order * order, sizeof *a[g]);
        ipiv[g] = malloc(order * sizeof *ipiv[g]);
        if (!a[g] || !ipiv[g])
            abort();
        for (size_t k = 0; k < order; k++)
            a[g][(k + 1) * (order - 1)] = 1;
    }
    struct mock_counts before, after;
    mock_counts(&before);
    sgetrf_batch(n, n, a, n, ipiv, &many, size, info);
    mock_counts(&after);
    const uint64_t runs = after.step[MOCK_RUN] - before.step[MOCK_RUN];
    int wrong = 0;
    for (int g = 0; g < MANY; g++) {
        wrong += info[g] != 0;
        for (int k = 0; k < n[g]; k++)
            wrong += ipiv[g][k] != (k < n[g] / 2 ? n[g] - k : k + 1);
        for (int e = 0; e < n[g] * n[g]; e++)
            wrong += a[g][e] != (e % (n[g] + 1) == 0);
        free(a[g]);
        free(ipiv[g]);
    }
    const bool good = wrong == 0 && runs == LARGE + 1;
    if (good)
        printf("ok arithmetic-large-alone\n");
    else
        printf("not ok arithmetic-large-alone - %d wrong numbers, %llu runs\n", wrong,
               (unsigned long long)runs);
    return good;
}

int main(void)
{
    static const struct {
        const char *name;
        char precision;
        int many;
        struct group group[3];
        int64_t fast;
    } cases[] = {
        {"lower", 'z', 1, {{'L', 130, 10}}, 0},
        {"upper", 'z', 1, {{'U', 40, 10}}, 10},
        {"tiny-upper", 'z', 1, {{'U', 32, 10}}, 0},
        {"few", 'z', 1, {{'U', 40, 4}}, 0},
        {"upper-first", 'z', 2, {{'U', 40, 10}, {'L', 130, 10}}, 10},
        {"lower-first", 'z', 2, {{'L', 130, 10}, {'U', 40, 10}}, 10},
        {"small-first", 'c', 3, {{'L', 5, 8}, {'L', 65, 9}, {'L', 64, 10}}, 9},
        {"one-of-two-sizes", 'd', 2, {{'U', 128, 7}, {'U', 129, 6}}, 6},
    };
    int failed = 0;
    need_mock("arithmetic");
    batchlapack_set_mode(BATCHLAPACK_MODE_GPU);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t fast = fast_of(cases[i].precision, cases[i].group, cases[i].many);
        if (fast == cases[i].fast)
            printf("ok arithmetic-%s\n", cases[i].name);
        else
            printf("not ok arithmetic-%s - %lld of %lld in fast arithmetic\n",
                   cases[i].name, (long long)fast, (long long)cases[i].fast);
        failed += fast != cases[i].fast;
    }
    for (int r = 0; r < LU; r++)
        failed += !lu_in_auto((enum lu)r);
    failed += !large_alone();
    /* Groups of one matrix each, ten of them. */
    struct group ones[10];
    for (int g = 0; g < 10; g++)
        ones[g] = (struct group){'U', 40, 1};
    const bool all = fast_of('z', ones, 10) == 10;
    printf(all ? "ok arithmetic-ones\n" : "not ok arithmetic-ones - not all are fast\n");
    return failed > 0 || !all;
}
