/* Families of kernels for one large matrix: LU and what is solved with it.
 *
 * Called by engine.cu. A job is a sequence of kernels from large.h, enqueued on the job's
 * stream for one matrix after another; nothing is decided by the data, so it can be
 * captured. The outer block is as wide as the update needs to be limited by arithmetic
 * rather than by memory; within it narrow panels are factored and applied to its rest.
 */
#include "large.h"

namespace bl
{

namespace
{

constexpr int64_t SMALLEST = 257; /* min(m, n) from which it is ahead of the others */
constexpr int64_t MOST_MATRICES = 4;
constexpr int PANEL = 64; /* columns */

int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* Where the work space of a matrix goes and what all steps need. */
struct Queue {
    const Card &card;
    cudaStream_t stream;
    void *work;
    cudaError_t error;

    void then(cudaError_t next)
    {
        if (error == cudaSuccess)
            error = next;
    }
};

template <class T>
struct Matrix {
    T *p;
    int64_t ld;
    T *at(int64_t i, int64_t j) const
    {
        return p + i + j * ld;
    }
};

template <class T>
struct Factored {
    int64_t m, n;
    Matrix<T> a;
    char *ipiv, *info;
    int int_size;
};

/* Rows from j on of the columns j .. j + w - 1 have been factored: interchanges in the
 * columns from `left` to j and from j + w to `right`, and the rows of U of the latter. */
template <class T>
void apply_step(Queue &q, const Factored<T> &f, int64_t j, int w, int64_t left,
                int64_t right)
{
    q.then(large_step(LargeStep<T>{w, f.ipiv + j * f.int_size, f.int_size, j, f.a.at(j, j),
                                   f.a.ld, f.a.at(j, 0), f.a.ld, left, j, j + w, right},
                      q.stream));
}

/* The columns j + w .. right - 1 below row j + w, less L times U of w columns. */
template <class T>
void apply_update(Queue &q, const Factored<T> &f, int64_t j, int64_t w, int64_t right)
{
    const int64_t next = j + w;
    q.then(large_update(LargeUpdate<T>{f.m - next, right - next, w, f.a.at(next, j), f.a.ld,
                                       f.a.at(j, next), f.a.ld, f.a.at(next, next), f.a.ld,
                                       PLAIN, PLAIN, WHOLE},
                        q.card, q.stream));
}

template <class T>
void factor(Queue &q, const Factored<T> &f)
{
    const int64_t order = least(f.m, f.n);
    for (int64_t j = 0; j < order; j += LARGE_BLOCK<T>) {
        const int64_t w = least(LARGE_BLOCK<T>, order - j), end = j + w;
        for (int64_t i = j; i < end; i += PANEL) {
            const int64_t v = least(PANEL, end - i);
            q.then(large_team(LargePanel<T>{f.m - i, v, f.a.at(i, i), f.a.ld,
                                            f.ipiv + i * f.int_size, f.info, f.int_size, i},
                              q.work, q.card, q.stream));
            apply_step(q, f, i, int(v), j, end);
            apply_update(q, f, i, v, end);
        }
        /* The block's own columns have had theirs. */
        apply_step(q, f, j, int(w), 0, f.n);
        apply_update(q, f, j, w, f.n);
    }
}

template <class T>
cudaError_t run(const struct bl_job *job, const Card &card, cudaStream_t stream)
{
    Queue q = {card, stream, job->work, cudaSuccess};
    for (int64_t i = 0; i < job->batch; i++) {
        const Factored<T> f = {
            job->m,
            job->n,
            {(T *)job->a.p + i * job->a.stride, job->a.ld},
            (char *)job->ipiv.p + i * job->ipiv.stride * job->int_size,
            (char *)job->info.p + i * job->info.stride * job->int_size,
            job->int_size};
        q.then(cudaMemsetAsync(f.info, 0, f.int_size, stream));
        factor(q, f);
    }
    return q.error;
}

bool takes(const struct bl_job *job, const Card &)
{
    return job->routine == BL_GETRF && least(job->m, job->n) >= SMALLEST &&
           job->batch <= MOST_MATRICES && !job->items && !job->a.array &&
           !job->ipiv.array && !job->info.array;
}

size_t workspace(const struct bl_job *, const Card &card)
{
    return large_team_bytes(card);
}

cudaError_t launch(const struct bl_job *job, const Card &card, cudaStream_t stream)
{
#ifdef ONLY
    return run<ONLY>(job, card, stream);
#else
    switch (job->precision) {
    case BL_S:
        return run<float>(job, card, stream);
    case BL_D:
        return run<double>(job, card, stream);
    case BL_C:
        return run<Complex<float>>(job, card, stream);
    default:
        return run<Complex<double>>(job, card, stream);
    }
#endif
}

} // namespace

const Family large = {takes, workspace, launch};

} // namespace bl
