/* mbarriers of shared memory on the host: in their 64 bits, how many have come and how
 * many bytes are awaited.
 *
 * Included by host_cuda.h; the class Signal takes the place of that of mid_signal.cuh.
 */
#ifndef HOST_SIGNAL_H
#define HOST_SIGNAL_H

#include "host_warp.h"
#include <stdint.h>

namespace host_cuda
{

struct Mbarrier {
    int phase;
    int16_t awaited; /* letters of 16 bytes that have not arrived; less than 0: yet to be
                      * announced */
    uint8_t to_come, expected;

    void init(int count)
    {
        *this = {0, 0, uint8_t(count), uint8_t(count)};
    }
    void look()
    {
        if (to_come == 0 && awaited == 0) {
            phase++;
            to_come = expected;
        }
    }
    void arrive(int bytes = 0)
    {
        if (to_come == 0) {
            printf("Bail out! thread %d is one too many at an mbarrier\n",
                   host_warp::current);
            exit(1);
        }
        awaited = int16_t(awaited + bytes / 16);
        to_come--;
        look();
        host_warp::stumble();
    }
    void complete(int bytes)
    {
        awaited = int16_t(awaited - bytes / 16);
        look();
    }
    /* Until the phase of this parity is over. */
    void wait(unsigned parity) const
    {
        while ((unsigned(phase) & 1) == parity)
            host_warp::wait_while(phase, phase);
    }
};
static_assert(sizeof(Mbarrier) == sizeof(uint64_t));

/* What a warp sets once and others wait for. */
class Signal
{
  public:
    void clear()
    {
        barrier.init(host_warp::SIZE);
    }
    void set()
    {
        if (barrier.phase != 0) {
            printf("Bail out! a signal is set twice\n");
            exit(1);
        }
        barrier.arrive();
    }
    bool is_set() const
    {
        return host_warp::ballot(barrier.phase != 0) == ~0u;
    }
    void wait() const
    {
        barrier.wait(0);
    }

  private:
    Mbarrier barrier;
};

} // namespace host_cuda

#define BL_MID_SIGNAL_CUH
namespace bl
{
using host_cuda::Signal;
} // namespace bl
#endif
