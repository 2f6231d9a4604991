/* The size classes of the tiny LU kernels, and which of the kinds runs a class,
 * with how many warps: chosen by bench/tiny_windows.
 *
 * Included by tiny_s.cu, tiny_d.cu, tiny_c.cu and tiny_z.cu, which instantiate all
 * kernels of a precision each, so that they compile side by side.
 */
#ifndef BL_TINY_KERNELS_CUH
#define BL_TINY_KERNELS_CUH

#include "tiny_bounds.cuh"
#include "tiny_det.cuh"
#include "tiny_head_solve.cuh"
#include "tiny_rows_inverse.cuh"
#include "tiny_rows_solve.cuh"
#include "tiny_sheet_solve.cuh"

namespace bl
{

/* Warps a block. The larger sizes are best off without neighbours to start and end with.
 */
constexpr int tiny_warps(int n)
{
    return n <= 16 ? 4 : 1;
}

/* Blocks that a multiprocessor is to hold: as many as there are registers for the row of
 * a lane and `beside` others. Warps come in fours, one to each of its schedulers. */
constexpr int tiny_blocks(int n, int words, int beside)
{
    int registers = ((n + 8) * words + beside + 7) / 8 * 8;
    int warps = 65536 / 32 / registers;
    if (tiny_warps(n) == 1)
        warps = (warps + 3) / 4 * 4;
    int blocks = warps / tiny_warps(n);
    return blocks > 32 / tiny_warps(n) ? 32 / tiny_warps(n) : blocks;
}

/* Registers beside the row, by what has been found to compile without spilling. */
constexpr int BESIDE_FACTOR = 32, BESIDE_SOLVE = 56, BESIDE_INVERSE = 40;

template <class T, int N, int BESIDE>
constexpr int blocks_for = tiny_blocks(N, int(sizeof(T)) / 4, BESIDE);

/* Where several rows a lane are faster: the class, the lanes that share a matrix, the
 * blocks of one warp that a multiprocessor is to hold (0: as many as the compiler thinks
 * best), and how: with all columns in registers or four at a time (tiny_sheet.cuh), where
 * memory is written by groups or by whole columns; beyond 32, where a row a lane is not
 * enough, also by a head (tiny_head.cuh). Chosen by bench/tiny_windows on an H200. */
enum RowsHow { ALL_COLUMNS, SHEET, SHEET_BY_COLUMNS, HEAD };
struct RowsChoice {
    enum bl_routine_id routine;
    enum bl_precision precision;
    int n, lanes, blocks;
    RowsHow how = ALL_COLUMNS;
};
constexpr RowsChoice rows_choices[] = {
    {BL_GETRF, BL_S, 12, 4, 16},
    {BL_GETRF, BL_S, 20, 8, 20, SHEET},
    {BL_GETRF, BL_S, 24, 8, 18, SHEET_BY_COLUMNS},
    {BL_GETRF, BL_S, 28, 8, 14, SHEET},
    {BL_GETRF, BL_S, 32, 16, 18, SHEET},
    {BL_GETRF, BL_S, 36, 32, 28, HEAD},
    {BL_GETRF, BL_S, 40, 32, 28, HEAD},
    {BL_GETRF, BL_S, 44, 32, 28, HEAD},
    {BL_GETRF, BL_S, 48, 32, 24, HEAD},
    {BL_GETRF, BL_D, 20, 8, 14, SHEET},
    {BL_GETRF, BL_D, 36, 32, 20, HEAD},
    {BL_GETRF, BL_D, 40, 32, 20, HEAD},
    {BL_GETRF, BL_D, 44, 32, 16, HEAD},
    {BL_GETRF, BL_D, 48, 32, 12, HEAD},
    {BL_GETRF, BL_C, 12, 4, 12},
    {BL_GETRF, BL_C, 16, 8, 18, SHEET_BY_COLUMNS},
    {BL_GETRF, BL_C, 20, 8, 14, SHEET},
    {BL_GETRF, BL_C, 24, 8, 10, SHEET},
    {BL_GETRF, BL_C, 28, 8, 8, SHEET},
    {BL_GETRF, BL_C, 32, 16, 12, SHEET},
    {BL_GETRF, BL_C, 36, 32, 16, HEAD},
    {BL_GETRF, BL_C, 40, 32, 16, HEAD},
    {BL_GETRF, BL_C, 44, 32, 16, HEAD},
    {BL_GETRF, BL_C, 48, 32, 12, HEAD},
    {BL_GETRF, BL_Z, 12, 4, 8},
    {BL_GETRF, BL_Z, 16, 16, 18, SHEET},
    {BL_GETRF, BL_Z, 20, 16, 15, SHEET},
    {BL_GETRF, BL_Z, 24, 16, 11, SHEET},
    {BL_GETRF, BL_Z, 28, 16, 8, SHEET},
    {BL_GETRF, BL_Z, 32, 16, 6, SHEET},
    {BL_GETRFSP, BL_S, 20, 8, 20, SHEET},
    {BL_GETRFSP, BL_S, 24, 8, 18, SHEET_BY_COLUMNS},
    {BL_GETRFSP, BL_S, 28, 8, 12, SHEET},
    {BL_GETRFSP, BL_S, 36, 32, 28, HEAD},
    {BL_GETRFSP, BL_S, 40, 32, 28, HEAD},
    {BL_GETRFSP, BL_S, 44, 32, 28, HEAD},
    {BL_GETRFSP, BL_S, 48, 32, 24, HEAD},
    {BL_GETRFSP, BL_D, 20, 8, 14, SHEET},
    {BL_GETRFSP, BL_D, 24, 8, 10, SHEET},
    {BL_GETRFSP, BL_D, 28, 8, 7, SHEET},
    {BL_GETRFSP, BL_D, 36, 32, 20, HEAD},
    {BL_GETRFSP, BL_D, 40, 32, 20, HEAD},
    {BL_GETRFSP, BL_D, 44, 32, 16, HEAD},
    {BL_GETRFSP, BL_D, 48, 32, 12, HEAD},
    {BL_GETRFSP, BL_C, 20, 8, 14, SHEET},
    {BL_GETRFSP, BL_C, 24, 8, 10, SHEET},
    {BL_GETRFSP, BL_C, 28, 8, 8, SHEET},
    {BL_GETRFSP, BL_C, 36, 32, 16, HEAD},
    {BL_GETRFSP, BL_C, 40, 32, 16, HEAD},
    {BL_GETRFSP, BL_C, 44, 32, 16, HEAD},
    {BL_GETRFSP, BL_C, 48, 32, 12, HEAD},
    {BL_GETRFSP, BL_Z, 20, 16, 15, SHEET},
    {BL_GETRFSP, BL_Z, 24, 16, 11, SHEET},
    {BL_GETRFSP, BL_Z, 28, 16, 8, SHEET},
    {BL_GESV, BL_S, 12, 4, 20},
    {BL_GESV, BL_S, 16, 8, 24},
    {BL_GESV, BL_S, 20, 8, 20, SHEET},
    {BL_GESV, BL_S, 24, 8, 16},
    {BL_GESV, BL_S, 32, 16, 18, SHEET},
    {BL_GESV, BL_S, 36, 32, 28, HEAD},
    {BL_GESV, BL_S, 40, 32, 28, HEAD},
    {BL_GESV, BL_S, 44, 32, 28, HEAD},
    {BL_GESV, BL_S, 48, 32, 24, HEAD},
    {BL_GESV, BL_D, 12, 4, 12},
    {BL_GESV, BL_D, 16, 8, 16},
    {BL_GESV, BL_D, 20, 8, 14, SHEET},
    {BL_GESV, BL_D, 24, 8, 10, SHEET},
    {BL_GESV, BL_D, 28, 8, 7, SHEET},
    {BL_GESV, BL_D, 36, 32, 20, HEAD},
    {BL_GESV, BL_D, 40, 32, 20, HEAD},
    {BL_GESV, BL_D, 44, 32, 16, HEAD},
    {BL_GESV, BL_C, 8, 4, 20},
    {BL_GESV, BL_C, 12, 4, 12},
    {BL_GESV, BL_C, 16, 8, 12},
    {BL_GESV, BL_C, 20, 8, 14, SHEET},
    {BL_GESV, BL_C, 24, 8, 10, SHEET},
    {BL_GESV, BL_C, 28, 8, 8, SHEET},
    {BL_GESV, BL_C, 32, 16, 12, SHEET},
    {BL_GESV, BL_C, 36, 32, 16, HEAD},
    {BL_GESV, BL_C, 40, 32, 16, HEAD},
    {BL_GESV, BL_C, 44, 32, 16, HEAD},
    {BL_GESV, BL_C, 48, 32, 12, HEAD},
    {BL_GESV, BL_Z, 12, 4, 8},
    {BL_GESV, BL_Z, 16, 8, 8},
    {BL_GESV, BL_Z, 20, 16, 15, SHEET},
    {BL_GESV, BL_Z, 24, 16, 11, SHEET},
    {BL_GESV, BL_Z, 28, 16, 8, SHEET},
    {BL_GESV, BL_Z, 32, 16, 6, SHEET},
    {BL_GEINV, BL_S, 12, 4, 16},
    {BL_GEINV, BL_S, 16, 8, 24},
    {BL_GEINV, BL_S, 20, 8, 0},
    {BL_GEINV, BL_S, 24, 8, 0},
    {BL_GEINV, BL_S, 28, 16, 0},
    {BL_GEINV, BL_S, 32, 16, 0},
    {BL_GEINV, BL_D, 12, 4, 12},
    {BL_GEINV, BL_D, 16, 8, 16},
    {BL_GEINV, BL_D, 20, 8, 12},
    {BL_GEINV, BL_D, 24, 8, 8},
    {BL_GEINV, BL_D, 32, 16, 8},
    {BL_GEINV, BL_C, 8, 4, 20},
    {BL_GEINV, BL_C, 12, 4, 12},
    {BL_GEINV, BL_C, 16, 8, 16},
    {BL_GEINV, BL_C, 20, 8, 8},
    {BL_GEINV, BL_Z, 8, 4, 16},
    {BL_GEINV, BL_Z, 12, 4, 8},
    {BL_GEINV, BL_Z, 16, 8, 8},
};

template <class T>
constexpr RowsChoice rows_choice(enum bl_routine_id routine, int n)
{
    for (const RowsChoice &choice : rows_choices)
        if (choice.routine == routine && choice.precision == precision_of<T>() &&
            choice.n == n)
            return choice;
    return {routine, precision_of<T>(), n, 0, 0, ALL_COLUMNS};
}

#define BL_TINY(routine, kernel, n, beside, ...)                                         \
    {                                                                                    \
        (const void *)kernel<T, n, tiny_warps(n),                                        \
                             bound_for<T>(routine, n, tiny_warps(n),                     \
                                          blocks_for<T, n, beside>) __VA_ARGS__>,        \
            32 * tiny_warps(n), tiny_warps(n) * 32 / lanes_for(n)                        \
    }

/* A kernel of a routine that has both kinds: a row a lane, several rows a lane. */
#define BL_TINY_EITHER(name, routine, row_kernel, rows_kernel, beside, ...)              \
    template <class T, int N>                                                            \
    TinyKernel name()                                                                    \
    {                                                                                    \
        constexpr RowsChoice choice = rows_choice<T>(routine, N);                        \
        if constexpr (choice.lanes > 0)                                                  \
            return {(const void *)rows_kernel<T, N, choice.lanes, choice.blocks>, 32,    \
                    32 / choice.lanes};                                                  \
        else                                                                             \
            return BL_TINY(routine, row_kernel, N, beside, __VA_ARGS__);                 \
    }
BL_TINY_EITHER(getrf_no_sheet, BL_GETRF, tiny_factor, tiny_rows_factor, BESIDE_FACTOR, ,
               LARGEST)
BL_TINY_EITHER(gesv_no_sheet, BL_GESV, tiny_gesv, tiny_rows_gesv, BESIDE_SOLVE)
BL_TINY_EITHER(geinv_kernel, BL_GEINV, tiny_geinv, tiny_rows_geinv, BESIDE_INVERSE)
#undef BL_TINY_EITHER

template <class T, int N>
TinyKernel getrfsp_no_sheet()
{
    return BL_TINY(BL_GETRFSP, tiny_factor, N, BESIDE_FACTOR, , SCALED);
}

/* The same with the third kind. */
#define BL_TINY_SHEET(name, routine, sheet_kernel, otherwise, ...)                       \
    template <class T, int N>                                                            \
    TinyKernel name()                                                                    \
    {                                                                                    \
        constexpr RowsChoice choice = rows_choice<T>(routine, N);                        \
        if constexpr (choice.how == ALL_COLUMNS)                                         \
            return otherwise<T, N>();                                                    \
        else                                                                             \
            return {(const void *)sheet_kernel<T, N, choice.lanes, choice.blocks,        \
                                               choice.how == SHEET __VA_ARGS__>,         \
                    32, 32 / choice.lanes};                                              \
    }
BL_TINY_SHEET(getrf_no_head, BL_GETRF, tiny_sheet_factor, getrf_no_sheet)
BL_TINY_SHEET(gesv_no_head, BL_GESV, tiny_sheet_gesv, gesv_no_sheet)
BL_TINY_SHEET(getrfsp_no_head, BL_GETRFSP, tiny_sheet_factor, getrfsp_no_sheet, , SCALED)
#undef BL_TINY_SHEET

/* And with the fourth, which alone goes beyond 32. */
#define BL_TINY_HEAD(name, routine, head_kernel, otherwise, ...)                         \
    template <class T, int N>                                                            \
    TinyKernel name()                                                                    \
    {                                                                                    \
        constexpr RowsChoice choice = rows_choice<T>(routine, N);                        \
        if constexpr (choice.how == HEAD)                                                \
            return {(const void *)head_kernel<T, N, choice.blocks __VA_ARGS__>, 32, 1};  \
        else if constexpr (N > 32) /* the kernels of mid.cu are ahead */                 \
            return {};                                                                   \
        else                                                                             \
            return otherwise<T, N>();                                                    \
    }
BL_TINY_HEAD(getrf_kernel, BL_GETRF, tiny_head_factor, getrf_no_head)
BL_TINY_HEAD(gesv_kernel, BL_GESV, tiny_head_gesv, gesv_no_head)
BL_TINY_HEAD(getrfsp_kernel, BL_GETRFSP, tiny_head_factor, getrfsp_no_head, , SCALED)

/* GEDET is GETRF but for its end, and so are its choices. */
template <class T, int N>
TinyKernel gedet_no_head()
{
    constexpr RowsChoice choice = rows_choice<T>(BL_GETRF, N);
    if constexpr (choice.lanes == 0)
        return BL_TINY(BL_GEDET, tiny_gedet, N, BESIDE_FACTOR);
    else if constexpr (choice.how == ALL_COLUMNS)
        return {(const void *)tiny_rows_gedet<T, N, choice.lanes, choice.blocks>, 32,
                32 / choice.lanes};
    else
        return {(const void *)tiny_sheet_gedet<T, N, choice.lanes, choice.blocks>, 32,
                32 / choice.lanes};
}

BL_TINY_HEAD(gedet_kernel, BL_GETRF, tiny_head_gedet, gedet_no_head)
#undef BL_TINY_HEAD

/* A class every four columns for what is called often, ... */
#define BL_TINY_CLASSES(of)                                                              \
    {                                                                                    \
        static const TinyKernel classes[] = {of(4),  of(8),  of(12), of(16),             \
                                             of(20), of(24), of(28), of(32)};            \
        return classes[size];                                                            \
    }
/* ... further ones for what has heads, ... */
#define BL_TINY_MORE_CLASSES(of)                                                         \
    {                                                                                    \
        static const TinyKernel more[] = {of(36), of(40), of(44), of(48)};               \
        if (size >= 8)                                                                   \
            return more[size - 8];                                                       \
    }
#define BL_TINY_GETRF(n) getrf_kernel<T, n>()
#define BL_TINY_GESV(n) gesv_kernel<T, n>()
#define BL_TINY_GEDET(n) gedet_kernel<T, n>()
#define BL_TINY_GETRFSP(n) getrfsp_kernel<T, n>()
#define BL_TINY_GEINV(n) geinv_kernel<T, n>()
#define BL_TINY_GETRS(n) BL_TINY(BL_GETRS, tiny_getrs, n, BESIDE_SOLVE)
#define BL_TINY_GETRI(n) BL_TINY(BL_GETRI, tiny_getri, n, BESIDE_INVERSE)
/* ... and one for each number of lanes for GETRFNP. */
#define BL_TINY_COARSE(routine, kernel, beside, ...)                                     \
    {                                                                                    \
        static const TinyKernel coarse[] = {                                             \
            BL_TINY(routine, kernel, 8, beside, __VA_ARGS__),                            \
            BL_TINY(routine, kernel, 16, beside, __VA_ARGS__),                           \
            BL_TINY(routine, kernel, 32, beside, __VA_ARGS__)};                          \
        return coarse[size < 2 ? 0 : size < 4 ? 1 : 2];                                  \
    }

template <class T>
TinyKernel tiny_kernel(enum bl_routine_id routine, int size)
{
    switch (routine) {
    case BL_GETRF:
        BL_TINY_MORE_CLASSES(BL_TINY_GETRF)
        BL_TINY_CLASSES(BL_TINY_GETRF)
    case BL_GESV:
        BL_TINY_MORE_CLASSES(BL_TINY_GESV)
        BL_TINY_CLASSES(BL_TINY_GESV)
    case BL_GETRS:
        BL_TINY_CLASSES(BL_TINY_GETRS)
    case BL_GEINV:
        BL_TINY_CLASSES(BL_TINY_GEINV)
    case BL_GETRI:
    case BL_GETRI_OOP:
        BL_TINY_CLASSES(BL_TINY_GETRI)
    case BL_GETRFSP:
        BL_TINY_MORE_CLASSES(BL_TINY_GETRFSP)
        BL_TINY_CLASSES(BL_TINY_GETRFSP)
    case BL_GETRFNP:
        BL_TINY_COARSE(BL_GETRFNP, tiny_factor, BESIDE_FACTOR, , NEXT)
    default: /* GEDET */
        BL_TINY_MORE_CLASSES(BL_TINY_GEDET)
        BL_TINY_CLASSES(BL_TINY_GEDET)
    }
}

} // namespace bl
#endif
