/* Matrix products of a warp on the host, with the fragments of the PTX manual.
 *
 * Included by host_cuda.h.
 */
#ifndef HOST_TENSOR_H
#define HOST_TENSOR_H

#include "host_warp.h"
#include <math.h>

namespace host_cuda
{

/* mma.m16n8k8, row.col, of doubles: c += a b. Lane 4 g + t has rows g and g + 8 of a's
 * column t, then of its column t + 4; rows t and t + 4 of b's column g; columns 2 t and 2
 * t + 1 of c's row g, then of its row g + 8. */
struct Factors {
    double a[4], b[2];
};

inline void multiply_16_8_8(double (&c)[4], const Factors &own)
{
    const int turn = host_warp::show(own, "mma"), lane = host_warp::current % 32;
    const char(*const board)[host_warp::MOST_SHOWN] =
        &host_warp::board[turn][host_warp::current - lane];
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 8; k++) {
            const int column = lane % 4 * 2 + i % 2;
            Factors x, y;
            memcpy(&x, board[lane / 4 * 4 + k % 4], sizeof x);
            memcpy(&y, board[column * 4 + k % 4], sizeof y);
            c[i] = fma(x.a[k / 4 * 2 + i / 2], y.b[k / 4], c[i]);
        }
}

} // namespace host_cuda
#endif
