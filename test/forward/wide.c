/* Calls by name, found with dlsym(RTLD_DEFAULT): the 64-bit spellings, the scipy_ ones,
 * and what the 32-bit ones do with 64-bit arguments. Usage: wide names | widths | unused
 * | magic [LIBRARY] | big NAME; IPIV and INFO stand between guard words.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t i64;
static int wrong;

typedef void fn9(void *, void *, void *, void *, void *, void *, void *, void *, void *);

static fn9 *find(const char *prefix, const char *name, const char *suffix)
{
    char symbol[64];
    fn9 *f;
    snprintf(symbol, sizeof symbol, "%s%s%s", prefix, name, suffix);
    void *p = dlsym(RTLD_DEFAULT, symbol);
    if (!p) {
        printf("no %s\n", symbol);
        exit(2);
    }
    memcpy(&f, &p, sizeof f);
    return f;
}

static void check(int right, const char *what, const char *prefix, const char *suffix)
{
    if (!right) {
        printf("%s (%s...%s) wrong\n", what, prefix, suffix);
        wrong++;
    }
}

#define GUARD 0x7a7a7a7a7a7a7a7a
#define CALL(name, ...) ((void (*)())find(prefix, name, suffix))(__VA_ARGS__)

static int guarded(const i64 *p, i64 first, i64 second)
{
    return p[0] == GUARD && p[1] == first && p[2] == second && p[3] == GUARD;
}

/* Every routine's 64-bit spelling: IPIV and INFO are whole 64-bit words. */
static void wide_routines(const char *prefix, const char *suffix)
{
    double a[4] = {0, 1, 2, 3}, b[2] = {2, 4}, c[4] = {4, 2, 99, 5}, work[16];
    double s[4] = {1, 3, 3, 9};
    i64 n = 2, one = 1, lwork = 16, query = -1;
    i64 ipiv[4] = {GUARD, GUARD, GUARD, GUARD}, info[3] = {GUARD, GUARD, GUARD};
    CALL("dgetrf", &n, &n, a, &n, ipiv + 1, info + 1);
    check(guarded(ipiv, 2, 2) && info[0] == GUARD && info[1] == 0 && info[2] == GUARD &&
              a[0] == 1 && a[1] == 0 && a[2] == 3 && a[3] == 2,
          "dgetrf", prefix, suffix);
    info[1] = GUARD;
    CALL("dgetrs", "N", &n, &one, a, &n, ipiv + 1, b, &n, info + 1, (size_t)1);
    check(info[1] == 0 && b[0] == 1 && b[1] == 1 && guarded(ipiv, 2, 2), "dgetrs", prefix,
          suffix);
    info[1] = GUARD;
    CALL("dgetri", &n, a, &n, ipiv + 1, work, &query, info + 1);
    check(info[1] == 0 && work[0] >= 2 && a[0] == 1, "dgetri query", prefix, suffix);
    info[1] = GUARD;
    CALL("dgetri", &n, a, &n, ipiv + 1, work, &lwork, info + 1);
    check(info[1] == 0 && a[0] == -1.5 && a[1] == .5 && a[2] == 1 && a[3] == 0, "dgetri",
          prefix, suffix);
    ipiv[1] = ipiv[2] = info[1] = GUARD;
    CALL("dgesv", &n, &one, s, &n, ipiv + 1, b, &n, info + 1);
    check(info[0] == GUARD && info[1] == 2 && info[2] == GUARD && guarded(ipiv, 2, 2),
          "dgesv of a singular matrix", prefix, suffix);
    info[1] = GUARD;
    CALL("dpotrf", "L", &n, c, &n, info + 1, (size_t)1);
    check(info[1] == 0 && c[0] == 2 && c[1] == 1 && c[2] == 99 && c[3] == 2, "dpotrf",
          prefix, suffix);
    c[0] = -1;
    CALL("dpotrf", "L", &n, c, &n, info + 1, (size_t)1);
    check(info[1] == 1 && info[2] == GUARD, "dpotrf of an indefinite one", prefix,
          suffix);
    /* 1 x 3: min(m, n) pivots. */
    double row[3] = {5, 2, 3};
    i64 three = 3;
    ipiv[1] = ipiv[2] = GUARD;
    CALL("dgetrf", &one, &three, row, &one, ipiv + 1, info + 1);
    check(guarded(ipiv, 1, GUARD) && info[1] == 0, "dgetrf of a row", prefix, suffix);
}

/* A 32-bit spelling reads and writes 32-bit words only. */
static void narrow_routines(const char *prefix, const char *suffix)
{
    double a[4] = {0, 1, 2, 3}, zeros[25] = {0}, row[3] = {5, 2, 3};
    i64 n = 0x100000002, five = 5, one = 1, three = 3, info = -1;
    int ipiv[8];
    memset(ipiv, 0x7a, sizeof ipiv);
    CALL("dgetrf", &n, &n, a, &n, ipiv + 1, &info);
    check(ipiv[0] == 0x7a7a7a7a && ipiv[1] == 2 && ipiv[2] == 2 &&
              ipiv[3] == 0x7a7a7a7a && info == (i64)0xffffffff00000000,
          "dgetrf with n = 0x100000002", prefix, suffix);
    info = -1;
    CALL("dgetrf", &five, &five, zeros, &five, ipiv + 1, &info);
    check(ipiv[5] == 5 && ipiv[6] == 0x7a7a7a7a && info == (i64)0xffffffff00000001,
          "dgetrf of zeros", prefix, suffix);
    memset(ipiv, 0x7a, sizeof ipiv);
    CALL("dgetrf", &one, &three, row, &one, ipiv + 1, &info);
    check(ipiv[1] == 1 && ipiv[2] == 0x7a7a7a7a, "dgetrf of a row", prefix, suffix);
}

/* Arguments that LAPACK does not look at in these calls may be anything. */
static void unused_arguments(const char *prefix, const char *suffix)
{
    double a[4] = {1, 0, 0, 1}, work[4] = {-1};
    i64 n = 2, none = 0, query = -1, info = -99;
    CALL("dgetri", &n, NULL, &n, NULL, work, &query, &info);
    check(info == 0 && work[0] >= 2, "dgetri query without IPIV", prefix, suffix);
    info = -99;
    CALL("dgetrs", "N", &n, &none, a, &n, NULL, NULL, &n, &info, (size_t)1);
    check(info == 0, "dgetrs without right-hand sides and IPIV", prefix, suffix);
    info = -99;
    CALL("dgetrf", &none, &n, NULL, &n, NULL, &info);
    check(info == 0, "dgetrf of nothing", prefix, suffix);
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    if (strcmp(command, "names") == 0) {
        wide_routines("", "_64_");
        wide_routines("scipy_", "_64_");
    } else if (strcmp(command, "widths") == 0) {
        narrow_routines("", "_");
        narrow_routines("scipy_", "_");
    } else if (strcmp(command, "unused") == 0) {
        unused_arguments("", "_64_");
        unused_arguments("scipy_", "_64_");
    } else if (strcmp(command, "magic") == 0) {
        double a[4] = {0, 1, 2, 3};
        i64 n = 2, ipiv[2] = {0, 0}, info = -99;
        if (argc > 2 && !dlopen(argv[2], RTLD_NOW | RTLD_LOCAL))
            return 2;
        find("", "dgetrf", "_64_")(&n, &n, a, &n, ipiv, &info, NULL, NULL, NULL);
        printf("%lld\n", (long long)info);
        return 0;
    } else if (strcmp(command, "big") == 0) {
        double a[4] = {0, 1, 2, 3};
        i64 n = 4294967298, ipiv[2] = {GUARD, GUARD}, info = GUARD;
        find("", argv[2], "")(&n, &n, a, &n, ipiv, &info, NULL, NULL, NULL);
        printf("came back, INFO %lld\n", (long long)info);
        return 0;
    } else
        return 2;
    printf("%d wrong\n", wrong);
    return 0;
}
