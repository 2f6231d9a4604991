/* Launches of the steps of a large Cholesky factorisation.
 *
 * Called by large.cu through large.h.
 */
#include "large_cholesky.cuh"

namespace bl
{

namespace
{

template <class T, bool UPPER>
cudaError_t factor_and_solve(LargeDiagonal<T> d, cudaStream_t stream)
{
    constexpr int MEMORY = NB * (NB + 1) * sizeof(T);
    const void *solve = (const void *)solve_beside<T, UPPER>;
    void *parameters[] = {&d};
    cudaError_t error = cudaLaunchKernel((const void *)factor_diagonal<T, UPPER>, dim3(1),
                                         dim3(DIAGONAL_THREADS), parameters, 0, stream);
    if (error != cudaSuccess || d.beside == 0)
        return error;
    if (MEMORY > 48 * 1024)
        error = cudaFuncSetAttribute(solve, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     MEMORY);
    if (error != cudaSuccess)
        return error;
    const int64_t blocks = (d.beside + BESIDE_ROWS - 1) / BESIDE_ROWS;
    return cudaLaunchKernel(solve, dim3(unsigned(blocks)), dim3(BESIDE_THREADS),
                            parameters, MEMORY, stream);
}

} // namespace

template <class T>
cudaError_t large_diagonal(const LargeDiagonal<T> &d, cudaStream_t stream)
{
    return d.upper ? factor_and_solve<T, true>(d, stream)
                   : factor_and_solve<T, false>(d, stream);
}

#define BL_INSTANCE(T)                                                                   \
    template cudaError_t large_diagonal(const LargeDiagonal<T> &, cudaStream_t);
BL_INSTANCE(float)
BL_INSTANCE(double)
BL_INSTANCE(Complex<float>)
BL_INSTANCE(Complex<double>)

} // namespace bl
