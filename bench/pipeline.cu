/* Host data at the speed of the link? Whole calls, host memory to host memory.
 *
 *     bench/pipeline [megabytes [sections [sizes]]]     (2048, "bpw", 32,64,128,256)
 *     bench/pipeline single [sizes [largest n on the CPU [memory]]]
 *                                            (4096,8192,16384, 8192, pageable)
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
 * single: dgetrf_ and dpotrf_ of 'L' and 'U' from pageable, pinned or managed memory
 *    against the bound, the greater of copy in and factorization, and copy out. Copies
 *    are those of the same call with no run between them (bench/copies.c), apart; the
 *    factorization is the same call on device memory. And against cuSOLVER with plain
 *    cudaMemcpy of the same arrays, and up to an n the program's LAPACK, once (OpenBLAS
 *    with 16 threads takes some 4 s at 16384 and 30 s at 32768).
 *
 * Matrices are random in (-1, 1), made once by all threads, so that LU interchanges rows;
 * for Cholesky with a dominant diagonal. The best of five (of two where they take over
 * half a second), after a first call that starts the engine and pins memory. Linked with
 * the library and cuSOLVER; BATCHLAPACK_ENGINE names an engine that is not beside it,
 * BATCHLAPACK_LAPACK the other LAPACK. No other process should use the card.
 */
#include <chrono>
#include <cstring>
#include <cusolverDn.h>
#include <thread>

#include "batchlapack.h"
#include "copies.h"
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

/* A fast LAPACK's threads look for work a tenth of a second after their last. */
static void rest()
{
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

/* ---- matrices ---- */

/* work(from, to) of all threads' shares of [0, count). */
template <class Work>
static void by_threads(size_t count, Work work)
{
    unsigned threads = std::thread::hardware_concurrency();
    std::vector<std::thread> all;
    for (unsigned i = 0; i < threads; i++)
        all.emplace_back([=] { work(count * i / threads, count * (i + 1) / threads); });
    for (auto &t : all)
        t.join();
}

static double random_at(size_t i)
{
    uint64_t z = (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (double)(int64_t)(z ^ z >> 31) * 0x1p-63;
}

static double *random_numbers(size_t count)
{
    double *p = (double *)malloc(count * sizeof(double));
    must(p, "memory for random numbers");
    by_threads(count, [=](size_t from, size_t to) {
        for (size_t i = from; i < to; i++)
            p[i] = random_at(i);
    });
    return p;
}

static void copy(double *to, const double *from, size_t count)
{
    by_threads(count, [=](size_t at, size_t end) {
        memcpy(to + at, from + at, (end - at) * sizeof(double));
    });
}

/* Good for Cholesky, or random again. */
static void set_diagonal(double *a, int64_t n, bool dominant)
{
    for (int64_t i = 0; i < n; i++)
        a[i * (n + 1)] = dominant ? 2.0 * (double)n : random_at((size_t)(i * (n + 1)));
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

/* Of the same random numbers each time; `device` has them to begin with, `scratch` is as
 * large. */
static void batches(int64_t n, size_t bytes, const double *original, double *device,
                    double *scratch, double *pinned, double *pageable, bool peer)
{
    int64_t batch = (int64_t)(bytes / sizeof(double)) / (n * n);
    size_t count = (size_t)(batch * n * n), used = count * sizeof(double);
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
        seconds[k] = best([=] { copy(where[k], original, count); },
                          [&] { getrf(where[k], n, batch, ipiv.data(), info.data()); });
        must(batchlapack_status() == BATCHLAPACK_OK, "batch");
    }
    size_t differing = 0, interchanges = 0;
    for (size_t i = 0; i < count; i += 4099)
        differing += memcmp(&pageable[i], &pinned[i], sizeof(double)) != 0;
    must(differing == 0, "pageable and pinned results differ");
    for (int64_t i = 0; i < n; i++)
        interchanges += ipiv[(size_t)i] != i + 1;
    must(n < 8 || interchanges > 0, "no row was interchanged");
    double alone =
        best([=] { cudaMemcpy(scratch, device, used, cudaMemcpyDeviceToDevice); },
             [=] {
                 getrf(scratch, n, batch, device_ipiv, device_info);
                 cudaDeviceSynchronize();
             });
    must(batchlapack_status() == BATCHLAPACK_OK, "batch on the device");
    int64_t few = batch / 8 + 1;
    double cpu = 0;
    if (peer) {
        batchlapack_set_mode(BATCHLAPACK_MODE_CPU);
        cpu = best([=] { copy(pageable, original, (size_t)(few * n * n)); },
                   [&] { getrf(pageable, n, few, ipiv.data(), info.data()); }) *
              (double)batch / (double)few;
        rest();
    }
    printf(
        "dgetrf n %4lld x %8lld: pageable %8.2f ms %5.1f GB/s %5.1f%%  pinned %8.2f ms "
        "%5.1f GB/s %5.1f%%  device alone %8.2f ms",
        (long long)n, (long long)batch, seconds[0] * 1e3,
        (double)used / seconds[0] * 1e-9, 100 * ideal / seconds[0], seconds[1] * 1e3,
        (double)used / seconds[1] * 1e-9, 100 * ideal / seconds[1], alone * 1e3);
    if (peer)
        printf("  CPU %9.2f ms (x %.1f)", cpu * 1e3, cpu / seconds[0]);
    printf("\n");
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

/* The memory of the single calls, each as large as the largest matrix. */
static struct {
    double *original, *host; /* of the host, the latter pageable, pinned or managed */
    double *matrix, *device; /* the former keeps what `original` has */
    const char *kind;        /* of `host`, for a line: "", " pinned", " managed" */
    bool managed;
} space;

/* uplo here and below: 0 for LU. */
static double cusolver(char uplo, int n)
{
    const bool lu = !uplo;
    const cublasFillMode_t triangle =
        uplo == 'U' ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
    cusolverDnHandle_t handle;
    double *work, *device = space.device, *host = space.host;
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
    size_t count = (size_t)n * (size_t)n, bytes = count * sizeof(double);
    double seconds =
        best([=] { copy(host, space.original, count); },
             [=] {
                 cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice);
                 if (lu)
                     cusolverDnDgetrf(handle, n, n, device, n, work, ipiv, info);
                 else
                     cusolverDnDpotrf(handle, triangle, n, device, n, work, lwork, info);
                 cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost);
             });
    int value = -1;
    must(cudaMemcpy(&value, info, sizeof value, cudaMemcpyDeviceToHost) == cudaSuccess &&
             value == 0,
         "INFO of cuSOLVER");
    cudaFree(work);
    cudaFree(ipiv);
    cudaFree(info);
    cusolverDnDestroy(handle);
    return seconds;
}

static struct copies *copies; /* the engine's */

/* The least seconds that the call's copies take each way, by themselves. */
template <class Before, class Call>
static void copies_alone(Before before, Call call, double *in, double *out)
{
    *in = *out = 1e30;
    copies->only = true;
    for (int i = 0; i < REPEATS; i++) {
        before();
        copies->arrived = 0;
        double begin = now();
        call();
        double end = now();
        must(copies->arrived > begin, "copies that are not the GPU's");
        *in = std::min(*in, copies->arrived - begin);
        *out = std::min(*out, end - copies->arrived);
    }
    copies->only = false;
}

static void single(char uplo, int64_t n, int64_t largest_on_cpu)
{
    size_t count = (size_t)n * (size_t)n, bytes = count * sizeof(double);
    std::vector<int64_t> ipiv((size_t)n);
    int64_t info = -1, *device_info, square = (int64_t)count, one = 1;
    const bool lu = !uplo;
    double *host = space.host, *device = space.device;
    must(cudaMalloc(&device_info, (size_t)n * 8 + 8) == cudaSuccess, "integers");
    if (!lu)
        set_diagonal(space.original, n, true);
    must(cudaMemcpy(space.matrix, space.original, bytes, cudaMemcpyHostToDevice) ==
             cudaSuccess,
         "a matrix to the device");
    auto again = [=] { copy(host, space.original, count); };
    auto at_home = [=] {
        if (space.managed)
            again(); /* by the CPU: brings all pages back */
    };
    auto call = [&] {
        if (lu)
            dgetrf_64_(&n, &n, host, &n, ipiv.data(), &info);
        else
            dpotrf_64_(&uplo, &n, host, &n, &info);
    };
    batchlapack_set_mode(BATCHLAPACK_MODE_GPU);
    double whole = best(again, call);
    must(info == 0, "INFO");
    int64_t interchanges = 0;
    for (int64_t i = 0; i < n && lu; i++)
        interchanges += ipiv[(size_t)i] != i + 1;
    must(!lu || interchanges > n / 2, "few rows were interchanged");
    double in, out;
    copies = copies_loaded();
    must(copies, "bench/copies.so is not the engine");
    copies_alone(at_home, call, &in, &out);
    double alone =
        best([=] { cudaMemcpy(device, space.matrix, bytes, cudaMemcpyDeviceToDevice); },
             [=] {
                 if (lu)
                     dgetrf_batch_strided_64(&n, &n, device, &n, &square, device_info + 1,
                                             &n, &one, device_info);
                 else
                     dpotrf_batch_strided_64(&uplo, &n, device, &n, &square, &one,
                                             device_info);
                 cudaDeviceSynchronize();
             });
    must(batchlapack_status() == BATCHLAPACK_OK, "the call on device memory");
    double theirs = cusolver(uplo, (int)n);
    double cpu = 0;
    if (n <= largest_on_cpu) {
        batchlapack_set_mode(BATCHLAPACK_MODE_CPU);
        again();
        double begin = now();
        call();
        cpu = now() - begin;
        rest();
    }
    double bound = out + (in > alone ? in : alone);
    printf("%s%s%s n %5lld: whole call %8.2f ms; copy in %7.2f, device alone %7.2f, "
           "copy out %7.2f: x %.2f of the bound; "
           "cuSOLVER and cudaMemcpy %8.2f ms (x %.2f)",
           lu ? "dgetrf_" : "dpotrf_", uplo == 'U' ? " 'U'" : "", space.kind,
           (long long)n, whole * 1e3, in * 1e3, alone * 1e3, out * 1e3, whole / bound,
           theirs * 1e3, theirs / whole);
    if (cpu > 0)
        printf("; CPU %8.2f ms (x %.2f)", cpu * 1e3, cpu / whole);
    printf("\n");
    fflush(stdout);
    set_diagonal(space.original, n, false);
    cudaFree(device_info);
}

static int singles(const char *sizes, int64_t largest_on_cpu, const char *memory)
{
    int64_t most = 0;
    for (const char *s = sizes; *s; s += strcspn(s, ",")) {
        s += *s == ',';
        most = atoi(s) > most ? atoi(s) : most;
    }
    size_t count = (size_t)(most * most), bytes = count * sizeof(double);
    space.original = random_numbers(count);
    space.kind = "";
    space.managed = strcmp(memory, "managed") == 0;
    if (space.managed) {
        space.kind = " managed";
        cudaMallocManaged(&space.host, bytes);
    } else if (strcmp(memory, "pinned") == 0) {
        space.kind = " pinned";
        cudaMallocHost(&space.host, bytes);
    } else if (strcmp(memory, "pageable") == 0) {
        space.host = (double *)malloc(bytes);
    }
    must(space.host && cudaMalloc(&space.device, bytes) == cudaSuccess &&
             cudaMalloc(&space.matrix, bytes) == cudaSuccess,
         "memory");
    for (const char *s = sizes; *s; s += strcspn(s, ",")) {
        s += *s == ',';
        int64_t n = atoi(s);
        for (const char uplo : {'\0', 'L', 'U'})
            single(uplo, n, largest_on_cpu);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "single") == 0) {
        copies_choose();
        return singles(argc > 2 ? argv[2] : "4096,8192,16384",
                       argc > 3 ? atoi(argv[3]) : 8192, argc > 4 ? argv[4] : "pageable");
    }
    size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 2048) << 20;
    const char *sections = argc > 2 ? argv[2] : "bpw";
    const char *sizes = argc > 3 ? argv[3] : "32,64,128,256";
    double *device, *scratch, *pinned, *pageable = (double *)malloc(bytes);
    double *original = random_numbers(bytes / sizeof(double));
    must(cudaMalloc(&device, bytes) == cudaSuccess &&
             cudaMalloc(&scratch, bytes) == cudaSuccess &&
             cudaMallocHost(&pinned, bytes) == cudaSuccess && pageable,
         "memory");
    cudaStreamCreateWithFlags(&up, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&down, cudaStreamNonBlocking);
    copy(pageable, original, bytes / sizeof(double));
    copy(pinned, original, bytes / sizeof(double));
    measure_link(scratch, pinned, pageable, bytes);
    must(cudaMemcpy(device, original, bytes, cudaMemcpyHostToDevice) == cudaSuccess,
         "matrices to the device");
    for (const char *s = sizes; strchr(sections, 'b') && *s; s += strcspn(s, ",")) {
        s += *s == ',';
        batches(atoi(s), bytes, original, device, scratch, pinned, pageable,
                strchr(sections, 'p'));
    }
    for (size_t b = (size_t)128 << 20; strchr(sections, 'w') && b <= bytes; b *= 4)
        wide(b, pageable);
    return 0;
}
