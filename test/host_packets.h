/* What blocks tell each other through global memory, on the host.
 *
 * Included before the kernels' headers, in place of a part of large_panel_common.cuh. Who
 * sends may stop before it is seen.
 */
#ifndef HOST_PACKETS_H
#define HOST_PACKETS_H

#include "host_cluster.h"

namespace bl
{

inline int packets_sent;

template <class P>
void send(P *to, P p)
{
    host_warp::stumble();
    *to = p;
    packets_sent++;
}

template <class P>
P look(const P *from)
{
    return *from;
}

template <class F>
void until(F condition)
{
    while (!condition())
        host_warp::wait_while(packets_sent, packets_sent);
}

} // namespace bl
#endif
