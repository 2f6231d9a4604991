/* The kernels of getrfsp on the chip, double complex. */
#include "mid_lu.cuh"

namespace bl
{
using T = Complex<double>;

const MidKernel mid_scaled_z[] = {
    on_chip<T, 2, 4, 4, 6, true>(),
    on_chip<T, 3, 4, 8, 2, true>(),
    on_chip<T, 4, 4, 8, 1, true>(),
    on_chip<T, 5, 4, 8, 1, true>(),
    {},
};
} // namespace bl
