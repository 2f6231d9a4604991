/* The pieces of the large LU factorisation on the host: the panel across a cluster, the
 * step beside it, updates and triangular solves, bit for bit against netlib; fused
 * updates by how far they are off.
 *
 *     host_large_lu [LAPACK [matrices of a kind]]
 *
 * The blocks of a cluster are fibers together, see host_cluster.h; those of other kernels
 * run one after the other. The launches of large*.cu are not in here. See host_kernels.cc
 * for the expected values and what "equal" is.
 */
#include "host_cluster.h"
#include "large_draw.cuh"
#include "large_many.cuh"
#include "large_panel.cuh"
#include "large_beside.cuh"
#include "large_triangle.cuh"
#include "host_cases.h"

namespace
{

template <class T>
using Factor = void(int *, int *, T *, int *, int *, int *);
/* What take_step() does, by blocks of one shape or the other. */
template <class T, class S>
void take_step_by(const LargeStep<T> &s)
{
    const int64_t blocks = (s.left_end - s.left + S::COLUMNS - 1) / S::COLUMNS +
                           (s.right_end - s.right + S::COLUMNS - 1) / S::COLUMNS;
    if (blocks > 0)
        host_cuda::launch(blocks, S::THREADS, 0,
                          [&] { take_step<T, LARGE_BLOCK<T>, S>(s); });
}

template <class T>
using Triangular = void(const char *, const char *, const char *, const char *, int *,
                        int *, T *, T *, int *, T *, int *, size_t, size_t, size_t,
                        size_t);

template <class T>
bool all_finite(const Array<T> &a)
{
    return std::all_of(a.begin(), a.end(), [](T x) { return is_finite(x); });
}

/* What cluster_panel() does, by `blocks` blocks of `warps` warps and a postman each. */
template <class T, int N, int R>
void factor_panel(const LargePanel &g, int blocks, int warps)
{
    using Mail = PanelMail<T, N>;
    static_assert(sizeof(Mail) <= cluster::ROOM);
    std::vector<Array<T>> finished(
        blocks, Array<T>(size_t(g.w) * warps * 32 * R, from_real<T>(Real<T>(NAN))));
    cluster::launch(blocks, 32 * (warps + 1), [&](int block) {
        Mail &mail = *(Mail *)cluster::shared[block];
        begin_mail(mail);
        if (int(threadIdx.x) < 32 * warps)
            PanelRows<T, N, R, ClusterRows<T, N>>(mail, finished[block].data(),
                                                  32 * warps, g, blocks)
                .run(g);
        else
            PanelPostman<T, N>(mail, int(blockDim.x), g.w).run(g);
    });
}

template <class T, int N, int R>
void test_panel(int repeats)
{
    Report report("large " + title<T>("panel") + text(", %d columns, %d rows", N, R));
    for (int turn = 0; turn < repeats * KINDS; turn++) {
        const bool indirect = turn % 8 == 0;
        const int blocks = indirect ? 16 : 1 << below(4),
                  warps = indirect ? 3 : 1 + below(3), w = below(2) ? N : 1 + below(N),
                  most = blocks * warps * 32 * R;
        const int m = most <= w  ? w
                      : below(2) ? most - below(std::min(40, most - w))
                                 : w + below(most - w);
        Case<T> c(Kind(turn % KINDS), m, w, 0);
        c.a = matrix<T>(c.kind, m, w, c.lda);
        c.pivots(false);
        c.a0 = c.a;
        c.label += text(" on %d blocks of %d warps", blocks, warps);
        const int offset = below(2) * 1000;
        int64_t info = 0;
        int odd = 0;
        LargePanel g = {Name<T>::precision, m, w,     c.a.data(), c.lda,  offset,
                        c.ipiv.data(),      4, &info, &odd,       nullptr};
        factor_panel<T, N, R>(g, blocks, warps);
        for (int k = 0; k < w; k++)
            c.ipiv[k] -= offset;
        c.info = info ? int(info) - offset : 0;
        netlib<T, Factor<T>>("getrf")(&c.m, &c.n, c.a0.data(), &c.lda, c.ipiv0.data(),
                                      &c.info0);
        if (odd && !all_finite(c.a0)) { /* IPIV counts; others make the values */
            c.a = c.a0;
            c.info = c.info0;
        }
        c.judge(report);
    }
}

/* C -= A B by one element after the other; `most` gets the sizes of C and the products.
 */
template <class T>
void plain_update(const LargeUpdate<T> &u, Array<T> &c, Array<Real<T>> &most)
{
    for (int64_t j = 0; j < u.n; j++)
        for (int64_t i = 0; i < u.m; i++) {
            if (u.part == LOWER_PART ? i < j : u.part == UPPER_PART && i > j)
                continue;
            T &x = c[i + j * u.ldc];
            if (u.fresh)
                x = from_real<T>(0);
            Real<T> size = abs1(x);
            for (int64_t l = 0; l < u.k; l++) {
                const T a =
                    u.of_a == TURNED ? conj(u.a[l + i * u.lda]) : u.a[i + l * u.lda];
                const T b =
                    u.of_b == TURNED ? conj(u.b[j + l * u.ldb]) : u.b[l + j * u.ldb];
                x = sub(x, mul(a, b));
                size += abs1(a) * abs1(b);
            }
            most[i + j * u.ldc] = size;
        }
}

/* How far off an update with k columns may be, times the sizes of the products. Of single
 * precision a product is of numbers with 22 bits. */
template <class T>
constexpr double EPS = sizeof(Real<T>) == 4 ? 0x1p-23 : 0x1p-52;

template <class T>
double of_update(int k)
{
    return (sizeof(Real<T>) == 4 ? 2 * k + 8 : 2 * k) * EPS<T>;
}

/* `launch` launches the kernel. `apart`: where C is large, its sizes are no excuse. */
template <class T, class F>
void test_update(const char *name, bool fused, int repeats, F launch, bool apart = false)
{
    Report report("large " + title<T>(name));
    for (int turn = 0; turn < repeats * (fused ? 6 : KINDS); turn++) {
        const int m = 1 + below(100), n = 1 + below(100), k = 1 + below(70);
        LargeUpdate<T> u = {};
        u.m = m;
        u.n = n;
        u.k = k;
        (below(3) ? u.of_b : u.of_a) = below(2) ? TURNED : PLAIN;
        u.part = below(2) ? WHOLE : below(2) ? LOWER_PART : UPPER_PART;
        u.fused = fused;
        u.fresh = fused && below(2);
        const int rows_a = u.of_a == TURNED ? k : m, rows_b = u.of_b == TURNED ? n : k;
        u.lda = rows_a + below(3);
        u.ldb = rows_b + below(3);
        u.ldc = m + below(3);
        const Kind kind = fused ? RANDOM : Kind(turn % KINDS);
        Array<T> a = matrix<T>(kind, rows_a, u.of_a == TURNED ? m : k, int(u.lda));
        Array<T> b = matrix<T>(kind, rows_b, u.of_b == TURNED ? k : n, int(u.ldb));
        Array<T> c = matrix<T>(kind, m, n, int(u.ldc));
        for (size_t i = 0; apart && i < c.size(); i++)
            c[i] = mul(from_real<T>(1024), c[i]);
        const Array<T> before = c;
        Array<T> want = c;
        Array<Real<T>> most(c.size());
        u.a = a.data();
        u.b = b.data();
        u.c = c.data();
        LargeUpdate<T> plain = u;
        plain.fresh = u.fresh || apart;
        plain_update(plain, want, most);
        for (size_t i = 0; apart && !u.fresh && i < c.size(); i++)
            if (most[i] > 0)
                want[i] = add(before[i], want[i]);
        launch(u);
        std::string off = fused ? "" : difference("C", c, want, int(u.ldc), false);
        for (size_t i = 0; fused && i < c.size(); i++)
            if (!(abs1(sub(c[i], want[i])) <=
                  of_update<T>(k) * most[i] + (apart ? 2 * EPS<T> * abs1(before[i]) : 0)))
                off = text("C[%zu] is off by %g", i, double(abs1(sub(c[i], want[i]))));
        report.count(off.empty(),
                     text("%s %d x %d x %d, %d %d, part %d: ", kind_names[kind], m, n, k,
                          u.of_a, u.of_b, u.part) +
                         off);
    }
}

template <class G, class T>
int64_t tiles_of(const LargeUpdate<T> &u)
{
    return (u.m + G::ROWS - 1) / G::ROWS * ((u.n + G::COLUMNS - 1) / G::COLUMNS);
}

template <class T, class G, bool FUSED>
void by_tiles(const LargeUpdate<T> &u)
{
    auto kernel = u.of_a == TURNED   ? update_tiles<T, G, FUSED, TURNED, PLAIN>
                  : u.of_b == TURNED ? update_tiles<T, G, FUSED, PLAIN, TURNED>
                                     : update_tiles<T, G, FUSED, PLAIN, PLAIN>;
    host_cuda::launch(tiles_of<G>(u), G::THREADS, 0, [&] { kernel(u); });
}

template <class T, class G>
void by_fragments(const LargeUpdate<T> &u)
{
    auto kernel = u.of_a == TURNED   ? update_fragments<T, G, TURNED, PLAIN>
                  : u.of_b == TURNED ? update_fragments<T, G, PLAIN, TURNED>
                                     : update_fragments<T, G, PLAIN, PLAIN>;
    host_cuda::launch(tiles_of<G>(u), G::THREADS, G::BYTES, [&] { kernel(u); });
}

/* Every tile that has some of the part has one number, and no other has any. */
template <class T>
void test_tile_numbers(int repeats)
{
    using G = TileToDraw<T>;
    Report report("large " + title<T>("tiles to draw"));
    for (int turn = 0; turn < repeats * 20; turn++) {
        LargeUpdate<T> u = {};
        u.part = below(2) ? LOWER_PART : UPPER_PART;
        u.m = 1 + below(1500);
        u.n = 1 + below(1500);
        const int64_t most = std::min(u.m, u.n) / G::COLUMNS,
                      hole = below(int(most) + 1) * G::COLUMNS;
        std::vector<std::pair<int64_t, int64_t>> want, tiles;
        for (int64_t j = 0; j < u.n; j += G::COLUMNS)
            for (int64_t i = 0; i < u.m; i += G::ROWS)
                if ((i >= hole || j >= hole) && has_some(u, i, j, G::ROWS, G::COLUMNS))
                    want.push_back({i, j});
        const TilesToDraw<G, T> all(u, hole);
        for (int64_t t = 0; t < all.count(); t++) {
            const TileStart tile = all.of_number(t);
            tiles.push_back({tile.i, tile.j});
        }
        report.count(tiles == want,
                     text("%d x %d, part %d, a hole of %d: %d tiles for %d", int(u.m),
                          int(u.n), u.part, int(hole), int(all.count()),
                          int(want.size())));
    }
}

/* Blocks of several launches that draw tiles from a counter which others have drawn from
 * before; `drawn`: else a block a tile. */
template <class T, Placing OF_A, Placing OF_B, int PIECE, bool BY_ROWS = false>
void launch_drawn(const LargeUpdate<T> &u, bool drawn, Report &report)
{
    using G = TileToDraw<T>;
    unsigned counter = 7;
    const unsigned tiles = unsigned(TilesToDraw<G, T>(u, 0).count());
    const LargeDraw draw = {drawn ? &counter : nullptr, drawn ? 7 : 0u,
                            (drawn ? 7 : 0) + tiles};
    const auto bytes = DRAWN_BYTES<T, G, OF_A, OF_B, PIECE>;
    auto kernel = [&] { update_drawn<T, G, OF_A, OF_B, PIECE, BY_ROWS>(u, draw); };
    host_cuda::launch(drawn ? 2 : tiles, G::THREADS, bytes, kernel);
    if (!drawn)
        return;
    host_cuda::launch(1, G::THREADS, bytes, kernel);
    report.count(counter == draw.end + 3, text("the counter stands at %u", counter));
}

/* 16 bytes at a time where that is possible. */
template <class T, Placing OF_A, Placing OF_B, bool BY_ROWS = false>
void test_drawn(int repeats)
{
    using G = TileToDraw<T>;
    constexpr int PART = int(sizeof(Real<T>));
    Report report("large " + title<T>("update by tiles drawn"));
    for (int turn = 0; turn < repeats * 2; turn++) {
        const bool even = turn % 2, turned_a = OF_A == TURNED, turned_b = OF_B == TURNED;
        const int k = G::DEPTH * (G::STAGES + below(4)), each = 16 / int(sizeof(T));
        LargeUpdate<T> u = {};
        u.m = 1 + below(300);
        u.n = 1 + below(300);
        u.k = k;
        u.of_a = OF_A;
        u.of_b = OF_B;
        u.part = turned_a ? UPPER_PART : turned_b ? LOWER_PART : WHOLE;
        u.fused = true;
        auto ld_of = [&](int64_t rows) {
            return even ? (rows + each - 1) / each * each : rows + below(3);
        };
        const int64_t rows_a = turned_a ? k : u.m, rows_b = turned_b ? u.n : k;
        u.lda = ld_of(rows_a);
        u.ldb = ld_of(rows_b);
        const Array<T> a = matrix<T>(RANDOM, int(u.lda), int(turned_a ? u.m : k) + 1,
                                     int(u.lda)),
                       b = matrix<T>(RANDOM, int(u.ldb), int(turned_b ? k : u.n) + 1,
                                     int(u.ldb));
        u.a = (const T *)((const char *)a.data() + (even ? 0 : PART));
        u.b = (const T *)((const char *)b.data() + (even ? 0 : PART));
        u.ldc = u.m + below(3);
        Array<T> c = matrix<T>(RANDOM, int(u.m), int(u.n), int(u.ldc)), want = c;
        u.c = want.data();
        Array<Real<T>> most(c.size());
        plain_update(u, want, most);
        Array<T> rows(size_t(u.m * (u.n + 3)));
        LargeUpdate<T> v = u;
        v.c = c.data();
        if (BY_ROWS) {
            v.c = rows.data();
            v.ldc = u.n + below(3);
            for (int64_t i = 0; i < u.m; i++)
                for (int64_t j = 0; j < u.n; j++)
                    rows[i * v.ldc + j] = c[i + j * u.ldc];
        }
        if (even)
            launch_drawn<T, OF_A, OF_B, 16, BY_ROWS>(v, u.part != WHOLE, report);
        else
            launch_drawn<T, OF_A, OF_B, PART, BY_ROWS>(v, u.part != WHOLE, report);
        std::string off;
        for (int64_t j = 0; j < u.n; j++)
            for (int64_t i = 0; i < u.m; i++) {
                const T x = BY_ROWS ? rows[i * v.ldc + j] : c[i + j * u.ldc];
                const size_t at = size_t(i + j * u.ldc);
                if (!(abs1(sub(x, want[at])) <= of_update<T>(k) * most[at]))
                    off = text("C(%d, %d) is off by %g", int(i), int(j),
                               double(abs1(sub(x, want[at]))));
            }
        report.count(off.empty(), text("%d x %d x %d, part %d, lda %d: ", int(u.m),
                                       int(u.n), k, u.part, int(u.lda)) +
                                      off);
    }
}

/* All of a matrix: panels of N columns, what they do to the others, updates. */
template <class T, int N, int R>
void test_getrf(int repeats)
{
    Report report("large " + title<T>("getrf"));
    const Kind kinds[] = {RANDOM, INTEGERS,   LOW_RANK, TIED,
                          ZEROS,  MINUS_ZERO, TINY,     EDGE};
    for (int turn = 0; turn < repeats * 8; turn++) {
        const int m = 20 + below(90), n = below(2) ? m : 20 + below(90);
        Case<T> c(kinds[turn % 8], m, n, 0);
        c.a = matrix<T>(c.kind, m, n, c.lda);
        c.pivots(false);
        c.a0 = c.a;
        int64_t info = 0;
        int odd = 0;
        const int64_t lda = c.lda, order = std::min(m, n);
        for (int64_t j = 0; j < order; j += N) {
            const int w = int(std::min<int64_t>(N, order - j));
            T *const d = &c.a[j + j * lda];
            LargePanel g = {Name<T>::precision, m - j, w,     d,    lda,    j,
                            &c.ipiv[j],         4,     &info, &odd, nullptr};
            factor_panel<T, N, R>(g, 4, int((m - j + 128 * R - 1) / (128 * R)));
            LargeStep<T> s = {w, &c.ipiv[j], 4, j, d, lda, &c.a[j], lda, 0, j, j + w, n};
            s.odd = &odd;
            if (below(2))
                take_step_by<T, MiddleStep>(s);
            else
                take_step_by<T, NarrowStep>(s);
            LargeUpdate<T> u = {m - j - w, n - j - w,   w,     d + w,
                                lda,       d + w * lda, lda,   d + w + w * lda,
                                lda,       PLAIN,       PLAIN, WHOLE};
            if (u.m > 0 && u.n > 0)
                by_tiles<T, Tile<32, 32, 4, 2, 1, 16, 4>, false>(u);
        }
        c.info = int(info);
        netlib<T, Factor<T>>("getrf")(&c.m, &c.n, c.a0.data(), &c.lda, c.ipiv0.data(),
                                      &c.info0);
        if (all_finite(c.a0))
            c.judge(report);
        else
            report.count(odd, c.label + ": odd is not told");
    }
}

/* A step by fragments: what only moves must have its bits, and what is solved for or
 * updated may be off by as much as rounding can make it. */
template <class T>
struct StepCase {
    int w, m, width, ldl, ldb, base, size = 4 << below(2);
    Array<T> l, b, want;
    Array<Real<T>> most; /* sizes of products, where there are any */
    std::vector<int32_t> short_pivots;
    std::vector<int64_t> long_pivots;
    LargeStep<T> s = {};

    StepCase(int most_w, int most_below)
        : w(below(2) ? most_w : 1 + below(most_w)), m(w + below(3) * below(most_below)),
          width(1 + below(100)), ldl(m + below(3)), ldb(m + below(3)),
          base(below(2) * 1000), l(matrix<T>(RANDOM, m, w, ldl)),
          b(matrix<T>(RANDOM, m, width, ldb)), want(b), most(b.size()), short_pivots(w),
          long_pivots(w)
    {
        const int chance = 1 + below(4);
        for (int k = 0; k < w; k++) {
            const int p = below(chance) ? k : k + below(below(2) ? m - k : w - k);
            short_pivots[k] = base + p + 1;
            long_pivots[k] = base + p + 1;
        }
        s.w = w;
        s.ipiv = size == 4 ? (void *)short_pivots.data() : (void *)long_pivots.data();
        s.int_size = size;
        s.base = base;
        s.l = l.data();
        s.ldl = ldl;
        s.b = b.data();
        s.ldb = ldb;
        s.left_end = below(2) ? below(width) : 0;
        s.right = s.left_end + below(width - int(s.left_end) + 1);
        s.right_end = s.right + below(width - int(s.right) + 1);
    }
    /* What is to come: rows of the right columns up to `end` are updated, too. */
    void work_out(int end)
    {
        for (int64_t j = 0; j < s.right_end; j++) {
            T *x = &want[j * ldb];
            Real<T> *sizes = &most[j * ldb];
            const bool right = j >= s.right;
            if (!right && j >= s.left_end)
                continue;
            for (int k = 0; k < w && s.ipiv; k++)
                std::swap(x[k], x[short_pivots[k] - 1 - base]);
            for (int i = 0; i < end && right && s.l; i++)
                sizes[i] = abs1(x[i]);
            for (int k = 0; k < w && right && s.l; k++)
                for (int i = k + 1; i < end; i++) {
                    x[i] = sub(x[i], mul(x[k], l[i + k * ldl]));
                    sizes[i] += sizes[k] * abs1(l[i + k * ldl]);
                }
        }
    }
    void judge(Report &report, const std::string &label)
    {
        std::string off;
        for (size_t i = 0; i < b.size(); i++)
            if (most[i] > 0 ? !(abs1(sub(b[i], want[i])) <= 4 * w * 0x1p-52 * most[i])
                            : memcmp(&b[i], &want[i], sizeof b[i]) != 0)
                off = text("row %zu of column %zu is off", i % ldb, i / ldb);
        report.count(off.empty(),
                     text("%d of %d rows, columns to %d, from %d to %d, ", w, m,
                          int(s.left_end), int(s.right), int(s.right_end)) +
                         label + off);
    }
};

template <class T, int W>
void test_fragment_step(int repeats)
{
    Report report("large " + title<T>("step on tensor cores") + text(", %d rows", W));
    for (int turn = 0; turn < repeats * 8; turn++) {
        StepCase<T> c(W, 200);
        LargeStep<T> &s = c.s;
        s.ipiv = below(4) ? s.ipiv : nullptr;
        s.l = below(4) ? s.l : nullptr;
        const int held = 16 << below(3);
        const bool shared = held == FRAGMENT_COLUMNS && below(2);
        const int64_t blocks =
            (s.left_end + held - 1) / held + (s.right_end - s.right + held - 1) / held;
        c.work_out(c.w);
        if (blocks > 0 && !shared)
            host_cuda::launch(blocks, 32 * STEP_WARPS, sizeof(FragmentStep<T, W>), [&] {
                take_fragment_step<T, W>({s, held});
            });
        else if (blocks > 0)
            host_cuda::launch(blocks, 32 * STEP_WARPS, sizeof(SharedStep<T, W>),
                              [&] { share_fragment_step<T, W>(s); });
        c.judge(report, text("%d a block: ", held));
    }
}

/* By clusters of `size` blocks, one after the other. */
template <class T>
void test_beside(int repeats)
{
    static_assert(sizeof(BesideMemory<T>) <= cluster::ROOM);
    Report report("large " + title<T>("panel to the columns beside it"));
    for (int turn = 0; turn < repeats * 8; turn++) {
        StepCase<T> c(BESIDE_WIDTH, 700);
        const LargeStep<T> &s = c.s;
        const int size = 1 << below(4), held = FRAGMENT_COLUMNS * STEP_WARPS;
        BesidePanel<T> p = {s, c.m, (c.m - c.w + 8 * size - 1) / (8 * size) * 8, 0};
        p.left_first =
            int(s.right_end - s.right + FRAGMENT_COLUMNS - 1) / FRAGMENT_COLUMNS * size;
        const int left = (int(s.left_end) + held - 1) / held;
        c.work_out(c.m);
        for (int first = 0; first < p.left_first + left; first += size)
            cluster::launch(size, 32 * STEP_WARPS, [&](int block) {
                take_beside_panel(p, first + block,
                                  *(BesideMemory<T> *)cluster::shared[block]);
            });
        c.judge(report, text("%d blocks: ", size));
    }
}

/* A triangle, block after block, netlib's zeros left out. */
template <class T>
void test_triangle(int repeats)
{
    Report report("large " + title<T>("triangle"));
    constexpr int W = LARGE_BLOCK<T>;
    using G = Tile<32, 32, 4, 2, 1, 16, 4>;
    for (int turn = 0; turn < repeats * KINDS; turn++) {
        /* L' is a chain in netlib, which no exact call of large.cu asks for. */
        const bool upper = below(2), turned = upper && below(2),
                   upwards = upper && !turned;
        const bool unit = below(2);
        int n = below(3) ? 1 + below(3 * W) : W, sides = 1 + below(40);
        Case<T> c(Kind(turn % KINDS), n, n, sides);
        c.a = matrix<T>(below(2) ? RANDOM : c.kind, n, n, c.lda);
        /* Netlib multiplies by one first, which makes a complex infinity two NaNs. */
        const bool spreads = Traits<T>::complex && turned;
        c.b = matrix<T>(spreads ? RANDOM : c.kind, n, sides, c.ldb);
        /* Products with -0 turn its sign, and those with a NaN or an infinity show. */
        for (T &x : c.b)
            if (!spreads && below(4) == 0)
                x = from_real<T>(below(2) ? -Real<T>(0) : Real<T>(0));
        if (below(3) == 0)
            make_quotients_zero(c, upper);
        c.a0 = c.a;
        c.b0 = c.b;
        c.label +=
            text(" %s%s%s", upper ? "U" : "L", turned ? "C" : "N", unit ? "U" : "");
        Array<T> solved(size_t(W) * sides);
        auto at = [&](int i, int j) { return &c.a[i + size_t(j) * c.lda]; };
        for (int from = 0, w; from < n; from += w) {
            w = std::min(W, n - from);
            const int j = upwards ? n - from - w : from, rest = n - from - w,
                      to = upwards ? 0 : j + w;
            LargeTriangle<T> s = {};
            s.w = w;
            s.n = sides;
            s.unit = unit;
            s.a = at(j, j);
            s.lda = c.lda;
            s.b = &c.b[j];
            s.ldb = c.ldb;
            s.solved = turned ? nullptr : solved.data();
            auto kernel = turned    ? solve_block<T, TURNED, false>
                          : upwards ? solve_block<T, PLAIN, true>
                                    : solve_block<T, PLAIN, false>;
            host_cuda::launch((sides + WideStep::COLUMNS - 1) / WideStep::COLUMNS,
                              WideStep::THREADS, 0, [&] { kernel(s); });
            LargeUpdate<T> u = {};
            u.m = rest;
            u.n = sides;
            u.k = w;
            u.a = turned ? at(j, to) : upwards ? at(0, j + w - 1) : at(to, j);
            u.lda = upwards ? -c.lda : c.lda;
            u.b = turned ? &c.b[j] : solved.data();
            u.ldb = turned ? c.ldb : W;
            u.c = &c.b[to];
            u.ldc = c.ldb;
            auto update = turned ? update_tiles<T, G, false, TURNED, PLAIN>
                                 : update_tiles<T, G, false, PLAIN, PLAIN, true>;
            if (rest > 0)
                host_cuda::launch(tiles_of<G>(u), G::THREADS, 0, [&] { update(u); });
        }
        T factor = one<T>();
        netlib<T, Triangular<T>>("trsm")(
            "L", upper ? "U" : "L", turned ? "C" : "N", unit ? "U" : "N", &n, &sides,
            &factor, c.a0.data(), &c.lda, c.b0.data(), &c.ldb, 1, 1, 1, 1);
        c.judge(report);
    }
}

/* A triangle with right-hand sides that stay on chip, by what is left of them less the
 * products of the solution; `rows`: a side is a row of B. What is not of the triangle is
 * NaN. */
template <class T, int SIDES>
void test_many(int repeats)
{
    Report report("large " + title<T>("triangle with many sides") + text(", %d", SIDES));
    for (int turn = 0; turn < repeats * 5; turn++) {
        const bool upper = below(2), turned = below(2), unit = below(2), rows = below(2),
                   upwards = upper != turned;
        constexpr int MOST = std::min<int64_t>(330, LARGE_MANY_ORDER<T>);
        const int n = 1 + below(below(3) ? 100 : MOST), sides = 1 + below(3 * SIDES),
                  ldb = (rows ? sides : n) + below(3);
        /* Pairs are aligned where the last row and column come first, too. */
        const bool paired = below(2) && !(upwards && n % 2);
        const int lda = paired ? (n + 1) / 2 * 2 + 2 * below(2) : n + below(3);
        Array<T> a = matrix<T>(RANDOM, n, n, lda),
                 b = matrix<T>(RANDOM, rows ? sides : n, rows ? n : sides, ldb);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++) {
                T &x = a[i + size_t(j) * lda];
                x = i == j ? add(one<T>(), mul(x, from_real<T>(Real<T>(0.25))))
                           : mul(x, from_real<T>(Real<T>(0.125)));
                if (i == j ? unit : upper == (i > j))
                    x = from_real<T>(Real<T>(NAN));
            }
        const Array<T> before = b;
        const int corner = upwards ? n - 1 : 0, sign = upwards ? -1 : 1;
        const LargeMany<T> s = {n,
                                &a[corner + size_t(corner) * lda],
                                sign * (turned ? lda : 1),
                                sign * (turned ? 1 : lda),
                                turned,
                                unit,
                                &b[rows ? size_t(corner) * ldb : corner],
                                sign * (rows ? ldb : 1),
                                rows ? 1 : ldb,
                                sides,
                                nullptr,
                                false};
        using S = ManyShape<T, SIDES>;
        host_cuda::launch(
            (sides + SIDES - 1) / SIDES, S::THREADS, sizeof(typename S::Memory), [&] {
                paired ? solve_many<T, SIDES, true>(s) : solve_many<T, SIDES, false>(s);
            });
        std::string off;
        Array<T> left = before;
        for (int r = 0; r < sides; r++)
            for (int i = 0; i < n; i++) {
                auto at = [&](int k) {
                    return rows ? r + size_t(k) * ldb : k + size_t(r) * ldb;
                };
                T &y = left[at(i)];
                Real<T> size = abs1(y);
                for (int k = 0; k < n; k++) {
                    if (upper != turned ? k < i : k > i)
                        continue;
                    T t = turned ? conj(a[k + size_t(i) * lda]) : a[i + size_t(k) * lda];
                    t = k == i && unit ? one<T>() : t;
                    y = sub(y, mul(t, b[at(k)]));
                    size += abs1(t) * abs1(b[at(k)]);
                }
                if (!(abs1(y) <= (2 * n + 64) * EPS<T> * size))
                    off = text("row %d of side %d is off by %g", i, r, double(abs1(y)));
            }
        const int length = rows ? sides : n;
        for (size_t i = 0; i < b.size(); i++)
            if (int(i % ldb) >= length && memcmp(&b[i], &before[i], sizeof(T)))
                off = "what is behind a column has changed";
        report.count(off.empty(),
                     text("%d, %d sides, %s%s%s%s: ", n, sides, upper ? "U" : "L",
                          turned ? "C" : "N", unit ? "U" : "", rows ? ", rows" : "") +
                         off);
    }
}

template <class T>
void test_all(int repeats)
{
    test_panel<T, 16, 2>(repeats);
    test_panel<T, 8, 4>(repeats);
    test_getrf<T, 16, 1>(repeats);
    test_triangle<T>(repeats);
    using G = Tile<32, 32, 4, 2, 1, 16, 4>;
    test_update<T>("update", false, repeats, by_tiles<T, G, false>);
    test_update<T>("fused update", true, repeats, by_tiles<T, G, true>);
    if constexpr (sizeof(Real<T>) == 8) {
        test_fragment_step<T, 32>(repeats);
        test_fragment_step<T, LARGE_BLOCK<T>>(repeats);
        test_beside<T>(repeats);
    } else {
        test_drawn<T, PLAIN, PLAIN>(repeats);
        test_drawn<T, PLAIN, PLAIN, true>(repeats);
    }
    test_update<T>("update on tensor cores", true, repeats,
                   by_fragments<T, FragmentTile<T, 64, 32, 16, 3>>);
    if constexpr (sizeof(Real<T>) == 4)
        test_update<T>("update on tensor cores of a large C", true, repeats,
                       by_fragments<T, FragmentTile<T, 64, 32, 16, 3>>, true);
    test_tile_numbers<T>(repeats);
    test_many<T, 8>(repeats);
    test_many<T, 16>(repeats);
    if constexpr (sizeof(T) < 16)
        test_many<T, 32>(repeats);
    test_drawn<T, PLAIN, TURNED>(repeats);
    test_drawn<T, TURNED, PLAIN>(repeats);
}

} // namespace

int main(int argc, char **argv)
{
    return run_types(argc, argv, 2, [](auto number, int repeats) {
        test_all<decltype(number)>(repeats);
    });
}
