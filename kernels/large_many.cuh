/* A triangular solve with many right-hand sides on the matrix units of sm_90 and up, for
 * fast arithmetic.
 *
 * Instantiated by large_many.cu. A thread block has SIDES right-hand sides, whose
 * solution stays in shared memory, and goes down the triangle by blocks of 64 rows. Its
 * warps have four tasks, beside each other:
 *   products  Eight warps subtract the products of all rows before from a block of rows,
 *             two of them from the same 16, every other step of 8 columns each; they load
 *             the triangle's elements as factors, several steps ahead. The products of
 *             the block just before it come last, when that has been solved for.
 *   chain     A warp for each 8 sides solves for the block before, by parts of 16 rows,
 *             with the inverses of the parts' triangles.
 *   fetching  Two warps fetch the next block.
 *   inverses  Two warps invert the triangles of its parts.
 * They meet before a block is solved for and after that.
 */
#ifndef BL_LARGE_MANY_CUH
#define BL_LARGE_MANY_CUH

#include "cluster.cuh"
#include "large_fragments.cuh"
#include "large_many.h"
#include "team.cuh"

namespace bl
{

template <class T, int SIDES_>
struct ManyShape {
    static constexpr int SIDES = SIDES_, BLOCK = 64, PART = 16, PARTS = BLOCK / PART;
    /* The largest type needs too many registers for more warps: who inverts fetches, too.
     */
    static constexpr int FRAGMENTS = SIDES / 8, TURNS = 2, INVERTERS = 2,
                         FETCHERS = sizeof(T) == 16 ? 0 : 2,
                         FETCHING = FETCHERS > 0 ? FETCHERS : INVERTERS,
                         WARPS = TURNS * PARTS + FRAGMENTS + INVERTERS + FETCHERS,
                         THREADS = 32 * WARPS;
    /* Steps of 8 columns that factors are loaded ahead: those of a block. */
    static constexpr int AHEAD = BLOCK / 8 / TURNS;
    static constexpr int PAD = 32 / int(sizeof(T)); /* no bank twice */
    static constexpr int PITCH = PART + PAD, PITCH_B = SIDES + PAD;
    static constexpr int BELOW = PARTS * (PARTS - 1) / 2; /* squares in a block */

    using Square = T[PART * PITCH]; /* PART columns */
    struct Memory {
        T solution[LARGE_MANY_ORDER<T> * PITCH_B]; /* a row after the other */
        /* Of a block and the next: the inverses on the diagonal, and what is below them,
         * column after column. */
        Square inverses[2][PARTS], below[2][BELOW];
    };
    /* The square in a row and column of parts. */
    static __device__ constexpr int square(int row, int column)
    {
        return column * (2 * PARTS - 1 - column) / 2 + row - column - 1;
    }
};

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900

/* PAIRED: two elements side by side in memory are loaded at once. */
template <class T, class S, bool PAIRED>
class Many
{
    const LargeMany<T> &s;
    typename S::Memory &m;
    const int n;
    const int64_t first; /* of the block's sides */
    const int sides, lane, g, t;
    T *const of_sides; /* the lane's first one in a row of what is solved for */

    __device__ T as_used(T x) const
    {
        return s.turned ? conj(x) : x;
    }
    __device__ __forceinline__ const T *of_triangle(int64_t i, int64_t k) const
    {
        return s.a + i * s.down + k * s.across;
    }
    template <int N>
    static __device__ __forceinline__ void clear(Fragment<T, 4> (&x)[N])
    {
        BL_UNROLL
        for (int f = 0; f < N; f++)
            BL_UNROLL
        for (int q = 0; q < 4; q++)
            x[f].set(q, from_real<T>(0));
    }

    /* ---- products ---- */

    /* A barrier of the warps that take products. */
    static __device__ __forceinline__ void meet_takers()
    {
        constexpr int BARRIER = 1, COUNT = 32 * S::TURNS * S::PARTS;
#    ifdef BL_HOST_CUDA
        host_warp::meet_at(BARRIER, COUNT);
#    else
        cluster::await(BARRIER, COUNT);
#    endif
    }

    /* Which rows and columns of 16 x 8 elements of the triangle a lane has: those that
     * lie side by side in memory are neighbours, the one at the lower address first. */
    struct Places {
        int row[2], column[2];
        __device__ Places(const LargeMany<T> &s, int g, int t)
        {
            const bool plain = s.down == 1 || s.down == -1;
            BL_UNROLL
            for (int h = 0; h < 2; h++) {
                row[h] = plain ? 2 * g + (s.down < 0 ? 1 - h : h) : g + 8 * h;
                column[h] = plain ? t + 4 * h : 2 * t + (s.across < 0 ? 1 - h : h);
            }
        }
    };

    /* What a warp that takes products has loaded ahead: of its `turn`, every other step,
     * in the rows from `part` on of a block. */
    struct Ahead {
        const Places at;
        const int part, turn;
        const T *from[2];
        T x[S::AHEAD][4];
        __device__ Ahead(const Places &places, int its_part, int its_turn)
            : at(places), part(its_part), turn(its_turn)
        {
        }
    };

    __device__ __forceinline__ void load_step(const T *(&from)[2], T (&to)[4]) const
    {
        const bool plain = s.down == 1 || s.down == -1;
        const int64_t other = plain ? s.down : s.across;
        T two[2][2];
        BL_UNROLL
        for (int h = 0; h < 2; h++) {
            if constexpr (PAIRED) {
                load_run(from[h], two[h]);
            } else {
                two[h][0] = from[h][0];
                two[h][1] = from[h][other < 0 ? -other : other];
            }
            from[h] += 8 * S::TURNS * s.across;
        }
        to[0] = two[0][0];
        to[1] = plain ? two[0][1] : two[1][0];
        to[2] = plain ? two[1][0] : two[0][1];
        to[3] = two[1][1];
    }
    /* The first steps of the block of rows from i0 on. What is behind the last row and
     * lies beside others is there, but of no use. */
    __device__ __forceinline__ void load_ahead(Ahead &a, int i0) const
    {
        const bool plain = s.down == 1 || s.down == -1;
        const int begin = i0 + a.part, column = 8 * a.turn;
        BL_UNROLL
        for (int h = 0; h < 2; h++)
            a.from[h] = plain ? of_triangle(begin + a.at.row[0], column + a.at.column[h])
                              : of_triangle(min(begin + a.at.row[h], n - 1),
                                            column + a.at.column[0]);
        BL_UNROLL
        for (int j = 0; j < S::AHEAD; j++)
            load_step(a.from, a.x[j]);
    }

    /* The block of rows from i0 on, which is in shared memory, loses the products of all
     * rows before; what the next one needs is loaded then. */
    __device__ __forceinline__ void take_products(Ahead &a, int i0)
    {
        Fragment<T, 4> sums[S::FRAGMENTS];
        clear(sums);
        const T *right_rows[2];
        BL_UNROLL
        for (int h = 0; h < 2; h++)
            right_rows[h] = m.solution + (8 * a.turn + a.at.column[h]) * S::PITCH_B + g;
        auto multiply_ahead = [&](bool loads) {
            BL_UNROLL
            for (int j = 0; j < S::AHEAD; j++) {
                Factor<T, 4> left;
                Factor<T, 2> right[S::FRAGMENTS];
                BL_UNROLL
                for (int q = 0; q < 4; q++)
                    left.set(q, as_used(a.x[j][q]));
                BL_UNROLL
                for (int f = 0; f < S::FRAGMENTS; f++)
                    BL_UNROLL
                for (int h = 0; h < 2; h++)
                    right[f].set(h, right_rows[h][8 * S::TURNS * j * S::PITCH_B + 8 * f]);
                multiply_row(sums, left, right);
                if (loads) {
                    load_step(a.from, a.x[j]);
                    __syncwarp(); /* or the assembler has all loads at the end */
                }
            }
            right_rows[0] += S::BLOCK * S::PITCH_B;
            right_rows[1] += S::BLOCK * S::PITCH_B;
        };
        _Pragma("unroll 1") for (int k = S::BLOCK; k < i0; k += S::BLOCK)
            multiply_ahead(true);
        __syncthreads(); /* the block before has been solved for */
        multiply_ahead(false);
        auto load_next_block = [&] {
            if (i0 + S::BLOCK < n)
                load_ahead(a, i0 + S::BLOCK);
        };
        auto subtract = [&] {
            BL_UNROLL
            for (int f = 0; f < S::FRAGMENTS; f++)
                BL_UNROLL
            for (int q = 0; q < 4; q++) {
                const int i = i0 + a.part + a.at.row[q / 2];
                T &x = m.solution[i * S::PITCH_B + 8 * f + 2 * t + q % 2];
                if (i < n)
                    x = sub(x, sums[f].get(q));
            }
        };
        if (a.turn == 0) {
            subtract();
            meet_takers();
            load_next_block();
        } else {
            load_next_block();
            meet_takers();
            subtract();
        }
    }

    /* ---- chain ---- */

    /* 8 columns of 16 rows as a factor, of a square in shared memory; 8 rows of the
     * solution. */
    __device__ __forceinline__ void get_left(Factor<T, 4> &left, const T *from,
                                             bool as_it_is) const
    {
        BL_UNROLL
        for (int q = 0; q < 4; q++) {
            const T x = from[(t + q / 2 * 4) * S::PITCH + g + q % 2 * 8];
            left.set(q, as_it_is ? x : as_used(x));
        }
    }
    __device__ __forceinline__ void get_right(Factor<T, 2> &right, const T *rows) const
    {
        BL_UNROLL
        for (int q = 0; q < 2; q++)
            right.set(q, rows[(t + q * 4) * S::PITCH_B + g]);
    }

    /* Eight sides of the block of rows from i0 on, with the inverses as factors. */
    using OfParts = Factor<T, 4>[S::PARTS][S::PART / 8];

    __device__ __forceinline__ void load_inverses(int i0, OfParts &x) const
    {
        BL_UNROLL
        for (int part = 0; part < S::PARTS; part++)
            BL_UNROLL
        for (int l = 0; l < S::PART / 8; l++)
            get_left(x[part][l], m.inverses[i0 / S::BLOCK % 2][part] + 8 * l * S::PITCH,
                     true);
    }
    __device__ __forceinline__ void solve(int i0, int side, const OfParts &inverses)
    {
        T *const own = m.solution + (i0 + g) * S::PITCH_B + side + 2 * t;
        auto number = [](int q) { return q / 2 * 8 * S::PITCH_B + q % 2; };
        T *to = of_sides + (i0 + g) * s.step + side * s.apart;
        const int64_t eight = 8 * s.step;
        const int rows_left = n - i0 - g, sides_left = sides - side - 2 * t;
        BL_UNROLL
        for (int part = 0; part < S::PARTS; part++) {
            constexpr int STEPS = S::PART / 8;
            Factor<T, 2> right[STEPS][1];
            auto load_right = [&] {
                BL_UNROLL
                for (int l = 0; l < STEPS; l++)
                    get_right(right[l][0],
                              m.solution + (i0 + part * S::PART + 8 * l) * S::PITCH_B +
                                  side);
            };
            /* Products that wait for no other are added up afterwards. */
            Fragment<T, 4> sum[STEPS][1];
            T x[4];
            auto sum_of = [&](int q) { return add(sum[0][0].get(q), sum[1][0].get(q)); };
            static_assert(STEPS == 2);
            load_right();
            BL_UNROLL
            for (int l = 0; l < STEPS; l++) {
                clear(sum[l]);
                multiply_row(sum[l], inverses[part][l], right[l]);
            }
            __syncwarp();
            BL_UNROLL
            for (int q = 0; q < 4; q++) {
                x[q] = sum_of(q);
                own[part * S::PART * S::PITCH_B + number(q)] = x[q];
            }
            __syncwarp();
            load_right();
            BL_UNROLL
            for (int q = 0; q < 4; q++)
                if (part * S::PART + q / 2 * 8 < rows_left && q % 2 < sides_left)
                    to[q / 2 * eight + (q % 2 ? s.apart : 0)] = x[q];
            to += 2 * eight;
            BL_UNROLL
            for (int below = part + 1; below < S::PARTS; below++) {
                const T *square = m.below[i0 / S::BLOCK % 2][S::square(below, part)];
                BL_UNROLL
                for (int l = 0; l < STEPS; l++) {
                    Factor<T, 4> left;
                    clear(sum[l]);
                    get_left(left, square + 8 * l * S::PITCH, false);
                    multiply_row(sum[l], left, right[l]);
                }
                BL_UNROLL
                for (int q = 0; q < 4; q++) {
                    T &y = own[below * S::PART * S::PITCH_B + number(q)];
                    y = sub(y, sum_of(q));
                }
            }
            __syncwarp();
        }
    }

    /* ---- inverses ---- */

    /* A warp's share of what is below the diagonal's parts in the block from i0 on. */
    __device__ __forceinline__ void fetch_below(int i0, int fetcher)
    {
        const bool plain = s.down == 1 || s.down == -1;
        const int near = lane % S::PART, far = lane / S::PART, i = plain ? near : far,
                  k = plain ? far : near;
        BL_UNROLL
        for (int column = 0; column < S::PARTS - 1; column++)
            BL_UNROLL
        for (int row = column + 1; row < S::PARTS; row++) {
            if ((row + column) % S::FETCHING != fetcher)
                continue;
            const T *from =
                of_triangle(i0 + row * S::PART + i, i0 + column * S::PART + k);
            T *to = m.below[i0 / S::BLOCK % 2][S::square(row, column)] + k * S::PITCH + i;
            const int rows = n - i0 - row * S::PART - i;
            BL_UNROLL
            for (int l = 0; l < S::PART; l += 2) {
                fetch(to, from, (plain ? 0 : l) < rows);
                from += 2 * (plain ? s.across : s.down);
                to += plain ? 2 * S::PITCH : 2;
            }
        }
        fetched_so_far();
    }

    /* A warp's share of what is to be solved for in the block from i0 on; zeros behind
     * the last row and side. */
    __device__ __forceinline__ void fetch_sides(int i0, int fetcher)
    {
        constexpr int COUNT = S::BLOCK * S::SIDES / (32 * S::FETCHING);
        const bool plain = s.step == 1 || s.step == -1;
        /* Rows that lie side by side by eights, for the sake of the banks. */
        const int near = plain           ? 8
                         : S::SIDES < 32 ? S::SIDES
                                         : 32,
                  far = 32 / near, row = plain ? lane % near : lane / near,
                  side = plain ? lane / near : lane % near;
        const int per_side = S::SIDES / (plain ? far : near);
        _Pragma("unroll 4") for (int q = 0; q < COUNT; q++)
        {
            const int e = q * S::FETCHING + fetcher,
                      r = side + e % per_side * (plain ? far : near),
                      i = i0 + row + e / per_side * (plain ? near : far);
            const bool there = i < n && r < sides;
            fetch(&m.solution[i * S::PITCH_B + r],
                  s.b + i * s.step + (first + r) * s.apart, there);
        }
        fetched_so_far();
    }

    /* Two parts on the diagonal, from `part` on: a lane has a column of an inverse. Rows
     * behind the last one are those of the unit matrix. */
    __device__ __forceinline__ void invert_parts(int i0, int part)
    {
        constexpr int EVERY = 32 / S::PART, COUNT = S::PART / EVERY;
        auto *const squares = m.inverses[i0 / S::BLOCK % 2] + part;
        const int i = lane % S::PART, k = lane / S::PART;
        T x[2][COUNT];
        BL_UNROLL
        for (int h = 0; h < 2; h++) {
            const int begin = i0 + (part + h) * S::PART;
            const T *from = of_triangle(begin + i, begin + k);
            const int last = begin + i < n ? i - s.unit : -1;
            BL_UNROLL
            for (int q = 0; q < COUNT; q++) {
                x[h][q] = i == k + q * EVERY ? one<T>() : from_real<T>(0);
                if (k + q * EVERY <= last)
                    x[h][q] = as_used(*from);
                from += EVERY * s.across;
            }
        }
        BL_UNROLL
        for (int h = 0; h < 2; h++)
            BL_UNROLL
        for (int q = 0; q < COUNT; q++)
            squares[h][(k + q * EVERY) * S::PITCH + i] = x[h][q];
        __syncwarp();
        T *const own = squares[lane / S::PART];
        const int column = lane % S::PART;
        const T reciprocal = div(one<T>(), own[column * S::PITCH + column]);
        T y[S::PART];
        BL_UNROLL
        for (int q = 0; q < S::PART; q++)
            y[q] = q == column ? one<T>() : from_real<T>(0);
        BL_UNROLL
        for (int p = 0; p < S::PART; p++) {
            T of_column[S::PART];
            load_run(own + p * S::PITCH, of_column);
            const T z = mul(y[p], from_lane(reciprocal, lane / S::PART * S::PART + p));
            y[p] = p < column ? from_real<T>(0) : z; /* 0 times infinity is none */
            BL_UNROLL
            for (int q = p + 1; q < S::PART; q++)
                y[q] = minus_product<true, PLAIN, PLAIN>(y[q], of_column[q], y[p]);
        }
        __syncwarp();
        BL_UNROLL
        for (int q = 0; q < S::PART; q++)
            own[column * S::PITCH + q] = y[q];
    }

    __device__ __forceinline__ void fetch_block(int i0, int fetcher)
    {
        fetch_sides(i0, fetcher);
        fetch_below(i0, fetcher);
    }

  public:
    __device__ Many(const LargeMany<T> &what, typename S::Memory &shared)
        : s(what), m(shared), n(int(what.n)), first(int64_t(blockIdx.x) * S::SIDES),
          sides(int(min(what.sides - first, int64_t(S::SIDES)))), lane(threadIdx.x % 32),
          g(lane / 4), t(lane % 4), of_sides(s.b + (first + 2 * t) * s.apart)
    {
    }

    __device__ void run()
    {
        const int warp = threadIdx.x / 32, solver = warp - S::TURNS * S::PARTS;
        if (solver < 0) {
            Ahead ahead(Places(s, g, t), warp % S::PARTS * S::PART, warp / S::PARTS);
            if (n > S::BLOCK)
                load_ahead(ahead, S::BLOCK);
            __syncthreads();
            _Pragma("unroll 1") for (int i0 = S::BLOCK; i0 < n; i0 += S::BLOCK)
            {
                __syncthreads(); /* the block before is there to be solved for */
                take_products(ahead, i0);
            }
            __syncthreads();
            __syncthreads();
        } else if (solver < S::FRAGMENTS) {
            OfParts inverses;
            __syncthreads(); /* the first block's are there */
            _Pragma("unroll 1") for (int i0 = 0; i0 < n; i0 += S::BLOCK)
            {
                load_inverses(i0, inverses);
                __syncthreads();
                solve(i0, solver * 8, inverses);
                __syncthreads();
            }
        } else {
            static_assert(2 * S::INVERTERS == S::PARTS && S::FETCHING == S::INVERTERS);
            const int helper = solver - S::FRAGMENTS;
            auto prepare = [&](int i0) {
                if (S::FETCHERS == 0 || helper >= S::INVERTERS)
                    fetch_block(i0, helper % S::INVERTERS);
                if (helper < S::INVERTERS)
                    invert_parts(i0, 2 * helper);
                await_fetched<0>();
            };
            prepare(0);
            __syncthreads();
            _Pragma("unroll 1") for (int i0 = 0; i0 < n; i0 += S::BLOCK)
            {
                __syncthreads();
                if (i0 + S::BLOCK < n)
                    prepare(i0 + S::BLOCK);
                __syncthreads();
            }
        }
    }
};

#endif

template <class T, int SIDES, bool PAIRED>
__global__ void __launch_bounds__(ManyShape<T, SIDES>::THREADS, 1)
    solve_many(const __grid_constant__ LargeMany<T> s)
{
#if __CUDA_ARCH__ >= 900 || defined BL_HOST_CUDA
    using S = ManyShape<T, SIDES>;
    extern __shared__ __align__(16) char shared[];
    let_next_begin();
    await_previous();
    if (s.unless && *s.unless)
        return;
    Many<T, S, PAIRED>(s, *(typename S::Memory *)shared).run();
#else
    (void)s;
#endif
}

} // namespace bl
#endif
