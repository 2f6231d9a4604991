/* LU factorization of matrices up to 32 x 32 in registers: GETRF, GETRFNP, GETRFSP, and
 * the elimination that tiny_solve.cuh, tiny_inverse.cuh and tiny_det.cuh build on.
 *
 * The arithmetic is netlib's loop, every operation rounded on its own (design: exact).
 * What can not be had on the fast way, a result that is not finite or a pivot too small
 * for its reciprocal, is found before anything is written; that matrix is then done by
 * tiny_again.cuh, which follows netlib's recursion.
 */
#ifndef BL_TINY_LU_CUH
#define BL_TINY_LU_CUH

#include "tiny_again.cuh"

namespace bl
{

/* Which row becomes the pivot: the largest (GETRF), the largest in units of its row's
 * largest element (GETRFSP), the next (GETRFNP). */
enum Rule { LARGEST, SCALED, NEXT };

/* A row of the matrix and where the elimination has brought it. */
template <class T, int N>
struct Row {
    T a[N];
    T b;          /* the first right-hand side's element, where there is one */
    T diagonal;   /* the row's own pivot */
    int position; /* the row of the result that this one is; -1: no row */
    int pivot;    /* IPIV(row + 1) - 1 */
    int source;   /* which lane became row `row` of the result */
    int info;     /* the group's */
    bool again;   /* not to be had on the fast way; any lane of the group */
};

/* 1 / (the row's largest magnitude). */
template <class T, int N>
__device__ __forceinline__ Real<T> row_scale(const T (&a)[N])
{
    Real<T> largest = sfmin<Real<T>>();
    BL_UNROLL
    for (int j = 0; j < N; j++)
        if (abs1(a[j]) > largest)
            largest = abs1(a[j]);
    return div(Real<T>(1), largest);
}

/* What a column is multiplied by where quick_reciprocal() is not to be trusted. A pivot
 * that netlib divides by gives NaN, so that the matrix is done again. */
template <class T>
BL_CALL T careful_factor(T pivot)
{
    if (is_zero(pivot))
        return one<T>();
    return reaches_sfmin(pivot) ? reciprocal(pivot) : from_real<T>(Real<T>(NAN));
}

/* What rows are compared by. The sign of a real number is no part of its image. */
template <Rule RULE, class T>
__device__ __forceinline__ Real<T> magnitude(T x, Real<T> scale)
{
    if constexpr (RULE == SCALED)
        return mul(abs1(x), scale);
    else if constexpr (Traits<T>::complex)
        return abs1(x);
    else
        return x;
}

/* Step k but for the columns behind it: choose the pivot, whose row's lane is returned,
 * and divide by it. x is the row's element of column k; l becomes what the row is to get
 * of the pivot's row, 0 for all but the rows below. */
template <Rule RULE, int L, class T, int N>
__device__ __forceinline__ int choose(const Group<L> &group, Row<T, N> &r, int k,
                                      bool active, Real<T> scale, T &x, T &l)
{
    const bool open = active && r.position >= k;
    const T own = open ? x : one<T>();
    T factor = quick_reciprocal(own); /* of use in the pivot's lane only */

    bool chosen, rare;
    unsigned choice; /* the bit of the pivot's lane */
    if (RULE == NEXT) {
        chosen = open && r.position == k;
        choice = active ? 1u << k : 0;
        rare =
            chosen && !(is_moderate<T>(high_image(abs1(own))) && has_moderate_parts(own));
    } else {
        const unsigned image = open ? high_image(magnitude<RULE>(own, scale)) : 0;
        const unsigned largest = group.max(image);
        chosen = open && image == largest;
        choice = group.ballot(chosen);
        const unsigned actual = RULE == LARGEST ? largest : high_image(abs1(own));
        rare = __popc(choice) != 1 || (chosen && !has_moderate_parts(own)) ||
               ((RULE == LARGEST || chosen) && !is_moderate<T>(actual));
    }
    /* Only a vote tells the compiler that the warp stays together. */
    rare = __any_sync(WARP, rare && active);
    if (rare) {
        if (RULE != NEXT) {
            /* The largest low part, then the first row as LAPACK counts them. */
            unsigned low = low_image(magnitude<RULE>(own, scale));
            low = chosen ? low : 0;
            chosen = group.max(low) == low && chosen;
            unsigned before = chosen ? CHOSEN - unsigned(r.position) : 0;
            chosen = group.max(before) == before && chosen;
            choice = group.ballot(chosen);
        }
        if (group.ballot(chosen && is_zero(own)) != 0 && r.info == 0)
            r.info = k + 1;
        if (chosen)
            factor = careful_factor(own);
    }

    const int lane = (__ffs(choice) - 1) & (L - 1);
    chosen = open && group.row == lane;
    const int place = RULE == NEXT ? k : group.from(r.position, lane);
    if (group.row == k) {
        r.pivot = place;
        r.source = lane;
    }
    if (active && r.position == k)
        r.position = place;
    if (chosen) {
        r.position = k;
        r.diagonal = own;
    }
    l = mul(own, group.from(factor, lane));
    if (open && !chosen)
        x = l;
    else
        l = from_real<T>(0);
    return lane;
}

/* All steps with every register index known: as much code as arithmetic. */
template <Rule RULE, bool EXTRA, int L, class T, int N>
__device__ __forceinline__ void eliminate_unrolled(const Group<L> &group, Row<T, N> &r,
                                                   int own_steps, int steps,
                                                   Real<T> scale)
{
    BL_UNROLL
    for (int k = 0; k < N; k++) {
        if (k >= steps)
            break;
        T l;
        const int lane = choose<RULE>(group, r, k, k < own_steps, scale, r.a[k], l);
        BL_UNROLL
        for (int j = k + 1; j < N; j++)
            r.a[j] = sub(r.a[j], mul(l, group.from(r.a[j], lane)));
        if (EXTRA)
            r.b = sub(r.b, mul(l, group.from(r.b, lane)));
    }
}

/* Steps from k on, S of them by the same code: a[0] is column k, and moves to `done`,
 * the lane's row in shared memory, when the others move up. W columns are looked at, at
 * most S - 1 more than are left. */
template <Rule RULE, bool EXTRA, int S, int W, int L, class T, int N>
__device__ __forceinline__ void eliminate_window(const Group<L> &group, Row<T, N> &r,
                                                 int k, int own_steps, int steps,
                                                 Real<T> scale, T *done)
{
    const int end = min(k + S, steps);
#pragma unroll 1
    for (; k < end; k++) {
        T l;
        const int lane = choose<RULE>(group, r, k, k < own_steps, scale, r.a[0], l);
        done[k] = r.a[0];
        BL_UNROLL
        for (int j = 1; j < W; j++)
            r.a[j - 1] = sub(r.a[j], mul(l, group.from(r.a[j], lane)));
        if (EXTRA)
            r.b = sub(r.b, mul(l, group.from(r.b, lane)));
    }
    if constexpr (W > S)
        if (k < steps) {
            eliminate_window<RULE, EXTRA, S, W - S>(group, r, k, own_steps, steps, scale,
                                                    done);
            return;
        }
    BL_UNROLL
    for (int j = 0; j < W; j++)
        if (k + j < N)
            done[k + j] = r.a[j];
}

/* All steps, and in b where EXTRA says so. `steps` is the same in the warp; a group whose
 * matrix has fewer rests after its own. `done`: N elements of the lane's own in shared
 * memory, where the rows are then, unless S is 0, which means all steps unrolled. `scale`
 * is the row's for SCALED. */
template <Rule RULE, bool EXTRA, int S, int L, class T, int N>
__device__ __forceinline__ void eliminate_steps(const Group<L> &group, Row<T, N> &r,
                                                int m, int n, int steps, T *done,
                                                Real<T> scale = 1)
{
    const int own_steps = min(m, n);
    r.position = group.row < m ? group.row : -1;
    r.pivot = r.source = r.info = 0;
    r.diagonal = one<T>();
    if constexpr (S > 0)
        eliminate_window<RULE, EXTRA, S, N>(group, r, 0, own_steps, steps, scale, done);
    else
        eliminate_unrolled<RULE, EXTRA>(group, r, own_steps, steps, scale);
}

/* The same in place, and whether it has to be done again. */
template <Rule RULE, bool EXTRA, int S, int L, class T, int N>
__device__ __forceinline__ void eliminate(const Group<L> &group, Row<T, N> &r, int m,
                                          int n, int steps, T *done, Real<T> scale = 1)
{
    eliminate_steps<RULE, EXTRA, S>(group, r, m, n, steps, done, scale);
    if constexpr (S > 0) {
        BL_UNROLL
        for (int j = 0; j < N; j++)
            r.a[j] = done[j];
    }
    Finite<T> finite;
    BL_UNROLL
    for (int j = 0; j < N; j++)
        finite.add(r.a[j], j);
    r.again = !finite;
}

/* Steps that share their code in the elimination of a class of size; 0: none do. Unrolled
 * code is a little faster while it stays in the instruction cache. Chosen by
 * bench/tiny_windows. */
template <class T>
__host__ __device__ constexpr int tiny_window(int n)
{
    if (!Traits<T>::complex || n <= 16)
        return 0;
    return n >= (sizeof(T) == 8 ? 24 : 28) ? 8 : 4;
}

/* A lane's row in shared memory: an odd number of 16-byte units, so that neither rows nor
 * columns meet in a bank. */
template <class T, int N>
struct Pitch {
    static constexpr int UNIT = 16 / sizeof(T);
    static constexpr int VALUE = (N / UNIT | 1) * UNIT;
};

/* That row, where it is needed. One warp a block. */
template <class T, int N, bool NEEDED>
__device__ __forceinline__ T *done_row(int row)
{
    if constexpr (NEEDED) {
        __shared__ __align__(16) T rows[32 * Pitch<T, N>::VALUE];
        return rows + row * Pitch<T, N>::VALUE;
    }
    return nullptr;
}

/* Call again(number) with the whole warp for each of its groups that says so; `number` is
 * that of the calling lane's group. */
template <int L, class F>
__device__ __forceinline__ void for_groups(bool wanted, int64_t number, F again)
{
    __syncwarp();
    const unsigned lanes = __ballot_sync(WARP, wanted);
    const int64_t first = number - threadIdx.x % 32 / L;
    for (int group = 0; lanes != 0 && group < 32 / L; group++)
        if (lanes >> group * L & (L == 32 ? WARP : (1u << L % 32) - 1)) {
            again(first + group);
            __syncwarp();
        }
}

template <class T, Rule RULE>
BL_CALL void factor_again(const TinyArguments &g, int64_t number)
{
    TinyProblem<T> p(g, number);
    int info;
    if (RULE == LARGEST)
        info = lu_again(p.m, p.n, p.a, p.lda, tiny_pivots(g, p.item));
    else
        info = lu_by_loop(p.m, p.n, p.a, p.lda,
                          RULE == NEXT ? Pivots{nullptr, 4, 0} : tiny_pivots(g, p.item));
    if (threadIdx.x % 32 == 0)
        put_integer(g.info, p.item, g.int_size, 0, info);
}

/* A group of L lanes owns a matrix, a lane a row; a warp owns 32 / L matrices. Shared
 * memory: of the longest, the columns that are done. */
template <class T, int N, int WARPS, int BLOCKS, Rule RULE, int S = tiny_window<T>(N)>
__global__ void BL_TINY_BOUNDS(WARPS, BLOCKS)
    tiny_factor(const __grid_constant__ TinyArguments g)
{
    constexpr int L = lanes_for(N);
    const Group<L> group;
    const int64_t number = group_number<L>();
    const TinyProblem<T> p(g, number);
    Row<T, N> r;
    load_row(r.a, p.a + group.row, p.lda, p.n, group.row < p.m);
    Real<T> scale = 1;
    if (RULE == SCALED)
        scale = row_scale(r.a);
    /* Always all steps where shapes differ: bits must not depend on the neighbours. */
    eliminate<RULE, false, S>(group, r, p.m, p.n, g.items ? N : min(g.m, g.n),
                              done_row<T, N, (S > 0)>(group.row), scale);
    const bool again = group.ballot(r.again && p.there) != 0;
    const bool mine = p.there && !again;
    store_row(r.a, p.a + r.position, p.lda, p.n, mine && group.row < p.m);
    if (RULE != NEXT && mine && group.row < min(p.m, p.n))
        put_integer(g.ipiv, p.item, g.int_size, group.row, r.pivot + 1);
    if (mine && group.row == 0)
        put_integer(g.info, p.item, g.int_size, 0, r.info);
    for_groups<L>(again, number, [&](int64_t i) { factor_again<T, RULE>(g, i); });
}

} // namespace bl
#endif
