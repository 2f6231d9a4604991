/* LAPACKE's row- and column-major interface to every routine of the table, on a small
 * system with a known solution. Prints a line a call, with the bits of all that it wrote,
 * and at the end the number of calls; exits 1 when a value is wrong. Knows nothing of
 * batchlapack: suites.sh compares the lines with and without it.
 *
 * The part between #ifdef T and #else is compiled once a precision.
 */
#ifdef T

static void NAME(put)(T *a, int layout, int ld, int i, int j, T value)
{
    a[layout == LAPACK_ROW_MAJOR ? i * ld + j : j * ld + i] = value;
}

static T NAME(get)(const T *a, int layout, int ld, int i, int j)
{
    return a[layout == LAPACK_ROW_MAJOR ? i * ld + j : j * ld + i];
}

/* Small integers, not symmetric, with one row order that pivots: or Hermitian. */
static T NAME(entry)(bool hermitian, int i, int j)
{
    if (!hermitian)
        return (T)((i + 1) % N == j ? 9 : (i * 3 + j) % 4 - 1 + UNIT * ((i + 2 * j) % 3));
    if (i == j)
        return 20 + i;
    return (T)((i * j + i + j) % 4 + UNIT * (i < j ? i + j : -i - j));
}

static T NAME(solution)(int i, int c)
{
    return (T)(i - 2 * c + 1 + UNIT * (i + c));
}

static void NAME(fill)(T *a, int layout, bool hermitian)
{
    for (int k = 0; k < N * LDA; k++)
        a[k] = 77;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            NAME(put)(a, layout, LDA, i, j, NAME(entry)(hermitian, i, j));
}

/* B = op(A) X. */
static void NAME(fill_b)(T *b, int layout, bool hermitian, char trans)
{
    for (int k = 0; k < N * LDA; k++)
        b[k] = 77;
    for (int i = 0; i < N; i++)
        for (int c = 0; c < NRHS; c++) {
            T sum = 0;
            for (int k = 0; k < N; k++) {
                T e = trans == 'N' ? NAME(entry)(hermitian, i, k)
                                   : NAME(entry)(hermitian, k, i);
                sum += (trans == 'C' ? (T)conj(e) : e) * NAME(solution)(k, c);
            }
            NAME(put)(b, layout, LDB(layout), i, c, sum);
        }
}

static void NAME(say)(const char *what, int layout, char option, int info, const T *a,
                      const T *b, const lapack_int *ipiv)
{
    printf("%c%s %s %c info=%d", *TEXT(LETTER), what,
           layout == LAPACK_ROW_MAJOR ? "row" : "column", option, info);
    bits("a", a, sizeof *a * N * LDA);
    bits("b", b, sizeof *b * N * LDA);
    bits("ipiv", ipiv, sizeof *ipiv * N);
    puts("");
    calls++;
}

static void NAME(check)(const char *what, int layout, const T *b)
{
    for (int i = 0; i < N; i++)
        for (int c = 0; c < NRHS; c++)
            if (!(cabs(NAME(get)(b, layout, LDB(layout), i, c) - NAME(solution)(i, c)) <
                  TOLERANCE))
                wrong(TEXT(LETTER), what, layout);
}

/* A times its inverse; of a Hermitian one only the triangle that was asked for is there.
 */
static void NAME(check_inverse)(const char *what, int layout, const T *a, char uplo)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            T sum = 0;
            for (int k = 0; k < N; k++) {
                bool there = !uplo || (uplo == 'U' ? k <= j : k >= j);
                T e = there ? NAME(get)(a, layout, LDA, k, j)
                            : (T)conj(NAME(get)(a, layout, LDA, j, k));
                sum += NAME(entry)(uplo != 0, i, k) * e;
            }
            if (!(cabs(sum - (i == j)) < TOLERANCE))
                wrong(TEXT(LETTER), what, layout);
        }
}

static void NAME(all)(int layout)
{
    T a[N * LDA], b[N * LDA];
    lapack_int ipiv[N] = {0}, info;
    int ldb = LDB(layout);

    NAME(fill)(a, layout, false);
    NAME(fill_b)(b, layout, false, 'N');
    info = LAPACKE(gesv)(layout, N, NRHS, a, LDA, ipiv, b, ldb);
    NAME(say)("gesv", layout, '-', info, a, b, ipiv);
    NAME(check)("gesv", layout, b);
    NAME(fill)(a, layout, false);
    info = LAPACKE(getrf)(layout, N, N, a, LDA, ipiv);
    NAME(say)("getrf", layout, '-', info, a, b, ipiv);
    for (const char *trans = "NTC"; *trans; trans++) {
        NAME(fill_b)(b, layout, false, *trans);
        info = LAPACKE(getrs)(layout, *trans, N, NRHS, a, LDA, ipiv, b, ldb);
        NAME(say)("getrs", layout, *trans, info, a, b, ipiv);
        NAME(check)("getrs", layout, b);
    }
    info = LAPACKE(getri)(layout, N, a, LDA, ipiv);
    NAME(say)("getri", layout, '-', info, a, b, ipiv);
    NAME(check_inverse)("getri", layout, a, 0);

    for (const char *uplo = "UL"; *uplo; uplo++) {
        NAME(fill)(a, layout, true);
        NAME(fill_b)(b, layout, true, 'N');
        info = LAPACKE(posv)(layout, *uplo, N, NRHS, a, LDA, b, ldb);
        NAME(say)("posv", layout, *uplo, info, a, b, ipiv);
        NAME(check)("posv", layout, b);
        NAME(fill)(a, layout, true);
        info = LAPACKE(potrf)(layout, *uplo, N, a, LDA);
        NAME(say)("potrf", layout, *uplo, info, a, b, ipiv);
        NAME(fill_b)(b, layout, true, 'N');
        info = LAPACKE(potrs)(layout, *uplo, N, NRHS, a, LDA, b, ldb);
        NAME(say)("potrs", layout, *uplo, info, a, b, ipiv);
        NAME(check)("potrs", layout, b);
        info = LAPACKE(potri)(layout, *uplo, N, a, LDA);
        NAME(say)("potri", layout, *uplo, info, a, b, ipiv);
        NAME(check_inverse)("potri", layout, a, *uplo);

        NAME(fill)(a, layout, true);
        NAME(put)(a, layout, LDA, 3, 3, -1);
        info = LAPACKE(potrf)(layout, *uplo, N, a, LDA);
        NAME(say)("potrf", layout, *uplo, info, a, b, ipiv);
        if (info != 4)
            wrong(TEXT(LETTER), "potrf of an indefinite matrix", layout);
    }
    NAME(fill)(a, layout, false);
    for (int i = 0; i < N; i++)
        NAME(put)(a, layout, LDA, i, 2, 0);
    info = LAPACKE(getrf)(layout, N, N, a, LDA, ipiv);
    NAME(say)("getrf", layout, '-', info, a, b, ipiv);
    if (info != 3)
        wrong(TEXT(LETTER), "getrf of a singular matrix", layout);
}

#else
#    include <complex.h>
#    include <stdbool.h>
#    include <stdio.h>

#    include <lapacke.h>

enum { N = 6, NRHS = 3, LDA = N + 2 };
#    define LDB(layout) ((layout) == LAPACK_ROW_MAJOR ? NRHS + 1 : N + 1)
#    define JOIN(a, b) JOIN_(a, b)
#    define JOIN_(a, b) a##b
#    define NAME(name) JOIN(LETTER, JOIN(_, name))
#    define LAPACKE(name) JOIN(LAPACKE_, JOIN(LETTER, name))
#    define TEXT(x) TEXT_(x)
#    define TEXT_(x) #    x

static int calls, wrongs;

static void wrong(const char *letter, const char *what, int layout)
{
    printf("wrong: %s%s %s\n", letter, what,
           layout == LAPACK_ROW_MAJOR ? "row" : "column");
    wrongs++;
}

static void bits(const char *name, const void *p, size_t size)
{
    printf(" %s=", name);
    for (size_t i = 0; i < size; i++)
        printf("%02x", ((const unsigned char *)p)[i]);
}

#    define LETTER s
#    define T float
#    define UNIT 0
#    define TOLERANCE 1e-4
#    include "lapacke.c"
#    undef LETTER
#    undef T
#    undef TOLERANCE
#    define LETTER d
#    define T double
#    define TOLERANCE 1e-12
#    include "lapacke.c"
#    undef LETTER
#    undef T
#    undef UNIT
#    undef TOLERANCE
#    define LETTER c
#    define T lapack_complex_float
#    define UNIT I
#    define TOLERANCE 1e-4
#    include "lapacke.c"
#    undef LETTER
#    undef T
#    undef TOLERANCE
#    define LETTER z
#    define T lapack_complex_double
#    define TOLERANCE 1e-12
#    include "lapacke.c"

int main(void)
{
    for (int layout = LAPACK_ROW_MAJOR; layout <= LAPACK_COL_MAJOR; layout++) {
        s_all(layout);
        d_all(layout);
        c_all(layout);
        z_all(layout);
    }
    printf("calls %d\n", calls);
    return wrongs != 0;
}
#endif
