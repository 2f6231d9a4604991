/* The inverse of one large matrix from its Cholesky factor: what moves between the
 * triangular solves and the updates.
 *
 * Called by large.cu, which has the algorithm. A block of columns of the factor makes
 * room in the matrix for what becomes of it. Nothing outside the triangle is touched, and
 * nothing of the matrix at all where `info` is not 0: the copies are then zeros, so that
 * updates with them change nothing either.
 */
#include "large_inverse.h"

namespace bl
{

namespace
{

constexpr int THREADS = 256, TILE = 32; /* columns of v' that a block moves */

/* A block owns TILE of all n columns, of W rows. */
template <class T>
__global__ void __launch_bounds__(THREADS) take_out(const LargeInverse<T> s)
{
    constexpr int LD = LARGE_BLOCK<T>;
    const bool failed = *s.info != 0;
    const int64_t begin = int64_t(blockIdx.x) * TILE, next = s.j + s.w;
    const int tile = int(min(s.n - begin, int64_t(TILE)));
    for (int e = threadIdx.x; e < tile * s.w; e += THREADS) {
        /* Neighbours in memory by neighbouring threads, but where both sorts meet. */
        const bool down = s.upper == (begin >= next);
        const int r = down ? e % s.w : e / tile;
        const int64_t c = begin + (down ? e / s.w : e % tile);
        const bool below = c >= next;
        T *from =
            s.upper == below ? s.a + s.j + r + c * s.lda : s.a + c + (s.j + r) * s.lda;
        const bool there = below || c <= s.j + r;
        const T zero = from_real<T>(0), x = there && !failed ? *from : zero,
                turned = s.upper ? conj(x) : x;
        if (below) {
            s.beside[s.upper ? r + (c - next) * LD : c - next + r * s.n] = x;
        } else if (c < s.j) {
            s.rows[r + c * LD] = turned;
        } else {
            s.triangle[r + (c - s.j) * LD] = turned;
            s.rows[r + c * LD] = from_real<T>(c - s.j == r && !failed ? 1 : 0);
        }
        if (there && !failed)
            *from = zero;
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS) negate(const LargeInverse<T> s)
{
    constexpr int LD = LARGE_BLOCK<T>;
    const int64_t count = (s.j + s.w) * LD;
    for (int64_t e = int64_t(blockIdx.x) * THREADS + threadIdx.x; e < count;
         e += int64_t(gridDim.x) * THREADS)
        if (e % LD < s.w)
            s.minus[e] = negative(s.rows[e]);
}

/* One block. The first zero of the diagonal goes to info. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    find_zero(const T *a, int64_t lda, int64_t n, int64_t *info)
{
    __shared__ unsigned long long first;
    if (threadIdx.x == 0)
        first = n;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < n; i += THREADS)
        if (is_zero(a[i + i * lda]))
            atomicMin(&first, (unsigned long long)i);
    __syncthreads();
    if (threadIdx.x == 0 && first < (unsigned long long)n)
        *info = int64_t(first) + 1;
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    make_real(T *a, int64_t lda, int64_t n, const int64_t *info)
{
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i < n && *info == 0)
        a[i + i * lda] = from_real<T>(real(a[i + i * lda]));
}

unsigned blocks_for(int64_t count, int64_t each)
{
    return unsigned((count + each - 1) / each);
}

} // namespace

template <class T>
cudaError_t large_take_out(const LargeInverse<T> &s, cudaStream_t stream)
{
    take_out<T><<<blocks_for(s.n, TILE), THREADS, 0, stream>>>(s);
    return cudaGetLastError();
}

template <class T>
cudaError_t large_negate(const LargeInverse<T> &s, cudaStream_t stream)
{
    negate<T>
        <<<blocks_for((s.j + s.w) * LARGE_BLOCK<T>, 4 * THREADS), THREADS, 0, stream>>>(
            s);
    return cudaGetLastError();
}

template <class T>
cudaError_t large_find_zero(const T *a, int64_t lda, int64_t n, int64_t *info,
                            cudaStream_t stream)
{
    find_zero<T><<<1, THREADS, 0, stream>>>(a, lda, n, info);
    return cudaGetLastError();
}

template <class T>
cudaError_t large_make_real(T *a, int64_t lda, int64_t n, const int64_t *info,
                            cudaStream_t stream)
{
    make_real<T><<<blocks_for(n, THREADS), THREADS, 0, stream>>>(a, lda, n, info);
    return cudaGetLastError();
}

#define BL_INSTANCE(T)                                                                   \
    template cudaError_t large_take_out(const LargeInverse<T> &, cudaStream_t);          \
    template cudaError_t large_negate(const LargeInverse<T> &, cudaStream_t);            \
    template cudaError_t large_find_zero(const T *, int64_t, int64_t, int64_t *,         \
                                         cudaStream_t);                                  \
    template cudaError_t large_make_real(T *, int64_t, int64_t, const int64_t *,         \
                                         cudaStream_t);
BL_FOR_EACH_TYPE(BL_INSTANCE)

} // namespace bl
