/* A thread block on the host: the warps of host_warp.h, which meet as a block or at
 * numbered barriers.
 *
 * host_mid_cholesky.cc and host_large_cholesky.cc include it before the kernels' headers.
 */
#ifndef HOST_BLOCK_H
#define HOST_BLOCK_H

#include "host_warp.h"

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

inline void meet_warp()
{
    meet();
}

} // namespace host_warp
#endif
