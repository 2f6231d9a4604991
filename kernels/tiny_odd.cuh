/* Cholesky factorisation of a tiny matrix in which NaN or Inf has turned up.
 *
 * The base of tiny_cholesky.cuh, whose factor_again() does it. Netlib's operations one by
 * one, as its recursion has them. Short rather than fast.
 */
#ifndef BL_TINY_ODD_CUH
#define BL_TINY_ODD_CUH

#include "tiny_triangle.cuh"

namespace bl
{

template <class T, int N, int G, bool UPPER>
struct TinyOdd : TinyTriangle<T, N, G, UPPER> {
    using Base = TinyTriangle<T, N, G, UPPER>;
    using Base::at;
    using Base::Base;
    using Base::info;
    using Base::meet;
    using Base::odd;
    using Base::packed;
    using Base::t;
    using Base::taken;
    using R = Real<T>;

    /* The end of the half of xPOTRF2's tree of n in which k and j > k are parted. */
    static BL_HD int end_of_node(int n, int k, int j)
    {
        int first = 0, end = n;
        while (true) {
            int middle = first + (end - first) / 2;
            if (j < middle)
                end = middle;
            else if (k >= middle)
                first = middle;
            else
                return end;
        }
    }

    /* Once more, from a triangle that is still the input, in rows 0 .. n-1 of shared
     * memory, for those that met NaN or Inf: netlib's operations to the letter, also
     * those with zeros and on complex numbers that change nothing else. Meets at its end.
     */
    BL_HD void factor_odd()
    {
        const int n = odd ? count_bits(taken) : 0;
        if (odd)
            info = 0;
        BL_ROLLED
        for (int k = 0; k < N; k++) {
            if (UPPER) {
                BL_ROLLED
                for (int j = t; k < n && info == 0 && j < n; j += G)
                    if (j >= k)
                        packed[at(j, k)].x = less_products(n, k, j);
                meet();
            }
            R d = 0;
            if (k < n && info == 0) {
                d = real(packed[at(k, k)].x);
                if (!(d > 0))
                    info = k + 1;
            }
            const bool live = k < n && info == 0;
            meet();
            R r = root(d);
            const T inverse = from_real<T>(reciprocal(r));
            BL_ROLLED
            for (int i = t; live && i < n; i += G) {
                Cell<T> &c = packed[at(i, k)];
                if (i == k)
                    c.x = from_real<T>(r);
                else if (i > k)
                    c.x = UPPER ? over_real(c.x, r) : mul(inverse, c.x);
            }
            meet();
            if (!UPPER)
                BL_ROLLED
            for (int i = t; live && i < n; i += G)
                BL_ROLLED
            for (int j = k + 1; j <= i; j++) {
                T l = conj(packed[at(j, k)].x), c = packed[at(i, j)].x;
                bool by_product = i < end_of_node(n, k, j);
                if (by_product && Traits<T>::complex)
                    l = mul(negative(one<T>()), l);
                if (i == j)
                    c = from_real<T>(real(c));
                if (is_zero(l))
                    continue;
                T p = mul(l, packed[at(i, k)].x);
                c = by_product && Traits<T>::complex ? add(c, p) : sub(c, p);
                packed[at(i, j)].x = i == j ? from_real<T>(real(c)) : c;
            }
            meet();
        }
    }

    /* U(i, j) before its division, or the pivot. */
    BL_HD T less_products(int n, int i, int j) const
    {
        T c = packed[at(j, i)].x;
        if (i == j)
            c = from_real<T>(real(c));
        int first = 0, end = n;
        while (end - first > 1) {
            const int middle = first + (end - first) / 2;
            const bool apart = i >= middle;
            if (j < middle) {
                end = middle;
                continue;
            }
            T sum = apart ? from_real<T>(0) : times_one(c);
            BL_ROLLED
            for (int k = first; k < (apart ? middle : i); k++)
                sum = sub(sum, mul(conj(packed[at(i, k)].x), packed[at(j, k)].x));
            if (!apart)
                return sum;
            c = i == j ? from_real<T>(add(real(c), real(sum)))
                       : add(times_one(c), times_one(sum));
            first = middle;
        }
        return c;
    }

    /* An element at a time, for what is rare. */
    template <bool TO>
    BL_HD void move_odd(T *a, int64_t lda)
    {
        const int n = count_bits(taken);
        BL_ROLLED
        for (int j = 0; odd && j < N; j++)
            BL_ROLLED
        for (int i = t; i < N; i += G) {
            if (i < j)
                continue;
            T *p = a + (UPPER ? j + i * lda : i + j * lda), &x = packed[at(i, j)].x;
            if (TO)
                x = i < n ? *p : from_real<T>(i == j ? 1 : 0);
            else if (i < n)
                *p = x;
        }
        meet();
    }
};

} // namespace bl
#endif
