/* POTRI by the kernels of GETRI: from the Cholesky factor, L of A = L L^H, the factors of
 * an LU factorisation without interchanges, A = (L D^-1) (D L^H) with D the diagonal of
 * L, and back from the inverse its triangle.
 *
 * Included by mid_solve.cuh, whose file instantiates it; launched by mid.cu. What comes
 * out with NaN or Inf, or has a D that can not be squared, is formed again as netlib
 * does. The residual is that of netlib's 'U'; of its 'L', which has a smaller one, it is
 * up to several times as large.
 */
#ifndef BL_MID_DEFINITE_CUH
#define BL_MID_DEFINITE_CUH

#include "cholesky.cuh"
#include "mid_inverse.cuh"

namespace bl
{

constexpr int EDGE_OF_TRIANGLE = 32;

/* What a block works on: rows and columns first .. first + 31 of the factor of a slot. */
template <class T>
struct Definite {
    struct bl_item item;
    T *a;
    int n, first;
    int64_t slot;

    __device__ __forceinline__ explicit Definite(const MidDefinite &g)
        : slot(blockIdx.x / g.strips)
    {
        const int64_t number = g.first + slot;
        item = {number, g.solve.n, g.solve.n, g.a.ld, 0};
        if (g.items)
            item = g.items[number];
        n = int(item.n);
        first = int(blockIdx.x % g.strips) * EDGE_OF_TRIANGLE;
        a = (T *)operand_at(g.a, item.index, sizeof(T));
    }
};

template <class R>
__device__ __forceinline__ R by_real(R x, R d)
{
    return mul(x, d);
}
template <class R>
__device__ __forceinline__ Complex<R> by_real(Complex<R> x, R d)
{
    return {mul(x.re, d), mul(x.im, d)};
}
template <class R>
__device__ __forceinline__ R through_real(R x, R d)
{
    return div(x, d);
}
template <class R>
__device__ __forceinline__ Complex<R> through_real(Complex<R> x, R d)
{
    return {div(x.re, d), div(x.im, d)};
}

/* INFO of a slot: the first zero of the diagonal. One that is not real, or whose squares
 * are out of range, is no Cholesky factor's of a matrix, but has an inverse. The block.
 */
template <class T>
__device__ __forceinline__ void definite_info(const MidDefinite &g, const Definite<T> &w)
{
    __shared__ int first_zero, is_strange;
    if (threadIdx.x == 0) {
        first_zero = w.n;
        is_strange = 0;
    }
    __syncthreads();
    for (int k = threadIdx.x; k < w.n; k += blockDim.x) {
        const T d = w.a[k + k * w.item.lda];
        if (is_zero(d))
            atomicMin(&first_zero, k);
        const Real<T> square = mul(real(d), real(d));
        if (!is_zero(sub(d, from_real<T>(real(d)))) || !is_finite(square) ||
            square < sfmin<Real<T>>())
            is_strange = 1;
        ((int32_t *)g.solve.ipiv.p)[w.slot * g.solve.ipiv.stride + k] = k + 1;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        ((int32_t *)g.solve.lu_info.p)[w.slot] = first_zero < w.n ? first_zero + 1 : 0;
        g.solve.strange[w.slot] = is_strange;
        if (g.own_items)
            g.own_items[w.slot] = {w.slot, w.n, w.n, g.solve.lu.ld, g.solve.lu.ld};
    }
}

/* Blocks: a slot's strips of 32 rows and columns. Of the triangle in memory an element
 * and its mirror image are written, whose smaller index is in the strip. */
template <class T>
__global__ void __launch_bounds__(256) definite_as_lu(const MidDefinite g)
{
    constexpr int EDGE = EDGE_OF_TRIANGLE;
    __shared__ T tile[EDGE][EDGE + 1];
    __shared__ Real<T> d[EDGE];
    const Definite<T> w(g);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n = w.n;
    const bool upper = g.uplo == 'U';
    T *const to = (T *)g.solve.lu.p + w.slot * g.solve.lu.stride;
    const int64_t ld = g.solve.lu.ld, lda = w.item.lda;
    if (w.first == 0)
        definite_info(g, w);
    if (threadIdx.x < EDGE && w.first + lane < n)
        d[lane] = real(w.a[(w.first + lane) * (lda + 1)]);
    for (int other = w.first; other < n; other += EDGE) {
        const int row = (upper ? w.first : other) + lane,
                  column = upper ? other : w.first; /* of memory */
        __syncthreads();
        for (int j = warp; j < EDGE; j += 8) {
            const int c = column + j, k = upper ? lane : j;
            if (row >= n || c >= n || (upper ? row > c : row < c))
                continue;
            const T x = w.a[row + c * lda];
            tile[j][lane] = x;
            if (row == c)
                to[row + c * ld] = from_real<T>(mul(d[k], d[k]));
            else
                to[row + c * ld] = upper ? by_real(x, d[k]) : through_real(x, d[k]);
        }
        __syncthreads();
        for (int j = warp; j < EDGE; j += 8) { /* row j of the tile is a column there */
            const int r = (upper ? w.first : other) + j, c = column + lane,
                      k = upper ? j : lane;
            if (r >= n || c >= n || (upper ? r >= c : r <= c))
                continue;
            const T x = conj(tile[lane][j]);
            to[c + r * ld] = upper ? through_real(x, d[k]) : by_real(x, d[k]);
        }
    }
}

/* Blocks as before: the triangle's columns of the strip, and INFO. */
template <class T>
__global__ void __launch_bounds__(256) definite_triangle(const MidDefinite g)
{
    const Definite<T> w(g);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n = w.n;
    const int info = ((const int32_t *)g.solve.lu_info.p)[w.slot];
    const T *const from = (const T *)g.solve.b.p + w.slot * g.solve.b.stride;
    if (w.first == 0 && threadIdx.x == 0)
        put_integer(operand_at(g.info, w.item.index, g.solve.int_size), g.solve.int_size,
                    info);
    if (info || g.solve.strange[w.slot])
        return;
    for (int j = w.first + warp; j < least(n, w.first + EDGE_OF_TRIANGLE); j += 8) {
        const int begin = g.uplo == 'U' ? 0 : j, end = g.uplo == 'U' ? j + 1 : n;
        for (int i = begin + lane; i < end; i += 32) {
            const T x = from[i + j * g.solve.b.ld];
            w.a[i + j * w.item.lda] = i == j ? from_real<T>(real(x)) : x;
        }
    }
}

/* A block: the strange ones among every (number of blocks)-th slot. */
template <class T>
__global__ void __launch_bounds__(256) definite_again(const MidDefinite g)
{
    Team team = block_team();
    for (int64_t slot = blockIdx.x; slot < g.slots; slot += gridDim.x) {
        if (!g.solve.strange[slot] || ((const int32_t *)g.solve.lu_info.p)[slot])
            continue;
        struct bl_item item = {g.first + slot, g.solve.n, g.solve.n, g.a.ld, 0};
        if (g.items)
            item = g.items[g.first + slot];
        Problem<T> p = {};
        p.n = item.n;
        p.uplo = g.uplo;
        p.a = (T *)operand_at(g.a, item.index, sizeof(T));
        p.lda = item.lda;
        p.work = (T *)g.work + blockIdx.x * int64_t(g.solve.n) * NB;
        potri(team, p);
        __syncthreads();
    }
}

} // namespace bl
#endif
