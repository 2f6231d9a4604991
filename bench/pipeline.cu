/* Host data at the speed of the link? Whole calls, host memory to host memory.
 *
 *     bench/pipeline [megabytes [sections [sizes]]]     (2048, "bpwsc", 32,64,128,256)
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
 * s: dgetrf_ and dpotrf_ at n = 4096 and 8192 from pageable memory against copying in and
 *    out at the link's speed and the factorization alone on device memory;
 * c: and against cuSOLVER with plain cudaMemcpy of the same pageable arrays.
 *
 * The best of five, after a first call that starts the engine and pins memory. Linked
 * with the library and cuSOLVER; BATCHLAPACK_ENGINE names an engine that is not beside
 * it. No other process should use the card.
 */
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <cusolverDn.h>
#include <thread>
#include <vector>

#include "batchlapack.h"

extern "C" void dgetrf_(const int *m, const int *n, double *a, const int *lda, int *ipiv,
                        int *info);
extern "C" void dgetrs_(const char *trans, const int *n, const int *nrhs, const double *a,
                        const int *lda, const int *ipiv, double *b, const int *ldb,
                        int *info);
extern "C" void dpotrf_(const char *uplo, const int *n, double *a, const int *lda,
                        int *info);

static const int REPEATS = 5;
static cudaStream_t up, down;

static void must(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "pipeline: %s: %s\n", what,
                cudaGetErrorString(cudaGetLastError()));
        exit(1);
    }
}

static double now()
{
    return std::chrono::duration<double>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/* The better of REPEATS; `before` is not timed. */
template <class Before, class Call>
static double best(Before before, Call call)
{
    double least = 1e30;
    for (int i = 0; i < REPEATS; i++) {
        before();
        must(cudaDeviceSynchronize() == cudaSuccess, "before a call");
        double begin = now();
        call();
        double seconds = now() - begin;
        least = seconds < least ? seconds : least;
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

/* ---- single matrices ---- */

static void cusolver(bool lu, int n, double *device, double *host, double *seconds)
{
    cusolverDnHandle_t handle;
    double *work;
    int lwork = 0, *ipiv, *info;
    must(cusolverDnCreate(&handle) == CUSOLVER_STATUS_SUCCESS, "cuSOLVER");
    if (lu)
        cusolverDnDgetrf_bufferSize(handle, n, n, device, n, &lwork);
    else
        cusolverDnDpotrf_bufferSize(handle, CUBLAS_FILL_MODE_LOWER, n, device, n, &lwork);
    must(cudaMalloc(&work, (size_t)lwork * sizeof(double)) == cudaSuccess &&
             cudaMalloc(&ipiv, (size_t)n * sizeof(int)) == cudaSuccess &&
             cudaMalloc(&info, sizeof(int)) == cudaSuccess,
         "cuSOLVER's memory");
    size_t bytes = (size_t)n * (size_t)n * sizeof(double);
    *seconds = best(
        [=] {
            fill<<<1024, 256>>>(device, (size_t)n * (size_t)n, (size_t)n);
            cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost);
        },
        [=] {
            cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice);
            if (lu)
                cusolverDnDgetrf(handle, n, n, device, n, work, ipiv, info);
            else
                cusolverDnDpotrf(handle, CUBLAS_FILL_MODE_LOWER, n, device, n, work,
                                 lwork, info);
            cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost);
        });
    cudaFree(work);
    cudaFree(ipiv);
    cudaFree(info);
    cusolverDnDestroy(handle);
}

static void single(bool lu, int n, double *device, double *pageable, bool peer)
{
    size_t count = (size_t)n * (size_t)n, bytes = count * sizeof(double);
    std::vector<int> ipiv((size_t)n);
    int info = -1, *device_integers;
    const char lower = 'L';
    int64_t n64 = n, square = (int64_t)count, one = 1;
    must(cudaMalloc(&device_integers, (size_t)n * 8 + 8) == cudaSuccess, "integers");
    auto refill = [=] { fill<<<1024, 256>>>(device, count, (size_t)n); };
    auto refill_host = [=] {
        refill();
        cudaMemcpy(pageable, device, bytes, cudaMemcpyDeviceToHost);
    };
    batchlapack_set_mode(BATCHLAPACK_MODE_GPU);
    double call = best(refill_host, [&] {
        if (lu)
            dgetrf_(&n, &n, pageable, &n, ipiv.data(), &info);
        else
            dpotrf_(&lower, &n, pageable, &n, &info);
    });
    must(info == 0, "INFO");
    int64_t *device_info = (int64_t *)device_integers, *device_ipiv = device_info + 1;
    double alone = best(refill, [=] {
        if (lu)
            dgetrf_batch_strided_64(&n64, &n64, device, &n64, &square, device_ipiv, &n64,
                                    &one, device_info);
        else
            dpotrf_batch_strided_64(&lower, &n64, device, &n64, &square, &one,
                                    device_info);
        cudaDeviceSynchronize();
    });
    double in = (double)bytes / link_rate.in, out = (double)bytes / link_rate.out;
    double theirs = 0;
    if (peer)
        cusolver(lu, n, device, pageable, &theirs);
    printf(
        "%s n %5d: whole call %8.2f ms; link in %.2f, device alone %.2f, link out %.2f: "
        "x %.2f of their sum, copies %.2f ms; cuSOLVER and cudaMemcpy %.2f ms (x %.2f)\n",
        lu ? "dgetrf_" : "dpotrf_", n, call * 1e3, in * 1e3, alone * 1e3, out * 1e3,
        call / (in + alone + out), (call - alone) * 1e3, theirs * 1e3, theirs / call);
    fflush(stdout);
    cudaFree(device_integers);
}

/* One wide B. */
static void wide(size_t bytes, double *device, double *pageable)
{
    const int n = 16, nrhs = (int)(bytes / n / sizeof(double));
    const char no = 'N';
    double a[16 * 16] = {0};
    int ipiv[16], info = -1;
    for (int i = 0; i < n; i++) {
        a[i * (n + 1)] = 2;
        ipiv[i] = i + 1;
    }
    batchlapack_set_mode(BATCHLAPACK_MODE_GPU);
    double call = best(
        [=] {
            fill<<<1024, 256>>>(device, bytes / sizeof(double), (size_t)n);
            cudaMemcpy(pageable, device, bytes, cudaMemcpyDeviceToHost);
        },
        [&] { dgetrs_(&no, &n, &nrhs, a, &n, ipiv, pageable, &n, &info); });
    must(info == 0, "INFO of dgetrs");
    double in = (double)bytes / link_rate.in, out = (double)bytes / link_rate.out;
    printf("dgetrs_ with %4zu MiB of right-hand sides: %8.2f ms; link in %.2f and out "
           "%.2f: x %.2f of their sum\n",
           bytes >> 20, call * 1e3, in * 1e3, out * 1e3, call / (in + out));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 2048) << 20;
    const char *sections = argc > 2 ? argv[2] : "bpwsc";
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
        wide(b, device, pageable);
    for (int n = 4096; strchr(sections, 's') && n <= 8192; n *= 2)
        for (int lu = 1; lu >= 0; lu--)
            if ((size_t)n * (size_t)n * sizeof(double) <= bytes)
                single(lu, n, device, pageable, strchr(sections, 'c'));
    return 0;
}
