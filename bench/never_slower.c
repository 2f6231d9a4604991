/* Is a program ever slower with the preload than without it? At sizes from 1 on, a
 * routine of the program's own LAPACK beside the same routine through batchlapack.
 *
 *     bench/never_slower LAPACK [largest n [seconds [routine ...]]]
 *                                                (20000, 600; d of getrf gesv potrf potrs
 *                                                getri, and s, c and z of getrf)
 *
 * The library's entry is called as a preloaded program calls it, in mode auto, with
 * LAPACK behind it; the engine is started before. Sizes are geometric, and two on either
 * side of each threshold of src/tune.def (those of a reference LAPACK where LAPACK is
 * one). Each side makes its calls in a row, as a program does: ours first, from the
 * largest size on, then theirs. A call's data is fresh, and its time its own. The best of
 * several is what counts, since whatever else the machine does only ever makes a call
 * slower. Worse by more than 3 % and by more than 100 ns is marked; at the end stands the
 * worst of each routine. Where LAPACK's own call would take over 2 s, its time is drawn
 * out from the size before by the cube of n, and marked ~. Square systems, n right-hand
 * sides. Ends after so many seconds.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "batchlapack.h"
#include "bl.h"

#define ALLOWED_PART 0.03
#define ALLOWED_SECONDS 100e-9
#define LONG_CALL 2.0
#define ENOUGH 0.2 /* seconds of a size's calls */
#define SAMPLES 9
#define TURNS 3
#define PAUSE_NS 150000000 /* a fast LAPACK's threads look for work almost so long */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- one routine, on either side ---- */

static void *lapack;
static bool wide;      /* its integers are 64-bit */
static bool reference; /* it is netlib's */
static const char *decoration = "%s_";
static int64_t largest = 20000;
static double end;

static char *start_a, *start_b, *a, *b, *work;
static int64_t *ipiv;

static bl_fn *in(void *handle, unsigned id)
{
    char name[BL_SYMBOL_MAX], symbol[2 * BL_SYMBOL_MAX];
    bl_fn *fn = NULL;
    snprintf(name, sizeof name, "%c%s", bl_prefix(id), bl_row(id)->name);
    snprintf(symbol, sizeof symbol, decoration, name);
    void *found = dlsym(handle, symbol);
    memcpy(&fn, &found, sizeof fn);
    return fn;
}

static bool open_lapack(const char *path)
{
    static const char *const all[] = {"%s_", "scipy_%s_64_", "%s_64_", "scipy_%s_"};
    lapack = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!lapack)
        return false;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        decoration = all[i];
        bl_fn *fn = in(lapack, bl_id(BL_ROW_GETRF, BL_D));
        if (fn) {
            struct bl_target t = bl_provider_of(fn);
            wide = t.wide || strstr(decoration, "64");
            reference = t.reference;
            return true;
        }
    }
    return false;
}

struct integer {
    int64_t value; /* little-endian: its first half is the 32-bit one */
};

static void one_call(bl_fn *fn, unsigned id, int64_t n)
{
    struct integer order = {n}, lwork = {64 * n}, info = {0};
    void *v[BL_MAX_ARGS];
    unsigned count = 0;
    for (const char *letter = bl_row(id)->args; *letter; letter++)
        switch (*letter) {
        case 'u':
            v[count++] = (void *)(uintptr_t) "L";
            break;
        case 't':
            v[count++] = (void *)(uintptr_t) "N";
            break;
        case 'a':
        case 'A':
            v[count++] = a;
            break;
        case 'B':
            v[count++] = b;
            break;
        case 'p':
        case 'P':
            v[count++] = ipiv;
            break;
        case 'W':
            v[count++] = work;
            break;
        case 'q':
            v[count++] = &lwork;
            break;
        case 'i':
            v[count++] = &info;
            break;
        default:
            v[count++] = &order;
        }
    bl_call_lapack(fn, count, v);
    if (info.value != 0) {
        fprintf(stderr, "never_slower: INFO %lld\n", (long long)info.value);
        exit(1);
    }
}

/* The routine whose factors this one takes; itself where it takes none. */
static unsigned factoring(unsigned id)
{
    switch (bl_operation(id)) {
    case BL_GETRS:
    case BL_GETRI:
        return bl_id(BL_ROW_GETRF, bl_precision(id));
    case BL_POTRS:
    case BL_POTRI:
        return bl_id(BL_ROW_POTRF, bl_precision(id));
    default:
        return id;
    }
}

/* Random, with a dominant diagonal: good for LU and Cholesky alike. */
static void fill(unsigned id, int64_t n, char *p, bool dominant)
{
    enum bl_precision precision = bl_precision(id);
    bool is_double = precision == BL_D || precision == BL_Z;
    size_t parts = precision >= BL_C ? 2 : 1, count = (size_t)(n * n) * parts;
    uint64_t x = 1;
    for (size_t k = 0; k < count; k++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        double value = (double)(int64_t)x * 0x1p-63;
        if (dominant && k / parts % (size_t)(n + 1) == 0)
            value = k % parts ? 0 : 2.0 * (double)n;
        if (is_double)
            ((double *)p)[k] = value;
        else
            ((float *)p)[k] = (float)value;
    }
}

/* Data for calls of order n in start_a and start_b; factors where the routine takes them.
 */
static void prepare(unsigned id, int64_t n)
{
    size_t bytes = (size_t)(n * n) * bl_element(bl_precision(id));
    unsigned first = factoring(id);
    fill(id, n, start_a, true);
    fill(id, n, start_b, false);
    if (first == id)
        return;
    int mode = batchlapack_set_mode(BATCHLAPACK_MODE_GPU);
    memcpy(a, start_a, bytes);
    one_call(in(RTLD_DEFAULT, first), first, n);
    memcpy(start_a, a, bytes);
    batchlapack_set_mode(mode);
}

/* Seconds of the best of several calls. */
static double best_of(bl_fn *fn, unsigned id, int64_t n)
{
    size_t bytes = (size_t)(n * n) * bl_element(bl_precision(id));
    double best = INFINITY, sum = 0;
    int most = n < 100 ? 40 * SAMPLES : SAMPLES;
    prepare(id, n);
    for (int i = 0; i < most && (i < 2 || sum < ENOUGH); i++) {
        memcpy(a, start_a, bytes);
        if (strchr(bl_row(id)->args, 'B'))
            memcpy(b, start_b, bytes);
        double begin = seconds();
        one_call(fn, id, n);
        double s = seconds() - begin;
        best = fmin(best, s);
        sum += s;
        if (s > ENOUGH)
            break;
    }
    return best;
}

/* ---- sizes ---- */

#define T(name, flops, fast_lapack, over_netlib, chain) {fast_lapack, over_netlib},
#define E(name, flops, chain)
#define N(s, d, c, z)                                                                    \
    {                                                                                    \
        s, d, c, z                                                                       \
    }
static const int64_t thresholds[BL_LAPACK_ROUTINES][2][BL_PRECISIONS] = {
#include "tune.def"
};
#undef T
#undef E
#undef N

static int64_t threshold(unsigned id)
{
    return thresholds[bl_operation(id)][reference][bl_precision(id)];
}

static int ascending(const void *x, const void *y)
{
    int64_t p = *(const int64_t *)x, q = *(const int64_t *)y;
    return (p > q) - (p < q);
}

static int sizes_of(unsigned id, int64_t *size)
{
    int count = 0;
    int64_t at = threshold(id);
    for (double n = 1; n <= (double)largest; n = fmax(n + 1, n * 1.5))
        size[count++] = (int64_t)n;
    for (int k = -2; k <= 2; k++)
        if (k && at + k * at / 16 <= largest)
            size[count++] = at + k * at / 16;
    qsort(size, (size_t)count, sizeof *size, ascending);
    return count;
}

/* ---- a routine ---- */

struct worst {
    double part, seconds;
    int64_t n, slower;
};

#define MOST_SIZES 256

static struct worst compare(unsigned id)
{
    static const struct timespec rest = {0, PAUSE_NS};
    int64_t size[MOST_SIZES], done = 0;
    int count = sizes_of(id, size);
    bl_fn *theirs = in(lapack, id), *ours = in(RTLD_DEFAULT, id);
    struct worst w = {0, 0, 0, 0};
    double before = 0, mine[MOST_SIZES];
    if (!theirs || !ours)
        return w;
    if (!reference)
        nanosleep(&rest, NULL);
    for (int i = 0; i < count; i++)
        mine[i] = size[i] < threshold(id) ? INFINITY : best_of(ours, id, size[i]);
    for (int i = 0; i < count && seconds() < end; i++) {
        int64_t n = size[i];
        double drawn = done ? before * pow((double)n / (double)done, 3) : 0;
        bool out = drawn > LONG_CALL;
        double own = out ? drawn : best_of(theirs, id, n);
        for (int turn = 0; turn < TURNS && n < threshold(id); turn++) {
            mine[i] = fmin(mine[i], best_of(ours, id, n));
            own = fmin(own, best_of(theirs, id, n));
        }
        double more = mine[i] - own;
        bool slower = more > fmax(ALLOWED_PART * own, ALLOWED_SECONDS);
        if (!out) {
            before = own;
            done = n;
        }
        printf("%c%-6s %6lld  alone %s%12.3f us  with batchlapack %12.3f us  %+7.2f %% "
               "%+10.3f us%s\n",
               bl_prefix(id), bl_row(id)->name, (long long)n, out ? "~" : " ", own * 1e6,
               mine[i] * 1e6, 100 * more / own, more * 1e6, slower ? "  slower" : "");
        fflush(stdout);
        w.slower += slower;
        if (slower && more / own > w.part)
            w = (struct worst){more / own, more, n, w.slower};
    }
    return w;
}

static void say_worst(unsigned id, const struct worst *w)
{
    printf("worst of %c%-6s threshold %lld: ", bl_prefix(id), bl_row(id)->name,
           (long long)threshold(id));
    if (w->slower)
        printf("%lld sizes slower, n %lld by %.2f %%, %.3f us\n", (long long)w->slower,
               (long long)w->n, 100 * w->part, w->seconds * 1e6);
    else
        printf("never slower\n");
    fflush(stdout);
}

static bool is_wanted(unsigned id, int argc, char **argv)
{
    char name[BL_SYMBOL_MAX];
    snprintf(name, sizeof name, "%c%s", bl_prefix(id), bl_row(id)->name);
    for (int i = 4; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    enum bl_routine_id r = bl_operation(id);
    bool listed = r == BL_GETRF ||
                  (bl_precision(id) == BL_D &&
                   (r == BL_GESV || r == BL_POTRF || r == BL_POTRS || r == BL_GETRI));
    return argc <= 4 && listed;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr,
                "usage: never_slower LAPACK [largest n [seconds [routine ...]]]\n");
        return 2;
    }
    setenv("BATCHLAPACK_LAPACK", argv[1], 1);
    largest = argc > 2 ? atoll(argv[2]) : largest;
    end = seconds() + (argc > 3 ? atof(argv[3]) : 600);
    if (!open_lapack(argv[1])) {
        fprintf(stderr, "never_slower: no LAPACK in %s\n", argv[1]);
        return 1;
    }
    size_t bytes = (size_t)(largest * largest) * 16;
    start_a = malloc(bytes);
    start_b = malloc(bytes);
    a = malloc(bytes);
    b = malloc(bytes);
    work = malloc((size_t)largest * 64 * 16);
    ipiv = malloc((size_t)largest * 8);
    if (!start_a || !start_b || !a || !b || !work || !ipiv)
        return 1;
    unsigned first = bl_id(BL_ROW_GETRF, BL_D);
    fill(first, 1, start_a, true);
    memcpy(a, start_a, sizeof(double));
    batchlapack_set_mode(BATCHLAPACK_MODE_GPU);
    one_call(in(RTLD_DEFAULT, first), first, 1);
    batchlapack_set_mode(BATCHLAPACK_MODE_DEFAULT);
    /* A machine that has rested is slow at first. */
    for (double begin = seconds(); seconds() - begin < 0.5;)
        best_of(in(lapack, first), first, bl_min(largest, 500));
    struct worst worst[BL_LAPACK_IDS];
    for (unsigned id = 0; id < BL_LAPACK_IDS; id++)
        if (is_wanted(id, argc, argv))
            worst[id] = compare(id);
    for (unsigned id = 0; id < BL_LAPACK_IDS; id++)
        if (is_wanted(id, argc, argv))
            say_worst(id, &worst[id]);
    return 0;
}
