/* The large triangular solve with few right-hand sides on the host, bit for bit against
 * netlib, and its fast arithmetic by the residual.
 *
 * Thread blocks are the fibers of host_block.h, some of them at once, down to one; what
 * they fetch arrives when it is waited for, and not before, and must be in the matrix.
 * See host_kernels.cc for the expected values and what "equal" is.
 */
#include "host_block.h"
#include "team.cuh"

namespace bl
{

/* Copies of a thread that are under way: a group after the other. */
struct Parcel {
    char *to;
    char bytes[16];
    size_t size;
};
std::vector<std::vector<Parcel>> parcels[host_warp::MOST];
std::vector<Parcel> unsent[host_warp::MOST];
const void *matrix_begin, *matrix_end;
bool strayed; /* something else was read */

template <class T>
void fetch(T *to, const T *from, bool there)
{
    Parcel p = {(char *)to, {}, sizeof(T)};
    const bool strays = from < matrix_begin || from + 1 > matrix_end;
    strayed = strayed || strays;
    if (there && !strays)
        memcpy(p.bytes, from, sizeof(T));
    unsent[host_warp::current].push_back(p);
}

void fetched_so_far()
{
    parcels[host_warp::current].push_back(unsent[host_warp::current]);
    unsent[host_warp::current].clear();
}

template <int LATER>
void await_fetched()
{
    auto &groups = parcels[host_warp::current];
    while (groups.size() > LATER) {
        for (const Parcel &p : groups.front())
            memcpy(p.to, p.bytes, p.size);
        groups.erase(groups.begin());
    }
}

} // namespace bl

#include "large_few.cuh"
#include "host_cases.h"

namespace
{

template <class T>
using Trsm = void(const char *, const char *, const char *, const char *, int *, int *,
                  T *, T *, int *, T *, int *, size_t, size_t, size_t, size_t);

/* What a solution that is not there yet looks like. */
template <class T>
T all_bits()
{
    T x;
    memset((void *)&x, 0xff, sizeof x);
    return x;
}

/* The triangle's kinds have small elements, so that solutions stay in range. */
template <class T>
void make_triangle(Case<T> &c, bool zeros)
{
    c.a = matrix<T>(c.kind, c.n, c.n, c.lda);
    c.b = matrix<T>(below(3) ? RANDOM : Kind(below(KINDS)), c.n, c.nrhs, c.ldb);
    for (int j = 0; j < c.n; j++)
        for (int i = 0; i < c.n; i++) {
            Real<T> *x = parts(&c.a[i + size_t(j) * c.lda]);
            for (int w = 0; w < width<T>; w++)
                if (i == j)
                    x[w] = w ? x[w] : Real<T>(x[w] + (below(2) ? c.n : -c.n));
                else if (c.kind == RANDOM && below(8))
                    x[w] /= 16;
        }
    for (int j = 0; zeros && j < c.nrhs; j++)
        for (int i = 0; i < c.n; i++)
            if (i < c.n / 3 || !below(4))
                c.b[i + size_t(j) * c.ldb] = from_real<T>(0);
    if (c.kind != RANDOM && !below(6))
        c.b[below(c.n)] = all_bits<T>();
}

template <class T, int SIDES, bool FUSED>
void solve(Case<T> &c, bool upper, char trans, bool unit, int blocks)
{
    using Few = FewSides<T, SIDES, FUSED>;
    const bool turned = trans != 'N', upwards = upper == !turned;
    const int64_t corner = upwards ? c.n - 1 : 0, sign = upwards ? -1 : 1;
    const int groups = (c.nrhs + SIDES - 1) / SIDES;
    std::vector<T> shown(size_t(c.n) * groups * SIDES, all_bits<T>());
    unsigned drawn = 0, end = unsigned(groups * ((c.n + Few::ROWS - 1) / Few::ROWS));
    LargeFew<T> s = {};
    s.n = c.n;
    s.a = c.a.data() + corner * (c.lda + 1);
    s.down = sign * (turned ? c.lda : 1);
    s.across = sign * (turned ? 1 : c.lda);
    s.turned = turned;
    s.unit = unit;
    s.b = c.b.data() + corner;
    s.step = sign;
    s.ldb = c.ldb;
    s.nrhs = c.nrhs;
    s.shown = shown.data();
    s.groups = unsigned(groups);
    matrix_begin = c.a.data();
    matrix_end = c.a.data() + size_t(c.n - 1) * c.lda + c.n;
    static std::vector<typename Few::Memory> memory(host_warp::MOST / Few::THREADS);
    strayed = false;
    host_warp::run(
        Few::THREADS,
        [&](int i) {
            const int block = i / Few::THREADS, thread = i % Few::THREADS;
            typename Few::Memory &own = memory[size_t(block)];
            for (;;) {
                if (thread == 0) {
                    memset((void *)&own, 0xff, sizeof own);
                    own.number = drawn++;
                }
                host_warp::meet_block();
                if (own.number >= end)
                    return;
                Few(s, own, thread).run();
                host_warp::meet_block();
            }
        },
        blocks);
    if (strayed) {
        c.label += ", read outside of the matrix";
        c.info = 1;
    }
}

template <class T>
double residual(const Case<T> &c, bool upper, char trans, bool unit)
{
    using Wide = std::complex<long double>;
    auto number = [](const T &x) {
        const Real<T> *p = (const Real<T> *)&x;
        return Wide(p[0], width<T> == 2 ? p[width<T> - 1] : 0);
    };
    double most = 0;
    for (int j = 0; j < c.nrhs; j++)
        for (int i = 0; i < c.n; i++) {
            const T *b = &c.b[size_t(j) * c.ldb];
            Wide sum = -number(c.b0[i + size_t(j) * c.ldb]);
            long double size = std::abs(sum);
            for (int k = 0; k < c.n; k++) {
                const bool own = i == k;
                const int row = trans == 'N' ? i : k, column = trans == 'N' ? k : i;
                if (!own && (row > column) == upper)
                    continue;
                Wide a =
                    own && unit ? Wide(1) : number(c.a[row + size_t(column) * c.lda]);
                a = trans == 'C' ? std::conj(a) : a;
                sum += a * number(b[k]);
                size += std::abs(a * number(b[k]));
            }
            most = std::max(most, double(std::abs(sum) / (size + 1e-30L)));
        }
    return most / (sizeof(Real<T>) == 4 ? 0x1p-24 : 0x1p-53) / c.n;
}

template <class T, int SIDES>
void test_orders(Report &exact, Report &fast, int repeats)
{
    Trsm<T> *reference = netlib<T, Trsm<T>>("trsm");
    const int orders[] = {1, 33, 100, 130, 257, 300, 420};
    for (int n : orders)
        for (int kind = 0; kind < (n < 257 ? KINDS : 2); kind++)
            for (int r = 0; r < (n > 100 ? 1 : 3) * repeats; r++) {
                const bool upper = below(2), unit = !upper && below(2);
                /* A lower triangle turned is netlib's chain: only for fast arithmetic. */
                const char trans = below(2) ? 'N' : 'C';
                const bool fused = kind == RANDOM && below(2);
                if (!upper && trans != 'N' && !fused)
                    continue;
                const int sides = SIDES == 1 ? 1 : 1 + below(6), blocks = 1 + below(4);
                Case<T> c(Kind(kind), n, n, sides);
                make_triangle(c, below(4) == 0);
                c.a0 = c.a;
                c.b0 = c.b;
                c.label += text(" uplo=%c trans=%c unit=%d blocks=%d", "LU"[upper], trans,
                                unit, blocks);
                if (fused) {
                    solve<T, SIDES, true>(c, upper, trans, unit, blocks);
                    const double found = residual(c, upper, trans, unit);
                    fast.count(found < 2 && !c.info,
                               c.label + text(": residual %.3g", found));
                    continue;
                }
                T alpha = one<T>();
                const char up = "LU"[upper], diagonal = unit ? 'U' : 'N';
                reference("L", &up, &trans, &diagonal, &c.n, &c.nrhs, &alpha, c.a0.data(),
                          &c.lda, c.b0.data(), &c.ldb, 1, 1, 1, 1);
                solve<T, SIDES, false>(c, upper, trans, unit, blocks);
                c.judge(exact);
            }
}

template <class T>
void test(int repeats)
{
    Report exact("large few " + title<T>("trsm")),
        fast("large few " + title<T>("trsm") + " fast");
    test_orders<T, 1>(exact, fast, repeats);
    test_orders<T, 4>(exact, fast, repeats);
}

} // namespace

int main(int argc, char **argv)
{
    return run_types(argc, argv, 1,
                     [](auto number, int repeats) { test<decltype(number)>(repeats); });
}
