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

/* A block's candidate for the pivot of column j. Each word says j + 1 in its lower half,
 * so that who finds all three so has a whole notice; the row was published before. Two
 * notices a block, in turn: a block writes the one of column j + 2 when it has read all
 * those of j + 1, whose writers had read those of j. */
struct Notice {
    unsigned long long high, low, index;
};
static_assert(sizeof(Notice) == PANEL_NOTICE, "large_panel.cu makes room for them");

/* In global memory. */
template <class T>
struct PanelBoard {
    Notice *notices; /* [2][blocks], zero before the launch */
    T *diagonal;     /* [2][LARGE_PANEL_WIDTH] */
    T *rows;         /* [2][blocks][LARGE_PANEL_WIDTH] */
};

template <class T>
__device__ __forceinline__ T read_through(const T *p)
{
    if constexpr (Traits<T>::complex)
        return {__ldcg(&p->re), __ldcg(&p->im)};
    else
        return __ldcg(p);
}

__device__ __forceinline__ unsigned long long word(unsigned x, int j)
{
    return (unsigned long long)x << 32 | unsigned(j + 1);
}

/* What each warp of a block offers, and what the block offers. */
struct Offer {
    unsigned high, low, index; /* of the block's rows */
};

/* The best of the warp's offers, for all lanes. */
__device__ __forceinline__ Offer best_offer(Offer x)
{
    int lane = best_lane(x.high, warp_max(x.high), x.low, x.index);
    return {__shfl_sync(WARP, x.high, lane), __shfl_sync(WARP, x.low, lane),
            __shfl_sync(WARP, x.index, lane)};
}

/* One column's exchange, by the first warp of a block. The row that was chosen, and where
 * its copy is. */
template <class T>
struct PanelExchange {
    PanelBoard<T> board;
    int64_t chunk;
    int blocks;

    struct Chosen {
        int64_t row;
        const T *copy;
    };

    __device__ __forceinline__ T *place(int j, int block) const
    {
        return board.rows + (int64_t(j % 2) * blocks + block) * LARGE_PANEL_WIDTH;
    }

    __device__ __forceinline__ Chosen meet(int j, Offer own) const
    {
        const int lane = threadIdx.x % 32;
        Notice *notices = board.notices + j % 2 * blocks;
        __threadfence(); /* what the lanes published */
        __syncwarp();
        if (lane == 0) {
            volatile Notice *mine = &notices[blockIdx.x];
            mine->high = word(own.high, j);
            mine->low = word(own.low, j);
            mine->index = word(own.index, j);
        }
        Offer best;
        unsigned of; /* the block whose offer it is: of equal ones the first */
        bool whole;
        do {
            best = {0, 0, 0};
            of = ~0u;
            whole = true;
            _Pragma("unroll 4") for (int b = lane; b < blocks; b += 32)
            {
                volatile Notice *other = &notices[b];
                unsigned long long h = other->high, l = other->low, i = other->index;
                whole = whole && unsigned(h) == unsigned(j + 1) &&
                        unsigned(l) == unsigned(j + 1) && unsigned(i) == unsigned(j + 1);
                Offer x = {unsigned(h >> 32), unsigned(l >> 32), unsigned(i >> 32)};
                if (x.high > best.high || (x.high == best.high && x.low > best.low)) {
                    best = x;
                    of = unsigned(b);
                }
            }
        } while (!whole);
        __syncwarp();
        int from = best_lane(best.high, warp_max(best.high), best.low, of);
        of = __shfl_sync(WARP, of, from);
        unsigned index = __shfl_sync(WARP, best.index, from);
        __threadfence(); /* and now the copies */
        return {int64_t(of) * chunk + index, place(j, int(of))};
    }
};

template <class T>
__global__ void __launch_bounds__(GRID_PANEL_THREADS) grid_panel(const GridPanel x)
{
    constexpr int W = LARGE_PANEL_WIDTH;
    __shared__ T top[W][W + 1], chosen[W];
    __shared__ int64_t pivot[W];
    __shared__ Offer offers[GRID_PANEL_THREADS / 32];
    __shared__ ScalingOf<T> scale;
    extern __shared__ __align__(16) char finished[];
    const LargePanel &g = x.panel;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, w = g.w;
    const int64_t first = blockIdx.x * x.chunk, count = least(x.chunk, g.m - first);
    PanelExchange<T> exchange;
    exchange.chunk = x.chunk;
    exchange.blocks = gridDim.x;
    exchange.board.notices = (Notice *)g.work;
    exchange.board.diagonal = (T *)((char *)g.work + x.notice_bytes);
    exchange.board.rows = exchange.board.diagonal + 2 * W;
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
        T *const diagonal = exchange.board.diagonal + j % 2 * W;
        if (lane < w && mine.high)
            exchange.place(j, blockIdx.x)[lane] = rows[mine.index + lane * ld];
        if (lane < w && blockIdx.x == 0)
            diagonal[lane] = rows[j + lane * ld];
        const auto best = exchange.meet(j, mine);
        T y = from_real<T>(0);
        if (lane < w) {
            y = read_through(&best.copy[lane]);
            if (best.row != j && first <= best.row && best.row < first + count)
                rows[best.row - first + lane * ld] = read_through(&diagonal[lane]);
        }
        chosen[lane] = y;
        __syncwarp();
        ScalingOf<T> s = careful_scaling(chosen[j]);
        if (lane > j)
            _Pragma("unroll 4") for (int k = 0; k < j; k++) y =
                sub(y, mul(chosen[k], top[k][lane]));
        top[j][lane] = y;
        if (lane == 0) {
            pivot[j] = best.row;
            scale = s;
        }
        if (s.scaling == SCALE_ZERO && zero == 0)
            zero = g.offset + j + 1;
    }
    __syncthreads();
    Finite<T> finite;
    for (int64_t i = threadIdx.x; i < count; i += GRID_PANEL_THREADS) {
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
    if (blockIdx.x == 0 && warp == 0) {
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
