/* Second streams: see large_side.h.
 *
 * An event may be recorded anew while streams still wait for its former record. A stream
 * that has taken part in a capture belongs to it until the program ends it, so what is in
 * the pool may not suit every job. Nothing is ever destroyed: there may be work in flight
 * when the process ends.
 */
#include <mutex>
#include <vector>
#include "large_side.h"

namespace bl
{

namespace
{

std::mutex mutex;
std::vector<LargeSide *> &idle()
{
    static std::vector<LargeSide *> *all = new std::vector<LargeSide *>;
    return *all;
}

/* Whether a capture takes what is enqueued in the stream, and which one. */
bool capture_of(cudaStream_t stream, bool &captures, unsigned long long &which)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamGetCaptureInfo(stream, &status, &which) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    captures = status != cudaStreamCaptureStatusNone;
    return status != cudaStreamCaptureStatusInvalidated;
}

} // namespace

bool LargeSide::open()
{
    int least = 0, greatest = 0;
    const bool good =
        cudaDeviceGetStreamPriorityRange(&least, &greatest) == cudaSuccess &&
        cudaStreamCreateWithPriority(&own, cudaStreamNonBlocking, greatest) ==
            cudaSuccess &&
        cudaEventCreateWithFlags(&there, cudaEventDisableTiming) == cudaSuccess &&
        cudaEventCreateWithFlags(&back, cudaEventDisableTiming) == cudaSuccess;
#if CUDART_VERSION >= 12030
    int driver = 0;
    if (good && cudaDriverGetVersion(&driver) == cudaSuccess && driver >= 12030)
        (void)cudaEventCreateWithFlags(&begun, cudaEventDisableTiming);
#endif
    if (!good)
        (void)cudaGetLastError();
    return good;
}

bool LargeSide::suits(cudaStream_t job) const
{
    bool captures = false, others = false;
    unsigned long long which = 0, other = 0;
    if (!capture_of(own, captures, which))
        return false;
    return !captures || (capture_of(job, others, other) && others && which == other);
}

LargeSide *LargeSide::borrow(cudaStream_t job)
{
    LargeSide *side = nullptr;
    {
        std::lock_guard<std::mutex> lock(mutex);
        for (LargeSide *&one : idle())
            if (one->suits(job)) {
                side = one;
                one = idle().back();
                idle().pop_back();
                break;
            }
    }
    if (!side) {
        side = new LargeSide;
        if (!side->open()) {
            delete side;
            return nullptr;
        }
    }
    side->main = job;
    unsigned long long which = 0;
    if (!capture_of(job, side->captured, which))
        side->captured = true;
    return side;
}

void LargeSide::give_back()
{
    std::lock_guard<std::mutex> lock(mutex);
    idle().push_back(this);
}

cudaError_t LargeSide::fork()
{
    cudaError_t error = cudaEventRecord(there, main);
    return error != cudaSuccess ? error : cudaStreamWaitEvent(own, there, 0);
}

cudaError_t LargeSide::join()
{
    cudaError_t error = cudaEventRecord(back, own);
    return error != cudaSuccess ? error : cudaStreamWaitEvent(main, back, 0);
}

cudaEvent_t LargeSide::beginning() const
{
    return captured ? nullptr : begun;
}

cudaError_t LargeSide::after_beginning()
{
    return cudaStreamWaitEvent(main, begun, 0);
}

cudaError_t LargeSide::here_after_beginning()
{
    return cudaStreamWaitEvent(own, begun, 0);
}

} // namespace bl
