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

/* Where columns are read from. In shared memory: it is asked for rarely, and registers
 * are short. */
template <class T>
struct Source {
    const T *p;
    int64_t ld;
};

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

    /* Column `column` from row g.first on, before the panel there and what is to its
     * right are brought up to date. */
    __device__ __forceinline__ Source<T> source(const MidArguments &g, int column) const
    {
        if (g.first == 0 && (g.from.p || g.from.array))
            return {(const T *)operand_at(g.from, g.number + index, sizeof(T)) +
                        column * g.from.ld,
                    g.from.ld};
        return {a + g.first + column * lda, lda};
    }
};

/* How products are taken out: rounded first, as netlib does, or for GETRFSP, where none
 * is left out; with one rounding; by the tensor cores, in double precision from sm_90 on,
 * the rest with one rounding. */
enum Products { SEPARATE, FUSED, FRAGMENTS, EVERY };

constexpr int STRIP_THREADS = 256, DEPTH = 16; /* columns of L in shared memory */

/* Rows of U: for fragments four, one below the other, lie in different banks, with eight
 * columns each. */
template <class T, Products P>
constexpr int STRIP_STRIDE = NB + (P == FRAGMENTS ? 32 : 16) / int(sizeof(T));

/* Columns of L lie as the rows of U do for fragments. Slices of it in shared memory: the
 * one at hand and those on their way. */
template <class T, Products P>
constexpr int SLICE_STRIDE = P == FRAGMENTS ? STRIP_STRIDE<T, P> : NB;

template <class T>
constexpr int STRIP_SLICES = sizeof(T) == 16 ? 2 : 3;

template <class T, Products P>
constexpr size_t STRIP_BYTES = (NB * STRIP_STRIDE<T, P> +
                                STRIP_SLICES<T> * DEPTH * SLICE_STRIDE<T, P>)*sizeof(T) +
                               MID_ROWS * sizeof(short);

template <class T> /* a multiprocessor; the fastest on an H100 */
constexpr int STRIP_BLOCKS = sizeof(T) == 4 ? 3 : 2;

template <Products P, class T>
__device__ __forceinline__ T less_product(T a, T x, T y)
{
    if constexpr (P == SEPARATE || P == EVERY)
        return sub(a, mul(x, y));
    else
        return minus_product<true, PLAIN, PLAIN>(a, x, y);
}

/* The same, where `yes`. */
template <Products P, class T>
__device__ __forceinline__ void take_out(bool yes, T &a, T x, T y)
{
    if constexpr (P == EVERY)
        a = less_product<P>(a, x, y);
    else if constexpr (P == SEPARATE)
        subtract_where(yes, a, mul(x, y));
    else if (yes)
        a = less_product<P>(a, x, y);
}

/* x, of which the compiler knows nothing. */
__device__ __forceinline__ int64_t opaque(int64_t x)
{
#ifdef __CUDA_ARCH__
    asm volatile("" : "+l"(x));
#endif
    return x;
}

/* Slices of a panel's L, rows from 0 on, on their way through a ring in shared memory: 64
 * rows by DEPTH columns, each tile from left to right. */
template <class T, Products P>
struct LeftSlices {
    static constexpr int SLICES = STRIP_SLICES<T>, STRIDE = SLICE_STRIDE<T, P>;
    T (*const l)[STRIDE]; /* l[k][row] */
    const T *from;        /* this thread's first element of the next slice */
    const int64_t lda;
    int rows, width, column = 0, ahead = 0, at_hand = 0;

    __device__ __forceinline__ LeftSlices(T (*ring)[STRIDE], const T *L, int64_t ld,
                                          int m, int columns)
        : l(ring), from(L + threadIdx.x % NB + threadIdx.x / NB * ld), lda(ld),
          rows(m - int(threadIdx.x % NB)), width(columns - int(threadIdx.x / NB))
    {
        BL_UNROLL
        for (int i = 0; i < SLICES - 1; i++)
            begin();
    }
    /* Of the next one. */
    __device__ __forceinline__ void begin()
    {
        T *const to = &l[ahead * DEPTH + int(threadIdx.x) / NB][int(threadIdx.x) % NB];
        BL_UNROLL
        for (int e = 0; e < DEPTH * NB / STRIP_THREADS; e++) {
            constexpr int APART = STRIP_THREADS / NB;
            fetch(to + e * APART * STRIDE, from + e * APART * lda,
                  rows > 0 && column + e * APART < width);
        }
        ahead = ahead + 1 == SLICES ? 0 : ahead + 1;
        column += DEPTH;
        from += DEPTH * lda;
        if (column == NB) {
            column = 0;
            rows -= NB;
            from += NB - NB * lda;
        }
        fetched_so_far();
    }
    /* It is there, and its predecessor is done with. The block. */
    __device__ __forceinline__ const T (*next())[STRIDE]
    {
        await_fetched<SLICES - 2>();
        __syncthreads();
        begin();
        const T(*const slice)[STRIDE] = l + at_hand * DEPTH;
        at_hand = at_hand + 1 == SLICES ? 0 : at_hand + 1;
        return slice;
    }
};

/* U of a strip, by the panel's corner. A warp has eight columns, four lanes one of them:
 * lane q of these rows q RUN + i, in turns of 4 RUN rows; 4 of 16 rows. */
template <class T, Products P>
struct Corner {
    static constexpr int RUN = 16 / sizeof(T), TURN = 4 * RUN, EACH = NB / 4;
    const int q = threadIdx.x % 32 / 8, column = threadIdx.x / 32 * 8 + threadIdx.x % 8;
    T x[EACH];

    __device__ __forceinline__ int row_of(int i) const
    {
        return i / RUN * TURN + q * RUN + i % RUN;
    }
    /* Steps FROM to FROM + 15, whose columns are in `l`. */
    template <int FROM, int STRIDE>
    __device__ __forceinline__ void solve(const T (*l)[STRIDE])
    {
        BL_UNROLL
        for (int s = 0; s < DEPTH; s++) {
            const int k = FROM + s, own = k / TURN * RUN + k % RUN, turn = k % TURN;
            const T y = from_lane(x[own], turn / RUN * 8 + int(threadIdx.x) % 8);
            const bool yes = P == EVERY || !is_zero(y);
            BL_UNROLL
            for (int i = k / TURN * RUN; i < EACH; i += RUN) {
                T left[RUN];
                load_run(&l[s][row_of(i)], left);
                BL_UNROLL
                for (int j = 0; j < RUN; j++)
                    if (i >= (k / TURN + 1) * RUN)
                        take_out<P>(yes, x[i + j], left[j], y);
                    else if (q * RUN + j > turn)
                        take_out<P>(yes, x[i + j], left[j], y);
            }
        }
    }
};

/* Tiles of 64 rows below the corner, 4 x 4 of which a thread holds, rows 16 apart. A has
 * `rows` rows, as L, and `columns` columns; row i is still in row from_row[i] of the
 * source. */
template <class T, Products P, int STRIDE>
__device__ __forceinline__ void
subtract_by_threads(T *A, int64_t lda, int rows, int columns, const T (*u)[STRIDE],
                    const Source<T> &source, const short *from_row,
                    LeftSlices<T, P> &slices)
{
    /* More would not fit registers. The host knows no such pragma. */
    [[maybe_unused]] constexpr int UNROLLED = sizeof(T) == 16 ? 2 : 4;
    const int thread = threadIdx.x, r0 = thread % 16, c0 = thread / 16 * 4;
    T a[4][4];
    auto read_tile = [&](int top, T(&x)[4][4]) {
        const T *const p = source.p;
        const int64_t ld = opaque(source.ld); /* addresses are not worth registers */
        BL_UNROLL
        for (int i = 0; i < 4; i++) {
            const int from = from_row[min(top + r0 + 16 * i, rows - 1)];
            BL_UNROLL
            for (int j = 0; j < 4; j++)
                x[i][j] = p[from + min(c0 + j, columns - 1) * ld];
        }
    };
#pragma unroll 1
    for (int top = NB; top < rows; top += NB) {
        read_tile(top, a);
#pragma unroll 1
        for (int from = 0; from < NB; from += DEPTH) {
            const T(*const l)[SLICE_STRIDE<T, P>] = slices.next();
            const T *const left = &l[0][r0], *const right = &u[from][c0];
            _Pragma("unroll UNROLLED") for (int k = 0; k < DEPTH; k++)
            {
                T x[4], y[4];
                BL_UNROLL
                for (int i = 0; i < 4; i++)
                    x[i] = load(left + k * SLICE_STRIDE<T, P> + 16 * i, true);
                read_row(y, right + k * STRIDE);
                BL_UNROLL
                for (int j = 0; j < 4; j++)
                    BL_UNROLL
                for (int i = 0; i < 4; i++)
                    a[i][j] = less_product<P>(a[i][j], x[i], y[j]);
            }
        }
        const int64_t ld = opaque(lda);
        BL_UNROLL
        for (int j = 0; j < 4; j++) {
            T *const to = A + top + r0 + (c0 + j) * ld;
            BL_UNROLL
            for (int i = 0; i < 4; i++)
                if (top + r0 + 16 * i < rows && c0 + j < columns)
                    to[16 * i] = a[i][j];
        }
    }
}

/* The same by fragments. A warp has 16 x 32 of a tile. */
template <class T, Products P, int STRIDE>
__device__ __forceinline__ void
subtract_by_fragments(T *A, int64_t lda, int rows, int columns, const T (*u)[STRIDE],
                      const Source<T> &source, const short *from_row,
                      LeftSlices<T, P> &slices)
{
#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900
    constexpr int ACROSS = 4;
    const int thread = threadIdx.x, warp = thread / 32, g = thread % 32 / 4,
              t = thread % 4;
    const int row = warp % 4 * 16 + g, column = warp / 4 * 8 * ACROSS;
#    pragma unroll 1
    for (int top = NB; top < rows; top += NB) {
        Fragment<T, 4> x[1][ACROSS];
        /* Number q of fragment s, which is at (i, j). */
        auto each = [&](int64_t of, auto act) {
            const int64_t ld = opaque(of); /* addresses are not worth registers */
            BL_UNROLL
            for (int s = 0; s < ACROSS; s++)
                BL_UNROLL
            for (int q = 0; q < 4; q++)
                act(x[0][s], q, top + row + q / 2 * 8, column + 2 * t + 8 * s + q % 2,
                    ld);
        };
        const T *const p = source.p;
        each(source.ld, [&](auto &y, int q, int i, int j, int64_t ld) {
            y.set(q, minus(p[from_row[min(i, rows - 1)] + min(j, columns - 1) * ld]));
        });
#    pragma unroll 1
        for (int from = 0; from < NB; from += DEPTH) {
            const T *const left_of = &slices.next()[t][row], *const right_of =
                                                                 &u[from + t][column + g];
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
        }
        each(lda, [&](auto &y, int q, int i, int j, int64_t ld) {
            if (i < rows && j < columns)
                A[i + j * ld] = minus(y.get(q));
        });
    }
#endif
}

/* A block: 64 columns to the right of a panel: U by the panel's corner, then tiles of 64
 * rows, to the last. The panel's moves are carried out on the way: pivot rows are read
 * where they are, and so are the rows that make room for them, all of which are among the
 * first 64. U takes their place at the end. Shared memory: U, slices of L, where the rows
 * are. */
template <class T, Products P>
__global__ void __launch_bounds__(STRIP_THREADS, STRIP_BLOCKS<T>)
    lu_strip(const MidArguments g, int first, int strips, const Moves *all_moves)
{
    extern __shared__ __align__(16) char memory[];
    constexpr int STRIDE = STRIP_STRIDE<T, P>;
    T(*const u)[STRIDE] = (T(*)[STRIDE])memory; /* u[k][column] */
    auto *const ring = (T(*)[SLICE_STRIDE<T, P>])(u + NB);
    short *const from_row = (short *)(ring + STRIP_SLICES<T> * DEPTH);
    __shared__ bool in_place; /* the moves have been carried out, U is there */
    __shared__ Source<T> source;
    const int64_t number = blockIdx.x / strips;
    const Matrix<T> w(g, number);
    const int thread = threadIdx.x;
    const int width = w.order - first < NB ? w.order - first : NB;
    const int column = first + width + int(blockIdx.x % strips) * NB;
    if (width <= 0 || column >= w.n)
        return;
    const int columns = w.n - column < NB ? w.n - column : NB, rows = w.m - first;
    const int64_t lda = w.lda;
    T *const A = w.a + first + column * lda;
    const Moves &moves = all_moves[number];

    const Source<T> whence = w.source(g, column);
    Corner<T, P> corner;
    BL_UNROLL
    for (int i = 0; i < corner.EACH; i++) {
        const int row = corner.row_of(i);
        corner.x[i] =
            row < width
                ? whence.p[moves.from[row] + min(corner.column, columns - 1) * whence.ld]
                : T{};
    }
    LeftSlices<T, P> slices(ring, w.a + first + first * lda, lda, rows, width);
    for (int i = thread; i < rows; i += STRIP_THREADS)
        from_row[i] = short(i);
    in_place = false;
    source = whence;
    __syncthreads();
    for (int i = width + thread; i < moves.count; i += STRIP_THREADS)
        from_row[moves.to[i]] = moves.from[i];
    corner.template solve<0>(slices.next());
    corner.template solve<DEPTH>(slices.next());
    corner.template solve<2 * DEPTH>(slices.next());
    corner.template solve<3 * DEPTH>(slices.next());
    BL_UNROLL
    for (int i = 0; i < corner.EACH; i++)
        u[corner.row_of(i)][corner.column] = corner.x[i];

    if constexpr (P != EVERY && Traits<T>::complex) {
        /* -1 times an infinity is none: U is one thing, what is multiplied another. */
        auto each = [&](auto act) {
            for (int i = 0; i < corner.EACH; i++)
                act(corner.row_of(i), u[corner.row_of(i)][corner.column]);
        };
        each([&](int, const T &x) {
            if (!is_finite(x))
                in_place = true;
        });
        __syncthreads();
        if (in_place) {
            const Source<T> old = source;
            for (int e = thread; e < NB * NB; e += STRIP_THREADS) {
                const int k = width + e % NB, c = e / NB;
                if (k < moves.count && c < columns)
                    A[moves.to[k] + c * lda] = old.p[moves.from[k] + c * old.ld];
            }
            if (old.p != A) /* and the rows that stay */
                for (int i = width + thread; i < rows; i += STRIP_THREADS)
                    for (int c = 0; c < columns && from_row[i] == i; c++)
                        A[i + c * lda] = old.p[i + c * old.ld];
            __syncthreads();
            source = {A, lda};
            for (int i = thread; i < rows; i += STRIP_THREADS)
                from_row[i] = short(i);
            each([&](int row, T &x) {
                if (row < width && corner.column < columns)
                    A[row + corner.column * lda] = x;
                if (!is_finite(x))
                    x = mul(from_real<T>(Real<T>(INFINITY)), from_real<T>(0));
            });
            __syncthreads();
        }
    }

    if constexpr (P == FRAGMENTS)
        subtract_by_fragments<T, P, STRIDE>(A, lda, rows, columns, u, source, from_row,
                                            slices);
    else
        subtract_by_threads<T, P, STRIDE>(A, lda, rows, columns, u, source, from_row,
                                          slices);
    __syncthreads();
    for (int e = thread; e < NB * NB; e += STRIP_THREADS) {
        const int r = e % NB, c = e / NB;
        if (r < width && c < columns && !in_place)
            A[r + c * lda] = u[r][c];
    }
}

/* A block: the L of one panel, below its corner: the interchanges of the later panels.
 * Shared memory: the pivots, which row a position gets. */
template <class T>
__global__ void __launch_bounds__(STRIP_THREADS)
    lu_arrange(const MidArguments g, int panels)
{
    constexpr int R = 4, C = 4; /* rows and columns that a thread holds */
    __shared__ short row_at[R * STRIP_THREADS], pivot[R * STRIP_THREADS];
    const Matrix<T> w(g, blockIdx.x / panels);
    const int thread = threadIdx.x, column = int(blockIdx.x % panels) * NB,
              top = column + NB;
    if (top >= w.order)
        return;
    const Pivots pivots = {operand_at(g.ipiv, w.index, g.int_size), g.int_size, 0};
    const int rows = w.m - top;
    for (int i = thread; i < rows; i += STRIP_THREADS)
        row_at[i] = short(i);
    for (int k = thread; k < w.order - top; k += STRIP_THREADS)
        pivot[k] = short(pivots.get(top + k) - top);
    __syncthreads();
    if (thread == 0)
        for (int k = 0; k < w.order - top; k++) {
            const int p = pivot[k];
            const short x = row_at[k];
            row_at[k] = row_at[p];
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
