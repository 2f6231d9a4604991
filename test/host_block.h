/* A thread block on the host: fibers that take turns, for kernels whose warps meet.
 *
 * host_mid_cholesky.cc includes it before the kernels' headers; what host_warp.h is for
 * kernels of one warp. A warp runs from one meeting of the block to the next before
 * another one does, in turn the first and the last one first, its lanes upwards and
 * downwards in turn: what one reads too early or too late comes out differently. Lanes
 * that meet at different places would hang on the device; here they end the program.
 */
#ifndef HOST_BLOCK_H
#define HOST_BLOCK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <functional>
#include <memory>
#include <vector>

#define BL_HOST_WARP
#define BL_HOST_BLOCK

namespace host_warp
{

constexpr int SIZE = 32, MOST = 256;
constexpr size_t STACK = 128 << 10;

enum Place { RUNS, SHOWS, WARP, BLOCK, END };

struct Thread {
    ucontext_t context;
    std::unique_ptr<char[]> stack = std::make_unique<char[]>(STACK);
    Place at = RUNS;
    int turn = 0; /* which of the two boards is next */
};

inline Thread thread[MOST];
inline ucontext_t scheduler;
inline int current;
inline const std::function<void(int)> *body;
/* What lanes show each other. Nobody writes to one board before all have read the other.
 */
alignas(16) inline char board[2][MOST][16];

inline void wait(Place place)
{
    thread[current].at = place;
    swapcontext(&thread[current].context, &scheduler);
}

inline void begin()
{
    (*body)(current);
    thread[current].at = END;
}

inline void meet_warp()
{
    wait(WARP);
}

inline void meet_block()
{
    wait(BLOCK);
}

template <class V>
int show(V x)
{
    int turn = thread[current].turn;
    thread[current].turn ^= 1;
    memcpy(board[turn][current], &x, sizeof x);
    wait(SHOWS);
    return turn;
}

template <class V>
V from_lane(V x, int from)
{
    int turn = show(x);
    memcpy(&x, board[turn][current / SIZE * SIZE + from], sizeof x);
    return x;
}

inline unsigned ballot(bool yes)
{
    int turn = show(yes);
    unsigned bits = 0;
    for (int i = 0; i < SIZE; i++)
        bits |= unsigned(board[turn][current / SIZE * SIZE + i][0] != 0) << i;
    return bits;
}

/* All `count` threads from `first` on stand at the same place. */
inline Place common_place(int first, int count)
{
    for (int i = first; i < first + count; i++)
        if (thread[i].at != thread[first].at) {
            printf("Bail out! thread %d is at place %d, thread %d at %d\n", i,
                   thread[i].at, first, thread[first].at);
            exit(1);
        }
    return thread[first].at;
}

/* Up to where the block meets or the warp ends. */
inline void run_warp(int first)
{
    static bool up;
    do {
        up = !up;
        for (int i = 0; i < SIZE; i++) {
            current = first + (up ? i : SIZE - 1 - i);
            swapcontext(&scheduler, &thread[current].context);
        }
    } while (common_place(first, SIZE) < BLOCK);
}

/* f(0), ..., f(threads - 1), together. */
inline void run(int threads, const std::function<void(int)> &f)
{
    static bool up;
    body = &f;
    for (int i = 0; i < threads; i++) {
        Thread &t = thread[i];
        getcontext(&t.context);
        t.context.uc_stack.ss_sp = t.stack.get();
        t.context.uc_stack.ss_size = STACK;
        t.context.uc_link = &scheduler;
        makecontext(&t.context, begin, 0);
        t.turn = 0;
        t.at = RUNS;
    }
    do {
        up = !up;
        for (int w = 0; w < threads; w += SIZE)
            run_warp(up ? w : threads - SIZE - w);
    } while (common_place(0, threads) != END);
}

} // namespace host_warp
#endif
