/* Cholesky of matrices beyond the tiny ones on the host, bit for bit against netlib.
 *
 *     host_mid_cholesky [LAPACK [matrices of a kind]]
 *
 * The fibers of host_block.h are the threads of the kernels' blocks; launches and memory
 * accesses as such are not in here. Blocks that share a matrix run one after the other,
 * in different orders, so that what one writes while another may still read it is
 * noticed. See host_kernels.cc for the expected values and what "equal" is.
 */
#include "host_block.h"
#include <complex>
#include "mid_cholesky_columns.cuh"
#include "mid_cholesky_rows.cuh"
#include "host_cases.h"

namespace
{

template <class T>
using Plain = void(const char *, int *, T *, int *, int *, size_t);

/* As mid_cholesky_rows.cu and mid_cholesky_columns.cu launch them. */
template <class T>
void run(Case<T> &c, bool upper, int threads, int parts)
{
    constexpr int W = ROW_PANEL<T>;
    static CholeskyRowsShared<T> rows;
    static CholeskyColumnsShared<T> columns;
    Array<T> factors(W * W);
    int info = -99, stopped = 0, last = c.n;
    CholeskyRows g = {};
    g.a = {c.a.data(), nullptr, c.lda, 0};
    g.info = {&info, nullptr, 0, 1};
    g.n = c.n;
    g.int_size = 4;
    g.parts = parts;
    if (parts > 1) {
        g.factors = factors.data();
        g.stopped = &stopped;
        last = W;
    }
    for (int first = 0; first < c.n; first = last, last += W) {
        for (int k = 0; k < parts; k++)
            host_warp::run(threads, [&](int thread) {
                Team team;
                team.thread = thread;
                team.threads = threads;
                if (upper)
                    cholesky_columns(g, columns, team, 0);
                else
                    cholesky_rows(g, rows, team, 0, first / W % 2 ? k : parts - 1 - k,
                                  first, last);
            });
    }
    c.info = info;
}

template <class T>
void test(bool upper, int repeats)
{
    static const int threads[] = {64, 128};
    const char *uplo = upper ? "U" : "L";
    Plain<T> *factor = netlib<T, Plain<T>>("potrf");
    Report report("mid " + title<T>("potrf") + " " + uplo);
    for (int turn = 0; turn < repeats * KINDS * 3; turn++) {
        const int n = turn % 5 ? 33 + below(130) : 64 * (1 + below(3)) + below(2);
        const bool shared = turn % 3 == 2 && !upper && n > 4 * LANES;
        Case<T> c(Kind(turn % KINDS), n, n, 0);
        c.a = definite<T>(c.kind, upper, n, c.lda);
        if (c.kind == RANDOM && below(2))
            c.a[below(n) * size_t(c.lda + 1)] =
                from_real<T>(Real<T>(below(2) ? -1 : NAN));
        c.a0 = c.a;
        c.label += text(" uplo=%s turn=%d", uplo, turn);
        run(c, upper, shared ? 128 : threads[turn % 2], shared ? (n + 63) / 96 : 1);
        factor(uplo, &c.n, c.a0.data(), &c.lda, &c.info0, 1);
        forget_beyond(c, upper);
        c.judge(report);
    }
}

template <class T>
void test_both(int repeats)
{
    test<T>(false, repeats);
    test<T>(true, repeats);
}

} // namespace

int main(int argc, char **argv)
{
    int repeats = argc > 2 ? atoi(argv[2]) : 3;
    if (!open_lapack(argc, argv))
        return 0;
    test_both<float>(repeats);
    test_both<double>(repeats);
    test_both<Complex<float>>(repeats);
    test_both<Complex<double>>(repeats);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
