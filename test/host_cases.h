/* What the tests of kernels/ on the host have in common: matrices of every kind, a case
 * with our and netlib's copies of it, lines of result. For host_kernels.cc,
 * host_tiny_cholesky.cc and host_mid_cholesky.cc, whose headers come first.
 */
#ifndef HOST_CASES_H
#define HOST_CASES_H

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <algorithm>
#include <complex>
#include <random>
#include <string>
#include <vector>
#include "engine.h"
#include "problem.cuh"

using namespace bl;

namespace
{

void *lapack;
int failed, passed;
std::mt19937_64 dice(20240611);

enum Kind {
    RANDOM,
    INTEGERS,
    LOW_RANK,
    TIED,
    ZEROS,
    NAN_IN,
    INF_IN,
    MINUS_ZERO,
    TINY,
    HUGE_,
    EDGE,
    KINDS
};
const char *const kind_names[] = {"random", "integers", "low rank",     "tied",
                                  "zeros",  "NaN",      "Inf",          "-0",
                                  "tiny",   "huge",     "edge of sfmin"};

template <class T>
struct Name;
template <>
struct Name<float> {
    static constexpr enum bl_precision precision = BL_S;
    static constexpr char letter = 's';
};
template <>
struct Name<double> {
    static constexpr enum bl_precision precision = BL_D;
    static constexpr char letter = 'd';
};
template <>
struct Name<Complex<float>> {
    static constexpr enum bl_precision precision = BL_C;
    static constexpr char letter = 'c';
};
template <>
struct Name<Complex<double>> {
    static constexpr enum bl_precision precision = BL_Z;
    static constexpr char letter = 'z';
};

int below(int n)
{
    return int(dice() % uint64_t(n));
}

double uniform()
{
    return double(int64_t(dice()) >> 11) * 0x1p-52;
}

template <class T>
using Array = std::vector<T>;

template <class T>
Real<T> *parts(T *p)
{
    return (Real<T> *)p;
}

template <class T>
constexpr int width = Traits<T>::complex ? 2 : 1;

const double POISON = -77;

/* An ld x n array whose first m rows are of the kind, the rest poison. */
template <class T>
Array<T> matrix(Kind kind, int m, int n, int ld)
{
    using R = Real<T>;
    const R tiny = sfmin<R>(), eps = sizeof(R) == 4 ? R(0x1p-23) : R(0x1p-52);
    Array<T> a(size_t(ld) * n + 1);
    R *p = parts(a.data());
    for (size_t i = 0; i < a.size() * width<T>; i++)
        p[i] = R(POISON);
    int rank = 1 + below(3);
    std::vector<int> left(m * rank), right(n * rank);
    for (int &x : left)
        x = below(7) - 3;
    for (int &x : right)
        x = below(7) - 3;
    int rare = 2 + m * n / 3;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++)
            for (int w = 0; w < width<T>; w++) {
                R x = R(uniform());
                switch (kind) {
                case INTEGERS:
                    x = R(below(5) - 2);
                    break;
                case LOW_RANK: {
                    int sum = 0;
                    for (int r = 0; r < rank; r++)
                        sum += left[i * rank + r] * right[j * rank + r];
                    x = R(w ? below(2) * 0 : sum);
                    break;
                }
                case TIED:
                    x = R(below(2) ? 1 : -1);
                    break;
                case ZEROS:
                    x = below(3) ? 0 : R(below(3));
                    break;
                case NAN_IN:
                    x = below(rare) ? (below(4) ? x : 0) : R(NAN);
                    break;
                case INF_IN:
                    x = below(rare) ? (below(4) ? x : 0)
                                    : R(below(2) ? INFINITY : -INFINITY);
                    break;
                case MINUS_ZERO:
                    x = below(3) ? R(below(3) - 1) : R(-0.0);
                    break;
                case TINY:
                    x = x * tiny * R(below(3) ? 0x1p-8 : 1);
                    break;
                case HUGE_:
                    x = below(2) ? x : x / tiny / 2;
                    break;
                case EDGE: /* moduli next to sfmin, among elements that are not larger */
                    x = tiny * (1 - R(below(5)) * eps * R(0.5));
                    if (width<T> == 2)
                        x = w ? R(below(3)) * tiny * eps : x;
                    break;
                default:
                    break;
                }
                p[(size_t(j) * ld + i) * width<T> + w] = x;
            }
    return a;
}

/* Hermitian and mostly positive definite, the other triangle poison (NaN one time in
 * two), the diagonal with an imaginary part that LAPACK ignores. */
template <class T>
Array<T> definite(Kind kind, bool upper, int n, int ld)
{
    using R = Real<T>;
    Array<T> a = matrix<T>(kind, n, n, ld);
    R *p = parts(a.data());
    R other = below(2) ? R(NAN) : R(POISON);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            R *x = &p[(size_t(j) * ld + i) * width<T>];
            if (upper ? i > j : i < j)
                for (int w = 0; w < width<T>; w++)
                    x[w] = other;
            if (i == j && kind <= LOW_RANK)
                x[0] = R(kind == RANDOM ? n + 1 : n * 4);
            else if (i == j && kind != TINY && kind != HUGE_ && below(n + 1))
                x[0] = R(fabs(x[0]) + 3 * n);
            else if (i == j)
                x[0] = R(fabs(x[0]));
        }
    if (kind == LOW_RANK || (kind == INTEGERS && below(2)))
        p[(size_t(ld) + 1) * below(n) * width<T>] = R(below(3) - 1);
    return a;
}

template <class R>
bool same(R x, R y, bool any_zero)
{
    return memcmp(&x, &y, sizeof x) == 0 || (x != x && y != y) ||
           (any_zero && x == 0 && y == 0);
}

/* What one routine in one precision has shown. */
struct Report {
    std::string name;
    long cases = 0, bad = 0;
    std::string first;

    explicit Report(std::string n) : name(n)
    {
    }
    ~Report()
    {
        if (bad)
            printf("not ok %s: %ld of %ld cases differ, the first: %s\n", name.c_str(),
                   bad, cases, first.c_str());
        else
            printf("ok %s: %ld cases\n", name.c_str(), cases);
        fflush(stdout);
        (bad ? failed : passed)++;
    }
    void count(bool good, const std::string &what)
    {
        cases++;
        if (!good && bad++ == 0)
            first = what;
    }
};

std::string text(const char *format, ...)
{
    char s[300];
    va_list list;
    va_start(list, format);
    vsnprintf(s, sizeof s, format, list);
    va_end(list);
    return s;
}

template <class T>
std::string difference(const char *what, const Array<T> &ours, const Array<T> &theirs,
                       int ld, bool any_zero)
{
    const Real<T> *x = (const Real<T> *)ours.data(), *y = (const Real<T> *)theirs.data();
    long count = 0;
    std::string first;
    for (size_t i = 0; i < ours.size() * width<T>; i++)
        if (!same(x[i], y[i], any_zero) && count++ == 0)
            first = text("%s(%ld,%ld)%s = %.17g, not %.17g", what,
                         long(i / width<T> % ld + 1), long(i / width<T> / ld + 1),
                         i % width<T> ? "'" : "", double(x[i]), double(y[i]));
    return count ? first + text(", %ld such", count) : "";
}

/* A case: our copies and netlib's of A, B, IPIV. */
template <class T>
struct Case {
    int m, n, nrhs, lda, ldb;
    Kind kind;
    std::string label;
    Array<T> a, b, a0, b0, work;
    Array<int> ipiv, ipiv0;
    int info = 0, info0 = 0;
    Problem<T> p = {};

    Case(Kind k, int rows, int columns, int sides)
        : m(rows), n(columns), nrhs(sides), lda(rows + below(3)), ldb(columns + below(3)),
          kind(k)
    {
        label = text("%s m=%d n=%d nrhs=%d lda=%d", kind_names[k], m, n, nrhs, lda);
    }
    void pivots(bool given)
    {
        ipiv.assign(std::min(m, n) + 1, -99);
        for (int i = 0; given && i < n; i++)
            ipiv[i] = i + 1 + (below(2) ? below(n - i) : 0);
        ipiv0 = ipiv;
    }
    void ready()
    {
        a0 = a;
        b0 = b;
        work.resize(std::max<int64_t>(work_elements(n, 64), n * n) + 2 * n + m);
        p = {m,
             n,
             nrhs,
             64,
             0,
             0,
             a.data(),
             lda,
             b.data(),
             ldb,
             {ipiv.data(), 4, 0},
             work.data(),
             nullptr,
             0,
             nullptr,
             nullptr};
    }
    void judge(Report &report)
    {
        judge(report, kind == MINUS_ZERO);
    }
    void judge(Report &report, bool any_zero)
    {
        std::string d = difference("A", a, a0, lda, any_zero);
        if (d.empty() && !b.empty())
            d = difference("B", b, b0, ldb, any_zero);
        if (d.empty() && info != info0)
            d = text("INFO = %d, not %d", info, info0);
        for (size_t i = 0; d.empty() && i < ipiv.size(); i++)
            if (ipiv[i] != ipiv0[i])
                d = text("IPIV(%zu) = %d, not %d", i + 1, ipiv[i], ipiv0[i]);
        report.count(d.empty(), label + ": " + d);
    }
};

/* Where the operands of a batch of cases are, and its items, for a launch by pointers. */
template <class T>
struct Operands {
    std::vector<void *> a, b, ipiv, info;
    std::vector<bl_item> items;

    explicit Operands(std::vector<Case<T>> &cases)
    {
        for (size_t k = 0; k < cases.size(); k++) {
            Case<T> &c = cases[k];
            a.push_back(c.a.data());
            b.push_back(c.b.data());
            ipiv.push_back(c.ipiv.data());
            info.push_back(&c.info);
            items.push_back({int64_t(k), c.m, c.n, c.lda, c.ldb});
        }
    }
};

/* Infinities on the diagonal of A and elsewhere in the triangle: who takes a quotient
 * that is zero for a zero, which xTRSM leaves out, shows it. */
template <class T>
void make_quotients_zero(Case<T> &c, bool upper)
{
    const int k = below(c.n), i = upper ? below(k + 1) : k + below(c.n - k);
    c.a[k + k * size_t(c.lda)] = from_real<T>(INFINITY);
    c.a[i + k * size_t(c.lda)] = from_real<T>(INFINITY);
}

/* After INFO = k of a factorisation only the leading minor is meant: what lies beyond, in
 * the triangle, is made equal. */
template <class T>
void forget_beyond(Case<T> &c, bool upper)
{
    for (int j = 0; j < c.n; j++)
        for (int i = 0; i < c.n; i++)
            if (c.info0 > 0 && std::max(i, j) >= c.info0 - 1 && (upper ? i <= j : i >= j))
                c.a[i + size_t(j) * c.lda] = c.a0[i + size_t(j) * c.lda];
}

template <class T, class F>
F *netlib(const char *name)
{
    std::string symbol = std::string(1, Name<T>::letter) + name + "_";
    void *p = dlsym(lapack, symbol.c_str());
    if (!p) {
        printf("Bail out! no %s\n", symbol.c_str());
        exit(1);
    }
    return (F *)p;
}

template <class T>
std::string title(const char *name)
{
    return std::string(1, Name<T>::letter) + name;
}

/* netlib's library, or false and a line that says why there is none. */
bool open_lapack(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "liblapack.so.3";
    lapack = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lapack) {
        printf("Bail out! %s\n", dlerror());
        exit(1);
    }
    for (const char *mark : {"openblas_get_config", "MKL_Get_Version",
                             "bli_info_get_version_str", "ATL_buildinfo"})
        if (dlsym(lapack, mark)) {
            printf("skip %s - %s is not netlib's\n", argv[0], path);
            return false;
        }
    return true;
}

/* || A - L L' || / (n eps || A ||), of the first k rows and columns of a triangle. */
template <class T>
double factor_residual(bool upper, const Array<T> &a, const Array<T> &l, int lda, int k)
{
    auto at = [&](const Array<T> &x, int i, int j) {
        const Real<T> *p =
            (const Real<T> *)&x[upper ? j + i * size_t(lda) : i + j * size_t(lda)];
        return std::complex<long double>(p[0],
                                         width<T> == 2 && i != j ? p[width<T> - 1] : 0);
    };
    std::vector<long double> size(k), off(k);
    for (int i = 0; i < k; i++)
        for (int j = 0; j <= i; j++) {
            std::complex<long double> sum = at(a, i, j);
            size[j] += std::abs(sum);
            size[i] += i == j ? 0 : std::abs(sum);
            for (int q = 0; q <= j; q++)
                sum -= at(l, i, q) * std::conj(at(l, j, q));
            off[j] += std::abs(sum);
            off[i] += i == j ? 0 : std::abs(sum);
        }
    const long double most = *std::max_element(off.begin(), off.end()),
                      all = *std::max_element(size.begin(), size.end());
    return most == 0
               ? 0
               : double(most / all / k / (sizeof(Real<T>) == 4 ? 0x1p-24 : 0x1p-53));
}

/* Of a Cholesky factor in fast arithmetic, c.a, of `before`, beside netlib's, c.a0: the
 * residual, INFO, and what is not to be touched. */
template <class T>
void judge_by_residual(Case<T> &c, bool upper, const Array<T> &before, Report &report)
{
    const int good = c.info0 ? c.info0 - 1 : c.n;
    double ratio = 0, most = 5; /* LAPACK's own tests let 30 pass */
    if (c.info == c.info0 && good) {
        ratio = factor_residual<T>(upper, before, c.a, c.lda, good);
        most += 5 * factor_residual<T>(upper, before, c.a0, c.lda, good);
    }
    if (!(ratio < most))
        report.count(false, c.label + text(": residual %g of %g", ratio, most));
    for (int j = 0; j < c.n; j++)
        for (int i = 0; i < c.n; i++)
            if (upper ? i <= j : i >= j)
                c.a[i + size_t(j) * c.lda] = c.a0[i + size_t(j) * c.lda];
    c.judge(report);
}

/* A product with itself, its rows of ever smaller size: its condition is large. */
template <class T>
Array<T> graded(bool upper, int n, int lda)
{
    using R = Real<T>;
    using Number = std::complex<double>;
    Array<T> a = matrix<T>(RANDOM, n, n, lda);
    const Array<T> g = matrix<T>(RANDOM, n, n, n);
    auto at = [&](int i, int k) {
        const R *p = (const R *)&g[i + k * size_t(n)];
        return Number(p[0], width<T> == 2 ? p[width<T> - 1] : 0);
    };
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            Number sum = i == j ? (sizeof(R) == 4 ? 1e-3 : 1e-9) * n : 0;
            for (int k = 0; k < n; k++)
                sum += at(i, k) * std::conj(at(j, k));
            R *x = (R *)&a[upper ? j + i * size_t(lda) : i + j * size_t(lda)];
            x[0] = R(ldexp(sum.real(), -(i * 20 / n) - j * 20 / n));
            if (width<T> == 2)
                x[width<T> - 1] = R(ldexp(sum.imag(), -(i * 20 / n) - j * 20 / n));
        }
    return a;
}

/* Of a diagonal that is large for the most part: of a minor of two small elements and
 * what is as small beside them, rounding alone says whether it is positive. */
template <class T>
void keep_one_small(Array<T> &a, int n, int lda)
{
    bool any = false;
    for (int i = 0; i < n; i++) {
        T &x = a[i * size_t(lda + 1)];
        if (!(fabs(double(real(x))) < 2))
            continue;
        if (any)
            x = from_real<T>(3 * n);
        any = true;
    }
}

/* || A X - 1 || / (n eps || A || || X ||), both given by their elements. */
template <class T, class A, class X>
double inverse_residual(int n, const A &a, const X &x)
{
    long double size_a = 0, size_x = 0, most = 0;
    for (int j = 0; j < n; j++) {
        long double of_a = 0, of_x = 0, off = 0;
        for (int i = 0; i < n; i++) {
            std::complex<long double> sum = i == j ? -1 : 0;
            for (int k = 0; k < n; k++)
                sum += a(i, k) * x(k, j);
            off += std::abs(sum);
            of_a += std::abs(a(i, j));
            of_x += std::abs(x(i, j));
        }
        most = std::max(most, off);
        size_a = std::max(size_a, of_a);
        size_x = std::max(size_x, of_x);
    }
    return double(most / size_a / size_x / n /
                  (sizeof(Real<T>) == 4 ? 0x1p-24 : 0x1p-53));
}

/* The same of arrays; -1 where it or X is not finite. */
template <class T>
double residual(const Array<T> &a, int lda, const Array<T> &x, int ldx, int n)
{
    auto element = [](const Array<T> &m, int ld, int i, int j) {
        const Real<T> *p = (const Real<T> *)&m[i + size_t(j) * ld];
        return std::complex<long double>(p[0], width<T> == 2 ? p[width<T> - 1] : 0);
    };
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            if (!std::isfinite(std::abs(element(x, ldx, i, j))))
                return -1;
    const double r = inverse_residual<T>(
        n, [&](int i, int j) { return element(a, lda, i, j); },
        [&](int i, int j) { return element(x, ldx, i, j); });
    return std::isfinite(r) ? r : -1; /* zeros can be the inverse of infinities */
}

/* test(a number, the second argument or `preset`) for each of the four types of number;
 * what main() returns. */
template <class F>
int run_types(int argc, char **argv, int preset, const F &test)
{
    const int repeats = argc > 2 ? atoi(argv[2]) : preset;
    if (!open_lapack(argc, argv))
        return 0;
    test(float(), repeats);
    test(double(), repeats);
    test(Complex<float>(), repeats);
    test(Complex<double>(), repeats);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}

} // namespace
#endif
