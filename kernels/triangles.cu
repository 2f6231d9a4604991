/* Which batched solves with two triangles have kernels of their own beside those of the
 * tiny orders, and their launch: GETRS('T') and ('C'); with few right-hand sides
 * GETRS('N'), where that is faster than by mid.cu, POTRS, and POSV after its POTRF.
 * Called by engine.cu and mid_cholesky_solve.cu.
 */
#include "shared_memory.h"
#include "solve_chain.cuh"
#include "solve_tiles.cuh"

namespace bl
{
namespace
{

constexpr int CHAIN_ORDER = 64; /* up to it netlib's order costs nothing */
constexpr int SIDES = 4;        /* that a block takes where there are several */
constexpr int64_t FEW = 16;     /* right-hand sides of POTRS and GETRS('N') */
/* Up to which GETRS('N') takes a lane a side, with one and with several: s, d, c, z. On
 * an H200. */
constexpr int PLAIN_CHAIN_ORDER[BL_PRECISIONS][2] = {
    {48, 128}, {64, 64}, {64, 64}, {64, 64}};
constexpr size_t WITHOUT_ASKING = 48 << 10; /* bytes of shared memory */

/* The kernels of a precision and kind. */
struct Kernels {
    void (*chain)(TinyArguments), (*tile[2])(TinyArguments); /* for one side, for SIDES */
    size_t (*chain_bytes)(int n), (*tile_bytes)(int n, int sides);
};

template <SolveKind KIND, class T>
const Kernels kernels_of = {chain_kernel<KIND, T>,
                            {tile_kernel<1, KIND, T>, tile_kernel<SIDES, KIND, T>},
                            chain_bytes<T>,
                            tile_bytes<T>};

template <class T>
const Kernels *const kinds[] = {
    &kernels_of<SOLVE_N, T>,
    &kernels_of<SOLVE_T, T>,
    &kernels_of<Traits<T>::complex ? SOLVE_C : SOLVE_T, T>,
    &kernels_of<SOLVE_L, T>,
    &kernels_of<SOLVE_U, T>,
};

const Kernels &kernels_for(const struct bl_job *job)
{
    static const Kernels *const *const all[] = {
        kinds<float>, kinds<double>, kinds<Complex<float>>, kinds<Complex<double>>};
    const bool getrs = job->routine == BL_GETRS;
    const SolveKind kind = !getrs              ? (job->uplo == 'U' ? SOLVE_U : SOLVE_L)
                           : job->trans == 'N' ? SOLVE_N
                           : job->trans == 'C' ? SOLVE_C
                                               : SOLVE_T;
    return *all[job->precision][kind];
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
                         : k.tile_bytes(int(job->n), job->nrhs > 1 ? SIDES : 1);
}

bool has_kernels(const struct bl_job *job)
{
    switch (job->routine) {
    case BL_GETRS:
        return job->trans != 'N' ||
               (job->nrhs <= FEW &&
                (job->n <= PLAIN_CHAIN_ORDER[job->precision][job->nrhs > 1] ||
                 !by_chain(job)));
    case BL_POTRS:
    case BL_POSV:
        return job->nrhs <= FEW;
    default:
        return false;
    }
}

bool takes(const struct bl_job *job, const Card &card)
{
    return has_kernels(job) && job->n >= 1 && job->nrhs >= 1 && job->batch >= 1 &&
           job->n <= (by_chain(job) ? CHAIN_ROWS : MOST_TILED_ROWS) &&
           shared_bytes(job) <= card.shared_bytes;
}

bool takes_whole(const struct bl_job *job, const Card &card)
{
    return job->routine != BL_POSV && takes(job, card);
}

size_t workspace(const struct bl_job *, const Card &)
{
    return 0;
}

/* Lanes of a block where each has a side: fewer where there are not sides enough for some
 * warps on every multiprocessor. */
int chain_lanes(int64_t sides, const Card &card)
{
    constexpr int LEAST = 4, WARPS = 4;
    int lanes = 32;
    while (lanes > LEAST && sides < int64_t(lanes) * WARPS * card.processors)
        lanes /= 2;
    return lanes;
}

cudaError_t launch(const struct bl_job *job, const Card &card, cudaStream_t stream)
{
    const Kernels &k = kernels_for(job);
    TinyArguments g = tiny_arguments(job);
    g.after_factoring = job->routine == BL_POSV;
    const int sides = job->nrhs > 1 ? SIDES : 1;
    const bool chain = by_chain(job);
    const void *kernel = (const void *)(chain ? k.chain : k.tile[sides > 1]);
    const int lanes = chain_lanes(job->batch * job->nrhs, card);
    const int64_t blocks = chain ? (job->batch * job->nrhs + lanes - 1) / lanes
                                 : job->batch * ((job->nrhs + sides - 1) / sides);
    const size_t bytes = shared_bytes(job);
    if (blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    if (bytes > WITHOUT_ASKING) {
        cudaError_t error = allow_all_shared(kernel, card);
        if (error != cudaSuccess)
            return error;
    }
    /* Z has too many registers for more than some blocks of few warps. */
    const bool many = job->n > 256 && job->precision != BL_Z;
    const int threads = chain ? lanes : many ? MOST_TILE_THREADS : MOST_TILE_THREADS / 2;
    void *parameters[] = {&g};
    return cudaLaunchKernel(kernel, dim3(unsigned(blocks)), dim3(unsigned(threads)),
                            parameters, bytes, stream);
}

} // namespace

const Family triangles = {takes_whole, workspace, launch};
const Family triangles_after_potrf = {takes, workspace, launch};

} // namespace bl
