/* C -= A B in double precision on the matrix units of sm_90 and up, for fast arithmetic.
 *
 * Instantiated by large_update.cu. A block of four warps owns a tile of C, each warp a
 * quarter of it, in registers as the fragments of mma.sync; slices of A and B go through
 * shared memory, several in flight. Products are fused and added up in the same order
 * whatever the place of an element in C. Nothing is assumed of sizes, leading dimensions
 * and addresses but that an element's parts are aligned.
 */
#ifndef BL_LARGE_FRAGMENTS_CUH
#define BL_LARGE_FRAGMENTS_CUH

#include "large_update.cuh"

namespace bl
{

/* ROWS x COLUMNS elements of C; slices are DEPTH deep, STAGES of them in flight. */
template <class T, int ROWS_, int COLUMNS_, int DEPTH_, int STAGES_>
struct FragmentTile {
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, DEPTH = DEPTH_,
                         STAGES = STAGES_, THREADS = 128;
    /* The four columns that a fragment takes from shared memory at once lie in different
     * banks. */
    static constexpr int PAD = Traits<T>::complex ? 2 : 4;
    static constexpr int PITCH_A = ROWS + PAD, PITCH_B = COLUMNS + PAD;
    static constexpr int STAGE = DEPTH * (PITCH_A + PITCH_B);
    static constexpr int DOWN = ROWS / 32, ACROSS = COLUMNS / 16; /* fragments a warp */
    static constexpr size_t BYTES = size_t(STAGES) * STAGE * sizeof(T);
};

/* Whether there are such units for T, as sm_90 has them. */
template <class T>
constexpr bool HAS_FRAGMENTS = sizeof(Real<T>) == sizeof(double);

/* Fragments of a factor and of minus C, which the products are added to. */
template <class T, int N>
struct Fragment {
    double x[N];
    __device__ __forceinline__ void set(int i, double y)
    {
        x[i] = y;
    }
    __device__ __forceinline__ double get(int i) const
    {
        return x[i];
    }
};

template <int N>
struct Fragment<Complex<double>, N> {
    double x[N], im[N];
    __device__ __forceinline__ void set(int i, Complex<double> y)
    {
        x[i] = y.re;
        im[i] = y.im;
    }
    __device__ __forceinline__ Complex<double> get(int i) const
    {
        return {x[i], im[i]};
    }
};

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900

/* c += a b; a is 16 x 8, b 8 x 8. With g = lane / 4 and t = lane % 4 a lane has rows g
 * and g + 8 of a's column t, then of column t + 4; rows t and t + 4 of b's column g; and
 * columns 2 t and 2 t + 1 of c's row g, then of row g + 8. */
__device__ __forceinline__ void multiply(double (&c)[4], const double (&a)[4],
                                         const double (&b)[2])
{
#    ifdef BL_HOST_CUDA /* test/host_tensor.h */
    host_cuda::multiply_16_8_8(c, {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}});
#    else
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#    endif
}

__device__ __forceinline__ double minus(const Fragment<double, 4> &c, int i)
{
    return -c.x[i];
}

__device__ __forceinline__ Complex<double> minus(const Fragment<Complex<double>, 4> &c,
                                                 int i)
{
    return {-c.x[i], -c.im[i]};
}

__device__ __forceinline__ double minus(double x)
{
    return -x;
}

__device__ __forceinline__ Complex<double> minus(Complex<double> x)
{
    return {-x.re, -x.im};
}

template <int DOWN, int ACROSS>
__device__ __forceinline__ void multiply_all(Fragment<double, 4> (&c)[DOWN][ACROSS],
                                             const Fragment<double, 4> (&a)[DOWN],
                                             const Fragment<double, 2> (&b)[ACROSS])
{
    BL_UNROLL
    for (int r = 0; r < DOWN; r++)
        BL_UNROLL
    for (int s = 0; s < ACROSS; s++)
        multiply(c[r][s].x, a[r].x, b[s].x);
}

template <int DOWN, int ACROSS>
__device__ __forceinline__ void
multiply_all(Fragment<Complex<double>, 4> (&c)[DOWN][ACROSS],
             const Fragment<Complex<double>, 4> (&a)[DOWN],
             const Fragment<Complex<double>, 2> (&b)[ACROSS])
{
    BL_UNROLL
    for (int r = 0; r < DOWN; r++) {
        const double other[4] = {-a[r].im[0], -a[r].im[1], -a[r].im[2], -a[r].im[3]};
        BL_UNROLL
        for (int s = 0; s < ACROSS; s++) {
            multiply(c[r][s].x, a[r].x, b[s].x);
            multiply(c[r][s].im, a[r].x, b[s].im);
        }
        BL_UNROLL
        for (int s = 0; s < ACROSS; s++) {
            multiply(c[r][s].x, other, b[s].im);
            multiply(c[r][s].im, a[r].im, b[s].x);
        }
    }
}

#endif

/* A factor as it is used. */
template <Placing PLACING, class T>
__device__ __forceinline__ T as_used(T x)
{
    return PLACING == TURNED ? conj(x) : x;
}

template <class T, class G, Placing OF_A, Placing OF_B>
__global__ void __launch_bounds__(G::THREADS, 2) update_fragments(const LargeUpdate<T> u)
{
#if __CUDA_ARCH__ >= 900 || defined BL_HOST_CUDA
    extern __shared__ __align__(16) char shared[];
    T *const slices = (T *)shared;
    const int thread = threadIdx.x, warp = thread / 32, g = thread % 32 / 4,
              t = thread % 4;
    const TileStart start = tile_start<G>(u);
    const int64_t i0 = start.i, j0 = start.j;
    if (!has_some(u, i0, j0, G::ROWS, G::COLUMNS) || (u.unless && *u.unless))
        return;
    const int rows = int(min(u.m - i0, int64_t(G::ROWS))),
              columns = int(min(u.n - j0, int64_t(G::COLUMNS)));
    let_next_begin();
    await_previous();
    if (u.unless && *u.unless)
        return;
    const SlicesOfA<T, G, OF_A> a(u.a + (OF_A == PLAIN ? i0 : i0 * u.lda), u.lda, rows);
    const SlicesOfB<T, G, OF_B> b(u.b + (OF_B == PLAIN ? j0 * u.ldb : j0), u.ldb,
                                  columns);
    auto fetch_slice = [&](int64_t l0, T *slice) {
        const int depth = int(min(u.k - l0, int64_t(G::DEPTH)));
        a.fetch_slice(l0, depth, slice);
        b.fetch_slice(l0, depth, slice + G::DEPTH * G::PITCH_A);
    };
    const int64_t steps = (u.k + G::DEPTH - 1) / G::DEPTH;
    BL_UNROLL
    for (int s = 0; s < G::STAGES - 1; s++) {
        if (s < steps)
            fetch_slice(int64_t(s) * G::DEPTH, slices + s * G::STAGE);
        fetched_so_far();
    }

    const int row = warp % 2 * (G::ROWS / 2), column = warp / 2 * (G::COLUMNS / 2);
    const bool whole = is_whole(u, i0, j0, G::ROWS, G::COLUMNS);
    T *const c = u.c + i0 + row + g + (j0 + column + 2 * t) * u.ldc;
    Fragment<T, 4> x[G::DOWN][G::ACROSS];
    auto each = [&](auto act) {
        BL_UNROLL
        for (int r = 0; r < G::DOWN; r++)
            BL_UNROLL
        for (int s = 0; s < G::ACROSS; s++)
            BL_UNROLL
        for (int q = 0; q < 4; q++) {
            const int i = 16 * r + q / 2 * 8, j = 8 * s + q % 2;
            act(x[r][s], q, c + i + j * u.ldc,
                whole || (row + g + i < rows && column + 2 * t + j < columns &&
                          has_element(u, i0 + row + g + i, j0 + column + 2 * t + j)));
        }
    };
    each([&](auto &y, int q, T *at, bool has) {
        y.set(q, has && !u.fresh ? minus(*at) : from_real<T>(0));
    });

    for (int64_t step = 0; step < steps; step++) {
        await_fetched<G::STAGES - 2>();
        __syncthreads(); /* the slice is there, and its predecessor is done with */
        const int64_t next = step + G::STAGES - 1;
        if (next < steps)
            fetch_slice(next * G::DEPTH, slices + next % G::STAGES * G::STAGE);
        fetched_so_far();
        const T *sa = slices + step % G::STAGES * G::STAGE + t * G::PITCH_A + row + g;
        const T *sb = slices + step % G::STAGES * G::STAGE + G::DEPTH * G::PITCH_A +
                      t * G::PITCH_B + column + g;
        BL_UNROLL
        for (int l = 0; l < G::DEPTH; l += 8) {
            Fragment<T, 4> left[G::DOWN];
            Fragment<T, 2> right[G::ACROSS];
            BL_UNROLL
            for (int r = 0; r < G::DOWN; r++)
                BL_UNROLL
            for (int q = 0; q < 4; q++)
                left[r].set(
                    q,
                    as_used<OF_A>(sa[(l + q / 2 * 4) * G::PITCH_A + 16 * r + q % 2 * 8]));
            BL_UNROLL
            for (int s = 0; s < G::ACROSS; s++)
                BL_UNROLL
            for (int q = 0; q < 2; q++)
                right[s].set(q, as_used<OF_B>(sb[(l + q * 4) * G::PITCH_B + 8 * s]));
            multiply_all(x, left, right);
        }
    }
    each([](auto &y, int q, T *at, bool has) {
        if (has)
            *at = minus(y, q);
    });
#else
    (void)u;
#endif
}

} // namespace bl
#endif
