/* Solving with the LU factors of one matrix of a batch, for orders up to 1024.
 *
 * Instantiated by mid_solve_*.cu, launched by mid.cu. lu_solve takes 64 columns of B at a
 * time and goes by tiles of 64 rows; lu_solve_few takes up to four and keeps them in
 * shared memory. GETRS and GESV get netlib's operations in netlib's order: an element has
 * every product subtracted one by one, none whose factor is a zero of B. The inverse is
 * the same walk with the transposed factors, so that its rows are solved for as xGETRI
 * does (by columns X A would be further from the identity), with fused operations.
 */
#ifndef BL_MID_SOLVE_CUH
#define BL_MID_SOLVE_CUH

#include "mid_blocked.cuh"
#include "mid_definite.cuh"
#include "mid_inverse.cuh"

namespace bl
{

/* ---- a - l x, as netlib rounds it or fused ---- */

template <bool FUSED, class R>
__device__ __forceinline__ R less(R a, R l, R x)
{
    if constexpr (FUSED)
        return fma(-l, x, a);
    else
        return sub(a, mul(l, x));
}

template <bool FUSED, class R>
__device__ __forceinline__ Complex<R> less(Complex<R> a, Complex<R> l, Complex<R> x)
{
    if constexpr (FUSED)
        return {fma(l.im, x.im, fma(-l.re, x.re, a.re)),
                fma(-l.im, x.re, fma(-l.re, x.im, a.im))};
    else
        return sub(a, mul(x, l));
}

/* ---- 64 columns at a time ---- */

constexpr int SOLVE_THREADS = 256;
template <class T> /* rows begin in different banks, and at whole vectors */
constexpr int SOLVE_STRIDE = NB + PER_VECTOR<T>;

/* Shared memory: `kept` tiles of 64 rows of B by rows, the others being read again where
 * they are needed; 16 columns of a tile of the factors; what the rows of a tile are
 * divided by; per row of B, which columns are 0; the rows' order. */
template <class T>
struct SolveShared {
    T (*u)[SOLVE_STRIDE<T>];
    T (*l)[NB + 1];
    Divisor<T> *divisor; /* or */
    T *inverse;
    unsigned (*zero)[2];
    short *row_at, *pivot;

    __device__ __forceinline__ SolveShared(char *memory, int kept, int rows)
    {
        u = (T(*)[SOLVE_STRIDE<T>])memory;
        l = (T(*)[NB + 1])(u + kept * NB);
        divisor = (Divisor<T> *)(l + DEPTH);
        inverse = (T *)divisor;
        zero = (unsigned(*)[2])(divisor + NB);
        row_at = (short *)(zero + rows);
        pivot = row_at + rows;
    }
};

template <class T>
size_t solve_bytes(int kept, int rows)
{
    return (size_t(kept) * NB * SOLVE_STRIDE<T> + DEPTH * (NB + 1)) * sizeof(T) +
           NB * sizeof(Divisor<T>) + rows * (2 * sizeof(unsigned) + 2 * sizeof(short));
}

/* A block: L U X = B for 64 columns of B; or 64 rows of the inverse X of P'LU, which are
 * columns of X' and solve L' Y = I, U' first. Either way the first triangle is gone
 * through downwards and the second upwards, where the rows of a tile are taken in reverse
 * order, so that every loop ascends. A thread: 4 x 4 of a tile, rows 16 apart; of the 16
 * rows next to be solved a thread of the first 64 has a column. */
template <class T, bool INVERSE>
__global__ void __launch_bounds__(SOLVE_THREADS, sizeof(T) == 16  ? 1
                                                 : sizeof(T) == 8 ? 2
                                                                  : 3)
    lu_solve(const MidSolve g)
{
    extern __shared__ __align__(16) char memory[];
    constexpr int LOADS = DEPTH * NB / SOLVE_THREADS;
    const int thread = threadIdx.x;
    const int64_t slot = blockIdx.x / g.strips;
    const Solve<T> w(g, slot);
    const int n = w.n, strip = int(blockIdx.x % g.strips), column = strip * NB;
    const int blocks = (n + NB - 1) / NB, sides = INVERSE ? n : g.nrhs;
    int64_t info = 0;
    if (INVERSE)
        info = inverse_info(g, w, slot, strip == 0);
    else if (g.lu_info.p || g.lu_info.array)
        info =
            get_integer(operand_at(g.lu_info, g.packed ? slot : w.index, g.lu_info_size),
                        g.lu_info_size);
    if (!INVERSE && thread == 0 && strip == 0 && (g.info.p || g.info.array))
        put_integer(operand_at(g.info, w.index, g.int_size), g.int_size, info);
    if (column >= sides || info)
        return;
    const int columns = sides - column < NB ? sides - column : NB;
    const int64_t lda = w.lda, ldb = w.ldb;
    const T *const A = w.lu;
    const SolveShared<T> s(memory, g.kept, g.rows);
    const bool keep = g.kept >= blocks;
    find_rows(w.pivots, n, s.pivot, s.row_at);
    auto b = [&](int row, int c) -> T & {
        return INVERSE ? w.b[column + c + s.row_at[row] * ldb]
                       : w.b[row + (column + c) * ldb];
    };
    auto tile = [&](int q) { return s.u + (keep ? q * NB : 0); };

    if (!INVERSE && keep) {
        for (int e = thread; e < blocks * NB * NB; e += SOLVE_THREADS) {
            int r = e % (blocks * NB), c = e / (blocks * NB);
            s.u[r][c] = r < n && c < columns ? b(s.row_at[r], c) : T{};
        }
    } else if (!INVERSE) {
        constexpr int R = 4, C = 4;
        for (int c = 0; c < columns; c += C) {
            T x[R][C];
            BL_UNROLL
            for (int i = 0; i < R; i++)
                BL_UNROLL
            for (int j = 0; j < C; j++)
                if (thread + i * SOLVE_THREADS < n && c + j < columns)
                    x[i][j] = b(s.row_at[thread + i * SOLVE_THREADS], c + j);
            __syncthreads();
            BL_UNROLL
            for (int i = 0; i < R; i++)
                BL_UNROLL
            for (int j = 0; j < C; j++)
                if (thread + i * SOLVE_THREADS < n && c + j < columns)
                    b(thread + i * SOLVE_THREADS, c + j) = x[i][j];
        }
    }
    __syncthreads();

    const int r0 = thread % 16, c0 = thread / 16 * 4;
    bool strange = false;
#pragma unroll 1
    for (int step = 0; step < 2 * blocks; step++) {
        const bool up = step >= blocks;
        const int k0 = up ? 2 * blocks - 1 - step : step;
        if (INVERSE && !up && k0 < strip)
            continue; /* zeros */
        const bool divide = INVERSE != up;
        auto width_of = [&](int q) { return n - q * NB < NB ? n - q * NB : NB; };
        auto row_of = [&](int q, int v) {
            return q * NB + (up ? width_of(q) - 1 - v : v);
        };
        const int width = width_of(k0);
        T a[4][4], next[LOADS];
        BL_UNROLL
        for (int i = 0; i < 4; i++)
            BL_UNROLL
        for (int j = 0; j < 4; j++) {
            const int v = r0 + 16 * i, c = c0 + j, row = row_of(k0, v);
            a[i][j] = T{};
            if (v >= width || c >= columns)
                continue;
            if (INVERSE && !up)
                a[i][j] = from_real<T>(row == column + c ? 1 : 0);
            else if (!INVERSE || k0 >= strip)
                a[i][j] = keep ? s.u[row][c] : b(row, c);
        }
        /* 16 columns of the tile of the factors that leads from tile q to k0. */
        auto fetch = [&](int q, int chunk) {
            BL_UNROLL
            for (int e = 0; e < LOADS; e++) {
                const int at = thread + e * SOLVE_THREADS;
                const int v = INVERSE ? at / DEPTH : at % NB;
                const int k = chunk * DEPTH + (INVERSE ? at % DEPTH : at / NB);
                next[e] = T{};
                if (v < width && k < width_of(q)) {
                    const int row = row_of(k0, v), from = row_of(q, k);
                    next[e] = INVERSE ? A[from + row * lda] : A[row + from * lda];
                }
            }
        };
        auto put = [&]() {
            BL_UNROLL
            for (int e = 0; e < LOADS; e++) {
                const int at = thread + e * SOLVE_THREADS;
                s.l[INVERSE ? at % DEPTH : at / NB][INVERSE ? at / DEPTH : at % NB] =
                    next[e];
            }
        };
        /* Row `row` of tile q of B, times column k of what put() left there, out of the
         * rows of `a` from 16 * `from` on. */
        auto subtract = [&](int q, int row, int k, int from) {
            T x[4], y[4];
            BL_UNROLL
            for (int i = 0; i < 4; i++)
                x[i] = load(&s.l[k][r0 + 16 * i], true);
            read_row(y, &tile(q)[row][c0]);
            const unsigned zeros =
                INVERSE ? 0 : s.zero[q * NB + row][c0 / 32] >> c0 % 32 & 15;
            BL_UNROLL
            for (int i = 0; i < 4; i++) {
                if (i < from)
                    continue;
                if (zeros == 0) {
                    BL_UNROLL
                    for (int j = 0; j < 4; j++)
                        a[i][j] = less<INVERSE>(a[i][j], x[i], y[j]);
                } else {
                    BL_UNROLL
                    for (int j = 0; j < 4; j++)
                        if (!(zeros >> j & 1))
                            a[i][j] = less<INVERSE>(a[i][j], x[i], y[j]);
                }
            }
        };
        /* The tiles that are solved, outwards from the first. */
        const int from_tile = up ? blocks - 1 : INVERSE ? strip : 0;
#pragma unroll 1
        for (int q = from_tile; q != k0; q += up ? -1 : 1) {
            const int deep = width_of(q);
            fetch(q, 0);
            if (!keep) {
                __syncthreads();
                for (int e = thread; e < NB * NB; e += SOLVE_THREADS) {
                    const int v = INVERSE ? e / NB : e % NB,
                              c = INVERSE ? e % NB : e / NB;
                    tile(q)[v][c] = v < deep && c < columns ? b(row_of(q, v), c) : T{};
                }
            }
#pragma unroll 1
            for (int from = 0; from < deep; from += DEPTH) {
                __syncthreads();
                put();
                __syncthreads();
                if (from + DEPTH < deep)
                    fetch(q, from / DEPTH + 1);
                const int end = deep - from < DEPTH ? deep - from : DEPTH;
                BL_UNROLL_BY_TWO
                for (int k = 0; k < end; k++)
                    subtract(q, from + k, k, 0);
            }
        }
        /* The tile of the diagonal, 16 rows at a time. */
        fetch(k0, 0);
        if (divide && thread < NB) {
            const int row = row_of(k0, thread);
            const T d = thread < width ? A[row + row * lda] : one<T>();
            if constexpr (INVERSE)
                s.inverse[thread] = reciprocal(d);
            else
                s.divisor[thread] = Divisor<T>(d);
        }
        T(*const u)[SOLVE_STRIDE<T>] = tile(k0);
#pragma unroll 1
        for (int turn = 0; turn * DEPTH < width; turn++) {
            const int first = turn * DEPTH;
            __syncthreads();
            put();
            BL_UNROLL
            for (int i = 0; i < 4; i++)
                if (i == turn)
                    BL_UNROLL
            for (int j = 0; j < 4; j++)
                u[first + r0][c0 + j] = a[i][j];
            __syncthreads();
            if (first + DEPTH < width)
                fetch(k0, turn + 1);
            if (thread < NB) {
                T x[DEPTH];
                BL_UNROLL
                for (int i = 0; i < DEPTH; i++)
                    x[i] = u[first + i][thread];
                BL_UNROLL
                for (int k = 0; k < DEPTH; k++) {
                    const bool skip = !INVERSE && is_zero(x[k]);
                    if constexpr (INVERSE) {
                        if (divide)
                            x[k] = mul(x[k], s.inverse[first + k]);
                    } else {
                        if (divide && !skip)
                            x[k] = s.divisor[first + k](x[k]);
                        const unsigned zeros = __ballot_sync(ALL_LANES, skip);
                        if (thread % 32 == 0)
                            s.zero[k0 * NB + first + k][thread / 32] = zeros;
                    }
                    BL_UNROLL
                    for (int i = k + 1; i < DEPTH; i++)
                        if (!skip)
                            x[i] =
                                less<INVERSE>(x[i], load(&s.l[k][first + i], true), x[k]);
                    u[first + k][thread] = x[k];
                }
            }
            __syncthreads();
            if (first + DEPTH < width)
                BL_UNROLL_BY_TWO
            for (int k = 0; k < DEPTH; k++)
                subtract(k0, first + k, k, turn + 1);
        }
        if (up || !keep)
            for (int e = thread; e < NB * NB; e += SOLVE_THREADS) {
                const int v = INVERSE ? e / NB : e % NB, c = INVERSE ? e % NB : e / NB;
                if (v < width && c < columns) {
                    const T x = u[v][c];
                    strange = strange || !is_finite(x);
                    b(row_of(k0, v), c) = x;
                }
            }
        if (!keep)
            __syncthreads(); /* what was written is read again */
    }
    if (INVERSE && strange)
        atomicOr(&g.strange[slot], 1);
}

/* ---- a few columns ---- */

/* A block: COLUMNS columns of B of one matrix, in shared memory by rows; a thread has
 * every (number of threads)-th row. Also there: a 32 x 32 tile of the diagonal, which of
 * its rows of B are zeros that netlib leaves out, the order of the rows. */
template <class T, int COLUMNS>
__global__ void __launch_bounds__(256) lu_solve_few(const MidSolve g)
{
    extern __shared__ __align__(16) char memory[];
    T(*const b)[COLUMNS] = (T(*)[COLUMNS])memory;
    T(*const corner)[33] = (T(*)[33])(b + g.rows);
    unsigned *const zeros = (unsigned *)(corner + 32);
    short *const row_at = (short *)(zeros + COLUMNS), *const pivot = row_at + g.rows;
    const int thread = threadIdx.x, threads = blockDim.x, lane = thread % 32;
    const int64_t slot = blockIdx.x / g.strips;
    const Solve<T> w(g, slot);
    const int n = w.n, column = int(blockIdx.x % g.strips) * COLUMNS;
    if (thread == 0 && column == 0 && (g.info.p || g.info.array))
        put_integer(operand_at(g.info, w.index, g.int_size), g.int_size, 0);
    if ((g.lu_info.p || g.lu_info.array) &&
        get_integer(operand_at(g.lu_info, w.index, g.lu_info_size), g.lu_info_size))
        return;
    const int columns = g.nrhs - column < COLUMNS ? g.nrhs - column : COLUMNS;
    const int64_t lda = w.lda;
    const T *const A = w.lu;
    T *const B = w.b + column * w.ldb;
    find_rows(w.pivots, n, pivot, row_at);
    for (int r = thread; r < n; r += threads)
        BL_UNROLL
    for (int c = 0; c < COLUMNS; c++)
        b[r][c] = B[row_at[r] + (c < columns ? c : 0) * w.ldb];

    const int tiles = (n + 31) / 32;
#pragma unroll 1
    for (int step = 0; step < 2 * tiles; step++) {
        const bool upper = step >= tiles;
        const int top = (upper ? 2 * tiles - 1 - step : step) * 32;
        const int width = n - top < 32 ? n - top : 32;
        const T *const L = A + top + top * lda;
        for (int e = thread; e < 32 * width; e += threads)
            corner[e / 32][e % 32] = L[(e % 32 < width ? e % 32 : 0) + e / 32 * lda];
        __syncthreads();
        if (thread < 32) {
            T x[COLUMNS];
            unsigned left_out[COLUMNS];        /* netlib asks before it divides */
            const bool has_row = lane < width; /* no one else reads or writes it here */
            BL_UNROLL
            for (int c = 0; c < COLUMNS; c++) {
                x[c] = has_row ? b[top + lane][c] : T{};
                left_out[c] = 0;
            }
            const Divisor<T> divisor(upper && has_row ? corner[lane][lane] : one<T>());
#pragma unroll 2
            for (int i = 0; i < width; i++) {
                const int k = upper ? width - 1 - i : i;
                const T l = load(&corner[k][lane], true);
                const bool take = upper ? lane < k : lane > k;
                BL_UNROLL
                for (int c = 0; c < COLUMNS; c++) {
                    const unsigned zero =
                        __ballot_sync(ALL_LANES, is_zero(x[c])) & 1u << k;
                    left_out[c] |= zero;
                    if (upper && lane == k && !zero)
                        x[c] = divisor(x[c]);
                    const T y = from_lane(x[c], k);
                    if (take && !zero)
                        x[c] = less<false>(x[c], l, y);
                }
            }
            if (has_row)
                BL_UNROLL
            for (int c = 0; c < COLUMNS; c++)
                b[top + lane][c] = x[c];
            if (lane == 0)
                BL_UNROLL
            for (int c = 0; c < COLUMNS; c++)
                zeros[c] = left_out[c];
        }
        __syncthreads();
        const int from = upper ? 0 : top + width, to = upper ? top : n;
        for (int r = from + thread; r < to; r += threads) {
            const T *l = A + r + top * lda;
            T x[COLUMNS];
            unsigned left_out[COLUMNS];
            BL_UNROLL
            for (int c = 0; c < COLUMNS; c++) {
                x[c] = b[r][c];
                left_out[c] = zeros[c];
            }
            constexpr int AT_ONCE = 16;
#pragma unroll 1
            for (int i0 = 0; i0 < width; i0 += AT_ONCE) {
                T factor[AT_ONCE];
                BL_UNROLL
                for (int i = 0; i < AT_ONCE; i++) {
                    const int j = i0 + i < width ? i0 + i : width - 1;
                    factor[i] = l[(upper ? width - 1 - j : j) * lda];
                }
                BL_UNROLL
                for (int i = 0; i < AT_ONCE; i++) {
                    const int k = upper ? width - 1 - i0 - i : i0 + i;
                    BL_UNROLL
                    for (int c = 0; c < COLUMNS; c++) {
                        if (i0 + i < width && !(left_out[c] >> k & 1))
                            x[c] = less<false>(x[c], factor[i], b[top + k][c]);
                    }
                }
            }
            BL_UNROLL
            for (int c = 0; c < COLUMNS; c++)
                b[r][c] = x[c];
        }
        /* The barrier after the next corner has been read makes these rows visible, and
         * no one reads the corner any more. */
    }
    __syncthreads();
    for (int r = thread; r < n; r += threads)
        BL_UNROLL
    for (int c = 0; c < COLUMNS; c++)
        if (c < columns)
            B[r + c * w.ldb] = b[r][c];
}

template <class T, int COLUMNS>
size_t solve_few_bytes(int rows)
{
    return (rows * COLUMNS + 32 * 33) * sizeof(T) + COLUMNS * sizeof(unsigned) +
           rows * 2 * sizeof(short);
}

/* ---- the table entry of a precision ---- */

template <class T>
constexpr SolveKernels solve_kernels(const InvertKernel *invert = nullptr)
{
    return {(const void *)lu_solve<T, false>,
            (const void *)lu_solve<T, true>,
            {(const void *)lu_solve_few<T, 1>, (const void *)lu_solve_few<T, 4>},
            (const void *)lu_copy<T>,
            (const void *)lu_invert_again<T>,
            (const void *)lu_determinant<T>,
            (const void *)definite_as_lu<T>,
            (const void *)definite_triangle<T>,
            (const void *)definite_again<T>,
            solve_bytes<T>,
            {solve_few_bytes<T, 1>, solve_few_bytes<T, 4>},
            invert};
}

} // namespace bl
#endif
