/* cp.async on the host: copies that may be done at once or when they are waited for.
 *
 * Included by host_cuda.h. Which of the two it is, is thrown with dice for each: who
 * reads too early finds the old contents, and who begins one too early destroys what
 * others still read.
 */
#ifndef HOST_COPIES_H
#define HOST_COPIES_H

#include "host_warp.h"
#include <deque>
#include <vector>

namespace host_cuda
{

struct Copy {
    char *to;
    const char *from;
    int bytes, there; /* what is not there is 0 */

    void carry_out() const
    {
        memset(to, 0, bytes);
        memcpy(to, from, there);
    }
};

/* A thread's. */
struct Copies {
    std::vector<Copy> open;
    std::deque<std::vector<Copy>> groups;
};
inline Copies copies[host_warp::MOST];

inline void begin_copy(void *to, const void *from, int bytes, int there)
{
    const Copy copy = {(char *)to, (const char *)from, bytes, there};
    if (size_t(to) % bytes || (there && size_t(from) % bytes)) {
        printf("Bail out! a copy of %d bytes is not aligned\n", bytes);
        exit(1);
    }
    if (host_warp::throw_dice() % 2)
        copy.carry_out();
    else
        copies[host_warp::current].open.push_back(copy);
}

inline void end_copies()
{
    Copies &c = copies[host_warp::current];
    c.groups.push_back(std::move(c.open));
    c.open.clear();
}

/* All but the last `later` groups arrive. */
inline void await_copies(int later)
{
    Copies &c = copies[host_warp::current];
    while (int(c.groups.size()) > later) {
        for (const Copy &copy : c.groups.front())
            copy.carry_out();
        c.groups.pop_front();
    }
}

/* None are on their way, before a block begins. */
inline void forget_copies()
{
    for (Copies &c : copies)
        c = {};
}

} // namespace host_cuda
#endif
