/* What the panel kernels share: the search for a pivot, the end of xGETRF2 on a column,
 * and packets between blocks.
 *
 * Used by large_panel.cuh, large_panel_card.cuh and large_panel_grid.cuh.
 */
#ifndef BL_LARGE_PANEL_COMMON_CUH
#define BL_LARGE_PANEL_COMMON_CUH

#include "tiny.cuh"
#include "large_panel_job.h"

namespace bl
{

/* What is done to a column below its pivot. */
enum Scaling { SCALE_MULTIPLY, SCALE_DIVIDE, SCALE_LEAVE, SCALE_ZERO };

template <class T>
struct ScalingOf {
    T factor;
    int scaling;
};

/* The end of xGETRF2 on a column, for any pivot. */
template <class T>
BL_CALL ScalingOf<T> careful_scaling(T pivot)
{
    if (is_zero(pivot))
        return {one<T>(), SCALE_ZERO};
    if (!reaches_sfmin(pivot))
        return {pivot, SCALE_DIVIDE};
    T factor = reciprocal(pivot);
    return {factor, is_one(factor) ? SCALE_LEAVE : SCALE_MULTIPLY};
}

template <class T>
BL_CALL T carefully_scaled(T x, T factor, int scaling)
{
    return scaling == SCALE_DIVIDE ? div(x, factor) : x;
}

/* Whether the quick reciprocal of a pivot with this image is right and all there is to
 * do.
 */
template <class T>
__device__ __forceinline__ bool is_plain(unsigned high, T pivot, T factor)
{
    return is_moderate<T>(high) && has_moderate_parts(pivot) &&
           !(Traits<T>::complex && is_one(factor));
}

template <class T>
__device__ __forceinline__ T scaled(T x, T factor, int scaling)
{
    return scaling == SCALE_MULTIPLY ? mul(factor, x)
                                     : carefully_scaled(x, factor, scaling);
}

/* Greater for a better pivot, 0 for none. A NaN is none, but never beaten where it is the
 * first of its column. */
template <class T>
__device__ __forceinline__ void image_of(T x, bool candidate, bool first, unsigned &high,
                                         unsigned &low)
{
    Real<T> value; /* its sign does not matter to an image */
    if constexpr (Traits<T>::complex)
        value = abs1(x);
    else
        value = x;
    high = value == value ? high_image(value) : first ? ~0u : 0;
    high = candidate ? high : 0;
    low = low_image(value);
}

__device__ __forceinline__ unsigned warp_max(unsigned x)
{
    return Group<32>().max(x);
}

/* The lane with the greatest image, whose high part is `top`; of several, the smallest
 * position. */
__device__ __forceinline__ int best_lane(unsigned high, unsigned top, unsigned low,
                                         unsigned position)
{
    unsigned mask = __ballot_sync(WARP, high == top);
    if (mask & (mask - 1)) {
        bool in = high == top;
        unsigned lowest = warp_max(in ? low : 0);
        in = in && low == lowest;
        unsigned first = ~warp_max(in ? ~position : 0);
        mask = __ballot_sync(WARP, in && position == first);
    }
    return __ffs(int(mask)) - 1;
}

template <class T>
__device__ __forceinline__ T choose(bool yes, T x, T y)
{
    if constexpr (Traits<T>::complex)
        return {yes ? x.re : y.re, yes ? x.im : y.im};
    else
        return yes ? x : y;
}

template <class T>
__device__ __forceinline__ void put_anywhere(T *p, T x)
{
    if (is_whole(p))
        put(p, x);
    else
        *p = x;
}

/* What blocks tell each other through global memory: 12 bytes and a number, in one access
 * of 16, so that who finds the number finds the rest. */
struct Packet {
    unsigned x[3], number;
};
static_assert(sizeof(Packet) == 16, "large_panel.cu makes room for them");

#ifndef BL_HOST_CUDA /* test/host_packets.h */
__device__ __forceinline__ void send(Packet *to, Packet p)
{
    asm volatile("{\n"
                 ".reg .b128 v;\n"
                 ".reg .b64 low, high;\n"
                 "mov.b64 low, {%1, %2};\n"
                 "mov.b64 high, {%3, %4};\n"
                 "mov.b128 v, {low, high};\n"
                 "st.relaxed.gpu.global.b128 [%0], v;\n"
                 "}" ::"l"(to),
                 "r"(p.x[0]), "r"(p.x[1]), "r"(p.x[2]), "r"(p.number)
                 : "memory");
}

__device__ __forceinline__ Packet look(const Packet *from)
{
    Packet p;
    asm volatile("{\n"
                 ".reg .b128 v;\n"
                 ".reg .b64 low, high;\n"
                 "ld.relaxed.gpu.global.b128 v, [%4];\n"
                 "mov.b128 {low, high}, v;\n"
                 "mov.b64 {%0, %1}, low;\n"
                 "mov.b64 {%2, %3}, high;\n"
                 "}"
                 : "=r"(p.x[0]), "=r"(p.x[1]), "=r"(p.x[2]), "=r"(p.number)
                 : "l"(from)
                 : "memory");
    return p;
}

/* Until the condition holds, which looks at what others write. */
template <class F>
__device__ __forceinline__ void until(F condition)
{
    while (!condition())
        ;
}
#endif

} // namespace bl
#endif
