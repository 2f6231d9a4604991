/* Two triangles of one problem of a batch and its right-hand sides, as the kernels of
 * solve_chain.cuh and solve_tiles.cuh see them; triangles.cu launches those.
 */
#ifndef BL_SOLVE_SIDE_CUH
#define BL_SOLVE_SIDE_CUH

#include "mid_access.cuh"

namespace bl
{

/* What is solved with: GETRS of A, A' or A^H; POTRS of 'L' or 'U', whose second triangle
 * is the first one's conjugate transpose. */
enum SolveKind { SOLVE_N, SOLVE_T, SOLVE_C, SOLVE_L, SOLVE_U };

/* op(A) of the matrix in memory, by rows and columns of op(A). */
enum SolveOp { PLAIN, TRANSPOSED, CONJUGATED };

__host__ __device__ constexpr SolveOp first_op(SolveKind kind)
{
    return kind == SOLVE_T                      ? TRANSPOSED
           : kind == SOLVE_N || kind == SOLVE_L ? PLAIN
                                                : CONJUGATED;
}
__host__ __device__ constexpr SolveOp second_op(SolveKind kind)
{
    return kind == SOLVE_T                      ? TRANSPOSED
           : kind == SOLVE_N || kind == SOLVE_U ? PLAIN
                                                : CONJUGATED;
}

template <class T>
struct SolveProblem : TinyProblem<T> {
    using Base = TinyProblem<T>;
    T *b;
    int64_t ldb;
    Pivots pivots;
    bool whole, solves; /* there is something to do */

    __device__ __forceinline__ SolveProblem(const TinyArguments &g, int64_t number)
        : Base(g, number), b((T *)tiny_operand(g.b, Base::item, sizeof(T))), ldb(g.b.ld),
          pivots(tiny_pivots(g, Base::item)), whole(is_whole(Base::a)),
          solves(Base::there && !(g.after_factoring && tiny_info(g, Base::item) != 0))
    {
    }

    /* Element (i, j) of op(A). */
    template <SolveOp OP>
    __device__ __forceinline__ T at(int i, int j) const
    {
        const T x =
            load(OP == PLAIN ? this->a + i + j * this->lda : this->a + j + i * this->lda,
                 whole);
        return OP == CONJUGATED ? conj(x) : x;
    }

    __device__ __forceinline__ void put_info(const TinyArguments &g) const
    {
        if (this->there && !g.after_factoring)
            put_integer(g.info, this->item, g.int_size, 0, 0);
    }
};

} // namespace bl
#endif
