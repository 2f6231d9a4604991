/* How LU of matrices beyond the tiny ones comes to kernels of its own: mid.cu picks one of
 * the kernels that mid_lu_*.cu and mid_blocked_*.cu instantiate.
 */
#ifndef BL_MID_H
#define BL_MID_H

#include <cuda_runtime.h>
#include "../src/engine.h"

namespace bl
{

/* What a kernel is told: a job, as far as it concerns one. */
struct MidArguments {
    struct bl_operand a, ipiv, info;
    const struct bl_item *items;
    int64_t m, n;
    int int_size;
};

/* A kernel that keeps a matrix of at most `rows` rows on the chip, one block a matrix. */
struct MidKernel {
    const void *kernel;
    int rows, threads;
    size_t (*shared_bytes)(int m, int n);
};

/* The kernels of a precision by rising number of rows; the last has no kernel. */
extern const MidKernel mid_lu_s[], mid_lu_d[], mid_lu_c[], mid_lu_z[];

/* The kernels of larger matrices, for up to MID_ROWS rows. */
constexpr int MID_ROWS = 1024, MID_COLUMNS = 1024;
struct BlockedKernels {
    struct {
        const void *kernel;
        int rows, threads;
    } panel[4]; /* by rising number of rows */
    const void *strip, *arrange;
    int strip_threads;
    size_t panel_bytes, strip_bytes; /* of shared memory */
    size_t moves_bytes;              /* of work space a matrix */
};
extern const BlockedKernels mid_blocked_s, mid_blocked_d, mid_blocked_c, mid_blocked_z;

} // namespace bl
#endif
