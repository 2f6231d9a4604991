/* The kernels of getrf on the chip, double: what a tuning run on an H200 chose. The more
 * shared memory a matrix takes, the fewer blocks a multiprocessor holds and the more
 * warps each of them needs. */
#include "mid_lu.cuh"

namespace bl
{
using T = double;

const MidKernel mid_lu_d[] = {
    on_chip<T, 2, 8, 2, 10>(),   with_head<T, 2, 8, 2, 8>(),
    on_chip<T, 3, 8, 2, 8>(72),  on_chip<T, 3, 8, 3, 5>(88),
    on_chip<T, 3, 8, 4, 4>(),    on_chip<T, 4, 8, 5, 3>(120),
    on_chip<T, 4, 8, 8, 2>(),    on_chip<T, 5, 8, 6, 2>(144),
    on_chip<T, 5, 8, 5, 2>(152), on_chip<T, 5, 8, 8, 1>(),
    on_chip<T, 6, 8, 8, 1>(),    on_chip<T, 7, 8, 8, 1>(),
    on_chip<T, 8, 8, 8, 1>(),    {},
};
} // namespace bl
