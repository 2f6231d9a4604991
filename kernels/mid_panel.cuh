/* A warp's panel of a matrix on the chip: C whole columns of it, every row, in registers.
 *
 * Used by lu_on_chip of mid_lu.cuh, which says which panel comes when. No barrier of the
 * block is in here: a warp waits for the signals of the columns that it needs.
 */
#ifndef BL_MID_PANEL_CUH
#define BL_MID_PANEL_CUH

#include "tiny.cuh"
#include "mid_head.cuh"

namespace bl
{

/* Columns c0 + j, j < C, of all rows; lane l holds rows 32 i + l. `rows` is the warp's
 * own part of s.rows. */
template <class T, int R, int C, int W, bool SCALED>
struct Panel {
    using Shared = Chip<T, R, C, W, SCALED>;
    static constexpr int STRIDE = Shared::STRIDE;
    /* After so many of its columns a panel goes on in a loop over the rest of them, where
     * a lane holds enough for the shorter loop to pay for its code. */
    static constexpr int HALF = R * C * sizeof(T) >= 192 ? C / 2 : C;
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

    /* Column j of a corner, from element j + 1 on. */
    __device__ __forceinline__ static void read_corner(T (&c)[C], const T *corner, int j)
    {
        constexpr int V = PER_VECTOR<T>;
        BL_UNROLL
        for (int r = (j + 1) / V * V; r < C; r += V) {
            const uint4 v = *(const uint4 *)(corner + FoldedCorner<T, C>::at(j, r));
            memcpy(&c[r], &v, 16);
        }
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
        take_out_panel(s.corner[q], steps, l, height, there);
    }

    /* The same with the pivot rows in `rows`; row i of the lane is in place there[i]. */
    __device__ __forceinline__ void take_out_panel(const T *corner, int steps, const T *l,
                                                   int height, const int (&there)[R])
    {
        __syncwarp();
        T x[C];
        const int j = lane % C;
        BL_UNROLL
        for (int i = 0; i < C; i++)
            x[i] = rows[i * STRIDE + j];
        BL_UNROLL
        for (int i = 0; i < C - 1; i++) {
            T c[C];
            read_corner(c, corner, i);
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

    /* As read(), of rows behind a head, A being the whole matrix's, and the head's part
     * is taken out: its pivot rows are left in `rows`. `l` is the head's L. */
    __device__ __forceinline__ void read_behind(const MidHead<T, R, C> &head, const T *l,
                                                const T *A, int64_t lda, int m, int n)
    {
        const bool whole = is_whole(A);
        int there[R];
        BL_UNROLL
        for (int i = 0; i < R; i++) {
            there[i] = min(i * 32 + lane, m - 1);
            active[i] = i * 32 + lane < m ? ~0u : 0;
            const T *const from = A + head.source[C + there[i]];
            BL_UNROLL
            for (int j = 0; j < C; j++)
                a[i][j] = load(from + min(j, n - 1) * lda, whole);
        }
        BL_UNROLL
        for (int e = lane; e < C * C; e += 32)
            rows[e % C * STRIDE + e / C] =
                load(A + head.source[e % C] + min(e / C, n - 1) * lda, whole);
        take_out_panel(head.corner, C, l, m, there);
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
            T *const row = rows + k * STRIDE;
            take_out<C>(pivot % 32 == lane, pivot / 32, row);
            const int gone = s.place[q][pivot];
            BL_UNROLL
            for (int i = 0; i < R; i++)
                place[i] -= gone < there[i];
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
            Real<T> magnitude[R];
            BL_UNROLL
            for (int i = 0; i < R; i++)
                magnitude[i] = active[i] ? abs1(size(i)) : Real<T>(-1);
            const int pivot = first_largest(s, magnitude, k, p);
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

    /* Row 32 where + lane of the one lane that says `mine` has become a pivot's: its
     * first N elements go to `row`. By votes the compiler knows that all lanes take the
     * same branch, which is shorter than to select every element among the lane's rows.
     */
    template <int N>
    __device__ __forceinline__ void take_out(bool mine, int where, T *row)
    {
        int here = 0;
        BL_UNROLL
        for (int i = 1; i < R; i++)
            here = __any_sync(ALL_LANES, mine && where == i) ? i : here;
        BL_UNROLL
        for (int i = 0; i < R; i++)
            if (here == i) {
                T v[N];
                BL_UNROLL
                for (int j = 0; j < N; j++)
                    v[j] = a[i][j];
                write_row(mine, row, v);
                active[i] = mine ? 0 : active[i];
            }
    }

    /* Step k, column j of the panel, which stands first in `a`; afterwards the next one
     * does, so that all steps are one loop that the instruction cache holds. The pivot
     * row goes to `rows` in the same way, from the pivot on, its reciprocal behind it.
     * `next`: this step's candidates, on return the next
     * one's, which are found in the shadow of the last columns' sums. False: a NaN or Inf
     * in the column, nothing done. */
    template <int N>
    __device__ __forceinline__ bool eliminate(int p, int j, T *l, int height,
                                              Candidate &next)
    {
        const int k = p * C + j;
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
        }
        T *row = rows + j * STRIDE, u[N], x[R];
        put_where(chosen, row + C, next.factor);
        const int pivot = next.where * 32 + lane;
        put_where(chosen, &s.pivot[k], short(pivot));
        take_out<N>(chosen, next.where, row);
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
        put_where(chosen, &s.step[pivot], short(k));
        put_where(chosen, &s.turn[p][pivot], (unsigned char)j);
        BL_UNROLL
        for (int i = 0; i < R; i++)
            place[i] += height;
        next = candidate();
        BL_UNROLL
        for (int c = 2; c < N; c++)
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
        while (done < min(steps, HALF) && eliminate<C>(p, done, l, height, next))
            done++;
        if constexpr (HALF < C)
            if (done == HALF)
#pragma unroll 1
                while (done < steps && eliminate<C - HALF>(p, done, l, height, next))
                    done++;
        __syncwarp();
        for (int e = lane; e < C * C; e += 32) {
            int j = e / C, r = e % C;
            if (r > j && r < done)
                s.corner[p][FoldedCorner<T, C>::at(j, r)] =
                    l[j * height + s.place[p][s.pivot[p * C + r]]];
        }
        if (lane == 0)
            s.count[p] = (unsigned char)done;
        return done;
    }

    /* `rows`, whose first is row 0 of A. With a corner: the panel's own, L below the
     * diagonal, and each row begins there. */
    __device__ __forceinline__ void write_rows(T *A, int64_t lda, int m, int n,
                                               const T *corner = nullptr)
    {
        const bool whole = is_whole(A);
        BL_UNROLL
        for (int e = lane; e < C * C; e += 32) {
            int r = e % C, j = e / C;
            if (r < m && j < n) {
                T x = !corner ? rows[r * STRIDE + j]
                      : r > j ? corner[FoldedCorner<T, C>::at(j, r)]
                              : rows[r * STRIDE + j - r];
                if (Traits<T>::complex && !is_finite(x))
                    atomicOr(&s.strange, 1);
                store(A + r + j * lda, x, whole);
            }
        }
    }

    /* The pivot of the lane's row of `rows`, a diagonal element of A. */
    __device__ __forceinline__ void write_diagonal(T *A, int64_t lda)
    {
        A[lane * (lda + 1)] = rows[lane * STRIDE];
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

} // namespace bl
#endif
