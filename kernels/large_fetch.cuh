/* Copies from global to shared memory that arrive later, where the card has them, and
 * kernels that begin early.
 *
 * Used by the kernels of large_*.cuh. Copies belong to the group that the next
 * fetched_so_far() closes; a thread waits for its own groups, so that a barrier must
 * follow before others' elements are read. On cards before sm_80, and where threads are
 * fibers without a model of such copies, a copy is done at once.
 */
#ifndef BL_LARGE_FETCH_CUH
#define BL_LARGE_FETCH_CUH

#include "scalar.cuh"

namespace bl
{

#if defined __CUDACC__ || defined BL_HOST_CUDA

/* A kernel that is `chained` begins while the one before it in its stream still runs, and
 * waits here before it touches memory. All kernels of a chain must wait, so that a kernel
 * follows what was done before the one before. */
__device__ __forceinline__ void await_previous()
{
#    if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#    endif
}

/* The next kernel of the chain may begin, once all blocks have come here. */
__device__ __forceinline__ void let_next_begin()
{
#    if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#    endif
}

/* What fetch() does, by parts of so many bytes. */
template <int BYTES, class T>
__device__ __forceinline__ void fetch_parts(T *to, const T *from, bool there)
{
#    if __CUDA_ARCH__ >= 800
    const unsigned at = unsigned(__cvta_generic_to_shared(to));
    const int bytes = there ? BYTES : 0;
    BL_UNROLL
    for (int part = 0; part < int(sizeof(T)); part += BYTES)
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at + part),
                     "l"((const char *)from + part), "n"(BYTES), "r"(bytes)
                     : "memory");
#    endif
}

/* `there` <= BYTES bytes, from and to addresses that are multiples of BYTES, and zeros
 * behind them; only what is read by matrix units of sm_90 comes so. */
template <int BYTES>
__device__ __forceinline__ void fetch_bytes(char *to, const char *from, int there)
{
#    if __CUDA_ARCH__ >= 900
    const unsigned at = unsigned(__cvta_generic_to_shared(to));
    if constexpr (BYTES == 16) /* past the first-level cache: nothing is read twice */
        asm volatile("cp.async.cg.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from),
                     "n"(BYTES), "r"(there)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from),
                     "n"(BYTES), "r"(there)
                     : "memory");
#    elif defined BL_HOST_CUDA
    host_cuda::begin_copy(to, from, BYTES, there);
#    else
    (void)to, (void)from, (void)there;
#    endif
}

/* One element from global to shared memory, or zero; arrives later where the card can.
 * Complex numbers are aligned as their parts are. */
template <class T>
__device__ __forceinline__ void fetch(T *to, const T *from, bool there)
{
#    if __CUDA_ARCH__ >= 800
    constexpr int PART = int(sizeof(Real<T>));
    if (Traits<T>::complex && PART == 4 && size_t(from) % 8)
        fetch_parts<PART>(to, from, there);
    else
        fetch_parts<sizeof(T) == 16 ? 8 : int(sizeof(T))>(to, from, there);
#    elif defined BL_HOST_CUDA /* test/host_copies.h */
    const int part =
        size_t(from) % 8 ? int(sizeof(Real<T>)) : (sizeof(T) == 16 ? 8 : int(sizeof(T)));
    for (int at = 0; at < int(sizeof(T)); at += part)
        host_cuda::begin_copy((char *)to + at, (const char *)from + at, part,
                              there ? part : 0);
#    else
    *to = there ? *from : from_real<T>(0);
#    endif
}

__device__ __forceinline__ void fetched_so_far()
{
#    if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#    elif defined BL_HOST_CUDA
    host_cuda::end_copies();
#    endif
}

/* All but the last `LATER` groups have arrived. */
template <int LATER>
__device__ __forceinline__ void await_fetched()
{
#    if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
#    elif defined BL_HOST_CUDA
    host_cuda::await_copies(LATER);
#    endif
}

#else

template <class T>
void fetch(T *to, const T *from, bool there)
{
    *to = there ? *from : from_real<T>(0);
}
inline void fetched_so_far()
{
}
template <int LATER>
void await_fetched()
{
}

#endif

} // namespace bl
#endif
