/* The rows below an outer block of a Cholesky factorisation in fast arithmetic that has
 * been factored: 64 columns of them lose the products of the columns on the left that
 * belong to the same outer block, and are solved for with the triangle of the 64. A panel
 * factors the block on the diagonal once more for every few rows beside; of many rows
 * that would be most of the work.
 *
 * Called by the kernel of large_cholesky.cu, from sm_90 on, and by
 * test/host_large_cholesky.cc, where threads are fibers; see large_cholesky.cuh for v. A
 * warp has 8 columns of the products; then four lanes share a row.
 */
#ifndef BL_LARGE_CHOLESKY_FAR_CUH
#define BL_LARGE_CHOLESKY_FAR_CUH

#include "large_cholesky_left.cuh"

namespace bl
{

template <class T, bool UPPER>
struct CholeskyFar {
    using Panel = FastCholeskyPanel<T, UPPER>;
    using R = Real<T>;
    static constexpr int THREADS = NB / TILE_SIDE * 32, ROWS = THREADS / Panel::SHARE,
                         TILE_ROWS = 16, TILES = ROWS / TILE_ROWS, PITCH = Panel::PITCH,
                         PARTS = Traits<T>::complex ? 2 : 1;
    using Slices = CholeskySlices<T, UPPER, ROWS, THREADS>;
    static constexpr int DEPTH = Slices::DEPTH, SLICES = 3;

    struct Memory {
        typename Panel::Memory panel; /* of which it is the triangle that counts */
        union {
            T slices[SLICES * Slices::SIZE];
            T rows[ROWS * PITCH];
        };
    };

    const LargeFar<T> &d;
    const int64_t first, there; /* of the far rows, the block's */
    Memory &memory;
    const int thread, column, row, pair; /* the lane's in a tile, see multiply_tile() */
    R x[TILES][PARTS][4];                /* sums of products */

    BL_HD CholeskyFar(const LargeFar<T> &what, int64_t first_row, Memory &shared,
                      int its_thread)
        : d(what), first(first_row), there(d.rows - first < ROWS ? d.rows - first : ROWS),
          memory(shared), thread(its_thread), column(its_thread / 32 * TILE_SIDE),
          row(its_thread % 32 / 4), pair(its_thread % 4 * 2), x{}
    {
    }

    /* Row i of the block's, column k from the 64 on. */
    BL_HD T *at(int64_t i, int64_t k) const
    {
        return element(UPPER, d.a, d.lda, d.far + first + i, k);
    }

    BL_HD void fetch_slice(int number) const
    {
        if (number * DEPTH < d.before) {
            T *slice = memory.slices + number % SLICES * Slices::SIZE;
            const int64_t k = number * DEPTH - d.before;
            Slices::template fetch_lines<NB>(
                slice, 0, element<const T>(UPPER, d.a, d.lda, 0, k), d.lda, NB, thread);
            Slices::template fetch_lines<ROWS>(slice, NB, at(0, k), d.lda, there, thread);
        }
        fetched_so_far();
    }

    BL_HD void multiply_slice(const T *from)
    {
        BL_UNROLL
        for (int l = 0; l < DEPTH; l += TILE_SIDE) {
            const int k = l + pair / 2;
            const T b[2] = {from[Slices::place(column + row, k)],
                            from[Slices::place(column + row, k + 4)]};
            T a[TILES][4];
            BL_UNROLL
            for (int r = 0; r < TILES; r++)
                BL_UNROLL
            for (int e = 0; e < 4; e++)
                a[r][e] = from[Slices::place(NB + r * TILE_ROWS + row + e % 2 * 8,
                                             k + e / 2 * 4)];
            BL_UNROLL
            for (int r = 0; r < TILES; r++)
                multiply_parts(x[r], a[r], b);
        }
    }

    /* The triangle, whose columns lie one after the other as the panel has them. */
    BL_HD void get_triangle() const
    {
        typename Panel::Memory &m = memory.panel;
        BL_UNROLL
        for (int q = 0; q < NB * NB / THREADS; q++) {
            const int e = q * THREADS + thread, near = e % NB, far = e / NB,
                      i = UPPER ? far : near, k = UPPER ? near : far;
            fetch(m.block + k * PITCH + i, element<const T>(UPPER, d.a, d.lda, i, k),
                  i >= k);
        }
        fetched_so_far();
        if (thread < NB)
            m.inverse[thread] =
                R(1) / real(*element<const T>(UPPER, d.a, d.lda, thread, thread));
    }

    BL_HD void take_products()
    {
        BL_UNROLL
        for (int s = 0; s < SLICES - 1; s++)
            fetch_slice(s);
        get_triangle();
        T y[TILES][4];
        BL_UNROLL
        for (int r = 0; r < TILES; r++)
            BL_UNROLL
        for (int e = 0; e < 4; e++) {
            const int line = r * TILE_ROWS + row + e / 2 * 8, k = column + pair + e % 2;
            y[r][e] = *at(line < there ? line : 0, k);
        }
        const int slices = int(d.before / DEPTH);
        BL_ROLLED
        for (int s = 0; s < slices; s++) {
            if (s == 0)
                await_fetched<0>(); /* with the triangle */
            else
                await_fetched<SLICES - 2>();
            Panel::meet_block(); /* it is there, and the one before is done with */
            fetch_slice(s + SLICES - 1);
            multiply_slice(memory.slices + s % SLICES * Slices::SIZE);
        }
        await_fetched<0>();
        Panel::meet_block();
        BL_UNROLL
        for (int r = 0; r < TILES; r++)
            BL_UNROLL
        for (int e = 0; e < 4; e++) {
            const int line = r * TILE_ROWS + row + e / 2 * 8, k = column + pair + e % 2;
            T z = y[r][e];
            BL_UNROLL
            for (int p = 0; p < PARTS; p++)
                part(z, p) -= x[r][p][e];
            memory.rows[line * PITCH + k] = line < there ? z : from_real<T>(0);
        }
        Panel::meet_block();
    }

    /* All threads. */
    BL_HD void solve()
    {
        const int line = thread / Panel::SHARE, lane = thread % 32;
        T *own = memory.rows + line * PITCH;
        BL_ROLLED
        for (int strip = 0; strip < Panel::STRIPS; strip++)
            Panel::template solve_strip<false>(
                memory.panel, own, strip, lane, [&](int, const T(&z)[Panel::EACH]) {
                    const int k =
                        strip * Panel::STRIP + lane % Panel::SHARE * Panel::EACH;
                    BL_UNROLL
                    for (int e = 0; e < Panel::EACH; e++)
                        if (line < there)
                            *at(line, k + e) = z[e];
                });
    }
};

} // namespace bl
#endif
