/* LU by panels of 64 columns on the host: getrf in exact arithmetic bit for bit against
 * netlib, in fast arithmetic by its residual beside netlib's; getrfsp bit for bit against
 * the plain loops of src/host_lu.c, which host_kernels.cc tests.
 *
 *     host_mid_panels [LAPACK [matrices of a kind]]
 *
 * The fibers of host_block.h are the threads of the kernels' blocks; launches, the
 * kernels that keep a panel on the chip, and memory accesses as such are not in here. See
 * host_kernels.cc for the expected values and what "equal" is.
 */
#include <cuda_runtime.h>
#include <complex>
#include "mid_blocked.cuh"
#include "host_cases.h"
#include "host_lu.h"

namespace
{

template <class T>
using Factor = void(int *, int *, T *, int *, int *, int *);

struct alignas(256) Unit {
    char bytes[256];
};

/* One block a matrix, or one for every 64 columns to the right of a panel. */
template <class F>
void run(int blocks, int threads, const F &kernel)
{
    host_cuda::launch(blocks, threads, 227 << 10, kernel);
}

/* As mid.cu launches them, but for panels that fit on the chip. EVERY: getrfsp. */
template <class T, Products P>
void factor(Case<T> &c)
{
    constexpr int C = 8; /* as in mid_blocked_*.cu */
    constexpr bool SCALED = P == EVERY;
    const int order = std::min(c.m, c.n);
    std::vector<Unit> work((scales_at(1) + c.m * sizeof(T)) / sizeof(Unit) + 1);
    Moves *const moves = (Moves *)work.data();
    MidArguments g = {};
    g.a = {c.a.data(), nullptr, c.lda, 0};
    g.ipiv = {c.ipiv.data(), nullptr, 0, 0};
    g.info = {&c.info, nullptr, 0, 1};
    g.m = c.m;
    g.n = c.n;
    g.int_size = 4;
    for (int first = 0; first < order; first += NB) {
        const int width = std::min(NB, order - first);
        if (c.m - first <= 128)
            run(1, 128, [&] { lu_panel<T, 1, C, 128, 1, SCALED>(g, first, moves); });
        else
            run(1, 256, [&] { lu_panel<T, 1, C, 256, 1, SCALED>(g, first, moves); });
        const int strips = (c.n - first - width + NB - 1) / NB;
        if (strips > 0)
            run(strips, STRIP_THREADS, [&] { lu_strip<T, P>(g, first, strips, moves); });
    }
    const int panels = (order - 1) / NB;
    if (panels > 0)
        run(panels, STRIP_THREADS, [&] { lu_arrange<T>(g, panels); });
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

template <class T, Products P>
void test(int repeats)
{
    Factor<T> *netlib_factor = netlib<T, Factor<T>>("getrf");
    const bool exact = P == SEPARATE;
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
        factor<T, P>(c);
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
        factor<T, EVERY>(c);
        std::vector<Real<T>> scale(m);
        c.info0 = int(bl_host_getrfsp(Name<T>::precision, m, n, c.a0.data(), c.lda,
                                      c.ipiv0.data(), 4, scale.data()));
        c.judge(report, false);
    }
}

} // namespace

int main(int argc, char **argv)
{
    return run_types(argc, argv, 1, [](auto number, int repeats) {
        using T = decltype(number);
        test<T, SEPARATE>(repeats);
        test_scaled<T>(repeats);
        test<T, sizeof(Real<T>) == 8 ? FRAGMENTS : FUSED>(repeats);
    });
}
