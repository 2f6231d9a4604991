/* The products that a block of 64 columns of a Cholesky factorisation in fast arithmetic
 * takes before it is factored: those of the columns on the left that belong to the same
 * outer block. Otherwise each block of 64 columns would be followed by an update of few
 * columns, whose launch and way through global memory take longer than its arithmetic.
 *
 * Called by the kernel of large_cholesky.cu, from sm_90 on, and by
 * test/host_large_cholesky.cc, where threads are fibers; see large_cholesky.cuh for v and
 * for what a thread block owns. Slices of the columns go through the shared memory that
 * the block and the rows have afterwards; these are in registers meanwhile, as fragments.
 * A warp has 8 columns of them: of the block on the diagonal the tiles of 16 x 8 that
 * reach below it, and the two tiles of the rows beside.
 */
#ifndef BL_LARGE_CHOLESKY_LEFT_CUH
#define BL_LARGE_CHOLESKY_LEFT_CUH

#include "large_cholesky_fast.cuh"
#include "large_fetch.cuh"

namespace bl
{

/* Slices of DEPTH columns in shared memory: NB lines of a block of 64 columns, then ROWS
 * of the rows beside. */
template <class T, bool UPPER, int ROWS, int THREADS>
struct CholeskySlices {
    static constexpr int LINES = NB + ROWS, DEPTH = 16;
    /* Lines that lie along memory are not padded: their groups of four change places. */
    static constexpr int PITCH = UPPER ? DEPTH : LINES + 32 / int(sizeof(T)),
                         SIZE = UPPER ? LINES * PITCH : DEPTH * PITCH;
    static_assert(NB % DEPTH == 0);

    static BL_HD int place(int line, int k)
    {
        constexpr int EVERY = sizeof(T) == 4 ? 2 : 1;
        return UPPER ? line * DEPTH + (k ^ line / EVERY % 4 * 4) : k * PITCH + line;
    }
    /* N lines from `begin` on, of which `lines` are there; v(0, 0) of them is at `first`.
     */
    template <int N>
    static BL_HD void fetch_lines(T *to, int begin, const T *first, int64_t lda,
                                  int64_t lines, int thread)
    {
        constexpr int SIDE_BY_SIDE = UPPER ? DEPTH : N, STEP = THREADS / SIDE_BY_SIDE;
        const int near = thread % SIDE_BY_SIDE, far = thread / SIDE_BY_SIDE;
        const T *from = first + near + far * lda;
        BL_UNROLL
        for (int q = 0; q < N * DEPTH / THREADS; q++) {
            const int line = UPPER ? far + q * STEP : near,
                      k = UPPER ? near : far + q * STEP;
            const bool there = line < lines;
            fetch(to + place(begin + line, k), there ? from + q * STEP * lda : first,
                  there);
        }
    }
};

template <class T, bool UPPER>
struct CholeskyLeft {
    using Panel = FastCholeskyPanel<T, UPPER>;
    using R = Real<T>;
    static constexpr int THREADS = Panel::THREADS, TILE_ROWS = 16,
                         TILES = (NB + Panel::ROWS) / TILE_ROWS,
                         DIAGONAL_TILES = NB / TILE_ROWS;
    using Slices = CholeskySlices<T, UPPER, Panel::ROWS, THREADS>;
    /* Enough for what is to be taken when the launch before has ended. */
    static constexpr int DEPTH = Slices::DEPTH, SLICES = NB / DEPTH + UPPER;
    static constexpr int PARTS = Traits<T>::complex ? 2 : 1;
    static_assert(THREADS / 32 * TILE_SIDE == NB);

    /* Blocks a multiprocessor: the largest type's sums take too many registers for two.
     */
    static constexpr int AT_ONCE = sizeof(T) == 16 ? 1 : 2;

    /* One after the other. */
    union Memory {
        typename Panel::Memory panel;
        T slices[SLICES * Slices::SIZE];
    };

    const LargeDiagonal<T> &d;
    const int64_t first; /* of the rows beside */
    Memory &memory;
    const int thread, column, row, pair; /* the lane's in a tile, see multiply_tile() */
    R x[TILES][PARTS][4];                /* sums of products */

    BL_HD CholeskyLeft(const LargeDiagonal<T> &what, int64_t first_row, Memory &shared,
                       int its_thread)
        : d(what), first(first_row), memory(shared), thread(its_thread),
          column(its_thread / 32 * TILE_SIDE), row(its_thread % 32 / 4),
          pair(its_thread % 4 * 2), x{}
    {
    }

    /* Of the 64 rows of the block and then ROWS beside, as they are here. */
    BL_HD bool is_there(int line) const
    {
        return line < NB ? line < d.n : first + line - NB < d.beside;
    }
    BL_HD int64_t row_of(int line) const
    {
        return line < NB ? line : d.n + first + line - NB;
    }
    static BL_HD int place(int line, int k)
    {
        return Slices::place(line, k);
    }
    /* `slices` slices from column k0 on. */
    BL_HD void fetch_slices(int64_t k0, int slices) const
    {
        BL_ROLLED
        for (int s = 0; s < SLICES; s++) {
            if (s < slices) {
                T *slice = memory.slices + s * Slices::SIZE;
                const int64_t k = k0 + s * DEPTH;
                Slices::template fetch_lines<NB>(
                    slice, 0, element<const T>(UPPER, d.a, d.lda, 0, k), d.lda, d.n,
                    thread);
                Slices::template fetch_lines<Panel::ROWS>(
                    slice, NB, element<const T>(UPPER, d.a, d.lda, row_of(NB), k), d.lda,
                    d.beside - first, thread);
            }
            fetched_so_far();
        }
    }

    BL_HD bool is_mine(int tile) const
    {
        return tile >= column / TILE_ROWS;
    }
    /* Tiles three at a time, whose loads are under way at once. */
    static constexpr int AT_A_TIME = 3;

    template <int FIRST>
    BL_HD void multiply_tiles(const T *from, int k, const T (&b)[2])
    {
        T a[AT_A_TIME][4];
        BL_UNROLL
        for (int q = 0; q < AT_A_TIME; q++)
            BL_UNROLL
        for (int e = 0; e < 4; e++)
            a[q][e] =
                from[place((FIRST + q) * TILE_ROWS + row + e % 2 * 8, k + e / 2 * 4)];
        BL_UNROLL
        for (int q = 0; q < AT_A_TIME; q++)
            if (FIRST + q >= DIAGONAL_TILES - 1 || is_mine(FIRST + q))
                multiply_parts(x[FIRST + q], a[q], b);
    }
    BL_HD void multiply_slice(const T *from)
    {
        static_assert(TILES == 2 * AT_A_TIME && AT_A_TIME == DIAGONAL_TILES - 1);
        BL_UNROLL
        for (int l = 0; l < DEPTH; l += TILE_SIDE) {
            const int k = l + pair / 2;
            const T b[2] = {from[place(column + row, k)],
                            from[place(column + row, k + 4)]};
            multiply_tiles<AT_A_TIME>(from, k, b);
            if (is_mine(AT_A_TIME - 1))
                multiply_tiles<0>(from, k, b);
        }
    }

    /* Slices that are under way. All threads; the memory is free afterwards. */
    BL_HD void multiply_slices(int slices)
    {
        BL_ROLLED
        for (int s = 0; s < slices; s++) {
            await_fetched<SLICES - 1>();
            Panel::meet_block(); /* it is there */
            multiply_slice(memory.slices + s * Slices::SIZE);
            fetched_so_far(); /* nothing: so that the next one is awaited next */
        }
        Panel::meet_block();
    }

    /* How many columns can be taken while the launch before is at work: those of the
     * blocks before its own. Along memory a slice less: of the last one, what is read
     * together with it would stay in the cache as it was. */
    BL_HD int64_t early() const
    {
        const int64_t columns = d.before - NB - (UPPER ? DEPTH : 0);
        return columns > 0 ? columns : 0;
    }
    BL_HD void take_early()
    {
        const int64_t end = early() - d.before;
        BL_ROLLED
        for (int64_t k0 = -d.before; k0 < end; k0 += SLICES * DEPTH) {
            const int64_t left = (end - k0) / DEPTH;
            const int slices = left < SLICES ? int(left) : SLICES;
            fetch_slices(k0, slices);
            multiply_slices(slices);
        }
    }
    BL_HD void take_late()
    {
        const int slices = int((d.before - early()) / DEPTH);
        fetch_slices(-slices * DEPTH, slices);
        subtract_elements(); /* on their way at the same time */
        multiply_slices(slices);
    }

    BL_HD int line_of(int tile, int e) const
    {
        return tile * TILE_ROWS + row + e / 2 * 8;
    }
    BL_HD int column_of(int e) const
    {
        return column + pair + e % 2;
    }

    /* The sums less the elements of A, where there are such. */
    template <int FIRST>
    BL_HD void subtract_tiles()
    {
        T y[AT_A_TIME][4];
        BL_UNROLL
        for (int q = 0; q < AT_A_TIME; q++)
            BL_UNROLL
        for (int e = 0; e < 4; e++) {
            const int line = line_of(FIRST + q, e), k = column_of(e);
            const bool there = is_there(line) && k < d.n && line >= k;
            const T *at = element<const T>(UPPER, d.a, d.lda, row_of(line), k);
            y[q][e] = *(there ? at : d.a);
            if (!there)
                y[q][e] = from_real<T>(0);
        }
        BL_UNROLL
        for (int q = 0; q < AT_A_TIME; q++)
            BL_UNROLL
        for (int e = 0; e < 4; e++)
            BL_UNROLL
        for (int p = 0; p < PARTS; p++)
            x[FIRST + q][p][e] -= part(y[q][e], p);
    }
    BL_HD void subtract_elements()
    {
        subtract_tiles<AT_A_TIME>();
        if (is_mine(AT_A_TIME - 1))
            subtract_tiles<0>();
    }

    /* Minus that to where it is factored. Positions that no row is at behave as rows of
     * the unit matrix. */
    BL_HD void put()
    {
        typename Panel::Memory &m = memory.panel;
        BL_UNROLL
        for (int r = 0; r < TILES; r++) {
            if (r < DIAGONAL_TILES && !is_mine(r))
                continue;
            BL_UNROLL
            for (int e = 0; e < 4; e++) {
                const int line = line_of(r, e), k = column_of(e);
                T y;
                BL_UNROLL
                for (int p = 0; p < PARTS; p++)
                    part(y, p) = -x[r][p][e];
                if (r >= DIAGONAL_TILES)
                    m.rows[(line - NB) * Panel::PITCH + k] = y;
                else
                    m.block[k * Panel::PITCH + line] =
                        line == k ? from_real<T>(line < d.n ? real(y) : R(1)) : y;
            }
        }
    }
};

} // namespace bl
#endif
