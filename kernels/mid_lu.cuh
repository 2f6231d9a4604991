/* LU factorisation of a matrix that stays on the chip, for up to a few hundred rows.
 *
 * Instantiated by mid_lu_*.cu. A block takes one matrix, a warp takes panels of C whole
 * columns of it: every row, in registers. A warp factors its panel with no block barrier
 * and publishes each finished column in shared memory; the others follow, column by
 * column where they are next, else by whole panels. The order of operations on an element
 * is ascending, each rounded separately, so the bits are netlib's. Rows never move: a
 * lane keeps its rows, and interchanges change positions only. The first column with a
 * NaN or Inf in it ends all this, and mid_rest.cuh goes on.
 */
#ifndef BL_MID_LU_CUH
#define BL_MID_LU_CUH

#include "mid.h"
#include "mid_chip.cuh"
#include "determinant.cuh"
#include "kernel.cuh"
#include "plain.cuh"
#include "tiny.cuh" /* MOST_BLOCKS */

namespace bl
{

constexpr unsigned ALL_LANES = ~0u;

/* ---- words that one warp sets once and others wait for ---- */

class Signal
{
  public:
    __device__ __forceinline__ void clear()
    {
#if __CUDA_ARCH__ >= 900
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(address())
                     : "memory");
#else
        word = 0;
#endif
    }

    /* What the warp has written is there for those who find it set. A whole warp, once.
     * Every lane arrives, which costs no time and which racecheck understands. */
    __device__ __forceinline__ void set()
    {
#if __CUDA_ARCH__ >= 900
        asm volatile(
            "{ .reg .b64 state;\n"
            "mbarrier.arrive.release.cta.shared::cta.b64 state, [%0]; }" ::"r"(address())
            : "memory");
#else
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            asm volatile("st.release.cta.shared.u64 [%0], 1;" ::"r"(address())
                         : "memory");
#endif
    }

    /* The same answer for the whole warp. */
    __device__ __forceinline__ bool is_set() const
    {
        return __all_sync(ALL_LANES, test());
    }

    __device__ __forceinline__ void wait() const
    {
#if __CUDA_ARCH__ >= 900
        unsigned done;
        do {
            asm volatile(
                "{ .reg .pred p;\n"
                "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], 0;\n"
                "selp.u32 %0, 1, 0, p; }"
                : "=r"(done)
                : "r"(address())
                : "memory");
        } while (!done);
#else
        while (!test()) {
        }
#endif
    }

  private:
    __device__ __forceinline__ bool test() const
    {
#if __CUDA_ARCH__ >= 900
        unsigned done;
        asm volatile("{ .reg .pred p;\n"
                     "mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 p, [%1], 0;\n"
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(address())
                     : "memory");
        return done;
#else
        unsigned long long done;
        asm volatile("ld.acquire.cta.shared.u64 %0, [%1];"
                     : "=l"(done)
                     : "r"(address())
                     : "memory");
        return done;
#endif
    }

    __device__ __forceinline__ unsigned address() const
    {
        return unsigned(__cvta_generic_to_shared(this));
    }
    unsigned long long word;
};

/* ---- magnitudes ---- */

/* The order of |x| in 32 bits, never 0; equal for numbers whose upper halves are. */
__device__ __forceinline__ unsigned magnitude_key(double x)
{
    return unsigned(__double2hiint(x)) | 0x80000000u;
}
__device__ __forceinline__ unsigned magnitude_key(float x)
{
    return __float_as_uint(x) | 0x80000000u;
}
template <class R>
__device__ __forceinline__ unsigned magnitude_key(Complex<R> z)
{
    return magnitude_key(abs1(z));
}
template <class R>
__device__ __forceinline__ constexpr unsigned infinity_key()
{
    return sizeof(R) == 4 ? 0xff800000u : 0xfff00000u;
}

__device__ __forceinline__ unsigned largest_of_warp(unsigned x)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(ALL_LANES, x);
#else
    for (int step = 16; step > 0; step /= 2)
        x = max(x, __shfl_xor_sync(ALL_LANES, x, step));
    return x;
#endif
}

template <class R>
struct Image;
template <>
struct Image<float> {
    using Type = unsigned;
};
template <>
struct Image<double> {
    using Type = unsigned long long;
};

/* ---- when reciprocals are used ---- */

/* Keeps the compiler from putting one off until the other is there. */
__device__ __forceinline__ void together(unsigned &x, float &y)
{
    asm volatile("" : "+r"(x), "+f"(y));
}
__device__ __forceinline__ void together(unsigned &x, double &y)
{
    asm volatile("" : "+r"(x), "+d"(y));
}
template <class R>
__device__ __forceinline__ void together(unsigned &x, Complex<R> &y)
{
    together(x, y.re);
}

enum Scaling { MULTIPLY, LEAVE, DIVIDE };

template <class T>
BL_CALL int rare_scaling(T pivot)
{
    return is_zero(pivot) ? LEAVE : reaches_sfmin(pivot) ? MULTIPLY : DIVIDE;
}

template <class T>
__device__ __forceinline__ int scaling(T pivot, T factor)
{
    Real<T> size;
    if constexpr (Traits<T>::complex)
        size = fmax(fabs(pivot.re), fabs(pivot.im));
    else
        size = fabs(pivot);
    if (size >= sfmin<Real<T>>())
        return Traits<T>::complex && is_one(factor) ? LEAVE : MULTIPLY;
    return rare_scaling(pivot);
}

/* ---- 16 bytes at a time ---- */

template <class T>
constexpr int PER_VECTOR = 16 / int(sizeof(T));

/* u[first..C-1], from the vector that holds `first` on, out of a row in shared memory. */
template <class T, int C>
__device__ __forceinline__ void read_row(T (&u)[C], const T *row, int first = 0)
{
    constexpr int V = PER_VECTOR<T>;
    BL_UNROLL
    for (int j = 0; j < C; j += V)
        if (j + V > first) {
            uint4 v = *(const uint4 *)(row + j);
            memcpy(&u[j], &v, 16);
        }
}

/* The same way back, where `yes`; a predicate, not a branch. */
template <class T, int C>
__device__ __forceinline__ void write_row(bool yes, T *row, const T (&u)[C],
                                          int first = 0)
{
    constexpr int V = PER_VECTOR<T>;
    const unsigned address = unsigned(__cvta_generic_to_shared(row));
    BL_UNROLL
    for (int j = 0; j < C; j += V)
        if (j + V > first) {
            uint4 v;
            memcpy(&v, &u[j], 16);
            asm volatile(
                "{ .reg .pred p;\n"
                "setp.ne.u32 p, %0, 0;\n"
                "@p st.shared.v4.u32 [%1], {%2, %3, %4, %5}; }" ::"r"(unsigned(yes)),
                "r"(address + unsigned(j * sizeof(T))), "r"(v.x), "r"(v.y), "r"(v.z),
                "r"(v.w)
                : "memory");
        }
}

/* To shared memory, where `yes`; a predicate, not a branch. */
template <class V>
__device__ __forceinline__ void put_where(bool yes, V *to, V v)
{
#ifdef __CUDA_ARCH__
    const unsigned address = unsigned(__cvta_generic_to_shared(to));
    static_assert(sizeof v == 1 || sizeof v == 4 || sizeof v == 8 || sizeof v == 16);
    if constexpr (sizeof v == 1) {
        asm volatile("{ .reg .pred p;\n"
                     "setp.ne.u32 p, %0, 0;\n"
                     "@p st.shared.u8 [%1], %2; }" ::"r"(unsigned(yes)),
                     "r"(address), "r"(unsigned(v))
                     : "memory");
    } else {
        unsigned w[sizeof v / 4];
        memcpy(w, &v, sizeof v);
        BL_UNROLL
        for (int i = 0; i < int(sizeof v) / 4; i += sizeof v == 4 ? 1 : 2)
            if constexpr (sizeof v == 4)
                asm volatile("{ .reg .pred p;\n"
                             "setp.ne.u32 p, %0, 0;\n"
                             "@p st.shared.u32 [%1], %2; }" ::"r"(unsigned(yes)),
                             "r"(address), "r"(w[0])
                             : "memory");
            else
                asm volatile("{ .reg .pred p;\n"
                             "setp.ne.u32 p, %0, 0;\n"
                             "@p st.shared.v2.u32 [%1], {%2, %3}; }" ::"r"(unsigned(yes)),
                             "r"(address + i * 4), "r"(w[i]), "r"(w[i + 1])
                             : "memory");
    }
#else
    if (yes)
        *to = v;
#endif
}

__device__ __forceinline__ void put_integer(void *p, int size, int64_t value)
{
    if (size == 4)
        *(int32_t *)p = int32_t(value);
    else
        *(int64_t *)p = value;
}

__device__ __forceinline__ int64_t get_integer(const void *p, int size)
{
    return size == 4 ? *(const int32_t *)p : *(const int64_t *)p;
}

/* ---- shared memory ---- */

/* Row r of the matrix is the r-th row it came with. The L of panel q is packed: the rows
 * that had no pivot before the panel, in their order, column after column. */
template <class T, int R, int C, int W, bool SCALED>
struct Chip {
    static constexpr int ROWS = 32 * R, PANELS = ROWS / C;
    static constexpr int STRIDE = C + PER_VECTOR<T>; /* between rows of C elements */

    T rows[W][C * STRIDE];            /* a warp's pivot rows of its panel, C at a time */
    T corner[PANELS][C * C];          /* L of a panel in its own pivot rows, by columns */
    Real<T> magnitude[ROWS];          /* of a column, for ties */
    Real<T> scale[SCALED ? ROWS : 1]; /* a row's, for GETRFSP */
    Signal column[ROWS], panel[PANELS], placed[PANELS];
    Product product;     /* of the diagonal, where the determinant is asked for */
    int pivot[ROWS + C]; /* the row of step k; -1: there is no step k (yet) */
    int step[ROWS];      /* the step whose pivot a row is; NONE, OUTSIDE */
    int position[ROWS],
        at[ROWS]; /* of a row; of a position, after `interchanges` steps */
    int ipiv[ROWS];
    int interchanges;
    int steps;   /* there are so many */
    int zero;    /* INFO */
    int strange; /* a u(i,j) is NaN or Inf; asked only where T is complex */
    unsigned char place[PANELS][ROWS]; /* of a row in a column of the packed L */
    unsigned char turn[PANELS][ROWS];  /* when it is the panel's pivot; 255: never */
    unsigned char count[PANELS];       /* of the panel's steps */
};

enum { NONE = 1 << 20, OUTSIDE = -1 };

template <class T, int R, int C, int W, bool SCALED>
size_t lu_shared_bytes(int m, int n)
{
    const int order = m < n ? m : n;
    return (sizeof(Chip<T, R, C, W, SCALED>) + 15) / 16 * 16 +
           packed<C>(m, (order + C - 1) / C) * sizeof(T);
}

/* Carry out the interchanges up to `steps`. One lane. */
template <class Shared>
__device__ __noinline__ void interchange_on(Shared &s, int steps)
{
    int *const position = s.position, *const at = s.at;
    for (int k = s.interchanges; k < steps; k++) {
        int row = s.pivot[k], p = position[row], other = at[k];
        position[other] = p;
        at[p] = other;
        position[row] = k;
        at[k] = row;
        s.ipiv[k] = p;
    }
    s.interchanges = steps;
}

/* The pivot of step k where several rows may be largest: the first in position. `s`
 * holds the magnitudes, -1 for rows that are no candidates. A warp. */
template <class Shared>
__device__ __noinline__ int first_largest(Shared &s, int rows, int k, int panel)
{
    const int lane = threadIdx.x % 32;
    if (panel > 0)
        s.placed[panel - 1].wait();
    if (lane == 0)
        interchange_on(s, k);
    __syncwarp();
    double most = -1;
    int where = NONE, row = 0;
    for (int r = lane; r < rows; r += 32) {
        double v = s.magnitude[r];
        int p = s.position[r];
        if (v > most || (v == most && v >= 0 && p < where)) {
            most = v;
            where = p;
            row = r;
        }
    }
    for (int step = 16; step > 0; step /= 2) {
        double v = __shfl_xor_sync(ALL_LANES, most, step);
        int p = __shfl_xor_sync(ALL_LANES, where, step);
        int r = __shfl_xor_sync(ALL_LANES, row, step);
        if (v > most || (v == most && p < where)) {
            most = v;
            where = p;
            row = r;
        }
    }
    __syncwarp(); /* before magnitudes are written again */
    return row;
}

/* The moves that the interchanges of a panel come to; how many. One thread. */
static BL_CALL int moves_of(const Pivots &pivots, int width, short *from, short *to)
{
    int touched = 0;
    for (int k = 0; k < width; k++) {
        to[touched] = from[touched] = short(k);
        touched++;
    }
    for (int k = 0; k < width; k++) {
        int p = int(pivots.from(k).get(0)) + k, q = -1;
        for (int t = 0; t < touched; t++)
            if (to[t] == p)
                q = t;
        if (q < 0) {
            q = touched++;
            to[q] = from[q] = short(p);
        }
        short x = from[k];
        from[k] = from[q];
        from[q] = x;
    }
    return touched;
}

/* ---- a warp's panel ---- */

/* Columns c0 + j, j < C, of all rows; lane l holds rows 32 i + l. `rows` is the warp's
 * own part of s.rows. */
template <class T, int R, int C, int W, bool SCALED>
struct Panel {
    using Shared = Chip<T, R, C, W, SCALED>;
    static constexpr int STRIDE = Shared::STRIDE;
    Shared &s;
    T *rows;
    int lane;
    T a[R][C];
    unsigned active[R]; /* ~0: the row has no pivot yet; or 0 */
    int place[R];       /* of the row in the columns of L that the panel makes next */
    Real<T> scale[R];

    __device__ __forceinline__ Panel(Shared &shared, int warp)
        : s(shared), rows(shared.rows[warp]), lane(threadIdx.x % 32)
    {
    }

    /* From column 0 of `A`, which has n columns and m rows; outside, what is there no
     * matter. */
    __device__ __forceinline__ void read(const T *A, int64_t lda, int m, int n)
    {
        const bool whole = is_whole(A);
        BL_UNROLL
        for (int j = 0; j < C; j++)
            BL_UNROLL
        for (int i = 0; i < R; i++)
            a[i][j] = load(A + min(i * 32 + lane, m - 1) + min(j, n - 1) * lda, whole);
        BL_UNROLL
        for (int i = 0; i < R; i++) {
            active[i] = i * 32 + lane < m ? ~0u : 0;
            if (SCALED)
                scale[i] = s.scale[i * 32 + lane];
        }
    }

    /* a -= l u for a column of L: there[i] is where row i of the lane is in it. */
    __device__ __forceinline__ void subtract(const T *l, const int (&there)[R],
                                             const T *row)
    {
        T x[R], u[C];
        BL_UNROLL
        for (int i = 0; i < R; i++)
            x[i] = load(l + there[i], true);
        read_row(u, row);
        BL_UNROLL
        for (int j = 0; j < C; j++)
            BL_UNROLL
        for (int i = 0; i < R; i++)
            a[i][j] = sub(a[i][j], mul(x[i], u[j]));
    }

    /* Take out panel q, all of it published: `steps` steps, L at `l` with columns of
     * `height`. The pivot rows are gathered, solved with the corner, and left in
     * `rows`. */
    __device__ __forceinline__ void apply(int q, int steps, const T *l, int height)
    {
        int there[R];
        BL_UNROLL
        for (int i = 0; i < R; i++) {
            const int turn = s.turn[q][i * 32 + lane];
            active[i] = turn < C ? 0 : active[i];
            write_row(turn < C, rows + turn * STRIDE, a[i]);
            there[i] = s.place[q][i * 32 + lane];
        }
        __syncwarp();
        T x[C];
        const int j = lane % C;
        const T *corner = s.corner[q];
        BL_UNROLL
        for (int i = 0; i < C; i++)
            x[i] = rows[i * STRIDE + j];
        BL_UNROLL
        for (int i = 0; i < C - 1; i++) {
            T c[C];
            read_row(c, corner + i * C, i + 1);
            BL_UNROLL
            for (int r = i + 1; r < C; r++)
                x[r] = sub(x[r], mul(c[r], x[i]));
        }
        __syncwarp();
        if (lane < C)
            BL_UNROLL
        for (int i = 1; i < C; i++)
            rows[i * STRIDE + j] = x[i];
        __syncwarp();
        BL_UNROLL_BY_TWO
        for (int i = 0; i < steps; i++)
            subtract(l + i * height, there, rows + i * STRIDE);
    }

    /* What the next pivot may be: the largest of a lane's first elements and of all of
     * them, by magnitude_key(). */
    struct Candidate {
        T value, factor; /* of the lane; its quick reciprocal */
        unsigned most, all;
        int where;  /* its row is 32 where + lane */
        bool twice; /* or another one is */
    };

    /* What row i of the lane is compared by. */
    __device__ __forceinline__ auto size(int i) const
    {
        if constexpr (SCALED)
            return mul(abs1(a[i][0]), scale[i]);
        else
            return a[i][0];
    }

    __device__ __forceinline__ Candidate candidate() const
    {
        Candidate c;
        c.value = a[0][0];
        c.most = magnitude_key(size(0)) & active[0];
        c.where = 0;
        c.twice = false;
        BL_UNROLL
        for (int i = 1; i < R; i++) {
            const unsigned key = magnitude_key(size(i)) & active[i];
            const bool greater = key > c.most;
            c.twice = greater ? false : c.twice || key == c.most;
            c.value = greater ? a[i][0] : c.value;
            c.where = greater ? i : c.where;
            c.most = max(c.most, key);
        }
        c.all = largest_of_warp(c.most);
        c.factor = quick_reciprocal(c.value);
        together(c.all, c.factor);
        return c;
    }

    /* Take out panel q, the one before, while it is being factored, column by column, and
     * find the first candidates and the places for what comes then. Returns the steps
     * that it had. */
    __device__ __forceinline__ int follow(int q, const T *l, int height, Candidate &next)
    {
        int there[R], k = 0;
        for (; k < C; k++) {
            s.column[q * C + k].wait();
            const int pivot = s.pivot[q * C + k];
            if (pivot < 0)
                break;
            if (k == 0)
                BL_UNROLL
            for (int i = 0; i < R; i++)
                place[i] = there[i] = s.place[q][i * 32 + lane];
            T v[C], *const row = rows + k * STRIDE;
            select(v, pivot / 32);
            write_row(pivot % 32 == lane, row, v);
            const int gone = s.place[q][pivot];
            BL_UNROLL
            for (int i = 0; i < R; i++) {
                active[i] = pivot == i * 32 + lane ? 0 : active[i];
                place[i] -= gone < there[i];
            }
            __syncwarp();
            if (k < C - 1) {
                subtract(l + k * height, there, row);
                continue;
            }
            T x[R], u[C];
            BL_UNROLL
            for (int i = 0; i < R; i++)
                x[i] = load(l + k * height + there[i], true);
            read_row(u, row);
            BL_UNROLL
            for (int i = 0; i < R; i++)
                a[i][0] = sub(a[i][0], mul(x[i], u[0]));
            next = candidate();
            BL_UNROLL
            for (int j = 1; j < C; j++)
                BL_UNROLL
            for (int i = 0; i < R; i++)
                a[i][j] = sub(a[i][j], mul(x[i], u[j]));
        }
        return k;
    }

    /* Where the quick way will not do: several may be largest, or the reciprocal is not
     * all there is to the column. Returns its Scaling. */
    __device__ __forceinline__ int choose(int p, int k, Candidate &c, bool &chosen)
    {
        const unsigned ballot = __ballot_sync(ALL_LANES, chosen);
        if (__any_sync(ALL_LANES, chosen && c.twice) || (ballot & (ballot - 1))) {
            BL_UNROLL
            for (int i = 0; i < R; i++)
                s.magnitude[i * 32 + lane] = active[i] ? abs1(size(i)) : Real<T>(-1);
            __syncwarp();
            const int pivot = first_largest(s, Shared::ROWS, k, p);
            chosen = pivot % 32 == lane;
            c.where = pivot / 32;
            BL_UNROLL
            for (int i = 0; i < R; i++)
                c.value = i == c.where ? a[i][0] : c.value;
        }
        c.factor = reciprocal(c.value);
        int how = scaling(c.value, c.factor);
        if (chosen && how != MULTIPLY && s.zero == 0 && is_zero(c.value))
            s.zero = k + 1;
        const unsigned one = __ballot_sync(ALL_LANES, chosen);
        return __shfl_sync(ALL_LANES, how, __ffs(int(one)) - 1);
    }

    /* The lane's row 32 where + lane. */
    __device__ __forceinline__ void select(T (&v)[C], int where) const
    {
        BL_UNROLL
        for (int c = 0; c < C; c++)
            BL_UNROLL
        for (int i = 0; i < R; i++)
            v[c] = i == 0 || i == where ? a[i][c] : v[c];
    }

    /* Step k, column j of the panel, which stands first in `a`; afterwards the next one
     * does, so that all steps are one loop that the instruction cache holds. The pivot
     * row goes to `rows` in the same way, from the pivot on, its reciprocal behind it.
     * `next`: this step's candidates, on return the next
     * one's, which are found in the shadow of the last columns' sums. False: a NaN or Inf
     * in the column, nothing done. */
    __device__ __forceinline__ bool eliminate(int p, int j, T *l, int height,
                                              Candidate &next)
    {
        const int k = p * C + j;
        T v[C];
        select(v, next.where);
        bool chosen = next.most == next.all;
        const bool odd = next.twice ||
                         (SCALED && !is_moderate<T>(magnitude_key(next.value))) ||
                         !has_moderate_parts(next.value) ||
                         (Traits<T>::complex && is_one(next.factor));
        const unsigned ballot = __ballot_sync(ALL_LANES, chosen);
        const bool rare = __any_sync(ALL_LANES, chosen && odd) ||
                          (ballot & (ballot - 1)) || !is_moderate<T>(next.all);
        int how = MULTIPLY;
        if (__builtin_expect(rare, 0)) {
            if (next.all >= infinity_key<Real<T>>())
                return false;
            how = choose(p, k, next, chosen);
            select(v, next.where);
        }
        T *row = rows + j * STRIDE, u[C], x[R];
        const int pivot = next.where * 32 + lane;
        write_row(chosen, row, v);
        put_where(chosen, row + C, next.factor);
        put_where(chosen, &s.pivot[k], pivot);
        put_where(chosen, &s.step[pivot], k);
        put_where(chosen, &s.turn[p][pivot], (unsigned char)j);
        BL_UNROLL
        for (int i = 0; i < R; i++)
            active[i] = chosen && next.where == i ? 0 : active[i];
        __syncwarp();
        const T factor = load(row + C, true);
        read_row(u, row);
        BL_UNROLL
        for (int i = 0; i < R; i++)
            x[i] = mul(factor, a[i][0]);
        if (__builtin_expect(how != MULTIPLY, 0)) {
            BL_UNROLL
            for (int i = 0; i < R; i++)
                x[i] = how == LEAVE ? a[i][0] : quotient(a[i][0], u[0]);
        }
        BL_UNROLL
        for (int i = 0; i < R; i++)
            a[i][0] = sub(a[i][1], mul(x[i], u[1]));
        BL_UNROLL
        for (int i = 0; i < R; i++)
            put_where(active[i], l + place[i], x[i]);
        s.column[k].set();
        BL_UNROLL
        for (int i = 0; i < R; i++)
            place[i] += height;
        next = candidate();
        BL_UNROLL
        for (int c = 2; c < C; c++)
            BL_UNROLL
        for (int i = 0; i < R; i++)
            a[i][c - 1] = sub(a[i][c], mul(x[i], u[c]));
        return true;
    }

    /* Factor the panel, which has been taken out of by all before it: L to `l`. `known`:
     * follow() has found the first candidates and the places. Returns the steps done, of
     * `steps`. */
    __device__ __forceinline__ int factor(int p, int steps, T *l, int height, bool known,
                                          Candidate &next)
    {
        int done = 0;
        if (!known) {
            int count = 0;
            next = candidate();
            BL_UNROLL
            for (int i = 0; i < R; i++) {
                const unsigned ballot = __ballot_sync(ALL_LANES, active[i] != 0);
                place[i] = count + __popc(ballot & ((1u << lane) - 1));
                count += __popc(ballot);
            }
        }
        BL_UNROLL
        for (int i = 0; i < R; i++) {
            place[i] = active[i] ? place[i] : 0;
            s.place[p][i * 32 + lane] = (unsigned char)place[i];
            s.turn[p][i * 32 + lane] = 255;
        }
#pragma unroll 1
        while (done < steps && eliminate(p, done, l, height, next))
            done++;
        __syncwarp();
        for (int e = lane; e < C * C; e += 32) {
            int j = e / C, r = e % C;
            if (r > j && r < done)
                s.corner[p][e] = l[j * height + s.place[p][s.pivot[p * C + r]]];
        }
        if (lane == 0)
            s.count[p] = (unsigned char)done;
        return done;
    }

    /* `rows`, whose first is row 0 of A. With a corner: the panel's own, L below the
     * diagonal, and each row begins there. Without `put` they are looked at only. */
    __device__ __forceinline__ void write_rows(T *A, int64_t lda, int m, int n, bool put,
                                               const T *corner = nullptr)
    {
        const bool whole = is_whole(A);
        BL_UNROLL
        for (int e = lane; e < C * C; e += 32) {
            int r = e % C, j = e / C;
            if (r < m && j < n) {
                T x = !corner ? rows[r * STRIDE + j]
                      : r > j ? corner[e]
                              : rows[r * STRIDE + j - r];
                if (Traits<T>::complex && !is_finite(x))
                    atomicOr(&s.strange, 1);
                if (put)
                    store(A + r + j * lda, x, whole);
            }
        }
        __syncwarp();
    }

    /* The first n columns that are left, rows without a pivot, at their positions. */
    __device__ __forceinline__ void write_left(T *A, int64_t lda, int n)
    {
        BL_UNROLL
        for (int i = 0; i < R; i++)
            if (s.step[i * 32 + lane] == NONE)
                BL_UNROLL
        for (int j = 0; j < C; j++)
            if (j < n)
                A[s.position[i * 32 + lane] + j * lda] = a[i][j];
    }
};

/* What became of the m rows of a panel with `width` pivots. `rest`: the interchanges were
 * not all counted here. The block. */
template <class Shared>
__device__ __noinline__ void write_moves(Shared &s, Moves &moves, const Pivots &pivots,
                                         int m, int width, bool rest)
{
    __syncthreads();
    if (rest) {
        if (threadIdx.x == 0)
            moves.count = moves_of(pivots, width, moves.from, moves.to);
        return;
    }
    if (threadIdx.x == 0)
        s.interchanges = width;
    __syncthreads();
    for (int i = threadIdx.x; i < m; i += blockDim.x)
        if (i < width || s.at[i] != i) {
            const int k = i < width ? i : atomicAdd(&s.interchanges, 1);
            moves.from[k] = short(s.at[i]);
            moves.to[k] = short(i);
        }
    __syncthreads();
    if (threadIdx.x == 0)
        moves.count = s.interchanges;
}

/* One over the largest element of each row, as row_scales() of plain.cuh. The block. */
template <class T, class Shared>
__device__ __noinline__ void find_scales(Shared &s, const T *A, int64_t lda, int m, int n)
{
    using R = Real<T>;
    using Bits = typename Image<R>::Type; /* in the order of the numbers, if positive */
    const int thread = threadIdx.x, lane = thread % 32;
    __syncthreads(); /* racecheck takes a signal's first write for one to what it precedes
                      */
    for (int i = thread; i < Shared::ROWS; i += blockDim.x)
        s.scale[i] = sfmin<R>();
    __syncthreads();
    constexpr int ROWS = Shared::ROWS / 32;
    R most[ROWS];
    BL_UNROLL
    for (int i = 0; i < ROWS; i++)
        most[i] = sfmin<R>();
#pragma unroll 4
    for (int j = thread / 32; j < n; j += blockDim.x / 32)
        BL_UNROLL
    for (int i = 0; i < ROWS; i++) {
        const R x = abs1(A[min(i * 32 + lane, m - 1) + j * lda]);
        most[i] = x > most[i] ? x : most[i]; /* never a NaN */
    }
    BL_UNROLL
    for (int i = 0; i < ROWS; i++) {
        Bits bits;
        memcpy(&bits, &most[i], sizeof bits);
        atomicMax((Bits *)&s.scale[i * 32 + lane], bits);
    }
    __syncthreads();
    for (int i = thread; i < Shared::ROWS; i += blockDim.x)
        s.scale[i] = div(R(1), s.scale[i]);
    __syncthreads();
}

/* The rest of GETRFSP from step `done` on, where a NaN or Inf has come up; scales by
 * positions. */
template <class T>
BL_CALL int64_t plain_rest(Team &team, int m, int n, T *a, int64_t lda,
                           const Pivots &pivots, Real<T> *scale, int done, int64_t info)
{
    for (int k = done; k < m && k < n; k++) {
        T *const column = a + k + k * lda;
        if (plain_column(team, m - k, column, pivots.from(k), scale + k) && info == 0)
            info = k + 1;
        const int64_t p = pivots.from(k).get(0) + k;
        for (int j = int(team.rank()); j < n; j += int(team.size()))
            if (j != k && p != k) {
                T *const c = a + j * lda, x = c[k];
                c[k] = c[p];
                c[p] = x;
            }
        team.sync();
        for (int j = k + 1; j < n; j++)
            for (int i = k + 1 + int(team.rank()); i < m; i += int(team.size()))
                a[i + j * lda] = sub(a[i + j * lda], mul(column[i - k], a[k + j * lda]));
        team.sync();
    }
    return info;
}

/* The determinant's next factors, which begin rows of a panel. One lane. */
template <class T>
__device__ __noinline__ void multiply_diagonal(Product &product, const T *rows,
                                               int stride, const int *ipiv, int first,
                                               int steps)
{
    Product det = product;
    for (int r = 0; r < steps; r++) {
        const T u = rows[r * stride];
        multiply_on(det, ipiv[first + r] == first + r ? u : negative(u));
    }
    product = det;
}

/* ---- the kernel ---- */

__device__ __forceinline__ struct bl_item item_of(const MidArguments &g)
{
    if (g.items)
        return g.items[blockIdx.x];
    return {blockIdx.x, g.m, g.n, g.a.ld, 0};
}

/* Where it pays that the same kernel solves: while a warp does, the others of its block
 * have nothing to do, and there must be enough other blocks. */
template <class T, int R>
constexpr bool solves_on_chip = !Traits<T>::complex && R <= 3;

/* A block: a matrix. Warp w: panels w, w + W, ... of C columns. A thread: rows lane,
 * lane + 32, ... of the panel. Shared memory: Chip, then L, packed. */
template <class T, int R, int C, int W, int BLOCKS, bool SCALED>
__global__ void __launch_bounds__(W * 32, BLOCKS < MOST_BLOCKS ? BLOCKS : MOST_BLOCKS)
    lu_on_chip(const MidArguments g)
{
    extern __shared__ __align__(16) char memory[];
    using Shared = Chip<T, R, C, W, SCALED>;
    constexpr bool SOLVES = !SCALED && solves_on_chip<T, R>;
    Shared &s = *(Shared *)memory;
    T *const packed_l = (T *)(memory + (sizeof(Shared) + 15) / 16 * 16);
    /* Whether nothing but the determinant is asked for. */
    const bool quiet = !SCALED && (g.phase.p || g.phase.array);
    const struct bl_item item = item_of(g);
    int m = int(item.m), n = int(item.n), order = m < n ? m : n;
    const int64_t lda = item.lda;
    T *A = (T *)operand_at(g.a, item.index, sizeof(T));
    const T *from = A;
    int64_t ld_from = lda;
    if (g.moves && g.first > 0) {
        if (g.first >= order)
            return;
    } else if (order < 1) { /* one item of many */
        if (threadIdx.x == 0)
            put_integer(operand_at(g.info, item.index, g.int_size), g.int_size, 0);
        return;
    }
    if (g.moves) {
        A += g.first + g.first * lda;
        from = A;
        m -= g.first;
        n = order = min(order - g.first, NB);
    } else if (g.from.p || g.from.array) {
        from = (const T *)operand_at(g.from, g.number + item.index, sizeof(T));
        ld_from = g.from.ld;
    }
    A = (T *)__cvta_global_to_generic(__cvta_generic_to_global(A));
    const int panels = (n + C - 1) / C, pivoting = (order + C - 1) / C;
    /* From a lane, or else the compiler asks for the thread's number again and again. */
    const int warp = __shfl_sync(ALL_LANES, int(threadIdx.x / 32), 0);

    for (int i = threadIdx.x; i < Shared::ROWS + C; i += W * 32) {
        s.pivot[i] = -1;
        if (i < Shared::ROWS) {
            s.step[i] = i < m ? NONE : OUTSIDE;
            s.position[i] = s.at[i] = i;
            s.column[i].clear();
        }
        if (i < Shared::PANELS) {
            s.panel[i].clear();
            s.placed[i].clear();
        }
    }
    if (threadIdx.x == 0) {
        s.interchanges = s.zero = s.strange = 0;
        s.steps = order;
        s.product = {{1, 0}, 0};
    }
    if constexpr (SCALED)
        find_scales(s, from, ld_from, m, n);
    Panel<T, R, C, W, SCALED> panel(s, warp);
    bool begun = false;
    for (int p = warp; p < panels; p += W) {
        T *const own = A + int64_t(p * C) * lda;
        const int columns = n - p * C;
        panel.read(from + int64_t(p * C) * ld_from, ld_from, m, columns);
        if (!begun)
            __syncthreads();
        begun = true;

        const int before = p < pivoting ? p : pivoting;
        typename decltype(panel)::Candidate next;
        bool known = false;
        int q = 0, first = 0; /* of the panel's columns, the first not to have a pivot */
        for (; q < before; q++) {
            const T *l = packed_l + packed<C>(m, q);
            const int height = m - q * C;
            int count;
            known = false;
            if (q < p - 1 || s.panel[q].is_set()) {
                s.panel[q].wait();
                count = s.count[q];
                panel.apply(q, count, l, height);
            } else {
                count = panel.follow(q, l, height, next);
                known = true;
            }
            __syncwarp();
            panel.write_rows(own + q * C, lda, count, columns, !quiet);
            if (count < C)
                break;
        }
        bool all = q == before && p >= pivoting;
        if (q == before && p < pivoting) {
            const int steps = min(C, order - p * C);
            first = panel.factor(p, steps, packed_l + packed<C>(m, p), m - p * C, known,
                                 next);
            all = first == steps;
            if (threadIdx.x % 32 == 0 && !all)
                s.steps = p * C + first;
            for (int j = first; j < C; j++)
                s.column[p * C + j].set();
            s.panel[p].set();
            panel.write_rows(own + p * C, lda, first, columns, !quiet, s.corner[p]);
            if (p > 0)
                s.placed[p - 1].wait();
            if (threadIdx.x % 32 == 0) {
                interchange_on(s, p * C + first);
                if (quiet)
                    multiply_diagonal(s.product, panel.rows, panel.STRIDE, s.ipiv, p * C,
                                      first);
            }
            __syncwarp(); /* before the pivot rows are written over */
            s.placed[p].set();
        }
        /* What ended the steps has been published; else `steps` is as it was. */
        if (!all && s.steps < order && !quiet) {
            s.placed[s.steps / C].wait();
            panel.write_left(own + first * lda, lda, min(C, columns) - first);
        }
    }
    if (!begun)
        __syncthreads();
    auto right_side = [&](int c) {
        return (T *)operand_at(g.b, item_of(g).index, sizeof(T)) + c * g.b.ld;
    };
    /* The warp whose turn it were rides along. */
    const int column = (warp - panels % W + W) % W;
    T y[R];
    bool solves = false;
    if constexpr (SOLVES)
        solves =
            column < g.nrhs && ride_along<T, R, C>(s.column, s.pivot, s.place, packed_l,
                                                   n, right_side(column), y);
    __syncthreads();
    const bool rest = s.steps < order || (Traits<T>::complex && !SCALED && s.strange);
    if constexpr (SOLVES)
        if (solves && !rest && s.zero == 0)
            solve_upper<T, R>(s.step, A, lda, n, y, right_side(column));

    /* L below the corners, in the order of the positions. */
    const int steps = s.steps;
    const bool whole = is_whole(A);
    for (int q = warp; q * C < steps && !quiet; q += W) {
        const T *l = packed_l + packed<C>(m, q);
        const int height = m - q * C, count = min(C, steps - q * C);
        T *to = A + int64_t(q * C) * lda;
        for (int i = q * C + count + threadIdx.x % 32; i < m; i += 32) {
            const int place = s.place[q][s.at[i]];
            BL_UNROLL
            for (int j = 0; j < C; j++)
                if (j < count)
                    store(to + i + j * lda, l[j * height + place], whole);
        }
    }
    const int64_t index = item_of(g).index, number = index + (quiet ? g.number : 0);
    const Pivots pivots = {operand_at(g.ipiv, index, g.int_size), g.int_size, g.first};
    for (int k = threadIdx.x; k < steps; k += W * 32)
        pivots.set(k, s.ipiv[k]);
    int64_t zero = s.zero;
    if (rest) {
        Team team;
        team.thread = threadIdx.x;
        team.threads = W * 32;
        if (quiet) /* from the beginning */
            copy(team, m, n, from, ld_from, A, lda);
        __syncthreads();
        if constexpr (SCALED) {
            for (int i = threadIdx.x; i < m; i += W * 32)
                s.magnitude[i] = s.scale[s.at[i]];
            __syncthreads();
            zero = plain_rest(team, m, n, A, lda, pivots, s.magnitude, steps, zero);
        } else
            zero = lu_rest(team, m, n, A, lda, pivots, quiet ? 0 : steps, n,
                           quiet ? 0 : zero);
        __syncthreads();
        if (quiet)
            determinant(team, n, A, lda, pivots,
                        (T *)operand_at(g.phase, number, sizeof(T)),
                        (Real<T> *)operand_at(g.logabs, number, sizeof(Real<T>)));
    }
    if (threadIdx.x == 0) {
        void *const at = operand_at(g.info, number, g.int_size);
        const int64_t before = g.moves && g.first > 0 ? get_integer(at, g.int_size) : 0;
        put_integer(at, g.int_size, before ? before : zero ? g.first + zero : 0);
        if (quiet && !rest)
            put_determinant(s.product, (T *)operand_at(g.phase, number, sizeof(T)),
                            (Real<T> *)operand_at(g.logabs, number, sizeof(Real<T>)));
    }
    if constexpr (SOLVES)
        if (rest && zero == 0 && warp < g.nrhs)
            solve_slowly(A, lda, n, pivots, right_side(warp));
    if (g.moves)
        write_moves(s, g.moves[blockIdx.x], pivots, m, order, rest);
}

/* For up to `rows` rows, as a rule as many as it can have. */
template <class T, int R, int C, int W, int BLOCKS, bool SCALED = false>
constexpr MidKernel on_chip(int rows = 32 * R)
{
    static_assert(R <= 8, "a place in a column is a byte");
    return {(const void *)lu_on_chip<T, R, C, W, BLOCKS, SCALED>, rows, 32 * W,
            lu_shared_bytes<T, R, C, W, SCALED>, !SCALED && solves_on_chip<T, R>};
}

} // namespace bl
#endif
