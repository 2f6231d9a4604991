/* What large_panel.cu chooses from: the panel kernels of a precision. */
#ifndef BL_LARGE_PANEL_KERNELS_H
#define BL_LARGE_PANEL_KERNELS_H

#include "large_panel.h"

namespace bl
{

constexpr int PANEL_KERNELS = 5;
constexpr int CARD_KERNELS = 3;
constexpr int GRID_PANEL_THREADS = 512;
constexpr int GRID_PANEL_WIDTH = 32; /* columns at most */

/* A kernel of large_panel.cuh or large_panel_card.cuh. */
struct PanelKernel {
    const void *kernel;
    int width; /* columns */
    int rows;  /* a thread */
    int warps; /* a block, postmen not counted */
};

struct PanelKernels {
    int element;                        /* bytes */
    PanelKernel cluster[PANEL_KERNELS]; /* the better ones first */
    PanelKernel card[CARD_KERNELS];
    const void *grid;
};

/* What the kernel of large_panel_grid.cuh is told. */
struct GridPanel {
    LargePanel panel;
    int64_t chunk; /* rows a block */
    bool resident; /* whether a block's rows fit its shared memory */
};

const PanelKernels &panel_kernels_s();
const PanelKernels &panel_kernels_d();
const PanelKernels &panel_kernels_c();
const PanelKernels &panel_kernels_z();

} // namespace bl
#endif
