/* How many steps of a tiny LU kernel are to share their code, and where several rows a
 * lane are faster: the choice of tiny_window(), tiny_blocks() and rows_choice() in
 * kernels/.
 *
 *     bench/tiny_windows [beyond]
 *
 * Times getrf, gesv with one right-hand side and geinv of order 8, 12, 16, 20, 24, 28 and
 * 32 in all precisions, device memory, with every step's code unrolled (0), with 2, 4 and
 * 8 steps a loop, with several rows a lane on 4, 8 or 16 lanes a matrix, and so four
 * columns at a time, by launch bounds of its own; last, what the library has chosen, as
 * it is compiled there. Before, or alone, getrf of order 33 to 64 by a head. Prints
 * registers, local memory, nanoseconds a matrix (median of 3) and times over the floor,
 * every matrix read once and written once at the measured speed of a copy.
 */
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tiny_kernels.cuh"

using namespace bl;

static const size_t BYTES = size_t(3) << 30;
static const int64_t MOST = 400000; /* matrices */
static const int MOST_ORDER = 64;
static bool beyond_only; /* 32 */
static char *original, *a, *x, *b, *integers;
static cudaEvent_t before, after;
static double copy_speed;

static void must(cudaError_t error)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "tiny_windows: %s\n", cudaGetErrorString(error));
        exit(1);
    }
}

static __global__ void fill(double *p, size_t count, int parts)
{
    size_t step = size_t(gridDim.x) * blockDim.x;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += step) {
        uint64_t z = (i + 1) * 0x9E3779B97F4A7C15u;
        z ^= z >> 29;
        z *= 0xBF58476D1CE4E5B9u;
        double y = double(int64_t(z ^ z >> 32)) * 0x1p-63;
        if (parts == 2) { /* two floats, or rows would be equal */
            ((float *)p)[2 * i] = float(y);
            ((float *)p)[2 * i + 1] = float(int32_t(uint32_t(z)) * 0x1p-31);
        } else {
            p[i] = y;
        }
    }
}

static float seconds()
{
    float milliseconds;
    must(cudaEventRecord(after));
    must(cudaEventSynchronize(after));
    must(cudaEventElapsedTime(&milliseconds, before, after));
    return milliseconds * 1e-3f;
}

template <class T>
static void time_kernel(char letter, const char *name, const void *kernel, int n,
                        const char *kind, int number, int blocks, int problems = 1,
                        int warps = 1)
{
    const int64_t batch =
        std::min<int64_t>(MOST, int64_t(BYTES / (sizeof(T) * size_t(n * n))));
    TinyArguments g = {};
    g.a = {a, nullptr, n, n * n};
    g.x = {x, nullptr, n, n * n};
    g.b = {b, nullptr, n, n};
    g.ipiv = {integers, nullptr, 0, n};
    g.info = {integers + MOST * MOST_ORDER * 4, nullptr, 0, 1};
    g.batch = batch;
    g.nrhs = 1;
    g.m = g.n = n;
    g.int_size = 4;
    void *parameters[] = {&g};
    float t[3];
    for (float &time : t) {
        must(cudaMemcpy(a, original, size_t(batch) * n * n * sizeof(T),
                        cudaMemcpyDeviceToDevice));
        must(cudaMemcpy(b, original, size_t(batch) * n * sizeof(T),
                        cudaMemcpyDeviceToDevice));
        must(cudaEventRecord(before));
        must(cudaLaunchKernel(kernel, dim3(unsigned((batch + problems - 1) / problems)),
                              dim3(unsigned(32 * warps)), parameters, 0, 0));
        time = seconds();
    }
    std::sort(t, t + 3);
    cudaFuncAttributes attributes;
    must(cudaFuncGetAttributes(&attributes, kernel));
    double each = t[1] / double(batch);
    printf("%c %-5s n %2d %s %2d blocks %2d registers %3d local %3zu: %7.3f ns %5.2f "
           "x floor\n",
           letter, name, n, kind, number, blocks, attributes.numRegs,
           attributes.localSizeBytes, each * 1e9,
           each / (2.0 * sizeof(T) * n * n / copy_speed));
}

template <class T, int N, int S>
static void time_window(char letter)
{
    constexpr int FACTOR = blocks_for<T, N, BESIDE_FACTOR>;
    constexpr int SOLVE = blocks_for<T, N, BESIDE_SOLVE>;
    constexpr int INVERSE = blocks_for<T, N, BESIDE_INVERSE>;
    time_kernel<T>(letter, "getrf",
                   (const void *)tiny_factor<T, N, 1, FACTOR, LARGEST, S>, N, "window", S,
                   FACTOR);
    time_kernel<T>(letter, "gesv", (const void *)tiny_gesv<T, N, 1, SOLVE, S>, N,
                   "window", S, SOLVE);
    time_kernel<T>(letter, "geinv", (const void *)tiny_geinv<T, N, 1, INVERSE, S>, N,
                   "window", S, INVERSE);
}

template <class T, int N, int L, int BLOCKS>
static void time_lanes(char letter)
{
    time_kernel<T>(letter, "getrf", (const void *)tiny_rows_factor<T, N, L, BLOCKS>, N,
                   "lanes", L, BLOCKS, 32 / L);
    time_kernel<T>(letter, "gesv", (const void *)tiny_rows_gesv<T, N, L, BLOCKS>, N,
                   "lanes", L, BLOCKS, 32 / L);
    time_kernel<T>(letter, "geinv", (const void *)tiny_rows_geinv<T, N, L, BLOCKS>, N,
                   "lanes", L, BLOCKS, 32 / L);
}

/* As many blocks as have been found to hold their rows in registers. */
template <class T, int N>
static void time_rows(char letter)
{
    constexpr int L = N <= 24 ? 8 : 16, BLOCKS = sizeof(T) == 4 ? 16 : 8;
    time_lanes<T, N, L, BLOCKS>(letter);
}

/* Orders of one row a lane up to 16: several, too. MORE blocks than keep the rows in
 * registers, by a guess of what there is beside. */
template <class T, int N, int L, int MORE>
static void time_few_blocks(char letter)
{
    constexpr int WORDS = int(sizeof(T)) / 4 * N * (N / L);
    constexpr int REGISTERS = WORDS + 64 < 255 ? (WORDS + 64 + 7) / 8 * 8 : 255;
    constexpr int BLOCKS = 65536 / 32 / REGISTERS / 4 * 4 + MORE;
    time_lanes<T, N, L, BLOCKS>(letter);
}

template <class T, int N, int L>
static void time_few(char letter)
{
    time_few_blocks<T, N, L, -4>(letter);
    time_few_blocks<T, N, L, 0>(letter);
    time_few_blocks<T, N, L, 4>(letter);
}

template <class T, int N>
static void time_one(char letter)
{
    constexpr int W = tiny_warps(N), L = lanes_for(N);
    constexpr int FACTOR = blocks_for<T, N, BESIDE_FACTOR>;
    constexpr int SOLVE = blocks_for<T, N, BESIDE_SOLVE>;
    constexpr int INVERSE = blocks_for<T, N, BESIDE_INVERSE>;
    time_kernel<T>(letter, "getrf",
                   (const void *)tiny_factor<T, N, W, FACTOR, LARGEST, 0>, N, "one  ", L,
                   FACTOR, W * 32 / L, W);
    time_kernel<T>(letter, "gesv", (const void *)tiny_gesv<T, N, W, SOLVE, 0>, N, "one  ",
                   L, SOLVE, W * 32 / L, W);
    time_kernel<T>(letter, "geinv", (const void *)tiny_geinv<T, N, W, INVERSE, 0>, N,
                   "one  ", L, INVERSE, W * 32 / L, W);
}

/* Four columns at a time; as many blocks as have been found to compile without spilling,
 * or as shared memory has room for. */
template <class T, int N>
static void time_sheet(char letter)
{
    constexpr int L = N == 32 || sizeof(T) == 16 ? 16 : 8;
    constexpr int BYTES = 32 / L * N * (N + 4) * int(sizeof(T)) + 1500;
    constexpr int ROOM = 232448 / BYTES, BLOCKS = ROOM < 18 ? ROOM : 18;
    time_kernel<T>(letter, "getrf",
                   (const void *)tiny_sheet_factor<T, N, L, BLOCKS, true>, N, "sheet ", L,
                   BLOCKS, 32 / L);
    time_kernel<T>(letter, "getrf",
                   (const void *)tiny_sheet_factor<T, N, L, BLOCKS, false>, N, "column",
                   L, BLOCKS, 32 / L);
    time_kernel<T>(letter, "gesv", (const void *)tiny_sheet_gesv<T, N, L, BLOCKS, true>,
                   N, "sheet ", L, BLOCKS, 32 / L);
}

template <class T, int N>
static void time_order(char letter)
{
    time_window<T, N, 0>(letter);
    time_window<T, N, 2>(letter);
    time_window<T, N, 4>(letter);
    time_window<T, N, 8>(letter);
    time_sheet<T, N>(letter);
    if constexpr (sizeof(T) < 16) /* z: more than there are registers */
        time_rows<T, N>(letter);
}

/* Of order n in the class of N > 32. */
template <class T, int N, int BLOCKS>
static void time_head(char letter, int n)
{
    time_kernel<T>(letter, "getrf", (const void *)tiny_head_factor<T, N, BLOCKS>, n,
                   "head  ", 32, BLOCKS);
}

template <class T, int N>
static void time_beyond(char letter)
{
    constexpr int BASE = 65536 / 32 /
                         (sizeof(T) == 4    ? 72
                          : sizeof(T) == 16 ? 248
                          : N <= 40         ? 96
                          : N <= 44         ? 128
                                            : 152);
    for (int n = N - 3; n <= N; n += 3) {
        time_head<T, N, BASE / 4 * 4 - 4>(letter, n);
        time_head<T, N, BASE / 4 * 4>(letter, n);
        time_head<T, N, BASE / 4 * 4 + 4>(letter, n);
        const TinyKernel chosen = getrf_kernel<T, N>();
        if (chosen.kernel)
            time_kernel<T>(letter, "getrf", chosen.kernel, n, "chosen", 32, 0);
    }
}

/* As far as labels go, with as many blocks as compile without spilling; the library has
 * none of them. */
template <class T>
static void time_long_heads(char letter)
{
    constexpr bool FEW = sizeof(T) > 4;
    for (int n : {49, 52})
        time_head<T, 52, FEW ? 8 : 20>(letter, n);
    for (int n : {53, 56})
        time_head<T, 56, FEW ? 8 : 16>(letter, n);
    for (int n : {57, 60})
        time_head<T, 60, FEW ? 8 : 16>(letter, n);
    for (int n : {61, 64})
        time_head<T, 64, FEW ? 8 : 12>(letter, n);
}

/* What the library runs. */
template <class T, int N>
static void time_chosen(char letter)
{
    const struct {
        const char *name;
        TinyKernel of;
    } chosen[] = {{"getrf", getrf_kernel<T, N>()},
                  {"gesv", gesv_kernel<T, N>()},
                  {"geinv", geinv_kernel<T, N>()}};
    for (const auto &k : chosen)
        time_kernel<T>(letter, k.name, k.of.kernel, N, "chosen",
                       k.of.threads / k.of.problems, 0, k.of.problems, k.of.threads / 32);
}

template <class T>
static void time_all_chosen(char letter)
{
    time_chosen<T, 8>(letter);
    time_chosen<T, 12>(letter);
    time_chosen<T, 16>(letter);
    time_chosen<T, 20>(letter);
    time_chosen<T, 24>(letter);
    time_chosen<T, 28>(letter);
    time_chosen<T, 32>(letter);
}

template <class T>
static void time_precision(char letter)
{
    fill<<<1000, 256>>>((double *)original, BYTES / 8, sizeof(Real<T>) == 4 ? 2 : 1);
    must(cudaGetLastError());
    time_beyond<T, 36>(letter);
    time_beyond<T, 40>(letter);
    time_beyond<T, 44>(letter);
    time_beyond<T, 48>(letter);
    if constexpr (sizeof(T) < 16)
        time_long_heads<T>(letter);
    if (beyond_only)
        return;
    time_one<T, 8>(letter);
    time_few<T, 8, 4>(letter);
    time_one<T, 12>(letter);
    time_few<T, 12, 4>(letter);
    time_one<T, 16>(letter);
    time_few<T, 16, 8>(letter);
    time_sheet<T, 16>(letter);
    time_order<T, 20>(letter);
    time_order<T, 24>(letter);
    time_order<T, 28>(letter);
    time_order<T, 32>(letter);
    time_all_chosen<T>(letter);
}

int main(int argc, char **argv)
{
    beyond_only = argc > 1 && !strcmp(argv[1], "beyond");
    must(cudaMalloc(&original, BYTES));
    must(cudaMalloc(&a, BYTES));
    must(cudaMalloc(&x, BYTES));
    must(cudaMalloc(&b, size_t(MOST) * MOST_ORDER * 16));
    must(cudaMalloc(&integers, size_t(MOST) * (MOST_ORDER + 1) * 4));
    must(cudaEventCreate(&before));
    must(cudaEventCreate(&after));
    must(cudaMemset(original, 1, BYTES));
    for (int turn = 0; turn < 2; turn++) { /* the first warms up */
        must(cudaEventRecord(before));
        must(cudaMemcpyAsync(a, original, BYTES, cudaMemcpyDeviceToDevice));
        copy_speed = 2.0 * double(BYTES) / seconds();
    }
    cudaDeviceProp card;
    must(cudaGetDeviceProperties(&card, 0));
    printf("%s, copy %.0f GB/s\n", card.name, copy_speed / 1e9);
    time_precision<float>('s');
    time_precision<double>('d');
    time_precision<Complex<float>>('c');
    time_precision<Complex<double>>('z');
    return 0;
}
