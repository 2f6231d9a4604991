/* The panel of a large LU factorisation: the tall block of columns that is factored alone
 * before the rest of the matrix is updated with it.
 *
 * Called by the driver of large matrices. Three kernels: large_panel.cuh keeps the panel
 * on chip across a thread-block cluster (from sm_90 on), large_panel_card.cuh across the
 * whole card, large_panel_grid.cuh takes any height on any card. Exact arithmetic, all
 * give the same bits. Everything is asynchronous in the stream, may be captured into a
 * graph, and waits for nothing that might not be resident.
 */
#ifndef BL_LARGE_PANEL_H
#define BL_LARGE_PANEL_H

#include "family.h"
#include "large_panel_job.h"

namespace bl
{

/* The columns that are best taken at once where a panel has m rows. 8, 16, 32 or 64. */
int large_panel_width(enum bl_precision, int64_t m, bool alone, const Card &);

/* Whether a panel of m rows gets the whole card where it is alone. */
bool large_panel_on_card(enum bl_precision, int64_t m, const Card &);

/* Grows with m; what is enough for a panel is enough for every lower one. */
size_t large_panel_workspace(enum bl_precision, int64_t m, const Card &);

/* Factor the panel in place, its own rows interchanged: what xGETRF leaves of an m x w
 * matrix. `begun`, if any, is recorded when all of the panel's blocks are on the card or,
 * where no kernel can tell, before it. */
cudaError_t large_panel_launch(const LargePanel &, const Card &, cudaStream_t,
                               cudaEvent_t begun = nullptr);

} // namespace bl
#endif
