/* The panel of a large LU factorisation, of any height, on any card.
 *
 * Instantiated by large_panel_{s,d,c,z}.cu, launched by large_panel.cu, cooperatively
 * unless a single block does it all. A block owns `chunk` consecutive rows, in shared
 * memory where they fit, else where they are; its threads take them in turn. Column by
 * column: a row takes its products with the columns before and offers its entry as the
 * pivot; each block publishes its best row; the blocks meet, once; every block copies the
 * chosen row into its own `top`, the rows of U with what is left of them, and completes
 * it. The chosen row's owner replaces it by the row that was on the diagonal.
 */
#ifndef BL_LARGE_PANEL_GRID_CUH
#define BL_LARGE_PANEL_GRID_CUH

#include "large_panel_common.cuh"
#include "large_panel_kernels.h"

namespace bl
{

/* What another block wrote, past this one's cache. */
template <class T>
__device__ __forceinline__ T volatile_read(const T *p)
{
    if constexpr (Traits<T>::complex) {
        const volatile Real<T> *q = (const volatile Real<T> *)p;
        return {q[0], q[1]};
    } else {
        return *(const volatile T *)p;
    }
}

/* In global memory, zeroed before the launch: what blocks tell each other, alternating.
 */
template <class T>
struct PanelBoard {
    T *diagonal; /* [2][LARGE_PANEL_WIDTH] */
    T *rows;     /* [2][blocks][LARGE_PANEL_WIDTH] */
};

template <class T>
__global__ void __launch_bounds__(GRID_PANEL_THREADS) grid_panel(const GridPanel x)
{
    constexpr int W = LARGE_PANEL_WIDTH;
    __shared__ T top[W][W + 1];
    __shared__ T chosen[W];
    __shared__ int64_t pivot[W];
    extern __shared__ __align__(16) char finished[];
    const LargePanel &g = x.panel;
    Team team;
    team.thread = threadIdx.x;
    team.threads = blockDim.x;
    team.block = blockIdx.x;
    team.blocks = gridDim.x;
    team.control = (Control *)g.work;
    PanelBoard<T> board;
    board.diagonal = (T *)((char *)g.work + x.control_bytes);
    board.rows = board.diagonal + 2 * W;
    const int lane = threadIdx.x % 32, w = g.w;
    const int64_t first = team.block * x.chunk;
    const int64_t count = least(x.chunk, g.m - first); /* can be negative */
    T *const own = (T *)g.a + first;
    T *rows = own;
    int64_t ld = g.lda;
    if (x.resident) {
        rows = (T *)finished;
        ld = x.chunk;
        for (int k = 0; k < w; k++)
            for (int64_t i = team.thread; i < count; i += team.threads)
                rows[i + k * ld] = own[i + k * g.lda];
    }
    const Best none = {-1, INT64_MAX};
    ScalingOf<T> scale = {one<T>(), SCALE_LEAVE};
    int64_t zero = 0;
    for (int j = 0; j < w; j++) {
        __syncthreads();
        Best mine = none;
        for (int64_t i = team.thread; i < count; i += team.threads) {
            if (first + i < j)
                continue;
            T *row = rows + i;
            T y = row[j * ld];
            if (j > 0) {
                _Pragma("unroll 8") for (int k = 0; k < j - 1; k++) y =
                    sub(y, mul(row[k * ld], top[k][j]));
                T l = scaled(row[(j - 1) * ld], scale.factor, scale.scaling);
                y = sub(y, mul(l, top[j - 1][j]));
                row[(j - 1) * ld] = l;
                row[j * ld] = y;
            }
            double value = abs1(y);
            if (first + i == j && value != value)
                value = INFINITY; /* IxAMAX begins with it: never beaten */
            if (value > mine.value)
                mine = {value, first + i};
        }
        mine = team.solo().best(mine);
        /* The block's best row, and the diagonal's from the block that has it. */
        const int side = j % 2;
        if (team.thread < W) {
            if (mine.index != INT64_MAX && lane < w)
                board.rows[(side * team.blocks + team.block) * W + lane] =
                    rows[mine.index - first + lane * ld];
            if (first <= j && j < first + count && lane < w)
                board.diagonal[side * W + lane] = rows[j - first + lane * ld];
            if (lane == 0)
                team.control->best[side * team.blocks + team.block] = mine;
        }
        team.sync();
        Best best = none;
        for (int b = lane; b < team.blocks; b += 32) {
            volatile Best *other = &team.control->best[side * team.blocks + b];
            best = Team::better(best, {other->value, other->index});
        }
        best = Team::best_of_warp(best);
        const int64_t p = best.index;
        const T *published = &board.rows[(side * team.blocks + p / x.chunk) * W];
        scale = careful_scaling(volatile_read(&published[j]));
        if (scale.scaling == SCALE_ZERO && zero == 0)
            zero = g.offset + j + 1;
        if (team.thread < W && lane < w) {
            T y = volatile_read(&published[lane]);
            chosen[lane] = y;
            __syncwarp(__activemask());
            if (lane > j)
                _Pragma("unroll 4") for (int k = 0; k < j; k++) y =
                    sub(y, mul(chosen[k], top[k][lane]));
            top[j][lane] = y;
            if (lane == 0)
                pivot[j] = p;
        } else if (team.thread / 32 == 1 && lane < w && p != j && first <= p &&
                   p < first + count) {
            rows[p - first + lane * ld] = volatile_read(&board.diagonal[side * W + lane]);
        }
    }
    __syncthreads();
    Finite<T> finite;
    for (int64_t i = team.thread; i < count; i += team.threads) {
        const bool above = first + i < w;
        for (int k = 0; k < w; k++) {
            T y = above       ? top[first + i][k]
                  : k + 1 < w ? rows[i + k * ld]
                              : scaled(rows[i + k * ld], scale.factor, scale.scaling);
            finite.add(y, k);
            if (x.resident || above || k + 1 == w)
                own[i + k * g.lda] = y;
        }
    }
    if (!finite)
        *g.odd = 1;
    if (team.block == 0 && team.thread < W) {
        const Pivots pivots = {g.pivots, g.int_size, 0};
        if (lane < w)
            pivots.set(lane, g.offset + pivot[lane]);
        if (lane == 0 && zero && *g.info == 0)
            *g.info = zero;
        list_moves(pivot, w, g.moves);
    }
}

} // namespace bl
#endif
