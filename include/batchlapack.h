/* batchlapack: LAPACK calls of existing programs on an NVIDIA GPU, and batched routines.
 *
 * A program that is only run under the preload needs nothing from here. Programs that
 * link -lbatchlapack get from this header, for C99 and C++11 and later, the batched
 * routines (a family at a time: factor, solve or invert many small matrices in one call)
 * and the controls. The same for Fortran: the module batchlapack. Man pages:
 * batchlapack(7), getrf_batch_strided(3) and so on.
 *
 * Define before inclusion, if at all:
 *   BATCHLAPACK_ILP64           plain names take 64-bit integers
 *   BATCHLAPACK_COMPLEX_FLOAT   the types of c and z, for example cuComplex; otherwise
 *   BATCHLAPACK_COMPLEX_DOUBLE  float _Complex in C, std::complex<float> in C++
 */
#ifndef BATCHLAPACK_H
#define BATCHLAPACK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#    if !defined BATCHLAPACK_COMPLEX_FLOAT || !defined BATCHLAPACK_COMPLEX_DOUBLE
#        include <complex>
#    endif
#    ifndef BATCHLAPACK_COMPLEX_FLOAT
#        define BATCHLAPACK_COMPLEX_FLOAT std::complex<float>
#    endif
#    ifndef BATCHLAPACK_COMPLEX_DOUBLE
#        define BATCHLAPACK_COMPLEX_DOUBLE std::complex<double>
#    endif
extern "C" {
#else
#    ifndef BATCHLAPACK_COMPLEX_FLOAT
#        define BATCHLAPACK_COMPLEX_FLOAT float _Complex
#    endif
#    ifndef BATCHLAPACK_COMPLEX_DOUBLE
#        define BATCHLAPACK_COMPLEX_DOUBLE double _Complex
#    endif
#endif

/* The integers of the plain names. */
#ifdef BATCHLAPACK_ILP64
typedef int64_t batchlapack_int;
#    define BATCHLAPACK_SYMBOL(name) __asm__(#    name)
#else
typedef int32_t batchlapack_int;
#    define BATCHLAPACK_SYMBOL(name)
#endif

/* ---- batched routines: what holds for all ------------------------------------------
 *
 * Names. A routine getrf_batch_strided exists as sgetrf_batch_strided, dgetrf_...,
 * cgetrf_... and zgetrf_... (T below is float, double and the two complex types, R the
 * real type that belongs to T), and each of these again with the suffix _64. Plain names
 * take 32-bit integers (I below), or 64-bit ones under BATCHLAPACK_ILP64; the names with
 * _64 always 64-bit ones. The library also exports them all with an underscore at the
 * end, for Fortran.
 *
 * Arguments. Every scalar is passed by pointer, as in LAPACK, and is in host memory.
 * Matrices are column-major; lda, ldb and ldainv count elements between columns, strides
 * count elements (never bytes) between the matrices of a batch: matrix i begins at
 * a + i * stride_a, its pivots at ipiv + i * stride_ipiv. A stride must be at least
 * leading dimension times columns, of IPIV at least min(m, n), also for a batch of one.
 * What lies in the gaps is neither read nor written. Matrices of a batch must not
 * overlap. Pivots are 1-based: row k was interchanged with row ipiv[k - 1].
 *
 * INFO has one entry a matrix: 0, or k > 0 when that matrix fails as the family says; the
 * others of the batch are not affected. info[i] is never negative.
 *
 * Errors. An illegal argument (dimension below 0, leading dimension or stride too small,
 * unknown UPLO or TRANS, NULL where there is something to point to, memory of the wrong
 * kind): nothing is written, XERBLA is called with the routine's name and the argument's
 * number, and batchlapack_status() is BATCHLAPACK_BAD_ARGUMENT. batch_size 0 and n 0 are
 * legal; with n = 0 every INFO is 0.
 *
 * Where the data may be. The matrices, IPIV and INFO of a call are all in host memory or
 * all in device memory; pinned and managed memory count as either:
 *   - any in device memory: a device call. Pageable memory beside it is an illegal
 * argument.
 *   - else any pageable: a host call.
 *   - else, all pinned or managed: a device call when any is managed or a stream is set
 *     (batchlapack_set_stream), a host call otherwise.
 * A host call is complete on return. It runs on the GPU or, where that is predicted to be
 * slower or fails, as the program's own LAPACK over the matrices, on several threads; see
 * BATCHLAPACK_MODE in batchlapack(7). A device call always runs on the GPU where the data
 * is: nothing is copied, and there is nothing to fall back to. It is asynchronous on the
 * thread's stream or, without one, complete on return. When the device fails, INFO is
 * left untouched (of a call with groups of different shapes, what was started before the
 * failure may still be done), batchlapack_status() says what happened, and one line goes
 * to stderr. Where a group's array of pointers is in device or managed memory it must
 * stay as it is until the call has run; one in host memory is copied at once.
 *
 * Integers. The plain names take 32-bit integers; beside a LAPACK whose own plain names
 * take 64-bit ones (MKL's ILP64 layer, liblapack64) they do as that LAPACK does. The _64
 * names are always 64-bit.
 *
 * Threads. Any number of threads may call at the same time, on different data. Mode,
 * stream and status belong to the calling thread. A forked child's host calls run on the
 * CPU.
 *
 * Exactness. In exact arithmetic (BATCHLAPACK_ARITHMETIC) getrf, getrs, gesv, potrf,
 * potrs and posv give the bits of netlib LAPACK 3.11, matrix by matrix; the other
 * routines have IPIV and INFO of LAPACK's rules and results within its error bounds. What
 * a matrix gives does not depend on the rest of the batch, but that in fast and auto
 * arithmetic it may on whether there are more than 4 of about its size. A host call that
 * runs on the CPU has the bits of the program's own LAPACK.
 */
#define BATCHLAPACK_DECLARE(name, arguments)                                             \
    void s##name arguments(float, float, batchlapack_int)                                \
        BATCHLAPACK_SYMBOL(s##name##_64);                                                \
    void d##name arguments(double, double, batchlapack_int)                              \
        BATCHLAPACK_SYMBOL(d##name##_64);                                                \
    void c##name arguments(BATCHLAPACK_COMPLEX_FLOAT, float, batchlapack_int)            \
        BATCHLAPACK_SYMBOL(c##name##_64);                                                \
    void z##name arguments(BATCHLAPACK_COMPLEX_DOUBLE, double, batchlapack_int)          \
        BATCHLAPACK_SYMBOL(z##name##_64);                                                \
    void s##name##_64 arguments(float, float, int64_t);                                  \
    void d##name##_64 arguments(double, double, int64_t);                                \
    void c##name##_64 arguments(BATCHLAPACK_COMPLEX_FLOAT, float, int64_t);              \
    void z##name##_64 arguments(BATCHLAPACK_COMPLEX_DOUBLE, double, int64_t);

/* ---- getrf, getrfnp: LU factorization ----------------------------------------------
 *
 * A = P L U of every m x n matrix, with partial pivoting: the first element of the
 * largest |re| + |im| in its column. L (unit diagonal, not stored) and U replace A; ipiv
 * has min(m, n) entries a matrix. getrfnp takes the diagonal as it comes, for matrices
 * that need no pivoting (diagonally dominant ones).
 *
 * INFO = k: U(k,k) is exactly zero. The factorization is complete (getrfnp: up to column
 * k), but solving with it would divide by zero.
 * Exact: getrf. Method: Abdelfattah, Haidar, Tomov, Dongarra, Factorization and Inversion
 * of a Million Matrices using GPUs (2017); Abdelfattah, Tomov, Dongarra, Progressive
 * Optimization of Batched LU Factorization on GPUs (2019).
 */
#define BATCHLAPACK_GETRF_STRIDED(T, R, I)                                               \
    (const I *m, const I *n, T *a, const I *lda, const I *stride_a, I *ipiv,             \
     const I *stride_ipiv, const I *batch_size, I *info)
BATCHLAPACK_DECLARE(getrf_batch_strided, BATCHLAPACK_GETRF_STRIDED)

#define BATCHLAPACK_GETRFNP_STRIDED(T, R, I)                                             \
    (const I *m, const I *n, T *a, const I *lda, const I *stride_a, const I *batch_size, \
     I *info)
BATCHLAPACK_DECLARE(getrfnp_batch_strided, BATCHLAPACK_GETRFNP_STRIDED)

/* ---- getrfsp: LU factorization with implicit, scaled pivoting -----------------------
 *
 * As getrf (m x n, IPIV in the same format, to be used with getrs and getri), but the
 * pivot of a column is the element that is largest relative to the largest element that
 * its row had in A, in |re| + |im|. The choice does not change when a row of A is
 * multiplied by a number: for matrices whose rows are scaled very differently. The one
 * place where IPIV is not LAPACK's.
 *
 * INFO = k: U(k,k) is exactly zero.
 * Method: Crout's order, as in Brouwer, Taunay, Efficient Batch LU Decomposition on GPU
 * (2013).
 */
BATCHLAPACK_DECLARE(getrfsp_batch_strided, BATCHLAPACK_GETRF_STRIDED)

/* ---- getrs, getrsnp: solve with the factors of getrf, getrfnp ------------------------
 *
 * op(A) X = B, with op(A) = A, A^T or A^H for *trans = 'N', 'T' or 'C'; A n x n as getrf
 * (getrfnp) left it, B n x nrhs, overwritten by X. stride_b at least ldb * nrhs.
 *
 * INFO = 0 always: a zero on U's diagonal gives infinities, as in LAPACK.
 * Exact: getrs with 'N'.
 */
#define BATCHLAPACK_GETRS_STRIDED(T, R, I)                                               \
    (const char *trans, const I *n, const I *nrhs, const T *a, const I *lda,             \
     const I *stride_a, const I *ipiv, const I *stride_ipiv, T *b, const I *ldb,         \
     const I *stride_b, const I *batch_size, I *info)
BATCHLAPACK_DECLARE(getrs_batch_strided, BATCHLAPACK_GETRS_STRIDED)

#define BATCHLAPACK_GETRSNP_STRIDED(T, R, I)                                             \
    (const char *trans, const I *n, const I *nrhs, const T *a, const I *lda,             \
     const I *stride_a, T *b, const I *ldb, const I *stride_b, const I *batch_size,      \
     I *info)
BATCHLAPACK_DECLARE(getrsnp_batch_strided, BATCHLAPACK_GETRSNP_STRIDED)

/* ---- gesv: factor and solve ----------------------------------------------------------
 *
 * A X = B: getrf, then getrs. A n x n, B n x nrhs, overwritten by the factors and by X.
 * On the GPU one pass up to n = 32 with up to 8 right-hand sides, else one after the
 * other.
 *
 * INFO = k: U(k,k) is exactly zero. A and ipiv hold what getrf leaves, all of it; B is as
 * it was given.
 * Exact.
 */
#define BATCHLAPACK_GESV_STRIDED(T, R, I)                                                \
    (const I *n, const I *nrhs, T *a, const I *lda, const I *stride_a, I *ipiv,          \
     const I *stride_ipiv, T *b, const I *ldb, const I *stride_b, const I *batch_size,   \
     I *info)
BATCHLAPACK_DECLARE(gesv_batch_strided, BATCHLAPACK_GESV_STRIDED)

/* ---- getri, getri_oop: inverse from the factors of getrf ------------------------------
 *
 * getri replaces the factors (n x n) by the inverse of A; no workspace is asked for.
 * getri_oop leaves them and writes the inverse to ainv (stride_ainv at least
 * ldainv * n), which must not overlap a.
 *
 * INFO = k: U(k,k) is exactly zero; there is no inverse. a keeps the factors as they were
 * given, in getri too; what getri_oop leaves in ainv is not defined. ipiv is only read.
 */
#define BATCHLAPACK_GETRI_STRIDED(T, R, I)                                               \
    (const I *n, T *a, const I *lda, const I *stride_a, const I *ipiv,                   \
     const I *stride_ipiv, const I *batch_size, I *info)
BATCHLAPACK_DECLARE(getri_batch_strided, BATCHLAPACK_GETRI_STRIDED)

#define BATCHLAPACK_GETRI_OOP_STRIDED(T, R, I)                                           \
    (const I *n, const T *a, const I *lda, const I *stride_a, const I *ipiv,             \
     const I *stride_ipiv, T *ainv, const I *ldainv, const I *stride_ainv,               \
     const I *batch_size, I *info)
BATCHLAPACK_DECLARE(getri_oop_batch_strided, BATCHLAPACK_GETRI_OOP_STRIDED)

/* ---- geinv: inverse -------------------------------------------------------------------
 *
 * The inverse of every n x n matrix in one pass (getrf and getri fused); ainv may be a
 * itself, with the same leading dimension and stride, otherwise a is only read.
 *
 * INFO = k: U(k,k) of getrf is exactly zero; there is no inverse. Up to n = 32 ainv then
 * holds the factors of getrf (their interchanges are not kept); what is left in ainv for
 * larger n is not defined. An a that is not ainv is as it was given.
 * Method: the papers of getrf; for the column order of the inverse, batched inversion
 * with delayed correction (2023).
 */
#define BATCHLAPACK_GEINV_STRIDED(T, R, I)                                               \
    (const I *n, const T *a, const I *lda, const I *stride_a, T *ainv, const I *ldainv,  \
     const I *stride_ainv, const I *batch_size, I *info)
BATCHLAPACK_DECLARE(geinv_batch_strided, BATCHLAPACK_GEINV_STRIDED)

/* ---- gedet: determinant ---------------------------------------------------------------
 *
 * det A = phase * exp(logabs) of every n x n matrix, which is only read. phase and logabs
 * have one element a matrix, side by side. phase is +1 or -1 for s and d, of modulus 1
 * for c and z; logabs, a real, is the natural logarithm of |det A|. Neither overflows
 * where the determinant would. n = 0: 1 and 0.
 *
 * INFO = k: U(k,k) of getrf is exactly zero: phase 0, logabs -infinity.
 * Source: the determinant by LU with the permutation's sign, Brouwer, Taunay (2013).
 */
#define BATCHLAPACK_GEDET_STRIDED(T, R, I)                                               \
    (const I *n, const T *a, const I *lda, const I *stride_a, T *phase, R *logabs,       \
     const I *batch_size, I *info)
BATCHLAPACK_DECLARE(gedet_batch_strided, BATCHLAPACK_GEDET_STRIDED)

/* ---- potrf: Cholesky factorization ----------------------------------------------------
 *
 * A = U^H U (*uplo = 'U') or L L^H ('L') of every n x n symmetric (c, z: Hermitian)
 * positive definite matrix. The other triangle is neither read nor written.
 *
 * INFO = k: the leading minor of order k is not positive definite; no factorization.
 * Exact.
 */
#define BATCHLAPACK_POTRF_STRIDED(T, R, I)                                               \
    (const char *uplo, const I *n, T *a, const I *lda, const I *stride_a,                \
     const I *batch_size, I *info)
BATCHLAPACK_DECLARE(potrf_batch_strided, BATCHLAPACK_POTRF_STRIDED)

/* ---- potrs: solve with the factor of potrf --------------------------------------------
 *
 * A X = B; A n x n as potrf left it, B n x nrhs, overwritten by X.
 *
 * INFO = 0 always.
 */
#define BATCHLAPACK_POTRS_STRIDED(T, R, I)                                               \
    (const char *uplo, const I *n, const I *nrhs, const T *a, const I *lda,              \
     const I *stride_a, T *b, const I *ldb, const I *stride_b, const I *batch_size,      \
     I *info)
BATCHLAPACK_DECLARE(potrs_batch_strided, BATCHLAPACK_POTRS_STRIDED)

/* ---- posv: factor and solve, positive definite ----------------------------------------
 *
 * A X = B: potrf, then potrs. A and B are overwritten by the factor and by X.
 *
 * INFO = k: as potrf; B is as it was given.
 */
#define BATCHLAPACK_POSV_STRIDED(T, R, I)                                                \
    (const char *uplo, const I *n, const I *nrhs, T *a, const I *lda, const I *stride_a, \
     T *b, const I *ldb, const I *stride_b, const I *batch_size, I *info)
BATCHLAPACK_DECLARE(posv_batch_strided, BATCHLAPACK_POSV_STRIDED)

/* ---- potri: inverse from the factor of potrf
 * -------------------------------------------
 *
 * The triangle that held the factor is replaced by that triangle of the inverse.
 *
 * INFO = k: the factor's diagonal element k is zero; there is no inverse.
 */
BATCHLAPACK_DECLARE(potri_batch_strided, BATCHLAPACK_POTRF_STRIDED)

/* ---- groups: matrices of different sizes
 * ------------------------------------------------
 *
 * group_count groups; the group_size[g] matrices of group g have m[g], n[g], lda[g],
 * uplo[g] in common. a (and ipiv, ainv) are arrays of pointers, one a matrix, info one
 * entry a matrix, all in the order of the groups. Groups may be as small as one matrix: a
 * call whose matrices are all different is as few launches as one whose are all equal.
 * Size arrays are in host memory; the pointer arrays of a device call may be in host or
 * device memory. A group of size 0 is legal; an illegal m, n, lda, uplo or pointer in any
 * group is an illegal argument of the whole call, and nothing is written.
 *
 * What they compute, INFO and exactness: as the strided routine of the same name.
 * getri_oop_batch only reads the matrices that a points to.
 */
#define BATCHLAPACK_GETRF_GROUPS(T, R, I)                                                \
    (const I *m, const I *n, T *const *a, const I *lda, I *const *ipiv,                  \
     const I *group_count, const I *group_size, I *info)
BATCHLAPACK_DECLARE(getrf_batch, BATCHLAPACK_GETRF_GROUPS)

#define BATCHLAPACK_GETRFNP_GROUPS(T, R, I)                                              \
    (const I *m, const I *n, T *const *a, const I *lda, const I *group_count,            \
     const I *group_size, I *info)
BATCHLAPACK_DECLARE(getrfnp_batch, BATCHLAPACK_GETRFNP_GROUPS)

#define BATCHLAPACK_GETRI_OOP_GROUPS(T, R, I)                                            \
    (const I *n, T *const *a, const I *lda, I *const *ipiv, T *const *ainv,              \
     const I *ldainv, const I *group_count, const I *group_size, I *info)
BATCHLAPACK_DECLARE(getri_oop_batch, BATCHLAPACK_GETRI_OOP_GROUPS)

#define BATCHLAPACK_POTRF_GROUPS(T, R, I)                                                \
    (const char *uplo, const I *n, T *const *a, const I *lda, const I *group_count,      \
     const I *group_size, I *info)
BATCHLAPACK_DECLARE(potrf_batch, BATCHLAPACK_POTRF_GROUPS)

#undef BATCHLAPACK_DECLARE
#undef BATCHLAPACK_SYMBOL
#undef BATCHLAPACK_GETRF_STRIDED
#undef BATCHLAPACK_GETRFNP_STRIDED
#undef BATCHLAPACK_GETRS_STRIDED
#undef BATCHLAPACK_GETRSNP_STRIDED
#undef BATCHLAPACK_GESV_STRIDED
#undef BATCHLAPACK_GETRI_STRIDED
#undef BATCHLAPACK_GETRI_OOP_STRIDED
#undef BATCHLAPACK_GEINV_STRIDED
#undef BATCHLAPACK_GEDET_STRIDED
#undef BATCHLAPACK_POTRF_STRIDED
#undef BATCHLAPACK_POTRS_STRIDED
#undef BATCHLAPACK_POSV_STRIDED
#undef BATCHLAPACK_GETRF_GROUPS
#undef BATCHLAPACK_GETRFNP_GROUPS
#undef BATCHLAPACK_GETRI_OOP_GROUPS
#undef BATCHLAPACK_POTRF_GROUPS

/* ---- controls
 * ----------------------------------------------------------------------------
 *
 * All may be called from any thread at any time.
 */

/* Where the calling thread's calls run, LAPACK's and batched host calls; see
 * BATCHLAPACK_MODE in batchlapack(7). DEFAULT: as the environment says. */
enum {
    BATCHLAPACK_MODE_DEFAULT = -1,
    BATCHLAPACK_MODE_AUTO = 0,
    BATCHLAPACK_MODE_GPU = 1,
    BATCHLAPACK_MODE_CPU = 2
};

/* Set the calling thread's mode; returns the one before, or -2 (and changes nothing) when
 * `mode` is none of the above. Only affects later calls of this thread. Fortran programs
 * that do not use the module: call batchlapack_set_mode(mode). */
int batchlapack_set_mode(int mode);

/* Set the stream of the calling thread's device calls, a cudaStream_t; returns the one
 * before. NULL (the default): device calls run on the legacy default stream and are
 * complete on return. Otherwise they are enqueued on the stream and return at once,
 * without any hidden synchronisation, and may be captured into a CUDA graph. The stream
 * belongs to the program, which keeps it alive until it has set another; cudaStreamLegacy
 * and cudaStreamPerThread are allowed. */
void *batchlapack_set_stream(void *stream);

/* What became of the calling thread's last batched call. An asynchronous call is OK when
 * it was enqueued; what fails later is CUDA's to report, at the program's next
 * synchronisation. */
enum {
    BATCHLAPACK_OK = 0,
    BATCHLAPACK_NO_MEMORY = 1,   /* of the device or the host */
    BATCHLAPACK_FAULT = 2,       /* the device reported an error */
    BATCHLAPACK_LOST = 3,        /* the device or its context is gone, or there is none */
    BATCHLAPACK_UNSUPPORTED = 4, /* by the engine, or there is no engine */
    BATCHLAPACK_BAD_ARGUMENT = 5
};
int batchlapack_status(void);

/* A status in words, for example "out of memory". A constant; never NULL. */
const char *batchlapack_status_text(int status);

/* Hold at least `bytes` of device memory as workspace, and start the GPU for it: from
 * then on device calls whose workspace fits allocate nothing. release gives back all that
 * is not in use. Both return a status. */
int batchlapack_reserve(size_t bytes);
int batchlapack_release(void);

/* The version of the library, for example "0.1.0". */
const char *batchlapack_version(void);

#ifdef __cplusplus
}
#endif
#endif
