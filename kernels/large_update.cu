/* Launches of the update kernel: which tile an update gets.
 *
 * Called by large.cu and the steps beside it through large.h.
 */
#include "large_fragments.cuh"
#include "large_launch.h"
#include "large_update.cuh"

namespace bl
{

namespace
{

/* The larger tile keeps the arithmetic units busy, the smaller one all multiprocessors
 * where C is small. */
template <class T>
struct Tiles;
template <>
struct Tiles<float> {
    using Big = Tile<128, 128, 8, 8, 4, 8, 3>;
    using Middle = Tile<64, 64, 8, 4, 4, 8, 3>;
    using Small = Tile<32, 32, 4, 2, 4, 16, 4>;
};
template <>
struct Tiles<double> {
    using Big = Tile<128, 64, 8, 8, 1, 8, 3>;
    using Middle = Tile<64, 64, 8, 4, 1, 8, 3>;
    using Small = Tile<32, 32, 4, 2, 1, 16, 4>;
};
template <>
struct Tiles<Complex<float>> {
    using Big = Tile<64, 64, 8, 4, 2, 8, 3>;
    using Middle = Big;
    using Small = Tile<32, 32, 4, 2, 1, 16, 4>;
};
template <>
struct Tiles<Complex<double>> {
    using Big = Tile<64, 64, 4, 4, 1, 8, 2>;
    using Middle = Big;
    using Small = Tile<32, 32, 2, 2, 1, 8, 4>;
};

template <class G>
int64_t tiles_of(int64_t m, int64_t n)
{
    return (m + G::ROWS - 1) / G::ROWS * ((n + G::COLUMNS - 1) / G::COLUMNS);
}

template <class G, class T>
int64_t tiles_of(const LargeUpdate<T> &u)
{
    if (!u.squares)
        return tiles_of<G>(u.m, u.n);
    const int64_t order = int64_t(1) << u.squares;
    return ((u.m < u.n ? u.m : u.n) + order - 1) / order * tiles_of<G>(order, order);
}

template <class T, class G, bool FUSED>
const void *kernel_of(const LargeUpdate<T> &u)
{
    if constexpr (!FUSED)
        if (u.leaves_out)
            return (const void *)update_tiles<T, G, false, PLAIN, PLAIN, true>;
    return u.of_a == TURNED   ? (const void *)update_tiles<T, G, FUSED, TURNED, PLAIN>
           : u.of_b == TURNED ? (const void *)update_tiles<T, G, FUSED, PLAIN, TURNED>
                              : (const void *)update_tiles<T, G, FUSED, PLAIN, PLAIN>;
}

template <class T, class G>
cudaError_t launch(const LargeUpdate<T> &u, cudaStream_t stream)
{
    const void *kernel = u.fused ? kernel_of<T, G, true>(u) : kernel_of<T, G, false>(u);
    return launch_large(kernel, tiles_of<G>(u), G::THREADS, 0, u, u.chained, stream);
}

template <class T, class G>
cudaError_t launch_fragments(const LargeUpdate<T> &u, cudaStream_t stream)
{
    const void *kernel =
        u.of_a == TURNED   ? (const void *)update_fragments<T, G, TURNED, PLAIN>
        : u.of_b == TURNED ? (const void *)update_fragments<T, G, PLAIN, TURNED>
                           : (const void *)update_fragments<T, G, PLAIN, PLAIN>;
    cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(G::BYTES));
    if (error != cudaSuccess)
        return error;
    return launch_large(kernel, tiles_of<G>(u), G::THREADS, G::BYTES, u, u.chained,
                        stream);
}

template <class T>
using BigFragments = FragmentTile<T, sizeof(T) == 16 ? 64 : 128, 64, 16, 3>;
template <class T>
using SmallFragments = FragmentTile<T, 64, 32, 16, 3>;

/* Single precision has the smaller tiles without matrix units, which are ahead where a
 * few multiprocessors do. */
template <class T>
bool suits_fragments(const LargeUpdate<T> &u, const Card &card)
{
    return card.capability >= 90 &&
           (sizeof(Real<T>) == 8 ||
            tiles_of<SmallFragments<T>>(u) >= card.processors / 2);
}

template <class T>
cudaError_t update_by_fragments(const LargeUpdate<T> &u, const Card &card,
                                cudaStream_t stream)
{
    using Big = BigFragments<T>;
    using Small = SmallFragments<T>;
    if (!u.brief && tiles_of<Big>(u) >= card.processors)
        return launch_fragments<T, Big>(u, stream);
    return launch_fragments<T, Small>(u, stream);
}

} // namespace

template <class T>
cudaError_t large_update(const LargeUpdate<T> &u, const Card &card, cudaStream_t stream)
{
    using Big = typename Tiles<T>::Big;
    if (u.m <= 0 || u.n <= 0 || u.k <= 0)
        return cudaSuccess;
    if (u.fused && suits_fragments(u, card))
        return update_by_fragments(u, card, stream);
    using Middle = typename Tiles<T>::Middle;
    const int share = u.part == WHOLE ? 1 : 2; /* of its tiles a triangle has a half */
    const int64_t enough = int64_t(share) * card.processors;
    if (!u.brief && u.part != WHOLE && tiles_of<Big>(u) < 3 * enough &&
        tiles_of<Middle>(u) >= enough)
        return launch<T, Middle>(u, stream);
    if (!u.brief && tiles_of<Big>(u) >= enough)
        return launch<T, Big>(u, stream);
    return launch<T, typename Tiles<T>::Small>(u, stream);
}

#define BL_INSTANCE(T)                                                                   \
    template cudaError_t large_update(const LargeUpdate<T> &, const Card &, cudaStream_t);
BL_FOR_EACH_TYPE(BL_INSTANCE)

} // namespace bl
