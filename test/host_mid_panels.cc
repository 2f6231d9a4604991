/* LU by panels of 64 columns on the host: getrf in exact arithmetic bit for bit against
 * netlib, in fast arithmetic by its residual beside netlib's; getrfsp bit for bit against
 * the plain loops of src/host_lu.c, which host_kernels.cc tests.
 *
 *     host_mid_panels [LAPACK [matrices of a kind]]
 *
 * The kernels of mid_blocked.cuh run on the fibers of host_cuda.h, launched by mid.cu,
 * which has none that keep a panel on the chip here. See host_kernels.cc for the expected
 * values and what "equal" is.
 */
#include <complex>
#include "host_jobs.h"

namespace bl
{

/* As mid_blocked_s.cu and its like, but fast at every order. */
#define BL_TABLES(letter, T, FAST)                                                       \
    const MidKernel mid_lu_##letter[] = {{}};                                            \
    const MidKernel mid_scaled_##letter[] = {{}};                                        \
    const BlockedKernels mid_blocked_##letter = blocked<T, 8, FAST, 0>();                \
    const SolveKernels mid_solve_##letter = {};
BL_TABLES(s, float, FUSED)
BL_TABLES(d, double, FRAGMENTS)
BL_TABLES(c, Complex<float>, FUSED)
BL_TABLES(z, Complex<double>, FRAGMENTS)

} // namespace bl

namespace
{

template <class T>
void factor(Case<T> &c, enum bl_routine_id routine, enum bl_arithmetic arithmetic)
{
    Batch<T> batch;
    batch.cases.push_back(std::move(c));
    batch.run(routine, arithmetic);
    c = std::move(batch.cases[0]);
}

/* || P A - L U || / (n eps || A ||) of the factors in c. */
template <class T>
double residual(const Case<T> &c, const Array<T> &before, const Array<T> &factors,
                const Array<int> &ipiv)
{
    using Wide = std::complex<long double>;
    auto element = [&](const Array<T> &a, int i, int j) {
        const Real<T> *p = (const Real<T> *)&a[i + size_t(j) * c.lda];
        return Wide(p[0], width<T> == 2 ? p[width<T> - 1] : 0);
    };
    const int order = std::min(c.m, c.n);
    std::vector<int> row(c.m);
    for (int i = 0; i < c.m; i++)
        row[i] = i;
    for (int k = 0; k < order; k++)
        std::swap(row[k], row[ipiv[k] - 1]);
    long double most = 0, size = 0;
    for (int j = 0; j < c.n; j++) {
        long double off = 0, of_a = 0;
        for (int i = 0; i < c.m; i++) {
            Wide sum = -element(before, row[i], j);
            for (int k = 0; k <= std::min(std::min(i, j), order - 1); k++)
                sum +=
                    (k == i ? Wide(1) : element(factors, i, k)) * element(factors, k, j);
            off += std::abs(sum);
            of_a += std::abs(element(before, i, j));
        }
        most = std::max(most, off);
        size = std::max(size, of_a);
    }
    return double(most / size / c.n / (sizeof(Real<T>) == 4 ? 0x1p-24 : 0x1p-53));
}

/* Everything outside the matrix is as it was. */
template <class T>
bool beside_untouched(const Case<T> &c, const Array<T> &before)
{
    for (size_t i = 0; i < c.a.size(); i++)
        if ((i % c.lda >= size_t(c.m) || i / c.lda >= size_t(c.n)) &&
            memcmp((const void *)&c.a[i], (const void *)&before[i], sizeof(T)) != 0)
            return false;
    return true;
}

/* Any size to 192 rows that takes more than one panel, often one at their edges. */
int some_size()
{
    return below(4) ? 65 + below(66) : 64 * (1 + below(3)) + below(2);
}

template <class T>
void test(int repeats, bool exact)
{
    Factor<T> *netlib_factor = netlib<T, Factor<T>>("getrf");
    Report report("mid " + title<T>("getrf") + (exact ? "" : ", fast"));
    double worst = 0;
    for (int turn = 0; turn < repeats * KINDS; turn++) {
        const Kind kind = Kind(turn % KINDS);
        if (!exact && (kind == NAN_IN || kind == INF_IN || kind == HUGE_))
            continue;
        const int m = some_size(), n = turn % 2 ? m : some_size();
        Case<T> c(kind, m, n, 0);
        c.a = matrix<T>(kind, m, n, c.lda);
        c.pivots(false);
        c.a0 = c.a;
        const Array<T> before = c.a;
        c.info = -99;
        factor(c, BL_GETRF, exact ? BL_EXACT : BL_FAST);
        netlib_factor(&c.m, &c.n, c.a0.data(), &c.lda, c.ipiv0.data(), &c.info0);
        if (exact) {
            c.judge(report);
            continue;
        }
        /* Without rounding there is one answer; else pivots may be others. */
        const double ours = residual(c, before, c.a, c.ipiv),
                     theirs = residual(c, before, c.a0, c.ipiv0);
        worst = std::max(worst, ours);
        report.count(ours <= 5 * theirs + 1 && beside_untouched(c, before),
                     c.label + text(": residual %g, netlib's %g", ours, theirs));
    }
    if (!exact)
        printf("# largest residual %g\n", worst);
}

/* An infinity in the last rows of the first panel's U, the rest of which stays finite:
 * netlib multiplies it by -1, which makes a NaN of a complex one. */
template <class T>
void test_infinite(int repeats)
{
    Factor<T> *netlib_factor = netlib<T, Factor<T>>("getrf");
    Report report("mid " + title<T>("getrf") + ", an infinity in U");
    for (int turn = 0; turn < 3 * repeats; turn++) {
        const int m = 65 + below(66), n = 65 + below(66);
        Case<T> c(RANDOM, m, n, 0);
        c.a = matrix<T>(RANDOM, m, n, c.lda);
        for (int i = 0; i < std::min(m, n); i++)
            parts(&c.a[i + size_t(i) * c.lda])[0] += 1000;
        const size_t at = 61 + turn % 3 + size_t(64 + below(n - 64)) * c.lda;
        parts(&c.a[at])[below(width<T>)] = INFINITY;
        c.pivots(false);
        c.a0 = c.a;
        c.info = -99;
        factor(c, BL_GETRF, BL_EXACT);
        netlib_factor(&c.m, &c.n, c.a0.data(), &c.lda, c.ipiv0.data(), &c.info0);
        c.judge(report);
    }
}

/* Rows of very different size. */
template <class T>
void scale_rows(Case<T> &c)
{
    for (int i = 0; i < c.m; i++) {
        const Real<T> factor = Real<T>(ldexp(1, below(21) - 10));
        for (int j = 0; j < c.n; j++)
            for (int w = 0; w < width<T>; w++)
                parts(&c.a[i + size_t(j) * c.lda])[w] *= factor;
    }
}

template <class T>
void test_scaled(int repeats)
{
    Report report("mid " + title<T>("getrfsp"));
    for (int turn = 0; turn < repeats * KINDS; turn++) {
        const int m = some_size(), n = turn % 2 ? m : some_size();
        Case<T> c(Kind(turn % KINDS), m, n, 0);
        c.a = matrix<T>(c.kind, m, n, c.lda);
        if (below(2))
            scale_rows(c);
        c.pivots(false);
        c.a0 = c.a;
        c.info = -99;
        factor(c, BL_GETRFSP, BL_EXACT);
        std::vector<Real<T>> scale(m);
        c.info0 = int(bl_host_getrfsp(Name<T>::precision, m, n, c.a0.data(), c.lda,
                                      c.ipiv0.data(), 4, scale.data()));
        c.judge(report, false);
    }
}

} // namespace

int main(int argc, char **argv)
{
    for (const BlockedKernels *k :
         {&mid_blocked_s, &mid_blocked_d, &mid_blocked_c, &mid_blocked_z}) {
        for (const auto &panel : k->panel)
            host_cuda::know<MidArguments, int, Moves *>(panel.kernel);
        for (const auto &panel : k->scaled_panel)
            host_cuda::know<MidArguments, int, Moves *>(panel.kernel);
        for (const void *strip :
             {k->strip.kernel, k->fast_strip.kernel, k->plain_strip.kernel})
            host_cuda::know<MidArguments, int, int, const Moves *>(strip);
        host_cuda::know<MidArguments, int>(k->arrange);
    }
    return run_types(argc, argv, 1, [](auto number, int repeats) {
        using T = decltype(number);
        test<T>(repeats, true);
        test_infinite<T>(repeats);
        test_scaled<T>(repeats);
        test<T>(repeats, false);
    });
}
