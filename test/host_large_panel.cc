/* The panel of a large LU factorisation across the whole card, on the host, bit for bit
 * against netlib.
 *
 *     host_large_panel [LAPACK [matrices of a kind]]
 *
 * All blocks are fibers together, see host_cluster.h; launches, and the order in which a
 * device lets others see what was written, are not in here. See host_kernels.cc for the
 * expected values and what "equal" is.
 */
#include "host_packets.h"
#include "large_panel_card.cuh"
#include "host_cases.h"

namespace
{

template <class T>
using Factor = void(int *, int *, T *, int *, int *, int *);

/* What card_panel() does, by `blocks` blocks of `warps` warps and two postmen each. */
template <class T, int N, int R>
void factor_panel(LargePanel g, int blocks, int warps)
{
    using Mail = PanelMail<T, N>;
    using Board = CardBoard<T, N>;
    static_assert(sizeof(Mail) <= cluster::ROOM);
    const int threads = 32 * warps;
    std::vector<Array<T>> finished(
        blocks, Array<T>(size_t(g.w) * threads * R, from_real<T>(Real<T>(NAN))));
    std::vector<Packet> packets(
        size_t(Board::BLOCK * blocks + 2 * Board::COPIES * Board::REST));
    g.work = packets.data();
    cluster::launch(blocks, threads + 32 * CARD_POSTMEN, [&](int block) {
        Mail &mail = *(Mail *)cluster::shared[block];
        begin_mail(mail, 32);
        if (int(threadIdx.x) < threads)
            PanelRows<T, N, R, CardRows<T, N>>(mail, finished[block].data(), threads, g,
                                               block)
                .run(g);
        else if (int(threadIdx.x) < threads + 32)
            CardPostman<T, N>(mail, threads + 32, g, block, blocks).run(g);
        else
            CardMate<T, N>(mail, g, block, blocks).run();
    });
}

template <class T, int N, int R>
void test(int repeats)
{
    Report report("large " + title<T>("panel on the card") +
                  text(", %d columns, %d rows", N, R));
    for (int turn = 0; turn < repeats * KINDS; turn++) {
        const bool many = turn % 5 == 3; /* more blocks than a warp has lanes */
        const int blocks = many ? 36 : 1 + below(7), warps = many ? 1 : 1 + below(3),
                  w = below(2) ? N : 1 + below(N), most = blocks * warps * 32 * R;
        const int m = most <= w  ? w
                      : below(2) ? most - below(std::min(40, most - w))
                                 : w + below(most - w);
        Case<T> c(Kind(turn % KINDS), m, w, 0);
        c.a = c.a0 = matrix<T>(c.kind, m, w, c.lda);
        c.pivots(false);
        c.label += text(" on %d blocks of %d warps", blocks, warps);
        const int offset = below(2) * 1000;
        int64_t info = 0;
        int odd = 0;
        LargePanel g = {};
        g.m = m;
        g.w = w;
        g.a = c.a.data();
        g.lda = c.lda;
        g.offset = offset;
        g.pivots = c.ipiv.data();
        g.int_size = 4;
        g.info = &info;
        g.odd = &odd;
        factor_panel<T, N, R>(g, blocks, warps);
        for (int k = 0; k < w; k++)
            c.ipiv[k] -= offset;
        c.info = info ? int(info) - offset : 0;
        netlib<T, Factor<T>>("getrf")(&c.m, &c.n, c.a0.data(), &c.lda, c.ipiv0.data(),
                                      &c.info0);
        const bool finite =
            std::all_of(c.a0.begin(), c.a0.end(), [](T x) { return is_finite(x); });
        if (odd && !finite) { /* IPIV counts; others make the values */
            c.a = c.a0;
            c.info = c.info0;
        } else if (bool(odd) == finite) {
            c.info = -1;
        }
        c.judge(report);
    }
}

template <class T>
void test_all(int repeats)
{
    test<T, 16, 1>(repeats);
    test<T, 8, 2>(repeats);
    if constexpr (sizeof(T) < 16)
        test<T, 32, 1>(repeats);
}

} // namespace

int main(int argc, char **argv)
{
    return run_types(argc, argv, 1, [](auto number, int repeats) {
        test_all<decltype(number)>(repeats);
    });
}
