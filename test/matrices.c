/* Matrices for the correctness tests: storage with poisoned surroundings, and the
 * generators of every class of input. Used by compare.c, batch.c and field_faults.c;
 * knows nothing of LAPACK.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "matrices.h"

const char *const matrix_class_name[MATRIX_CLASS_COUNT] = {
#define C(NAME, text) text,
    MATRIX_CLASSES(C)
#undef C
};

/* ---- precisions ---- */

size_t element_bytes(enum bl_precision p)
{
    return (size_t[]){4, 8, 8, 16}[p];
}

size_t real_bytes(enum bl_precision p)
{
    return element_bytes(p) / (is_complex(p) ? 2 : 1);
}

bool is_complex(enum bl_precision p)
{
    return p == BL_C || p == BL_Z;
}

bool is_double(enum bl_precision p)
{
    return p == BL_D || p == BL_Z;
}

double epsilon_of(enum bl_precision p)
{
    return is_double(p) ? DBL_EPSILON / 2 : (double)FLT_EPSILON / 2;
}

/* ---- storage ---- */

static const uint32_t float_poison = 0x7fc5a5a5;
static const uint64_t double_poison = 0x7ffc5a5aa5a5c3c3;

size_t matrix_bytes(const struct matrix *a)
{
    return (size_t)(a->ld * a->cols + a->tail) * element_bytes(a->precision);
}

static char *storage(size_t bytes)
{
    char *p = malloc(bytes + 1);
    if (!p) {
        printf("not ok out-of-memory - no memory for a matrix of %zu bytes\n", bytes);
        exit(1);
    }
    return p;
}

struct matrix matrix_new(enum bl_precision p, int64_t rows, int64_t cols, int64_t ld,
                         int64_t tail)
{
    struct matrix a = {p, rows, cols, ld, tail, NULL};
    size_t bytes = matrix_bytes(&a);
    a.data = storage(bytes);
    size_t word = is_double(p) ? sizeof double_poison : sizeof float_poison;
    const void *poison =
        is_double(p) ? (const void *)&double_poison : (const void *)&float_poison;
    for (size_t at = 0; at < bytes; at += word)
        memcpy(a.data + at, poison, word);
    return a;
}

struct matrix matrix_copy(const struct matrix *a)
{
    struct matrix b = *a;
    b.data = storage(matrix_bytes(a));
    memcpy(b.data, a->data, matrix_bytes(a));
    return b;
}

void matrix_free(struct matrix *a)
{
    free(a->data);
    a->data = NULL;
}

char *matrix_at(const struct matrix *a, int64_t i, int64_t j)
{
    return a->data + (size_t)(i + j * a->ld) * element_bytes(a->precision);
}

void matrix_put(struct matrix *a, int64_t i, int64_t j, double re, double im)
{
    float f[2] = {(float)re, (float)im};
    double d[2] = {re, im};
    memcpy(matrix_at(a, i, j), is_double(a->precision) ? (void *)d : (void *)f,
           element_bytes(a->precision));
}

long double complex matrix_get(const struct matrix *a, int64_t i, int64_t j)
{
    float f[2] = {0, 0};
    double d[2] = {0, 0};
    size_t bytes = element_bytes(a->precision);
    if (is_double(a->precision)) {
        memcpy(d, matrix_at(a, i, j), bytes);
        return CMPLXL(d[0], d[1]);
    }
    memcpy(f, matrix_at(a, i, j), bytes);
    return CMPLXL(f[0], f[1]);
}

/* ---- numbers ---- */

uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

int64_t rng_below(struct rng *r, int64_t n)
{
    return (int64_t)(rng_next(r) % (uint64_t)n);
}

int64_t rng_between(struct rng *r, int64_t a, int64_t b)
{
    return a + rng_below(r, b - a + 1);
}

double rng_unit(struct rng *r)
{
    return ((double)(rng_next(r) >> 11) + 0.5) * 0x1p-52 - 1;
}

/* ---- elements ---- */

static double smallest_normal(enum bl_precision p)
{
    return is_double(p) ? DBL_MIN : (double)FLT_MIN;
}

static double largest(enum bl_precision p)
{
    return is_double(p) ? DBL_MAX : (double)FLT_MAX;
}

static double complex unit(struct rng *r)
{
    double re = rng_unit(r), im = rng_unit(r);
    return CMPLX(re, im);
}

static double complex integers(struct rng *r, int most)
{
    double re = (double)rng_between(r, -most, most);
    double im = (double)rng_between(r, -most, most);
    return CMPLX(re, im);
}

/* |re| + |im| is the same for all. */
static double complex tied(struct rng *r, enum bl_precision p)
{
    static const double re[] = {1, 0, .5, .25, .75}, im[] = {0, 1, .5, .75, .25};
    int64_t k = is_complex(p) ? rng_below(r, 5) : 0;
    double x = rng_below(r, 2) ? re[k] : -re[k], y = rng_below(r, 2) ? im[k] : -im[k];
    return CMPLX(x, y);
}

static double signed_zero(struct rng *r, double x)
{
    return x == 0 && rng_below(r, 2) ? -0.0 : x;
}

static void put(struct matrix *a, int64_t i, int64_t j, double complex x)
{
    matrix_put(a, i, j, creal(x), cimag(x));
}

/* Replace up to three elements by NaN or infinities. */
static void sprinkle(struct matrix *a, char triangle, enum matrix_class c, struct rng *r)
{
    for (int64_t count = rng_between(r, 1, 3); count > 0 && a->rows && a->cols; count--) {
        int64_t i = rng_below(r, a->rows), j = rng_below(r, a->cols);
        if (triangle && rng_below(r, 2))
            j = i;
        if (!in_triangle(triangle, i, j)) {
            int64_t k = i;
            i = j;
            j = k;
        }
        double bad = c == CLASS_NAN    ? (double)NAN
                     : rng_below(r, 2) ? HUGE_VAL
                                       : -HUGE_VAL;
        bool real = !is_complex(a->precision) || rng_below(r, 2);
        put(a, i, j, real ? CMPLX(bad, rng_unit(r)) : CMPLX(rng_unit(r), bad));
    }
}

/* A factor of `rank` columns: a(i, j) = sum over t of u(i, t) * conj(v(j, t)). */
#define RANK 6

static double complex *factor(int64_t rows, struct rng *r, bool small_integers)
{
    double complex *v = calloc((size_t)rows * RANK + 1, sizeof *v);
    for (int64_t i = 0; v && i < rows * RANK; i++)
        v[i] = small_integers ? integers(r, 2) : unit(r);
    return v;
}

static double complex product(enum bl_precision p, const double complex *u,
                              const double complex *v, int64_t rank)
{
    double re = 0, im = 0;
    for (int64_t t = 0; t < rank; t++) {
        double ui = is_complex(p) ? cimag(u[t]) : 0, vi = is_complex(p) ? cimag(v[t]) : 0;
        re += creal(u[t]) * creal(v[t]) + ui * vi;
        im += ui * creal(v[t]) - creal(u[t]) * vi;
    }
    return CMPLX(re, im);
}

/* ---- general matrices ---- */

void matrix_fill(struct matrix *a, enum matrix_class c, uint64_t seed)
{
    struct rng r = {seed};
    enum bl_precision p = a->precision;
    int64_t rank = rng_between(&r, 1, RANK), span = is_double(p) ? 40 : 20;
    double complex *u = factor(a->rows, &r, true), *v = factor(a->cols, &r, true);
    for (int64_t j = 0; j < a->cols; j++)
        for (int64_t i = 0; i < a->rows; i++) {
            double complex x = unit(&r);
            switch (c) {
            case CLASS_INTEGER:
                x = integers(&r, 2);
                break;
            case CLASS_DEFICIENT:
                x = product(p, u + i * RANK, v + j * RANK, rank);
                break;
            case CLASS_TIED:
                x = tied(&r, p);
                break;
            case CLASS_NEGZERO:
                x = integers(&r, 1);
                x = CMPLX(signed_zero(&r, creal(x)), signed_zero(&r, cimag(x)));
                break;
            case CLASS_SUBNORMAL:
                x *= rng_below(&r, 8) ? ldexp(smallest_normal(p), -(int)rng_below(&r, 16))
                                      : 0;
                break;
            case CLASS_HUGE:
                x *= ldexp(largest(p), -(int)rng_between(&r, 0, 6));
                break;
            case CLASS_TINY:
                x *= ldexp(smallest_normal(p), (int)rng_between(&r, 1, 10));
                break;
            case CLASS_GRADED:
                x *= ldexp(1, (int)(span * j / a->cols - span * i / a->rows));
                break;
            default:
                break;
            }
            if (c == CLASS_SUBNORMAL) /* 0 times a negative number; that is NEGZERO's */
                x = CMPLX(creal(x) + 0.0, cimag(x) + 0.0);
            put(a, i, j, x);
        }
    if (c == CLASS_NAN || c == CLASS_INF)
        sprinkle(a, 0, c, &r);
    free(u);
    free(v);
}

/* ---- Hermitian matrices ---- */

/* Element (i, j), i >= j, of L * L^H for an integer L of six diagonals, 2 on the main
 * one. */
static double complex from_band(enum bl_precision p, const double complex *l, int64_t i,
                                int64_t j)
{
    double complex x[RANK] = {0}, y[RANK] = {0};
    int64_t count = 0;
    for (int64_t t = i < RANK ? 0 : i - RANK + 1; t <= j; t++, count++) {
        x[count] = i == t ? 2 : l[i * RANK + (i - t)];
        y[count] = j == t ? 2 : l[j * RANK + (j - t)];
    }
    return product(p, x, y, count);
}

static double scale_of(enum bl_precision p, enum matrix_class c, struct rng *r)
{
    switch (c) {
    case CLASS_SUBNORMAL:
        return ldexp(smallest_normal(p), -(int)rng_between(r, 0, 6));
    case CLASS_HUGE:
        return ldexp(largest(p), -(int)rng_between(r, 4, 10));
    case CLASS_TINY:
        return ldexp(smallest_normal(p), (int)rng_between(r, 1, 10));
    default:
        return 1;
    }
}

void matrix_fill_hermitian(struct matrix *a, char uplo, enum matrix_class c,
                           uint64_t seed)
{
    struct rng r = {seed};
    enum bl_precision p = a->precision;
    int64_t n = a->cols, bad = n ? rng_below(&r, n) : 0, span = is_double(p) ? 40 : 20;
    int64_t rank = c == CLASS_DEFICIENT ? rng_between(&r, 1, RANK) : RANK;
    bool band = c == CLASS_INTEGER || c == CLASS_NEGZERO,
         bad_zero = rng_below(&r, 4) == 0;
    double complex *v = factor(n, &r, c == CLASS_DEFICIENT);
    for (int64_t i = 0; band && i < n * RANK; i++)
        v[i] = integers(&r, 1);
    double level = (double)rng_between(&r, 1, 50), scale = scale_of(p, c, &r);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j; i < n; i++) {
            double complex x = band ? from_band(p, v, i, j)
                                    : product(p, v + i * RANK, v + j * RANK, rank);
            if (i == j && !band && c != CLASS_DEFICIENT)
                x += 0.1;
            if (c == CLASS_TIED) {
                struct rng si = {seed + (uint64_t)i}, sj = {seed + (uint64_t)j};
                static const double complex sign[] = {1, -1, I, -I};
                int64_t signs = is_complex(p) ? 4 : 2;
                x = level * sign[rng_below(&si, signs)] *
                    conj(sign[rng_below(&sj, signs)]);
                x = CMPLX(creal(x) + 0.0, cimag(x) + 0.0);
            }
            x *= scale;
            if (c == CLASS_GRADED)
                x *= ldexp(1, -(int)(span * i / n) - (int)(span * j / n));
            if (c == CLASS_NEGZERO)
                x = CMPLX(signed_zero(&r, creal(x)), signed_zero(&r, cimag(x)));
            else /* no zero of the scaling's making */
                x = CMPLX(creal(x) + 0.0, cimag(x) + 0.0);
            if (i == j) {
                double d = creal(x);
                if (c == CLASS_INDEFINITE && i == bad)
                    d = -d;
                if (c == CLASS_NEGZERO && i == bad && bad_zero)
                    d = -0.0;
                x = CMPLX(d, c == CLASS_NAN ? (double)NAN : rng_unit(&r));
            }
            if (uplo == 'L')
                put(a, i, j, x);
            else
                put(a, j, i, conj(x));
        }
    if (c == CLASS_NAN || c == CLASS_INF)
        sprinkle(a, uplo, c, &r);
    free(v);
}

void matrix_reflect(struct matrix *a, struct rng *r, bool left)
{
    int64_t n = a->cols;
    long double complex *v = malloc((size_t)n * sizeof *v), y;
    long double length = 0;
    for (int64_t i = 0; i < n; i++) {
        double re = rng_unit(r), im = is_complex(a->precision) ? rng_unit(r) : 0;
        v[i] = CMPLXL(re, im);
        length += (long double)(re * re + im * im);
    }
    for (int64_t j = 0; j < n; j++) {
        y = 0;
        for (int64_t i = 0; i < n; i++)
            y += left ? conjl(v[i]) * matrix_get(a, i, j) : matrix_get(a, j, i) * v[i];
        y *= 2 / length;
        for (int64_t i = 0; i < n; i++) {
            int64_t row = left ? i : j, column = left ? j : i;
            long double complex z =
                matrix_get(a, row, column) - (left ? v[i] * y : y * conjl(v[i]));
            matrix_put(a, row, column, (double)creall(z), (double)cimagl(z));
        }
    }
    free(v);
}

/* ---- exact families ---- */

const char *const family_name[FAMILIES] = {"anti-identity", "cyclic", "shift",
                                           "wilkinson"};

double family_element(enum family f, int64_t n, int64_t i, int64_t j)
{
    switch (f) {
    case FAMILY_ANTI:
        return j == n - 1 - i;
    case FAMILY_CYCLIC: /* row i is e(i + 1) */
        return j == (i + 1) % n;
    case FAMILY_SHIFT: /* row i is e(i - 1) */
        return j == (i + n - 1) % n;
    default:
        return i == j || j == n - 1 ? 1 : i > j ? -1 : 0;
    }
}

int32_t family_pivot(enum family f, int64_t n, int64_t k)
{
    switch (f) {
    case FAMILY_ANTI:
        return (int32_t)(k < n / 2 ? n - k : k + 1);
    case FAMILY_CYCLIC:
        return (int32_t)n;
    case FAMILY_SHIFT:
        return (int32_t)(k + 2 < n ? k + 2 : n);
    default:
        return (int32_t)k + 1;
    }
}

long double family_factor(enum family f, int64_t n, int64_t i, int64_t j, bool wide)
{
    if (f != FAMILY_WILKINSON)
        return i == j;
    if (j == n - 1) /* U(i, n) = 2^(i - 1), or Inf */
        return i < (wide ? 1024 : 128) ? ldexpl(1, (int)i) : (long double)INFINITY;
    return i == j ? 1 : i > j ? -1 : 0;
}

double complex banded_factor(enum bl_precision p, int64_t i, int64_t j)
{
    if (i == j)
        return 2;
    if (i < j || i - j > 3)
        return 0;
    double re = (double)((i * 7 + j * 3) % 3 - 1), im = (double)((i * 5 + j) % 3 - 1);
    return CMPLX(re, is_complex(p) ? im : 0);
}

void matrix_fill_banded(struct matrix *a, char uplo)
{
    const enum bl_precision p = a->precision;
    for (int64_t j = 0; j < a->cols; j++)
        for (int64_t i = j; i < a->cols; i++) {
            double complex sum = 0;
            for (int64_t k = i > 3 ? i - 3 : 0; k <= j; k++)
                sum += banded_factor(p, i, k) * conj(banded_factor(p, j, k));
            if (uplo == 'L')
                put(a, i, j, sum);
            else
                put(a, j, i, conj(sum));
        }
}

void integer_put(char *p, int64_t k, int size, int64_t value)
{
    int32_t narrow = (int32_t)value;
    memcpy(p + k * size, size == 8 ? (void *)&value : (void *)&narrow, (size_t)size);
}

int64_t integer_get(const char *p, int64_t k, int size)
{
    int64_t wide;
    int32_t narrow;
    if (size == 8)
        memcpy(&wide, p + k * 8, 8);
    else
        memcpy(&narrow, p + k * 4, 4);
    return size == 8 ? wide : narrow;
}
