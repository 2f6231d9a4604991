/* The team: the threads that work on one matrix, and how they meet.
 *
 * Used by every algorithm in kernels/. On the device a team is `blocks` thread blocks of
 * `threads` threads (a multiple of 32); with one block they meet at __syncthreads, with
 * several at a counter in global memory, which needs all of them resident at once
 * (engine.cu launches those cooperatively). Compiled by g++ the team is one thread and
 * nothing waits. Results never depend on the size of a team. Every function that meets
 * must be reached by all threads of the team.
 */
#ifndef BL_TEAM_CUH
#define BL_TEAM_CUH

#include "scalar.cuh"

namespace bl
{

#if defined __CUDACC__ || defined BL_HOST_WARP /* test/host_warp.h has 32 lanes */
constexpr int LANES = 32;
#else
constexpr int LANES = 1;
#endif

/* A candidate for the pivot: larger value first, then smaller index. */
struct Best {
    double value;
    int64_t index;
};

/* A team's meeting place in global memory, zeroed before the launch. The slots alternate:
 * a block that is late at reading one can not meet its next writer before the other one
 * has been passed. `best` has 2 * blocks entries. */
struct Control {
    unsigned arrived;
    int64_t value[2];
    Best best[2];
};

struct Team {
    int thread = 0, threads = 1; /* in the block */
    int block = 0, blocks = 1;   /* in the team */
    Control *control = nullptr;
    unsigned goal = 0; /* what control->arrived must reach at the next meeting */
    int turn = 0;      /* which slot is next */
    bool exact = true; /* BL_EXACT: netlib's order even where it is a serial chain */

    BL_HD int64_t rank() const
    {
        return int64_t(block) * threads + thread;
    }
    BL_HD int64_t size() const
    {
        return int64_t(blocks) * threads;
    }
    BL_HD int lane() const
    {
        return thread % LANES;
    }
    BL_HD int64_t warp() const
    {
        return rank() / LANES;
    }
    BL_HD int64_t warps() const
    {
        return size() / LANES;
    }

    /* The calling block alone, for work that is too small to share. */
    BL_HD Team solo() const
    {
        Team team = *this;
        team.block = 0;
        team.blocks = 1;
        return team;
    }

    BL_HD void block_sync() const
    {
#ifdef __CUDACC__
        __syncthreads();
#elif defined BL_HOST_BLOCK /* test/host_block.h */
        host_warp::meet_block();
#endif
    }

    BL_HD void warp_sync() const
    {
#ifdef __CUDACC__
        __syncwarp();
#elif defined BL_HOST_BLOCK
        host_warp::meet_warp();
#endif
    }

    /* All writes of the team before it are seen by all of the team after it. */
    BL_HD void sync()
    {
        if (blocks == 1)
            block_sync();
#ifdef __CUDACC__
        else
            meet();
#endif
    }

    /* The value that block 0 holds, for everyone. Meets. */
    BL_HD int64_t from_first(int64_t value)
    {
#ifdef __CUDACC__
        if (blocks > 1) {
            volatile int64_t *slot = &control->value[turn];
            turn ^= 1;
            if (rank() == 0)
                *slot = value;
            meet();
            return *slot;
        }
#endif
        block_sync();
        return value;
    }

    BL_HD Best best(Best mine)
    {
#ifdef __CUDACC__
        return best_of_team(mine);
#else
        return mine;
#endif
    }

#ifdef __CUDACC__
    static BL_HD Best better(Best x, Best y)
    {
        bool second = y.value > x.value || (y.value == x.value && y.index < x.index);
        return second ? y : x;
    }

    static BL_HD Best best_of_warp(Best x)
    {
        for (int step = LANES / 2; step > 0; step /= 2) {
            Best y = {__shfl_xor_sync(~0u, x.value, step),
                      __shfl_xor_sync(~0u, (long long)x.index, step)};
            x = better(x, y);
        }
        return x;
    }

    __device__ __noinline__ void meet()
    {
        goal += blocks;
        __syncthreads();
        if (thread == 0) {
            __threadfence();
            atomicAdd(&control->arrived, 1u);
            /* The difference, so that the counter may wrap round. */
            while (int(*(volatile unsigned *)&control->arrived - goal) < 0) {
            }
            __threadfence();
        }
        __syncthreads();
    }

    /* Shared memory: the best of each warp. */
    __device__ __noinline__ Best best_of_team(Best mine)
    {
        __shared__ Best part[32];
        const Best none = {-1, INT64_MAX};
        mine = best_of_warp(mine);
        if (threads > LANES) {
            __syncthreads();
            if (lane() == 0)
                part[thread / LANES] = mine;
            __syncthreads();
            mine = best_of_warp(lane() < threads / LANES ? part[lane()] : none);
        }
        if (blocks > 1) {
            Best *slot = control->best + turn * blocks;
            turn ^= 1;
            if (thread == 0) {
                volatile Best *own = &slot[block];
                own->value = mine.value;
                own->index = mine.index;
            }
            meet();
            Best all = none;
            for (int i = lane(); i < blocks; i += LANES) {
                volatile Best *other = &slot[i];
                Best y = {other->value, other->index};
                all = better(all, y);
            }
            mine = best_of_warp(all);
        }
        return mine;
    }
#endif
};

#ifdef __CUDACC__
/* The calling block as a team; a caller who knows how many threads it has may say so. */
BL_HD Team block_team(int threads = blockDim.x)
{
    return {int(threadIdx.x), threads};
}
#endif

/* The value that lane `from` of the warp holds. */
template <class R>
BL_HD R from_lane(R x, int from)
{
#ifdef __CUDACC__
    return __shfl_sync(~0u, x, from);
#elif defined BL_HOST_WARP
    return host_warp::from_lane(x, from);
#else
    (void)from;
    return x;
#endif
}

template <class R>
BL_HD Complex<R> from_lane(Complex<R> x, int from)
{
    return {from_lane(x.re, from), from_lane(x.im, from)};
}

} // namespace bl
#endif
