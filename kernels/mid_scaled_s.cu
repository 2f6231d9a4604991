/* The kernels of getrfsp on the chip, single. */
#include "mid_lu.cuh"

namespace bl
{
using T = float;

const MidKernel mid_scaled_s[] = {
    on_chip<T, 2, 8, 2, 12, true>(), on_chip<T, 3, 8, 3, 8, true>(),
    on_chip<T, 4, 8, 4, 4, true>(),  on_chip<T, 6, 8, 6, 2, true>(),
    on_chip<T, 8, 8, 8, 1, true>(),  {},
};
} // namespace bl
