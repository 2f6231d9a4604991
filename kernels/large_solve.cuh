/* A triangular solve with a block of rows, on columns that stay in registers.
 *
 * Used by the kernels of large_step.cuh and large_triangle.cuh. Eight lanes own a column,
 * lane l its rows l, l + 8, ...; a thread block owns sixteen columns. The triangle comes
 * through shared memory, eight columns at a time, several such chunks in flight.
 */
#ifndef BL_LARGE_SOLVE_CUH
#define BL_LARGE_SOLVE_CUH

#include "large_fetch.cuh"
#include "problem.cuh"

namespace bl
{

constexpr int STEP_LANES = 8;    /* that share a column */
constexpr int STEP_COLUMNS = 16; /* a block */
constexpr int STEP_THREADS = STEP_LANES * STEP_COLUMNS;
constexpr int STEP_STAGES = 4;

/* Which products with a zero of the solution are left out: none, those that netlib's
 * xGETRF leaves out, which solves 64 rows and then multiplies, or all, as xTRSM does. */
enum Skip { NEVER, IN_BLOCK, ALWAYS };

/* element(i, k) is the address of the triangle's element in row i >= column k. PLACING
 * says which of the two is contiguous in memory; a chunk has W rows. */
template <int W, Placing PLACING, class T, class Element>
__device__ __forceinline__ void fetch_chunk(int k0, int w, Element element, T *chunk)
{
    constexpr int CHUNK = STEP_LANES;
    for (int e = threadIdx.x; e < CHUNK * W; e += STEP_THREADS) {
        const int i = PLACING == PLAIN ? e % W : e / CHUNK,
                  l = PLACING == PLAIN ? e / W : e % CHUNK;
        const bool there = i >= k0 + l && i < w;
        fetch(chunk + l * W + i, there ? element(i, k0 + l) : element(0, 0), there);
    }
}

template <int W, Placing PLACING, class T, class Element>
__device__ __forceinline__ void begin_solve(int w, Element element,
                                            T (&chunks)[STEP_STAGES][STEP_LANES * W])
{
    for (int q = 0; q < STEP_STAGES - 1; q++) {
        if (q * STEP_LANES < w)
            fetch_chunk<W, PLACING>(q * STEP_LANES, w, element, chunks[q]);
        fetched_so_far();
    }
}

/* x := (triangle of order w)^-1 x, the triangle conjugated where it is TURNED. All
 * threads of the block call it, after begin_solve(). */
template <int W, Placing PLACING, Skip SKIP, class T, class Element>
__device__ __forceinline__ void solve_columns(int w, bool unit, Element element,
                                              T (&chunks)[STEP_STAGES][STEP_LANES * W],
                                              T (&x)[W / STEP_LANES])
{
    constexpr int CHUNK = STEP_LANES, HELD = W / STEP_LANES;
    const int lane = threadIdx.x % STEP_LANES,
              first = threadIdx.x % 32 / STEP_LANES * STEP_LANES;
    auto used = [](T a) { return PLACING == TURNED ? conj(a) : a; };
    BL_UNROLL
    for (int h = 0; h < HELD; h++) {
        if (h * CHUNK >= w)
            break;
        await_fetched<STEP_STAGES - 2>();
        __syncthreads();
        if ((h + STEP_STAGES - 1) * CHUNK < w)
            fetch_chunk<W, PLACING>((h + STEP_STAGES - 1) * CHUNK, w, element,
                                    chunks[(h + STEP_STAGES - 1) % STEP_STAGES]);
        fetched_so_far();
        const T *chunk = chunks[h % STEP_STAGES] + h * CHUNK;
        /* First the chunk's own rows, one a lane; this is the chain. */
        T row[CHUNK];
        BL_UNROLL
        for (int t = 0; t < CHUNK; t++)
            row[t] = used(chunk[t * W + lane]);
        BL_UNROLL
        for (int t = 0; t < CHUNK; t++) {
            T y = from_lane(x[h], first + t);
            const bool zero = SKIP != NEVER && is_zero(y);
            if (!unit && h * CHUNK + t < w && !(SKIP == ALWAYS && zero)) {
                y = div(y, used(chunk[t * W + t]));
                if (lane == t)
                    x[h] = y;
            }
            const T z = sub(x[h], mul(y, row[t]));
            if (lane > t && !zero)
                x[h] = z;
        }
        /* Then those below, each the eight products in this order. */
        _Pragma("unroll 4") for (int t = 0; t < CHUNK; t++)
        {
            const T y = from_lane(x[h], first + t);
            const bool zero = SKIP != NEVER && is_zero(y);
            BL_UNROLL
            for (int r = h + 1; r < HELD; r++) {
                const T a = used(chunk[t * W + lane + STEP_LANES * (r - h)]);
                const T z = sub(x[r], mul(y, a));
                const bool same = r * STEP_LANES / NB == h * STEP_LANES / NB;
                if (!(zero && (SKIP == ALWAYS || same)))
                    x[r] = z;
            }
        }
    }
}

} // namespace bl
#endif
