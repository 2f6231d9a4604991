/* The two steps of a large Cholesky factorisation beside the update: a block on the
 * diagonal, and what lies below it or, for 'U', to its right.
 *
 * Instantiated by large_cholesky.cu. Both triangles are the same numbers v(i, k), i >= k:
 * l(i, k), or u(k, i), of which v(j, k)' v(i, k) is subtracted from v(i, j). They differ
 * in the order: 'L' subtracts one product after another; 'U' adds up the products of all
 * earlier blocks of 64 first, which the caller has done in `sums` (negative), and within
 * the block those of the left halves of netlib's recursion. Only the part of the triangle
 * itself is read and written.
 */
#ifndef BL_LARGE_CHOLESKY_CUH
#define BL_LARGE_CHOLESKY_CUH

#include "large_fetch.cuh"
#include "problem.cuh"

namespace bl
{

template <class T>
__device__ __forceinline__ const T &element(bool upper, const T *a, int64_t lda,
                                            int64_t i, int64_t k)
{
    return upper ? a[k + i * lda] : a[i + k * lda];
}

/* v(j, k)' v(i, k) */
template <class T>
__device__ __forceinline__ T square_product(T j, T i)
{
    return mul(conj(j), i);
}

/* Of xPOTRF2's recursion on n columns: the end of the smallest node that holds both k and
 * j > k. */
__device__ __forceinline__ int end_of_node(int n, int k, int j)
{
    int first = 0, columns = n;
    for (;;) {
        const int left = columns / 2, split = first + left;
        if (j < split) {
            columns = left;
        } else if (k >= split) {
            first = split;
            columns -= left;
        } else {
            return first + columns;
        }
    }
}

/* x divided by conj(length), a positive real number, as netlib divides by complex ones.
 */
template <class R>
__device__ __forceinline__ R over(R x, R length)
{
    return div(x, length);
}

template <class R>
__device__ __forceinline__ Complex<R> over(Complex<R> x, R length)
{
    const R ratio = R(-0.0);
    return {div(add(x.re, mul(x.im, ratio)), length),
            div(sub(x.im, mul(x.re, ratio)), length)};
}

constexpr int DIAGONAL_THREADS = 256;

/* Barriers of the block of factor_diagonal: two that alternate between columns, and one
 * for each group of threads alone. */
constexpr int GROUP_BARRIER = 3;

__device__ __forceinline__ void arrive_at(int barrier)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(DIAGONAL_THREADS) : "memory");
}

__device__ __forceinline__ void meet_at(int barrier, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/* One block, four groups of 64 threads. Thread t of a group owns row t of v and every
 * fourth of its columns, the group's. Finishing a column, with its root and division, is
 * one chain through all columns, so a group finishes its next column before it updates
 * the others, and the other groups update while it does. Shared memory: the last finished
 * columns; the diagonal, where column k - 1 is still to be taken into account when it is
 * the turn of column k; where nodes end. */
template <class T, bool UPPER>
__global__ void __launch_bounds__(DIAGONAL_THREADS)
    factor_diagonal(const LargeDiagonal<T> d)
{
    constexpr int GROUPS = DIAGONAL_THREADS / NB, HELD = NB / GROUPS, KEPT = 4;
    struct Diagonal {
        Real<T> value, sum;
    };
    __shared__ T finished[KEPT][NB];
    __shared__ Diagonal diagonal[NB];
    __shared__ unsigned char node_end[UPPER ? NB : 1][NB];
    __shared__ int bad; /* first column whose pivot is not positive */
    const int i = threadIdx.x % NB, group = threadIdx.x / NB, n = d.n;
    const T zero = from_real<T>(0);

    T x[HELD], sum[UPPER ? HELD : 1];
    BL_UNROLL
    for (int q = 0; q < HELD; q++) {
        const int j = GROUPS * q + group;
        const bool mine = j <= i && i < n;
        x[q] = mine ? element(UPPER, d.a, d.lda, i, j) : zero;
        if constexpr (UPPER) {
            sum[q] = zero;
            if (d.sums && mine)
                x[q] = add(x[q], element(UPPER, d.sums, d.ld_sums, i, j));
        }
        if (mine && i == j)
            diagonal[i] = {real(x[q]), 0};
    }
    if constexpr (UPPER)
        for (int e = threadIdx.x; e < NB * NB; e += DIAGONAL_THREADS) {
            const int k = e / NB, j = e % NB;
            if (k < j && j < n) {
                const int size = 64 >> (__clz(k ^ j) - 26);
                node_end[k][j] = (unsigned char)(n == NB ? (k / size + 1) * size
                                                         : end_of_node(n, k, j));
            }
        }
    if (threadIdx.x == 0)
        bad = n;
    __syncthreads();

    /* Element (i, j) less the product from column k. */
    auto take = [&](T &y, T &partial, int j, int k) {
        const T *column = finished[k % KEPT];
        const T product = square_product(column[j], column[i]);
        if constexpr (UPPER) {
            const int end = node_end[k][j];
            if (i >= end) {
                y = sub(y, product);
            } else {
                partial = add(partial, product);
                if (node_end[k][k + 1] == end) {
                    y = sub(y, partial);
                    partial = zero;
                }
            }
        } else {
            y = sub(y, product);
        }
    };
    auto finish = [&](T &y, int k) {
        Real<T> pivot = diagonal[k].value;
        if (k > 0) {
            const T last = finished[(k - 1) % KEPT][k];
            const Real<T> square = real(square_product(last, last));
            pivot = sub(pivot, UPPER ? add(diagonal[k].sum, square) : square);
        }
        const Real<T> length = root(pivot);
        if (i == k) {
            y = from_real<T>(length);
            if (!(pivot > 0))
                atomicMin(&bad, k);
        } else if constexpr (UPPER) {
            y = over(y, length);
        } else {
            y = mul(from_real<T>(div(Real<T>(1), length)), y);
        }
        finished[k % KEPT][i] = y;
        arrive_at(1 + k % 2);
    };

    if (group == 0)
        finish(x[0], 0);
    BL_UNROLL
    for (int p = 0; p < HELD; p++) {
        for (int g = 0; g < GROUPS; g++) {
            const int k = GROUPS * p + g;
            if (k >= n)
                break;
            if (group == g)
                meet_at(GROUP_BARRIER + g, NB);
            else
                meet_at(1 + k % 2, DIAGONAL_THREADS);
            if (k + 1 < n && group == (g + 1) % GROUPS) {
                constexpr int LAST = HELD - 1;
                const int after = p < LAST ? p + 1 : LAST; /* q of column k + 1 */
                if (g + 1 < GROUPS) {
                    take(x[p], sum[UPPER ? p : 0], k + 1, k);
                    finish(x[p], k + 1);
                } else {
                    take(x[after], sum[UPPER ? after : 0], k + 1, k);
                    finish(x[after], k + 1);
                }
            }
            BL_UNROLL
            for (int q = p; q < HELD; q++) {
                const int j = GROUPS * q + group;
                if (j > k + 1 && j <= i) {
                    take(x[q], sum[UPPER ? q : 0], j, k);
                    if (i == j)
                        diagonal[i] = {real(x[q]), UPPER ? real(sum[UPPER ? q : 0]) : 0};
                }
            }
        }
    }
    BL_UNROLL
    for (int q = 0; q < HELD; q++) {
        const int j = GROUPS * q + group;
        if (j <= i && i < n)
            const_cast<T &>(element(UPPER, d.a, d.lda, i, j)) = x[q];
    }
    __syncthreads();
    if (threadIdx.x == 0 && bad < n && *d.info == 0)
        *d.info = d.base + bad + 1;
}

constexpr int BESIDE_LANES = 8; /* that share a row of v */
constexpr int BESIDE_ROWS = 16; /* a block */
constexpr int BESIDE_THREADS = BESIDE_LANES * BESIDE_ROWS;

/* The rows i of v below the diagonal block of n columns, numbered from 0. Eight lanes own
 * a row. Shared memory: the block, column after column, and what scales. */
template <class T, bool UPPER>
__global__ void __launch_bounds__(BESIDE_THREADS) solve_beside(const LargeDiagonal<T> d)
{
    constexpr int HELD = NB / BESIDE_LANES;
    extern __shared__ __align__(16) char block_memory[];
    __shared__ Real<T> scale[NB]; /* for a finished element: its factor, or divisor */
    T *block = (T *)block_memory;
    const int n = d.n, thread = threadIdx.x;
    const int lane = thread % BESIDE_LANES;
    const int64_t i = int64_t(blockIdx.x) * BESIDE_ROWS + thread / BESIDE_LANES;
    const bool inside = i < d.beside;

    for (int e = thread; e < NB * NB; e += BESIDE_THREADS) {
        const int j = UPPER ? e / NB : e % NB, k = UPPER ? e % NB : e / NB;
        const bool there = j >= k && j < n;
        fetch(block + k * (NB + 1) + j, there ? &element(UPPER, d.a, d.lda, j, k) : d.a,
              there);
    }
    fetched_so_far();
    T x[HELD];
    BL_UNROLL
    for (int r = 0; r < HELD; r++) {
        const int k = lane + BESIDE_LANES * r;
        x[r] = from_real<T>(0);
        if (inside && k < n) {
            x[r] = element(UPPER, d.a, d.lda, n + i, k);
            if (UPPER && d.sums)
                x[r] = add(x[r], element(UPPER, d.sums, d.ld_sums, n + i, k));
        }
    }
    await_fetched<0>();
    __syncthreads();
    if (thread < n) {
        const Real<T> length = real(block[thread * (NB + 1) + thread]);
        scale[thread] = UPPER ? length : div(Real<T>(1), length);
    }
    __syncthreads();
    BL_UNROLL
    for (int h = 0; h < HELD; h++) {
        if (h * BESIDE_LANES >= n)
            break;
        for (int t = 0; t < BESIDE_LANES; t++) {
            const int k = h * BESIDE_LANES + t;
            if (k >= n)
                break;
            const T *column = block + k * (NB + 1);
            T y = from_lane(x[h], thread % 32 / BESIDE_LANES * BESIDE_LANES + t);
            y = UPPER ? over(y, scale[k]) : mul(from_real<T>(scale[k]), y);
            if (lane == t)
                x[h] = y;
            BL_UNROLL
            for (int r = h; r < HELD; r++) {
                const int j = lane + BESIDE_LANES * r;
                if (r > h || lane > t)
                    x[r] = sub(x[r], square_product(column[j], y));
            }
        }
    }
    BL_UNROLL
    for (int r = 0; r < HELD; r++) {
        const int k = lane + BESIDE_LANES * r;
        if (inside && k < n)
            const_cast<T &>(element(UPPER, d.a, d.lda, n + i, k)) = x[r];
    }
}

} // namespace bl
#endif
