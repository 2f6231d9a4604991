/* Whole factorisations of one large matrix by the kernels that lesser cards get: without
 * clusters, with little shared memory, without blocks that wait for each other. A test of
 * test/device.sh.
 *
 *   large_fallback
 *   large_fallback few [PRECISIONS]
 *
 * `few`: only Cholesky as if there were few multiprocessors, which is how a much larger
 * matrix is worked on: rows below an outer block are solved for apart, and tiles of an
 * update are drawn.
 *
 * Exact arithmetic must give the bits that this card's own kernels give, and fast
 * arithmetic the same rows and nearly the same numbers: the matrices are well conditioned
 * and leave no doubt about the pivots. Calls the family itself.
 */
#include <cmath>
#include <cstring>
#include <string>
#include <vector>
#include "device.cuh"

using namespace bl;

namespace
{

/* What a job leaves. */
struct Result {
    std::vector<char> a;
    std::vector<int64_t> pivots; /* and INFO */
};

bool is_complex(const bl_job &job)
{
    return job.precision == BL_C || job.precision == BL_Z;
}
bool is_double(const bl_job &job)
{
    return job.precision == BL_D || job.precision == BL_Z;
}

/* Part k of the matrices' numbers. */
double part(const bl_job &job, const std::vector<char> &a, size_t k)
{
    return is_double(job) ? ((const double *)a.data())[k]
                          : double(((const float *)a.data())[k]);
}
void put_part(const bl_job &job, std::vector<char> &a, size_t k, double x)
{
    if (is_double(job))
        ((double *)a.data())[k] = x;
    else
        ((float *)a.data())[k] = float(x);
}

/* What stands out: more than a random matrix's norm, and not much. */
double large_one(const bl_job &job)
{
    return 6 * std::sqrt(double(job.n));
}

/* Uniform in (-1, 1) but for one large number a row and column: on the diagonal for
 * Cholesky, and for LU at a place of its own. */
std::vector<char> matrix(const bl_job &job)
{
    const size_t n = size_t(job.n), parts = is_complex(job) ? 2 : 1;
    std::vector<char> a(n * n * parts * (is_double(job) ? 8 : 4));
    std::vector<size_t> row(n);
    uint64_t state = n;
    auto next = [&] {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return state >> 20;
    };
    for (size_t k = 0; k < n * n * parts; k++)
        put_part(job, a, k, double(next()) * 0x1p-43 - 1);
    for (size_t j = 0; j < n; j++)
        row[j] = j;
    for (size_t j = n - 1; j > 0 && !job.uplo; j--)
        std::swap(row[j], row[next() % (j + 1)]);
    for (size_t j = 0; j < n; j++)
        put_part(job, a, (row[j] + j * n) * parts, large_one(job));
    return a;
}

Result run(bl_job job, const Card &card, const std::vector<char> &a)
{
    Result result = {a, std::vector<int64_t>(job.n + 1, -1)};
    char *device, *work;
    CUDA(cudaMalloc(&device, a.size()));
    CUDA(cudaMalloc(&work, large.workspace(&job, card)));
    int64_t *pivots;
    CUDA(cudaMalloc(&pivots, result.pivots.size() * 8));
    CUDA(cudaMemcpy(device, a.data(), a.size(), cudaMemcpyHostToDevice));
    CUDA(cudaMemset(pivots, 0, result.pivots.size() * 8));
    CUDA(cudaDeviceSynchronize());
    job.a = {device, nullptr, job.n, 0};
    job.ipiv = {pivots, nullptr, 0, job.n};
    job.info = {pivots + job.n, nullptr, 0, 1};
    job.work = work;
    CUDA(large.launch(&job, card, 0));
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaMemcpy(result.a.data(), device, a.size(), cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(result.pivots.data(), pivots, result.pivots.size() * 8,
                    cudaMemcpyDeviceToHost));
    CUDA(cudaFree(device));
    CUDA(cudaFree(work));
    CUDA(cudaFree(pivots));
    return result;
}

/* In what y is not x; empty: in nothing. */
std::string difference(const bl_job &job, const Result &x, const Result &y)
{
    char text[100] = "";
    if (x.pivots[job.n] != 0 || y.pivots[job.n] != 0)
        return "INFO is not 0";
    if (x.pivots != y.pivots)
        return "other rows";
    if (job.arithmetic == BL_EXACT)
        return x.a == y.a ? "" : "other bits";
    const size_t numbers = x.a.size() / (is_double(job) ? 8 : 4);
    /* What as many roundings of the largest number add up to at a venture, four times:
     * the kernels for lesser cards subtract one product after the other. */
    const double near = large_one(job) * 4 * std::sqrt(double(job.n)) *
                        (is_double(job) ? 0x1p-53 : 0x1p-24);
    double most = 0;
    size_t where = 0;
    for (size_t k = 0; k < numbers; k++) {
        const double off = std::fabs(part(job, x.a, k) - part(job, y.a, k));
        if (!(off <= most)) {
            most = off;
            where = k / (is_complex(job) ? 2 : 1);
        }
    }
    if (!(most <= near))
        snprintf(text, sizeof text, "(%lld, %lld) is off by %g, of at most %g",
                 (long long)(where % job.n), (long long)(where / job.n), most, near);
    return text;
}

void compare(bl_job job, const Card &whole)
{
    const struct {
        const char *name;
        int capability;
        size_t shared_bytes;
        bool cooperative;
    } lesser[] = {{"without-clusters", 80, whole.shared_bytes, whole.cooperative},
                  {"little-shared-memory", 75, 64 << 10, whole.cooperative},
                  {"not-cooperative", 75, 64 << 10, false}};
    const std::vector<char> a = matrix(job);
    const Result want = run(job, whole, a);
    for (const auto &of : lesser) {
        const Card card = {whole.processors, of.capability, of.shared_bytes,
                           of.cooperative};
        const bool taken = large.takes(&job, card);
        const std::string off =
            taken ? difference(job, run(job, card, a), want) : std::string();
        verdict(off.c_str(), "large-fallback-%s-%c%s%c-%lld%s%s", of.name,
                "sdcz"[job.precision], job.uplo ? "potrf-" : "getrf-",
                job.uplo ? job.uplo : 'x', (long long)job.n,
                job.arithmetic == BL_FAST ? "-fast" : "",
                taken ? "" : "-is-not-for-such-a-card");
    }
}

void compare_few(bl_job job, const Card &whole)
{
    const Card few = {4, whole.capability, whole.shared_bytes, whole.cooperative};
    const std::vector<char> a = matrix(job);
    const std::string off = difference(job, run(job, few, a), run(job, whole, a));
    verdict(off.c_str(), "large-fallback-few-multiprocessors-%c-potrf-%c-%lld",
            "sdcz"[job.precision], job.uplo, (long long)job.n);
}

bl_job job_of(int precision, bool fast, char uplo, int64_t n)
{
    bl_job job = {};
    job.routine = uplo ? BL_POTRF : BL_GETRF;
    job.precision = bl_precision(precision);
    job.arithmetic = fast ? BL_FAST : BL_EXACT;
    job.uplo = uplo;
    job.int_size = 8;
    job.m = job.n = n;
    job.batch = 1;
    return job;
}

} // namespace

int main(int argc, char **argv)
{
    const Card whole = this_card();
    const char *const precisions = argc > 2 ? argv[2] : "sdcz";
    for (int p = 0; p < BL_PRECISIONS; p++)
        for (char uplo : {'L', 'U'})
            for (int64_t n : {3300, 3073})
                if (strchr(precisions, "sdcz"[p]))
                    compare_few(job_of(p, true, uplo, n), whole);
    for (int p = 0; p < BL_PRECISIONS && argc < 2; p++)
        for (int fast = 0; fast < 2; fast++)
            for (char uplo : {'\0', 'L', 'U'})
                for (int64_t n : {600, 2100})
                    compare(job_of(p, fast, uplo, n), whole);
    return failures != 0;
}
