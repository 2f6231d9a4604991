/* Which Cholesky jobs the tiny kernels take, and their launch. Called by engine.cu. */
#include "tiny_cholesky.h"

namespace bl
{

int tiny_cholesky_class(int64_t n)
{
    return n <= 4 ? 4 : n <= 8 ? 8 : n <= 16 ? 16 : n <= 24 ? 24 : 32;
}

namespace
{

bool takes(const struct bl_job *job, const Card &)
{
    switch (job->routine) {
    case BL_POTRF:
    case BL_POTRS:
    case BL_POSV:
    case BL_POTRI:
        return job->n >= 1 && job->n <= 32 && job->batch >= 1;
    default:
        return false;
    }
}

size_t workspace(const struct bl_job *, const Card &)
{
    return 0;
}

cudaError_t launch(const struct bl_job *job, const Card &, cudaStream_t stream)
{
    TinyCholeskyArguments g = {};
    g.a = job->a;
    g.b = job->b;
    g.info = job->info;
    g.items = job->items;
    g.batch = job->batch;
    g.nrhs = job->nrhs;
    g.n = int(job->n);
    g.int_size = job->int_size;
    g.uplo = job->uplo;
    g.factored = job->routine == BL_POTRS;
    const bool upper = job->uplo == 'U';
    TinyCholeskyKernel k =
        job->routine == BL_POTRF   ? tiny_potrf(job->precision, g.n, upper)
        : job->routine == BL_POTRI ? tiny_potri(job->precision, g.n)
                                   : tiny_posv(job->precision, g.n, upper);
    /* A launch has room for 2^31 - 1 blocks; no device's memory has for their matrices.
     */
    int64_t blocks = (job->batch + k.problems - 1) / k.problems;
    void *parameters[] = {&g};
    return cudaLaunchKernel(k.kernel, dim3(unsigned(blocks)), dim3(unsigned(k.threads)),
                            parameters, 0, stream);
}

} // namespace

const Family tiny_cholesky = {takes, workspace, launch};

} // namespace bl
