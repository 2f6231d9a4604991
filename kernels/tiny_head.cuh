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

#include "tiny_sheet.cuh"

namespace bl
{

/* The panel, its rows of U and where rows come from. Rows have an odd number of 16-byte
 * units, so that those of neighbouring lanes do not meet in a bank. */
template <class T, int HEAD>
struct TinyHead {
    static constexpr int UNIT = TinyUnit<T>::SIZE;
    static constexpr int TOP = ((HEAD + 32) / UNIT | 1) * UNIT;
    static constexpr int BELOW = (HEAD / UNIT | 1) * UNIT;
    static_assert(HEAD % UNIT == 0, "rows are whole units");
    T *top;                /* rows 0 .. HEAD - 1 of the result */
    T *below;              /* L of the panel in the rows behind them */
    unsigned char *source; /* which row of the input has come to a row */

    /* As TinySheet's, for panel_step(). */
    __device__ __forceinline__ T *row(int i) const
    {
        return top + i * TOP;
    }
    template <int C>
    __device__ __forceinline__ static void get(T *row, int column, T (&x)[C])
    {
        TinySheet<T, 32, 32, false>::get(row, column, x);
    }
    template <int C>
    __device__ __forceinline__ static void put(T *row, int column, const T (&x)[C])
    {
        TinySheet<T, 32, 32, false>::put(row, column, x);
    }
    __device__ __forceinline__ void put_below(int i, const T (&x)[HEAD]) const
    {
        put(below + i * BELOW, 0, x);
    }
};

template <class T, int HEAD>
__device__ __forceinline__ TinyHead<T, HEAD> own_head()
{
    using Head = TinyHead<T, HEAD>;
    __shared__ __align__(16) T top[HEAD * Head::TOP], below[32 * Head::BELOW];
    __shared__ unsigned char source[HEAD + 32];
    return {top, below, source};
}

/* Steps from C on. In lane k `pivot` becomes the row that step k exchanges with row k. */
template <int C, class T, int R, int W, int ROWS, class Head>
__device__ __forceinline__ void head_steps(const Group<32> &group,
                                           SheetPanel<T, R, W, ROWS> &r, int &info,
                                           int &pivot, const Head &head)
{
    const int label = panel_step<C>(group, r, 0, true, info, head);
    pivot = group.row == C ? label : pivot;
    if constexpr (C + 1 < W)
        head_steps<C + 1>(group, r, info, pivot, head);
}

/* The first W columns of `a`, which has m rows, at most ROWS and R a lane. */
template <bool WHOLE, int R, int W, int ROWS, class T, class Head>
__device__ __forceinline__ void factor_head(const Group<32> &group, const T *a,
                                            int64_t lda, int m, int &info, int &pivot,
                                            const Head &head)
{
    SheetPanel<T, R, W, ROWS> r;
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        const int row = s * 32 + group.row;
        const bool inside = row < m;
        r.id[s] = renewed(inside ? r.id_of(row) : 0);
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

/* GETRF of a matrix of more than HEAD and at most HEAD + 32 rows and columns; a warp,
 * which is a block, each. Shared memory: TinyHead, and done_row(). */
template <class T, int N, int BLOCKS, int S = tiny_window<T>(32)>
__global__ void BL_TINY_BOUNDS(1, BLOCKS)
    tiny_head_factor(const __grid_constant__ TinyArguments g)
{
    constexpr int HEAD = N - 32;
    const auto head = own_head<T, HEAD>();
    const Group<32> group;
    const TinyProblem<T> p(g, blockIdx.x);
    const int m = p.m - HEAD, n = p.n - HEAD; /* what is left */
    T *const rest = p.a + HEAD * p.lda;       /* its columns */
    int info = 0, pivot = 0;
    if (is_whole(p.a)) {
        factor_head<true, 2, HEAD, N>(group, p.a, p.lda, p.m, info, pivot, head);
        solve_head<true>(group, rest, p.lda, n, head);
    } else {
        factor_head<false, 2, HEAD, N>(group, p.a, p.lda, p.m, info, pivot, head);
        solve_head<false>(group, rest, p.lda, n, head);
    }
    Row<T, 32> r;
    const bool inside = group.row < m;
    load_row(r.a, rest + (inside ? head.source[HEAD + group.row] : 0), p.lda, n, inside);
    if (inside)
        update_row(r.a, group.row, head);
    eliminate<LARGEST, false, S>(group, r, m, n, min(m, n),
                                 done_row<T, 32, (S > 0)>(group.row));
    /* What is not finite in the head makes something behind it so. */
    if (group.ballot(r.again) != 0) {
        factor_slowly<T>(g, blockIdx.x);
        return;
    }
    store_row(r.a, rest + HEAD + r.position, p.lda, n, inside);
    if (is_whole(p.a))
        store_head<true>(group, p.a, p.lda, p.n, r.position, head);
    else
        store_head<false>(group, p.a, p.lda, p.n, r.position, head);
    if (group.row < HEAD)
        put_integer(g.ipiv, p.item, g.int_size, group.row, pivot + 1);
    if (group.row < min(m, n))
        put_integer(g.ipiv, p.item, g.int_size, HEAD + group.row, HEAD + r.pivot + 1);
    if (group.row == 0)
        put_integer(g.info, p.item, g.int_size, 0,
                    info     ? info
                    : r.info ? HEAD + r.info
                             : 0);
}

} // namespace bl
#endif
