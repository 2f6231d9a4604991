/* The large triangular solve with few right-hand sides: kernel and launch.
 *
 * Called by large.cu through large.h. Blocks wait for each other; why that ends is in
 * large_few.cuh.
 */
#include "large_few.cuh"
#include "large.h"

namespace bl
{

namespace
{

/* Who does what, and what is in shared memory, is in large_few.cuh. */
template <class Few, class T>
__global__ void __launch_bounds__(Few::THREADS, 1)
    solve_few(const __grid_constant__ LargeFew<T> s)
{
    extern __shared__ __align__(16) char memory[];
    typename Few::Memory &m = *(typename Few::Memory *)memory;
    if (s.unless && *s.unless)
        return;
    if (threadIdx.x == 0)
        m.number = atomicAdd(s.drawn, 1u) + 1; /* all bits are set before the first */
    __syncthreads();
    Few(s, m, int(threadIdx.x)).run();
}

template <class Few, class T>
cudaError_t launch(const LargeFew<T> &s, cudaStream_t stream)
{
    constexpr int MEMORY = int(sizeof(typename Few::Memory));
    const cudaError_t error = cudaFuncSetAttribute(
        solve_few<Few, T>, cudaFuncAttributeMaxDynamicSharedMemorySize, MEMORY);
    if (error != cudaSuccess)
        return error;
    const unsigned blocks = unsigned((s.n + Few::ROWS - 1) / Few::ROWS) * s.groups;
    solve_few<Few, T><<<blocks, Few::THREADS, MEMORY, stream>>>(s);
    return cudaGetLastError();
}

} // namespace

template <class T>
size_t large_few_memory()
{
    return sizeof(typename FewSides<T, LARGE_FEW_GROUP, true>::Memory);
}

template <class T>
cudaError_t large_few(LargeFew<T> s, bool fused, cudaStream_t stream)
{
    constexpr int GROUP = LARGE_FEW_GROUP;
    s.groups = unsigned(large_few_sides(s.nrhs) / (s.nrhs > 1 ? GROUP : 1));
    if (s.nrhs == 1)
        return fused ? launch<FewSides<T, 1, true>>(s, stream)
                     : launch<FewSides<T, 1, false>>(s, stream);
    return fused ? launch<FewSides<T, GROUP, true>>(s, stream)
                 : launch<FewSides<T, GROUP, false>>(s, stream);
}

#define BL_INSTANCE(T)                                                                   \
    template size_t large_few_memory<T>();                                               \
    template cudaError_t large_few(LargeFew<T>, bool, cudaStream_t);
BL_INSTANCE(float)
BL_INSTANCE(double)
BL_INSTANCE(Complex<float>)
BL_INSTANCE(Complex<double>)

} // namespace bl
