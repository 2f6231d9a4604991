/* A panel of a large LU factorisation: what large_panel.h's kernels are told.
 *
 * For the driver, the launch and the kernels; knows nothing of CUDA.
 */
#ifndef BL_LARGE_PANEL_JOB_H
#define BL_LARGE_PANEL_JOB_H

#include <stddef.h>
#include <stdint.h>
#include "../src/engine.h"

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
    bool alone = false;   /* nothing is to run beside it: it may take the whole card */
    bool chained = false; /* see large_launch.h */
};

/* The threads of its kernels, and what they tell each other. */
constexpr int PANEL_WARPS = 18;  /* of a block at most, postmen not counted */
constexpr int PANEL_BLOCKS = 16; /* of a cluster at most */
constexpr int CARD_BLOCKS = 160; /* of large_panel_card.cuh at most, in whole warps */
constexpr int CARD_POSTMEN = 2;  /* warps of a block there */
constexpr int CARD_COPIES = 4;   /* of what one of these blocks tells all */

} // namespace bl
#endif
