/* LU by panels, solving and inverting with LU factors, on the host: getrf, getrs and gesv
 * bit for bit against netlib, the inverses by their residual, gedet by netlib's factors.
 *
 *     host_mid_solve [LAPACK [batches of a kind]]
 *
 * The kernels of mid_blocked.cuh, mid_solve.cuh, mid_invert.cuh and mid_inverse.cuh run
 * on the fibers of host_cuda.h, launched by mid.cu. There are so few kernels on the chip
 * that orders beyond 64 go by panels. See host_kernels.cc for the expected values and
 * what "equal" is.
 */
#include "host_jobs.h"
#include "mid_invert.cuh"

namespace bl
{

const InvertKernel inverting[] = {invert_kernel<6, 3, 4>(), invert_kernel<8, 4, 3>(),
                                  invert_kernel<10, 8, 1>(), invert_kernel<16, 8, 1>()};

/* As mid_lu_s.cu and its like, but less of them. */
#define BL_TABLES(letter, T, C, ...)                                                     \
    const MidKernel mid_lu_##letter[] = {on_chip<T, 2, C, 2, 8>(), {}};                  \
    const MidKernel mid_scaled_##letter[] = {{}};                                        \
    const BlockedKernels mid_blocked_##letter = blocked<T, 8, SEPARATE, 0>();            \
    const SolveKernels mid_solve_##letter = solve_kernels<T>(__VA_ARGS__);
BL_TABLES(s, float, 8)
BL_TABLES(d, double, 8, inverting)
BL_TABLES(c, Complex<float>, 4)
BL_TABLES(z, Complex<double>, 4)

} // namespace bl

namespace
{

template <class T>
using SolvesWith = void(const char *, int *, int *, T *, int *, int *, T *, int *, int *,
                        size_t);
template <class T>
using Invert = void(int *, T *, int *, int *, T *, int *, int *);

template <class T>
void test_getrf(int repeats)
{
    Report report("blocked " + title<T>("getrf"));
    for (int i = 0; i < repeats; i++) {
        Batch<T> batch;
        batch.fill(3, 65, 100 + below(4) / 3 * 120, false, 0, below(2));
        judge_getrf(report, batch);
    }
}

template <class T>
void test_gesv(int repeats)
{
    Report report("mid " + title<T>("gesv"));
    for (int i = 0; i < repeats; i++) {
        Batch<T> batch;
        batch.fill(3, 33, 100, true, below(2) ? 1 + below(5) : 9 + below(70), below(2));
        judge_gesv(report, batch);
    }
}

/* A becomes netlib's factors. */
template <class T>
void factor(Case<T> &c)
{
    netlib<T, Factor<T>>("getrf")(&c.n, &c.n, c.a.data(), &c.lda, c.ipiv.data(), &c.info);
    c.a0 = c.a;
    c.ipiv0 = c.ipiv;
}

template <class T>
void test_getrs(int repeats)
{
    Report report("mid " + title<T>("getrs"));
    for (int i = 0; i < repeats; i++) {
        Batch<T> batch;
        batch.fill(3, 33, 150, true, below(2) ? 1 + below(5) : 9 + below(70), below(2));
        for (Case<T> &c : batch.cases) {
            factor(c);
            if (below(2))
                make_quotients_zero(c, true);
            c.a0 = c.a;
        }
        batch.run(BL_GETRS);
        for (Case<T> &c : batch.cases) {
            netlib<T, SolvesWith<T>>("getrs")("N", &c.n, &c.nrhs, c.a0.data(), &c.lda,
                                              c.ipiv0.data(), c.b0.data(), &c.ldb,
                                              &c.info0, 1);
            c.judge(report);
        }
    }
}

/* Where X has no number, and that it is the inverse of `given`. */
template <class T>
void judge_inverse(Report &report, Case<T> &c, const Array<T> &given, const Array<T> &x,
                   int ldx)
{
    const bool ordinary =
        std::all_of(given.begin(), given.end(), [](T y) { return is_finite(y); });
    int lwork = 64 * c.n;
    Array<T> work(lwork), y = given;
    netlib<T, Factor<T>>("getrf")(&c.n, &c.n, y.data(), &c.lda, c.ipiv0.data(), &c.info0);
    if (c.info0 == 0)
        netlib<T, Invert<T>>("getri")(&c.n, y.data(), &c.lda, c.ipiv0.data(), work.data(),
                                      &lwork, &c.info0);
    double ours = 0, theirs = 0;
    bool good = c.info == c.info0;
    if (good && c.info == 0 && ordinary) {
        ours = residual(given, c.lda, x, ldx, c.n);
        theirs = residual(given, c.lda, y, c.lda, c.n);
        good = theirs < 0 || (ours >= 0 && ours <= 5 * theirs + 1);
        bool equal = true; /* the second attempt's, whose bits are netlib's */
        for (int j = 0; j < c.n; j++)
            equal = equal && memcmp(&x[size_t(j) * ldx], &y[size_t(j) * c.lda],
                                    c.n * sizeof(T)) == 0;
        good = good && (c.kind != RANDOM || !equal);
    }
    for (int j = 0; j < c.n && c.info0 == 0 && !ordinary; j++)
        for (int i = 0; i < c.n; i++) {
            Real<T> *p = parts((T *)&x[i + size_t(j) * ldx]);
            Real<T> *q = parts(&y[i + size_t(j) * c.lda]);
            for (int w = 0; w < width<T>; w++)
                good = good && (std::isfinite(p[w]) ? std::isfinite(q[w])
                                                    : same(p[w], q[w], false));
        }
    report.count(good, c.label + text(": residual %g, netlib's %g, INFO %d, %d", ours,
                                      theirs, c.info, c.info0));
}

/* GEINV leaves A, GETRI has the factors and takes their place. */
template <class T>
void test_inverse(enum bl_routine_id routine, const char *name, int repeats, int most)
{
    Report report("mid " + title<T>(name) + text(" to %d", most));
    for (int i = 0; i < repeats; i++) {
        Batch<T> batch;
        batch.fill(3, 33, most, true, most, below(2));
        std::vector<Array<T>> given;
        for (Case<T> &c : batch.cases) {
            given.push_back(c.a);
            if (routine != BL_GEINV)
                factor(c);
        }
        batch.run(routine);
        for (size_t k = 0; k < batch.cases.size(); k++) {
            Case<T> &c = batch.cases[k];
            const bool in_place = routine == BL_GETRI;
            judge_inverse(report, c, given[k], in_place ? c.a : c.b,
                          in_place ? c.lda : c.ldb);
            if (!in_place)
                report.count(difference("A", c.a, c.a0, c.lda, false).empty(),
                             c.label + ": A changed");
        }
    }
}

template <class T>
void test_all(int repeats)
{
    test_getrf<T>(repeats);
    test_getrs<T>(repeats);
    test_gesv<T>(repeats);
    test_inverse<T>(BL_GEINV, "geinv", repeats, 64);
    test_inverse<T>(BL_GEINV, "geinv", repeats, 150);
    test_inverse<T>(BL_GETRI, "getri", repeats, 80);
    test_inverse<T>(BL_GETRI_OOP, "getri_oop", repeats, 80);
    test_gedet<T>("mid", repeats, 100, true);
}

void know(const BlockedKernels &k, const SolveKernels &s)
{
    for (const auto &panel : k.panel)
        host_cuda::know<MidArguments, int, Moves *>(panel.kernel);
    host_cuda::know<MidArguments, int, int, const Moves *>(k.strip.kernel);
    host_cuda::know<MidArguments, int>(k.arrange);
    for (const void *kernel : {s.many, s.inverse, s.few[0], s.few[1]})
        host_cuda::know<MidSolve>(kernel);
    host_cuda::know<MidCopy>(s.copy);
    host_cuda::know<MidAgain>(s.again);
    host_cuda::know<MidDeterminant>(s.determinant);
}

} // namespace

int main(int argc, char **argv)
{
    for (const MidKernel *list : {mid_lu_s, mid_lu_d, mid_lu_c, mid_lu_z})
        host_cuda::know<MidArguments>(list->kernel);
    know(mid_blocked_s, mid_solve_s);
    know(mid_blocked_d, mid_solve_d);
    know(mid_blocked_c, mid_solve_c);
    know(mid_blocked_z, mid_solve_z);
    for (const InvertKernel &k : inverting)
        host_cuda::know<MidSolve>(k.kernel);
    return run_types(argc, argv, 2, [](auto number, int repeats) {
        test_all<decltype(number)>(repeats);
    });
}
