/* C -= A B with every product subtracted on its own, in ascending order.
 *
 * Instantiated by large_update.cu. A block owns a tile of C and keeps it in registers
 * from the first product to the last; slices of A and B go through shared memory, several
 * in flight. Nothing is assumed of sizes, leading dimensions and addresses but that an
 * element's parts are aligned. Nothing may be fused or reordered.
 */
#ifndef BL_LARGE_UPDATE_CUH
#define BL_LARGE_UPDATE_CUH

#include "absent.cuh"
#include "large.h"
#include "large_fetch.cuh"

namespace bl
{

/* A tile of ROWS x COLUMNS elements, of which a thread owns TALL x WIDE: the rows t +
 * (ROWS / TALL) r in runs of RUN, and WIDE neighbouring columns. Slices are DEPTH deep
 * and STAGES of them are in shared memory. */
template <int ROWS_, int COLUMNS_, int TALL_, int WIDE_, int RUN_, int DEPTH_,
          int STAGES_>
struct Tile {
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, TALL = TALL_, WIDE = WIDE_,
                         RUN = RUN_, DEPTH = DEPTH_, STAGES = STAGES_;
    static constexpr int DOWN = ROWS / TALL, ACROSS = COLUMNS / WIDE,
                         THREADS = DOWN * ACROSS;
    static constexpr int PAD = 4; /* keeps 16-byte alignment, spreads columns on banks */
    static constexpr int PITCH_A = ROWS + PAD, PITCH_B = COLUMNS + PAD;
    static constexpr int STAGE = DEPTH * (PITCH_A + PITCH_B);
};

/* `N` elements from shared memory in loads of 16 bytes. */
template <int N, class T>
__device__ __forceinline__ void load_run(const T *from, T (&to)[N])
{
    constexpr int PACK = 16 / sizeof(T) < N ? 16 / sizeof(T) : N;
    struct alignas(PACK * sizeof(T)) Pack {
        T x[PACK];
    };
    BL_UNROLL
    for (int i = 0; i < N; i += PACK) {
        const Pack pack = *(const Pack *)(from + i);
        BL_UNROLL
        for (int j = 0; j < PACK; j++)
            to[i + j] = pack.x[j];
    }
}

/* c - a b, where A or B is used conjugated if TURNED. */
template <bool FUSED, Placing OF_A, Placing OF_B, class R>
__device__ __forceinline__ R minus_product(R c, R a, R b)
{
    return FUSED ? fma(-a, b, c) : sub(c, mul(a, b));
}

template <bool FUSED, Placing OF_A, Placing OF_B, class R>
__device__ __forceinline__ Complex<R> minus_product(Complex<R> c, Complex<R> a,
                                                    Complex<R> b)
{
    if constexpr (FUSED) {
        a.im = OF_A == TURNED ? -a.im : a.im;
        b.im = OF_B == TURNED ? -b.im : b.im;
        return {fma(a.im, b.im, fma(-a.re, b.re, c.re)),
                fma(-a.im, b.re, fma(-a.re, b.im, c.im))};
    }
    const R rr = mul(a.re, b.re), ii = mul(a.im, b.im), ri = mul(a.re, b.im),
            ir = mul(a.im, b.re);
    if constexpr (OF_A == TURNED)
        return {sub(c.re, add(rr, ii)), sub(c.im, sub(ri, ir))};
    else if constexpr (OF_B == TURNED)
        return {sub(c.re, add(rr, ii)), sub(c.im, sub(ir, ri))};
    else
        return {sub(c.re, sub(rr, ii)), sub(c.im, add(ri, ir))};
}

/* Slices of a factor on their way to shared memory, where element l of line i (a row of
 * A, a column of B) stands at l PITCH + i. INNER: a line is contiguous in memory. A
 * thread fetches one element of each slice and others at fixed distances. */
template <class T, class G, int LINES, int PITCH, bool INNER>
struct Slices {
    static constexpr int FAST = INNER ? G::DEPTH : LINES; /* that lie side by side */
    const int near, far;
    const T *const from;
    const int64_t ld;
    const int lines; /* that there are */

    __device__ __forceinline__ Slices(const T *first, int64_t distance, int count)
        : near(threadIdx.x % FAST), far(threadIdx.x / FAST),
          from(first + near + far * distance), ld(distance), lines(count)
    {
    }
    /* Elements l0 .. l0 + depth - 1 of each line; zeros behind them. */
    __device__ __forceinline__ void fetch_slice(int64_t l0, int depth, T *slice) const
    {
        const T *p = from + (INNER ? l0 : l0 * ld);
        BL_UNROLL
        for (int q = 0; q < LINES * G::DEPTH / G::THREADS; q++) {
            const int n = q * G::THREADS % FAST, f = q * G::THREADS / FAST;
            const int i = INNER ? far + f : near + n, l = INNER ? near + n : far + f;
            fetch(slice + l * PITCH + i, p + n + f * ld, i < lines && l < depth);
        }
    }
};
template <class T, class G, Placing OF_A>
using SlicesOfA = Slices<T, G, G::ROWS, G::PITCH_A, OF_A == TURNED>;
template <class T, class G, Placing OF_B>
using SlicesOfB = Slices<T, G, G::COLUMNS, G::PITCH_B, OF_B == PLAIN>;

/* Where a block's tile begins: down the columns of tiles, or of one square's after the
 * other's. */
struct TileStart {
    int64_t i, j;
};

template <class G, class T>
__device__ __forceinline__ TileStart tile_start(const LargeUpdate<T> &u)
{
    if (u.squares) {
        const int down = (1 << u.squares) / G::ROWS,
                  tiles = down * ((1 << u.squares) / G::COLUMNS);
        const int64_t begin = int64_t(blockIdx.x / tiles) << u.squares;
        const int tile = blockIdx.x % tiles;
        return {begin + tile % down * G::ROWS, begin + tile / down * G::COLUMNS};
    }
    const int64_t down = (u.m + G::ROWS - 1) / G::ROWS;
    return {blockIdx.x % down * G::ROWS, blockIdx.x / down * G::COLUMNS};
}

/* Whether a tile from (i0, j0) on has some of the part of C; whether all of it is there
 * and in the part; whether an element is in the part. */
template <class T>
__device__ __forceinline__ bool has_some(const LargeUpdate<T> &u, int64_t i0, int64_t j0,
                                         int rows, int columns)
{
    return i0 < u.m && j0 < u.n &&
           (u.part == WHOLE ||
            (u.part == LOWER_PART ? i0 + rows > j0 : j0 + columns > i0));
}

template <class T>
__device__ __forceinline__ bool is_whole(const LargeUpdate<T> &u, int64_t i0, int64_t j0,
                                         int rows, int columns)
{
    const int64_t i_end = i0 + rows, j_end = j0 + columns;
    return i_end <= u.m && j_end <= u.n &&
           (u.part == WHOLE ||
            (u.part == LOWER_PART ? i0 >= j_end - 1 : i_end - 1 <= j0));
}

template <class T>
__device__ __forceinline__ bool has_element(const LargeUpdate<T> &u, int64_t i, int64_t j)
{
    return u.part == WHOLE || (u.part == LOWER_PART ? i >= j : i <= j);
}

template <class T, class G, bool FUSED, Placing OF_A, Placing OF_B,
          bool LEAVES_OUT = false>
__global__ void __launch_bounds__(G::THREADS) update_tiles(const LargeUpdate<T> u)
{
    __shared__ __align__(16) T slices[G::STAGES][G::STAGE];
    const int thread = threadIdx.x, down = thread % G::DOWN, across = thread / G::DOWN;
    const TileStart start = tile_start<G>(u);
    const int64_t i0 = start.i, j0 = start.j;
    let_next_begin();
    await_previous();
    if (!has_some(u, i0, j0, G::ROWS, G::COLUMNS) || (u.unless && *u.unless))
        return;
    const int rows = int(min(u.m - i0, int64_t(G::ROWS))),
              columns = int(min(u.n - j0, int64_t(G::COLUMNS)));

    const SlicesOfA<T, G, OF_A> a(u.a + (OF_A == PLAIN ? i0 : i0 * u.lda), u.lda, rows);
    const SlicesOfB<T, G, OF_B> b(u.b + (OF_B == PLAIN ? j0 * u.ldb : j0), u.ldb,
                                  columns);
    auto fetch_slice = [&](int64_t l0, T *slice) {
        const int depth = int(min(u.k - l0, int64_t(G::DEPTH)));
        a.fetch_slice(l0, depth, slice);
        b.fetch_slice(l0, depth, slice + G::DEPTH * G::PITCH_A);
    };

    const int64_t steps = (u.k + G::DEPTH - 1) / G::DEPTH;
    BL_UNROLL
    for (int s = 0; s < G::STAGES - 1; s++) {
        if (s < steps)
            fetch_slice(int64_t(s) * G::DEPTH, slices[s]);
        fetched_so_far();
    }

    /* Row r of the thread's, and whether column s + j0 has it. */
    auto row_of = [&](int r) {
        return r / G::RUN * (G::DOWN * G::RUN) + down * G::RUN + r % G::RUN;
    };
    auto has = [&](int i, int j) {
        return i < rows && j < columns && has_element(u, i0 + i, j0 + j);
    };
    const bool fresh = FUSED && u.fresh;
    const bool whole = is_whole(u, i0, j0, G::ROWS, G::COLUMNS);
    T *c = u.c + i0 + (j0 + across * G::WIDE) * u.ldc;
    T x[G::TALL][G::WIDE];
    auto each = [&](auto act) {
        BL_UNROLL
        for (int s = 0; s < G::WIDE; s++)
            BL_UNROLL
        for (int r = 0; r < G::TALL; r++)
            act(x[r][s], row_of(r), s);
    };
    if (fresh)
        each([&](T &y, int, int) { y = from_real<T>(0); });
    else if (whole)
        each([&](T &y, int i, int s) { y = c[i + s * u.ldc]; });
    else
        each([&](T &y, int i, int s) {
            y = has(i, across * G::WIDE + s) ? c[i + s * u.ldc] : from_real<T>(0);
        });

    for (int64_t step = 0; step < steps; step++) {
        await_fetched<G::STAGES - 2>();
        __syncthreads(); /* the slice is there, and its predecessor is done with */
        const int64_t next = step + G::STAGES - 1;
        if (next < steps)
            fetch_slice(next * G::DEPTH, slices[next % G::STAGES]);
        fetched_so_far();
        const T *sa = slices[step % G::STAGES] + down * G::RUN,
                *sb = slices[step % G::STAGES] + G::DEPTH * G::PITCH_A + across * G::WIDE;
        _Pragma("unroll 4") /* all of a slice would not fit the instruction cache */
            for (int l = 0; l < G::DEPTH; l++)
        {
            T left[G::TALL], right[G::WIDE];
            BL_UNROLL
            for (int r = 0; r < G::TALL; r += G::RUN) {
                T run[G::RUN];
                load_run(sa + l * G::PITCH_A + r * G::DOWN, run);
                BL_UNROLL
                for (int q = 0; q < G::RUN; q++)
                    left[r + q] = run[q];
            }
            load_run(sb + l * G::PITCH_B, right);
            BL_UNROLL
            for (int s = 0; s < G::WIDE; s++) {
                const bool takes = !(LEAVES_OUT && is_absent(right[s]));
                BL_UNROLL
                for (int r = 0; r < G::TALL; r++) {
                    const T y =
                        minus_product<FUSED, OF_A, OF_B>(x[r][s], left[r], right[s]);
                    x[r][s] = takes ? y : x[r][s];
                }
            }
        }
    }
    if (whole)
        each([&](T y, int i, int s) { c[i + s * u.ldc] = y; });
    else
        each([&](T y, int i, int s) {
            if (has(i, across * G::WIDE + s))
                c[i + s * u.ldc] = y;
        });
}

} // namespace bl
#endif
