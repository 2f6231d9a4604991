/* What a block of columns does to the others in fast arithmetic: row interchanges, and
 * the rows of U on the matrix units of sm_90 and up.
 *
 * Instantiated by large_step.cu. A warp owns 16 columns: their first W rows stay in its
 * registers, turned, as fragments of 16 columns by 8 rows, from the gather to the end of
 * the solve. A fragment that is solved for is, as it lies in registers, the left factor
 * of what it does to the fragments below. A block owns up to 64 columns; its four warps
 * fetch L together, in the order in which the right factors need it. Where there are few
 * columns a block owns 16, and every warp a quarter of their fragments. Nothing is
 * assumed of leading dimensions and addresses but that an element's parts are aligned.
 */
#ifndef BL_LARGE_STEP_FRAGMENTS_CUH
#define BL_LARGE_STEP_FRAGMENTS_CUH

#include "large_fragments.cuh"
#include "large_step.cuh"

namespace bl
{

constexpr int FRAGMENT_COLUMNS = 16, STEP_WARPS = 4;

/* Shared memory. Of L its squares of 8 x 8, (f, k) with f >= k one row of them after the
 * other; on the diagonal their inverses. Lane 4 g + t has of a square the row row_of(g),
 * columns t and t + 4. */
template <class T, int W>
struct FragmentStep {
    static constexpr int SQUARES = W / 8, ALL = SQUARES * (SQUARES + 1) / 2;
    struct __align__(16) Pair
    {
        T x[2];
    };
    Pair l[ALL][32];
    Moves<W> moves;
    int pivot[W];

    static __host__ __device__ constexpr int square(int f, int k)
    {
        return f * (f + 1) / 2 + k;
    }
    /* Of a fragment's column c, as the matrix units have it: so that columns 2 t and 2 t
     * + 1 of a result are rows t and t + 4, as of a left factor. */
    static __device__ __forceinline__ int row_of(int c)
    {
        return c / 2 + c % 2 * 4;
    }
    __device__ __forceinline__ T &at(int square, int i, int k)
    {
        return l[square][(i % 4 * 2 + i / 4) * 4 + k % 4].x[k / 4];
    }
};

template <class T, int W>
__device__ __forceinline__ void fetch_squares(const LargeStep<T> &s,
                                              FragmentStep<T, W> &step)
{
    using Step = FragmentStep<T, W>;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, t = lane % 4,
              row = Step::row_of(lane / 4);
    const T *from = s.l + row + (8 * warp + t) * s.ldl;
    for (int f = 0; f < Step::SQUARES; f++, from += 8) {
        const int i = 8 * f + row;
        const T *element = from;
        for (int k = warp; k <= f; k += STEP_WARPS, element += 8 * STEP_WARPS * s.ldl) {
            auto &to = step.l[Step::square(f, k)][lane].x;
            BL_UNROLL
            for (int h = 0; h < 2; h++)
                fetch(to + h, element + 4 * h * s.ldl, i < s.w && 8 * k + t + 4 * h < i);
        }
    }
    fetched_so_far();
}

/* Eight threads a square, which has ones on its diagonal: a column each. */
template <class T, int W>
__device__ __forceinline__ void invert_squares(FragmentStep<T, W> &step)
{
    using Step = FragmentStep<T, W>;
    const int f = threadIdx.x / 8, square = Step::square(f, f), column = threadIdx.x % 8;
    static_assert(Step::SQUARES % 4 == 0, "whole warps");
    if (f >= Step::SQUARES)
        return;
    T x[8];
    BL_UNROLL
    for (int i = 0; i < 8; i++)
        x[i] = i == column ? one<T>() : from_real<T>(0);
    BL_UNROLL
    for (int k = 0; k < 8; k++)
        BL_UNROLL
    for (int i = k + 1; i < 8; i++)
        x[i] = minus_product<true, PLAIN, PLAIN>(x[i], step.at(square, i, k), x[k]);
    __syncwarp();
    BL_UNROLL
    for (int i = 0; i < 8; i++)
        step.at(square, i, column) = x[i];
}

/* The same, and what is solved for, which goes from warp to warp. For all cards: its size
 * is asked for by the host. */
template <class T, int W>
struct SharedStep {
    FragmentStep<T, W> step;
    Fragment<T, 4> solved[2][32];
};

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900

/* A result as a left factor, or minus that. */
__device__ __forceinline__ Fragment<double, 4> left_factor(const Fragment<double, 4> &c,
                                                           double sign)
{
    return {{sign * c.x[0], sign * c.x[2], sign * c.x[1], sign * c.x[3]}};
}

__device__ __forceinline__ Fragment<Complex<double>, 4>
left_factor(const Fragment<Complex<double>, 4> &c, double sign)
{
    return {{sign * c.x[0], sign * c.x[2], sign * c.x[1], sign * c.x[3]},
            {sign * c.im[0], sign * c.im[2], sign * c.im[1], sign * c.im[3]}};
}

/* c += a (square)'. */
template <class T, class Pair>
__device__ __forceinline__ void multiply_square(Fragment<T, 4> (&c)[1][1],
                                                const Fragment<T, 4> (&a)[1],
                                                const Pair &square)
{
    Fragment<T, 2> b[1];
    b[0].set(0, square.x[0]);
    b[0].set(1, square.x[1]);
    multiply_all(c, a, b);
}

template <class T, int W>
__device__ __forceinline__ void solve_fragments(const FragmentStep<T, W> &step,
                                                Fragment<T, 4> (&x)[W / 8][1][1])
{
    using Step = FragmentStep<T, W>;
    const int lane = threadIdx.x % 32;
    auto solve = [&](int k) {
        const Fragment<T, 4> a[1] = {left_factor(x[k][0][0], 1)};
        x[k][0][0] = {};
        multiply_square<T>(x[k], a, step.l[Step::square(k, k)][lane]);
    };
    constexpr int LAST = W / 8 - 1;
    solve(0);
    BL_UNROLL
    for (int k = 0; k < LAST; k++) {
        const Fragment<T, 4> a[1] = {left_factor(x[k][0][0], -1)};
        BL_UNROLL
        for (int f = k + 1; f <= LAST; f++) {
            multiply_square<T>(x[f], a, step.l[Step::square(f, k)][lane]);
            if (f == min(k + 2, LAST)) /* early, but not at once: results take time */
                solve(k + 1);
        }
    }
}

/* All threads of a block: what the interchanges come to, and L on its way. Where there
 * are no pivots, the rows stay where they are. */
template <class T, int W>
__device__ __forceinline__ void begin_step(const LargeStep<T> &s, bool solves,
                                           FragmentStep<T, W> &step)
{
    Moves<W> &moves = step.moves;
    const int thread = threadIdx.x;
    int pivot = -1;
    if (s.ipiv && thread < s.w)
        pivot = int(Pivots{(void *)s.ipiv, s.int_size, 0}.get(thread) - s.base);
    if (solves)
        fetch_squares(s, step);
    if (thread < W) {
        step.pivot[thread] = pivot;
        if (!s.ipiv) {
            moves.source[thread] = moves.former[thread] = thread < s.w ? thread : 0;
            moves.place[thread] = -1;
        }
    }
    __syncthreads();
    if (s.ipiv)
        compose_moves(s.w, step.pivot, moves);
    __syncthreads();
}

/* A warp's columns in memory, up to 16, and of their rows up to w the fragments begin,
 * begin + WARPS, ...: WARPS of them have the columns together. */
template <class T, int W, int WARPS = 1>
struct HeldColumns {
    static constexpr int OWN = W / 8 / WARPS;
    T *const first; /* of the lane */
    const int64_t ldb;
    const int w, columns, begin;
    Fragment<T, 4> x[OWN][1][1] = {};

    __device__ __forceinline__ HeldColumns(const LargeStep<T> &s, int64_t j, int count,
                                           int fragment = 0)
        : first(s.b + (j + (count > 0 ? int(threadIdx.x) % 32 / 4 : 0)) * s.ldb),
          ldb(s.ldb), w(s.w), columns(count), begin(fragment)
    {
    }
    /* act(x, q, i, column): element q of x is row i there. */
    template <class Act>
    __device__ __forceinline__ void each(const Act &act)
    {
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
        auto all = [&](auto there) {
            BL_UNROLL
            for (int f = 0; f < OWN; f++)
                BL_UNROLL
            for (int q = 0; q < 4; q++) {
                const int i = 8 * (begin + WARPS * f) + t + q % 2 * 4, c = q / 2 * 8;
                if (there(i, g + c))
                    act(x[f][0][0], q, i, first + c * ldb);
            }
        };
        if (w == W && columns >= FRAGMENT_COLUMNS)
            all([](int, int) { return true; });
        else
            all([&](int i, int c) { return i < w && c < columns; });
    }
    __device__ __forceinline__ void gather(const Moves<W> &moves)
    {
        each([&](auto &y, int q, int i, const T *column) {
            y.set(q, column[moves.source[i]]);
        });
    }
    __device__ __forceinline__ void store()
    {
        each([](const auto &y, int q, int i, T *column) { column[i] = y.get(q); });
    }
};

/* Rows that move down in all of a block's columns, of which a warp has `first`, first +
 * `others`, ..., AT_ONCE: a lane has rows of whole columns. */
template <class T, int W, int AT_ONCE>
struct DownColumns {
    T *const b;
    const int64_t ldb;
    const int first, others, there;
    T x[W / 32][AT_ONCE];

    __device__ __forceinline__ void read(const Moves<W> &moves)
    {
        BL_UNROLL
        for (int q = 0; q < W / 32; q++)
            BL_UNROLL
        for (int c = 0; c < AT_ONCE; c++)
            x[q][c] = b[moves.former[int(threadIdx.x) % 32 + 32 * q] +
                        min(first + c * others, there - 1) * ldb];
    }
    __device__ __forceinline__ void write(const Moves<W> &moves) const
    {
        BL_UNROLL
        for (int q = 0; q < W / 32; q++) {
            const int place = moves.place[int(threadIdx.x) % 32 + 32 * q];
            if (place >= 0)
                BL_UNROLL
            for (int c = 0; c < AT_ONCE; c++)
                if (first + c * others < there)
                    b[place + (first + c * others) * ldb] = x[q][c];
        }
    }
};

/* The interchanges of the `there` columns from j on, which a block owns, and where it
 * `solves` the rows of U. */
template <class T, int W>
__device__ __forceinline__ void take_columns(const LargeStep<T> &s, int64_t j, int there,
                                             bool solves, FragmentStep<T, W> &step)
{
    const int warp = threadIdx.x / 32, own = FRAGMENT_COLUMNS * warp;
    const Moves<W> &moves = step.moves;
    begin_step(s, solves, step);
    HeldColumns<T, W> held(s, j + own, there - own);
    held.gather(moves);
    if (solves)
        await_fetched<0>();
    __syncthreads(); /* what is to move up has been read */
    if (solves)
        invert_squares(step);
    __syncthreads();

    /* What moves down, by the warps that own no columns, or by all. */
    constexpr int AT_ONCE = 4;
    const int owners = (there + FRAGMENT_COLUMNS - 1) / FRAGMENT_COLUMNS,
              others = owners < STEP_WARPS ? STEP_WARPS - owners : STEP_WARPS,
              first = warp - (STEP_WARPS - others);
    for (int c = first; s.ipiv && first >= 0 && c < there; c += AT_ONCE * others) {
        DownColumns<T, W, AT_ONCE> down = {s.b + j * s.ldb, s.ldb, c, others, there, {}};
        down.read(moves);
        down.write(moves);
    }
    if (solves && own < there)
        solve_fragments<T, W>(step, held.x);
    __syncthreads(); /* and what is to move down */
    if (own < there)
        held.store();
}

/* The same for up to 16 columns, which the block's warps own together, where it is the
 * time that counts. */
template <class T, int W>
__device__ __forceinline__ void share_columns(const LargeStep<T> &s, int64_t j, int there,
                                              bool solves, SharedStep<T, W> &shared)
{
    using Step = FragmentStep<T, W>;
    constexpr int WARPS = STEP_WARPS, LAST = W / 8 - 1;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Step &step = shared.step;
    begin_step(s, solves, step);
    HeldColumns<T, W, WARPS> held(s, j, there, warp);
    held.gather(step.moves);
    if (solves)
        await_fetched<0>();
    __syncthreads(); /* what is to move up has been read */
    DownColumns<T, W, FRAGMENT_COLUMNS / WARPS> down = {s.b + j * s.ldb, s.ldb, warp,
                                                        WARPS,           there, {}};
    if (s.ipiv)
        down.read(step.moves);
    if (solves)
        invert_squares(step);
    __syncthreads(); /* and what is to move down, and the squares are inverted */
    if (s.ipiv)
        down.write(step.moves);
    if (solves) {
        auto solve = [&](int k) {
            if (warp != k % WARPS)
                return;
            auto &x = held.x[k / WARPS];
            const Fragment<T, 4> a[1] = {left_factor(x[0][0], 1)};
            x[0][0] = {};
            multiply_square<T>(x, a, step.l[Step::square(k, k)][lane]);
            shared.solved[k % 2][lane] = x[0][0];
        };
        solve(0);
        BL_UNROLL
        for (int k = 0; k < LAST; k++) {
            __syncthreads();
            const Fragment<T, 4> a[1] = {left_factor(shared.solved[k % 2][lane], -1)};
            const int next = (k + 1) / WARPS;
            BL_UNROLL
            for (int q = next; q < W / 8 / WARPS; q++) {
                const int f = WARPS * q + warp;
                if (f > k)
                    multiply_square<T>(held.x[q], a, step.l[Step::square(f, k)][lane]);
                if (q == next) /* the others wait for it */
                    solve(k + 1);
            }
        }
    }
    held.store();
}

#endif

template <class T>
struct FragmentStepOf {
    LargeStep<T> step;
    int held; /* columns of a block: 16, 32 or 64 */
};

template <class T, int W>
__global__ void __launch_bounds__(32 * STEP_WARPS, 2)
    take_fragment_step(const FragmentStepOf<T> job)
{
#if __CUDA_ARCH__ >= 900 || defined BL_HOST_CUDA
    extern __shared__ __align__(16) char shared[];
    const LargeStep<T> &s = job.step;
    const int64_t held = job.held, left_blocks = (s.left_end - s.left + held - 1) / held;
    const bool right = blockIdx.x >= left_blocks;
    const int64_t j =
        right ? s.right + (blockIdx.x - left_blocks) * held : s.left + blockIdx.x * held;
    const int there = int(min((right ? s.right_end : s.left_end) - j, held));
    let_next_begin();
    await_previous();
    take_columns(s, j, there, right && s.l, *(FragmentStep<T, W> *)shared);
#else
    (void)job;
#endif
}

template <class T, int W>
__global__ void __launch_bounds__(32 * STEP_WARPS)
    share_fragment_step(const LargeStep<T> s)
{
#if __CUDA_ARCH__ >= 900 || defined BL_HOST_CUDA
    extern __shared__ __align__(16) char shared[];
    constexpr int HELD = FRAGMENT_COLUMNS;
    const int64_t left_blocks = (s.left_end - s.left + HELD - 1) / HELD;
    const bool right = blockIdx.x >= left_blocks;
    const int64_t j = right ? s.right + (blockIdx.x - left_blocks) * HELD
                            : s.left + blockIdx.x * int64_t(HELD);
    const int there = int(min((right ? s.right_end : s.left_end) - j, int64_t(HELD)));
    let_next_begin();
    await_previous();
    share_columns(s, j, there, right && s.l, *(SharedStep<T, W> *)shared);
#else
    (void)s;
#endif
}

} // namespace bl
#endif
