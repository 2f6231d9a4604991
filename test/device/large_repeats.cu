/* The same factorisation again and again while other work runs beside it, on this card's
 * other multiprocessors and between its launches: all bits equal. A test of
 * test/device.sh.
 *
 *   large_repeats ENGINE [repeats]
 *
 * Nothing is waited for: all repeats are enqueued, and compared on the device with the
 * first, which had the card to itself.
 */
#include <vector>
#include "device.cuh"

namespace
{

const struct bl_engine *engine;

typedef unsigned long long Count;

/* How many words differ. */
__global__ void compare(const unsigned *x, const unsigned *want, size_t words,
                        Count *different)
{
    Count mine = 0;
    for (size_t k = blockIdx.x * size_t(blockDim.x) + threadIdx.x; k < words;
         k += size_t(gridDim.x) * blockDim.x)
        mine += x[k] != want[k];
    if (mine)
        atomicAdd(different, mine);
}

/* A matrix, IPIV and INFO in one piece of memory, what it was, and what is to come out.
 */
struct Problem {
    struct bl_job job = {};
    char *original, *now, *want;
    Count *different;
    size_t bytes;

    Problem(enum bl_routine_id routine, enum bl_precision precision, char uplo,
            enum bl_arithmetic arithmetic, int64_t n)
    {
        const bool wide = precision == BL_D || precision == BL_Z;
        const size_t parts = precision >= BL_C ? 2 : 1, order = size_t(n),
                     numbers = order * order * parts, at = numbers * (wide ? 8 : 4);
        std::vector<double> d(numbers);
        uint64_t state = order;
        for (double &x : d) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            x = double(int64_t(state)) * 0x1p-63;
        }
        for (size_t j = 0; j < order && uplo; j++) /* definite */
            d[(j * order + j) * parts] = 3 * double(n);
        const std::vector<float> s(d.begin(), d.end());
        bytes = at + order * 8 + 8;
        for (char **p : {&original, &now, &want})
            CUDA(cudaMalloc(p, bytes));
        CUDA(cudaMalloc(&different, sizeof *different));
        CUDA(cudaMemset(different, 0, sizeof *different));
        CUDA(cudaMemset(original, 0, bytes));
        CUDA(cudaMemcpy(original, wide ? (void *)d.data() : (void *)s.data(), at,
                        cudaMemcpyHostToDevice));
        job.routine = routine;
        job.precision = precision;
        job.arithmetic = arithmetic;
        job.uplo = uplo;
        job.int_size = 8;
        job.m = job.n = n;
        job.batch = 1;
        job.a = {now, nullptr, n, 0};
        job.ipiv = {now + at, nullptr, 0, n};
        job.info = {now + at + order * 8, nullptr, 0, 1};
        CUDA(cudaMalloc(&job.work, engine->workspace(&job) + 1));
        CUDA(cudaDeviceSynchronize());
        run(0);
        CUDA(cudaDeviceSynchronize());
        CUDA(cudaMemcpy(want, now, bytes, cudaMemcpyDeviceToDevice));
        CUDA(cudaDeviceSynchronize());
    }
    Problem(const Problem &) = delete;
    ~Problem()
    {
        for (void *p :
             {(void *)original, (void *)now, (void *)want, (void *)different, job.work})
            cudaFree(p);
    }
    void run(cudaStream_t stream) const
    {
        CUDA(cudaMemcpyAsync(now, original, bytes, cudaMemcpyDeviceToDevice, stream));
        if (engine->run(&job, stream) != BL_OK)
            end_test("the engine failed");
    }
    void repeat(cudaStream_t stream) const
    {
        run(stream);
        compare<<<64, 256, 0, stream>>>((unsigned *)now, (unsigned *)want, bytes / 4,
                                        different);
        CUDA(cudaGetLastError());
    }
    /* INFO was 0, and every repeat was the same. */
    bool good() const
    {
        int64_t info;
        Count count;
        CUDA(cudaMemcpy(&info, want + bytes - 8, 8, cudaMemcpyDeviceToHost));
        CUDA(cudaMemcpy(&count, different, sizeof count, cudaMemcpyDeviceToHost));
        return info == 0 && count == 0;
    }
};

void try_one(enum bl_routine_id routine, enum bl_precision precision, char uplo,
             enum bl_arithmetic arithmetic, int repeats)
{
    const int64_t n = 1500;
    const Problem x(routine, precision, uplo, arithmetic, n),
        other(BL_GETRF, BL_D, 0, BL_FAST, 700);
    cudaStream_t stream[3];
    for (cudaStream_t &s : stream)
        CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (int i = 0; i < repeats; i++) {
        x.repeat(stream[0]);
        other.repeat(stream[1]);
        keep_busy<<<1 + i * 7 % 100, 32 << i % 6, 0, stream[2]>>>(1000 * (i % 41 * 80));
        CUDA(cudaGetLastError());
    }
    CUDA(cudaDeviceSynchronize());
    verdict(x.good() && other.good() ? "" : "INFO, or other bits than alone",
            "large-repeats-%c%s-%c-%lld%s-%d", "sdcz"[precision],
            uplo ? "potrf" : "getrf", uplo ? uplo : 'x', (long long)n,
            arithmetic == BL_FAST ? "-fast" : "", repeats);
    for (cudaStream_t s : stream)
        CUDA(cudaStreamDestroy(s));
}

} // namespace

int main(int argc, char **argv)
{
    engine = open_engine(argc > 1 ? argv[1] : nullptr);
    const int most = argc > 2 ? atoi(argv[2]) : 1000, few = (most + 9) / 10;
    try_one(BL_GETRF, BL_D, 0, BL_FAST, most);
    try_one(BL_GETRF, BL_D, 0, BL_EXACT, few);
    for (enum bl_precision p : {BL_S, BL_C, BL_Z})
        try_one(BL_GETRF, p, 0, BL_FAST, few);
    for (enum bl_precision p : {BL_S, BL_D, BL_C, BL_Z})
        for (char uplo : {'L', 'U'})
            try_one(BL_POTRF, p, uplo, BL_FAST, few);
    return failures != 0;
}
