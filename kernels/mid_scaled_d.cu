/* The kernels of getrfsp on the chip, double. */
#include "mid_lu.cuh"

namespace bl
{
using T = double;

const MidKernel mid_scaled_d[] = {
    on_chip<T, 2, 8, 2, 8, true>(), on_chip<T, 3, 8, 4, 4, true>(),
    on_chip<T, 4, 8, 6, 2, true>(), on_chip<T, 5, 8, 8, 1, true>(),
    on_chip<T, 6, 8, 8, 1, true>(), {},
};
} // namespace bl
