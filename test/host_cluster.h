/* Thread-block clusters on the host: what cluster.cuh says, for fibers.
 *
 * Included before the kernels' headers, in place of cluster.cuh. The blocks' shared
 * memory lies in `shared`, one block's after another's. A letter arrives at some time, in
 * any order.
 */
#ifndef BL_CLUSTER_CUH
#define BL_CLUSTER_CUH

#include "host_cuda.h"

namespace bl
{
namespace cluster
{

constexpr int MOST_BLOCKS = 36;     /* a launch can have more than a cluster */
constexpr uint32_t ROOM = 64 << 10; /* bytes a block */

alignas(128) inline char shared[MOST_BLOCKS][ROOM];
inline int size; /* blocks */
inline host_warp::Barrier all;
inline int phase_of[host_warp::MOST]; /* of `all`, that a thread has come to */

struct Letter {
    uint32_t to, barrier;
    uint4 x;
};
inline std::vector<Letter> on_the_way;

inline uint32_t address(const void *p)
{
    return uint32_t((const char *)p - shared[0]);
}

inline char *place(uint32_t address)
{
    return shared[0] + address;
}

inline host_cuda::Mbarrier &barrier_at(uint32_t address)
{
    return *(host_cuda::Mbarrier *)place(address);
}

inline bool deliver()
{
    if (on_the_way.empty())
        return false;
    for (size_t i = 1 + host_warp::throw_dice() % on_the_way.size(); i > 0; i--) {
        std::swap(on_the_way[host_warp::throw_dice() % on_the_way.size()],
                  on_the_way.back());
        const Letter letter = on_the_way.back();
        on_the_way.pop_back();
        memcpy(place(letter.to), &letter.x, sizeof letter.x);
        barrier_at(letter.barrier).complete(sizeof letter.x);
    }
    return true;
}

/* kernel(block) by every thread of a cluster. */
inline void launch(int blocks, int threads, const std::function<void(int)> &kernel)
{
    size = blocks;
    blockDim.x = unsigned(threads);
    memset(shared, 0xff, sizeof shared);
    host_warp::deliver = deliver;
    host_warp::run(
        threads, [&](int thread) { kernel(thread / threads); }, blocks);
    host_warp::deliver = nullptr;
    if (!on_the_way.empty()) {
        printf("Bail out! a letter comes to a block that has ended\n");
        exit(1);
    }
}

inline int rank()
{
    return host_warp::current / host_warp::threads;
}
inline int blocks()
{
    return size;
}
inline int log2_of(int x)
{
    return __ffs(unsigned(x)) - 1;
}
inline uint32_t remote(uint32_t own, int block)
{
    return own % ROOM + uint32_t(block) * ROOM;
}

inline void release()
{
    phase_of[host_warp::current] = all.phase;
    host_warp::arrive(all, size * host_warp::threads, "the cluster's barrier");
}
inline void acquire()
{
    host_warp::wait_while(all.phase, phase_of[host_warp::current]);
}
inline void begin()
{
    release();
    acquire();
}

inline void barrier_init(uint32_t barrier, unsigned arrivals = 1)
{
    barrier_at(barrier).init(int(arrivals));
}
inline void barrier_publish()
{
}
inline void arrive(uint32_t barrier)
{
    barrier_at(barrier).arrive();
}
inline void arrive_expecting(uint32_t barrier, uint32_t bytes)
{
    barrier_at(barrier).arrive(int(bytes));
}
inline void wait(uint32_t barrier, unsigned parity)
{
    barrier_at(barrier).wait(parity);
}
inline void letter(uint32_t to, uint4 x, uint32_t barrier)
{
    on_the_way.push_back({to, barrier, x});
}

inline void come(int which, int threads)
{
    host_warp::arrive_at(which, threads);
}
inline void await(int which, int threads)
{
    host_warp::meet_at(which, threads);
}

} // namespace cluster
} // namespace bl
#endif
