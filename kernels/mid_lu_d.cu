/* The kernels of getrf on the chip, double. */
#include "mid_lu.cuh"

namespace bl
{
const MidKernel mid_lu_d[] = {
    on_chip<double, 2, 8, 2, 10>(), on_chip<double, 3, 8, 4, 4>(),
    on_chip<double, 4, 8, 6, 2>(),  on_chip<double, 5, 8, 8, 1>(),
    on_chip<double, 6, 8, 8, 1>(),  {},
};
} // namespace bl
