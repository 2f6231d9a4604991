/* Launches of updates whose tiles are drawn.
 *
 * Called by large.cu through large_draw.h.
 */
#include "large_draw.cuh"
#include "large_launch.h"

namespace bl
{

namespace
{

template <class T, Placing OF_A, Placing OF_B, int PIECE>
cudaError_t launch(const LargeUpdate<T> &u, const LargeDraw &draw, int processors,
                   cudaStream_t stream, cudaEvent_t begun)
{
    using G = TileToDraw<T>;
    constexpr size_t BYTES = DRAWN_BYTES<T, G, OF_A, OF_B, PIECE>;
    const void *kernel = (const void *)update_drawn<T, G, OF_A, OF_B, PIECE>;
    const cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(BYTES));
    if (error != cudaSuccess)
        return error;
    cudaLaunchAttribute attributes[2] = {chain_attribute()};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(unsigned(processors));
    config.blockDim = dim3(unsigned(G::THREADS));
    config.dynamicSmemBytes = BYTES;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = u.chained;
#if CUDART_VERSION >= 12030
    if (begun) {
        cudaLaunchAttribute &attribute = attributes[config.numAttrs++];
        attribute.id = cudaLaunchAttributeLaunchCompletionEvent;
        attribute.val.launchCompletionEvent = {begun, 0};
    }
#endif
    void *parameters[] = {const_cast<LargeUpdate<T> *>(&u),
                          const_cast<LargeDraw *>(&draw)};
    return cudaLaunchKernelExC(&config, kernel, parameters);
}

template <class T, Placing OF_A, Placing OF_B>
cudaError_t launch(const LargeUpdate<T> &u, const LargeDraw &draw, int processors,
                   cudaStream_t stream, cudaEvent_t begun)
{
    const size_t places =
        size_t(u.a) | size_t(u.b) | size_t(u.lda) * sizeof(T) | size_t(u.ldb) * sizeof(T);
    return places % 16 ? launch<T, OF_A, OF_B, 8>(u, draw, processors, stream, begun)
                       : launch<T, OF_A, OF_B, 16>(u, draw, processors, stream, begun);
}

} // namespace

template <class T>
bool large_has_draw(const LargeUpdate<T> &u, const Card &card)
{
    using G = TileToDraw<T>;
    return HAS_FRAGMENTS<T> && card.capability >= 90 && u.part != WHOLE &&
           u.k % G::DEPTH == 0 && u.k >= G::DEPTH * G::STAGES;
}

template <class T>
int64_t large_tiles_to_draw(const LargeUpdate<T> &u)
{
    using G = TileToDraw<T>;
    return tiles_before<G>(u, columns_of_tiles<G>(u));
}

template <class T>
cudaError_t large_draw(const LargeUpdate<T> &u, const LargeDraw &draw, int processors,
                       cudaStream_t stream, cudaEvent_t begun)
{
    if constexpr (HAS_FRAGMENTS<T>)
        return u.part == UPPER_PART
                   ? launch<T, TURNED, PLAIN>(u, draw, processors, stream, begun)
                   : launch<T, PLAIN, TURNED>(u, draw, processors, stream, begun);
    return cudaErrorNotSupported;
}

#define BL_INSTANCE(T)                                                                   \
    template bool large_has_draw(const LargeUpdate<T> &, const Card &);                  \
    template int64_t large_tiles_to_draw(const LargeUpdate<T> &);                        \
    template cudaError_t large_draw(const LargeUpdate<T> &, const LargeDraw &, int,      \
                                    cudaStream_t, cudaEvent_t);
BL_FOR_EACH_TYPE(BL_INSTANCE)

} // namespace bl
