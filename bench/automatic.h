#ifndef BL_BENCH_AUTOMATIC_H
#define BL_BENCH_AUTOMATIC_H

#include "../src/engine.h"

#ifdef __cplusplus
extern "C"
#endif
    /* enum bl_arithmetic, of the job's routine, precision and sizes. */
    int
    automatic_arithmetic(const struct bl_job *job);

#endif
