/* What the correctness tests compare with: netlib LAPACK, loaded in a namespace of its
 * own so that its inner calls can never reach the library under test; and the means to
 * compare: by bits in the sense of README, "Exact and fast", or by residual.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arguments.h"
#include "reference.h"

/* ---- the table ---- */

static const char *const names[BL_ROUTINES][BL_PRECISIONS] = {
#define R_SDCZ(name, NAME, nargs, args) {"s" #name, "d" #name, "c" #name, "z" #name},
#define E_SDCZ(name, NAME, args) {"s" #name, "d" #name, "c" #name, "z" #name},
#include "routines.def"
};

bool routine_has(enum bl_routine_id r, char letter)
{
    return strchr(bl_routines[r].args, letter) != NULL;
}

const char *routine_name(enum bl_routine_id r, enum bl_precision p)
{
    return names[r][p];
}

/* ---- calls ---- */

static void call_by_letters(bl_fn *f, struct call *c)
{
    unsigned id = bl_id(c->routine, c->precision);
    struct arguments x = {.m = c->m,
                          .n = c->n,
                          .nrhs = c->nrhs,
                          .lda = c->lda,
                          .ldb = c->ldb,
                          .lwork = c->lwork,
                          .info = c->info,
                          .a = c->a,
                          .b = c->b,
                          .ipiv = c->ipiv,
                          .work = c->work};
    pack_arguments(&x, id);
    for (unsigned k = 0; k < x.count; k++) {
        const char letter = bl_row(id)->args[k];
        if (letter == 'u' || letter == 't')
            x.v[k] = (void *)(uintptr_t)(letter == 'u' ? c->uplo : c->trans);
    }
    bl_call_lapack(f, x.count, x.v);
    c->info = x.info;
}

static bl_fn *find(void *handle, enum bl_routine_id r, enum bl_precision p)
{
    char symbol[32];
    snprintf(symbol, sizeof symbol, "%s_", names[r][p]);
    void *found = dlsym(handle, symbol);
    bl_fn *f = NULL;
    memcpy(&f, &found, sizeof f);
    return f;
}

void entry_call(struct call *c)
{
    bl_fn *f = find(RTLD_DEFAULT, c->routine, c->precision);
    if (!f) {
        verdict("no such symbol in the process", "%s", names[c->routine][c->precision]);
        exit(1);
    }
    call_by_letters(f, c);
}

/* ---- netlib ---- */

static bl_fn *netlib[BL_LAPACK_ROUTINES][BL_PRECISIONS];

void reference_call(struct call *c)
{
    call_by_letters(netlib[c->routine][c->precision], c);
}

static bool unfit(const char *path, const char *why)
{
    printf("skip reference - %s: %s. Name a netlib 3.11 by BL_REFERENCE=FILE\n", path,
           why);
    fflush(stdout);
    return false;
}

bool reference_open(void)
{
    const char *path = getenv("BL_REFERENCE");
    if (!path || !*path)
        path = "liblapack.so.3";
    else if (!getenv(
                 "BATCHLAPACK_LAPACK")) /* forwarded calls have netlib's bits as well */
        setenv("BATCHLAPACK_LAPACK", path, 1);
    void *handle = dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return unfit(path, dlerror());
    if (dlsym(handle, "openblas_get_config") || dlsym(handle, "mkl_get_version") ||
        dlsym(handle, "bli_info_get_version_str"))
        return unfit(path, "it runs on another BLAS than netlib's");
    for (int r = 0; r < BL_LAPACK_ROUTINES; r++)
        for (int p = 0; p < BL_PRECISIONS; p++)
            if (!(netlib[r][p] =
                      find(handle, (enum bl_routine_id)r, (enum bl_precision)p)))
                return unfit(path, "it lacks a routine");
    void *symbol = dlsym(handle, "ilaver_");
    void (*ilaver)(int32_t *, int32_t *, int32_t *);
    memcpy(&ilaver, &symbol, sizeof ilaver);
    int32_t version[3] = {0, 0, 0};
    if (ilaver)
        ilaver(&version[0], &version[1], &version[2]);
    if (version[0] != 3 || version[1] != 11)
        return unfit(path, "it is not version 3.11");
    double a[] = {1, 3, 3, 9};
    int32_t ipiv[2];
    struct call fma = {.routine = BL_GETRF,
                       .precision = BL_D,
                       .m = 2,
                       .n = 2,
                       .lda = 2,
                       .a = a,
                       .ipiv = ipiv};
    reference_call(&fma);
    return fma.info == 2 || unfit(path, "it was built with fused multiply-add");
}

/* ---- comparison ---- */

static bool same_part(const char *x, const char *y, bool wide, bool zeros)
{
    if (memcmp(x, y, wide ? 8 : 4) == 0)
        return true;
    double a, b;
    float f, g;
    if (wide) {
        memcpy(&a, x, 8);
        memcpy(&b, y, 8);
    } else {
        memcpy(&f, x, 4);
        memcpy(&g, y, 4);
        a = (double)f;
        b = (double)g;
    }
    return (isnan(a) && isnan(b)) || (zeros && a == 0 && b == 0);
}

static bool same(const char *x, const char *y, enum bl_precision p, bool zeros)
{
    bool wide = is_double(p);
    return same_part(x, y, wide, zeros) &&
           (!is_complex(p) ||
            same_part(x + (wide ? 8 : 4), y + (wide ? 8 : 4), wide, zeros));
}

static void hex(char *out, size_t size, const char *x, enum bl_precision p)
{
    size_t word = is_double(p) ? 8 : 4, used = 0;
    for (size_t at = 0; at < element_bytes(p) && used < size; at += word) {
        uint64_t bits = 0;
        double value;
        float f;
        memcpy(&bits, x + at, word);
        memcpy(&f, x + at, 4);
        if (word == 8)
            memcpy(&value, x + at, 8);
        else
            value = (double)f;
        used += (size_t)snprintf(out + used, size - used, "%s%.9g=%0*llx", at ? "," : "",
                                 value, (int)(2 * word), (unsigned long long)bits);
    }
}

static void describe(char *out, size_t size, int64_t i, int64_t j, const char *got,
                     const char *want, enum bl_precision p, const char *what)
{
    char g[96], w[96];
    hex(g, sizeof g, got, p);
    hex(w, sizeof w, want, p);
    snprintf(out, size, "element (%lld,%lld) is %s, %s %s", (long long)i + 1,
             (long long)j + 1, g, what, w);
}

int64_t differing(const struct matrix *got, const struct matrix *want, char triangle,
                  int64_t minor, bool zeros, char *first, size_t size)
{
    int64_t count = 0;
    for (int64_t j = 0; j < got->cols; j++)
        for (int64_t i = 0; i < got->rows; i++) {
            if (!in_triangle(triangle, i, j) ||
                (minor >= 0 && (i >= minor || j >= minor)))
                continue;
            const char *g = matrix_at(got, i, j), *w = matrix_at(want, i, j);
            if (!same(g, w, got->precision, zeros) && count++ == 0)
                describe(first, size, i, j, g, w, got->precision, "netlib's is");
        }
    return count;
}

int64_t touched(const struct matrix *got, const struct matrix *before, char triangle,
                char *first, size_t size)
{
    int64_t count = 0;
    size_t bytes = element_bytes(got->precision);
    for (int64_t j = 0; j <= got->cols; j++) {
        int64_t rows = j < got->cols ? got->ld : got->tail;
        for (int64_t i = 0; i < rows; i++) {
            if (j < got->cols && i < got->rows && in_triangle(triangle, i, j))
                continue;
            const char *g = matrix_at(got, i, j), *b = matrix_at(before, i, j);
            if (memcmp(g, b, bytes) != 0 && count++ == 0)
                describe(first, size, i, j, g, b, got->precision, "untouched it was");
        }
    }
    return count;
}

static bool same_unless_finite(const char *x, const char *y, bool wide)
{
    double a, b;
    float f, g;
    memcpy(&f, x, 4);
    memcpy(&g, y, 4);
    a = (double)f;
    b = (double)g;
    if (wide) {
        memcpy(&a, x, 8);
        memcpy(&b, y, 8);
    }
    return (isfinite(a) && isfinite(b)) || same_part(x, y, wide, false);
}

int64_t misplaced(const struct matrix *got, const struct matrix *want, char *first,
                  size_t size)
{
    int64_t count = 0;
    enum bl_precision p = got->precision;
    bool wide = is_double(p);
    for (int64_t j = 0; j < got->cols; j++)
        for (int64_t i = 0; i < got->rows; i++) {
            const char *g = matrix_at(got, i, j), *w = matrix_at(want, i, j);
            bool good = same_unless_finite(g, w, wide);
            if (is_complex(p) && good)
                good = same_unless_finite(g + (wide ? 8 : 4), w + (wide ? 8 : 4), wide);
            if (!good && count++ == 0)
                describe(first, size, i, j, g, w, p, "netlib's is");
        }
    return count;
}

bool holds_negative_zero(const struct matrix *a, char triangle)
{
    for (int64_t j = 0; j < a->cols; j++)
        for (int64_t i = 0; i < a->rows; i++) {
            if (!in_triangle(triangle, i, j))
                continue;
            long double complex x = matrix_get(a, i, j);
            if ((creall(x) == 0 && signbit(creall(x))) ||
                (is_complex(a->precision) && cimagl(x) == 0 && signbit(cimagl(x))))
                return true;
        }
    return false;
}

bool is_finite(const struct matrix *a, char triangle)
{
    for (int64_t j = 0; j < a->cols; j++)
        for (int64_t i = 0; i < a->rows; i++) {
            long double complex x = matrix_get(a, i, j);
            if (in_triangle(triangle, i, j) &&
                !(isfinite(creall(x)) && isfinite(cimagl(x))))
                return false;
        }
    return true;
}

/* ---- residuals ---- */

/* Element (i, j) of op(A), where A may be Hermitian with one triangle stored. */
static long double complex element(const struct matrix *a, char triangle, char trans,
                                   int64_t i, int64_t j)
{
    if (triangle) {
        if (i == j)
            return creall(matrix_get(a, i, i));
        return in_triangle(triangle, i, j) ? matrix_get(a, i, j)
                                           : conjl(matrix_get(a, j, i));
    }
    if (trans == 'N')
        return matrix_get(a, i, j);
    long double complex x = matrix_get(a, j, i);
    return trans == 'C' ? conjl(x) : x;
}

static long double size_of(long double complex x)
{
    return fabsl(creall(x)) + fabsl(cimagl(x));
}

static long double largest(const long double complex *x, int64_t n)
{
    long double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = size_of(x[i]) > most || isnan(size_of(x[i])) ? size_of(x[i]) : most;
    return most;
}

/* y = op(A) x; returns the largest row sum. */
static long double apply(const struct matrix *a, char triangle, char trans,
                         const long double complex *x, long double complex *y)
{
    long double norm = 0;
    for (int64_t i = 0; i < a->cols; i++) {
        long double sum = 0;
        y[i] = 0;
        for (int64_t j = 0; j < a->cols; j++) {
            long double complex e = element(a, triangle, trans, i, j);
            sum += size_of(e);
            y[i] += CMPLXL(creall(e) * creall(x[j]) - cimagl(e) * cimagl(x[j]),
                           creall(e) * cimagl(x[j]) + cimagl(e) * creall(x[j]));
        }
        norm = sum > norm ? sum : norm;
    }
    return norm;
}

static long double complex *vector(int64_t n)
{
    long double complex *v = calloc((size_t)n + 1, sizeof *v);
    if (!v)
        abort();
    return v;
}

double inverse_residual(const struct matrix *a, const struct matrix *x, char triangle)
{
    int64_t n = a->cols;
    struct rng r = {4711};
    long double complex *v = vector(n), *y = vector(n), *z = vector(n);
    for (int64_t i = 0; i < n; i++)
        v[i] = rng_unit(&r);
    long double norm = apply(a, triangle, 'N', v, y);
    norm *= apply(x, triangle, 'N', y, z);
    norm *= largest(v, n);
    for (int64_t i = 0; i < n; i++)
        z[i] -= v[i];
    long double error = largest(z, n);
    free(v);
    free(y);
    free(z);
    return (double)(error / (norm * (long double)n * epsilon_of(a->precision)));
}

static long double complex times(long double complex x, long double complex y)
{
    return CMPLXL(creall(x) * creall(y) - cimagl(x) * cimagl(y),
                  creall(x) * cimagl(y) + cimagl(x) * creall(y));
}

double factor_residual(const struct matrix *a, char triangle, const struct matrix *f)
{
    const bool lower = triangle == 'L';
    int64_t n = a->cols;
    struct rng r = {4711};
    long double complex *v = vector(n), *y = vector(n), *z = vector(n);
    for (int64_t i = 0; i < n; i++)
        v[i] = rng_unit(&r);
    long double norm = apply(a, triangle, 'N', v, y) * largest(v, n);
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = k; i < n; i++) {
            long double complex l =
                lower ? matrix_get(f, i, k) : conjl(matrix_get(f, k, i));
            z[k] += times(conjl(l), v[i]);
        }
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k <= i; k++) {
            long double complex l =
                lower ? matrix_get(f, i, k) : conjl(matrix_get(f, k, i));
            y[i] -= times(l, z[k]);
        }
    long double error = largest(y, n);
    free(v);
    free(y);
    free(z);
    return error == 0
               ? 0
               : (double)(error / (norm * (long double)n * epsilon_of(a->precision)));
}

double lu_residual(const struct matrix *a, const struct matrix *lu, const int64_t *ipiv)
{
    const int64_t m = a->rows, n = a->cols, k = m < n ? m : n;
    long double complex *const y = calloc((size_t)m, sizeof *y), *const z =
                                                                     calloc((size_t)m,
                                                                            sizeof *z);
    long double off = 0, size = 0, size_x = 0;
    for (int64_t j = 0; j < n; j++) {
        const long double x = cosl(3.7L * (long double)j);
        long double sum = 0;
        for (int64_t i = 0; i < m; i++) {
            y[i] += matrix_get(a, i, j) * x;
            sum += cabsl(matrix_get(a, i, j));
            if (i <= j && i < k)
                z[i] += matrix_get(lu, i, j) * x;
        }
        size = fmaxl(size, sum);
        size_x += fabsl(x);
    }
    for (int64_t j = k - 1; j >= 0; j--)
        for (int64_t i = j + 1; i < m; i++)
            z[i] += matrix_get(lu, i, j) * z[j];
    for (int64_t j = 0; j < k; j++) {
        const long double complex t = y[j];
        y[j] = y[ipiv[j] - 1];
        y[ipiv[j] - 1] = t;
    }
    for (int64_t i = 0; i < m; i++)
        off += cabsl(y[i] - z[i]);
    free(y);
    free(z);
    const double ratio =
        (double)(off / (size * size_x * (long double)n) / epsilon_of(a->precision));
    return ratio >= 0 ? ratio : size == 0 ? 0 : -1;
}

/* At most this many columns of a solve are looked at, evenly spread. */
#define COLUMNS 6

double solve_residual(const struct matrix *a, char triangle, char trans,
                      const struct matrix *b, const struct matrix *x)
{
    int64_t n = a->cols, step = b->cols / COLUMNS + 1;
    long double worst = 0;
    long double complex *v = vector(n), *y = vector(n);
    for (int64_t j = 0; j < b->cols; j += step) {
        for (int64_t i = 0; i < n; i++)
            v[i] = matrix_get(x, i, j);
        long double norm = apply(a, triangle, trans, v, y) * largest(v, n);
        for (int64_t i = 0; i < n; i++)
            y[i] -= matrix_get(b, i, j);
        long double residual = largest(y, n);
        residual = residual == 0 ? 0 : residual / (norm * epsilon_of(a->precision));
        worst = residual > worst || isnan(residual) ? residual : worst;
    }
    free(v);
    free(y);
    return (double)worst;
}

/* ---- lines of result ---- */

static _Atomic int failed;

void verdict(const char *why, const char *format, ...)
{
    char name[256];
    va_list ap;
    va_start(ap, format);
    vsnprintf(name, sizeof name, format, ap);
    va_end(ap);
    if (*why) {
        atomic_fetch_add(&failed, 1);
        printf("not ok %s - %s\n", name, why);
    } else {
        printf("ok %s\n", name);
    }
    fflush(stdout);
}

int failures(void)
{
    return atomic_load(&failed);
}

void fail(char why[WHY_ROOM], const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    if (!*why)
        vsnprintf(why, WHY_ROOM, format, ap);
    va_end(ap);
}

/* ---- served by the engine? ---- */

#define RERUN "BL_TEST_RERUN"

const char *rerun_name(void)
{
    return getenv(RERUN);
}

/* "   12 on the CPU: why" is a call that the engine did not serve. Some are not meant to
 * be. */
static bool unserved(const char *line)
{
    static const char *const meant[] = {"workspace query", "empty", "illegal argument",
                                        "mode cpu", "NaN or infinity"};
    const char *reason = strstr(line, "on the CPU: ");
    for (size_t i = 0; reason && i < sizeof meant / sizeof *meant; i++)
        if (strstr(reason, meant[i]))
            return false;
    return reason != NULL;
}

_Noreturn static void second_run(char **argv, int out, const char *name, const char *mode,
                                 const char *arithmetic)
{
    dup2(out, 2);
    close(out);
    setenv("BATCHLAPACK_MODE", mode, 1);
    setenv("BATCHLAPACK_ARITHMETIC", arithmetic, 1);
    setenv("BATCHLAPACK_REPORT", "1", 1);
    setenv(RERUN, name, 1);
    unsetenv("BATCHLAPACK_VERBOSE");
    execv("/proc/self/exe", argv);
    _exit(127);
}

bool rerun_served(char **argv, const char *name, const char *mode, const char *arithmetic)
{
    int ends[2], status = -1;
    fflush(stdout);
    if (pipe(ends) != 0)
        abort();
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        second_run(argv, ends[1], name, mode, arithmetic);
    }
    close(ends[1]);
    FILE *f = fdopen(ends[0], "r");
    char line[1024], why[1024] = "no report: the library was not called or did not end";
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        printf("# %s\n", line);
        if (strstr(line, "no GPU used") || unserved(line))
            snprintf(why, sizeof why, "%s", line + strspn(line, " "));
        else if (strncmp(line, "batchlapack ", 12) == 0)
            *why = 0;
    }
    if (f)
        fclose(f);
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        snprintf(why, sizeof why, "killed by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) > 1)
        snprintf(why, sizeof why, "exit status %d", WEXITSTATUS(status));
    verdict(why, "%s-served-by-the-engine", name);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- threads ---- */

struct crew {
    void (*f)(int64_t item, void *data);
    void *data;
    int64_t count;
    _Atomic int64_t next;
};

static void *work(void *arg)
{
    struct crew *c = arg;
    int64_t item;
    while ((item = atomic_fetch_add(&c->next, 1)) < c->count)
        c->f(item, c->data);
    return NULL;
}

void in_parallel(int64_t count, void (*f)(int64_t item, void *data), void *data)
{
    enum { MOST = 64 };
    struct crew crew = {f, data, count, 0};
    pthread_t threads[MOST];
    long processors = sysconf(_SC_NPROCESSORS_ONLN), started = 0;
    while (started < processors && started < MOST &&
           pthread_create(&threads[started], NULL, work, &crew) == 0)
        started++;
    if (!started)
        work(&crew);
    for (long t = 0; t < started; t++)
        pthread_join(threads[t], NULL);
}
