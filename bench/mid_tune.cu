/* What kernels/mid_lu_*.cu choose from: kernels of getrf on the chip with other numbers
 * of rows, columns, warps and blocks, each timed at the sizes it competes for. Its output
 * is stored as bench/results/CARD-mid-tune.txt.
 *
 * A line a kernel and size: nanoseconds a matrix (median of three, device-resident,
 * uniform in (-1, 1)), resident blocks, registers, shared memory, and a sum over all bits
 * of the result, which must be the same for all kernels of a precision and size. Add a
 * line to main() to try another one.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include "mid_lu.cuh"

using namespace bl;

namespace
{

constexpr size_t BYTES = size_t(2) << 30;

void must(cudaError_t error)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "mid_tune: %s\n", cudaGetErrorString(error));
        exit(1);
    }
}

template <class R>
__global__ void fill(R *a, size_t count)
{
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count;
         i += size_t(gridDim.x) * blockDim.x) {
        unsigned long long z = (i + 12345) * 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        a[i] = R(double((z ^ z >> 31) >> 11) * 0x1p-52 - 1);
    }
}

__global__ void sum(const unsigned *word, size_t count, unsigned long long *total)
{
    unsigned long long part = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count;
         i += size_t(gridDim.x) * blockDim.x)
        part += (word[i] + 1ull) * (i * 0x9e3779b97f4a7c15 | 1);
    atomicAdd(total, part);
}

struct Memory {
    void *before, *a;
    int *ipiv, *info;
    unsigned long long *total;
} memory;

template <class T>
void measure(const MidKernel &k, int R, int C, int W, std::initializer_list<int> sizes)
{
    for (int n : sizes) {
        const size_t elements = size_t(n) * n, shared = k.shared_bytes(n, n);
        const int batch = int(std::min(BYTES / (elements * sizeof(T)), size_t(10000)));
        const size_t bytes = batch * elements * sizeof(T);
        cudaFuncAttributes attributes;
        must(cudaFuncGetAttributes(&attributes, k.kernel));
        if (cudaFuncSetAttribute(k.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 int(shared)) != cudaSuccess) {
            (void)cudaGetLastError();
            printf("R%d C%d W%d%s, n = %d: %zu bytes of shared memory are too many\n", R,
                   C, W, k.head ? " head" : "", n, shared);
            continue;
        }
        int blocks;
        must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k.kernel, k.threads,
                                                           shared));
        fill<<<1024, 256>>>((Real<T> *)memory.before, bytes / sizeof(Real<T>));
        MidArguments g = {};
        g.a = {memory.a, nullptr, n, int64_t(elements)};
        g.ipiv = {memory.ipiv, nullptr, 0, n};
        g.info = {memory.info, nullptr, 0, 1};
        g.m = g.n = n;
        g.int_size = 4;
        void *parameters[] = {&g};
        cudaEvent_t start, stop;
        must(cudaEventCreate(&start));
        must(cudaEventCreate(&stop));
        float ms[4];
        for (float &time : ms) {
            must(cudaMemcpyAsync(memory.a, memory.before, bytes, cudaMemcpyDefault));
            must(cudaEventRecord(start));
            must(cudaLaunchKernel(k.kernel, dim3(batch), dim3(k.threads), parameters,
                                  shared, 0));
            must(cudaEventRecord(stop));
            must(cudaEventSynchronize(stop));
            must(cudaEventElapsedTime(&time, start, stop));
        }
        std::sort(ms + 1, ms + 4); /* the first warms up */
        unsigned long long total;
        must(cudaMemset(memory.total, 0, sizeof total));
        sum<<<1024, 256>>>((unsigned *)memory.a, bytes / 4, memory.total);
        sum<<<1024, 256>>>((unsigned *)memory.ipiv, size_t(n) * batch, memory.total);
        must(cudaMemcpy(&total, memory.total, sizeof total, cudaMemcpyDefault));
        printf(
            "%c R%d C%d W%-2d%s n %3d %9.1f ns, %2d blocks, %3d registers, %6zu bytes, "
            "sum %016llx\n",
            sizeof(T) == 4                     ? 's'
            : sizeof(T) == 16                  ? 'z'
            : sizeof(Real<T>) == sizeof(float) ? 'c'
                                               : 'd',
            R, C, W, k.head ? " head" : "     ", n, ms[2] * 1e6 / batch, blocks,
            attributes.numRegs, shared, total);
        fflush(stdout);
        must(cudaEventDestroy(start));
        must(cudaEventDestroy(stop));
    }
}

template <class T, int R, int C, int W, int BLOCKS>
void measure(std::initializer_list<int> sizes)
{
    measure<T>(on_chip<T, R, C, W, BLOCKS>(), R, C, W, sizes);
}

template <class T, int R, int C, int W, int BLOCKS>
void measure_head(std::initializer_list<int> sizes)
{
    measure<T>(with_head<T, R, C, W, BLOCKS>(), R, C, W, sizes);
}

} // namespace

int main()
{
    cudaDeviceProp card;
    must(cudaGetDeviceProperties(&card, 0));
    printf("%s\n", card.name);
    must(cudaMalloc(&memory.before, BYTES));
    must(cudaMalloc(&memory.a, BYTES));
    must(cudaMalloc(&memory.ipiv, 10000 * 256 * sizeof(int)));
    must(cudaMalloc(&memory.info, 10000 * sizeof(int)));
    must(cudaMalloc(&memory.total, sizeof *memory.total));
    using c = Complex<float>;
    using z = Complex<double>;
    measure<double, 2, 8, 1, 16>({33, 48, 64});
    measure<double, 2, 8, 2, 10>({33, 48, 49, 56, 57, 64});
    measure<double, 2, 8, 2, 11>({33, 48, 49, 56, 57, 64});
    measure_head<double, 2, 8, 1, 16>({65, 68, 72});
    measure_head<double, 2, 8, 2, 7>({65, 68, 72});
    measure_head<double, 2, 8, 2, 8>({65, 68, 72});
    measure_head<double, 2, 8, 2, 9>({65, 68, 72});
    measure_head<double, 2, 8, 3, 6>({65, 68, 72});
    measure_head<double, 2, 8, 3, 7>({65, 68, 72});
    measure<double, 3, 8, 2, 7>({65, 72, 73, 76, 80});
    measure<double, 3, 8, 3, 6>({65, 72, 73, 76, 80});
    measure<double, 3, 8, 3, 5>({65, 72, 73, 76, 80, 81, 84, 88});
    measure<double, 3, 8, 2, 8>({65, 72, 80, 96});
    measure<double, 3, 8, 4, 4>({65, 72, 80, 81, 88, 96});
    measure_head<double, 3, 8, 3, 4>({97, 100, 104});
    measure_head<double, 3, 8, 3, 5>({97, 100, 104});
    measure_head<double, 3, 8, 4, 4>({97, 100, 104});
    measure_head<double, 3, 8, 4, 3>({97, 100, 104});
    measure_head<double, 3, 8, 5, 3>({97, 100, 104});
    measure<double, 4, 8, 5, 3>({97, 104, 112, 113, 116, 120});
    measure<double, 4, 8, 8, 2>({97, 113, 116, 120, 128});
    measure<double, 4, 8, 4, 3>({97, 112, 128});
    measure<double, 4, 8, 6, 2>({97, 112, 128});
    measure_head<double, 4, 8, 5, 2>({129, 132, 136});
    measure_head<double, 4, 8, 6, 2>({129, 132, 136});
    measure_head<double, 4, 8, 8, 2>({129, 132, 136});
    measure<double, 5, 8, 5, 2>({129, 144, 145, 148, 152});
    measure<double, 5, 8, 6, 2>({129, 144, 145, 148, 151, 160});
    measure<double, 5, 8, 7, 1>({145, 153, 156, 160});
    measure<double, 5, 8, 8, 1>({129, 144, 145, 153, 156, 160});
    measure<double, 5, 8, 10, 1>({145, 153, 156, 160});
    measure_head<double, 5, 8, 7, 1>({161, 164, 168});
    measure_head<double, 5, 8, 8, 1>({161, 164, 168});
    measure_head<double, 5, 8, 10, 1>({161, 164, 168});
    measure<double, 6, 8, 8, 1>({161, 168, 169, 176, 177, 190});
    measure<double, 6, 8, 10, 1>({161, 168, 169, 176, 177, 190});
    measure<double, 6, 8, 11, 1>({161, 168, 169, 176, 177, 190});
    measure<float, 2, 8, 1, 20>({33, 48, 56, 64});
    measure<float, 2, 8, 2, 12>({33, 48, 56, 64});
    measure_head<float, 2, 8, 2, 10>({65, 68, 72});
    measure_head<float, 3, 8, 2, 8>({97, 100, 104});
    measure_head<float, 3, 8, 3, 7>({97, 100, 104});
    measure<float, 3, 8, 2, 12>({65, 80, 88, 96});
    measure<float, 3, 8, 3, 8>({65, 80, 88, 96});
    measure<float, 4, 8, 3, 6>({97, 104, 128});
    measure<float, 4, 8, 4, 4>({97, 104, 128});
    measure<float, 5, 8, 5, 4>({129, 160});
    measure<float, 6, 8, 6, 3>({161, 190});
    measure<float, 7, 8, 6, 2>({200, 224});
    measure<float, 7, 8, 8, 1>({200, 224});
    measure<c, 2, 4, 2, 14>({33, 48, 56, 64});
    measure<c, 2, 4, 4, 8>({33, 48, 56, 64});
    measure<c, 3, 4, 3, 7>({65, 72, 80, 96});
    measure<c, 3, 4, 6, 4>({65, 72, 80, 96});
    measure<c, 4, 4, 4, 4>({97, 108, 128});
    measure<c, 4, 4, 6, 3>({97, 108, 128});
    measure<c, 4, 4, 8, 2>({97, 108, 128});
    measure<c, 5, 4, 8, 2>({129, 144, 160});
    measure<c, 5, 4, 10, 1>({129, 144, 160});
    measure<z, 2, 4, 2, 10>({33, 48, 56, 64});
    measure<z, 2, 4, 4, 6>({33, 48, 56, 64});
    measure<z, 3, 4, 4, 4>({65, 72, 80, 84, 96});
    measure<z, 3, 4, 5, 3>({65, 72, 80, 84, 96});
    measure<z, 3, 4, 8, 2>({65, 72, 80, 84, 96});
    measure<z, 4, 4, 6, 2>({97, 104, 128});
    measure<z, 4, 4, 8, 1>({97, 104, 128});
    return 0;
}
