/* GESV of 33 to 48 rows with one right-hand side, and GEDET: what tiny_head.cuh leaves in
 * registers and shared memory goes on from there. Instantiated by tiny_kernels.cuh.
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

/* Where element (i, k) of U behind the head lies, by columns, if the lanes have no room
 * for it while they solve. */
__host__ __device__ constexpr int packed_upper(int i, int k)
{
    return k * (k + 1) / 2 + i;
}

/* GESV. As tiny_head_factor; the right-hand side is eliminated along with what is left of
 * the matrix. What is not needed meanwhile is not in registers. Shared memory: also U
 * behind the head, unless the rows are there, and before it x. */
template <class T, int N, int BLOCKS, int S = tiny_window<T>(32)>
__global__ void BL_TINY_BOUNDS(1, BLOCKS)
    tiny_head_gesv(const __grid_constant__ TinyArguments g)
{
    constexpr int HEAD = N - 32;
    constexpr bool ROWS = S > 0; /* in shared memory */
    __shared__ T upper[ROWS ? 32 : packed_upper(0, 32)];
    __shared__ unsigned char order[32]; /* which lane has a row of what is left */
    const Group<32> group;
    const auto head = own_head<T, HEAD, ROWS>(group);
    const int n = g.n - HEAD;
    const bool inside = group.row < n;
    int info = 0, pivot = 0;
    T x = from_real<T>(0); /* the right-hand side in the head's rows */
    Row<T, 32> r;
    r.b = x;
    {
        const TinyProblem<T> p(g, blockIdx.x);
        take_head<LARGEST>(group, p, r, info, pivot, head);
        const T *const b = (const T *)tiny_operand(g.b, p.item, sizeof(T));
        x = group.row < HEAD ? b[head.source[group.row]] : x;
        r.b = inside ? b[head.source[HEAD + group.row]] : r.b;
        head_lower(group, head, x, r.b);
        upper[group.row] = x;
    }
    eliminate<LARGEST, true, S>(group, r, n, n, n, head.done);
    const TinyProblem<T> p(g, renewed(int(blockIdx.x)));
    T *const b = (T *)tiny_operand(g.b, p.item, sizeof(T));
    if (is_odd<LARGEST>(group, r, head)) {
        if (factor_slowly<T>(g, blockIdx.x) == 0)
            solve_slowly(p.a, p.lda, p.n, tiny_pivots(g, p.item), b);
        return;
    }
    if (store_all(group, g, p, r, info, pivot, head) != 0)
        return;
    x = upper[group.row];
    if (inside)
        order[r.position] = (unsigned char)group.row;
    __syncwarp();
    if constexpr (!ROWS)
        BL_UNROLL
    for (int k = 0; k < 32; k++)
        if (unsigned(r.position) <= unsigned(k)) /* -1: no row */
            upper[packed_upper(r.position, k)] = r.a[k];
    /* From here on lane i has row i. */
    const int lane = inside ? order[group.row] : group.row;
    const T *const row = ROWS ? head.done + (lane - group.row) * Pitch<T, 32>::VALUE
                              : upper; /* of which only U is there */
    auto at = [&](int k) { return ROWS ? k : packed_upper(group.row, k); };
    T y = group.from(r.b, lane);
    __syncwarp();
    const QuickDivisor<T> divisor(inside ? row[at(group.row)] : one<T>());
    const T *u = row + at(n - 1);
#pragma unroll 4
    for (int k = n - 1; k > 0; k--) {
        const T z = group.from(divisor.quotient(y), k);
        if (group.row < k)
            y = sub(y, mul(*u, z));
        u -= ROWS ? 1 : k;
    }
    bool good = end_upper(inside ? group.row : -1, divisor, y);
    good = head_upper(group, n, head, y, x) && good;
    if (group.ballot(!good) != 0) {
        solve_slowly(p.a, p.lda, p.n, tiny_pivots(g, p.item), b);
        return;
    }
    if (group.row < HEAD)
        b[group.row] = x;
    if (inside)
        b[HEAD + group.row] = y;
}

/* Elements of shared memory for gedet_slowly(): a triangle, a column and pivots. */
template <class T>
__host__ __device__ constexpr int slow_elements(int n)
{
    return packed_upper(0, n) + n + int((n * sizeof(int) + sizeof(T) - 1) / sizeof(T));
}

/* GEDET by netlib's rules for NaN and Inf, as lu_rest() has them. A is only read; of the
 * factors L and the diagonal of U are kept, in `memory`, which the warp may write over.
 */
template <class T>
BL_CALL void gedet_slowly(const TinyArguments &g, int64_t number, T *memory)
{
    const TinyProblem<T> p(g, number);
    const int n = p.n, lane = threadIdx.x % 32;
    auto column = [&](int k) { return memory + k * n - packed_upper(0, k); };
    T *const c = memory + packed_upper(0, n); /* the column at hand */
    const Pivots pivots = {c + n, sizeof(int), 0};
    Team team = block_team(32);
    int info = 0;
    __syncwarp(); /* all have read what was there */
    for (int j = 0; j < n; j++) {
        for (int i = lane; i < n; i += 32)
            c[i] = p.a[i + j * p.lda];
        __syncwarp();
        interchange(team, pivots, 0, j, c, n, 1);
        __syncwarp();
        for (int k = 0; k < j; k++)
            lu_take(team, n, n, c, j, k, column(k));
        if (lu_column(team, n - j, c + j, pivots.from(j)) && info == 0)
            info = j + 1;
        const int64_t with = pivots.get(j);
        for (int k = lane; k < j; k += 32) {
            T *const l = column(k), x = l[j];
            l[j] = l[with];
            l[with] = x;
        }
        for (int i = j + lane; i < n; i += 32)
            column(j)[i] = c[i];
        __syncwarp();
    }
    const Product<T> det = product_of_all<T>(n, lane, [&](int64_t k) {
        const T u = column(int(k))[k];
        return pivots.get(k) == k ? u : negative(u);
    });
    put_determinant<false>(g, p, lane == 0, det, info);
}

/* GEDET. As tiny_head_factor. */
template <class T, int N, int BLOCKS, int S = tiny_window<T>(32)>
__global__ void BL_TINY_BOUNDS(1, BLOCKS)
    tiny_head_gedet(const __grid_constant__ TinyArguments g)
{
    constexpr int HEAD = N - 32;
    const Group<32> group;
    const auto head = own_head<T, HEAD, (S > 0), LARGEST, slow_elements<T>(N)>(group);
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
        gedet_slowly<T>(g, blockIdx.x, head.top);
}

} // namespace bl
#endif
