/* Which Cholesky jobs mid_cholesky_rows.cuh takes, its kernel, and the launches. Called
 * by engine.cu. */
#include "family.h"
#include "mid_cholesky_rows.cuh"

namespace bl
{
namespace
{

constexpr int MOST_THREADS = 128;

/* A block, or g.parts of them, a matrix. Shared memory: the panel's factor on the
 * diagonal, and what the rows are multiplied with. */
template <class T>
__global__ void __launch_bounds__(MOST_THREADS, sizeof(T) == 4 ? 4 : 3)
    potrf_rows(const __grid_constant__ CholeskyRows g, int first, int last)
{
    __shared__ CholeskyRowsShared<T> shared;
    Team team;
    team.thread = threadIdx.x;
    team.threads = blockDim.x;
    cholesky_rows(g, shared, team, blockIdx.x / g.parts, blockIdx.x % g.parts, first,
                  last);
}

struct Kernel {
    const void *kernel;
    int width;      /* of a panel */
    size_t element; /* bytes */
};

template <class T>
Kernel kernel_of()
{
    return {(const void *)potrf_rows<T>, ROW_PANEL<T>, sizeof(T)};
}

const Kernel kernels[BL_PRECISIONS] = {kernel_of<float>(), kernel_of<double>(),
                                       kernel_of<Complex<float>>(),
                                       kernel_of<Complex<double>>()};

struct Plan {
    int threads, parts;
    size_t factors_bytes, bytes; /* of work space */
};

/* A batch that does not fill the card is spread over it: a launch a panel, with a part of
 * the rows a block. */
Plan plan_of(const struct bl_job *job, const Card &card)
{
    const Kernel &k = kernels[job->precision];
    const int n = int(job->n);
    Plan plan = {n <= 64 ? 64 : MOST_THREADS, 1, 0, 0};
    if (job->batch >= card.processors || n <= 4 * LANES)
        return plan;
    plan.threads = 4 * LANES;
    const int rows = plan.threads - LANES;
    plan.parts = (n - LANES + rows - 1) / rows;
    plan.factors_bytes = size_t(job->batch) * k.width * k.width * k.element;
    plan.bytes = plan.factors_bytes + size_t(job->batch) * sizeof(int);
    return plan;
}

bool takes(const struct bl_job *job, const Card &)
{
    return job->routine == BL_POTRF && job->uplo == 'L' && job->n >= 1 &&
           job->n <= 1024 && job->batch >= 1;
}

size_t workspace(const struct bl_job *job, const Card &card)
{
    return plan_of(job, card).bytes;
}

cudaError_t launch(const struct bl_job *job, const Card &card, cudaStream_t stream)
{
    const Kernel &k = kernels[job->precision];
    const Plan plan = plan_of(job, card);
    CholeskyRows g = {};
    g.a = job->a;
    g.info = job->info;
    g.items = job->items;
    g.n = int(job->n);
    g.int_size = job->int_size;
    g.parts = plan.parts;
    int first = 0, last = g.n;
    cudaError_t error = cudaSuccess;
    if (plan.parts > 1) {
        g.factors = job->work;
        g.stopped = (int *)((char *)job->work + plan.factors_bytes);
        last = k.width;
        error =
            cudaMemsetAsync(g.stopped, 0, size_t(job->batch) * sizeof *g.stopped, stream);
    }
    void *parameters[] = {&g, &first, &last};
    for (; error == cudaSuccess && first < g.n; first = last, last += k.width)
        error = cudaLaunchKernel(k.kernel, dim3(unsigned(job->batch * plan.parts)),
                                 dim3(unsigned(plan.threads)), parameters, 0, stream);
    return error;
}

} // namespace

const Family mid_cholesky_rows = {takes, workspace, launch};

} // namespace bl
