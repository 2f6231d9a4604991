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
constexpr int MOST_SIDES = sizeof(T) == 16 ? 16 : 32;

/* Whether two elements that lie side by side can be loaded at once wherever that is
 * done: from an even row or column on, in the order of memory. */
template <class T>
bool is_paired(const LargeMany<T> &s)
{
    constexpr size_t ALIGNED = sizeof(T) > 8 ? 16 : 2 * sizeof(T);
    const bool plain = s.down == 1 || s.down == -1,
               back = (plain ? s.down : s.across) < 0;
    const int64_t ld = plain ? s.across : s.down;
    return ((size_t)(s.a - back) | size_t(ld) * sizeof(T)) % ALIGNED == 0;
}

template <class T, int SIDES, bool PAIRED>
cudaError_t launch(const LargeMany<T> &s, cudaStream_t stream)
{
    using S = ManyShape<T, SIDES>;
    const void *kernel = (const void *)solve_many<T, SIDES, PAIRED>;
    constexpr size_t BYTES = sizeof(typename S::Memory);
    const cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(BYTES));
    if (error != cudaSuccess)
        return error;
    return launch_large(kernel, (s.sides + SIDES - 1) / SIDES, S::THREADS, BYTES, s,
                        s.chained, stream);
}

template <int SIDES, class T>
cudaError_t launch(const LargeMany<T> &s, cudaStream_t stream)
{
    return is_paired(s) ? launch<T, SIDES, true>(s, stream)
                        : launch<T, SIDES, false>(s, stream);
}

} // namespace

template <class T>
bool large_has_many(const Card &card)
{
    return card.capability >= 90 &&
           sizeof(typename ManyShape<T, MOST_SIDES<T>>::Memory) <= card.shared_bytes;
}

/* The fewest sides a block with which all blocks are there at once: a block's time falls
 * less than its sides. */
template <class T>
cudaError_t large_many(const LargeMany<T> &s, const Card &card, cudaStream_t stream)
{
    if (s.sides <= 8 * card.processors)
        return launch<8>(s, stream);
    if (MOST_SIDES<T> == 16 || s.sides <= 16 * card.processors)
        return launch<16>(s, stream);
    return launch<MOST_SIDES<T>>(s, stream);
}

#define BL_INSTANCE(T)                                                                   \
    template bool large_has_many<T>(const Card &);                                       \
    template cudaError_t large_many(const LargeMany<T> &, const Card &, cudaStream_t);
BL_FOR_EACH_TYPE(BL_INSTANCE)

} // namespace bl
