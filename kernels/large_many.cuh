/* A triangular solve with many right-hand sides on the matrix units of sm_90 and up, for
 * fast arithmetic.
 *
 * Instantiated by large_many.cu. A block has SIDES right-hand sides, which stay in shared
 * memory, and goes down the triangle by blocks of 64 rows: these lose the products of all
 * rows before, for which slices of the triangle come through shared memory, several in
 * flight; then they are solved for by parts of 16 rows, with the inverses of the parts'
 * triangles. In that chain a warp has 8 sides and waits for no other; the warps that are
 * left over meanwhile invert the next block's parts.
 */
#ifndef BL_LARGE_MANY_CUH
#define BL_LARGE_MANY_CUH

#include "large_fragments.cuh"
#include "large_many.h"
#include "team.cuh"

namespace bl
{

template <class T, int SIDES_>
struct ManyShape {
    static constexpr int SIDES = SIDES_, BLOCK = 64, PART = 16, PARTS = BLOCK / PART;
    /* Columns of the triangle in a slice, and how many are there or on their way. */
    static constexpr int DEPTH = sizeof(T) == 16 ? 16 : 32,
                         STAGES = sizeof(T) == 16 ? 2 : 3;
    /* For the products a warp has a part's rows. */
    static constexpr int ACROSS = SIDES > 8 ? 2 : 1, WARPS = PARTS * ACROSS,
                         THREADS = 32 * WARPS, FRAGMENTS = SIDES / 8 / ACROSS;
    static constexpr int SOLVERS = SIDES / 8; /* warps */
    static_assert(SOLVERS < WARPS);
    static constexpr int PAD = 32 / int(sizeof(T)); /* no bank twice */
    static constexpr int PITCH_A = BLOCK + PAD, PITCH_B = SIDES + PAD,
                         PITCH_INVERSE = PART + PAD;

    struct Memory {
        T solution[LARGE_MANY_ORDER * PITCH_B]; /* a row after the other */
        T slices[STAGES][DEPTH * PITCH_A];      /* columns */
        T inverses[2][PARTS][PART * PITCH_INVERSE]; /* columns, of a block and the next */
    };
};

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900

template <class T, class S>
class Many
{
    const LargeMany<T> &s;
    typename S::Memory &m;
    const int64_t first; /* of the block's sides */
    const int sides, thread, warp, lane, g, t;
    const int blocks; /* of rows */
    int block_to_fetch = 0, slice_to_fetch = 0, slot_to_fetch = 0, slot = 0;

    __device__ T as_used(T x) const
    {
        return s.turned ? conj(x) : x;
    }

    /* act(row, side) of the thread's elements of 64 rows. Rows that lie side by side are
     * taken by eights, for the sake of the banks. */
    template <class Act>
    __device__ __forceinline__ void each_of_rows(const Act &act) const
    {
        constexpr int COUNT = S::BLOCK * S::SIDES / S::THREADS;
        const bool by_eights = s.step == 1 || s.step == -1;
        BL_UNROLL
        for (int q = 0; q < COUNT; q++) {
            const int e = q * S::THREADS + thread;
            if (by_eights)
                act(e / (8 * S::SIDES) * 8 + e % 8, e / 8 % S::SIDES);
            else
                act(e / S::SIDES, e % S::SIDES);
        }
    }

    __device__ __forceinline__ T *at(int64_t i, int side) const
    {
        return s.b + i * s.step + (first + side) * s.apart;
    }

    /* The next slice, and with the first one of a block of rows what is to be solved for.
     */
    __device__ __forceinline__ void fetch_next()
    {
        if (block_to_fetch < blocks) {
            const int i0 = block_to_fetch * S::BLOCK, k0 = slice_to_fetch * S::DEPTH;
            const bool by_eights = s.across == 1 || s.across == -1;
            BL_UNROLL
            for (int q = 0; q < S::BLOCK * S::DEPTH / S::THREADS; q++) {
                const int e = q * S::THREADS + thread;
                const int i = by_eights ? e / 8 % S::BLOCK : e % S::BLOCK,
                          k = by_eights ? e / (8 * S::BLOCK) * 8 + e % 8 : e / S::BLOCK;
                const bool there = i0 + i < s.n && k0 + k <= i0 + i;
                fetch(&m.slices[slot_to_fetch][k * S::PITCH_A + i],
                      there ? s.a + (i0 + i) * s.down + (k0 + k) * s.across : s.a, there);
            }
            if (slice_to_fetch == 0)
                each_of_rows([&](int i, int side) {
                    const bool there = i0 + i < s.n && side < sides;
                    fetch(&m.solution[(i0 + i) * S::PITCH_B + side],
                          there ? at(i0 + i, side) : s.b, there);
                });
            slice_to_fetch++;
            if (slice_to_fetch == (block_to_fetch + 1) * (S::BLOCK / S::DEPTH)) {
                slice_to_fetch = 0;
                block_to_fetch++;
            }
        }
        fetched_so_far();
        slot_to_fetch = slot_to_fetch + 1 == S::STAGES ? 0 : slot_to_fetch + 1;
    }

    /* The slice that the result is has arrived, and the one before is done with. */
    __device__ __forceinline__ const T *next_slice()
    {
        await_fetched<S::STAGES - 2>();
        __syncthreads();
        fetch_next();
        const T *slice = m.slices[slot];
        slot = slot + 1 == S::STAGES ? 0 : slot + 1;
        return slice;
    }

    /* The inverses of the parts of a block on the diagonal, by `warps` warps of which
     * this one is number `own`: a lane has a column. Rows behind the last one are those
     * of the unit matrix. */
    __device__ void invert(int block, int own, int warps)
    {
        for (int part = own; part < S::PARTS; part += warps) {
            const int64_t first_row = int64_t(block) * S::BLOCK + part * S::PART;
            T *const to = m.inverses[block % 2][part];
            T loaded[S::PART * S::PART / 32];
            BL_UNROLL
            for (int q = 0; q < S::PART * S::PART / 32; q++) {
                const int e = q * 32 + lane, i = e % S::PART, k = e / S::PART;
                loaded[q] = i == k ? one<T>() : from_real<T>(0);
                if (i >= k && !(i == k && s.unit) && first_row + i < s.n)
                    loaded[q] = as_used(
                        s.a[(first_row + i) * s.down + (first_row + k) * s.across]);
            }
            BL_UNROLL
            for (int q = 0; q < S::PART * S::PART / 32; q++) {
                const int e = q * 32 + lane;
                to[e / S::PART * S::PITCH_INVERSE + e % S::PART] = loaded[q];
            }
            __syncwarp();
            const int column = lane % S::PART;
            const T reciprocal = div(one<T>(), to[column * S::PITCH_INVERSE + column]);
            T y[S::PART];
            BL_UNROLL
            for (int i = 0; i < S::PART; i++)
                y[i] = i == column ? one<T>() : from_real<T>(0);
            BL_UNROLL
            for (int k = 0; k < S::PART; k++) {
                const T x = mul(y[k], from_lane(reciprocal, k));
                y[k] = k < column ? from_real<T>(0) : x; /* 0 times infinity is none */
                BL_UNROLL
                for (int i = k + 1; i < S::PART; i++)
                    y[i] = minus_product<true, PLAIN, PLAIN>(
                        y[i], to[k * S::PITCH_INVERSE + i], y[k]);
            }
            __syncwarp();
            if (lane < S::PART)
                BL_UNROLL
            for (int i = 0; i < S::PART; i++)
                to[column * S::PITCH_INVERSE + i] = y[i];
        }
    }

    /* A factor of 16 rows and 8 columns, whose columns lie `pitch` apart; of 8 rows of the
     * solution. */
    __device__ __forceinline__ void get_left(Factor<T, 4> &left, const T *from, int pitch,
                                             bool as_it_is) const
    {
        BL_UNROLL
        for (int q = 0; q < 4; q++) {
            const T x = from[(t + q / 2 * 4) * pitch + g + q % 2 * 8];
            left.set(q, as_it_is ? x : as_used(x));
        }
    }
    __device__ __forceinline__ void get_right(Factor<T, 2> &right, const T *rows) const
    {
        BL_UNROLL
        for (int q = 0; q < 2; q++)
            right.set(q, rows[(t + q * 4) * S::PITCH_B + g]);
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
    /* act(element of 16 rows and 8 sides in shared memory, what the lane has of it). */
    template <class Act>
    __device__ __forceinline__ void each_of_fragment(const Fragment<T, 4> &x, T *rows,
                                                     const Act &act) const
    {
        BL_UNROLL
        for (int q = 0; q < 4; q++)
            act(rows[(g + q / 2 * 8) * S::PITCH_B + 2 * t + q % 2], x.get(q));
    }

    /* The block of rows from i0 on loses the products of all rows before. */
    __device__ __forceinline__ void take_products(int i0)
    {
        const int part = warp % S::PARTS, side = warp / S::PARTS * S::FRAGMENTS * 8;
        Fragment<T, 4> sums[S::FRAGMENTS];
        clear(sums);
        for (int k0 = 0; k0 < i0; k0 += S::DEPTH) {
            const T *slice = next_slice();
            BL_UNROLL
            for (int l = 0; l < S::DEPTH; l += 8) {
                Factor<T, 4> left;
                Factor<T, 2> right[S::FRAGMENTS];
                get_left(left, slice + l * S::PITCH_A + part * S::PART, S::PITCH_A,
                         false);
                BL_UNROLL
                for (int f = 0; f < S::FRAGMENTS; f++)
                    get_right(right[f],
                              m.solution + (k0 + l) * S::PITCH_B + side + 8 * f);
                multiply_row(sums, left, right);
            }
        }
        if (i0 > 0)
            BL_UNROLL
        for (int f = 0; f < S::FRAGMENTS; f++)
            each_of_fragment(
                sums[f],
                m.solution + (i0 + part * S::PART) * S::PITCH_B + side + 8 * f,
                [](T &x, T sum) { x = sub(x, sum); });
    }

    /* The warp's sides of the block of rows from i0 on, of them the parts whose columns
     * are in this slice. */
    __device__ __forceinline__ void solve_parts(int i0, int begin, const T *slice)
    {
        T *const own = m.solution + i0 * S::PITCH_B + warp * 8;
        BL_UNROLL
        for (int p = 0; p < S::DEPTH / S::PART; p++) {
            const int part = begin + p;
            T *const rows = own + part * S::PART * S::PITCH_B;
            const T *inverse = m.inverses[i0 / S::BLOCK % 2][part];
            Factor<T, 4> left;
            Factor<T, 2> right[1];
            Fragment<T, 4> x[1];
            clear(x);
            BL_UNROLL
            for (int l = 0; l < S::PART; l += 8) {
                get_left(left, inverse + l * S::PITCH_INVERSE, S::PITCH_INVERSE, true);
                get_right(right[0], rows + l * S::PITCH_B);
                multiply_row(x, left, right);
            }
            __syncwarp();
            each_of_fragment(x[0], rows, [](T &to, T y) { to = y; });
            __syncwarp();
            BL_UNROLL
            for (int below = 1; below < S::PARTS; below++) {
                if (part + below >= S::PARTS)
                    break;
                Fragment<T, 4> sum[1];
                clear(sum);
                BL_UNROLL
                for (int l = 0; l < S::PART; l += 8) {
                    get_left(left,
                             slice + (p * S::PART + l) * S::PITCH_A +
                                 (part + below) * S::PART,
                             S::PITCH_A, false);
                    get_right(right[0], rows + l * S::PITCH_B);
                    multiply_row(sum, left, right);
                }
                each_of_fragment(sum[0], rows + below * S::PART * S::PITCH_B,
                                 [](T &y, T z) { y = sub(y, z); });
            }
            __syncwarp();
        }
    }

  public:
    __device__ Many(const LargeMany<T> &what, typename S::Memory &shared)
        : s(what), m(shared), first(int64_t(blockIdx.x) * S::SIDES),
          sides(int(min(what.sides - first, int64_t(S::SIDES)))), thread(threadIdx.x),
          warp(thread / 32), lane(thread % 32), g(lane / 4), t(lane % 4),
          blocks(int((what.n + S::BLOCK - 1) / S::BLOCK))
    {
    }

    __device__ void run()
    {
        for (int stage = 0; stage < S::STAGES - 1; stage++)
            fetch_next();
        invert(0, warp, S::WARPS);
        _Pragma("unroll 1") for (int block = 0; block < blocks; block++)
        {
            const int i0 = block * S::BLOCK;
            take_products(i0);
            _Pragma("unroll 1") for (int k = 0; k < S::BLOCK; k += S::DEPTH)
            {
                const T *slice = next_slice();
                if (warp < S::SOLVERS)
                    solve_parts(i0, k / S::PART, slice);
                else if (k == 0 && block + 1 < blocks)
                    invert(block + 1, warp - S::SOLVERS, S::WARPS - S::SOLVERS);
            }
            __syncthreads();
            each_of_rows([&](int i, int side) {
                if (i0 + i < s.n && side < sides)
                    *at(i0 + i, side) = m.solution[(i0 + i) * S::PITCH_B + side];
            });
        }
    }
};

#endif

template <class T, int SIDES>
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
    Many<T, S>(s, *(typename S::Memory *)shared).run();
#else
    (void)s;
#endif
}

} // namespace bl
#endif
