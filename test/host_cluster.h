/* Thread blocks on the host that wait for each other: those of a cluster, or of a launch
 * whose blocks are all resident.
 *
 * host_large_panel.cc includes it before the kernels' headers. The fibers of host_warp.h
 * are the threads of all blocks. A barrier in shared memory is what kernels/cluster.cuh
 * makes of the device's: an arrival and bytes that were announced complete its phase.
 * Letters and packets come in any order.
 */
#ifndef HOST_CLUSTER_H
#define HOST_CLUSTER_H

#include "host_block.h"
#include "host_cuda.h"
#include <cstddef>
#include <vector>

#define BL_HOST_CLUSTER
#define BL_CLUSTER_CUH /* what follows is in its place */

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

namespace host_cluster
{

constexpr int MOST_BLOCKS = 40, NUMBERS = 16;

/* Of this launch. Shared memory of block b begins at memory + b * stride. */
inline int blocks;
inline char *memory;
inline uint32_t stride;
inline host_warp::Barrier numbered[MOST_BLOCKS][NUMBERS], everyone;

/* What a barrier in shared memory holds. */
struct Phase {
    int32_t count; /* bytes that were announced and have not come */
    uint16_t arrived, phase;
};
static_assert(sizeof(Phase) == sizeof(uint64_t), "a barrier's size");

inline Phase &phase_at(uint32_t barrier)
{
    return *(Phase *)(memory + barrier);
}

inline void settle(Phase &p)
{
    if (p.arrived == 1 && p.count == 0) {
        p.arrived = 0;
        p.phase++;
    }
}

inline int block()
{
    return host_warp::current / int(host_cuda::block_threads);
}

/* f(thread of the block) for every thread of every block, `bytes` of shared memory each,
 * at first full of NaN. */
inline void run(int count, int threads, size_t bytes, const std::function<void()> &f)
{
    static std::vector<std::max_align_t> store;
    blocks = count;
    stride = uint32_t((bytes + 15) / 16 * 16);
    store.resize(size_t(stride) * count / sizeof(std::max_align_t) + 1);
    memory = (char *)store.data();
    memset(memory, 0xff, size_t(stride) * count);
    host_cuda::block_threads = unsigned(threads);
    host_warp::run(count * threads, [&](int) { f(); });
    host_cuda::block_threads = host_warp::MOST;
}

/* Block b's shared memory from the calling thread's point of view. */
template <class M>
M &shared()
{
    return *(M *)(memory + block() * size_t(stride));
}

} // namespace host_cluster

#undef blockIdx
#define blockIdx (host_cuda::Index{unsigned(host_cluster::block())})

inline void __syncthreads()
{
    host_warp::wait(host_cluster::numbered[host_cluster::block()][0],
                    int(host_cuda::block_threads), "__syncthreads");
}
inline void __threadfence()
{
}

namespace bl
{
namespace cluster
{

inline uint32_t address(const void *shared)
{
    return uint32_t((const char *)shared - host_cluster::memory);
}
inline int rank()
{
    return host_cluster::block();
}
inline int blocks()
{
    return host_cluster::blocks;
}
inline int log2_of(int x)
{
    return __builtin_ctz(unsigned(x));
}
inline uint32_t remote(uint32_t own, int block)
{
    return own + uint32_t(block - rank()) * host_cluster::stride;
}
inline void release()
{
}
inline void acquire()
{
    host_warp::wait(host_cluster::everyone,
                    host_cluster::blocks * int(host_cuda::block_threads), "acquire");
}
inline void begin()
{
    acquire();
}
inline void barrier_init(uint32_t barrier)
{
    host_cluster::phase_at(barrier) = {};
}
inline void barrier_publish()
{
}
inline void arrive_expecting(uint32_t barrier, uint32_t bytes)
{
    host_cluster::Phase &p = host_cluster::phase_at(barrier);
    if (p.arrived) {
        printf("Bail out! a barrier's phase has two arrivals\n");
        exit(1);
    }
    p.arrived = 1;
    p.count += int32_t(bytes);
    host_cluster::settle(p);
}
inline void arrive(uint32_t barrier)
{
    arrive_expecting(barrier, 0);
}
inline void wait(uint32_t barrier, unsigned parity)
{
    host_warp::wait_until(
        [=] { return host_cluster::phase_at(barrier).phase % 2 != parity; });
}
inline void letter(uint32_t to, uint4 x, uint32_t barrier)
{
    host_warp::pause();
    memcpy(host_cluster::memory + to, &x, sizeof x);
    host_cluster::Phase &p = host_cluster::phase_at(barrier);
    p.count -= int32_t(sizeof x);
    host_cluster::settle(p);
}
inline void come(int which, int threads)
{
    host_warp::arrive(host_cluster::numbered[rank()][which], threads, "a barrier");
    host_warp::pause();
}
inline void await(int which, int threads)
{
    host_warp::wait(host_cluster::numbered[rank()][which], threads, "a barrier");
}

} // namespace cluster

template <class P>
void send(P *to, P p)
{
    host_warp::pause();
    *to = p;
}
template <class P>
P look(const P *from)
{
    return *from;
}
template <class F>
void until(F condition)
{
    host_warp::wait_until(condition);
}

} // namespace bl
#endif
