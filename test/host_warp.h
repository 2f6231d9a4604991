/* Warps on the host: fibers that take turns, for kernels whose lanes work together.
 *
 * The host tests include it before the kernels' headers, on its own where a block is one
 * warp, else through host_block.h. A fiber runs until it has to wait. Which of a warp's
 * lanes is first changes all the time, and so does which warp is next; in every second
 * run a warp goes on as long as it can. What one reads too early or too late comes out
 * differently. Lanes that meet at different places, or of which some have ended, would
 * hang on the device; here they end the program.
 */
#ifndef HOST_WARP_H
#define HOST_WARP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <functional>
#include <memory>

#define BL_HOST_WARP

namespace host_warp
{

constexpr int SIZE = 32, MOST = 2560;
constexpr size_t STACK = 256 << 10;

/* Where threads wait until `expected` have come. */
struct Barrier {
    const char *where = nullptr;
    int arrived = 0, expected = 0;
    long phase = 0;
};

struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    const Barrier *at = nullptr; /* where it waits */
    bool looks = false;          /* it waits for a condition */
    long phase = 0;
    bool ended = false;
    int turn = 0; /* which of the two boards is next */
};

inline Fiber fiber[MOST];
inline Barrier of_warp[MOST / SIZE];
inline int threads; /* of this run */
inline ucontext_t scheduler;
inline int current;
inline const std::function<void(int)> *body;
/* What lanes show each other. Nobody writes to one board before all have read the other.
 */
alignas(16) inline char board[2][MOST][16];

inline void arrive(Barrier &b, int expected, const char *where)
{
    if (b.arrived && (b.expected != expected || strcmp(b.where, where) != 0)) {
        printf("Bail out! thread %d meets %d at %s, others meet %d at %s\n", current,
               expected, where, b.expected, b.where);
        exit(1);
    }
    b.expected = expected;
    b.where = where;
    if (++b.arrived == expected) {
        b.arrived = 0;
        b.phase++;
    }
}

inline void wait(Barrier &b, int expected, const char *where)
{
    Fiber &f = fiber[current];
    f.phase = b.phase;
    f.at = &b;
    arrive(b, expected, where);
    while (b.phase == f.phase)
        swapcontext(&f.context, &scheduler);
    f.at = nullptr;
}

/* Until the condition holds, which others make true. Lanes look one by one. */
template <class F>
void wait_until(F condition)
{
    Fiber &f = fiber[current];
    while (!condition()) {
        f.looks = true;
        swapcontext(&f.context, &scheduler);
    }
    f.looks = false;
}

/* Others go on first, now and then, and sometimes for long. */
inline void pause()
{
    static unsigned dice = 7;
    dice = dice * 1664525 + 1013904223;
    if (dice >> 30)
        return;
    Fiber &f = fiber[current];
    f.looks = true;
    for (int turns = dice >> 26 & 15 ? 1 : 60; turns > 0; turns--)
        swapcontext(&f.context, &scheduler);
    f.looks = false;
}

inline void wait_for_warp(const char *where)
{
    wait(of_warp[current / SIZE], SIZE, where);
}

inline void meet()
{
    wait_for_warp("meet");
}

template <class V>
int show(V x, const char *where)
{
    int turn = fiber[current].turn;
    fiber[current].turn ^= 1;
    memcpy(board[turn][current], &x, sizeof x);
    wait_for_warp(where);
    return turn;
}

template <class V>
V from_lane(V x, int from)
{
    int turn = show(x, "from_lane");
    memcpy(&x, board[turn][current / SIZE * SIZE + from], sizeof x);
    return x;
}

inline unsigned ballot(bool yes)
{
    int turn = show(yes, "ballot");
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

/* Every lane of the warp that can go on does, until it waits. False: none could. */
inline bool run_warp(int warp, bool up, int &left)
{
    bool ran = false;
    for (int i = 0; i < SIZE; i++) {
        current = warp * SIZE + (up ? i : SIZE - 1 - i);
        Fiber &f = fiber[current];
        if (f.ended || (f.at && f.at->phase == f.phase))
            continue;
        swapcontext(&scheduler, &f.context);
        ran = ran || !f.looks;
        left -= f.ended;
    }
    return ran;
}

/* f(0), ..., f(count - 1), together. */
inline void run(int count, const std::function<void(int)> &f)
{
    static unsigned dice = 1;
    static bool stays;
    threads = count;
    body = &f;
    stays = !stays;
    for (int i = 0; i < count; i++) {
        Fiber &t = fiber[i];
        if (!t.stack)
            t.stack.reset(new char[STACK]);
        getcontext(&t.context);
        t.context.uc_stack.ss_sp = t.stack.get();
        t.context.uc_stack.ss_size = STACK;
        t.context.uc_link = &scheduler;
        makecontext(&t.context, begin, 0);
        t.at = nullptr;
        t.looks = false;
        t.ended = false;
        t.turn = 0;
    }
    bool up = true;
    for (int left = count, idle = 0; left > 0;) {
        dice = dice * 1664525 + 1013904223;
        const int warp = int(dice >> 16) % (count / SIZE);
        bool ran = false;
        while (run_warp(warp, up, left)) {
            ran = true;
            up = !up;
            if (!stays)
                break;
        }
        idle = ran ? 0 : idle + 1;
        if (idle > 10000) {
            printf("Bail out! all threads wait\n");
            exit(1);
        }
    }
}

/* One warp. */
inline void run(const std::function<void(int)> &f)
{
    run(SIZE, f);
}

} // namespace host_warp
#endif
