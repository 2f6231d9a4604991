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
#include "mid_cholesky_chunks.cuh"
#include "mid_cholesky_fast.cuh"
#include "mid_cholesky_solve.cuh"
#include "mid_cholesky_tiles.cuh"
#include "mid_potri.cuh"
#include "host_cases.h"

namespace
{

template <class T>
using Plain = void(const char *, int *, T *, int *, int *, size_t);

struct alignas(16) Unit {
    char bytes[16];
};

template <bool UPPER>
constexpr CholeskyOrder netlibs = UPPER ? BY_SUMS : BY_PRODUCTS;

/* The kernels' arguments for one matrix. */
template <class T>
MidCholesky job_of(Case<T> &c, int &info)
{
    MidCholesky g = {};
    g.a = {c.a.data(), nullptr, c.lda, 0};
    g.info = {&info, nullptr, 0, 1};
    g.n = c.n;
    g.int_size = 4;
    return g;
}

/* Shared memory. What is not written must not be read: it is NaN. */
template <class T>
std::vector<Unit> unwritten(size_t elements)
{
    std::vector<Unit> memory(elements * sizeof(T) / sizeof(Unit));
    memset(memory.data(), 0xff, memory.size() * sizeof(Unit));
    return memory;
}

/* As mid_cholesky.cu launches them. */
template <class T, bool UPPER, CholeskyOrder ORDER = netlibs<UPPER>>
void run(Case<T> &c, bool on_chip)
{
    static MidCholeskyShared<T> shared;
    const int panels = Panels(c.n).count;
    const int elements = on_chip ? blocks_on_chip(panels) * BLOCK_ELEMENTS<T>
                                 : CholeskySlices<T>::ELEMENTS;
    const int threads = LANES * (on_chip ? panels : CholeskySlices<T>::WARPS);
    std::vector<Unit> memory = unwritten<T>(elements);
    int info = -99;
    const MidCholesky g = job_of(c, info);
    host_warp::run(threads, [&](int thread) {
        Team team;
        team.thread = thread;
        team.threads = threads;
        if (on_chip)
            cholesky_on_chip<T, UPPER, ORDER>(g, shared, (T *)memory.data(), team, 0);
        else
            cholesky_by_slices<T, UPPER, false, ORDER>(g, shared, (T *)memory.data(),
                                                       team, 0);
    });
    c.info = info;
}

/* The same by several blocks, in any order, a panel after the other. */
template <class T, bool UPPER, CholeskyOrder ORDER = netlibs<UPPER>>
void run_shared(Case<T> &c, int warps)
{
    static MidCholeskyShared<T> shared;
    const int panels = Panels(c.n).count;
    std::vector<T> kept(BLOCK_ELEMENTS<T>);
    int info = -99;
    const MidCholesky g = job_of(c, info);
    for (int panel = 0; panel < panels; panel++) {
        const int blocks =
            panels / (warps - 1) + 1; /* of which some have nothing to do */
        for (int i = 0; i < blocks; i++) {
            const CholeskyShare share = {panel, panel % 2 ? i : blocks - 1 - i,
                                         kept.data()};
            std::vector<Unit> memory = unwritten<T>(CholeskySlices<T>::ELEMENTS);
            host_warp::run(warps * LANES, [&](int thread) {
                Team team;
                team.thread = thread;
                team.threads = warps * LANES;
                cholesky_by_slices<T, UPPER, true, ORDER>(g, shared, (T *)memory.data(),
                                                          team, 0, share);
            });
        }
    }
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
        if (turn % 3 == 2)
            run_shared<T, UPPER>(c, 2 << below(sizeof(T) == 16 ? 2 : 3));
        else
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
        std::vector<Unit> memory = unwritten<T>(solve_elements<T>(c.n, group));
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

/* As mid_cholesky_fast.cu launches it: all panels at once, or several blocks a matrix and
 * a panel after the other. */
template <class T, bool UPPER>
void run_fast(Case<T> &c, int blocks)
{
    using Fast = FastCholesky<T, UPPER>;
    static MidCholeskyShared<T> shared;
    std::vector<T> kept(Fast::KEPT, NAN);
    const int panels = (c.n + Fast::WIDTH - 1) / Fast::WIDTH;
    int info = -99;
    MidCholeskyFast g = {};
    g.job = job_of(c, info);
    g.blocks = blocks;
    g.kept = blocks > 1 ? kept.data() : nullptr;
    const int launches = blocks > 1 ? panels : 1;
    for (int launch = 0; launch < launches; launch++) {
        g.first_panel = launch;
        g.end_panel = blocks > 1 ? launch + 1 : panels;
        for (int i = 0; i < blocks; i++) { /* on the device in any order */
            const int block = launch % 2 ? i : blocks - 1 - i;
            std::vector<Unit> memory = unwritten<T>(Fast::ELEMENTS);
            host_warp::run(Fast::WARPS * LANES, [&](int thread) {
                Team team;
                team.thread = thread;
                team.threads = Fast::WARPS * LANES;
                Fast(g, shared, (T *)memory.data(), team, 0).run(block);
            });
        }
    }
    c.info = info;
}

/* As mid_cholesky_fast.cu launches it. */
template <class T, bool UPPER, int W, int OWN>
void run_tiles(Case<T> &c)
{
    using Tiles = TileCholesky<T, UPPER, W, OWN>;
    static MidCholeskyShared<T> shared;
    std::vector<Unit> memory = unwritten<T>(Tiles::elements(c.n));
    int info = -99;
    const MidCholesky g = job_of(c, info);
    host_warp::run(W * LANES, [&](int thread) {
        Team team;
        team.thread = thread;
        team.threads = W * LANES;
        Tiles(g, shared, (T *)memory.data(), team, 0).run(g);
    });
    c.info = info;
}

template <class T, bool UPPER>
void run_tiles(Case<T> &c)
{
    if (c.n <= 48)
        run_tiles<T, UPPER, 3, 1>(c);
    else if (c.n <= 64)
        run_tiles<T, UPPER, 2, 2>(c);
    else if (c.n <= 128)
        run_tiles<T, UPPER, 4, 2>(c);
    else
        run_tiles<T, UPPER, 16, 1>(c);
}

/* As mid_cholesky_fast.cu launches it. */
template <class T, bool UPPER, int WARPS>
void run_chunks(Case<T> &c)
{
    using Chunks = ChunkCholesky<T, UPPER, WARPS>;
    static MidCholeskyShared<T> shared;
    std::vector<Unit> memory = unwritten<T>(Chunks::ELEMENTS);
    int info = -99;
    const MidCholesky g = job_of(c, info);
    host_warp::run(Chunks::THREADS, [&](int thread) {
        Team team;
        team.thread = thread;
        team.threads = Chunks::THREADS;
        Chunks(g, shared, (T *)memory.data(), team, 0).run(g);
    });
    c.info = info;
}

/* Fast arithmetic: in the order of 'L', fused; real numbers on tensor cores, too. */
template <class T, bool UPPER>
void test_fast(int repeats)
{
    const Kind kinds[] = {RANDOM, INTEGERS, TIED, ZEROS, TINY, HUGE_, EDGE, NAN_IN};
    const char *uplo = UPPER ? "U" : "L";
    Plain<T> *factor = netlib<T, Plain<T>>("potrf");
    Report report("mid " + title<T>("potrf") + " " + uplo + " fast");
    for (int turn = 0; turn < repeats * 9; turn++) {
        const int n = turn % 3 ? 33 + below(250) : 64 * (1 + below(4)) + below(2);
        const int which = turn % 9;
        Case<T> c(which < 8 ? kinds[which] : RANDOM, n, n, 0);
        c.a =
            which < 8 ? definite<T>(c.kind, UPPER, n, c.lda) : graded<T>(UPPER, n, c.lda);
        const bool fused = Traits<T>::complex || turn / 9 % 3 == 1;
        const bool tiles = n <= 256 && turn / 9 % 3 == 2;
        if (c.kind != TINY && c.kind != HUGE_)
            keep_one_small(c.a, n, c.lda);
        const int bad = below(n);
        if (which == 0 && below(2))
            c.a[bad * size_t(c.lda + 1)] = from_real<T>(Real<T>(below(2) ? -1 : NAN));
        c.a0 = c.a;
        const Array<T> before = c.a;
        const int blocks = turn % 2 ? 1 : 2 + below(4);
        if constexpr (!Traits<T>::complex) {
            if (tiles)
                run_tiles<T, UPPER>(c);
            else if (!fused)
                run_fast<T, UPPER>(c, blocks);
        }
        if (fused && blocks > 1)
            run_shared<T, UPPER, FUSED>(c, 2 << below(sizeof(T) == 16 ? 2 : 3));
        else if (fused)
            run<T, UPPER, FUSED>(c, n <= 160 && below(2));
        factor(uplo, &c.n, c.a0.data(), &c.lda, &c.info0, 1);
        c.label += text(" uplo=%s turn=%d blocks=%d fused=%d tiles=%d", uplo, turn,
                        blocks, fused, tiles);
        judge_by_residual(c, UPPER, before, report);
    }
}

/* What takes them long on the host: some orders, each once well, and bad at the first, at
 * a middle and at the last column. Leading dimensions are odd or even, so that rows or
 * columns are aligned or not. */
template <class T, bool UPPER>
void test_chunks(int repeats)
{
    const char *uplo = UPPER ? "U" : "L";
    Plain<T> *factor = netlib<T, Plain<T>>("potrf");
    Report report("mid " + title<T>("potrf") + " " + uplo + " chunks");
    int turn = 0;
    for (int n : {1, 64, 65, 127, 128, 129, 257, 300, 511, 512, 513, 777, 1000, 1024})
        for (int which = 0; which < (n > 300 && repeats < 4 ? 2 : 5); which++, turn++) {
            Case<T> c(RANDOM, n, n, 0);
            c.a = which == 4 ? graded<T>(UPPER, n, c.lda)
                             : definite<T>(RANDOM, UPPER, n, c.lda);
            const int bad[] = {-1, n > 300 ? n - 1 : 0, below(n), n - 1, -1};
            if (bad[which] >= 0)
                c.a[bad[which] * size_t(c.lda + 1)] = T(turn % 2 ? -1 : NAN);
            c.a0 = c.a;
            const Array<T> before = c.a;
            if (turn % 2)
                run_chunks<T, UPPER, 4>(c);
            else
                run_chunks<T, UPPER, 8>(c);
            factor(uplo, &c.n, c.a0.data(), &c.lda, &c.info0, 1);
            c.label += text(" uplo=%s turn=%d", uplo, turn);
            judge_by_residual(c, UPPER, before, report);
        }
}

/* As mid_potri.cu launches it. */
template <bool UPPER, int TILES>
void run_potri(Case<double> &c)
{
    using Potri = MidPotri<UPPER, TILES>;
    std::vector<Unit> memory = unwritten<double>(Potri::ELEMENTS);
    int info = -99, shared_info;
    const MidCholesky g = job_of(c, info);
    host_warp::run(Potri::THREADS, [&](int thread) {
        Team team;
        team.thread = thread;
        team.threads = Potri::THREADS;
        Potri(g, (double *)memory.data(), team, 0).run(g, &shared_info);
    });
    c.info = info;
}

/* Classes of matrices by their condition, the last ones graded: of each the largest
 * residual against netlib's. And a zero on the diagonal. */
template <bool UPPER>
void test_potri(int repeats)
{
    constexpr int CLASSES = 7;
    const char *uplo = UPPER ? "U" : "L";
    Plain<double> *factor = netlib<double, Plain<double>>("potrf"),
                  *invert = netlib<double, Plain<double>>("potri");
    Report report(text("mid dpotri %s", uplo));
    for (int which = 0; which < CLASSES; which++) {
        double ours = 0, theirs = 0;
        for (int turn = 0; turn < repeats * 20; turn++) {
            const int n = turn % 4 ? 33 + below(96) : 16 * (3 + below(6)) + below(2) - 1;
            Case<double> c(RANDOM, n, n, 0);
            if (which < 5) { /* Y D Y, Y a reflection, of condition 10^(3 which + 1) */
                std::vector<double> y(n), d(n);
                double size = 0;
                for (int i = 0; i < n; i++) {
                    y[i] = uniform();
                    size += y[i] * y[i];
                    d[i] = pow(10, -(3 * which + 1) * double(i) / n);
                }
                c.a.assign(size_t(c.lda) * n + 1, POISON);
                auto reflection = [&](int i, int k) {
                    return (i == k) - 2 * y[i] * y[k] / size;
                };
                for (int i = 0; i < n; i++)
                    for (int k = 0; k <= i; k++) {
                        double sum = 0;
                        for (int q = 0; q < n; q++)
                            sum += reflection(i, q) * d[q] * reflection(k, q);
                        c.a[UPPER ? k + i * size_t(c.lda) : i + k * size_t(c.lda)] = sum;
                    }
            } else {
                c.a = which == 5 ? graded<double>(UPPER, n, c.lda)
                                 : definite<double>(RANDOM, UPPER, n, c.lda);
            }
            const Array<double> before = c.a;
            int info;
            factor(uplo, &c.n, c.a.data(), &c.lda, &info, 1);
            if (info)
                continue;
            if (turn % 8 == 7)
                c.a[below(n) * size_t(c.lda + 1)] = c.a[(n - 1) * size_t(c.lda + 1)] = 0;
            c.a0 = c.a;
            if (n <= 48)
                run_potri<UPPER, 6>(c);
            else if (n <= 64)
                run_potri<UPPER, 8>(c);
            else if (n <= 96)
                run_potri<UPPER, 12>(c);
            else
                run_potri<UPPER, 16>(c);
            invert(uplo, &c.n, c.a0.data(), &c.lda, &c.info0, 1);
            auto of = [&](const Array<double> &a) {
                return [&, lda = c.lda](int i, int k) -> std::complex<long double> {
                    const int most = std::max(i, k), least = std::min(i, k);
                    return a[UPPER ? least + most * size_t(lda)
                                   : most + least * size_t(lda)];
                };
            };
            if (c.info0 == 0) {
                const double ratio = inverse_residual<double>(n, of(before), of(c.a));
                if (!(ratio < 30))
                    report.count(false, c.label + text(": residual %g", ratio));
                ours = std::max(ours, ratio);
                theirs =
                    std::max(theirs, inverse_residual<double>(n, of(before), of(c.a0)));
                for (int j = 0; j < n; j++)
                    for (int i = 0; i < n; i++)
                        if (UPPER ? i <= j : i >= j)
                            c.a[i + size_t(j) * c.lda] = c.a0[i + size_t(j) * c.lda];
            }
            c.label += text(" class=%d turn=%d", which, turn);
            c.judge(report); /* INFO, and what is not to be touched */
        }
        report.count(ours <= 5 * theirs,
                     text("class %d: residual %g, netlib's %g", which, ours, theirs));
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
        test_fast<decltype(number), false>(repeats);
        test_fast<decltype(number), true>(repeats);
        if constexpr (!Traits<decltype(number)>::complex) {
            test_chunks<decltype(number), false>(repeats);
            test_chunks<decltype(number), true>(repeats);
        }
        if constexpr (std::is_same_v<decltype(number), double>) {
            test_potri<false>(repeats);
            test_potri<true>(repeats);
        }
    });
}
