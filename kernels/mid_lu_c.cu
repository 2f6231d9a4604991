/* The kernels of getrf on the chip, complex. */
#include "mid_lu.cuh"

namespace bl
{
const MidKernel mid_lu_c[] = {
    on_chip<Complex<float>, 2, 4, 4, 8>(),  on_chip<Complex<float>, 3, 4, 6, 4>(),
    on_chip<Complex<float>, 4, 4, 8, 2>(),  on_chip<Complex<float>, 5, 4, 10, 1>(),
    on_chip<Complex<float>, 6, 4, 12, 1>(), {},
};
} // namespace bl
