/* GETRS('T') and ('C') of order n <= 32: the launch. Called by tiny.cu. */
#include "tiny_transposed.cuh"
#include "tiny_transposed.h"

namespace bl
{
namespace
{

template <class T, bool CONJUGATE>
const void *kernel_for(int n)
{
    return n <= 8    ? (const void *)tiny_getrs_transposed<CONJUGATE, T, 8>
           : n <= 16 ? (const void *)tiny_getrs_transposed<CONJUGATE, T, 16>
                     : (const void *)tiny_getrs_transposed<CONJUGATE, T, 32>;
}

template <class T>
const void *kernel_of(int n, bool conjugate)
{
    if constexpr (Traits<T>::complex)
        if (conjugate)
            return kernel_for<T, true>(n);
    return kernel_for<T, false>(n);
}

} // namespace

cudaError_t launch_getrs_transposed(const struct bl_job *job, TinyArguments g,
                                    cudaStream_t stream)
{
    static const void *(*const kernels[])(int, bool) = {
        kernel_of<float>, kernel_of<double>, kernel_of<Complex<float>>,
        kernel_of<Complex<double>>};
    const int64_t blocks = (job->batch * job->nrhs + 31) / 32;
    void *parameters[] = {&g};
    if (blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    return cudaLaunchKernel(kernels[job->precision](g.n, job->trans == 'C'),
                            dim3(unsigned(blocks)), dim3(32), parameters, 0, stream);
}

} // namespace bl
