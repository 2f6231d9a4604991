/* Is a program ever slower with the preload than without it? At sizes from 1 on, a
 * routine of the program's own LAPACK beside the same routine through batchlapack.
 *
 *     bench/never_slower LAPACK [largest n [seconds [limit [routine ...]]]]
 *                                     (20000, 600, 1; getrf dgetrs and so on: all)
 *
 * The library's entry is called as a preloaded program calls it, in mode auto, with
 * LAPACK behind it; the engine is started before. Square systems with n right-hand
 * sides, of getrs and potrs also with one. Sizes are all to 64, two on either side of the
 * threshold in src/tune.def (that of a reference LAPACK where LAPACK is one), and each
 * 1.15 times the one before. A call's data is fresh, and its time its own; what counts of
 * several calls in a row is their median. Random matrices, for Cholesky with a dominant
 * diagonal.
 *
 * First each side once: LAPACK up to the size at which a call would take over `limit`
 * seconds, drawn out from the sizes before by the operations; then ours, from the largest
 * size on. Where ours takes less than 0.9 times as long it is faster, and no more is
 * done. All other sizes go through rounds of TURNS turns, in each of which both sides
 * make their calls, now ours first and now theirs. A size is slower in a round if the
 * median of the turns' differences is above 100 ns and that of their quotients
 * above 1.03. One that is not slower in a round is not slower; one that is in all ROUNDS
 * counts as slower: the rounds are there because another program on the host slows whole
 * turns down. A fast LAPACK's threads look for work a tenth of a second after their last
 * call: a call that goes to the GPU is given a rest before, as a program whose calls all
 * go there has it.
 *
 * Sizes above `limit` are not measured. A line says how far ahead the GPU is at the size
 * before; if that is more than 2 times, that the GPU stays ahead is concluded from it, by
 * LAPACK's time growing at least as fast as ours: that is an argument, not a measurement.
 * Where there is time for it, ours is measured at the largest size, beside what LAPACK's
 * would be there.
 *
 * Each routine has its share of the seconds left. What there is no time for is named, and
 * at the end stands the worst of each routine, and how many sizes were measured.
 * bench/copies.so, by which the library starts the engine, tells which calls ran there.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "batchlapack.h"
#include "bl.h"
#include "copies.h"

#define ALLOWED_PART 0.03
#define ALLOWED_SECONDS 100e-9
#define CLEAR 0.9     /* of LAPACK's time: there is nothing to look into */
#define ENOUGH 0.02   /* seconds of a size's calls in a row */
#define LONG 0.4      /* one will do */
#define CALLS 9       /* in a row, at the most */
#define TINY_CALLS 99 /* where they are of some microseconds */
#define TURNS 6
#define ROUNDS 3
#define STEP 1.15
#define DENSE 64 /* every size up to this */
#define AHEAD 2.0
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
static double end, limit = 1;
static const struct copies *engine;

/* A routine, with one right-hand side or n. */
struct subject {
    unsigned id;
    bool one;
};

static char *factors, *a, *b, *work;
static double *random_doubles;
static float *random_floats;
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

static void one_call(bl_fn *fn, unsigned id, int64_t n, bool one)
{
    struct integer order = {n}, nrhs = {one ? 1 : n}, lwork = {64 * n}, info = {0};
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
        case 'r':
            v[count++] = &nrhs;
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

static void randomize(void)
{
    size_t count = (size_t)(largest * largest) * 2;
    uint64_t x = 1;
    for (size_t k = 0; k < count; k++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        random_doubles[k] = (double)(int64_t)x * 0x1p-63;
        random_floats[k] = (float)random_doubles[k];
    }
}

static bool is_double(unsigned id)
{
    return bl_precision(id) == BL_D || bl_precision(id) == BL_Z;
}

static const void *random_of(unsigned id)
{
    return is_double(id) ? (void *)random_doubles : (void *)random_floats;
}

static size_t matrix_bytes(unsigned id, int64_t n)
{
    return (size_t)(n * n) * bl_element(bl_precision(id));
}

/* The matrix that a factorization or a solution begins with. */
static void fresh(unsigned id, int64_t n)
{
    size_t parts = bl_precision(id) >= BL_C ? 2 : 1;
    memcpy(a, random_of(id), matrix_bytes(id, n));
    if (bl_row(id)->name[0] != 'p')
        return;
    for (int64_t i = 0; i < n; i++) {
        size_t at = (size_t)(i * (n + 1)) * parts;
        for (size_t k = 0; k < parts; k++)
            if (is_double(id))
                ((double *)a)[at + k] = k ? 0 : 2.0 * (double)n;
            else
                ((float *)a)[at + k] = k ? 0 : 2.0f * (float)n;
    }
}

/* The factors of order n, where the routine takes them. */
static void prepare(unsigned id, int64_t n)
{
    unsigned first = factoring(id);
    if (first == id)
        return;
    int mode = batchlapack_set_mode(BATCHLAPACK_MODE_GPU);
    fresh(first, n);
    one_call(in(RTLD_DEFAULT, first), first, n, false);
    memcpy(factors, a, matrix_bytes(id, n));
    batchlapack_set_mode(mode);
}

static int ascending_doubles(const void *x, const void *y)
{
    double p = *(const double *)x, q = *(const double *)y;
    return (p > q) - (p < q);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending_doubles);
    return count % 2 ? values[count / 2]
                     : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Where its stack is makes up to a tenth of a LAPACK's time, by which of its temporaries
 * share a place in the cache with its operands: ours is a little deeper than theirs, so
 * each call gets another place. */
static __attribute__((noinline)) double timed_at_depth(bl_fn *fn, struct subject s,
                                                       int64_t n)
{
    static uint32_t depth = 1;
    depth = depth * 1664525u + 1013904223u;
    volatile char *place = __builtin_alloca(16 + (depth >> 20 & 0xff0));
    place[0] = 0;
    double begin = seconds();
    one_call(fn, s.id, n, s.one);
    return seconds() - begin;
}

static double timed_call(bl_fn *fn, struct subject s, int64_t n)
{
    size_t rhs = bl_element(bl_precision(s.id)) * (size_t)(s.one ? n : n * n);
    if (factoring(s.id) == s.id)
        fresh(s.id, n);
    else
        memcpy(a, factors, matrix_bytes(s.id, n));
    if (strchr(bl_row(s.id)->args, 'B'))
        memcpy(b, random_of(s.id), rhs);
    return timed_at_depth(fn, s, n);
}

/* Seconds of the median of several calls in a row, whose data is prepared. */
static double row_of_calls(bl_fn *fn, struct subject s, int64_t n)
{
    double t[TINY_CALLS], sum = timed_call(fn, s, n);
    int most = sum < 20e-6 ? TINY_CALLS : CALLS, count = 0;
    if (sum > ENOUGH) /* the first is a warm-up only where calls are short */
        return sum > LONG ? sum : fmin(sum, timed_call(fn, s, n));
    for (sum = 0; count < most && sum < ENOUGH; count++)
        sum += t[count] = timed_call(fn, s, n);
    return median(t, count);
}

static void take_a_rest(void)
{
    static const struct timespec rest = {0, PAUSE_NS};
    nanosleep(&rest, NULL);
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

#define MOST_SIZES 256

static int sizes_of(unsigned id, int64_t *size)
{
    int count = 0, different = 0;
    int64_t at = threshold(id);
    for (double n = 1; n <= (double)largest && count < MOST_SIZES - 5;
         n = n < DENSE ? n + 1 : n * STEP)
        size[count++] = (int64_t)n;
    for (int k = -2; k <= 2; k++)
        if (at + k * at / 16 <= largest)
            size[count++] = bl_max(at + k * at / 16, 1);
    size[count++] = largest;
    qsort(size, (size_t)count, sizeof *size, ascending);
    for (int i = 0; i < count; i++)
        if (i == 0 || size[i] != size[i - 1])
            size[different++] = size[i];
    return different;
}

/* ---- a routine ---- */

struct result {
    int measured, slower, unsure; /* sizes; unsure: there was no time for the rounds */
    int64_t to, n;                /* measured up to; the worst */
    double part, seconds;         /* of the worst */
};

struct size {
    int64_t n;
    double own, ours;
    bool on_gpu;
};

/* LAPACK's operations, for the growth of its time alone. */
static double work_of(struct subject s, int64_t n)
{
    return pow((double)n, s.one ? 2 : 3);
}

static const char *name_of(struct subject s)
{
    static char name[2 * BL_SYMBOL_MAX];
    snprintf(name, sizeof name, "%c%s%s", bl_prefix(s.id), bl_row(s.id)->name,
             s.one ? ",1" : "");
    return name;
}

/* One round: is the size slower? Its times become the medians of the turns. */
static bool slower_in_a_round(struct subject s, struct size *z)
{
    bl_fn *theirs = in(lapack, s.id), *ours = in(RTLD_DEFAULT, s.id);
    double t[TURNS], own[TURNS], more[TURNS], part[TURNS];
    for (int i = 0; i < TURNS; i++) {
        if (i % 2) /* whatever it is that the first has of the second */
            own[i] = row_of_calls(theirs, s, z->n);
        if (z->on_gpu && !reference)
            take_a_rest();
        t[i] = row_of_calls(ours, s, z->n);
        if (i % 2 == 0)
            own[i] = row_of_calls(theirs, s, z->n);
        more[i] = t[i] - own[i];
        part[i] = t[i] / own[i];
    }
    z->ours = median(t, TURNS);
    z->own = median(own, TURNS);
    return median(more, TURNS) > ALLOWED_SECONDS &&
           median(part, TURNS) > 1 + ALLOWED_PART;
}

static void judge(struct subject s, struct size *z, double until, struct result *r)
{
    const char *verdict = "";
    int rounds = 0;
    if (z->ours >= CLEAR * z->own) {
        prepare(s.id, z->n);
        while (rounds < ROUNDS && seconds() < until && slower_in_a_round(s, z))
            rounds++;
        bool out_of_time =
            rounds < ROUNDS && seconds() >= until &&
            z->ours - z->own > fmax(ALLOWED_PART * z->own, ALLOWED_SECONDS);
        verdict = rounds == ROUNDS ? "  slower"
                  : out_of_time    ? "  no time to be sure"
                                   : "";
        r->unsure += out_of_time;
    }
    double more = z->ours - z->own;
    printf("%-8s %6lld  %s  alone %12.3f us  with batchlapack %12.3f us  %+7.2f %% "
           "%+10.3f us%s\n",
           name_of(s), (long long)z->n, z->on_gpu ? "GPU" : "CPU", z->own * 1e6,
           z->ours * 1e6, 100 * more / z->own, more * 1e6, verdict);
    fflush(stdout);
    r->measured++;
    r->to = z->n;
    if (rounds == ROUNDS) {
        r->slower++;
        if (more / z->own > r->part) {
            r->part = more / z->own;
            r->seconds = more;
            r->n = z->n;
        }
    }
}

#define LARGEST_TAKES 6 /* seconds, with its data, at the most */

/* From `from` on nothing was measured. */
static void say_the_rest(struct subject s, const struct size *last, int64_t from,
                         bool over_limit, double until)
{
    double ahead = last->own / last->ours;
    printf("%-8s %6lld to %lld not measured: %s; ", name_of(s), (long long)from,
           (long long)largest,
           over_limit ? "alone a call would take too long" : "no time left");
    printf(last->on_gpu && ahead > AHEAD
               ? "the GPU is ahead %.1f times at %lld, and stays so if LAPACK's time "
                 "grows as fast"
               : "NOT SHOWN: %.2f times ahead at %lld",
           ahead, (long long)last->n);
    if (seconds() + LARGEST_TAKES < until) {
        prepare(s.id, largest);
        double ours = timed_call(in(RTLD_DEFAULT, s.id), s, largest);
        double drawn = last->own * work_of(s, largest) / work_of(s, last->n);
        printf("; at %lld ours takes %.3f s, LAPACK's would be %.3f s",
               (long long)largest, ours, drawn);
    }
    printf("\n");
    fflush(stdout);
}

static struct result compare(struct subject s, double until)
{
    int64_t size[MOST_SIZES];
    struct size z[MOST_SIZES];
    struct result r = {0};
    int count = sizes_of(s.id, size), measured = 0;
    bl_fn *theirs = in(lapack, s.id), *ours = in(RTLD_DEFAULT, s.id);
    double begin = seconds(), half = begin + (until - begin) / 2;
    bool over_limit = false;
    if (!theirs || !ours)
        return r;
    for (; measured < count && seconds() < half; measured++) {
        struct size *now = &z[measured];
        *now = (struct size){.n = size[measured]};
        /* By either of two sizes: a single call may have been held up. */
        double drawn[2] = {0, 0};
        for (int k = 0; k < 2 && measured > k; k++) {
            const struct size *last = now - 1 - k;
            drawn[k] = last->own * work_of(s, now->n) / work_of(s, last->n);
        }
        over_limit = fmin(drawn[0], drawn[1]) > limit;
        if (over_limit)
            break;
        prepare(s.id, now->n);
        now->own = row_of_calls(theirs, s, now->n);
    }
    if (!reference)
        take_a_rest();
    for (int i = measured - 1; i >= 0; i--) {
        prepare(s.id, z[i].n);
        unsigned long before = engine->runs;
        z[i].ours = row_of_calls(ours, s, z[i].n);
        z[i].on_gpu = engine->runs != before;
    }
    for (int i = 0; i < measured; i++)
        judge(s, &z[i], until, &r);
    if (measured && measured < count)
        say_the_rest(s, &z[measured - 1], size[measured], over_limit, until);
    return r;
}

static void say_result(struct subject s, const struct result *r)
{
    printf("worst of %-8s threshold %lld, %d sizes to %lld: ", name_of(s),
           (long long)threshold(s.id), r->measured, (long long)r->to);
    if (r->slower)
        printf("%d slower, n %lld by %.2f %%, %.3f us", r->slower, (long long)r->n,
               100 * r->part, r->seconds * 1e6);
    else
        printf("never slower");
    printf(r->unsure ? "; no time to be sure of %d\n" : "\n", r->unsure);
    fflush(stdout);
}

static bool is_wanted(unsigned id, int argc, char **argv)
{
    char name[BL_SYMBOL_MAX];
    snprintf(name, sizeof name, "%c%s", bl_prefix(id), bl_row(id)->name);
    for (int i = 5; i < argc; i++)
        if (strcmp(argv[i], name) == 0 || strcmp(argv[i], name + 1) == 0)
            return true;
    return argc <= 5;
}

/* All that is asked for; d first, which most programs take. */
static int choose(struct subject *s, int argc, char **argv)
{
    static const enum bl_precision order[] = {BL_D, BL_Z, BL_S, BL_C};
    int count = 0;
    for (int p = 0; p < BL_PRECISIONS; p++)
        for (unsigned r = 0; r < BL_LAPACK_ROUTINES; r++) {
            unsigned id = bl_id(r, order[p]);
            enum bl_routine_id o = bl_operation(id);
            if (!is_wanted(id, argc, argv))
                continue;
            s[count++] = (struct subject){id, false};
            if (o == BL_GETRS || o == BL_POTRS)
                s[count++] = (struct subject){id, true};
        }
    return count;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: never_slower LAPACK [largest n [seconds [limit "
                        "[routine ...]]]]\n");
        return 2;
    }
    setenv("BATCHLAPACK_LAPACK", argv[1], 1);
    copies_choose();
    largest = argc > 2 ? atoll(argv[2]) : largest;
    end = seconds() + (argc > 3 ? atof(argv[3]) : 600);
    limit = argc > 4 ? atof(argv[4]) : limit;
    if (!open_lapack(argv[1])) {
        fprintf(stderr, "never_slower: no LAPACK in %s\n", argv[1]);
        return 1;
    }
    size_t bytes = (size_t)(largest * largest) * 16;
    random_doubles = malloc(bytes);
    random_floats = malloc(bytes / 2);
    factors = malloc(bytes);
    a = malloc(bytes);
    b = malloc(bytes);
    work = malloc((size_t)largest * 64 * 16);
    ipiv = malloc((size_t)largest * 8);
    if (!random_doubles || !random_floats || !factors || !a || !b || !work || !ipiv)
        return 1;
    randomize();
    memset(work, 0, (size_t)largest * 64 * 16); /* no call pays for the first touch */
    struct subject first = {bl_id(BL_ROW_GETRF, BL_D), false};
    batchlapack_set_mode(BATCHLAPACK_MODE_GPU);
    timed_call(in(RTLD_DEFAULT, first.id), first, 1);
    batchlapack_set_mode(BATCHLAPACK_MODE_DEFAULT);
    engine = copies_loaded();
    if (!engine || !engine->runs) {
        fprintf(stderr, "never_slower: the engine does not run\n");
        return 1;
    }
    /* A machine that has rested is slow at first. */
    for (double begin = seconds(); seconds() - begin < 0.5;)
        row_of_calls(in(lapack, first.id), first, bl_min(largest, 500));
    static struct subject subject[2 * BL_LAPACK_IDS];
    static struct result result[2 * BL_LAPACK_IDS];
    int count = choose(subject, argc, argv), done = 0, slower = 0, unsure = 0, sizes = 0;
    for (; done < count && seconds() < end; done++)
        result[done] = compare(subject[done],
                               seconds() + (end - seconds()) / (double)(count - done));
    for (int i = 0; i < done; i++) {
        say_result(subject[i], &result[i]);
        sizes += result[i].measured;
        slower += result[i].slower;
        unsure += result[i].unsure;
    }
    printf("%d of %d routines, %d sizes: %d slower, no time to be sure of %d\n", done,
           count, sizes, slower, unsure);
    return 0;
}
