/* The kernels of getrf on the chip, single: what a tuning run on an H200 chose. The more
 * shared memory a matrix takes, the fewer blocks a multiprocessor holds and the more
 * warps each of them needs. */
#include "mid_lu.cuh"

namespace bl
{
using T = float;

const MidKernel mid_lu_s[] = {
    on_chip<T, 2, 8, 1, 20>(48), on_chip<T, 2, 8, 2, 12>(),   on_chip<T, 3, 8, 2, 10>(80),
    on_chip<T, 3, 8, 3, 8>(),    on_chip<T, 4, 8, 3, 6>(104), on_chip<T, 4, 8, 4, 4>(),
    on_chip<T, 5, 8, 5, 4>(),    on_chip<T, 6, 8, 8, 2>(),    on_chip<T, 7, 8, 6, 2>(204),
    on_chip<T, 7, 8, 8, 1>(),    on_chip<T, 8, 8, 8, 1>(),    {},
};
} // namespace bl
