/* POTRS and POSV of order n <= 32: right-hand sides for a factor in shared memory.
 *
 * Called by the kernel of tiny_posv.cu. One right-hand side is shared out among the lanes
 * of its group, of several a lane owns one.
 */
#ifndef BL_TINY_CHOLESKY_SOLVE_CUH
#define BL_TINY_CHOLESKY_SOLVE_CUH

#include "tiny_substitution.cuh"

namespace bl
{

template <class T, int N, int G, bool UPPER>
struct TinySolver : TinySubstitution<T, N, G, UPPER> {
    using Base = TinySubstitution<T, N, G, UPPER>;
    using Base::anywhere;
    using Base::at;
    using Base::backward;
    using Base::Base;
    using Base::group;
    using Base::GROUPS;
    using Base::holds;
    using Base::least;
    using Base::meet;
    using Base::packed;
    using Base::position;
    using Base::prepare_diagonal;
    using Base::row_at;
    using Base::SLOTS;
    using Base::t;

    /* One right-hand side: a lane owns its rows, and all lanes form each quotient. */

    /* y := L^-1 y, or U'^-1 y; L skips zeros. */
    BL_HD void sweep_down(T (&y)[SLOTS], const Cell<T> *inverse, int side,
                          unsigned steeps) const
    {
        each<0, SLOTS>([&](auto slot) {
            constexpr int FIRST = slot();
            BL_ROLLED
            for (int k = G * FIRST; k < least(N, G * (FIRST + 1)); k++) {
                if (!anywhere(holds(k)))
                    continue;
                T q = from_lane(y[FIRST], group * G + k % G);
                const bool takes = holds(k) && (UPPER || !is_zero(q));
                q = quotient(q, packed[at(k, k)].x, steeps >> k & 1, UPPER,
                             real(inverse[side * k].x));
                BL_UNROLL
                for (int s = FIRST; s < SLOTS; s++) {
                    const int p = position(s);
                    const bool here = (N % G == 0 || p < N) && holds(p) && takes;
                    if (here && p > k) {
                        T l = packed[at(p, k)].x;
                        y[s] = sub(y[s], mul(q, UPPER ? conj(l) : l));
                    }
                    if (s == FIRST && here && p == k)
                        y[s] = q;
                }
            }
        });
    }

    /* y := U^-1 y, zeros skipped. */
    BL_HD void sweep_up(T (&y)[SLOTS], const Cell<T> *inverse, int side,
                        unsigned steeps) const
    {
        each<0, SLOTS>([&](auto slot) {
            constexpr int LAST = SLOTS - 1 - slot();
            BL_ROLLED
            for (int k = least(N, G * (LAST + 1)) - 1; k >= G * LAST; k--) {
                if (!anywhere(holds(k)))
                    continue;
                T q = from_lane(y[LAST], group * G + k % G);
                const bool takes = holds(k) && !is_zero(q);
                q = quotient(q, packed[at(k, k)].x, steeps >> k & 1, false,
                             real(inverse[side * k].x));
                BL_UNROLL
                for (int s = 0; s <= LAST; s++) {
                    const int p = position(s);
                    const bool here = (N % G == 0 || p < N) && holds(p) && takes;
                    if (here && p < k)
                        y[s] = sub(y[s], mul(q, packed[at(k, p)].x));
                    if (s == LAST && here && p == k)
                        y[s] = q;
                }
            }
        });
    }

    BL_HD void solve_one(Cell<T> *x, int side, T *b, unsigned steeps, bool live) const
    {
        T y[SLOTS];
        BL_UNROLL
        for (int s = 0; s < SLOTS; s++) {
            const int p = position(s);
            y[s] = from_real<T>(0);
            if (N % G != 0 && p >= N)
                continue;
            if (live && holds(p))
                y[s] = UPPER ? times_one(b[row_at(p)]) : b[row_at(p)];
            x[side * p + 1].x = from_real<T>(inverse_for(packed[at(p, p)].x));
        }
        meet();
        sweep_down(y, x + 1, side, steeps);
        if constexpr (UPPER) {
            sweep_up(y, x + 1, side, steeps);
        } else {
            BL_UNROLL
            for (int s = 0; s < SLOTS; s++)
                if (N % G == 0 || position(s) < N)
                    x[side * position(s)].x = y[s];
            meet();
            if (live && t == 0)
                this->template backward_chain<true>(x, side, steeps);
            meet();
            BL_UNROLL
            for (int s = 0; s < SLOTS; s++)
                if (N % G == 0 || position(s) < N)
                    y[s] = x[side * position(s)].x;
        }
        BL_UNROLL
        for (int s = 0; s < SLOTS; s++)
            if ((N % G == 0 || position(s) < N) && live && holds(position(s)))
                b[row_at(position(s))] = y[s];
    }

    /* Columns c .. c + G - 1 of B, n x nrhs, to or from the group's cells, a row a lane.
     */
    template <bool TO>
    BL_HD void move(Cell<T> *x, int side, T *b, int64_t ldb, int columns) const
    {
        BL_UNROLL
        for (int s = 0; s < SLOTS; s++) {
            int p = position(s);
            if (G * (s + 1) > N && p >= N)
                continue;
            T *row = b + row_at(p);
            BL_ROLLED
            for (int c = 0; c < columns; c++) {
                if (TO)
                    x[side * p + c].x = holds(p) ? row[c * ldb] : from_real<T>(0);
                else if (holds(p))
                    row[c * ldb] = x[side * p + c].x;
            }
        }
    }

    /* B := (L L')^-1 B or (U' U)^-1 B. `sides` has N sides_for(G, nrhs) cells; all groups
     * of a warp have as many right-hand sides, but only those that are `live` touch them.
     * Not inlined: the factorisation gets its registers as if it were alone. */
    static BL_CALL void solve_apart(const TinySolver m, Cell<T> *sides, T *b, int64_t ldb,
                                    int64_t nrhs, bool live)
    {
        const unsigned steeps = m.prepare_diagonal();
        const int side = sides_for(G, nrhs), most = side / GROUPS;
        Cell<T> *x = sides + m.group * most;
        if (nrhs == 1)
            m.solve_one(x, side, b, steeps, live);
        else
            m.solve(x, side, most, b, ldb, nrhs, steeps, live);
    }

    /* `most` of them at a time. */
    BL_HD void solve(Cell<T> *x, int side, int most, T *b, int64_t ldb, int64_t nrhs,
                     unsigned steeps, bool live) const
    {
        for (int64_t c = 0; c < nrhs; c += most) {
            int columns = nrhs - c < most ? int(nrhs - c) : most;
            if (live)
                move<true>(x, side, b + c * ldb, ldb, columns);
            meet();
            if (live && t < columns) {
                this->template forward<UPPER>(x + t, side, steeps, 0);
                if (UPPER)
                    backward(x + t, side, steeps);
                else
                    this->template backward_chain<false>(x + t, side, steeps);
            }
            meet();
            if (live)
                move<false>(x, side, b + c * ldb, ldb, columns);
            meet();
        }
    }
};

} // namespace bl
#endif
