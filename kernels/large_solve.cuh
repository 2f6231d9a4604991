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
 * says which of the two is contiguous in memory. */
template <Placing PLACING, class T, class Element>
__device__ __forceinline__ void fetch_chunk(int k0, int w, Element element, T *chunk)
{
    constexpr int W = LARGE_BLOCK<T>, CHUNK = STEP_LANES;
    for (int e = threadIdx.x; e < CHUNK * W; e += STEP_THREADS) {
        const int i = PLACING == PLAIN ? e % W : e / CHUNK,
                  l = PLACING == PLAIN ? e / W : e % CHUNK;
        const bool there = i >= k0 + l && i < w;
        fetch(chunk + l * W + i, there ? element(i, k0 + l) : element(0, 0), there);
    }
}

template <Placing PLACING, class T, class Element, int SIZE>
__device__ __forceinline__ void begin_solve(int w, Element element,
                                            T (&chunks)[STEP_STAGES][SIZE])
{
    for (int q = 0; q < STEP_STAGES - 1; q++) {
        if (q * STEP_LANES < w)
            fetch_chunk<PLACING>(q * STEP_LANES, w, element, chunks[q]);
        fetched_so_far();
    }
}

/* x := (triangle of order w)^-1 x, the triangle conjugated where it is TURNED. All
 * threads of the block call it, after begin_solve(). */
template <Placing PLACING, Skip SKIP, class T, class Element, int SIZE, int HELD>
__device__ __forceinline__ void solve_columns(int w, bool unit, Element element,
                                              T (&chunks)[STEP_STAGES][SIZE],
                                              T (&x)[HELD])
{
    constexpr int W = LARGE_BLOCK<T>, CHUNK = STEP_LANES;
    const int thread = threadIdx.x, lane = thread % STEP_LANES;
    BL_UNROLL
    for (int h = 0; h < HELD; h++) {
        if (h * CHUNK >= w)
            break;
        await_fetched<STEP_STAGES - 2>();
        __syncthreads();
        if ((h + STEP_STAGES - 1) * CHUNK < w)
            fetch_chunk<PLACING>((h + STEP_STAGES - 1) * CHUNK, w, element,
                                 chunks[(h + STEP_STAGES - 1) % STEP_STAGES]);
        fetched_so_far();
        const T *chunk = chunks[h % STEP_STAGES];
        for (int t = 0; t < CHUNK; t++) {
            const int k = h * CHUNK + t;
            T y = from_lane(x[h], thread % 32 / STEP_LANES * STEP_LANES + t);
            const bool zero = is_zero(y);
            if (!unit && k < w && !(SKIP == ALWAYS && zero)) {
                const T pivot = chunk[t * W + k];
                y = div(y, PLACING == TURNED ? conj(pivot) : pivot);
                if (lane == t)
                    x[h] = y;
            }
            BL_UNROLL
            for (int r = h; r < HELD; r++) {
                const T a = chunk[t * W + lane + STEP_LANES * r];
                const T z = sub(x[r], mul(y, PLACING == TURNED ? conj(a) : a));
                const bool same = r * STEP_LANES / NB == h * STEP_LANES / NB;
                const bool skip = zero && (SKIP == ALWAYS || (SKIP == IN_BLOCK && same));
                if (!skip && (r > h || lane > t))
                    x[r] = z;
            }
        }
    }
}

} // namespace bl
#endif
