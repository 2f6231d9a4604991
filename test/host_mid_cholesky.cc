/* Cholesky of matrices beyond the tiny ones on the host, bit for bit against netlib.
 *
 *     host_mid_cholesky [LAPACK [matrices of a kind]]
 *
 * The fibers of host_block.h are the threads of the kernels' blocks; launches and memory
 * accesses as such are not in here. See host_kernels.cc for the expected values and what
 * "equal" is.
 */
#include "host_block.h"
#include <complex>
#include "mid_cholesky_solve.cuh"
#include "host_cases.h"

namespace
{

template <class T>
using Plain = void(const char *, int *, T *, int *, int *, size_t);

struct alignas(16) Unit {
    char bytes[16];
};

/* As mid_cholesky.cu launches them. */
template <class T, bool UPPER>
void run(Case<T> &c, bool on_chip)
{
    static MidCholeskyShared<T> shared;
    const int panels = Panels(c.n).count;
    const int elements = on_chip ? blocks_on_chip(panels) * BLOCK_ELEMENTS<T>
                                 : CholeskySlices<T>::ELEMENTS;
    const int threads = LANES * (on_chip ? panels : CholeskySlices<T>::WARPS);
    /* What is not written must not be read: it is NaN. */
    std::vector<Unit> memory(elements * sizeof(T) / sizeof(Unit));
    memset(memory.data(), 0xff, memory.size() * sizeof(Unit));
    int info = -99;
    MidCholesky g = {};
    g.a = {c.a.data(), nullptr, c.lda, 0};
    g.info = {&info, nullptr, 0, 1};
    g.n = c.n;
    g.int_size = 4;
    host_warp::run(threads, [&](int thread) {
        Team team;
        team.thread = thread;
        team.threads = threads;
        if (on_chip)
            cholesky_on_chip<T, UPPER>(g, shared, (T *)memory.data(), team, 0);
        else
            cholesky_by_slices<T, UPPER>(g, shared, (T *)memory.data(), team, 0);
    });
    c.info = info;
}

template <class T, bool UPPER>
void test(int repeats)
{
    const char *uplo = UPPER ? "U" : "L";
    Plain<T> *factor = netlib<T, Plain<T>>("potrf");
    Report report("mid " + title<T>("potrf") + " " + uplo);
    for (int turn = 0; turn < repeats * KINDS * 3; turn++) {
        const int n = turn % 5 ? 33 + below(130) : 64 * (1 + below(3)) + below(2);
        Case<T> c(Kind(turn % KINDS), n, n, 0);
        c.a = definite<T>(c.kind, UPPER, n, c.lda);
        if (c.kind == RANDOM && below(2))
            c.a[below(n) * size_t(c.lda + 1)] =
                from_real<T>(Real<T>(below(2) ? -1 : NAN));
        c.a0 = c.a;
        c.label += text(" uplo=%s turn=%d", uplo, turn);
        run<T, UPPER>(c, turn % 2);
        factor(uplo, &c.n, c.a0.data(), &c.lda, &c.info0, 1);
        forget_beyond(c, UPPER);
        c.judge(report);
    }
}

template <class T>
using Solve = void(const char *, int *, int *, T *, int *, T *, int *, int *, size_t);

/* As mid_cholesky_solve.cu launches it, warp after warp. */
template <class T, bool UPPER>
void run_solve(Case<T> &c, int group)
{
    const int groups = (c.nrhs + group - 1) / group;
    int info = -99;
    MidCholeskySolve g = {};
    g.a = {c.a.data(), nullptr, c.lda, 0};
    g.b = {c.b.data(), nullptr, c.ldb, 0};
    g.info = {&info, nullptr, 0, 1};
    g.nrhs = c.nrhs;
    g.batch = 1;
    g.n = c.n;
    g.int_size = 4;
    g.group = group;
    g.groups = groups;
    for (int number = 0; number < groups; number++) {
        std::vector<Unit> memory(solve_elements<T>(c.n, group) * sizeof(T) /
                                 sizeof(Unit));
        memset(memory.data(), 0xff, memory.size() * sizeof(Unit));
        host_warp::run(LANES, [&](int thread) {
            Team team;
            team.thread = thread;
            team.threads = LANES;
            cholesky_solve_some<T, UPPER>(g, (T *)memory.data(), team, number);
        });
    }
    c.info = info;
}

template <class T, bool UPPER>
void test_solve(int repeats)
{
    const char *uplo = UPPER ? "U" : "L";
    Plain<T> *factor = netlib<T, Plain<T>>("potrf");
    Solve<T> *solve = netlib<T, Solve<T>>("potrs");
    Report report("mid " + title<T>("potrs") + " " + uplo);
    for (int turn = 0; turn < repeats * KINDS; turn++) {
        const int n = 33 + below(100), sides = 1 + below(turn % 3 ? 4 : 40);
        Case<T> c(RANDOM, n, n, sides);
        c.a = definite<T>(RANDOM, UPPER, n, c.lda);
        c.b = matrix<T>(Kind(turn % KINDS), n, sides, c.ldb);
        c.kind = Kind(turn % KINDS);
        int info;
        factor(uplo, &c.n, c.a.data(), &c.lda, &info, 1);
        if (turn % 4 == 0) /* what skips a zero shows it */
            c.a[below(n) * size_t(c.lda + 1)] = from_real<T>(INFINITY);
        if (turn % 8 == 4) /* and what takes a quotient for one */
            make_quotients_zero(c, UPPER);
        c.a0 = c.a;
        c.b0 = c.b;
        c.label += text(" uplo=%s turn=%d", uplo, turn);
        run_solve<T, UPPER>(c, 1 + below(sides < 32 ? sides : 32));
        solve(uplo, &c.n, &c.nrhs, c.a0.data(), &c.lda, c.b0.data(), &c.ldb, &c.info0, 1);
        c.judge(report);
    }
}

template <class T>
void test_both(int repeats)
{
    test_solve<T, false>(repeats);
    test_solve<T, true>(repeats);
    test<T, false>(repeats);
    test<T, true>(repeats);
}

} // namespace

int main(int argc, char **argv)
{
    return run_types(argc, argv, 3, [](auto number, int repeats) {
        test_both<decltype(number)>(repeats);
    });
}
