/* The scales of the rows for GETRFSP on the chip.
 *
 * Called by lu_on_chip of mid_lu.cuh, by all threads of a block.
 */
#ifndef BL_MID_SCALED_CUH
#define BL_MID_SCALED_CUH

#include "absent.cuh"
#include "mid_scaled_rest.cuh"
#include "mid_shared.cuh"

namespace bl
{

/* One over the largest element of each row, as row_scales() of plain.cuh. The block. */
template <class T, class Shared>
__device__ __noinline__ void find_scales(Shared &s, const T *A, int64_t lda, int m, int n)
{
    using R = Real<T>;
    const int thread = threadIdx.x, lane = thread % 32;
    __syncthreads(); /* racecheck takes a signal's first write for one to what it precedes
                      */
    for (int i = thread; i < Shared::ROWS; i += blockDim.x)
        s.scale[i] = sfmin<R>();
    __syncthreads();
    constexpr int ROWS = Shared::ROWS / 32;
    R most[ROWS];
    BL_UNROLL
    for (int i = 0; i < ROWS; i++)
        most[i] = sfmin<R>();
#pragma unroll 4
    for (int j = thread / 32; j < n; j += blockDim.x / 32)
        BL_UNROLL
    for (int i = 0; i < ROWS; i++) {
        const R x = abs1(A[min(i * 32 + lane, m - 1) + j * lda]);
        most[i] = x > most[i] ? x : most[i]; /* never a NaN */
    }
    BL_UNROLL
    for (int i = 0; i < ROWS; i++) /* bits have the order of the numbers, if positive */
        atomicMax((Bits<R> *)&s.scale[i * 32 + lane], bits_of(most[i]));
    __syncthreads();
    for (int i = thread; i < Shared::ROWS; i += blockDim.x)
        s.scale[i] = div(R(1), s.scale[i]);
    __syncthreads();
}

} // namespace bl
#endif
