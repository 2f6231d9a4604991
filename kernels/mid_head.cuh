/* The first C columns of a matrix on the chip that has up to C rows more than its kernel.
 *
 * Included by mid_lu.cuh. One warp factors them with a row more a lane, by the steps of
 * tiny_head.cuh; C rows are then done with, and what is left is a matrix of 32 R rows as
 * any other, whose panels take out the head as they are read. So the rows just beyond a
 * multiple of 32 cost one more step each, and not a row more a lane in all steps.
 */
#ifndef BL_MID_HEAD_CUH
#define BL_MID_HEAD_CUH

#include "mid_shared.cuh"
#include "tiny_head.cuh"

namespace bl
{

/* The head in shared memory; its L in the rows behind it lies elsewhere, by columns. */
template <class T, int R, int C>
struct MidHead {
    static constexpr int STRIDE = C + PER_VECTOR<T>;
    alignas(16) T top[C * STRIDE]; /* its rows, L and U */
    alignas(16) T corner[FoldedCorner<T, C>::SIZE];
    int pivot[C]; /* the row that is exchanged with this one */
    int info;
    int strange;                      /* netlib's rules for NaN and Inf are asked for */
    unsigned char source[32 * R + C]; /* which row of the input has come to a row */
};

/* The same for panel_step() and factor_head(). */
template <class T, int R, int C>
struct MidHeadRows : TinyUnits<T> {
    MidHead<T, R, C> &head;
    T *l;  /* column j behind the head begins at l + j m */
    int m; /* rows behind the head */
    unsigned char *source;

    __device__ __forceinline__ T *row(int i) const
    {
        return head.top + i * head.STRIDE;
    }
    __device__ __forceinline__ void put_below(int i, const T (&x)[C]) const
    {
        BL_UNROLL
        for (int j = 0; j < C; j++)
            l[i + j * m] = x[j];
    }
};

/* The head of A, which has m rows behind it. A warp. */
template <class T, int R, int C>
__device__ __noinline__ void make_head(MidHead<T, R, C> &head, T *l, const T *A,
                                       int64_t lda, int m)
{
    const Group<32> group;
    const MidHeadRows<T, R, C> rows = {{}, head, l, m, head.source};
    int info = 0, pivot = 0;
    if (is_whole(A))
        factor_head<true, R + 1, C, 32 * R + C>(group, A, lda, C + m, info, pivot, rows);
    else
        factor_head<false, R + 1, C, 32 * R + C>(group, A, lda, C + m, info, pivot, rows);
    /* What is not finite makes all of the last column behind it so. */
    Finite<T> finite;
    for (int i = group.row; i < m; i += 32)
        finite.add(l[i + (C - 1) * m], 0);
    const bool strange = group.ballot(!finite) != 0;
    for (int e = group.row; e < C * C; e += 32) {
        const int r = e % C, j = e / C;
        if (r > j)
            head.corner[FoldedCorner<T, C>::at(j, r)] = rows.row(r)[j];
    }
    if (group.row < C)
        head.pivot[group.row] = pivot;
    if (group.row == 0) {
        head.info = info;
        head.strange = strange;
    }
}

/* The head's columns of A as they are in the end: position i behind the head has row
 * at[i]. The block. */
template <class T, int R, int C>
__device__ __forceinline__ void store_head(const MidHead<T, R, C> &head, const T *l, T *A,
                                           int64_t lda, int m, const unsigned char *at)
{
    const bool whole = is_whole(A);
    for (int e = threadIdx.x; e < C * C; e += blockDim.x)
        store(A + e % C + e / C * lda, head.top[e % C * head.STRIDE + e / C], whole);
    for (int j = threadIdx.x / 32; j < C; j += blockDim.x / 32)
        for (int i = threadIdx.x % 32; i < m; i += 32)
            store(A + C + i + j * lda, l[at[i] + j * m], whole);
}

} // namespace bl
#endif
