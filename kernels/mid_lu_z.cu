/* The kernels of getrf on the chip, double complex. */
#include "mid_lu.cuh"

namespace bl
{
const MidKernel mid_lu_z[] = {
    on_chip<Complex<double>, 2, 4, 4, 6>(),
    on_chip<Complex<double>, 3, 4, 8, 2>(),
    on_chip<Complex<double>, 4, 4, 8, 2>(),
    on_chip<Complex<double>, 5, 4, 8, 1>(),
    {},
};
} // namespace bl
