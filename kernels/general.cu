/* The kernels for any routine, shape and card: those that every other family leaves over.
 *
 * Called by engine.cu. How many threads and blocks a matrix gets depends on the shape,
 * the batch and the card's number of multiprocessors only. kernel.cuh is the kernel; the
 * other .cu files of the general family instantiate it.
 */
#include "family.h"
#include "kernel.cuh"

namespace bl
{

#define R_SDCZ(name, NAME, nargs, args) const void *kernel_##name(int precision);
#define E_SDCZ(name, NAME, args) const void *kernel_##name(int precision);
#include "../src/routines.def"

namespace
{

using Kernel = const void *(*)(int precision);

const Kernel kernels[BL_ROUTINES] = {
#define R_SDCZ(name, NAME, nargs, args) kernel_##name,
#define E_SDCZ(name, NAME, args) kernel_##name,
#include "../src/routines.def"
};

int64_t at_most(int64_t x, int64_t limit)
{
    return x < limit ? x : limit;
}

int64_t at_least(int64_t x, int64_t limit)
{
    return x > limit ? x : limit;
}

size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Bytes of work space from which on they are weighed against speed. */
constexpr size_t WORK_LIMIT = size_t(1) << 30;

/* How a job is launched. Depends on the job and the card alone: workspace() and run()
 * must agree. */
struct Plan {
    int threads;          /* a block */
    int blocks;           /* a team */
    int64_t teams;        /* in flight */
    size_t control_bytes; /* a team; 0 where a team is one block */
    size_t work_bytes;    /* a team */
};

/* Blocks that one matrix can keep busy: the 64 x 64 tiles of its widest step. Of a batch
 * of different shapes the largest counts. */
int64_t useful_blocks(const struct bl_job *job)
{
    int64_t rows = (job->m + NB - 1) / NB, columns = (job->n + NB - 1) / NB;
    int64_t sides = (job->nrhs + NB - 1) / NB;
    bool low = job->m <= 4096 && job->n <= NB && job->nrhs <= NB;
    if (low || at_least(at_least(job->m, job->n), job->nrhs) <= 2 * NB)
        return 1;
    switch (job->routine) {
    case BL_GETRF:
    case BL_GETRFNP:
    case BL_GETRFSP:
    case BL_GESV:
    case BL_GEINV:
    case BL_GEDET:
        return rows * at_least(columns, sides);
    default: /* a block of columns, or the right-hand sides, at a time */
        return columns * at_least(sides, 1);
    }
}

/* Bytes of work space that a team needs: see the routines' comments. */
size_t work_bytes(const struct bl_job *job)
{
    static const size_t element[BL_PRECISIONS] = {4, 8, 8, 16};
    const size_t pivots = job->n * sizeof(int64_t);
    const int64_t n = job->n;
    size_t elements = 0, others = 0;
    switch (job->routine) {
    case BL_GETRI:
        elements = work_elements(n, job->block);
        break;
    case BL_POTRI:
        elements = work_elements(n, 0);
        break;
    case BL_GETRI_OOP:
        elements = work_elements(n, NB);
        break;
    case BL_GEINV:
        elements = work_elements(n, NB);
        others = pivots;
        break;
    case BL_GEDET:
        elements = n * n;
        others = pivots;
        break;
    case BL_GETRFSP: /* reals would be enough */
        elements = job->m;
        break;
    default:
        break;
    }
    return aligned(others + elements * element[job->precision]);
}

Plan plan_of(const struct bl_job *job, const Card &card)
{
    Plan plan = {};
    int64_t largest = at_least(at_least(job->m, job->n), job->nrhs);
    plan.threads = largest <= 16   ? 32
                   : largest <= 32 ? 64
                   : largest <= 64 ? 128
                                   : THREADS;
    plan.blocks = 1;
    if (card.cooperative && job->batch <= card.processors / 2)
        plan.blocks = int(at_most(useful_blocks(job), card.processors / job->batch));
    if (plan.blocks > 1) {
        plan.teams = job->batch;
        plan.control_bytes = aligned(sizeof(Control) + 2 * plan.blocks * sizeof(Best));
    } else {
        plan.teams = at_most(job->batch, int64_t(card.processors) * 512 / plan.threads);
    }
    plan.work_bytes = work_bytes(job);
    /* Matrices in the work space: no more than the card needs to be busy. */
    if (job->routine == BL_GEDET && plan.teams * plan.work_bytes > WORK_LIMIT)
        plan.teams = at_most(plan.teams, card.processors);
    return plan;
}

bool takes(const struct bl_job *, const Card &)
{
    return true;
}

size_t workspace(const struct bl_job *job, const Card &card)
{
    Plan plan = plan_of(job, card);
    return plan.teams * (plan.control_bytes + plan.work_bytes);
}

cudaError_t launch(const struct bl_job *job, const Card &card, cudaStream_t stream)
{
    Plan plan = plan_of(job, card);
    Arguments g = {};
    g.a = job->a;
    g.b = job->b;
    g.x = job->x;
    g.ipiv = job->ipiv;
    g.info = job->info;
    g.phase = job->phase;
    g.logabs = job->logabs;
    g.items = job->items;
    g.m = job->m;
    g.n = job->n;
    g.nrhs = job->nrhs;
    g.block = job->block;
    g.batch = job->batch;
    g.uplo = job->uplo;
    g.trans = job->trans;
    g.exact = job->arithmetic == BL_EXACT;
    g.int_size = job->int_size;
    g.blocks = plan.blocks;
    g.control = (char *)job->work;
    g.control_bytes = plan.control_bytes;
    g.work = g.control + plan.teams * plan.control_bytes;
    g.work_bytes = plan.work_bytes;
    const void *kernel = kernels[job->routine](job->precision);
    void *parameters[] = {&g};
    dim3 threads(plan.threads);
    if (plan.blocks > 1) {
        cudaError_t error =
            cudaMemsetAsync(g.control, 0, plan.teams * plan.control_bytes, stream);
        if (error == cudaSuccess)
            error = cudaLaunchCooperativeKernel(kernel,
                                                dim3(unsigned(plan.teams * plan.blocks)),
                                                threads, parameters, 0, stream);
        if (error != cudaErrorCooperativeLaunchTooLarge)
            return error;
        /* Part of the card only (MPS): one block a matrix needs no other to be there. */
        (void)cudaGetLastError();
        g.blocks = 1;
    }
    return cudaLaunchKernel(kernel, dim3(unsigned(plan.teams)), threads, parameters, 0,
                            stream);
}

} // namespace

const Family general = {takes, workspace, launch};

const void *any_kernel()
{
    return kernels[0](BL_D);
}

} // namespace bl
