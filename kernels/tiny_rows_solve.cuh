/* GESV with several rows a lane. Instantiated by tiny_kernels.cuh. */
#ifndef BL_TINY_ROWS_SOLVE_CUH
#define BL_TINY_ROWS_SOLVE_CUH

#include "tiny_rows_lu.cuh"
#include "tiny_solve.cuh"

namespace bl
{

/* b := L^-1 b; b[s] belongs to row s * L + lane of the result, which lies at at[s]. */
template <int R, int L, class T, class Board>
__device__ __forceinline__ void solve_lower(const Group<L> &group, const Board &board,
                                            const int (&at)[R], int steps, T (&b)[R])
{
    BL_UNROLL
    for (int q = 0; q < R; q++)
#pragma unroll 4
        for (int t = 0; t < L && q * L + t < steps; t++) {
            const T x = group.from(b[q], t);
            BL_UNROLL
            for (int s = q; s < R; s++) {
                const T y = sub(b[s], mul(board.p[board.lower(at[s], q * L + t)], x));
                b[s] = s > q ? y : select(group.row > t, y, b[s]);
            }
        }
}

/* b := U^-1 b; n is the group's order, steps the warp's. False in some lane of the group:
 * not to be had on the fast way. */
template <int R, int L, class T, class Board>
__device__ __forceinline__ bool solve_upper(const Group<L> &group, const Board &board,
                                            const int (&at)[R], int n, int steps,
                                            T (&b)[R])
{
    int upper[R];
    T diagonal[R];
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        const int row = s * L + group.row;
        upper[s] = board.upper(at[s], row);
        diagonal[s] = row < n ? board.p[upper[s] + row] : one<T>();
    }
    bool good = true;
    BL_UNROLL
    for (int q = R - 1; q >= 0; q--) {
        const QuickDivisor<T> divisor(diagonal[q]);
#pragma unroll 4
        for (int t = min(L, steps - q * L) - 1; t >= 0; t--) {
            const T x = group.from(divisor.quotient(b[q]), t);
            const bool there = q * L + t < n;
            BL_UNROLL
            for (int s = 0; s <= q; s++) {
                const T y = sub(b[s], mul(board.p[upper[s] + q * L + t], x));
                b[s] = select(there && (s < q || group.row < t), y, b[s]);
            }
        }
        const int position = q * L + group.row < n ? q * L + group.row : -1;
        good = end_upper(position, divisor, b[q]) && good;
    }
    return good;
}

/* GESV. As tiny_rows_factor; the first right-hand side is eliminated along with the
 * matrix. */
template <class T, int N, int L, int BLOCKS>
__global__ void BL_TINY_BOUNDS(1, BLOCKS)
    tiny_rows_gesv(const __grid_constant__ TinyArguments g)
{
    constexpr int R = Rows<T, N, L>::R;
    const Group<L> group;
    const int64_t number = group_number<L>();
    const TinyBoard<T, N, L> board = rows_board<T, N, L, true>(group);
    const TinyProblem<T> p(g, number);
    const int n = p.n, steps = g.items ? N : g.n;
    T *const sides = (T *)tiny_operand(g.b, p.item, sizeof(T));
    assume_global(sides);
    const int info = factor_rows<true, true>(group, g, p, n, steps, sides, board);
    const bool finite = group.ballot(!factors_finite(group, n, n, board)) == 0;
    const bool mine = p.there && finite;
    if (mine)
        store_numbers(group, g, p, info, board);
    store_factors(group, g, number, mine, board,
                  [](const TinyProblem<T> &q, int64_t &ld) {
                      ld = q.lda;
                      return q.a;
                  });
    int at[R];
    T b[R];
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        const int row = s * L + group.row;
        at[s] = board.order[row < n ? row : 0];
        b[s] = board.b[row < n ? row : 0];
    }
    for (int64_t column = 0; column < g.nrhs; column++) {
        if (column > 0) {
            BL_UNROLL
            for (int s = 0; s < R; s++) {
                b[s] = s * L + group.row < n ? sides[board.row(at[s]) + column * g.b.ld]
                                             : from_real<T>(0);
            }
            solve_lower(group, board, at, steps, b);
        }
        const bool good = solve_upper(group, board, at, n, steps, b);
        const bool broken = group.ballot(!good) != 0;
        __syncwarp(); /* all have read the column */
        BL_UNROLL
        for (int s = 0; s < R; s++)
            if (mine && info == 0 && !broken && s * L + group.row < n)
                sides[s * L + group.row + column * g.b.ld] = b[s];
        for_groups<L>(mine && info == 0 && broken, number,
                      [&](int64_t i) { column_again<T>(g, i, column); });
    }
    for_groups<L>(p.there && !finite, number, [&](int64_t i) { gesv_again<T>(g, i); });
}

} // namespace bl
#endif
