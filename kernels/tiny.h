/* How matrices of at most 32 rows and columns, for some routines a few more, come to
 * kernels of their own.
 *
 * engine.cu asks the family in tiny.cu, which picks one of the kernels that tiny_*.cu
 * instantiate. None of them needs a work space.
 */
#ifndef BL_TINY_H
#define BL_TINY_H

#include "../src/engine.h"

namespace bl
{

/* Right-hand sides that a group of lanes takes in GETRS, one after the other. */
constexpr int TINY_COLUMNS = 8;

/* What a tiny kernel is told: a job, as far as it concerns one. */
struct TinyArguments {
    struct bl_operand a, b, x, ipiv, info, phase, logabs;
    const struct bl_item *items;
    int64_t batch;
    int64_t nrhs;
    int m, n;
    int int_size;
    bool after_factoring; /* solves: where INFO is not 0, leave B alone */
};

inline TinyArguments tiny_arguments(const struct bl_job *job)
{
    TinyArguments g = {};
    g.a = job->a;
    g.b = job->b;
    g.x = job->routine == BL_GETRI ? job->a : job->x;
    g.ipiv = job->ipiv;
    g.info = job->info;
    g.phase = job->phase;
    g.logabs = job->logabs;
    g.items = job->items;
    g.batch = job->batch;
    g.nrhs = job->nrhs;
    g.m = int(job->m);
    g.n = int(job->n);
    g.int_size = job->int_size;
    return g;
}

struct TinyKernel {
    const void *kernel;
    int threads;  /* a block */
    int problems; /* a block */
};

} // namespace bl
#endif
