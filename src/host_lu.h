/* What batches need on the CPU and LAPACK does not have (host_lu.c). */
#ifndef BL_HOST_LU_H
#define BL_HOST_LU_H

#include "engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* LU without interchanges. INFO is returned, as by all of these. */
int64_t bl_host_getrfnp(enum bl_precision p, int64_t m, int64_t n, void *a, int64_t lda);

/* LU with implicit (scaled) partial pivoting. `scale` is scratch for m reals. */
int64_t bl_host_getrfsp(enum bl_precision p, int64_t m, int64_t n, void *a, int64_t lda,
                        void *ipiv, int int_size, void *scale);

/* The determinant from what getrf left: phase * exp(logabs). */
void bl_host_det(enum bl_precision p, int64_t n, const void *lu, int64_t lda,
                 const void *ipiv, int int_size, void *phase, void *logabs);

#ifdef __cplusplus
}
#endif
#endif
