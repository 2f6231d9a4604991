/* What GETRFSP on the chip needs beside the factorisation: the scales of the rows, and
 * the steps that are left where a NaN or Inf has come up.
 *
 * Called by lu_on_chip of mid_lu.cuh, by all threads of a block.
 */
#ifndef BL_MID_SCALED_CUH
#define BL_MID_SCALED_CUH

#include "mid_shared.cuh"
#include "plain.cuh"

namespace bl
{

/* The bits of a number, as one word. */
template <class R>
struct Image;
template <>
struct Image<float> {
    using Type = unsigned;
};
template <>
struct Image<double> {
    using Type = unsigned long long;
};

/* One over the largest element of each row, as row_scales() of plain.cuh. The block. */
template <class T, class Shared>
__device__ __noinline__ void find_scales(Shared &s, const T *A, int64_t lda, int m, int n)
{
    using R = Real<T>;
    using Bits = typename Image<R>::Type; /* in the order of the numbers, if positive */
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
    for (int i = 0; i < ROWS; i++) {
        Bits bits;
        memcpy(&bits, &most[i], sizeof bits);
        atomicMax((Bits *)&s.scale[i * 32 + lane], bits);
    }
    __syncthreads();
    for (int i = thread; i < Shared::ROWS; i += blockDim.x)
        s.scale[i] = div(R(1), s.scale[i]);
    __syncthreads();
}

/* The rest of GETRFSP from step `done` on, where a NaN or Inf has come up; scales by
 * positions. */
template <class T>
BL_CALL int64_t plain_rest(Team &team, int m, int n, T *a, int64_t lda,
                           const Pivots &pivots, Real<T> *scale, int done, int64_t info)
{
    for (int k = done; k < m && k < n; k++) {
        T *const column = a + k + k * lda;
        if (plain_column(team, m - k, column, pivots.from(k), scale + k) && info == 0)
            info = k + 1;
        const int64_t p = pivots.from(k).get(0) + k;
        for (int j = int(team.rank()); j < n; j += int(team.size()))
            if (j != k && p != k) {
                T *const c = a + j * lda, x = c[k];
                c[k] = c[p];
                c[p] = x;
            }
        team.sync();
        for (int j = k + 1; j < n; j++)
            for (int i = k + 1 + int(team.rank()); i < m; i += int(team.size()))
                a[i + j * lda] = sub(a[i + j * lda], mul(column[i - k], a[k + j * lda]));
        team.sync();
    }
    return info;
}

} // namespace bl
#endif
