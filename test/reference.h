/* What the correctness tests compare with, and how: netlib LAPACK in a namespace of its
 * own, calls by the letters of routines.def, comparison of bits, residuals, lines of
 * result. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include "matrices.h"

/* One call. Options are strings so that long and lower-case ones can be passed. */
struct call {
    enum bl_routine_id routine;
    enum bl_precision precision;
    const char *uplo, *trans;
    int32_t m, n, nrhs, lda, ldb, lwork;
    void *a, *b, *work;
    int32_t *ipiv;
    int32_t info;
};

bool routine_has(enum bl_routine_id r, char letter);
const char *routine_name(enum bl_routine_id r, enum bl_precision p); /* "dgetrf" */

/* Netlib, $BL_REFERENCE or liblapack.so.3. False (and a skip line): it is missing or it
 * is no netlib built without fused multiply-add. */
bool reference_open(void);
void reference_call(struct call *c);

/* The same call through the process's own symbols: the library under test. */
void entry_call(struct call *c);

/* ---- comparison ----------------------------------------------------------------------
 */

/* Elements of the triangle (0: of all) that are not the same: same bits, or both NaN, or,
 * when `zeros` is set, both zero; complex numbers by parts. Of rows and columns from
 * `minor` on nothing is compared (minor < 0: all is). `first` (of `size` bytes) says
 * where and what the first one is. */
int64_t differing(const struct matrix *got, const struct matrix *want, char triangle,
                  int64_t minor, bool zeros, char *first, size_t size);

/* Bytes outside the triangle (0: outside rows x cols) that are not as they were. */
int64_t touched(const struct matrix *got, const struct matrix *before, char triangle,
                char *first, size_t size);

/* Elements that are NaN or infinite on one side only, or other infinities. */
int64_t misplaced(const struct matrix *got, const struct matrix *want, char *first,
                  size_t size);

bool holds_negative_zero(const struct matrix *a, char triangle);
bool is_finite(const struct matrix *a, char triangle);

/* ---- residuals, in units of LAPACK's thresholds ---------------------------------------
 */

/* || X A v - v || / (n eps ||A|| ||X|| ||v||) for one random v; triangle: A and X are
 * Hermitian and one triangle of each is stored. */
double inverse_residual(const struct matrix *a, const struct matrix *x, char triangle);

/* || L L' v - A v || / (n eps ||A|| ||v||) for one random v; L' stands in F where A's
 * triangle is 'U'. */
double factor_residual(const struct matrix *a, char triangle, const struct matrix *f);

/* || P A x - L U x || / (n eps ||A|| ||x||) for some x; -1 where it is no number. */
double lu_residual(const struct matrix *a, const struct matrix *lu, const int64_t *ipiv);

/* max over columns of || b - op(A) x || / (||A|| ||x|| eps). */
double solve_residual(const struct matrix *a, char triangle, char trans,
                      const struct matrix *b, const struct matrix *x);

/* ---- served by the engine? ------------------------------------------------------------
 */

/* Run this program again under BATCHLAPACK_MODE and _ARITHMETIC, read the library's
 * report at its end, and say "NAME-served-by-the-engine": no legal, non-empty call ran on
 * the CPU but those of threads in mode cpu. False: the second run failed. */
bool rerun_served(char **argv, const char *name, const char *mode,
                  const char *arithmetic);
const char *rerun_name(void); /* in the second run: its name; NULL in the first */

/* ---- lines of result, threads ---------------------------------------------------------
 */

/* "ok NAME", or "not ok NAME - why" where why is not empty. Any thread. */
void verdict(const char *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int failures(void);

/* Of the reasons that a test has for a verdict the first one stays. */
enum { WHY_ROOM = 400 };
void fail(char why[WHY_ROOM], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* f(0) .. f(count - 1) on as many threads as there are processors. */
void in_parallel(int64_t count, void (*f)(int64_t item, void *data), void *data);

#endif
