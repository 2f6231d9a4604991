/* The panel kernels in single complex precision, for large_panel.cu. */
#include "large_panel_card.cuh"
#include "large_panel_grid.cuh"

namespace bl
{
const PanelKernels &panel_kernels_c()
{
    static const PanelKernels kernels = {
        sizeof(Complex<float>),
        {{(const void *)cluster_panel<Complex<float>, 32, 1, 15>, 32, 1, 15},
         {(const void *)cluster_panel<Complex<float>, 32, 1, 16>, 32, 1, 16},
         {(const void *)cluster_panel<Complex<float>, 16, 2, 15>, 16, 2, 15},
         {(const void *)cluster_panel<Complex<float>, 8, 4, 15>, 8, 4, 15}},
        {{(const void *)card_panel<Complex<float>, 32, 1, 14>, 32, 1, 14},
         {(const void *)card_panel<Complex<float>, 32, 1, 18>, 32, 1, 18},
         {(const void *)card_panel<Complex<float>, 16, 2, 14>, 16, 2, 14}},
        (const void *)grid_panel<Complex<float>>};
    return kernels;
}
} // namespace bl
