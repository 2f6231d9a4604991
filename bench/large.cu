/* One large matrix on the device against cuSOLVER.
 *
 *     bench/large ENGINE [routines [precisions [sizes [exact|fast]]]]
 *
 * ENGINE is libbatchlapack_cuda.so; the others are comma-separated lists, "" for all
 * routines (getrf, potrf_L, potrf_U, getrs, getrs1, getrs16, getri, gesv1, gesv1000, and
 * potrs1, potrs16, potrs, potri and posv1 of _L and _U) and precisions; sizes are
 * numbers, FIRST-LAST:STEP, or ROWSxCOLUMNS for getrf.
 *
 * These routines must be asked for.
 *
 * gemm, which comes first: the rate of cuBLAS at these orders with an inner dimension of
 * 512, as in an update, and of n; the better of the two is what potrf and getri of the
 * same call and order are compared to.
 *
 * batches: getrf at these sizes as one matrix and as a batch of one, which other kernels
 * take; the smallest ratio comes last.
 *
 * update: the engine's exact update kernel alone, C -= A B with C of these orders and the
 * inner dimension that exact getrf gives it, and with 512; its share of the rate without
 * fused operations of an H100 (and H200), 16.7 TFLOP/s of double precision.
 *
 * line: getrf at these sizes against the line through the times that getrf should at
 * least have at the orders of `reach`, a fraction of cuSOLVER's; the largest ratio comes
 * last.
 *
 * Jobs go straight to the engine; cuSOLVER's 64-bit routines run in the same process on
 * the same data. getrs has as many right-hand sides as unknowns, potrs 1000, others those
 * of their names; cuSOLVER's inverse is its getrs with the identity. gesv is also
 * compared to getrf and the floor of its solve, the greater of two times: the factors
 * read once and the right-hand sides read and written once at the speed of a copy, and
 * 2 n^2 operations a side at the rate of gemm (of exact arithmetic, without fused
 * operations).
 *
 * A square getrf and potrf are also solved with, by cuSOLVER, and the residual shown as
 * LAPACK's tests do: || b - A x || / (n eps || A || || x ||), in the maximum norm; of
 * getri || b - A X b || / (n eps || A || || X || || b ||); above 30 the program fails.
 * Prints a line a routine, precision and size: milliseconds (median on fresh data),
 * TFLOP/s and how often faster than cuSOLVER. No other process should use the card.
 */
#include <cmath>
#include <cstring>
#include <cublas_v2.h>
#include <cusolverDn.h>
#include <dlfcn.h>
#include <map>
#include <utility>

#include "../src/engine.h"
#include "device.cuh"
#include "large.h"

static const int standard_sizes[] = {512, 1024, 1536, 2048, 3000, 4096, 8192};
static const size_t element[] = {4, 8, 8, 16};
static const cudaDataType type_of[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};

static const struct bl_engine *engine;
static void *queue;
static cusolverDnHandle_t cusolver;
static cusolverDnParams_t parameters;

/* Operations a second without fused multiplication and addition, of real numbers; and of
 * gemm, where it was measured. */
static const double separate_rate[] = {33.4e12, 16.7e12, 33.4e12, 16.7e12};
static std::map<std::pair<int, int>, double> gemm_rate; /* by precision and order */

/* Median milliseconds on fresh data; the first run does not count. */
template <class Call>
static double timed(int repeats, void *a, const void *original, size_t bytes, Call call)
{
    cudaStream_t stream = (cudaStream_t)queue;
    return times(
        stream, repeats,
        [&] { cudaMemcpyAsync(a, original, bytes, cudaMemcpyDeviceToDevice, stream); },
        call)[repeats / 2];
}

/* A thread owns a row: what is left of b, which B becomes, and the sum of its moduli (of
 * a complex number, the sum of its parts'). Of A, with `uplo`, only that triangle is
 * read: the other one is its conjugate transpose. */
template <class R, int PARTS>
__global__ void subtract_product(const R *a, int n, char uplo, const R *x, R *b, R *sums)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double re = 0, im = 0, sum = 0;
    for (int j = 0; j < n; j++) {
        const bool turned = (uplo == 'L' && i < j) || (uplo == 'U' && i > j);
        const R *p = a + PARTS * (turned ? j + (size_t)i * n : i + (size_t)j * n),
                *y = x + PARTS * j;
        re += (double)p[0] * y[0];
        sum += fabs((double)p[0]);
        if (PARTS == 2) {
            const double q = turned ? -p[PARTS - 1] : p[PARTS - 1];
            re -= q * y[PARTS - 1];
            im += (double)p[0] * y[PARTS - 1] + q * y[0];
            sum += fabs(q);
        }
    }
    b[PARTS * i] -= (R)re;
    if (PARTS == 2)
        b[PARTS * i + PARTS - 1] -= (R)im;
    sums[i] = (R)sum;
}

template <class R>
static double largest(const void *device, size_t count)
{
    std::vector<R> all(count);
    double most = 0;
    must(cudaMemcpy(all.data(), device, count * sizeof(R), cudaMemcpyDeviceToHost) ==
             cudaSuccess,
         "residual");
    for (R x : all)
        most = x == x && most == most ? std::max(most, std::fabs((double)x)) : NAN;
    return most;
}

static void *memory(size_t bytes)
{
    void *p = nullptr;
    must(cudaMalloc(&p, bytes > 0 ? bytes : 1) == cudaSuccess, "memory");
    return p;
}

static std::string size_name(int m, int n)
{
    return m == n ? std::to_string(n) : std::to_string(m) + "x" + std::to_string(n);
}

/* A residual in one precision. */
template <class R, int PARTS>
struct Residual {
    const int precision, n;
    const size_t bytes;
    void *const b, *const x, *const sums, *const info;
    const double scale;

    Residual(int type, int order)
        : precision(type), n(order), bytes((size_t)n * PARTS * sizeof(R)),
          b(memory(bytes)), x(memory(bytes)), sums(memory(n * sizeof(R))),
          info(memory(sizeof(int))), scale(n * (sizeof(R) == 4 ? 0x1p-24 : 0x1p-53))
    {
        fill_all(precision, b, n, 0);
        must(cudaMemcpy(x, b, bytes, cudaMemcpyDeviceToDevice) == cudaSuccess &&
                 cudaDeviceSynchronize() == cudaSuccess,
             "residual");
    }
    ~Residual()
    {
        for (void *p : {b, x, sums, info})
            cudaFree(p);
    }
    /* to -= A from; the norm of A. */
    double subtract(const void *a, char uplo, const void *from, void *to) const
    {
        subtract_product<R, PARTS><<<(n + 255) / 256, 256>>>(
            (const R *)a, n, uplo, (const R *)from, (R *)to, (R *)sums);
        must(cudaDeviceSynchronize() == cudaSuccess, "residual");
        return largest<R>(sums, n);
    }
    /* Of the factors and, without `uplo`, their 64-bit pivots. */
    double of_factors(const void *original, char uplo, const void *factors,
                      const void *pivots) const
    {
        const cudaDataType t = type_of[precision];
        const cublasFillMode_t mode =
            uplo == 'U' ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
        must((uplo ? cusolverDnXpotrs(cusolver, parameters, mode, n, 1, t, factors, n, t,
                                      x, n, (int *)info)
                   : cusolverDnXgetrs(cusolver, parameters, CUBLAS_OP_N, n, 1, t, factors,
                                      n, (const int64_t *)pivots, t, x, n,
                                      (int *)info)) == CUSOLVER_STATUS_SUCCESS &&
                 cudaDeviceSynchronize() == cudaSuccess,
             "solve");
        const double norm = subtract(original, uplo, x, b);
        return largest<R>(b, n * PARTS) / (norm * largest<R>(x, n * PARTS) * scale);
    }
    /* || b || is about 1. */
    double of_inverse(const void *original, const void *inverse) const
    {
        void *product = memory(bytes);
        must(cudaMemset(product, 0, bytes) == cudaSuccess, "residual");
        const double inverse_norm = subtract(inverse, 0, b, product), /* -X b */
            most = largest<R>(b, n * PARTS);
        must(cudaMemset(x, 0, bytes) == cudaSuccess, "residual");
        const double norm = subtract(original, 0, product, x); /* A X b */
        std::vector<R> to(n * PARTS), from(n * PARTS);
        must(cudaMemcpy(to.data(), x, bytes, cudaMemcpyDeviceToHost) == cudaSuccess &&
                 cudaMemcpy(from.data(), b, bytes, cudaMemcpyDeviceToHost) == cudaSuccess,
             "residual");
        double error = 0;
        for (int i = 0; i < n * PARTS; i++) {
            const double e = std::fabs((double)to[i] - from[i]);
            error = e == e && error == error ? std::max(error, e) : NAN;
        }
        cudaFree(product);
        return error / (norm * inverse_norm * most * scale);
    }
};

template <class Ask>
static double residual(int precision, int n, Ask ask)
{
    return precision == BL_S   ? ask(Residual<float, 1>(BL_S, n))
           : precision == BL_D ? ask(Residual<double, 1>(BL_D, n))
           : precision == BL_C ? ask(Residual<float, 2>(BL_C, n))
                               : ask(Residual<double, 2>(BL_Z, n));
}

static bool bad; /* a residual is too large */

/* Of the rate of gemm, if it was measured; operations a millisecond. */
static void print_share(int precision, int n, double rate)
{
    const auto gemm = gemm_rate.find({precision, n});
    if (gemm != gemm_rate.end())
        printf("   %.1f %% of gemm", 1e5 * rate / gemm->second);
}

/* Milliseconds; cuSOLVER's are 0 where it was not asked. */
struct Times {
    double ours, theirs;
};

enum Whose { BOTH, OURS, THEIRS, AS_BATCH };

/* uplo 0: getrf, else potrf. Prints its line where both are asked. AS_BATCH: ours, of a
 * matrix that an array of pointers points to, which is for the kernels of batches. */
static Times measure(int precision, char uplo, int m, int n,
                     enum bl_arithmetic arithmetic, enum Whose whose = BOTH)
{
    const int least = m < n ? m : n;
    const size_t bytes = (size_t)m * n * element[precision];
    void *original = memory(bytes), *a = memory(bytes),
         *pivots = memory(least * sizeof(int64_t)), *info = memory(sizeof(int64_t));
    fill_all(precision, original, (size_t)m * n, uplo ? n : 0);
    struct bl_job job = {};
    job.routine = uplo ? BL_POTRF : BL_GETRF;
    job.precision = (enum bl_precision)precision;
    job.arithmetic = arithmetic;
    job.uplo = uplo;
    job.int_size = 8;
    job.m = m;
    job.n = n;
    job.batch = 1;
    void **array = (void **)memory(sizeof a);
    must(cudaMemcpy(array, &a, sizeof a, cudaMemcpyHostToDevice) == cudaSuccess, "array");
    job.a = {a, whose == AS_BATCH ? array : nullptr, m, 0};
    job.ipiv = {pivots, nullptr, 0, least};
    job.info = {info, nullptr, 0, 1};
    job.work = memory(engine->workspace(&job));
    /* A batch's kernel for any order leaves most of the card idle. */
    const int repeats = whose == AS_BATCH && n > 1024 ? 1
                        : n <= 2048                   ? 9
                        : n <= 4096                   ? 5
                                                      : 3;
    Times times = {};
    double error = 0;
    if (whose != THEIRS) {
        times.ours = timed(repeats, a, original, bytes,
                           [&] { must(engine->run(&job, queue) == BL_OK, "engine"); });
        if (m == n) {
            error = residual(precision, n, [&](const auto &of) {
                return of.of_factors(original, uplo, a, pivots);
            });
            bad = bad || !(error < 30);
        }
    }

    const cudaDataType t = type_of[precision];
    const cublasFillMode_t mode =
        uplo == 'U' ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
    size_t on_device = 0, on_host = 0;
    if (uplo)
        cusolverDnXpotrf_bufferSize(cusolver, parameters, mode, n, t, a, n, t, &on_device,
                                    &on_host);
    else
        cusolverDnXgetrf_bufferSize(cusolver, parameters, m, n, t, a, m, t, &on_device,
                                    &on_host);
    void *work = memory(on_device);
    std::vector<char> host_work(on_host + 1);
    if (whose == BOTH || whose == THEIRS)
        times.theirs = timed(repeats, a, original, bytes, [&] {
            cusolverStatus_t status =
                uplo ? cusolverDnXpotrf(cusolver, parameters, mode, n, t, a, n, t, work,
                                        on_device, host_work.data(), on_host, (int *)info)
                     : cusolverDnXgetrf(cusolver, parameters, m, n, t, a, m,
                                        (int64_t *)pivots, t, work, on_device,
                                        host_work.data(), on_host, (int *)info);
            must(status == CUSOLVER_STATUS_SUCCESS, "cuSOLVER");
        });
    const double k = least,
                 multiplications =
                     uplo ? k * k * k / 6
                          : (double)m * n * k - (m + n) * k * k / 2 + k * k * k / 3;
    const double operations = 2 * multiplications * (precision >= BL_C ? 4 : 1);
    if (whose == BOTH) {
        printf("%c%s %6s %10.3f ms %7.2f TFLOP/s   cuSOLVER %10.3f ms   %5.2f x",
               "sdcz"[precision],
               !uplo         ? "getrf  "
               : uplo == 'L' ? "potrf_L"
                             : "potrf_U",
               size_name(m, n).c_str(), times.ours, operations / times.ours / 1e9,
               times.theirs, times.theirs / times.ours);
        if (m == n)
            printf("   residual %.2g", error);
        if (uplo)
            print_share(precision, n, operations / times.ours);
        printf("\n");
        fflush(stdout);
    }
    void *all[] = {original, a, pivots, info, job.work, work, array};
    for (void *p : all)
        cudaFree(p);
    return times;
}

/* How often faster than cuSOLVER getrf should at least be. */
static const struct {
    int n;
    double reach;
} line[] = {{512, 2.6}, {1024, 2.6}, {2048, 2.6}, {4096, 2.5}, {8192, 2.3}};

/* Sizes between the line's first and last. */
static void measure_line(int precision, const std::vector<std::pair<int, int>> &sizes,
                         enum bl_arithmetic arithmetic)
{
    constexpr int POINTS = sizeof line / sizeof *line;
    double should[POINTS], worst = 0;
    int where = 0;
    for (int i = 0; i < POINTS; i++)
        should[i] =
            measure(precision, 0, line[i].n, line[i].n, arithmetic, THEIRS).theirs /
            line[i].reach;
    for (auto [m, n] : sizes) {
        int i = 1;
        while (i + 1 < POINTS && n > line[i].n)
            i++;
        if (m != n || n < line[0].n || n > line[POINTS - 1].n)
            continue;
        const double part = double(n - line[i - 1].n) / (line[i].n - line[i - 1].n),
                     goal = should[i - 1] + part * (should[i] - should[i - 1]),
                     ours = measure(precision, 0, n, n, arithmetic, OURS).ours;
        printf("%cgetrf   %6d %10.3f ms   line %10.3f ms   %5.2f\n", "sdcz"[precision], n,
               ours, goal, ours / goal);
        fflush(stdout);
        if (ours / goal > worst) {
            worst = ours / goal;
            where = n;
        }
    }
    printf("%cgetrf: at most %.2f times the line, at %d\n", "sdcz"[precision], worst,
           where);
}

/* The same matrix by the kernels of batches, which must not be faster. */
static void measure_batches(int precision, const std::vector<std::pair<int, int>> &sizes,
                            enum bl_arithmetic arithmetic)
{
    double least = HUGE_VAL;
    int where = 0;
    for (auto [m, n] : sizes) {
        const double one = measure(precision, 0, m, n, arithmetic, OURS).ours,
                     batch = measure(precision, 0, m, n, arithmetic, AS_BATCH).ours;
        printf("%cgetrf   %6s %10.3f ms   as a batch %10.3f ms   %5.2f x\n",
               "sdcz"[precision], size_name(m, n).c_str(), one, batch, batch / one);
        fflush(stdout);
        if (batch / one < least) {
            least = batch / one;
            where = n;
        }
    }
    printf("%cgetrf: at least %.2f times as fast as a batch, at %d\n", "sdcz"[precision],
           least, where);
}

/* getri where `inverse`, else getrs; on factors. */
static void measure_solve(int precision, bool inverse, int n, int sides,
                          enum bl_arithmetic arithmetic)
{
    const size_t square = (size_t)n * n * element[precision],
                 bytes = (size_t)n * sides * element[precision];
    const cudaDataType t = type_of[precision];
    void *original = memory(square), *a = memory(bytes), *b = memory(bytes),
         *wide = memory(n * sizeof(int64_t)), *info = memory(sizeof(int64_t));
    fill_all(precision, original, (size_t)n * n, 0);
    size_t on_device = 0, on_host = 0;
    cusolverDnXgetrf_bufferSize(cusolver, parameters, n, n, t, original, n, t, &on_device,
                                &on_host);
    void *work = memory(on_device);
    std::vector<char> host_work(on_host + 1);
    must(cusolverDnXgetrf(cusolver, parameters, n, n, t, original, n, (int64_t *)wide, t,
                          work, on_device, host_work.data(), on_host,
                          (int *)info) == CUSOLVER_STATUS_SUCCESS,
         "cuSOLVER");
    must(cudaDeviceSynchronize() == cudaSuccess, "cuSOLVER");
    struct bl_job job = {};
    job.routine = inverse ? BL_GETRI : BL_GETRS;
    job.precision = (enum bl_precision)precision;
    job.arithmetic = arithmetic;
    job.trans = inverse ? 0 : 'N';
    job.int_size = 8;
    job.m = job.n = n;
    job.nrhs = inverse ? 0 : sides;
    job.batch = 1;
    job.a = {inverse ? a : original, nullptr, n, 0};
    job.b = {inverse ? nullptr : a, nullptr, n, 0};
    job.ipiv = {wide, nullptr, 0, n};
    job.info = {info, nullptr, 0, 1};
    job.work = memory(engine->workspace(&job));
    fill_all(precision, b, (size_t)n * sides, inverse ? n : 0);
    const double ours = timed(3, a, inverse ? original : b, bytes,
                              [&] { must(engine->run(&job, queue) == BL_OK, "engine"); });
    double error = 0;
    if (inverse) {
        void *whole = memory(square); /* as it was */
        fill_all(precision, whole, (size_t)n * n, 0);
        error = residual(precision, n,
                         [&](const auto &of) { return of.of_inverse(whole, a); });
        bad = bad || !(error < 30);
        cudaFree(whole);
    }
    const double theirs = timed(3, a, b, bytes, [&] {
        must(cusolverDnXgetrs(cusolver, parameters, CUBLAS_OP_N, n, sides, t, original, n,
                              (int64_t *)wide, t, a, n,
                              (int *)info) == CUSOLVER_STATUS_SUCCESS,
             "cuSOLVER");
    });
    const double operations =
        (inverse ? 4.0 / 3 : 2) * n * n * sides * (precision >= BL_C ? 4 : 1);
    const std::string name = inverse      ? "getri"
                             : sides == n ? "getrs"
                                          : "getrs" + std::to_string(sides);
    printf("%c%-7s %6s %10.3f ms %7.2f TFLOP/s   cuSOLVER %10.3f ms   %5.2f x",
           "sdcz"[precision], name.c_str(), size_name(n, n).c_str(), ours,
           operations / ours / 1e9, theirs, theirs / ours);
    if (inverse) {
        printf("   residual %.2g", error);
        print_share(precision, n, operations / ours);
    }
    printf("\n");
    fflush(stdout);
    void *all[] = {original, a, b, wide, info, job.work, work};
    for (void *p : all)
        cudaFree(p);
}

/* The rate of cuBLAS for C -= A B with C of order n and an inner dimension of `depth`, as
 * in an update; operations a second. */
static double measure_gemm(int precision, int n, int depth, bool print = true)
{
    const size_t e = element[precision], bytes = (size_t)n * n * e;
    void *a = memory(n * e * depth), *b = memory(n * e * depth), *c = memory(bytes),
         *original = memory(bytes);
    fill_all(precision, a, (size_t)n * depth, 0);
    fill_all(precision, b, (size_t)n * depth, 0);
    fill_all(precision, original, (size_t)n * n, 0);
    const float narrow[2][2] = {{-1, 0}, {1, 0}};
    const double wide[2][2] = {{-1, 0}, {1, 0}};
    const bool single = precision == BL_S || precision == BL_C;
    const void *minus = single ? (const void *)narrow[0] : wide[0],
               *plus = single ? (const void *)narrow[1] : wide[1];
    const cublasComputeType_t how = single ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_64F;
    const cudaDataType t = type_of[precision];
    cublasHandle_t cublas;
    must(cublasCreate(&cublas) == CUBLAS_STATUS_SUCCESS &&
             cublasSetStream(cublas, (cudaStream_t)queue) == CUBLAS_STATUS_SUCCESS,
         "cuBLAS");
    const double ms = timed(depth < n ? 5 : 3, c, original, bytes, [&] {
        must(cublasGemmEx(cublas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, depth, minus, a, t, n,
                          b, t, depth, plus, c, t, n, how,
                          CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS,
             "gemm");
    });
    const double rate = 2.0 * n * n * depth * (precision >= BL_C ? 4 : 1) / ms * 1e3;
    if (print) {
        printf("%cgemm    %6d %10.3f ms %7.2f TFLOP/s   inner dimension %d\n",
               "sdcz"[precision], n, ms, rate / 1e12, depth);
        fflush(stdout);
    }
    cublasDestroy(cublas);
    for (void *p : {a, b, c, original})
        cudaFree(p);
    return rate;
}

/* Milliseconds that a solve with factors takes at least. */
static double solve_floor(int precision, int n, int sides, enum bl_arithmetic arithmetic)
{
    static double copy_speed; /* bytes read and written a second */
    if (copy_speed == 0) {
        const size_t bytes = (size_t)1 << 30;
        void *from = memory(bytes), *to = memory(bytes);
        const double ms = timed(5, from, to, 0, [&] {
            cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                            (cudaStream_t)queue);
        });
        copy_speed = 2 * (double)bytes / ms * 1e3;
        cudaFree(from);
        cudaFree(to);
    }
    const double e = (double)element[precision];
    double rate = separate_rate[precision];
    if (arithmetic == BL_FAST) {
        const auto known = gemm_rate.find({precision, n});
        rate = known != gemm_rate.end() ? known->second
                                        : measure_gemm(precision, n, 512, false);
    }
    return 1e3 * std::max(e * n * (n + 2.0 * sides) / copy_speed,
                          2.0 * n * n * sides * (precision >= BL_C ? 4 : 1) / rate);
}

/* gesv, or with `uplo` posv, against cuSOLVER's factorisation and solve. */
static void measure_whole(int precision, const char *name, char uplo, int n, int sides,
                          enum bl_arithmetic arithmetic)
{
    const size_t square = (size_t)n * n * element[precision];
    const cudaDataType t = type_of[precision];
    const cublasFillMode_t mode =
        uplo == 'U' ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
    void *original = memory(square), *a = memory(square),
         *b = memory((size_t)n * sides * element[precision]),
         *pivots = memory(n * sizeof(int64_t)), *info = memory(sizeof(int64_t));
    fill_all(precision, original, (size_t)n * n, uplo ? n : 0);
    fill_all(precision, b, (size_t)n * sides, 0);
    struct bl_job job = {};
    job.routine = uplo ? BL_POSV : BL_GESV;
    job.precision = (enum bl_precision)precision;
    job.arithmetic = arithmetic;
    job.uplo = uplo;
    job.int_size = 8;
    job.m = job.n = n;
    job.nrhs = sides;
    job.batch = 1;
    job.a = {a, nullptr, n, 0};
    job.b = {b, nullptr, n, 0};
    job.ipiv = {pivots, nullptr, 0, n};
    job.info = {info, nullptr, 0, 1};
    size_t on_device = 0, on_host = 0;
    if (uplo)
        cusolverDnXpotrf_bufferSize(cusolver, parameters, mode, n, t, a, n, t, &on_device,
                                    &on_host);
    else
        cusolverDnXgetrf_bufferSize(cusolver, parameters, n, n, t, a, n, t, &on_device,
                                    &on_host);
    void *work = memory(on_device);
    std::vector<char> host_work(on_host + 1);
    job.work = memory(engine->workspace(&job));
    const double ours = timed(3, a, original, square,
                              [&] { must(engine->run(&job, queue) == BL_OK, "engine"); });
    const double theirs = timed(3, a, original, square, [&] {
        cusolverStatus_t first =
            uplo ? cusolverDnXpotrf(cusolver, parameters, mode, n, t, a, n, t, work,
                                    on_device, host_work.data(), on_host, (int *)info)
                 : cusolverDnXgetrf(cusolver, parameters, n, n, t, a, n,
                                    (int64_t *)pivots, t, work, on_device,
                                    host_work.data(), on_host, (int *)info);
        cusolverStatus_t second =
            uplo ? cusolverDnXpotrs(cusolver, parameters, mode, n, sides, t, a, n, t, b,
                                    n, (int *)info)
                 : cusolverDnXgetrs(cusolver, parameters, CUBLAS_OP_N, n, sides, t, a, n,
                                    (int64_t *)pivots, t, b, n, (int *)info);
        must(first == CUSOLVER_STATUS_SUCCESS && second == CUSOLVER_STATUS_SUCCESS,
             "cuSOLVER");
    });
    const double operations =
        ((uplo ? 1.0 : 2.0) / 3 * n + 2.0 * sides) * n * n * (precision >= BL_C ? 4 : 1);
    printf("%c%-8s%6d %10.3f ms %7.2f TFLOP/s   cuSOLVER %10.3f ms   %5.2f x",
           "sdcz"[precision], name, n, ours, operations / ours / 1e9, theirs,
           theirs / ours);
    if (!uplo) {
        job.routine = BL_GETRF;
        job.nrhs = 0;
        cudaFree(job.work);
        job.work = memory(engine->workspace(&job));
        const double getrf = timed(3, a, original, square, [&] {
            must(engine->run(&job, queue) == BL_OK, "engine");
        });
        const double least = solve_floor(precision, n, sides, arithmetic);
        printf("   %5.2f x getrf %.3f ms and floor %.3f ms", ours / (getrf + least),
               getrf, least);
    }
    printf("\n");
    fflush(stdout);
    void *all[] = {original, a, b, pivots, info, job.work, work};
    for (void *p : all)
        cudaFree(p);
}

/* potri, or potrs with `sides` right-hand sides; on factors. */
static void measure_factored(int precision, const char *name, char uplo, int n, int sides,
                             enum bl_arithmetic arithmetic)
{
    const cudaDataType t = type_of[precision];
    const cublasFillMode_t mode =
        uplo == 'U' ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
    const size_t square = (size_t)n * n * element[precision],
                 bytes = sides ? (size_t)n * sides * element[precision] : square;
    void *factor = memory(square), *a = memory(bytes), *b = memory(bytes),
         *info = memory(sizeof(int64_t));
    size_t on_device = 0, on_host = 0;
    fill_all(precision, factor, (size_t)n * n, n);
    cusolverDnXpotrf_bufferSize(cusolver, parameters, mode, n, t, factor, n, t,
                                &on_device, &on_host);
    int length = 0; /* of potri's work space, in elements */
    cusolverStatus_t status = CUSOLVER_STATUS_SUCCESS;
    switch (sides ? -1 : precision) {
    case BL_S:
        status = cusolverDnSpotri_bufferSize(cusolver, mode, n, (float *)a, n, &length);
        break;
    case BL_D:
        status = cusolverDnDpotri_bufferSize(cusolver, mode, n, (double *)a, n, &length);
        break;
    case BL_C:
        status =
            cusolverDnCpotri_bufferSize(cusolver, mode, n, (cuComplex *)a, n, &length);
        break;
    case BL_Z:
        status = cusolverDnZpotri_bufferSize(cusolver, mode, n, (cuDoubleComplex *)a, n,
                                             &length);
        break;
    default:
        break;
    }
    void *work = memory(std::max(on_device, (size_t)length * element[precision]));
    std::vector<char> host_work(on_host + 1);
    must(status == CUSOLVER_STATUS_SUCCESS &&
             cusolverDnXpotrf(cusolver, parameters, mode, n, t, factor, n, t, work,
                              on_device, host_work.data(), on_host,
                              (int *)info) == CUSOLVER_STATUS_SUCCESS &&
             cudaDeviceSynchronize() == cudaSuccess,
         "cuSOLVER");
    fill_all(precision, b, bytes / element[precision], 0);
    struct bl_job job = {};
    job.routine = sides ? BL_POTRS : BL_POTRI;
    job.precision = (enum bl_precision)precision;
    job.arithmetic = arithmetic;
    job.uplo = uplo;
    job.int_size = 4;
    job.m = job.n = n;
    job.nrhs = sides;
    job.batch = 1;
    job.a = {sides ? factor : a, nullptr, n, 0};
    if (sides)
        job.b = {a, nullptr, n, 0};
    job.info = {info, nullptr, 0, 1};
    job.work = memory(engine->workspace(&job));
    const void *original = sides ? b : factor;
    const double ours = timed(3, a, original, bytes,
                              [&] { must(engine->run(&job, queue) == BL_OK, "engine"); });
    const double theirs = timed(3, a, original, bytes, [&] {
        int *at = (int *)info;
        cusolverStatus_t done;
        if (sides)
            done = cusolverDnXpotrs(cusolver, parameters, mode, n, sides, t, factor, n, t,
                                    a, n, at);
        else if (precision == BL_S)
            done = cusolverDnSpotri(cusolver, mode, n, (float *)a, n, (float *)work,
                                    length, at);
        else if (precision == BL_D)
            done = cusolverDnDpotri(cusolver, mode, n, (double *)a, n, (double *)work,
                                    length, at);
        else if (precision == BL_C)
            done = cusolverDnCpotri(cusolver, mode, n, (cuComplex *)a, n,
                                    (cuComplex *)work, length, at);
        else
            done = cusolverDnZpotri(cusolver, mode, n, (cuDoubleComplex *)a, n,
                                    (cuDoubleComplex *)work, length, at);
        must(done == CUSOLVER_STATUS_SUCCESS, "cuSOLVER");
    });
    const double operations =
        (sides ? 2.0 * n * n * sides : 2.0 / 3 * n * n * n) * (precision >= BL_C ? 4 : 1);
    printf("%c%-6s_%c %6d %10.3f ms %7.2f TFLOP/s   cuSOLVER %10.3f ms   %5.2f x\n",
           "sdcz"[precision], name, uplo, n, ours, operations / ours / 1e9, theirs,
           theirs / ours);
    fflush(stdout);
    void *all[] = {factor, a, b, info, job.work, work};
    for (void *p : all)
        cudaFree(p);
}

/* The exact update kernel alone. */
template <class T>
static void measure_update(int precision, int n, int depth, const bl::Card &card)
{
    const size_t e = sizeof(T), bytes = (size_t)n * n * e;
    T *a = (T *)memory(n * e * depth), *b = (T *)memory(n * e * depth),
      *c = (T *)memory(bytes), *original = (T *)memory(bytes);
    fill_all(precision, a, (size_t)n * depth, 0);
    fill_all(precision, b, (size_t)n * depth, 0);
    fill_all(precision, original, (size_t)n * n, 0);
    const bl::LargeUpdate<T> update = {n,     n, depth, a,         n,         b,
                                       depth, c, n,     bl::PLAIN, bl::PLAIN, bl::WHOLE};
    const double ms = timed(3, c, original, bytes, [&] {
        must(bl::large_update(update, card, (cudaStream_t)queue) == cudaSuccess,
             "update");
    });
    const double rate = 2.0 * n * n * depth * (precision >= BL_C ? 4 : 1) / ms * 1e3;
    printf("%cupdate  %6d %10.3f ms %7.2f TFLOP/s   inner dimension %d   %.1f %% of %.1f "
           "TFLOP/s\n",
           "sdcz"[precision], n, ms, rate / 1e12, depth,
           100 * rate / separate_rate[precision], separate_rate[precision] / 1e12);
    fflush(stdout);
    for (T *p : {a, b, c, original})
        cudaFree(p);
}

static void measure_updates(int precision, int n)
{
    cudaDeviceProp properties;
    must(cudaGetDeviceProperties(&properties, 0) == cudaSuccess, "device");
    const bl::Card card = {properties.multiProcessorCount,
                           10 * properties.major + properties.minor,
                           properties.sharedMemPerBlockOptin, true};
    for (int depth : {precision >= BL_C ? 64 : 128, 512})
        if (precision == BL_S)
            measure_update<float>(precision, n, depth, card);
        else if (precision == BL_D)
            measure_update<double>(precision, n, depth, card);
        else if (precision == BL_C)
            measure_update<bl::Complex<float>>(precision, n, depth, card);
        else
            measure_update<bl::Complex<double>>(precision, n, depth, card);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr,
                "usage: large ENGINE [routines [precisions [sizes [exact|fast]]]]\n");
        return 2;
    }
    const char *routines = argc > 2 ? argv[2] : "", *precisions = argc > 3 ? argv[3] : "";
    const bool fast = argc > 5 && !strcmp(argv[5], "fast");
    std::vector<std::pair<int, int>> sizes; /* rows and columns */
    for (const char *p = argc > 4 ? argv[4] : ""; *p;
         p += strcspn(p, ","), p += *p == ',') {
        const char *by = p + strspn(p, "0123456789");
        int last = 0, step = 0;
        if (sscanf(by, "-%d:%d", &last, &step) == 2 && step > 0)
            for (int n = atoi(p); n <= last; n += step)
                sizes.push_back({n, n});
        else
            sizes.push_back({atoi(p), atoi(*by == 'x' ? by + 1 : p)});
    }
    if (sizes.empty())
        for (int n : standard_sizes)
            sizes.push_back({n, n});
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fprintf(stderr, "large: %s\n", dlerror());
    engine =
        library ? (const struct bl_engine *)dlsym(library, BL_ENGINE_SYMBOL) : nullptr;
    struct bl_device device;
    char why[200] = "no engine";
    must(engine && engine->abi == BL_ENGINE_ABI &&
             engine->open(0, &device, why, sizeof why) == BL_OK &&
             engine->queue_open(&queue) == BL_OK,
         why);
    must(cusolverDnCreate(&cusolver) == CUSOLVER_STATUS_SUCCESS &&
             cusolverDnCreateParams(&parameters) == CUSOLVER_STATUS_SUCCESS &&
             cusolverDnSetStream(cusolver, (cudaStream_t)queue) ==
                 CUSOLVER_STATUS_SUCCESS,
         "cuSOLVER");
    printf("%s, %s\n", device.name, fast ? "fast" : "exact");
    for (int p = 0; p < BL_PRECISIONS; p++)
        for (auto [m, n] : sizes)
            if (*routines && listed(routines, "gemm") && m == n &&
                listed(precisions, std::string(1, "sdcz"[p])))
                for (int depth : {std::min(n, 512), n})
                    gemm_rate[{p, n}] =
                        std::max(gemm_rate[{p, n}], measure_gemm(p, n, depth));
    static const struct {
        const char *name;
        char uplo;
    } rows[] = {{"getrf", 0}, {"potrf_L", 'L'}, {"potrf_U", 'U'}};
    for (const auto &row : rows)
        for (int p = 0; p < BL_PRECISIONS; p++)
            for (auto [m, n] : sizes)
                if (listed(routines, row.name) && (m == n || !row.uplo) &&
                    listed(precisions, std::string(1, "sdcz"[p])))
                    measure(p, row.uplo, m, n, fast ? BL_FAST : BL_EXACT);
    static const struct {
        const char *name;
        int sides;
    } factored[] = {{"potrs1", 1}, {"potrs16", 16}, {"potrs", 1000}, {"potri", 0}};
    for (const auto &row : factored)
        for (char uplo : {'L', 'U'})
            for (int p = 0; p < BL_PRECISIONS; p++)
                for (auto [m, n] : sizes)
                    if (listed(routines, std::string(row.name) + '_' + uplo) && m == n &&
                        listed(precisions, std::string(1, "sdcz"[p])))
                        measure_factored(p, row.name, uplo, n, row.sides,
                                         fast ? BL_FAST : BL_EXACT);
    static const struct {
        const char *name;
        int sides; /* 0: as many as unknowns */
        char uplo;
    } solves[] = {{"getrs", 0, 0},     {"getrs1", 1, 0},   {"getrs16", 16, 0},
                  {"getri", 0, 0},     {"gesv1", 1, 0},    {"gesv1000", 1000, 0},
                  {"posv1_L", 1, 'L'}, {"posv1_U", 1, 'U'}};
    for (const auto &row : solves)
        for (int p = 0; p < BL_PRECISIONS; p++)
            for (auto [m, n] : sizes) {
                const bool inverse = !strcmp(row.name, "getri");
                if (!listed(routines, row.name) || m != n ||
                    !listed(precisions, std::string(1, "sdcz"[p])) || (inverse && !fast))
                    continue;
                if (strstr(row.name, "sv"))
                    measure_whole(p, row.name, row.uplo, n, row.sides,
                                  fast ? BL_FAST : BL_EXACT);
                else
                    measure_solve(p, inverse, n, row.sides ? row.sides : n,
                                  fast ? BL_FAST : BL_EXACT);
            }
    for (int p = 0; p < BL_PRECISIONS; p++)
        if (*routines && listed(routines, "line") &&
            listed(precisions, std::string(1, "sdcz"[p])))
            measure_line(p, sizes, fast ? BL_FAST : BL_EXACT);
    for (int p = 0; p < BL_PRECISIONS; p++)
        if (*routines && listed(routines, "batches") &&
            listed(precisions, std::string(1, "sdcz"[p])))
            measure_batches(p, sizes, fast ? BL_FAST : BL_EXACT);
    for (int p = 0; p < BL_PRECISIONS; p++)
        for (auto [m, n] : sizes)
            if (*routines && listed(routines, "update") && m == n &&
                listed(precisions, std::string(1, "sdcz"[p])))
                measure_updates(p, n);
    return bad;
}
