/* Right-hand sides of a batch solved for in netlib's order, a lane a side.
 *
 * Instantiated by triangles.cu. Solving with a transposed lower triangle is a chain in
 * this order: row i takes the products with rows i + 1, i + 2, ... although i + 1 is the
 * last to be known. So a lane does what netlib does with its side, by columns of the
 * matrix in memory, and a warp shares nothing but its code.
 */
#ifndef BL_SOLVE_CHAIN_CUH
#define BL_SOLVE_CHAIN_CUH

#include "solve_side.cuh"

namespace bl
{

constexpr int CHAIN_ROWS = 128; /* at most */

template <class T>
size_t chain_bytes(int n)
{
    return size_t(n) * 32 * sizeof(T);
}

/* What comes next is fetched while the chain goes on: so many elements of a column, two
 * sectors and more. */
template <class T>
struct ChainChunk {
    static constexpr int CHUNK = sizeof(T) == 16 ? 8 : 16;
    T a[CHUNK];

    /* Rows first, first + 1, ... of column j of the matrix as far as they are before
     * `to`. */
    template <SolveOp OP>
    __device__ __forceinline__ void fetch(const SolveProblem<T> &p, int j, int first,
                                          int to)
    {
        BL_UNROLL
        for (int i = 0; i < CHUNK; i++)
            if (first + i < to)
                a[i] = OP == PLAIN ? p.template at<OP>(first + i, j)
                                   : p.template at<OP>(j, first + i);
    }
};

/* Columns begin, begin + step, ... up to `end`, whose rows are from(j) .. to(j) - 1: for
 * each of these each(i, element), then last(j). first(j) comes before them. */
template <SolveOp OP, class T, class From, class To, class First, class Each, class Last>
__device__ __forceinline__ void
for_columns(const SolveProblem<T> &p, int begin, int end, int step, const From &from,
            const To &to, const First &first, const Each &each, const Last &last)
{
    constexpr int CHUNK = ChainChunk<T>::CHUNK;
    if (begin == end || p.n == 0)
        return;
    int j = begin, row = from(j);
    ChainChunk<T> now, next;
    now.template fetch<OP>(p, j, row, to(j));
    first(j);
    while (j != end) {
        const bool ends = row + CHUNK >= to(j);
        const int j_next = ends ? j + step : j;
        const int row_next = !ends ? row + CHUNK : j_next == end ? 0 : from(j_next);
        if (j_next != end)
            next.template fetch<OP>(p, j_next, row_next, to(j_next));
        BL_UNROLL
        for (int i = 0; i < CHUNK; i++)
            if (row + i < to(j))
                each(row + i, now.a[i]);
        if (ends) {
            last(j);
            if (j_next != end)
                first(j_next);
        }
        j = j_next;
        row = row_next;
        now = next;
    }
}

/* x := op(A)^-1 x for op(A) transposed, lower (DOWN) or upper: an element takes its
 * products one by one, which are those of a column in memory. */
template <SolveOp OP, bool DOWN, bool UNIT, class T>
__device__ __forceinline__ void chain_transposed(const SolveProblem<T> &p, T (*x)[32])
{
    const int lane = threadIdx.x, n = p.n;
    T y;
    for_columns<OP>(
        p, DOWN ? 0 : n - 1, DOWN ? n : -1, DOWN ? 1 : -1,
        [](int j) { return DOWN ? 0 : j + 1; }, [n](int j) { return DOWN ? j : n; },
        [&](int j) { y = times_one(x[j][lane]); },
        [&](int i, T a) { y = sub(y, mul(a, x[i][lane])); },
        [&](int j) { x[j][lane] = UNIT ? y : div(y, p.template at<OP>(j, j)); });
}

/* The same for op(A) = A: what is known is subtracted from all that depends on it, but a
 * zero is not. */
template <bool DOWN, bool UNIT, class T>
__device__ __forceinline__ void chain_plain(const SolveProblem<T> &p, T (*x)[32])
{
    const int lane = threadIdx.x, n = p.n;
    T y;
    bool some; /* not a zero, which a quotient may become that is then used */
    for_columns<PLAIN>(
        p, DOWN ? 0 : n - 1, DOWN ? n : -1, DOWN ? 1 : -1,
        [](int j) { return DOWN ? j + 1 : 0; }, [n](int j) { return DOWN ? n : j; },
        [&](int j) {
            y = x[j][lane];
            some = !is_zero(y);
            if (!UNIT && some)
                x[j][lane] = y = div(y, p.template at<PLAIN>(j, j));
        },
        [&](int i, T a) {
            if (some)
                x[i][lane] = sub(x[i][lane], mul(y, a));
        },
        [](int) {});
}

/* A block is a warp or a part of it. Shared memory: the right-hand sides, a row of 32
 * beside the other.
 */
template <SolveKind KIND, class T>
__global__ void __launch_bounds__(32)
    chain_kernel(const __grid_constant__ TinyArguments g)
{
    extern __shared__ __align__(16) char memory[];
    T(*const x)[32] = (T(*)[32])memory;
    const int lane = threadIdx.x;
    const int64_t side = int64_t(blockIdx.x) * blockDim.x + lane, column = side % g.nrhs;
    const SolveProblem<T> p(g, side / g.nrhs);
    if (!p.solves)
        return;
    const int n = p.n;
    T *const b = p.b + column * p.ldb;
    for (int i = 0; i < n; i++)
        x[i][lane] = b[i];
    auto interchange = [&](int i) {
        const int with = int(p.pivots.get(i));
        const T y = x[i][lane];
        x[i][lane] = x[with][lane];
        x[with][lane] = y;
    };
    for (int i = 0; i < n && KIND == SOLVE_N; i++)
        interchange(i);
    constexpr SolveOp FIRST = first_op(KIND), SECOND = second_op(KIND);
    constexpr bool UNIT = KIND == SOLVE_T || KIND == SOLVE_C; /* the second triangle */
    if constexpr (FIRST == PLAIN)
        chain_plain<true, KIND == SOLVE_N>(p, x);
    else
        chain_transposed<FIRST, true, false>(p, x);
    if constexpr (SECOND == PLAIN)
        chain_plain<false, false>(p, x);
    else
        chain_transposed<SECOND, false, UNIT>(p, x);
    for (int i = n - 1; i >= 0 && UNIT; i--)
        interchange(i);
    for (int i = 0; i < n; i++)
        b[i] = x[i][lane];
    if (column == 0)
        p.put_info(g);
}

} // namespace bl
#endif
