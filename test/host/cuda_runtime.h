/* The CUDA runtime for g++, as far as the kernels' own launches need it: a kernel is
 * known by what know() was told, memory is the host's, a stream does everything at once.
 *
 * It takes the place of CUDA's header for the host tests that run whole jobs.
 */
#ifndef HOST_CUDA_RUNTIME_H
#define HOST_CUDA_RUNTIME_H

#include "../host_cuda.h"
#include <map>
#include <utility>

enum cudaError_t { cudaSuccess, cudaErrorInvalidConfiguration };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
using cudaStream_t = void *;
using cudaEvent_t = void *;

struct dim3 {
    unsigned x;
    explicit dim3(unsigned n) : x(n)
    {
    }
};

namespace host_cuda
{
inline std::map<const void *, std::function<void(void **)>> known;

template <class... A, size_t... I>
void call(void (*kernel)(A...), void **parameters, std::index_sequence<I...>)
{
    kernel(*(A *)parameters[I]...);
}

/* From now on the kernel, whose arguments are A, can be launched. */
template <class... A>
void know(const void *kernel)
{
    known[kernel] = [kernel](void **parameters) {
        call((void (*)(A...))kernel, parameters, std::index_sequence_for<A...>());
    };
}
} // namespace host_cuda

inline cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int)
{
    return cudaSuccess;
}

inline cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block,
                                    void **parameters, size_t bytes, cudaStream_t)
{
    const auto f = host_cuda::known.find(kernel);
    if (f == host_cuda::known.end()) {
        printf("Bail out! an unknown kernel is launched\n");
        exit(1);
    }
    host_cuda::launch(grid.x, int(block.x), bytes, [&] { f->second(parameters); });
    return cudaSuccess;
}

inline cudaError_t cudaMemsetAsync(void *p, int byte, size_t bytes, cudaStream_t)
{
    memset(p, byte, bytes);
    return cudaSuccess;
}
#endif
