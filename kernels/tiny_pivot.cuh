/* Rows of a matrix, several a lane, and which of them is the next pivot.
 *
 * Used by tiny_rows.cuh. netlib's rule: the first one, as rows are counted after all
 * interchanges, of the largest. What follows from an odd pivot is the caller's.
 */
#ifndef BL_TINY_PIVOT_CUH
#define BL_TINY_PIVOT_CUH

#include "tiny_board.cuh"

namespace bl
{

/* What a lane holds of its rows that may still become pivots, and of those of the last L
 * steps. */
template <class T, int N, int L>
struct Rows {
    static constexpr int R = (N + L - 1) / L; /* a lane, at first */
    T a[R][N];        /* the columns that are left; the first one is that of the step */
    T b[R];           /* the first right-hand side's elements, where there is one */
    int position[R];  /* the row of the result that this one is; -1: no row */
    int at[R];        /* where it lies in shared memory */
    unsigned open[R]; /* all bits: may still become a pivot; none: may not */
    int info;         /* the group's */
};

/* No branch. */
template <class T>
__device__ __forceinline__ T select(bool yes, T x, T y)
{
    if constexpr (Traits<T>::complex)
        return {yes ? x.re : y.re, yes ? x.im : y.im};
    else
        return yes ? x : y;
}

/* Bit i: row i says yes. */
template <int L, int R>
__device__ __forceinline__ unsigned row_bits(const Group<L> &group, const bool (&yes)[R])
{
    unsigned all[4] = {0, 0, 0, 0};
    BL_UNROLL
    for (int s = 0; s < R; s++)
        all[s] = __ballot_sync(WARP, yes[s]);
    if constexpr (L == 4) {
        unsigned bits = 0;
        BL_UNROLL
        for (int s = 0; s < R; s++)
            bits |= (all[s] >> group.first & 15) << 4 * s;
        return bits;
    }
    if constexpr (L == 16)
        return __byte_perm(all[0], all[1], group.first ? 0x7632 : 0x5410);
    static_assert(L == 16 || L == 8 || L == 4, "lanes of a group");
    const unsigned byte = unsigned(group.first) / 8, two = byte | (byte + 4) << 4;
    return __byte_perm(__byte_perm(all[0], all[1], two), __byte_perm(all[2], all[3], two),
                       0x5410);
}

struct PivotChoice {
    int row;      /* which of the group's rows; -1: there is none */
    int at;       /* its place; in its lane */
    bool careful; /* its reciprocal may not be had on the fast way; the warp's */
};

/* The next pivot among the R rows a lane that lie in the group. While the lanes compare
 * their largest elements they form the reciprocals, too: `factor` is that of the pivot in
 * its lane. */
template <int R, int L, class T, int N>
__device__ __forceinline__ PivotChoice choose_row(const Group<L> &group,
                                                  const Rows<T, N, L> &r, bool active,
                                                  T &factor)
{
    unsigned image[R], own = 0;
    bool chosen[R];
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        image[s] = high_image(magnitude<LARGEST>(r.a[s][0], 1)) & ~CHOSEN & r.open[s];
        own = max(own, image[s]);
    }
    T x = r.a[0][0];
    PivotChoice result = {-1, r.at[0], false};
    BL_UNROLL
    for (int s = 1; s < R; s++) {
        x = select(image[s] == own, r.a[s][0], x);
        result.at = image[s] == own ? r.at[s] : result.at;
    }
    factor = quick_reciprocal(x);
    const unsigned largest = group.max(own);
    BL_UNROLL
    for (int s = 0; s < R; s++)
        chosen[s] = image[s] == largest;
    unsigned choice = row_bits(group, chosen);
    const bool rare = (choice & (choice - 1)) != 0 || !is_moderate<T>(largest + CHOSEN) ||
                      (own == largest && !has_moderate_parts(x));
    result.careful = __any_sync(WARP, rare && active);
    if (result.careful) {
        /* The largest low part, then the first row as LAPACK counts them. */
        if constexpr (sizeof(Real<T>) == 8) {
            unsigned low[R], most = 0;
            BL_UNROLL
            for (int s = 0; s < R; s++) {
                low[s] = low_image(magnitude<LARGEST>(r.a[s][0], 1));
                low[s] = chosen[s] && r.open[s] ? low[s] : 0;
                most = max(most, low[s]);
            }
            most = group.max(most);
            BL_UNROLL
            for (int s = 0; s < R; s++)
                chosen[s] = chosen[s] && low[s] == most;
        }
        unsigned before[R], first = 0;
        BL_UNROLL
        for (int s = 0; s < R; s++) {
            before[s] = chosen[s] && r.open[s] ? CHOSEN - unsigned(r.position[s]) : 0;
            first = max(first, before[s]);
        }
        first = group.max(first);
        BL_UNROLL
        for (int s = 0; s < R; s++)
            chosen[s] = first != 0 && before[s] == first;
        choice = row_bits(group, chosen);
        BL_UNROLL
        for (int s = 0; s < R; s++)
            result.at = chosen[s] ? r.at[s] : result.at;
    }
    result.row = active ? 31 - __clz(int(choice)) : -1;
    return result;
}

} // namespace bl
#endif
