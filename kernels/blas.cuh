/* The pieces of level 1 to 3 BLAS that the LAPACK algorithms are made of, for a team.
 *
 * Used by lu.cuh, plain.cuh, determinant.cuh, inverse.cuh and cholesky.cuh. Each function
 * gives every element the reference BLAS's operations in its order, including where it
 * skips a zero factor and where it does not; which thread does them is free, and blocking
 * is too as long as an element takes its products one by one. None of them meets at its
 * end: the caller does, when what follows reads another thread's result. Only the
 * variants in use are here.
 */
#ifndef BL_BLAS_CUH
#define BL_BLAS_CUH

#include "team.cuh"

namespace bl
{

/* Rows of a triangle that are solved at once; also netlib's block size for all of
 * xGETRF, xPOTRF, xTRTRI and xLAUUM. */
constexpr int NB = 64;

BL_HD int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* IPIV of one problem, from row `base` on, as 0-based rows counted from there. */
struct Pivots {
    void *p;  /* NULL: nothing is interchanged */
    int size; /* bytes of an element */
    int64_t base;

    BL_HD int64_t get(int64_t k) const
    {
        int64_t i = size == 4 ? int64_t(((const int32_t *)p)[base + k])
                              : ((const int64_t *)p)[base + k];
        return i - 1 - base;
    }
    BL_HD void set(int64_t k, int64_t row) const
    {
        int64_t i = row + base + 1;
        if (size == 4)
            ((int32_t *)p)[base + k] = int32_t(i);
        else
            ((int64_t *)p)[base + k] = i;
    }
    BL_HD Pivots from(int64_t k) const
    {
        return {p, size, base + k};
    }
};

/* ---- C op= op(A) op(B) ---- */

/* ADD: c += (alpha b) a, what xGEMM does for A not transposed.
 * SUB: c -= b a, the update inside xTRSM.
 * DOT: t = 0; t += a b; c = alpha t + c, what xGEMM does for A transposed. */
enum Form { ADD, SUB, DOT };
enum Shape { FULL, LOWER, UPPER };

/* C is m x n; l runs over 0 .. k-1. a(i,l) is A(i,l) for opa 'N' and A(l,i) for 'T' or,
 * conjugated, 'C'; likewise b(l,j). */
template <class T>
struct Update {
    Form form;
    int64_t m, n, k;
    T alpha; /* 1 or -1 */
    char opa;
    const T *a;
    int64_t lda;
    char opb;
    const T *b;
    int64_t ldb;
    T *c;
    int64_t ldc;
    bool skip = false;      /* leave out products with b(l,j) = 0 */
    bool reverse = false;   /* l descending */
    Shape shape = FULL;     /* which part of C is read and written */
    bool hermitian = false; /* the diagonal of C is real, as xHERK keeps it */

    BL_HD T factor_a(int64_t i, int64_t l) const
    {
        T x = opa == 'N' ? a[i + l * lda] : a[l + i * lda];
        return opa == 'C' ? conj(x) : x;
    }
    BL_HD T factor_b(int64_t l, int64_t j) const
    {
        T x = opb == 'N' ? b[l + j * ldb] : b[j + l * ldb];
        x = opb == 'C' ? conj(x) : x;
        if (form != ADD)
            return x;
        if constexpr (Traits<T>::complex)
            return mul(alpha, x);
        else
            return alpha < 0 ? -x : x;
    }
    BL_HD bool has(int64_t i, int64_t j) const
    {
        return i < m && j < n && (shape == FULL || (shape == LOWER ? i >= j : i <= j));
    }
    BL_HD T begin(int64_t i, int64_t j) const
    {
        T x = form != DOT && has(i, j) ? c[i + j * ldc] : from_real<T>(0);
        return hermitian && i == j ? from_real<T>(real(x)) : x;
    }
    BL_HD void end(int64_t i, int64_t j, T x) const
    {
        if (!has(i, j))
            return;
        T *p = &c[i + j * ldc];
        bool diagonal = hermitian && i == j;
        if (form != DOT)
            *p = diagonal ? from_real<T>(real(x)) : x;
        else if (diagonal)
            *p = from_real<T>(add(mul(real(alpha), real(x)), real(*p)));
        else
            *p = add(mul(alpha, x), times_one(*p));
    }
};

template <Form F, bool SKIP, class T>
BL_HD T accumulate(T c, T a, T b)
{
    if (SKIP && is_zero(b))
        return c;
    return F == SUB ? sub(c, mul(b, a)) : add(c, mul(b, a));
}

/* Straight from memory, `WIDTH` columns of a row a thread: for what is too small for
 * tiles, and on the host. */
template <Form F, bool SKIP, class T>
BL_HD void update_plain(const Update<T> &u, int64_t rank, int64_t size)
{
    constexpr int WIDTH = 4;
    int64_t items = u.m * ((u.n + WIDTH - 1) / WIDTH);
    for (int64_t item = rank; item < items; item += size) {
        int64_t i = item % u.m, j = item / u.m * WIDTH;
        T x[WIDTH];
        bool live[WIDTH], any = false;
        BL_UNROLL
        for (int s = 0; s < WIDTH; s++) {
            live[s] = u.has(i, j + s);
            any = any || live[s];
            x[s] = u.begin(i, j + s);
        }
        if (!any)
            continue;
        for (int64_t step = 0; step < u.k; step++) {
            int64_t l = u.reverse ? u.k - 1 - step : step;
            T a = u.factor_a(i, l);
            BL_UNROLL
            for (int s = 0; s < WIDTH; s++)
                if (live[s])
                    x[s] = accumulate<F, SKIP>(x[s], a, u.factor_b(l, j + s));
        }
        BL_UNROLL
        for (int s = 0; s < WIDTH; s++)
            u.end(i, j + s, x[s]);
    }
}

#ifdef __CUDACC__
constexpr int TILE = 64;          /* rows and columns of C a block works on */
constexpr int SLICE = 16;         /* l values in shared memory at once */
constexpr int PITCH = TILE + 1;   /* so that a transposed store meets no bank twice */
constexpr int TILE_THREADS = 256; /* 16 x 16 threads, 4 x 4 elements each */

/* The block's shared memory: a slice of a(i,l), then one of b(l,j). */
template <class T>
__device__ __forceinline__ T *shared_tiles()
{
    __shared__ T tiles[2 * SLICE * PITCH];
    return tiles;
}

template <Form F, bool SKIP, class T>
__device__ __forceinline__ void multiply_slice(const T *sa, const T *sb, int depth,
                                               int row, int column, T (&x)[4][4])
{
    BL_UNROLL_BY_TWO
    for (int l = 0; l < depth; l++) {
        T a[4], b[4];
        BL_UNROLL
        for (int r = 0; r < 4; r++) {
            a[r] = sa[l * PITCH + row + 16 * r];
            b[r] = sb[l * PITCH + column + 16 * r];
        }
        BL_UNROLL
        for (int s = 0; s < 4; s++)
            BL_UNROLL
        for (int r = 0; r < 4; r++)
            x[r][s] = accumulate<F, SKIP>(x[r][s], a[r], b[s]);
    }
}

/* One TILE x TILE tile of C by one block of TILE_THREADS. Thread t owns the rows
 * i0 + t % 16 + 16 r and the columns j0 + t / 16 + 16 s, r, s = 0 .. 3. */
template <Form F, bool SKIP, class T>
__device__ __noinline__ void update_tile(const Update<T> &u, int thread, int64_t i0,
                                         int64_t j0)
{
    T *sa = shared_tiles<T>(), *sb = sa + SLICE * PITCH;
    int row = thread % 16, column = thread / 16;
    T x[4][4];
    BL_UNROLL
    for (int s = 0; s < 4; s++)
        BL_UNROLL
    for (int r = 0; r < 4; r++)
        x[r][s] = u.begin(i0 + row + 16 * r, j0 + column + 16 * s);
    for (int64_t l0 = 0; l0 < u.k; l0 += SLICE) {
        int depth = int(least(SLICE, u.k - l0));
        __syncthreads();
        /* The faster index of a load is the one that is contiguous in memory. */
        BL_UNROLL
        for (int q = 0; q < SLICE * TILE / TILE_THREADS; q++) {
            int e = thread + q * TILE_THREADS;
            int i = u.opa == 'N' ? e % TILE : e / SLICE;
            int l = u.opa == 'N' ? e / TILE : e % SLICE;
            if (l < depth && i0 + i < u.m)
                sa[l * PITCH + i] =
                    u.factor_a(i0 + i, u.reverse ? u.k - 1 - l0 - l : l0 + l);
            int j = u.opb == 'N' ? e / SLICE : e % TILE;
            l = u.opb == 'N' ? e % SLICE : e / TILE;
            if (l < depth && j0 + j < u.n)
                sb[l * PITCH + j] =
                    u.factor_b(u.reverse ? u.k - 1 - l0 - l : l0 + l, j0 + j);
        }
        __syncthreads();
        if (depth == SLICE)
            multiply_slice<F, SKIP>(sa, sb, SLICE, row, column, x);
        else
            multiply_slice<F, SKIP>(sa, sb, depth, row, column, x);
    }
    BL_UNROLL
    for (int s = 0; s < 4; s++)
        BL_UNROLL
    for (int r = 0; r < 4; r++)
        u.end(i0 + row + 16 * r, j0 + column + 16 * s, x[r][s]);
}
#endif

/* Tiles go round the team's blocks beginning with block `first`, so that several updates
 * between two meetings can share them out. */
template <Form F, bool SKIP, class T>
BL_HD void update_by(const Team &team, const Update<T> &u, int64_t first)
{
#ifdef __CUDACC__
    if (team.threads == TILE_THREADS && u.m >= 16 && u.n >= 16) {
        int64_t rows = (u.m + TILE - 1) / TILE, columns = (u.n + TILE - 1) / TILE;
        int64_t begin = (team.block - first % team.blocks + team.blocks) % team.blocks;
        for (int64_t t = begin; t < rows * columns; t += team.blocks) {
            int64_t i = t % rows, j = t / rows;
            if (u.shape == FULL || (u.shape == LOWER ? i >= j : i <= j))
                update_tile<F, SKIP>(u, team.thread, i * TILE, j * TILE);
        }
        return;
    }
#else
    (void)first;
#endif
    update_plain<F, SKIP>(u, team.rank(), team.size());
}

template <class T>
BL_CALL void update(const Team &team, const Update<T> &u, int64_t first = 0)
{
    if (u.m <= 0 || u.n <= 0 || u.k <= 0)
        return;
    if (u.form == DOT)
        update_by<DOT, false>(team, u, first);
    else if (u.form == SUB && u.skip)
        update_by<SUB, true>(team, u, first);
    else if (u.form == SUB)
        update_by<SUB, false>(team, u, first);
    else if (u.skip)
        update_by<ADD, true>(team, u, first);
    else
        update_by<ADD, false>(team, u, first);
}

/* xGEMM with beta = 1. */
template <class T>
BL_HD void gemm(const Team &team, char opa, char opb, int64_t m, int64_t n, int64_t k,
                T alpha, const T *a, int64_t lda, const T *b, int64_t ldb, T *c,
                int64_t ldc, int64_t first = 0)
{
    Form form = opa == 'N' ? ADD : DOT;
    update(team, Update<T>{form, m, n, k, alpha, opa, a, lda, opb, b, ldb, c, ldc},
           first);
}

/* xSYRK or, for complex, xHERK with beta = 1: C += alpha A A' (op 'N', A is n x k) or
 * alpha A' A. */
template <class T>
BL_HD void herk(const Team &team, bool upper, char op, int64_t n, int64_t k, T alpha,
                const T *a, int64_t lda, T *c, int64_t ldc, int64_t first = 0)
{
    Update<T> u = {op == 'N' ? ADD : DOT, n, n,   k, alpha, op == 'N' ? 'N' : 'C', a, lda,
                   op == 'N' ? 'C' : 'N', a, lda, c, ldc};
    u.skip = op == 'N';
    u.shape = upper ? UPPER : LOWER;
    u.hermitian = true;
    update(team, u, first);
}

/* ---- triangular solves ---- */

/* op(A): the upper or lower triangle of A, perhaps (conjugate) transposed, perhaps with a
 * diagonal of ones. */
template <class T>
struct Triangle {
    const T *a;
    int64_t lda;
    bool upper;
    char op; /* 'N', 'T', 'C' */
    bool unit;
    bool skip = true; /* leave out products with a zero of B where xTRSM does */

    /* Element (i, k) of op(A). */
    BL_HD T at(int64_t i, int64_t k) const
    {
        T x = op == 'N' ? a[i + k * lda] : a[k + i * lda];
        return op == 'C' ? conj(x) : x;
    }
    BL_HD Triangle from(int64_t k) const
    {
        return {a + k + k * lda, lda, upper, op, unit, skip};
    }
};

/* B := op(A)^-1 B for A of order nb <= NB. A warp owns a column of B, its lane l the rows
 * l, l + LANES, ...; `reverse` solves from the last row up. There are `rest` more rows
 * above it, else below, to be updated afterwards. */
template <class T>
BL_CALL void solve_left_block(const Team &team, const Triangle<T> &t, bool reverse,
                              int nb, T *b, int64_t ldb, int64_t n, int64_t rest)
{
    constexpr int ROWS = NB / LANES;
    const bool skip = t.skip && t.op == 'N';
    const int lane = team.lane();
    for (int64_t j = team.warp(); j < n; j += team.warps()) {
        T *column = b + j * ldb;
        T x[ROWS];
        BL_UNROLL
        for (int r = 0; r < ROWS; r++) {
            int i = lane + LANES * r;
            x[r] = i < nb ? column[reverse ? nb - 1 - i : i] : from_real<T>(0);
        }
        BL_UNROLL
        for (int owner = 0; owner < ROWS; owner++)
            for (int from = 0; from < LANES && owner * LANES + from < nb; from++) {
                int k = owner * LANES + from, row = reverse ? nb - 1 - k : k;
                T xk = from_lane(x[owner], from);
                if (skip && is_zero(xk))
                    continue;
                if (!t.unit)
                    xk = div(xk, t.at(row, row));
                /* xTRSM asks before it divides, an update of the rows outside after. */
                for (int64_t i = lane; skip && is_zero(xk) && i < rest; i += LANES) {
                    T *outside = column + (reverse ? -1 - i : nb + i);
                    *outside = sub(*outside, mul(xk, t.at(outside - column, row)));
                }
                if (lane == from)
                    x[owner] = xk;
                BL_UNROLL
                for (int r = owner; r < ROWS; r++) {
                    int i = lane + LANES * r;
                    if (i > k && i < nb)
                        x[r] = sub(x[r], mul(xk, t.at(reverse ? nb - 1 - i : i, row)));
                }
            }
        BL_UNROLL
        for (int r = 0; r < ROWS; r++) {
            int i = lane + LANES * r;
            if (i < nb)
                column[reverse ? nb - 1 - i : i] = x[r];
        }
    }
}

/* B := op(A)^-1 B for A lower and transposed in netlib's order: row i takes the products
 * with rows i + 1, i + 2, ... in this order although i + 1 is the last to be known, so a
 * column is one chain of m^2 / 2 differences. A warp owns a column; its lanes form the
 * products, all of them subtract. */
template <class T>
BL_CALL void solve_left_chain(const Team &team, const Triangle<T> &t, int64_t m, T *b,
                              int64_t ldb, int64_t n)
{
    const int lane = team.lane();
    for (int64_t j = team.warp(); j < n; j += team.warps()) {
        T *column = b + j * ldb;
        for (int64_t i = m - 1; i >= 0; i--) {
            T x = column[i];
            int64_t k = i + 1;
            T next = from_real<T>(0);
            if (k + lane < m)
                next = mul(t.at(i, k + lane), column[k + lane]);
            for (; k < m; k += LANES) {
                T product = next;
                if (k + LANES + lane < m)
                    next = mul(t.at(i, k + LANES + lane), column[k + LANES + lane]);
                if (k + LANES <= m) {
                    BL_UNROLL
                    for (int l = 0; l < LANES; l++)
                        x = sub(x, from_lane(product, l));
                } else {
                    for (int l = 0; l < int(m - k); l++)
                        x = sub(x, from_lane(product, l));
                }
            }
            if (!t.unit)
                x = div(x, t.at(i, i));
            if (lane == 0)
                column[i] = x;
            team.warp_sync();
        }
    }
}

/* xTRSM, side left, alpha = 1: B := op(A)^-1 B, B is m x n. Meets inside, not at its
 * end. */
template <class T>
BL_CALL void solve_left(Team &team, const Triangle<T> &t, int64_t m, T *b, int64_t ldb,
                        int64_t n)
{
    if (m <= 0 || n <= 0)
        return;
    const bool forward = t.upper == (t.op != 'N');
    if (Traits<T>::complex && t.op != 'N') {
        /* netlib begins these with alpha * b. */
        for (int64_t e = team.rank(); e < m * n; e += team.size()) {
            T *x = &b[e % m + e / m * ldb];
            *x = times_one(*x);
        }
        team.sync();
    }
    if (t.op != 'N' && !forward && team.exact) {
        solve_left_chain(team, t, m, b, ldb, n);
        return;
    }
    for (int64_t done = 0; done < m; done += NB) {
        int nb = int(least(NB, m - done));
        int64_t row = forward ? done : m - done - nb, rest = m - done - nb;
        if (done > 0)
            team.sync();
        solve_left_block(team, t.from(row), !forward, nb, b + row, ldb, n, rest);
        if (rest == 0)
            break;
        team.sync();
        int64_t to = forward ? row + nb : 0; /* first row that is updated */
        const T *a = t.op == 'N' ? t.a + to + row * t.lda : t.a + row + to * t.lda;
        Update<T> u = {SUB,   rest, n,       nb,  one<T>(), t.op, a,
                       t.lda, 'N',  b + row, ldb, b + to,   ldb};
        u.skip = t.skip && t.op == 'N';
        u.reverse = !forward;
        update(team, u);
    }
}

/* xTRSM, side right: B := alpha B op(A)^-1, B is m x n; not for A upper and transposed. A
 * thread owns a row of B, so that nothing need be waited for. */
template <class T>
BL_CALL void solve_right(const Team &team, const Triangle<T> &t, T alpha, int64_t m,
                         int64_t n, T *b, int64_t ldb)
{
    const bool descending = !t.upper && t.op == 'N';
    for (int64_t i = team.rank(); i < m; i += team.size())
        for (int64_t step = 0; step < n; step++) {
            int64_t j = descending ? n - 1 - step : step;
            T x = b[i + j * ldb];
            if (!is_one(alpha))
                x = mul(alpha, x);
            for (int64_t k = descending ? j + 1 : 0; k < (descending ? n : j); k++) {
                T a = t.at(k, j);
                if (!is_zero(a))
                    x = sub(x, mul(a, b[i + k * ldb]));
            }
            if (!t.unit)
                x = mul(div(one<T>(), t.at(j, j)), x);
            b[i + j * ldb] = x;
        }
}

/* xLACPY: X := A, both m x n and not overlapping. A warp copies a column. */
template <class T>
BL_HD void copy(const Team &team, int64_t m, int64_t n, const T *a, int64_t lda, T *x,
                int64_t ldx)
{
    for (int64_t j = team.warp(); j < n; j += team.warps())
        for (int64_t i = team.lane(); i < m; i += LANES)
            x[i + j * ldx] = a[i + j * lda];
}

/* xLASWP: interchange row k of B with row pivots(k), k = k1 .. k2-1, or backwards. A
 * thread owns a column. */
template <class T>
BL_CALL void interchange(const Team &team, const Pivots &pivots, int64_t k1, int64_t k2,
                         T *b, int64_t ldb, int64_t n, bool backwards = false)
{
    if (!pivots.p)
        return;
    for (int64_t j = team.rank(); j < n; j += team.size()) {
        T *column = b + j * ldb;
        for (int64_t s = k1; s < k2; s++) {
            int64_t k = backwards ? k2 - 1 - (s - k1) : s, i = pivots.get(k);
            if (i == k)
                continue;
            T x = column[k];
            column[k] = column[i];
            column[i] = x;
        }
    }
}

} // namespace bl
#endif
