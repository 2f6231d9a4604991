/* One matrix's worth of a job, as the algorithms see it.
 *
 * Filled in by kernel.cuh from a struct bl_job, or by test/host_kernels.cc. A routine is
 * a function int64_t name(Team &, const Problem<T> &) that returns INFO; all threads of
 * the team call it and get the same answer. Arguments are legal, m and n at least 1.
 */
#ifndef BL_PROBLEM_CUH
#define BL_PROBLEM_CUH

#include "blas.cuh"

namespace bl
{

template <class T>
struct Problem {
    int64_t m, n, nrhs, block;
    char uplo, trans;
    T *a;
    int64_t lda;
    T *b;
    int64_t ldb;
    Pivots pivots;
    T *work; /* the team's, as much as work_bytes() in engine.cu says */
    T *x = nullptr;
    int64_t ldx = 0;
    T *phase = nullptr;
    Real<T> *logabs = nullptr;
};

/* Elements of work that getri and potri need a team: xTRTRI's product that can not be
 * formed in place by several threads, and xGETRI's own. */
static inline int64_t work_elements(int64_t n, int64_t block)
{
    int64_t width = n > NB ? NB : 1;
    if (block >= 2 && block < n && block > width)
        width = block;
    return n * width;
}

/* The work space behind n 64-bit pivots, with which geinv and gedet begin it. */
template <class T>
BL_HD T *behind_pivots(const Problem<T> &p)
{
    return (T *)((int64_t *)p.work + p.n);
}

} // namespace bl
#endif
