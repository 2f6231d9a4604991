/* The CUDA engine: src/engine.h's functions over the CUDA runtime, exported as bl_engine.
 *
 * Called by the shim alone, from any thread. It decides how many threads and blocks a
 * matrix gets, from the shape, the batch and the card's number of multiprocessors only,
 * and starts the kernels of the other .cu files. It must leave the calling thread as it
 * found it: every function pushes the device's primary context and pops it again, relaxes
 * stream capture for its own calls, and takes its errors out of the runtime, which is
 * linked statically and thus not the program's.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include "kernel.cuh"
#include "tiny.h"
#include "tiny_cholesky.h"

namespace bl
{

#define R_SDCZ(name, NAME, nargs, args) const void *kernel_##name(int precision);
#define E_SDCZ(name, NAME, args) const void *kernel_##name(int precision);
#include "../src/routines.def"

namespace
{

using Kernel = const void *(*)(int precision);

const Kernel kernels[BL_ROUTINES] = {
#define R_SDCZ(name, NAME, nargs, args) kernel_##name,
#define E_SDCZ(name, NAME, args) kernel_##name,
#include "../src/routines.def"
};

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
    int processors;     /* multiprocessors */
    bool cooperative;   /* whether the blocks of a launch can wait for each other */
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
    error = visit ? cudaFuncGetAttributes(&attributes, kernels[0](BL_D))
                  : cudaErrorDevicesUnavailable;
    if (settle(error) != BL_OK)
        return refuse(why, len, "no code for this device", cudaGetErrorString(error));
    cudaDeviceProp properties;
    error = cudaGetDeviceProperties(&properties, ordinal);
    if (settle(error) != BL_OK)
        return refuse(why, len, "device properties", cudaGetErrorString(error));
    device.processors = properties.multiProcessorCount;
    device.cooperative = properties.cooperativeLaunch != 0;
    device.pool = open_pool(ordinal);
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%.127s", properties.name);
    out->ordinal = ordinal;
    out->devices = count;
    out->capability = 10 * properties.major + properties.minor;
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
    return cudaLaunchKernel((const void *)deliver<BYTES>, dim3(1), dim3(THREADS),
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

int64_t at_most(int64_t x, int64_t limit)
{
    return x < limit ? x : limit;
}

int64_t at_least(int64_t x, int64_t limit)
{
    return x > limit ? x : limit;
}

size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Bytes of work space from which on they are weighed against speed. */
constexpr size_t WORK_LIMIT = size_t(1) << 30;

/* How a job is launched. Depends on the job and the card alone: workspace() and run()
 * must agree. */
struct Plan {
    int threads;          /* a block */
    int blocks;           /* a team */
    int64_t teams;        /* in flight */
    size_t control_bytes; /* a team; 0 where a team is one block */
    size_t work_bytes;    /* a team */
};

/* Blocks that one matrix can keep busy: the 64 x 64 tiles of its widest step. Of a batch
 * of different shapes the largest counts. */
int64_t useful_blocks(const struct bl_job *job)
{
    int64_t rows = (job->m + NB - 1) / NB, columns = (job->n + NB - 1) / NB;
    int64_t sides = (job->nrhs + NB - 1) / NB;
    bool low = job->m <= 4096 && job->n <= NB && job->nrhs <= NB;
    if (low || at_least(at_least(job->m, job->n), job->nrhs) <= 2 * NB)
        return 1;
    switch (job->routine) {
    case BL_GETRF:
    case BL_GETRFNP:
    case BL_GETRFSP:
    case BL_GESV:
    case BL_GEINV:
    case BL_GEDET:
        return rows * at_least(columns, sides);
    default: /* a block of columns, or the right-hand sides, at a time */
        return columns * at_least(sides, 1);
    }
}

/* Bytes of work space that a team needs: see the routines' comments. */
size_t work_bytes(const struct bl_job *job)
{
    static const size_t element[BL_PRECISIONS] = {4, 8, 8, 16};
    const size_t pivots = job->n * sizeof(int64_t);
    const int64_t n = job->n;
    size_t elements = 0, others = 0;
    switch (job->routine) {
    case BL_GETRI:
        elements = work_elements(n, job->block);
        break;
    case BL_POTRI:
        elements = work_elements(n, 0);
        break;
    case BL_GETRI_OOP:
        elements = work_elements(n, NB);
        break;
    case BL_GEINV:
        elements = work_elements(n, NB);
        others = pivots;
        break;
    case BL_GEDET:
        elements = n * n;
        others = pivots;
        break;
    case BL_GETRFSP: /* reals would be enough */
        elements = job->m;
        break;
    default:
        break;
    }
    return aligned(others + elements * element[job->precision]);
}

Plan plan_of(const struct bl_job *job)
{
    Plan plan = {};
    int64_t largest = at_least(at_least(job->m, job->n), job->nrhs);
    plan.threads = largest <= 16   ? 32
                   : largest <= 32 ? 64
                   : largest <= 64 ? 128
                                   : THREADS;
    plan.blocks = 1;
    if (device.cooperative && job->batch <= device.processors / 2)
        plan.blocks = int(at_most(useful_blocks(job), device.processors / job->batch));
    if (plan.blocks > 1) {
        plan.teams = job->batch;
        plan.control_bytes = aligned(sizeof(Control) + 2 * plan.blocks * sizeof(Best));
    } else {
        plan.teams = at_most(job->batch, int64_t(device.processors) * 512 / plan.threads);
    }
    plan.work_bytes = work_bytes(job);
    /* Matrices in the work space: no more than the card needs to be busy. */
    if (job->routine == BL_GEDET && plan.teams * plan.work_bytes > WORK_LIMIT)
        plan.teams = at_most(plan.teams, device.processors);
    return plan;
}

/* Powers of two of the larger side: the thread counts of plan_of change with some of
 * them, and no block does more than eight times another's work. */
int bucket(const struct bl_job *, int64_t m, int64_t n)
{
    const int64_t order = at_least(m, n);
    if (order <= 32)
        return tiny_class(order);
    int b = 8;
    while (b < BL_BUCKETS - 1 && (int64_t(64) << (b - 8)) < order)
        b++;
    return b;
}

size_t workspace(const struct bl_job *job)
{
    if (tiny_takes(job) || tiny_cholesky_takes(job))
        return 0;
    Plan plan = plan_of(job);
    return plan.teams * (plan.control_bytes + plan.work_bytes);
}

cudaError_t launch(const struct bl_job *job, cudaStream_t stream)
{
    if (tiny_takes(job))
        return tiny_launch(job, stream);
    if (tiny_cholesky_takes(job))
        return tiny_cholesky_launch(job, stream);
    Plan plan = plan_of(job);
    Arguments g = {};
    g.a = job->a;
    g.b = job->b;
    g.x = job->x;
    g.ipiv = job->ipiv;
    g.info = job->info;
    g.phase = job->phase;
    g.logabs = job->logabs;
    g.items = job->items;
    g.m = job->m;
    g.n = job->n;
    g.nrhs = job->nrhs;
    g.block = job->block;
    g.batch = job->batch;
    g.uplo = job->uplo;
    g.trans = job->trans;
    g.exact = job->arithmetic == BL_EXACT;
    g.int_size = job->int_size;
    g.blocks = plan.blocks;
    g.control = (char *)job->work;
    g.control_bytes = plan.control_bytes;
    g.work = g.control + plan.teams * plan.control_bytes;
    g.work_bytes = plan.work_bytes;
    const void *kernel = kernels[job->routine](job->precision);
    void *parameters[] = {&g};
    dim3 threads(plan.threads);
    if (plan.blocks > 1) {
        cudaError_t error =
            cudaMemsetAsync(g.control, 0, plan.teams * plan.control_bytes, stream);
        if (error == cudaSuccess)
            error = cudaLaunchCooperativeKernel(kernel,
                                                dim3(unsigned(plan.teams * plan.blocks)),
                                                threads, parameters, 0, stream);
        if (error != cudaErrorCooperativeLaunchTooLarge)
            return error;
        /* Part of the card only (MPS): one block a matrix needs no other to be there. */
        (void)cudaGetLastError();
        g.blocks = 1;
    }
    return cudaLaunchKernel(kernel, dim3(unsigned(plan.teams)), threads, parameters, 0,
                            stream);
}

enum bl_status run(const struct bl_job *job, void *queue)
{
    Visit visit;
    if (!visit)
        return BL_LOST;
    if ((unsigned)job->routine >= BL_ROUTINES ||
        (unsigned)job->precision >= BL_PRECISIONS)
        return BL_UNSUPPORTED;
    enum bl_status status = settle(launch(job, (cudaStream_t)queue));
    enum bl_status pending = settle(cudaGetLastError());
    return status != BL_OK ? status : pending;
}

} // namespace
} // namespace bl

extern "C" __attribute__((visibility("default"))) const struct bl_engine bl_engine = {
    BL_ENGINE_ABI,    sizeof(struct bl_engine),
    "cuda",           bl::open_device,
    bl::queue_open,   bl::queue_close,
    bl::device_alloc, bl::device_free,
    bl::host_alloc,   bl::host_free,
    bl::copy_in,      bl::copy_out,
    bl::workspace,    bl::queue_alloc,
    bl::queue_free,   bl::reserve,
    bl::release,      bl::put,
    bl::bucket,       bl::run,
    bl::wait_for,     bl::memory_kind,
};
