/* A batch in host memory on either side, and what the model of src/tune.def says of it.
 *
 *     bench/host_batch [megabytes]          (256 of matrices a batch)
 *
 * dgetrf, dgesv with one right-hand side and dpotrf, strided, in pageable memory: seconds
 * in mode gpu and in mode cpu (the program's LAPACK on all cores), each the better of
 * three, and the model's two in brackets. Linked with libshim for the model;
 * BATCHLAPACK_ENGINE says which engine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batchlapack.h"
#include "bl.h"

static double *a, *b;
static int64_t *ipiv, *info;

static void fill(int64_t n, int64_t batch)
{
    uint64_t x = 1;
    for (int64_t i = 0; i < n * n * batch; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        a[i] = (double)(int64_t)x * 0x1p-63;
    }
    for (int64_t k = 0; k < batch; k++)
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
        fill(n, batch);
        uint64_t begin = bl_now();
        call(row, n, batch);
        double s = (double)(bl_now() - begin) * 1e-9;
        best = s < best ? s : best;
    }
    return best;
}

int main(int argc, char **argv)
{
    static const enum bl_row rows[] = {BL_ROW_GETRF_STRIDED, BL_ROW_GESV_STRIDED,
                                       BL_ROW_POTRF_STRIDED};
    size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 256) << 20;
    a = malloc(bytes);
    b = malloc(bytes);
    ipiv = malloc(bytes);
    info = malloc(bytes);
    if (!a || !b || !ipiv || !info)
        return 1;
    printf("%-22s %5s %9s %12s %22s %22s\n", "routine", "n", "batch", "us a matrix",
           "gpu s (model)", "cpu s (model)");
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int64_t n = 4; n <= 1024; n *= 2) {
            int64_t batch = (int64_t)bytes / (n * n * 8);
            struct bl_call c = {
                .id = bl_id(rows[r], BL_D), .m = n, .n = n, .nrhs = 1, .batch = batch};
            c.reference =
                bl_find(bl_id(BL_ROW_GETRF, BL_D), BL_WIDE, (const void *)(uintptr_t)call)
                    .reference;
            struct bl_cost cost = bl_cost(&c);
            double gpu = seconds(rows[r], n, batch, BATCHLAPACK_MODE_GPU);
            double cpu = seconds(rows[r], n, batch, BATCHLAPACK_MODE_CPU);
            printf("%-22s %5lld %9lld %12.3f %10.4f (%9.4f) %10.4f (%9.4f)\n",
                   bl_rows[rows[r]].name, (long long)n, (long long)batch,
                   gpu / (double)batch * 1e6, gpu, cost.gpu, cpu, cost.cpu);
        }
    return 0;
}
