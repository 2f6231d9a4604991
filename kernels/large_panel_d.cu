/* The panel kernels in double precision, for large_panel.cu. */
#include "large_panel_card.cuh"
#include "large_panel_grid.cuh"

namespace bl
{
const PanelKernels &panel_kernels_d()
{
    static const PanelKernels kernels = {
        sizeof(double),
        {{(const void *)cluster_panel<double, 32, 1, 15>, 32, 1, 15},
         {(const void *)cluster_panel<double, 32, 1, 16>, 32, 1, 16},
         {(const void *)cluster_panel<double, 16, 2, 15>, 16, 2, 15},
         {(const void *)cluster_panel<double, 8, 4, 15>, 8, 4, 15}},
        {{(const void *)card_panel<double, 32, 1, 14>, 32, 1, 14},
         {(const void *)card_panel<double, 32, 1, 18>, 32, 1, 18},
         {(const void *)card_panel<double, 16, 2, 14>, 16, 2, 14}},
        (const void *)grid_panel<double>};
    return kernels;
}
} // namespace bl
