/* LU factorization of matrices of 17 to 32 rows or columns with several rows a lane.
 *
 * Used by tiny_kernels.cuh where it is faster than the row a lane of tiny_lu.cuh: what a
 * step costs beside its arithmetic, the search for the pivot and handing its row round,
 * is shared by the 32 / L matrices of a warp. Row i lies in lane i % L of its group, slot
 * i / L. Rows stay where they are until all steps are done; they then move through shared
 * memory to their places, so that memory is written by whole columns. Arithmetic, rules
 * and what is done again are those of tiny_lu.cuh.
 */
#ifndef BL_TINY_ROWS_CUH
#define BL_TINY_ROWS_CUH

#include "tiny_inverse.cuh"
#include "tiny_solve.cuh"

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

/* 16 bytes of a row. */
template <class T>
struct alignas(16) TinyUnit {
    static constexpr int SIZE = 16 / sizeof(T);
    T x[SIZE];
};

/* A group's matrix in shared memory, where everything goes that is done. Row i of the
 * result lies at order[i], a number whose bits below a unit are not part of the place:
 * they say how the elements of L are exchanged within their units, so that different rows
 * and groups meet in few banks. The elements of U begin at a whole unit. */
template <class T, int N, int L>
struct TinyBoard {
    static constexpr int UNIT = TinyUnit<T>::SIZE;
    static constexpr int PITCH = ((N + 2 * UNIT - 2) / UNIT | 1) * UNIT; /* of a row */
    static constexpr int SIZE = (N * PITCH / UNIT | 1) * UNIT;
    static_assert(N % UNIT == 0 && PITCH >= N + UNIT - 1, "rows are whole units");
    T *p;       /* the warp's */
    int *order; /* where row i of the result lies */
    int *pivot; /* IPIV(i + 1) - 1 */
    T *b;       /* the first right-hand side */

    __device__ __forceinline__ static int start(int k)
    {
        return (k + UNIT - 1) / UNIT * UNIT;
    }
    __device__ __forceinline__ TinyUnit<T> &unit(int at) const
    {
        return *(TinyUnit<T> *)(p + at);
    }
    __device__ __forceinline__ static int place(int at)
    {
        return at & ~(UNIT - 1);
    }
    /* Which row of the input lies there. */
    __device__ __forceinline__ static int row(int at)
    {
        return at % SIZE / PITCH;
    }
    /* Where element j of L lies, and where element j = 0 of row i of U would. */
    __device__ __forceinline__ static int lower(int at, int j)
    {
        return (at ^ (j & (UNIT - 1))) + (j & ~(UNIT - 1));
    }
    __device__ __forceinline__ static int upper(int at, int i)
    {
        return place(at) + start(i) - i;
    }
    __device__ __forceinline__ T element(int i, int j) const
    {
        const int at = order[i];
        return p[j < i ? lower(at, j) : upper(at, i) + j];
    }
};

/* The same address in shared memory, which is then kept in a register and not formed anew
 * for each access. */
template <class V>
__device__ __forceinline__ V *kept(V *p)
{
#ifdef __CUDA_ARCH__
    return (V *)__cvta_shared_to_generic(renewed(unsigned(__cvta_generic_to_shared(p))));
#else
    return p;
#endif
}

template <class T, int N, int L, bool EXTRA>
__device__ __forceinline__ TinyBoard<T, N, L> rows_board(const Group<L> &group)
{
    constexpr int GROUPS = 32 / L;
    __shared__ TinyUnit<T> units[GROUPS * TinyBoard<T, N, L>::SIZE / TinyUnit<T>::SIZE];
    __shared__ int numbers[GROUPS][2][N];
    T *b = nullptr;
    if constexpr (EXTRA) {
        __shared__ T sides[GROUPS][N];
        b = sides[group.first / L];
    }
    int *own = kept(numbers[group.first / L][0]);
    return {kept((T *)units), own, own + N, EXTRA ? kept(b) : nullptr};
}

/* Spares the loads and stores that follow a look at what kind of address it is. */
__device__ __forceinline__ void assume_global(const void *p)
{
#ifdef __CUDA_ARCH__
    __builtin_assume(__isGlobal(p));
#else
    (void)p;
#endif
}

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
    if constexpr (L == 16)
        return __byte_perm(all[0], all[1], group.first ? 0x7632 : 0x5410);
    static_assert(L == 16 || L == 8, "bits of a row are whole bytes");
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

/* Steps that share their code: the columns move up by one in each. More code does not
 * stay in the instruction cache, less looks at more columns in vain. */
constexpr int SHARED_STEPS = 4;

/* Step k. `active`: the group's matrix has such a step. Of R rows a lane the first W
 * columns are looked at, at most SHARED_STEPS - 1 more than are left. */
template <int R, int W, bool EXTRA, int L, class T, int N>
__device__ __forceinline__ void eliminate_step(const Group<L> &group, Rows<T, N, L> &r,
                                               int k, bool active,
                                               const TinyBoard<T, N, L> &board)
{
    constexpr int UNIT = board.UNIT, UNITS = W / UNIT;
    constexpr int AHEAD = 2; /* units of the pivot's row on their way */
    T factor;
    const PivotChoice pivot_row = choose_row<R>(group, r, active, factor);
    const int lane = pivot_row.row & (L - 1), start = board.start(k);
    const int at = board.place(group.from(pivot_row.at, lane));
    factor = group.from(factor, lane);
    bool mine[R];
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        mine[s] = pivot_row.row - group.row == s * L;
        if (mine[s]) {
            const int to = board.place(r.at[s]) + start;
            board.pivot[k] = r.position[s];
            BL_UNROLL
            for (int i = 0; i < UNITS; i++) {
                TinyUnit<T> u;
                BL_UNROLL
                for (int t = 0; t < UNIT; t++)
                    u.x[t] = r.a[s][i * UNIT + t];
                if ((i + 1) * UNIT <= W - SHARED_STEPS ||
                    start + (i + 1) * UNIT <= board.PITCH)
                    board.unit(to + i * UNIT) = u;
            }
            if (EXTRA)
                board.b[k] = r.b[s];
        }
    }
    __syncwarp();
    /* Never beyond the row's end, where nothing of use lies. */
    auto unit = [&](int i) {
        const int j = start + i * UNIT;
        return board.unit(
            at + ((i + 1) * UNIT <= W - SHARED_STEPS ? j : min(j, board.PITCH - UNIT)));
    };
    TinyUnit<T> u[UNITS];
    BL_UNROLL
    for (int i = 0; i < UNITS && i < AHEAD; i++)
        u[i] = unit(i);
    const int place = board.pivot[k];
    if (pivot_row.careful) {
        const T pivot = u[0].x[0];
        if (active && r.info == 0 && is_zero(pivot))
            r.info = k + 1;
        factor = careful_factor(pivot);
    }
    T l[R];
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        r.position[s] = active && r.position[s] == k ? place : r.position[s];
        r.position[s] = mine[s] ? k : r.position[s];
        r.open[s] = mine[s] ? 0 : r.open[s];
        r.open[s] = renewed(r.open[s]); /* or predicates run out */
        const bool below = active && r.open[s];
        l[s] = mul(r.a[s][0], factor);
        if (below)
            board.p[board.lower(r.at[s], k)] = l[s];
        l[s] = select(below, l[s], from_real<T>(0));
    }
    BL_UNROLL
    for (int i = 0; i < UNITS; i++) {
        if (i + AHEAD < UNITS)
            u[i + AHEAD] = unit(i + AHEAD);
        BL_UNROLL
        for (int t = 0; t < UNIT; t++) {
            const int j = i * UNIT + t;
            BL_UNROLL
            for (int s = 0; s < R; s++)
                if (j > 0)
                    r.a[s][j - 1] = sub(r.a[s][j], mul(l[s], u[i].x[t]));
        }
    }
    if (EXTRA) {
        const T y = board.b[k];
        BL_UNROLL
        for (int s = 0; s < R; s++)
            r.b[s] = sub(r.b[s], mul(l[s], y));
    }
}

/* Where the lane's rows lie becomes known to the group. */
template <int R, bool EXTRA, int L, class T, int N>
__device__ __forceinline__ void note_order(const Rows<T, N, L> &r,
                                           const TinyBoard<T, N, L> &board)
{
    BL_UNROLL
    for (int s = 0; s < R; s++)
        if (r.position[s] >= 0) {
            board.order[r.position[s]] = r.at[s];
            if (EXTRA && r.open[s])
                board.b[r.position[s]] = r.b[s];
        }
}

/* L steps are done, so a lane needs one row less: the open rows, W columns of which are
 * left, are dealt out again in the order of their positions, from k on. */
template <int R, int W, bool EXTRA, int L, class T, int N>
__device__ __forceinline__ void deal_rows(const Group<L> &group, Rows<T, N, L> &r, int k,
                                          int m, const TinyBoard<T, N, L> &board)
{
    constexpr int UNIT = board.UNIT;
    note_order<R, EXTRA>(r, board);
    BL_UNROLL
    for (int s = 0; s < R; s++)
        if (r.open[s]) {
            BL_UNROLL
            for (int i = 0; i < W; i += UNIT) {
                TinyUnit<T> u;
                BL_UNROLL
                for (int t = 0; t < UNIT; t++)
                    u.x[t] = r.a[s][i + t];
                board.unit(board.place(r.at[s]) + k + i) = u;
            }
        }
    __syncwarp();
    BL_UNROLL
    for (int s = 0; s < R - 1; s++) {
        const int position = k + s * L + group.row;
        const bool inside = position < m;
        r.position[s] = inside ? position : -1;
        r.open[s] = inside ? ~0u : 0;
        r.at[s] = board.order[inside ? position : 0];
        if (EXTRA)
            r.b[s] = board.b[inside ? position : 0];
        BL_UNROLL
        for (int i = 0; i < W; i += UNIT) {
            TinyUnit<T> u = board.unit(board.place(r.at[s]) + k + i);
            BL_UNROLL
            for (int t = 0; t < UNIT; t++)
                r.a[s][i + t] = u.x[t];
        }
    }
    __syncwarp();
}

/* Steps from K on. */
template <int K, bool EXTRA, int L, class T, int N>
__device__ __forceinline__ void eliminate_from(const Group<L> &group, Rows<T, N, L> &r,
                                               int m, int own_steps, int steps,
                                               const TinyBoard<T, N, L> &board)
{
    constexpr int S = SHARED_STEPS, R = Rows<T, N, L>::R - K / L, W = N - K;
    static_assert(L % S == 0 && L % board.UNIT == 0, "rows are dealt out between units");
    const int end = min(K + S, steps);
#pragma unroll 1
    for (int k = K; k < end; k++)
        eliminate_step<R, W, EXTRA>(group, r, k, k < own_steps, board);
    if constexpr (W > S)
        if (K + S < steps) {
            if constexpr ((K + S) % L == 0)
                deal_rows<R, W - S, EXTRA>(group, r, K + S, m, board);
            eliminate_from<K + S, EXTRA>(group, r, m, own_steps, steps, board);
            return;
        }
    note_order<R, EXTRA>(r, board);
}

/* All steps. `steps` is the same in the warp; a group whose matrix has fewer rests after
 * its own. Ends with the factors in the board. EXCHANGED: elements of L within units. */
template <bool EXTRA, bool EXCHANGED, int L, class T, int N>
__device__ __forceinline__ void eliminate_rows(const Group<L> &group, Rows<T, N, L> &r,
                                               int m, int n, int steps,
                                               const TinyBoard<T, N, L> &board)
{
    r.info = 0;
    BL_UNROLL
    for (int s = 0; s < r.R; s++) {
        const int row = max(r.position[s], 0), number = group.first / L;
        r.open[s] = r.position[s] >= 0 ? ~0u : 0;
        r.at[s] = number * board.SIZE + row * board.PITCH;
        if (EXCHANGED)
            r.at[s] += (row / 8 + number) % board.UNIT;
    }
    eliminate_from<0, EXTRA>(group, r, m, min(m, n), steps, board);
    __syncwarp();
}

/* The first n elements of a lane's rows, zeros behind. Which slot holds which row differs
 * from group to group, so that a warp's groups do not read the same part of their columns
 * at once, and so not from the same banks. By columns, so that few addresses are kept. */
template <bool WHOLE, int L, class T, int N>
__device__ __forceinline__ void load_columns(const Rows<T, N, L> &r, const T *p,
                                             int64_t lda, int n,
                                             T (&a)[Rows<T, N, L>::R][N])
{
    const T *from[r.R];
    BL_UNROLL
    for (int s = 0; s < r.R; s++)
        from[s] = p + r.position[s];
    BL_UNROLL
    for (int j = 0; j < N; j++)
        BL_UNROLL
    for (int s = 0; s < r.R; s++) {
        assume_global(from[s]);
        a[s][j] = from_real<T>(0);
        if (j < n && r.position[s] >= 0)
            a[s][j] = WHOLE ? fetch(from[s]) : *from[s];
        from[s] = renewed(from[s] + lda); /* or all columns' addresses are kept */
    }
}

template <int L, class T, int N>
__device__ __forceinline__ void load_rows(const Group<L> &group, Rows<T, N, L> &r,
                                          const T *p, int64_t lda, int m, int n)
{
    BL_UNROLL
    for (int s = 0; s < r.R; s++) {
        const int row = (s + group.first / L) % r.R * L + group.row;
        r.position[s] = row < m ? row : -1;
    }
    if (is_whole(p))
        load_columns<true>(r, p, lda, n, r.a);
    else
        load_columns<false>(r, p, lda, n, r.a);
}

/* Whether all factors are finite; if not, false in some lane of the group. What is not
 * finite makes all of its row that follows it, or of its column below it, not finite, and
 * so reaches the last column or, where that is of U, the last row. */
template <int L, class T, int N>
__device__ __forceinline__ bool factors_finite(const Group<L> &group, int m, int n,
                                               const TinyBoard<T, N, L> &board)
{
    Finite<T> finite;
    BL_UNROLL
    for (int s = 0; s < Rows<T, N, L>::R; s++) {
        const int i = s * L + group.row;
        if (i < m)
            finite.add(board.element(i, n - 1), 0);
        if (i >= m && i < n) /* wide */
            finite.add(board.element(m - 1, i - 1), 1);
    }
    return bool(finite);
}

/* Row i of the factors from the board. */
template <bool WHOLE, int L, class T, int N>
__device__ __forceinline__ void store_row(const TinyBoard<T, N, L> &board, int at, int i,
                                          T *p, int64_t lda, int n)
{
    constexpr int CHUNK = N % 8 == 0 ? 8 : 4;
    const int upper = board.upper(at, i);
#pragma unroll 1
    for (int first = 0; first < n; first += CHUNK) {
        T x[CHUNK];
        BL_UNROLL
        for (int t = 0; t < CHUNK; t++) {
            const int j = first + t;
            x[t] = board.p[j < i ? board.lower(at, t) + first : upper + j];
        }
        BL_UNROLL
        for (int t = 0; t < CHUNK; t++) {
            assume_global(p);
            if (first + t < n) {
                if constexpr (WHOLE)
                    put(p, x[t]);
                else
                    *p = x[t];
            }
            p = renewed(p + lda);
        }
    }
}

/* The same of all rows: the warp writes one matrix after the other, a lane a row, those
 * of the groups that want it to where to(problem) says. */
template <int L, class T, int N, class F>
__device__ __forceinline__ void
store_factors(const Group<L> &group, const TinyArguments &g, int64_t number, bool wanted,
              const TinyBoard<T, N, L> &board, F to)
{
    const int row = threadIdx.x % 32;
    for_groups<L>(wanted, number, [&](int64_t i) {
        const TinyProblem<T> p(g, i);
        const int q = int(i - number) + group.first / L;
        if (row >= p.m)
            return;
        const int at = (board.order + (q - group.first / L) * 2 * N)[row];
        int64_t ld;
        T *a = to(p, ld);
        if (is_whole(a))
            store_row<true>(board, at, row, a + row, ld, p.n);
        else
            store_row<false>(board, at, row, a + row, ld, p.n);
    });
}

/* IPIV and INFO. */
template <int L, class T, int N>
__device__ __forceinline__ void
store_numbers(const Group<L> &group, const TinyArguments &g, const TinyProblem<T> &p,
              int info, const TinyBoard<T, N, L> &board)
{
    BL_UNROLL
    for (int s = 0; s < Rows<T, N, L>::R; s++) {
        const int row = s * L + group.row;
        if (row < min(p.m, p.n))
            put_integer(g.ipiv, p.item, g.int_size, row, board.pivot[row] + 1);
    }
    if (group.row == 0)
        put_integer(g.info, p.item, g.int_size, 0, info);
}

/* GETRF. A group of L lanes owns a matrix, a warp, which is a block, 32 / L matrices, a
 * lane several rows. Shared memory: TinyBoard. */
template <class T, int N, int L, int BLOCKS>
__global__ void BL_TINY_BOUNDS(1, BLOCKS)
    tiny_rows_factor(const __grid_constant__ TinyArguments g)
{
    const Group<L> group;
    const int64_t number = group_number<L>();
    const TinyBoard<T, N, L> board = rows_board<T, N, L, false>(group);
    const TinyProblem<T> p(g, number);
    int info;
    {
        Rows<T, N, L> r;
        load_rows(group, r, p.a, p.lda, p.m, p.n);
        /* Always all steps where shapes differ: bits must not depend on neighbours. */
        eliminate_rows<false, true>(group, r, p.m, p.n, g.items ? N : min(g.m, g.n),
                                    board);
        info = r.info;
    }
    const bool finite = group.ballot(!factors_finite(group, p.m, p.n, board)) == 0;
    if (p.there && finite)
        store_numbers(group, g, p, info, board);
    store_factors(group, g, number, p.there && finite, board,
                  [](const TinyProblem<T> &q, int64_t &ld) {
                      ld = q.lda;
                      return q.a;
                  });
    for_groups<L>(p.there && !finite, number,
                  [&](int64_t i) { factor_again<T, LARGEST>(g, i); });
}

/* b := L^-1 b; b[s] belongs to row s * L + lane of the result, which lies at at[s]. */
template <int R, int L, class T, int N>
__device__ __forceinline__ void solve_lower(const Group<L> &group,
                                            const TinyBoard<T, N, L> &board,
                                            const int (&at)[R], int steps, T (&b)[R])
{
    BL_UNROLL
    for (int q = 0; q < R; q++)
#pragma unroll 4
        for (int t = 0; t < L && q * L + t < steps; t++) {
            const T x = group.from(b[q], t);
            BL_UNROLL
            for (int s = q; s < R; s++) {
                const T y = sub(b[s], mul(board.p[board.lower(at[s], q * L + t)], x));
                b[s] = s > q ? y : select(group.row > t, y, b[s]);
            }
        }
}

/* b := U^-1 b; n is the group's order, steps the warp's. False in some lane of the group:
 * not to be had on the fast way. */
template <int R, int L, class T, int N>
__device__ __forceinline__ bool
solve_upper(const Group<L> &group, const TinyBoard<T, N, L> &board, const int (&at)[R],
            int n, int steps, T (&b)[R])
{
    int upper[R];
    T diagonal[R];
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        const int row = s * L + group.row;
        upper[s] = board.upper(at[s], row);
        diagonal[s] = row < n ? board.p[upper[s] + row] : one<T>();
    }
    bool good = true;
    BL_UNROLL
    for (int q = R - 1; q >= 0; q--) {
        const Divisor<T> divisor(diagonal[q]);
#pragma unroll 4
        for (int t = min(L, steps - q * L) - 1; t >= 0; t--) {
            const T x = group.from(divisor.quotient(b[q]), t);
            const bool there = q * L + t < n;
            BL_UNROLL
            for (int s = 0; s <= q; s++) {
                const T y = sub(b[s], mul(board.p[upper[s] + q * L + t], x));
                b[s] = select(there && (s < q || group.row < t), y, b[s]);
            }
        }
        const int position = q * L + group.row < n ? q * L + group.row : -1;
        good = end_upper(position, divisor, b[q]) && good;
    }
    return good;
}

/* GESV. As tiny_rows_factor; the first right-hand side is eliminated along with the
 * matrix. */
template <class T, int N, int L, int BLOCKS>
__global__ void BL_TINY_BOUNDS(1, BLOCKS)
    tiny_rows_gesv(const __grid_constant__ TinyArguments g)
{
    constexpr int R = Rows<T, N, L>::R;
    const Group<L> group;
    const int64_t number = group_number<L>();
    const TinyBoard<T, N, L> board = rows_board<T, N, L, true>(group);
    const TinyProblem<T> p(g, number);
    const int n = p.n, steps = g.items ? N : g.n;
    T *const sides = (T *)tiny_operand(g.b, p.item, sizeof(T));
    assume_global(sides);
    int info;
    {
        Rows<T, N, L> r;
        load_rows(group, r, p.a, p.lda, n, n);
        BL_UNROLL
        for (int s = 0; s < R; s++) {
            const int row = r.position[s];
            r.b[s] = row >= 0 && g.nrhs > 0 ? sides[row] : from_real<T>(0);
        }
        eliminate_rows<true, true>(group, r, n, n, steps, board);
        info = r.info;
    }
    const bool finite = group.ballot(!factors_finite(group, n, n, board)) == 0;
    const bool mine = p.there && finite;
    if (mine)
        store_numbers(group, g, p, info, board);
    store_factors(group, g, number, mine, board,
                  [](const TinyProblem<T> &q, int64_t &ld) {
                      ld = q.lda;
                      return q.a;
                  });
    int at[R];
    T b[R];
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        const int row = s * L + group.row;
        at[s] = board.order[row < n ? row : 0];
        b[s] = board.b[row < n ? row : 0];
    }
    for (int64_t column = 0; column < g.nrhs; column++) {
        if (column > 0) {
            BL_UNROLL
            for (int s = 0; s < R; s++) {
                b[s] = s * L + group.row < n ? sides[board.row(at[s]) + column * g.b.ld]
                                             : from_real<T>(0);
            }
            solve_lower(group, board, at, steps, b);
        }
        const bool good = solve_upper(group, board, at, n, steps, b);
        const bool broken = group.ballot(!good) != 0;
        __syncwarp(); /* all have read the column */
        BL_UNROLL
        for (int s = 0; s < R; s++)
            if (mine && info == 0 && !broken && s * L + group.row < n)
                sides[s * L + group.row + column * g.b.ld] = b[s];
        for_groups<L>(mine && info == 0 && broken, number,
                      [&](int64_t i) { column_again<T>(g, i, column); });
    }
    for_groups<L>(p.there && !finite, number, [&](int64_t i) { gesv_again<T>(g, i); });
}

/* z[s] := row s * L + lane of (L U)^-1. The units of a row that all lanes of a group read
 * at once serve all of a lane's rows. */
template <int R, int L, class T, int N>
__device__ __forceinline__ void solve_rows(const Group<L> &group,
                                           const TinyBoard<T, N, L> &board, int steps,
                                           T (&z)[R][N])
{
    constexpr int UNIT = board.UNIT;
    BL_UNROLL
    for (int s = 0; s < R; s++)
        BL_UNROLL
    for (int j = 0; j < N; j++)
        z[s][j] = from_real<T>(j == s * L + group.row ? 1 : 0);
    BL_UNROLL
    for (int i = 0; i < N; i++) {
        if (i >= steps)
            continue;
        const int at = board.order[i] + board.start(i);
        BL_UNROLL
        for (int j = i; j < N; j += UNIT) {
            const TinyUnit<T> u = board.unit(at + j - i);
            BL_UNROLL
            for (int t = 0; t < UNIT; t++)
                BL_UNROLL
            for (int s = 0; s < R; s++) {
                if (s * L > i || j + t >= N) /* the row's elements are still 0 */
                    continue;
                if (j + t == i)
                    z[s][i] = mul(z[s][i], u.x[t]);
                else
                    z[s][j + t] = fused(z[s][j + t], z[s][i], u.x[t]);
            }
        }
    }
    BL_UNROLL
    for (int i = N - 1; i > 0; i--) {
        if (i >= steps)
            continue;
        const int at = board.order[i];
        BL_UNROLL
        for (int j = 0; j < i; j += UNIT) {
            const TinyUnit<T> u = board.unit(at + j);
            BL_UNROLL
            for (int t = 0; t < UNIT; t++)
                BL_UNROLL
            for (int s = 0; s < R; s++)
                if (j + t < i)
                    z[s][j + t] = fused(z[s][j + t], z[s][i], u.x[t]);
        }
    }
}

/* GEINV. As tiny_rows_factor, then a lane owns the same rows of the inverse. Singular:
 * the factors are left in X. */
template <class T, int N, int L, int BLOCKS>
__global__ void BL_TINY_BOUNDS(1, BLOCKS)
    tiny_rows_geinv(const __grid_constant__ TinyArguments g)
{
    constexpr int R = Rows<T, N, L>::R;
    const Group<L> group;
    const int64_t number = group_number<L>();
    const TinyBoard<T, N, L> board = rows_board<T, N, L, false>(group);
    const TinyProblem<T> p(g, number);
    const int n = p.n, steps = g.items ? N : g.n;
    T *const x = (T *)tiny_operand(g.x, p.item, sizeof(T));
    int info;
    {
        Rows<T, N, L> r;
        load_rows(group, r, p.a, p.lda, n, n);
        eliminate_rows<false, false>(group, r, n, n, steps, board);
        info = r.info;
    }
    const bool finite = group.ballot(!factors_finite(group, n, n, board)) == 0;
    const bool singular = info != 0;
    store_factors(group, g, number, p.there && finite && singular, board,
                  [&](const TinyProblem<T> &q, int64_t &ld) {
                      ld = q.ldx;
                      return (T *)tiny_operand(g.x, q.item, sizeof(T));
                  });
    BL_UNROLL
    for (int s = 0; s < R; s++) {
        const int row = s * L + group.row, base = group.first / L * board.SIZE;
        if (row < n) {
            const int at = board.order[row];
            T &d = board.p[at + board.start(row)];
            d = reciprocal(d);
            board.pivot[row] = board.row(at); /* which column that becomes */
        } else if (row < steps) {             /* the warp takes more steps: zeros */
            board.order[row] = base + row * board.PITCH;
            BL_UNROLL
            for (int j = 0; j < board.PITCH; j++)
                board.p[base + row * board.PITCH + j] = from_real<T>(0);
        }
    }
    __syncwarp();
    T z[R][N];
    solve_rows(group, board, steps, z);
    bool good = true;
    BL_UNROLL
    for (int s = 0; s < R; s++)
        good = good && (s * L + group.row >= n || all_finite(z[s]));
    const bool broken = group.ballot(!good) != 0;
    const bool retry = p.there && (!finite || (!singular && broken));
    const bool mine = p.there && !retry, whole = is_whole(x);
    assume_global(x);
    BL_UNROLL
    for (int c = 0; c < N; c++) {
        if (c >= n || !mine || singular)
            break;
        T *to = x + board.pivot[c] * p.ldx + group.row;
        BL_UNROLL
        for (int s = 0; s < R; s++)
            if (s * L + group.row < n) {
                if (whole)
                    put(to + s * L, z[s][c]);
                else
                    to[s * L] = z[s][c];
            }
    }
    if (mine && group.row == 0)
        put_integer(g.info, p.item, g.int_size, 0, info);
    for_groups<L>(retry, number, [&](int64_t i) { geinv_again<T>(g, i); });
}

} // namespace bl
#endif
