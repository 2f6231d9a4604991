/* What the tiny Cholesky kernels are made of: numbers in one access, copies between
 * global and shared memory, loops whose counter is a constant, roots, reciprocals and
 * quotients that are correctly rounded without a look for special cases at each.
 *
 * Used by tiny_cholesky.cuh and large_cholesky.cuh. What is here knows nothing of
 * matrices and lanes.
 */
#ifndef BL_TINY_PIECES_CUH
#define BL_TINY_PIECES_CUH

#include "team.cuh"

#ifdef __CUDACC__
#    define BL_UNROLL_BY_FOUR _Pragma("unroll 4")
#    define BL_ROLLED _Pragma("unroll 1")
#else
#    define BL_ROLLED
#    define BL_UNROLL_BY_TWO
#    define BL_UNROLL_BY_FOUR
#endif

namespace bl
{

/* A number in one access, complex or not. */
template <class T>
struct alignas(sizeof(T)) Cell {
    T x;
};

template <class T>
BL_HD bool is_whole(const T *p)
{
    return !Traits<T>::complex || (uintptr_t)p % sizeof(T) == 0;
}

/* A piece of global memory to shared memory, past the registers, if `asked`; zeros if it
 * is not `there`. arrived() waits for all that this thread has asked for. No branches:
 * they would take longer. Older cards go the usual way. */
template <class V>
BL_HD void bring(V *to, const V *from, bool asked, bool there)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    asm volatile("{\n\t"
                 ".reg .pred asked;\n\t"
                 "setp.ne.b32 asked, %3, 0;\n\t"
                 "@asked cp.async.ca.shared.global [%0], [%1], %2, %4;\n\t"
                 "}" ::"r"(unsigned(__cvta_generic_to_shared(to))),
                 "l"(from), "n"(sizeof(V)), "r"(int(asked)),
                 "r"(there ? int(sizeof(V)) : 0)
                 : "memory");
#else
    if (asked)
        *to = there ? *from : V{};
#endif
}

BL_HD void arrived()
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/* And back, in one access. */
template <class R>
BL_HD void send(R *to, R x)
{
#ifdef __CUDACC__
    __stwb(to, x);
#else
    *to = x;
#endif
}

template <class R>
BL_HD void send(Complex<R> *to, Complex<R> x)
{
#ifdef __CUDACC__
    if constexpr (sizeof(R) == 4)
        __stwb((float2 *)to, make_float2(x.re, x.im));
    else
        __stwb((double2 *)to, make_double2(x.re, x.im));
#else
    *to = x;
#endif
}

/* f(B), ..., f(E - 1), where the number is a constant expression. The compiler unrolls
 * nests of loops too late to keep arrays in registers. */
template <int I>
struct Index {
    BL_HD constexpr int operator()() const
    {
        return I;
    }
};

template <int B, int E, class F>
BL_HD void each(const F &f)
{
    if constexpr (B < E) {
        f(Index<B>());
        each<B + 1, E>(f);
    }
}

/* Right-hand sides that a warp of groups of `lanes` lanes has in shared memory at a time,
 * and one to pad: no two rows of a column in one bank. */
#ifdef __CUDACC__
__host__ __device__
#endif
    constexpr int
    sides_for(int lanes, int64_t nrhs)
{
    return (32 / lanes * int(nrhs < 2 ? 2 : nrhs < lanes ? nrhs : lanes)) | 1;
}

/* How many bits are set. */
BL_HD int count_bits(unsigned x)
{
#ifdef __CUDACC__
    return __popc(x);
#else
    return __builtin_popcount(x);
#endif
}

BL_HD float inverse_of(float x)
{
#ifdef __CUDA_ARCH__
    return __frcp_rn(x);
#else
    return 1 / x;
#endif
}

BL_HD double inverse_of(double x)
{
#ifdef __CUDA_ARCH__
    return __drcp_rn(x);
#else
    return 1 / x;
#endif
}

/* Pivots between these have roots and reciprocals by quick_root(), and elements that are
 * 0 or not below LEAST quotients by quick_quotient(): nothing on the way is too large or
 * loses bits to gradual underflow. */
template <class R>
struct Quick;
template <>
struct Quick<float> {
    static constexpr float LEAST = 0x1p-60f, MOST = 0x1p60f;
};
template <>
struct Quick<double> {
    static constexpr double LEAST = 0x1p-400, MOST = 0x1p400;
};

/* r := sqrt(d) and 1 / r, both correctly rounded, without the intrinsics' look for
 * special cases: a seed for 1 / sqrt(d), made better until it serves both. False: the
 * reciprocal may be wrong, since no approximation of it helps where all bits of r are
 * set. */
BL_HD bool quick_root(float d, float &r, float &inverse)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(d));
    const float first = __fmul_rn(d, y);
    r = fmaf(fmaf(-first, first, d), __fmul_rn(y, 0.5f), first);
    y = fmaf(y, fmaf(-r, y, 1.0f), y);
    inverse = fmaf(y, fmaf(-r, y, 1.0f), y);
    return (__float_as_uint(r) & 0x7fffffu) != 0x7fffffu;
#else
    r = sqrtf(d);
    inverse = 1 / r;
    return true;
#endif
}

BL_HD bool quick_root(double d, double &r, double &inverse)
{
#ifdef __CUDA_ARCH__
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(d));
    /* The lower word makes the seed a little better. */
    y = __hiloint2double(__double2hiint(y), __double2hiint(d) - 0x03500000);
    const double e = fma(d, -__dmul_rn(y, y), 1.0);
    y = fma(fma(e, 0.375, 0.5), __dmul_rn(y, e), y);
    const double first = __dmul_rn(d, y);
    r = fma(fma(-first, first, d), __dmul_rn(y, 0.5), first);
    y = fma(y, fma(-r, y, 1.0), y);
    inverse = fma(y, fma(-r, y, 1.0), y);
    return __double2loint(r) != -1;
#else
    r = sqrt(d);
    inverse = 1 / r;
    return true;
#endif
}

/* x / d, given 1 / d correctly rounded. */
template <class R>
BL_HD R quick_quotient(R x, R d, R inverse)
{
#ifdef __CUDA_ARCH__
    R q = mul(x, inverse);
    return x == 0 ? q : fma(fma(-d, q, x), inverse, q);
#else
    (void)inverse;
    return x / d;
#endif
}

/* Not inlined: rare, and long. */
template <class R>
BL_CALL R careful_quotient(R x, R d)
{
    return div(x, d);
}

/* c + a b, rounded once on the device: where bits are not promised. */
template <class R>
BL_HD R fused(R a, R b, R c)
{
    return fma(a, b, c);
}

template <class R>
BL_HD Complex<R> fused(Complex<R> a, Complex<R> b, Complex<R> c)
{
    return {fma(-a.im, b.im, fma(a.re, b.re, c.re)),
            fma(a.im, b.re, fma(a.re, b.im, c.im))};
}

/* A divisor, and Smith's rule as far as it depends on nothing else: complex ones become
 * {ratio, den}, and `steep` says which part was the larger. */
template <class R>
BL_HD R prepared(R x, bool &steep)
{
    steep = false;
    return x;
}

template <class R>
BL_HD Complex<R> prepared(Complex<R> y, bool &steep)
{
    steep = fabs(y.re) < fabs(y.im);
    R large = steep ? y.im : y.re, other = steep ? y.re : y.im;
    R ratio = div(other, large);
    return {ratio, add(mul(other, ratio), large)};
}

/* x / y, or x / conj(y), for a prepared y. */
template <class R>
BL_HD R quotient(R x, R y, bool, bool)
{
    return div(x, y);
}

template <class R>
BL_HD Complex<R> quotient(Complex<R> x, Complex<R> y, bool steep, bool conjugate)
{
    R ratio = conjugate ? -y.re : y.re, den = conjugate && steep ? -y.im : y.im;
    R u = steep ? x.im : x.re, v = steep ? x.re : x.im, p = mul(u, ratio);
    return {div(add(mul(v, ratio), u), den), div(sub(steep ? p : v, steep ? v : p), den)};
}

/* The same with 1 / y, or 1 / den for a complex y, correctly rounded: 0 where it is not
 * for quick_quotient(). */
template <class R>
BL_HD R inverse_for(R y)
{
    const R size = fabs(y);
    return (size >= Quick<R>::LEAST) & (size <= Quick<R>::MOST) ? inverse_of(y) : R(0);
}

template <class R>
BL_HD R inverse_for(Complex<R> y)
{
    return inverse_for(y.im);
}

template <class R>
BL_HD R quotient_by(R x, R y, R inverse)
{
    const R size = fabs(x);
    const bool plain = (size >= Quick<R>::LEAST) & (size <= Quick<R>::MOST);
    return ((x == 0) | plain) & (inverse != 0) ? quick_quotient(x, y, inverse)
                                               : careful_quotient(x, y);
}

template <class R>
BL_HD R quotient(R x, R y, bool, bool, R inverse)
{
    return quotient_by(x, y, inverse);
}

template <class R>
BL_HD Complex<R> quotient(Complex<R> x, Complex<R> y, bool steep, bool conjugate,
                          R inverse)
{
    R ratio = conjugate ? -y.re : y.re, sign = conjugate && steep ? R(-1) : R(1);
    R u = steep ? x.im : x.re, v = steep ? x.re : x.im, p = mul(u, ratio);
    return {quotient_by(add(mul(v, ratio), u), sign * y.im, sign * inverse),
            quotient_by(sub(steep ? p : v, steep ? v : p), sign * y.im, sign * inverse)};
}

/* Each part of x over y. */
template <class R>
BL_HD R each_over(R x, R y)
{
    return div(x, y);
}

template <class R>
BL_HD Complex<R> each_over(Complex<R> x, R y)
{
    return {div(x.re, y), div(x.im, y)};
}

/* x / (y + 0i)' as Smith's rule has it: other zeros, and more NaN. */
template <class R>
BL_HD R over_real(R x, R y)
{
    return div(x, y);
}

template <class R>
BL_HD Complex<R> over_real(Complex<R> x, R y)
{
    return quotient(x, Complex<R>{R(0), y}, false, true);
}

} // namespace bl
#endif
