/* Solving with the LU factors of one matrix of a batch, for orders up to 1024.
 *
 * Instantiated by mid_solve_*.cu, launched by mid.cu. lu_solve takes 64 columns of B at a
 * time and goes by tiles of 64 rows; lu_solve_few takes up to four and keeps them in
 * shared memory. GETRS and GESV get netlib's operations in netlib's order: an element has
 * every product subtracted one by one, none whose factor is a zero of B. The inverse is
 * the same walk that begins with columns of the identity, with fused operations.
 */
#ifndef BL_MID_SOLVE_CUH
#define BL_MID_SOLVE_CUH

#include "mid_blocked.cuh"
#include "mid_inverse.cuh"

namespace bl
{

/* ---- quotients ---- */

/* x / d for one d and many x. The quotient by the reciprocal is corrected twice by what
 * it leaves over, which makes it the nearest one as long as nothing is out of range. */
template <class T>
struct Divisor {
    T d, inverse; /* 0 where it can not be used */

    __device__ __forceinline__ explicit Divisor(T x) : d(x), inverse(0)
    {
        if (in_range(x))
            inverse = reciprocal(x);
    }
    static __device__ __forceinline__ bool in_range(T x)
    {
        constexpr T LEAST = sizeof(T) == 4 ? T(0x1p-40) : T(0x1p-300);
        return fabs(x) >= LEAST && fabs(x) <= 1 / LEAST;
    }
    __device__ __forceinline__ T operator()(T x) const
    {
        if (!in_range(x) || inverse == 0)
            return quotient(x, d);
        T q = mul(x, inverse);
        q = fma(fma(-d, q, x), inverse, q);
        return fma(fma(-d, q, x), inverse, q);
    }
};

/* div() with what depends on d alone done once. */
template <class R>
struct Divisor<Complex<R>> {
    bool steep;
    R ratio;
    Divisor<R> den;

    static __device__ __forceinline__ bool is_steep(Complex<R> d)
    {
        return fabs(d.re) < fabs(d.im);
    }
    static __device__ __forceinline__ R ratio_of(Complex<R> d)
    {
        return is_steep(d) ? div(d.re, d.im) : div(d.im, d.re);
    }
    static __device__ __forceinline__ R den_of(Complex<R> d)
    {
        return is_steep(d) ? add(mul(d.re, ratio_of(d)), d.im)
                           : add(mul(d.im, ratio_of(d)), d.re);
    }
    __device__ __forceinline__ explicit Divisor(Complex<R> d)
        : steep(is_steep(d)), ratio(ratio_of(d)), den(den_of(d))
    {
    }
    __device__ __forceinline__ Complex<R> operator()(Complex<R> x) const
    {
        return {den(steep ? add(mul(x.re, ratio), x.im) : add(x.re, mul(x.im, ratio))),
                den(steep ? sub(mul(x.im, ratio), x.re) : sub(x.im, mul(x.re, ratio)))};
    }
};

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

/* row_at[k]: the row of B that comes to row k by the interchanges. `pivot` has room for n
 * numbers. A block. */
__device__ __forceinline__ void find_rows(const Pivots &pivots, int n, short *pivot,
                                          short *row_at)
{
    for (int k = threadIdx.x; k < n; k += blockDim.x)
        pivot[k] = short(pivots.get(k));
    __syncthreads();
    for (int r = threadIdx.x; r < n; r += blockDim.x) {
        int at = r;
#pragma unroll 4
        for (int k = 0; k < n; k++) {
            const int p = pivot[k];
            at = at == k ? p : at == p ? k : at;
        }
        row_at[at] = short(r);
    }
    __syncthreads();
}

/* ---- 64 columns at a time ---- */

constexpr int SOLVE_THREADS = 256;

/* Shared memory: `kept` tiles of 64 rows of B by rows, the others being read again where
 * they are needed; 16 columns of a tile of the factors; per row of B, which columns are
 * 0; the rows' order; the quotients' divisors. */
template <class T>
struct SolveShared {
    static constexpr int STRIDE = STRIP_STRIDE<T>;
    T (*u)[STRIDE];
    T (*l)[NB];
    Divisor<T> *divisor; /* or */
    T *inverse;
    unsigned char (*zero)[8];
    short *row_at, *pivot;

    __device__ __forceinline__ SolveShared(char *memory, int kept, int rows)
    {
        u = (T(*)[STRIDE])memory;
        l = (T(*)[NB])(u + kept * NB);
        divisor = (Divisor<T> *)(l + DEPTH);
        inverse = (T *)divisor;
        zero = (unsigned char(*)[8])(divisor + NB);
        row_at = (short *)(zero + rows);
        pivot = row_at + rows;
    }
};

template <class T>
size_t solve_bytes(int kept, int rows)
{
    return size_t(kept) * NB * STRIP_STRIDE<T> * sizeof(T) + DEPTH * NB * sizeof(T) +
           NB * sizeof(Divisor<T>) + rows * (8 + 2 * sizeof(short));
}

/* A block: 64 columns of B, or of the inverse, of one matrix. A thread: 4 x 4 of a tile,
 * rows 16 apart; in a tile of the diagonal a warp has eight columns and a lane two rows.
 */
template <class T, bool INVERSE>
__global__ void __launch_bounds__(SOLVE_THREADS, sizeof(T) == 16  ? 1
                                                 : sizeof(T) == 8 ? 2
                                                                  : 3)
    lu_solve(const MidSolve g)
{
    extern __shared__ __align__(16) char memory[];
    constexpr int EIGHT = NB * 32 / SOLVE_THREADS, LOADS = DEPTH * NB / SOLVE_THREADS;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int64_t slot = blockIdx.x / g.strips;
    const Solve<T> w(g, slot);
    const int n = w.n, strip = int(blockIdx.x % g.strips), column = strip * NB;
    const int blocks = (n + NB - 1) / NB, sides = INVERSE ? n : g.nrhs;
    int64_t info = 0;
    if (g.lu_info.p || g.lu_info.array)
        info =
            get_integer(operand_at(g.lu_info, g.packed ? slot : w.index, g.lu_info_size),
                        g.lu_info_size);
    if (INVERSE) {
        /* The first zero of the diagonal. */
        __shared__ int first_zero;
        if (thread == 0)
            first_zero = n;
        __syncthreads();
        if (!g.lu_info.p) {
            for (int k = thread; k < n; k += SOLVE_THREADS)
                if (is_zero(w.lu[k + k * w.lda]))
                    atomicMin(&first_zero, k);
            __syncthreads();
            info = first_zero < n ? first_zero + 1 : 0;
        }
    }
    if (thread == 0 && strip == 0 && (g.info.p || g.info.array))
        put_integer(operand_at(g.info, w.index, g.int_size), g.int_size, info);
    if (column >= sides)
        return;
    const int columns = sides - column < NB ? sides - column : NB;
    if (info)
        return;
    const int64_t lda = w.lda, ldb = w.ldb;
    const T *const A = w.lu;
    T *const B = INVERSE ? w.b : w.b + column * ldb;
    const SolveShared<T> s(memory, g.kept, g.rows);
    const bool keep = g.kept >= blocks;
    find_rows(w.pivots, n, s.pivot, s.row_at);
    /* Where a column of the strip lies in B. */
    auto place = [&](int c) { return int64_t(INVERSE ? s.row_at[column + c] : c) * ldb; };
    auto tile = [&](int k) { return s.u + (keep ? k * NB : 0); };

    if (!INVERSE && keep) {
        for (int e = thread; e < blocks * NB * NB; e += SOLVE_THREADS) {
            int r = e % (blocks * NB), c = e / (blocks * NB);
            s.u[r][c] = r < n && c < columns ? B[s.row_at[r] + c * ldb] : T{};
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
                    x[i][j] = B[s.row_at[thread + i * SOLVE_THREADS] + (c + j) * ldb];
            __syncthreads();
            BL_UNROLL
            for (int i = 0; i < R; i++)
                BL_UNROLL
            for (int j = 0; j < C; j++)
                if (thread + i * SOLVE_THREADS < n && c + j < columns)
                    B[thread + i * SOLVE_THREADS + (c + j) * ldb] = x[i][j];
        }
    }
    __syncthreads();

    const int r0 = thread % 16, c0 = thread / 16 * 4;
    bool strange = false;
#pragma unroll 1
    for (int step = 0; step < 2 * blocks; step++) {
        const bool upper = step >= blocks;
        const int k0 = upper ? 2 * blocks - 1 - step : step, top = k0 * NB;
        if (INVERSE && !upper && k0 < strip)
            continue; /* zeros */
        const int width = n - top < NB ? n - top : NB;
        const bool fresh = INVERSE && (upper ? k0 < strip : true);
        T a[4][4];
        BL_UNROLL
        for (int i = 0; i < 4; i++)
            BL_UNROLL
        for (int j = 0; j < 4; j++) {
            const int r = r0 + 16 * i, c = c0 + j;
            if (fresh)
                a[i][j] = from_real<T>(!upper && top + r == column + c ? 1 : 0);
            else if (keep)
                a[i][j] = s.u[top + r][c];
            else
                a[i][j] = top + r < n && c < columns ? B[top + r + place(c)] : T{};
        }
        /* The tiles that are solved, outwards from the first. */
        const int from_tile = upper ? blocks - 1 : INVERSE ? strip : 0;
#pragma unroll 1
        for (int q = from_tile; q != k0; q += upper ? -1 : 1) {
            const int deep = n - q * NB < NB ? n - q * NB : NB;
            const int chunks = (deep + DEPTH - 1) / DEPTH;
            const T *L = A + top + q * NB * lda;
            T(*const u)[SolveShared<T>::STRIDE] = tile(q);
            T next[LOADS];
            auto fetch = [&](int chunk) {
                BL_UNROLL
                for (int e = 0; e < LOADS; e++) {
                    int at = thread + e * SOLVE_THREADS, r = at % NB;
                    int k = chunk * DEPTH + at / NB;
                    next[e] = L[(r < width ? r : width - 1) + (k < deep ? k : 0) * lda];
                }
            };
            fetch(upper ? chunks - 1 : 0);
            if (!keep) {
                __syncthreads();
                for (int e = thread; e < NB * NB; e += SOLVE_THREADS) {
                    int r = e % NB, c = e / NB;
                    u[r][c] =
                        q * NB + r < n && c < columns ? B[q * NB + r + place(c)] : T{};
                }
            }
#pragma unroll 1
            for (int i = 0; i < chunks; i++) {
                const int chunk = upper ? chunks - 1 - i : i;
                __syncthreads();
                BL_UNROLL
                for (int e = 0; e < LOADS; e++) {
                    int at = thread + e * SOLVE_THREADS;
                    s.l[at / NB][at % NB] = next[e];
                }
                __syncthreads();
                if (i + 1 < chunks)
                    fetch(upper ? chunk - 1 : chunk + 1);
                const int left = deep - chunk * DEPTH, end = left < DEPTH ? left : DEPTH;
                BL_UNROLL_BY_TWO
                for (int j = 0; j < end; j++) {
                    const int k = upper ? end - 1 - j : j, row = chunk * DEPTH + k;
                    T x[4], y[4];
                    BL_UNROLL
                    for (int r = 0; r < 4; r++)
                        x[r] = load(&s.l[k][r0 + 16 * r], true);
                    read_row(y, &u[row][c0]);
                    const int zeros =
                        INVERSE ? 0 : s.zero[q * NB + row][c0 / 8] >> c0 % 8 & 15;
                    if (zeros == 0) {
                        BL_UNROLL
                        for (int c = 0; c < 4; c++)
                            BL_UNROLL
                        for (int r = 0; r < 4; r++)
                            a[r][c] = less<INVERSE>(a[r][c], x[r], y[c]);
                    } else {
                        BL_UNROLL
                        for (int c = 0; c < 4; c++)
                            BL_UNROLL
                        for (int r = 0; r < 4; r++)
                            if (!(zeros >> c & 1))
                                a[r][c] = less<INVERSE>(a[r][c], x[r], y[c]);
                    }
                }
            }
        }
        /* The tile of the diagonal. */
        T(*const u)[SolveShared<T>::STRIDE] = tile(k0);
        const T *L = A + top + top * lda;
        __syncthreads();
        BL_UNROLL
        for (int i = 0; i < 4; i++)
            BL_UNROLL
        for (int j = 0; j < 4; j++)
            u[r0 + 16 * i][c0 + j] = a[i][j];
        if (upper && thread < width) {
            const T d = L[thread + thread * lda];
            if constexpr (INVERSE)
                s.inverse[thread] = reciprocal(d);
            else
                s.divisor[thread] = Divisor<T>(d);
        }
        const int column0 = warp * EIGHT, chunks = (width + DEPTH - 1) / DEPTH;
        T low[EIGHT], high[EIGHT];
#pragma unroll 1
        for (int i = 0; i < chunks; i++) {
            const int chunk = upper ? chunks - 1 - i : i, from = chunk * DEPTH;
            __syncthreads();
            for (int e = thread; e < DEPTH * NB; e += SOLVE_THREADS) {
                int r = e % NB, k = from + e / NB;
                s.l[e / NB][r] = L[(r < width ? r : 0) + (k < width ? k : 0) * lda];
            }
            if (i == 0)
                BL_UNROLL
            for (int c = 0; c < EIGHT; c++) {
                low[c] = u[lane][column0 + c];
                high[c] = u[lane + 32][column0 + c];
            }
            __syncthreads();
            const int end = width - from < DEPTH ? width - from : DEPTH;
#pragma unroll 1
            for (int j = 0; j < end; j++) {
                const int kk = upper ? end - 1 - j : j, k = from + kk;
                const T l0 = load(&s.l[kk][lane], true),
                        l1 = load(&s.l[kk][lane + 32], true);
                const bool first = upper ? lane < k : lane > k;
                const bool second = upper ? lane + 32 < k : lane + 32 > k;
                BL_UNROLL
                for (int c = 0; c < EIGHT; c++) {
                    T x = from_lane(from < 32 ? low[c] : high[c], k % 32);
                    const bool skip = !INVERSE && is_zero(x);
                    if (upper && !skip) {
                        if constexpr (INVERSE)
                            x = mul(x, s.inverse[k]);
                        else
                            x = s.divisor[k](x);
                        if (lane == k)
                            low[c] = x;
                        if (lane + 32 == k)
                            high[c] = x;
                    }
                    if (first && !skip)
                        low[c] = less<INVERSE>(low[c], l0, x);
                    if (second && !skip)
                        high[c] = less<INVERSE>(high[c], l1, x);
                }
            }
        }
        int zero_low = 0, zero_high = 0;
        BL_UNROLL
        for (int c = 0; c < EIGHT; c++) {
            u[lane][column0 + c] = low[c];
            u[lane + 32][column0 + c] = high[c];
            zero_low |= is_zero(low[c]) << c;
            zero_high |= is_zero(high[c]) << c;
        }
        if (!INVERSE && lane < width)
            s.zero[top + lane][warp] = (unsigned char)zero_low;
        if (!INVERSE && lane + 32 < width)
            s.zero[top + lane + 32][warp] = (unsigned char)zero_high;
        __syncthreads();
        if (upper || !keep)
            for (int e = thread; e < NB * NB; e += SOLVE_THREADS) {
                int r = e % NB, c = e / NB;
                if (r < width && c < columns) {
                    const T x = u[r][c];
                    strange = strange || !is_finite(x);
                    B[top + r + place(c)] = x;
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
 * every (number of threads)-th row. Also there: a 32 x 32 tile of the diagonal, the order
 * of the rows. */
template <class T, int COLUMNS>
__global__ void __launch_bounds__(256) lu_solve_few(const MidSolve g)
{
    extern __shared__ __align__(16) char memory[];
    T(*const b)[COLUMNS] = (T(*)[COLUMNS])memory;
    T(*const corner)[33] = (T(*)[33])(b + g.rows);
    short *const row_at = (short *)(corner + 32), *const pivot = row_at + g.rows;
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
            const int own = lane < width ? lane : 0;
            BL_UNROLL
            for (int c = 0; c < COLUMNS; c++)
                x[c] = b[top + own][c];
            const Divisor<T> divisor(upper ? corner[own][own] : one<T>());
#pragma unroll 2
            for (int i = 0; i < width; i++) {
                const int k = upper ? width - 1 - i : i;
                const T l = load(&corner[k][lane], true);
                const bool take = upper ? lane < k : lane > k;
                BL_UNROLL
                for (int c = 0; c < COLUMNS; c++) {
                    if (upper && lane == k && !is_zero(x[c]))
                        x[c] = divisor(x[c]);
                    const T y = from_lane(x[c], k);
                    if (take && !is_zero(y))
                        x[c] = less<false>(x[c], l, y);
                }
            }
            if (lane < width)
                BL_UNROLL
            for (int c = 0; c < COLUMNS; c++)
                b[top + lane][c] = x[c];
        }
        __syncthreads();
        const int from = upper ? 0 : top + width, to = upper ? top : n;
        for (int r = from + thread; r < to; r += threads) {
            const T *l = A + r + top * lda;
            T x[COLUMNS];
            BL_UNROLL
            for (int c = 0; c < COLUMNS; c++)
                x[c] = b[r][c];
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
                        const T y = i0 + i < width ? b[top + k][c] : T{};
                        if (!is_zero(y))
                            x[c] = less<false>(x[c], factor[i], y);
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
    return (rows * COLUMNS + 32 * 33) * sizeof(T) + rows * 2 * sizeof(short);
}

/* ---- the table entry of a precision ---- */

template <class T>
constexpr SolveKernels solve_kernels()
{
    return {(const void *)lu_solve<T, false>,
            (const void *)lu_solve<T, true>,
            {(const void *)lu_solve_few<T, 1>, (const void *)lu_solve_few<T, 4>},
            (const void *)lu_copy<T>,
            (const void *)lu_invert_again<T>,
            (const void *)lu_determinant<T>,
            solve_bytes<T>,
            {solve_few_bytes<T, 1>, solve_few_bytes<T, 4>}};
}

} // namespace bl
#endif
