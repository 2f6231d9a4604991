/* CUDA's words for g++: a kernel whose block is one warp runs on the 32 fibers of
 * host_warp.h.
 *
 * host_tiny_lu.cc includes it before the kernels' headers. Shared memory is static; what
 * lanes write to it without meeting comes out differently. Launches and what is special
 * about memory accesses are not in here. The approximate reciprocals are not either: see
 * quick_reciprocal() in tiny.cuh.
 */
#ifndef HOST_CUDA_H
#define HOST_CUDA_H

#include "host_warp.h"
#include <math.h>
#include <stdint.h>

#define BL_HOST_CUDA
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __grid_constant__
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define threadIdx (host_cuda::thread())

struct float2 {
    float x, y;
};
struct double2 {
    double x, y;
};

namespace host_cuda
{
struct Index {
    unsigned x;
};
inline unsigned block_threads =
    host_warp::MOST; /* of each block, where there are several */
inline Index thread()
{
    return {unsigned(host_warp::current) % block_threads};
}
} // namespace host_cuda

inline host_cuda::Index blockIdx, blockDim = {32};

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
template <class V>
V __shfl_xor_sync(unsigned, V x, int bits)
{
    return host_warp::from_lane(x, (host_warp::current ^ bits) % host_warp::SIZE);
}
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
inline float __frcp_rn(float x)
{
    return 1 / x;
}
inline double __drcp_rn(double x)
{
    return 1 / x;
}
#endif
