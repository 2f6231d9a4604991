/* Products of tiles of 8 x 8 on the matrix units of sm_90 and up, single and double.
 *
 * Included by mid_potri.cuh and mid_cholesky_fast.cuh. All lanes of a warp call them
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

/* The same in single precision by numbers of 11 bits, of which the units do not look at
 * what else there is: a number is the sum of two of them, but for a last bit or two, and
 * of the four products the smallest is left out. */
BL_HD void multiply_short(float (&c)[4], const float (&a)[4], float b0, float b1)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])),
          "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
          "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
#elif defined BL_HOST_BLOCK
    using host_warp::cut;
    host_warp::multiply_tile(c, {cut(a[0]), cut(a[1]), cut(a[2]), cut(a[3])}, cut(b0),
                             cut(b1));
#else
    (void)c, (void)a, (void)b0, (void)b1;
#endif
}

/* To the nearest of 11 bits, by two instructions where the conversion takes four. A NaN
 * may come out as a zero, but what is left of the number is a NaN then. */
BL_HD float shortened(float x)
{
#if defined __CUDA_ARCH__
    return __uint_as_float((__float_as_uint(x) + 0x1000) & ~0x1fffu);
#elif defined BL_HOST_BLOCK
    return host_warp::shortened(x);
#else
    return x;
#endif
}

BL_HD void multiply_tile(float (&c)[4], const float (&a)[4], float b0, float b1)
{
    float large[4], small[4];
    BL_UNROLL
    for (int e = 0; e < 4; e++) {
        large[e] = shortened(a[e]);
        small[e] = a[e] - large[e];
    }
    const float large0 = shortened(b0), large1 = shortened(b1);
    multiply_short(c, small, large0, large1);
    multiply_short(c, large, b0 - large0, b1 - large1);
    multiply_short(c, large, large0, large1);
}

constexpr int TILE_SIDE = 8, TILE_SIZE = TILE_SIDE * TILE_SIDE;

} // namespace bl
#endif
