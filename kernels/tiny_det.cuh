/* Determinants up to 32 x 32: GEDET, the product of the pivots as phase and
 * log-magnitude.
 *
 * A is only read. A matrix that tiny_lu.cuh can not do on the fast way is factored again
 * in a copy in shared memory.
 */
#ifndef BL_TINY_DET_CUH
#define BL_TINY_DET_CUH

#include "tiny_lu.cuh"

namespace bl
{

/* The phase of all diagonals of a group times the sign of its interchanges, and the sum
 * of the logarithms; a tree, so the same for the same matrix. Written by the lane of row
 * 0. */
template <int L, class T>
__device__ __forceinline__ void put_determinant(const TinyArguments &g, int64_t item,
                                                const Group<L> &group, T diagonal,
                                                bool odd, int info, bool mine)
{
    using R = Real<T>;
    R logabs;
    T phase;
    if constexpr (Traits<T>::complex) {
        /* Near 1, where the modulus has all its digits. */
        const R most = fmax(fabs(diagonal.re), fabs(diagonal.im));
        const int power = most > 0 && most < R(INFINITY) ? ilogb(most) : 0;
        const R re = scalbn(diagonal.re, -power), im = scalbn(diagonal.im, -power);
        const R size = hypot(re, im);
        phase = {re / size, im / size};
        logabs = R(log(size) + power * 0.69314718055994531);
    } else {
        phase = diagonal / fabs(diagonal);
        logabs = log(fabs(diagonal));
    }
    BL_UNROLL
    for (int step = 1; step < L; step *= 2) {
        logabs += __shfl_xor_sync(WARP, logabs, step);
        T other = group.from(phase, group.row ^ step);
        phase = mul(phase, other);
    }
    if constexpr (Traits<T>::complex) {
        R length = hypot(phase.re, phase.im);
        phase = {phase.re / length, phase.im / length};
    }
    if (info != 0) {
        phase = from_real<T>(0);
        logabs = -R(INFINITY);
    }
    if (!mine || group.row != 0)
        return;
    *(T *)tiny_operand(g.phase, item, sizeof(T)) = odd ? negative(phase) : phase;
    *(R *)tiny_operand(g.logabs, item, sizeof(R)) = logabs;
    put_integer(g.info, item, g.int_size, 0, info);
}

template <class T>
BL_CALL void gedet_again(const TinyArguments &g, int64_t number, T *copy)
{
    __shared__ int32_t pivots[4][32];
    const Group<32> group;
    TinyProblem<T> p(g, number);
    Pivots pivot = {pivots[threadIdx.x / 32], 4, 0};
    bool inside = group.row < p.n;
    for (int j = 0; j < p.n && inside; j++)
        copy[group.row + 32 * j] = p.a[group.row + j * p.lda];
    __syncwarp();
    int info = lu_again(p.n, p.n, copy, 32, pivot);
    unsigned swaps = group.ballot(inside && pivot.get(group.row) != group.row);
    put_determinant(g, p.item, group, inside ? copy[33 * group.row] : one<T>(),
                    __popc(swaps) % 2 != 0, info, true);
}

/* A group owns a matrix, a lane a row. Shared memory: a copy of a matrix a warp. */
template <class T, int N, int WARPS, int BLOCKS>
__global__ void BL_TINY_BOUNDS(WARPS, BLOCKS)
    tiny_gedet(const __grid_constant__ TinyArguments g)
{
    constexpr int L = lanes_for(N);
    __shared__ __align__(16) char copies[WARPS][32 * N * sizeof(T)];
    const Group<L> group;
    const int64_t number = group_number<L>();
    const TinyProblem<T> p(g, number);
    Row<T, N> r;
    load_row(r.a, p.a + group.row, p.lda, p.n, group.row < p.n);
    T *copy = (T *)copies[threadIdx.x / 32];
    constexpr int S = tiny_window<T>(N);
    eliminate<LARGEST, false, S>(group, r, p.n, p.n, g.items ? N : g.n,
                                 done_row<T, N, (S > 0)>(group.row));
    const bool again = group.ballot(r.again && p.there) != 0;
    put_determinant(g, p.item, group, r.diagonal, r.odd, r.info, p.there && !again);
    for_groups<L>(again, number, [&](int64_t i) { gedet_again<T>(g, i, copy); });
}

} // namespace bl
#endif
