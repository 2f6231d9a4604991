/* A thread block on the host: fibers that take turns, for kernels whose warps do
 * different things and meet at numbered barriers.
 *
 * host_large_cholesky.cc includes it before the kernels' headers; what host_warp.h is for
 * kernels of one warp. A fiber runs until it has to wait; which warp is next, and which
 * of its lanes first, changes all the time, so that what one reads too early or too late
 * comes out differently. If all wait the program ends.
 */
#ifndef HOST_ROLES_H
#define HOST_ROLES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <functional>
#include <memory>

#define BL_HOST_WARP

namespace host_warp
{

constexpr int SIZE = 32, MOST = 256, BARRIERS = 16;
constexpr size_t STACK = 128 << 10;

/* Where threads wait until `expected` have arrived. */
struct Barrier {
    int arrived = 0, expected = 0;
    long phase = 0;
};

struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack = std::make_unique<char[]>(STACK);
    Barrier *at = nullptr;
    long phase = 0;
    bool ended = false;
    int turn = 0; /* which of the two boards is next */
};

inline Fiber fiber[MOST];
inline Barrier numbered[BARRIERS], of_warp[MOST / SIZE];
inline ucontext_t scheduler;
inline int current;
inline const std::function<void(int)> *body;
/* What lanes show each other. Nobody writes to one board before all have read the other.
 */
alignas(16) inline char board[2][MOST][16];

inline void arrive(Barrier &b, int threads)
{
    if (b.arrived && b.expected != threads) {
        printf("Bail out! a barrier of %d threads is one of %d\n", b.expected, threads);
        exit(1);
    }
    b.expected = threads;
    if (++b.arrived == threads) {
        b.arrived = 0;
        b.phase++;
    }
}

inline void meet_at(Barrier &b, int threads)
{
    Fiber &f = fiber[current];
    f.phase = b.phase;
    f.at = &b;
    arrive(b, threads);
    while (b.phase == f.phase)
        swapcontext(&f.context, &scheduler);
    f.at = nullptr;
}

inline void arrive_at(int number, int threads)
{
    arrive(numbered[number], threads);
}

inline void meet_at(int number, int threads)
{
    meet_at(numbered[number], threads);
}

inline void meet()
{
    meet_at(of_warp[current / SIZE], SIZE);
}

template <class V>
int show(V x)
{
    int turn = fiber[current].turn;
    fiber[current].turn ^= 1;
    memcpy(board[turn][current], &x, sizeof x);
    meet();
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

inline void begin()
{
    (*body)(current);
    fiber[current].ended = true;
}

/* f(0), ..., f(threads - 1), together. */
inline void run(int threads, const std::function<void(int)> &f)
{
    static unsigned dice = 1;
    body = &f;
    for (int i = 0; i < threads; i++) {
        Fiber &t = fiber[i];
        getcontext(&t.context);
        t.context.uc_stack.ss_sp = t.stack.get();
        t.context.uc_stack.ss_size = STACK;
        t.context.uc_link = &scheduler;
        makecontext(&t.context, begin, 0);
        t.at = nullptr;
        t.ended = false;
        t.turn = 0;
    }
    int left = threads, idle = 0;
    while (left > 0) {
        dice = dice * 1664525 + 1013904223;
        const int warp = int(dice >> 16) % (threads / SIZE);
        bool ran = false;
        for (int l = 0; l < SIZE; l++) {
            current = warp * SIZE + (dice >> 31 ? l : SIZE - 1 - l);
            Fiber &t = fiber[current];
            if (t.ended || (t.at && t.at->phase == t.phase))
                continue;
            ran = true;
            swapcontext(&scheduler, &t.context);
            left -= t.ended;
        }
        idle = ran ? 0 : idle + 1;
        if (idle > 10000) {
            printf("Bail out! all threads wait\n");
            exit(1);
        }
    }
}

} // namespace host_warp
#endif
