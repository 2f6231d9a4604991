/* Batched solves with two triangles on the host: netlib's order bit for bit, the other
 * one against netlib's numbers where the matrices are well conditioned.
 *
 *     host_triangles [LAPACK [batches of a kind]]
 *
 * The kernels of solve_chain.cuh and solve_tiles.cuh run on the fibers of host_cuda.h.
 * See host_kernels.cc for the expected values and what "equal" is.
 */
#include "host_cuda.h"
#include "solve_chain.cuh"
#include "solve_tiles.cuh"
#include "host_cases.h"

namespace
{

template <class T>
using Factor = void(int *, int *, T *, int *, int *, int *);
template <class T>
using SolvesWith = void(const char *, int *, int *, T *, int *, int *, T *, int *, int *,
                        size_t);
template <class T>
using Plain = void(const char *, int *, T *, int *, int *, size_t);
template <class T>
using SolvesDefinite = void(const char *, int *, int *, T *, int *, T *, int *, int *,
                            size_t);

/* A becomes factors, or what may pass for them. WELL: of a matrix far from singular. */
template <class T>
void pose(Case<T> &c, SolveKind kind, bool well)
{
    const bool upper = kind == SOLVE_U;
    if (kind >= SOLVE_L || well)
        c.a = definite<T>(well ? RANDOM : c.kind, upper, c.n, c.lda);
    if (kind >= SOLVE_L) {
        Array<T> factor = c.a;
        netlib<T, Plain<T>>("potrf")(upper ? "U" : "L", &c.n, factor.data(), &c.lda,
                                     &c.info, 1);
        c.a = c.info == 0 ? factor : c.a;
    } else {
        for (int j = 0; j < c.n && well; j++) /* rows in another order, both triangles */
            for (int i = 0; i < c.n; i++)
                if (i < j)
                    c.a[i + size_t(j) * c.lda] = from_real<T>(Real<T>(uniform()));
        for (int j = 0; j < c.n && well; j++)
            std::rotate(&c.a[size_t(j) * c.lda], &c.a[size_t(j) * c.lda + c.n / 3],
                        &c.a[size_t(j) * c.lda] + c.n);
        netlib<T, Factor<T>>("getrf")(&c.n, &c.n, c.a.data(), &c.lda, c.ipiv.data(),
                                      &c.info);
    }
    if (kind >= SOLVE_L && !well && below(3) == 0)
        make_quotients_zero(c, upper);
    c.info = c.info0 = -7;
    c.a0 = c.a;
    c.b0 = c.b;
    c.ipiv0 = c.ipiv;
}

template <class T>
void ask_netlib(Case<T> &c, SolveKind kind)
{
    if (kind >= SOLVE_L)
        netlib<T, SolvesDefinite<T>>("potrs")(kind == SOLVE_U ? "U" : "L", &c.n, &c.nrhs,
                                              c.a0.data(), &c.lda, c.b0.data(), &c.ldb,
                                              &c.info0, 1);
    else
        netlib<T, SolvesWith<T>>("getrs")(kind == SOLVE_N   ? "N"
                                          : kind == SOLVE_T ? "T"
                                                            : "C",
                                          &c.n, &c.nrhs, c.a0.data(), &c.lda,
                                          c.ipiv0.data(), c.b0.data(), &c.ldb, &c.info0,
                                          1);
}

/* The largest difference in units of n times the largest number times epsilon. */
template <class T>
double distance(const Case<T> &c)
{
    double most = 0, size = 0;
    for (int j = 0; j < c.nrhs; j++)
        for (int i = 0; i < c.n; i++) {
            const T x = c.b[i + size_t(j) * c.ldb], y = c.b0[i + size_t(j) * c.ldb];
            const double apart = double(abs1(sub(x, y)));
            most = apart > most || apart != apart ? apart : most;
            size = std::max(size, double(abs1(y)));
        }
    return most / (size * c.n * (sizeof(Real<T>) == 4 ? 0x1p-23 : 0x1p-52));
}

/* One launch of `kernel`, which takes `sides` right-hand sides a block of `threads`. */
template <class T>
void run(void (*kernel)(TinyArguments), std::vector<Case<T>> &cases, bool shapes,
         int sides, int threads, size_t bytes)
{
    Operands<T> o(cases);
    TinyArguments g = {};
    g.a = {nullptr, o.a.data(), cases[0].lda, 0};
    g.b = {nullptr, o.b.data(), cases[0].ldb, 0};
    g.ipiv = {nullptr, o.ipiv.data(), 0, 0};
    g.info = {nullptr, o.info.data(), 0, 0};
    g.items = shapes ? o.items.data() : nullptr;
    g.batch = int64_t(cases.size());
    g.nrhs = cases[0].nrhs;
    g.m = g.n = cases[0].n;
    g.int_size = 4;
    const int64_t blocks = threads <= 32 ? (g.batch * g.nrhs + threads - 1) / threads
                                         : g.batch * ((g.nrhs + sides - 1) / sides);
    host_cuda::launch(blocks, threads, bytes, [&] { kernel(g); });
}

template <SolveKind KIND, class T>
void test_kind(const char *name, int repeats)
{
    Report chain(title<T>(name) + " in netlib's order"),
        tiles(title<T>(name) + " by tiles");
    for (int i = 0; i < 8 * repeats; i++) {
        const bool fast = i % 2, shapes = below(3) == 0;
        const int most = 33 + below(fast ? 180 : CHAIN_ROWS - 32);
        const int nrhs = 1 + below(6), sides = nrhs > 1 ? 4 : 1;
        std::vector<Case<T>> cases;
        for (int k = 0; k < (fast ? 2 : 9); k++) {
            const int n = shapes && k > 0 ? 1 + below(most) : most;
            cases.emplace_back(Kind(below(KINDS)), n, n, nrhs);
            Case<T> &c = cases.back();
            c.lda = shapes ? c.lda : cases[0].lda;
            c.ldb = cases[0].ldb;
            c.a = matrix<T>(c.kind, n, n, c.lda);
            c.b = matrix<T>(below(4) ? RANDOM : c.kind, n, nrhs, c.ldb);
            c.pivots(false);
            pose(c, KIND, fast);
            c.label += text(" of order %d", n);
        }
        if (fast)
            run(sides > 1 ? tile_kernel<4, KIND, T> : tile_kernel<1, KIND, T>, cases,
                shapes, sides, 128, tile_bytes<T>(most, sides));
        else
            run(chain_kernel<KIND, T>, cases, shapes, 1, 32, chain_bytes<T>(most));
        for (Case<T> &c : cases) {
            ask_netlib(c, KIND);
            if (!fast)
                c.judge(chain);
            else if (c.kind == RANDOM)
                tiles.count(distance(c) < 10 && c.info == 0,
                            c.label + text(": %g from netlib's", distance(c)));
        }
    }
}

template <class T>
void test_all(int repeats)
{
    test_kind<SOLVE_N, T>("getrs N", repeats);
    test_kind<SOLVE_T, T>("getrs T", repeats);
    test_kind<SOLVE_C, T>("getrs C", repeats);
    test_kind<SOLVE_L, T>("potrs L", repeats);
    test_kind<SOLVE_U, T>("potrs U", repeats);
}

} // namespace

int main(int argc, char **argv)
{
    return run_types(argc, argv, 6, [](auto number, int repeats) {
        test_all<decltype(number)>(repeats);
    });
}
