/* From a job to a tiny triangle: what the kernels of tiny_potrf.cu, tiny_posv.cu and
 * tiny_potri.cu have in common.
 *
 * A block is a few warps that never meet; a warp works on 32 / G matrices, G lanes each.
 * Shared memory holds the packed triangles of all of them, written first and last by the
 * lanes of the group, which is why it is the input, then the factor. Groups behind the
 * end of the batch have n = 0: they take part in what the warp does together and touch no
 * memory.
 */
#ifndef BL_TINY_CHOLESKY_KERNEL_CUH
#define BL_TINY_CHOLESKY_KERNEL_CUH

#include "tiny_bounds.cuh"
#include "tiny_cholesky.h"
#include "tiny_triangle.cuh"

namespace bl
{

/* A block of the kernel that works with M<T, N, COUNT, UPPER>. Where that needs room for
 * right-hand sides, it is asked for at the launch, since most have few. */
template <enum bl_routine_id ROUTINE, template <class, int, int, bool> class M, class T,
          int N, bool UPPER, int COUNT>
struct TinyLaunch {
    static constexpr int G = COUNT; /* lanes a matrix */
    using Matrix = M<T, N, G, UPPER>;
    static constexpr int PACKED = Matrix::GROUPS * Matrix::PITCH; /* cells, a warp */
    static constexpr int BYTES = (PACKED + Matrix::SIDES) * int(sizeof(T)); /* at most */
    static constexpr int WARPS = BYTES <= 12000 ? 4 : BYTES <= 24000 ? 2 : 1;
    static constexpr int THREADS = WARPS * LANES;
    /* That a multiprocessor is to hold; 0: as many as the compiler thinks best. */
    static constexpr int BLOCKS = warps_for<T>(ROUTINE, N, UPPER) / WARPS;

    static TinyCholeskyKernel of(void (*kernel)(TinyCholeskyArguments))
    {
        return {(const void *)kernel,
                THREADS,
                WARPS * Matrix::GROUPS,
                G,
                WARPS * PACKED * int(sizeof(T)),
                int(Matrix::SIDES ? WARPS * N * sizeof(T) : 0)};
    }
    static __device__ __forceinline__ int lane()
    {
        return threadIdx.x % LANES;
    }
    static __device__ __forceinline__ int first_cell()
    {
        return threadIdx.x / LANES * PACKED;
    }
    static __device__ __forceinline__ Cell<T> *sides(int side)
    {
        extern __shared__ __align__(16) char cells[];
        return (Cell<T> *)cells + threadIdx.x / LANES * (N * side);
    }
};

__device__ __forceinline__ void *tiny_item(const struct bl_operand &x, int64_t item,
                                           int element)
{
    return x.array ? x.array[item] : (char *)x.p + item * x.stride * element;
}

/* The problem of a lane's group. */
template <class T>
struct TinyItem {
    bool there;
    int n = 0;
    int64_t item = 0, lda = 0;
    T *a = nullptr;

    __device__ __forceinline__ TinyItem(const TinyCholeskyArguments &g, int lanes)
    {
        int64_t number = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / lanes;
        there = number < g.batch;
        if (!there)
            return;
        item = number;
        n = g.n;
        lda = g.a.ld;
        if (g.items) {
            item = g.items[number].index;
            n = int(g.items[number].n);
            lda = g.items[number].lda;
        }
        a = (T *)tiny_item(g.a, item, sizeof(T));
    }

    __device__ __forceinline__ void put_info(const TinyCholeskyArguments &g, int info)
    {
        void *p = tiny_item(g.info, item, g.int_size);
        if (g.int_size == 4)
            *(int32_t *)p = info;
        else
            *(int64_t *)p = info;
    }
};

} // namespace bl
#endif
