/* One large matrix on the device against cuSOLVER.
 *
 *     bench/large ENGINE [routines [precisions [sizes [exact|fast]]]]
 *
 * ENGINE is libbatchlapack_cuda.so; the others are comma-separated lists, "" for all
 * routines (getrf, potrf_L, potrf_U, getrs, getri, and potrs1, potrs and potri of _L and
 * _U) and precisions; sizes are numbers, or ROWSxCOLUMNS for getrf.
 * Jobs go straight to the engine; cuSOLVER's 64-bit routines run in the same process on
 * the same data. getrs has as many right-hand sides as unknowns, potrs1
 * one and potrs 1000; cuSOLVER's inverse is
 * its getrs with the identity. Prints a line a routine, precision and size: milliseconds
 * (median on fresh data), TFLOP/s and how often faster than cuSOLVER. No other process
 * should use the card.
 */
#include <cstring>
#include <cusolverDn.h>
#include <dlfcn.h>
#include <utility>

#include "../src/engine.h"
#include "device.cuh"

static const int standard_sizes[] = {512, 1024, 1536, 2048, 3000, 4096, 8192};
static const size_t element[] = {4, 8, 8, 16};
static const cudaDataType type_of[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};

static const struct bl_engine *engine;
static void *queue;
static cusolverDnHandle_t cusolver;
static cusolverDnParams_t parameters;

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

/* uplo 0: getrf, else potrf. */
static void measure(int precision, char uplo, int m, int n, enum bl_arithmetic arithmetic)
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
    job.int_size = 4;
    job.m = m;
    job.n = n;
    job.batch = 1;
    job.a = {a, nullptr, m, 0};
    job.ipiv = {pivots, nullptr, 0, least};
    job.info = {info, nullptr, 0, 1};
    job.work = memory(engine->workspace(&job));
    const int repeats = n <= 2048 ? 9 : n <= 4096 ? 5 : 3;
    const double ours = timed(repeats, a, original, bytes,
                              [&] { must(engine->run(&job, queue) == BL_OK, "engine"); });

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
    const double theirs = timed(repeats, a, original, bytes, [&] {
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
    printf("%c%s %6s %10.3f ms %7.2f TFLOP/s   cuSOLVER %10.3f ms   %5.2f x\n",
           "sdcz"[precision],
           !uplo         ? "getrf  "
           : uplo == 'L' ? "potrf_L"
                         : "potrf_U",
           size_name(m, n).c_str(), ours, operations / ours / 1e9, theirs, theirs / ours);
    fflush(stdout);
    void *all[] = {original, a, pivots, info, job.work, work};
    for (void *p : all)
        cudaFree(p);
}

/* getri where `inverse`, else getrs with n right-hand sides; on factors. */
static void measure_solve(int precision, bool inverse, int n,
                          enum bl_arithmetic arithmetic)
{
    const size_t bytes = (size_t)n * n * element[precision];
    const cudaDataType t = type_of[precision];
    void *original = memory(bytes), *a = memory(bytes), *b = memory(bytes),
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
    job.nrhs = inverse ? 0 : n;
    job.batch = 1;
    job.a = {inverse ? a : original, nullptr, n, 0};
    job.b = {inverse ? nullptr : a, nullptr, n, 0};
    job.ipiv = {wide, nullptr, 0, n};
    job.info = {info, nullptr, 0, 1};
    job.work = memory(engine->workspace(&job));
    fill_all(precision, b, (size_t)n * n, n);
    const double ours = timed(3, a, inverse ? original : b, bytes,
                              [&] { must(engine->run(&job, queue) == BL_OK, "engine"); });
    const double theirs = timed(3, a, b, bytes, [&] {
        must(cusolverDnXgetrs(cusolver, parameters, CUBLAS_OP_N, n, n, t, original, n,
                              (int64_t *)wide, t, a, n,
                              (int *)info) == CUSOLVER_STATUS_SUCCESS,
             "cuSOLVER");
    });
    const double operations =
        (inverse ? 4.0 / 3 : 2) * n * n * n * (precision >= BL_C ? 4 : 1);
    printf("%c%s %6s %10.3f ms %7.2f TFLOP/s   cuSOLVER %10.3f ms   %5.2f x\n",
           "sdcz"[precision], inverse ? "getri  " : "getrs  ", size_name(n, n).c_str(),
           ours, operations / ours / 1e9, theirs, theirs / ours);
    fflush(stdout);
    void *all[] = {original, a, b, wide, info, job.work, work};
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
    } factored[] = {{"potrs1", 1}, {"potrs", 1000}, {"potri", 0}};
    for (const auto &row : factored)
        for (char uplo : {'L', 'U'})
            for (int p = 0; p < BL_PRECISIONS; p++)
                for (auto [m, n] : sizes)
                    if (listed(routines, std::string(row.name) + '_' + uplo) && m == n &&
                        listed(precisions, std::string(1, "sdcz"[p])))
                        measure_factored(p, row.name, uplo, n, row.sides,
                                         fast ? BL_FAST : BL_EXACT);
    for (const char *name : {"getrs", "getri"})
        for (int p = 0; p < BL_PRECISIONS; p++)
            for (auto [m, n] : sizes)
                if (listed(routines, name) && m == n &&
                    listed(precisions, std::string(1, "sdcz"[p])) &&
                    (fast || strcmp(name, "getri")))
                    measure_solve(p, !strcmp(name, "getri"), n,
                                  fast ? BL_FAST : BL_EXACT);
    return 0;
}
