/* What a block does beside factoring a matrix on the chip: solve for a column of
 * right-hand sides, forwards along with the factorisation and then backwards.
 *
 * Called by lu_on_chip of mid_lu.cuh. GESV gets netlib's operations in netlib's order: an
 * element has every product subtracted one by one, none whose factor is a zero of B.
 */
#ifndef BL_MID_CHIP_CUH
#define BL_MID_CHIP_CUH

#include "tiny.cuh"
#include "mid_rest.cuh"
#include "mid_shared.cuh"

namespace bl
{

/* L y = P b while L is being made: y(k) to `out` in the lane that has row k's pivot, by
 * rows as in a panel. column[k] tells that pivot[k] and column k of `packed_l` are there,
 * in which row r has its place[k / C][r]. False: the factorisation ended before step n. A
 * warp. */
template <class T, int R, int C, class Signal>
__device__ __noinline__ bool ride_along(const Signal *column, const short *pivots,
                                        const unsigned char (*places)[32 * R],
                                        const T *packed_l, int n, const T *b, T (&out)[R])
{
    const int lane = threadIdx.x % 32;
    T x[R];
    bool active[R];
    BL_UNROLL
    for (int i = 0; i < R; i++) {
        active[i] = i * 32 + lane < n;
        x[i] = b[active[i] ? i * 32 + lane : 0];
    }
#pragma unroll 1
    for (int q = 0; q * C < n; q++) {
        const int height = n - q * C;
        const T *const l = packed_l + packed<C>(n, q);
        int place[R];
#pragma unroll 1
        for (int j = 0; j < C && q * C + j < n; j++) {
            column[q * C + j].wait();
            const int pivot = pivots[q * C + j];
            if (pivot < 0)
                return false;
            if (j == 0)
                BL_UNROLL
            for (int i = 0; i < R; i++)
                place[i] = places[q][i * 32 + lane];
            T y = x[0];
            BL_UNROLL
            for (int i = 1; i < R; i++)
                y = i == pivot / 32 ? x[i] : y;
            y = from_lane(y, pivot % 32);
            const bool zero = is_zero(y);
            BL_UNROLL
            for (int i = 0; i < R; i++) {
                const T less = sub(x[i], mul(y, load(l + j * height + place[i], true)));
                active[i] = active[i] && pivot != i * 32 + lane;
                x[i] = active[i] && !zero ? less : x[i];
            }
        }
    }
    BL_UNROLL
    for (int i = 0; i < R; i++)
        out[i] = x[i];
    return true;
}

/* U x = y, where ride_along() left y and row r is at position step[r]; x to b. A warp. */
template <class T, int R>
__device__ __noinline__ void solve_upper(const short *step, const T *A, int64_t lda,
                                         int n, const T (&y_by_rows)[R], T *b)
{
    constexpr int EACH = sizeof(T) == 16 ? 2 : 4; /* columns of U that are fetched */
    const int lane = threadIdx.x % 32;
    T x[R];
    BL_UNROLL
    for (int i = 0; i < R; i++)
        if (i * 32 + lane < n)
            b[step[i * 32 + lane]] = y_by_rows[i];
    __syncwarp();
    BL_UNROLL
    for (int i = 0; i < R; i++)
        x[i] = b[min(i * 32 + lane, n - 1)];
    __syncwarp();
    BL_UNROLL
    for (int own = R - 1; own >= 0; own--) {
        if (own * 32 >= n)
            continue;
        const int last = min(n - own * 32, 32) - 1, mine = own * 32 + min(lane, last);
        const Divisor<T> divisor(A[mine + mine * lda]);
        T u[EACH][R], next[EACH][R];
        auto fetch = [&](int k) {
            BL_UNROLL
            for (int e = 0; e < EACH; e++)
                BL_UNROLL
            for (int i = 0; i <= own; i++)
                next[e][i] = A[min(i * 32 + lane, n - 1) + max(k - e, 0) * lda];
        };
        fetch(own * 32 + last);
#pragma unroll 1
        for (int from = last; from >= 0; from -= EACH) {
            BL_UNROLL
            for (int e = 0; e < EACH; e++)
                BL_UNROLL
            for (int i = 0; i <= own; i++)
                u[e][i] = next[e][i];
            fetch(own * 32 + from - EACH);
            BL_UNROLL
            for (int e = 0; e < EACH; e++) {
                const int k = from - e;
                if (k < 0)
                    continue;
                const T q = divisor(x[own]);
                /* Netlib asks before it divides. */
                const bool zero = __ballot_sync(~0u, is_zero(x[own])) >> k & 1;
                x[own] = lane == k && !zero ? q : x[own];
                const T y = from_lane(x[own], k);
                BL_UNROLL
                for (int i = 0; i <= own; i++) {
                    const T less = sub(x[i], mul(y, u[e][i]));
                    x[i] = (i < own || lane < k) && !zero ? less : x[i];
                }
            }
        }
    }
    BL_UNROLL
    for (int i = 0; i < R; i++)
        if (i * 32 + lane < n)
            b[i * 32 + lane] = x[i];
}

} // namespace bl
#endif
