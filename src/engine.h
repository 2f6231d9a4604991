/* The ABI between the shim and an engine.
 *
 * The shim (src/, C) knows a GPU only through the one symbol `bl_engine` that an engine
 * library exports: kernels/ holds the CUDA engine, test/mock_engine.c one that lives in
 * host memory. Every function returns a status and never writes to host memory that it
 * was not given. All of them may be called from any thread; one queue is used by one
 * thread at a time, but for the other one of follow(). An engine leaves the calling
 * thread's CUDA device, context and pending error as it found them.
 */
#ifndef BL_ENGINE_H
#define BL_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BL_ENGINE_ABI 7

enum bl_status {
#define S(name, text) BL_##name,
#include "status.def"
#undef S
    BL_STATUSES
};

/* What an engine does: LAPACK's routines, then the operations that only batches have. */
enum bl_routine_id {
#define R_SDCZ(name, NAME, nargs, args) BL_##NAME,
#define E_SDCZ(name, NAME, args) BL_##NAME,
#include "routines.def"
    BL_ROUTINES,
    BL_LAPACK_ROUTINES = BL_GETRFNP /* the first of the others */
};

enum bl_precision { BL_S, BL_D, BL_C, BL_Z, BL_PRECISIONS };

/* BL_EXACT: netlib's operations in netlib's order, each rounded separately.
 * BL_FAST: fused multiply-add and other orders are allowed. */
enum bl_arithmetic { BL_EXACT, BL_FAST };

enum bl_memory {
    BL_MEMORY_PAGEABLE,
    BL_MEMORY_PINNED,
    BL_MEMORY_DEVICE,
    BL_MEMORY_MANAGED
};

/* A batch of matrices (or of vectors: IPIV and INFO). Item i begins at array[i] where
 * array is not NULL, else at p + i * stride elements. Column-major, ld in elements. */
struct bl_operand {
    void *p;
    void *const *array;
    int64_t ld;
    int64_t stride;
};

/* A problem of a batch whose shapes differ: it takes the place of the job's m, n, a.ld
 * and x.ld. */
struct bl_item {
    int64_t index; /* its place in the operands of the job */
    int64_t m, n, lda, ldx;
};

/* One routine on a batch, of equal shapes or not. A LAPACK call is a batch of one. On the
 * way to an engine every pointer is a device pointer; above the pipeline they are the
 * caller's.
 */
struct bl_job {
    enum bl_routine_id routine;
    enum bl_precision precision;
    enum bl_arithmetic arithmetic;
    char uplo;     /* 'U', 'L', or 0 where the routine has none */
    char trans;    /* 'N', 'T', 'C', or 0 */
    int int_size;  /* bytes of an element of ipiv and info: 4 or 8 */
    int64_t m, n;  /* A is m x n (m == n where the routine has no M) */
    int64_t nrhs;  /* B is n x nrhs; 0 where the routine has no B */
    int64_t block; /* getri: the block size that LWORK allows (netlib's rule) */
    int64_t batch; /* number of problems, >= 1 */
    /* NULL: all problems are m x n. Else `batch` items, and m and n the largest of each.
     */
    const struct bl_item *items;
    struct bl_operand a, b;
    struct bl_operand x; /* the inverse of getri_oop and geinv, n x n; may be a itself */
    struct bl_operand ipiv; /* min(m, n) entries a problem, 1-based; ld unused */
    struct bl_operand info; /* 1 entry a problem; ld unused */
    /* gedet: 1 element, 1 real a problem; det = phase * exp(logabs). Singular: 0, -inf.
     */
    struct bl_operand phase, logabs;
    /* The caller can have a problem done elsewhere: the engine may leave BL_INFO_REDO in
     * INFO where NaN or an infinity has come up whose bits depend on an order of
     * operations that it does not keep. The problem's other results then mean nothing. */
    int redo;
    /* Memory is short: workspace() and run() do with as little as they can. */
    int lean;
    /* Not 0, 0: A comes in parts, see part(). Its columns (rows) before `to` are there,
     * those before `from` have gone through earlier runs of the same job in the same
     * memory. */
    int64_t from, to;
    void *work; /* device memory of engine->workspace(job) bytes, 256-byte aligned */
};

#define BL_INFO_REDO INT32_MIN

struct bl_device {
    char name[128];
    int ordinal;     /* which device it is, as the driver counts them */
    int devices;     /* how many the driver counts */
    int capability;  /* 90 for sm_90; 0 where there is none */
    uint64_t memory; /* bytes on the device */
};

#define BL_BUCKETS 32

/* An engine's kernels for many matrices need not give the fast bits of those for fewer,
 * or for one. Matrices of max(m, n) up to the order may be taken one after the other only
 * where there are few of them, and there may be kernels for many. So a batch goes to the
 * engine in pieces that all have few, or all many, or all neither. */
#define BL_FEW 4
#define BL_MANY 128 /* or more than so many */
#define BL_LARGEST_TOGETHER 1024

/* A queue is one of queue_open's, or a CUDA stream of the program (NULL: the legacy
 * default stream). */
struct bl_engine {
    uint32_t abi;  /* BL_ENGINE_ABI */
    uint32_t size; /* sizeof(struct bl_engine) */
    const char *name;

    /* Start up on device `ordinal` modulo the number of devices. Called once; on anything
     * but BL_OK, `why` (of `len` bytes) says what is missing and the engine stays unused.
     */
    enum bl_status (*open)(int ordinal, struct bl_device *device, char *why, size_t len);

    enum bl_status (*queue_open)(void **queue);
    enum bl_status (*queue_close)(void *queue);

    /* Device memory (256-byte aligned) and pinned host memory. */
    enum bl_status (*device_alloc)(size_t bytes, void **p);
    enum bl_status (*device_free)(void *p);
    enum bl_status (*host_alloc)(size_t bytes, void **p);
    enum bl_status (*host_free)(void *p);

    /* Asynchronous in the queue's order; `h` is memory from host_alloc or, on the way
     * in, what memory_kind() says is pinned at both ends: BL_FAULT where not all of it
     * is. */
    enum bl_status (*copy_in)(void *queue, void *d, const void *h, size_t bytes);
    enum bl_status (*copy_out)(void *queue, void *h, const void *d, size_t bytes);

    /* The same for `count` columns of `bytes` each, `pitch` apart on the device; in h
     * `h_pitch` apart, and on the way out without gaps. */
    enum bl_status (*copy_in_columns)(void *queue, void *d, size_t pitch, const void *h,
                                      size_t h_pitch, size_t bytes, size_t count);
    enum bl_status (*copy_out_columns)(void *queue, void *h, const void *d, size_t pitch,
                                       size_t bytes, size_t count);

    /* Bytes that run() needs in job->work. Pointers in the job are not looked at. */
    size_t (*workspace)(const struct bl_job *job);

    /* Memory that is there for what is enqueued between the two; no waiting. While a
     * program captures the queue into a graph, it belongs to the graph. */
    enum bl_status (*queue_alloc)(void *queue, size_t bytes, void **p);
    enum bl_status (*queue_free)(void *queue, void *p);
    /* Hold at least so much for queue_alloc from now on; give all back that is not in
     * use.
     */
    enum bl_status (*reserve)(size_t bytes);
    enum bl_status (*release)(void);
    /* As copy_in, from any host memory, which is the caller's again at once. For small
     * things: it goes with launches. */
    enum bl_status (*put)(void *queue, void *d, const void *h, size_t bytes);

    /* Jobs with items: problems of this shape may share a run() with others for which the
     * answer is the same. Bigger shapes have greater numbers; from 0 to BL_BUCKETS - 1.
     */
    int (*bucket)(const struct bl_job *job, int64_t m, int64_t n);

    /* While A is on its way, the columns that have come, or the rows of an upper
     * triangle, can be worked on: the job is run for those from 0 to part(job, 0), then
     * from there to part(job, that), and so on, the last part ending with n. A part's run
     * follows the copies of its columns (rows), the last one all copies; nobody has
     * looked at the results before. An engine that wants all at once says n. Pointers in
     * the job are not looked at. */
    int64_t (*part)(const struct bl_job *job, int64_t from);

    /* Enqueue the whole job: all launches or an error. Asynchronous. INFO is written for
     * every problem. The arguments are legal; n, m >= 0. */
    enum bl_status (*run)(const struct bl_job *job, void *queue);

    /* What is enqueued in `queue` from now on follows what is in `other` by now. */
    enum bl_status (*follow)(void *queue, void *other);

    /* Wait for everything in the queue; BL_OK only when all of it succeeded. */
    enum bl_status (*wait)(void *queue);

    /* What kind of memory p points to. */
    enum bl_status (*memory_kind)(const void *p, enum bl_memory *kind);
};

/* The symbol that an engine exports: `const struct bl_engine bl_engine`. */
#define BL_ENGINE_SYMBOL "bl_engine"

#ifdef __cplusplus
}
#endif
#endif
