/* A warp on the host: 32 fibers that take turns, for kernels whose lanes work together.
 *
 * host_tiny_cholesky.cc includes it before the kernels' headers. A lane runs until it
 * meets the others, then the next one does, upwards and downwards in turn: what one lane
 * reads too early or too late comes out differently. Lanes that meet at different places,
 * or of which some have ended, would hang on the device; here they end the program.
 */
#ifndef HOST_WARP_H
#define HOST_WARP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <functional>
#include <vector>

#define BL_HOST_WARP

namespace host_warp
{

constexpr int SIZE = 32;
constexpr size_t STACK = 256 << 10;

struct Lane {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(STACK);
    const char *at = nullptr; /* where it waits; NULL: it has ended */
    int turn = 0;             /* which of the two boards is next */
};

inline Lane lanes[SIZE];
inline ucontext_t scheduler;
inline int current;
inline const std::function<void(int)> *body;
/* What lanes show each other. Nobody writes to one board before all have read the other.
 */
alignas(16) inline char board[2][SIZE][16];

inline void wait(const char *where)
{
    Lane &lane = lanes[current];
    lane.at = where;
    swapcontext(&lane.context, &scheduler);
}

inline void begin()
{
    (*body)(current);
    lanes[current].at = nullptr;
}

inline void meet()
{
    wait("meet");
}

template <class V>
int show(V x, const char *where)
{
    Lane &lane = lanes[current];
    int turn = lane.turn;
    lane.turn ^= 1;
    memcpy(board[turn][current], &x, sizeof x);
    wait(where);
    return turn;
}

template <class V>
V from_lane(V x, int from)
{
    int turn = show(x, "from_lane");
    memcpy(&x, board[turn][from], sizeof x);
    return x;
}

inline unsigned ballot(bool yes)
{
    int turn = show(yes, "ballot");
    unsigned bits = 0;
    for (int i = 0; i < SIZE; i++)
        bits |= unsigned(board[turn][i][0] != 0) << i;
    return bits;
}

/* f(0), ..., f(31), together. */
inline void run(const std::function<void(int)> &f)
{
    body = &f;
    for (Lane &lane : lanes) {
        getcontext(&lane.context);
        lane.context.uc_stack.ss_sp = lane.stack.data();
        lane.context.uc_stack.ss_size = STACK;
        lane.context.uc_link = &scheduler;
        makecontext(&lane.context, begin, 0);
        lane.turn = 0;
    }
    bool up = true, live = true;
    while (live) {
        for (int i = 0; i < SIZE; i++) {
            current = up ? i : SIZE - 1 - i;
            swapcontext(&scheduler, &lanes[current].context);
        }
        up = !up;
        live = lanes[0].at != nullptr;
        for (int i = 1; i < SIZE; i++)
            if (lanes[i].at != lanes[0].at) {
                printf("Bail out! lane %d is at %s, lane 0 at %s\n", i,
                       lanes[i].at ? lanes[i].at : "its end",
                       lanes[0].at ? lanes[0].at : "its end");
                exit(1);
            }
    }
}

} // namespace host_warp
#endif
