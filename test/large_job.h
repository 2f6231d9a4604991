/* One large matrix straight through the engine. */
#ifndef LARGE_JOB_H
#define LARGE_JOB_H

#include "matrices.h"

struct large_job {
    enum bl_routine_id routine;
    enum bl_arithmetic arithmetic;
    char uplo, trans;
    bool lean;        /* memory is short */
    struct matrix *a; /* in and out, as are all */
    struct matrix *b; /* NULL: none */
    int64_t *pivots;  /* min(m, n); NULL: none */
    int64_t info;
};

/* False: the engine failed. Any thread. */
bool large_run(const struct bl_engine *engine, struct large_job *x);

#endif
