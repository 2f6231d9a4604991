/* Matrices for the correctness tests: storage with poisoned surroundings, and generators
 * of every class of input, the same for the same seed. */
#ifndef MATRICES_H
#define MATRICES_H

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine.h"

/* rows x cols, column-major, `tail` elements after the last column. What is not filled is
 * poison: a NaN with a payload of its own, so that a stray read or write shows. */
struct matrix {
    enum bl_precision precision;
    int64_t rows, cols, ld, tail;
    char *data;
};

struct matrix matrix_new(enum bl_precision p, int64_t rows, int64_t cols, int64_t ld,
                         int64_t tail);
struct matrix matrix_copy(const struct matrix *a);
void matrix_free(struct matrix *a);
size_t matrix_bytes(const struct matrix *a);
char *matrix_at(const struct matrix *a, int64_t i, int64_t j);
void matrix_put(struct matrix *a, int64_t i, int64_t j, double re, double im);
long double complex matrix_get(const struct matrix *a, int64_t i, int64_t j);

/* Is (i, j) in the triangle 'U' or 'L'; every element is in triangle 0. */
static inline bool in_triangle(char triangle, int64_t i, int64_t j)
{
    return !triangle || (triangle == 'U' ? i <= j : i >= j);
}

size_t element_bytes(enum bl_precision p);
size_t real_bytes(enum bl_precision p); /* of a part of it */
bool is_complex(enum bl_precision p);
bool is_double(enum bl_precision p);
double epsilon_of(enum bl_precision p); /* relative machine precision, LAPACK's eps */

/* A stream of numbers. */
struct rng {
    uint64_t state;
};
uint64_t rng_next(struct rng *r);
int64_t rng_below(struct rng *r, int64_t n);              /* 0 .. n - 1 */
int64_t rng_between(struct rng *r, int64_t a, int64_t b); /* a .. b */
double rng_unit(struct rng *r);                           /* in (-1, 1) */

#define MATRIX_CLASSES(C)                                                                \
    C(RANDOM, "random")         /* uniform in (-1, 1); Hermitian: definite */            \
    C(INTEGER, "integer")       /* -2..2; Hermitian: from an integer factor */           \
    C(DEFICIENT, "deficient")   /* product of small integers, rank at most 6 */          \
    C(TIED, "tied")             /* entries of equal magnitude */                         \
    C(NAN, "nan")               /* a few NaN */                                          \
    C(INF, "inf")               /* a few infinities */                                   \
    C(NEGZERO, "negzero")       /* small integers, half of the zeros negative */         \
    C(SUBNORMAL, "subnormal")   /* at and below the smallest normal number */            \
    C(HUGE, "huge")             /* near overflow */                                      \
    C(TINY, "tiny")             /* near underflow, normal */                             \
    C(GRADED, "graded")         /* rows and columns of falling size */                   \
    C(INDEFINITE, "indefinite") /* Hermitian only: one diagonal element negative */

enum matrix_class {
#define C(NAME, text) CLASS_##NAME,
    MATRIX_CLASSES(C)
#undef C
        MATRIX_CLASS_COUNT
};
extern const char *const matrix_class_name[MATRIX_CLASS_COUNT];

void matrix_fill(struct matrix *a, enum matrix_class c, uint64_t seed);

/* Fills one triangle; the other stays poison. Complex diagonals get an imaginary part,
 * which LAPACK ignores. */
void matrix_fill_hermitian(struct matrix *a, char uplo, enum matrix_class c,
                           uint64_t seed);

/* Families whose LU factors are known exactly, of order n: elements, pivots (k from 0)
 * and L and U in one array. Wilkinson's U has Inf from 2^128 or 2^1024 on. */
enum family { FAMILY_ANTI, FAMILY_CYCLIC, FAMILY_SHIFT, FAMILY_WILKINSON, FAMILIES };
extern const char *const family_name[FAMILIES];
double family_element(enum family f, int64_t n, int64_t i, int64_t j);
int32_t family_pivot(enum family f, int64_t n, int64_t k);
long double family_factor(enum family f, int64_t n, int64_t i, int64_t j, bool wide);

/* Of Cholesky: L of small integers, with 2 on the diagonal, and the triangle of L L^H. */
double complex banded_factor(enum bl_precision p, int64_t i, int64_t j);
void matrix_fill_banded(struct matrix *a, char uplo);

/* A random reflection from either side: a(i, j) -= 2 v_i (v^H a)_j / v^H v. */
void matrix_reflect(struct matrix *a, struct rng *r, bool left);

/* Integer k of an array of them, `size` (4 or 8) bytes each, at any address. */
void integer_put(char *p, int64_t k, int size, int64_t value);
int64_t integer_get(const char *p, int64_t k, int size);

#endif
