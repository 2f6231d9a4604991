/* batchlapack: LAPACK calls of existing programs on an NVIDIA GPU.
 *
 * A program that is only run under the preload needs nothing from here. Programs that
 * know the library may link -lbatchlapack and control it.
 */
#ifndef BATCHLAPACK_H
#define BATCHLAPACK_H

#ifdef __cplusplus
extern "C" {
#endif

/* Where the calling thread's LAPACK calls run; see BATCHLAPACK_MODE. DEFAULT: as the
 * environment says. */
enum {
    BATCHLAPACK_MODE_DEFAULT = -1,
    BATCHLAPACK_MODE_AUTO = 0,
    BATCHLAPACK_MODE_GPU = 1,
    BATCHLAPACK_MODE_CPU = 2
};

/* Set the calling thread's mode; returns the one before, or -2 (and changes nothing) when
 * `mode` is none of the above. From Fortran: call batchlapack_set_mode(mode). Only
 * affects later calls of this thread. */
int batchlapack_set_mode(int mode);

/* The version of the library, for example "0.1.0". */
const char *batchlapack_version(void);

#ifdef __cplusplus
}
#endif
#endif
