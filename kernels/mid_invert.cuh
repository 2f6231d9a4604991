/* The inverse from LU factors on the tensor cores, double, for orders up to 1024.
 *
 * Instantiated by mid_solve_d.cu, launched by mid.cu on cards from sm_90. X = inv(A) by
 * rows, as xGETRI does: Y U = I, then X L = Y. A warp has 16 rows of X and needs no other
 * warp's: it goes through panels of 8 TILES columns, which it holds in registers as the
 * sums of its matrix products; a column of tiles that is done is also, as it lies there,
 * the left factor of what it is to be taken out of. The triangles of the diagonal, 8 x 8,
 * are inverted first. The matrix of factors is in the work space, its columns at whole 16
 * bytes.
 */
#ifndef BL_MID_INVERT_CUH
#define BL_MID_INVERT_CUH

#include "mid_inverse.cuh"

namespace bl
{

constexpr int EDGE = 8;                /* of a matrix product: 16 x 8 by 8 x 8 */
constexpr int ROWS_A_STAGE = 2 * EDGE; /* of the factors */
constexpr int STAGES = 3;              /* of which two are on their way */

/* Bytes of shared memory: rows of the factors on their way, both inverses of each tile of
 * the diagonal, the order of the columns and what it is found from. */
template <int TILES>
size_t invert_bytes(int n)
{
    const int tiles = (n + EDGE - 1) / EDGE;
    return (STAGES * ROWS_A_STAGE * EDGE * TILES + 2 * EDGE * EDGE * tiles) *
               sizeof(double) +
           EDGE * tiles * 2 * sizeof(short);
}

/* c += a b. A lane holds of c, and of a, rows lane / 4 and 8 more, of each the columns
 * 2 (lane % 4) and the next; `b` points to those rows of column lane / 4 of b. */
__device__ __forceinline__ void multiply_add(double (&c)[4], const double (&a)[4],
                                             const double *b)
{
#if __CUDA_ARCH__ >= 900
    const double2 y = *(const double2 *)b;
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[2]), "d"(a[1]), "d"(a[3]), "d"(y.x), "d"(y.y));
#elif defined BL_HOST_CUDA
    host_cuda::multiply_16_8_8(c, {{a[0], a[2], a[1], a[3]}, {b[0], b[1]}});
#endif
}

/* Keeps the compiler from loading all factors of a row of tiles before it needs them. */
__device__ __forceinline__ void few_at_once(int i)
{
    if (i % 4 == 0)
        asm volatile("" ::: "memory");
}

/* 16 bytes on their way to shared memory, of which the first `count` come from `from` and
 * the others are 0. */
__device__ __forceinline__ void fetch_vector(double *to, const double *from, int count)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     unsigned(__cvta_generic_to_shared(to))),
                 "l"(__cvta_generic_to_global(from)), "r"(count)
                 : "memory");
#elif defined BL_HOST_CUDA
    host_cuda::begin_copy(to, from, 16, count);
#endif
}

/* What this thread fetched since the last call is a group; waits for all but the last. */
__device__ __forceinline__ void end_group()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#elif defined BL_HOST_CUDA
    host_cuda::end_copies();
#endif
}
__device__ __forceinline__ void wait_for_group()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
#elif defined BL_HOST_CUDA
    host_cuda::await_copies(STAGES - 2);
#endif
}

/* Where in a stage a lane finds rows 8 half.. of column `column`: a column is 16 rows,
 * and the halves of every other one have changed places, for the banks' sake. */
__device__ __forceinline__ int stage_place(int column, int half)
{
    return column * ROWS_A_STAGE + (half ^ (column & 1)) * EDGE;
}

/* The order in which a block needs the factors: panel after panel, of each first the rows
 * outside, then its own; once upwards, where U counts, and once downwards. Rows are
 * counted by stages. */
template <int TILES>
struct Walk {
    static constexpr int OWN = TILES / 2; /* stages of a panel's own rows */
    int first, stages, panels, panel, stage;
    bool down;

    __device__ __forceinline__ Walk(int n, int first_stage)
        : first(first_stage), stages((n + ROWS_A_STAGE - 1) / ROWS_A_STAGE),
          panels((stages + OWN - 1) / OWN), panel(first / OWN), stage(first), down(false)
    {
    }
    __device__ __forceinline__ bool at_end() const
    {
        return panel < 0;
    }
    __device__ __forceinline__ void advance()
    {
        if (!down) {
            if (++stage == min(stages, (panel + 1) * OWN)) {
                stage = first;
                if (++panel == panels) {
                    down = true;
                    panel--;
                    stage = stages - 1;
                }
            }
        } else if (--stage < panel * OWN) {
            panel--;
            stage = stages - 1;
        }
    }
};

/* -1 times the inverses of the two triangles of tile t of the diagonal, to `to` by
 * columns, U's first; nowhere, where that is NULL. Eight lanes a tile, a lane a column;
 * the warp. */
__device__ __forceinline__ void invert_tile(const double *A, int64_t lda, int n, int t,
                                            double *to)
{
    const int lane = threadIdx.x % 32, own = lane % EDGE, group = lane - own;
    double a[EDGE], x[EDGE], y[EDGE];
    BL_UNROLL
    for (int i = 0; i < EDGE; i++) {
        const int row = t * EDGE + i, column = t * EDGE + own;
        a[i] = row < n && column < n ? A[row + column * lda] : i == own ? 1 : 0;
        x[i] = y[i] = i == own ? 1 : 0;
    }
    BL_UNROLL
    for (int k = EDGE - 1; k >= 0; k--) {
        x[k] = mul(x[k], reciprocal(from_lane(a[k], group + k)));
        BL_UNROLL
        for (int i = 0; i < k; i++)
            x[i] = fma(-from_lane(a[i], group + k), x[k], x[i]);
    }
    BL_UNROLL
    for (int k = 0; k < EDGE; k++)
        BL_UNROLL
    for (int i = k + 1; i < EDGE; i++)
        y[i] = fma(-from_lane(a[i], group + k), y[k], y[i]);
    if (to)
        BL_UNROLL
    for (int i = 0; i < EDGE; i++) {
        to[own * EDGE + i] = -x[i];
        to[EDGE * EDGE + own * EDGE + i] = -y[i];
    }
}

/* A block: 16 rows of X a warp. */
template <int TILES, int WARPS, int BLOCKS>
__global__ void __launch_bounds__(32 * WARPS, BLOCKS) lu_invert_rows(const MidSolve g)
{
    extern __shared__ __align__(16) char memory[];
    constexpr int WIDTH = EDGE * TILES, STAGE = ROWS_A_STAGE * WIDTH;
    constexpr bool ONE_PANEL = TILES <= 8;
    using Order = Walk<TILES>;
    const int64_t slot = blockIdx.x / g.strips;
    const Solve<double> w(g, slot);
    const int thread = threadIdx.x, threads = blockDim.x, lane = thread % 32;
    const int part = int(blockIdx.x % g.strips), n = w.n;
    if (inverse_info(g, w, slot, part == 0))
        return;
    const int first_row = part * (threads / 2);
    if (first_row >= n)
        return;
    const int tiles = (n + EDGE - 1) / EDGE;
    const int top = first_row + thread / 32 * ROWS_A_WARP; /* of the warp's rows */
    const int64_t lda = w.lda, ldb = w.ldb;
    const double *const A = w.lu;
    double *const ring = (double *)memory, *const inverse = ring + STAGES * STAGE;
    short *const row_at = (short *)(inverse + 2 * EDGE * EDGE * tiles), *const pivot =
                                                                            row_at +
                                                                            EDGE * tiles;

    Order now(n, first_row / ROWS_A_STAGE), ahead = now;
    int slot_now = 0, slot_ahead = 0;
    auto fetch = [&]() {
        if (!ahead.at_end()) {
            int from = ahead.panel * WIDTH, to = min(from + WIDTH, tiles * EDGE);
            const int row = ahead.stage * ROWS_A_STAGE;
            if (ahead.down)
                to = min(to, row + ROWS_A_STAGE);
            else
                from = max(from, row);
            double *const stage = ring + slot_ahead * STAGE;
            const int first_column = ahead.panel * WIDTH;
            for (int e = thread; e < (to - from) * EDGE; e += threads) {
                const int column = from + e / EDGE, two = e % EDGE, r = row + 2 * two;
                const int count = column < n ? min(max(n - r, 0), 2) : 0;
                fetch_vector(stage + stage_place(column - first_column, two / 4) +
                                 two % 4 * 2,
                             count ? A + r + column * lda : A, count * 8);
            }
            ahead.advance();
            slot_ahead = slot_ahead + 1 == STAGES ? 0 : slot_ahead + 1;
        }
        end_group();
    };
    /* The stage that is next; the one before it makes room for another. */
    auto next = [&]() {
        wait_for_group();
        __syncthreads();
        fetch();
        const double *stage = ring + slot_now * STAGE;
        now.advance();
        slot_now = slot_now + 1 == STAGES ? 0 : slot_now + 1;
        return stage;
    };
    BL_UNROLL
    for (int i = 0; i < STAGES - 1; i++)
        fetch();
    for (int t = thread / 32 * 4; t < tiles; t += threads / 32 * 4) {
        const int own = t + lane / EDGE;
        invert_tile(A, lda, n, own,
                    own < tiles ? inverse + own * 2 * EDGE * EDGE : nullptr);
    }
    find_rows(w.pivots, n, pivot, row_at);

    const int row = top + lane / 4, pair = lane % 4 * 2;
    const int at[2] = {stage_place(lane / 4, 0) + pair, stage_place(lane / 4, 1) + pair};
    const bool has_rows = top < n;
    double x[TILES][4]; /* of the right side -1 times; of what is done, itself */
    bool strange = false;
    /* Column `column` of the lane's rows. */
    auto put = [&](int column, const double(&v)[4]) {
        BL_UNROLL
        for (int i = 0; i < 2; i++)
            if (column + i < n) {
                double *to = w.b + row_at[column + i] * ldb + row;
                if (row < n)
                    to[0] = v[i];
                if (row + EDGE < n)
                    to[EDGE] = v[2 + i];
            }
    };
    /* Columns before `from_column` count as zeros. */
    auto get = [&](int column, double(&v)[4], int from_column) {
        BL_UNROLL
        for (int i = 0; i < 2; i++) {
            v[i] = v[2 + i] = 0;
            if (column + i >= from_column && column + i < n) {
                const double *from = w.b + row_at[column + i] * ldb + row;
                if (row < n)
                    v[i] = from[0];
                if (row + EDGE < n)
                    v[2 + i] = from[EDGE];
            }
        }
    };
    /* A panel's columns, after the stages outside of it. */
    auto outside = [&](int stages) {
        double a[2][4];
        const bool down = now.down;
        auto take = [&](int stage) {
            BL_UNROLL
            for (int half = 0; half < 2; half++)
                if (has_rows)
                    get(stage * ROWS_A_STAGE + half * EDGE + pair, a[half], 0);
        };
        if (stages > 0)
            take(now.stage);
#pragma unroll 1
        for (int i = 0; i < stages; i++) {
            double y[2][4];
            BL_UNROLL
            for (int half = 0; half < 2; half++)
                BL_UNROLL
            for (int e = 0; e < 4; e++)
                y[half][e] = a[half][e];
            const int stage_now = now.stage;
            const double *const stage = next();
            if (i + 1 < stages)
                take(now.stage);
            /* The rows of Y begin at the diagonal. */
            if (!has_rows || (!down && (stage_now + 1) * ROWS_A_STAGE <= top))
                continue;
            BL_UNROLL
            for (int half = 0; half < 2; half++)
                BL_UNROLL
            for (int j = 0; j < TILES; j++) {
                few_at_once(j);
                multiply_add(x[j], y[half], stage + at[half] + j * EDGE * ROWS_A_STAGE);
            }
        }
    };
    /* Tile k of the panel, whose stage it is: finished, then out of the others. */
    auto finish = [&](int panel, bool down, int k, const double *stage) {
        const int tile = panel * TILES + k;
        double y[4] = {0, 0, 0, 0};
        multiply_add(y, x[k],
                     inverse + (2 * tile + down) * EDGE * EDGE + lane / 4 * EDGE + pair);
        BL_UNROLL
        for (int e = 0; e < 4; e++)
            x[k][e] = y[e];
        BL_UNROLL
        for (int i = 1; i < TILES; i++) {
            const int j = down ? k - i : k + i;
            few_at_once(i);
            if (j >= 0 && j < TILES)
                multiply_add(x[j], y, stage + at[k % 2] + j * EDGE * ROWS_A_STAGE);
        }
    };

#pragma unroll 1
    for (int panel = now.panel; panel < now.panels; panel++) {
        const int begin = panel * Order::OWN, column = panel * WIDTH + pair;
        BL_UNROLL
        for (int j = 0; j < TILES; j++)
            BL_UNROLL
        for (int e = 0; e < 4; e++)
            x[j][e] = row + e / 2 * EDGE == column + j * EDGE + e % 2 && row < n ? -1 : 0;
        if (!ONE_PANEL)
            outside(max(begin - now.first, 0));
        BL_UNROLL
        for (int s = 0; s < Order::OWN; s++) {
            if (begin + s < now.first || begin + s >= now.stages)
                continue;
            const double *const stage = next();
            BL_UNROLL
            for (int k = 2 * s; k < 2 * s + 2; k++)
                if (has_rows && k * EDGE + panel * WIDTH + EDGE > top &&
                    panel * TILES + k < tiles)
                    finish(panel, false, k, stage);
        }
        if (!ONE_PANEL && has_rows && panel + 1 < now.panels)
            BL_UNROLL
        for (int j = 0; j < TILES; j++)
            put(column + j * EDGE, x[j]);
    }
#pragma unroll 1
    for (int panel = now.panels - 1; panel >= 0; panel--) {
        const int begin = panel * Order::OWN, column = panel * WIDTH + pair;
        if (!ONE_PANEL && panel + 1 < now.panels) {
            BL_UNROLL
            for (int j = 0; j < TILES; j++)
                get(column + j * EDGE, x[j], first_row); /* Y begins at the diagonal */
        }
        BL_UNROLL
        for (int j = 0; j < TILES; j++)
            BL_UNROLL
        for (int e = 0; e < 4; e++)
            x[j][e] = -x[j][e];
        if (!ONE_PANEL && panel + 1 < now.panels)
            outside(now.stages - begin - Order::OWN);
        BL_UNROLL
        for (int s = Order::OWN - 1; s >= 0; s--) {
            if (begin + s >= now.stages)
                continue;
            const double *const stage = next();
            BL_UNROLL
            for (int k = 2 * s + 1; k >= 2 * s; k--)
                if (has_rows && panel * TILES + k < tiles)
                    finish(panel, true, k, stage);
        }
        if (has_rows)
            BL_UNROLL
        for (int j = 0; j < TILES; j++) {
            put(column + j * EDGE, x[j]);
            BL_UNROLL
            for (int e = 0; e < 4; e++)
                strange = strange || (column + j * EDGE + e % 2 < n &&
                                      row + e / 2 * EDGE < n && !is_finite(x[j][e]));
        }
    }
    if (strange)
        atomicOr(&g.strange[slot], 1);
}

template <int TILES, int WARPS, int BLOCKS>
constexpr InvertKernel invert_kernel()
{
    return {(const void *)lu_invert_rows<TILES, WARPS, BLOCKS>, TILES * EDGE,
            WARPS * ROWS_A_WARP, invert_bytes<TILES>};
}

} // namespace bl
#endif
