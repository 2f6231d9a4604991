/* The triangular solve with many right-hand sides: which kernel, and its launch.
 *
 * Called by large.cu through large_many.h.
 */
#include "large_many.cuh"
#include "large_launch.h"

namespace bl
{

namespace
{

/* Of the largest type no more sides fit on chip. */
template <class T>
constexpr int MOST_SIDES = sizeof(T) == 16 ? 8 : 32;

template <class T, int SIDES>
cudaError_t launch(const LargeMany<T> &s, cudaStream_t stream)
{
    using S = ManyShape<T, SIDES>;
    const void *kernel = (const void *)solve_many<T, SIDES>;
    constexpr size_t BYTES = sizeof(typename S::Memory);
    const cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(BYTES));
    if (error != cudaSuccess)
        return error;
    return launch_large(kernel, (s.sides + SIDES - 1) / SIDES, S::THREADS, BYTES, s,
                        s.chained, stream);
}

} // namespace

template <class T>
bool large_has_many(const Card &card)
{
    return card.capability >= 90 && LARGE_MANY_BYTES <= card.shared_bytes;
}

/* The fewest sides a block with which all blocks are there at once: a block's time hardly
 * falls with its sides. */
template <class T>
cudaError_t large_many(const LargeMany<T> &s, const Card &card, cudaStream_t stream)
{
    if (MOST_SIDES<T> == 8 || s.sides <= 8 * card.processors)
        return launch<T, 8>(s, stream);
    if constexpr (MOST_SIDES < T >> 8)
        return s.sides <= 16 * card.processors ? launch<T, 16>(s, stream)
                                               : launch<T, MOST_SIDES<T>>(s, stream);
}

#define BL_INSTANCE(T)                                                                   \
    template bool large_has_many<T>(const Card &);                                       \
    template cudaError_t large_many(const LargeMany<T> &, const Card &, cudaStream_t);
BL_FOR_EACH_TYPE(BL_INSTANCE)

} // namespace bl
