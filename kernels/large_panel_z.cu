/* The panel kernels in double complex precision, for large_panel.cu. */
#include "large_panel_card.cuh"
#include "large_panel_grid.cuh"

namespace bl
{
const PanelKernels &panel_kernels_z()
{
    static const PanelKernels kernels = {
        sizeof(Complex<double>),
        {{(const void *)cluster_panel<Complex<double>, 32, 1, 7>, 32, 1, 7},
         {(const void *)cluster_panel<Complex<double>, 16, 1, 15>, 16, 1, 15},
         {(const void *)cluster_panel<Complex<double>, 16, 1, 16>, 16, 1, 16},
         {(const void *)cluster_panel<Complex<double>, 8, 2, 15>, 8, 2, 15},
         {}},
        {{(const void *)card_panel<Complex<double>, 16, 1, 14>, 16, 1, 14},
         {(const void *)card_panel<Complex<double>, 16, 1, 18>, 16, 1, 18},
         {(const void *)card_panel<Complex<double>, 8, 2, 14>, 8, 2, 14}},
        (const void *)grid_panel<Complex<double>>};
    return kernels;
}
} // namespace bl
