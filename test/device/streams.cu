/* A program that calls the batched routines on device and managed memory, on streams of
 * its own, from several threads, and captures them into graphs.
 *
 * Linked with the library and with its own CUDA runtime; run by test/device.sh. What is
 * expected is what the same call gives on host memory in mode cpu: the program's LAPACK.
 */
#include <cstring>
#include <pthread.h>
#include <vector>
#include "batchlapack.h"
#include "device.cuh"

static void say(bool ok, const char *name)
{
    verdict(ok ? "" : "see test/device/streams.cu", "streams-%s", name);
}

/* A batch of LU: on the host what is expected, on the device what is to be tested. */
struct Batch {
    int32_t n, count, lda, stride, stride_ipiv;
    std::vector<double> a, want;
    std::vector<int32_t> want_ipiv, want_info;
    double *d = nullptr;
    int32_t *ipiv = nullptr, *info = nullptr;

    Batch(int32_t order, int32_t matrices, unsigned seed, bool managed = false)
        : n(order), count(matrices), lda(order + 1), stride(lda * order + 3),
          stride_ipiv(order)
    {
        a.resize((size_t)stride * count);
        for (double &x : a)
            x = (double)((seed = seed * 1664525u + 1013904223u) >> 8) * 0x1p-23 - 1;
        want = a;
        want_ipiv.resize((size_t)n * count);
        want_info.resize(count);
        batchlapack_set_mode(BATCHLAPACK_MODE_CPU);
        dgetrf_batch_strided(&n, &n, want.data(), &lda, &stride, want_ipiv.data(),
                             &stride_ipiv, &count, want_info.data());
        batchlapack_set_mode(BATCHLAPACK_MODE_DEFAULT);
        if (managed) {
            cudaMallocManaged(&d, (a.size() + 1) * sizeof *d);
            cudaMallocManaged(&ipiv, (want_ipiv.size() + 1) * sizeof *ipiv);
            cudaMallocManaged(&info, (want_info.size() + 1) * sizeof *info);
        } else {
            cudaMalloc(&d, (a.size() + 1) * sizeof *d);
            cudaMalloc(&ipiv, (want_ipiv.size() + 1) * sizeof *ipiv);
            cudaMalloc(&info, (want_info.size() + 1) * sizeof *info);
        }
    }
    ~Batch()
    {
        cudaFree(d);
        cudaFree(ipiv);
        cudaFree(info);
    }
    void load(cudaStream_t stream)
    {
        cudaMemsetAsync(ipiv, 0xee, want_ipiv.size() * sizeof *ipiv, stream);
        cudaMemsetAsync(info, 0xee, want_info.size() * sizeof *info, stream);
        cudaMemcpyAsync(d, a.data(), a.size() * sizeof *d, cudaMemcpyHostToDevice,
                        stream);
    }
    void call()
    {
        dgetrf_batch_strided(&n, &n, d, &lda, &stride, ipiv, &stride_ipiv, &count, info);
    }
    /* A group each, by pointers in host memory; one more matrix of order 1 makes the
     * sizes differ. */
    void call_groups()
    {
        std::vector<double *> matrices(count + 1);
        std::vector<int32_t *> pivots(count + 1);
        std::vector<int32_t> order(count + 1, n), ld(count + 1, lda), size(count + 1, 1);
        for (int32_t i = 0; i <= count; i++) {
            matrices[i] = d + (size_t)i * stride;
            pivots[i] = ipiv + (size_t)i * stride_ipiv;
        }
        order[count] = 1;
        int32_t groups = count + 1;
        dgetrf_batch(order.data(), order.data(), matrices.data(), ld.data(),
                     pivots.data(), &groups, size.data(), info);
    }
    bool right(cudaStream_t stream)
    {
        std::vector<double> got(a.size());
        std::vector<int32_t> got_ipiv(want_ipiv.size()), got_info(want_info.size());
        cudaMemcpyAsync(got.data(), d, got.size() * sizeof *d, cudaMemcpyDefault, stream);
        cudaMemcpyAsync(got_ipiv.data(), ipiv, got_ipiv.size() * sizeof *ipiv,
                        cudaMemcpyDefault, stream);
        cudaMemcpyAsync(got_info.data(), info, got_info.size() * sizeof *info,
                        cudaMemcpyDefault, stream);
        return cudaStreamSynchronize(stream) == cudaSuccess &&
               memcmp(got.data(), want.data(), got.size() * sizeof *d) == 0 &&
               got_ipiv == want_ipiv && got_info == want_info;
    }
};

static size_t free_memory()
{
    size_t now = 0, all;
    cudaMemGetInfo(&now, &all);
    return now;
}

static void without_a_stream()
{
    Batch b(50, 200, 1);
    b.load(0);
    b.call();
    say(cudaStreamQuery(cudaStreamLegacy) == cudaSuccess && b.right(0) &&
            batchlapack_status() == BATCHLAPACK_OK,
        "without-one-complete-on-return");
    Batch managed(40, 100, 2, true);
    memcpy(managed.d, managed.a.data(), managed.a.size() * sizeof(double));
    managed.call();
    say(memcmp(managed.d, managed.want.data(), managed.a.size() * sizeof(double)) == 0,
        "managed-memory");
}

static void asynchronous(bool groups, const char *name)
{
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    Batch b(70, 100, 3);
    batchlapack_set_stream(stream);
    for (int warm = 0; warm < 2; warm++) {
        b.load(stream);
        groups ? b.call_groups() : b.call();
        cudaStreamSynchronize(stream);
    }
    b.load(stream);
    cudaStreamSynchronize(stream);
    keep_busy<<<1, 1, 0, stream>>>(200 * 1000 * 1000);
    groups ? b.call_groups() : b.call();
    bool returned_early = cudaStreamQuery(stream) == cudaErrorNotReady;
    cudaGetLastError();
    batchlapack_set_stream(nullptr);
    say(returned_early && b.right(stream), name);
    cudaStreamDestroy(stream);
}

/* After reserve() and a first call nothing more is allocated. */
static void no_allocation()
{
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    Batch inverse(64, 300, 5);
    double *x;
    cudaMalloc(&x, inverse.a.size() * sizeof *x);
    bool ok = batchlapack_reserve((size_t)64 << 20) == BATCHLAPACK_OK;
    batchlapack_set_stream(stream);
    auto all = [&] {
        inverse.load(stream);
        inverse.call_groups();
        inverse.load(stream);
        dgeinv_batch_strided(&inverse.n, inverse.d, &inverse.lda, &inverse.stride, x,
                             &inverse.lda, &inverse.stride, &inverse.count, inverse.info);
    };
    all();
    cudaStreamSynchronize(stream);
    size_t before = free_memory();
    for (int i = 0; i < 50; i++)
        all();
    size_t during = free_memory();
    ok &= cudaStreamSynchronize(stream) == cudaSuccess;
    batchlapack_set_stream(nullptr);
    say(ok && before == during && free_memory() == before, "no-allocation-when-warm");
    size_t held = free_memory();
    say(batchlapack_release() == BATCHLAPACK_OK &&
            free_memory() >= held + ((size_t)32 << 20),
        "release");
    cudaFree(x);
    cudaStreamDestroy(stream);
}

__global__ void fill(double *a, size_t count)
{
    for (size_t k = blockIdx.x * size_t(blockDim.x) + threadIdx.x; k < count;
         k += size_t(gridDim.x) * blockDim.x) {
        uint64_t z = (k + 1) * 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        a[k] = double(int64_t(z ^ z >> 27)) * 0x1p-63;
    }
}

/* The same of single large matrices. 8000 is above where the default arithmetic becomes
 * fast, and has its copy by rows. */
static void no_allocation_of_large()
{
    const int32_t n = 8000, stride = n * n, order = 2000, stride_small = order * order,
                  one = 1;
    cudaStream_t stream;
    double *a, *b;
    int32_t *ipiv, *info, got[2] = {-1, -1};
    cudaStreamCreate(&stream);
    cudaMalloc(&a, (size_t)stride * sizeof *a);
    cudaMalloc(&b, order * sizeof *b);
    cudaMalloc(&ipiv, n * sizeof *ipiv);
    cudaMalloc(&info, sizeof got);
    batchlapack_set_stream(stream);
    auto all = [&] {
        fill<<<500, 256, 0, stream>>>(a, (size_t)stride);
        dgetrf_batch_strided(&n, &n, a, &n, &stride, ipiv, &n, &one, info);
        fill<<<500, 256, 0, stream>>>(a, (size_t)stride_small);
        fill<<<5, 256, 0, stream>>>(b, order);
        dgesv_batch_strided(&order, &one, a, &order, &stride_small, ipiv, &order, b,
                            &order, &order, &one, info + 1);
    };
    auto allocates_nothing = [&] {
        cudaStreamSynchronize(stream);
        size_t before = free_memory();
        for (int i = 0; i < 5; i++)
            all();
        size_t during = free_memory();
        bool ok = cudaStreamSynchronize(stream) == cudaSuccess;
        cudaMemcpy(got, info, sizeof got, cudaMemcpyDeviceToHost);
        return ok && before == during && free_memory() == before && got[0] == 0 &&
               got[1] == 0;
    };
    all();
    say(allocates_nothing(), "no-allocation-when-warm-large");
    /* What README says: 5 % and 1 MiB, cuBLAS, the copy. */
    const size_t bytes = (size_t)stride * sizeof *a;
    bool ok = batchlapack_release() == BATCHLAPACK_OK;
    ok &= batchlapack_reserve(bytes / 20 + ((size_t)65 << 20) + bytes) == BATCHLAPACK_OK;
    say(allocates_nothing() && ok, "no-allocation-when-reserved-large");
    batchlapack_set_stream(nullptr);
    batchlapack_release();
    cudaFree(a);
    cudaFree(b);
    cudaFree(ipiv);
    cudaFree(info);
    cudaStreamDestroy(stream);
}

static void captured(bool groups, const char *name)
{
    cudaStream_t stream;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaStreamCreate(&stream);
    Batch b(groups ? 90 : 33, 64, 7);
    batchlapack_set_stream(stream);
    b.load(stream);
    cudaStreamSynchronize(stream);
    bool ok = cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess;
    groups ? b.call_groups() : b.call();
    ok &= batchlapack_status() == BATCHLAPACK_OK;
    ok &= cudaStreamEndCapture(stream, &graph) == cudaSuccess && graph;
    /* Captured, not run. */
    std::vector<double> now(b.a.size());
    cudaMemcpy(now.data(), b.d, now.size() * sizeof(double), cudaMemcpyDeviceToHost);
    ok &= now == b.a;
    ok &= cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess;
    for (int i = 0; i < 3 && ok; i++) {
        b.load(stream);
        ok &= cudaGraphLaunch(exec, stream) == cudaSuccess && b.right(stream);
    }
    batchlapack_set_stream(nullptr);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    say(ok, name);
    cudaStreamDestroy(stream);
}

static void *one_thread(void *result)
{
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    bool ok = true;
    batchlapack_set_stream(stream);
    for (int i = 0; i < 10; i++) {
        Batch b(20 + 30 * i, 30, (unsigned)i);
        b.load(stream);
        i % 2 ? b.call_groups() : b.call();
        ok &= b.right(stream);
    }
    cudaStreamDestroy(stream);
    *(bool *)result = ok;
    return nullptr;
}

static void threads()
{
    pthread_t t[8];
    bool ok[8], all = true;
    for (int i = 0; i < 8; i++)
        pthread_create(&t[i], nullptr, one_thread, &ok[i]);
    for (int i = 0; i < 8; i++) {
        pthread_join(t[i], nullptr);
        all &= ok[i];
    }
    say(all, "eight-threads");
}

/* Data on a device that is not the library's: refused, nothing written. */
static void another_device()
{
    int devices = 0;
    cudaGetDeviceCount(&devices);
    if (devices < 2) {
        printf("skip streams-another-device - one device\n");
        return;
    }
    cudaSetDevice(1);
    Batch b(30, 10, 9);
    b.load(0);
    cudaDeviceSynchronize();
    b.call();
    int status = batchlapack_status();
    std::vector<double> now(b.a.size());
    cudaMemcpy(now.data(), b.d, now.size() * sizeof(double), cudaMemcpyDeviceToHost);
    say(status == BATCHLAPACK_UNSUPPORTED && now == b.a, "another-device");
    cudaSetDevice(0);
}

int main()
{
    CUDA(cudaFree(nullptr));
    without_a_stream();
    asynchronous(false, "asynchronous");
    asynchronous(true, "asynchronous-groups");
    no_allocation();
    no_allocation_of_large();
    captured(false, "captured");
    captured(true, "captured-groups");
    threads();
    another_device();
    say(cudaGetLastError() == cudaSuccess, "no-error-of-ours");
    return failures != 0;
}
