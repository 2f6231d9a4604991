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
    bool odd;     /* an odd number of interchanges, the group's */
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

/* Eliminate in place, and in b where EXTRA says so. `steps` is the same in the warp; a
 * group whose matrix has fewer rests after its own. */
template <Rule RULE, bool EXTRA, int L, class T, int N>
__device__ __forceinline__ void eliminate(const Group<L> &group, Row<T, N> &r, int m,
                                          int n, int steps)
{
    const int own_steps = min(m, n);
    r.position = group.row < m ? group.row : -1;
    r.pivot = r.source = r.info = 0;
    r.odd = false;
    r.diagonal = one<T>();
    Real<T> scale = 1;
    if (RULE == SCALED)
        scale = row_scale(r.a);
    BL_UNROLL
    for (int k = 0; k < N; k++) {
        if (k >= steps)
            break;
        const bool open = r.position >= k && k < own_steps;
        const T own = open ? r.a[k] : one<T>();
        T factor = quick_reciprocal(own); /* of use in the pivot's lane only */

        bool chosen, rare;
        unsigned choice; /* the bit of the pivot's lane */
        if (RULE == NEXT) {
            chosen = open && r.position == k;
            choice = k < own_steps ? 1u << k : 0;
            rare = chosen &&
                   !(is_moderate<T>(high_image(abs1(own))) && has_moderate_parts(own));
        } else {
            const unsigned image = open ? high_image(magnitude<RULE>(own, scale)) : 0;
            const unsigned largest = group.max(image);
            chosen = open && image == largest;
            choice = group.ballot(chosen && has_moderate_parts(own));
            const unsigned actual = RULE == LARGEST ? largest : high_image(abs1(own));
            rare = __popc(choice) != 1 ||
                   ((RULE == LARGEST || chosen) && !is_moderate<T>(actual));
        }
        /* Only a vote tells the compiler that the warp stays together. */
        rare = __any_sync(WARP, rare && k < own_steps);
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
        r.odd ^= place != k && k < own_steps;
        if (r.position == k)
            r.position = place;
        if (chosen) {
            r.position = k;
            r.diagonal = own;
        }
        const bool below = open && !chosen;
        T l = mul(own, group.from(factor, lane));
        if (below)
            r.a[k] = l;
        else
            l = from_real<T>(0);
        BL_UNROLL
        for (int j = k + 1; j < N; j++)
            r.a[j] = sub(r.a[j], mul(l, group.from(r.a[j], lane)));
        if (EXTRA)
            r.b = sub(r.b, mul(l, group.from(r.b, lane)));
    }
    Finite<T> finite;
    BL_UNROLL
    for (int j = 0; j < N; j++)
        finite.add(r.a[j], j);
    r.again = !finite;
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

/* A group of L lanes owns a matrix, a lane a row; a warp owns 32 / L matrices. No shared
 * memory. */
template <class T, int N, int WARPS, int BLOCKS, Rule RULE>
__global__ void __launch_bounds__(32 * WARPS, BLOCKS)
    tiny_factor(const __grid_constant__ TinyArguments g)
{
    constexpr int L = lanes_for(N);
    const Group<L> group;
    const int64_t number = group_number<L>();
    const TinyProblem<T> p(g, number);
    Row<T, N> r;
    load_row(r.a, p.a + group.row, p.lda, p.n, group.row < p.m);
    /* Always all steps where shapes differ: bits must not depend on the neighbours. */
    eliminate<RULE, false>(group, r, p.m, p.n, g.items ? N : min(g.m, g.n));
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
