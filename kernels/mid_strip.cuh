/* The columns to the right of a panel: its moves, U, and what is to be taken out of the
 * rows below; at the end the interchanges of later panels in the L of earlier ones.
 *
 * Included by mid_blocked.cuh, whose file instantiates it; launched by mid.cu. In exact
 * arithmetic lu_strip is netlib's xTRSM and xGEMM, every product rounded and taken out
 * in ascending order. Fast arithmetic fuses them, or gives them to the tensor cores; the
 * order is then theirs, but the same whatever runs beside it.
 */
#ifndef BL_MID_STRIP_CUH
#define BL_MID_STRIP_CUH

#include "kernel.cuh"
#include "large_fragments.cuh"
#include "mid.h"
#include "mid_access.cuh"
#include "mid_pivot.cuh"

namespace bl
{

/* The matrix that a block works on. */
template <class T>
struct Matrix {
    T *a;
    int64_t lda, index;
    int m, n, order;

    __device__ __forceinline__ Matrix(const MidArguments &g, int64_t number)
    {
        struct bl_item item = {number, g.m, g.n, g.a.ld, 0};
        if (g.items)
            item = g.items[number];
        index = item.index;
        a = (T *)operand_at(g.a, index, sizeof(T));
        lda = item.lda;
        m = int(item.m);
        n = int(item.n);
        order = m < n ? m : n;
    }
};

/* How products are taken out: rounded first, as netlib does, or for GETRFSP, where none
 * is left out; with one rounding; by the tensor cores, in double precision from sm_90 on,
 * the rest with one rounding. */
enum Products { SEPARATE, FUSED, FRAGMENTS, EVERY };

constexpr int STRIP_THREADS = 256, DEPTH = 16; /* columns of L in shared memory */

/* Rows of U: four, one below the other, lie in different banks, for fragments with eight
 * columns each. */
template <class T, Products P = SEPARATE>
constexpr int STRIP_STRIDE = NB + (P == FRAGMENTS ? 32 : 64) / int(sizeof(T));

/* Slices of L in shared memory: one, or for fragments the one at hand and those on their
 * way; columns lie as the rows of U do. */
template <class T, Products P>
constexpr int STRIP_SLICES = P != FRAGMENTS    ? 1
                             : sizeof(T) == 16 ? 2
                                               : 3;

template <class T, Products P>
constexpr int SLICE_STRIDE = P == FRAGMENTS ? STRIP_STRIDE<T, P> : NB;

template <class T, Products P>
constexpr size_t STRIP_BYTES =
    (NB * STRIP_STRIDE<T, P> + STRIP_SLICES<T, P> * DEPTH * SLICE_STRIDE<T, P>)*sizeof(T);

template <class T> /* a multiprocessor; the fastest on an H100 */
constexpr int STRIP_BLOCKS = Traits<T>::complex ? 2 : 3;

template <Products P, class T>
__device__ __forceinline__ T less_product(T a, T x, T y)
{
    if constexpr (P == SEPARATE || P == EVERY)
        return sub(a, mul(x, y));
    else
        return minus_product<true, PLAIN, PLAIN>(a, x, y);
}

/* Tiles of 64 rows below the corner, 4 x 4 of which a thread holds, rows 16 apart. A has
 * `rows` rows, as L, and `columns` columns; of L, `width`. */
template <class T, Products P, int STRIDE>
__device__ __forceinline__ void subtract_by_threads(T *A, const T *L, int64_t lda,
                                                    int rows, int columns, int width,
                                                    const T (*u)[STRIDE], T (*l)[NB])
{
    const int thread = threadIdx.x, r0 = thread % 16, c0 = thread / 16 * 4;
    for (int top = width; top < rows; top += NB) {
        T a[4][4], next[DEPTH * NB / STRIP_THREADS];
        constexpr int LOADS = DEPTH * NB / STRIP_THREADS;
        BL_UNROLL
        for (int i = 0; i < 4; i++)
            BL_UNROLL
        for (int j = 0; j < 4; j++) {
            int row = top + r0 + 16 * i, c = c0 + j;
            a[i][j] =
                A[(row < rows ? row : rows - 1) + (c < columns ? c : columns - 1) * lda];
        }
        BL_UNROLL
        for (int e = 0; e < LOADS; e++) {
            int at = thread + e * STRIP_THREADS, row = top + at % NB, k = at / NB;
            next[e] = L[(row < rows ? row : rows - 1) + (k < width ? k : 0) * lda];
        }
        for (int from = 0; from < width; from += DEPTH) {
            __syncthreads();
            BL_UNROLL
            for (int e = 0; e < LOADS; e++) {
                int at = thread + e * STRIP_THREADS;
                l[at / NB][at % NB] = next[e];
            }
            __syncthreads();
            if (from + DEPTH < width)
                BL_UNROLL
            for (int e = 0; e < LOADS; e++) {
                int at = thread + e * STRIP_THREADS, row = top + at % NB;
                int k = from + DEPTH + at / NB;
                next[e] = L[(row < rows ? row : rows - 1) + (k < width ? k : 0) * lda];
            }
            const int end = width - from < DEPTH ? width - from : DEPTH;
            BL_UNROLL_BY_TWO
            for (int k = 0; k < end; k++) {
                T x[4], y[4];
                BL_UNROLL
                for (int i = 0; i < 4; i++)
                    x[i] = load(&l[k][r0 + 16 * i], true);
                read_row(y, &u[from + k][c0]);
                BL_UNROLL
                for (int j = 0; j < 4; j++)
                    BL_UNROLL
                for (int i = 0; i < 4; i++)
                    a[i][j] = less_product<P>(a[i][j], x[i], y[j]);
            }
        }
        BL_UNROLL
        for (int i = 0; i < 4; i++)
            BL_UNROLL
        for (int j = 0; j < 4; j++) {
            int row = top + r0 + 16 * i, c = c0 + j;
            if (row < rows && c < columns)
                A[row + c * lda] = a[i][j];
        }
    }
}

/* x, of which the compiler knows nothing. */
__device__ __forceinline__ int64_t opaque(int64_t x)
{
#ifdef __CUDA_ARCH__
    asm volatile("" : "+l"(x));
#endif
    return x;
}

/* The same by fragments, of a panel of 64 columns. A warp has 16 x 32 of a tile. Slices
 * of L are on their way while others are multiplied. */
template <class T, int STRIDE>
__device__ __forceinline__ void
subtract_by_fragments(T *A, const T *L, int64_t lda, int rows, int columns,
                      const T (*u)[STRIDE], T (*l)[STRIDE])
{
#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900
    constexpr int SLICES = STRIP_SLICES<T, FRAGMENTS>, ACROSS = 4;
    const int thread = threadIdx.x, warp = thread / 32, g = thread % 32 / 4,
              t = thread % 4;
    const int row = warp % 4 * 16 + g, column = warp / 4 * 8 * ACROSS;
    int ahead = 0, at_hand = 0; /* slices in the ring */
    int next_top = NB, next_from = 0;
    auto fetch_slice = [&]() {
        if (next_top < rows) {
            BL_UNROLL
            for (int e = 0; e < DEPTH * NB / STRIP_THREADS; e++) {
                const int at = thread + e * STRIP_THREADS, r = next_top + at % NB;
                fetch(&l[ahead * DEPTH + at / NB][at % NB],
                      L + r + (next_from + at / NB) * lda, r < rows);
            }
            ahead = ahead + 1 == SLICES ? 0 : ahead + 1;
            next_from = (next_from + DEPTH) % NB;
            next_top += next_from == 0 ? NB : 0;
        }
        fetched_so_far();
    };
    BL_UNROLL
    for (int i = 0; i < SLICES - 1; i++)
        fetch_slice();
#    pragma unroll 1
    for (int top = NB; top < rows; top += NB) {
        Fragment<T, 4> x[1][ACROSS];
        /* Number q of fragment s, which is at (i, j). */
        auto each = [&](auto act) {
            const int64_t ld = opaque(lda); /* addresses are not worth registers */
            BL_UNROLL
            for (int s = 0; s < ACROSS; s++)
                BL_UNROLL
            for (int q = 0; q < 4; q++)
                act(x[0][s], q, top + row + q / 2 * 8, column + 2 * t + 8 * s + q % 2,
                    ld);
        };
        each([&](auto &y, int q, int i, int j, int64_t ld) {
            y.set(q, minus(A[min(i, rows - 1) + min(j, columns - 1) * ld]));
        });
#    pragma unroll 1
        for (int from = 0; from < NB; from += DEPTH) {
            await_fetched<SLICES - 2>();
            __syncthreads(); /* the slice is there, and its predecessor is done with */
            fetch_slice();
            const T *const left_of = &l[at_hand * DEPTH + t][row],
                           *const right_of = &u[from + t][column + g];
            BL_UNROLL
            for (int k = 0; k < DEPTH; k += 8) {
                Fragment<T, 4> left[1];
                Fragment<T, 2> right[ACROSS];
                BL_UNROLL
                for (int q = 0; q < 4; q++)
                    left[0].set(
                        q, load(left_of + (k + q / 2 * 4) * STRIDE + q % 2 * 8, true));
                BL_UNROLL
                for (int s = 0; s < ACROSS; s++)
                    BL_UNROLL
                for (int q = 0; q < 2; q++)
                    right[s].set(q, load(right_of + (k + q * 4) * STRIDE + 8 * s, true));
                multiply_all(x, left, right);
            }
            at_hand = at_hand + 1 == SLICES ? 0 : at_hand + 1;
        }
        each([&](auto &y, int q, int i, int j, int64_t ld) {
            if (i < rows && j < columns)
                A[i + j * ld] = minus(y, q);
        });
    }
#endif
}

/* A block: 64 columns to the right of a panel: its moves, U by the panel's corner, then
 * tiles of 64 rows, to the last. Shared memory: U, slices of L. */
template <class T, Products P>
__global__ void __launch_bounds__(STRIP_THREADS, STRIP_BLOCKS<T>)
    lu_strip(const MidArguments g, int first, int strips, const Moves *all_moves)
{
    extern __shared__ __align__(16) char memory[];
    constexpr int STRIDE = STRIP_STRIDE<T, P>, L_STRIDE = SLICE_STRIDE<T, P>;
    T(*const u)[STRIDE] = (T(*)[STRIDE])memory;       /* u[k][column] */
    T(*const l)[L_STRIDE] = (T(*)[L_STRIDE])(u + NB); /* l[k][row] */
    __shared__ Moves moves;
    __shared__ unsigned zero[DEPTH][2]; /* which columns of a row of U are 0 */
    const int64_t number = blockIdx.x / strips;
    const Matrix<T> w(g, number);
    const int thread = threadIdx.x;
    const int width = w.order - first < NB ? w.order - first : NB;
    const int column = first + width + int(blockIdx.x % strips) * NB;
    if (width <= 0 || column >= w.n)
        return;
    const int columns = w.n - column < NB ? w.n - column : NB;
    const int64_t lda = w.lda;
    const T *const L = w.a + first + first * lda;
    T *const A = w.a + first + column * lda;
    for (int i = thread; i < int(sizeof(Moves) / sizeof(int)); i += STRIP_THREADS)
        ((int *)&moves)[i] = ((const int *)&all_moves[number])[i];
    __syncthreads();

    const int moved = moves.count;
    constexpr int EACH = 8, AT_ONCE = EACH * STRIP_THREADS / (2 * NB);
    for (int from = 0; from < columns; from += AT_ONCE) {
        T x[EACH];
        BL_UNROLL
        for (int e = 0; e < EACH; e++) {
            int at = thread + e * STRIP_THREADS, k = at % (2 * NB),
                c = from + at / (2 * NB);
            if (k < moved && c < columns)
                x[e] = A[moves.from[k] + c * lda];
        }
        __syncthreads();
        BL_UNROLL
        for (int e = 0; e < EACH; e++) {
            int at = thread + e * STRIP_THREADS, k = at % (2 * NB),
                c = from + at / (2 * NB);
            if (k < moved && c < columns) {
                if (moves.to[k] < width)
                    u[moves.to[k]][c] = x[e];
                else
                    A[moves.to[k] + c * lda] = x[e];
            }
        }
    }
    __syncthreads();

    /* U, 16 rows at a time: a thread of the first 64 has a column of them, then all take
     * them out of the rows below, 4 x 4 of which a thread holds. */
    const int r0 = thread % 16, c0 = thread / 16 * 4;
    {
        T a[4][4];
        BL_UNROLL
        for (int i = 0; i < 4; i++)
            read_row(a[i], &u[r0 + 16 * i][c0]);
#pragma unroll 1
        for (int from = 0; from < width; from += DEPTH) {
            __syncthreads();
            for (int e = thread; e < DEPTH * NB; e += STRIP_THREADS) {
                int r = e % NB, k = from + e / NB;
                l[e / NB][r] = r < width && k < width ? L[r + k * lda] : T{};
            }
            BL_UNROLL
            for (int i = 0; i < 4; i++)
                write_row(16 * i == from, &u[r0 + 16 * i][c0], a[i]);
            __syncthreads();
            if (thread < NB) {
                T x[DEPTH];
                BL_UNROLL
                for (int i = 0; i < DEPTH; i++)
                    x[i] = u[from + i][thread];
                BL_UNROLL
                for (int k = 0; k < DEPTH; k++) {
                    const bool skip = P != EVERY && is_zero(x[k]);
                    const unsigned zeros = __ballot_sync(ALL_LANES, skip);
                    if (thread % 32 == 0)
                        zero[k][thread / 32] = zeros;
                    BL_UNROLL
                    for (int i = k + 1; i < DEPTH; i++)
                        if (!skip)
                            x[i] =
                                less_product<P>(x[i], load(&l[k][from + i], true), x[k]);
                    u[from + k][thread] = x[k];
                }
            }
            __syncthreads();
#pragma unroll 1
            for (int k = 0; k < DEPTH && from + DEPTH < width; k++) {
                T y[4];
                read_row(y, &u[from + k][c0]);
                const unsigned zeros = zero[k][c0 / 32] >> c0 % 32 & 15;
                BL_UNROLL
                for (int i = 1; i < 4; i++) {
                    if (16 * i <= from)
                        continue;
                    const T x = load(&l[k][r0 + 16 * i], true);
                    BL_UNROLL
                    for (int j = 0; j < 4; j++)
                        if (P == EVERY || !(zeros >> j & 1))
                            a[i][j] = less_product<P>(a[i][j], x, y[j]);
                }
            }
        }
        __syncthreads();
    }
    for (int e = thread; e < NB * NB; e += STRIP_THREADS) {
        int r = e % NB, c = e / NB;
        if (r < width && c < columns) {
            T x = u[r][c];
            A[r + c * lda] = x;
            if (P != EVERY && Traits<T>::complex && !is_finite(x)) /* as -1 times it is */
                u[r][c] = mul(from_real<T>(Real<T>(INFINITY)), from_real<T>(0));
        }
    }
    __syncthreads();

    if constexpr (P == FRAGMENTS)
        subtract_by_fragments<T, STRIDE>(A, L, lda, w.m - first, columns, u, l);
    else
        subtract_by_threads<T, P, STRIDE>(A, L, lda, w.m - first, columns, width, u, l);
}

/* A block: the L of one panel, below its corner: the interchanges of the later panels.
 * Shared memory: which row a position gets. */
template <class T>
__global__ void __launch_bounds__(STRIP_THREADS)
    lu_arrange(const MidArguments g, int panels)
{
    constexpr int R = 4, C = 4; /* rows and columns that a thread holds */
    __shared__ short row_at[R * STRIP_THREADS];
    const Matrix<T> w(g, blockIdx.x / panels);
    const int thread = threadIdx.x, column = int(blockIdx.x % panels) * NB,
              top = column + NB;
    if (top >= w.order)
        return;
    const Pivots pivots = {operand_at(g.ipiv, w.index, g.int_size), g.int_size, 0};
    const int rows = w.m - top;
    for (int i = thread; i < rows; i += STRIP_THREADS)
        row_at[i] = short(i);
    __syncthreads();
    if (thread == 0)
        for (int k = top; k < w.order; k++) {
            int p = int(pivots.get(k)) - top;
            short x = row_at[k - top];
            row_at[k - top] = row_at[p];
            row_at[p] = x;
        }
    __syncthreads();
    T *const A = w.a + top + column * w.lda;
    for (int c = 0; c < NB; c += C) {
        T x[R][C];
        BL_UNROLL
        for (int i = 0; i < R; i++)
            if (thread + i * STRIP_THREADS < rows)
                BL_UNROLL
        for (int j = 0; j < C; j++)
            x[i][j] = A[row_at[thread + i * STRIP_THREADS] + (c + j) * w.lda];
        __syncthreads();
        BL_UNROLL
        for (int i = 0; i < R; i++)
            if (thread + i * STRIP_THREADS < rows)
                BL_UNROLL
        for (int j = 0; j < C; j++)
            A[thread + i * STRIP_THREADS + (c + j) * w.lda] = x[i][j];
        __syncthreads();
    }
}

} // namespace bl
#endif
