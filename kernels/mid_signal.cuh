/* A word that one warp of a block sets once and others wait for.
 *
 * Used by lu_on_chip of mid_lu.cuh, where a warp publishes each column as it is finished.
 * From sm_90 on it is an mbarrier, before a word with acquire and release. It can not be
 * set again without clear(), which nobody may race.
 */
#ifndef BL_MID_SIGNAL_CUH
#define BL_MID_SIGNAL_CUH

#include "mid_pivot.cuh"

namespace bl
{

class Signal
{
  public:
    __device__ __forceinline__ void clear()
    {
#if __CUDA_ARCH__ >= 900
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(address())
                     : "memory");
#else
        word = 0;
#endif
    }

    /* What the warp has written is there for those who find it set. A whole warp, once.
     * Every lane arrives, which costs no time and which racecheck understands. */
    __device__ __forceinline__ void set()
    {
#if __CUDA_ARCH__ >= 900
        asm volatile(
            "{ .reg .b64 state;\n"
            "mbarrier.arrive.release.cta.shared::cta.b64 state, [%0]; }" ::"r"(address())
            : "memory");
#else
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            asm volatile("st.release.cta.shared.u64 [%0], 1;" ::"r"(address())
                         : "memory");
#endif
    }

    /* The same answer for the whole warp. */
    __device__ __forceinline__ bool is_set() const
    {
        return __all_sync(ALL_LANES, test());
    }

    __device__ __forceinline__ void wait() const
    {
#if __CUDA_ARCH__ >= 900
        unsigned done;
        do {
            asm volatile(
                "{ .reg .pred p;\n"
                "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], 0;\n"
                "selp.u32 %0, 1, 0, p; }"
                : "=r"(done)
                : "r"(address())
                : "memory");
        } while (!done);
#else
        while (!test()) {
        }
#endif
    }

  private:
    __device__ __forceinline__ bool test() const
    {
#if __CUDA_ARCH__ >= 900
        unsigned done;
        asm volatile("{ .reg .pred p;\n"
                     "mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 p, [%1], 0;\n"
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(address())
                     : "memory");
        return done;
#else
        unsigned long long done;
        asm volatile("ld.acquire.cta.shared.u64 %0, [%1];"
                     : "=l"(done)
                     : "r"(address())
                     : "memory");
        return done;
#endif
    }

    __device__ __forceinline__ unsigned address() const
    {
        return unsigned(__cvta_generic_to_shared(this));
    }
    unsigned long long word;
};

} // namespace bl
#endif
