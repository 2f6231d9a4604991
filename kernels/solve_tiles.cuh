/* Right-hand sides of a batch solved for by tiles of 32 rows, a block a matrix, in an
 * order that is not netlib's: fast arithmetic.
 *
 * Instantiated by triangles.cu. Every element of the triangles is read once, along a
 * column of the matrix in memory: a transposed one's tile gets all its products before it
 * is solved for, one that is not gives its own to the others afterwards.
 */
#ifndef BL_SOLVE_TILES_CUH
#define BL_SOLVE_TILES_CUH

#include "solve_side.cuh"

namespace bl
{

constexpr int MOST_TILED_ROWS = 1024 /* at most */, MOST_TILE_THREADS = 256 /* at most */;

template <class T>
size_t tile_bytes(int n, int sides)
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
template <int SIDES, SolveOp OP, class T>
__device__ __forceinline__ void less_products(const SolveProblem<T> &p, T *x, int first,
                                              int from, int to)
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
                a[i] = p.template at<OP>(row[i], k);
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

/* Rows from .. to - 1 of x lose their products with rows first .. first + 31, a thread a
 * row. */
template <int SIDES, class T>
__device__ __forceinline__ void give_products(const SolveProblem<T> &p, T *x, int first,
                                              int from, int to)
{
    constexpr int AT_ONCE = 8;
    const int n = p.n, count = min(32, n - first);
    for (int row = from + threadIdx.x; row < to; row += blockDim.x) {
        T y[SIDES];
        BL_UNROLL
        for (int s = 0; s < SIDES; s++)
            y[s] = x[s * n + row];
        for (int k = 0; k < count; k += AT_ONCE) {
            T a[AT_ONCE];
            BL_UNROLL
            for (int i = 0; i < AT_ONCE; i++)
                a[i] = k + i < count ? p.template at<PLAIN>(row, first + k + i)
                                     : from_real<T>(0);
            BL_UNROLL
            for (int i = 0; i < AT_ONCE; i++)
                BL_UNROLL
            for (int s = 0; s < SIDES; s++)
                if (k + i < count)
                    y[s] = fused(y[s], a[i], x[s * n + first + k + i]);
        }
        BL_UNROLL
        for (int s = 0; s < SIDES; s++)
            x[s * n + row] = y[s];
    }
}

/* Rows first .. first + 31 of the warp's own right-hand side x, of which only they depend
 * on each other any more, DOWN the rows or up. Lane i has row first + i. Where netlib
 * goes by columns a zero stays one, whatever it would be divided by. */
template <SolveOp OP, bool DOWN, bool UNIT, class T>
__device__ __forceinline__ void solve_tile(const SolveProblem<T> &p, T *x, int first)
{
    constexpr int HALF = 16; /* of the columns at a time, to spare registers */
    const int lane = threadIdx.x % 32, row = first + lane;
    const bool inside = row < p.n;
    T y = inside ? x[row] : from_real<T>(0), d = one<T>();
    if (!UNIT && inside)
        d = p.template at<OP>(row, row);
    const T inverse = div(one<T>(), d);
    const Real<T> size = abs1(inverse);
    const bool quick = __all_sync(WARP, size >= sfmin<Real<T>>() && is_finite(size));
    for (int half = 0; half < 2; half++) {
        const int begin = DOWN == (half == 0) ? 0 : HALF;
        T a[HALF];
        BL_UNROLL
        for (int k = 0; k < HALF; k++) {
            const int column = first + begin + k;
            const bool used = DOWN ? column < row : column > row;
            a[k] = inside && column < p.n && used ? p.template at<OP>(row, column)
                                                  : from_real<T>(0);
        }
        BL_UNROLL
        for (int i = 0; i < HALF; i++) {
            const int k = DOWN ? i : HALF - 1 - i, at = begin + k;
            if (!UNIT) {
                const T z = quick ? mul(y, inverse) : div(y, d);
                y = lane == at && !(OP == PLAIN && is_zero(y)) ? z : y;
            }
            const T less = fused(y, a[k], from_lane(y, at));
            y = (DOWN ? lane > at : lane < at) ? less : y;
        }
    }
    if (inside)
        x[row] = y;
}

/* SIDES right-hand sides x := op(A)^-1 x. Meets before its end. */
template <int SIDES, SolveOp OP, bool DOWN, bool UNIT, class T>
__device__ __forceinline__ void solve_tiles(const SolveProblem<T> &p, T *x)
{
    const int n = p.n, warp = threadIdx.x / 32, tiles = (n + 31) / 32;
    for (int tile = 0; tile < tiles; tile++) {
        const int first = (DOWN ? tile : tiles - 1 - tile) * 32;
        if (OP != PLAIN) {
            less_products<SIDES, OP>(p, x, first, DOWN ? 0 : first + 32,
                                     DOWN ? first : n);
            __syncthreads();
        }
        if (warp < SIDES)
            solve_tile<OP, DOWN, UNIT>(p, x + warp * n, first);
        __syncthreads();
        if (OP == PLAIN) {
            give_products<SIDES>(p, x, first, DOWN ? first + 32 : 0, DOWN ? n : first);
            __syncthreads();
        }
    }
}

/* A block owns a problem and SIDES of its right-hand sides. Shared memory: these, and the
 * rows that interchanges are with. */
template <int SIDES, SolveKind KIND, class T>
__global__ void __launch_bounds__(MOST_TILE_THREADS)
    tile_kernel(const __grid_constant__ TinyArguments g)
{
    constexpr bool MOVES = KIND <= SOLVE_C;
    extern __shared__ __align__(16) char memory[];
    const int64_t slices = (g.nrhs + SIDES - 1) / SIDES, slice = blockIdx.x % slices;
    const SolveProblem<T> p(g, blockIdx.x / slices);
    if (!p.solves)
        return;
    const int n = p.n, sides = int(least(SIDES, g.nrhs - slice * SIDES));
    T *const x = (T *)memory, *const b = p.b + slice * SIDES * p.ldb;
    short *const with = (short *)(x + SIDES * n);
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        if (MOVES)
            with[i] = short(p.pivots.get(i));
        BL_UNROLL
        for (int s = 0; s < SIDES; s++)
            x[s * n + i] = s < sides ? b[i + s * p.ldb] : from_real<T>(0);
    }
    __syncthreads();
    auto interchange = [&](int i) {
        T *const y = x + threadIdx.x * n;
        const T z = y[i];
        y[i] = y[with[i]];
        y[with[i]] = z;
    };
    if (KIND == SOLVE_N) {
        for (int i = 0; i < n && threadIdx.x < SIDES; i++)
            interchange(i);
        __syncthreads();
    }
    constexpr bool UNIT = KIND == SOLVE_T || KIND == SOLVE_C; /* the second triangle */
    solve_tiles<SIDES, first_op(KIND), true, KIND == SOLVE_N>(p, x);
    solve_tiles<SIDES, second_op(KIND), false, UNIT>(p, x);
    for (int i = n - 1; i >= 0 && UNIT && threadIdx.x < SIDES; i--)
        interchange(i);
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        BL_UNROLL
    for (int s = 0; s < SIDES; s++)
        if (s < sides)
            b[i + s * p.ldb] = x[s * n + i];
    if (slice == 0 && threadIdx.x == 0)
        p.put_info(g);
}

} // namespace bl
#endif
