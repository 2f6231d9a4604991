/* What lies in shared memory while a matrix is factored on the chip, and the bookkeeping
 * on it that is not every step's: positions of rows, and pivots where several are
 * largest.
 *
 * Included by mid_panel.cuh and mid_chip.cuh. Who may write which part, and when others
 * may read it, mid_panel.cuh and mid_lu.cuh decide with the signals here.
 */
#ifndef BL_MID_SHARED_CUH
#define BL_MID_SHARED_CUH

#include "determinant.cuh"
#include "mid_access.cuh"
#include "mid_pivot.cuh"
#include "mid_signal.cuh"

namespace bl
{

/* Where panel q begins in the packed L of a matrix of m rows. */
template <int C>
__host__ __device__ __forceinline__ int packed(int m, int q)
{
    return C * (q * m - C * (q * (q - 1) / 2));
}

/* Where a panel of C columns has element r of its column j of L, r > j, in its own pivot
 * rows: whole vectors from the one of element j + 1 on. The right half of the columns
 * lies folded over where the left half has nothing, where vectors are short enough. */
template <class T, int C>
struct FoldedCorner {
    static constexpr int V = PER_VECTOR<T>;
    static constexpr bool FOLDED = V <= 2;
    static constexpr int SIZE = FOLDED ? C * C / 2 : C * C;
    __device__ __forceinline__ static int at(int j, int r)
    {
        return !FOLDED || j < C / 2 ? j * C + r : (C - 1 - j) * C + r - (j + 1) / V * V;
    }
};

/* Row r of the matrix is the r-th row it came with. The L of panel q is packed: the rows
 * that had no pivot before the panel, in their order, column after column. */
template <class T, int R, int C, int W, bool SCALED>
struct Chip {
    static constexpr int ROWS = 32 * R, PANELS = ROWS / C;
    static constexpr int STRIDE = C + PER_VECTOR<T>; /* between rows of C elements */

    T rows[W][C * STRIDE]; /* a warp's pivot rows of its panel, C at a time */
    T corner[PANELS][FoldedCorner<T, C>::SIZE]; /* L of a panel in its own pivot rows */
    Real<T> scale[SCALED ? ROWS : 1];           /* a row's, for GETRFSP */
    Real<T> magnitude[SCALED ? ROWS : 1];       /* the same by positions, at the end */
    Signal column[ROWS], panel[PANELS], placed[PANELS];
    short pivot[ROWS + C]; /* the row of step k; -1: there is no step k (yet) */
    short step[ROWS];      /* the step whose pivot a row is; NONE, OUTSIDE */
    int interchanges;
    int steps;   /* there are so many */
    int zero;    /* INFO */
    int strange; /* a u(i,j) is NaN or Inf; asked only where T is complex */
    unsigned char position[ROWS],
        at[ROWS]; /* of a row; of a position, after `interchanges` steps */
    unsigned char ipiv[ROWS];
    unsigned char place[PANELS][ROWS]; /* of a row in a column of the packed L */
    unsigned char turn[PANELS][ROWS];  /* when it is the panel's pivot; 255: never */
    unsigned char count[PANELS];       /* of the panel's steps */
};

/* Carry out the interchanges up to `steps`. One lane. */
template <class Shared>
__device__ __noinline__ void interchange_on(Shared &s, int steps)
{
    unsigned char *const position = s.position, *const at = s.at;
    for (int k = s.interchanges; k < steps; k++) {
        const int row = s.pivot[k];
        const unsigned char p = position[row], other = at[k];
        position[other] = p;
        at[p] = other;
        position[row] = (unsigned char)k;
        at[k] = (unsigned char)row;
        s.ipiv[k] = p;
    }
    s.interchanges = steps;
}

/* The pivot of step k where several rows may be largest: the first in position. A lane
 * has the magnitudes of its rows, -1 for those that are no candidates. A warp. */
template <class Shared, class Magnitude, int R>
__device__ __noinline__ int first_largest(Shared &s, const Magnitude (&magnitude)[R],
                                          int k, int panel)
{
    const int lane = threadIdx.x % 32;
    if (panel > 0)
        s.placed[panel - 1].wait();
    if (lane == 0)
        interchange_on(s, k);
    __syncwarp();
    double most = -1;
    int where = NONE, row = 0;
    BL_UNROLL
    for (int i = 0; i < R; i++) {
        const double v = magnitude[i];
        const int r = i * 32 + lane, p = s.position[r];
        if (v > most || (v == most && v >= 0 && p < where)) {
            most = v;
            where = p;
            row = r;
        }
    }
    for (int step = 16; step > 0; step /= 2) {
        double v = __shfl_xor_sync(ALL_LANES, most, step);
        int p = __shfl_xor_sync(ALL_LANES, where, step);
        int r = __shfl_xor_sync(ALL_LANES, row, step);
        if (v > most || (v == most && p < where)) {
            most = v;
            where = p;
            row = r;
        }
    }
    return row;
}

} // namespace bl
#endif
