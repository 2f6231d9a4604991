/* GEINV with several rows a lane. Instantiated by tiny_kernels.cuh. */
#ifndef BL_TINY_ROWS_INVERSE_CUH
#define BL_TINY_ROWS_INVERSE_CUH

#include "tiny_inverse.cuh"
#include "tiny_rows_lu.cuh"

namespace bl
{

/* z[s] := row s * L + lane of (L U)^-1. The units of a row that all lanes of a group read
 * at once serve all of a lane's rows. */
template <int R, int L, class T, int N>
__device__ __forceinline__ void solve_rows(const Group<L> &group,
                                           const TinyBoard<T, N, L> &board, int steps,
                                           T (&z)[R][N])
{
    constexpr int UNIT = board.UNIT;
    BL_UNROLL
    for (int s = 0; s < R; s++)
        BL_UNROLL
    for (int j = 0; j < N; j++)
        z[s][j] = from_real<T>(j == s * L + group.row ? 1 : 0);
    BL_UNROLL
    for (int i = 0; i < N; i++) {
        if (i >= steps)
            continue;
        const int at = board.order[i] + board.start(i);
        BL_UNROLL
        for (int j = i; j < N; j += UNIT) {
            const TinyUnit<T> u = board.unit(at + j - i);
            BL_UNROLL
            for (int t = 0; t < UNIT; t++)
                BL_UNROLL
            for (int s = 0; s < R; s++) {
                if (s * L > i || j + t >= N) /* the row's elements are still 0 */
                    continue;
                if (j + t == i)
                    z[s][i] = mul(z[s][i], u.x[t]);
                else
                    z[s][j + t] = fused(z[s][j + t], z[s][i], u.x[t]);
            }
        }
    }
    BL_UNROLL
    for (int i = N - 1; i > 0; i--) {
        if (i >= steps)
            continue;
        const int at = board.order[i];
        BL_UNROLL
        for (int j = 0; j < i; j += UNIT) {
            const TinyUnit<T> u = board.unit(at + j);
            BL_UNROLL
            for (int t = 0; t < UNIT; t++)
                BL_UNROLL
            for (int s = 0; s < R; s++)
                if (j + t < i)
                    z[s][j + t] = fused(z[s][j + t], z[s][i], u.x[t]);
        }
    }
}

/* GEINV. As tiny_rows_factor, then a lane owns the same rows of the inverse. Singular:
 * the factors are left in X. */
template <class T, int N, int L, int BLOCKS>
__global__ void BL_TINY_BOUNDS(1, BLOCKS)
    tiny_rows_geinv(const __grid_constant__ TinyArguments g)
{
    constexpr int R = Rows<T, N, L>::R;
    const Group<L> group;
    const int64_t number = group_number<L>();
    const TinyBoard<T, N, L> board = rows_board<T, N, L, false>(group);
    const TinyProblem<T> p(g, number);
    const int n = p.n, steps = g.items ? N : g.n;
    T *const x = (T *)tiny_operand(g.x, p.item, sizeof(T));
    const int info =
        factor_rows<false, false>(group, g, p, n, steps, (const T *)nullptr, board);
    const bool finite = group.ballot(!factors_finite(group, n, n, board)) == 0;
    const bool singular = info != 0;
    store_factors(group, g, number, p.there && finite && singular, board,
                  [&](const TinyProblem<T> &q, int64_t &ld) {
                      ld = q.ldx;
                      return (T *)tiny_operand(g.x, q.item, sizeof(T));
                  });
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        const int row = s * L + group.row, base = group.first / L * board.SIZE;
        if (row < n) {
            const int at = board.order[row];
            T &d = board.p[at + board.start(row)];
            d = reciprocal(d);
            board.pivot[row] = board.row(at); /* which column that becomes */
        } else if (row < steps) {             /* the warp takes more steps: zeros */
            board.order[row] = base + row * board.PITCH;
            BL_UNROLL
            for (int j = 0; j < board.PITCH; j++)
                board.p[base + row * board.PITCH + j] = from_real<T>(0);
        }
    }
    __syncwarp();
    T z[R][N];
    solve_rows(group, board, steps, z);
    bool good = true;
    BL_UNROLL
    for (int s = 0; s < R; s++)
        good = good && (s * L + group.row >= n || all_finite(z[s]));
    const bool broken = group.ballot(!good) != 0;
    const bool retry = p.there && (!finite || (!singular && broken));
    const bool mine = p.there && !retry, whole = is_whole(x);
    assume_global(x);
    BL_UNROLL
    for (int c = 0; c < N; c++) {
        if (c >= n || !mine || singular)
            break;
        T *to = x + board.pivot[c] * p.ldx + group.row;
        BL_UNROLL
        for (int s = 0; s < R; s++)
            if (s * L + group.row < n) {
                if (whole)
                    put(to + s * L, z[s][c]);
                else
                    to[s * L] = z[s][c];
            }
    }
    if (mine && group.row == 0)
        put_integer(g.info, p.item, g.int_size, 0, info);
    for_groups<L>(retry, number, [&](int64_t i) { geinv_again<T>(g, i); });
}

} // namespace bl
#endif
