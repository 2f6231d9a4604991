/* Products of tiles of 8 x 8 on the matrix units of sm_90 and up, double.
 *
 * Included by mid_potri.cuh. All lanes of a warp call them
 * together.
 */
#ifndef BL_MID_TILE_CUH
#define BL_MID_TILE_CUH

#include "scalar.cuh"

namespace bl
{

/* c += a b; a is 16 x 8, b 8 x 8. With g = lane / 4 and t = lane % 4 a lane has of a rows
 * g and g + 8 of column t, then of column t + 4; rows t and t + 4 of b's column g; and
 * columns 2 t and 2 t + 1 of c's row g, then of row g + 8. */
BL_HD void multiply_tile(double (&c)[4], const double (&a)[4], double b0, double b1)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b0), "d"(b1));
#elif defined BL_HOST_BLOCK
    host_warp::multiply_tile(c, a, b0, b1);
#else
    (void)c, (void)a, (void)b0, (void)b1;
#endif
}

constexpr int TILE_SIDE = 8, TILE_SIZE = TILE_SIDE * TILE_SIDE;

} // namespace bl
#endif
