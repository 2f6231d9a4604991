/* C -= A B on the matrix units of sm_90 and up, by blocks that draw tile after tile.
 *
 * Instantiated by large_draw.cu. A block has a multiprocessor to itself, and there are as
 * many blocks as the launch has been given multiprocessors: what is enqueued beside it
 * finds the others free, at once. Launches on several streams may share an update: each
 * block takes the next tile that nobody has, so that all end together.
 *
 * The matrix units wait for nothing within a tile: of the 16 rows of products that a warp
 * works on in turn, the next ones' factors are loaded first, and the slice they belong to
 * has arrived half a slice before. Nor do slices wait for tiles: the first ones of a tile
 * arrive while the block is busy with the last ones of the tile before.
 */
#ifndef BL_LARGE_DRAW_CUH
#define BL_LARGE_DRAW_CUH

#include "large_draw.h"
#include "large_fragments.cuh"

namespace bl
{

/* Eight warps, DOWN_ of them one below the other; slices are DEPTH deep, STAGES of them
 * are there or on their way. */
template <class T, int ROWS_, int COLUMNS_, int DOWN_, int DEPTH_, int STAGES_>
struct DrawnTile {
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, DEPTH = DEPTH_,
                         STAGES = STAGES_, THREADS = 256;
    static constexpr int WARPS_DOWN = DOWN_, WARP_ROWS = ROWS / DOWN_,
                         WARP_COLUMNS = COLUMNS / (8 / DOWN_);
    static constexpr int DOWN = WARP_ROWS / 16, ACROSS = WARP_COLUMNS / 8; /* fragments */
};

template <class T>
struct TileFor;
template <>
struct TileFor<float> {
    using Tile = DrawnTile<float, 128, 256, 2, 16, 4>;
};
template <>
struct TileFor<double> {
    using Tile = DrawnTile<double, 128, 128, 2, 16, 4>;
};
template <>
struct TileFor<Complex<float>> {
    using Tile = DrawnTile<Complex<float>, 128, 128, 2, 16, 4>;
};
template <>
struct TileFor<Complex<double>> {
    using Tile = DrawnTile<Complex<double>, 64, 128, 1, 16, 3>;
};
template <class T>
using TileToDraw = typename TileFor<T>::Tile;

/* Tiles that have some of the part of C, in columns of tiles before column `across`. */
template <class G, class T>
__host__ __device__ inline int64_t tiles_before(const LargeUpdate<T> &u, int64_t across)
{
    constexpr int64_t TALL = G::COLUMNS / G::ROWS; /* tiles down a square */
    static_assert(TALL * G::ROWS == G::COLUMNS);
    const int64_t down = (u.m + G::ROWS - 1) / G::ROWS;
    if (u.part == LOWER_PART) {
        const int64_t most = (down + TALL - 1) / TALL, n = across < most ? across : most;
        return n * down - TALL * (n * (n - 1) / 2);
    }
    const int64_t most = u.part == WHOLE ? 0 : down / TALL,
                  n = across < most ? across : most;
    return TALL * (n * (n + 1) / 2) + (across - n) * down;
}

/* The tiles of an update without the square of the first `hole` rows and columns: down
 * their columns, from the left to the right. */
template <class G, class T>
struct TilesToDraw {
    const LargeUpdate<T> &u;
    const int64_t all;            /* columns of tiles */
    int64_t above, beside, below; /* tiles of the hole down and, as far as u goes, across;
                                   * tiles below it */

    __host__ __device__ TilesToDraw(const LargeUpdate<T> &what, int64_t hole)
        : u(what), all((u.n + G::COLUMNS - 1) / G::COLUMNS), above(hole / G::ROWS),
          beside(hole / G::COLUMNS < all ? hole / G::COLUMNS : all),
          below((u.m + G::ROWS - 1) / G::ROWS - above)
    {
        if (u.part == UPPER_PART)
            below = 0;
    }
    __host__ __device__ int64_t count() const
    {
        return beside * below + tiles_before<G>(u, all) - tiles_before<G>(u, beside);
    }
    __host__ __device__ TileStart of_number(int64_t number) const
    {
        if (number < beside * below)
            return {(above + number % below) * G::ROWS, number / below * G::COLUMNS};
        number += tiles_before<G>(u, beside) - beside * below;
        int64_t across = beside, behind = all;
        while (behind - across > 1) {
            const int64_t middle = (across + behind) / 2;
            if (tiles_before<G>(u, middle) <= number)
                across = middle;
            else
                behind = middle;
        }
        const int64_t first = u.part == LOWER_PART ? across * (G::COLUMNS / G::ROWS) : 0;
        return {(first + number - tiles_before<G>(u, across)) * G::ROWS,
                across * G::COLUMNS};
    }
};

/* Slices of a factor, in pieces of PIECE bytes: LINES rows of A or columns of B lie side
 * by side in memory and here, or where INNER, each line does. */
template <class T, class G, int LINES, bool INNER, int PIECE>
struct Pieces {
    static constexpr int PAD = INNER ? 4 : 32 / int(sizeof(T)), /* no bank twice */
        PITCH = (INNER ? G::DEPTH : LINES) + PAD,
                         SIZE = (INNER ? LINES : G::DEPTH) * PITCH;
    static constexpr int FAST = (INNER ? G::DEPTH : LINES) * int(sizeof(T)) / PIECE,
                         STEP = G::THREADS / FAST,
                         COUNT = (INNER ? LINES : G::DEPTH) / STEP;
    static_assert(FAST * STEP == G::THREADS && COUNT > 0);
    const char *from = nullptr;
    int there = 0; /* bytes of the thread's pieces, or lines from its first one on */

    static __device__ __forceinline__ int place(int line, int k)
    {
        return INNER ? line * PITCH + k : k * PITCH + line;
    }
    /* The lines from `first` on, of which there are `lines`. */
    __device__ __forceinline__ void begin(const T *first, int64_t ld, int64_t lines)
    {
        const int near = threadIdx.x % FAST * PIECE, far = threadIdx.x / FAST;
        from = (const char *)(first + far * ld) + near;
        const int64_t rest = INNER ? lines - far : lines * int(sizeof(T)) - near;
        there = int(max(min(rest, int64_t(INNER ? LINES : PIECE)), int64_t(0)));
    }
    __device__ __forceinline__ void fetch_slice(T *slice, int64_t ld)
    {
        char *const to =
            (char *)(slice + threadIdx.x / FAST * PITCH) + threadIdx.x % FAST * PIECE;
        BL_UNROLL
        for (int q = 0; q < COUNT; q++)
            fetch_bytes<PIECE>(to + q * STEP * PITCH * int(sizeof(T)),
                               from + q * STEP * ld * int(sizeof(T)),
                               INNER ? (q * STEP < there ? PIECE : 0) : there);
        from += (INNER ? 1 : ld) * G::DEPTH * int(sizeof(T));
    }
};

template <class T, class G, Placing OF_A, int PIECE>
using PiecesOfA = Pieces<T, G, G::ROWS, OF_A == TURNED, PIECE>;
template <class T, class G, Placing OF_B, int PIECE>
using PiecesOfB = Pieces<T, G, G::COLUMNS, OF_B == PLAIN, PIECE>;

template <class T, class G, Placing OF_A, Placing OF_B, int PIECE>
constexpr size_t DRAWN_BYTES = size_t(G::STAGES) *
                               (PiecesOfA<T, G, OF_A, PIECE>::SIZE +
                                PiecesOfB<T, G, OF_B, PIECE>::SIZE) *
                               sizeof(T);

/* Where nothing is drawn from, a block has the tile of its own number. BY_ROWS: see
 * Fragments. */
template <class T, class G, Placing OF_A, Placing OF_B, int PIECE, bool BY_ROWS = false>
__global__ void __launch_bounds__(G::THREADS, 1)
    update_drawn(const __grid_constant__ LargeUpdate<T> u, const LargeDraw draw)
{
#if __CUDA_ARCH__ >= 900 || defined BL_HOST_CUDA
    extern __shared__ __align__(16) char shared[];
    __shared__ TileStart drawn[2]; /* by turns; i < 0: there is none any more */
    using A = PiecesOfA<T, G, OF_A, PIECE>;
    using B = PiecesOfB<T, G, OF_B, PIECE>;
    constexpr int STAGE = A::SIZE + B::SIZE, ALL = G::STAGES * STAGE;
    T *const slices = (T *)shared;
    const int steps = int(u.k / G::DEPTH);
    auto draw_tile = [&](TileStart &to) {
        if (threadIdx.x == 0) {
            const unsigned number = draw.drawn     ? atomicAdd(draw.drawn, 1u)
                                    : &to == drawn ? blockIdx.x
                                                   : draw.end;
            to = number < draw.end
                     ? TilesToDraw<G, T>(u, draw.hole).of_number(number - draw.begin)
                     : TileStart{-1, 0};
        }
    };

    A a;
    B b;
    int slot = 0; /* where the next slice goes */
    bool fetches = false;
    auto begin_fetching = [&](const TileStart &tile) {
        fetches = tile.i >= 0;
        if (fetches) {
            a.begin(u.a + (OF_A == PLAIN ? tile.i : tile.i * u.lda), u.lda, u.m - tile.i);
            b.begin(u.b + (OF_B == PLAIN ? tile.j * u.ldb : tile.j), u.ldb, u.n - tile.j);
        }
    };
    auto fetch_next = [&] {
        if (fetches) {
            a.fetch_slice(slices + slot, u.lda);
            b.fetch_slice(slices + slot + A::SIZE, u.ldb);
        }
        fetched_so_far();
        slot = slot + STAGE == ALL ? 0 : slot + STAGE;
    };

    /* A unit is what a warp does with 16 rows and 8 deep: its factors, by turns. */
    constexpr int UNITS = G::DEPTH / 8 * G::DOWN;
    static_assert(G::DOWN > 1 && G::DEPTH / 8 % 2 == 0 && G::STAGES > 2);
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const T *const of_a = slices + A::place(lane_row<G>(), t),
                   *const of_b =
                       slices + A::SIZE + B::place(lane_column<G>() - 2 * t + g, t);
    int used = 0; /* the slice whose factors are loaded */
    Fragments<T, G, BY_ROWS> x;
    Factor<T, 4> left[2];
    Factor<T, 2> right[2][G::ACROSS];
    auto load_left = [&](int unit) {
        BL_UNROLL
        for (int q = 0; q < 4; q++)
            left[unit % 2].set(
                q, as_used<OF_A>(of_a[used + A::place(unit % G::DOWN * 16 + q % 2 * 8,
                                                      unit / G::DOWN * 8 + q / 2 * 4)]));
    };
    auto load_right = [&](int unit) {
        BL_UNROLL
        for (int s = 0; s < G::ACROSS; s++)
            BL_UNROLL
        for (int q = 0; q < 2; q++)
            right[unit / G::DOWN % 2][s].set(
                q,
                as_used<OF_B>(of_b[used + B::place(8 * s, unit / G::DOWN * 8 + q * 4)]));
    };

    await_previous();
    draw_tile(drawn[0]);
    __syncthreads();
    begin_fetching(drawn[0]);
    for (int s = 0; s < G::STAGES - 1; s++)
        fetch_next();
    await_fetched<G::STAGES - 2>();
    __syncthreads();
    load_right(0);
    load_left(0);
    for (int turn = 1; drawn[turn ^ 1].i >= 0; turn ^= 1) {
        x.get(u, drawn[turn ^ 1].i, drawn[turn ^ 1].j);
        _Pragma("unroll 1") for (int rest = steps; rest > 0; rest--)
        {
            BL_UNROLL
            for (int unit = 0; unit < UNITS; unit++) {
                if (unit < UNITS - 1)
                    load_left(unit + 1);
                if (unit < UNITS - 2 && (unit + 1) % G::DOWN == 0)
                    load_right(unit + 1);
                if (unit == UNITS - 2) {
                    await_fetched<G::STAGES - 3>();
                    __syncthreads(); /* the next slice is there, the last one done with */
                    if (rest == steps)
                        draw_tile(drawn[turn]);
                    used = used + STAGE == ALL ? 0 : used + STAGE;
                    load_right(0);
                }
                if (unit == UNITS - 1) {
                    load_left(0);
                    if (rest == G::STAGES - 1)
                        begin_fetching(drawn[turn]);
                    fetch_next();
                }
                x.multiply_row(unit % G::DOWN, left[unit % 2], right[unit / G::DOWN % 2]);
            }
        }
        x.put(u, drawn[turn ^ 1].i, drawn[turn ^ 1].j);
    }
#else
    (void)u;
#endif
}

} // namespace bl
#endif
