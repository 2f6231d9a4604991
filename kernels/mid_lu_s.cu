/* The kernels of getrf on the chip, single. */
#include "mid_lu.cuh"

namespace bl
{
const MidKernel mid_lu_s[] = {
    on_chip<float, 2, 8, 2, 12>(), on_chip<float, 3, 8, 4, 6>(),
    on_chip<float, 4, 8, 4, 4>(),  on_chip<float, 6, 8, 8, 2>(),
    on_chip<float, 8, 8, 8, 1>(),  {},
};
} // namespace bl
