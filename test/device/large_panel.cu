/* The panel kernels of large matrices (kernels/large_panel.h) against netlib's xGETRF:
 * bits, IPIV, INFO, the odd flag, and the memory around the panel. A
 * test of test/device.sh.
 *
 *   large_panel [all|quick|alone|race|race-clusters|time] [precision letters]
 *
 * quick: few shapes; alone: of these only the panels that have the card to themselves;
 * race: a few small panels without clusters, for compute-sanitizer; time: microseconds
 * instead. race-clusters: those with clusters, and alone on the card, which racecheck
 * takes for races: it does not follow st.async to another block's mbarrier, nor the way
 * by named barrier, a third warp and mbarrier on which a row's place is free again.
 * BL_REFERENCE names netlib's library (default liblapack.so.3).
 */
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>
#include <vector>
#include "../../kernels/large_panel.h"
#include "device.cuh"

using namespace bl;

namespace
{

int passed, failed; /* of a precision and kind of card */
char first_why[300];
Card card;
bool alone; /* whether panels have the card to themselves */
void *lapack;

template <class T>
struct Kind;
template <>
struct Kind<float> {
    static constexpr enum bl_precision precision = BL_S;
    static constexpr const char *getrf = "sgetrf_";
};
template <>
struct Kind<double> {
    static constexpr enum bl_precision precision = BL_D;
    static constexpr const char *getrf = "dgetrf_";
};
template <>
struct Kind<std::complex<float>> {
    static constexpr enum bl_precision precision = BL_C;
    static constexpr const char *getrf = "cgetrf_";
};
template <>
struct Kind<std::complex<double>> {
    static constexpr enum bl_precision precision = BL_Z;
    static constexpr const char *getrf = "zgetrf_";
};

uint64_t state = 1;
uint64_t bits64()
{
    state += 0x9E3779B97F4A7C15u;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}
double uniform()
{
    return double(bits64() >> 11) * 0x1p-52 - 1;
}
template <class R>
void set(R &x, double re, double)
{
    x = R(re);
}
template <class R>
void set(std::complex<R> &x, double re, double im)
{
    x = {R(re), R(im)};
}

enum Filling {
    RANDOM,
    INTEGERS,
    TIED,
    DEFICIENT,
    ZERO_COLUMN,
    ZERO,
    IDENTITY,
    BACKWARDS,
    GRADED,
    SUBNORMAL,
    NEGATIVE_ZERO,
    NAN_FIRST,
    NAN_MIDDLE,
    NAN_DIAGONAL,
    INFINITE,
    FILLINGS
};
const char *const names[] = {"random",      "integers",     "tied",          "deficient",
                             "zero column", "zero",         "identity",      "backwards",
                             "graded",      "subnormal",    "negative zero", "NaN first",
                             "NaN middle",  "NaN diagonal", "infinite"};

template <class T>
void fill(std::vector<T> &a, int64_t m, int w, int64_t lda, int filling)
{
    using R = decltype(std::abs(T()));
    for (int j = 0; j < w; j++)
        for (int64_t i = 0; i < m; i++) {
            T &x = a[i + j * lda];
            double u = uniform(), v = uniform();
            switch (filling) {
            case INTEGERS:
            case NEGATIVE_ZERO:
                u = std::floor(3 * u);
                v = std::floor(3 * v);
                if (filling == NEGATIVE_ZERO) {
                    u = u == 0 ? -0.0 : u;
                    v = v == 0 ? -0.0 : v;
                }
                break;
            case TIED:
                u = u < 0 ? -1 : 1;
                v = v < 0 ? -1 : 1;
                break;
            case ZERO_COLUMN:
                if (j == w / 2)
                    u = v = 0;
                break;
            case ZERO:
                u = v = 0;
                break;
            case IDENTITY:
                u = i == j;
                v = 0;
                break;
            case BACKWARDS:
                u = i == m - 1 - j;
                v = 0;
                break;
            case GRADED:
                u = std::ldexp(u, int(i % 40) - 20);
                v = std::ldexp(v, int(i % 40) - 20);
                break;
            case SUBNORMAL: {
                double least = double(std::numeric_limits<R>::min());
                u *= least * (j % 3 == 0 ? 2 : 0.3);
                v *= least * (j % 3 == 0 ? 2 : 0.3);
                break;
            }
            }
            set(x, u, v);
        }
    if (filling == DEFICIENT && w > 2)
        for (int64_t i = 0; i < m; i++) {
            set(a[i], std::floor(2 * uniform()), std::floor(2 * uniform()));
            a[i + (w / 2) * lda] = a[i];
            a[i + (w - 1) * lda] = a[i] + a[i];
        }
    T nan, infinity;
    set(nan, NAN, 1);
    set(infinity, 1, 0);
    infinity *= std::numeric_limits<R>::infinity();
    set(infinity, INFINITY, 1);
    const int64_t some = m * 2 / 3;
    if (filling == NAN_FIRST)
        a[some] = nan;
    if (filling == NAN_MIDDLE)
        a[some + (w / 2) * lda] = nan;
    if (filling == NAN_DIAGONAL)
        a[(w / 2) * (lda + 1)] = nan;
    if (filling == INFINITE)
        a[some + (w / 3) * lda] = infinity;
}

template <class R>
bool same_real(R x, R y, bool any_zero)
{
    return memcmp(&x, &y, sizeof x) == 0 || (x != x && y != y) ||
           (any_zero && x == 0 && y == 0);
}
bool same(float x, float y, bool z)
{
    return same_real(x, y, z);
}
bool same(double x, double y, bool z)
{
    return same_real(x, y, z);
}
template <class R>
bool same(std::complex<R> x, std::complex<R> y, bool z)
{
    return same_real(x.real(), y.real(), z) && same_real(x.imag(), y.imag(), z);
}
template <class T>
bool is_finite(T x)
{
    return std::isfinite(std::real(x)) && std::isfinite(std::imag(x));
}

/* A panel on the device, with room around it. */
template <class T>
struct Device {
    T *a;
    void *pivots, *work;
    int64_t *info;
    int *odd;

    LargePanel panel;

    Device(int64_t m, int w, int64_t lda, int int_size, int64_t offset)
    {
        size_t need = large_panel_workspace(Kind<T>::precision, m, card);
        CUDA(cudaMalloc(&a, sizeof(T) * lda * w));
        CUDA(cudaMalloc(&pivots, 8 * w));
        CUDA(cudaMalloc(&work, need));
        CUDA(cudaMalloc(&info, 8));
        CUDA(cudaMalloc(&odd, 4));

        CUDA(cudaMemset(work, 0xff, need));
        panel = {Kind<T>::precision, m,    w,   a,    lda,  offset, pivots,
                 int_size,           info, odd, work, alone};
    }
    ~Device()
    {
        cudaFree(a);
        cudaFree(pivots);
        cudaFree(work);
        cudaFree(info);
        cudaFree(odd);
    }
};

template <class T>
void run_case(int64_t m, int w, int filling, int repeats = 1)
{
    const int64_t lda = m + (m + w) % 4, offset = (m * 7 + w) % 1000;
    const int int_size = (m + w) % 2 ? 4 : 8;
    T mark;
    set(mark, 12345, 54321);
    std::vector<T> a(lda * w, mark), expected, got(lda * w);
    state = uint64_t(m) * 1000 + w * 20 + filling;
    fill(a, m, w, lda, filling);
    expected = a;
    int lm = int(m), lw = w, llda = int(lda), linfo = 0;
    std::vector<int> ipiv(w);
    auto getrf =
        (void (*)(int *, int *, T *, int *, int *, int *))dlsym(lapack, Kind<T>::getrf);
    getrf(&lm, &lw, expected.data(), &llda, ipiv.data(), &linfo);
    bool odd = false;
    for (int j = 0; j < w; j++)
        for (int64_t i = 0; i < m; i++)
            odd = odd || !is_finite(expected[i + j * lda]);

    Device<T> d(m, w, lda, int_size, offset);
    std::vector<T> before;
    char why[200] = "";
    for (int repeat = 0; repeat < repeats && !*why; repeat++) {
        CUDA(cudaMemcpy(d.a, a.data(), sizeof(T) * lda * w, cudaMemcpyHostToDevice));
        CUDA(cudaMemset(d.pivots, 0x55, 8 * w));
        CUDA(cudaMemset(d.info, 0, 8));
        CUDA(cudaMemset(d.odd, 0, 4));

        CUDA(large_panel_launch(d.panel, card, 0));
        CUDA(cudaDeviceSynchronize());
        std::vector<char> pivots(8 * w);
        int64_t info;
        int flag;

        CUDA(cudaMemcpy(got.data(), d.a, sizeof(T) * lda * w, cudaMemcpyDeviceToHost));
        CUDA(cudaMemcpy(pivots.data(), d.pivots, 8 * w, cudaMemcpyDeviceToHost));
        CUDA(cudaMemcpy(&info, d.info, 8, cudaMemcpyDeviceToHost));
        CUDA(cudaMemcpy(&flag, d.odd, 4, cudaMemcpyDeviceToHost));

        for (int j = 0; j < w && !*why; j++) {
            int64_t p = int_size == 4 ? ((int32_t *)pivots.data())[j]
                                      : ((int64_t *)pivots.data())[j];
            if (p != ipiv[j] + offset)
                snprintf(why, sizeof why, "IPIV(%d) is %lld, not %lld", j + 1,
                         (long long)(p - offset), (long long)ipiv[j]);
        }
        for (int j = 0; j < w && !*why; j++)
            for (int64_t i = 0; i < lda && !*why; i++)
                if (!same(got[i + j * lda], expected[i + j * lda],
                          filling == NEGATIVE_ZERO) &&
                    !(Kind<T>::precision >= BL_C && !is_finite(got[i + j * lda]) &&
                      !is_finite(expected[i + j * lda]))) /* which of them: LargePanel */
                    snprintf(why, sizeof why,
                             "A(%lld, %d) is %.17g %.17g, not %.17g %.17g",
                             (long long)i + 1, j + 1, double(std::real(got[i + j * lda])),
                             double(std::imag(got[i + j * lda])),
                             double(std::real(expected[i + j * lda])),
                             double(std::imag(expected[i + j * lda])));
        if (!*why && info != (linfo ? linfo + offset : 0))
            snprintf(why, sizeof why, "INFO is %lld, not %d", (long long)info, linfo);
        if (!*why && flag != odd)
            snprintf(why, sizeof why, "odd is %d", flag);
        if (!*why && repeat && memcmp(before.data(), got.data(), sizeof(T) * got.size()))
            snprintf(why, sizeof why, "repeat %d has other bits", repeat);
        before = got;
    }
    if (!*why) {
        passed++;
    } else {
        failed++;
        if (!*first_why)
            snprintf(first_why, sizeof first_why, "%lld x %d, %s: %s", (long long)m, w,
                     names[filling], why);
    }
}

/* Several launches one after the other on fresh data, the best of some such series. */
template <class T>
double microseconds(int64_t m, int w)
{
    enum { COPIES = 8 };
    const size_t bytes = sizeof(T) * m * w;
    std::vector<T> a(m * w);
    state = m;
    fill(a, m, w, m, RANDOM);
    Device<T> d(m, w, m, 4, 0);
    char *copies;
    CUDA(cudaMalloc(&copies, COPIES * bytes));
    CUDA(cudaMemcpy(d.a, a.data(), bytes, cudaMemcpyHostToDevice));
    CUDA(cudaMemset(d.info, 0, 8));
    cudaEvent_t begin, end;
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    float best = INFINITY;
    for (int turn = 0; turn < 6; turn++) {
        for (int i = 0; i < COPIES; i++)
            CUDA(cudaMemcpyAsync(copies + i * bytes, d.a, bytes,
                                 cudaMemcpyDeviceToDevice));
        CUDA(cudaEventRecord(begin));
        for (int i = 0; i < COPIES; i++) {
            LargePanel panel = d.panel;
            panel.a = copies + i * bytes;
            CUDA(large_panel_launch(panel, card, 0));
        }
        CUDA(cudaEventRecord(end));
        CUDA(cudaDeviceSynchronize());
        float ms;
        CUDA(cudaEventElapsedTime(&ms, begin, end));
        best = std::fmin(best, ms);
    }
    CUDA(cudaFree(copies));
    return best * 1000 / COPIES;
}

/* Heights on both sides of each kernel's limit. */
template <class T>
void run_shapes(bool quick)
{
    std::vector<int64_t> heights = {33, 1000, 8192, 16000};
    if (alone) /* the rest is as beside others */
        heights = {8193, 15361, 30721, 40000, 65536};
    else if (!quick)
        heights = {32,   33,   64,   100,  511,  513,   1024,  1025,  2048,
                   3001, 4096, 7681, 8192, 8193, 15000, 16385, 30001, 40000};
    for (int64_t m : heights) {
        int widest = large_panel_width(Kind<T>::precision, m, alone, card);
        if (widest > m)
            widest = int(m);
        for (int filling = 0; filling < FILLINGS; filling++)
            if (m <= 8192 || filling <= DEFICIENT)
                run_case<T>(m, widest, filling);
        for (int w = 1; w < widest; w += quick || alone ? 5 : 1)
            run_case<T>(alone || m <= 4096 ? m : 5000, w, w % 2 ? RANDOM : INTEGERS);
    }
    if (alone) {
        run_case<T>(31000, 8, RANDOM, quick ? 20 : 200);
        return;
    }
    for (int64_t m = 1; m <= 32; m++)
        for (int w = 1;
             w <= m && w <= large_panel_width(Kind<T>::precision, m, alone, card); w += 5)
            run_case<T>(m, w, RANDOM);
    run_case<T>(700, 16, RANDOM, quick ? 20 : 200);
    run_case<T>(5000, 16, RANDOM, quick ? 20 : 200);
}

/* A launch that is captured into a graph, replayed on fresh data: IPIV comes out. */
template <class T>
void run_captured()
{
    const int64_t m = alone ? 31000 : 3000;
    const int w = 8;
    std::vector<T> a(m * w);
    state = 5;
    fill(a, m, w, m, RANDOM);
    Device<T> d(m, w, m, 8, 0);
    CUDA(large_panel_launch(d.panel, card, 0)); /* what is asked once is asked */
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    CUDA(large_panel_launch(d.panel, card, stream));
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&instance, graph, 0));
    int64_t pivots[2][w];
    for (auto &p : pivots) {
        CUDA(cudaMemcpy(d.a, a.data(), sizeof(T) * m * w, cudaMemcpyHostToDevice));
        if (&p == pivots)
            CUDA(large_panel_launch(d.panel, card, stream));
        else
            CUDA(cudaGraphLaunch(instance, stream));
        CUDA(cudaStreamSynchronize(stream));
        CUDA(cudaMemcpy(p, d.pivots, sizeof p, cudaMemcpyDeviceToHost));
        CUDA(cudaMemset(d.pivots, 0, sizeof p));
    }
    if (memcmp(pivots[0], pivots[1], sizeof pivots[0]) == 0 && pivots[0][0] > 0) {
        passed++;
    } else {
        failed++;
        snprintf(first_why, sizeof first_why, "a captured launch");
    }
    CUDA(cudaGraphExecDestroy(instance));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaStreamDestroy(stream));
}

template <class T>
void print_times()
{
    for (int64_t m :
         {512, 1024, 2048, 4096, 7680, 8192, 15360, 16384, 30720, 40000, 65536}) {
        int w = large_panel_width(Kind<T>::precision, m, alone, card);
        double us = microseconds<T>(m, w);
        printf("%s %6lld x %2d: %8.2f us, %.3f a column\n", Kind<T>::getrf, (long long)m,
               w, us, us / w);
        fflush(stdout);
    }
}

template <class T>
void run_all(const std::string &mode, const char *what)
{
    if (mode == "time") {
        printf("# %s\n", what);
        print_times<T>();
        return;
    }
    passed = failed = 0;
    *first_why = 0;
    if (mode.rfind("race", 0) == 0) {
        for (int64_t m : {40, 300, 1100, 31000})
            if (alone == (m == 31000))
                run_case<T>(m, 8, RANDOM);
    } else if (card.cooperative) {
        run_shapes<T>(mode != "all");
        run_captured<T>();
    } else {
        for (int64_t m : {20, 400, 3000})
            run_case<T>(m, 13, INTEGERS);
    }
    char why[400] = "";
    if (failed)
        snprintf(why, sizeof why, "%d are wrong: %s", failed, first_why);
    verdict(why, "%s %s (%d panels)", Kind<T>::getrf, what, passed + failed);
}

} // namespace

int main(int argc, char **argv)
{
    const std::string mode = argc > 1 ? argv[1] : "all",
                      letters = argc > 2 ? argv[2] : "dzsc";
    const char *path = getenv("BL_REFERENCE");
    lapack = dlopen(path ? path : "liblapack.so.3", RTLD_NOW);
    if (!lapack)
        end_test("no LAPACK");
    const Card whole = this_card();
    const char *const kinds[] = {"on this card", "alone on this card", "without clusters",
                                 "with little shared memory", "on one block"};
    for (int kind = 0; kind < 5; kind++) {
        card = whole;
        alone = kind == 1;
        if ((mode == "alone" && !alone) || (mode == "race" && kind < 2) ||
            (mode == "race-clusters" && kind > 1))
            continue;
        if (kind > 1)
            card.capability = 80;
        if (kind == 3)
            card.shared_bytes = 24 << 10;
        if (kind == 4)
            card.cooperative = false;
        if (mode == "time" && kind > 2)
            break;
        for (char letter : letters) {
            if (letter == 's')
                run_all<float>(mode, kinds[kind]);
            if (letter == 'd')
                run_all<double>(mode, kinds[kind]);
            if (letter == 'c')
                run_all<std::complex<float>>(mode, kinds[kind]);
            if (letter == 'z')
                run_all<std::complex<double>>(mode, kinds[kind]);
        }
    }
    return failures != 0;
}
