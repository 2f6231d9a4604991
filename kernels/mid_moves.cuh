/* The moves of rows that the interchanges of a panel come to.
 *
 * Written by the kernels that factor panels, read by those that carry them out in the
 * columns beside them.
 */
#ifndef BL_MID_MOVES_CUH
#define BL_MID_MOVES_CUH

#include "mid.h"
#include "lu.cuh"

namespace bl
{

/* The moves that the interchanges of a panel come to; how many. One thread. */
static BL_CALL int moves_of(const Pivots &pivots, int width, short *from, short *to)
{
    int touched = 0;
    for (int k = 0; k < width; k++) {
        to[touched] = from[touched] = short(k);
        touched++;
    }
    for (int k = 0; k < width; k++) {
        int p = int(pivots.from(k).get(0)) + k, q = -1;
        for (int t = 0; t < touched; t++)
            if (to[t] == p)
                q = t;
        if (q < 0) {
            q = touched++;
            to[q] = from[q] = short(p);
        }
        short x = from[k];
        from[k] = from[q];
        from[q] = x;
    }
    return touched;
}

/* What became of the m rows of a panel with `width` pivots. `rest`: the interchanges were
 * not all counted here. The block. */
template <class Shared>
__device__ __noinline__ void write_moves(Shared &s, Moves &moves, const Pivots &pivots,
                                         int m, int width, bool rest)
{
    __syncthreads();
    if (rest) {
        if (threadIdx.x == 0)
            moves.count = moves_of(pivots, width, moves.from, moves.to);
        return;
    }
    if (threadIdx.x == 0)
        s.interchanges = width;
    __syncthreads();
    for (int i = threadIdx.x; i < m; i += blockDim.x)
        if (i < width || s.at[i] != i) {
            const int k = i < width ? i : atomicAdd(&s.interchanges, 1);
            moves.from[k] = short(s.at[i]);
            moves.to[k] = short(i);
        }
    __syncthreads();
    if (threadIdx.x == 0)
        moves.count = s.interchanges;
}

} // namespace bl
#endif
