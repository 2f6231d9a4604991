/* A program that knows only oneMKL's batch routines: their argument lists, written anew,
 * with oneMKL's types, in the spellings that C (plain, _64) and Fortran (an underscore
 * more) programs link to. Every call is compared with netlib's on the same matrices:
 * getrf and getrs by bits, with IPIV, INFO and the gaps; the routines that LAPACK has
 * not, or whose order is free, by value.
 *
 *     onemkl
 *
 * Each once forced to the engine and once on the CPU. Must not include batchlapack.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bl.h"
#include "reference.h"

typedef int MKL_INT;
typedef long long int MKL_INT64;
typedef struct {
    float real, imag;
} MKL_Complex8;
typedef struct {
    double real, imag;
} MKL_Complex16;

int batchlapack_set_mode(int mode);

/* ---- one set of matrices, and netlib's answer ---- */

enum {
    M = 15,
    N = 13,
    NRHS = 3,
    BATCH = 9,
    LDA = M + 1,
    STRIDE = LDA * N + 5,
    LDB = N + 2,
    STRIDE_B = LDB * NRHS + 4,
    STRIDE_IPIV = N + 1,
    SMALL = 7,                   /* the second group's matrices are SMALL x SMALL, */
    GROUP = 4,                   /* from this one on */
    ELEMENT = 2 * sizeof(double) /* of the largest type */
};

struct batch {
    char a[BATCH * STRIDE * ELEMENT], b[BATCH * STRIDE_B * ELEMENT];
    char ainv[BATCH * STRIDE * ELEMENT];
    int64_t ipiv[BATCH * STRIDE_IPIV], info[BATCH];
};

/* What one precision and spelling of the library is called through. */
struct entries {
    const char *spelling; /* what follows the name */
    enum bl_precision precision;
    void (*getrf)(struct batch *x), (*getrfnp)(struct batch *x),
        (*getri_oop)(struct batch *x);
    void (*getrs)(struct batch *x, const char *trans), (*getrsnp)(struct batch *x);
    void (*getrf_groups)(struct batch *x), (*getrfnp_groups)(struct batch *x);
    void (*getri_oop_groups)(struct batch *x);
};

/* ---- oneMKL's prototypes, and calls through them ---- */

#define PROTOTYPES(p, T, I, suffix)                                                      \
    void p##getrf_batch_strided##suffix(                                                 \
        const I *m, const I *n, T *a, const I *lda, const I *stride_a, I *ipiv,          \
        const I *stride_ipiv, const I *batch_size, I *info);                             \
    void p##getrfnp_batch_strided##suffix(const I *m, const I *n, T *a, const I *lda,    \
                                          const I *stride_a, const I *batch_size,        \
                                          I *info);                                      \
    void p##getrs_batch_strided##suffix(                                                 \
        const char *trans, const I *n, const I *nrhs, const T *a, const I *lda,          \
        const I *stride_a, const I *ipiv, const I *stride_ipiv, T *b, const I *ldb,      \
        const I *stride_b, const I *batch_size, I *info);                                \
    void p##getrsnp_batch_strided##suffix(const char *trans, const I *n, const I *nrhs,  \
                                          const T *a, const I *lda, const I *stride_a,   \
                                          T *b, const I *ldb, const I *stride_b,         \
                                          const I *batch_size, I *info);                 \
    void p##getri_oop_batch_strided##suffix(                                             \
        const I *n, const T *a, const I *lda, const I *stride_a, const I *ipiv,          \
        const I *stride_ipiv, T *ainv, const I *ldainv, const I *stride_ainv,            \
        const I *batch_size, I *info);                                                   \
    void p##getrf_batch##suffix(const I *m, const I *n, T **a, const I *lda, I **ipiv,   \
                                const I *group_count, const I *group_size, I *info);     \
    void p##getrfnp_batch##suffix(const I *m, const I *n, T **a, const I *lda,           \
                                  const I *group_count, const I *group_size, I *info);   \
    void p##getri_oop_batch##suffix(const I *n, T **a, const I *lda, I **ipiv, T **ainv, \
                                    const I *ldainv, const I *group_count,               \
                                    const I *group_size, I *info);

/* IPIV and INFO in the integers of the spelling. */
#define GET_INTEGERS(I)                                                                  \
    I ipiv[BATCH * STRIDE_IPIV], info[BATCH];                                            \
    for (int k = 0; k < BATCH * STRIDE_IPIV; k++)                                        \
        ipiv[k] = (I)x->ipiv[k];                                                         \
    for (int k = 0; k < BATCH; k++)                                                      \
        info[k] = (I)x->info[k];
#define PUT_INTEGERS()                                                                   \
    for (int k = 0; k < BATCH * STRIDE_IPIV; k++)                                        \
        x->ipiv[k] = ipiv[k];                                                            \
    for (int k = 0; k < BATCH; k++)                                                      \
        x->info[k] = info[k];
#define MAYBE __attribute__((unused))
#define CALL(p, routine, suffix, T, I, parameters, ...)                                  \
    static void p##_##routine##suffix parameters                                         \
    {                                                                                    \
        MAYBE T *a = (T *)(void *)x->a, *b = (T *)(void *)x->b;                          \
        MAYBE T *ainv = (T *)(void *)x->ainv;                                            \
        MAYBE const I m = M, n = N, nrhs = NRHS, lda = LDA, stride = STRIDE, ldb = LDB;  \
        MAYBE const I stride_b = STRIDE_B, stride_ipiv = STRIDE_IPIV, batch = BATCH;     \
        MAYBE const I ms[] = {M, SMALL}, ns[] = {N, SMALL}, ldas[] = {LDA, LDA};         \
        MAYBE const I groups = 2, sizes[] = {GROUP, BATCH - GROUP};                      \
        MAYBE T *pa[BATCH], *pinv[BATCH];                                                \
        MAYBE I *pp[BATCH];                                                              \
        GET_INTEGERS(I)                                                                  \
        for (int k = 0; k < BATCH; k++) {                                                \
            pa[k] = a + k * STRIDE;                                                      \
            pinv[k] = ainv + k * STRIDE;                                                 \
            pp[k] = ipiv + k * STRIDE_IPIV;                                              \
        }                                                                                \
        p##routine##suffix(__VA_ARGS__);                                                 \
        PUT_INTEGERS()                                                                   \
    }
#define CALLS(p, T, I, suffix)                                                           \
    PROTOTYPES(p, T, I, suffix)                                                          \
    CALL(p, getrf_batch_strided, suffix, T, I, (struct batch * x), &m, &n, a, &lda,      \
         &stride, ipiv, &stride_ipiv, &batch, info)                                      \
    CALL(p, getrfnp_batch_strided, suffix, T, I, (struct batch * x), &m, &n, a, &lda,    \
         &stride, &batch, info)                                                          \
    CALL(p, getrs_batch_strided, suffix, T, I, (struct batch * x, const char *trans),    \
         trans, &n, &nrhs, a, &lda, &stride, ipiv, &stride_ipiv, b, &ldb, &stride_b,     \
         &batch, info)                                                                   \
    CALL(p, getrsnp_batch_strided, suffix, T, I, (struct batch * x), "N", &n, &nrhs, a,  \
         &lda, &stride, b, &ldb, &stride_b, &batch, info)                                \
    CALL(p, getri_oop_batch_strided, suffix, T, I, (struct batch * x), &n, a, &lda,      \
         &stride, ipiv, &stride_ipiv, ainv, &lda, &stride, &batch, info)                 \
    CALL(p, getrf_batch, suffix, T, I, (struct batch * x), ms, ns, pa, ldas, pp,         \
         &groups, sizes, info)                                                           \
    CALL(p, getrfnp_batch, suffix, T, I, (struct batch * x), ms, ns, pa, ldas, &groups,  \
         sizes, info)                                                                    \
    CALL(p, getri_oop_batch, suffix, T, I, (struct batch * x), ns, pa, ldas, pp, pinv,   \
         ldas, &groups, sizes, info)
#define ENTRIES(p, P, suffix)                                                            \
    {                                                                                    \
        .precision = BL_##P, .spelling = TEXT(suffix),                                   \
        .getrf = p##_getrf_batch_strided##suffix,                                        \
        .getrfnp = p##_getrfnp_batch_strided##suffix,                                    \
        .getrs = p##_getrs_batch_strided##suffix,                                        \
        .getrsnp = p##_getrsnp_batch_strided##suffix,                                    \
        .getri_oop = p##_getri_oop_batch_strided##suffix,                                \
        .getrf_groups = p##_getrf_batch##suffix,                                         \
        .getrfnp_groups = p##_getrfnp_batch##suffix,                                     \
        .getri_oop_groups = p##_getri_oop_batch##suffix                                  \
    }
#define TEXT(x) #x
#define SPELLINGS(X, ...)                                                                \
    X(__VA_ARGS__, MKL_INT, )                                                            \
    X(__VA_ARGS__, MKL_INT64, _64)                                                       \
    X(__VA_ARGS__, MKL_INT, _) X(__VA_ARGS__, MKL_INT64, _64_)
SPELLINGS(CALLS, s, float)
SPELLINGS(CALLS, d, double)
SPELLINGS(CALLS, c, MKL_Complex8)
SPELLINGS(CALLS, z, MKL_Complex16)

static const struct entries entries[] = {
#define ALL(p, P)                                                                        \
    ENTRIES(p, P, ), ENTRIES(p, P, _64), ENTRIES(p, P, _), ENTRIES(p, P, _64_)
    ALL(s, S), ALL(d, D), ALL(c, C), ALL(z, Z)};

/* ---- problems ---- */

static bool is_single(enum bl_precision p)
{
    return p == BL_S || p == BL_C;
}
static double real_at(const char *x, enum bl_precision p, size_t k)
{
    return is_single(p) ? ((const float *)(const void *)x)[k]
                        : ((const double *)(const void *)x)[k];
}
static void put_real(char *x, enum bl_precision p, size_t k, double v)
{
    if (is_single(p))
        ((float *)(void *)x)[k] = (float)v;
    else
        ((double *)(void *)x)[k] = v;
}
static size_t reals(enum bl_precision p, size_t elements)
{
    return elements * (p == BL_C || p == BL_Z ? 2 : 1);
}

/* Matrices of small integers; in a dominant one netlib's pivots are the diagonal. Matrix
 * 2 is singular unless dominant. */
static void make(struct batch *x, enum bl_precision p, bool dominant)
{
    uint32_t seed = 12345;
    memset(x, 0, sizeof *x);
    for (size_t k = 0; k < reals(p, BATCH * STRIDE); k++) {
        seed = seed * 1664525 + 1013904223;
        put_real(x->a, p, k, (double)(seed >> 28) - 7);
        put_real(x->ainv, p, k, -99);
    }
    for (size_t k = 0; k < reals(p, BATCH * STRIDE_B); k++) {
        seed = seed * 1664525 + 1013904223;
        put_real(x->b, p, k, (double)(seed >> 28) - 7);
    }
    for (size_t i = 0; i < BATCH; i++)
        for (size_t j = 0; j < N; j++) {
            if (dominant)
                put_real(x->a, p, reals(p, i * STRIDE + j * LDA + j), 500);
            if (!dominant && i == 2 && j == 4)
                for (size_t k = 0; k < reals(p, LDA); k++)
                    put_real(x->a, p, reals(p, i * STRIDE + j * LDA) + k, 0);
        }
    for (int k = 0; k < BATCH * STRIDE_IPIV; k++)
        x->ipiv[k] = -99;
    for (int k = 0; k < BATCH; k++)
        x->info[k] = -99;
}

/* The sizes of matrix i: in groups the later ones are small. */
static int32_t rows(int i, bool groups, bool square)
{
    return groups && i >= GROUP ? SMALL : square ? N : M;
}
static int32_t columns(int i, bool groups)
{
    return groups && i >= GROUP ? SMALL : N;
}

static void netlib_getrf(struct batch *x, enum bl_precision p, bool groups, bool square)
{
    for (int i = 0; i < BATCH; i++) {
        int32_t ipiv[N] = {0};
        struct call c = {.routine = BL_GETRF,
                         .precision = p,
                         .m = rows(i, groups, square),
                         .n = columns(i, groups),
                         .lda = LDA,
                         .a = x->a + (size_t)i * STRIDE * bl_element(p),
                         .ipiv = ipiv};
        reference_call(&c);
        x->info[i] = c.info;
        for (int k = 0; k < c.n; k++)
            x->ipiv[i * STRIDE_IPIV + k] = ipiv[k];
    }
}

static void netlib_getrs(struct batch *x, enum bl_precision p, const char *trans)
{
    for (int i = 0; i < BATCH; i++) {
        int32_t ipiv[N];
        for (int k = 0; k < N; k++)
            ipiv[k] = (int32_t)x->ipiv[i * STRIDE_IPIV + k];
        struct call c = {.routine = BL_GETRS,
                         .precision = p,
                         .trans = trans,
                         .n = N,
                         .nrhs = NRHS,
                         .lda = LDA,
                         .ldb = LDB,
                         .a = x->a + (size_t)i * STRIDE * bl_element(p),
                         .b = x->b + (size_t)i * STRIDE_B * bl_element(p),
                         .ipiv = ipiv};
        reference_call(&c);
        x->info[i] = c.info;
    }
}

/* The inverse into ainv; INFO of a singular matrix, whose ainv may be anything. */
static void netlib_getri(struct batch *x, enum bl_precision p, bool groups)
{
    static char work[64 * N * ELEMENT], inverse[LDA * N * ELEMENT];
    for (int i = 0; i < BATCH; i++) {
        size_t at = (size_t)i * STRIDE * bl_element(p);
        int32_t ipiv[N], n = columns(i, groups);
        for (int k = 0; k < n; k++)
            ipiv[k] = (int32_t)x->ipiv[i * STRIDE_IPIV + k];
        memcpy(inverse, x->a + at, LDA * N * bl_element(p));
        struct call c = {.routine = BL_GETRI,
                         .precision = p,
                         .n = n,
                         .lda = LDA,
                         .lwork = 64 * N,
                         .a = inverse,
                         .ipiv = ipiv,
                         .work = work};
        reference_call(&c);
        x->info[i] = c.info;
        for (int j = 0; j < n; j++)
            memcpy(x->ainv + at + (size_t)(j * LDA) * bl_element(p),
                   inverse + (size_t)(j * LDA) * bl_element(p),
                   (size_t)n * bl_element(p));
    }
}

/* ---- comparison
 * ------------------------------------------------------------------------ */

static struct batch got, want;
static const char *mode_name;

static void result(const struct entries *e, const char *routine, const char *detail,
                   const char *why)
{
    verdict(why, "onemkl-%s-%c%s%s%s", mode_name, "sdcz"[e->precision], routine,
            e -> spelling, detail);
}

static const char *same_integers(void)
{
    if (memcmp(got.info, want.info, sizeof got.info) != 0)
        return "INFO";
    return memcmp(got.ipiv, want.ipiv, sizeof got.ipiv) != 0 ? "IPIV" : "";
}

static const char *same_bits(void)
{
    if (*same_integers())
        return same_integers();
    if (memcmp(got.a, want.a, sizeof got.a) != 0)
        return "A or its gaps: other bits than netlib's";
    if (memcmp(got.b, want.b, sizeof got.b) != 0)
        return "B or its gaps: other bits than netlib's";
    return memcmp(got.ainv, want.ainv, sizeof got.ainv) != 0 ? "touched" : "";
}

/* By value: to the precision of the numbers, relative to the largest of the matrix; those
 * with INFO are left out. */
static bool near(const char *x, const char *y, enum bl_precision p, size_t stride)
{
    for (size_t i = 0; i < BATCH; i++) {
        double largest = 0, off = 0;
        for (size_t k = reals(p, i * stride); k < reals(p, (i + 1) * stride); k++) {
            double v = real_at(y, p, k), d = real_at(x, p, k) - v;
            largest = v > largest ? v : -v > largest ? -v : largest;
            off = !(d <= off) ? d : !(-d <= off) ? -d : off;
        }
        if (want.info[i] == 0 && !(off <= largest * (is_single(p) ? 1e-4 : 1e-12)))
            return false;
    }
    return true;
}

static const char *close_values(enum bl_precision p)
{
    if (*same_integers())
        return same_integers();
    if (!near(got.a, want.a, p, STRIDE))
        return "A or its gaps";
    if (!near(got.b, want.b, p, STRIDE_B))
        return "B or its gaps";
    return near(got.ainv, want.ainv, p, STRIDE) ? "" : "the inverse or its gaps";
}

static bool pivots_on_diagonal(bool groups)
{
    for (int i = 0; i < BATCH; i++)
        for (int k = 0; k < columns(i, groups); k++)
            if (want.ipiv[i * STRIDE_IPIV + k] != k + 1)
                return false;
    return true;
}

static void without_ipiv(void)
{
    for (int k = 0; k < BATCH * STRIDE_IPIV; k++)
        want.ipiv[k] = got.ipiv[k] = -99;
}

/* ---- the tests ---- */

static void strided(const struct entries *e)
{
    make(&got, e->precision, false);
    want = got;
    netlib_getrf(&want, e->precision, false, false);
    e->getrf(&got);
    result(e, "getrf_batch_strided", "", same_bits());

    make(&got, e->precision, false);
    netlib_getrf(&got, e->precision, false, true);
    struct batch *factors = malloc(sizeof *factors);
    if (!factors)
        exit(1);
    *factors = got;
    for (const char *trans = "NTC"; *trans; trans++) {
        got = want = *factors;
        netlib_getrs(&want, e->precision, trans);
        e->getrs(&got, trans);
        /* The singular matrix's solutions are infinities and NaNs, of any kind. */
        memset(want.b + 2 * STRIDE_B * bl_element(e->precision), 0,
               (STRIDE_B - 4) * bl_element(e->precision));
        memset(got.b + 2 * STRIDE_B * bl_element(e->precision), 0,
               (STRIDE_B - 4) * bl_element(e->precision));
        const char detail[] = {'-', *trans, 0};
        result(e, "getrs_batch_strided", detail,
               *trans == 'N' ? same_bits() : close_values(e->precision));
    }
    got = want = *factors;
    netlib_getri(&want, e->precision, false);
    e->getri_oop(&got);
    result(e, "getri_oop_batch_strided", "", close_values(e->precision));
    free(factors);
}

static void strided_without_pivoting(const struct entries *e)
{
    make(&got, e->precision, true);
    want = got;
    netlib_getrf(&want, e->precision, false, false);
    bool diagonal = pivots_on_diagonal(false);
    without_ipiv();
    e->getrfnp(&got);
    result(e, "getrfnp_batch_strided", "",
           diagonal ? close_values(e->precision) : "no test: netlib pivots");

    make(&want, e->precision, true);
    netlib_getrf(&want, e->precision, false, true);
    got = want;
    netlib_getrs(&want, e->precision, "N");
    e->getrsnp(&got);
    result(e, "getrsnp_batch_strided", "", close_values(e->precision));
}

static void groups(const struct entries *e)
{
    make(&got, e->precision, false);
    want = got;
    netlib_getrf(&want, e->precision, true, false);
    e->getrf_groups(&got);
    result(e, "getrf_batch", "", same_bits());

    make(&got, e->precision, true);
    want = got;
    netlib_getrf(&want, e->precision, true, false);
    bool diagonal = pivots_on_diagonal(true);
    without_ipiv();
    e->getrfnp_groups(&got);
    result(e, "getrfnp_batch", "",
           diagonal ? close_values(e->precision) : "no test: netlib pivots");

    make(&want, e->precision, false);
    netlib_getrf(&want, e->precision, true, true);
    got = want;
    netlib_getri(&want, e->precision, true);
    e->getri_oop_groups(&got);
    result(e, "getri_oop_batch", "", close_values(e->precision));
}

int main(void)
{
    setenv("BATCHLAPACK_ARITHMETIC", "exact", 1);
    if (!reference_open())
        return 0;
    for (int mode = 1; mode <= 2; mode++) {
        mode_name = mode == 1 ? "gpu" : "cpu";
        batchlapack_set_mode(mode);
        for (size_t k = 0; k < sizeof entries / sizeof *entries; k++) {
            strided(&entries[k]);
            strided_without_pivoting(&entries[k]);
            groups(&entries[k]);
        }
    }
    return failures() > 0;
}
