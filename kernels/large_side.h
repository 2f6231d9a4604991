/* A second stream beside a job's: for what may run while the rest of an update does.
 *
 * Used by large.cu and mid.cu. It has the highest priority. It is joined again before the
 * job is all enqueued, so that a program may capture the job's stream. Streams are kept
 * for the next job; any thread may call.
 */
#ifndef BL_LARGE_SIDE_H
#define BL_LARGE_SIDE_H

#include <cuda_runtime.h>

namespace bl
{

class LargeSide
{
  public:
    /* Beside the stream `job`; NULL: there is none to be had. */
    static LargeSide *borrow(cudaStream_t job);
    void give_back();
    /* What is enqueued here from now on follows what is in the job's stream by now. */
    cudaError_t fork();
    /* And the other way round. */
    cudaError_t join();
    cudaStream_t stream() const
    {
        return own;
    }
    /* An event for a kernel of either stream to record when it has begun; what is
     * enqueued in the job's stream, or here, from then on follows that. NULL: there is
     * none in a capture, or before CUDA 12.3. */
    cudaEvent_t beginning() const;
    cudaError_t after_beginning();
    cudaError_t here_after_beginning();

  private:
    bool open();
    bool suits(cudaStream_t job) const;
    cudaStream_t own = nullptr, main = nullptr;
    cudaEvent_t there = nullptr, back = nullptr, begun = nullptr;
    bool captured = false; /* the job is */
};

} // namespace bl
#endif
