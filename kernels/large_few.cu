/* The large triangular solve with few right-hand sides: kernel and launch.
 *
 * Called by large.cu through large.h. Blocks wait for each other, so the launch is
 * cooperative: where not all can be there at once it fails, and nothing has been done.
 */
#include "large_few.cuh"
#include "large.h"

namespace bl
{

namespace
{

/* Who does what, and what is in shared memory, is in large_few.cuh. Neighbouring blocks
 * have the same rows for other right-hand sides. */
template <class Few, class T>
__global__ void __launch_bounds__(Few::THREADS, 1)
    solve_few(const __grid_constant__ LargeFew<T> s)
{
    extern __shared__ __align__(16) char memory[];
    if (s.unless && *s.unless)
        return;
    Few::run(s, *(typename Few::Memory *)memory, int(threadIdx.x),
             int(blockIdx.x) / s.groups, int(gridDim.x) / s.groups,
             int(blockIdx.x) % s.groups);
}

template <class Few, class T>
cudaError_t launch(LargeFew<T> s, const Card &card, cudaStream_t stream)
{
    constexpr int MEMORY = int(sizeof(typename Few::Memory));
    const void *kernel = (const void *)solve_few<Few, T>;
    int at_once = 0;
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, MEMORY);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at_once, kernel,
                                                              Few::THREADS, MEMORY);
    if (error != cudaSuccess)
        return error;
    const int64_t rows = (s.n + Few::ROWS - 1) / Few::ROWS,
                  most = int64_t(at_once) * card.processors / s.groups;
    if (most == 0)
        return cudaErrorCooperativeLaunchTooLarge;
    void *parameters[] = {&s};
    return cudaLaunchCooperativeKernel(
        kernel, dim3(unsigned(rows < most ? rows : most) * unsigned(s.groups)),
        dim3(Few::THREADS), parameters, MEMORY, stream);
}

} // namespace

template <class T>
size_t large_few_memory()
{
    return sizeof(typename FewSides<T, LARGE_FEW_GROUP, true>::Memory);
}

template <class T>
cudaError_t large_few(LargeFew<T> s, bool fused, const Card &card, cudaStream_t stream)
{
    constexpr int GROUP = LARGE_FEW_GROUP;
    s.groups = large_few_sides(s.nrhs) / (s.nrhs > 1 ? GROUP : 1);
    if (s.nrhs == 1)
        return fused ? launch<FewSides<T, 1, true>>(s, card, stream)
                     : launch<FewSides<T, 1, false>>(s, card, stream);
    return fused ? launch<FewSides<T, GROUP, true>>(s, card, stream)
                 : launch<FewSides<T, GROUP, false>>(s, card, stream);
}

#define BL_INSTANCE(T)                                                                   \
    template size_t large_few_memory<T>();                                               \
    template cudaError_t large_few(LargeFew<T>, bool, const Card &, cudaStream_t);
BL_INSTANCE(float)
BL_INSTANCE(double)
BL_INSTANCE(Complex<float>)
BL_INSTANCE(Complex<double>)

} // namespace bl
