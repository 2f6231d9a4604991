/* GETRF with several rows a lane, and what it shares with GESV and GEINV: the way from
 * memory to the board and back.
 *
 * Instantiated by tiny_kernels.cuh; included by tiny_rows_solve.cuh and
 * tiny_rows_inverse.cuh.
 */
#ifndef BL_TINY_ROWS_LU_CUH
#define BL_TINY_ROWS_LU_CUH

#include "tiny_rows.cuh"

namespace bl
{

/* The first n elements of a lane's rows, zeros behind. Which slot holds which row differs
 * from group to group, so that a warp's groups do not read the same part of their columns
 * at once, and so not from the same banks. By columns, so that few addresses are kept. */
template <bool WHOLE, int L, class T, int N>
__device__ __forceinline__ void load_columns(const Rows<T, N, L> &r, const T *p,
                                             int64_t lda, int n,
                                             T (&a)[Rows<T, N, L>::R][N])
{
    const T *from[r.R];
    BL_UNROLL
    for (int s = 0; s < r.R; s++)
        from[s] = p + r.position[s];
    BL_UNROLL
    for (int j = 0; j < N; j++)
        BL_UNROLL
    for (int s = 0; s < r.R; s++) {
        assume_global(from[s]);
        a[s][j] = from_real<T>(0);
        if (j < n && r.position[s] >= 0)
            a[s][j] = WHOLE ? fetch(from[s]) : *from[s];
        from[s] = renewed(from[s] + lda); /* or all columns' addresses are kept */
    }
}

template <int L, class T, int N>
__device__ __forceinline__ void load_rows(const Group<L> &group, Rows<T, N, L> &r,
                                          const T *p, int64_t lda, int m, int n)
{
    BL_UNROLL
    for (int s = 0; s < r.R; s++) {
        const int row = (s + group.first / L) % r.R * L + group.row;
        r.position[s] = row < m ? row : -1;
    }
    if (is_whole(p))
        load_columns<true>(r, p, lda, n, r.a);
    else
        load_columns<false>(r, p, lda, n, r.a);
}

/* Whether all factors are finite; if not, false in some lane of the group. What is not
 * finite makes all of its row that follows it, or of its column below it, not finite, and
 * so reaches the last column or, where that is of U, the last row. */
template <int L, class T, int N>
__device__ __forceinline__ bool factors_finite(const Group<L> &group, int m, int n,
                                               const TinyBoard<T, N, L> &board)
{
    Finite<T> finite;
    BL_UNROLL
    for (int s = 0; s < Rows<T, N, L>::R; s++) {
        const int i = s * L + group.row;
        if (i < m && n > 0)
            finite.add(board.element(i, n - 1), 0);
        if (i >= m && i < n && m > 0) /* wide */
            finite.add(board.element(m - 1, i - 1), 1);
    }
    return bool(finite);
}

/* Row i of the factors from the board. */
template <bool WHOLE, int L, class T, int N>
__device__ __forceinline__ void store_row(const TinyBoard<T, N, L> &board, int at, int i,
                                          T *p, int64_t lda, int n)
{
    constexpr int CHUNK = N % 8 == 0 ? 8 : 4;
    const int upper = board.upper(at, i);
#pragma unroll 1
    for (int first = 0; first < n; first += CHUNK) {
        T x[CHUNK];
        BL_UNROLL
        for (int t = 0; t < CHUNK; t++) {
            const int j = first + t;
            x[t] = board.p[j < i ? board.lower(at, t) + first : upper + j];
        }
        BL_UNROLL
        for (int t = 0; t < CHUNK; t++) {
            assume_global(p);
            if (first + t < n) {
                if constexpr (WHOLE)
                    put(p, x[t]);
                else
                    *p = x[t];
            }
            p = renewed(p + lda);
        }
    }
}

/* The same of all rows: the warp writes one matrix after the other, a lane a row, those
 * of the groups that want it to where to(problem) says. */
template <int L, class T, int N, class F>
__device__ __forceinline__ void
store_factors(const Group<L> &group, const TinyArguments &g, int64_t number, bool wanted,
              const TinyBoard<T, N, L> &board, F to)
{
    if constexpr (N <= 16) { /* most lanes would be without a row */
        const TinyProblem<T> p(g, number);
        int64_t ld;
        T *const a = to(p, ld);
        __syncwarp();
        BL_UNROLL
        for (int s = 0; s < Rows<T, N, L>::R; s++) {
            const int i = s * L + group.row;
            if (wanted && i < p.m) {
                if (is_whole(a))
                    store_row<true>(board, board.order[i], i, a + i, ld, p.n);
                else
                    store_row<false>(board, board.order[i], i, a + i, ld, p.n);
            }
        }
        return;
    }
    const int row = threadIdx.x % 32;
    for_groups<L>(wanted, number, [&](int64_t i) {
        const TinyProblem<T> p(g, i);
        const int q = int(i - number) + group.first / L;
        if (row >= p.m)
            return;
        const int at = (board.order + (q - group.first / L) * 2 * N)[row];
        int64_t ld;
        T *a = to(p, ld);
        if (is_whole(a))
            store_row<true>(board, at, row, a + row, ld, p.n);
        else
            store_row<false>(board, at, row, a + row, ld, p.n);
    });
}

/* IPIV and INFO. */
template <int L, class T, int N>
__device__ __forceinline__ void
store_numbers(const Group<L> &group, const TinyArguments &g, const TinyProblem<T> &p,
              int info, const TinyBoard<T, N, L> &board)
{
    BL_UNROLL
    for (int s = 0; s < Rows<T, N, L>::R; s++) {
        const int row = s * L + group.row;
        if (row < min(p.m, p.n))
            put_integer(g.ipiv, p.item, g.int_size, row, board.pivot[row] + 1);
    }
    if (group.row == 0)
        put_integer(g.info, p.item, g.int_size, 0, info);
}

/* Read, factor: from memory to the board, what GESV and GEINV begin with. INFO
 * is returned. EXTRA: the first right-hand side comes along. */
template <bool EXTRA, bool EXCHANGED, int L, class T, int N>
__device__ __forceinline__ int
factor_rows(const Group<L> &group, const TinyArguments &g, const TinyProblem<T> &p, int m,
            int steps, const T *sides, const TinyBoard<T, N, L> &board)
{
    Rows<T, N, L> r;
    load_rows(group, r, p.a, p.lda, m, p.n);
    if constexpr (EXTRA) {
        BL_UNROLL
        for (int s = 0; s < r.R; s++) {
            const int row = r.position[s];
            r.b[s] = row >= 0 && g.nrhs > 0 ? sides[row] : from_real<T>(0);
        }
    }
    eliminate_rows<EXTRA, EXCHANGED>(group, r, m, p.n, steps, board);
    return r.info;
}

/* GETRF. A group of L lanes owns a matrix, a warp, which is a block, 32 / L matrices, a
 * lane several rows. Shared memory: TinyBoard. */
template <class T, int N, int L, int BLOCKS>
__global__ void BL_TINY_BOUNDS(1, BLOCKS)
    tiny_rows_factor(const __grid_constant__ TinyArguments g)
{
    const Group<L> group;
    const int64_t number = group_number<L>();
    const TinyBoard<T, N, L> board = rows_board<T, N, L, false>(group);
    const TinyProblem<T> p(g, number);
    int info;
    {
        Rows<T, N, L> r;
        load_rows(group, r, p.a, p.lda, p.m, p.n);
        /* Always all steps where shapes differ: bits must not depend on neighbours. */
        eliminate_rows<false, true>(group, r, p.m, p.n, g.items ? N : min(g.m, g.n),
                                    board);
        info = r.info;
    }
    const bool finite = group.ballot(!factors_finite(group, p.m, p.n, board)) == 0;
    if (p.there && finite)
        store_numbers(group, g, p, info, board);
    store_factors(group, g, number, p.there && finite, board,
                  [](const TinyProblem<T> &q, int64_t &ld) {
                      ld = q.lda;
                      return q.a;
                  });
    for_groups<L>(p.there && !finite, number,
                  [&](int64_t i) { factor_again<T, LARGEST>(g, i); });
}

} // namespace bl
#endif
