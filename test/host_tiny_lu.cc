/* The tiny LU kernels on the host, bit for bit against netlib.
 *
 * A block of one warp is the 32 fibers of host_warp.h, so that what lanes tell each
 * other, what lies where in shared memory and what several matrices in a warp do to each
 * other is tested without a GPU. Blocks get matrices of one shape or, as items, of
 * different ones, and of different kinds; the last block has too few. See host_kernels.cc
 * for the expected values and what "equal" is; inverses, which may have other bits than
 * netlib's, are compared by their residuals.
 */
#include "host_cuda.h"
#include "tiny_det.cuh"
#include "tiny_head_solve.cuh"
#include "tiny_rows_inverse.cuh"
#include "tiny_rows_solve.cuh"
#include "tiny_sheet_solve.cuh"
#include "host_cases.h"
#include "host_lu.h"
#include "host_textbook.h"

namespace
{

enum Routine { GETRF, GESV, GEINV, GETRFSP, GEDET };

template <class T>
using Factor = void(int *, int *, T *, int *, int *, int *);
template <class T>
using Solve = void(int *, int *, T *, int *, int *, T *, int *, int *);

template <class T>
using Invert = void(int *, T *, int *, int *, T *, int *, int *);

/* Whether the inverse in c.b is as good as netlib's, which comes to c.a0. */
template <class T>
void judge_inverse(Report &report, Case<T> &c)
{
    const Array<T> original = c.a0;
    int lwork = 64 * c.n;
    Array<T> work(lwork);
    netlib<T, Factor<T>>("getrf")(&c.n, &c.n, c.a0.data(), &c.lda, c.ipiv0.data(),
                                  &c.info0);
    double ours = 0, theirs = 0;
    if (c.info0 == 0) {
        netlib<T, Invert<T>>("getri")(&c.n, c.a0.data(), &c.lda, c.ipiv0.data(),
                                      work.data(), &lwork, &c.info0);
        ours = residual(original, c.lda, c.b, c.ldb, c.n);
        theirs = residual(original, c.lda, c.a0, c.lda, c.n);
    }
    bool good = c.info == c.info0 && (ours < 0) == (theirs < 0) &&
                (theirs < 0 || ours <= 5 * theirs + 1);
    /* Singular: the factors. Else what is not finite stands where netlib has it. */
    for (int j = 0; j < c.n; j++)
        for (int i = 0; i < c.n; i++)
            for (int w = 0; w < width<T>; w++) {
                Real<T> x = parts(&c.b[i + size_t(j) * c.ldb])[w];
                Real<T> y = parts(&c.a0[i + size_t(j) * c.lda])[w];
                if (c.info0 != 0 || theirs < 0 || !std::isfinite(x) || !std::isfinite(y))
                    good = good && same(x, y, c.kind == MINUS_ZERO);
            }
    report.count(good, c.label + text(": residual %g, netlib's %g, INFO %d, %d", ours,
                                      theirs, c.info, c.info0));
}

/* The determinant from netlib's factors, and that A is as it was. */
template <class T>
void judge_determinant(Report &report, Case<T> &c, const T &phase, Real<T> logabs)
{
    Array<T> lu = c.a0;
    T phase0 = one<T>();
    Real<T> logabs0 = 0;
    netlib<T, Factor<T>>("getrf")(&c.n, &c.n, lu.data(), &c.lda, c.ipiv0.data(),
                                  &c.info0);
    bl_host_det(Name<T>::precision, c.n, lu.data(), c.lda, c.ipiv0.data(), 4, &phase0,
                &logabs0);
    if (c.info0 > 0) {
        phase0 = from_real<T>(0);
        logabs0 = -Real<T>(INFINITY);
    }
    bool good = same(logabs, logabs0, false) && c.info == c.info0 &&
                difference("A", c.a, c.a0, c.lda, false).empty();
    for (int w = 0; w < width<T>; w++)
        good = good && same(parts((T *)&phase)[w], parts(&phase0)[w], false);
    report.count(good, c.label + text(": logabs %.17g, not %.17g, INFO %d, %d",
                                      double(logabs), double(logabs0), c.info, c.info0));
}

/* One launch of a kernel whose blocks take `problems` matrices. */
template <class F>
void launch(F kernel, int problems, const TinyArguments &g)
{
    host_cuda::launch((g.batch + problems - 1) / problems, 32, 0, [&] { kernel(g); });
}

/* Moduli that are equal but for a part whose quotient would leave the normal numbers. */
template <class T>
void make_lopsided(T &x)
{
    if constexpr (Traits<T>::complex) {
        if (x.re == Real<T>(POISON))
            return;
        x.re = Real<T>(1 + below(2));
        x.im = below(2) ? Real<T>(0) : Real<T>(sizeof(x.re) == 4 ? 0x1p-80 : 0x1p-600);
    }
}

/* Square or, of getrf and getrfsp, any matrices of order up to N; those of one launch are
 * alike if `least` is not 0, and have no side below it, and one right-hand side. */
template <class T>
void test_kernel(Report &report, Routine routine, void (*kernel)(TinyArguments), int N,
                 int problems, int launches, int least = 0)
{
    Factor<T> *factor = netlib<T, Factor<T>>("getrf");
    Solve<T> *solve = netlib<T, Solve<T>>("gesv");
    const bool any = routine == GETRF || routine == GETRFSP;
    for (int i = 0; i < launches; i++) {
        const bool shapes = least == 0 && below(2);
        int m = N - below(4), n = below(4) || !any ? m : N - below(4);
        if (any && below(4) == 0)
            (below(2) ? m : n) = least ? least + below(N - least) : 1 + below(N);
        const int nrhs = routine != GESV ? 0 : least ? 1 : below(4);
        std::vector<Case<T>> cases;
        for (int k = 0; k < 5 * problems + below(3); k++) {
            cases.emplace_back(Kind(below(KINDS)), m, n, nrhs);
            Case<T> &c = cases.back();
            if (shapes) {
                c.m = 1 + below(N);
                c.n = !any || below(2) ? c.m : 1 + below(N);
                if (any && below(6) == 0) /* an empty one among others */
                    (below(2) ? c.m : c.n) = 0;
            }
            c.lda = shapes ? std::max(c.m, 1) + below(3) : cases[0].lda;
            c.ldb = N;
            c.a = matrix<T>(c.kind, c.m, c.n, c.lda);
            c.b = matrix<T>(below(4) ? RANDOM : c.kind, c.n, routine == GEINV ? N : nrhs,
                            c.ldb);
            if (c.m > 0 && c.n > c.m &&
                below(4) == 0) /* wide: Inf that reaches no edge of U */
                parts(&c.a[size_t(c.m - 1) * c.lda + below(c.m)])[0] = Real<T>(INFINITY);
            if (Traits<T>::complex && below(8) == 0) /* ties with parts that are tiny */
                for (int j = 0; j < c.n * c.lda; j++)
                    make_lopsided(c.a[j]);
            c.pivots(false);
            c.ready();
            c.label +=
                text(" of %d x %d, N = %d%s", c.m, c.n, N, shapes ? ", items" : "");
        }
        Operands<T> o(cases);
        TinyArguments g = {};
        g.a = {nullptr, o.a.data(), cases[0].lda, 0};
        g.b = g.x = {nullptr, o.b.data(), N, 0};
        g.ipiv = {nullptr, o.ipiv.data(), 0, 0};
        g.info = {nullptr, o.info.data(), 0, 0};
        std::vector<T> phases(cases.size(), from_real<T>(-7));
        std::vector<Real<T>> logarithms(cases.size(), -7);
        g.phase = {phases.data(), nullptr, 0, 1};
        g.logabs = {logarithms.data(), nullptr, 0, 1};
        g.items = shapes ? o.items.data() : nullptr;
        g.batch = int64_t(cases.size());
        g.nrhs = nrhs;
        g.m = shapes ? N : m;
        g.n = shapes ? N : n;
        g.int_size = 4;
        launch(kernel, problems, g);
        for (size_t k = 0; k < cases.size(); k++) {
            Case<T> &c = cases[k];
            if (routine == GEINV) {
                judge_inverse(report, c);
                continue;
            }
            if (routine == GEDET) {
                judge_determinant(report, c, phases[k], logarithms[k]);
                continue;
            }
            if (routine == GETRFSP)
                c.info0 = textbook_scaled(c.m, c.n, c.a0.data(), c.lda, c.ipiv0.data());
            else if (routine == GETRF)
                factor(&c.m, &c.n, c.a0.data(), &c.lda, c.ipiv0.data(), &c.info0);
            else
                solve(&c.n, &c.nrhs, c.a0.data(), &c.lda, c.ipiv0.data(), c.b0.data(),
                      &c.ldb, &c.info0);
            c.judge(report);
        }
    }
}

template <class T, int N, int L, bool MORE = false>
void test_rows(int launches)
{
    Report getrf(title<T>("getrf") + text(", N = %d on %d lanes", N, L));
    test_kernel<T>(getrf, GETRF, tiny_rows_factor<T, N, L, 1>, N, 32 / L, launches);
    Report gesv(title<T>("gesv") + text(", N = %d on %d lanes", N, L));
    test_kernel<T>(gesv, GESV, tiny_rows_gesv<T, N, L, 1>, N, 32 / L, launches);
    Report geinv(title<T>("geinv") + text(", N = %d on %d lanes", N, L));
    test_kernel<T>(geinv, GEINV, tiny_rows_geinv<T, N, L, 1>, N, 32 / L, launches);
    if constexpr (MORE) {
        Report gedet(title<T>("gedet") + text(", N = %d on %d lanes", N, L));
        test_kernel<T>(gedet, GEDET, tiny_rows_gedet<T, N, L, 1>, N, 32 / L, launches);
    }
}

template <class T, int N, int L, bool GROUPED, bool MORE = false>
void test_sheet(int launches)
{
    Report getrf(title<T>("getrf") + text(", N = %d in a sheet, %d lanes", N, L));
    test_kernel<T>(getrf, GETRF, tiny_sheet_factor<T, N, L, 1, GROUPED>, N, 32 / L,
                   launches);
    Report gesv(title<T>("gesv") + text(", N = %d in a sheet, %d lanes", N, L));
    test_kernel<T>(gesv, GESV, tiny_sheet_gesv<T, N, L, 1, GROUPED>, N, 32 / L, launches);
    if constexpr (MORE) {
        Report getrfsp(title<T>("getrfsp") + text(", N = %d in a sheet, %d lanes", N, L));
        test_kernel<T>(getrfsp, GETRFSP, tiny_sheet_factor<T, N, L, 1, GROUPED, SCALED>,
                       N, 32 / L, launches);
        Report gedet(title<T>("gedet") + text(", N = %d in a sheet, %d lanes", N, L));
        test_kernel<T>(gedet, GEDET, tiny_sheet_gedet<T, N, L, 1>, N, 32 / L, launches);
    }
}

/* By a head, one shape a launch. */
template <class T, int N>
void test_head(int launches)
{
    auto test = [&](const char *name, Routine routine, void (*kernel)(TinyArguments),
                    int count) {
        Report report(title<T>(name) + text(", N = %d by a head", N));
        test_kernel<T>(report, routine, kernel, N, 1, count, N - 31);
    };
    test("getrf", GETRF, tiny_head_factor<T, N, 1>, 2 * launches);
    test("gesv", GESV, tiny_head_gesv<T, N, 1>, 2 * launches);
    test("gedet", GEDET, tiny_head_gedet<T, N, 1>, launches);
    test("getrfsp", GETRFSP, tiny_head_factor<T, N, 1, SCALED>, 2 * launches);
}

template <class T, int N, bool MORE = false>
void test_row(int launches)
{
    Report getrf(title<T>("getrf") + text(", N = %d, a row a lane", N));
    test_kernel<T>(getrf, GETRF, tiny_factor<T, N, 1, 1, LARGEST>, N, 32 / lanes_for(N),
                   launches);
    Report gesv(title<T>("gesv") + text(", N = %d, a row a lane", N));
    test_kernel<T>(gesv, GESV, tiny_gesv<T, N, 1, 1>, N, 32 / lanes_for(N), launches);
    Report geinv(title<T>("geinv") + text(", N = %d, a row a lane", N));
    test_kernel<T>(geinv, GEINV, tiny_geinv<T, N, 1, 1>, N, 32 / lanes_for(N), launches);
    if constexpr (MORE) {
        Report getrfsp(title<T>("getrfsp") + text(", N = %d, a row a lane", N));
        test_kernel<T>(getrfsp, GETRFSP, tiny_factor<T, N, 1, 1, SCALED>, N,
                       32 / lanes_for(N), launches);
        Report gedet(title<T>("gedet") + text(", N = %d, a row a lane", N));
        test_kernel<T>(gedet, GEDET, tiny_gedet<T, N, 1, 1>, N, 32 / lanes_for(N),
                       launches);
    }
}

template <class T>
void test_all(int launches)
{
    /* Those of tiny_kernels.cuh, and by columns; gedet and getrfsp of each kind. */
    test_sheet<T, 20, 8, true>(launches);
    test_sheet<T, 24, 8, true>(launches);
    test_sheet<T, 24, 8, false, true>(launches);
    test_sheet<T, 28, 8, true, true>(launches);
    test_sheet<T, 20, 16, true, true>(launches);
    test_sheet<T, 24, 16, true>(launches);
    test_sheet<T, 28, 16, true>(launches);
    test_sheet<T, 32, 16, true>(launches);
    test_row<T, 4, true>(launches);
    test_row<T, 8>(launches);
    test_row<T, 12, true>(launches);
    test_row<T, 16>(launches);
    test_row<T, 24>(launches);
    test_row<T, 28>(launches);
    test_row<T, 32, true>(launches);
    test_rows<T, 8, 4>(launches);
    test_rows<T, 12, 4, true>(launches);
    test_rows<T, 16, 8>(launches);
    test_sheet<T, 16, 8, false>(launches);
    test_sheet<T, 16, 16, true, true>(launches);
    test_rows<T, 20, 8>(launches);
    test_rows<T, 24, 8>(launches);
    test_rows<T, 28, 16>(launches);
    test_rows<T, 32, 16>(launches);
    const auto before = dice; /* for the other types' cases to stay what they were */
    test_head<T, 36>(launches);
    test_head<T, 40>(launches);
    test_head<T, 44>(launches);
    test_head<T, 48>(launches);
    dice = before;
}

} // namespace

int main(int argc, char **argv)
{
    return run_types(argc, argv, 4, [](auto number, int repeats) {
        test_all<decltype(number)>(repeats);
    });
}
