/* As much of a CUDA runtime as a driver's host code is linked with, where there is no
 * device: launches are left out and everything succeeds. For host_large_parts.cu.
 */
#include <stddef.h>
#include <string.h>

int cudaMemsetAsync(void *p, int value, size_t bytes, void *stream);
int cudaMemsetAsync(void *p, int value, size_t bytes, void *stream)
{
    (void)stream;
    memset(p, value, bytes);
    return 0;
}

int cudaGetLastError(void);
int cudaGetLastError(void)
{
    return 0;
}

/* Not 0: the launch that it belongs to is left out. */
unsigned __cudaPushCallConfiguration(void);
unsigned __cudaPushCallConfiguration(void)
{
    return 1;
}

#define UNUSED(name)                                                                     \
    void *name(void);                                                                    \
    void *name(void)                                                                     \
    {                                                                                    \
        static void *handle;                                                             \
        return &handle;                                                                  \
    }
UNUSED(__cudaRegisterFatBinary)
UNUSED(__cudaRegisterFatBinaryEnd)
UNUSED(__cudaUnregisterFatBinary)
UNUSED(__cudaRegisterFunction)
UNUSED(__cudaPopCallConfiguration)
UNUSED(__cudaGetKernel)
UNUSED(__cudaLaunchKernel)
UNUSED(cudaLaunchKernel)
