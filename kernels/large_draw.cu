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

struct Launch {
    LargeDraw draw;
    unsigned blocks;
    cudaStream_t stream;
    cudaEvent_t begun;
};

template <class T, Placing OF_A, Placing OF_B, bool BY_ROWS, int PIECE>
cudaError_t launch(const LargeUpdate<T> &u, const Launch &l)
{
    using G = TileToDraw<T>;
    constexpr size_t BYTES = DRAWN_BYTES<T, G, OF_A, OF_B, PIECE>;
    const void *kernel = (const void *)update_drawn<T, G, OF_A, OF_B, PIECE, BY_ROWS>;
    const cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(BYTES));
    if (error != cudaSuccess)
        return error;
    cudaLaunchAttribute attributes[2] = {chain_attribute()};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(l.blocks);
    config.blockDim = dim3(unsigned(G::THREADS));
    config.dynamicSmemBytes = BYTES;
    config.stream = l.stream;
    config.attrs = attributes;
    config.numAttrs = u.chained;
#if CUDART_VERSION >= 12030
    if (l.begun) {
        cudaLaunchAttribute &attribute = attributes[config.numAttrs++];
        attribute.id = cudaLaunchAttributeLaunchCompletionEvent;
        attribute.val.launchCompletionEvent = {l.begun, 0};
    }
#endif
    void *parameters[] = {const_cast<LargeUpdate<T> *>(&u),
                          const_cast<LargeDraw *>(&l.draw)};
    return cudaLaunchKernelExC(&config, kernel, parameters);
}

template <class T, Placing OF_A, Placing OF_B, bool BY_ROWS = false>
cudaError_t launch(const LargeUpdate<T> &u, const Launch &l)
{
    const size_t places =
        size_t(u.a) | size_t(u.b) | size_t(u.lda) * sizeof(T) | size_t(u.ldb) * sizeof(T);
    return places % 16 ? launch<T, OF_A, OF_B, BY_ROWS, int(sizeof(Real<T>))>(u, l)
                       : launch<T, OF_A, OF_B, BY_ROWS, 16>(u, l);
}

template <class T>
cudaError_t launch(const LargeUpdate<T> &u, const Launch &l)
{
    if constexpr (sizeof(Real<T>) == 4) /* what is not of a triangle */
        if (u.of_a == u.of_b)
            return launch<T, PLAIN, PLAIN>(u, l);
    return u.of_a == TURNED ? launch<T, TURNED, PLAIN>(u, l)
                            : launch<T, PLAIN, TURNED>(u, l);
}

} // namespace

template <class T>
bool large_has_draw(const LargeUpdate<T> &u, const Card &card)
{
    using G = TileToDraw<T>;
    constexpr size_t BYTES[] = {DRAWN_BYTES<T, G, PLAIN, PLAIN, 16>,
                                DRAWN_BYTES<T, G, PLAIN, TURNED, 16>,
                                DRAWN_BYTES<T, G, TURNED, PLAIN, 16>};
    for (size_t bytes : BYTES)
        if (bytes > card.shared_bytes)
            return false;
    return card.capability >= 90 && !u.fresh && !u.unless && u.k % G::DEPTH == 0 &&
           u.k >= G::DEPTH * G::STAGES && (sizeof(Real<T>) == 4 || u.part != WHOLE);
}

template <class T>
int64_t large_tiles_to_draw(const LargeUpdate<T> &u, int64_t hole)
{
    return TilesToDraw<TileToDraw<T>, T>(u, hole).count();
}

template <class T>
cudaError_t large_draw(const LargeUpdate<T> &u, const LargeDraw &draw, int processors,
                       cudaStream_t stream, cudaEvent_t begun)
{
    return launch(u, {draw, unsigned(processors), stream, begun});
}

template <class T>
cudaError_t large_by_tiles(const LargeUpdate<T> &u, bool by_rows, cudaStream_t stream)
{
    const unsigned tiles = unsigned(large_tiles_to_draw(u));
    const Launch l = {{nullptr, 0, tiles}, tiles, stream, nullptr};
    if constexpr (sizeof(Real<T>) == 4)
        return by_rows ? launch<T, PLAIN, PLAIN, true>(u, l) : launch(u, l);
    return launch(u, l);
}

#define BL_INSTANCE(T)                                                                   \
    template bool large_has_draw(const LargeUpdate<T> &, const Card &);                  \
    template int64_t large_tiles_to_draw(const LargeUpdate<T> &, int64_t);               \
    template cudaError_t large_draw(const LargeUpdate<T> &, const LargeDraw &, int,      \
                                    cudaStream_t, cudaEvent_t);                          \
    template cudaError_t large_by_tiles(const LargeUpdate<T> &, bool, cudaStream_t);
BL_FOR_EACH_TYPE(BL_INSTANCE)

} // namespace bl
