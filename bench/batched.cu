/* Batches of matrices up to 1024 x 1024 on device memory against cuBLAS, cuSOLVER and
 * MAGMA.
 *
 *     bench/batched ENGINE [routines [precisions [sizes [magma-batched.csv [how]]]]]
 *     bench/batched ENGINE cliffs
 *     bench/batched ENGINE small [precisions [sizes]]
 *
 * ENGINE is libbatchlapack_cuda.so; the others are comma-separated lists, "" for all of
 * getrf, gesv, getri, geinv and potrf (lower), precisions and sizes. By name also getrs
 * and getrs_t (transposed), potrs, posv and potri, potrf_u and posv_u (upper), gedet,
 * getrfsp, getrfnp; with one right-hand side.
 * Jobs go straight to the engine. cuBLAS and cuSOLVER run in the same process on the same
 * data; MAGMA's figures come from a file and are scaled by the two copy speeds. Prints a
 * line a routine, precision and size: nanoseconds a matrix (median), times over the
 * floor, how often faster than each peer; of gedet and getrfsp, if getrf was asked for
 * too, also the time over getrf's. The floor is every matrix read once and written
 * once at the measured speed of a copy, or the arithmetic in separate products and sums
 * where that takes longer; of Cholesky the triangle in whole 32-byte sectors.
 *
 * how: exact (the default), fast, auto (what the library takes if nothing is asked for),
 * or once, for a profiler that begins where it is told to
 * (bench/tiny_profile): one launch a point and nothing else between cudaProfilerStart and
 * cudaProfilerStop, no peers, no times; prints routine, precision, n and matrices. A
 * routine 1000 is getrf of 1000 matrices of order 32, which is timed in any case.
 * both: exact and fast beside each other, and which of them auto takes; a line that
 * breaks a rule of auto (fast gains 10 %; exact only where it is ahead of every peer)
 * ends with an exclamation mark and the rule.
 *
 * cliffs: double getrf at every size from 33 to 200 and every 16th to 1024, its time over
 * that of a line through a few times that are good ones on an H100 (straight where both
 * scales are logarithmic); the worst comes last.
 *
 * small: getrf, gesv (one right-hand side) and potrf of 1, 4, 16 and 64 matrices:
 * microseconds a call, GFLOP/s of 2/3, 2/3 and 1/3 n^3 operations (four times as many of
 * complex numbers), and how often faster than the batched routines of cuBLAS (potrf:
 * cuSOLVER) and than cuSOLVER's routine for one matrix on eight streams. Both in what the
 * library takes. No other process should use the card.
 */
#include <cmath>
#include <cstring>
#include <cublas_v2.h>
#include <cuda_profiler_api.h>
#include <cusolverDn.h>
#include <dlfcn.h>
#include <map>

#include "automatic.h"
#include "device.cuh"

static const int sizes[] = {2,  3,  4,  5,  7,  8,  11,  15,  16,  17,  20,  24,
                            25, 31, 32, 48, 64, 96, 128, 160, 190, 256, 512, 1024};
static const size_t element[] = {4, 8, 8, 16};
static const int small_sizes[] = {256, 512, 1024}, small_batches[] = {1, 4, 16, 64};

static const struct bl_engine *engine;
static void *queue;
static enum bl_arithmetic arithmetic = BL_EXACT;
static bool automatic; /* the library says which */
static bool both;      /* beside each other */
static bool once;      /* for a profiler */
static int repeats = 7;
static char *original, *a, *x, *b, *integers, *pointers, *peer_pointers, *side_pointers;
static cublasHandle_t cublas;
static cusolverDnHandle_t cusolver;
static double copy_speed; /* bytes read and written a second */
struct Known {
    double ns; /* a matrix, scaled */
    std::string who;
};
static std::map<std::string, Known> known;     /* of the file */
static std::map<std::string, double> getrf_ns; /* ours, by precision and order */

/* On the queue: it does not wait for the default stream, where a copy on the device goes
 * on after the call. */
static void copy(void *to, const void *from, size_t bytes)
{
    must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                         (cudaStream_t)queue) == cudaSuccess &&
             engine->wait(queue) == BL_OK,
         "copy");
}

/* Median milliseconds on fresh data. */
template <class Call>
static double timed(size_t bytes, Call call)
{
    cudaStream_t stream = (cudaStream_t)queue;
    return times(
        stream, repeats,
        [&] { cudaMemcpyAsync(a, original, bytes, cudaMemcpyDeviceToDevice, stream); },
        call)[(size_t)repeats / 2];
}

/* What can be asked for: how a matrix is read and written, in whole or in triangles, and
 * n^3 flops. */
struct Timed {
    const char *name;
    enum bl_routine_id routine;
    char uplo, trans;
    int reads, writes, nrhs;
    double flops;
    bool by_name; /* only */
    bool triangle() const
    {
        return uplo != 0;
    }
    bool factored() const /* the matrix comes as factors */
    {
        return routine == BL_GETRS || routine == BL_GETRI || routine == BL_POTRS ||
               routine == BL_POTRI;
    }
};
static const Timed routines[] = {
    {"getrf", BL_GETRF, 0, 0, 1, 1, 0, 2. / 3, false},
    {"gesv", BL_GESV, 0, 0, 1, 1, 1, 2. / 3, false},
    {"getri", BL_GETRI, 0, 0, 1, 1, 0, 4. / 3, false},
    {"geinv", BL_GEINV, 0, 0, 1, 1, 0, 2, false},
    {"potrf", BL_POTRF, 'L', 0, 1, 1, 0, 1. / 3, false},
    {"getrs", BL_GETRS, 0, 'N', 1, 0, 1, 0, true},
    {"getrs_t", BL_GETRS, 0, 'T', 1, 0, 1, 0, true},
    {"potrs", BL_POTRS, 'L', 0, 1, 0, 1, 0, true},
    {"posv", BL_POSV, 'L', 0, 1, 1, 1, 1. / 3, true},
    {"potri", BL_POTRI, 'L', 0, 1, 1, 0, 2. / 3, true},
    {"potrf_u", BL_POTRF, 'U', 0, 1, 1, 0, 1. / 3, true},
    {"posv_u", BL_POSV, 'U', 0, 1, 1, 1, 1. / 3, true},
    {"gedet", BL_GEDET, 0, 0, 1, 0, 0, 2. / 3, true},
    {"getrfsp", BL_GETRFSP, 0, 0, 1, 1, 0, 2. / 3, true},
    {"getrfnp", BL_GETRFNP, 0, 0, 1, 1, 0, 2. / 3, true},
};

static struct bl_job job_of(const Timed &r, int precision, int n, int64_t batch)
{
    struct bl_job job = {};
    job.routine = r.routine;
    job.precision = (enum bl_precision)precision;
    job.uplo = r.uplo;
    job.trans = r.trans;
    job.int_size = 4;
    job.m = job.n = n;
    job.nrhs = r.nrhs;
    job.batch = batch;
    job.a = {a, nullptr, n, (int64_t)n * n};
    job.x = {x, nullptr, n, (int64_t)n * n};
    job.b = {b, nullptr, n, n};
    job.ipiv = {integers, nullptr, 0, n};
    job.phase = {x, nullptr, 0, 1};
    job.logabs = {b, nullptr, 0, 1};
    job.info = {integers + (size_t)batch * n * 4, nullptr, 0, 1};
    job.arithmetic =
        automatic ? (enum bl_arithmetic)automatic_arithmetic(&job) : arithmetic;
    return job;
}

static void run(struct bl_job job)
{
    static void *work;
    static size_t held;
    size_t bytes = engine->workspace(&job);
    if (bytes > held) {
        cudaFree(work);
        must(cudaMalloc(&work, bytes) == cudaSuccess, "work space");
        held = bytes;
    }
    job.work = work;
    must(engine->run(&job, queue) == BL_OK, "run");
}

/* The peers' calls, by precision. */
using Getrf = cublasStatus_t (*)(cublasHandle_t, int, void *const *, int, int *, int *,
                                 int);
using Getri = cublasStatus_t (*)(cublasHandle_t, int, const void *const *, int,
                                 const int *, void *const *, int, int *, int);
using Matinv = cublasStatus_t (*)(cublasHandle_t, int, const void *const *, int,
                                  void *const *, int, int *, int);
using Getrs = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, int, int,
                                 const void *const *, int, const int *, void *const *,
                                 int, int *, int);
using Potrf = cusolverStatus_t (*)(cusolverDnHandle_t, cublasFillMode_t, int, void **,
                                   int, int *, int);
using Potrs = cusolverStatus_t (*)(cusolverDnHandle_t, cublasFillMode_t, int, int,
                                   void **, int, void **, int, int *, int);
#define PEERS(type, name, library, suffix)                                               \
    static const type name[] = {                                                         \
        (type)(void *)library##S##suffix, (type)(void *)library##D##suffix,              \
        (type)(void *)library##C##suffix, (type)(void *)library##Z##suffix}
PEERS(Getrf, peer_getrf, cublas, getrfBatched);
PEERS(Getri, peer_getri, cublas, getriBatched);
PEERS(Matinv, peer_matinv, cublas, matinvBatched);
PEERS(Getrs, peer_getrs, cublas, getrsBatched);
PEERS(Potrf, peer_potrf, cusolverDn, potrfBatched);
PEERS(Potrs, peer_potrs, cusolverDn, potrsBatched);

static void fill_pointers(char *list, const char *base, size_t bytes, int64_t batch)
{
    std::vector<const char *> p((size_t)batch);
    for (int64_t i = 0; i < batch; i++)
        p[(size_t)i] = base + (size_t)i * bytes;
    must(cudaMemcpy(list, p.data(), p.size() * sizeof p[0], cudaMemcpyHostToDevice) ==
             cudaSuccess,
         "pointers");
}

/* Bytes of the lower triangle in whole 32-byte sectors, the mean over matrices that begin
 * where they do. */
static double triangle_bytes(int n, size_t e)
{
    size_t sectors = 0;
    for (size_t i = 0; i < 8; i++)
        for (size_t j = 0; j < (size_t)n; j++) {
            size_t column = (i * n * n + j * n) * e;
            sectors += (column + n * e - 1) / 32 - (column + j * e) / 32 + 1;
        }
    return 4 * (double)sectors;
}

static double floor_ns(const Timed &r, int precision, int n)
{
    const double e = (double)element[precision], n3 = (double)n * n * n;
    const double whole = r.triangle() ? triangle_bytes(n, element[precision]) : e * n * n;
    const double bytes = (r.reads + r.writes) * whole + 2 * r.nrhs * e * n;
    const double flops = r.flops * n3 * (precision >= BL_C ? 4 : 1);
    const double rate = precision == BL_S || precision == BL_C ? 33.4e12 : 16.7e12;
    return 1e9 * std::max(bytes / copy_speed, flops / rate);
}

static int64_t batch_of(int n)
{
    return n <= 8     ? 400000
           : n <= 32  ? 200000
           : n <= 64  ? 20000
           : n <= 128 ? 10000
           : n <= 190 ? 5000
                      : 500;
}

/* For a profiler: one launch. */
static void run_once(const char *name, struct bl_job job, size_t bytes)
{
    copy(a, original, bytes);
    must(cudaProfilerStart() == cudaSuccess, "profiler");
    run(job);
    must(engine->wait(queue) == BL_OK && cudaProfilerStop() == cudaSuccess, "wait");
    printf("%s %c %d %lld\n", name, "sdcz"[job.precision], (int)job.n,
           (long long)job.batch);
}

struct Peer {
    double ms;
    const char *name; /* NULL: there is none */
};

/* cuBLAS or cuSOLVER on the same data, `alone`: for gesv its factorization alone. */
static Peer peer_of(const Timed &r, int precision, int n, int64_t batch, bool alone)
{
    const size_t e = element[precision], one = (size_t)n * n * e,
                 bytes = one * (size_t)batch;
    int *ipiv = (int *)integers, *info = ipiv + (size_t)batch * n;
    fill_pointers(pointers, a, one, batch);
    fill_pointers(peer_pointers, x, one, batch);
    fill_pointers(side_pointers, b, (size_t)n * e, batch);
    void *const *from = (void *const *)pointers, *const *to =
                                                     (void *const *)peer_pointers;
    void *const *sides = (void *const *)side_pointers;
    const void *const *in = (const void *const *)pointers;
    int many = (int)batch, wrong = 0;
    bool good = true;
    const cublasFillMode_t half =
        r.uplo == 'U' ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
    const auto solve = [&](cublasOperation_t trans) {
        return peer_getrs[precision](cublas, trans, n, 1, in, n, ipiv, sides, n, &wrong,
                                     many) == 0 &&
               wrong == 0;
    };
    Peer peer = {0, "cuBLAS"};
    switch (r.routine) {
    case BL_GETRF:
    case BL_GESV:
        if (r.routine == BL_GESV && alone)
            peer.name = "cuBLAS getrf alone";
        peer.ms = timed(bytes, [&] {
            good &= peer_getrf[precision](cublas, n, from, n, ipiv, info, many) == 0;
            if (r.routine == BL_GESV && !alone)
                good &= solve(CUBLAS_OP_N);
        });
        break;
    case BL_GETRI:
        peer.ms = timed(bytes, [&] {
            good &= peer_getri[precision](cublas, n, in, n, ipiv, to, n, info, many) == 0;
        });
        break;
    case BL_GEINV: {
        double apart = timed(bytes, [&] {
            good &= peer_getrf[precision](cublas, n, from, n, ipiv, info, many) == 0 &&
                    peer_getri[precision](cublas, n, in, n, ipiv, to, n, info, many) == 0;
        });
        double whole = n > 32 ? apart : timed(bytes, [&] {
            good &= peer_matinv[precision](cublas, n, in, n, to, n, info, many) == 0;
        });
        peer.ms = std::min(whole, apart);
        break;
    }
    case BL_GETRS:
        peer.ms = timed(
            bytes, [&] { good &= solve(r.trans == 'N' ? CUBLAS_OP_N : CUBLAS_OP_T); });
        break;
    case BL_POTRF:
        peer.name = "cuSOLVER";
        peer.ms = timed(bytes, [&] {
            good &= peer_potrf[precision](cusolver, half, n, (void **)pointers, n, info,
                                          many) == 0;
        });
        break;
    case BL_POTRS:
        peer.name = "cuSOLVER";
        peer.ms = timed(bytes, [&] {
            good &= peer_potrs[precision](cusolver, half, n, 1, (void **)pointers, n,
                                          (void **)side_pointers, n, info, many) == 0;
        });
        break;
    default:
        peer.name = nullptr;
    }
    must(good, "peer");
    return peer;
}

/* Which rule of `auto` its choice breaks, with the best peer's time or 0; NULL: none. */
static const char *broken_rule(enum bl_arithmetic taken, double exact, double fast,
                               double peer)
{
    if (taken == BL_FAST)
        return exact < 1.1 * fast ? "fast without 10 %" : nullptr;
    return peer > 0 && exact >= peer ? "exact behind a peer" : nullptr;
}

static void line(const Timed &r, int precision, int n)
{
    const int64_t batch = batch_of(n);
    const size_t bytes = (size_t)n * n * element[precision] * (size_t)batch;
    fill_all(precision, original, (size_t)n * n * batch, r.triangle() ? n : 0);
    fill_all(precision, b, (size_t)n * batch, 0);
    struct bl_job job = job_of(r, precision, n, batch);
    if (r.factored()) {
        const Timed &factors = routines[r.triangle() ? 4 : 0];
        copy(a, original, bytes);
        run(job_of(factors, precision, n, batch));
        copy(original, a, bytes);
    }
    if (once) {
        run_once(r.name, job, bytes);
        return;
    }
    const double scale = 1e6 / (double)batch;
    const enum bl_arithmetic taken = job.arithmetic;
    double in[2] = {}; /* exact and fast arithmetic */
    for (enum bl_arithmetic how : {BL_EXACT, BL_FAST})
        if (both || how == taken) {
            job.arithmetic = how;
            in[how] = timed(bytes, [&] { run(job); }) * scale;
        }
    const double ns = in[taken];
    Peer peer = peer_of(r, precision, n, batch, true);
    peer.ms *= scale;
    const std::string point = "sdcz"[precision] + std::to_string(n);
    const auto other =
        known.find("sdcz"[precision] + std::string(r.name) + std::to_string(n));
    if (both)
        printf("%-7s %c %4d %11.3f ns exact %11.3f ns fast %5.2f x, auto is %s", r.name,
               "sdcz"[precision], n, in[BL_EXACT], in[BL_FAST],
               in[BL_EXACT] / in[BL_FAST], taken == BL_FAST ? "fast: " : "exact:");
    else
        printf("%-6s %c %3d %9.3f ns %6.2f x floor", r.name, "sdcz"[precision], n, ns,
               ns / floor_ns(r, precision, n));
    double best = 0;
    if (peer.name) {
        printf(" %6.2f x %s", peer.ms / ns, peer.name);
        best = peer.ms;
    }
    if (other != known.end()) {
        printf(" %5.2f x %s", other->second.ns / ns, other->second.who.c_str());
        best = best > 0 ? std::min(best, other->second.ns) : other->second.ns;
    }
    if (r.routine == BL_GETRF)
        getrf_ns[point] = ns;
    else if (getrf_ns.count(point) && (r.routine == BL_GEDET || r.routine == BL_GETRFSP))
        printf(" %6.3f of getrf", ns / getrf_ns[point]);
    const char *rule =
        both ? broken_rule(taken, in[BL_EXACT], in[BL_FAST], best) : nullptr;
    if (rule)
        printf(" ! %s", rule);
    printf("\n");
    fflush(stdout);
}

/* cuSOLVER's routine for one matrix, on matrices that are far from filling the card: as
 * many at a time as there are streams. */
class Streams
{
    static const int COUNT = 8;
    struct One {
        cudaStream_t stream;
        cudaEvent_t done;
        cusolverDnHandle_t handle;
        void *work;
        std::vector<char> host_work;
    } all[COUNT];
    cusolverDnParams_t parameters;
    cudaEvent_t begin;
    size_t on_device = 0, on_host = 0;
    cudaDataType type;
    int64_t n;
    bool factors_lu;

  public:
    Streams(const Timed &r, int precision, int order) : n(order)
    {
        static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F,
                                             CUDA_C_64F};
        type = types[precision];
        factors_lu = !r.triangle();
        must(cusolverDnCreateParams(&parameters) == 0 &&
                 cudaEventCreate(&begin) == cudaSuccess,
             "cuSOLVER");
        if (factors_lu)
            cusolverDnXgetrf_bufferSize(cusolver, parameters, n, n, type, a, n, type,
                                        &on_device, &on_host);
        else
            cusolverDnXpotrf_bufferSize(cusolver, parameters, CUBLAS_FILL_MODE_LOWER, n,
                                        type, a, n, type, &on_device, &on_host);
        for (One &one : all) {
            one.host_work.resize(on_host + 1);
            must(cudaStreamCreateWithFlags(&one.stream, cudaStreamNonBlocking) ==
                         cudaSuccess &&
                     cudaEventCreate(&one.done) == cudaSuccess &&
                     cusolverDnCreate(&one.handle) == 0 &&
                     cusolverDnSetStream(one.handle, one.stream) == 0 &&
                     cudaMalloc(&one.work, on_device + 1) == cudaSuccess,
                 "cuSOLVER");
        }
    }
    ~Streams()
    {
        for (One &one : all) {
            cusolverDnDestroy(one.handle);
            cudaStreamDestroy(one.stream);
            cudaEventDestroy(one.done);
            cudaFree(one.work);
        }
        cusolverDnDestroyParams(parameters);
        cudaEventDestroy(begin);
    }
    /* Of the matrices at `a`; their pivots of 64 bits go to `x`. */
    bool factor(size_t bytes, int64_t batch, int *info)
    {
        bool good = cudaEventRecord(begin, (cudaStream_t)queue) == cudaSuccess;
        for (One &one : all)
            good &= cudaStreamWaitEvent(one.stream, begin, 0) == cudaSuccess;
        for (int64_t i = 0; i < batch; i++) {
            One &one = all[i % COUNT];
            char *matrix = a + (size_t)i * bytes;
            int64_t *pivots = (int64_t *)x + i * n;
            good &=
                (factors_lu
                     ? cusolverDnXgetrf(one.handle, parameters, n, n, type, matrix, n,
                                        pivots, type, one.work, on_device,
                                        one.host_work.data(), on_host, info + i)
                     : cusolverDnXpotrf(one.handle, parameters, CUBLAS_FILL_MODE_LOWER, n,
                                        type, matrix, n, type, one.work, on_device,
                                        one.host_work.data(), on_host, info + i)) ==
                CUSOLVER_STATUS_SUCCESS;
        }
        for (One &one : all)
            good &= cudaEventRecord(one.done, one.stream) == cudaSuccess &&
                    cudaStreamWaitEvent((cudaStream_t)queue, one.done, 0) == cudaSuccess;
        return good;
    }
};

static void small_batches_of(const Timed &r, int precision, int n)
{
    const size_t one = (size_t)n * n * element[precision];
    Streams streams(r, precision, n);
    for (int batch : small_batches) {
        const size_t bytes = one * (size_t)batch;
        int *info = (int *)integers + (size_t)batch * n;
        fill_all(precision, original, (size_t)n * n * batch, r.triangle() ? n : 0);
        fill_all(precision, b, (size_t)n * batch, 0);
        struct bl_job job = job_of(r, precision, n, batch);
        const double ours = timed(bytes, [&] { run(job); });
        const Peer peer = peer_of(r, precision, n, batch, false);
        const double flops = r.flops * n * n * n * batch * (precision >= BL_C ? 4 : 1);
        printf("small %-5s %c %4d x %2d %11.2f us %9.1f GFLOP/s %7.2f x %s", r.name,
               "sdcz"[precision], n, batch, ours * 1e3, flops / ours * 1e-6,
               peer.ms / ours, r.triangle() ? "cuSOLVER batched" : peer.name);
        if (r.routine != BL_GESV) {
            bool good = true;
            const double loop =
                timed(bytes, [&] { good &= streams.factor(one, batch, info); });
            must(good, "cuSOLVER");
            printf(" %7.2f x cuSOLVER on streams", loop / ours);
        }
        printf("\n");
        fflush(stdout);
    }
}

/* Nanoseconds a matrix, of getrf in double. */
static double line_at(int n)
{
    static const struct {
        double n, ns;
    } p[] = {{32, 7.35}, {48, 26},   {64, 44},    {96, 125},    {128, 270},
             {160, 520}, {190, 800}, {256, 2000}, {512, 11000}, {1024, 80000}};
    int i = 0;
    while (p[i + 1].n < n)
        i++;
    double slope = log(p[i + 1].ns / p[i].ns) / log(p[i + 1].n / p[i].n);
    return p[i].ns * pow(n / p[i].n, slope);
}

static void cliffs()
{
    double worst = 0;
    int at = 0;
    for (int n = 33; n <= 1024; n += n < 200 ? 1 : 16 - n % 16) {
        const int64_t batch = batch_of(n);
        const size_t bytes = (size_t)n * n * 8 * (size_t)batch;
        fill_all(BL_D, original, (size_t)n * n * batch, 0);
        struct bl_job job = job_of(routines[0], BL_D, n, batch);
        double ns = timed(bytes, [&] { run(job); }) / (double)batch * 1e6;
        double ratio = ns / line_at(n);
        printf("dgetrf %4d %10.1f ns %5.2f x the line\n", n, ns, ratio);
        if (ratio > worst) {
            worst = ratio;
            at = n;
        }
        fflush(stdout);
    }
    printf("worst: %.2f x the line, at n = %d\n", worst, at);
}

/* Lines without a name are MAGMA's. */
static void read_known(const char *path)
{
    FILE *f = fopen(path, "r");
    char text[200], name[32], who[32];
    int n, batch;
    double ms;
    while (f && fgets(text, sizeof text, f)) {
        const int items =
            sscanf(text, "%31[^,#],%d,%d,%lf,%31s", name, &n, &batch, &ms, who);
        if (items >= 4)
            known[name + std::to_string(n)] = {ms / batch * 1e6 * 3013.6e9 / copy_speed,
                                               items == 5 ? who : "MAGMA"};
    }
    if (f)
        fclose(f);
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : ".libs/libbatchlapack_cuda.so";
    const char *which = argc > 2 ? argv[2] : "", *precisions = argc > 3 ? argv[3] : "";
    const char *orders = argc > 4 ? argv[4] : "";
    const bool all_sizes = !strcmp(which, "cliffs"), few = !strcmp(which, "small");
    const char *how = all_sizes || few ? "auto" : argc > 6 ? argv[6] : "exact";
    if (!strcmp(how, "fast"))
        arithmetic = BL_FAST;
    both = !strcmp(how, "both");
    automatic = both || !strcmp(how, "auto");
    once = !strcmp(how, "once");
    void *handle = dlopen(path, RTLD_NOW);
    engine = handle ? (const struct bl_engine *)dlsym(handle, BL_ENGINE_SYMBOL) : nullptr;
    struct bl_device device;
    char why[200] = "";
    if (!engine || engine->open(0, &device, why, sizeof why) != BL_OK) {
        fprintf(stderr, "batched: %s: %s\n", path, engine ? why : dlerror());
        return 1;
    }
    size_t most = (size_t)200000 * 32 * 32 * 16, count = 400000, rows = 200000 * 32;
    for (int n : sizes)
        if (all_sizes || listed(orders, std::to_string(n))) {
            most = std::max(most, (size_t)batch_of(n) * n * n * (all_sizes ? 8 : 16));
            rows = std::max(rows, (size_t)batch_of(n) * n);
        }
    must(engine->queue_open(&queue) == BL_OK, "queue");
    must(cudaMalloc((void **)&original, most) == cudaSuccess &&
             cudaMalloc((void **)&a, most) == cudaSuccess &&
             cudaMalloc((void **)&x, most) == cudaSuccess &&
             cudaMalloc((void **)&b, rows * 16) == cudaSuccess &&
             cudaMalloc((void **)&integers, (rows + count) * 4) == cudaSuccess &&
             cudaMalloc((void **)&pointers, count * 8) == cudaSuccess &&
             cudaMalloc((void **)&peer_pointers, count * 8) == cudaSuccess &&
             cudaMalloc((void **)&side_pointers, count * 8) == cudaSuccess,
         "memory");
    must(once || (cublasCreate(&cublas) == 0 &&
                  cublasSetStream(cublas, (cudaStream_t)queue) == 0 &&
                  cusolverDnCreate(&cusolver) == 0 &&
                  cusolverDnSetStream(cusolver, (cudaStream_t)queue) == 0),
         "cuBLAS and cuSOLVER");
    if (once) {
        printf("%s, once\n", device.name);
    } else {
        double ms = timed(most, [&] {
            cudaMemcpyAsync(x, a, most, cudaMemcpyDeviceToDevice, (cudaStream_t)queue);
        });
        copy_speed = 2 * (double)most / ms * 1e3;
        read_known(argc > 5 ? argv[5] : "bench/magma-batched.csv");
        printf("%s, copy %.0f GB/s, %s\n", device.name, copy_speed * 1e-9, how);
    }
    if (all_sizes || few || both)
        repeats = 5;
    if (all_sizes) {
        cliffs();
        return 0;
    }
    for (int which_one : {0, 1, 4}) /* getrf, gesv, potrf */
        for (int p = 0; few && p < BL_PRECISIONS; p++)
            for (int n : small_sizes)
                if (listed(precisions, std::string(1, "sdcz"[p])) &&
                    listed(orders, std::to_string(n)))
                    small_batches_of(routines[which_one], p, n);
    if (few)
        return 0;
    for (const Timed &r : routines)
        for (int p = 0; p < BL_PRECISIONS; p++)
            for (int n : sizes)
                if ((*which ? listed(which, r.name) : !r.by_name) &&
                    listed(precisions, std::string(1, "sdcz"[p])) &&
                    listed(orders, std::to_string(n)))
                    line(r, p, n);
    for (int p = 0; p < BL_PRECISIONS && (!once || listed(which, "1000")); p++) {
        if (!listed(precisions, std::string(1, "sdcz"[p])))
            continue;
        fill_all(p, original, (size_t)32 * 32 * 1000, 0);
        struct bl_job job = job_of(routines[0], p, 32, 1000);
        const size_t bytes = element[p] * 32 * 32 * 1000;
        if (once)
            run_once("1000", job, bytes);
        else
            printf("1000 %cgetrf n = 32: %.1f us\n", "sdcz"[p],
                   1e3 * timed(bytes, [&] { run(job); }));
    }
    return 0;
}
