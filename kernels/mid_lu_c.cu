/* The kernels of getrf on the chip, complex: what a tuning run on an H200 chose. The more
 * shared memory a matrix takes, the fewer blocks a multiprocessor holds and the more
 * warps each of them needs. */
#include "mid_lu.cuh"

namespace bl
{
using T = Complex<float>;

const MidKernel mid_lu_c[] = {
    on_chip<T, 2, 4, 2, 12>(56),
    on_chip<T, 2, 4, 4, 8>(),
    on_chip<T, 3, 4, 3, 7>(72),
    on_chip<T, 3, 4, 6, 4>(),
    on_chip<T, 4, 4, 4, 4>(100),
    on_chip<T, 4, 4, 6, 3>(112),
    on_chip<T, 4, 4, 8, 2>(),
    on_chip<T, 5, 4, 8, 2>(144),
    on_chip<T, 5, 4, 16, 1>(),
    on_chip<T, 6, 4, 16, 1>(),
    on_chip<T, 7, 4, 16, 1>(),
    on_chip<T, 8, 4, 12, 1>(),
    {},
};
} // namespace bl
