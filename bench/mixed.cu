/* One group call of matrices of mixed sizes against uniform batches of the same sizes.
 *
 *     bench/mixed [matrices [largest]]        (10000, 1024)
 *
 * On device memory, double precision, LU: sizes 1 .. largest mixed at random, every
 * matrix its own group, n and lda; and every matrix its own m, too. "uniform" is the sum
 * over the matrices of what one takes in a batch of its own size that fills the card,
 * measured at sizes that are close (4 an octave) and interpolated. Prints both times and
 * their ratio. Linked with the library; no other process should use the card.
 */
#include <cmath>

#include "batchlapack.h"
#include "device.cuh"

static cudaStream_t stream;
static double *pool;
static int32_t *pivots, *info;
static size_t pool_elements;

/* Milliseconds of a call, the better of two. */
template <class Call>
static double timed(Call call)
{
    return times(
        stream, 2, [] { fill<<<1024, 256, 0, stream>>>(pool, pool_elements, 0, 1); },
        [&] {
            call();
            must(batchlapack_status() == BATCHLAPACK_OK, "status");
        })[0];
}

/* Milliseconds a matrix of order n in a batch that fills the card. */
static double uniform(int32_t n)
{
    int32_t batch = std::max(1056, 200000 / std::max(n * n / 16, 1)), stride = n * n;
    batch = (int32_t)std::min<size_t>(batch, pool_elements / stride);
    double ms = timed([&] {
        dgetrf_batch_strided(&n, &n, pool, &n, &stride, pivots, &n, &batch, info);
    });
    return ms / batch;
}

static std::vector<int32_t> sizes;
static std::vector<double> each;

static double expected(double n)
{
    size_t i = 1;
    while (i + 1 < sizes.size() && sizes[i] < n)
        i++;
    double x = (log(n) - log((double)sizes[i - 1])) /
               (log((double)sizes[i]) - log((double)sizes[i - 1]));
    return exp(log(each[i - 1]) + x * (log(each[i]) - log(each[i - 1])));
}

static void mixed(int32_t matrices, int32_t largest, bool square)
{
    std::vector<int32_t> m(matrices), n(matrices), lda(matrices), one(matrices, 1);
    std::vector<double *> a(matrices);
    std::vector<int32_t *> p(matrices);
    size_t at = 0;
    double sum = 0;
    srand(7);
    for (int32_t i = 0; i < matrices; i++) {
        n[i] = 1 + rand() % largest;
        m[i] = square ? n[i] : 1 + rand() % largest;
        lda[i] = m[i] + rand() % 4;
        a[i] = pool + at;
        p[i] = pivots + (size_t)i * largest;
        at += (size_t)lda[i] * n[i];
        /* A rectangle costs what the square with as many operations does. */
        double k = std::min(m[i], n[i]), w = std::max(m[i], n[i]);
        sum += expected(square ? n[i] : cbrt(1.5 * (w * k * k - k * k * k / 3)));
    }
    must(at <= pool_elements, "device memory is too small");
    double ms = timed([&] {
        dgetrf_batch(m.data(), n.data(), a.data(), lda.data(), p.data(), &matrices,
                     one.data(), info);
    });
    printf("mixed %-11s %d matrices, 1 .. %d: %.2f ms, uniform batches %.2f ms, ratio "
           "%.2f\n",
           square ? "n x n" : "m x n", matrices, largest, ms, sum, ms / sum);
}

int main(int argc, char **argv)
{
    int32_t matrices = argc > 1 ? atoi(argv[1]) : 10000;
    int32_t largest = argc > 2 ? atoi(argv[2]) : 1024;
    must(cudaStreamCreate(&stream) == cudaSuccess, "no device");
    pool_elements = (size_t)matrices * largest * largest / 5 * 2 + ((size_t)1 << 24);
    must(cudaMalloc(&pool, pool_elements * sizeof *pool) == cudaSuccess, "memory");
    must(cudaMalloc(&pivots, (size_t)matrices * largest * 4 + ((size_t)1 << 28)) ==
             cudaSuccess,
         "memory");
    must(cudaMalloc(&info, 1 << 24) == cudaSuccess, "memory");
    batchlapack_set_stream(stream);
    for (double n = 1; n < largest; n = std::max(n + 1, n * exp2(1.0 / 4)))
        sizes.push_back((int32_t)n);
    sizes.push_back(largest);
    for (int32_t n : sizes)
        each.push_back(uniform(n));
    mixed(matrices, largest, true);
    mixed(matrices, largest, false);
    return 0;
}
