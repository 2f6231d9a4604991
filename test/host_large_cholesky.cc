/* The step of the large Cholesky factorisation on the host: in exact arithmetic bit for
 * bit against netlib, in fast arithmetic by residual.
 *
 * A thread block is the fibers of host_block.h; launches and memory accesses as such are
 * not in here. The updates between the steps are plain loops in the order of
 * large_update.cuh, for 'U' into sums apart. See host_kernels.cc for the expected values
 * and what "equal" is.
 */
#include "host_block.h"
#include "large_cholesky_far.cuh"
#include "host_cases.h"

namespace
{

template <class T>
using Plain = void(const char *, int *, T *, int *, int *, size_t);

template <class T, bool UPPER>
void factor(Case<T> &c)
{
    using Panel = CholeskyPanel<T, UPPER>;
    auto memory = std::make_unique<typename Panel::Memory>();
    const int64_t n = c.n, lda = c.lda;
    Array<T> sums(UPPER ? size_t(n * n) : 0, from_real<T>(0));
    int64_t info = 0;
    unsigned arrived = 0;
    for (int64_t j = 0; j < n && info == 0; j += NB) {
        const int64_t w = std::min<int64_t>(NB, n - j), next = j + w;
        LargeDiagonal<T> d = {UPPER,
                              int(w),
                              &c.a[j + j * lda],
                              lda,
                              UPPER && j ? &sums[j + j * n] : nullptr,
                              n,
                              n - next,
                              &info,
                              j,
                              &arrived,
                              false,
                              false,
                              0};
        int64_t blocks = std::max<int64_t>((d.beside + Panel::ROWS - 1) / Panel::ROWS, 1);
        for (int64_t b = 0; b < blocks; b++) {
            memset((void *)memory.get(), 0xff, sizeof *memory);
            host_warp::run(Panel::THREADS, [&](int thread) {
                typename Panel::Memory &m = *memory;
                if (d.n < NB)
                    Panel::place_rows(m, d.n, thread);
                Panel::meet_block();
                Panel::fetch_all(m, d, b * Panel::ROWS, thread);
                Panel::meet_block();
                m.writes = b == blocks - 1;
                Panel::factor(m, thread);
                Panel::meet_block();
                Panel::put_rows_back(m, d, b * Panel::ROWS, thread);
                if (m.writes)
                    Panel::put_block(m, d, thread);
                if (thread == 0)
                    Panel::put_info(m, d);
            });
        }
        auto v = [&](int64_t i, int64_t k) {
            return *element(UPPER, c.a.data(), lda, i, k);
        };
        for (int64_t i = next; i < n; i++)
            for (int64_t q = next; q <= i; q++) {
                T &x = UPPER ? sums[q + i * n] : c.a[i + q * lda];
                for (int64_t k = j; k < next; k++)
                    x = sub(x, mul(conj(v(q, k)), v(i, k)));
            }
    }
    c.info = int(info);
}

/* The rows from `bottom` on of the 64 columns from j on, which belong to an outer block
 * that begins at `begin`. */
template <class T, bool UPPER>
void solve_far(Case<T> &c, int64_t begin, int64_t j, int64_t bottom, const int64_t &info)
{
    using Far = CholeskyFar<T, UPPER>;
    auto memory = std::make_unique<typename Far::Memory>();
    const LargeFar<T> d = {UPPER,        &c.a[j + j * size_t(c.lda)],
                           c.lda,        bottom - j,
                           c.n - bottom, j - begin,
                           &info,        false};
    for (int64_t first = 0; first < d.rows; first += Far::ROWS) {
        memset((void *)memory.get(), 0xff, sizeof *memory);
        host_warp::run(Far::THREADS, [&](int thread) {
            Far far(d, first, *memory, thread);
            far.take_products();
            far.solve();
        });
    }
}

/* In fast arithmetic, where `blocks` blocks of 64 columns take each other's products;
 * `far`: of the rows below them later. */
template <class T, bool UPPER>
void factor_fast(Case<T> &c, int blocks, bool far)
{
    using Left = CholeskyLeft<T, UPPER>;
    using Panel = typename Left::Panel;
    auto memory = std::make_unique<typename Left::Memory>();
    typename Panel::Memory &m = memory->panel;
    const int64_t n = c.n, lda = c.lda;
    int64_t info = 0, begin = 0;
    unsigned arrived = 0;
    for (int64_t j = 0; j < n && info == 0; j += NB) {
        const int64_t w = std::min<int64_t>(NB, n - j), next = j + w;
        const LargeDiagonal<T> d = {UPPER,
                                    int(w),
                                    &c.a[j + j * lda],
                                    lda,
                                    nullptr,
                                    0,
                                    (far ? std::min(n, begin + blocks * NB) : n) - next,
                                    &info,
                                    j,
                                    &arrived,
                                    false,
                                    true,
                                    j - begin};
        const int64_t shares =
            std::max<int64_t>((d.beside + Panel::ROWS - 1) / Panel::ROWS, 1);
        for (int64_t b = 0; b < shares; b++) {
            memset((void *)memory.get(), 0xff, sizeof *memory);
            host_warp::run(Left::THREADS, [&](int thread) {
                Left left(d, b * Panel::ROWS, *memory, thread);
                left.take_early();
                left.take_late();
                left.put();
                Panel::place_rows(m, d.n, thread);
                Panel::meet_block();
                if (thread == Left::THREADS - 1)
                    m.writes = b == shares - 1;
                Panel::factor(m, d, b * Panel::ROWS, thread);
                Panel::meet_block();
                if (thread == 0)
                    Panel::put_info(m, d);
            });
        }
        if (next - begin < blocks * NB)
            continue;
        for (int64_t i = begin; far && i < next && next < n && info == 0; i += NB)
            solve_far<T, UPPER>(c, begin, i, next, info);
        auto v = [&](int64_t i, int64_t k) -> T & {
            return *element(UPPER, c.a.data(), lda, i, k);
        };
        for (int64_t i = next; i < n; i++)
            for (int64_t q = next; q <= i; q++)
                for (int64_t k = begin; k < next; k++)
                    v(i, q) = sub(v(i, q), mul(conj(v(q, k)), v(i, k)));
        begin = next;
    }
    c.info = int(info);
}

template <class T, bool UPPER>
void test_fast(int repeats)
{
    const Kind kinds[] = {RANDOM, INTEGERS, TIED, ZEROS, TINY, HUGE_, EDGE, NAN_IN};
    const int orders[] = {1, 5, 33, 63, 64, 65, 100, 129, 161, 256, 257, 300};
    const char *uplo = UPPER ? "U" : "L";
    Plain<T> *reference = netlib<T, Plain<T>>("potrf");
    Report report("large " + title<T>("potrf") + " " + uplo + " fast");
    for (int turn = 0; turn < repeats * 9 * 4; turn++) {
        const int n = orders[turn * 5 % 12], which = turn % 9;
        Case<T> c(which < 8 ? kinds[which] : RANDOM, n, n, 0);
        c.a =
            which < 8 ? definite<T>(c.kind, UPPER, n, c.lda) : graded<T>(UPPER, n, c.lda);
        if (c.kind != TINY && c.kind != HUGE_)
            keep_one_small(c.a, n, c.lda);
        if (which == 0 && below(2))
            c.a[below(n) * size_t(c.lda + 1)] =
                from_real<T>(Real<T>(below(2) ? -1 : NAN));
        c.a0 = c.a;
        const Array<T> before = c.a;
        const int blocks = 1 + turn % 4;
        factor_fast<T, UPPER>(c, blocks, turn / 4 % 2);
        reference(uplo, &c.n, c.a0.data(), &c.lda, &c.info0, 1);
        c.label += text(" uplo=%s turn=%d blocks=%d", uplo, turn, blocks);
        judge_by_residual(c, UPPER, before, report);
    }
}

template <class T>
void test(int repeats)
{
    Plain<T> *reference = netlib<T, Plain<T>>("potrf");
    Report report("large " + title<T>("potrf"));
    const int orders[] = {1, 5, 33, 63, 64, 65, 100, 129, 161};
    for (int n : orders)
        for (int kind = 0; kind < KINDS; kind++)
            for (int r = 0; r < 2 * repeats; r++) {
                const bool upper = r % 2;
                const char *uplo = upper ? "U" : "L";
                Case<T> c(Kind(kind), n, n, 0);
                c.a = definite<T>(c.kind, upper, n, c.lda);
                c.a0 = c.a;
                c.label += text(" uplo=%s", uplo);
                reference(uplo, &n, c.a0.data(), &c.lda, &c.info0, 1);
                if (upper)
                    factor<T, true>(c);
                else
                    factor<T, false>(c);
                forget_beyond(c, upper);
                c.judge(report);
            }
}

} // namespace

int main(int argc, char **argv)
{
    return run_types(argc, argv, 1, [](auto number, int repeats) {
        test<decltype(number)>(repeats);
        test_fast<decltype(number), false>(repeats);
        test_fast<decltype(number), true>(repeats);
    });
}
