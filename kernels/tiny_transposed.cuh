/* GETRS('T') and ('C') of order n <= 32.
 *
 * Instantiated by tiny_transposed.cu. netlib's solution with L' is a chain: row i takes
 * the products with rows i + 1, i + 2, ... in this order, although i + 1 is the last to
 * be known. So a lane owns a right-hand side and does what netlib does, and a warp shares
 * nothing but its code. The factors are read where they lie, a column of them being what
 * a step needs; the right-hand sides are in shared memory.
 */
#ifndef BL_TINY_TRANSPOSED_CUH
#define BL_TINY_TRANSPOSED_CUH

#include "tiny.cuh"

namespace bl
{

/* What xTRSM subtracts from x(i): the products of column i with rows from .. to - 1. */
template <bool CONJUGATE, class T, int N>
__device__ __forceinline__ T less_column(const T *column, const T (&x)[N][32], int from,
                                         int to, T y)
{
#pragma unroll 4
    for (int k = from; k < to; k++) {
        const T a = CONJUGATE ? conj(column[k]) : column[k];
        y = sub(y, mul(a, x[k][threadIdx.x]));
    }
    return y;
}

/* Of order n <= N, op(A) = A' or, CONJUGATE, A^H. A block is a warp. */
template <bool CONJUGATE, class T, int N>
__global__ void __launch_bounds__(32)
    tiny_getrs_transposed(const __grid_constant__ TinyArguments g)
{
    __shared__ T x[N][32];
    const int lane = threadIdx.x;
    const int64_t side = int64_t(blockIdx.x) * 32 + lane;
    const int64_t column = side % g.nrhs;
    const TinyProblem<T> p(g, side / g.nrhs);
    if (!p.there)
        return;
    const int n = p.n;
    T *const b = (T *)tiny_operand(g.b, p.item, sizeof(T)) + column * g.b.ld;
    const Pivots pivots = tiny_pivots(g, p.item);
    for (int i = 0; i < n; i++)
        x[i][lane] = times_one(b[i]);
    for (int i = 0; i < n; i++) {
        const T *const a = p.a + i * p.lda;
        const T y = less_column<CONJUGATE>(a, x, 0, i, x[i][lane]);
        x[i][lane] = times_one(div(y, CONJUGATE ? conj(a[i]) : a[i]));
    }
    for (int i = n - 2; i >= 0; i--)
        x[i][lane] = less_column<CONJUGATE>(p.a + i * p.lda, x, i + 1, n, x[i][lane]);
    for (int k = n - 1; k >= 0; k--) {
        const int with = int(pivots.get(k));
        const T y = x[k][lane];
        x[k][lane] = x[with][lane];
        x[with][lane] = y;
    }
    for (int i = 0; i < n; i++)
        b[i] = x[i][lane];
    if (column == 0)
        put_integer(g.info, p.item, g.int_size, 0, 0);
}

} // namespace bl
#endif
