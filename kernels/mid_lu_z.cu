/* The kernels of getrf on the chip, double complex: what a tuning run on an H200 chose.
 * The more shared memory a matrix takes, the fewer blocks a multiprocessor holds and the
 * more warps each of them needs. */
#include "mid_lu.cuh"

namespace bl
{
using T = Complex<double>;

const MidKernel mid_lu_z[] = {
    on_chip<T, 2, 4, 2, 10>(48), on_chip<T, 2, 4, 4, 6>(58), on_chip<T, 2, 4, 4, 5>(),
    on_chip<T, 3, 4, 4, 4>(68),  on_chip<T, 3, 4, 6, 3>(84), on_chip<T, 3, 4, 8, 2>(),
    on_chip<T, 4, 4, 8, 2>(104), on_chip<T, 4, 4, 12, 1>(),  on_chip<T, 5, 4, 12, 1>(),
    on_chip<T, 6, 4, 8, 1>(),    on_chip<T, 7, 4, 8, 1>(),   {},
};
} // namespace bl
