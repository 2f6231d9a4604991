/* The panel of a large LU factorisation: the tall block of columns that is factored alone
 * before the rest of the matrix is updated with it.
 *
 * Called by the driver of large matrices. Two kernels: large_panel.cuh keeps the panel on
 * chip across a thread-block cluster (from sm_90 on), large_panel_grid.cuh takes any
 * height on any card. Exact arithmetic, both give the same bits. Everything is
 * asynchronous in the stream, may be captured into a graph, and waits for nothing that
 * might not be resident.
 */
#ifndef BL_LARGE_PANEL_H
#define BL_LARGE_PANEL_H

#include "family.h"

namespace bl
{

struct LargePanel {
    enum bl_precision precision;
    int64_t m;      /* rows: the diagonal's and all below, m >= w */
    int w;          /* columns, 1 to large_panel_width() */
    void *a;        /* its first element, in device memory */
    int64_t lda;    /* in elements */
    int64_t offset; /* the row (and column) that the first element has in the matrix */
    void *pivots;   /* device: w entries of IPIV, as LAPACK counts (offset included) */
    int int_size;   /* bytes of an entry: 4 or 8 */
    int64_t *info;  /* device: the column of the first zero pivot, as INFO counts. Written
                       only where it is 0; the driver clears it */
    int *odd; /* device: set to 1 when the factored panel holds a NaN or an infinity,
                 else left alone. Then values, not IPIV, can differ from netlib's */

    void *work;           /* device: large_panel_workspace() bytes, 256-byte aligned */
    bool chained = false; /* see large_launch.h */
};

/* The columns that are best taken at once where a panel has m rows. 8, 16, 32 or 64. */
int large_panel_width(enum bl_precision, int64_t m, const Card &);

/* Grows with m; what is enough for a panel is enough for every lower one. */
size_t large_panel_workspace(enum bl_precision, int64_t m, const Card &);

/* Factor the panel in place, its own rows interchanged: what xGETRF leaves of an m x w
 * matrix. */
cudaError_t large_panel_launch(const LargePanel &, const Card &, cudaStream_t);

} // namespace bl
#endif
