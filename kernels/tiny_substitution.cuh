/* Substitution with a tiny Cholesky factor, a lane a right-hand side.
 *
 * The base of tiny_cholesky_solve.cuh and tiny_cholesky_inverse.cuh. Netlib's bits depend
 * on the order of every operation, and on the products it leaves out.
 */
#ifndef BL_TINY_SUBSTITUTION_CUH
#define BL_TINY_SUBSTITUTION_CUH

#include "tiny_cholesky.cuh"

namespace bl
{

template <class T, int N, int G, bool UPPER>
struct TinySubstitution : TinyCholesky<T, N, G, UPPER> {
    using Base = TinyCholesky<T, N, G, UPPER>;
    using Base::at;
    using Base::ballot;
    using Base::Base;
    using Base::holds;
    using Base::meet;
    using Base::packed;
    using Base::position;
    using Base::SLOTS;

    /* ---- solution: a lane owns a right-hand side, x(p) = x[side p] ---- */

    static constexpr int SIDE = LANES + 1; /* the most that `side` can be */
    static constexpr int SIDES = SIDE * N;
    /* Rows a lane has in registers at once. */
    static constexpr int WIDTH = N <= 8 || Traits<T>::complex ? 4 : 8;

    /* The diagonal becomes divisors. Bit p of the result: that of position p is steep.
     * Meets at its end. */
    BL_HD unsigned prepare_diagonal() const
    {
        unsigned steeps = 0;
        if constexpr (Traits<T>::complex) {
            BL_UNROLL
            for (int s = 0; s < SLOTS; s++) {
                int p = position(s);
                bool steep = false;
                if (p < N)
                    packed[at(p, p)].x = prepared(packed[at(p, p)].x, steep);
                steeps |= ballot(steep) << (G * s) % 32;
            }
            meet();
        }
        return steeps;
    }

    BL_HD T divided(T x, int k, unsigned steeps, bool conjugate) const
    {
        return quotient(x, packed[at(k, k)].x, steeps >> k & 1, conjugate);
    }

    /* x := L^-1 x, or U'^-1 x for TURNED; L skips zeros of x. Begins at a position that
     * is a multiple of WIDTH. */
    template <bool TURNED>
    BL_HD void forward(Cell<T> *x, int side, unsigned steeps, int begin) const
    {
        unsigned zeros = 0; /* bit p: x(p) was zero before the division */
        BL_ROLLED
        for (int first = begin; first < N; first += WIDTH) {
            T y[WIDTH];
            BL_UNROLL
            for (int i = 0; i < WIDTH; i++) {
                y[i] = x[side * (first + i)].x;
                if (TURNED)
                    y[i] = times_one(y[i]);
            }
            const Cell<T> *rows = packed + at(first, 0);
            BL_ROLLED
            for (int k = begin; k < first; k++) {
                if (!TURNED && zeros >> k & 1)
                    continue;
                T xk = x[side * k].x;
                BL_UNROLL
                for (int i = 0; i < WIDTH; i++) {
                    T l = rows[first * i + at(i, 0) + k].x;
                    y[i] = sub(y[i], mul(xk, TURNED ? conj(l) : l));
                }
            }
            BL_UNROLL
            for (int k = 0; k < WIDTH; k++) {
                if (!holds(first + k))
                    y[k] = from_real<T>(0);
                const bool skip = !TURNED && is_zero(y[k]);
                zeros |= unsigned(skip) << (first + k);
                if (!skip && holds(first + k))
                    y[k] = divided(y[k], first + k, steeps, TURNED);
                BL_UNROLL
                for (int i = k + 1; i < WIDTH; i++) {
                    T l = rows[first * i + at(i, 0) + first + k].x;
                    if (!skip)
                        y[i] = sub(y[i], mul(y[k], TURNED ? conj(l) : l));
                }
            }
            BL_UNROLL
            for (int i = 0; i < WIDTH; i++)
                x[side * (first + i)].x = y[i];
        }
    }

    /* x := U^-1 x, zeros of x skipped. */
    BL_HD void backward(Cell<T> *x, int side, unsigned steeps) const
    {
        unsigned zeros = 0;
        BL_ROLLED
        for (int first = N - WIDTH; first >= 0; first -= WIDTH) {
            T y[WIDTH];
            BL_UNROLL
            for (int i = 0; i < WIDTH; i++)
                y[i] = x[side * (first + i)].x;
            BL_ROLLED
            for (int k = N - 1; k >= first + WIDTH; k--) {
                if (zeros >> k & 1)
                    continue;
                T xk = x[side * k].x;
                const Cell<T> *row = packed + at(k, first);
                BL_UNROLL
                for (int i = 0; i < WIDTH; i++)
                    y[i] = sub(y[i], mul(xk, row[i].x));
            }
            BL_UNROLL
            for (int k = WIDTH - 1; k >= 0; k--) {
                if (!holds(first + k))
                    y[k] = from_real<T>(0);
                const bool skip = is_zero(y[k]);
                zeros |= unsigned(skip) << (first + k);
                if (!skip)
                    y[k] = divided(y[k], first + k, steeps, false);
                const Cell<T> *row = packed + at(first + k, first);
                BL_UNROLL
                for (int i = 0; i < k; i++)
                    if (!skip)
                        y[i] = sub(y[i], mul(y[k], row[i].x));
            }
            BL_UNROLL
            for (int i = 0; i < WIDTH; i++)
                x[side * (first + i)].x = y[i];
        }
    }

    /* x := L'^-1 x: netlib lets row i take the product with row i + 1 first, the last to
     * be known, so this is one chain. QUICK: the reciprocals of the diagonal are in the
     * cells behind x's. */
    template <bool QUICK>
    BL_HD void backward_chain(Cell<T> *x, int side, unsigned steeps) const
    {
        BL_ROLLED
        for (int i = N - 1; i >= 0; i--) {
            T sum = times_one(x[side * i].x);
            const Cell<T> *l = packed + at(i + 1, i);
            BL_UNROLL_BY_FOUR
            for (int k = i + 1; k < N; k++) {
                sum = sub(sum, mul(conj(l->x), x[side * k].x));
                l += k + 1;
            }
            if (QUICK)
                sum = quotient(sum, packed[at(i, i)].x, steeps >> i & 1, true,
                               real(x[side * i + 1].x));
            else
                sum = divided(sum, i, steeps, true);
            x[side * i].x = holds(i) ? sum : from_real<T>(0);
        }
    }
};

} // namespace bl
#endif
