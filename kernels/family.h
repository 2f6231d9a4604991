/* Families of kernels: what engine.cu chooses from.
 *
 * Each is a table entry of functions, defined in the family's own .cu file. All of
 * them depend on the job and the card alone, so that they agree with each other and a
 * call gives the same bits each time.
 */
#ifndef BL_FAMILY_H
#define BL_FAMILY_H

#include <cuda_runtime.h>
#include "../src/engine.h"

namespace bl
{

/* What a family may know of the device. */
struct Card {
    int processors;      /* multiprocessors */
    int capability;      /* 90 for sm_90 */
    size_t shared_bytes; /* of shared memory that a block may ask for */
    bool cooperative;    /* whether the blocks of a launch can wait for each other */
};

struct Family {
    bool (*takes)(const struct bl_job *, const Card &);
    /* Bytes of device memory for job->work. */
    size_t (*workspace)(const struct bl_job *, const Card &);
    /* Enqueue the whole job. INFO is written for every problem. */
    cudaError_t (*launch)(const struct bl_job *, const Card &, cudaStream_t);
    /* As the engine's; NULL: all of A at once. */
    int64_t (*part)(const struct bl_job *, const Card &, int64_t from) = nullptr;
};

extern const Family tiny;               /* LU of m, n <= 32, getrf to 48 */
extern const Family tiny_cholesky;      /* n <= 32 */
extern const Family mid;                /* LU of m, n <= 1024 */
extern const Family mid_cholesky;       /* potrf of n <= 1024 */
extern const Family mid_cholesky_fast;  /* of those, fast ones; by way of mid_cholesky */
extern const Family mid_cholesky_solve; /* potrs, posv of n <= 1024 */
extern const Family mid_potri;          /* potri of n <= 128, double */
extern const Family large;              /* few matrices beyond some size; long ones */
extern const Family triangles;          /* getrs, potrs of few sides, n <= 1024 */
extern const Family triangles_after_potrf; /* posv's second half */
extern const Family general;               /* everything */

/* One of the general kernels: where it has no code for the device, none has. */
const void *any_kernel();

/* Above so many right-hand sides a few matrices go to the kernels of large ones, or else
 * to the general ones, whose tiles are ahead of a warp for some columns. */
constexpr int64_t SIDES_BY_WARPS = 64;

/* The size class of max(m, n) = n <= 32: what tiny jobs may share a run. */
int tiny_class(int64_t n);

/* The same of larger jobs: up to the same power of two, from 0 to 23. Wide matrices of no
 * more rows than netlib's block has are apart: netlib factors one by halves, right-hand
 * columns and all, not by blocks as mid_blocked.cuh, which only shows where there is a
 * NaN or Inf. */
inline int shape_class(int64_t m, int64_t n)
{
    const int64_t order = m > n ? m : n, block = 64;
    int c = 0;
    while (c < 11 && (block << c) < order)
        c++;
    return 2 * c + (m > block || n <= block);
}

} // namespace bl
#endif
