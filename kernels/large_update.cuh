/* C -= A B with every product subtracted on its own, in ascending order.
 *
 * Instantiated by large_update.cu. A block owns a tile of C and keeps it in registers
 * from the first product to the last; slices of A and B go through shared memory, several
 * in flight. Nothing is assumed of sizes, leading dimensions and addresses but that an
 * element's parts are aligned. Nothing may be fused or reordered.
 */
#ifndef BL_LARGE_UPDATE_CUH
#define BL_LARGE_UPDATE_CUH

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

template <class T, class G, bool FUSED, Placing OF_A, Placing OF_B>
__global__ void __launch_bounds__(G::THREADS) update_tiles(const LargeUpdate<T> u)
{
    __shared__ __align__(16) T slices[G::STAGES][G::STAGE];
    /* Length of a slice of A and of B where it is contiguous in memory. */
    constexpr int FAST_A = OF_A == PLAIN ? G::ROWS : G::DEPTH,
                  FAST_B = OF_B == PLAIN ? G::DEPTH : G::COLUMNS;
    const int thread = threadIdx.x, down = thread % G::DOWN, across = thread / G::DOWN;
    const TileStart start = tile_start<G>(u);
    const int64_t i0 = start.i, j0 = start.j;
    let_next_begin();
    await_previous();
    if (!has_some(u, i0, j0, G::ROWS, G::COLUMNS) || (u.unless && *u.unless))
        return;
    const int rows = int(min(u.m - i0, int64_t(G::ROWS))),
              columns = int(min(u.n - j0, int64_t(G::COLUMNS)));

    /* What a thread fetches of each slice: one element and others at fixed distances. */
    const int a_row = thread % FAST_A, a_far = thread / FAST_A, b_row = thread % FAST_B,
              b_far = thread / FAST_B;
    const T *a = u.a + (OF_A == PLAIN ? i0 : i0 * u.lda) + a_row + a_far * u.lda;
    const T *b = u.b + (OF_B == PLAIN ? j0 * u.ldb : j0) + b_row + b_far * u.ldb;
    auto fetch_slice = [&](int64_t l0, T *slice) {
        const int depth = int(min(u.k - l0, int64_t(G::DEPTH)));
        const T *from_a = a + (OF_A == PLAIN ? l0 * u.lda : l0);
        const T *from_b = b + (OF_B == PLAIN ? l0 : l0 * u.ldb);
        BL_UNROLL
        for (int q = 0; q < G::ROWS * G::DEPTH / G::THREADS; q++) {
            const int near = q * G::THREADS % FAST_A, far = q * G::THREADS / FAST_A;
            const int i = OF_A == PLAIN ? a_row + near : a_far + far,
                      l = OF_A == PLAIN ? a_far + far : a_row + near;
            fetch(slice + l * G::PITCH_A + i, from_a + near + far * u.lda,
                  i < rows && l < depth);
        }
        T *other = slice + G::DEPTH * G::PITCH_A;
        BL_UNROLL
        for (int q = 0; q < G::COLUMNS * G::DEPTH / G::THREADS; q++) {
            const int near = q * G::THREADS % FAST_B, far = q * G::THREADS / FAST_B;
            const int j = OF_B == PLAIN ? b_far + far : b_row + near,
                      l = OF_B == PLAIN ? b_row + near : b_far + far;
            fetch(other + l * G::PITCH_B + j, from_b + near + far * u.ldb,
                  j < columns && l < depth);
        }
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
            for (int s = 0; s < G::WIDE; s++)
                BL_UNROLL
            for (int r = 0; r < G::TALL; r++)
                x[r][s] = minus_product<FUSED, OF_A, OF_B>(x[r][s], left[r], right[s]);
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
