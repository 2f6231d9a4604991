/* A number that stands for none: the NaN that has all bits set.
 *
 * It is its own flag, for blocks that wait for numbers of others (large_few.cuh) and for
 * products that are left out (large_update.cuh). A NaN of that kind that comes with a
 * matrix is made another one, present(), before it is told.
 */
#ifndef BL_ABSENT_CUH
#define BL_ABSENT_CUH

#include <string.h>

#include "scalar.cuh"

namespace bl
{

/* The bits of a number, as a word that atomics take; product.cuh and mid_scaled.cuh look
 * at them, too. */
template <class R>
struct BitsOf;
template <>
struct BitsOf<float> {
    using type = unsigned;
};
template <>
struct BitsOf<double> {
    using type = unsigned long long;
};
template <class R>
using Bits = typename BitsOf<R>::type;

template <class R>
BL_HD Bits<R> bits_of(R x)
{
    Bits<R> bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

template <class R>
BL_HD R from_bits(Bits<R> bits)
{
    R x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

template <class R>
BL_HD bool is_absent(R x)
{
    return bits_of(x) == ~Bits<R>(0);
}

template <class R>
BL_HD bool is_absent(Complex<R> x)
{
    return is_absent(x.re);
}

template <class R>
BL_HD R present(R x)
{
    return from_bits<R>(bits_of(x) ^ is_absent(x));
}

template <class R>
BL_HD Complex<R> present(Complex<R> x)
{
    return {present(x.re), present(x.im)};
}

template <class T>
BL_HD T absent()
{
    T x;
    memset(&x, 0xff, sizeof x);
    return x;
}

} // namespace bl
#endif
