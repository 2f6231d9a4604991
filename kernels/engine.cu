/* The CUDA engine: src/engine.h's functions over the CUDA runtime, exported as bl_engine.
 *
 * Called by the shim alone, from any thread. It hands each job to the first family of
 * kernels that takes it (family.h). It must leave the calling thread as it
 * found it: every function pushes the device's primary context and pops it again, relaxes
 * stream capture for its own calls, and takes its errors out of the runtime, which is
 * linked statically and thus not the program's.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include "family.h"

namespace bl
{

namespace
{

/* Set once by open(), before any other function is called. */
struct {
    CUcontext context;
    CUresult (*push)(CUcontext);
    CUresult (*pop)(CUcontext *);
    CUresult (*retain)(CUcontext *, CUdevice);
    CUresult (*release)(CUdevice);
    CUresult (*state)(CUdevice, unsigned *, int *);
    CUresult (*identify)(CUcontext, unsigned long long *);
    CUdevice handle;
    unsigned long long identity; /* of the context, as the driver counts them */
    int ordinal;
    Card card;
    cudaMemPool_t pool; /* what queue_alloc takes from; NULL: the device has none */
} device;

/* What an error means for the shim. */
enum bl_status status_of(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return BL_OK;
    case cudaErrorMemoryAllocation:
        return BL_NOMEM;
    case cudaErrorInitializationError:
    case cudaErrorCudartUnloading:
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceUninitialized:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorSystemNotReady:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsServerNotReady:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:
        return BL_LOST;
    default:
        return BL_FAULT;
    }
}

/* The status of our own call; its error does not stay behind. */
enum bl_status settle(cudaError_t error)
{
    if (error != cudaSuccess)
        (void)cudaGetLastError();
    return status_of(error);
}

/* A program that resets the device takes its primary context away, ours too. The handle
 * must then not be used again, nor must our runtime, even if there is a new context. */
bool context_lives()
{
    unsigned flags;
    int active = 0;
    CUcontext now;
    unsigned long long identity = 0;
    if (!device.state || device.state(device.handle, &flags, &active) != CUDA_SUCCESS ||
        !active || device.retain(&now, device.handle) != CUDA_SUCCESS)
        return false;
    bool same = now == device.context &&
                device.identify(now, &identity) == CUDA_SUCCESS &&
                identity == device.identity;
    device.release(device.handle);
    return same;
}

/* Inside one, the device's primary context is current and a stream capture by the program
 * does not forbid our calls. */
class Visit
{
  public:
    Visit()
    {
        mode = cudaStreamCaptureModeRelaxed;
        entered = context_lives() && device.push(device.context) == CUDA_SUCCESS;
        if (entered)
            exchanged = settle(cudaThreadExchangeStreamCaptureMode(&mode)) == BL_OK;
    }
    ~Visit()
    {
        if (exchanged)
            settle(cudaThreadExchangeStreamCaptureMode(&mode));
        CUcontext own;
        if (entered)
            device.pop(&own);
    }
    Visit(const Visit &) = delete;
    Visit &operator=(const Visit &) = delete;
    explicit operator bool() const
    {
        return entered;
    }

  private:
    cudaStreamCaptureMode mode;
    bool entered, exchanged = false;
};

/* Call `expression` in the device's context and return its status. */
#define BL_VISIT(expression)                                                             \
    do {                                                                                 \
        Visit visit;                                                                     \
        return visit ? settle(expression) : BL_LOST;                                     \
    } while (0)

template <class F>
bool find_driver_function(const char *name, F *function)
{
    void *p = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (settle(cudaGetDriverEntryPointByVersion(name, &p, 12000, cudaEnableDefault,
                                                &found)) != BL_OK ||
        found != cudaDriverEntryPointSuccess)
        return false;
    memcpy(function, &p, sizeof p);
    return p != nullptr;
}

enum bl_status refuse(char *why, size_t len, const char *what, const char *detail)
{
    if (len > 0)
        snprintf(why, len, "%s: %s", what, detail);
    return BL_UNSUPPORTED;
}

/* A pool of our own, so that what the program does with its device's default one is no
 * matter, and the other way round. It keeps what is given back to it. */
cudaMemPool_t open_pool(int ordinal)
{
    int supported = 0;
    cudaMemPool_t pool = nullptr;
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = ordinal;
    if (settle(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported,
                                      ordinal)) != BL_OK ||
        !supported || settle(cudaMemPoolCreate(&pool, &properties)) != BL_OK)
        return nullptr;
    uint64_t all = UINT64_MAX;
    settle(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
    return pool;
}

enum bl_status open_device(int ordinal, struct bl_device *out, char *why, size_t len)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (settle(error) != BL_OK || count < 1)
        return refuse(why, len, "no CUDA device",
                      error == cudaSuccess ? "none is visible"
                                           : cudaGetErrorString(error));
    ordinal = (ordinal % count + count) % count;

    CUresult (*get)(CUdevice *, int) = nullptr;
    CUresult (*state)(CUdevice, unsigned *, int *) = nullptr;
    if (!find_driver_function("cuDeviceGet", &get) ||
        !find_driver_function("cuDevicePrimaryCtxRetain", &device.retain) ||
        !find_driver_function("cuDevicePrimaryCtxRelease", &device.release) ||
        !find_driver_function("cuDevicePrimaryCtxGetState", &state) ||
        !find_driver_function("cuCtxGetId", &device.identify) ||
        !find_driver_function("cuCtxPushCurrent", &device.push) ||
        !find_driver_function("cuCtxPopCurrent", &device.pop))
        return refuse(why, len, "CUDA driver", "too old");
    CUresult result = get(&device.handle, ordinal);
    if (result == CUDA_SUCCESS)
        result = device.retain(&device.context, device.handle);
    if (result == CUDA_SUCCESS)
        result = device.identify(device.context, &device.identity);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        refuse(why, len, "CUDA context", "out of device memory");
        return BL_NOMEM;
    }
    if (result != CUDA_SUCCESS)
        return refuse(why, len, "CUDA context", "the device can not be used");
    device.ordinal = ordinal;
    device.state = state; /* from here on calls are let in */

    Visit visit;
    cudaFuncAttributes attributes;
    error = visit ? cudaFuncGetAttributes(&attributes, any_kernel())
                  : cudaErrorDevicesUnavailable;
    if (settle(error) != BL_OK)
        return refuse(why, len, "no code for this device", cudaGetErrorString(error));
    cudaDeviceProp properties;
    error = cudaGetDeviceProperties(&properties, ordinal);
    if (settle(error) != BL_OK)
        return refuse(why, len, "device properties", cudaGetErrorString(error));
    device.card.processors = properties.multiProcessorCount;
    device.card.cooperative = properties.cooperativeLaunch != 0;
    device.card.capability = 10 * properties.major + properties.minor;
    device.card.shared_bytes = properties.sharedMemPerBlockOptin;
    device.pool = open_pool(ordinal);
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%.127s", properties.name);
    out->ordinal = ordinal;
    out->devices = count;
    out->capability = device.card.capability;
    out->memory = properties.totalGlobalMem;
    return BL_OK;
}

enum bl_status queue_open(void **queue)
{
    BL_VISIT(cudaStreamCreateWithFlags((cudaStream_t *)queue, cudaStreamNonBlocking));
}

enum bl_status queue_close(void *queue)
{
    BL_VISIT(cudaStreamDestroy((cudaStream_t)queue));
}

enum bl_status device_alloc(size_t bytes, void **p)
{
    BL_VISIT(cudaMalloc(p, bytes));
}

enum bl_status device_free(void *p)
{
    BL_VISIT(cudaFree(p));
}

/* Pinned memory is ordinary memory that is registered: it stays mapped when the program
 * resets the device under us (what cudaHostAlloc gives does not), and registering is
 * faster. A forked child does not get it, so its pages are never copied while the device
 * writes to them. The page in front holds the size. */
constexpr size_t PAGE = 4096;

enum bl_status host_alloc(size_t bytes, void **p)
{
    Visit visit;
    if (!visit)
        return BL_LOST;
    size_t size = bytes + PAGE;
    void *base =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return BL_NOMEM;
    madvise(base, size, MADV_DONTFORK);
    enum bl_status status =
        settle(cudaHostRegister((char *)base + PAGE, bytes, cudaHostRegisterDefault));
    if (status != BL_OK) {
        munmap(base, size);
        return status;
    }
    *(size_t *)base = size;
    *p = (char *)base + PAGE;
    return BL_OK;
}

enum bl_status host_free(void *p)
{
    Visit visit;
    enum bl_status status = visit ? settle(cudaHostUnregister(p)) : BL_LOST;
    void *base = (char *)p - PAGE;
    if (status == BL_OK)
        munmap(base, *(size_t *)base);
    return status;
}

enum bl_status copy_in(void *queue, void *d, const void *h, size_t bytes)
{
    BL_VISIT(cudaMemcpyAsync(d, h, bytes, cudaMemcpyHostToDevice, (cudaStream_t)queue));
}

enum bl_status copy_out(void *queue, void *h, const void *d, size_t bytes)
{
    BL_VISIT(cudaMemcpyAsync(h, d, bytes, cudaMemcpyDeviceToHost, (cudaStream_t)queue));
}

enum bl_status copy_in_columns(void *queue, void *d, size_t pitch, const void *h,
                               size_t h_pitch, size_t bytes, size_t count)
{
    BL_VISIT(cudaMemcpy2DAsync(d, pitch, h, h_pitch, bytes, count, cudaMemcpyHostToDevice,
                               (cudaStream_t)queue));
}

enum bl_status copy_out_columns(void *queue, void *h, const void *d, size_t pitch,
                                size_t bytes, size_t count)
{
    BL_VISIT(cudaMemcpy2DAsync(h, bytes, d, pitch, bytes, count, cudaMemcpyDeviceToHost,
                               (cudaStream_t)queue));
}

enum bl_status follow(void *queue, void *other)
{
    Visit visit;
    if (!visit)
        return BL_LOST;
    cudaEvent_t there;
    cudaError_t error = cudaEventCreateWithFlags(&there, cudaEventDisableTiming);
    if (error != cudaSuccess)
        return settle(error);
    error = cudaEventRecord(there, (cudaStream_t)other);
    if (error == cudaSuccess)
        error = cudaStreamWaitEvent((cudaStream_t)queue, there, 0);
    (void)cudaEventDestroy(there); /* when it has come */
    return settle(error);
}

enum bl_status wait_for(void *queue)
{
    BL_VISIT(cudaStreamSynchronize((cudaStream_t)queue));
}

enum bl_status queue_alloc(void *queue, size_t bytes, void **p)
{
    if (!device.pool)
        return BL_UNSUPPORTED;
    BL_VISIT(cudaMallocFromPoolAsync(p, bytes > 0 ? bytes : 1, device.pool,
                                     (cudaStream_t)queue));
}

enum bl_status queue_free(void *queue, void *p)
{
    BL_VISIT(cudaFreeAsync(p, (cudaStream_t)queue));
}

/* The pool keeps what it once got. The wait makes it free for every stream at once. */
enum bl_status reserve(size_t bytes)
{
    void *queue = nullptr, *p = nullptr;
    enum bl_status status = queue_open(&queue);
    if (status != BL_OK)
        return status;
    status = queue_alloc(queue, bytes, &p);
    if (status == BL_OK)
        status = queue_free(queue, p);
    if (status == BL_OK)
        status = wait_for(queue);
    enum bl_status closed = queue_close(queue);
    return status != BL_OK ? status : closed;
}

/* Memory whose queue_free still waits its turn counts as in use. */
enum bl_status release()
{
    if (!device.pool)
        return BL_OK;
    BL_VISIT(cudaMemPoolTrimTo(device.pool, 0));
}

/* What put() sends travels as the parameter of a kernel: it is copied at once, needs no
 * pinned memory, and a graph keeps its own copy. The two sizes fit the limits of a
 * kernel's parameters, 4 KiB for the cheaper kind of launch and 32 KiB - 4 in all. */
template <size_t BYTES>
struct Parcel {
    uint64_t word[BYTES / sizeof(uint64_t)];
};
constexpr int DELIVER_THREADS = 256;
constexpr size_t SMALL_PARCEL = 4000, LARGE_PARCEL = 32000;

/* One block. A thread writes every (number of threads)-th word, or byte where `to` is not
 * aligned, and the rest by bytes. */
template <size_t BYTES>
__global__ void deliver(char *to, size_t bytes,
                        const __grid_constant__ Parcel<BYTES> parcel)
{
    const size_t words = (size_t)to % sizeof(uint64_t) ? 0 : bytes / sizeof(uint64_t);
    const char *from = (const char *)parcel.word;
    for (size_t i = threadIdx.x; i < words; i += blockDim.x)
        ((uint64_t *)to)[i] = parcel.word[i];
    for (size_t i = words * sizeof(uint64_t) + threadIdx.x; i < bytes; i += blockDim.x)
        to[i] = from[i];
}

template <size_t BYTES>
cudaError_t send(char *to, const char *from, size_t bytes, cudaStream_t stream)
{
    Parcel<BYTES> parcel;
    memcpy(parcel.word, from, bytes);
    void *parameters[] = {&to, &bytes, &parcel};
    return cudaLaunchKernel((const void *)deliver<BYTES>, dim3(1), dim3(DELIVER_THREADS),
                            parameters, 0, stream);
}

enum bl_status put(void *queue, void *d, const void *h, size_t bytes)
{
    Visit visit;
    if (!visit)
        return BL_LOST;
    enum bl_status status = BL_OK;
    char *to = (char *)d;
    const char *from = (const char *)h;
    cudaStream_t stream = (cudaStream_t)queue;
    while (bytes > 0 && status == BL_OK) {
        size_t size = bytes < LARGE_PARCEL ? bytes : LARGE_PARCEL;
        status =
            settle(size <= SMALL_PARCEL ? send<SMALL_PARCEL>(to, from, size, stream)
                                        : send<LARGE_PARCEL>(to, from, size, stream));
        to += size;
        from += size;
        bytes -= size;
    }
    return status;
}

enum bl_status memory_kind(const void *p, enum bl_memory *kind)
{
    cudaPointerAttributes attributes;
    Visit visit;
    if (!visit)
        return BL_LOST;
    enum bl_status status = settle(cudaPointerGetAttributes(&attributes, p));
    if (status != BL_OK)
        return status;
    switch (attributes.type) {
    case cudaMemoryTypeDevice:
        *kind = BL_MEMORY_DEVICE;
        return attributes.device == device.ordinal ? BL_OK : BL_UNSUPPORTED;
    case cudaMemoryTypeManaged:
        *kind = BL_MEMORY_MANAGED;
        return BL_OK;
    case cudaMemoryTypeHost:
        *kind = BL_MEMORY_PINNED;
        return BL_OK;
    default:
        *kind = BL_MEMORY_PAGEABLE;
        return BL_OK;
    }
}

/* From the special to the general; the first that takes a job has it. */
const Family *const families[] = {&tiny,      &tiny_cholesky, &large,
                                  &triangles, &mid_cholesky,  &mid_cholesky_solve,
                                  &mid_potri, &mid,           &general};

const Family *family_of(const struct bl_job *job)
{
    const Family *const *f = families;
    while (!(*f)->takes(job, device.card))
        f++;
    return *f;
}

/* Powers of two of the larger side: the thread counts of the general family change with
 * some of them, and no block does more than eight times another's work. */
int bucket(const struct bl_job *, int64_t m, int64_t n)
{
    const int64_t order = m > n ? m : n;
    if (order <= 32)
        return tiny_class(order);
    return tiny_class(32) + 1 + shape_class(m, n);
}

size_t workspace(const struct bl_job *job)
{
    return family_of(job)->workspace(job, device.card);
}

int64_t part(const struct bl_job *job, int64_t from)
{
    const Family *family = family_of(job);
    return family->part ? family->part(job, device.card, from) : job->n;
}

enum bl_status run(const struct bl_job *job, void *queue)
{
    Visit visit;
    if (!visit)
        return BL_LOST;
    if ((unsigned)job->routine >= BL_ROUTINES ||
        (unsigned)job->precision >= BL_PRECISIONS)
        return BL_UNSUPPORTED;
    enum bl_status status =
        settle(family_of(job)->launch(job, device.card, (cudaStream_t)queue));
    enum bl_status pending = settle(cudaGetLastError());
    return status != BL_OK ? status : pending;
}

} // namespace
} // namespace bl

extern "C" __attribute__((visibility("default"))) const struct bl_engine bl_engine = {
    BL_ENGINE_ABI,
    sizeof(struct bl_engine),
    "cuda",
    bl::open_device,
    bl::queue_open,
    bl::queue_close,
    bl::device_alloc,
    bl::device_free,
    bl::host_alloc,
    bl::host_free,
    bl::copy_in,
    bl::copy_out,
    bl::copy_in_columns,
    bl::copy_out_columns,
    bl::workspace,
    bl::queue_alloc,
    bl::queue_free,
    bl::reserve,
    bl::release,
    bl::put,
    bl::bucket,
    bl::part,
    bl::run,
    bl::follow,
    bl::wait_for,
    bl::memory_kind,
};
