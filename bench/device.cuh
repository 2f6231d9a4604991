/* What the measurements on device memory have in common: ending with a reason, matrices
 * to measure on, timing by events, and lists of names on the command line.
 *
 * Included by one source a program.
 */
#ifndef BL_BENCH_DEVICE_CUH
#define BL_BENCH_DEVICE_CUH

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <string>
#include <vector>

/* End the program unless `good`. */
static inline void must(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
                cudaGetErrorString(cudaGetLastError()));
        exit(1);
    }
}

/* Uniform in (-1, 1), `parts` numbers an element; with `n`, matrices of that order one
 * behind the other, their diagonals n + 1 with no imaginary part. */
template <class R>
__global__ void fill(R *p, size_t count, size_t n, int parts)
{
    size_t step = size_t(gridDim.x) * blockDim.x;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += step) {
        uint64_t z = (i + 1) * 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z ^= z >> 27;
        p[i] = R(double(int64_t(z * 0x94D049BB133111EBu)) * 0x1p-63);
        if (n && i / parts % (n * n) % (n + 1) == 0)
            p[i] = i % parts ? R(0) : R(n + 1);
    }
}

/* Of `precision`, 0 to 3 for s, d, c, z. */
static inline void fill_all(int precision, void *p, size_t elements, int n)
{
    const int parts = precision >= 2 ? 2 : 1;
    if (precision % 2)
        fill<<<4096, 256>>>((double *)p, elements * parts, size_t(n), parts);
    else
        fill<<<4096, 256>>>((float *)p, elements * parts, size_t(n), parts);
    must(cudaDeviceSynchronize() == cudaSuccess, "fill");
}

/* Milliseconds of `repeats` calls on the stream, sorted, each after an untimed restore();
 * one more call comes first and does not count. */
template <class Restore, class Call>
static std::vector<float> times(cudaStream_t stream, int repeats, Restore restore,
                                Call call)
{
    std::vector<float> all;
    cudaEvent_t begin, end;
    must(cudaEventCreate(&begin) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess,
         "events");
    for (int i = 0; i <= repeats; i++) {
        float ms = 0;
        restore();
        cudaEventRecord(begin, stream);
        call();
        cudaEventRecord(end, stream);
        must(cudaEventSynchronize(end) == cudaSuccess, "call");
        cudaEventElapsedTime(&ms, begin, end);
        if (i > 0)
            all.push_back(ms);
    }
    std::sort(all.begin(), all.end());
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return all;
}

/* Whether the comma-separated list has the word; an empty one has all. */
static inline bool listed(const char *list, const std::string &word)
{
    return !*list ||
           ("," + std::string(list) + ",").find("," + word + ",") != std::string::npos;
}

#endif
