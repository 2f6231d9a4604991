/* GESV of 33 to 48 rows, and GEDET: what tiny_head.cuh leaves in registers and shared
 * memory goes on from there. Instantiated by tiny_kernels.cuh.
 */
#ifndef BL_TINY_HEAD_SOLVE_CUH
#define BL_TINY_HEAD_SOLVE_CUH

#include "tiny_det.cuh"
#include "tiny_head.cuh"
#include "tiny_solve.cuh"

namespace bl
{

/* The head's steps in a right-hand side: x is of its rows, in the first lanes, b of those
 * behind them. */
template <class T, int HEAD>
__device__ __forceinline__ void head_lower(const Group<32> &group,
                                           const TinyHead<T, HEAD> &head, T &x, T &b)
{
    const T *const l = head.row(min(group.row, HEAD - 1));
    const T *const below = head.below + group.row * head.BELOW;
#pragma unroll 4
    for (int k = 0; k < HEAD; k++) {
        const T y = group.from(x, k), less = sub(x, mul(l[k], y));
        x = select(group.row > k, less, x);
        b = sub(b, mul(below[k], y));
    }
}

/* x := U^-1 x in the head's rows, b being what is behind them, n elements in the order of
 * rows. False in some lane: not to be had on the fast way. */
template <class T, int HEAD>
__device__ __forceinline__ bool head_upper(const Group<32> &group, int n,
                                           const TinyHead<T, HEAD> &head, T b, T &x)
{
    const int row = min(group.row, HEAD - 1);
    const T *const u = head.row(row);
#pragma unroll 4
    for (int k = n - 1; k >= 0; k--)
        x = sub(x, mul(u[HEAD + k], group.from(b, k)));
    const QuickDivisor<T> divisor(u[row]);
#pragma unroll 4
    for (int k = HEAD - 1; k >= 0; k--) {
        const T y = group.from(divisor.quotient(x), k), less = sub(x, mul(u[k], y));
        x = select(group.row < k, less, x);
    }
    return end_upper(group.row < HEAD ? row : -1, divisor, x);
}

/* GESV. As tiny_head_factor; the first right-hand side is eliminated along with what is
 * left of the matrix. */
template <class T, int N, int BLOCKS, int S = tiny_window<T>(32)>
__global__ void BL_TINY_BOUNDS(1, BLOCKS)
    tiny_head_gesv(const __grid_constant__ TinyArguments g)
{
    constexpr int HEAD = N - 32;
    const Group<32> group;
    const auto head = own_head<T, HEAD, (S > 0)>(group);
    const TinyProblem<T> p(g, blockIdx.x);
    const int n = p.n - HEAD;
    const bool inside = group.row < n;
    T *b = (T *)tiny_operand(g.b, p.item, sizeof(T));
    int info = 0, pivot = 0;
    Row<T, 32> r;
    take_head<LARGEST>(group, p, r, info, pivot, head);
    T x; /* of the head's rows */
    auto begin = [&] {
        x = group.row < HEAD && g.nrhs > 0 ? b[head.source[group.row]] : from_real<T>(0);
        r.b = inside && g.nrhs > 0 ? b[head.source[HEAD + group.row]] : from_real<T>(0);
        head_lower(group, head, x, r.b);
    };
    begin();
    eliminate<LARGEST, true, S>(group, r, n, n, n, head.done);
    if (is_odd<LARGEST>(group, r, head)) {
        if (factor_slowly<T>(g, blockIdx.x) == 0)
            for (int64_t column = 0; column < g.nrhs; column++)
                solve_slowly(p.a, p.lda, p.n, tiny_pivots(g, p.item),
                             b + column * g.b.ld);
        return;
    }
    if (store_all(group, g, p, r, info, pivot, head) != 0)
        return;
    const QuickDivisor<T> divisor(r.diagonal);
    for (int64_t column = 0; column < g.nrhs; column++, b += g.b.ld) {
        if (column > 0) {
            begin();
            if constexpr (S > 0)
                solve_lower(group, head.done, r.position, r.source, n, r.b);
            else
                solve_lower(group, r, n, r.b);
        }
        bool good;
        if constexpr (S > 0)
            good = solve_upper(group, head.done, r.position, r.source, divisor, n, r.b);
        else
            good = solve_upper(group, r, divisor, n, r.b);
        const T rest = group.from(r.b, r.source);
        good = head_upper(group, n, head, rest, x) && good;
        __syncwarp(); /* all have read the column */
        if (group.ballot(!good) != 0) {
            solve_slowly(p.a, p.lda, p.n, tiny_pivots(g, p.item), b);
            continue;
        }
        if (group.row < HEAD)
            b[group.row] = x;
        if (inside)
            b[HEAD + group.row] = rest;
    }
}

/* In a copy that the warp may write over, as it may over p.n pivots. */
template <class T>
BL_CALL void gedet_slowly(const TinyArguments &g, int64_t number, T *copy, int *pivots)
{
    const TinyProblem<T> p(g, number);
    const Pivots pivot = {pivots, 4, 0};
    const int n = p.n, lane = threadIdx.x % 32;
    for (int j = 0; j < n; j++)
        for (int i = lane; i < n; i += 32)
            copy[i + n * j] = p.a[i + j * p.lda];
    __syncwarp();
    Team team = warp_team();
    const int64_t info = lu_rest(team, n, n, copy, n, pivot, 0, n, 0);
    const Product<T> det = product_of_all<T>(n, lane, [&](int64_t k) {
        const T u = copy[k * (n + 1)];
        return pivot.get(k) == k ? u : negative(u);
    });
    put_determinant<false>(g, p, lane == 0, det, int(info));
}

/* GEDET. As tiny_head_factor. Shared memory: also a copy of the matrix, in place of the
 * others. */
template <class T, int N, int BLOCKS, int S = tiny_window<T>(32)>
__global__ void BL_TINY_BOUNDS(1, BLOCKS)
    tiny_head_gedet(const __grid_constant__ TinyArguments g)
{
    constexpr int HEAD = N - 32;
    const Group<32> group;
    const auto head =
        own_head<T, HEAD, (S > 0), LARGEST, N * N * sizeof(T) + N * sizeof(int)>(group);
    const TinyProblem<T> p(g, blockIdx.x);
    const int n = p.n - HEAD;
    int info = 0, pivot = 0;
    Row<T, 32> r;
    take_head<LARGEST>(group, p, r, info, pivot, head);
    eliminate_steps<LARGEST, false, S>(group, r, n, n, n, head.done);
    /* Lane k has elements k and k + 32 of the diagonal, minus them where the pivot came
     * from another row. */
    T u = group.from(r.diagonal, r.source);
    u = group.from(r.pivot == group.row ? u : negative(u), (group.row - HEAD) & 31);
    T first = u;
    if (group.row < HEAD) {
        first = head.row(group.row)[group.row];
        first = pivot == group.row ? first : negative(first);
    }
    Product<T> share[] = {product_of(first)};
    if (group.row < p.n - 32) {
        share[0] = times(share[0], product_of(u));
        share[0].normalise();
    }
    const Product<T> det = by_halves<32>(share, group.row);
    if (!put_determinant<true>(g, p, group.row == 0, det, whole_info<HEAD>(info, r)))
        gedet_slowly<T>(g, blockIdx.x, head.top, (int *)(head.top + N * N));
}

} // namespace bl
#endif
