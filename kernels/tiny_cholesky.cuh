/* Cholesky factorisation of matrices of order n <= 32, each read once and written once.
 *
 * Called by the kernels of tiny_potrf.cu and tiny_posv.cu, which own the launch, and by
 * test/host_tiny_cholesky.cc, where a warp is 32 fibers. A group of G lanes of a warp
 * works on a matrix. A lane owns the rows t, t + G, ... of L (the columns of U) in
 * registers; the triangle lies packed in shared memory, L(i,k) or U(k,i) at i (i + 1) / 2
 * + k, where the input waits, finished columns of L are read by all and the result is
 * collected. Nothing may be read or written in global memory outside the triangle, nor
 * depend on what the other groups of the warp hold. Netlib's bits depend on the order of
 * every operation.
 */
#ifndef BL_TINY_CHOLESKY_CUH
#define BL_TINY_CHOLESKY_CUH

#include <float.h>
#include "team.cuh"

#ifdef __CUDACC__
#    define BL_UNROLL_BY_FOUR _Pragma("unroll 4")
#    define BL_ROLLED _Pragma("unroll 1")
#else
#    define BL_ROLLED
#    define BL_UNROLL_BY_FOUR
#endif

namespace bl
{

/* ---- pieces ---- */

/* A number in one access, complex or not. */
template <class T>
struct alignas(sizeof(T)) Cell {
    T x;
};

/* Where an address allows. Written out for the device: as a structure, what many of them
 * are loaded into would not stay in registers. */
template <bool WHOLE, class R>
BL_HD R read(const R *p)
{
    return *p;
}

template <bool WHOLE, class R>
BL_HD Complex<R> read(const Complex<R> *p)
{
#ifdef __CUDACC__
    if constexpr (WHOLE && sizeof(R) == 4) {
        float2 v = *(const float2 *)p;
        return {v.x, v.y};
    } else if constexpr (WHOLE) {
        double2 v = *(const double2 *)p;
        return {v.x, v.y};
    }
#endif
    return {p->re, p->im};
}

/* An array of structures would not stay in registers either. */
template <class R>
BL_HD void to_parts(R x, R (&p)[1])
{
    p[0] = x;
}

template <class R>
BL_HD void to_parts(Complex<R> x, R (&p)[2])
{
    p[0] = x.re;
    p[1] = x.im;
}

template <class T>
BL_HD T from_parts(const Real<T> *p)
{
    if constexpr (Traits<T>::complex)
        return {p[0], p[1]};
    else
        return p[0];
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

BL_HD bool is_finite(float x)
{
    return fabsf(x) <= FLT_MAX;
}

BL_HD bool is_finite(double x)
{
    return fabs(x) <= DBL_MAX;
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

/* x / (y + 0i)' as Smith's rule has it. */
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

/* ---- one matrix ---- */

/* Lanes that a matrix of order N gets: few enough that not all of them wait for one
 * pivot, so many that its rows fit their registers and that they read whole sectors. */
template <class T>
constexpr int lanes_of(int N)
{
    return sizeof(T) == 16 ? (N <= 8 ? 4 : N <= 16 ? 8 : 16) : N <= 16 ? 4 : 8;
}

/* N: the order the code is for, n <= N. U is factored in halves whose sums are formed
 * apart, and where the halves are depends on n. But halving n <= N never leaves more than
 * halving N does, so the tree of n fits into the tree of N: rows go to `positions` 0 ..
 * N-1 in their order, some of which stay free and behave as rows of the unit matrix. L,
 * and whatever is no factorisation, leaves the last positions free.
 */
template <class T, int N, int G, bool UPPER>
struct TinyCholesky {
    static constexpr int SLOTS = (N + G - 1) / G; /* positions a lane owns: t + G s */
    static constexpr int GROUPS = LANES / G;
    /* Cells between a group's triangle and the next: no two groups meet in a bank. */
    static constexpr int PITCH =
        GROUPS == 1 ? N * (N + 1) / 2
                    : N * (N + 1) / 2 + (G + 32 - N * (N + 1) / 2 % 32) % 32;
    using R = Real<T>;
    static constexpr int WORDS = sizeof(T) / sizeof(R);

    int t;            /* the lane in its group */
    int group;        /* the group in its warp */
    Cell<T> *packed;  /* the group's triangle */
    unsigned taken;   /* bit p: position p holds a row */
    int info = 0;     /* 1 + the first position where the matrix is not definite */
    bool odd = false; /* L met NaN or Inf: netlib's result can be another */

    BL_HD TinyCholesky(int lane, Cell<T> *warp_packed)
        : t(lane % G), group(lane / G), packed(warp_packed + lane / G * PITCH)
    {
    }

    /* Bits of the group's lanes that say yes. */
    BL_HD unsigned ballot(bool yes) const
    {
#ifdef __CUDACC__
        unsigned all = __ballot_sync(~0u, yes);
#else
        unsigned all = host_warp::ballot(yes);
#endif
        return G == 32 ? all : all >> (group * G) & ((1u << G % 32) - 1);
    }

    /* Does any lane of the warp, not only of the group, say yes. */
    static BL_HD bool anywhere(bool yes)
    {
#ifdef __CUDACC__
        return __any_sync(~0u, yes);
#else
        return host_warp::ballot(yes) != 0;
#endif
    }

    static BL_HD void meet()
    {
#ifdef __CUDACC__
        __syncwarp();
#else
        host_warp::meet();
#endif
    }

    static BL_HD constexpr int least(int x, int y)
    {
        return x < y ? x : y;
    }

    BL_HD int position(int s) const
    {
        return t + G * s;
    }

    static BL_HD constexpr int at(int i, int k)
    {
        return i * (i + 1) / 2 + k;
    }

    BL_HD bool holds(int p) const
    {
        return taken >> p & 1;
    }

    /* The row of the matrix at position p. */
    BL_HD int row_at(int p) const
    {
        return count_bits(taken & ((1u << p) - 1));
    }

    BL_HD void take_first(int n)
    {
        taken = n >= 32 ? ~0u : (1u << n) - 1;
    }

    /* Go down the tree of N with that of n to the position: is there a row? */
    static BL_HD bool reached(int n, int p)
    {
        int size = N;
        while (size > 1) {
            int half = size / 2, left = n / 2;
            bool right = p >= half;
            p -= right ? half : 0;
            size = right ? size - half : half;
            n = right ? n - left : left;
        }
        return n > 0;
    }

    BL_HD void take_by_halves(int n)
    {
        taken = 0;
        BL_UNROLL
        for (int s = 0; s < SLOTS; s++) {
            unsigned bits = ballot(position(s) < N && reached(n, position(s)));
            taken |= bits << (G * s) % 32;
        }
    }

    /* Memory is read and written with a row a lane, whichever the triangle. */
    static BL_HD bool inside(bool upper, int i, int j)
    {
        return i < N && (upper ? i <= j : i >= j);
    }
    /* No lane of the slot has anything of column j, known beforehand. */
    static BL_HD constexpr bool outside(bool upper, int s, int j)
    {
        return upper ? G * s > j : G * (s + 1) <= j;
    }

    template <bool UP, bool WHOLE>
    BL_HD void fetch_all(const T *a, int64_t lda)
    {
        R x[SLOTS][N][WORDS];
        int row[SLOTS];
        BL_UNROLL
        for (int s = 0; s < SLOTS; s++)
            row[s] = row_at(position(s) % 32);
        BL_UNROLL
        for (int j = 0; j < N; j++) {
            const T *column = a + row_at(j) * lda;
            BL_UNROLL
            for (int s = 0; s < SLOTS; s++) {
                if (outside(UP, s, j))
                    continue;
                int i = position(s);
                T y = from_real<T>(i == j ? 1 : 0);
                if (inside(UP, i, j) && holds(i) && holds(j))
                    y = read<WHOLE>(column + row[s]);
                to_parts(y, x[s][j]);
            }
        }
        BL_UNROLL
        for (int j = 0; j < N; j++)
            BL_UNROLL
        for (int s = 0; s < SLOTS; s++) {
            int i = position(s);
            if (!outside(UP, s, j) && inside(UP, i, j))
                packed[UP ? at(j, i) : at(i, j)].x = from_parts<T>(x[s][j]);
        }
    }

    template <bool UP, bool WHOLE>
    BL_HD void put_all(T *a, int64_t lda) const
    {
        int row[SLOTS];
        BL_UNROLL
        for (int s = 0; s < SLOTS; s++)
            row[s] = row_at(position(s) % 32);
        BL_UNROLL
        for (int j = 0; j < N; j++) {
            T *column = a + row_at(j) * lda;
            BL_UNROLL
            for (int s = 0; s < SLOTS; s++) {
                int i = position(s);
                if (outside(UP, s, j) || !inside(UP, i, j) || !holds(i) || !holds(j))
                    continue;
                T x = packed[UP ? at(j, i) : at(i, j)].x;
                T *p = column + row[s];
                if (WHOLE)
                    ((Cell<T> *)p)->x = x;
                else
                    *p = x;
            }
        }
    }

    static BL_HD bool is_whole(const T *p)
    {
        return !Traits<T>::complex || (uintptr_t)p % sizeof(T) == 0;
    }

    /* The triangle to shared memory. The caller meets, before and after. */
    template <bool UP>
    BL_HD void fetch(const T *a, int64_t lda)
    {
        if (!Traits<T>::complex || is_whole(a))
            fetch_all<UP, true>(a, lda);
        else
            fetch_all<UP, !Traits<T>::complex>(a, lda);
    }

    /* And back. The caller has met. */
    template <bool UP>
    BL_HD void put(T *a, int64_t lda) const
    {
        if (!Traits<T>::complex || is_whole(a))
            put_all<UP, true>(a, lda);
        else
            put_all<UP, !Traits<T>::complex>(a, lda);
    }

    /* ---- factorisation: x[s][k] is L(position(s), k) or U(k, position(s)) ---- */

    using Rows = R[SLOTS][N][WORDS];

    /* Positions F .. E-1 hold a row. */
    template <int F, int E>
    BL_HD bool any() const
    {
        return taken >> F & ((2u << (E - F - 1)) - 1);
    }

    /* Columns M .. E-1 are this lane's in slot s. */
    template <int M, int E>
    BL_HD bool owns(int s) const
    {
        int p = position(s);
        return G * (s + 1) > M && G * s < E && (G * s >= M || p >= M) &&
               (G * (s + 1) <= E || p < E);
    }

    /* U, rows and columns M .. E-1: the sum of the products from the left half is formed
     * from zero, and the element waits. Its negative, rather, so that all products are
     * subtracted. FRESH: it waits there already. */
    template <int M, int E, bool FRESH>
    BL_HD void put_aside(Rows &x)
    {
        each<M / G, (E + G - 1) / G>([&](auto slot) {
            constexpr int s = slot();
            if (owns<M, E>(s))
                each<M, least(E, G * (s + 1))>([&](auto row) {
                    constexpr int i = row();
                    if (!FRESH && position(s) >= i)
                        packed[at(position(s), i)].x = from_parts<T>(x[s][i]);
                    to_parts(from_real<T>(0), x[s][i]);
                });
        });
    }

    template <int M, int E>
    BL_HD void take_back(Rows &x)
    {
        each<M / G, (E + G - 1) / G>([&](auto slot) {
            constexpr int s = slot();
            const int p = position(s);
            if (owns<M, E>(s))
                each<M, least(E, G * (s + 1))>([&](auto row) {
                    constexpr int i = row();
                    if (p < i)
                        return;
                    T c = packed[at(p, i)].x, sum = from_parts<T>(x[s][i]);
                    if (p == i)
                        to_parts(from_real<T>(add(real(c), real(sum))), x[s][i]);
                    else
                        to_parts(add(times_one(c), times_one(sum)), x[s][i]);
                });
        });
    }

    /* What xTRSM begins with, rows F .. M-1, columns M .. E-1. */
    template <int F, int M, int E>
    BL_HD void begin_solve(Rows &x)
    {
        each<M / G, (E + G - 1) / G>([&](auto slot) {
            constexpr int s = slot();
            if (owns<M, E>(s))
                each<F, M>([&](auto row) {
                    constexpr int i = row();
                    to_parts(times_one(from_parts<T>(x[s][i])), x[s][i]);
                });
        });
    }

    /* Column K of L (row K of U), and what it takes from all that follow. */
    template <int K>
    BL_HD void step(Rows &x)
    {
        constexpr int OWN = K / G;
        R d = from_lane(x[OWN][K][0], group * G + K % G);
        /* A free position changes nothing: all that it multiplies is zero. */
        const bool held = holds(K) && info == 0, good = held && d > 0;
        if (held && !(UPPER ? good : good && is_finite(d))) {
            info = K + 1;
            odd = !UPPER && !is_finite(d);
        }
        const R r = root(d), inverse = UPPER || !good ? R(0) : inverse_of(r);
        BL_UNROLL
        for (int s = OWN; s < SLOTS; s++) {
            const int p = position(s);
            T v = from_parts<T>(x[s][K]);
            if (!UPPER)
                v = mul(from_real<T>(inverse), v);
            else if (good)
                v = over_real(v, r);
            else
                v = from_real<T>(0);
            if (s == OWN && p == K)
                v = from_real<T>(good ? r : d);
            to_parts(v, x[s][K]);
            if ((s > OWN || p >= K) && (G * (s + 1) <= N || p < N))
                packed[at(p, K)].x = v;
        }
        meet();
        /* For each column the slots from its own on: written for constant bounds. */
        BL_UNROLL
        for (int j = K + 1; j < N; j++) {
            const T l = conj(packed[at(j, K)].x);
            BL_UNROLL
            for (int s = OWN; s < SLOTS; s++)
                if (s >= j / G)
                    to_parts(sub(from_parts<T>(x[s][j]), mul(l, from_parts<T>(x[s][K]))),
                             x[s][j]);
        }
    }

    /* Rows and columns F .. E-1, by halves as xPOTRF2. */
    template <int F, int E>
    BL_HD void node(Rows &x)
    {
        if constexpr (E - F == 1) {
            if (anywhere(holds(F)))
                step<F>(x);
        } else {
            constexpr int M = F + (E - F) / 2;
            const bool halves = UPPER && any<F, M>();
            if constexpr (UPPER) {
                if (Traits<T>::complex && halves)
                    begin_solve<F, M, E>(x);
                if (halves)
                    put_aside<M, E, F == 0>(x);
            }
            node<F, M>(x);
            if constexpr (UPPER)
                if (halves)
                    take_back<M, E>(x);
            node<M, E>(x);
        }
    }

    /* The triangle in shared memory becomes its factor. After a position that is not
     * definite nothing changes any more. Meets before its end: the caller may read. */
    BL_HD void factor_held()
    {
        Rows x;
        each<0, SLOTS>([&](auto slot) {
            constexpr int s = slot();
            const int p = position(s);
            each<0, least(N, G * (s + 1))>([&](auto column) {
                constexpr int k = column();
                T v = from_real<T>(0);
                if ((G * s >= k || p >= k) && (G * (s + 1) <= N || p < N))
                    v = packed[at(p, k)].x;
                if (k >= G * s && p == k)
                    v = from_real<T>(real(v));
                to_parts(v, x[s][k]);
            });
        });
        node<0, N>(x);
    }

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

    /* L once more, from a triangle that is still the input, for those that met NaN or
     * Inf: without the products with zero that netlib skips, and with the operations on
     * complex numbers that change nothing else. Meets at its end. */
    BL_HD void factor_odd()
    {
        const int n = odd ? count_bits(taken) : 0;
        if (odd)
            info = 0;
        BL_ROLLED
        for (int k = 0; k < N; k++) {
            R d = 0;
            if (k < n && info == 0) {
                d = real(packed[at(k, k)].x);
                if (!(d > 0))
                    info = k + 1;
            }
            const bool live = k < n && info == 0;
            meet();
            R r = root(d);
            const T inverse = from_real<T>(inverse_of(r));
            BL_ROLLED
            for (int i = t; live && i < n; i += G) {
                Cell<T> &c = packed[at(i, k)];
                if (i == k)
                    c.x = from_real<T>(r);
                else if (i > k)
                    c.x = mul(inverse, c.x);
            }
            meet();
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

    /* An element at a time, for what is rare. */
    template <bool TO>
    BL_HD void move_odd(T *a, int64_t lda)
    {
        const int n = odd ? count_bits(taken) : 0;
        BL_ROLLED
        for (int j = 0; j < n; j++)
            for (int i = t; i < n; i += G) {
                if (i < j)
                    continue;
                if (TO)
                    packed[at(i, j)].x = a[i + j * lda];
                else
                    a[i + j * lda] = packed[at(i, j)].x;
            }
        meet();
    }

    /* The factorisation of what fetch() has brought, in memory and left in shared memory.
     * The caller has met; meets at its end. */
    BL_HD void factor(T *a, int64_t lda)
    {
        factor_held();
        if (!odd)
            put<UPPER>(a, lda);
        meet();
        if constexpr (!UPPER)
            if (anywhere(odd))
                info = factor_again(*this, a, lda);
    }

    /* INFO of a matrix that met NaN or Inf, after it has been factored another time. Not
     * inlined: what is rare shall not cost the others registers. */
    static BL_CALL int factor_again(TinyCholesky m, T *a, int64_t lda)
    {
        m.template move_odd<true>(a, lda);
        m.factor_odd();
        m.template move_odd<false>(a, lda);
        return m.info;
    }

    /* INFO as LAPACK counts. */
    BL_HD int info_of_rows() const
    {
        return info == 0 ? 0 : row_at(info - 1) + 1;
    }

    /* ---- solution: a lane owns a right-hand side, x(p) = x[SIDE p] ---- */

    static constexpr int SIDE = LANES + 1; /* no two rows of a column in one bank */
    static constexpr int SIDES = SIDE * N; /* cells of right-hand sides, a warp */
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
    BL_HD void forward(Cell<T> *x, unsigned steeps, int begin) const
    {
        unsigned zeros = 0; /* bit p: x(p) was zero before the division */
        BL_ROLLED
        for (int first = begin; first < N; first += WIDTH) {
            T y[WIDTH];
            BL_UNROLL
            for (int i = 0; i < WIDTH; i++) {
                y[i] = x[SIDE * (first + i)].x;
                if (TURNED)
                    y[i] = times_one(y[i]);
            }
            const Cell<T> *rows = packed + at(first, 0);
            BL_ROLLED
            for (int k = begin; k < first; k++) {
                if (!TURNED && zeros >> k & 1)
                    continue;
                T xk = x[SIDE * k].x;
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
                x[SIDE * (first + i)].x = y[i];
        }
    }

    /* x := U^-1 x, zeros of x skipped. */
    BL_HD void backward(Cell<T> *x, unsigned steeps) const
    {
        unsigned zeros = 0;
        BL_ROLLED
        for (int first = N - WIDTH; first >= 0; first -= WIDTH) {
            T y[WIDTH];
            BL_UNROLL
            for (int i = 0; i < WIDTH; i++)
                y[i] = x[SIDE * (first + i)].x;
            BL_ROLLED
            for (int k = N - 1; k >= first + WIDTH; k--) {
                if (zeros >> k & 1)
                    continue;
                T xk = x[SIDE * k].x;
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
                x[SIDE * (first + i)].x = y[i];
        }
    }

    /* x := L'^-1 x: netlib lets row i take the product with row i + 1 first, the last to
     * be known, so this is one chain. */
    BL_HD void backward_chain(Cell<T> *x, unsigned steeps) const
    {
        BL_ROLLED
        for (int i = N - 1; i >= 0; i--) {
            T sum = times_one(x[SIDE * i].x);
            const Cell<T> *l = packed + at(i + 1, i);
            BL_UNROLL_BY_FOUR
            for (int k = i + 1; k < N; k++) {
                sum = sub(sum, mul(conj(l->x), x[SIDE * k].x));
                l += k + 1;
            }
            sum = divided(sum, i, steeps, true);
            x[SIDE * i].x = holds(i) ? sum : from_real<T>(0);
        }
    }

    /* Columns c .. c + G - 1 of B, n x nrhs, to or from the group's cells, a row a lane.
     */
    template <bool TO>
    BL_HD void move(Cell<T> *x, T *b, int64_t ldb, int columns) const
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
                    x[SIDE * p + c].x = holds(p) ? row[c * ldb] : from_real<T>(0);
                else if (holds(p))
                    row[c * ldb] = x[SIDE * p + c].x;
            }
        }
    }

    /* B := (L L')^-1 B or (U' U)^-1 B. `sides` has SIDES cells; all groups of a warp have
     * as many right-hand sides, but only those that are `live` touch them. Not inlined:
     * the factorisation gets its registers as if it were alone. */
    static BL_CALL void solve_apart(const TinyCholesky m, Cell<T> *sides, T *b,
                                    int64_t ldb, int64_t nrhs, bool live)
    {
        m.solve(sides, b, ldb, nrhs, m.prepare_diagonal(), live);
    }

    BL_HD void solve(Cell<T> *sides, T *b, int64_t ldb, int64_t nrhs, unsigned steeps,
                     bool live) const
    {
        Cell<T> *x = sides + group * G;
        for (int64_t c = 0; c < nrhs; c += G) {
            int columns = nrhs - c < G ? int(nrhs - c) : G;
            if (live)
                move<true>(x, b + c * ldb, ldb, columns);
            meet();
            if (live && t < columns) {
                forward<UPPER>(x + t, steeps, 0);
                if (UPPER)
                    backward(x + t, steeps);
                else
                    backward_chain(x + t, steeps);
            }
            meet();
            if (live)
                move<false>(x, b + c * ldb, ldb, columns);
            meet();
        }
    }

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
            forward<false>(x, steeps, begin);
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
