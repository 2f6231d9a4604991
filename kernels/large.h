/* The steps that the factorisations of one large matrix are made of.
 *
 * Called by large.cu. Each enqueues one or few kernels on a stream, in exact arithmetic:
 * every element takes its products one after another in ascending order, product and
 * difference rounded separately. Instantiated for the four precisions in the .cu file of
 * the same name. Nothing here allocates, waits or looks at the data on the host.
 */
#ifndef BL_LARGE_H
#define BL_LARGE_H

#include "family.h"
#include "large_diagonal.h"
#include "large_few.h"
#include "scalar.cuh"

namespace bl
{

/* How a factor of a product lies in memory: as it is used, or conjugate transposed. */
enum Placing { PLAIN, TURNED };

/* Which part of C is read and written; its diagonal begins at its first element. */
enum Part { WHOLE, LOWER_PART, UPPER_PART };

/* C -= A B, C is m x n and k the inner dimension; not both factors are turned. */
template <class T>
struct LargeUpdate {
    int64_t m, n, k;
    const T *a;
    int64_t lda;
    const T *b;
    int64_t ldb;
    T *c;
    int64_t ldc;
    Placing of_a, of_b;
    Part part;
    const int64_t *unless = nullptr; /* nothing is done where that is not 0 */
    bool fused = false;              /* fast arithmetic */
    bool fresh = false;              /* C := -A B, where it is fused */
    int squares = 0;      /* not 0: of a part only the squares of order 2^squares on the
                           * diagonal */
    bool brief = false;   /* blocks that soon make room for other kernels' */
    bool chained = false; /* see large_launch.h */
    /* Products with what is absent() of B are left out: in exact arithmetic, where both
     * factors are plain and C has no other part. */
    bool leaves_out = false;
};

template <class T>
cudaError_t large_update(const LargeUpdate<T> &u, const Card &card, cudaStream_t stream);

/* What a block of columns does to the others. Of B, whose row 0 is the block's first,
 * the columns from `left` to `left_end` and from `right` to `right_end` take the block's
 * w <= LARGE_BLOCK<T> interchanges: pivots begin at `ipiv` and count rows from one, row 0
 * of B being `base` + 1; none without `ipiv`. The first w rows of the right ones are then
 * solved for with the unit lower triangle L, if it is not NULL. */
template <class T>
constexpr int LARGE_BLOCK = Traits<T>::complex ? 64 : 128;

template <class T>
struct LargeStep {
    int w;
    const void *ipiv;
    int int_size; /* bytes of a pivot */
    int64_t base;
    const T *l;
    int64_t ldl;
    T *b;
    int64_t ldb;
    int64_t left, left_end, right, right_end;
    const int64_t *unless = nullptr;
    int *odd = nullptr; /* set to 1 where a solution is not finite, for complex T and
                         * exact arithmetic */
    bool fused = false; /* fast arithmetic */
    bool chained = false;
};

template <class T>
cudaError_t large_step(const LargeStep<T> &s, const Card &card, cudaStream_t stream);

/* The same and the update of the right columns' rows below, of m rows of B from its row 0
 * on, in one kernel: whether there is one for this, and its launch. */
template <class T>
bool large_takes_beside(const LargeStep<T> &s, int64_t m, const Card &card);
template <class T>
cudaError_t large_beside(const LargeStep<T> &s, int64_t m, const Card &card,
                         cudaStream_t stream);

/* The interchanges of m rows with `order` pivots, in blocks of `width` <= 512. */
struct LargeMaps {
    int64_t m, order, width;
    const void *ipiv;
    int int_size;  /* bytes of a pivot */
    int *maps;     /* large_maps_bytes() of device memory */
    int begin = 0; /* the first block that counts */
};
size_t large_maps_bytes(int64_t m, int64_t order, int64_t width);

/* How wide the blocks were in which the columns from `from` on were factored: those up to
 * to[i] have blocks of width[i]. */
struct LargeBlocks {
    static constexpr int MOST = 4;
    int64_t from;
    int kinds;
    int64_t to[MOST], width[MOST];

    /* Of the block that has column j; `from` for a column before all of them. */
    __host__ __device__ int64_t end_of(int64_t j) const
    {
        int64_t begin = from;
        for (int i = 0; i < kinds && j >= begin; i++) {
            if (j < to[i]) {
                const int64_t end = begin + ((j - begin) / width[i] + 1) * width[i];
                return end < to[i] ? end : to[i];
            }
            begin = to[i];
        }
        return begin;
    }
};

/* Columns of A were factored in blocks, whose ends are multiples of x.width, and each has
 * had the interchanges of all before blocks.from and of its own block only: those up to
 * column `until` take all later ones. What is below a block must fit on chip, a column at
 * a time: on that of a block of threads, or of a cluster. */
template <class T>
bool large_takes_left(int64_t m, const Card &card);
template <class T>
cudaError_t large_left(LargeMaps x, const LargeBlocks &blocks, int64_t until, T *a,
                       int64_t lda, const Card &card, cudaStream_t stream);

/* The interchanges of the one block x.begin, at most up to x.order, in the columns of A
 * from `left` to `left_end` and from `right` to `right_end`. */
template <class T>
cudaError_t large_moves(const LargeMaps &x, T *a, int64_t lda, int64_t left,
                        int64_t left_end, int64_t right, int64_t right_end,
                        cudaStream_t stream);

/* B(i, j) := element i of column j of A's transpose, which has m rows and n columns: a
 * matrix by rows becomes one by columns, and the other way round. */
template <class T>
cudaError_t large_turn(int64_t m, int64_t n, const T *a, int64_t lda, T *b, int64_t ldb,
                       cudaStream_t stream);

/* The interchanges of the one block x.begin in `columns` columns of a matrix by rows, of
 * which row i begins at t + i ldt and row 0 is the block's first: the block's rows go to
 * A, by columns; what made room for them, to where they stood. */
template <class T>
cudaError_t large_take_rows(const LargeMaps &x, T *t, int64_t ldt, T *a, int64_t lda,
                            int64_t columns, cudaStream_t stream);

/* B := P^T B, of m rows. A column must fit on chip. */
template <class T>
cudaError_t large_back(const LargeMaps &x, T *b, int64_t ldb, int64_t nrhs,
                       const Card &card, cudaStream_t stream);

/* B := P B. A column must fit on chip. Nothing is done where *unless is not 0. */
template <class T>
cudaError_t large_forth(const LargeMaps &x, T *b, int64_t ldb, int64_t nrhs,
                        const int64_t *unless, const Card &card, cudaStream_t stream);

/* Y := I, n x n without gaps; INFO of a zero on the diagonal of A. Then, after the solves
 * and where that is 0, A := Y P. */
template <class T>
cudaError_t large_begin_inverse(const T *a, int64_t n, int64_t lda, T *y, int64_t *info,
                                cudaStream_t stream);
template <class T>
cudaError_t large_end_inverse(const LargeMaps &x, const T *y, T *a, int64_t lda,
                              const int64_t *info, cudaStream_t stream);

/* B := (triangle of order w <= LARGE_BLOCK<T>)^-1 B, which has n columns; `upwards`: an
 * upper triangle as it lies, or a lower one turned. */
template <class T>
struct LargeTriangle {
    int w;
    const T *a;
    int64_t lda;
    Placing placing;
    bool upwards, unit;
    T *b;
    int64_t ldb, n;
    T *solved; /* B as a plain, exact update is to have it, LARGE_BLOCK<T> elements a
                * column: in the order of the products, and absent() where xTRSM leaves
                * them out since it found a zero before it divided; or NULL */
    const int64_t *unless;
    bool chained = false;
};

template <class T>
cudaError_t large_triangle(const LargeTriangle<T> &s, cudaStream_t stream);

/* Minus the inverses of the blocks on the diagonal of a triangle of order n:
 * LARGE_BLOCK<T> columns each, one block after the other. */
template <class T>
struct LargeInverses {
    int64_t n;
    const T *a;
    int64_t lda;
    bool upper, unit;
    T *to;
};

template <class T>
cudaError_t large_inverses(const LargeInverses<T> &s, cudaStream_t stream);

/* The first w rows of `from`, which has LARGE_BLOCK<T>, to those of B; n columns. */
template <class T>
cudaError_t large_copy(int w, int64_t n, const T *from, T *b, int64_t ldb,
                       const int64_t *unless, cudaStream_t stream);

/* A solve with the whole triangle, s.groups set here. */
template <class T>
cudaError_t large_few(LargeFew<T> s, bool fused, cudaStream_t stream);

/* Of shared memory, which not every card has. */
template <class T>
size_t large_few_memory();
template <class T>
size_t large_diagonal_memory();

template <class T>
cudaError_t large_diagonal(const LargeDiagonal<T> &d, const Card &card,
                           cudaStream_t stream);

template <class T>
cudaError_t large_far(const LargeFar<T> &d, cudaStream_t stream);

} // namespace bl
#endif
