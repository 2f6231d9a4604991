/* How the blocks of a thread-block cluster meet and send each other data (from sm_90 on).
 *
 * Used by large_panel.cuh. Shared addresses are the 32-bit ones of the shared window;
 * what remote() gives may be added to like any address. A letter is a store to another
 * block's shared memory that also counts on a barrier there: who waits for the barrier
 * sees the data. Nothing here chooses who sends what.
 */
#ifndef BL_CLUSTER_CUH
#define BL_CLUSTER_CUH

#include <stdint.h>

namespace bl
{
namespace cluster
{

__device__ __forceinline__ uint32_t address(const void *shared)
{
    return uint32_t(__cvta_generic_to_shared(shared));
}

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900

__device__ __forceinline__ int rank()
{
    uint32_t x;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(x));
    return int(x);
}

__device__ __forceinline__ int blocks()
{
    uint32_t x;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(x));
    return int(x);
}

/* x, a power of two, is 1 << log2_of(x). */
__device__ __forceinline__ int log2_of(int x)
{
    return __ffs(x) - 1;
}

/* The same place in another block's shared memory. */
__device__ __forceinline__ uint32_t remote(uint32_t own, int block)
{
    uint32_t x;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(x) : "r"(own), "r"(block));
    return x;
}

/* What another block has at the same place. */
template <class T>
__device__ __forceinline__ T load(const T *own, int block)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
    const uint32_t from = remote(address(own), block);
    union {
        uint32_t word[sizeof(T) / 4];
        T value;
    } x;
    if constexpr (sizeof(T) == 4)
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x.word[0]) : "r"(from));
    else if constexpr (sizeof(T) == 8)
        asm volatile("ld.shared::cluster.v2.u32 {%0, %1}, [%2];"
                     : "=r"(x.word[0]), "=r"(x.word[1])
                     : "r"(from));
    else
        asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x.word[0]), "=r"(x.word[1]), "=r"(x.word[2]), "=r"(x.word[3])
                     : "r"(from));
    return x.value;
}

/* All threads of the cluster meet: each comes, then waits for all. What they wrote before
 * release() is seen after acquire(). */
__device__ __forceinline__ void release()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void acquire()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* The first meeting: published barriers are seen after. */
__device__ __forceinline__ void begin()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    acquire();
}

/* A barrier that so many arrivals complete, once all announced bytes are there. */
__device__ __forceinline__ void barrier_init(uint32_t barrier, unsigned arrivals = 1)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

/* After barrier_init, before the other blocks may send. */
__device__ __forceinline__ void barrier_publish()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier)
                 : "memory");
}

__device__ __forceinline__ void arrive_expecting(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(bytes)
                 : "memory");
}

/* Until the phase of this parity is over. */
__device__ __forceinline__ void wait(uint32_t barrier, unsigned parity)
{
    uint32_t over;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(over)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!over);
}

__device__ __forceinline__ void letter(uint32_t to, uint4 x, uint32_t barrier)
{
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
                 "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
                 "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "r"(barrier)
                 : "memory");
}

#endif

/* Named barriers of the block: to have come, and to wait for all who must. */
__device__ __forceinline__ void come(int which, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(which), "r"(threads) : "memory");
}

__device__ __forceinline__ void await(int which, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(which), "r"(threads) : "memory");
}

} // namespace cluster
} // namespace bl
#endif
