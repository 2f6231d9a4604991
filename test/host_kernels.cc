/* The CUDA engine's algorithms on the host, bit for bit against netlib.
 *
 * kernels' templates compile for a team of one thread, so that their arithmetic, order
 * and INFO are tested without a GPU; the tiles, barriers and launches are not in here.
 * The expected values come at run time from liblapack.so.3 (netlib 3.11, built without
 * FMA), with or without a path as the first argument. "Equal" is: the same bits, any two
 * NaNs, and, where the input holds a -0, zeros of any sign. Padding rows, the other
 * triangle and what follows IPIV are compared too.
 *
 * What LAPACK does not have is compared with textbook loops written here and with what
 * mathematics says, and src/host_lu.c with the kernels, all bits.
 */
#include <complex>
#include "lu.cuh"
#include "inverse.cuh"
#include "cholesky.cuh"
#include "plain.cuh"
#include "determinant.cuh"
#include "host_cases.h"
#include "host_textbook.h"
#include "host_lu.h"

namespace
{

std::vector<std::pair<int, int>> shapes()
{
    std::vector<std::pair<int, int>> s;
    for (int m = 1; m <= 12; m++)
        for (int n = 1; n <= 12; n++)
            s.push_back({m, n});
    for (int n : {31, 32, 33, 63, 64, 65, 66, 100, 129, 150}) {
        s.push_back({n, n});
        s.push_back({n, 1});
        s.push_back({1, n});
        s.push_back({n, 70});
        s.push_back({70, n});
        s.push_back({n + 60, n});
        s.push_back({n, n + 61});
    }
    s.push_back({5, 300});
    s.push_back({300, 5});
    return s;
}

const int orders[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,   10,  11,
                      12, 31, 32, 33, 63, 64, 65, 66, 100, 129, 150};

template <class T>
void test_getrf()
{
    auto f = netlib<T, void(int *, int *, T *, int *, int *, int *)>("getrf");
    Report report(title<T>("getrf"));
    Team team;
    for (auto [m, n] : shapes())
        for (int kind = 0; kind < KINDS; kind++) {
            Case<T> c(Kind(kind), m, n, 0);
            c.a = matrix<T>(c.kind, m, n, c.lda);
            c.pivots(false);
            c.ready();
            c.info = int(getrf(team, c.p));
            f(&c.m, &c.n, c.a0.data(), &c.lda, c.ipiv0.data(), &c.info0);
            c.judge(report);
        }
}

template <class T>
void test_getrs()
{
    auto f = netlib<T, void(const char *, int *, int *, const T *, int *, const int *,
                            T *, int *, int *, size_t)>("getrs");
    Report report(title<T>("getrs"));
    Team team;
    for (int n : orders)
        for (int kind = 0; kind < KINDS; kind++)
            for (const char *trans : {"N", "T", "C"})
                for (int nrhs : {0, 1, 3, 70}) {
                    Case<T> c(Kind(kind), n, n, nrhs);
                    /* The special values in A, in B or in both. */
                    int where = below(4);
                    c.a = matrix<T>(where % 2 ? RANDOM : c.kind, n, n, c.lda);
                    c.b = matrix<T>(where == 2 ? RANDOM : c.kind, n, nrhs, c.ldb);
                    if (where == 3)
                        make_quotients_zero(c, true);
                    c.label += text(" trans=%s where=%d", trans, where);
                    c.pivots(true);
                    c.ready();
                    c.p.trans = *trans;
                    c.info = int(getrs(team, c.p));
                    f(trans, &c.n, &c.nrhs, c.a0.data(), &c.lda, c.ipiv0.data(),
                      c.b0.data(), &c.ldb, &c.info0, 1);
                    c.judge(report);
                }
}

template <class T>
void test_gesv()
{
    auto f = netlib<T, void(int *, int *, T *, int *, int *, T *, int *, int *)>("gesv");
    Report report(title<T>("gesv"));
    Team team;
    for (int n : orders)
        for (int kind = 0; kind < KINDS; kind++)
            for (int nrhs : {0, 1, 3, 70}) {
                Case<T> c(Kind(kind), n, n, nrhs);
                c.a = matrix<T>(c.kind, n, n, c.lda);
                c.b = matrix<T>(c.kind, n, nrhs, c.ldb);
                c.pivots(false);
                c.ready();
                c.info = int(gesv(team, c.p));
                f(&c.n, &c.nrhs, c.a0.data(), &c.lda, c.ipiv0.data(), c.b0.data(), &c.ldb,
                  &c.info0);
                c.judge(report);
            }
}

template <class T>
void test_getri()
{
    auto f = netlib<T, void(int *, T *, int *, const int *, T *, int *, int *)>("getri");
    auto factor = netlib<T, void(int *, int *, T *, int *, int *, int *)>("getrf");
    Report report(title<T>("getri"));
    Team team;
    for (int n : orders)
        for (int kind = 0; kind < KINDS; kind++)
            for (int block : {1, 2, 3, 7, 16, 63, 64}) {
                Case<T> c(Kind(kind), n, n, 0);
                c.a = matrix<T>(c.kind, n, n, c.lda);
                c.label += text(" block=%d", block);
                c.pivots(true);
                if (below(2)) {
                    factor(&c.n, &c.n, c.a.data(), &c.lda, c.ipiv.data(), &c.info0);
                    c.ipiv0 = c.ipiv;
                }
                c.ready();
                c.p.block =
                    n <= 64 ? 64 : block; /* netlib's NB; LWORK limits it beyond */
                c.work.assign(work_elements(n, c.p.block), from_real<T>(0));
                c.p.work = c.work.data();
                int lwork = n * block;
                Array<T> work(lwork);
                c.info = int(getri(team, c.p));
                f(&c.n, c.a0.data(), &c.lda, c.ipiv0.data(), work.data(), &lwork,
                  &c.info0);
                c.judge(report);
            }
}

/* The two routines whose arguments are UPLO, N, A, LDA, INFO. */
template <class T>
void test_in_place(const char *name, int64_t (*ours)(Team &, const Problem<T> &))
{
    auto f = netlib<T, void(const char *, int *, T *, int *, int *, size_t)>(name);
    Report report(title<T>(name));
    Team team;
    for (int n : orders)
        for (int kind = 0; kind < KINDS; kind++)
            for (const char *uplo : {"U", "L"})
                for (int repeat = 0; repeat < 3; repeat++) {
                    Case<T> c(Kind(kind), n, n, 0);
                    c.a = definite<T>(c.kind, *uplo == 'U', n, c.lda);
                    c.label += text(" uplo=%s", uplo);
                    c.ready();
                    c.p.uplo = *uplo;
                    c.info = int(ours(team, c.p));
                    f(uplo, &c.n, c.a0.data(), &c.lda, &c.info0, 1);
                    c.judge(report);
                }
}

template <class T>
void test_potrs()
{
    auto f = netlib<T, void(const char *, int *, int *, const T *, int *, T *, int *,
                            int *, size_t)>("potrs");
    Report report(title<T>("potrs"));
    Team team;
    for (int n : orders)
        for (int kind = 0; kind < KINDS; kind++)
            for (const char *uplo : {"U", "L"})
                for (int nrhs : {0, 1, 3, 70}) {
                    Case<T> c(Kind(kind), n, n, nrhs);
                    int where = below(4);
                    c.a =
                        definite<T>(where % 2 ? RANDOM : c.kind, *uplo == 'U', n, c.lda);
                    c.b = matrix<T>(where == 2 ? RANDOM : c.kind, n, nrhs, c.ldb);
                    if (where == 3)
                        make_quotients_zero(c, *uplo == 'U');
                    c.label += text(" uplo=%s where=%d", uplo, where);
                    c.ready();
                    c.p.uplo = *uplo;
                    c.info = int(potrs(team, c.p));
                    f(uplo, &c.n, &c.nrhs, c.a0.data(), &c.lda, c.b0.data(), &c.ldb,
                      &c.info0, 1);
                    c.judge(report);
                }
}

template <class T>
void test_posv()
{
    auto f = netlib<T, void(const char *, int *, int *, T *, int *, T *, int *, int *,
                            size_t)>("posv");
    Report report(title<T>("posv"));
    Team team;
    for (int n : orders)
        for (int kind = 0; kind < KINDS; kind++)
            for (const char *uplo : {"U", "L"})
                for (int nrhs : {0, 1, 3, 70}) {
                    Case<T> c(Kind(kind), n, n, nrhs);
                    c.a = definite<T>(c.kind, *uplo == 'U', n, c.lda);
                    c.b = matrix<T>(c.kind, n, nrhs, c.ldb);
                    c.label += text(" uplo=%s", uplo);
                    c.ready();
                    c.p.uplo = *uplo;
                    c.info = int(posv(team, c.p));
                    f(uplo, &c.n, &c.nrhs, c.a0.data(), &c.lda, c.b0.data(), &c.ldb,
                      &c.info0, 1);
                    c.judge(report);
                }
}

/* ABS(z) >= SFMIN against the C library, next to the limit. */
template <class R>
void test_modulus()
{
    Report report(std::string(sizeof(R) == 4 ? "c" : "z") + " modulus at sfmin");
    const R tiny = sfmin<R>(), least = tiny * (sizeof(R) == 4 ? R(0x1p-23) : R(0x1p-52));
    for (int i = 0; i < 200000; i++) {
        double angle = uniform() * 4;
        R x = R(cos(angle)) * tiny, y = R(sin(angle)) * tiny;
        if (i % 3 == 0)
            y = R(below(1 << 14)) * (i % 2 ? least : sqrt(tiny * least) * 0),
            x = tiny - least;
        x += R(below(5) - 2) * least;
        R modulus = sizeof(R) == 4 ? R(hypotf(float(x), float(y))) : R(hypot(x, y));
        report.count(reaches_sfmin(Complex<R>{x, y}) == (modulus >= tiny),
                     text("%a %a", double(x), double(y)));
    }
}

/* BL_FAST solves with the transposed lower triangle in another order: near, not equal. */
template <class T>
void test_fast()
{
    Report report(title<T>("getrs fast"));
    using R = Real<T>;
    for (int n : {1, 2, 33, 64, 65, 150})
        for (const char *trans : {"T", "C"}) {
            Case<T> c(RANDOM, n, n, 3);
            c.a = matrix<T>(RANDOM, n, n, c.lda);
            for (int j = 0; j < n; j++)
                for (int i = 0; i < n; i++)
                    for (int w = 0; w < width<T>; w++)
                        parts(&c.a[i + size_t(j) * c.lda])[w] *= i == j ? 1 : R(0.3) / n;
            for (int j = 0; j < n; j++)
                parts(&c.a[j + size_t(j) * c.lda])[0] = 1 + below(3);
            c.b = matrix<T>(RANDOM, n, 3, c.ldb);
            c.pivots(true);
            c.ready();
            c.p.trans = *trans;
            Array<T> b = c.b;
            Team team;
            getrs(team, c.p);
            std::swap(b, c.b);
            c.p.b = c.b.data();
            team.exact = false;
            getrs(team, c.p);
            R most = 0;
            for (size_t i = 0; i < b.size(); i++)
                most = std::max(most, abs1(sub(b[i], c.b[i])));
            report.count(most <= n * 8 * (sizeof(R) == 4 ? R(0x1p-23) : R(0x1p-52)),
                         c.label + text(": off by %g", double(most)));
        }
}

/* ---- what LAPACK does not have ---- */

template <class T>
void test_getrfnp()
{
    Report report(title<T>("getrfnp")), host(title<T>("getrfnp on the host"));
    Team team;
    for (auto [m, n] : shapes())
        for (int kind = 0; kind < KINDS; kind++) {
            Case<T> c(Kind(kind), m, n, 0);
            c.a = matrix<T>(c.kind, m, n, c.lda);
            c.ready();
            Array<T> a = c.a;
            c.info = int(getrfnp(team, c.p));
            c.info0 = textbook_unpivoted(m, n, c.a0.data(), c.lda);
            c.judge(report, false);
            c.info0 = int(bl_host_getrfnp(Name<T>::precision, m, n, a.data(), c.lda));
            c.a0 = a;
            c.judge(host, false);
        }
}

/* Rows by powers of two, which must not change a single pivot. */
template <class T>
void scale_rows(Case<T> &c)
{
    for (int i = 0; i < c.m; i++) {
        int e = below(41) - 20;
        for (int j = 0; j < c.n; j++)
            for (int w = 0; w < width<T>; w++) {
                Real<T> *x = &parts(&c.a[i + size_t(j) * c.lda])[w];
                *x = ldexp(*x, e);
            }
    }
}

template <class T>
Complex<double> wide(T x)
{
    return {double(parts(&x)[0]), width<T> == 2 ? double(parts(&x)[width<T> - 1]) : 0};
}

/* The largest element of P A - L U in relation to that of its row in A. */
template <class T>
double scaled_residual(const Case<T> &c, const Array<T> &given)
{
    double worst = 0;
    Array<int> row(c.m);
    for (int i = 0; i < c.m; i++)
        row[i] = i;
    for (int k = 0; k < std::min(c.m, c.n); k++)
        std::swap(row[k], row[c.ipiv[k] - 1]);
    for (int i = 0; i < c.m; i++) {
        double most = 0, off = 0;
        for (int j = 0; j < c.n; j++) {
            Complex<double> a = wide(given[row[i] + size_t(j) * c.lda]), sum = a;
            for (int k = 0; k <= std::min({i, j, c.m - 1, c.n - 1}); k++) {
                Complex<double> l = {1, 0};
                if (k < i)
                    l = wide(c.a[i + size_t(k) * c.lda]);
                sum = sub(sum, mul(l, wide(c.a[k + size_t(j) * c.lda])));
            }
            most = std::max(most, abs1(a));
            off = std::max(off, abs1(sum));
        }
        if (off > 0)
            worst = std::max(worst, off / most);
    }
    return worst;
}

template <class T>
void test_getrfsp()
{
    using R = Real<T>;
    Report report(title<T>("getrfsp")), host(title<T>("getrfsp on the host"));
    Report residual(title<T>("getrfsp residual")), fixed(title<T>("getrfsp row scaling"));
    const double eps = sizeof(R) == 4 ? 0x1p-23 : 0x1p-52;
    Team team;
    for (auto [m, n] : shapes())
        for (int kind = 0; kind < KINDS; kind++) {
            Case<T> c(Kind(kind), m, n, 0);
            c.a = matrix<T>(c.kind, m, n, c.lda);
            if (below(4) == 0) {
                int zero = below(m);
                for (int j = 0; j < n; j++)
                    c.a[zero + size_t(j) * c.lda] = from_real<T>(0);
            }
            if (below(2))
                scale_rows(c);
            c.pivots(false);
            c.ready();
            const Array<T> given = c.a;
            c.info = int(getrfsp(team, c.p));
            c.info0 = textbook_scaled(m, n, c.a0.data(), c.lda, c.ipiv0.data());
            c.judge(report, false);
            if (kind <= TIED) {
                double r = scaled_residual(c, given);
                residual.count(r <= 10 * eps * (m + n), c.label + text(": %g", r));
            }
            c.a0 = given;
            std::vector<R> scale(m);
            if (below(2)) {
                c.info0 = int(bl_host_getrfsp(Name<T>::precision, m, n, c.a0.data(),
                                              c.lda, c.ipiv0.data(), 4, scale.data()));
            } else {
                std::vector<int64_t> wide(c.ipiv0.size());
                c.info0 = int(bl_host_getrfsp(Name<T>::precision, m, n, c.a0.data(),
                                              c.lda, wide.data(), 8, scale.data()));
                std::copy_n(wide.begin(), std::min(m, n), c.ipiv0.begin());
            }
            c.judge(host, false);
            if (kind == RANDOM || kind == INTEGERS || kind == TIED) {
                Array<int> ipiv = c.ipiv;
                std::copy(given.begin(), given.end(), c.a.begin());
                scale_rows(c);
                getrfsp(team, c.p);
                fixed.count(ipiv == c.ipiv, c.label);
            }
        }
}

template <class T>
void test_getrsnp()
{
    auto f = netlib<T, void(const char *, int *, int *, const T *, int *, const int *,
                            T *, int *, int *, size_t)>("getrs");
    Report report(title<T>("getrsnp"));
    Team team;
    for (int n : orders)
        for (int kind = 0; kind < KINDS; kind++)
            for (const char *trans : {"N", "T", "C"})
                for (int nrhs : {0, 1, 70}) {
                    Case<T> c(Kind(kind), n, n, nrhs);
                    c.a = matrix<T>(c.kind, n, n, c.lda);
                    c.b = matrix<T>(below(2) ? c.kind : RANDOM, n, nrhs, c.ldb);
                    c.label += text(" trans=%s", trans);
                    c.ready();
                    c.p.trans = *trans;
                    Array<int> identity(n);
                    for (int i = 0; i < n; i++)
                        identity[i] = i + 1;
                    c.info = int(getrsnp(team, c.p));
                    f(trans, &c.n, &c.nrhs, c.a0.data(), &c.lda, identity.data(),
                      c.b0.data(), &c.ldb, &c.info0, 1);
                    c.judge(report);
                }
}

/* geinv, and getri_oop of factors: beside A, which stays as it is, or in its place. */
template <class T>
void test_inverses(bool fused)
{
    auto factor = netlib<T, void(int *, int *, T *, int *, int *, int *)>("getrf");
    auto f = netlib<T, void(int *, T *, int *, const int *, T *, int *, int *)>("getri");
    Report report(title<T>(fused ? "geinv" : "getri_oop"));
    Team team;
    for (int n : orders)
        for (int kind = 0; kind < KINDS; kind++)
            for (bool apart : {false, true}) {
                Case<T> c(Kind(kind), n, n, 0);
                c.a = matrix<T>(c.kind, n, n, c.lda);
                c.ldb = apart ? n + below(3) : c.lda;
                c.b = matrix<T>(RANDOM, n, n, c.ldb); /* what X holds before */
                c.label += apart ? " apart" : " in place";
                c.pivots(!fused);
                if (!fused && below(2)) {
                    factor(&n, &n, c.a.data(), &c.lda, c.ipiv.data(), &c.info0);
                    c.ipiv0 = c.ipiv;
                }
                c.ready();
                c.p.x = apart ? c.b.data() : c.a.data();
                c.p.ldx = c.ldb;
                T *x0 = apart ? c.b0.data() : c.a0.data();
                for (int j = 0; apart && j < n; j++)
                    std::copy_n(&c.a0[size_t(j) * c.lda], n, x0 + size_t(j) * c.ldb);
                Array<int> ipiv = c.ipiv0;
                Array<T> work(n * 64);
                int lwork = n * 64;
                c.info0 = 0;
                if (fused)
                    factor(&n, &n, x0, &c.ldb, ipiv.data(), &c.info0);
                if (c.info0 == 0)
                    f(&n, x0, &c.ldb, ipiv.data(), work.data(), &lwork, &c.info0);
                c.info = int(fused ? geinv(team, c.p) : getri_oop(team, c.p));
                c.judge(report);
            }
}

template <class T>
struct Determinant {
    T phase;
    Real<T> logabs;
    int info;
};

/* By the kernel's algorithm and, from netlib's factors, by the host's: one result. */
template <class T>
Determinant<T> determinant_of(Case<T> &c, Report &host)
{
    auto factor = netlib<T, void(int *, int *, T *, int *, int *, int *)>("getrf");
    Team team;
    Determinant<T> d, other;
    c.pivots(false);
    c.ready();
    c.p.phase = &d.phase;
    c.p.logabs = &d.logabs;
    d.info = int(gedet(team, c.p));
    bool kept = difference("A", c.a, c.a0, c.lda, false).empty();
    factor(&c.n, &c.n, c.a0.data(), &c.lda, c.ipiv0.data(), &other.info);
    if (below(2)) {
        bl_host_det(Name<T>::precision, c.n, c.a0.data(), c.lda, c.ipiv0.data(), 4,
                    &other.phase, &other.logabs);
    } else {
        std::vector<int64_t> wide(c.ipiv0.begin(), c.ipiv0.end());
        bl_host_det(Name<T>::precision, c.n, c.a0.data(), c.lda, wide.data(), 8,
                    &other.phase, &other.logabs);
    }
    bool equal = d.info == other.info && same(d.logabs, other.logabs, false);
    for (int w = 0; w < width<T>; w++)
        equal = equal && same(parts(&d.phase)[w], parts(&other.phase)[w], false);
    host.count(kept && equal,
               c.label + (kept ? text(": logabs %.17g, not %.17g", double(d.logabs),
                                      double(other.logabs))
                               : std::string(": A changed")));
    return d;
}

struct Exact {
    __int128 re, im;
};
Exact operator*(Exact x, Exact y)
{
    return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
Exact operator-(Exact x, Exact y)
{
    return {x.re - y.re, x.im - y.im};
}
/* Where y divides x. */
Exact operator/(Exact x, Exact y)
{
    __int128 square = y.re * y.re + y.im * y.im;
    Exact z = x * Exact{y.re, -y.im};
    return {z.re / square, z.im / square};
}

/* Bareiss's elimination without fractions. */
Exact exact_determinant(int n, std::vector<Exact> a)
{
    Exact last = {1, 0};
    bool odd = false;
    for (int k = 0; k < n; k++) {
        int p = k;
        while (p < n && a[p + k * n].re == 0 && a[p + k * n].im == 0)
            p++;
        if (p == n)
            return {0, 0};
        for (int j = 0; p != k && j < n; j++)
            std::swap(a[p + j * n], a[k + j * n]);
        odd ^= p != k;
        for (int i = k + 1; i < n; i++)
            for (int j = k + 1; j < n; j++)
                a[i + j * n] =
                    (a[i + j * n] * a[k + k * n] - a[i + k * n] * a[k + j * n]) / last;
        last = a[k + k * n];
    }
    return odd ? Exact{-last.re, -last.im} : last;
}

template <class T>
void test_exact_determinants(Report &host)
{
    using R = Real<T>;
    Report report(title<T>("gedet of integers"));
    const double eps = sizeof(R) == 4 ? 0x1p-23 : 0x1p-52;
    for (int repeat = 0; repeat < 3000; repeat++) {
        int n = 1 + below(sizeof(R) == 4 ? 5 : 8);
        static const Kind kinds[] = {INTEGERS, TIED, ZEROS, LOW_RANK};
        Case<T> c(kinds[below(4)], n, n, 0);
        c.a = matrix<T>(c.kind, n, n, c.lda);
        std::vector<Exact> exact;
        double bound = 1; /* Hadamard's */
        for (int j = 0; j < n; j++) {
            double square = 0;
            for (int i = 0; i < n; i++) {
                Complex<double> x = wide(c.a[i + size_t(j) * c.lda]);
                exact.push_back({__int128(x.re), __int128(x.im)});
                square += x.re * x.re + x.im * x.im;
            }
            bound *= sqrt(square);
        }
        Exact e = exact_determinant(n, exact);
        Determinant<T> d = determinant_of(c, host);
        Complex<double> phase = wide(d.phase);
        double size = exp(double(d.logabs));
        double off =
            hypot(phase.re * size - double(e.re), phase.im * size - double(e.im));
        bool unit = fabs(hypot(phase.re, phase.im) - 1) <= 2 * eps;
        bool zero = phase.re == 0 && phase.im == 0 && d.logabs == -INFINITY;
        bool good =
            off <= 100 * eps * n * (bound + 1) && (zero || unit) && (d.info > 0) == zero;
        if (width<T> == 1 && fabs(double(e.re)) > 1e-3 * bound)
            good = good && phase.re == (e.re > 0 ? 1 : -1);
        report.count(good, c.label + text(": %g (%g, %g), not (%g, %g)", size, phase.re,
                                          phase.im, double(e.re), double(e.im)));
    }
}

/* c times a reflector of order n, whose determinant is -c^n. */
template <class T>
Array<T> reflector(int n, Complex<double> c)
{
    std::vector<Complex<double>> v(n);
    Array<T> a(size_t(n) * n + 1);
    double square = 0;
    for (auto &x : v) {
        x = {uniform(), width<T> == 2 ? uniform() : 0};
        square += x.re * x.re + x.im * x.im;
    }
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            Complex<double> x = mul(v[i], conj(v[j]));
            x = mul(c, Complex<double>{(i == j) - 2 / square * x.re, -2 / square * x.im});
            for (int w = 0; w < width<T>; w++)
                parts(&a[i + size_t(j) * n])[w] = Real<T>(w ? x.im : x.re);
        }
    return a;
}

template <class T>
void test_large_determinants(Report &host)
{
    using R = Real<T>;
    Report report(title<T>("gedet beyond the range"));
    const double eps = sizeof(R) == 4 ? 0x1p-23 : 0x1p-52;
    for (int n : {64, 150, 1024})
        for (double scale : {1e-9, 1.0, 1e3, 1e30}) {
            if (n == 1024 && scale < 1e3)
                continue;
            Complex<double> c = {3 * scale, width<T> == 2 ? 4 * scale : 0};
            Case<T> k(RANDOM, n, n, 0);
            k.lda = n;
            k.label += text(" scale=%g", scale);
            k.a = reflector<T>(n, c);
            Determinant<T> d = determinant_of(k, host);
            double logabs = n * log(hypot(c.re, c.im)), angle = n * atan2(c.im, c.re);
            Complex<double> phase = wide(d.phase);
            double off = hypot(phase.re + cos(angle), phase.im + sin(angle));
            report.count(fabs(double(d.logabs) - logabs) <=
                                 20 * eps * (n + fabs(logabs)) &&
                             off <= 20 * eps * n && d.info == 0,
                         k.label + text(": %.17g, not %.17g, phase off by %g",
                                        double(d.logabs), logabs, off));
        }
}

template <class T>
void test_gedet()
{
    Report host(title<T>("gedet on the host")), report(title<T>("gedet"));
    test_exact_determinants<T>(host);
    test_large_determinants<T>(host);
    for (int n : orders)
        for (int repeat = 0; repeat < 4; repeat++) {
            /* A permutation: its sign by counting cycles. */
            Case<T> c(ZEROS, n, n, 0);
            c.a = matrix<T>(c.kind, n, n, c.lda);
            Array<int> to(n);
            for (int i = 0; i < n; i++)
                to[i] = i;
            std::shuffle(to.begin(), to.end(), dice);
            for (int j = 0; j < n; j++)
                for (int i = 0; i < n; i++)
                    c.a[i + size_t(j) * c.lda] = from_real<T>(to[i] == j);
            int sign = 1;
            std::vector<bool> seen(n);
            for (int i = 0; i < n; i++)
                for (int k = i, length = 0; !seen[k]; k = to[k], length++) {
                    seen[k] = true;
                    sign = length > 0 ? -sign : sign;
                }
            Determinant<T> d = determinant_of(c, host);
            report.count(real(d.phase) == sign && d.logabs == 0 && d.info == 0,
                         c.label + text(" permutation: %g", double(real(d.phase))));
            /* A NaN anywhere reaches the last pivot unless one before it is zero. */
            c.a = matrix<T>(RANDOM, n, n, c.lda);
            parts(&c.a[below(n) + size_t(below(n)) * c.lda])[0] = NAN;
            d = determinant_of(c, host);
            report.count(real(d.phase) != real(d.phase) && d.logabs != d.logabs,
                         c.label + " NaN");
        }
    for (int kind = 0; kind < KINDS; kind++)
        for (int n : orders) {
            Case<T> c(Kind(kind), n, n, 0);
            c.a = matrix<T>(c.kind, n, n, c.lda);
            Determinant<T> d = determinant_of(c, host);
            bool zero = is_zero(d.phase) && d.logabs == -INFINITY;
            bool number = d.logabs == d.logabs;
            bool extreme = kind == NAN_IN || kind == INF_IN || kind == HUGE_;
            report.count(number ? (d.info > 0) == zero : extreme, c.label);
        }
    T phase = from_real<T>(5);
    Real<T> logabs = 5;
    bl_host_det(Name<T>::precision, 0, nullptr, 1, nullptr, 4, &phase, &logabs);
    report.count(is_one(phase) && logabs == 0, "order 0");
}

/* Our logarithm against the C library's in more digits. */
void test_logarithm()
{
    Report report("logarithm");
    for (int i = 0; i < 200000; i++) {
        double x = i % 3 ? fabs(uniform()) : 1 + ldexp(uniform(), -below(52));
        int64_t e = i % 2 ? below(40001) - 20000 : 0;
        long double exact = logl((long double)x) + (long double)e * logl(2.0L);
        double off = double(fabsl(logarithm(x, e) - exact) / fabsl(exact));
        report.count(x == 0 || exact == 0 || off <= 0x1p-51,
                     text("%a 2^%ld off by %g", x, long(e), off));
    }
    report.count(logarithm(1, 0) == 0, "1");
}

template <class T>
void test_all()
{
    test_getrfnp<T>();
    test_getrfsp<T>();
    test_getrsnp<T>();
    test_inverses<T>(false);
    test_inverses<T>(true);
    test_gedet<T>();
    test_fast<T>();
    test_getrf<T>();
    test_getrs<T>();
    test_gesv<T>();
    test_getri<T>();
    test_in_place<T>("potrf", potrf<T>);
    test_potrs<T>();
    test_in_place<T>("potri", potri<T>);
    test_posv<T>();
}

} // namespace

int main(int argc, char **argv)
{
    if (!open_lapack(argc, argv))
        return 0;
    test_modulus<float>();
    test_modulus<double>();
    test_logarithm();
    test_all<float>();
    test_all<double>();
    test_all<Complex<float>>();
    test_all<Complex<double>>();
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
