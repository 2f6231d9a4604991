/* The kernels of getrfsp on the chip, complex. */
#include "mid_lu.cuh"

namespace bl
{
using T = Complex<float>;

const MidKernel mid_scaled_c[] = {
    on_chip<T, 2, 4, 4, 8, true>(),  on_chip<T, 3, 4, 6, 4, true>(),
    on_chip<T, 4, 4, 8, 2, true>(),  on_chip<T, 5, 4, 10, 1, true>(),
    on_chip<T, 6, 4, 12, 1, true>(), {},
};
} // namespace bl
