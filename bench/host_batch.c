/* A batch in host memory on either side, what the model of src/tune.def says of it, and
 * the model's terms as this run has them, as rows to paste into src/tune.def.
 *
 *     bench/host_batch [megabytes [largest n]]          (256 of matrices a batch, 1024)
 *
 * dgetrf, dgesv with one right-hand side and dpotrf, strided, in pageable memory, of
 * random matrices (for Cholesky with a dominant diagonal): seconds in mode gpu and in
 * mode cpu (the program's LAPACK on all cores), each the better of three, and the model's
 * two in brackets. Then LAPACK calls of shapes far from square: tall, wide, many
 * right-hand sides, and one. Where the model would take the slower side it says so, and
 * at the end how often and what that costs at the most. Linked with libshim for the
 * model; BATCHLAPACK_ENGINE says which engine.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batchlapack.h"
#include "bl.h"
#include "workers.h"

static double *a, *b;
static int64_t *ipiv, *info;

static void randomize(int64_t count)
{
    uint64_t x = 1;
    for (int64_t i = 0; i < count; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        a[i] = (double)(int64_t)x * 0x1p-63;
    }
}

static void fill(enum bl_row row, int64_t n, int64_t batch)
{
    randomize(n * n * batch);
    for (int64_t k = 0; k < batch && row == BL_ROW_POTRF_STRIDED; k++)
        for (int64_t i = 0; i < n; i++)
            a[k * n * n + i * (n + 1)] = (double)n;
    for (int64_t i = 0; i < n * batch; i++)
        b[i] = 1;
}

static void call(enum bl_row row, int64_t n, int64_t batch)
{
    int64_t square = n * n, one = 1;
    char uplo = 'L';
    void *lu[] = {&n, &n, a, &n, &square, ipiv, &n, &batch, info};
    void *solve[] = {&n, &one, a, &n, &square, ipiv, &n, b, &n, &n, &batch, info};
    void *cholesky[] = {&uplo, &n, a, &n, &square, &batch, info};
    void **v = row == BL_ROW_GETRF_STRIDED  ? lu
               : row == BL_ROW_GESV_STRIDED ? solve
                                            : cholesky;
    bl_batch(bl_id(row, BL_D), BL_WIDE, v, (const void *)(uintptr_t)call);
}

static double seconds(enum bl_row row, int64_t n, int64_t batch, int mode)
{
    double best = 1e30;
    batchlapack_set_mode(mode);
    for (int i = 0; i < 3; i++) {
        fill(row, n, batch);
        uint64_t begin = bl_now();
        call(row, n, batch);
        double s = (double)(bl_now() - begin) * 1e-9;
        best = s < best ? s : best;
    }
    return best;
}

/* ---- does the model say which side is ahead? ---- */

static int weighed, wrong;
static double worst_choice = 1; /* times the better side's seconds */

static const char *judge(const struct bl_cost *model, double gpu, double cpu)
{
    bool right = (gpu < cpu) == (model->gpu < model->cpu);
    weighed++;
    wrong += !right;
    if (!right)
        worst_choice = fmax(worst_choice, fmax(gpu / cpu, cpu / gpu));
    return right ? "" : "  wrong side";
}

/* ---- the model's terms ---- */

#define MOST 64
static struct sample {
    double k, batch, bytes, operations, gpu, cpu; /* bytes: both ways; seconds */
} sample[MOST];
static int samples;

#define MODEL(name, value) static const double now_##name = value;
#include "tune.def"
#undef MODEL
#define RATE(s, d, c, z) static const double now_RATE = d;
#include "tune.def"
#undef RATE

static void keep(const struct bl_call *c, double gpu, double cpu)
{
    double n = (double)c->n, batch = (double)c->batch;
    double side = bl_row(c->id)->operation == BL_GESV ? n : 0;
    if (samples < MOST)
        sample[samples++] = (struct sample){n,
                                            batch,
                                            batch * (n * n + side) * 2 * sizeof(double),
                                            batch * bl_flops(c->id, n, n, 1),
                                            gpu,
                                            cpu};
}

static int ascending(const void *x, const void *y)
{
    double a_ = *(const double *)x, b_ = *(const double *)y;
    return (a_ > b_) - (a_ < b_);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count ? values[count / 2] : 0;
}

/* BATCH_LINK from orders 16 and 32, where nothing but the link counts; BATCH_COLUMN from
 * what larger orders take beyond it. */
static void gpu_terms(double *link, double *column)
{
    double values[MOST];
    int count = 0;
    for (int i = 0; i < samples; i++)
        if (sample[i].k >= 16 && sample[i].k <= 32)
            values[count++] = sample[i].bytes / (sample[i].gpu - now_LATENCY);
    *link = median(values, count);
    count = 0;
    for (int i = 0; i < samples; i++) {
        const struct sample *s = &sample[i];
        double rest = s->gpu - now_LATENCY - s->bytes / *link - s->operations / now_RATE;
        if (s->k > 32)
            values[count++] = fmax(rest, 0) / (s->k * (1 + s->batch / 1024));
    }
    *column = median(values, count);
}

/* threads * seconds = (CPU_CALL + threads * CPU_LOCK) * batch + operations / CPU_RATE,
 * with the least sum of squares of relative errors; `each` is the first bracket. */
static void cpu_terms(double *each, double *rate)
{
    double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0, threads = bl_workers_count();
    for (int i = 0; i < samples; i++) {
        double t = sample[i].cpu * threads;
        double x = sample[i].batch / t, y = sample[i].operations / t;
        xx += x * x;
        xy += x * y;
        yy += y * y;
        x1 += x;
        y1 += y;
    }
    double det = xx * yy - xy * xy;
    *each = fmax((x1 * yy - y1 * xy) / det, 0);
    *rate = *each > 0 ? det / (y1 * xx - x1 * xy) : yy / y1;
}

static void print_rows(bool reference)
{
    double link, column, each, rate, worst_gpu = 1, worst_cpu = 1;
    gpu_terms(&link, &column);
    cpu_terms(&each, &rate);
    for (int i = 0; i < samples; i++) {
        const struct sample *s = &sample[i];
        double gpu = now_LATENCY + s->bytes / link + s->operations / now_RATE +
                     (s->k > 32 ? column * s->k * (1 + s->batch / 1024) : 0);
        double cpu =
            (each * s->batch + s->operations / rate) / (double)bl_workers_count();
        worst_gpu = fmax(worst_gpu, fmax(gpu / s->gpu, s->gpu / gpu));
        worst_cpu = fmax(worst_cpu, fmax(cpu / s->cpu, s->cpu / cpu));
    }
    printf("MODEL(BATCH_COLUMN, %.1e)\nMODEL(BATCH_LINK, %.1e)\n", column, link);
    if (reference)
        printf("MODEL(CPU_CALL, %.1e)\nMODEL(CPU_RATE_REFERENCE, %.1e)\n", each, rate);
    else
        printf("MODEL(CPU_LOCK, %.1e)\nMODEL(CPU_RATE, %.1e)\n",
               fmax(each - now_CPU_CALL, 0) / bl_workers_count(), rate);
    printf("With these the worst of the above is off by %.2f on the GPU and by %.2f on "
           "the CPU.\n",
           worst_gpu, worst_cpu);
}

/* ---- single calls of other shapes ---- */

/* Random numbers become what the routine takes: the factors for getrs are those of a
 * matrix near to the identity, so that no solution overflows. */
static void prepare(enum bl_row row, int64_t m, int64_t n)
{
    for (int64_t k = 0; k < m * n && row == BL_ROW_GETRS; k++)
        a[k] /= (double)n;
    for (int64_t k = 0; k < bl_min(m, n); k++) {
        if (row == BL_ROW_GETRS || row == BL_ROW_POSV)
            a[k * (m + 1)] = row == BL_ROW_POSV ? (double)m : 1;
        ipiv[k] = k + 1;
    }
}

static void single(enum bl_row row, int64_t m, int64_t n, int64_t nrhs, bool reference)
{
    int64_t size = bl_max(m * n, n * nrhs), value;
    char no = 'N', lower = 'L';
    void *lu[] = {&m, &n, a, &m, ipiv, &value};
    void *solve[] = {&n, &nrhs, a, &n, ipiv, b, &n, &value};
    void *substitute[] = {&no, &n, &nrhs, a, &n, ipiv, b, &n, &value};
    void *cholesky[] = {&lower, &n, &nrhs, a, &n, b, &n, &value};
    void **v = row == BL_ROW_GETRF   ? lu
               : row == BL_ROW_GESV  ? solve
               : row == BL_ROW_GETRS ? substitute
                                     : cholesky;
    struct bl_call c = {.id = bl_id(row, BL_D), .m = m, .n = n, .nrhs = nrhs, .batch = 1};
    c.reference = reference;
    struct bl_cost cost = bl_cost(&c);
    double seconds_of[2];
    for (int mode = 0; mode < 2; mode++) {
        seconds_of[mode] = 1e30;
        batchlapack_set_mode(mode ? BATCHLAPACK_MODE_CPU : BATCHLAPACK_MODE_GPU);
        for (int i = 0; i < 3 && (i == 0 || seconds_of[mode] < 1); i++) {
            randomize(size);
            prepare(row, m, n);
            for (int64_t k = 0; k < n * nrhs; k++)
                b[k] = 1;
            uint64_t begin = bl_now();
            bl_dispatch(c.id, BL_WIDE, v, (const void *)(uintptr_t)single);
            seconds_of[mode] = fmin(seconds_of[mode], (double)(bl_now() - begin) * 1e-9);
        }
    }
    printf("%-6s m %7lld n %5lld nrhs %7lld  gpu %10.4f (%9.4f)  cpu %10.4f (%9.4f)%s\n",
           bl_row(c.id)->name, (long long)m, (long long)n, (long long)nrhs, seconds_of[0],
           cost.gpu, seconds_of[1], cost.cpu, judge(&cost, seconds_of[0], seconds_of[1]));
    fflush(stdout);
}

static void other_shapes(size_t bytes, bool reference)
{
    int64_t most = (int64_t)bytes / 8;
    /* Wider ones overrun memory in OpenBLAS 0.3.31 (dgetrf 64 x 20000, alone). */
    static const struct {
        enum bl_row row;
        int64_t m, n, nrhs;
    } shape[] = {
        {BL_ROW_GETRF, 50000, 64, 0},   {BL_ROW_GETRF, 20000, 512, 0},
        {BL_ROW_GETRF, 64, 10000, 0},   {BL_ROW_GETRF, 512, 8000, 0},
        {BL_ROW_GESV, 200, 200, 20000}, {BL_ROW_GESV, 2000, 2000, 1},
        {BL_ROW_GETRS, 32, 32, 500000}, {BL_ROW_GETRS, 2000, 2000, 1},
        {BL_ROW_POSV, 200, 200, 20000}, {BL_ROW_POSV, 2000, 2000, 1},
    };
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        if (bl_max(shape[i].m * shape[i].n, shape[i].n * shape[i].nrhs) <= most)
            single(shape[i].row, shape[i].m, shape[i].n, shape[i].nrhs, reference);
}

int main(int argc, char **argv)
{
    static const enum bl_row rows[] = {BL_ROW_GETRF_STRIDED, BL_ROW_GESV_STRIDED,
                                       BL_ROW_POTRF_STRIDED};
    size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 256) << 20;
    int64_t largest = argc > 2 ? atoi(argv[2]) : 1024;
    bool reference =
        bl_find(bl_id(BL_ROW_GETRF, BL_D), BL_WIDE, (const void *)(uintptr_t)call)
            .reference;
    enum bl_reason why;
    if (!bl_engine_start(&why)) { /* the CPU would be held against itself */
        fprintf(stderr, "host_batch: no GPU: %s\n", bl_engine_why());
        return 1;
    }
    a = malloc(bytes);
    b = malloc(bytes);
    ipiv = malloc(bytes);
    info = malloc(bytes);
    if (!a || !b || !ipiv || !info)
        return 1;
    printf("%-22s %5s %9s %12s %22s %22s\n", "routine", "n", "batch", "us a matrix",
           "gpu s (model)", "cpu s (model)");
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int64_t n = 4; n <= largest; n *= 2) {
            int64_t batch = (int64_t)bytes / (n * n * 8);
            struct bl_call c = {
                .id = bl_id(rows[r], BL_D), .m = n, .n = n, .nrhs = 1, .batch = batch};
            c.reference = reference;
            struct bl_cost cost = bl_cost(&c);
            double gpu = seconds(rows[r], n, batch, BATCHLAPACK_MODE_GPU);
            double cpu = seconds(rows[r], n, batch, BATCHLAPACK_MODE_CPU);
            printf("%-22s %5lld %9lld %12.3f %10.4f (%9.4f) %10.4f (%9.4f)%s\n",
                   bl_rows[rows[r]].name, (long long)n, (long long)batch,
                   gpu / (double)batch * 1e6, gpu, cost.gpu, cpu, cost.cpu,
                   judge(&cost, gpu, cpu));
            fflush(stdout);
            keep(&c, gpu, cpu);
        }
    print_rows(reference);
    other_shapes(bytes, reference);
    printf(
        "The model has %d of %d on the wrong side; the worst of these takes %.2f times "
        "the better side's time.\n",
        wrong, weighed, worst_choice);
    return 0;
}
