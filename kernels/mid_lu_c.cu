/* The kernels of getrf on the chip, complex. */
#include "mid_lu.cuh"

namespace bl
{
const MidKernel mid_lu_c[] = {
    on_chip<Complex<float>, 2, 8, 4, 5>(), on_chip<Complex<float>, 3, 8, 4, 4>(),
    on_chip<Complex<float>, 4, 8, 8, 2>(), on_chip<Complex<float>, 5, 8, 8, 1>(),
    on_chip<Complex<float>, 6, 8, 8, 1>(), {},
};
} // namespace bl
