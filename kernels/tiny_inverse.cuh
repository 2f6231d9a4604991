/* Inverses up to 32 x 32: GEINV (factors and inverse in one kernel), GETRI, GETRI_OOP.
 *
 * Row i of the inverse of A = P' L U solves z L U = e_i' P', so every lane solves for a
 * row of its own with the factors read from shared memory, where all lanes read the same
 * element at once. That is what xGETRI does, with other roundings: fused multiply-add and
 * the pivots' reciprocals. A result that is not finite is formed again as netlib forms
 * it.
 */
#ifndef BL_TINY_INVERSE_CUH
#define BL_TINY_INVERSE_CUH

#include "tiny_lu.cuh"

namespace bl
{

/* The factors of a group's matrix in shared memory, by rows (one a lane, though the last
 * may not be used), the pivots' reciprocals on the diagonal. Rows are an odd number of
 * 16-byte units apart, and so are matrices, so that neither the rows of the writing lanes
 * nor the groups of the reading ones meet in a bank. */
template <class T, int N>
struct Board {
    static constexpr int UNIT = Pitch<T, N>::UNIT, PITCH = Pitch<T, N>::VALUE;
    static constexpr int SIZE = ((lanes_for(N) * PITCH / UNIT) | 1) * UNIT;
    static_assert(N % 4 == 0, "rows are whole units");
    T *p;

    struct alignas(16) Unit {
        T x[UNIT];
    };
    __device__ __forceinline__ Unit &unit(int i, int j) const
    {
        return *(Unit *)(p + i * PITCH + j);
    }
    __device__ __forceinline__ void put_row(int i, const T (&a)[N], T reciprocal) const
    {
        BL_UNROLL
        for (int j = 0; j < N; j += UNIT) {
            Unit u;
            BL_UNROLL
            for (int s = 0; s < UNIT; s++)
                u.x[s] = a[j + s];
            unit(i, j) = u;
        }
        p[i * PITCH + i] = reciprocal;
    }
};

template <class T, int N, int WARPS>
__device__ __forceinline__ Board<T, N> own_board()
{
    constexpr int GROUPS = WARPS * 32 / lanes_for(N);
    __shared__ __align__(16) T boards[GROUPS * Board<T, N>::SIZE];
    return {boards + threadIdx.x / lanes_for(N) * Board<T, N>::SIZE};
}

/* z := z U^-1 L^-1 for the unit vector e_row. */
template <class T, int N>
__device__ __forceinline__ void solve_row(const Board<T, N> &board, int row, int n,
                                          T (&z)[N])
{
    constexpr int UNIT = Board<T, N>::UNIT;
    BL_UNROLL
    for (int j = 0; j < N; j++)
        z[j] = from_real<T>(j == row ? 1 : 0);
    BL_UNROLL
    for (int i = 0; i < N; i++) {
        if (i >= n)
            break;
        BL_UNROLL
        for (int j = i / UNIT * UNIT; j < N; j += UNIT) {
            auto u = board.unit(i, j);
            BL_UNROLL
            for (int s = 0; s < UNIT; s++) {
                if (j + s == i)
                    z[i] = mul(z[i], u.x[s]);
                if (j + s > i)
                    z[j + s] = fused(z[j + s], z[i], u.x[s]);
            }
        }
    }
    BL_UNROLL
    for (int i = N - 1; i > 0; i--) {
        if (i >= n)
            continue;
        BL_UNROLL
        for (int j = 0; j < i; j += UNIT) {
            auto l = board.unit(i, j);
            BL_UNROLL
            for (int s = 0; s < UNIT; s++)
                if (j + s < i)
                    z[j + s] = fused(z[j + s], z[i], l.x[s]);
        }
    }
}

/* A row of the inverse, element c to column `source` of the lane of row c. */
template <int L, class T, int N>
__device__ __forceinline__ void store_inverse(const Group<L> &group, const T (&z)[N],
                                              int source, T *x, int64_t ldx, int n,
                                              int steps, bool mine)
{
    const bool inside = mine && group.row < n, whole = is_whole(x);
    x += group.row;
    BL_UNROLL
    for (int c = 0; c < N; c++) {
        if (c >= steps)
            break;
        T *to = x + group.from(source, c) * ldx;
        if (inside && c < n && whole)
            put(to, z[c]);
        else if (inside && c < n)
            *to = z[c];
    }
}

template <class T, int N>
__device__ __forceinline__ bool all_finite(const T (&z)[N])
{
    Finite<T> finite;
    BL_UNROLL
    for (int j = 0; j < N; j++)
        finite.add(z[j], j);
    return bool(finite);
}

template <class T>
__device__ __forceinline__ void copy_matrix(const TinyProblem<T> &p, T *x, int64_t ldx)
{
    const int row = threadIdx.x % 32;
    for (int j = 0; j < p.n && row < p.n; j++)
        x[row + j * ldx] = p.a[row + j * p.lda];
    __syncwarp();
}

/* As netlib does it, in memory. */
template <class T>
BL_CALL void geinv_again(const TinyArguments &g, int64_t number)
{
    __shared__ int32_t pivots[4][32];
    TinyProblem<T> p(g, number);
    Pivots pivot = {pivots[threadIdx.x / 32], 4, 0};
    T *x = (T *)tiny_operand(g.x, p.item, sizeof(T));
    if (x != p.a)
        copy_matrix(p, x, p.ldx);
    int info = lu_again(p.n, p.n, x, p.ldx, pivot);
    if (info == 0)
        invert_again(p.n, x, p.ldx, pivot);
    if (threadIdx.x % 32 == 0)
        put_integer(g.info, p.item, g.int_size, 0, info);
}

template <class T>
BL_CALL void getri_again(const TinyArguments &g, int64_t number)
{
    TinyProblem<T> p(g, number);
    T *x = (T *)tiny_operand(g.x, p.item, sizeof(T));
    if (x != p.a)
        copy_matrix(p, x, p.ldx);
    int info = invert_again(p.n, x, p.ldx, tiny_pivots(g, p.item));
    if (threadIdx.x % 32 == 0)
        put_integer(g.info, p.item, g.int_size, 0, info);
}

/* GEINV. A group owns a matrix, a lane a row of it, then a row of the inverse. Shared
 * memory: the factors of each group. Singular: the factors are left in X. */
template <class T, int N, int WARPS, int BLOCKS, int S = tiny_window<T>(N)>
__global__ void BL_TINY_BOUNDS(WARPS, BLOCKS)
    tiny_geinv(const __grid_constant__ TinyArguments g)
{
    constexpr int L = lanes_for(N);
    const Board<T, N> board = own_board<T, N, WARPS>();
    const Group<L> group;
    const int64_t number = group_number<L>();
    const TinyProblem<T> p(g, number);
    const int n = p.n, steps = g.items ? N : g.n;
    const bool inside = group.row < n;
    T *x = (T *)tiny_operand(g.x, p.item, sizeof(T));
    T z[N];
    int info, source;
    bool again, singular;
    {
        Row<T, N> r;
        load_row(r.a, p.a + group.row, p.lda, n, inside);
        eliminate<LARGEST, false, S>(group, r, n, n, steps,
                                     board.p + group.row * board.PITCH);
        again = group.ballot(r.again) != 0;
        info = r.info;
        source = r.source;
        singular = info != 0;
        __syncwarp();
        if (singular)
            store_row(r.a, x + r.position, p.ldx, n, p.there && !again && inside);
        if (inside)
            board.put_row(r.position, r.a, reciprocal(r.diagonal));
    }
    __syncwarp();
    solve_row(board, group.row, steps, z);
    /* All lanes vote, whatever their own group has found. */
    const bool broken = group.ballot(inside && !all_finite(z)) != 0;
    again = p.there && (again || (!singular && broken));
    const bool mine = p.there && !again;
    store_inverse(group, z, source, x, p.ldx, n, steps, mine && !singular);
    if (mine && group.row == 0)
        put_integer(g.info, p.item, g.int_size, 0, info);
    for_groups<L>(again, number, [&](int64_t i) { geinv_again<T>(g, i); });
}

/* GETRI and GETRI_OOP (in place, X is A). As tiny_geinv from the factors on. Singular: X
 * is not written. */
template <class T, int N, int WARPS, int BLOCKS>
__global__ void BL_TINY_BOUNDS(WARPS, BLOCKS)
    tiny_getri(const __grid_constant__ TinyArguments g)
{
    constexpr int L = lanes_for(N);
    const Board<T, N> board = own_board<T, N, WARPS>();
    const Group<L> group;
    const int64_t number = group_number<L>();
    const TinyProblem<T> p(g, number);
    const int n = p.n, steps = g.items ? N : g.n;
    const bool inside = group.row < n;
    T *x = (T *)tiny_operand(g.x, p.item, sizeof(T));
    T z[N];
    load_row(z, p.a + group.row, p.lda, n, inside);
    T diagonal = one<T>();
    BL_UNROLL
    for (int k = 0; k < N; k++)
        if (inside && k == group.row)
            diagonal = z[k];
    const int info = __ffs(group.ballot(is_zero(diagonal)));
    if (inside)
        board.put_row(group.row, z, reciprocal(diagonal));
    /* Which column of the inverse the interchanges make of a row of L^-1. */
    int source = group.row;
    int pivot = inside ? int(tiny_pivots(g, p.item).get(group.row)) : 0;
    for (int k = steps - 1; k >= 0; k--) {
        int with = group.from(pivot, k);
        if (k < n)
            source = source == k ? with : source == with ? k : source;
    }
    __syncwarp();
    solve_row(board, group.row, steps, z);
    const bool broken = group.ballot(inside && !all_finite(z)) != 0;
    const bool again = p.there && info == 0 && broken;
    const bool mine = p.there && !again;
    store_inverse(group, z, source, x, p.ldx, n, steps, mine && info == 0);
    if (mine && group.row == 0)
        put_integer(g.info, p.item, g.int_size, 0, info);
    for_groups<L>(again, number, [&](int64_t i) { getri_again<T>(g, i); });
}

} // namespace bl
#endif
