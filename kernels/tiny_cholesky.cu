/* Which Cholesky jobs the tiny kernels take, and their launch. Called by engine.cu. */
#include "tiny_cholesky.h"
#include "tiny_pieces.cuh"

namespace bl
{

int tiny_cholesky_class(int64_t n)
{
    for (int order : {4, 8, 12, 16, 20, 24})
        if (n <= order)
            return order;
    return 32;
}

namespace
{

constexpr int64_t IN_CACHE = 160 << 10; /* bytes of matrices a multiprocessor works on */
constexpr int64_t LEAST_WARPS = 8;      /* but these at least */
constexpr int64_t SHARED = 48 << 10;    /* what a block can have without being allowed */

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

/* Shared memory that a block asks for at its launch: for right-hand sides, or, where the
 * memory's speed decides, so much that a multiprocessor does not take all the blocks it
 * could. What is on the way between its read and its write would not stay in the L2
 * cache, and a sector that is written in part would then be read once more. (H100, c 25:
 * 2.14 times the copy floor instead of 2.58; solutions and z U lose by it.) */
size_t shared_bytes(const struct bl_job *job, const TinyCholeskyKernel &k,
                    const Card &card)
{
    const int element = job->precision == BL_S ? 4 : job->precision == BL_Z ? 16 : 8;
    const int sides = sides_for(k.lanes, job->routine == BL_POTRI ? LANES : job->nrhs);
    const int64_t matrices = int64_t(k.problems) * job->n * job->n * element;
    int64_t blocks = IN_CACHE / matrices, least = LEAST_WARPS * LANES / k.threads;
    blocks = blocks < least ? least : blocks;
    const int64_t needed = int64_t(sides) * k.bytes;
    const bool waits = job->n <= 16 || job->routine != BL_POTRF ||
                       (job->precision == BL_Z && job->uplo == 'U');
    if (waits)
        return size_t(needed);
    int64_t room = int64_t(card.shared_bytes) / blocks - k.packed - 1024;
    room = room < SHARED - k.packed ? room : SHARED - k.packed;
    return size_t(room < needed ? needed : room);
}

cudaError_t launch(const struct bl_job *job, const Card &card, cudaStream_t stream)
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
    const size_t bytes = shared_bytes(job, k, card);
    void *parameters[] = {&g};
    return cudaLaunchKernel(k.kernel, dim3(unsigned(blocks)), dim3(unsigned(k.threads)),
                            parameters, bytes, stream);
}

} // namespace

const Family tiny_cholesky = {takes, workspace, launch};

} // namespace bl
