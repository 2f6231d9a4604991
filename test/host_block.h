/* A thread block on the host: the warps of host_warp.h, which meet as a block or at
 * numbered barriers.
 *
 * host_mid_cholesky.cc and host_large_cholesky.cc include it before the kernels' headers.
 */
#ifndef HOST_BLOCK_H
#define HOST_BLOCK_H

#include "host_warp.h"
#include <math.h>
#include <stdint.h>

#define BL_HOST_BLOCK

namespace host_warp
{

/* Of a block; number 0 is the one at which all of it meets. */
inline Barrier numbered[36][16];

inline void arrive_at(int number, int expected)
{
    arrive(numbered[current / threads][number], expected, "a barrier of the block");
}

inline void meet_at(int number, int expected)
{
    wait(numbered[current / threads][number], expected, "a barrier of the block");
}

inline void meet_block()
{
    meet_at(0, threads);
}

/* Single precision's units cut a sum off, where those of double precision round it. */
inline double as_units_do(double sum, double)
{
    return sum;
}

inline float as_units_do(double sum, float)
{
    const float rounded = float(sum);
    return fabs(double(rounded)) > fabs(sum) ? nextafterf(rounded, 0) : rounded;
}

/* What a warp's matrix unit does: c += a b, spread over the lanes as the kernels say. */
template <class R>
void multiply_tile(R (&c)[4], const R (&a)[4], R b0, R b1)
{
    static R left[MOST][4], right[MOST][2];
    for (int e = 0; e < 4; e++)
        left[current][e] = a[e];
    right[current][0] = b0;
    right[current][1] = b1;
    wait_for_warp("a product");
    const int first = current / SIZE * SIZE, g = current % SIZE / 4, t = current % 4;
    for (int e = 0; e < 4; e++) {
        double sum = c[e];
        for (int k = 0; k < 8; k++)
            sum += double(left[first + g * 4 + k % 4][e / 2 + k / 4 * 2]) *
                   double(right[first + (2 * t + e % 2) * 4 + k % 4][k / 4]);
        c[e] = as_units_do(sum, R());
    }
    wait_for_warp("a product's end");
}

/* To 11 bits: by cutting off, and to the nearest. */
inline float cut(float x, uint32_t add = 0)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + add) & ~0x1fffu;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

inline float shortened(float x)
{
    return cut(x, 0x1000);
}

inline void meet_warp()
{
    meet();
}

} // namespace host_warp
#endif
