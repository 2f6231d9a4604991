/* A matrix up to 32 x 32 again, in memory, the way netlib's recursion does it.
 *
 * Called by a whole warp for what the fast way in tiny_*.cuh can not have: NaN,
 * infinities and pivots too small for their reciprocal. Lane i owns row i of the column
 * at hand. Which products with a zero factor netlib leaves out decides what becomes of
 * NaN and infinities; the comments say where. Short rather than fast.
 */
#ifndef BL_TINY_AGAIN_CUH
#define BL_TINY_AGAIN_CUH

#include "tiny.cuh"

namespace bl
{

/* IxAMAX over rows k to m - 1 of the column x: first largest, a NaN only where it is
 * first. */
template <class V>
__device__ __forceinline__ int first_largest(V value, int k, int m)
{
    const int row = threadIdx.x % 32;
    Best best = {row >= k && row < m && value == value ? double(value) : -1.0, row};
    best = Team::best_of_warp(best);
    V top = from_lane(value, k);
    return top == top && best.value >= 0 ? int(best.index) : k;
}

/* Rows k and p of the column x, and of all columns before j in memory, change places. */
template <class T>
__device__ __forceinline__ void exchange(int k, int p, T &x, T *a, int64_t lda, int j)
{
    const int lane = threadIdx.x % 32;
    if (p == k)
        return;
    T y = from_lane(x, lane == k ? p : k);
    if (lane == k || lane == p)
        x = y;
    if (lane < j) { /* here a lane owns a column */
        T z = a[k + lane * lda];
        a[k + lane * lda] = a[p + lane * lda];
        a[p + lane * lda] = z;
    }
    __syncwarp();
}

/* The column below its pivot, which is in row k: times the reciprocal, or divided. */
template <class T>
__device__ __forceinline__ void scale_column(int k, int m, T &x)
{
    const int row = threadIdx.x % 32;
    const T pivot = from_lane(x, k), factor = reciprocal(pivot);
    if (row <= k || row >= m || is_zero(pivot))
        return;
    if (!reaches_sfmin(pivot))
        x = div(x, pivot);
    else if (!is_one(factor))
        x = mul(factor, x);
}

/* xGETRF2. A column takes its products when its turn comes; they are the same, in the
 * same order, as the halves of the recursion give it. */
template <class T>
BL_CALL int lu_again(int m, int n, T *a, int64_t lda, const Pivots &pivots)
{
    const int row = threadIdx.x % 32;
    int info = 0;
    for (int j = 0; j < n; j++) {
        T x = row < m ? a[row + j * lda] : from_real<T>(0);
        for (int k = 0; k < min(j, m); k++)
            exchange(k, int(pivots.get(k)), x, a, lda, 0);
        /* From the whole matrix to column j: where j is in the right half of columns
         * first .. first + columns - 1, the left half is applied to it, by xTRSM, which
         * skips, to its own rows, and by xGEMM, which does not, to those below. */
        int first = 0, columns = n;
        while (m - first > 1 && columns > 1) {
            int left = min(m - first, columns) / 2, split = first + left;
            if (j < split) {
                columns = left;
                continue;
            }
            for (int k = first; k < split; k++) {
                T u = from_lane(x, k);
                if (row <= k || row >= m)
                    continue;
                if (row >= split)
                    x = add(x, mul(mul(negative(one<T>()), u), a[row + k * lda]));
                else if (!is_zero(u))
                    x = sub(x, mul(u, a[row + k * lda]));
            }
            first = split;
            columns -= left;
        }
        if (j < m) {
            int p = first_largest(abs1(x), j, m);
            exchange(j, p, x, a, lda, j);
            if (row == 0)
                pivots.set(j, p);
            if (is_zero(from_lane(x, j)) && info == 0)
                info = j + 1;
            scale_column(j, m, x);
        }
        if (row < m)
            a[row + j * lda] = x;
        __syncwarp();
    }
    return info;
}

/* xGETRS('N') for one right-hand side. */
template <class T>
BL_CALL void solve_again(int n, const T *a, int64_t lda, const Pivots &pivots, T *b)
{
    const int row = threadIdx.x % 32;
    T x = row < n ? b[row] : from_real<T>(0);
    for (int k = 0; k < n; k++)
        exchange(k, int(pivots.get(k)), x, b, 0, 0);
    for (int k = 0; k < n; k++) {
        T y = from_lane(x, k);
        if (row > k && row < n && !is_zero(y))
            x = sub(x, mul(y, a[row + k * lda]));
    }
    for (int k = n - 1; k >= 0; k--) {
        T y = from_lane(x, k);
        if (is_zero(y))
            continue;
        y = div(y, a[k + k * lda]);
        if (row == k)
            x = y;
        if (row < k)
            x = sub(x, mul(y, a[row + k * lda]));
    }
    if (row < n)
        b[row] = x;
    __syncwarp();
}

/* xGETRI, not blocked: the inverse of U, then of A, then the interchanges of columns. */
template <class T>
BL_CALL int invert_again(int n, T *a, int64_t lda, const Pivots &pivots)
{
    const int row = threadIdx.x % 32;
    const bool inside = row < n;
    unsigned zeros = __ballot_sync(WARP, inside && is_zero(a[row + row * lda]));
    if (zeros)
        return __ffs(zeros);
    for (int j = 0; j < n; j++) { /* xTRTI2: xTRMV, which skips, and xSCAL */
        T inverse = div(one<T>(), a[j + j * lda]), factor = negative(inverse);
        T x = row < j ? a[row + j * lda] : from_real<T>(0);
        for (int k = 0; k < j; k++) {
            T y = from_lane(x, k);
            if (row <= k && !is_zero(y))
                x = row == k ? mul(x, a[k + k * lda]) : add(x, mul(y, a[row + k * lda]));
        }
        if (!is_one(factor))
            x = mul(factor, x);
        __syncwarp();
        if (row <= j)
            a[row + j * lda] = row == j ? inverse : x;
        __syncwarp();
    }
    for (int j = n - 1; j >= 0; j--) { /* xGEMV, which does not skip */
        T x = inside ? a[row + j * lda] : from_real<T>(0);
        T l = row > j ? x : from_real<T>(0);
        x = row > j ? from_real<T>(0) : x;
        for (int k = j + 1; k < n; k++) {
            T y = mul(negative(one<T>()), from_lane(l, k));
            if (inside)
                x = add(x, mul(y, a[row + k * lda]));
        }
        if (inside)
            a[row + j * lda] = x;
    }
    for (int j = n - 2; j >= 0 && inside; j--) {
        int p = int(pivots.get(j));
        T x = a[row + j * lda];
        a[row + j * lda] = a[row + p * lda];
        a[row + p * lda] = x;
    }
    __syncwarp();
    return 0;
}

/* What GETRFSP and GETRFNP mean: the loop, with the division that a small pivot needs.
 * Products with a zero are taken. `pivots.p` is NULL for GETRFNP. */
template <class T>
BL_CALL int lu_by_loop(int m, int n, T *a, int64_t lda, const Pivots &pivots)
{
    const int row = threadIdx.x % 32;
    const bool scaled = pivots.p != nullptr;
    Real<T> largest = sfmin<Real<T>>();
    int info = 0;
    for (int j = 0; j < n && row < m; j++)
        if (abs1(a[row + j * lda]) > largest)
            largest = abs1(a[row + j * lda]);
    Real<T> scale = div(Real<T>(1), largest);
    for (int j = 0; j < n; j++) {
        T x = row < m ? a[row + j * lda] : from_real<T>(0);
        /* All of them first: the columns before have their rows where they are now. */
        for (int k = 0; k < min(j, m) && scaled; k++)
            exchange(k, int(pivots.get(k)), x, a, lda, 0);
        for (int k = 0; k < min(j, m); k++) {
            T u = from_lane(x, k);
            if (row > k && row < m)
                x = sub(x, mul(a[row + k * lda], u));
        }
        if (j < m) {
            if (scaled) {
                int p = first_largest(mul(abs1(x), scale), j, m);
                exchange(j, p, x, a, lda, j);
                exchange(j, p, scale, &scale, 0, 0);
                if (row == 0)
                    pivots.set(j, p);
            }
            if (is_zero(from_lane(x, j)) && info == 0)
                info = j + 1;
            scale_column(j, m, x);
        }
        if (row < m)
            a[row + j * lda] = x;
        __syncwarp();
    }
    return info;
}

} // namespace bl
#endif
