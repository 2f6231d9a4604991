/* GETRS('T') and ('C') for batches: U' or U^H first, then L' or L^H, then the
 * interchanges from last to first.
 *
 * Instantiated and launched by transposed.cu. A column of the factors is a row of what is
 * solved with, so that what a right-hand side's element gets is a product of two vectors.
 * netlib forms that of L' in an order, from the diagonal on, in which it is one chain
 * over the whole solution; chain_kernel() keeps it, dot_kernel() does not.
 */
#ifndef BL_TRANSPOSED_CUH
#define BL_TRANSPOSED_CUH

#include "mid_access.cuh"

namespace bl
{

/* The factors of one problem and its right-hand sides, by columns. */
template <bool CONJUGATE, class T>
struct TransposedProblem : TinyProblem<T> {
    using Base = TinyProblem<T>;
    T *b;
    int64_t ldb;
    Pivots pivots;
    bool whole;

    __device__ __forceinline__ TransposedProblem(const TinyArguments &g, int64_t number)
        : Base(g, number), b((T *)tiny_operand(g.b, Base::item, sizeof(T))), ldb(g.b.ld),
          pivots(tiny_pivots(g, Base::item)), whole(is_whole(Base::a))
    {
    }
    /* Element (j, i) of what is solved with. */
    __device__ __forceinline__ T at(int i, int j) const
    {
        const T x = load(this->a + i + j * this->lda, whole);
        return CONJUGATE ? conj(x) : x;
    }
};

/* ---- netlib's order ---- */

constexpr int CHAIN_ROWS = 128; /* at most */

template <class T>
size_t chain_bytes(int n)
{
    return size_t(n) * 32 * sizeof(T);
}

/* Rows first .. first + CHUNK - 1 of column j, as far as they are before `to`. */
template <class T>
struct ChainChunk {
    static constexpr int CHUNK = sizeof(T) == 16 ? 8 : 16; /* two sectors and more */
    T a[CHUNK];

    template <bool CONJUGATE>
    __device__ __forceinline__ void load(const TransposedProblem<CONJUGATE, T> &p, int j,
                                         int first, int to)
    {
        BL_UNROLL
        for (int i = 0; i < CHUNK; i++)
            if (first + i < to)
                a[i] = p.at(first + i, j);
    }
};

/* x(j) less its products with rows from(j) .. to(j) - 1, for j = begin, begin + step, ...
 * up to `end`; last(j, x) is what becomes of it. What comes next is fetched while the
 * chain goes on, from the next column, too. */
template <bool CONJUGATE, class T, class From, class To, class Last>
__device__ __forceinline__ void chain(const TransposedProblem<CONJUGATE, T> &p,
                                      T (*x)[32], int begin, int end, int step,
                                      const From &from, const To &to, const Last &last)
{
    constexpr int CHUNK = ChainChunk<T>::CHUNK;
    const int lane = threadIdx.x;
    int j = begin, first = from(j);
    ChainChunk<T> now, next;
    now.load(p, j, first, to(j));
    T y = x[j][lane];
    while (j != end) {
        const bool ends = first + CHUNK >= to(j);
        const int j_next = ends ? j + step : j;
        const int first_next = !ends ? first + CHUNK : j_next == end ? 0 : from(j_next);
        if (j_next != end)
            next.load(p, j_next, first_next, to(j_next));
        BL_UNROLL
        for (int i = 0; i < CHUNK; i++)
            if (first + i < to(j))
                y = sub(y, mul(now.a[i], x[first + i][lane]));
        if (ends) {
            x[j][lane] = last(j, y);
            if (j_next != end)
                y = x[j_next][lane];
        }
        j = j_next;
        first = first_next;
        now = next;
    }
}

/* A lane owns a right-hand side and does what netlib does; a block is a warp, which
 * shares nothing but its code. Shared memory: the right-hand sides, a row of 32 beside
 * the other. */
template <bool CONJUGATE, class T>
__global__ void __launch_bounds__(32)
    chain_kernel(const __grid_constant__ TinyArguments g)
{
    extern __shared__ __align__(16) char memory[];
    T(*const x)[32] = (T(*)[32])memory;
    const int lane = threadIdx.x;
    const int64_t side = int64_t(blockIdx.x) * 32 + lane, column = side % g.nrhs;
    const TransposedProblem<CONJUGATE, T> p(g, side / g.nrhs);
    if (!p.there)
        return;
    const int n = p.n;
    T *const b = p.b + column * p.ldb;
    for (int i = 0; i < n; i++)
        x[i][lane] = times_one(b[i]);
    chain(
        p, x, 0, n, 1, [](int) { return 0; }, [](int j) { return j; },
        [&](int j, T y) { return times_one(div(y, p.at(j, j))); });
    chain(
        p, x, n - 1, -1, -1, [](int j) { return j + 1; }, [&](int) { return n; },
        [](int, T y) { return y; });
    for (int i = n - 1; i >= 0; i--) {
        const int with = int(p.pivots.get(i));
        const T y = x[i][lane];
        x[i][lane] = x[with][lane];
        x[with][lane] = y;
    }
    for (int i = 0; i < n; i++)
        b[i] = x[i][lane];
    if (column == 0)
        put_integer(g.info, p.item, g.int_size, 0, 0);
}

/* ---- products of vectors ---- */

constexpr int DOT_THREADS = 256 /* at most */, DOT_ROWS = 1024 /* at most */;

template <class T>
size_t dot_bytes(int n, int sides)
{
    return size_t(n) * (sides * sizeof(T) + sizeof(short));
}

template <class T>
__device__ __forceinline__ T warp_sum(T x)
{
    BL_UNROLL
    for (int step = 16; step > 0; step /= 2)
        x = add(x, from_lane(x, threadIdx.x % 32 ^ step));
    return x;
}

/* Rows first .. first + 31 of x lose their products with rows from .. to - 1, of SIDES
 * right-hand sides, n apart. A warp takes four rows at a time. */
template <int SIDES, bool CONJUGATE, class T>
__device__ __forceinline__ void less_products(const TransposedProblem<CONJUGATE, T> &p,
                                              T *x, int first, int from, int to)
{
    constexpr int ROWS = 4;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, n = p.n;
    for (int r = warp * ROWS; r < 32; r += blockDim.x / 32 * ROWS) {
        T sum[ROWS][SIDES];
        int row[ROWS];
        BL_UNROLL
        for (int i = 0; i < ROWS; i++) {
            row[i] = min(first + r + i, n - 1);
            BL_UNROLL
            for (int s = 0; s < SIDES; s++)
                sum[i][s] = from_real<T>(0);
        }
#pragma unroll 2
        for (int k = from + lane; k < to; k += 32) {
            T a[ROWS];
            BL_UNROLL
            for (int i = 0; i < ROWS; i++)
                a[i] = p.at(k, row[i]);
            BL_UNROLL
            for (int s = 0; s < SIDES; s++) {
                const T y = x[s * n + k];
                BL_UNROLL
                for (int i = 0; i < ROWS; i++)
                    sum[i][s] = fused(sum[i][s], a[i], y);
            }
        }
        BL_UNROLL
        for (int i = 0; i < ROWS; i++)
            BL_UNROLL
        for (int s = 0; s < SIDES; s++) {
            const T all = warp_sum(sum[i][s]);
            if (lane == i && first + r + i < n)
                x[s * n + row[i]] = add(x[s * n + row[i]], all);
        }
    }
}

/* Rows first .. first + 31 of the warp's own right-hand side x, of which only they depend
 * on each other any more: LOWER, by U', whose rows they are divided by, downwards; else
 * by L' upwards. Lane i has row first + i. */
template <bool LOWER, bool CONJUGATE, class T>
__device__ __forceinline__ void solve_triangle(const TransposedProblem<CONJUGATE, T> &p,
                                               T *x, int first)
{
    const int lane = threadIdx.x % 32, row = first + lane;
    const bool inside = row < p.n;
    T y = inside ? x[row] : from_real<T>(0), d = one<T>();
    if (LOWER && inside)
        d = p.at(row, row);
    const T inverse = div(one<T>(), d);
    const Real<T> size = abs1(inverse);
    const bool quick = __all_sync(WARP, size >= sfmin<Real<T>>() && is_finite(size));
    constexpr int HALF = 16; /* of the columns at a time, to spare registers */
    for (int half = 0; half < 2; half++) {
        const int begin = LOWER == (half == 0) ? 0 : HALF;
        T a[HALF];
        BL_UNROLL
        for (int k = 0; k < HALF; k++)
            a[k] = inside && first + begin + k < p.n ? p.at(first + begin + k, row)
                                                     : from_real<T>(0);
        BL_UNROLL
        for (int i = 0; i < HALF; i++) {
            const int k = LOWER ? i : HALF - 1 - i, at = begin + k;
            if (LOWER) {
                const T z = quick ? mul(y, inverse) : div(y, d);
                y = lane == at ? z : y;
            }
            const T less = fused(y, a[k], from_lane(y, at));
            y = (LOWER ? lane > at : lane < at) ? less : y;
        }
    }
    if (inside)
        x[row] = y;
}

/* A block owns a problem and SIDES of its right-hand sides. Shared memory: these, and the
 * rows that interchanges are with. */
template <int SIDES, bool CONJUGATE, class T>
__global__ void __launch_bounds__(DOT_THREADS)
    dot_kernel(const __grid_constant__ TinyArguments g)
{
    extern __shared__ __align__(16) char memory[];
    const int64_t slices = (g.nrhs + SIDES - 1) / SIDES, slice = blockIdx.x % slices;
    const TransposedProblem<CONJUGATE, T> p(g, blockIdx.x / slices);
    const int n = p.n, warp = threadIdx.x / 32;
    const int sides = int(least(SIDES, g.nrhs - slice * SIDES));
    T *const x = (T *)memory, *const b = p.b + slice * SIDES * p.ldb;
    short *const with = (short *)(x + SIDES * n);
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        with[i] = short(p.pivots.get(i));
        BL_UNROLL
        for (int s = 0; s < SIDES; s++)
            x[s * n + i] = s < sides ? b[i + s * p.ldb] : from_real<T>(0);
    }
    __syncthreads();
    for (int first = 0; first < n; first += 32) {
        less_products<SIDES>(p, x, first, 0, first);
        __syncthreads();
        if (warp < SIDES)
            solve_triangle<true>(p, x + warp * n, first);
        __syncthreads();
    }
    for (int first = (n - 1) / 32 * 32; first >= 0; first -= 32) {
        less_products<SIDES>(p, x, first, first + 32, n);
        __syncthreads();
        if (warp < SIDES)
            solve_triangle<false>(p, x + warp * n, first);
        __syncthreads();
    }
    if (threadIdx.x < SIDES) {
        T *const y = x + threadIdx.x * n;
        for (int i = n - 1; i >= 0; i--) {
            const T z = y[i];
            y[i] = y[with[i]];
            y[with[i]] = z;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        BL_UNROLL
    for (int s = 0; s < SIDES; s++)
        if (s < sides)
            b[i + s * p.ldb] = x[s * n + i];
    if (slice == 0 && threadIdx.x == 0)
        put_integer(g.info, p.item, g.int_size, 0, 0);
}

} // namespace bl
#endif
