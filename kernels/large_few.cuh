/* A large triangular solve with few right-hand sides, all of it in one kernel.
 *
 * Called by the kernel of large_few.cu and by test/host_large_few.cc, where threads are
 * fibers. Every element takes its products one by one in ascending order, as xTRSM has
 * it, so that netlib's bits come out; FUSED is for fast arithmetic.
 *
 * A thread block owns ROWS rows, a warp a strip of 32 of them, a lane a row. A
 * warp takes the products with the columns left of its strip as their solutions become
 * known and then solves with its triangle, a leaf of few columns at a time, for which all
 * lanes go through the same chain. What is solved is shown to the warps of the block in
 * shared memory, at named barriers, and to the other blocks in `shown`, where absent()
 * means that there is nothing yet: the number is its own flag. The matrix comes
 * through shared memory long before its products can be taken: what takes time is the
 * chain from row to row.
 *
 * Why waiting ends, however few blocks are there at once and whatever else runs: a block
 * draws a number when it begins, and by that gets its rows. It waits for rows of lower
 * numbers only, whose blocks have begun before and keep their place until they end; the
 * lowest number still at work waits for nobody.
 */
#ifndef BL_LARGE_FEW_CUH
#define BL_LARGE_FEW_CUH

#include "absent.cuh"
#include "blas.cuh"
#include "large_few.h"
#include "tiny_pieces.cuh"
#ifdef __CUDACC__
#    include "cluster.cuh"
#    include "large_fetch.cuh"
#endif

namespace bl
{

BL_HD Bits<float> look_at(const Bits<float> *p)
{
    Bits<float> x;
#ifdef __CUDACC__
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
#else
    x = *p;
#endif
    return x;
}

BL_HD Bits<double> look_at(const Bits<double> *p)
{
    Bits<double> x;
#ifdef __CUDACC__
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(x) : "l"(p) : "memory");
#else
    x = *p;
#endif
    return x;
}

BL_HD void put_at(Bits<float> *p, Bits<float> x)
{
#ifdef __CUDACC__
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
#else
    *p = x;
#endif
}

BL_HD void put_at(Bits<double> *p, Bits<double> x)
{
#ifdef __CUDACC__
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(x) : "memory");
#else
    *p = x;
#endif
}

template <class R>
BL_HD R look(const R *p)
{
    return from_bits<R>(look_at((const Bits<R> *)p));
}

template <class R>
BL_HD Complex<R> look(const Complex<R> *p)
{
    return {look(&p->re), look(&p->im)};
}

/* A number that other blocks wait for. */
template <class R>
BL_HD bool is_shown(R x)
{
    return !is_absent(x);
}

template <class R>
BL_HD bool is_shown(Complex<R> x)
{
    return is_shown(x.re) & is_shown(x.im);
}

template <class R>
BL_HD void show(R *p, R x)
{
    put_at((Bits<R> *)p, bits_of(present(x)));
}

template <class R>
BL_HD void show(Complex<R> *p, Complex<R> x)
{
    show(&p->re, x.re);
    show(&p->im, x.im);
}

/* A number on the diagonal, ready to be divided by. */
template <class T>
struct Diagonal {
    T d;
    Real<T> inverse;
    bool steep;
};

/* Whether a number is in the range of quick_quotient(), zero left out; whether it is
 * zero. On the device by its bits, which does not take the arithmetic's time. */
BL_HD bool is_usual(float x)
{
    return is_plain(x) & (x != 0);
}

BL_HD bool is_usual(double x)
{
#ifdef __CUDA_ARCH__
    return (unsigned(__double2hiint(x)) & 0x7fffffffu) - ((1023u - 400u) << 20) <
           (800u << 20);
#else
    return is_plain(x) & (x != 0);
#endif
}

BL_HD bool is_nothing(float x)
{
    return x == 0;
}

BL_HD bool is_nothing(double x)
{
#ifdef __CUDA_ARCH__
    return (unsigned(__double2hiint(x)) << 1 | unsigned(__double2loint(x))) == 0;
#else
    return x == 0;
#endif
}

template <class R>
BL_HD bool is_nothing(Complex<R> x)
{
    return is_nothing(x.re) & is_nothing(x.im);
}

/* No zeros, but the parts of complex numbers: a quotient is not zero either. */
template <class R>
BL_HD R over_quickly(R x, const Diagonal<R> &y, bool &fine)
{
    fine &= is_usual(x);
    return quick_quotient(x, y.d, y.inverse);
}

template <class R>
BL_HD R part_over(R x, R y, R inverse, bool &fine)
{
    fine &= is_plain(x);
    return quick_signed_quotient(x, y, inverse);
}

template <class R>
BL_HD Complex<R> over_quickly(Complex<R> x, const Diagonal<Complex<R>> &y, bool &fine)
{
    const R u = y.steep ? x.im : x.re, v = y.steep ? x.re : x.im, p = mul(u, y.d.re);
    const R den = y.d.im;
    return {part_over(add(mul(v, y.d.re), u), den, y.inverse, fine),
            part_over(sub(y.steep ? p : v, y.steep ? v : p), den, y.inverse, fine)};
}

template <class T, int SIDES_, bool FUSED>
struct FewSides {
    static constexpr int SIDES = SIDES_; /* of a group */
    static constexpr int STRIP = 32, STRIPS = 4, ROWS = STRIP * STRIPS, THREADS = ROWS;
    static constexpr int CHUNK = 8; /* columns that come, and are shown, at once */
    static constexpr int CHUNKS = STRIP / CHUNK;
    static constexpr int LEAF = Traits<T>::complex ? 4 : 8;
    static constexpr int STAGES = sizeof(T) <= 8 ? 8 : 4;
    static constexpr int PITCH = STRIP + 16 / int(sizeof(T));

    /* Of a warp: chunks of its rows, on their way; its triangle, element (i, k) at k
     * PITCH + i; the diagonal; solutions of 32 columns that other blocks have shown. Of
     * the block: the solutions of its rows, and the number that it has drawn. */
    struct Warp {
        alignas(16) T chunks[STAGES][CHUNK * PITCH];
        T triangle[STRIP * PITCH];
        Diagonal<T> divisor[STRIP];
        T known[STRIP * SIDES];
    };
    struct Memory {
        Warp warp[STRIPS];
        T own[ROWS * SIDES];
        unsigned number;
    };

    static BL_HD void meet_warp()
    {
#ifdef __CUDACC__
        __syncwarp();
#else
        host_warp::meet();
#endif
    }

    static BL_HD unsigned ballot(bool yes)
    {
#ifdef __CUDACC__
        return __ballot_sync(~0u, yes);
#else
        return host_warp::ballot(yes);
#endif
    }

    static BL_HD void rest()
    {
#ifndef __CUDACC__
        host_warp::rest();
#endif
    }

    /* c - a b */
    static BL_HD T minus(T c, T a, T b)
    {
        return FUSED ? fused(negative(a), b, c) : sub(c, mul(a, b));
    }

    const LargeFew<T> &s;
    Memory &m;
    const int warp, lane;
    const int64_t block_first; /* of the block's rows, counted as the solve goes */
    const int64_t first;       /* of the warp's */
    const int first_side;
    T *const b, *const shown; /* the lane's row */
    T x[SIDES];               /* and what becomes of it */

    /* Neighbouring numbers have the same rows for other right-hand sides. */
    BL_HD FewSides(const LargeFew<T> &job, Memory &memory, int thread)
        : s(job), m(memory), warp(thread / 32), lane(thread % 32),
          block_first(int64_t(memory.number / job.groups) * ROWS),
          first(block_first + warp * STRIP),
          first_side(int(memory.number % job.groups) * SIDES),
          b(job.b + (block_first + thread) * job.step),
          shown(job.shown + first_side * job.n + block_first + thread)
    {
    }

    BL_HD Warp &mine() const
    {
        return m.warp[warp];
    }

    /* A group that is not full has its last right-hand side more than once. */
    BL_HD T *side(int r) const
    {
        return b + (SIDES == 1 ? 0 : least(first_side + r, s.nrhs - 1) * s.ldb);
    }

    /* CHUNK columns of the warp's rows from column k0 on, above the diagonal too; a fetch
     * takes neighbours in memory: turned, 32 / CHUNK rows of all columns, else a column.
     * The last row or column serves for those that are not there. */
    BL_HD void fetch_columns(int64_t k0, T *to) const
    {
        constexpr int FEW = 32 / CHUNK;
        const int i = s.turned ? lane / CHUNK : lane, k = s.turned ? lane % CHUNK : 0,
                  down = s.turned ? FEW : 0;
        const int64_t rows = s.n - first, step = s.turned ? FEW * s.down : s.across;
        const T *from = s.a + first * s.down + (k0 + k) * s.across;
        T *at = to + k * PITCH + i;
        if (rows >= STRIP) {
            from += i * s.down;
            BL_UNROLL
            for (int q = 0; q < CHUNK; q++)
                fetch(at + q * (s.turned ? FEW : PITCH), from + q * step, true);
        } else {
            BL_ROLLED
            for (int q = 0; q < CHUNK; q++)
                fetch(at + q * (s.turned ? FEW : PITCH),
                      s.a + (first + least(i + q * down, rows - 1)) * s.down +
                          least(k0 + k + (s.turned ? 0 : q), s.n - 1) * s.across,
                      true);
        }
    }

    BL_HD void fetch_chunk(int64_t chunk) const
    {
        if (chunk * CHUNK < first)
            fetch_columns(chunk * CHUNK, mine().chunks[chunk % STAGES]);
        fetched_so_far();
    }

    BL_HD T used(T a) const
    {
        if constexpr (Traits<T>::complex)
            a.im = s.turned ? -a.im : a.im;
        return a;
    }

    /* The triangle is there. True: solve_quickly() will do, for which rows have been
     * divided by their diagonal where FUSED. */
    BL_HD bool prepare() const
    {
        T *row = mine().triangle + lane;
        const bool there = first + lane < s.n;
        T d = there && !s.unit ? used(row[lane * PITCH]) : one<T>();
        Diagonal<T> &divisor = mine().divisor[lane];
        divisor.d = prepared(d, divisor.steep);
        divisor.inverse = inverse_for(divisor.d);
        const T inverse = FUSED ? div(one<T>(), d) : d;
        bool quick = divisor.inverse != 0;
        BL_ROLLED
        for (int k = 0; k < lane; k++) {
            const T a = used(row[k * PITCH]);
            row[k * PITCH] = a;
            if (FUSED)
                quick &= is_finite(mul(a, inverse)) | !is_finite(a);
        }
        quick = ballot(!quick) == 0;
        if (FUSED && quick) {
            BL_ROLLED
            for (int k = 0; k < lane; k++)
                row[k * PITCH] = mul(row[k * PITCH], inverse);
            row[lane * PITCH] = inverse;
        }
        return quick;
    }

    /* Whether products with a zero of the solution are left out. */
    BL_HD bool skips() const
    {
        return !s.turned;
    }

    BL_HD void take(const T *chunk, const T *y)
    {
        const unsigned zeros =
            ballot(lane < CHUNK * SIDES && is_zero(y[lane % (CHUNK * SIDES)]));
        if (!(skips() && zeros)) {
            BL_UNROLL
            for (int k = 0; k < CHUNK; k++) {
                const T a = used(chunk[k * PITCH + lane]);
                BL_UNROLL
                for (int r = 0; r < SIDES; r++)
                    x[r] = minus(x[r], y[k * SIDES + r], a);
            }
            return;
        }
        BL_ROLLED
        for (int k = 0; k < CHUNK; k++) {
            const T a = used(chunk[k * PITCH + lane]);
            BL_UNROLL
            for (int r = 0; r < SIDES; r++)
                if (!is_zero(y[k * SIDES + r]))
                    x[r] = minus(x[r], y[k * SIDES + r], a);
        }
    }

    /* The columns k .. k + LEAF - 1 of the triangle, for any numbers. */
    BL_HD void solve_carefully(int k)
    {
        BL_ROLLED
        for (int j = k; j < k + LEAF; j++) {
            const Diagonal<T> &d = mine().divisor[j];
            const T a = mine().triangle[j * PITCH + lane];
            BL_UNROLL
            for (int r = 0; r < SIDES; r++) {
                T y = from_lane(x[r], j);
                const bool skipped = skips() && is_zero(y);
                if (!s.unit && !skipped)
                    y = quotient(y, d.d, d.steep, false);
                if (lane == j)
                    x[r] = y;
                if (lane > j && !skipped)
                    x[r] = minus(x[r], y, a);
            }
        }
    }

    /* What a leaf needs of the triangle. */
    struct Leaf {
        T l[LEAF][LEAF];
        Diagonal<T> d[LEAF];
    };

    template <bool DIVIDES>
    BL_HD void get(Leaf &leaf, int k) const
    {
        BL_UNROLL
        for (int j = 0; j < LEAF; j++) {
            BL_UNROLL
            for (int i = j + 1; i < LEAF; i++)
                leaf.l[i][j] = mine().triangle[(k + j) * PITCH + k + i];
            if (DIVIDES)
                leaf.d[j] = mine().divisor[k + j];
        }
    }

    /* The same for most numbers; without DIVIDES there are ones on the diagonal. False:
     * nothing has been done. With one right-hand side all lanes find the same; with more
     * a lane solves for one of them. */
    template <bool DIVIDES>
    BL_HD bool solve_quickly(const Leaf &leaf, int k)
    {
        const T *below = mine().triangle + k * PITCH + lane;
        T *own = m.own + (warp * STRIP + k) * SIDES;
        T y[LEAF];
        if constexpr (SIDES == 1) {
            BL_UNROLL
            for (int j = 0; j < LEAF; j++)
                y[j] = from_lane(x[0], k + j);
        } else {
            if (is_in_leaf(k))
                BL_UNROLL
            for (int r = 0; r < SIDES; r++)
                own[(lane - k) * SIDES + r] = x[r];
            meet_warp();
            BL_UNROLL
            for (int j = 0; j < LEAF; j++)
                y[j] = own[j * SIDES + lane % SIDES];
            meet_warp();
        }
        /* A real quotient is not zero, see above. */
        const bool no_zero = skips() & (Traits<T>::complex | !DIVIDES);
        bool fine = true;
        BL_UNROLL
        for (int j = 0; j < LEAF; j++) {
            if (DIVIDES)
                y[j] = over_quickly(y[j], leaf.d[j], fine);
            if (!FUSED)
                fine &= !(no_zero & is_nothing(y[j]));
            BL_UNROLL
            for (int i = j + 1; i < LEAF; i++)
                y[i] = minus(y[i], y[j], leaf.l[i][j]);
        }
        T z[SIDES];
        BL_UNROLL
        for (int r = 0; r < SIDES; r++)
            z[r] = x[r];
        if constexpr (SIDES == 1) {
            BL_UNROLL
            for (int j = 0; j < LEAF; j++)
                z[0] = minus(z[0], y[j], below[j * PITCH]);
            T solved = y[0];
            BL_UNROLL
            for (int j = 1; j < LEAF; j++)
                solved = lane == k + j ? y[j] : solved;
            z[0] = is_in_leaf(k) ? solved : z[0];
        } else {
            if (lane < SIDES)
                BL_UNROLL
            for (int j = 0; j < LEAF; j++)
                own[j * SIDES + lane] = y[j];
            meet_warp();
            T solved[SIDES];
            BL_UNROLL
            for (int r = 0; r < SIDES; r++)
                solved[r] = own[(is_in_leaf(k) ? lane - k : 0) * SIDES + r];
            BL_UNROLL
            for (int j = 0; j < LEAF; j++)
                BL_UNROLL
            for (int r = 0; r < SIDES; r++)
                z[r] = minus(z[r], own[j * SIDES + r], below[j * PITCH]);
            BL_UNROLL
            for (int r = 0; r < SIDES; r++)
                z[r] = is_in_leaf(k) ? solved[r] : z[r];
        }
        if (ballot(!fine))
            return false;
        BL_UNROLL
        for (int r = 0; r < SIDES; r++)
            x[r] = lane >= k ? z[r] : x[r];
        return true;
    }

    BL_HD bool is_in_leaf(int k) const
    {
        return lane >= k && lane < k + LEAF;
    }

    /* The warp's rows from k on, LEAF of them, are solved for. */
    BL_HD void publish(int k) const
    {
        const bool there = is_in_leaf(k) && first + lane < s.n;
        meet_warp();
        if (there)
            BL_UNROLL
        for (int r = 0; r < SIDES; r++) {
            m.own[(warp * STRIP + lane) * SIDES + r] = x[r];
            show(shown + r * s.n, x[r]);
        }
        if ((k + LEAF) % CHUNK == 0)
            arrive(warp, k / CHUNK);
        if (there)
            BL_UNROLL
        for (int r = 0; r < SIDES; r++)
            if (SIDES == 1 || first_side + r < s.nrhs)
                *side(r) = x[r];
    }

    /* A barrier for each chunk of each strip that later ones wait for, and how many
     * threads meet there. */
    static BL_HD int barrier_of(int strip, int chunk)
    {
        return 1 + strip * CHUNKS + chunk;
    }

    BL_HD int meeting(int strip) const
    {
        const int64_t strips = (s.n - block_first + STRIP - 1) / STRIP;
        return (int(strips < STRIPS ? strips : STRIPS) - strip) * 32;
    }

    BL_HD void arrive(int strip, int chunk) const
    {
        const int threads = meeting(strip);
        if (threads == 32)
            return;
#ifdef __CUDACC__
        cluster::come(barrier_of(strip, chunk), threads);
#else
        host_warp::arrive_at(barrier_of(strip, chunk), threads);
#endif
    }

    BL_HD void await(int strip, int chunk) const
    {
#ifdef __CUDACC__
        cluster::await(barrier_of(strip, chunk), meeting(strip));
#else
        host_warp::meet_at(barrier_of(strip, chunk), meeting(strip));
#endif
    }

    /* What other blocks have shown, or not yet, of column k0 + lane. */
    BL_HD void ask(int64_t k0, T (&y)[SIDES]) const
    {
        BL_UNROLL
        for (int r = 0; r < SIDES; r++)
            y[r] = look(s.shown + (first_side + r) * s.n + k0 + lane);
    }

    BL_HD unsigned have(const T (&y)[SIDES]) const
    {
        bool all = true;
        meet_warp(); /* nobody reads the former ones any more */
        BL_UNROLL
        for (int r = 0; r < SIDES; r++) {
            all &= is_shown(y[r]);
            mine().known[lane * SIDES + r] = y[r];
        }
        const unsigned columns = ballot(all);
        meet_warp();
        return columns;
    }

    /* The products with all columns left of the warp's rows. */
    BL_HD void take_all()
    {
        T next[SIDES] = {};
        if (block_first > 0)
            ask(0, next);
        BL_ROLLED
        for (int64_t k0 = 0; k0 < first; k0 += STRIP) {
            const bool own = k0 >= block_first;
            const int strip = int(k0 - block_first) / STRIP; /* where it is our own */
            unsigned columns = 0;
            if (!own) {
                columns = have(next);
                if (k0 + STRIP < block_first)
                    ask(k0 + STRIP, next);
            }
            BL_ROLLED
            for (int c = 0; c < CHUNKS; c++) {
                const int64_t chunk = k0 / CHUNK + c;
                await_fetched<STAGES - 2>();
                meet_warp(); /* the chunk is there, and its predecessor is done with */
                fetch_chunk(chunk + STAGES - 1);
                const T *y = mine().known + c * CHUNK * SIDES;
                if (own) {
                    await(strip, c);
                    y = m.own + (strip * STRIP + c * CHUNK) * SIDES;
                } else {
                    const unsigned wanted = ((1u << CHUNK) - 1) << c * CHUNK;
                    while ((columns & wanted) != wanted) {
                        T again[SIDES];
                        rest();
                        ask(k0, again);
                        columns = have(again);
                    }
                }
                take(mine().chunks[chunk % STAGES], y);
            }
        }
    }

    BL_HD void solve()
    {
        BL_ROLLED
        for (int k = 0; k < STRIP; k += CHUNK)
            fetch_columns(first + k, mine().triangle + k * PITCH);
        fetched_so_far();
        BL_ROLLED
        for (int q = 0; q < STAGES - 1; q++)
            fetch_chunk(q);
        BL_UNROLL
        for (int r = 0; r < SIDES; r++) {
            x[r] = from_real<T>(0);
            if (first + lane < s.n)
                x[r] = *side(r);
            if (s.turned && !FUSED)
                x[r] = times_one(x[r]); /* netlib's alpha */
        }
        await_fetched<STAGES - 1>();
        meet_warp();
        const bool quick = prepare();
        meet_warp();
        take_all();
        if (FUSED && quick) {
            const T inverse = mine().triangle[lane * PITCH + lane];
            BL_UNROLL
            for (int r = 0; r < SIDES; r++)
                x[r] = mul(x[r], inverse);
        }
        if (FUSED || s.unit)
            solve_triangle<false>(quick);
        else
            solve_triangle<true>(quick);
    }

    /* The next leaf's part of the triangle comes while the chain of one is under way. */
    template <bool DIVIDES>
    BL_HD void solve_triangle(bool quick)
    {
        Leaf leaf, next;
        get<DIVIDES>(leaf, 0);
        BL_ROLLED
        for (int k = 0; k < STRIP; k += 2 * LEAF) {
            get<DIVIDES>(next, k + LEAF);
            solve_leaf<DIVIDES>(leaf, k, quick);
            if (k + 2 * LEAF < STRIP)
                get<DIVIDES>(leaf, k + 2 * LEAF);
            solve_leaf<DIVIDES>(next, k + LEAF, quick);
        }
    }

    template <bool DIVIDES>
    BL_HD void solve_leaf(const Leaf &leaf, int k, bool quick)
    {
        if (!quick || !solve_quickly<DIVIDES>(leaf, k))
            solve_carefully(k);
        publish(k);
    }

    /* All threads of the block. */
    BL_HD void run()
    {
        if (first < s.n)
            solve();
    }
};

} // namespace bl
#endif
