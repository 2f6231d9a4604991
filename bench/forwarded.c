/* What a forwarded call costs more than the same call without the library, in ns.
 *
 *     bench/forwarded NOTHING [largest n]                                  (20000)
 *
 * NOTHING is bench/nothing.so, a LAPACK that does nothing, so that the library's own time
 * is not lost beside LAPACK's: it depends on sizes and options alone, and no data is
 * touched. Every routine of the table is called in every precision at n from 1 on, each
 * next one a quarter larger, with one and with n right-hand sides: `before`, while the
 * library has no engine yet, and `without`, when it has found none; where a call would be
 * worth the GPU and where not. Set BATCHLAPACK_ENGINE to a file that is not there. The
 * best of several runs of many calls is what counts. Over 100 ns is marked, and makes the
 * program fail; at the end stands the worst of all.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "batchlapack.h"
#include "bl.h"

#define ALLOWED_NS 100
#define CALLS 100
#define RUNS 60

static int64_t order, nrhs, lwork, info; /* little-endian: 32-bit ones, too */
static double matrix[2];
static unsigned count;
static void *v[BL_MAX_ARGS];

static void pack(unsigned id)
{
    count = 0;
    for (const char *letter = bl_row(id)->args; *letter; letter++)
        v[count++] = *letter == 'u'              ? (void *)(uintptr_t) "L"
                     : *letter == 't'            ? (void *)(uintptr_t) "N"
                     : *letter == 'r'            ? (void *)&nrhs
                     : *letter == 'q'            ? (void *)&lwork
                     : *letter == 'i'            ? (void *)&info
                     : strchr("aABWpP", *letter) ? (void *)matrix
                                                 : (void *)&order;
}

static bl_fn *in(void *handle, unsigned id)
{
    char symbol[BL_SYMBOL_MAX];
    bl_fn *fn = NULL;
    bl_symbol(symbol, id, 0);
    void *found = dlsym(handle, symbol);
    memcpy(&fn, &found, sizeof fn);
    return fn;
}

static double ns_a_call(bl_fn *fn)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < CALLS; i++)
        bl_call_lapack(fn, count, v);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - begin.tv_sec) * 1e9 +
            (double)(end.tv_nsec - begin.tv_nsec)) /
           CALLS;
}

/* Ours more than theirs: both in turn, the best of each. */
static double more(bl_fn *ours, bl_fn *theirs)
{
    double mine = INFINITY, own = INFINITY;
    for (int i = 0; i < RUNS; i++) {
        mine = fmin(mine, ns_a_call(ours));
        own = fmin(own, ns_a_call(theirs));
    }
    return mine - own;
}

struct worst {
    double ns;
    int64_t n, nrhs;
    int slower;
};

static struct worst compare(void *lapack, unsigned id, int64_t largest, const char *when)
{
    bl_fn *ours = in(RTLD_DEFAULT, id), *theirs = in(lapack, id);
    bool solves = strchr(bl_row(id)->args, 'r') != NULL;
    struct worst w = {-INFINITY, 0, 0, 0};
    pack(id);
    for (order = 1; order <= largest; order += order / 4 + 1)
        for (int all = 0; all <= solves; all++) {
            nrhs = all ? order : 1;
            lwork = 64 * order;
            double ns = more(ours, theirs);
            bool slower = ns > ALLOWED_NS;
            w.slower += slower;
            if (slower)
                printf("%c%-6s %s n %6lld nrhs %6lld %+8.1f ns  slower\n", bl_prefix(id),
                       bl_row(id)->name, when, (long long)order, (long long)nrhs, ns);
            if (ns > w.ns)
                w = (struct worst){ns, order, nrhs, w.slower};
        }
    return w;
}

static int compare_all(void *lapack, int64_t largest, const char *when)
{
    int slower = 0;
    for (unsigned id = 0; id < BL_LAPACK_IDS; id++) {
        struct worst w = compare(lapack, id, largest, when);
        printf("worst of %c%-6s %s: %+6.1f ns, n %lld, nrhs %lld, %d sizes slower\n",
               bl_prefix(id), bl_row(id)->name, when, w.ns, (long long)w.n,
               (long long)w.nrhs, w.slower);
        fflush(stdout);
        slower += w.slower;
    }
    return slower;
}

int main(int argc, char **argv)
{
    void *lapack = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int64_t largest = argc > 2 ? atoll(argv[2]) : 20000;
    unsigned first = bl_id(BL_ROW_GETRF, BL_D);
    if (!lapack) {
        fprintf(stderr, "usage: forwarded NOTHING [largest n]\n");
        return 2;
    }
    setenv("BATCHLAPACK_LAPACK", argv[1], 1);
    int slower = compare_all(lapack, bl_min(largest, 30), "before");
    batchlapack_set_mode(BATCHLAPACK_MODE_GPU); /* looks for the engine */
    order = 1;
    pack(first);
    bl_call_lapack(in(RTLD_DEFAULT, first), count, v);
    batchlapack_set_mode(BATCHLAPACK_MODE_DEFAULT);
    slower += compare_all(lapack, largest, "without");
    printf("%d slower by more than %d ns\n", slower, ALLOWED_NS);
    return slower > 0;
}
