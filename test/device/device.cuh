/* What the device tests have in common: ending with a reason, lines of result, the card,
 * the engine, a stream that is busy.
 *
 * Included by one source a program.
 */
#ifndef DEVICE_CUH
#define DEVICE_CUH

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include "../../kernels/family.h"

[[noreturn]] inline void end_test(const char *why)
{
    printf("not ok %s - %s\n", program_invocation_short_name, why);
    exit(1);
}

inline void must(cudaError_t error, const char *call)
{
    char why[300];
    if (error == cudaSuccess)
        return;
    snprintf(why, sizeof why, "%s: %s", call, cudaGetErrorString(error));
    end_test(why);
}
#define CUDA(call) must(call, #call)

inline int failures;

/* "ok NAME", or "not ok NAME - why" where why is not empty; said even if the next step
 * dies. */
inline void verdict(const char *why, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    printf(*why ? "not ok " : "ok ");
    vprintf(format, ap);
    printf(*why ? " - %s\n" : "\n", why);
    va_end(ap);
    fflush(stdout);
    failures += *why != 0;
}

inline bl::Card this_card()
{
    cudaDeviceProp device;
    CUDA(cudaGetDeviceProperties(&device, 0));
    return {device.multiProcessorCount, 10 * device.major + device.minor,
            device.sharedMemPerBlockOptin, device.cooperativeLaunch != 0};
}

/* On device 0. */
inline const struct bl_engine *open_engine(const char *path)
{
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    const auto *engine =
        library ? (const struct bl_engine *)dlsym(library, BL_ENGINE_SYMBOL) : nullptr;
    struct bl_device device;
    char why[200] = "no engine";
    if (!engine || engine->abi != BL_ENGINE_ABI ||
        engine->open(0, &device, why, sizeof why) != BL_OK)
        end_test(why);
    return engine;
}

/* Every block of it for about so many nanoseconds. */
__global__ void keep_busy(int64_t ns)
{
    int64_t begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begin < ns);
}

#endif
