/* Host data at the speed of the link? Whole calls, host memory to host memory.
 *
 *     bench/pipeline [megabytes [sections [sizes]]]     (2048, "bpw", 32,64,128,256)
 *     bench/pipeline single [sizes [memory]]            (4096,8192,16384 pageable)
 *
 * Every section is measured against this run's own link: copies from pinned memory each
 * way, both ways at once, and cudaMemcpy of pageable memory; and its own memcpy by all
 * threads from one half of the pageable memory to the other.
 *
 * b: strided dgetrf batches of so many megabytes from pageable and from pinned memory:
 *    seconds, bytes each way a second, and the part of the duplex rate that this is; the
 *    same data on device memory;
 * p: and an eighth of it with the program's LAPACK on all cores, as if it were all.
 * w: dgetrs_ of order 16 with so many right-hand sides that they fill 128 and 512 MiB of
 *    pageable memory: nearly nothing but one operand's way in and out.
 * single: dgetrf_ and dpotrf_ 'L' and 'U' from pageable, pinned or managed memory against
 *    the bound, the greater of copy in and factorization, and copy out. Copies are a half
 *    each of the same bytes' way in and out through the pipeline, the factorization is
 * the same call on device memory. And against cuSOLVER with plain cudaMemcpy of the same
 *    arrays, and to n = 8192 the program's LAPACK.
 *
 * The best of five (of two where they take over half a second), after a first call that
 * starts the engine and pins memory. Linked with the library and cuSOLVER;
 * BATCHLAPACK_ENGINE names an engine that is not beside it, BATCHLAPACK_LAPACK the other
 * LAPACK. No other process should use the card.
 */
#include <chrono>
#include <cstring>
#include <cusolverDn.h>
#include <thread>

#include "batchlapack.h"
#include "device.cuh"

/* With 64-bit integers, which any LAPACK can serve. */
extern "C" void dgetrf_64_(const int64_t *m, const int64_t *n, double *a,
                           const int64_t *lda, int64_t *ipiv, int64_t *info);
extern "C" void dgetrs_64_(const char *trans, const int64_t *n, const int64_t *nrhs,
                           const double *a, const int64_t *lda, const int64_t *ipiv,
                           double *b, const int64_t *ldb, int64_t *info);
extern "C" void dpotrf_64_(const char *uplo, const int64_t *n, double *a,
                           const int64_t *lda, int64_t *info);

static const int REPEATS = 5;
static cudaStream_t up, down;

static double now()
{
    return std::chrono::duration<double>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/* The best of REPEATS, or of what half a second holds; `before` is not timed. */
template <class Before, class Call>
static double best(Before before, Call call)
{
    double least = 1e30, sum = 0;
    for (int i = 0; i < REPEATS && (i < 2 || sum < 0.5); i++) {
        before();
        must(cudaDeviceSynchronize() == cudaSuccess, "before a call");
        double begin = now();
        call();
        double seconds = now() - begin;
        least = seconds < least ? seconds : least;
        sum += seconds;
    }
    return least;
}

static void nothing()
{
}

/* n x n matrices with a dominant diagonal, good for LU and for Cholesky. */
__global__ void fill(double *p, size_t count, size_t n)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += step) {
        uint64_t x = i * 0x9E3779B97F4A7C15u;
        x ^= x >> 29;
        x *= 0xBF58476D1CE4E5B9u;
        p[i] = (double)(int64_t)x * 0x1p-63;
        size_t at = i % (n * n);
        if (at % (n + 1) == 0)
            p[i] += 2.0 * (double)n;
    }
}

/* ---- the link ---- */

static struct {
    double in, out, duplex, pageable_in, pageable_out; /* bytes a second */
} link_rate;

/* Bytes a second, read and written once each. */
static double copy_rate(char *memory, size_t bytes)
{
    unsigned threads = std::thread::hardware_concurrency();
    size_t share = bytes / 2 / threads;
    return (double)(share * threads) / best(nothing, [=] {
               std::vector<std::thread> all;
               for (unsigned i = 0; i < threads; i++)
                   all.emplace_back([=] {
                       memcpy(memory + i * share, memory + bytes / 2 + i * share, share);
                   });
               for (auto &t : all)
                   t.join();
           });
}

static void measure_link(double *device, double *pinned, double *pageable, size_t bytes)
{
    size_t half = bytes / 2;
    char *d = (char *)device, *h = (char *)pinned;
    link_rate.in = (double)half / best(nothing, [=] {
                       cudaMemcpyAsync(d, h, half, cudaMemcpyHostToDevice, up);
                       cudaStreamSynchronize(up);
                   });
    link_rate.out = (double)half / best(nothing, [=] {
                        cudaMemcpyAsync(h, d, half, cudaMemcpyDeviceToHost, down);
                        cudaStreamSynchronize(down);
                    });
    link_rate.duplex =
        (double)half / best(nothing, [=] {
            cudaMemcpyAsync(d, h, half, cudaMemcpyHostToDevice, up);
            cudaMemcpyAsync(h + half, d + half, half, cudaMemcpyDeviceToHost, down);
            cudaStreamSynchronize(up);
            cudaStreamSynchronize(down);
        });
    size_t part = half < (size_t)256 << 20 ? half : (size_t)256 << 20;
    link_rate.pageable_in = (double)part / best(nothing, [=] {
                                cudaMemcpy(d, pageable, part, cudaMemcpyHostToDevice);
                            });
    link_rate.pageable_out = (double)part / best(nothing, [=] {
                                 cudaMemcpy(pageable, d, part, cudaMemcpyDeviceToHost);
                             });
    printf(
        "link, GB/s: pinned in %.1f, out %.1f, both at once %.1f each way; "
        "cudaMemcpy of pageable memory in %.1f, out %.1f; memcpy by all threads %.1f\n",
        link_rate.in * 1e-9, link_rate.out * 1e-9, link_rate.duplex * 1e-9,
        link_rate.pageable_in * 1e-9, link_rate.pageable_out * 1e-9,
        copy_rate((char *)pageable, bytes) * 1e-9);
    fflush(stdout);
}

/* ---- batches ---- */

static void getrf(double *a, int64_t n, int64_t batch, int64_t *ipiv, int64_t *info)
{
    int64_t square = n * n;
    dgetrf_batch_strided_64(&n, &n, a, &n, &square, ipiv, &n, &batch, info);
}

static void batches(int64_t n, size_t bytes, double *device, double *pinned,
                    double *pageable, bool peer)
{
    int64_t batch = (int64_t)(bytes / sizeof(double)) / (n * n);
    size_t used = (size_t)(batch * n * n) * sizeof(double);
    std::vector<int64_t> ipiv((size_t)(batch * n)), info((size_t)batch);
    int64_t *device_ipiv, *device_info;
    must(cudaMalloc(&device_ipiv, (size_t)(batch * n) * 8) == cudaSuccess &&
             cudaMalloc(&device_info, (size_t)batch * 8) == cudaSuccess,
         "memory for pivots");
    double ideal = (double)used / link_rate.duplex;
    double *const where[] = {pageable, pinned};
    double seconds[2];
    batchlapack_set_mode(BATCHLAPACK_MODE_GPU);
    for (int k = 0; k < 2; k++) {
        auto refill = [=] {
            fill<<<1024, 256>>>(device, used / sizeof(double), (size_t)n);
            cudaMemcpy(where[k], device, used, cudaMemcpyDeviceToHost);
        };
        seconds[k] =
            best(refill, [&] { getrf(where[k], n, batch, ipiv.data(), info.data()); });
        must(batchlapack_status() == BATCHLAPACK_OK, "batch");
    }
    size_t differing = 0;
    for (size_t i = 0; i < used / sizeof(double); i += 4099)
        differing += memcmp(&pageable[i], &pinned[i], sizeof(double)) != 0;
    must(differing == 0, "pageable and pinned results differ");
    double alone =
        best([=] { fill<<<1024, 256>>>(device, used / sizeof(double), (size_t)n); },
             [=] {
                 getrf(device, n, batch, device_ipiv, device_info);
                 cudaDeviceSynchronize();
             });
    int64_t few = batch / 8 + 1;
    batchlapack_set_mode(BATCHLAPACK_MODE_CPU);
    double cpu = 0;
    if (peer)
        cpu = best([=] { cudaMemcpy(pageable, pinned, used / 4, cudaMemcpyHostToHost); },
                   [&] { getrf(pageable, n, few, ipiv.data(), info.data()); }) *
              (double)batch / (double)few;
    printf(
        "dgetrf n %4lld x %8lld: pageable %8.2f ms %5.1f GB/s %5.1f%%  pinned %8.2f ms "
        "%5.1f GB/s %5.1f%%  device alone %8.2f ms  CPU %9.2f ms (x %.1f)\n",
        (long long)n, (long long)batch, seconds[0] * 1e3,
        (double)used / seconds[0] * 1e-9, 100 * ideal / seconds[0], seconds[1] * 1e3,
        (double)used / seconds[1] * 1e-9, 100 * ideal / seconds[1], alone * 1e3,
        cpu * 1e3, cpu / seconds[0]);
    fflush(stdout);
    cudaFree(device_ipiv);
    cudaFree(device_info);
}

/* ---- single calls ---- */

/* One wide B, in and out. */
static void wide(size_t bytes, double *pageable)
{
    const int64_t n = 16, nrhs = (int64_t)(bytes / n / sizeof(double));
    const char no = 'N';
    double a[16 * 16] = {0};
    int64_t ipiv[16], info = -1;
    for (int64_t i = 0; i < n; i++) {
        a[i * (n + 1)] = 2;
        ipiv[i] = i + 1;
    }
    batchlapack_set_mode(BATCHLAPACK_MODE_GPU);
    double call = best(
        nothing, [&] { dgetrs_64_(&no, &n, &nrhs, a, &n, ipiv, pageable, &n, &info); });
    must(info == 0, "INFO of dgetrs");
    double in = (double)bytes / link_rate.in, out = (double)bytes / link_rate.out;
    printf("dgetrs_ with %4zu MiB of right-hand sides: %8.2f ms; link in %.2f and out "
           "%.2f: x %.2f of their sum\n",
           bytes >> 20, call * 1e3, in * 1e3, out * 1e3, call / (in + out));
    fflush(stdout);
}

/* Factors become a matrix again that is good for LU and for Cholesky. */
static void dominate(double *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        a[i * (n + 1)] = 2.0 * (double)n;
}

static double cusolver(char uplo, int n, double *device, double *host)
{
    const bool lu = !uplo;
    const cublasFillMode_t triangle =
        uplo == 'U' ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
    cusolverDnHandle_t handle;
    double *work;
    int lwork = 0, *ipiv, *info;
    must(cusolverDnCreate(&handle) == CUSOLVER_STATUS_SUCCESS, "cuSOLVER");
    if (lu)
        cusolverDnDgetrf_bufferSize(handle, n, n, device, n, &lwork);
    else
        cusolverDnDpotrf_bufferSize(handle, triangle, n, device, n, &lwork);
    must(cudaMalloc(&work, (size_t)lwork * sizeof(double)) == cudaSuccess &&
             cudaMalloc(&ipiv, (size_t)n * sizeof(int)) == cudaSuccess &&
             cudaMalloc(&info, sizeof(int)) == cudaSuccess,
         "cuSOLVER's memory");
    size_t bytes = (size_t)n * (size_t)n * sizeof(double);
    double seconds =
        best([=] { dominate(host, n); },
             [=] {
                 cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice);
                 if (lu)
                     cusolverDnDgetrf(handle, n, n, device, n, work, ipiv, info);
                 else
                     cusolverDnDpotrf(handle, triangle, n, device, n, work, lwork, info);
                 cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost);
             });
    cudaFree(work);
    cudaFree(ipiv);
    cudaFree(info);
    cusolverDnDestroy(handle);
    return seconds;
}

#define LARGEST_ON_CPU 8192

/* Seconds that so many bytes take one way through the pipeline: what a tall dgetrf_, too
 * narrow to be worked on before all of it is there, takes more than on the device. */
static double copies(size_t bytes, double *device, double *host)
{
    const int64_t n = 2048, m = (int64_t)(bytes / sizeof(double)) / n, square = m * n,
                  one = 1;
    std::vector<int64_t> ipiv((size_t)n);
    int64_t info = -1, *device_info;
    must(cudaMalloc(&device_info, (size_t)n * 8 + 8) == cudaSuccess, "integers");
    auto set = [=] { fill<<<1024, 256>>>(device, (size_t)square, (size_t)m); };
    set();
    cudaMemcpy(host, device, (size_t)square * sizeof(double), cudaMemcpyDeviceToHost);
    batchlapack_set_mode(BATCHLAPACK_MODE_GPU);
    double whole =
        best(nothing, [&] { dgetrf_64_(&m, &n, host, &m, ipiv.data(), &info); });
    double alone = best(set, [&] {
        dgetrf_batch_strided_64(&m, &n, device, &m, &square, device_info + 1, &n, &one,
                                device_info);
        cudaDeviceSynchronize();
    });
    cudaFree(device_info);
    return (whole - alone) / 2;
}

/* uplo: 0 for LU. */
static void single(char uplo, int64_t n, double *device, double *host)
{
    size_t count = (size_t)n * (size_t)n, bytes = count * sizeof(double);
    std::vector<int64_t> ipiv((size_t)n);
    int64_t info = -1, *device_info, square = (int64_t)count, one = 1;
    const bool lu = !uplo;
    must(cudaMalloc(&device_info, (size_t)n * 8 + 8) == cudaSuccess, "integers");
    fill<<<1024, 256>>>(device, count, (size_t)n);
    cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost);
    auto again = [=] { dominate(host, n); };
    auto call = [&] {
        if (lu)
            dgetrf_64_(&n, &n, host, &n, ipiv.data(), &info);
        else
            dpotrf_64_(&uplo, &n, host, &n, &info);
    };
    batchlapack_set_mode(BATCHLAPACK_MODE_GPU);
    double whole = best(again, call);
    must(info == 0, "INFO");
    double alone =
        best([=] { fill<<<1024, 256>>>(device, count, (size_t)n); },
             [=] {
                 if (lu)
                     dgetrf_batch_strided_64(&n, &n, device, &n, &square, device_info + 1,
                                             &n, &one, device_info);
                 else
                     dpotrf_batch_strided_64(&uplo, &n, device, &n, &square, &one,
                                             device_info);
                 cudaDeviceSynchronize();
             });
    double cpu = 0;
    batchlapack_set_mode(BATCHLAPACK_MODE_CPU);
    if (n <= LARGEST_ON_CPU) {
        again();
        double begin = now();
        call();
        cpu = now() - begin;
    }
    double theirs = cusolver(uplo, (int)n, device, host);
    double one_way = copies(lu ? bytes : bytes / 2, device, host);
    double bound = one_way + (one_way > alone ? one_way : alone);
    printf(
        "%s%s n %5lld: whole call %8.2f ms; copies each way %7.2f, device alone %7.2f: "
        "x %.2f of the bound; cuSOLVER and cudaMemcpy %8.2f ms (x %.2f)",
        lu ? "dgetrf_" : "dpotrf_", uplo == 'U' ? " 'U'" : "", (long long)n, whole * 1e3,
        one_way * 1e3, alone * 1e3, whole / bound, theirs * 1e3, theirs / whole);
    if (cpu > 0)
        printf("; CPU %8.2f ms (x %.2f)", cpu * 1e3, cpu / whole);
    printf("\n");
    fflush(stdout);
    cudaFree(device_info);
}

static int singles(const char *sizes, const char *memory)
{
    int64_t most = 0;
    for (const char *s = sizes; *s; s += strcspn(s, ",")) {
        s += *s == ',';
        most = atoi(s) > most ? atoi(s) : most;
    }
    size_t bytes = (size_t)(most * most) * sizeof(double);
    double *device, *host = nullptr;
    if (strcmp(memory, "pinned") == 0)
        cudaMallocHost(&host, bytes);
    else if (strcmp(memory, "managed") == 0)
        cudaMallocManaged(&host, bytes);
    else
        host = (double *)malloc(bytes);
    must(host && cudaMalloc(&device, bytes) == cudaSuccess, "memory");
    memset(host, 0, bytes);
    for (const char *s = sizes; *s; s += strcspn(s, ",")) {
        s += *s == ',';
        int64_t n = atoi(s);
        for (const char uplo : {'\0', 'L', 'U'})
            single(uplo, n, device, host);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "single") == 0)
        return singles(argc > 2 ? argv[2] : "4096,8192,16384",
                       argc > 3 ? argv[3] : "pageable");
    size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 2048) << 20;
    const char *sections = argc > 2 ? argv[2] : "bpw";
    const char *sizes = argc > 3 ? argv[3] : "32,64,128,256";
    double *device, *pinned, *pageable = (double *)malloc(bytes);
    must(cudaMalloc(&device, bytes) == cudaSuccess &&
             cudaMallocHost(&pinned, bytes) == cudaSuccess && pageable,
         "memory");
    cudaStreamCreateWithFlags(&up, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&down, cudaStreamNonBlocking);
    memset(pageable, 1, bytes);
    memset(pinned, 1, bytes);
    measure_link(device, pinned, pageable, bytes);
    for (const char *s = sizes; strchr(sections, 'b') && *s; s += strcspn(s, ",")) {
        s += *s == ',';
        batches(atoi(s), bytes, device, pinned, pageable, strchr(sections, 'p'));
    }
    for (size_t b = (size_t)128 << 20; strchr(sections, 'w') && b <= bytes; b *= 4)
        wide(b, pageable);
    return 0;
}
