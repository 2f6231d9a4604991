/* One large matrix straight through the engine: copied there, worked on, copied back. */
#include <string.h>

#include "large_job.h"

static size_t rounded(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

bool large_run(const struct bl_engine *engine, struct large_job *x)
{
    const struct matrix *a = x->a, *b = x->b;
    const int64_t order = a->rows < a->cols ? a->rows : a->cols;
    const size_t b_at = rounded(matrix_bytes(a)),
                 pivots_at = b_at + (b ? rounded(matrix_bytes(b)) : 0),
                 info_at = pivots_at + (size_t)order * sizeof *x->pivots,
                 work_at = rounded(info_at + sizeof x->info);
    struct bl_job job = {.routine = x->routine,
                         .precision = a->precision,
                         .arithmetic = x->arithmetic,
                         .uplo = x->uplo,
                         .trans = x->trans,
                         .int_size = sizeof *x->pivots,
                         .m = a->rows,
                         .n = a->cols,
                         .nrhs = b ? b->cols : 0,
                         .block = 64,
                         .batch = 1,
                         .redo = 1,
                         .lean = x->lean};
    void *queue = NULL, *host = NULL, *device = NULL;
    bool good = engine->queue_open(&queue) == BL_OK &&
                engine->host_alloc(work_at, &host) == BL_OK &&
                engine->device_alloc(work_at + engine->workspace(&job), &device) == BL_OK;
    if (good) {
        char *h = host, *d = device;
        memset(h, 0, work_at);
        memcpy(h, a->data, matrix_bytes(a));
        if (b)
            memcpy(h + b_at, b->data, matrix_bytes(b));
        if (x->pivots)
            memcpy(h + pivots_at, x->pivots, info_at - pivots_at);
        job.a = (struct bl_operand){d, NULL, a->ld, 0};
        if (b)
            job.b = (struct bl_operand){d + b_at, NULL, b->ld, 0};
        job.ipiv = (struct bl_operand){d + pivots_at, NULL, 0, order};
        job.info = (struct bl_operand){d + info_at, NULL, 0, 1};
        job.work = d + work_at;
        good = engine->copy_in(queue, d, h, work_at) == BL_OK &&
               engine->run(&job, queue) == BL_OK &&
               engine->copy_out(queue, h, d, work_at) == BL_OK;
        good = engine->wait(queue) == BL_OK && good;
        memcpy(a->data, h, matrix_bytes(a));
        if (b)
            memcpy(b->data, h + b_at, matrix_bytes(b));
        if (x->pivots)
            memcpy(x->pivots, h + pivots_at, info_at - pivots_at);
        memcpy(&x->info, h + info_at, sizeof x->info);
    }
    if (device)
        good = engine->device_free(device) == BL_OK && good;
    if (host)
        good = engine->host_free(host) == BL_OK && good;
    if (queue)
        good = engine->queue_close(queue) == BL_OK && good;
    return good;
}
