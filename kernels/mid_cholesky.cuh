/* POTRF('L') of matrices beyond the tiny ones that fit the shared memory of one block.
 *
 * Instantiated by mid_cholesky.cu. A matrix is read once and written once, its lower
 * triangle only. Every element takes its products one by one in ascending order, each
 * rounded on its own, which is all that netlib's bits depend on unless NaN or Inf are
 * met: such a matrix is put on a list and done by the reference, in a second launch.
 */
#ifndef BL_MID_CHOLESKY_CUH
#define BL_MID_CHOLESKY_CUH

#include <float.h>
#include "cholesky.cuh"
#include "family.h"
#include "kernel.cuh"

namespace bl
{

/* What the kernels are told of a job. */
struct MidCholesky {
    struct bl_operand a, info;
    const struct bl_item *items;
    int64_t batch;
    int n, int_size; /* n: the largest */
    /* In the work space: how many matrices are to be done again, and which. */
    unsigned long long *again_count;
    int64_t *again;
};

constexpr int WIDTH = 8; /* of a panel */

/* Elements from one of the panel's rows to the next: whole units of 16 bytes, and not all
 * rows in the same banks. */
template <class T>
constexpr int ROW_PITCH = WIDTH + 16 / int(sizeof(T));

/* Elements of the packed triangle, in whole units of 16 bytes. */
template <class T>
__host__ __device__ constexpr int64_t triangle_elements(int64_t n)
{
    constexpr int64_t UNIT = 16 / sizeof(T);
    return (n * (n + 1) / 2 + UNIT - 1) / UNIT * UNIT;
}

/* Bytes of shared memory for order n: the triangle by columns, and the rows of a panel,
 * with some behind the last that are read where they are of no use. */
template <class T>
int64_t mid_cholesky_bytes(int64_t n)
{
    return (triangle_elements<T>(n) + (n + WIDTH) * ROW_PITCH<T>)*int64_t(sizeof(T));
}

template <class T>
struct MidCholeskyItem {
    int n;
    int64_t index, lda;
    T *a;

    __device__ __forceinline__ MidCholeskyItem(const MidCholesky &g, int64_t number)
    {
        n = g.n;
        index = number;
        lda = g.a.ld;
        if (g.items) {
            n = int(g.items[number].n);
            index = g.items[number].index;
            lda = g.items[number].lda;
        }
        a = (T *)operand_at(g.a, index, sizeof(T));
    }
    __device__ __forceinline__ void put_info(const MidCholesky &g, int64_t info) const
    {
        void *p = operand_at(g.info, index, g.int_size);
        if (g.int_size == 4)
            *(int32_t *)p = int32_t(info);
        else
            *(int64_t *)p = info;
    }
};

__device__ __forceinline__ bool all_finite(float x)
{
    return fabsf(x) <= FLT_MAX;
}
__device__ __forceinline__ bool all_finite(double x)
{
    return fabs(x) <= DBL_MAX;
}
template <class R>
__device__ __forceinline__ bool all_finite(Complex<R> z)
{
    return all_finite(z.re) && all_finite(z.im);
}

/* Where column j of the packed triangle would have its row 0. */
__device__ __forceinline__ int column_at(int j, int n)
{
    return j * n - j * (j + 1) / 2;
}

/* One block, one matrix. Of a panel of WIDTH columns the first warp factors the block on
 * the diagonal, a lane a row; then a thread owns a row below it, then a warp 32 rows and
 * WIDTH columns of what is to the right at a time. Shared memory: the triangle; the
 * panel's rows, which others multiply with; the reciprocals of its diagonal. */
template <class T, int THREADS_>
__global__ void __launch_bounds__(THREADS_)
    mid_potrf(const __grid_constant__ MidCholesky g)
{
    using R = Real<T>;
    constexpr int UNIT = 16 / sizeof(T);
    struct alignas(16) Unit {
        T x[UNIT];
    };
    extern __shared__ __align__(16) char memory[];
    __shared__ R inverse[WIDTH];
    __shared__ int bad, odd; /* 1 + the first column that is not positive; not finite */
    const MidCholeskyItem<T> item(g, blockIdx.x);
    const int n = item.n, thread = threadIdx.x, lane = thread % LANES;
    const int warp = thread / LANES, warps = THREADS_ / LANES;
    T *triangle = (T *)memory;
    T *rows = triangle + triangle_elements<T>(g.n);

    if (thread == 0)
        bad = odd = 0;
    for (int j = warp; j < n; j += warps)
        for (int i = j + lane; i < n; i += LANES) {
            T x = item.a[i + j * item.lda];
            triangle[column_at(j, n) + i] = i == j ? from_real<T>(real(x)) : x;
        }
    __syncthreads();

    for (int first = 0; first < n; first += WIDTH) {
        const int width = n - first < WIDTH ? n - first : WIDTH;
        if (warp == 0) {
            const int i = first + lane;
            T x[WIDTH];
            BL_UNROLL
            for (int k = 0; k < WIDTH; k++)
                x[k] = lane >= k && lane < width ? triangle[column_at(first + k, n) + i]
                                                 : from_real<T>(0);
            BL_UNROLL
            for (int k = 0; k < WIDTH; k++) {
                if (k >= width)
                    break;
                const R pivot = __shfl_sync(~0u, real(x[k]), k);
                if (lane == 0 && bad == 0 && !(pivot > 0))
                    bad = first + k + 1;
                if (lane == 0 && !all_finite(pivot) && (bad == 0 || bad == first + k + 1))
                    odd = 1;
                const R length = root(pivot), scale = div(R(1), length);
                if (lane == k)
                    x[k] = from_real<T>(length);
                else
                    x[k] = mul(from_real<T>(scale), x[k]);
                if (lane == 0)
                    inverse[k] = scale;
                BL_UNROLL
                for (int j = k + 1; j < WIDTH; j++)
                    x[j] = sub(x[j], mul(conj(from_lane(x[k], j)), x[k]));
            }
            if (lane < width) {
                BL_UNROLL
                for (int k = 0; k < WIDTH; k++) {
                    rows[i * ROW_PITCH<T> + k] = x[k];
                    if (k <= lane)
                        triangle[column_at(first + k, n) + i] = x[k];
                }
            }
        }
        __syncthreads();
        if (bad)
            break;
        for (int i = first + WIDTH + thread; i < n; i += THREADS_) {
            T x[WIDTH];
            BL_UNROLL
            for (int k = 0; k < WIDTH; k++)
                x[k] = triangle[column_at(first + k, n) + i];
            BL_UNROLL
            for (int k = 0; k < WIDTH; k++) {
                x[k] = mul(from_real<T>(inverse[k]), x[k]);
                BL_UNROLL
                for (int j = k + 1; j < WIDTH; j++)
                    x[j] =
                        sub(x[j], mul(conj(rows[(first + j) * ROW_PITCH<T> + k]), x[k]));
            }
            BL_UNROLL
            for (int k = 0; k < WIDTH; k++) {
                triangle[column_at(first + k, n) + i] = x[k];
                rows[i * ROW_PITCH<T> + k] = x[k];
            }
        }
        __syncthreads();
        /* Groups of 32 rows, counted from the next panel on, and of WIDTH columns that
         * begin above the group's end, shared out in turn. */
        const int next = first + WIDTH, rest = n - next;
        int turn = 0;
        for (int group = 0; group < rest; group += LANES) {
            const int i = next + group + lane;
            const int columns = (rest < group + LANES ? rest : group + LANES);
            for (int left = 0; left < columns; left += WIDTH, turn++) {
                if (turn % warps != warp)
                    continue;
                const bool inside = i < n;
                T x[WIDTH];
                BL_UNROLL
                for (int k = 0; k < WIDTH; k++)
                    x[k] =
                        inside ? triangle[column_at(first + k, n) + i] : from_real<T>(0);
                /* All of them at once: they do not wait for each other's sums. */
                T y[WIDTH];
                BL_UNROLL
                for (int c = 0; c < WIDTH; c++) {
                    const int j = next + left + c;
                    y[c] = inside && j <= i ? triangle[column_at(j, n) + i]
                                            : from_real<T>(0);
                }
                const Unit *row = (const Unit *)(rows + (next + left) * ROW_PITCH<T>);
                BL_UNROLL
                for (int k = 0; k < WIDTH; k += UNIT)
                    BL_UNROLL
                for (int c = 0; c < WIDTH; c++) {
                    const Unit u = row[(c * ROW_PITCH<T> + k) / UNIT];
                    BL_UNROLL
                    for (int s = 0; s < UNIT; s++)
                        y[c] = sub(y[c], mul(conj(u.x[s]), x[k + s]));
                }
                BL_UNROLL
                for (int c = 0; c < WIDTH; c++) {
                    const int j = next + left + c;
                    if (inside && j <= i)
                        triangle[column_at(j, n) + i] = y[c];
                }
            }
        }
        __syncthreads();
    }

    bool finite = true;
    for (int j = warp; j < n; j += warps)
        for (int i = j + lane; i < n; i += LANES)
            finite = finite && all_finite(triangle[column_at(j, n) + i]);
    /* What comes after a pivot that is not positive is of no meaning. */
    const bool again = __syncthreads_or(bad ? odd : !finite);
    if (again) {
        if (thread == 0)
            g.again[atomicAdd(g.again_count, 1)] = blockIdx.x;
        return;
    }
    for (int j = warp; j < n; j += warps)
        for (int i = j + lane; i < n; i += LANES)
            item.a[i + j * item.lda] = triangle[column_at(j, n) + i];
    if (thread == 0)
        item.put_info(g, bad);
}

/* The matrices of the list, by the reference. A block takes one after the other. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    mid_potrf_again(const __grid_constant__ MidCholesky g)
{
    const int64_t count = int64_t(*g.again_count);
    for (int64_t turn = blockIdx.x; turn < count; turn += gridDim.x) {
        const MidCholeskyItem<T> item(g, g.again[turn]);
        Team team;
        team.thread = threadIdx.x;
        team.threads = blockDim.x;
        const int64_t info =
            cholesky_factor(team, false, int64_t(item.n), item.a, item.lda);
        if (threadIdx.x == 0)
            item.put_info(g, info);
        __syncthreads();
    }
}

} // namespace bl
#endif
