/* Call every row of routines.def in four precisions on small and medium matrices and say
 * what came of it. Knows nothing of batchlapack: linked with the LAPACK to be tested.
 *
 *     rows            a line a call: what, INFO, a hash of IPIV, a hash of all that the
 *                     call may write, the residual; then "calls ROUTINE N" a routine
 *     rows touch      a line a routine: which library's code first touched the matrix
 *     rows loop N n   N times dgesv, n unknowns and n right-hand sides
 *
 * -DINT=int64_t for 64-bit integers, -D'SYMBOL(x)=x##_64_' for other spellings. Pivots
 * and INFO are the same whatever LAPACK runs: the matrices are diagonally dominant but
 * for a permutation of the rows.
 */
#define _GNU_SOURCE
#include <complex.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "bl.h"

#ifndef INT
#    define INT int32_t
#endif
#ifndef SYMBOL
#    define SYMBOL(x) x##_
#endif

#define R_SDCZ(name, NAME, nargs, args)                                                  \
    extern bl_fn SYMBOL(s##name), SYMBOL(d##name), SYMBOL(c##name), SYMBOL(z##name);
#include "routines.def"
static bl_fn *const routine[BL_LAPACK_ROUTINES][BL_PRECISIONS] = {
#define R_SDCZ(name, NAME, nargs, args)                                                  \
    {SYMBOL(s##name), SYMBOL(d##name), SYMBOL(c##name), SYMBOL(z##name)},
#include "routines.def"
};
static unsigned calls[BL_LAPACK_ROUTINES][BL_PRECISIONS];
static unsigned p; /* the precision in use */

static void call(enum bl_routine_id r, ...)
{
    void *v[BL_MAX_ARGS];
    va_list args;
    va_start(args, r);
    for (unsigned i = 0; i < bl_routines[r].nargs; i++)
        v[i] = va_arg(args, void *);
    va_end(args);
    calls[r][p]++;
    *(INT *)v[bl_routines[r].nargs - 1] = -9;
    bl_call_lapack(routine[r][p], bl_routines[r].nargs, v);
}

/* ---- matrices: column-major, leading dimension LD(rows), the gap holds a mark ---- */

#define LD(rows) ((rows) + 3)

static double complex get(const void *a, size_t k)
{
    switch (p) {
    case BL_S:
        return ((const float *)a)[k];
    case BL_D:
        return ((const double *)a)[k];
    case BL_C:
        return ((const float complex *)a)[k];
    default:
        return ((const double complex *)a)[k];
    }
}

static void put(void *a, size_t k, double complex x)
{
    switch (p) {
    case BL_S:
        ((float *)a)[k] = (float)creal(x);
        break;
    case BL_D:
        ((double *)a)[k] = creal(x);
        break;
    case BL_C:
        ((float complex *)a)[k] = (float complex)x;
        break;
    default:
        ((double complex *)a)[k] = x;
    }
}

static double complex number(void)
{
    static uint64_t state = 1;
    double part[2];
    for (int i = 0; i < 2; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        part[i] = (double)(int64_t)state * 0x1p-64;
    }
    return p >= BL_C ? part[0] + I * part[1] : part[0];
}

static size_t bytes(INT rows, INT cols)
{
    return (size_t)LD(rows) * (size_t)cols * bl_element((enum bl_precision)p);
}

static void *block(size_t size)
{
    void *a = NULL;
    if (posix_memalign(&a, 64, size))
        abort();
    return a;
}

static void *matrix(INT rows, INT cols)
{
    void *a = block(bytes(rows, cols));
    for (size_t k = 0; k < (size_t)LD(rows) * (size_t)cols; k++)
        put(a, k, number());
    return a;
}

static void *copy(const void *a, INT rows, INT cols)
{
    return memcpy(block(bytes(rows, cols)), a, bytes(rows, cols));
}

static void *general(INT m, INT n)
{
    void *a = matrix(m, n);
    INT k = m < n ? m : n;
    for (INT j = 0; j < k; j++)
        put(a, (size_t)(j * LD(m) + (7 * j + 3) % k), k + number());
    return a;
}

static void *definite(INT n)
{
    void *a = matrix(n, n);
    for (INT j = 0; j < n; j++)
        put(a, (size_t)(j * LD(n) + j), n + 1);
    return a;
}

/* ---- residuals, through vectors: y = op(A) x ---- */

enum kind { FULL, UNIT_LOWER, UPPER, LOWER, HERMITIAN_U, HERMITIAN_L };

static double complex element(const void *a, INT ld, enum kind kind, INT i, INT j)
{
    bool mirrored = kind == HERMITIAN_U ? i > j : kind == HERMITIAN_L && i < j;
    if ((kind == UPPER && i > j) || (kind == LOWER && i < j) ||
        (kind == UNIT_LOWER && i <= j))
        return kind == UNIT_LOWER && i == j;
    return mirrored ? conj(get(a, (size_t)(i * ld + j))) : get(a, (size_t)(j * ld + i));
}

static void apply(const void *a, INT ld, enum kind kind, char trans, INT m, INT n,
                  const double complex *x, double complex *y)
{
    INT rows = trans == 'N' ? m : n, cols = trans == 'N' ? n : m;
    for (INT i = 0; i < rows; i++) {
        y[i] = 0;
        for (INT j = 0; j < cols; j++) {
            double complex e =
                trans == 'N' ? element(a, ld, kind, i, j) : element(a, ld, kind, j, i);
            y[i] += (trans == 'C' ? conj(e) : e) * x[j];
        }
    }
}

enum { MOST = 256 };
static double complex x[MOST], y[MOST], z[MOST];

static void new_x(INT n)
{
    for (INT i = 0; i < n; i++)
        x[i] = number();
}

static double difference(INT n, double scale)
{
    double worst = 0, eps = p == BL_S || p == BL_C ? 0x1p-24 : 0x1p-53;
    for (INT i = 0; i < n; i++) {
        double d = cabs(y[i] - z[i]);
        worst = d > worst || d != d ? d : worst;
    }
    return worst / (eps * scale);
}

/* op(A) X = B, every column. */
static double of_solve(const void *a, enum kind kind, char trans, INT n, INT r,
                       const void *b, const void *b0)
{
    double worst = 0;
    for (INT c = 0; c < r; c++) {
        for (INT i = 0; i < n; i++) {
            x[i] = get(b, (size_t)(c * LD(n) + i));
            z[i] = get(b0, (size_t)(c * LD(n) + i));
        }
        apply(a, LD(n), kind, trans, n, n, x, y);
        double d = difference(n, (double)n);
        worst = d > worst || d != d ? d : worst;
    }
    return worst;
}

static double of_lu(const void *a, const void *lu, const INT *ipiv, INT m, INT n)
{
    INT k = m < n ? m : n;
    new_x(n);
    apply(lu, LD(m), UPPER, 'N', k, n, x, y);
    apply(lu, LD(m), UNIT_LOWER, 'N', m, k, y, z);
    for (INT i = k; i-- > 0;) {
        if (ipiv[i] < 1 || ipiv[i] > m)
            return 1e300;
        double complex swap = z[i];
        z[i] = z[ipiv[i] - 1];
        z[ipiv[i] - 1] = swap;
    }
    apply(a, LD(m), FULL, 'N', m, n, x, y);
    return difference(m, (double)n * (double)n);
}

static double of_cholesky(const void *a, const void *f, char uplo, INT n)
{
    bool up = uplo == 'U';
    new_x(n);
    apply(f, LD(n), up ? UPPER : LOWER, up ? 'N' : 'C', n, n, x, y);
    apply(f, LD(n), up ? UPPER : LOWER, up ? 'C' : 'N', n, n, y, z);
    apply(a, LD(n), up ? HERMITIAN_U : HERMITIAN_L, 'N', n, n, x, y);
    return difference(n, (double)n * (double)n);
}

static double of_inverse(const void *a, const void *inverse, enum kind kind, INT n)
{
    new_x(n);
    apply(inverse, LD(n), kind, 'N', n, n, x, z);
    apply(a, LD(n), kind, 'N', n, n, z, y);
    memcpy(z, x, sizeof z);
    return difference(n, (double)n);
}

/* ---- the lines ---- */

static uint64_t hash(uint64_t h, const void *a, size_t size)
{
    for (size_t i = 0; a && i < size; i++)
        h = (h ^ ((const unsigned char *)a)[i]) * 1099511628211u;
    return h;
}

static void say(enum bl_routine_id r, const char *what, INT m, INT n, INT info,
                const INT *ipiv, const void *a, const void *b, INT nrhs, double residual)
{
    uint64_t bits = hash(hash(1469598103934665603u, a, a ? bytes(m, n) : 0), b,
                         b ? bytes(n, nrhs) : 0);
    uint64_t pivots = 1469598103934665603u;
    for (INT i = 0; ipiv && i < (m < n ? m : n); i++)
        pivots = hash(pivots, &(int64_t){ipiv[i]}, sizeof(int64_t));
    printf("%c%s %s m=%d n=%d info=%d ipiv=%016llx bits=%016llx residual ", "sdcz"[p],
           bl_routines[r].name, what, (int)m, (int)n, (int)info,
           (unsigned long long)pivots, (unsigned long long)bits);
    if (residual < 30)
        puts("small");
    else
        printf("LARGE %g\n", residual);
}

static void factor(INT m, INT n)
{
    void *a = general(m, n), *lu = copy(a, m, n);
    INT info = -9, ld = LD(m), ipiv[MOST];
    call(BL_GETRF, &m, &n, lu, &ld, ipiv, &info);
    say(BL_GETRF, "-", m, n, info, ipiv, lu, NULL, 0, of_lu(a, lu, ipiv, m, n));
    free(a);
    free(lu);
}

static void lu(INT n)
{
    INT info = -9, ld = LD(n), nrhs = 3, ipiv[MOST], lwork;
    void *a = general(n, n), *b0 = matrix(n, nrhs), *f = copy(a, n, n);
    void *b = copy(b0, n, nrhs);
    call(BL_GESV, &n, &nrhs, f, &ld, ipiv, b, &ld, &info);
    say(BL_GESV, "-", n, n, info, ipiv, f, b, nrhs,
        of_solve(a, FULL, 'N', n, nrhs, b, b0));
    for (const char *t = "NTC"; *t; t++) {
        memcpy(b, b0, bytes(n, nrhs));
        call(BL_GETRS, t, &n, &nrhs, f, &ld, ipiv, b, &ld, &info);
        say(BL_GETRS, (char[]){*t, 0}, n, n, info, ipiv, f, b, nrhs,
            of_solve(a, FULL, *t, n, nrhs, b, b0));
    }
    void *inverse = copy(f, n, n), *work = matrix(n, 64);
    for (lwork = n; lwork <= 64 * n; lwork *= 64) {
        memcpy(inverse, f, bytes(n, n));
        call(BL_GETRI, &n, inverse, &ld, ipiv, work, &lwork, &info);
        say(BL_GETRI, lwork == n ? "1" : "64", n, n, info, ipiv, inverse, NULL, 0,
            of_inverse(a, inverse, FULL, n));
    }
    lwork = -1;
    call(BL_GETRI, &n, inverse, &ld, ipiv, work, &lwork, &info);

    /* A column of zeros stays one: INFO is its number. */
    INT zero = n / 2;
    memcpy(f, a, bytes(n, n));
    for (INT i = 0; i < n; i++)
        put(f, (size_t)(zero * ld + i), 0);
    call(BL_GETRF, &n, &n, f, &ld, ipiv, &info);
    say(BL_GETRF, "singular", n, n, info, NULL, NULL, NULL, 0, info == zero + 1 ? 0 : 99);
    free(a);
    free(f);
    free(b);
    free(b0);
    free(work);
    free(inverse);
}

static void cholesky(INT n, char uplo)
{
    enum kind whole = uplo == 'U' ? HERMITIAN_U : HERMITIAN_L;
    char what[] = {uplo, 0};
    INT info = -9, ld = LD(n), nrhs = 3;
    void *a = definite(n), *b0 = matrix(n, nrhs), *f = copy(a, n, n);
    void *b = copy(b0, n, nrhs), *g = copy(a, n, n);
    call(BL_POSV, &uplo, &n, &nrhs, f, &ld, b, &ld, &info);
    say(BL_POSV, what, n, n, info, NULL, f, b, nrhs,
        of_solve(a, whole, 'N', n, nrhs, b, b0));
    call(BL_POTRF, &uplo, &n, g, &ld, &info);
    say(BL_POTRF, what, n, n, info, NULL, g, NULL, 0, of_cholesky(a, g, uplo, n));
    memcpy(b, b0, bytes(n, nrhs));
    call(BL_POTRS, &uplo, &n, &nrhs, g, &ld, b, &ld, &info);
    say(BL_POTRS, what, n, n, info, NULL, g, b, nrhs,
        of_solve(a, whole, 'N', n, nrhs, b, b0));
    call(BL_POTRI, &uplo, &n, g, &ld, &info);
    say(BL_POTRI, what, n, n, info, NULL, g, NULL, 0, of_inverse(a, g, whole, n));
    memcpy(f, a, bytes(n, n));
    put(f, (size_t)((n / 2) * ld + n / 2), -1);
    call(BL_POTRF, &uplo, &n, f, &ld, &info);
    say(BL_POTRF, "indefinite", n, n, info, NULL, NULL, NULL, 0,
        info == n / 2 + 1 ? 0 : 99);
    free(a);
    free(f);
    free(g);
    free(b);
    free(b0);
}

static int rows(void)
{
    static const INT sizes[] = {1, 2, 5, 16, 33, 64, 100, 200};
    for (p = 0; p < BL_PRECISIONS; p++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            INT n = sizes[i];
            lu(n);
            cholesky(n, 'U');
            cholesky(n, 'L');
            factor(n + 5, n);
            factor(n, n + 5);
        }
        for (int r = 0; r < BL_LAPACK_ROUTINES; r++)
            printf("calls %c%s %u\n", "sdcz"[p], bl_routines[r].name, calls[r][p]);
    }
    return 0;
}

/* ---- who touches the matrix? ---- */

static void *guarded, *toucher;
static size_t guarded_size;

static void touched(int signal, siginfo_t *info, void *context)
{
    char *at = info->si_addr;
    if (toucher || at < (char *)guarded || at >= (char *)guarded + guarded_size)
        _exit(signal);
    toucher = (void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    mprotect(guarded, guarded_size, PROT_READ | PROT_WRITE);
}

/* The identity is its own factor, and definite: every routine takes it. */
static int touch(void)
{
    INT n = 32, info = 0, ipiv[32], lwork = 64 * n;
    double b[32 * 32];
    static double work[64 * 32];
    char uplo = 'U', trans = 'N';
    guarded_size = sizeof(double) * (size_t)(n * n);
    guarded = mmap(NULL, guarded_size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV,
              &(struct sigaction){.sa_sigaction = touched, .sa_flags = SA_SIGINFO}, NULL);
    p = BL_D;
    for (int r = 0; r < BL_LAPACK_ROUTINES; r++) {
        void *v[BL_MAX_ARGS];
        for (unsigned i = 0; i < bl_routines[r].nargs; i++)
            switch (bl_routines[r].args[i]) {
            case 'u':
                v[i] = &uplo;
                break;
            case 't':
                v[i] = &trans;
                break;
            case 'a':
            case 'A':
                v[i] = guarded;
                break;
            case 'B':
                v[i] = b;
                break;
            case 'p':
            case 'P':
                v[i] = ipiv;
                break;
            case 'W':
                v[i] = work;
                break;
            case 'q':
                v[i] = &lwork;
                break;
            case 'i':
                v[i] = &info;
                break;
            default: /* m n r l */
                v[i] = &n;
            }
        for (INT i = 0; i < n; i++) {
            ipiv[i] = i + 1;
            for (INT j = 0; j < n; j++)
                ((double *)guarded)[i * n + j] = i == j;
        }
        for (INT k = 0; k < n * n; k++)
            b[k] = 1;
        toucher = NULL;
        mprotect(guarded, guarded_size, PROT_NONE);
        bl_call_lapack(routine[r][p], bl_routines[r].nargs, v);
        mprotect(guarded, guarded_size, PROT_READ | PROT_WRITE);
        Dl_info where = {0};
        dladdr(toucher, &where);
        printf("touch d%s info=%d %s\n", bl_routines[r].name, (int)info,
               where.dli_fname ? where.dli_fname : "nobody");
    }
    return 0;
}

static int loop(int times, INT n)
{
    p = BL_D;
    void *a = general(n, n), *b = matrix(n, n), *f = copy(a, n, n);
    INT info = -9, ld = LD(n), *ipiv = block(sizeof *ipiv * (size_t)n);
    for (int i = 0; i < times; i++) {
        memcpy(f, a, bytes(n, n));
        call(BL_GESV, &n, &n, f, &ld, ipiv, b, &ld, &info);
    }
    printf("loop info=%d\n", (int)info);
    free(a);
    free(b);
    free(f);
    free(ipiv);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "touch"))
        return touch();
    if (argc == 4 && !strcmp(argv[1], "loop"))
        return loop(atoi(argv[2]), (INT)atoi(argv[3]));
    return rows();
}
