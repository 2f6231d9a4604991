/* Which batched GETRS('T') and ('C') have kernels of their own, and their launch. Called
 * by engine.cu. */
#include "family.h"
#include "shared_memory.h"
#include "transposed.cuh"

namespace bl
{
namespace
{

constexpr int CHAIN_ORDER = 64;             /* up to it netlib's order costs nothing */
constexpr size_t WITHOUT_ASKING = 48 << 10; /* bytes of shared memory */
constexpr int SIDES = 4; /* that a block takes where there are several */

/* The kernels of a precision, transposed or conjugate transposed. */
struct Kernels {
    void (*chain)(TinyArguments), (*dot[2])(TinyArguments); /* for one side, for SIDES */
    size_t (*chain_bytes)(int n), (*dot_bytes)(int n, int sides);
};

template <bool CONJUGATE, class T>
const Kernels kernels_of = {
    chain_kernel<CONJUGATE, T>,
    {dot_kernel<1, CONJUGATE, T>, dot_kernel<SIDES, CONJUGATE, T>},
    chain_bytes<T>,
    dot_bytes<T>};

const Kernels &kernels_for(const struct bl_job *job)
{
    static const Kernels *const all[][2] = {
        {&kernels_of<false, float>, &kernels_of<false, float>},
        {&kernels_of<false, double>, &kernels_of<false, double>},
        {&kernels_of<false, Complex<float>>, &kernels_of<true, Complex<float>>},
        {&kernels_of<false, Complex<double>>, &kernels_of<true, Complex<double>>}};
    return *all[job->precision][job->trans == 'C'];
}

/* Whether the order of the products is netlib's. */
bool by_chain(const struct bl_job *job)
{
    return job->arithmetic == BL_EXACT || job->n <= CHAIN_ORDER;
}

size_t shared_bytes(const struct bl_job *job)
{
    const Kernels &k = kernels_for(job);
    return by_chain(job) ? k.chain_bytes(int(job->n))
                         : k.dot_bytes(int(job->n), job->nrhs > 1 ? SIDES : 1);
}

bool takes(const struct bl_job *job, const Card &card)
{
    return job->routine == BL_GETRS && job->trans != 'N' && job->n >= 1 &&
           job->nrhs >= 1 && job->batch >= 1 &&
           job->n <= (by_chain(job) ? CHAIN_ROWS : DOT_ROWS) &&
           shared_bytes(job) <= card.shared_bytes;
}

size_t workspace(const struct bl_job *, const Card &)
{
    return 0;
}

cudaError_t launch(const struct bl_job *job, const Card &, cudaStream_t stream)
{
    const Kernels &k = kernels_for(job);
    TinyArguments g = {};
    g.a = job->a;
    g.b = job->b;
    g.ipiv = job->ipiv;
    g.info = job->info;
    g.items = job->items;
    g.batch = job->batch;
    g.nrhs = job->nrhs;
    g.m = g.n = int(job->n);
    g.int_size = job->int_size;
    const int sides = job->nrhs > 1 ? SIDES : 1;
    const bool chain = by_chain(job);
    const void *kernel = (const void *)(chain ? k.chain : k.dot[sides > 1]);
    const int64_t blocks = chain ? (job->batch * job->nrhs + 31) / 32
                                 : job->batch * ((job->nrhs + sides - 1) / sides);
    const size_t bytes = shared_bytes(job);
    if (blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    if (bytes > WITHOUT_ASKING) {
        cudaError_t error = allow_all_shared(kernel);
        if (error != cudaSuccess)
            return error;
    }
    /* Z has too many registers for more than some blocks of few warps. */
    const int threads = chain                                    ? 32
                        : job->n > 256 && job->precision != BL_Z ? DOT_THREADS
                                                                 : DOT_THREADS / 2;
    void *parameters[] = {&g};
    return cudaLaunchKernel(kernel, dim3(unsigned(blocks)), dim3(unsigned(threads)),
                            parameters, bytes, stream);
}

} // namespace

const Family transposed = {takes, workspace, launch};

} // namespace bl
