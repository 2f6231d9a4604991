/* The tiny Cholesky kernels on the host, bit for bit against netlib.
 *
 * A warp is the 32 fibers of host_warp.h, so that what lanes tell each other, what lies
 * where in shared memory and what several matrices in a warp do to each other is tested
 * without a GPU; launches and memory accesses as such are not in here. Each warp gets
 * matrices of different orders and kinds, the last one of a list perhaps too few. See
 * host_kernels.cc for the expected values and what "equal" is; potri, which may have
 * other bits than netlib's, is compared by its residual.
 */
#include "host_warp.h"
#include <complex>
#include "tiny_cholesky_inverse.cuh"
#include "tiny_cholesky_solve.cuh"
#include "host_cases.h"

namespace
{

enum Routine { POTRF, POTRS, POSV, POTRI };

template <class T>
using Plain = void(const char *, int *, T *, int *, int *, size_t);
template <class T>
using Solve = void(const char *, int *, int *, T *, int *, T *, int *, int *, size_t);

/* A warp does work(matrix, its case, room for right-hand sides), with UPPER by halves; a
 * group whose case is NULL lies behind the end of the batch. */
template <class Matrix, bool HALVES, class T, class F>
void run_lanes(bool upper, const std::vector<Case<T> *> &cases, const F &work)
{
    std::vector<Cell<T>> packed(Matrix::GROUPS * Matrix::PITCH), sides(Matrix::SIDES);
    host_warp::run([&](int lane) {
        Matrix m(lane, packed.data());
        Case<T> *c = m.group < int(cases.size()) ? cases[m.group] : nullptr;
        T *a = c ? c->a.data() : nullptr;
        const int n = c ? c->n : 0, lda = c ? c->lda : 0;
        if (HALVES)
            m.take_by_halves(n);
        else
            m.take_first(n);
        if (upper)
            m.template fetch<true>(a, lda);
        else
            m.template fetch<false>(a, lda);
        m.meet();
        work(m, c, a, lda, sides.data());
        if (c && m.t == 0)
            c->info = m.info_of_rows();
    });
}

/* What the kernels of tiny_potrf.cu, tiny_posv.cu and tiny_potri.cu do. */
template <class T, int N, bool UPPER>
void run_warp(Routine routine, const std::vector<Case<T> *> &cases, int nrhs)
{
    constexpr int FEW = lanes_of<T>(N, false), MORE = lanes_of<T>(N, true);
    if (routine == POTRF)
        run_lanes<TinyCholesky<T, N, FEW, UPPER>, UPPER>(
            UPPER, cases,
            [](auto &m, Case<T> *, T *a, int lda, Cell<T> *) { m.factor(a, lda); });
    else if (routine == POTRI)
        run_lanes<TinyInverter<T, N, MORE, false>, false>(
            UPPER, cases, [](auto &m, Case<T> *, T *a, int lda, Cell<T> *sides) {
                m.invert(sides);
                if (m.info == 0)
                    m.template put<UPPER>(a, lda);
            });
    else
        run_lanes<TinySolver<T, N, MORE, UPPER>, UPPER>(
            UPPER, cases, [=](auto &m, Case<T> *c, T *a, int lda, Cell<T> *sides) {
                if (routine == POSV)
                    m.factor(a, lda);
                m.solve_apart(m, sides, c ? c->b.data() : nullptr, c ? c->ldb : 0, nrhs,
                              c && m.info == 0);
            });
}

template <class T>
void run_code(int code, bool upper, Routine routine, const std::vector<Case<T> *> &cases,
              int nrhs)
{
    switch (code) {
    case 4:
        return upper ? run_warp<T, 4, true>(routine, cases, nrhs)
                     : run_warp<T, 4, false>(routine, cases, nrhs);
    case 8:
        return upper ? run_warp<T, 8, true>(routine, cases, nrhs)
                     : run_warp<T, 8, false>(routine, cases, nrhs);
    case 12:
        return upper ? run_warp<T, 12, true>(routine, cases, nrhs)
                     : run_warp<T, 12, false>(routine, cases, nrhs);
    case 16:
        return upper ? run_warp<T, 16, true>(routine, cases, nrhs)
                     : run_warp<T, 16, false>(routine, cases, nrhs);
    case 20:
        return run_warp<T, 20, false>(routine, cases, nrhs);
    case 24:
        return upper ? run_warp<T, 24, true>(routine, cases, nrhs)
                     : run_warp<T, 24, false>(routine, cases, nrhs);
    default:
        return upper ? run_warp<T, 32, true>(routine, cases, nrhs)
                     : run_warp<T, 32, false>(routine, cases, nrhs);
    }
}

/* The residual of the inverse in a triangle. */
template <class T>
double residual(const Array<T> &a, const Array<T> &x, bool upper, int n, int ld)
{
    auto full = [&](const Array<T> &m, int i, int j) -> std::complex<long double> {
        bool stored = upper ? i <= j : i >= j;
        const Real<T> *p =
            (const Real<T> *)&m[stored ? i + size_t(j) * ld : j + size_t(i) * ld];
        long double im = width<T> == 2 && i != j ? p[width<T> - 1] : Real<T>(0);
        return {p[0], stored ? im : -im};
    };
    return inverse_residual<T>(
        n, [&](int i, int j) { return full(a, i, j); },
        [&](int i, int j) { return full(x, i, j); });
}

/* A case for potri whose condition is anything up to the end of the precision. */
template <class T>
void make_ill(Array<T> &a, bool upper, int n, int ld)
{
    /* D (A + n) D with graded D, or what is left of the diagonal and ones. */
    double scale = pow(2, -below(sizeof(Real<T>) == 4 ? 12 : 26));
    bool graded = below(2);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            for (int w = 0; w < width<T>; w++) {
                Real<T> &x = parts(&a[i + size_t(j) * ld])[w];
                if (upper ? i > j : i < j)
                    continue;
                if (graded)
                    x *= Real<T>(pow(scale, double(i + j) / n));
                else if (w == 1)
                    x = 0;
                else
                    x = Real<T>(1 + (i == j ? scale * (1 + below(3)) : 0));
            }
}

template <class T>
bool same_bytes(const Array<T> &x, const Array<T> &y)
{
    return x.size() == y.size() && memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
}

/* Every n in every code that takes it, every kind, `repeats` of each. */
template <class T>
void test(const char *name, Routine routine, int repeats)
{
    Plain<T> *factor = netlib<T, Plain<T>>("potrf");
    Plain<T> *invert = netlib<T, Plain<T>>("potri");
    Solve<T> *solve = netlib<T, Solve<T>>(routine == POTRS ? "potrs" : "posv");
    Report report("tiny " + title<T>(name));
    double ours = 0, theirs = 0;
    for (int code : {4, 8, 12, 16, 20, 24, 32})
        for (int upper = 0; upper < 2; upper++) {
            if ((code == 12 || code == 20) && routine != POTRF)
                continue; /* of potrf alone, 20 of 'L' */
            if (code == 20 && upper)
                continue;
            std::vector<std::pair<int, int>> shapes;
            for (int n = 1; n <= code; n++)
                for (int kind = 0; kind < KINDS; kind++)
                    for (int r = 0; r < repeats; r++)
                        shapes.push_back({n, kind});
            std::shuffle(shapes.begin(), shapes.end(), dice);
            const size_t groups = 32 / lanes_of<T>(code, routine != POTRF);
            const char *uplo = upper ? "U" : "L";
            for (size_t first = 0; first < shapes.size(); first += groups) {
                std::vector<Case<T>> cases;
                std::vector<Case<T> *> pointers;
                std::vector<Array<T>> originals;
                const int sides = routine == POTRF || routine == POTRI ? 0
                                  : below(8)                           ? 1 + below(3)
                                                                       : 20;
                for (size_t k = first; k < std::min(first + groups, shapes.size()); k++) {
                    int n = shapes[k].first, where = below(3);
                    cases.emplace_back(Kind(shapes[k].second), n, n, sides);
                    Case<T> &c = cases.back();
                    c.a = definite<T>(where == 1 || routine == POTRI ? RANDOM : c.kind,
                                      upper, n, c.lda);
                    c.b = matrix<T>(where == 2 ? RANDOM : c.kind, n, sides, c.ldb);
                    c.label += text(" uplo=%s code=%d", uplo, code);
                    if (routine == POTRI)
                        make_ill(c.a, upper, n, c.lda);
                    originals.push_back(c.a);
                    if (routine == POTRI || (routine == POTRS && below(3)))
                        factor(uplo, &n, c.a.data(), &c.lda, &c.info0, 1);
                    if (routine == POTRI && below(8) == 0)
                        c.a[below(n) * size_t(c.lda + 1)] = from_real<T>(0);
                    c.a0 = c.a;
                    c.b0 = c.b;
                }
                for (Case<T> &c : cases)
                    pointers.push_back(&c);
                std::vector<Case<T>> alone = cases;
                run_code<T>(code, upper, routine, pointers, sides);
                {
                    const size_t k = below(int(cases.size()));
                    std::vector<Case<T> *> place(1 + below(int(groups)), nullptr);
                    place.back() = &alone[k];
                    run_code<T>(code, upper, routine, place, sides);
                    report.count(alone[k].info == cases[k].info &&
                                     same_bytes(alone[k].a, cases[k].a) &&
                                     same_bytes(alone[k].b, cases[k].b),
                                 cases[k].label + ": other results alone in a warp");
                }
                for (size_t k = 0; k < cases.size(); k++) {
                    Case<T> &c = cases[k];
                    double own = 0, their = 0;
                    if (routine == POTRF)
                        factor(uplo, &c.n, c.a0.data(), &c.lda, &c.info0, 1);
                    else if (routine == POTRI)
                        invert(uplo, &c.n, c.a0.data(), &c.lda, &c.info0, 1);
                    else
                        solve(uplo, &c.n, &c.nrhs, c.a0.data(), &c.lda, c.b0.data(),
                              &c.ldb, &c.info0, 1);
                    if (routine == POTRI && c.info0 == 0) {
                        own = residual(originals[k], c.a, upper, c.n, c.lda);
                        their = residual(originals[k], c.a0, upper, c.n, c.lda);
                        ours = std::max(ours, own);
                        theirs = std::max(theirs, their);
                        c.info0 = 1; /* all of the triangle may differ */
                        forget_beyond(c, upper);
                        c.info0 = 0;
                    } else if (routine != POTRI) {
                        forget_beyond(c, upper);
                    }
                    if (own <= 5 * their + 1)
                        c.judge(report);
                    else
                        report.count(false, c.label + text(": residual %g, netlib's %g",
                                                           own, their));
                }
            }
        }
    if (routine == POTRI) {
        printf("# largest residual of the inverses %.3g, netlib's %.3g\n", ours, theirs);
        report.count(theirs > 0 && ours <= 5 * theirs,
                     text("largest residual %g, netlib's %g", ours, theirs));
    }
}

template <class T>
void test_all(int repeats)
{
    test<T>("potrf", POTRF, repeats);
    test<T>("potrs", POTRS, repeats);
    test<T>("posv", POSV, repeats);
    test<T>("potri", POTRI, repeats / 2 + 1);
}

} // namespace

int main(int argc, char **argv)
{
    return run_types(argc, argv, 2, [](auto number, int repeats) {
        test_all<decltype(number)>(repeats);
    });
}
