/* CUDA's words for g++: a kernel's blocks run one after the other, in any order, each on
 * the fibers of host_block.h.
 *
 * Host tests include it before the kernels' headers, directly or through
 * host/cuda_runtime.h. Shared memory is static, the dynamic one garbage before each
 * block; what lies behind it is watched. What is special about memory accesses is not in
 * here. The approximate reciprocals are not either: see quick_reciprocal() in
 * quick_divide.cuh.
 */
#ifndef HOST_CUDA_H
#define HOST_CUDA_H

#include "host_block.h"
#include "host_copies.h"
#include "host_signal.h"
#include "host_tensor.h"
#include <math.h>
#include <stdint.h>
#include <algorithm>
#include <complex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#define BL_HOST_CUDA
#define __CUDACC__
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __grid_constant__
#define __shared__ thread_local /* which may be extern, too */
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define threadIdx (host_cuda::thread())

struct float2 {
    float x, y;
};
struct __align__(16) double2
{
    double x, y;
};
struct __align__(16) uint4
{
    unsigned x, y, z, w;
};

namespace bl
{
/* Dynamic shared memory, and some more, by the names that kernels have for it. */
inline thread_local __align__(16) char memory[256 << 10];
inline thread_local __align__(16) char shared[256 << 10];
} // namespace bl

/* Where a kernel says extern, g++ has this called first: it would begin the memory. */
extern "C" inline __attribute__((used)) void _ZTHN2bl6memoryE()
{
}
extern "C" inline __attribute__((used)) void _ZTHN2bl6sharedE()
{
}

namespace host_cuda
{
struct Index {
    unsigned x, y;
};
} // namespace host_cuda

inline host_cuda::Index blockIdx, blockDim = {32, 1}, gridDim = {1, 1};

namespace host_cuda
{
inline Index thread()
{
    return {unsigned(host_warp::current) % blockDim.x, 0};
}
} // namespace host_cuda

namespace host_cuda
{
/* `bytes` of shared memory a block. */
inline void launch(int64_t blocks, int threads, size_t bytes,
                   const std::function<void()> &kernel)
{
    gridDim.x = unsigned(blocks);
    blockDim.x = unsigned(threads);
    const int64_t first = host_warp::throw_dice() % blocks;
    for (int64_t i = 0; i < blocks; i++) {
        blockIdx.x = unsigned((first + i) % blocks);
        const size_t watched = std::min(sizeof bl::memory - bytes, size_t(4096));
        const int garbage = host_warp::throw_dice() % 2 ? 0xff : 0x3f; /* NaN or not */
        for (char *dynamic : {bl::memory, bl::shared}) {
            memset(dynamic, garbage, bytes);
            memset(dynamic + bytes, 0x5a, watched);
        }
        forget_copies();
        host_warp::run(threads, [&](int) { kernel(); });
        for (char *behind : {bl::memory + bytes, bl::shared + bytes})
            if (std::count(behind, behind + watched, 0x5a) != long(watched)) {
                printf("Bail out! a block wrote beyond its %zu bytes\n", bytes);
                exit(1);
            }
    }
}
} // namespace host_cuda

template <class V>
V max(V x, V y)
{
    return x < y ? y : x;
}
template <class V>
V min(V x, V y)
{
    return y < x ? y : x;
}

/* ---- warps and blocks ---- */

inline void __syncthreads()
{
    host_warp::meet_block();
}
inline void __syncwarp()
{
    host_warp::meet();
}
inline unsigned __ballot_sync(unsigned, bool yes)
{
    return host_warp::ballot(yes);
}
inline bool __any_sync(unsigned, bool yes)
{
    return host_warp::ballot(yes) != 0;
}
inline bool __all_sync(unsigned, bool yes)
{
    return host_warp::ballot(yes) == ~0u;
}
template <class V>
V __shfl_sync(unsigned, V x, int from)
{
    return host_warp::from_lane(x, from);
}
template <class V>
V __shfl_xor_sync(unsigned, V x, int bits)
{
    return host_warp::from_lane(x, host_warp::current % 32 ^ bits);
}
inline unsigned __reduce_max_sync(unsigned, unsigned x)
{
    unsigned most = 0;
    host_warp::from_all(x, [&](unsigned y, int) { most = max(most, y); });
    return most;
}

/* ---- memory ---- */

template <class V>
V atomicAdd(V *p, V x)
{
    return std::exchange(*p, V(*p + x));
}
template <class V>
V atomicOr(V *p, V x)
{
    return std::exchange(*p, V(*p | x));
}
template <class V>
V atomicMax(V *p, V x)
{
    return std::exchange(*p, V(max(*p, x)));
}
template <class V>
V atomicMin(V *p, V x)
{
    return std::exchange(*p, V(min(*p, x)));
}
inline void __threadfence()
{
}
inline size_t __cvta_generic_to_shared(const void *p)
{
    return size_t(p);
}
template <class V>
V *__cvta_generic_to_global(V *p)
{
    return p;
}
template <class V>
V *__cvta_global_to_generic(V *p)
{
    return p;
}

/* ---- bits ---- */

inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
inline int __ffs(unsigned x)
{
    return __builtin_ffs(int(x));
}
inline int __clz(int x)
{
    return x ? __builtin_clz(unsigned(x)) : 32;
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned which)
{
    uint64_t both = uint64_t(y) << 32 | x;
    unsigned result = 0;
    for (int i = 0; i < 4; i++)
        result |= unsigned(both >> (which >> 4 * i & 7) * 8 & 255) << 8 * i;
    return result;
}
inline unsigned __float_as_uint(float x)
{
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
inline int __double2hiint(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return int(bits >> 32);
}
inline int __double2loint(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return int(bits);
}
inline double __hiloint2double(int high, int low)
{
    const uint64_t bits = uint64_t(unsigned(high)) << 32 | unsigned(low);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
inline float __frcp_rn(float x)
{
    return 1 / x;
}
inline double __drcp_rn(double x)
{
    return 1 / x;
}
#endif
