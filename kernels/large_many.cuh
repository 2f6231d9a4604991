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

/* Of shared memory: what a block can have on every card of sm_90. */
constexpr size_t LARGE_MANY_BYTES = 227 << 10;

template <class T, int SIDES_>
struct ManyShape {
    static constexpr int SIDES = SIDES_, BLOCK = 64, PART = 16, PARTS = BLOCK / PART;
    /* For the products a warp has a part's rows. */
    static constexpr int ACROSS = SIDES > 8 ? 2 : 1, WARPS = PARTS * ACROSS,
                         THREADS = 32 * WARPS, FRAGMENTS = SIDES / 8 / ACROSS;
    /* Warps in the chain; and how many parts each of the others inverts. */
    static constexpr int SOLVERS = SIDES / 8, HELPERS = WARPS - SOLVERS,
                         EACH = (PARTS + HELPERS - 1) / HELPERS;
    static_assert(HELPERS > 0);
    static constexpr int PAD = 32 / int(sizeof(T)); /* no bank twice */
    static constexpr int PITCH_A = BLOCK + PAD, PITCH_B = SIDES + PAD,
                         PITCH_INVERSE = PART + PAD;

    struct Lasting {
        T solution[LARGE_MANY_ORDER * PITCH_B];     /* a row after the other */
        T inverses[2][PARTS][PART * PITCH_INVERSE]; /* columns, of a block and the next */
    };
    /* Columns of the triangle in a slice, and how many slices are there or on their way:
     * as many as there is room for, up to eight. */
    static constexpr int DEPTH = sizeof(T) == 16 ? 16 : 32, SIZE = DEPTH * PITCH_A,
                         ROOM = int((LARGE_MANY_BYTES - sizeof(Lasting)) /
                                    (SIZE * sizeof(T))),
                         STAGES = ROOM < 8 ? ROOM : 8;
    static_assert(STAGES > 2);

    struct Memory : Lasting {
        T slices[STAGES][SIZE];
    };
};

/* U x V elements that a block moves between global memory, where they are `of_u` and
 * `of_v` apart, and shared memory, where those of one v lie side by side and PITCH from v
 * to v. Where it is not these that lie side by side in global memory, too, elements are
 * taken by eights, for the sake of the banks. */
template <int U, int V, int PITCH, int THREADS>
struct CopyPlaces {
    static constexpr int COUNT = U * V / THREADS, EIGHTS = THREADS / 8;
    static_assert(U * V % THREADS == 0 && (EIGHTS % U == 0 || U % EIGHTS == 0));
    const bool straight;
    const int u, v; /* of the thread's first element */

    __device__ CopyPlaces(int64_t of_u, int thread)
        : straight(of_u == 1 || of_u == -1), u(straight ? thread % U : thread / 8 % U),
          v(straight ? thread / U : thread % 8 + thread / (8 * U) * 8)
    {
    }
    /* act(u, v, place in global memory, in shared memory). */
    template <class Act>
    __device__ __forceinline__ void each(int64_t of_u, int64_t of_v, const Act &act) const
    {
        const int64_t far = u * of_u + v * of_v;
        const int near = v * PITCH + u;
        if (straight) {
            BL_UNROLL
            for (int q = 0; q < COUNT; q++) {
                const int dv = q * (THREADS / U);
                act(u, v + dv, far + dv * of_v, near + dv * PITCH);
            }
        } else {
            BL_UNROLL
            for (int q = 0; q < COUNT; q++) {
                const int du = q * EIGHTS % U, dv = q * EIGHTS / U * 8;
                act(u + du, v + dv, far + du * of_u + dv * of_v, near + dv * PITCH + du);
            }
        }
    }
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
    const CopyPlaces<S::BLOCK, S::DEPTH, S::PITCH_A, S::THREADS> of_triangle;
    const CopyPlaces<S::SIDES, S::BLOCK, S::PITCH_B, S::THREADS> of_sides;
    int block_to_fetch = 0, slice_to_fetch = 0, slot_to_fetch = 0, slot = 0;

    __device__ T as_used(T x) const
    {
        return s.turned ? conj(x) : x;
    }

    /* The next slice, and with the first one of a block of rows what is to be solved for.
     */
    __device__ __forceinline__ void fetch_next()
    {
        if (block_to_fetch < blocks) {
            const int64_t i0 = block_to_fetch * S::BLOCK, k0 = slice_to_fetch * S::DEPTH;
            const T *from = s.a + i0 * s.down + k0 * s.across;
            T *const to = m.slices[slot_to_fetch];
            const int rows = int(s.n - i0), columns = int(s.n - k0);
            of_triangle.each(s.down, s.across, [&](int i, int k, int64_t far, int near) {
                fetch(to + near, from + far, i < rows && k < columns);
            });
            if (slice_to_fetch == 0) {
                const T *sides_from = s.b + i0 * s.step + first * s.apart;
                T *const sides_to = m.solution + i0 * S::PITCH_B;
                of_sides.each(s.apart, s.step, [&](int r, int i, int64_t far, int near) {
                    fetch(sides_to + near, sides_from + far, i < rows && r < sides);
                });
            }
            slice_to_fetch++;
            if (slice_to_fetch == (block_to_fetch + 1) * (S::BLOCK / S::DEPTH)) {
                slice_to_fetch = 0;
                block_to_fetch++;
            }
        }
        fetched_so_far();
        slot_to_fetch = slot_to_fetch + 1 == S::STAGES ? 0 : slot_to_fetch + 1;
    }

    /* The solution in the rows from i0 on. */
    __device__ __forceinline__ void put(int64_t i0) const
    {
        T *const to = s.b + i0 * s.step + first * s.apart;
        const T *from = m.solution + i0 * S::PITCH_B;
        const int rows = int(s.n - i0);
        of_sides.each(s.apart, s.step, [&](int r, int i, int64_t far, int near) {
            if (i < rows && r < sides)
                to[far] = from[near];
        });
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

    /* What a lane has of a part on a block's diagonal; rows behind the last one are those
     * of the unit matrix. */
    using OfPart = T[S::PART * S::PART / 32];

    __device__ __forceinline__ void load_part(int block, int part, OfPart &x) const
    {
        const int64_t first_row = int64_t(block) * S::BLOCK + part * S::PART;
        BL_UNROLL
        for (int q = 0; q < S::PART * S::PART / 32; q++) {
            const int e = q * 32 + lane, i = e % S::PART, k = e / S::PART;
            x[q] = i == k ? one<T>() : from_real<T>(0);
            if (i >= k && !(i == k && s.unit) && first_row + i < s.n)
                x[q] =
                    as_used(s.a[(first_row + i) * s.down + (first_row + k) * s.across]);
        }
    }

    /* Its inverse: a lane has a column. */
    __device__ void invert_part(int block, int part, const OfPart &x)
    {
        T *const to = m.inverses[block % 2][part];
        BL_UNROLL
        for (int q = 0; q < S::PART * S::PART / 32; q++) {
            const int e = q * 32 + lane;
            to[e / S::PART * S::PITCH_INVERSE + e % S::PART] = x[q];
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
            const T z = mul(y[k], from_lane(reciprocal, k));
            y[k] = k < column ? from_real<T>(0) : z; /* 0 times infinity is none */
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

    /* A factor of 16 rows and 8 columns, whose columns lie `pitch` apart; of 8 rows of
     * the solution. */
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
                sums[f], m.solution + (i0 + part * S::PART) * S::PITCH_B + side + 8 * f,
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
          blocks(int((what.n + S::BLOCK - 1) / S::BLOCK)), of_triangle(what.down, thread),
          of_sides(what.apart, thread)
    {
    }

    __device__ void run()
    {
        for (int stage = 0; stage < S::STAGES - 1; stage++)
            fetch_next();
        OfPart loaded[S::EACH];
        if (warp < S::PARTS) {
            load_part(0, warp, loaded[0]);
            invert_part(0, warp, loaded[0]);
        }
        _Pragma("unroll 1") for (int block = 0; block < blocks; block++)
        {
            const int i0 = block * S::BLOCK;
            auto each_to_invert = [&](const auto &act) {
                BL_UNROLL
                for (int e = 0; e < S::EACH; e++) {
                    const int part = warp - S::SOLVERS + e * S::HELPERS;
                    if (warp >= S::SOLVERS && part < S::PARTS && block + 1 < blocks)
                        act(part, loaded[e]);
                }
            };
            each_to_invert([&](int part, OfPart &x) { load_part(block + 1, part, x); });
            take_products(i0);
            _Pragma("unroll 1") for (int k = 0; k < S::BLOCK; k += S::DEPTH)
            {
                const T *slice = next_slice();
                if (warp < S::SOLVERS)
                    solve_parts(i0, k / S::PART, slice);
                else if (k == 0)
                    each_to_invert([&](int part, const OfPart &x) {
                        invert_part(block + 1, part, x);
                    });
            }
            __syncthreads();
            put(i0);
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
