/* The panel kernels in single precision, for large_panel.cu. */
#include "large_panel_card.cuh"
#include "large_panel_grid.cuh"

namespace bl
{
const PanelKernels &panel_kernels_s()
{
    static const PanelKernels kernels = {
        sizeof(float),
        {{(const void *)cluster_panel<float, 64, 1, 7>, 64, 1, 7},
         {(const void *)cluster_panel<float, 32, 1, 15>, 32, 1, 15},
         {(const void *)cluster_panel<float, 32, 2, 15>, 32, 2, 15},
         {(const void *)cluster_panel<float, 16, 4, 15>, 16, 4, 15},
         {}},
        {{(const void *)card_panel<float, 32, 1, 14>, 32, 1, 14},
         {(const void *)card_panel<float, 32, 2, 14>, 32, 2, 14},
         {(const void *)card_panel<float, 16, 4, 14>, 16, 4, 14}},
        (const void *)grid_panel<float>};
    return kernels;
}
} // namespace bl
