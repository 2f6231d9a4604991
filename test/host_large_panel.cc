/* The panels of large LU factorisations on the host, bit for bit against netlib: the
 * kernels whose blocks tell each other of their pivots, in a cluster and across the card.
 *
 *     host_large_panel [LAPACK [matrices of a kind]]
 *
 * Blocks are those of host_cluster.h; launches, and the order in which a device lets
 * others see what was written, are not in here. See host_kernels.cc for the expected
 * values and what "equal" is.
 */
#include "host_cluster.h"
#include <complex>
#include "large_panel_card.cuh"
#include "host_cases.h"

namespace
{

template <class T>
using Plain = void(int *, int *, T *, int *, int *, int *);

/* How a panel is taken: so many warps a block own rows. */
struct Way {
    bool on_card;
    int blocks, warps;
};

template <class T, int N>
struct Shared {
    PanelMail<T, N> mail;
    T finished[1];
};

/* R rows a thread. Rows and Postman(mail, threads of a block, panel) are the two kinds of
 * warps. */
template <class T, int N, int R, class Others, class Postman>
void run_panel(const LargePanel &g, const Way &way, const Postman &postman)
{
    const int threads = 32 * way.warps;
    host_cluster::run(way.blocks, threads + 32,
                      sizeof(Shared<T, N>) + sizeof(T) * g.w * threads * R, [&] {
                          auto &x = host_cluster::shared<Shared<T, N>>();
                          begin_mail(x.mail);
                          if (int(threadIdx.x) < threads)
                              PanelRows<T, N, R, Others>(x.mail, x.finished, threads, g,
                                                         way.blocks)
                                  .run(g);
                          else
                              postman(x.mail, threads + 32);
                      });
}

template <class T, int N, int R>
void factor(Case<T> &c, const Way &way)
{
    int64_t info = 0;
    int odd = 0;
    LargePanel g = {};
    g.m = c.m;
    g.w = c.n;
    g.a = c.a.data();
    g.lda = c.lda;
    g.pivots = c.ipiv.data();
    g.int_size = 4;
    g.info = &info;
    g.odd = &odd;
    if (!way.on_card) {
        run_panel<T, N, R, ClusterRows<T, N>>(g, way, [&](auto &mail, int threads) {
            PanelPostman<T, N>(mail, threads, g.w).run(g);
        });
    } else {
        using Board = CardBoard<T, N>;
        std::vector<Packet> packets(
            size_t(Board::BLOCK * way.blocks + 2 * Board::COPIES * Board::REST));
        g.work = packets.data();
        run_panel<T, N, R, CardRows<T, N>>(g, way, [&](auto &mail, int threads) {
            CardPostman<T, N>(mail, threads, g, way.blocks).run(g);
        });
    }
    c.info = int(info);
    bool finite = true;
    for (int j = 0; j < c.n; j++)
        for (int i = 0; i < c.m; i++)
            finite = finite && is_finite(c.a[i + size_t(j) * c.lda]);
    if (odd == finite)
        c.info = -1;
}

/* Which part of a complex number is not finite depends on netlib's recursion: see
 * large.cu. */
template <class T>
void forget_odd(Case<T> &c)
{
    for (size_t i = 0; i < c.a.size(); i++)
        if (!is_finite(c.a[i]) && !is_finite(c.a0[i]))
            c.a[i] = c.a0[i];
}

template <class T>
void test(int repeats)
{
    Plain<T> *reference = netlib<T, Plain<T>>("getrf");
    Report report("large panel " + title<T>("getrf"));
    /* In a cluster few warps send themselves, many by their postman. */
    const Way ways[] = {{false, 8, 1},
                        {false, 4, 9},
                        {true, 3, 1},
                        {true, 5, 3},
                        {true, 36, 1}}; /* more blocks than a warp has lanes */
    for (const Way &way : ways)
        for (int kind = 0; kind < KINDS; kind++)
            for (int r = 0; r < repeats; r++) {
                const bool slow = way.blocks * way.warps > 30;
                if (slow && kind % 3 != r % 3)
                    continue;
                const int turn = sizeof(T) == 16 ? 1 + below(2) : below(3),
                          most = 32 * way.blocks * way.warps * (turn == 2 ? 2 : 1),
                          n = 1 + below(slow        ? 9
                                        : turn == 0 ? 32
                                                    : 16),
                          m = std::max(n, most - below(std::min(most, 200)));
                Case<T> c(Kind(kind), m, n, 0);
                c.label +=
                    text(" %s of %d blocks, %d warps, way %d",
                         way.on_card ? "card" : "cluster", way.blocks, way.warps, turn);
                c.a = c.a0 = matrix<T>(c.kind, m, n, c.lda);
                c.pivots(false);
                reference(&c.m, &c.n, c.a0.data(), &c.lda, c.ipiv0.data(), &c.info0);
                if (turn == 0)
                    factor<T, sizeof(T) == 16 ? 16 : 32, 1>(c, way);
                else if (turn == 1)
                    factor<T, 16, 1>(c, way);
                else
                    factor<T, 16, 2>(c, way);
                if (Traits<T>::complex)
                    forget_odd(c);
                c.judge(report);
            }
}

} // namespace

int main(int argc, char **argv)
{
    return run_types(argc, argv, 1,
                     [](auto number, int repeats) { test<decltype(number)>(repeats); });
}
