/* One large gesv under capture, and beside others: the factorisation uses a second
 * stream, which a capture takes with it, and blocks of the solve wait for each other. A
 * test of test/device.sh.
 *
 *   large_capture ENGINE
 *
 * The bits of a graph's launches, of a job that is enqueued on another stream while a
 * capture is open, and of repeats beside other work are those of the plain call.
 */
#include <cstring>
#include <vector>
#include "device.cuh"

namespace
{

const struct bl_engine *engine;

/* A matrix and, behind it, one right-hand side on the device, its job and what they were.
 */
struct Problem {
    struct bl_job job = {};
    std::vector<double> original;
    int64_t n;

    Problem(int64_t order, enum bl_arithmetic arithmetic)
        : original(order * (order + 1)), n(order)
    {
        uint64_t state = uint64_t(order);
        for (double &x : original) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            x = double(int64_t(state)) * 0x1p-63;
        }
        job.routine = BL_GESV;
        job.precision = BL_D;
        job.arithmetic = arithmetic;
        job.int_size = 4;
        job.m = job.n = n;
        job.nrhs = 1;
        job.batch = 1;
        job.a = {memory(n * (n + 1) * sizeof(double)), nullptr, n, 0};
        job.b = {(double *)job.a.p + n * n, nullptr, n, 0};
        job.ipiv = {memory(n * 4), nullptr, 0, n};
        job.info = {memory(4), nullptr, 0, 1};
        job.work = memory(engine->workspace(&job));
    }
    static void *memory(size_t bytes)
    {
        void *p;
        CUDA(cudaMalloc(&p, bytes));
        return p;
    }
    /* From pageable memory cudaMemcpy may return before all is there, and the streams
     * that jobs are enqueued on do not wait for the one it uses. */
    void refill() const
    {
        CUDA(cudaMemcpy(job.a.p, original.data(), original.size() * sizeof(double),
                        cudaMemcpyHostToDevice));
        CUDA(cudaDeviceSynchronize());
    }
    void enqueue(cudaStream_t stream) const
    {
        if (engine->run(&job, stream) != BL_OK)
            end_test("the engine failed");
    }
    std::vector<double> result() const
    {
        CUDA(cudaDeviceSynchronize());
        std::vector<double> a(original.size());
        CUDA(cudaMemcpy(a.data(), job.a.p, a.size() * sizeof(double),
                        cudaMemcpyDeviceToHost));
        return a;
    }
};

void say(bool good, const char *what, int64_t n, bool fast)
{
    verdict(good ? "" : "other bits than of the plain call", "large-capture-%s-%lld%s",
            what, (long long)n, fast ? "-fast" : "");
}

bool same(const std::vector<double> &x, const std::vector<double> &y)
{
    return memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
}

void try_order(int64_t n, bool fast)
{
    cudaStream_t first, second;
    CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    const Problem x(n, fast ? BL_FAST : BL_EXACT), y(n, fast ? BL_FAST : BL_EXACT);
    x.refill();
    x.enqueue(first);
    const std::vector<double> want = x.result();

    y.refill();
    CUDA(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
    x.enqueue(first);
    y.enqueue(second); /* not captured */
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CUDA(cudaStreamEndCapture(first, &graph));
    say(same(y.result(), want), "beside", n, fast);
    CUDA(cudaGraphInstantiate(&executable, graph, 0));
    bool good = true;
    for (int i = 0; i < 3; i++) {
        x.refill();
        CUDA(cudaGraphLaunch(executable, first));
        good = good && same(x.result(), want);
    }
    say(good, "graph", n, fast);

    good = true;
    for (int i = 0; i < 20; i++) {
        x.refill();
        y.refill();
        x.enqueue(first);
        y.enqueue(second);
        good = good && same(x.result(), want) && same(y.result(), want);
    }
    say(good, "repeats", n, fast);
    CUDA(cudaGraphExecDestroy(executable));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaStreamDestroy(first));
    CUDA(cudaStreamDestroy(second));
}

} // namespace

int main(int argc, char **argv)
{
    engine = open_engine(argc > 1 ? argv[1] : nullptr);
    for (int fast = 0; fast < 2; fast++)
        for (int64_t n : {600, 1500, 2600})
            try_order(n, fast);
    return failures != 0;
}
