/* Thread blocks on the host, of the warps of host_warp.h, which meet as a block or at
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

inline Barrier numbered[MOST / SIZE][16]; /* of each block */
inline int block_threads;                 /* 0: all are one block */

inline Barrier &barrier_of_block(int number)
{
    return numbered[block_threads ? current / block_threads : 0][number];
}

/* Number 0 is the block's own. */
inline void arrive_at(int number, int expected)
{
    arrive(barrier_of_block(number), expected, "a barrier of the block");
}

inline void meet_at(int number, int expected)
{
    wait(barrier_of_block(number), expected, "a barrier of the block");
}

inline void meet_block()
{
    meet_at(0, block_threads ? block_threads : threads);
}

/* f(block, thread) for several blocks at once. */
inline void run_blocks(int blocks, int size, const std::function<void(int, int)> &f)
{
    block_threads = size;
    run(blocks * size, [&](int thread) { f(thread / size, thread % size); });
    block_threads = 0;
}

inline void meet_warp()
{
    meet();
}

} // namespace host_warp
#endif
