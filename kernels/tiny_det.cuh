/* Determinants up to 32 x 32: GEDET, the product of the pivots as phase and
 * log-magnitude.
 *
 * Instantiated by tiny_kernels.cuh. A is only read, and of the factors only the diagonal
 * is kept. A matrix that can not be had on the fast way is factored again in a copy in
 * shared memory. Of a square matrix that is one with something on the diagonal that is
 * not finite: what is not finite elsewhere makes all of its row that follows it, or of
 * its column below it, not finite, and so a pivot.
 */
#ifndef BL_TINY_DET_CUH
#define BL_TINY_DET_CUH

#include "product.cuh"
#include "tiny_rows_lu.cuh"
#include "tiny_sheet.cuh"

namespace bl
{

/* What is asked for, by one lane. Returned is whether the product is finite; only then,
 * if FINITE, it is written. */
template <bool FINITE, class T>
__device__ __forceinline__ bool put_determinant(const TinyArguments &g,
                                                const TinyProblem<T> &p, bool writes,
                                                const Product<T> &det, int info)
{
    const bool finite = is_finite(det.value);
    if (writes && p.there && (finite || !FINITE)) {
        T phase = from_real<T>(0);
        Real<T> logabs = -Real<T>(INFINITY);
        if (info == 0)
            phase_and_logarithm(det, phase, logabs);
        *(T *)tiny_operand(g.phase, p.item, sizeof(T)) = phase;
        *(Real<T> *)tiny_operand(g.logabs, p.item, sizeof(Real<T>)) = logabs;
        put_integer(g.info, p.item, g.int_size, 0, info);
    }
    return finite;
}

/* The same of the diagonal, whose element s L + lane is a lane's u[s], or minus it if the
 * pivot came from another row. */
template <bool FINITE, int L, int R, class T>
__device__ __forceinline__ bool
put_determinant(const TinyArguments &g, const TinyProblem<T> &p, const Group<L> &group,
                const T (&u)[R], int info)
{
    Product<T> share[SHARES / L];
    BL_UNROLL
    for (int s = 0; s < R; s++)
        if (s * L + group.row < p.n)
            share[s] = product_of(u[s]);
    const Product<T> det = by_halves<L>(share, threadIdx.x % 32);
    return put_determinant<FINITE>(g, p, group.row == 0, det, info);
}

/* In a copy of N columns that the warp may write over, as it may over N pivots. */
template <class T, int N>
BL_CALL void gedet_again(const TinyArguments &g, int64_t number, T *copy, int *pivots)
{
    const Group<32> group;
    const TinyProblem<T> p(g, number);
    const Pivots pivot = {pivots, 4, 0};
    const bool inside = group.row < p.n;
    for (int j = 0; j < p.n && inside; j++)
        copy[group.row + N * j] = p.a[group.row + j * p.lda];
    __syncwarp();
    const int info = lu_again(p.n, p.n, copy, N, pivot);
    T u[] = {copy[inside ? (N + 1) * group.row : 0]};
    if (inside && pivot.get(group.row) != group.row)
        u[0] = negative(u[0]);
    put_determinant<false>(g, p, group, u, info);
}

/* A group owns a matrix, a lane a row. Shared memory: a copy of a matrix a warp, and of
 * the longest the columns that are done. */
template <class T, int N, int WARPS, int BLOCKS, int S = tiny_window<T>(N)>
__global__ void BL_TINY_BOUNDS(WARPS, BLOCKS)
    tiny_gedet(const __grid_constant__ TinyArguments g)
{
    constexpr int L = lanes_for(N);
    __shared__ __align__(16) char copies[WARPS][N * N * sizeof(T)];
    __shared__ int pivots[WARPS][N];
    const Group<L> group;
    const int64_t number = group_number<L>();
    const TinyProblem<T> p(g, number);
    Row<T, N> r;
    load_row(r.a, p.a + group.row, p.lda, p.n, group.row < p.n);
    eliminate_steps<LARGEST, false, S>(group, r, p.n, p.n, g.items ? N : g.n,
                                       done_row<T, N, (S > 0)>(group.row));
    T u[] = {group.from(r.diagonal, r.source)};
    if (r.pivot != group.row)
        u[0] = negative(u[0]);
    const bool finite = put_determinant<true>(g, p, group, u, r.info);
    for_groups<L>(p.there && !finite, number, [&](int64_t i) {
        const int warp = threadIdx.x / 32;
        gedet_again<T, N>(g, i, (T *)copies[warp], pivots[warp]);
    });
}

/* The rest of both kernels below, whose diagonal(k) is that of the group's factors, in
 * shared memory, as are its `pivots`. The warp's matrices begin at `first`, its pivots at
 * `numbers`. */
template <int N, int L, class T, class F>
__device__ __forceinline__ void
finish_gedet(const Group<L> &group, const TinyArguments &g, const TinyProblem<T> &p,
             int64_t number, int info, const int *pivots, const F &diagonal, T *first,
             int *numbers)
{
    constexpr int R = (N + L - 1) / L;
    T u[R];
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        const int k = s * L + group.row;
        u[s] = from_real<T>(0);
        if (k < p.n)
            u[s] = pivots[k] == k ? diagonal(k) : negative(diagonal(k));
    }
    const bool finite = put_determinant<true>(g, p, group, u, info);
    for_groups<L>(p.there && !finite, number,
                  [&](int64_t i) { gedet_again<T, N>(g, i, first, numbers); });
}

/* As tiny_rows_factor. */
template <class T, int N, int L, int BLOCKS>
__global__ void BL_TINY_BOUNDS(1, BLOCKS)
    tiny_rows_gedet(const __grid_constant__ TinyArguments g)
{
    const Group<L> group;
    const int64_t number = group_number<L>();
    const TinyBoard<T, N, L> board = rows_board<T, N, L, false>(group);
    const TinyProblem<T> p(g, number);
    const int info = factor_rows<false, true>(group, g, p, p.n, g.items ? N : g.n,
                                              (const T *)nullptr, board);
    auto diagonal = [&](int k) {
        return board.p[board.place(board.order[k]) + board.start(k)];
    };
    finish_gedet<N>(group, g, p, number, info, board.pivot, diagonal, board.p,
                    board.pivot - group.first / L * 2 * N);
}

/* As tiny_sheet_factor. */
template <class T, int N, int L, int BLOCKS>
__global__ void BL_TINY_BOUNDS(1, BLOCKS)
    tiny_sheet_gedet(const __grid_constant__ TinyArguments g)
{
    const Group<L> group;
    const int64_t number = group_number<L>();
    const auto sheet = own_sheet<T, N, L, false>(group);
    const TinyProblem<T> p(g, number);
    const int n = g.items ? N : g.n, before = group.first / L;
    if (is_whole(p.a))
        load_sheet<true>(group, p, n, sheet);
    else
        load_sheet<false>(group, p, n, sheet);
    __syncwarp();
    const int info = eliminate_sheet<LARGEST, false>(group, p.n, p.n, n, n, sheet);
    auto diagonal = [&](int k) { return sheet.row(k)[k]; };
    finish_gedet<N>(group, g, p, number, info, sheet.pivot, diagonal,
                    sheet.p - before * sheet.SIZE, sheet.pivot - before * N);
}

} // namespace bl
#endif
