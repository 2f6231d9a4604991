/* Right-hand sides for LU factors up to 32 x 32 that lie in registers: GESV and
 * GETRS('N').
 *
 * A lane holds the row of the factors that it holds in tiny_lu.cuh, and the same row of
 * one right-hand side at a time. netlib divides by the pivots; here the quotient in the
 * chain is formed with the pivot's reciprocal, and afterwards all lanes divide at once: a
 * column whose quotients were not the true ones is solved again by the reference.
 */
#ifndef BL_TINY_SOLVE_CUH
#define BL_TINY_SOLVE_CUH

#include "tiny_lu.cuh"

namespace bl
{

template <class T>
__device__ __forceinline__ bool same(T x, T y)
{
    if constexpr (Traits<T>::complex)
        return x.re == y.re && x.im == y.im;
    else
        return x == y;
}

/* b := L^-1 b, b in the order of the lanes. Were the position known to be the same in
 * every turn of a loop, the whole of both triangles would be kept in registers. */
template <int L, class T, int N>
__device__ __forceinline__ void solve_lower(const Group<L> &group, const Row<T, N> &r,
                                            int n, T &b)
{
    const int position = renewed(r.position);
    BL_UNROLL
    for (int k = 0; k < N; k++) {
        if (k >= n)
            break;
        T x = group.from(b, group.from(r.source, k));
        T l = position > k ? r.a[k] : from_real<T>(0);
        b = sub(b, mul(l, x));
    }
}

/* What solve_upper() ends with: b divided as netlib divides it; false: not to be had on
 * the fast way. */
template <class T>
__device__ __forceinline__ bool end_upper(int position, const QuickDivisor<T> &divisor,
                                          T &b)
{
    T guess = divisor.quotient(b);
    if (!is_zero(b)) /* netlib leaves a zero alone */
        b = div(b, divisor.d);
    Finite<T> finite;
    finite.add(b, 0);
    return (same(guess, b) && finite) || position < 0;
}

/* b := U^-1 b; false in some lane of the group: not to be had on the fast way. */
template <int L, class T, int N>
__device__ __forceinline__ bool solve_upper(const Group<L> &group, const Row<T, N> &r,
                                            const QuickDivisor<T> &divisor, int n, T &b)
{
    const int position = renewed(r.position);
    BL_UNROLL
    for (int k = N - 1; k >= 0; k--) {
        if (k >= n)
            continue;
        T x = group.from(divisor.quotient(b), group.from(r.source, k));
        T u = position < k ? r.a[k] : from_real<T>(0);
        b = sub(b, mul(u, x));
    }
    return end_upper(r.position, divisor, b);
}

/* The same with the rows in shared memory, where code for every step would not stay in
 * the instruction cache. `row`: the lane's own. */
template <int L, class T>
__device__ __forceinline__ void solve_lower(const Group<L> &group, const T *row,
                                            int position, int source, int n, T &b)
{
#pragma unroll 4
    for (int k = 0; k < n; k++) {
        T x = group.from(b, group.from(source, k));
        T l = row[k];
        if (position > k)
            b = sub(b, mul(l, x));
    }
}
template <int L, class T>
__device__ __forceinline__ bool solve_upper(const Group<L> &group, const T *row,
                                            int position, int source,
                                            const QuickDivisor<T> &divisor, int n, T &b)
{
#pragma unroll 4
    for (int k = n - 1; k >= 0; k--) {
        T x = group.from(divisor.quotient(b), group.from(source, k));
        T u = row[k];
        if (position < k)
            b = sub(b, mul(u, x));
    }
    return end_upper(position, divisor, b);
}

template <class T>
BL_CALL void column_again(const TinyArguments &g, int64_t number, int64_t column)
{
    TinyProblem<T> p(g, number);
    __syncwarp();
    solve_again(p.n, p.a, p.lda, tiny_pivots(g, p.item),
                (T *)tiny_operand(g.b, p.item, sizeof(T)) + column * g.b.ld);
}

template <class T>
BL_CALL void gesv_again(const TinyArguments &g, int64_t number)
{
    TinyProblem<T> p(g, number);
    T *b = (T *)tiny_operand(g.b, p.item, sizeof(T));
    int info = lu_again(p.n, p.n, p.a, p.lda, tiny_pivots(g, p.item));
    for (int64_t column = 0; info == 0 && column < g.nrhs; column++)
        solve_again(p.n, p.a, p.lda, tiny_pivots(g, p.item), b + column * g.b.ld);
    if (threadIdx.x % 32 == 0)
        put_integer(g.info, p.item, g.int_size, 0, info);
}

/* GESV. A group owns a matrix, a lane a row of it and of the right-hand sides; the first
 * one is eliminated along with the matrix. Shared memory: from order 17 on, the lanes'
 * rows of the factors. */
template <class T, int N, int WARPS, int BLOCKS, int S = tiny_window<T>(N)>
__global__ void BL_TINY_BOUNDS(WARPS, BLOCKS)
    tiny_gesv(const __grid_constant__ TinyArguments g)
{
    constexpr int L = lanes_for(N);
    const Group<L> group;
    const int64_t number = group_number<L>();
    const TinyProblem<T> p(g, number);
    const int n = p.n, steps = g.items ? N : g.n;
    const bool inside = group.row < n;
    T *b = (T *)tiny_operand(g.b, p.item, sizeof(T));
    Row<T, N> r;
    load_row(r.a, p.a + group.row, p.lda, n, inside);
    r.b = inside && g.nrhs > 0 ? b[group.row] : from_real<T>(0);
    constexpr bool ROWS = N > 16; /* in shared memory */
    T *row = done_row<T, N, ROWS>(group.row);
    eliminate<LARGEST, true, S>(group, r, n, n, steps, row);
    if (ROWS && S == 0) {
        BL_UNROLL
        for (int j = 0; j < N; j++)
            row[j] = r.a[j];
    }
    const bool again = group.ballot(r.again && p.there) != 0;
    const bool mine = p.there && !again;
    __syncwarp();
    store_row(r.a, p.a + r.position, p.lda, n, mine && inside);
    if (mine && inside)
        put_integer(g.ipiv, p.item, g.int_size, group.row, r.pivot + 1);
    if (mine && group.row == 0)
        put_integer(g.info, p.item, g.int_size, 0, r.info);
    const bool solves = mine && r.info == 0;
    const QuickDivisor<T> divisor(r.diagonal);
    for (int64_t column = 0; column < g.nrhs; column++) {
        if (column > 0) {
            r.b = inside ? b[group.row + column * g.b.ld] : from_real<T>(0);
            if constexpr (ROWS)
                solve_lower(group, row, r.position, r.source, steps, r.b);
            else
                solve_lower(group, r, steps, r.b);
        }
        bool good;
        if constexpr (ROWS)
            good = solve_upper(group, row, r.position, r.source, divisor, steps, r.b);
        else
            good = solve_upper(group, r, divisor, steps, r.b);
        good = group.ballot(!good) == 0;
        __syncwarp();
        if (solves && good && inside)
            b[r.position + column * g.b.ld] = r.b;
        for_groups<L>(solves && !good, number,
                      [&](int64_t i) { column_again<T>(g, i, column); });
    }
    for_groups<L>(again, number, [&](int64_t i) { gesv_again<T>(g, i); });
}

/* GETRS('N'). A group owns TINY_COLUMNS columns of a problem's right-hand sides: blockIdx
 * counts groups of problems first, then columns. No shared memory. */
template <class T, int N, int WARPS, int BLOCKS>
__global__ void BL_TINY_BOUNDS(WARPS, BLOCKS)
    tiny_getrs(const __grid_constant__ TinyArguments g)
{
    constexpr int L = lanes_for(N);
    const Group<L> group;
    const int64_t slices = (g.nrhs + TINY_COLUMNS - 1) / TINY_COLUMNS;
    const int64_t slice = blockIdx.x % slices;
    const int64_t number = (blockIdx.x / slices * blockDim.x + threadIdx.x) / L;
    const TinyProblem<T> p(g, number);
    const int n = p.n, steps = g.items ? N : g.n;
    const bool inside = group.row < n;
    T *b = (T *)tiny_operand(g.b, p.item, sizeof(T));
    Row<T, N> r;
    load_row(r.a, p.a + group.row, p.lda, n, inside);
    r.position = inside ? group.row : -1;
    r.source = group.row;
    r.diagonal = one<T>();
    BL_UNROLL
    for (int k = 0; k < N; k++)
        if (inside && k == group.row)
            r.diagonal = r.a[k];
    /* Which element of b the interchanges bring to this row. */
    int row = group.row, pivot = inside ? int(tiny_pivots(g, p.item).get(group.row)) : 0;
    for (int k = steps - 1; k >= 0; k--) {
        int with = group.from(pivot, k);
        if (k < n)
            row = row == k ? with : row == with ? k : row;
    }
    bool solves = p.there;
    if (g.after_factoring)
        solves = solves && tiny_info(g, p.item) == 0;
    const QuickDivisor<T> divisor(r.diagonal);
    const int64_t end = least(g.nrhs, (slice + 1) * TINY_COLUMNS);
    for (int64_t column = slice * TINY_COLUMNS; column < end; column++) {
        r.b = inside ? b[row + column * g.b.ld] : from_real<T>(0);
        solve_lower(group, r, steps, r.b);
        bool good = solve_upper(group, r, divisor, steps, r.b);
        good = group.ballot(!good) == 0;
        __syncwarp();
        if (solves && good && inside)
            b[r.position + column * g.b.ld] = r.b;
        for_groups<L>(solves && !good, number,
                      [&](int64_t i) { column_again<T>(g, i, column); });
    }
    if (p.there && !g.after_factoring && group.row == 0 && slice == 0)
        put_integer(g.info, p.item, g.int_size, 0, 0);
}

} // namespace bl
#endif
