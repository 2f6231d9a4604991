/* LU by the plain loop, without and with scaled pivoting, and determinants, on the host.
 *
 * For batches on the CPU and for the mock engine, on one thread. The results are the bits
 * of kernels/plain.cuh and kernels/determinant.cuh, so neither operation nor order may
 * change here alone, and the compiler must not fuse any (-ffp-contract=off).
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "host_lu.h"

static void set_pivot(void *ipiv, int int_size, int64_t k, int64_t row)
{
    if (int_size == 8)
        ((int64_t *)ipiv)[k] = row + 1;
    else
        ((int32_t *)ipiv)[k] = (int32_t)(row + 1);
}

static int64_t pivot(const void *ipiv, int int_size, int64_t k)
{
    return (int_size == 8 ? ((const int64_t *)ipiv)[k] : ((const int32_t *)ipiv)[k]) - 1;
}

#define REAL float
#define COMPLEX 0
#define NAMED(name) name##_s
#include "host_lu_precision.h"

#define REAL double
#define COMPLEX 0
#define NAMED(name) name##_d
#include "host_lu_precision.h"

#define REAL float
#define COMPLEX 1
#define NAMED(name) name##_c
#include "host_lu_precision.h"

#define REAL double
#define COMPLEX 1
#define NAMED(name) name##_z
#include "host_lu_precision.h"

static int64_t factor(enum bl_precision p, int64_t m, int64_t n, void *a, int64_t lda,
                      void *ipiv, int int_size, void *scale)
{
    switch (p) {
    case BL_S:
        return factor_s(m, n, a, lda, ipiv, int_size, scale);
    case BL_D:
        return factor_d(m, n, a, lda, ipiv, int_size, scale);
    case BL_C:
        return factor_c(m, n, a, lda, ipiv, int_size, scale);
    default:
        return factor_z(m, n, a, lda, ipiv, int_size, scale);
    }
}

int64_t bl_host_getrfnp(enum bl_precision p, int64_t m, int64_t n, void *a, int64_t lda)
{
    return factor(p, m, n, a, lda, NULL, 0, NULL);
}

int64_t bl_host_getrfsp(enum bl_precision p, int64_t m, int64_t n, void *a, int64_t lda,
                        void *ipiv, int int_size, void *scale)
{
    return factor(p, m, n, a, lda, ipiv, int_size, scale);
}

/* ---- the determinant ---- */

/* (re + i im) 2^exponent */
struct product {
    double re, im;
    int64_t exponent;
};

/* The larger part of a value that is finite and not 0 goes to [1/2, 1). */
static void normalise(struct product *x)
{
    double re = fabs(x->re), im = fabs(x->im), most = re > im ? re : im;
    int e;
    if (!(most > 0) || isinf(most))
        return;
    frexp(most, &e);
    x->re = ldexp(x->re, -e);
    x->im = ldexp(x->im, -e);
    x->exponent += e;
}

static struct product times(struct product x, struct product y, bool complex)
{
    double re = x.re * y.re - x.im * y.im, im = x.re * y.im + x.im * y.re;
    return (struct product){re, complex ? im : 0, x.exponent + y.exponent};
}

/* Factor k belongs to share k % SHARES; then the second half of the shares is multiplied
 * to the first one, and so on: kernels/product.cuh does it with many threads. */
enum { SHARES = 32 };

static struct product load(enum bl_precision p, const void *a, int64_t i)
{
    switch (p) {
    case BL_S:
        return (struct product){((const float *)a)[i], 0, 0};
    case BL_D:
        return (struct product){((const double *)a)[i], 0, 0};
    case BL_C:
        return (struct product){((const float *)a)[2 * i], ((const float *)a)[2 * i + 1],
                                0};
    default:
        return (struct product){((const double *)a)[2 * i],
                                ((const double *)a)[2 * i + 1], 0};
    }
}

/* log(x 2^exponent) for x > 0: with f = x - 1, s = f / (2 + f), log x is
 * f - f^2/2 + s (f^2/2 + 2 s^2/3 + 2 s^4/5 + ...). */
static double logarithm(double x, int64_t exponent)
{
    const double ln2_high = 0x1.62e42fep-1, ln2_low = 0x1.f473de6af278fp-30;
    if (!(x < INFINITY))
        return x;
    int e;
    x = frexp(x, &e);
    if (x < 0.70710678118654752) {
        x *= 2;
        e--;
    }
    double f = x - 1, s = f / (2 + f), s2 = s * s, sum = 0;
    double half = 0.5 * (f * f), k = (double)(exponent + e);
    for (int i = 23; i >= 3; i -= 2)
        sum = s2 * (sum + 2.0 / i);
    double low = s * (half + sum) + k * ln2_low;
    return k * ln2_high - ((half - low) - f);
}

void bl_host_det(enum bl_precision p, int64_t n, const void *lu, int64_t lda,
                 const void *ipiv, int int_size, void *phase, void *logabs)
{
    const bool complex = p == BL_C || p == BL_Z, single = p == BL_S || p == BL_C;
    struct product share[SHARES];
    for (int s = 0; s < SHARES; s++)
        share[s] = (struct product){1, 0, 0};
    for (int64_t k = 0; k < n; k++) {
        struct product u = load(p, lu, k + k * lda), *det = &share[k % SHARES];
        if (pivot(ipiv, int_size, k) != k) {
            u.re = -u.re;
            u.im = -u.im;
        }
        normalise(&u);
        *det = k < SHARES ? u : times(*det, u, complex);
        normalise(det);
    }
    for (int half = SHARES / 2; half > 0; half /= 2)
        for (int s = 0; s < half; s++)
            share[s] = times(share[s], share[s + half], complex);
    const struct product det = share[0];
    double modulus = sqrt(det.re * det.re + det.im * det.im);
    double re = modulus == 0 ? 0 : det.re / modulus;
    double im = modulus == 0 ? 0 : det.im / modulus;
    double size = modulus == 0 ? -INFINITY : logarithm(modulus, det.exponent);
    if (single) {
        ((float *)phase)[0] = (float)re;
        if (complex)
            ((float *)phase)[1] = (float)im;
        *(float *)logabs = (float)size;
    } else {
        ((double *)phase)[0] = re;
        if (complex)
            ((double *)phase)[1] = im;
        *(double *)logabs = size;
    }
}
