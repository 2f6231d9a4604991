/* How many warps a multiprocessor is to hold of those tiny kernels of a row a lane, and
 * of Cholesky's, that are faster so: most would else spill registers, by `ptxas -v` for
 * sm_90.
 *
 * Used by tiny_kernels.cuh (LU) and tiny_cholesky_kernel.cuh. Without a line here a
 * kernel has the bound that its family gives it.
 */
#ifndef BL_TINY_BOUNDS_CUH
#define BL_TINY_BOUNDS_CUH

#include "../src/engine.h"
#include "scalar.cuh"

namespace bl
{

template <class T>
constexpr enum bl_precision precision_of()
{
    constexpr bool wide = sizeof(Real<T>) == 8;
    return Traits<T>::complex ? (wide ? BL_Z : BL_C) : (wide ? BL_D : BL_S);
}

/* LU, by classes: four warps fewer than tiny_blocks() says, one for each scheduler, since
 * only then are there more registers; or no bound, where the compiler's own choice spills
 * nothing and has more warps than four fewer. Unbound, others spill more than they did.
 */
enum Bound { FOUR_FEWER, NO_BOUND };
struct BoundChoice {
    enum bl_routine_id routine;
    enum bl_precision precision;
    Bound bound;
    int classes[4];
};
constexpr BoundChoice bound_choices[] = {
    {BL_GESV, BL_D, NO_BOUND, {32}},    {BL_GETRS, BL_S, FOUR_FEWER, {32}},
    {BL_GETRS, BL_D, FOUR_FEWER, {24}}, {BL_GETRI, BL_C, FOUR_FEWER, {20, 28, 32}},
    {BL_GETRI, BL_Z, FOUR_FEWER, {32}}, {BL_GEINV, BL_C, FOUR_FEWER, {28, 32}},
    {BL_GEINV, BL_Z, NO_BOUND, {24}},   {BL_GEINV, BL_Z, FOUR_FEWER, {32}},
};

/* What a kernel of blocks of so many warps is compiled for that would be for `blocks` of
 * them; 0 is no bound. */
template <class T>
constexpr int bound_for(enum bl_routine_id routine, int n, int warps, int blocks)
{
    for (const BoundChoice &choice : bound_choices)
        for (int of : choice.classes)
            if (choice.routine == routine && choice.precision == precision_of<T>() &&
                of == n)
                return choice.bound == NO_BOUND ? 0 : blocks - 4 / warps;
    return blocks;
}

/* At most so many does a multiprocessor take. */
#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ == 800 ||                                    \
    (__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200)
constexpr int MOST_WARPS = 64;
#elif __CUDA_ARCH__ >= 800
constexpr int MOST_WARPS = 48;
#else
constexpr int MOST_WARPS = 32;
#endif

/* Cholesky, which else has no bound: the warps. */
struct WarpsChoice {
    enum bl_routine_id routine;
    enum bl_precision precision;
    char uplo;
    int n, warps;
};
constexpr WarpsChoice warps_choices[] = {
    {BL_POTRF, BL_S, 'L', 4, 64},  {BL_POTRF, BL_S, 'U', 4, 40},
    {BL_POTRF, BL_S, 'U', 8, 36},  {BL_POTRF, BL_S, 'U', 16, 28},
    {BL_POTRF, BL_D, 'U', 4, 32},  {BL_POTRF, BL_D, 'U', 8, 20},
    {BL_POTRF, BL_C, 'U', 8, 32},  {BL_POTRF, BL_Z, 'L', 4, 28},
    {BL_POTRF, BL_Z, 'U', 16, 12}, {BL_POTRF, BL_Z, 'U', 32, 12},
    {BL_POSV, BL_S, 'U', 8, 36},   {BL_POSV, BL_C, 'L', 8, 28},
    {BL_POSV, BL_C, 'U', 16, 12},  {BL_POSV, BL_Z, 'U', 16, 12},
    {BL_POSV, BL_Z, 'U', 32, 12},  {BL_POTRI, BL_Z, 'L', 8, 24}, /* both, one kernel */
};

template <class T>
constexpr int warps_for(enum bl_routine_id routine, int n, bool upper)
{
    for (const WarpsChoice &choice : warps_choices)
        if (choice.routine == routine && choice.precision == precision_of<T>() &&
            choice.uplo == (upper ? 'U' : 'L') && choice.n == n)
            return choice.warps < MOST_WARPS ? choice.warps : MOST_WARPS;
    return 0;
}

} // namespace bl
#endif
