/* Launches of the step between a block of columns and the others.
 *
 * Called by large.cu through large.h.
 */
#include "large_launch.h"
#include "large_beside.cuh"

namespace bl
{

namespace
{

int64_t quotient(int64_t x, int64_t y)
{
    return (x + y - 1) / y;
}

template <class T>
int64_t blocks_of(const LargeStep<T> &s, int columns)
{
    return quotient(s.left_end - s.left, columns) +
           quotient(s.right_end - s.right, columns);
}

template <class T, class S>
cudaError_t launch(const LargeStep<T> &s, cudaStream_t stream)
{
    const void *kernel = s.w <= 32   ? (const void *)take_step<T, 32, S>
                         : s.w <= 64 ? (const void *)take_step<T, 64, S>
                                     : (const void *)take_step<T, LARGE_BLOCK<T>, S>;
    return launch_large(kernel, blocks_of(s, S::COLUMNS), S::THREADS, 0, s, s.chained,
                        stream);
}

/* With shared memory beyond what every kernel gets. */
template <class P>
cudaError_t launch_fragments(const void *kernel, int64_t blocks, size_t bytes,
                             P parameter, bool chained, cudaStream_t stream)
{
    cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes));
    if (error != cudaSuccess)
        return error;
    return launch_large(kernel, blocks, 32 * STEP_WARPS, bytes, parameter, chained,
                        stream);
}

template <class T, int W>
cudaError_t by_fragments(const LargeStep<T> &s, const Card &card, cudaStream_t stream)
{
    if (W > 32 && blocks_of(s, FRAGMENT_COLUMNS) <= card.processors)
        return launch_fragments((const void *)share_fragment_step<T, W>,
                                blocks_of(s, FRAGMENT_COLUMNS), sizeof(SharedStep<T, W>),
                                s, s.chained, stream);
    int held = FRAGMENT_COLUMNS * STEP_WARPS;
    while (held > FRAGMENT_COLUMNS && blocks_of(s, held) < card.processors)
        held /= 2;
    return launch_fragments((const void *)take_fragment_step<T, W>, blocks_of(s, held),
                            sizeof(FragmentStep<T, W>), FragmentStepOf<T>{s, held},
                            s.chained, stream);
}

constexpr int BESIDE_BLOCKS = 8; /* of a cluster: so many there are on every whole card */

cudaLaunchConfig_t beside_config(int64_t blocks, cudaLaunchAttribute (&attributes)[2])
{
    attributes[0] = {};
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim.x = BESIDE_BLOCKS;
    attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
    attributes[1] = chain_attribute();
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(unsigned(blocks));
    config.blockDim = dim3(32 * STEP_WARPS);
    config.attrs = attributes;
    config.numAttrs = 1;
    return config;
}

/* Whether this device has code for the matrix units: compiled for an older card, a kernel
 * is empty. And whether it has room for a cluster, which part of a card may not. */
struct Abilities {
    bool fragments, clusters;
};

template <class T>
Abilities ask_abilities()
{
    const void *kernel = (const void *)beside_panel<T>;
    cudaFuncAttributes code;
    cudaLaunchAttribute attributes[2];
    const cudaLaunchConfig_t config = beside_config(BESIDE_BLOCKS, attributes);
    int clusters = 0;
    const bool fragments = cudaFuncGetAttributes(&code, kernel) == cudaSuccess &&
                           code.ptxVersion >= 90,
               room = fragments && cudaOccupancyMaxActiveClusters(&clusters, kernel,
                                                                  &config) == cudaSuccess;
    if (!room)
        (void)cudaGetLastError();
    return {fragments, clusters > 0};
}

template <class T>
Abilities abilities(const LargeStep<T> &s, const Card &card)
{
    if constexpr (HAS_FRAGMENTS<T>)
        if (s.fused && !s.unless && card.capability >= 90) {
            static const Abilities known = ask_abilities<T>();
            return known;
        }
    return {};
}

} // namespace

template <class T>
bool large_takes_beside(const LargeStep<T> &s, int64_t m, const Card &card)
{
    const int64_t columns = s.right_end - s.right;
    return s.l && s.ipiv && s.w > 0 && s.w <= BESIDE_WIDTH && columns > 0 &&
           columns <= LARGE_BLOCK<T> && m - s.w <= BESIDE_BLOCKS * BESIDE_STRIPE &&
           abilities(s, card).clusters;
}

template <class T>
cudaError_t large_beside(const LargeStep<T> &s, int64_t m, cudaStream_t stream)
{
    if constexpr (HAS_FRAGMENTS<T>) {
        constexpr int HELD = FRAGMENT_COLUMNS * STEP_WARPS, SIZE = BESIDE_BLOCKS;
        const int64_t right = quotient(s.right_end - s.right, FRAGMENT_COLUMNS) * SIZE,
                      left = quotient(quotient(s.left_end - s.left, HELD), SIZE) * SIZE;
        BesidePanel<T> p = {s, m, int(quotient(m - s.w, 8 * SIZE) * 8), int(right)};
        cudaLaunchAttribute attributes[2];
        cudaLaunchConfig_t config = beside_config(right + left, attributes);
        config.numAttrs += s.chained;
        config.stream = stream;
        void *parameters[] = {&p};
        return cudaLaunchKernelExC(&config, (const void *)beside_panel<T>, parameters);
    }
    (void)m;
    (void)stream;
    return cudaErrorInvalidValue;
}

template <class T>
cudaError_t large_step(const LargeStep<T> &s, const Card &card, cudaStream_t stream)
{
    if (s.w == 0 || blocks_of(s, 1) == 0)
        return cudaSuccess;
    if constexpr (HAS_FRAGMENTS<T>)
        if (abilities(s, card).fragments)
            return s.w <= 32 ? by_fragments<T, 32>(s, card, stream)
                             : by_fragments<T, LARGE_BLOCK<T>>(s, card, stream);
    return blocks_of(s, NarrowStep::COLUMNS) <= card.processors
               ? launch<T, NarrowStep>(s, stream)
               : launch<T, WideStep>(s, stream);
}

#define BL_INSTANCE(T)                                                                   \
    template cudaError_t large_step(const LargeStep<T> &, const Card &, cudaStream_t);   \
    template bool large_takes_beside(const LargeStep<T> &, int64_t, const Card &);       \
    template cudaError_t large_beside(const LargeStep<T> &, int64_t, cudaStream_t);
BL_FOR_EACH_TYPE(BL_INSTANCE)

} // namespace bl
