/* What a panel does to the few columns beside it, in fast arithmetic and in one kernel:
 * the interchanges, the rows of U and the update of all rows below.
 *
 * Instantiated by large_step.cu, for sm_90 and up. A cluster owns 16 columns on the right
 * and each of its blocks a stripe of their rows below the panel's; the first rows every
 * warp has in its registers, as in large_step_fragments.cuh, where a solved fragment is
 * the left factor for the rows below, too. Before any row is written, all blocks of the
 * cluster have read what comes to their registers. Of the columns on the left a block
 * owns up to 64, which only take the interchanges.
 */
#ifndef BL_LARGE_BESIDE_CUH
#define BL_LARGE_BESIDE_CUH

#include "cluster.cuh"
#include "large_step_fragments.cuh"

namespace bl
{

constexpr int BESIDE_WIDTH = 32;    /* of a panel, at most */
constexpr int BESIDE_STRIPE = 4096; /* rows of a block, at most */

template <class T>
struct BesidePanel {
    LargeStep<T> step;
    int64_t rows;   /* of B and L, from the panel's first row on */
    int stripe;     /* rows of a block, a multiple of 8 */
    int left_first; /* the first block of those for the columns on the left */
};

/* Shared memory: `top` has the first rows of the columns as they were; from[i] says which
 * of them comes to row i of the stripe, or -1. */
template <class T>
struct BesideMemory {
    FragmentStep<T, BESIDE_WIDTH> step;
    T top[FRAGMENT_COLUMNS][BESIDE_WIDTH];
    signed char from[BESIDE_STRIPE];
};

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900

/* Eight rows below, turned, and L's there. */
template <class T>
struct RowsBelow {
    static constexpr int SQUARES = BESIDE_WIDTH / 8;
    Fragment<T, 4> c[1][1];
    typename FragmentStep<T, BESIDE_WIDTH>::Pair l[SQUARES];

    /* From row i0 of B on, of which `rows` are there. */
    __device__ __forceinline__ void load(const LargeStep<T> &s, const T *column,
                                         int64_t i0, int rows, int columns)
    {
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4,
                  row = FragmentStep<T, BESIDE_WIDTH>::row_of(g);
        const T *const from = s.l + i0 + row + t * s.ldl;
        const bool whole =
            rows >= 8 && columns >= FRAGMENT_COLUMNS && s.w == BESIDE_WIDTH;
        auto all = [&](auto there) {
            BL_UNROLL
            for (int k = 0; k < SQUARES; k++)
                BL_UNROLL
            for (int h = 0; h < 2; h++) {
                const int j = 8 * k + 4 * h;
                l[k].x[h] =
                    there(row, rows, j + t, s.w) ? from[j * s.ldl] : from_real<T>(0);
            }
            BL_UNROLL
            for (int q = 0; q < 4; q++) {
                const int i = t + q % 2 * 4, j = q / 2 * 8;
                c[0][0].set(q, there(i, rows, g + j, columns) ? column[i0 + i + j * s.ldb]
                                                              : from_real<T>(0));
            }
        };
        if (whole)
            all([](int, int, int, int) { return true; });
        else
            all([](int i, int m, int j, int n) { return i < m && j < n; });
    }
    __device__ __forceinline__ void store(const LargeStep<T> &s, T *column, int64_t i0,
                                          int rows, int columns) const
    {
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
        BL_UNROLL
        for (int q = 0; q < 4; q++) {
            const int i = t + q % 2 * 4, j = q / 2 * 8;
            if (i < rows && g + j < columns)
                column[i0 + i + j * s.ldb] = c[0][0].get(q);
        }
    }
};

template <class T>
__device__ __forceinline__ void take_beside(const BesidePanel<T> &p, int64_t j,
                                            BesideMemory<T> &memory)
{
    constexpr int W = BESIDE_WIDTH, AT_ONCE = Traits<T>::complex ? 2 : 4;
    const LargeStep<T> &s = p.step;
    const int thread = threadIdx.x, warp = thread / 32, g = thread % 32 / 4,
              t = thread % 4,
              columns = int(min(s.right_end - j, int64_t(FRAGMENT_COLUMNS)));
    const int64_t begin = s.w + int64_t(cluster::rank()) * p.stripe;
    const int rows = int(max(int64_t(0), min(int64_t(p.stripe), p.rows - begin)));

    for (int e = thread; e < W * FRAGMENT_COLUMNS; e += 32 * STEP_WARPS) {
        const int i = e % W, c = e / W;
        const bool there = i < s.w && c < columns;
        fetch(&memory.top[c][i], there ? s.b + i + (j + c) * s.ldb : s.b, there);
    }
    for (int i = thread; i < rows; i += 32 * STEP_WARPS)
        memory.from[i] = -1;

    HeldColumns<T, W> held(s, j, columns);
    RowsBelow<T> below[AT_ONCE];
    auto first_of = [&](int n) { return 8 * (warp + STEP_WARPS * n); };
    auto load = [&](RowsBelow<T> &x, int i) {
        if (i < rows)
            x.load(s, held.first, begin + i, rows - i, columns);
    };
    BL_UNROLL
    for (int n = 0; n < AT_ONCE; n++)
        load(below[n], first_of(n));

    begin_step(s, true, memory.step);
    if (thread < W) {
        const int64_t i = memory.step.moves.place[thread] - begin;
        if (i >= 0 && i < rows)
            memory.from[i] = (signed char)memory.step.moves.former[thread];
    }
    held.gather(memory.step.moves);
    await_fetched<0>();
    __syncthreads();
    invert_squares(memory.step);
    __syncthreads();
    cluster::release();
    solve_fragments<T, W>(memory.step, held.x);
    Fragment<T, 4> u[W / 8][1];
    BL_UNROLL
    for (int k = 0; k < W / 8; k++)
        u[k][0] = left_factor(held.x[k][0][0], -1);
    cluster::acquire();
    if (cluster::rank() == 0 && warp == 0)
        held.store();
    for (int n = 0; first_of(n) < rows; n += AT_ONCE)
        BL_UNROLL
    for (int b = 0; b < AT_ONCE; b++) {
        const int i = first_of(n + b);
        if (i >= rows)
            break;
        RowsBelow<T> &x = below[b];
        BL_UNROLL
        for (int q = 0; q < 4; q++) {
            const int r = i + t + q % 2 * 4, from = r < rows ? memory.from[r] : -1;
            if (from >= 0)
                x.c[0][0].set(q, memory.top[g + q / 2 * 8][from]);
        }
        BL_UNROLL
        for (int k = 0; k < W / 8; k++)
            multiply_square<T>(x.c, u[k], x.l[k]);
        x.store(s, held.first, begin + i, rows - i, columns);
        load(x, first_of(n + b + AT_ONCE));
    }
}

/* Block `block` of the grid. */
template <class T>
__device__ __forceinline__ void take_beside_panel(const BesidePanel<T> &p, int block,
                                                  BesideMemory<T> &memory)
{
    const LargeStep<T> &s = p.step;
    let_next_begin();
    await_previous();
    if (block < p.left_first) {
        take_beside(p, s.right + block / cluster::blocks() * FRAGMENT_COLUMNS, memory);
        return;
    }
    constexpr int HELD = FRAGMENT_COLUMNS * STEP_WARPS;
    const int64_t j = s.left + int64_t(block - p.left_first) * HELD;
    if (j < s.left_end)
        take_columns(s, j, int(min(s.left_end - j, int64_t(HELD))), false, memory.step);
}

#endif

template <class T>
__global__ void __launch_bounds__(32 * STEP_WARPS, 2) beside_panel(const BesidePanel<T> p)
{
#if __CUDA_ARCH__ >= 900
    __shared__ __align__(16) char memory[sizeof(BesideMemory<T>)];
    take_beside_panel(p, int(blockIdx.x), *(BesideMemory<T> *)memory);
#else
    (void)p;
#endif
}

} // namespace bl
#endif
