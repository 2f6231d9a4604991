/* GEINV of 17 to 32 rows in a sheet. Instantiated by tiny_kernels.cuh. */
#ifndef BL_TINY_SHEET_INVERSE_CUH
#define BL_TINY_SHEET_INVERSE_CUH

#include "tiny_inverse.cuh"
#include "tiny_sheet.cuh"

namespace bl
{

/* z[s] := row s * L + lane of (L U)^-1. The units of a row that all lanes of a group read
 * at once serve all of a lane's rows. */
template <int R, int L, class T, int N, bool EXTRA>
__device__ __forceinline__ void invert_sheet(const Group<L> &group,
                                             const TinySheet<T, N, L, EXTRA> &sheet,
                                             int steps, T (&z)[R][N])
{
    constexpr int UNIT = sheet.UNIT;
    BL_UNROLL
    for (int s = 0; s < R; s++)
        BL_UNROLL
    for (int j = 0; j < N; j++)
        z[s][j] = from_real<T>(j == s * L + group.row ? 1 : 0);
    BL_UNROLL
    for (int i = 0; i < N; i++) {
        if (i >= steps)
            continue;
        BL_UNROLL
        for (int j = i / UNIT * UNIT; j < N; j += UNIT) {
            const TinyUnit<T> u = sheet.unit(sheet.row(i), j);
            BL_UNROLL
            for (int t = 0; t < UNIT; t++)
                BL_UNROLL
            for (int s = 0; s < R; s++) {
                if (s * L > i || j + t < i) /* the row's elements are still 0 */
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
        BL_UNROLL
        for (int j = 0; j < i; j += UNIT) {
            const TinyUnit<T> u = sheet.unit(sheet.row(i), j);
            BL_UNROLL
            for (int t = 0; t < UNIT; t++)
                BL_UNROLL
            for (int s = 0; s < R; s++)
                if (j + t < i)
                    z[s][j + t] = fused(z[s][j + t], z[s][i], u.x[t]);
        }
    }
}

/* GEINV. As tiny_sheet_factor, then a lane owns the same rows of the inverse. Singular:
 * the factors are left in X. */
template <class T, int N, int L, int BLOCKS, bool GROUPED>
__global__ void BL_TINY_BOUNDS(1, BLOCKS)
    tiny_sheet_geinv(const __grid_constant__ TinyArguments g)
{
    const Group<L> group;
    const int64_t number = group_number<L>();
    const auto sheet = own_sheet<T, N, L, false>(group);
    constexpr int R = sheet.SLOTS;
    const TinyProblem<T> p(g, number);
    const int n = p.n, steps = g.items ? N : g.n;
    T *const x = (T *)tiny_operand(g.x, p.item, sizeof(T));
    if (is_whole(p.a))
        load_sheet<true>(group, p, N, sheet);
    else
        load_sheet<false>(group, p, N, sheet);
    __syncwarp();
    const int info = eliminate_sheet(group, n, n, steps, steps, sheet);
    const bool finite = group.ballot(!sheet_finite(group, n, n, sheet)) == 0;
    const bool singular = info != 0;
    store_sheet<GROUPED>(group, g, p, p.there && finite && singular, sheet,
                         [&](const TinyProblem<T> &q, int64_t &ld) {
                             ld = q.ldx;
                             return (T *)tiny_operand(g.x, q.item, sizeof(T));
                         });
    int source[R];
    find_sources(group, n, sheet, source);
    __syncwarp();
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        const int row = s * L + group.row;
        if (row < n) {
            T &d = sheet.row(row)[row];
            d = reciprocal(d);
            sheet.pivot[row] = source[s]; /* which column that becomes */
        } else if (row < steps) {         /* the warp takes more steps: zeros */
            BL_UNROLL
            for (int j = 0; j < N; j++)
                sheet.row(row)[j] = from_real<T>(0);
        }
    }
    __syncwarp();
    T z[R][N];
    invert_sheet(group, sheet, steps, z);
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
        T *to = x + sheet.pivot[c] * p.ldx + group.row;
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
