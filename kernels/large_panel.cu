/* Which panel kernel takes a panel, and its launch.
 *
 * Called by the driver of large matrices. The choice depends on the panel's shape, its
 * precision, whether other kernels are to run beside it, and the card. Clusters that
 * cannot be had here (a part of a card, an older one) leave the panel to smaller ones,
 * and at last to the kernel that needs none.
 */
#include <atomic>
#include "large_launch.h"
#include "large_panel_kernels.h"

namespace bl
{
namespace
{

const PanelKernels &kernels_of(enum bl_precision precision)
{
    switch (precision) {
    case BL_S:
        return panel_kernels_s();
    case BL_D:
        return panel_kernels_d();
    case BL_C:
        return panel_kernels_c();
    default:
        return panel_kernels_z();
    }
}

/* A cluster's shape for a panel. */
struct Shape {
    const PanelKernel *kernel; /* NULL: no cluster takes it */
    int blocks, warps;
};

cudaLaunchConfig_t config_of(const Shape &shape, int w, int element,
                             cudaLaunchAttribute (&attribute)[3])
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(unsigned(shape.blocks));
    config.blockDim = dim3(unsigned(32 * (shape.warps + 1)));
    config.dynamicSmemBytes = size_t(w) * element * 32 * shape.warps * shape.kernel->rows;
    attribute[0].id = cudaLaunchAttributeClusterDimension;
    attribute[0].val.clusterDim.x = config.gridDim.x;
    attribute[0].val.clusterDim.y = attribute[0].val.clusterDim.z = 1;
    config.attrs = attribute;
    config.numAttrs = 1;
    return config;
}

enum { UNKNOWN, YES, NO };

/* Whether this device has code for a kernel and that much shared memory. Compiled for an
 * older card, a kernel is empty, whatever runs it. */
bool can_have(const void *kernel, size_t shared)
{
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess &&
           attributes.ptxVersion >= 90 &&
           cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                int(shared)) == cudaSuccess;
}

/* Whether the device has room for such a cluster when it is empty. Asked once. */
bool available(enum bl_precision precision, int which, const Shape &shape, int element)
{
    static std::atomic<signed char> known[BL_PRECISIONS][PANEL_KERNELS][PANEL_BLOCKS + 1];
    std::atomic<signed char> &answer = known[precision][which][shape.blocks];
    if (answer == UNKNOWN) {
        const void *kernel = shape.kernel->kernel;
        Shape full = shape;
        full.warps = shape.kernel->warps;
        cudaLaunchAttribute attributes_of[3];
        cudaLaunchConfig_t config =
            config_of(full, shape.kernel->width, element, attributes_of);
        int clusters = 0;
        bool yes =
            can_have(kernel, config.dynamicSmemBytes) &&
            cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed,
                                 1) == cudaSuccess &&
            cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) == cudaSuccess &&
            clusters > 0;
        if (!yes)
            (void)cudaGetLastError();
        answer = yes ? YES : NO;
    }
    return answer == YES;
}

Shape cluster_of(enum bl_precision precision, int64_t m, int w)
{
    const PanelKernels &kernels = kernels_of(precision);
    for (int which = 0; which < PANEL_KERNELS; which++) {
        const PanelKernel &kernel = kernels.cluster[which];
        if (!kernel.kernel || kernel.width < w)
            continue;
        for (int blocks = m <= 1024 * kernel.rows ? 8 : 16; blocks >= 8; blocks /= 2) {
            int64_t rows = int64_t(blocks) * kernel.rows * 32;
            int64_t warps = (m + rows - 1) / rows;
            Shape shape = {&kernel, blocks, int(warps)};
            if (warps <= kernel.warps &&
                available(precision, which, shape, kernels.element))
                return shape;
        }
    }
    return {};
}

size_t card_shared(const PanelKernel &kernel, int warps, int w, int element)
{
    return size_t(w) * element * 32 * warps * kernel.rows;
}

bool available_on_card(enum bl_precision precision, int which)
{
    static std::atomic<signed char> known[BL_PRECISIONS][CARD_KERNELS];
    std::atomic<signed char> &answer = known[precision][which];
    if (answer == UNKNOWN) {
        const PanelKernels &kernels = kernels_of(precision);
        const PanelKernel &kernel = kernels.card[which];
        const size_t shared =
            card_shared(kernel, kernel.warps, kernel.width, kernels.element);
        int blocks = 0;
        bool yes = can_have(kernel.kernel, shared) &&
                   cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                       &blocks, kernel.kernel, 32 * (kernel.warps + CARD_POSTMEN),
                       shared) == cudaSuccess &&
                   blocks > 0;
        if (!yes)
            (void)cudaGetLastError();
        answer = yes ? YES : NO;
    }
    return answer == YES;
}

/* Blocks are as many as can be: a block's step takes the longer the more rows it has, and
 * to hear of many blocks takes hardly longer than of few. */
Shape card_of(enum bl_precision precision, int64_t m, int w, const Card &card)
{
    const PanelKernels &kernels = kernels_of(precision);
    const int most = card.processors < CARD_BLOCKS ? card.processors : CARD_BLOCKS;
    for (int which = 0; which < CARD_KERNELS && card.cooperative; which++) {
        const PanelKernel &kernel = kernels.card[which];
        const int64_t rows = int64_t(32) * kernel.rows,
                      warps = (m + rows * most - 1) / (rows * most),
                      blocks = (m + rows * warps - 1) / (rows * warps);
        if (w <= kernel.width && warps <= kernel.warps &&
            available_on_card(precision, which))
            return {&kernel, int(blocks), int(warps)};
    }
    return {};
}

/* Columns at once from which a cluster is ahead of the whole card. */
constexpr int QUICK_WIDTH = 16;

/* A cluster is beside other kernels, and quick. A panel that is alone goes to the whole
 * card where a cluster would take few columns at once. */
struct Choice {
    Shape cluster, card; /* at most one of them has a kernel */
    int width() const
    {
        return cluster.kernel ? cluster.kernel->width
               : card.kernel  ? card.kernel->width
                              : 0;
    }
};

Choice choice_of(enum bl_precision precision, int64_t m, int w, bool alone,
                 const Card &card)
{
    if (card.capability < 90)
        return {};
    const Shape cluster = cluster_of(precision, m, w),
                wide =
                    alone || !cluster.kernel ? card_of(precision, m, w, card) : Shape{};
    if (wide.kernel && (!cluster.kernel || cluster.kernel->width < QUICK_WIDTH))
        return {{}, wide};
    return {cluster, {}};
}

struct Grid {
    int blocks;
    int64_t chunk;
};

Grid grid_of(int64_t m, const Card &card)
{
    Grid grid;
    grid.blocks = card.cooperative ? card.processors : 1;
    grid.chunk = (m + grid.blocks - 1) / grid.blocks;
    if (grid.chunk < GRID_PANEL_WIDTH) /* block 0 owns the diagonal */
        grid.chunk = GRID_PANEL_WIDTH;
    grid.blocks = int((m + grid.chunk - 1) / grid.chunk);
    return grid;
}

/* What the blocks tell each other, see large_panel_grid.cuh: twice a notice each, and
 * twice a row each and the diagonal's. */
size_t board_bytes(int blocks, int element)
{
    size_t packets = size_t(element + 7) / 8 * GRID_PANEL_WIDTH;
    return 16 * 2 * (size_t(blocks) + (size_t(blocks) + 1) * packets);
}

/* The packets of large_panel_card.cuh: whatever the precision, a block writes at most
 * seven of a column, twice, and a rest takes less than 32. */
size_t card_bytes(int blocks)
{
    return 16 * size_t(2 * CARD_COPIES) * (size_t(blocks) * 7 + 32);
}

cudaError_t launch_on_card(const LargePanel &panel, const Shape &shape,
                           cudaStream_t stream)
{
    LargePanel g = panel;
    void *parameters[] = {&g};
    cudaError_t error = cudaMemsetAsync(panel.work, 0, card_bytes(shape.blocks), stream);
    if (error != cudaSuccess)
        return error;
    return cudaLaunchCooperativeKernel(shape.kernel->kernel, dim3(unsigned(shape.blocks)),
                                       dim3(unsigned(32 * (shape.warps + CARD_POSTMEN))),
                                       parameters,
                                       card_shared(*shape.kernel, shape.warps, panel.w,
                                                   kernels_of(panel.precision).element),
                                       stream);
}

cudaError_t launch_grid(const LargePanel &panel, const Card &card, cudaStream_t stream)
{
    const PanelKernels &kernels = kernels_of(panel.precision);
    const Grid grid = grid_of(panel.m, card);
    GridPanel g = {panel, grid.chunk, false};
    void *parameters[] = {&g};
    cudaError_t error =
        cudaMemsetAsync(panel.work, 0, board_bytes(grid.blocks, kernels.element), stream);
    if (error != cudaSuccess)
        return error;
    if (grid.blocks > 1) {
        cudaFuncAttributes attributes;
        error = cudaFuncGetAttributes(&attributes, kernels.grid);
        if (error != cudaSuccess)
            return error;
        size_t bytes = size_t(grid.chunk | 1) * panel.w * kernels.element;
        size_t room = card.shared_bytes - attributes.sharedSizeBytes;
        g.resident = bytes <= room;
        error = cudaFuncSetAttribute(
            kernels.grid, cudaFuncAttributeMaxDynamicSharedMemorySize, int(room));
        if (error != cudaSuccess)
            return error;
        error = cudaLaunchCooperativeKernel(kernels.grid, dim3(unsigned(grid.blocks)),
                                            dim3(GRID_PANEL_THREADS), parameters,
                                            g.resident ? bytes : 0, stream);
        if (error != cudaErrorCooperativeLaunchTooLarge)
            return error;
        /* Part of the card only (MPS): one block needs no other to be there. */
        (void)cudaGetLastError();
    }
    g.chunk = panel.m;
    g.resident = false;
    return cudaLaunchKernel(kernels.grid, dim3(1), dim3(GRID_PANEL_THREADS), parameters,
                            0, stream);
}

} // namespace

int large_panel_width(enum bl_precision precision, int64_t m, bool alone,
                      const Card &card)
{
    const int width = choice_of(precision, m, 1, alone, card).width();
    if (width)
        return width;
    return precision == BL_Z ? 16 : GRID_PANEL_WIDTH;
}

bool large_panel_on_card(enum bl_precision precision, int64_t m, const Card &card)
{
    return choice_of(precision, m, 1, true, card).card.kernel;
}

size_t large_panel_workspace(enum bl_precision precision, int64_t m, const Card &card)
{
    /* A lower panel can have more blocks, but never more than there are processors. */
    int blocks = grid_of(m, card).blocks;
    if (blocks < card.processors)
        blocks = card.processors;
    const size_t bytes = board_bytes(blocks, kernels_of(precision).element);
    return bytes > card_bytes(CARD_BLOCKS) ? bytes : card_bytes(CARD_BLOCKS);
}

cudaError_t large_panel_launch(const LargePanel &panel, const Card &card,
                               cudaStream_t stream, cudaEvent_t begun)
{
    const Choice choice = choice_of(panel.precision, panel.m, panel.w, panel.alone, card);
    if (begun && !choice.cluster.kernel) {
        const cudaError_t error = cudaEventRecord(begun, stream);
        if (error != cudaSuccess)
            return error;
    }
    if (choice.card.kernel) {
        const cudaError_t error = launch_on_card(panel, choice.card, stream);
        if (error != cudaErrorCooperativeLaunchTooLarge)
            return error;
        (void)cudaGetLastError(); /* part of the card only (MPS) */
    }
    const Shape &shape = choice.cluster;
    if (!shape.kernel)
        return launch_grid(panel, card, stream);
    LargePanel g = panel;
    void *parameters[] = {&g};
    cudaLaunchAttribute attribute[3];
    cudaLaunchConfig_t config =
        config_of(shape, panel.w, kernels_of(panel.precision).element, attribute);
    if (panel.chained)
        attribute[config.numAttrs++] = chain_attribute();
#if CUDART_VERSION >= 12030 /* nobody has such an event before */
    if (begun) {
        attribute[config.numAttrs] = {};
        attribute[config.numAttrs].id = cudaLaunchAttributeLaunchCompletionEvent;
        attribute[config.numAttrs++].val.launchCompletionEvent.event = begun;
    }
#endif
    config.stream = stream;
    return cudaLaunchKernelExC(&config, shape.kernel->kernel, parameters);
}

} // namespace bl
