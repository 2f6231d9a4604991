/* How LU of matrices beyond the tiny ones comes to kernels of its own: mid.cu picks one
 * of the kernels that mid_lu_*.cu and mid_blocked_*.cu instantiate.
 */
#ifndef BL_MID_H
#define BL_MID_H

#include <cuda_runtime.h>
#include "../src/engine.h"

namespace bl
{

constexpr int MID_WIDTH = 64; /* of a panel, netlib's block size */

/* The rows that a panel moves: position `to[k]` gets what was in `from[k]` (rows of the
 * panel). The first are the pivot rows, to 0, 1, ... */
struct Moves {
    int count;
    short from[2 * MID_WIDTH], to[2 * MID_WIDTH];
};

/* Where the scales of GETRFSP by panels, m a matrix, lie behind the moves of `batch`. */
__host__ __device__ constexpr size_t scales_at(size_t batch)
{
    return (batch * sizeof(Moves) + 255) / 256 * 256;
}

/* What a kernel is told: a job, as far as it concerns one. */
struct MidArguments {
    struct bl_operand a, ipiv, info;
    const struct bl_item *items;
    int64_t m, n;
    int int_size;
    /* Where problem i comes from, if not from `a`: number number + i. Until the panel at
     * column 0 and what is to its right have been brought up to date. */
    struct bl_operand from;
    int64_t number;
    /* Only for the kernels that keep a matrix on the chip. Where there are moves, the
     * panel at column `first` is factored and its moves are written; else the matrix. */
    int first;
    Moves *moves;
    /* Also solved for, by kernels that can, are nrhs columns of b. Where there is a
     * phase, the determinant and INFO of number number + i are all that is asked for; `a`
     * is work space then. */
    struct bl_operand b, phase, logabs;
    int nrhs;
};

/* A kernel that keeps a matrix of at most `rows` rows on the chip, one block a matrix.
 * With a head it has more than `head` rows and columns and is alone in that there are no
 * items and nothing but its factors is asked for. */
struct MidKernel {
    const void *kernel;
    int rows, threads;
    size_t (*shared_bytes)(int m, int n);
    bool solves; /* it can, for a column a warp */
    int head;    /* 0: it has none */
};

/* The kernels of a precision by rising number of rows; the last has no kernel. */
extern const MidKernel mid_lu_s[], mid_lu_d[], mid_lu_c[], mid_lu_z[];
/* The same for GETRFSP. */
extern const MidKernel mid_scaled_s[], mid_scaled_d[], mid_scaled_c[], mid_scaled_z[];

/* The kernels of larger matrices, for up to MID_ROWS rows. */
constexpr int MID_ROWS = 1024, MID_COLUMNS = 1024;
struct BlockedKernels {
    struct {
        const void *kernel;
        int rows, threads;
    } panel[4], scaled_panel[3]; /* by rising number of rows; the latter for GETRFSP */
    struct {
        const void *kernel;
        size_t bytes;                 /* of shared memory */
        int capability;               /* of cards that have it, from there on */
        int order;                    /* of matrices that it is for, from there on */
    } strip, fast_strip, plain_strip; /* the last for GETRFSP */
    const void *arrange;
    int strip_threads;  /* arrange's too */
    size_t panel_bytes; /* of shared memory */
};
extern const BlockedKernels mid_blocked_s, mid_blocked_d, mid_blocked_c, mid_blocked_z;

/* Matrices of one launch are numbered by slots; slot i holds number first + i of the job.
 * Solve with the factors `lu` for `b`, or invert them to `b`. */
struct MidSolve {
    struct bl_operand lu, b, ipiv;
    struct bl_operand info;    /* written where there is one */
    struct bl_operand lu_info; /* where there is one and it is not 0, nothing is solved */
    const struct bl_item *items; /* of the job */
    int64_t first;
    int n, nrhs;
    int strips; /* blocks a matrix */
    int kept;   /* tiles of 64 rows of b that shared memory holds */
    int rows;   /* n, in whole tiles */
    int int_size, ipiv_size, lu_info_size;
    enum { OF_JOB, OF_A, OF_X } ld_of_b; /* where there are items */
    bool packed;                         /* lu and lu_info are by slots */
    bool own_pivots;                     /* ipiv is by slots */
    int *strange;                        /* a slot: the inverse has a NaN or Inf */
};

/* Copies of the job's matrices to slots, n x n, and items for them where the job has
 * some. */
struct MidCopy {
    struct bl_operand from, to;
    int64_t first;
    const struct bl_item *items;
    struct bl_item *own_items;
    int n;
};

/* Inverses of the strange ones as netlib forms them. */
struct MidAgain {
    MidSolve solve;
    int64_t slots, block;
    void *work; /* n x 64 a block */
};

/* POTRI of Cholesky factors `a` by the inversion that `solve` describes, whose operands
 * are by slots. */
struct MidDefinite {
    MidSolve solve;
    struct bl_operand a, info;
    const struct bl_item *items;
    struct bl_item *own_items;
    int64_t first, slots;
    int strips; /* blocks a matrix */
    char uplo;
    void *work; /* n x 64 a block */
};

struct MidDeterminant {
    MidSolve solve;
    struct bl_operand phase, logabs;
};

/* A kernel that inverts by panels of `columns`, each block up to `rows` rows, a warp 16
 * of them. */
struct InvertKernel {
    const void *kernel;
    int columns, rows;
    size_t (*shared_bytes)(int n);
};
constexpr int ROWS_A_WARP = 16;

struct SolveKernels {
    const void *many, *inverse, *few[2], *copy, *again, *determinant;
    const void *definite_as_lu, *definite_triangle, *definite_again; /* for POTRI */
    size_t (*many_bytes)(int kept, int rows); /* of shared memory; `inverse` too */
    size_t (*few_bytes[2])(int rows);         /* for up to 1 and 4 columns */
    const InvertKernel *invert; /* by rising number of columns, from sm_90; NULL: none */
};
extern const SolveKernels mid_solve_s, mid_solve_d, mid_solve_c, mid_solve_z;

} // namespace bl
#endif
