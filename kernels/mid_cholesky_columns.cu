/* Which Cholesky jobs mid_cholesky_columns.cuh takes, its kernel, and the launch. Called
 * by engine.cu. */
#include "family.h"
#include "mid_cholesky_columns.cuh"

namespace bl
{
namespace
{

constexpr int MOST_THREADS = 128;

/* A block a matrix. Shared memory: what the columns are multiplied with. */
template <class T>
__global__ void __launch_bounds__(MOST_THREADS, sizeof(T) == 4 ? 4 : 3)
    potrf_columns(const __grid_constant__ CholeskyRows g)
{
    __shared__ CholeskyColumnsShared<T> shared;
    Team team;
    team.thread = threadIdx.x;
    team.threads = blockDim.x;
    cholesky_columns(g, shared, team, blockIdx.x);
}

const void *const kernels[BL_PRECISIONS] = {(const void *)potrf_columns<float>,
                                            (const void *)potrf_columns<double>,
                                            (const void *)potrf_columns<Complex<float>>,
                                            (const void *)potrf_columns<Complex<double>>};

/* Few matrices: the blocks of a team share one in the general kernel. */
bool takes(const struct bl_job *job, const Card &card)
{
    return job->routine == BL_POTRF && job->uplo == 'U' && job->n >= 1 &&
           job->n <= 1024 && job->batch >= card.processors / 2;
}

size_t workspace(const struct bl_job *, const Card &)
{
    return 0;
}

cudaError_t launch(const struct bl_job *job, const Card &, cudaStream_t stream)
{
    CholeskyRows g = {};
    g.a = job->a;
    g.info = job->info;
    g.items = job->items;
    g.n = int(job->n);
    g.int_size = job->int_size;
    void *parameters[] = {&g};
    return cudaLaunchKernel(kernels[job->precision], dim3(unsigned(job->batch)),
                            dim3(unsigned(job->n <= 2 * NB ? NB : MOST_THREADS)),
                            parameters, 0, stream);
}

} // namespace

const Family mid_cholesky_columns = {takes, workspace, launch};

} // namespace bl
