/* The size classes of the tiny kernels and how many warps run them: the one table that a
 * tuning run (bench/batched) changes.
 *
 * Included by tiny_s.cu, tiny_d.cu, tiny_c.cu and tiny_z.cu, which instantiate all
 * kernels of a precision each, so that they compile side by side.
 */
#ifndef BL_TINY_KERNELS_CUH
#define BL_TINY_KERNELS_CUH

#include "tiny_det.cuh"
#include "tiny_inverse.cuh"
#include "tiny_solve.cuh"

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

#define BL_TINY(kernel, n, beside, ...)                                                  \
    {                                                                                    \
        (const void *)kernel<T, n, tiny_warps(n), blocks_for<T, n, beside> __VA_ARGS__>, \
            32 * tiny_warps(n), tiny_warps(n) * 32 / lanes_for(n)                        \
    }

/* A class every four columns for what is called often, ... */
#define BL_TINY_FINE(kernel, beside, ...)                                                \
    {                                                                                    \
        static const TinyKernel fine[] = {BL_TINY(kernel, 4, beside, __VA_ARGS__),       \
                                          BL_TINY(kernel, 8, beside, __VA_ARGS__),       \
                                          BL_TINY(kernel, 12, beside, __VA_ARGS__),      \
                                          BL_TINY(kernel, 16, beside, __VA_ARGS__),      \
                                          BL_TINY(kernel, 20, beside, __VA_ARGS__),      \
                                          BL_TINY(kernel, 24, beside, __VA_ARGS__),      \
                                          BL_TINY(kernel, 28, beside, __VA_ARGS__),      \
                                          BL_TINY(kernel, 32, beside, __VA_ARGS__)};     \
        return fine[size];                                                               \
    }
/* ... and one for each number of lanes for the rest. */
#define BL_TINY_COARSE(kernel, beside, ...)                                              \
    {                                                                                    \
        static const TinyKernel coarse[] = {BL_TINY(kernel, 8, beside, __VA_ARGS__),     \
                                            BL_TINY(kernel, 16, beside, __VA_ARGS__),    \
                                            BL_TINY(kernel, 32, beside, __VA_ARGS__)};   \
        return coarse[size < 2 ? 0 : size < 4 ? 1 : 2];                                  \
    }

template <class T>
TinyKernel tiny_kernel(enum bl_routine_id routine, int size)
{
    switch (routine) {
    case BL_GETRF:
        BL_TINY_FINE(tiny_factor, BESIDE_FACTOR, , LARGEST)
    case BL_GESV:
        BL_TINY_FINE(tiny_gesv, BESIDE_SOLVE)
    case BL_GETRS:
        BL_TINY_FINE(tiny_getrs, BESIDE_SOLVE)
    case BL_GEINV:
        BL_TINY_FINE(tiny_geinv, BESIDE_INVERSE)
    case BL_GETRI:
    case BL_GETRI_OOP:
        BL_TINY_FINE(tiny_getri, BESIDE_INVERSE)
    case BL_GETRFSP:
        BL_TINY_COARSE(tiny_factor, BESIDE_FACTOR, , SCALED)
    case BL_GETRFNP:
        BL_TINY_COARSE(tiny_factor, BESIDE_FACTOR, , NEXT)
    default: /* GEDET */
        BL_TINY_COARSE(tiny_gedet, BESIDE_INVERSE)
    }
}

} // namespace bl
#endif
