/* A program that uses CUDA itself, and LAPACK through us: it must find device, context,
 * streams, pending errors, captures and memory as it left them.
 *
 * Linked with the library and with its own CUDA runtime; run by test/device.sh.
 */
#include <cstring>
#include <cuda.h>
#include <pthread.h>
#include "batchlapack.h"
#include "device.cuh"

extern "C" void dgetrf_(int *m, int *n, double *a, int *lda, int *ipiv, int *info);

static void say(bool ok, const char *name)
{
    verdict(ok ? "" : "not as before", "manners-%s", name);
}

/* LU of a matrix made from `seed`: on the GPU, and whether it is what the CPU gives. */
static bool right(int n, unsigned seed)
{
    size_t count = (size_t)n * n;
    double *a = (double *)malloc(count * sizeof *a),
           *b = (double *)malloc(count * sizeof *b);
    int *p = (int *)malloc(2 * n * sizeof *p), info[2];
    for (size_t k = 0; k < count; k++)
        a[k] = b[k] = (double)((seed = seed * 1664525u + 1013904223u) >> 8) - 8e6;
    batchlapack_set_mode(BATCHLAPACK_MODE_GPU);
    dgetrf_(&n, &n, a, &n, p, &info[0]);
    batchlapack_set_mode(BATCHLAPACK_MODE_CPU);
    dgetrf_(&n, &n, b, &n, p + n, &info[1]);
    bool same = info[0] == info[1] && memcmp(p, p + n, n * sizeof *p) == 0 &&
                memcmp(a, b, count * sizeof *a) == 0;
    free(a);
    free(b);
    free(p);
    return same;
}

static CUcontext current(void)
{
    static CUresult (*get)(CUcontext *);
    cudaDriverEntryPointQueryResult found;
    CUcontext context = NULL;
    if (!get)
        cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", (void **)&get, 12000,
                                         cudaEnableDefault, &found);
    get(&context);
    return context;
}

static size_t free_memory(void)
{
    size_t now = 0, all;
    cudaMemGetInfo(&now, &all);
    return now;
}

static void *without_context(void *ok)
{
    *(bool *)ok = current() == NULL && right(100, 3) && current() == NULL;
    return NULL;
}

static void *small_call(void *ok)
{
    *(bool *)ok = right(20, 5) && right(300, 6);
    return NULL;
}

static bool in_thread(void *(*f)(void *), size_t stack)
{
    pthread_t t;
    pthread_attr_t attr;
    bool ok = false;
    pthread_attr_init(&attr);
    if (stack)
        pthread_attr_setstacksize(&attr, stack);
    if (pthread_create(&t, &attr, f, &ok) == 0)
        pthread_join(t, NULL);
    return ok;
}

int main(void)
{
    int devices = 0, device = -1;
    /* The very first call, so the engine's start-up too, from a 256 KB stack. */
    say(in_thread(small_call, 256 << 10), "first-call-from-a-small-stack");
    CUDA(cudaGetDeviceCount(&devices));
    cudaSetDevice(devices - 1);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    void *mine = NULL;
    cudaMalloc(&mine, 1 << 20);
    cudaMemset(mine, 42, 1 << 20);
    CUcontext context = current();
    void *none = NULL;
    cudaMalloc(&none, (size_t)1 << 60); /* leaves an error pending */
    bool ok = right(200, 1) && right(64, 2);
    say(ok, "results");
    say(cudaPeekAtLastError() == cudaErrorMemoryAllocation, "pending-error");
    cudaGetLastError();
    say(right(128, 9) && cudaGetLastError() == cudaSuccess, "no-error-of-ours");
    say(cudaGetDevice(&device) == cudaSuccess && device == devices - 1, "device");
    say(current() == context, "context");
    say(in_thread(without_context, 0), "thread-without-context");

    cudaGraph_t graph = NULL;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    cudaMemsetAsync(mine, 1, 16, stream);
    ok = right(90, 4);
    say(cudaStreamEndCapture(stream, &graph) == cudaSuccess && graph && ok, "capture");
    unsigned char byte = 0;
    cudaMemcpyAsync(&byte, (char *)mine + 4096, 1, cudaMemcpyDeviceToHost, stream);
    say(cudaStreamSynchronize(stream) == cudaSuccess && byte == 42, "stream-and-memory");

    /* Device memory belongs to calls, not to threads. */
    right(512, 7);
    size_t before = free_memory();
    ok = true;
    for (int i = 0; i < 500; i++)
        ok &= in_thread(small_call, 0);
    for (int n = 1; n < 400; n += 7)
        ok &= right(n, n) && right(400 - n, n);
    say(ok, "many-threads-results");
    say(before < free_memory() + ((size_t)256 << 20), "many-threads-memory");
    printf("# device memory taken by 500 threads: %.1f MB\n",
           ((double)before - (double)free_memory()) * 1e-6);
    say(cudaDeviceSynchronize() == cudaSuccess, "context-still-good");

    /* The program takes the context away: our engine is gone, its calls are not. */
    cudaDeviceReset();
    ok = right(200, 8) && right(70, 9);
    say(ok, "after-device-reset");
    say(cudaMalloc(&mine, 1 << 20) == cudaSuccess && cudaFree(mine) == cudaSuccess,
        "device-reset-was-the-programs");
    return failures != 0;
}
