/* The reciprocals of kernels/quick_divide.cuh that leave special cases out, and the roots
 * and quotients of kernels/quick_root.cuh, against the intrinsics and the division that
 * do not: every float, and as many doubles and complex numbers as a few seconds allow,
 * mantissas of all ones and all zeros among them. A test of test/device.sh.
 */
#include "../../kernels/quick_root.cuh"
#include "../../kernels/tiny.cuh"
#include "device.cuh"

using namespace bl;

__device__ unsigned long long wrong[6];

__device__ uint64_t mixed(uint64_t z)
{
    z = (z + 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
    z ^= z >> 27;
    z *= 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* A number with one of a few kinds of mantissas and exponents of -limit .. limit. */
template <class R>
__device__ R number(uint64_t seed, int limit)
{
    uint64_t z = mixed(seed), mantissa = mixed(z) >> 12, few = z & 0x3f;
    if (z >> 60 == 1)
        mantissa = few; /* just above a power of 2 */
    if (z >> 60 == 2)
        mantissa = 0xfffffffffffff - few; /* just below one */
    double x = 1 + double(mantissa) * 0x1p-52;
    R y = R(ldexp(x, int(z >> 8 & 0xfff) % (2 * limit) - limit));
    return z >> 7 & 1 ? -y : y;
}

__device__ bool same(float x, float y)
{
    return __float_as_uint(x) == __float_as_uint(y);
}
__device__ bool same(double x, double y)
{
    return __double_as_longlong(x) == __double_as_longlong(y);
}

template <class R>
__device__ void check_complex(uint64_t seed, int which)
{
    constexpr bool wide = sizeof(R) == 8;
    Complex<R> z = {number<R>(2 * seed, wide ? 450 : 45),
                    number<R>(2 * seed + 1, wide ? 450 : 45)};
    if (seed % 16 == 0)
        z.im = 0;
    if (seed % 16 == 1)
        z.re = -R(0);
    if (!is_moderate<Complex<R>>(high_image(abs1(z))) || !has_moderate_parts(z))
        return;
    Complex<R> x = quick_reciprocal(z), y = reciprocal(z);
    if (!same(x.re, y.re) || !same(x.im, y.im))
        atomicAdd(&wrong[which], 1ull);
}

/* The root of x and its reciprocal, and y divided by it. */
template <class R>
__device__ void check_root(R x, R y, int which)
{
    R length, scale, near;
    if (!has_quick_root(x))
        return;
    quick_root(x, length, scale, near);
    if (!same(length, root(x)) || !same(scale, reciprocal(length)) ||
        !same(quotient(y, length, scale, near), div(y, length)) ||
        !same(quotient(y, length, scale, scale), div(y, length)))
        atomicAdd(&wrong[which], 1ull);
}

/* A thread takes every (number of threads)-th seed. */
__global__ void check(uint64_t count)
{
    uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count;
         i += step) {
        float f = __uint_as_float((unsigned)i);
        if (is_moderate<float>(high_image(f)) &&
            !same(quick_reciprocal(f), reciprocal(f)))
            atomicAdd(&wrong[0], 1ull);
        double d = number<double>(i, 1020);
        if (is_moderate<double>(high_image(d)) &&
            !same(quick_reciprocal(d), reciprocal(d)))
            atomicAdd(&wrong[1], 1ull);
        check_root<float>(f, number<float>(i, 120), 4);
        check_root<double>(fabs(d), number<double>(~i, 1020), 5);
        check_complex<float>(i, 2);
        check_complex<double>(i, 3);
    }
}

int main()
{
    unsigned long long found[6];
    check<<<1320, 256>>>((uint64_t)1 << 32);
    CUDA(cudaMemcpyFromSymbol(found, wrong, sizeof found));
    static const char *const names[] = {"reciprocal-s", "reciprocal-d", "reciprocal-c",
                                        "reciprocal-z", "root-s",       "root-d"};
    for (int p = 0; p < 6; p++) {
        char why[40] = "";
        if (found[p])
            snprintf(why, sizeof why, "%llu differ", found[p]);
        verdict(why, "%s", names[p]);
    }
    return failures != 0;
}
