/* C -= A B on the matrix units of sm_90 and up, for fast arithmetic.
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
#include "mid_tile.cuh"
#include <type_traits>

namespace bl
{

/* ROWS x COLUMNS elements of C; slices are DEPTH deep, STAGES of them in flight. */
template <class T, int ROWS_, int COLUMNS_, int DEPTH_, int STAGES_>
struct FragmentTile {
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, DEPTH = DEPTH_,
                         STAGES = STAGES_, THREADS = 128;
    static constexpr int WARPS_DOWN = 2, WARP_ROWS = ROWS / 2, WARP_COLUMNS = COLUMNS / 2;
    /* The four columns that a fragment takes from shared memory at once lie in different
     * banks. */
    static constexpr int PAD = 32 / int(sizeof(T));
    static constexpr int PITCH_A = ROWS + PAD, PITCH_B = COLUMNS + PAD;
    static constexpr int STAGE = DEPTH * (PITCH_A + PITCH_B);
    static constexpr int DOWN = WARP_ROWS / 16, ACROSS = WARP_COLUMNS / 8; /* fragments */
    static constexpr size_t BYTES = size_t(STAGES) * STAGE * sizeof(T);
};

/* Whether there are such units for T, as sm_90 has them. */
template <class T>
constexpr bool HAS_FRAGMENTS = sizeof(Real<T>) == sizeof(double);

/* A lane's numbers of a fragment: of minus C, which products are added to, and of a
 * factor in double precision. */
template <class T, int N>
struct Fragment {
    T x[N];
    __device__ __forceinline__ void set(int i, T y)
    {
        x[i] = y;
    }
    __device__ __forceinline__ T get(int i) const
    {
        return x[i];
    }
};

template <class R, int N>
struct Fragment<Complex<R>, N> {
    R x[N], im[N];
    __device__ __forceinline__ void set(int i, Complex<R> y)
    {
        x[i] = y.re;
        im[i] = y.im;
    }
    __device__ __forceinline__ Complex<R> get(int i) const
    {
        return {x[i], im[i]};
    }
};

/* Of a factor in single precision: as sums of two numbers of 11 bits, see mid_tile.cuh.
 */
template <int N>
struct Sums {
    float large[N], small[N];
    __device__ __forceinline__ void set(int i, float y)
    {
        large[i] = shortened(y);
        small[i] = y - large[i];
    }
};

template <int N>
struct ComplexSums {
    Sums<N> x, im;
    __device__ __forceinline__ void set(int i, Complex<float> y)
    {
        x.set(i, y.re);
        im.set(i, y.im);
    }
};

template <class T, int N>
using Factor =
    std::conditional_t<sizeof(Real<T>) == 8, Fragment<T, N>,
                       std::conditional_t<Traits<T>::complex, ComplexSums<N>, Sums<N>>>;

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

template <class R>
__device__ __forceinline__ R minus(R x)
{
    return -x;
}

template <class R>
__device__ __forceinline__ Complex<R> minus(Complex<R> x)
{
    return {-x.re, -x.im};
}

/* A row of fragments of C. */
template <int ACROSS>
__device__ __forceinline__ void multiply_row(Fragment<double, 4> (&c)[ACROSS],
                                             const Fragment<double, 4> &a,
                                             const Fragment<double, 2> (&b)[ACROSS])
{
    BL_UNROLL
    for (int s = 0; s < ACROSS; s++)
        multiply(c[s].x, a.x, b[s].x);
}

template <int ACROSS>
__device__ __forceinline__ void
multiply_row(Fragment<Complex<double>, 4> (&c)[ACROSS],
             const Fragment<Complex<double>, 4> &a,
             const Fragment<Complex<double>, 2> (&b)[ACROSS])
{
    const double other[4] = {-a.im[0], -a.im[1], -a.im[2], -a.im[3]};
    BL_UNROLL
    for (int s = 0; s < ACROSS; s++) {
        multiply(c[s].x, a.x, b[s].x);
        multiply(c[s].im, a.x, b[s].im);
    }
    BL_UNROLL
    for (int s = 0; s < ACROSS; s++) {
        multiply(c[s].x, other, b[s].im);
        multiply(c[s].im, a.im, b[s].x);
    }
}

/* In single precision three products make one, and the ones that depend on each other are
 * a row apart. */
template <int ACROSS, class C>
__device__ __forceinline__ void multiply_sums(C &c, const Sums<4> &a,
                                              const Sums<2> *const (&b)[ACROSS])
{
    BL_UNROLL
    for (int s = 0; s < ACROSS; s++)
        multiply_short(c(s), a.small, b[s]->large[0], b[s]->large[1]);
    BL_UNROLL
    for (int s = 0; s < ACROSS; s++)
        multiply_short(c(s), a.large, b[s]->small[0], b[s]->small[1]);
    BL_UNROLL
    for (int s = 0; s < ACROSS; s++)
        multiply_short(c(s), a.large, b[s]->large[0], b[s]->large[1]);
}

template <int ACROSS>
__device__ __forceinline__ void multiply_row(Fragment<float, 4> (&c)[ACROSS],
                                             const Sums<4> &a, const Sums<2> (&b)[ACROSS])
{
    const Sums<2> *right[ACROSS];
    BL_UNROLL
    for (int s = 0; s < ACROSS; s++)
        right[s] = &b[s];
    auto of = [&](int s) -> float(&)[4] { return c[s].x; };
    multiply_sums(of, a, right);
}

template <int ACROSS>
__device__ __forceinline__ void multiply_row(Fragment<Complex<float>, 4> (&c)[ACROSS],
                                             const ComplexSums<4> &a,
                                             const ComplexSums<2> (&b)[ACROSS])
{
    const Sums<2> *real[ACROSS], *imaginary[ACROSS];
    Sums<4> minus_im;
    BL_UNROLL
    for (int q = 0; q < 4; q++) {
        minus_im.large[q] = -a.im.large[q];
        minus_im.small[q] = -a.im.small[q];
    }
    BL_UNROLL
    for (int s = 0; s < ACROSS; s++) {
        real[s] = &b[s].x;
        imaginary[s] = &b[s].im;
    }
    auto re = [&](int s) -> float(&)[4] { return c[s].x; };
    auto im = [&](int s) -> float(&)[4] { return c[s].im; };
    multiply_sums(re, a.x, real);
    multiply_sums(im, a.x, imaginary);
    multiply_sums(re, minus_im, imaginary);
    multiply_sums(im, a.im, real);
}

template <class T, int DOWN, int ACROSS>
__device__ __forceinline__ void multiply_all(Fragment<T, 4> (&c)[DOWN][ACROSS],
                                             const Fragment<T, 4> (&a)[DOWN],
                                             const Fragment<T, 2> (&b)[ACROSS])
{
    BL_UNROLL
    for (int r = 0; r < DOWN; r++)
        multiply_row(c[r], a[r], b);
}

/* A factor as it is used. */
template <Placing PLACING, class T>
__device__ __forceinline__ T as_used(T x)
{
    return PLACING == TURNED ? conj(x) : x;
}

/* Where a lane's elements of a tile begin. */
template <class G>
__device__ __forceinline__ int lane_row()
{
    return threadIdx.x / 32 % G::WARPS_DOWN * G::WARP_ROWS + threadIdx.x % 32 / 4;
}

template <class G>
__device__ __forceinline__ int lane_column()
{
    return threadIdx.x / (32 * G::WARPS_DOWN) * G::WARP_COLUMNS + threadIdx.x % 4 * 2;
}

/* What a thread has of a tile of C; BY_ROWS: whose rows begin u.ldc after each other. */
template <class T, class G, bool BY_ROWS = false>
struct Fragments {
    Fragment<T, 4> x[G::DOWN][G::ACROSS];

    /* The units of single precision cut a sum off where others round it, so that each
     * product takes something of a large C: products are added up alone. */
    static constexpr bool APART = sizeof(Real<T>) == 4;

    /* act(column of fragments, number in a fragment, address) of what there is in row r
     * of fragments, of the tile of C from row i0 and column j0 on. Of a whole tile
     * nothing is asked, so that all loads are under way at once. */
    template <class Act>
    __device__ __forceinline__ void each_of_row(const LargeUpdate<T> &u, int64_t i0,
                                                int64_t j0, int r, bool whole,
                                                const Act &act)
    {
        const int64_t row = i0 + lane_row<G>(), column = j0 + lane_column<G>();
        const int64_t down = BY_ROWS ? u.ldc : 1, across = BY_ROWS ? 1 : u.ldc;
        T *const c = u.c + row * down + column * across;
        BL_UNROLL
        for (int s = 0; s < G::ACROSS; s++)
            BL_UNROLL
        for (int q = 0; q < 4; q++) {
            const int i = 16 * r + q / 2 * 8, j = 8 * s + q % 2;
            if (whole || (row + i < u.m && column + j < u.n &&
                          has_element(u, row + i, column + j)))
                act(s, q, c + i * down + j * across);
        }
    }
    /* act(row of fragments, whether the tile is whole). */
    template <class Act>
    __device__ __forceinline__ void each_row(const LargeUpdate<T> &u, int64_t i0,
                                             int64_t j0, const Act &act)
    {
        if (is_whole(u, i0, j0, G::ROWS, G::COLUMNS)) {
            BL_UNROLL
            for (int r = 0; r < G::DOWN; r++)
                act(r, true);
        } else {
            BL_UNROLL
            for (int r = 0; r < G::DOWN; r++)
                act(r, false);
        }
    }
    template <class Act>
    __device__ __forceinline__ void each(const Act &act)
    {
        BL_UNROLL
        for (int r = 0; r < G::DOWN; r++)
            BL_UNROLL
        for (int s = 0; s < G::ACROSS; s++)
            BL_UNROLL
        for (int q = 0; q < 4; q++)
            act(x[r][s], q);
    }
    __device__ __forceinline__ void turn_sign()
    {
        each([](Fragment<T, 4> &y, int q) { y.set(q, minus(y.get(q))); });
    }
    /* Minus C, or nothing where the products are apart. */
    __device__ __forceinline__ void get(const LargeUpdate<T> &u, int64_t i0, int64_t j0)
    {
        each([](Fragment<T, 4> &y, int q) { y.set(q, from_real<T>(0)); });
        if (APART || u.fresh)
            return;
        each_row(u, i0, j0, [&](int r, bool whole) {
            each_of_row(u, i0, j0, r, whole,
                        [&](int s, int q, const T *at) { x[r][s].set(q, *at); });
        });
        turn_sign();
    }
    __device__ __forceinline__ void put(const LargeUpdate<T> &u, int64_t i0, int64_t j0)
    {
        turn_sign();
        each_row(u, i0, j0, [&](int r, bool whole) {
            if (APART && !u.fresh) {
                T c[G::ACROSS][4] = {};
                each_of_row(u, i0, j0, r, whole,
                            [&](int s, int q, const T *at) { c[s][q] = *at; });
                BL_UNROLL
                for (int s = 0; s < G::ACROSS; s++)
                    BL_UNROLL
                for (int q = 0; q < 4; q++)
                    x[r][s].set(q, add(c[s][q], x[r][s].get(q)));
            }
            each_of_row(u, i0, j0, r, whole,
                        [&](int s, int q, T *at) { *at = x[r][s].get(q); });
        });
    }
    __device__ __forceinline__ void multiply_row(int row, const Factor<T, 4> &a,
                                                 const Factor<T, 2> (&b)[G::ACROSS])
    {
        bl::multiply_row(x[row], a, b);
    }
    /* The products of a slice of A and B in shared memory. */
    template <Placing OF_A, Placing OF_B>
    __device__ __forceinline__ void add_products(const T *slice)
    {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        const T *sa = slice + t * G::PITCH_A + lane_row<G>(),
                *sb = slice + G::DEPTH * G::PITCH_A + t * G::PITCH_B +
                      (lane_column<G>() - 2 * t) + g;
        BL_UNROLL
        for (int l = 0; l < G::DEPTH; l += 8) {
            Factor<T, 4> left[G::DOWN];
            Factor<T, 2> right[G::ACROSS];
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
            BL_UNROLL
            for (int r = 0; r < G::DOWN; r++)
                multiply_row(r, left[r], right);
        }
    }
};

#endif

template <class T, class G, Placing OF_A, Placing OF_B>
__global__ void __launch_bounds__(G::THREADS, 2) update_fragments(const LargeUpdate<T> u)
{
#if __CUDA_ARCH__ >= 900 || defined BL_HOST_CUDA
    extern __shared__ __align__(16) char shared[];
    T *const slices = (T *)shared;
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
    Fragments<T, G> x;
    x.get(u, i0, j0);
    for (int64_t step = 0; step < steps; step++) {
        await_fetched<G::STAGES - 2>();
        __syncthreads(); /* the slice is there, and its predecessor is done with */
        const int64_t next = step + G::STAGES - 1;
        if (next < steps)
            fetch_slice(next * G::DEPTH, slices + next % G::STAGES * G::STAGE);
        fetched_so_far();
        x.template add_products<OF_A, OF_B>(slices + step % G::STAGES * G::STAGE);
    }
    x.put(u, i0, j0);
#else
    (void)u;
#endif
}

} // namespace bl
#endif
