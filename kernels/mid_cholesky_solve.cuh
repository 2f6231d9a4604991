/* Solving with the Cholesky factor of one matrix of a batch, for orders up to 1024: POTRS
 * and what POSV does after POTRF.
 *
 * Instantiated by mid_cholesky_solve.cu. A warp takes a matrix and some columns of B, a
 * lane a column, and keeps them in shared memory; the factor goes by through shared
 * memory, each number read by all lanes. An element has every product subtracted one by
 * one in netlib's order: ascending, but descending for U x = b. For L' x = b that order
 * is a chain, since the row that is solved for last comes first. Products with a zero of
 * the solution are left out where xTRSM leaves them out: for L x = b and U x = b.
 */
#ifndef BL_MID_CHOLESKY_SOLVE_CUH
#define BL_MID_CHOLESKY_SOLVE_CUH

#include "mid_cholesky.cuh"

namespace bl
{

/* What the kernels are told of a job. */
struct MidCholeskySolve {
    struct bl_operand a, b, info;
    const struct bl_item *items;
    int64_t nrhs, batch;
    int n, int_size;   /* n: the largest */
    int group, groups; /* columns of B a warp takes, and how many warps that makes */
    bool factored;     /* INFO is POTRF's: only where it is 0 there is anything to do */
};

constexpr int SOLVE_ROWS = 16; /* that are solved for at once; also of a tile */

template <class T>
constexpr int SOLVE_PITCH = SOLVE_ROWS + UNIT<T>;
/* Two tiles in turn. */
template <class T>
constexpr int SOLVE_TILES = 2 * SOLVE_ROWS *SOLVE_PITCH<T>;

template <class T, bool UPPER>
struct CholeskySolver {
    const T *a;
    int64_t lda;
    int n, group;
    T *tiles, *x; /* in shared memory; row k of lane r's column: x[k * group + r] */
    /* Bit k of left_out[block * group + r]: row k of the block was zero before it was
     * divided, and so its products are left out; not so a quotient that is zero. */
    uint16_t *left_out;
    int lane, r; /* r: whose column the lane works on */
    bool writes; /* the column is no other lane's too */
    const Team &team;

    BL_HD T &solution(int k) const
    {
        return x[k * group + r];
    }

    /* Element (i0 + i, k0 + k) of the triangle as it stands in v, or of its transpose, to
     * t[k * pitch + i], conjugated by who reads it. */
    BL_HD void fetch_tile(int turn, bool turned, int i0, int k0) const
    {
        T *to = tiles + turn % 2 * (SOLVE_ROWS * SOLVE_PITCH<T>);
        for (int e = lane; e < SOLVE_ROWS * SOLVE_ROWS; e += LANES) {
            const int near = e % SOLVE_ROWS, far = e / SOLVE_ROWS;
            const int i = turned ? far : near, k = turned ? near : far;
            const int64_t row = turned ? k0 + k : i0 + i,
                          column = turned ? i0 + i : k0 + k;
            if (i0 + i < n && k0 + k < n && (UPPER ? row <= column : row >= column))
                fetch(to + k * SOLVE_PITCH<T> + i, a + row + column * lda, true);
        }
        fetched_so_far();
    }
    BL_HD const T *tile(int turn) const
    {
        return tiles + turn % 2 * (SOLVE_ROWS * SOLVE_PITCH<T>);
    }
    /* L x = b or U' x = b; or, with BACKWARD, U x = b. Blocks of rows in the order they
     * become known; of each the tiles in the order of the products. */
    template <bool BACKWARD>
    BL_HD void by_tiles() const
    {
        constexpr bool TURNED_ = UPPER && !BACKWARD, SKIP = !TURNED_;
        const int blocks = (n + SOLVE_ROWS - 1) / SOLVE_ROWS;
        auto first_of = [&](int block) {
            return (BACKWARD ? blocks - 1 - block : block) * SOLVE_ROWS;
        };
        int turn = 0;
        fetch_tile(0, TURNED_, first_of(0), first_of(0));
        for (int block = 0; block < blocks; block++) {
            const int i0 = first_of(block);
            T y[SOLVE_ROWS];
            BL_UNROLL
            for (int i = 0; i < SOLVE_ROWS; i++) {
                y[i] = i0 + i < n ? solution(i0 + i) : from_real<T>(0);
                if (TURNED_)
                    y[i] = times_one(y[i]); /* alpha */
            }
            for (int other = 0; other <= block; other++, turn++) {
                if (other < block)
                    fetch_tile(turn + 1, TURNED_, i0, first_of(other + 1));
                else if (block + 1 < blocks)
                    fetch_tile(turn + 1, TURNED_, first_of(block + 1), first_of(0));
                else
                    fetched_so_far();
                await_fetched<1>();
                team.warp_sync();
                if (other < block)
                    apply_tile<BACKWARD, TURNED_, SKIP>(tile(turn), first_of(other),
                                                        left_out[other * group + r], y);
                else
                    solve_tile<BACKWARD, TURNED_, SKIP>(tile(turn), i0,
                                                        left_out[block * group + r], y);
                team.warp_sync();
            }
        }
    }

    template <bool BACKWARD, bool TURNED_, bool SKIP>
    BL_HD void apply_tile(const T *t, int k0, unsigned zeros, T (&y)[SOLVE_ROWS]) const
    {
        const int depth = n - k0 < SOLVE_ROWS ? n - k0 : SOLVE_ROWS;
        BL_UNROLL_BY_TWO
        for (int step = 0; step < depth; step++) {
            const int k = BACKWARD ? depth - 1 - step : step;
            const T factor = solution(k0 + k);
            const bool skip = SKIP && zeros >> k & 1;
            T l[SOLVE_ROWS / UNIT<T>][UNIT<T>];
            BL_UNROLL
            for (int u = 0; u < SOLVE_ROWS / UNIT<T>; u++)
                load_units(t + k * SOLVE_PITCH<T> + u * UNIT<T>, l[u]);
            if (skip)
                continue;
            BL_UNROLL
            for (int i = 0; i < SOLVE_ROWS; i++) {
                const T v = l[i / UNIT<T>][i % UNIT<T>];
                y[i] = sub(y[i], mul(TURNED_ ? conj(v) : v, factor));
            }
        }
    }

    template <bool BACKWARD, bool TURNED_, bool SKIP>
    BL_HD void solve_tile(const T *t, int i0, uint16_t &left, T (&y)[SOLVE_ROWS]) const
    {
        unsigned zeros = 0;
        BL_UNROLL
        for (int step = 0; step < SOLVE_ROWS; step++) {
            const int k = BACKWARD ? SOLVE_ROWS - 1 - step : step;
            if (i0 + k >= n)
                continue;
            if (SKIP && is_zero(y[k])) {
                zeros |= 1u << k;
            } else {
                const T d = t[k * SOLVE_PITCH<T> + k];
                y[k] = div(y[k], TURNED_ ? conj(d) : d);
                BL_UNROLL
                for (int i = 0; i < SOLVE_ROWS; i++) {
                    if (BACKWARD ? i >= k : i <= k)
                        continue;
                    const T v = t[k * SOLVE_PITCH<T> + i];
                    y[i] = sub(y[i], mul(TURNED_ ? conj(v) : v, y[k]));
                }
            }
            if (writes)
                solution(i0 + k) = y[k];
        }
        if (SKIP && writes)
            left = uint16_t(zeros);
    }

    /* L' x = b: column after column of L, from its diagonal on, 32 elements at a time. */
    BL_HD void by_chain() const
    {
        T next = from_real<T>(0);
        auto load = [&](int i, int k0) {
            if (i >= 0 && k0 + lane < n)
                next = a[k0 + lane + i * lda];
        };
        int turn = 0;
        load(n - 1, n - 1);
        for (int i = n - 1; i >= 0; i--) {
            T y = times_one(solution(i)), d = from_real<T>(1);
            for (int k0 = i; k0 < n; k0 += LANES, turn ^= 1) {
                T *piece = tiles + turn * LANES;
                piece[lane] = next;
                team.warp_sync();
                if (k0 + LANES < n)
                    load(i, k0 + LANES);
                else
                    load(i - 1, i - 1);
                const int count = n - k0 < LANES ? n - k0 : LANES;
                int k = 0;
                if (k0 == i) {
                    d = conj(piece[0]);
                    k = 1;
                }
                BL_UNROLL_BY_FOUR
                for (; k < count; k++)
                    y = sub(y, mul(conj(piece[k]), solution(k0 + k)));
            }
            y = div(y, d);
            if (writes)
                solution(i) = y;
            team.warp_sync();
        }
    }
};

/* Of shared memory: elements of a warp's columns, and all that a warp needs. */
template <class T>
BL_BOTH int64_t side_elements(int64_t n, int64_t group)
{
    return (n * group + UNIT<T> - 1) / UNIT<T> * UNIT<T>;
}

template <class T>
BL_BOTH int64_t solve_elements(int64_t n, int64_t group)
{
    const int64_t blocks = (n + SOLVE_ROWS - 1) / SOLVE_ROWS, unit = UNIT<T> * sizeof(T),
                  left_out = blocks * group * int64_t(sizeof(uint16_t));
    return SOLVE_TILES<T> + side_elements<T>(n, group) +
           (left_out + unit - 1) / unit * UNIT<T>;
}

/* Warp number `number` of all. */
template <class T, bool UPPER>
BL_HD void cholesky_solve_some(const MidCholeskySolve &g, T *memory, const Team &team,
                               int64_t number)
{
    const int64_t first = number % g.groups * g.group;
    MidCholesky m = {g.a, g.info, g.items, g.n, g.int_size};
    const MidCholeskyItem<T, UPPER> item(m, number / g.groups);
    const int n = item.n, lane = team.lane();
    const int64_t ldb = g.b.ld;
    const int count = int(g.nrhs - first < g.group ? g.nrhs - first : g.group);
    T *b =
        (g.b.array ? (T *)g.b.array[item.index] : (T *)g.b.p + item.index * g.b.stride) +
        first * ldb;

    if (g.factored && item.info_of(m) != 0)
        return;
    if (!g.factored && first == 0 && lane == 0)
        item.put_info(m, 0);
    T *x = memory + SOLVE_TILES<T>;
    for (int c = 0; c < count; c++)
        for (int k = lane; k < n; k += LANES)
            x[k * g.group + c] = b[k + c * ldb];
    team.warp_sync();
    const CholeskySolver<T, UPPER> solver = {
        item.a,
        item.lda,
        n,
        g.group,
        memory,
        x,
        (uint16_t *)(x + side_elements<T>(g.n, g.group)),
        lane,
        lane < count ? lane : 0,
        lane < count,
        team};
    solver.template by_tiles<false>();
    if constexpr (UPPER)
        solver.template by_tiles<true>();
    else
        solver.by_chain();
    team.warp_sync();
    for (int c = 0; c < count; c++)
        for (int k = lane; k < n; k += LANES)
            b[k + c * ldb] = x[k * g.group + c];
}

} // namespace bl
#endif
