/* The panel of a large LU factorisation, of any height, on any card.
 *
 * Instantiated by large_panel_{s,d,c,z}.cu, launched by large_panel.cu, cooperatively
 * unless a single block does it all. A block owns `chunk` consecutive rows, in shared
 * memory where they fit, else where they are; its threads take them in turn. Column by
 * column: a row takes its products with the columns before and offers its entry as the
 * pivot; the first warp of each block publishes the block's best row and waits for those
 * of all others; it copies the chosen row into the block's `top`, the rows of U with what
 * is left of them, and completes it. The chosen row's owner replaces it by the row that
 * was on the diagonal, which block 0 publishes: it owns the first `chunk` >= w rows.
 */
#ifndef BL_LARGE_PANEL_GRID_CUH
#define BL_LARGE_PANEL_GRID_CUH

#include "large_panel_common.cuh"
#include "large_panel_kernels.h"

namespace bl
{

/* A packet about column j has the number j + 1. Each is there twice, in turn: a block
 * writes that of column j + 2 when it has all notices of j + 1, whose writers had read
 * what they needed of j. Zero before the launch. */

/* An element takes one packet, or two. */
template <class T>
constexpr int PARTS = (sizeof(T) + 7) / 8;

template <class T>
__device__ __forceinline__ void send_element(Packet *to, T x, int j)
{
    unsigned raw[2 * PARTS<T>] = {};
    memcpy(raw, &x, sizeof x);
    BL_UNROLL
    for (int i = 0; i < PARTS<T>; i++)
        send(to + i, {{raw[2 * i], raw[2 * i + 1], 0}, unsigned(j + 1)});
}

template <class T>
__device__ __forceinline__ T wait_for_element(const Packet *from, int j)
{
    unsigned raw[2 * PARTS<T>];
    BL_UNROLL
    for (int i = 0; i < PARTS<T>; i++) {
        Packet p;
        do
            p = look(from + i);
        while (p.number != unsigned(j + 1));
        raw[2 * i] = p.x[0];
        raw[2 * i + 1] = p.x[1];
    }
    T x;
    memcpy(&x, raw, sizeof x);
    return x;
}

/* Where the packets about column j are. */
template <class T>
struct PanelBoard {
    Packet *packets;
    int blocks;

    __device__ __forceinline__ Packet *notice(int j, int block) const
    {
        return packets + j % 2 * blocks + block;
    }
    /* Of the row that a block offers; behind the blocks' the row on the diagonal. */
    __device__ __forceinline__ Packet *row(int j, int block, int column) const
    {
        const int64_t row = 2 * block + j % 2;
        return packets + 2 * blocks + (row * GRID_PANEL_WIDTH + column) * PARTS<T>;
    }
};

/* A warp's candidate, and a block's. */
struct Offer {
    unsigned high, low, index; /* image; which of the block's rows */
};

/* The best of the warp's offers, for all lanes. */
__device__ __forceinline__ Offer best_offer(Offer x)
{
    int lane = best_lane(x.high, warp_max(x.high), x.low, x.index);
    return {__shfl_sync(WARP, x.high, lane), __shfl_sync(WARP, x.low, lane),
            __shfl_sync(WARP, x.index, lane)};
}

/* By the first warp of a block: tell the others, and the best of all; `of` is the block
 * whose it is. */
template <class T>
__device__ __forceinline__ Offer best_of_all(const PanelBoard<T> &board, int j, Offer own,
                                             int &of)
{
    const int lane = threadIdx.x % 32;
    if (lane == 0)
        send(board.notice(j, blockIdx.x),
             {{own.high, own.low, own.index}, unsigned(j + 1)});
    Offer best;
    unsigned where; /* of equal ones the first */
    bool whole;
    do {
        best = {0, 0, 0};
        where = ~0u;
        whole = true;
        _Pragma("unroll 5") for (int b = lane; b < board.blocks; b += 32)
        {
            Packet p = look(board.notice(j, b));
            whole = whole && p.number == unsigned(j + 1);
            if (p.x[0] > best.high || (p.x[0] == best.high && p.x[1] > best.low)) {
                best = {p.x[0], p.x[1], p.x[2]};
                where = unsigned(b);
            }
        }
    } while (!whole);
    __syncwarp();
    const int from = best_lane(best.high, warp_max(best.high), best.low, where);
    of = int(__shfl_sync(WARP, where, from));
    return {0, 0, __shfl_sync(WARP, best.index, from)};
}

template <class T>
__global__ void __launch_bounds__(GRID_PANEL_THREADS) grid_panel(const GridPanel x)
{
    constexpr int W = GRID_PANEL_WIDTH;
    __shared__ T top[W][W + 1], chosen[W];
    __shared__ int64_t pivot[W];
    __shared__ Offer offers[GRID_PANEL_THREADS / 32];
    __shared__ ScalingOf<T> scale;
    extern __shared__ __align__(16) char finished[];
    const LargePanel &g = x.panel;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, w = g.w;
    const int64_t first = blockIdx.x * x.chunk, count = least(x.chunk, g.m - first);
    const PanelBoard<T> board = {(Packet *)g.work, int(gridDim.x)};
    T *const own = (T *)g.a + first;
    T *rows = own;
    int64_t ld = g.lda;
    if (x.resident) {
        rows = (T *)finished;
        ld = x.chunk | 1; /* odd: a row lies in different banks */
        for (int k = 0; k < w; k++)
            for (int64_t i = threadIdx.x; i < count; i += GRID_PANEL_THREADS)
                rows[i + k * ld] = own[i + k * g.lda];
    }
    int64_t zero = 0;
    for (int j = 0; j < w; j++) {
        __syncthreads();
        Offer mine = {0, 0, ~0u};
        for (int64_t i = threadIdx.x; i < count; i += GRID_PANEL_THREADS) {
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
            unsigned high, low;
            image_of(y, true, first + i == j, high, low);
            if (high > mine.high || (high == mine.high && low > mine.low))
                mine = {high, low, unsigned(i)};
        }
        mine = best_offer(mine);
        if (lane == 0)
            offers[warp] = mine;
        __syncthreads();
        if (warp > 0)
            continue;
        mine = {0, 0, ~0u};
        if (lane < GRID_PANEL_THREADS / 32)
            mine = offers[lane];
        mine = best_offer(mine);
        if (lane < w) {
            if (mine.high)
                send_element(board.row(j, blockIdx.x, lane), rows[mine.index + lane * ld],
                             j);
            if (blockIdx.x == 0)
                send_element(board.row(j, board.blocks, lane), rows[j + lane * ld], j);
        }
        int of;
        const unsigned index = best_of_all(board, j, mine, of).index;
        const int64_t p = of * x.chunk + index;
        T y = from_real<T>(0);
        if (lane < w)
            y = wait_for_element<T>(board.row(j, of, lane), j);
        chosen[lane] = y;
        __syncwarp();
        const T best = chosen[j];
        ScalingOf<T> s = {quick_reciprocal(best), SCALE_MULTIPLY};
        if (!is_plain(high_image(abs1(best)), best, s.factor))
            s = careful_scaling(best);
        if (lane > j)
            _Pragma("unroll 8") for (int k = 0; k < j; k++) y =
                sub(y, mul(chosen[k], top[k][lane]));
        top[j][lane] = y;
        if (lane == 0) {
            pivot[j] = p;
            scale = s;
        }
        if (s.scaling == SCALE_ZERO && zero == 0)
            zero = g.offset + j + 1;
        if (of == int(blockIdx.x) && p != j && lane < w)
            rows[index + lane * ld] =
                wait_for_element<T>(board.row(j, board.blocks, lane), j);
    }
    __syncthreads();
    bool finite = true;
    for (int64_t i = threadIdx.x; i < count; i += GRID_PANEL_THREADS) {
        const bool above = first + i < w;
        for (int k = 0; k < w; k++) {
            T y = above       ? top[first + i][k]
                  : k + 1 < w ? rows[i + k * ld]
                              : scaled(rows[i + k * ld], scale.factor, scale.scaling);
            finite = finite && is_finite(y);
            if (x.resident || above || k + 1 == w)
                own[i + k * g.lda] = y;
        }
    }
    if (!finite)
        *g.odd = 1;
    if (blockIdx.x == 0 && warp == 0) {
        const Pivots pivots = {g.pivots, g.int_size, 0};
        if (lane < w)
            pivots.set(lane, g.offset + pivot[lane]);
        if (lane == 0 && zero && *g.info == 0)
            *g.info = zero;
    }
}

} // namespace bl
#endif
