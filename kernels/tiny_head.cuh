/* LU factorization of matrices of 33 to 48 rows or columns in the registers of one warp.
 *
 * Used by tiny_kernels.cuh. The first HEAD columns are a panel of which a lane holds two
 * rows. When they are done so are HEAD rows, and what is left has at most 32 of each: a
 * lane then takes one of its rows, brings it up to date with the panel, and goes on as in
 * tiny_lu.cuh. So the few rows beyond 32 cost what they have to do, and not a second row
 * a lane in all columns. Only the panel and its rows of U lie in shared memory.
 */
#ifndef BL_TINY_HEAD_CUH
#define BL_TINY_HEAD_CUH

#include "mid_rest.cuh"
#include "mid_scaled_rest.cuh"
#include "tiny_sheet.cuh"

namespace bl
{

/* The panel, its rows of U and where rows come from. Rows have an odd number of 16-byte
 * units, so that those of neighbouring lanes do not meet in a bank. */
template <class T, int HEAD>
struct TinyHead : TinyUnits<T> {
    using TinyUnits<T>::UNIT;
    static constexpr int TOP = ((HEAD + 32) / UNIT | 1) * UNIT;
    static constexpr int BELOW = (HEAD / UNIT | 1) * UNIT;
    static_assert(HEAD % UNIT == 0, "rows are whole units");
    T *top;                /* rows 0 .. HEAD - 1 of the result */
    T *below;              /* L of the panel in the rows behind them */
    T *done;               /* a lane's row of what is left, as done_row() */
    Real<T> *scale;        /* of the rows of the input, for SCALED */
    unsigned char *source; /* which row of the input has come to a row */

    /* As TinySheet's, for panel_step(). */
    __device__ __forceinline__ T *row(int i) const
    {
        return top + i * TOP;
    }
    __device__ __forceinline__ void put_below(int i, const T (&x)[HEAD]) const
    {
        this->put(below + i * BELOW, 0, x);
    }
};

/* With rows that are `done` if DONE; from `top` on at least LEAST elements. */
template <class T, int HEAD, bool DONE, Rule RULE = LARGEST, int LEAST = 0>
__device__ __forceinline__ TinyHead<T, HEAD> own_head(const Group<32> &group)
{
    using Head = TinyHead<T, HEAD>;
    constexpr int PITCH = Pitch<T, 32>::VALUE;
    constexpr int BELOW = HEAD * Head::TOP, END = BELOW + 32 * Head::BELOW;
    constexpr int SIZE = END + (DONE ? 32 * PITCH : 0);
    __shared__ __align__(16) T memory[SIZE > LEAST ? SIZE : LEAST];
    __shared__ unsigned char source[HEAD + 32];
    T *const done = DONE ? memory + END + group.row * PITCH : nullptr;
    Real<T> *scale = nullptr;
    if constexpr (RULE == SCALED) {
        __shared__ Real<T> scales[HEAD + 32];
        scale = scales;
    }
    return {{}, memory, memory + BELOW, done, scale, source};
}

/* Steps from C on. In lane k `pivot` becomes the row that step k exchanges with row k. */
template <int C, class T, int R, int W, int ROWS, Rule RULE, class Head>
__device__ __forceinline__ void head_steps(const Group<32> &group,
                                           SheetPanel<T, R, W, ROWS, RULE> &r, int &info,
                                           int &pivot, const Head &head)
{
    const int label = panel_step<C>(group, r, 0, true, info, head);
    pivot = group.row == C ? label : pivot;
    if constexpr (C + 1 < W)
        head_steps<C + 1>(group, r, info, pivot, head);
}

/* The first W columns of `a`, which has m rows, at most ROWS and R a lane. */
template <bool WHOLE, int R, int W, int ROWS, Rule RULE = LARGEST, class T, class Head>
__device__ __forceinline__ void factor_head(const Group<32> &group, const T *a,
                                            int64_t lda, int m, int &info, int &pivot,
                                            const Head &head)
{
    SheetPanel<T, R, W, ROWS, RULE> r;
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        const int row = s * 32 + group.row;
        const bool inside = row < m;
        r.id[s] = renewed(inside ? r.id_of(row) : 0);
        if constexpr (RULE == SCALED)
            r.scale[s] = head.scale[inside ? row : 0];
        BL_UNROLL
        for (int j = 0; j < W; j++) {
            const T *const from = a + row + j * lda;
            r.a[s][j] = !inside ? from_real<T>(0) : WHOLE ? fetch(from) : *from;
        }
    }
    head_steps<0>(group, r, info, pivot, head);
    BL_UNROLL
    for (int s = 0; s < R; s++)
        if (r.id[s]) {
            const int label = r.label_of(r.id[s]);
            head.source[label] = (unsigned char)(s * 32 + group.row);
            head.put_below(label - W, r.a[s]);
        }
    /* Backwards through the interchanges: what step k put to the place of a pivot was row
     * k until then. */
    int source = pivot;
    BL_UNROLL
    for (int k = W - 2; k >= 0; k--) {
        const int with = group.from(pivot, k);
        source = k < group.row && source == with ? k : source;
    }
    if (group.row < W)
        head.source[group.row] = (unsigned char)source;
    __syncwarp();
}

/* The panel's rows of U in the columns behind it, a column a lane. */
template <bool WHOLE, class T, int HEAD>
__device__ __forceinline__ void solve_head(const Group<32> &group, const T *a,
                                           int64_t lda, int n,
                                           const TinyHead<T, HEAD> &head)
{
    T x[HEAD];
    BL_UNROLL
    for (int k = 0; k < HEAD; k++) {
        const T *const from = a + head.source[k] + group.row * lda;
        x[k] = group.row >= n ? from_real<T>(0) : WHOLE ? fetch(from) : *from;
    }
    BL_UNROLL
    for (int k = 1; k < HEAD; k++) {
        T l[HEAD];
        head.get(head.row(k), 0, l);
        BL_UNROLL
        for (int t = 0; t < k; t++)
            x[k] = sub(x[k], mul(l[t], x[t]));
    }
    BL_UNROLL
    for (int k = 0; k < HEAD; k++)
        head.row(k)[HEAD + group.row] = x[k];
    __syncwarp();
}

/* A row, less the panel's part of it: the steps of the head. */
template <class T, int HEAD>
__device__ __forceinline__ void update_row(T (&a)[32], int row,
                                           const TinyHead<T, HEAD> &head)
{
    T *u = head.row(0) + HEAD;
    const T *l = head.below + row * head.BELOW;
#pragma unroll 1
    for (int k = 0; k < HEAD; k++) {
        const T factor = l[k];
        BL_UNROLL
        for (int j = 0; j < 32; j += head.UNIT) {
            T x[head.UNIT];
            head.get(u, j, x);
            BL_UNROLL
            for (int t = 0; t < head.UNIT; t++)
                a[j + t] = sub(a[j + t], mul(factor, x[t]));
        }
        u += head.TOP;
    }
}

/* The head's rows of U and columns of L; `position` is that of the lane's row behind the
 * panel, or negative. */
template <bool WHOLE, class T, int HEAD>
__device__ __forceinline__ void store_head(const Group<32> &group, T *a, int64_t lda,
                                           int n, int position,
                                           const TinyHead<T, HEAD> &head)
{
    auto store = [](T *to, T x) {
        if (WHOLE)
            put(to, x);
        else
            *to = x;
    };
#pragma unroll 4
    for (int e = group.row; e < HEAD * n; e += 32)
        store(a + e % HEAD + e / HEAD * lda, head.row(e % HEAD)[e / HEAD]);
    if (position >= 0)
        BL_UNROLL
    for (int k = 0; k < HEAD; k++)
        store(a + HEAD + position + k * lda, head.below[group.row * head.BELOW + k]);
}

/* One over the largest element of each row of the input. */
template <class T, int HEAD>
__device__ __forceinline__ void find_scales(const Group<32> &group,
                                            const TinyProblem<T> &p,
                                            const TinyHead<T, HEAD> &head)
{
    for (int row = group.row; row < p.m; row += 32)
        head.scale[row] = row_scale(p.a + row, p.lda, p.n);
    __syncwarp();
}

/* The head's steps in all of the matrix, of which r becomes what is left. */
template <Rule RULE, class T, int HEAD>
__device__ __forceinline__ void take_head(const Group<32> &group, const TinyProblem<T> &p,
                                          Row<T, 32> &r, int &info, int &pivot,
                                          const TinyHead<T, HEAD> &head)
{
    constexpr int ROWS = HEAD + 32;
    const int m = p.m - HEAD, n = p.n - HEAD;
    const T *const rest = p.a + HEAD * p.lda; /* its columns */
    if (is_whole(p.a)) {
        factor_head<true, 2, HEAD, ROWS, RULE>(group, p.a, p.lda, p.m, info, pivot, head);
        solve_head<true>(group, rest, p.lda, n, head);
    } else {
        factor_head<false, 2, HEAD, ROWS, RULE>(group, p.a, p.lda, p.m, info, pivot,
                                                head);
        solve_head<false>(group, rest, p.lda, n, head);
    }
    const bool inside = group.row < m;
    load_row(r.a, rest + (inside ? head.source[HEAD + group.row] : 0), p.lda, n, inside);
    if (inside)
        update_row(r.a, group.row, head);
}

/* Whether the matrix has to be done again. What is not finite in the head makes something
 * behind it so; but by another rule than the largest an infinite pivot may be a wrong
 * choice, and leaves no trace but itself. */
template <Rule RULE, class T, int HEAD>
__device__ __forceinline__ bool is_odd(const Group<32> &group, const Row<T, 32> &r,
                                       const TinyHead<T, HEAD> &head)
{
    bool odd = r.again;
    if (RULE == SCALED && group.row < HEAD)
        odd = odd || !is_finite(head.row(group.row)[group.row]);
    return group.ballot(odd) != 0;
}

template <int HEAD, class T>
__device__ __forceinline__ int whole_info(int info, const Row<T, 32> &r)
{
    return info ? info : r.info ? HEAD + r.info : 0;
}

/* The factors, IPIV and INFO; `info` is the head's, and the whole one is returned. */
template <class T, int HEAD>
__device__ __forceinline__ int
store_all(const Group<32> &group, const TinyArguments &g, const TinyProblem<T> &p,
          const Row<T, 32> &r, int info, int pivot, const TinyHead<T, HEAD> &head)
{
    const int m = p.m - HEAD, n = p.n - HEAD;
    store_row(r.a, p.a + HEAD + HEAD * p.lda + r.position, p.lda, n, group.row < m);
    if (is_whole(p.a))
        store_head<true>(group, p.a, p.lda, p.n, r.position, head);
    else
        store_head<false>(group, p.a, p.lda, p.n, r.position, head);
    if (group.row < HEAD)
        put_integer(g.ipiv, p.item, g.int_size, group.row, pivot + 1);
    if (group.row < min(m, n))
        put_integer(g.ipiv, p.item, g.int_size, HEAD + group.row, HEAD + r.pivot + 1);
    info = whole_info<HEAD>(info, r);
    if (group.row == 0)
        put_integer(g.info, p.item, g.int_size, 0, info);
    return info;
}

/* As factor_again() does it, of more than 32 rows or columns; INFO. A block of one warp;
 * `scale`: of the rows as they were, for SCALED. */
template <class T, Rule RULE = LARGEST>
BL_CALL int factor_slowly(const TinyArguments &g, int64_t number,
                          Real<T> *scale = nullptr)
{
    const TinyProblem<T> p(g, number);
    const Pivots pivots = tiny_pivots(g, p.item);
    Team team = block_team(32);
    int64_t info;
    if constexpr (RULE == SCALED)
        info = plain_rest(team, p.m, p.n, p.a, p.lda, pivots, scale, 0, 0);
    else
        info = lu_rest(team, p.m, p.n, p.a, p.lda, pivots, 0, p.n, 0);
    if (threadIdx.x == 0)
        put_integer(g.info, p.item, g.int_size, 0, info);
    return int(info);
}

/* GETRF or GETRFSP of a matrix of more than HEAD and at most HEAD + 32 rows and columns;
 * a warp, which is a block, each. Shared memory: TinyHead. */
template <class T, int N, int BLOCKS, Rule RULE = LARGEST, int S = tiny_window<T>(32)>
__global__ void BL_TINY_BOUNDS(1, BLOCKS)
    tiny_head_factor(const __grid_constant__ TinyArguments g)
{
    constexpr int HEAD = N - 32;
    const Group<32> group;
    const auto head = own_head<T, HEAD, (S > 0), RULE>(group);
    const TinyProblem<T> p(g, blockIdx.x);
    const int m = p.m - HEAD, n = p.n - HEAD; /* what is left */
    int info = 0, pivot = 0;
    Row<T, 32> r;
    Real<T> scale = 1;
    if constexpr (RULE == SCALED)
        find_scales(group, p, head);
    take_head<RULE>(group, p, r, info, pivot, head);
    if constexpr (RULE == SCALED)
        scale = head.scale[group.row < m ? head.source[HEAD + group.row] : 0];
    eliminate<RULE, false, S>(group, r, m, n, min(m, n), head.done, scale);
    if (is_odd<RULE>(group, r, head))
        factor_slowly<T, RULE>(g, blockIdx.x, head.scale);
    else
        store_all(group, g, p, r, info, pivot, head);
}

} // namespace bl
#endif
