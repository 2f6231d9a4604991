/* GESV of 17 to 32 rows in a sheet. Instantiated by tiny_kernels.cuh. */
#ifndef BL_TINY_SHEET_SOLVE_CUH
#define BL_TINY_SHEET_SOLVE_CUH

#include "tiny_rows_solve.cuh"
#include "tiny_sheet.cuh"

namespace bl
{

/* GESV. As tiny_sheet_factor; the first right-hand side is a column of the matrix. */
template <class T, int N, int L, int BLOCKS, bool GROUPED>
__global__ void BL_TINY_BOUNDS(1, BLOCKS)
    tiny_sheet_gesv(const __grid_constant__ TinyArguments g)
{
    const Group<L> group;
    const int64_t number = group_number<L>();
    const auto sheet = own_sheet<T, N, L, true>(group);
    constexpr int R = sheet.SLOTS;
    const TinyProblem<T> p(g, number);
    const int n = p.n, steps = g.items ? N : g.n;
    T *const sides = (T *)tiny_operand(g.b, p.item, sizeof(T));
    assume_global(sides);
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        const int row = s * L + group.row;
        if (row < N)
            sheet.row(row)[N] = row < n && g.nrhs > 0 ? sides[row] : from_real<T>(0);
    }
    if (is_whole(p.a))
        load_sheet<true>(group, p, steps, sheet);
    else
        load_sheet<false>(group, p, steps, sheet);
    __syncwarp();
    const int info = eliminate_sheet(group, n, n, steps, steps, sheet);
    const bool finite = group.ballot(!sheet_finite(group, n, n, sheet)) == 0;
    const bool mine = p.there && finite;
    if (mine)
        store_numbers(group, g, p, info, sheet);
    store_sheet<GROUPED>(group, g, p, mine, sheet);
    int at[R];
    T b[R];
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        const int row = s * L + group.row;
        at[s] = (row < n ? row : 0) * sheet.PITCH;
        b[s] = sheet.p[at[s] + N];
    }
    for (int64_t column = 0; column < g.nrhs; column++) {
        if (column > 0) {
            int source[R];
            find_sources(group, n, sheet, source);
            BL_UNROLL
            for (int s = 0; s < R; s++)
                b[s] = s * L + group.row < n ? sides[source[s] + column * g.b.ld]
                                             : from_real<T>(0);
            solve_lower(group, sheet, at, steps, b);
        }
        const bool good = solve_upper(group, sheet, at, n, steps, b);
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
