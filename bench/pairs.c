/* What programs do with one large matrix: dgetrf_, dpotrf_, dgesv_, dgetrf_ + dgetrs_,
 * dgetrf_ + dgetri_ and dpotrf_ + dpotri_, by whatever LAPACK the program gets:
 *
 *     BATCHLAPACK_REPORT=1 LD_PRELOAD=.libs/libbatchlapack.so bench/pairs getri
 *     LD_PRELOAD=libnvblas.so.13 bench/pairs getrf 4096         (with NVBLAS_CONFIG_FILE)
 *     bench/pairs getrf|potrf|gesv|getrs|getri|potri [n [times]]        (8192, 3 times)
 *
 * Milliseconds of each call, of which the first also starts the GPU and pins memory; the
 * report at exit has the bytes moved by all of them. double, pageable memory, fresh data
 * every time, one right-hand side, lwork as the workspace query says. Every result is
 * checked: the residual of the system, or of an inverse's last column, against LAPACK's
 * threshold of 30; of getrf and potrf by a system solved afterwards, out of the time.
 */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void dgesv_(const int *, const int *, double *, const int *, int *, double *, const int *,
            int *);
void dgetrf_(const int *, const int *, double *, const int *, int *, int *);
void dgetrs_(const char *, const int *, const int *, const double *, const int *,
             const int *, double *, const int *, int *, size_t);
void dgetri_(const int *, double *, const int *, const int *, double *, const int *,
             int *);
void dpotrf_(const char *, const int *, double *, const int *, int *, size_t);
void dpotrs_(const char *, const int *, const int *, const double *, const int *,
             double *, const int *, int *, size_t);
void dpotri_(const char *, const int *, double *, const int *, int *, size_t);

static int n, *ipiv, lwork;
static double *a, *original, *x, *work;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double next_random(void)
{
    static unsigned long long s = 1;
    s = s * 6364136223846793005u + 1442695040888963407u;
    return (double)(long long)s * 0x1p-63;
}

/* Random; for Cholesky symmetric, positive definite, of a condition below 10. */
static void fill(const char *pair)
{
    for (size_t j = 0; j < (size_t)n; j++)
        for (size_t i = pair[0] == 'p' ? j : 0; i < (size_t)n; i++) {
            original[i + j * (size_t)n] = next_random();
            if (pair[0] == 'p')
                original[j + i * (size_t)n] = original[i + j * (size_t)n];
            if (pair[0] == 'p' && i == j)
                original[i + j * (size_t)n] = 2 * sqrt((double)n);
        }
}

static bool inverts(const char *pair)
{
    return strcmp(pair + 2, "tri") == 0;
}

static int call(const char *pair)
{
    const int one = 1;
    int info = 0;
    if (strcmp(pair, "gesv") == 0) {
        dgesv_(&n, &one, a, &n, ipiv, x, &n, &info);
    } else if (pair[0] == 'p') {
        dpotrf_("L", &n, a, &n, &info, 1);
        if (info == 0 && inverts(pair))
            dpotri_("L", &n, a, &n, &info, 1);
    } else {
        dgetrf_(&n, &n, a, &n, ipiv, &info);
        if (info == 0 && strcmp(pair, "getrs") == 0)
            dgetrs_("N", &n, &one, a, &n, ipiv, x, &n, &info, 1);
        else if (info == 0 && inverts(pair))
            dgetri_(&n, a, &n, ipiv, work, &lwork, &info);
    }
    return info;
}

/* |b - A x| / (|A| |x| n eps) in the 1-norm; for an inverse b is the last column of I and
 * x that of the inverse. */
static double residual(const char *pair)
{
    const size_t m = (size_t)n;
    const bool inverse = inverts(pair);
    const double *y = inverse ? a + (m - 1) * m : x;
    double *r = work, norm = 0, error = 0, length = 0;
    for (size_t i = 0; i < m; i++)
        r[i] = inverse ? i == m - 1 : 1.0;
    for (size_t j = 0; j < m; j++) {
        /* of potri there is only the lower triangle */
        double sum = 0, yj = inverse && *pair == 'p' ? a[m - 1 + j * m] : y[j];
        for (size_t i = 0; i < m; i++) {
            sum += fabs(original[i + j * m]);
            r[i] -= original[i + j * m] * yj;
        }
        norm = fmax(norm, sum);
        length += fabs(yj);
    }
    for (size_t i = 0; i < m; i++)
        error += fabs(r[i]);
    return error / (norm * length * n * DBL_EPSILON);
}

/* One right-hand side with the factors that getrf or potrf left. */
static int solve(const char *pair)
{
    const int one = 1;
    int info = 0;
    if (strcmp(pair, "getrf") == 0)
        dgetrs_("N", &n, &one, a, &n, ipiv, x, &n, &info, 1);
    else if (strcmp(pair, "potrf") == 0)
        dpotrs_("L", &n, &one, a, &n, x, &n, &info, 1);
    return info;
}

static bool fails(const char *pair)
{
    memcpy(a, original, (size_t)n * (size_t)n * sizeof(double));
    for (int i = 0; i < n; i++)
        x[i] = 1;
    double begin = seconds();
    int info = call(pair);
    double ms = (seconds() - begin) * 1e3;
    info = info ? info : solve(pair);
    double ratio = residual(pair);
    printf("%s %d: %.1f ms, INFO %d, residual %.2g\n", pair, n, ms, info, ratio);
    fflush(stdout);
    return info != 0 || !(ratio < 30);
}

int main(int argc, char **argv)
{
    static const char *const pairs[] = {"getrf", "potrf", "gesv",
                                        "getrs", "getri", "potri"};
    const char *pair = argc > 1 ? argv[1] : "";
    bool known = false, failed = false;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        known |= strcmp(pair, pairs[i]) == 0;
    n = argc > 2 ? atoi(argv[2]) : 8192;
    const int times = argc > 3 ? atoi(argv[3]) : 3, query = -1;
    if (!known || n < 1) {
        fprintf(stderr, "pairs getrf|potrf|gesv|getrs|getri|potri [n [times]]\n");
        return 2;
    }
    int info = 0;
    const size_t bytes = (size_t)n * (size_t)n * sizeof(double);
    double best_work = 0;
    dgetri_(&n, &best_work, &n, &info, &best_work, &query, &info);
    lwork = best_work > n ? (int)best_work : n;
    a = malloc(bytes);
    original = malloc(bytes);
    x = malloc((size_t)n * sizeof(double));
    work = malloc((size_t)lwork * sizeof(double));
    ipiv = malloc((size_t)n * sizeof(int));
    if (!a || !original || !x || !work || !ipiv) {
        fprintf(stderr, "pairs: n = %d: no memory\n", n);
        return 2;
    }
    fill(pair);
    for (int i = 0; i < times; i++)
        failed |= fails(pair);
    return failed;
}
