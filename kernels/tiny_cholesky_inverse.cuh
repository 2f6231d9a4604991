/* POTRI of order n <= 32: the inverse from a factor in shared memory, in its place.
 *
 * Called by the kernel of tiny_potri.cu. A lane owns a column.
 */
#ifndef BL_TINY_CHOLESKY_INVERSE_CUH
#define BL_TINY_CHOLESKY_INVERSE_CUH

#include "tiny_substitution.cuh"

namespace bl
{

template <class T, int N, int G, bool UPPER>
struct TinyInverter : TinySubstitution<T, N, G, UPPER> {
    using Base = TinySubstitution<T, N, G, UPPER>;
    using Base::at;
    using Base::ballot;
    using Base::Base;
    using Base::group;
    using Base::info;
    using Base::meet;
    using Base::packed;
    using Base::position;
    using Base::prepare_diagonal;
    using Base::SIDE;
    using Base::SLOTS;
    using Base::t;
    using Base::WIDTH;

    /* ---- inverse: a lane owns a column ---- */

    /* The factor becomes the triangle of the inverse: columns of W = L^-1 from the first,
     * each taking the place of L's, which those that follow do not need; likewise those
     * of W' W. U is taken for L: the inverse then comes out conjugated, which is its
     * upper triangle. INFO is the first zero of the diagonal, and then nothing is done.
     * `sides` has SIDES cells. Meets at its end. */
    BL_HD void invert(Cell<T> *sides)
    {
        constexpr int STEP = G < WIDTH ? WIDTH : G;
        unsigned zeros = 0;
        BL_UNROLL
        for (int s = 0; s < SLOTS; s++) {
            int p = position(s);
            bool zero = p < N && is_zero(packed[p < N ? at(p, p) : 0].x);
            zeros |= ballot(zero) << (G * s) % 32;
        }
        if (zeros)
            info = count_bits((zeros & (0 - zeros)) - 1) + 1;
        meet();
        const unsigned steeps = prepare_diagonal();
        Cell<T> *x = sides + group * G + t;
        BL_ROLLED
        for (int column = 0; column < N; column += G) {
            const int j = column + t, begin = column / STEP * STEP;
            BL_ROLLED
            for (int i = begin; i < N; i++)
                x[SIDE * i].x = from_real<T>(i == j ? 1 : 0);
            this->template forward<false>(x, SIDE, steeps, begin);
            meet();
            BL_ROLLED
            for (int i = j; i < N; i++)
                packed[at(i, j)].x = x[SIDE * i].x;
            meet();
        }
        BL_ROLLED
        for (int column = 0; column < N; column += G) {
            const int j = column + t;
            BL_ROLLED
            for (int i = column; i < N; i++)
                x[SIDE * i].x = i >= j ? packed[at(i, j)].x : from_real<T>(0);
            BL_ROLLED
            for (int first = column / WIDTH * WIDTH; first < N; first += WIDTH) {
                T y[WIDTH];
                BL_UNROLL
                for (int i = 0; i < WIDTH; i++)
                    y[i] = from_real<T>(0);
                BL_UNROLL
                for (int k = 0; k < WIDTH; k++) {
                    T xk = first + k < column ? from_real<T>(0) : x[SIDE * (first + k)].x;
                    BL_UNROLL
                    for (int i = 0; i <= k; i++)
                        y[i] = fused(conj(packed[at(first + k, first) + i].x), xk, y[i]);
                }
                BL_ROLLED
                for (int k = first + WIDTH; k < N; k++) {
                    T xk = x[SIDE * k].x;
                    const Cell<T> *row = packed + at(k, first);
                    BL_UNROLL
                    for (int i = 0; i < WIDTH; i++)
                        y[i] = fused(conj(row[i].x), xk, y[i]);
                }
                BL_UNROLL
                for (int i = 0; i < WIDTH; i++)
                    if (first + i >= column)
                        x[SIDE * (first + i)].x =
                            first + i == j ? from_real<T>(real(y[i])) : y[i];
            }
            meet();
            BL_ROLLED
            for (int i = j; i < N; i++)
                packed[at(i, j)].x = x[SIDE * i].x;
            meet();
        }
    }
};

} // namespace bl
#endif
