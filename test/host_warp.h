/* Warps on the host: fibers that take turns, for kernels whose lanes work together.
 *
 * The host tests include it before the kernels' headers, on its own where a block is one
 * warp, else through host_block.h or host_cuda.h. A fiber runs until it has to wait. In
 * which order a warp's lanes go on is thrown with dice each time, and so are which warp
 * is next and which one sleeps for a while; in every second run a warp goes on as long as
 * it can. What one reads too early or too late comes out differently. Lanes that meet at
 * different places, or of which some have ended, would hang on the device; here they end
 * the program.
 */
#ifndef HOST_WARP_H
#define HOST_WARP_H

#undef _FORTIFY_SOURCE /* whose longjmp() refuses to leave a stack for another */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <functional>
#include <memory>

#define BL_HOST_WARP

namespace host_warp
{

constexpr int SIZE = 32, MOST = 3456;
constexpr size_t STACK = 256 << 10;

/* Where threads wait until `expected` have come. */
struct Barrier {
    const char *where = nullptr;
    int arrived = 0, expected = 0;
    int phase = 0;
};

struct Fiber {
    ucontext_t context;
    jmp_buf here;
    std::unique_ptr<char[]> stack;
    const int *word = nullptr; /* it waits until this is no longer `seen` */
    int seen = 0;
    bool begun = false, ended = false;
    int turn = 0; /* which of the two boards is next */
};

inline Fiber fiber[MOST];
inline Barrier of_warp[MOST / SIZE];
inline int threads; /* of a block of this run */
inline jmp_buf scheduler;
inline int current;
inline bool gave_way; /* a lane did, see rest() */
inline const std::function<void(int)> *body;
/* What lanes show each other. Nobody writes to one board before all have read the other.
 */
constexpr int MOST_SHOWN = 64;
alignas(16) inline char board[2][MOST][MOST_SHOWN];
/* What is on its way from thread to thread: lets some of it arrive; false: there was
 * nothing. */
inline bool (*deliver)();

inline unsigned throw_dice()
{
    static unsigned dice = 1;
    dice = dice * 1664525 + 1013904223;
    return dice >> 8;
}

/* The running fiber's turn is over. */
inline void pass()
{
    if (_setjmp(fiber[current].here) == 0)
        _longjmp(scheduler, 1);
}

/* A thread may stop anywhere; where others are told something it often does. */
inline void stumble()
{
    if (throw_dice() % 4 == 0)
        pass();
}

/* The running fiber goes on when `word` is no longer `seen`. */
inline void wait_while(const int &word, int seen)
{
    Fiber &f = fiber[current];
    f.word = &word;
    f.seen = seen;
    while (word == seen)
        pass();
    f.word = nullptr;
}

/* Others' turn: for what waits in a loop. */
inline void rest()
{
    gave_way = true;
    pass();
}

inline void arrive(Barrier &b, int expected, const char *where)
{
    if (b.arrived &&
        (b.expected != expected || (b.where != where && strcmp(b.where, where) != 0))) {
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
    const int phase = b.phase;
    arrive(b, expected, where);
    wait_while(b.phase, phase);
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
    static_assert(sizeof x <= MOST_SHOWN);
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

/* f(what lane 0 shows), ..., f(what lane 31 shows). */
template <class V, class F>
void from_all(V x, const F &f)
{
    int turn = show(x, "from_all");
    for (int i = 0; i < SIZE; i++) {
        memcpy(&x, board[turn][current / SIZE * SIZE + i], sizeof x);
        f(x, i);
    }
}

inline unsigned ballot(bool yes)
{
    unsigned bits = 0;
    from_all(yes, [&](bool x, int i) { bits |= unsigned(x) << i; });
    return bits;
}

inline void begin()
{
    (*body)(current);
    fiber[current].ended = true;
    _longjmp(scheduler, 1);
}

/* `current` runs until it waits or ends. */
inline void resume()
{
    Fiber &f = fiber[current];
    if (_setjmp(scheduler))
        return;
    if (f.begun)
        _longjmp(f.here, 1);
    f.begun = true;
    setcontext(&f.context);
}

/* Every lane of the warp that can go on does, until it waits. False: none could. */
inline bool run_warp(int warp, int &left)
{
    bool ran = false;
    const unsigned dice = throw_dice(), first = dice, step = dice >> 8 | 1;
    for (int i = 0; i < SIZE; i++) {
        current = warp * SIZE + int((first + unsigned(i) * step) % SIZE);
        Fiber &f = fiber[current];
        if (f.ended || (f.word && *f.word == f.seen))
            continue;
        ran = true;
        resume();
        left -= f.ended;
    }
    return ran;
}

/* f(0), f(1), ..., together: `blocks` blocks of `each` threads. */
inline void run(int each, const std::function<void(int)> &f, int blocks = 1)
{
    static bool stays;
    const int count = each * blocks;
    threads = each;
    body = &f;
    stays = !stays;
    for (int i = 0; i < count; i++) {
        Fiber &t = fiber[i];
        if (!t.stack)
            t.stack = std::make_unique<char[]>(STACK);
        getcontext(&t.context);
        t.context.uc_stack.ss_sp = t.stack.get();
        t.context.uc_stack.ss_size = STACK;
        makecontext(&t.context, begin, 0);
        t.word = nullptr;
        t.begun = t.ended = false;
        t.turn = 0;
    }
    const int warps = count / SIZE;
    int asleep = 0, nap = 0; /* a warp that has no turn, and for how long */
    for (int left = count; left > 0;) {
        if (nap-- == 0) {
            asleep = int(throw_dice()) % warps;
            nap = int(throw_dice()) % 200;
        }
        const int first = int(throw_dice()) % warps;
        bool ran = false;
        gave_way = false;
        for (int i = 0; i < warps && !ran; i++) {
            const int warp = (first + i) % warps;
            while (warp != asleep && run_warp(warp, left)) {
                ran = true;
                if (!stays || gave_way)
                    break;
            }
        }
        if (!ran)
            ran = run_warp(asleep, left);
        if (deliver && (!ran || throw_dice() % 2))
            ran |= deliver();
        if (!ran) {
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
