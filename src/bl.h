/* Private types of the shim: what one step of a call's way hands to the next.
 *
 * A call's way: interpose/entries.c -> dispatch.c (decode, decide) -> either forward.c
 * (the program's own LAPACK) or engine.c and pipeline.c (the GPU). config.c, tune.c and
 * stats.c are asked on the way.
 */
#ifndef BL_H
#define BL_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine.h"

#define BL_EXPORT __attribute__((visibility("default")))
/* A few bytes that every thread reads on every call: no function call to find them. */
#define BL_FAST_TLS __attribute__((tls_model("initial-exec")))

/* ---- the table ---------------------------------------------------------------- */

#define BL_MAX_ARGS 13 /* what entries.c has a line for; call.c for LAPACK's */

/* The exported rows: LAPACK's routines, then the batched entries. */
enum bl_row {
#define R_SDCZ(name, NAME, nargs, args) BL_ROW_##NAME,
#define B_SDCZ(name, NAME, OPERATION, nargs, args) BL_ROW_##NAME,
#include "routines.def"
    BL_ROWS
};
#define BL_IDS (BL_ROWS * BL_PRECISIONS)
#define BL_LAPACK_IDS (BL_LAPACK_ROUTINES * BL_PRECISIONS)

struct bl_routine {
    const char *name; /* without the precision's letter */
    const char *args; /* a letter an argument, see routines.def */
    unsigned nargs;
    enum bl_routine_id operation;
};
extern const struct bl_routine bl_rows[BL_ROWS];
extern const struct bl_routine bl_routines[BL_ROUTINES]; /* by operation */

/* A row in a precision. For LAPACK's routines row and operation are the same number. */
static inline unsigned bl_id(unsigned row, unsigned precision)
{
    return row * BL_PRECISIONS + precision;
}
static inline char bl_prefix(unsigned id)
{
    return "sdcz"[id % BL_PRECISIONS];
}
static inline const struct bl_routine *bl_row(unsigned id)
{
    return &bl_rows[id / BL_PRECISIONS];
}
static inline enum bl_routine_id bl_operation(unsigned id)
{
    return bl_row(id)->operation;
}
static inline enum bl_precision bl_precision(unsigned id)
{
    return (enum bl_precision)(id % BL_PRECISIONS);
}
static inline size_t bl_element(enum bl_precision p)
{
    return (size_t[]){4, 8, 8, 16}[p];
}
static inline int64_t bl_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t bl_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* How a symbol was spelled: bit 0 64-bit integers (_64_), bit 1 the scipy_ prefix. */
enum bl_spelling { BL_WIDE = 1, BL_SCIPY = 2, BL_SPELLINGS = 4 };
#define BL_SYMBOL_MAX 32
void bl_symbol(char out[BL_SYMBOL_MAX], unsigned id, unsigned spelling);

/* ---- one decoded call (decode.c) ------------------------------------------------ */

/* The model's seconds on either side. */
struct bl_cost {
    double cpu, gpu;
};

struct bl_call {
    unsigned id;
    bool wide; /* integers are 64-bit */
    char uplo, trans;
    int64_t m, n, nrhs, lda, ldb, ldx, lwork;
    int64_t stride_a, stride_b, stride_x, stride_ipiv, batch; /* batch: 1 for LAPACK's */
    void *a, *b, *x, *ipiv, *work, *info, *phase, *logabs; /* of a group: a, x, ipiv are
                                                               arrays of pointers */
    bool has_m, has_b, has_work, query, legal, empty;
    bool reference; /* the LAPACK behind it is slow, as bl_target says */
    unsigned bad;   /* position of the first illegal argument, from 1 */
    /* Of a batch, all groups together (batch.c); else 0. */
    struct bl_cost cost;
    double operations;
};
void bl_decode(struct bl_call *c, unsigned id, bool wide, void *const *v);
/* Group `group` of a batched call, whose first matrix is number `first` of the call's. */
void bl_decode_group(struct bl_call *c, unsigned id, bool wide, void *const *v,
                     int64_t group, int64_t first);
int64_t bl_group_count(unsigned id, bool wide, void *const *v); /* of a group call */
/* The pointer of the matrices or pivots `letter` stands for; NULL if there is none. */
void *bl_operand_of(const struct bl_call *c, char letter);
void bl_job_of_call(struct bl_job *job, const struct bl_call *c);
int64_t bl_getri_block(const struct bl_call *c, int64_t *iws);
int64_t bl_work_size(const struct bl_call *c, int64_t info);

/* Which operands a routine reads and which it writes, by the table's letters. */
bool bl_reads(enum bl_routine_id r, char letter); /* letter: one of a b x p d g */
bool bl_writes(enum bl_routine_id r, char letter);
/* Does it form the inverse of A from LU factors? */
static inline bool bl_inverts(enum bl_routine_id r)
{
    return r == BL_GETRI || r == BL_GETRI_OOP || r == BL_GEINV;
}

/* ---- forwarding (forward.c) ----------------------------------------------------- */

typedef void bl_fn(void);

/* The program's own routine behind an entry. */
struct bl_target {
    bl_fn *fn;      /* NULL: none was found */
    bool narrow;    /* it takes 32-bit integers where the caller has 64 */
    bool wide;      /* its integers are 64-bit, whatever its name */
    bool reference; /* it is netlib's, over netlib's BLAS: slow */
};
struct bl_target bl_find(unsigned id, unsigned spelling, const void *caller);
struct bl_target bl_provider_of(bl_fn *fn); /* provider.c; all but `narrow` */
void *bl_handle_of(const char *name);       /* of a loaded object; "": the program */
void *bl_beside(bl_fn *fn,
                const char *symbol); /* in the object of fn and what it needs */
void bl_forward(struct bl_target t, unsigned id, unsigned spelling, void **v);
void bl_call_lapack(bl_fn *f, unsigned nargs, void *const *v);

/* Held while libraries are loaded or looked up (loader_lock.c). */
void bl_loader_lock(void);
void bl_loader_unlock(void);

/* ---- options (config.c) and thresholds (tune.c) ---------------------------------- */

enum bl_option {
#define O(name, values, preset, text) BL_OPTION_##name,
#include "options.def"
#undef O
    BL_OPTIONS
};
/* Does the value suit an option with these `values`? Then *number is the alternative's
 * position or the count; *text: the value is a name to be kept. */
bool bl_option_value(const char *values, const char *value, int64_t *number, bool *text);
/* The position of the value in "a|b|c", or -1. */
int bl_alternative(const char *values, const char *value);
enum { BL_ARITHMETIC_AUTO, BL_ARITHMETIC_EXACT, BL_ARITHMETIC_FAST };
enum { BL_WRITEBACK_SLOTS, BL_WRITEBACK_STAGED };
enum { BL_OUTPUT_NONE, BL_OUTPUT_STDERR, BL_OUTPUT_FILE }; /* REPORT and VERBOSE */

/* Read from the environment by the first call that asks. */
struct bl_config {
    _Atomic bool ready;
    int64_t number[BL_OPTIONS];   /* alternatives and counts; -1 unset */
    const char *text[BL_OPTIONS]; /* text; NULL unset */
    int64_t local_ranks; /* processes of this MPI job on this node, 1 without MPI */
    bool excluded;       /* this program is in EXCLUDE */
    bool counted;        /* calls are counted and timed */
    int64_t rank;        /* in the MPI job, 0 without MPI */
};
extern struct bl_config bl_the_config;
void bl_read_config(void);
static inline const struct bl_config *bl_config(void)
{
    struct bl_config *c = &bl_the_config;
    if (!atomic_load_explicit(&c->ready, memory_order_acquire))
        bl_read_config();
    return c;
}
static inline int64_t bl_option(enum bl_option o)
{
    return bl_config()->number[o];
}
static inline const char *bl_option_text(enum bl_option o)
{
    return bl_config()->text[o];
}
void bl_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define BL_LINE_MAX 1024
size_t bl_line(char line[BL_LINE_MAX], const char *format, va_list ap);
int bl_write(int fd, const char *text, size_t length); /* 0, or an errno */
void bl_write_stderr(const char *text, size_t length);
char *bl_own_path(char *out, size_t size, const char *name); /* beside this library */

/* Floating-point operations of one matrix. */
double bl_operations(enum bl_routine_id r, enum bl_precision p, double m, double n,
                     double nrhs);
static inline double bl_flops(unsigned id, double m, double n, double nrhs)
{
    return bl_operations(bl_operation(id), bl_precision(id), m, n, nrhs);
}
/* Predicted seconds that the GPU saves over the program's LAPACK; > 0: worth it. */
double bl_saving(const struct bl_call *c);
/* Is a call of LAPACK so small that no shape of it is worth it, nor of one in it? */
bool bl_hopeless(unsigned id, bool reference, bool wide, void *const *v);
struct bl_cost bl_cost(const struct bl_call *c); /* of all of a batch */
/* What of a batch's cost on the GPU does not grow with the number of its matrices. */
double bl_batch_latency(const struct bl_call *c);
enum bl_arithmetic bl_arithmetic_of(const struct bl_call *c);
#define BL_STARTUP_SECONDS 0.5

/* ---- the engine (engine.c) and the pipeline (pipeline.c) --------------------------- */

enum bl_reason {
#define W(name, text) BL_WHY_##name,
#include "reasons.def"
#undef W
    BL_REASONS,
    BL_ON_GPU = BL_REASONS
};

/* The engine, started when `saving` lifts the process's sum over the start-up cost (or at
 * once when forced); NULL and *why when this call is to be forwarded. */
const struct bl_engine *bl_engine_for(double saving, bool forced, enum bl_reason *why);
/* The same in two steps. The first takes no lock and makes no system call; only where it
 * says so is the second worth a guard. */
bool bl_engine_due(double saving, bool forced, enum bl_reason *why);
const struct bl_engine *bl_engine_start(enum bl_reason *why);
enum bl_reason bl_engine_failed(enum bl_status status); /* counts; may switch off */
/* As bl_engine_for, but only where a CUDA driver is in the process already: without one
 * no pointer is a device pointer. *possible: one may be, even if there is no engine (any
 * more) to ask. */
const struct bl_engine *bl_engine_for_device_data(bool *possible);
void bl_engine_succeeded(void);
const struct bl_engine *bl_engine_now(void); /* if it is up and may be used, else NULL */
uint64_t bl_memory_limit(void); /* bytes of device memory this process may hold */
const struct bl_device *bl_engine_device(void); /* NULL before it started */
const char *bl_engine_why(void);                /* why there is none */

struct bl_traffic {
    uint64_t in, out; /* bytes over the link */
    uint64_t again;   /* problems that the engine handed back */
};

/* Run a batch whose pointers are host memory. *done problems, from the first, are
 * complete in the caller's memory; the others are untouched (except after abort(), see
 * there). So are those among the former that were handed back, but for their INFO, which
 * is BL_INFO_REDO. */
enum bl_status bl_pipeline(const struct bl_engine *engine, const struct bl_job *host,
                           int64_t *done, struct bl_traffic *traffic);
void bl_pipeline_after_fork(void);

/* Device and pinned memory that no call has used for about so many calls of the process
 * is given back. */
#define BL_IDLE_CALLS 1000
extern _Atomic bool bl_lanes_hold_memory;
void bl_lanes_count_call(void);
static inline void bl_pipeline_count_call(void)
{
    if (atomic_load_explicit(&bl_lanes_hold_memory, memory_order_relaxed))
        bl_lanes_count_call();
}
/* Pinned memory of a call, at most. A result that fits is complete in there before the
 * first byte of the caller's is written. */
#define BL_RING_BYTES ((size_t)64 << 20)

/* ---- what happened (stats.c, verbose.c)
 * ------------------------------------------------------ */

uint64_t bl_now(void); /* ns */
void bl_stats_nested(unsigned id);
/* This thread waited so long for the engine's start-up: no part of its call's time. */
void bl_stats_startup(uint64_t ns);
/* A line where BATCHLAPACK_VERBOSE says, if anywhere. */
void bl_verbose(const char *format, ...) __attribute__((format(printf, 1, 2)));
void bl_stats_call(const struct bl_call *c, enum bl_reason where, uint64_t ns,
                   const struct bl_traffic *traffic);

/* ---- nested calls (nested.c) --------------------------------------------------------
 */

/* The outermost call in progress on this thread lies on its stack. It may have been left
 * by longjmp (R and Octave leave xerbla so): a frame that is not deeper than we are, or
 * whose mark has been overwritten, is gone. */
struct bl_frame {
    const struct bl_frame *self;
    uintptr_t mark;
};
bool bl_nested(const void *here); /* does a frame above this one hold? */
void bl_enter(struct bl_frame *f);
void bl_leave(struct bl_frame *f);

/* ---- batches ------------------------------------------------------------------------
 */

/* Problem `i` of a job on host memory. */
struct bl_problem {
    int64_t m, n, lda, ldx, index; /* index: its place in the operands */
    char *a, *b, *x, *ipiv, *info, *phase, *logabs;
};
struct bl_problem bl_problem_of(const struct bl_job *job, int64_t i);
/* Problems [from, job->batch) by the program's LAPACK on our workers (batch_cpu.c). */
void bl_batch_on_cpu(const struct bl_job *job, int64_t from, unsigned spelling,
                     const void *caller);
/* Jobs on device memory, in order, on the thread's stream (batch_device.c). */
enum bl_status bl_batch_on_device(const struct bl_engine *e, struct bl_job *jobs,
                                  int count);
void *bl_stream(void);                     /* of this thread; NULL: none was set */
void bl_set_status(enum bl_status status); /* of this thread's last batched call */
#define BL_BAD_ARGUMENT ((enum bl_status)BL_STATUSES)

/* The mode that holds for this thread's calls: BATCHLAPACK_MODE_... */
int bl_mode(void);
/* Is this call, which may save so many seconds, for the GPU? Else *why not. */
bool bl_worthwhile(const struct bl_call *c, int mode, double saving, enum bl_reason *why);

/* ---- the dispatcher --------------------------------------------------------------- */

void bl_dispatch(unsigned id, unsigned spelling, void **v, const void *caller);
/* A batched entry (batch.c). */
void bl_batch(unsigned id, unsigned spelling, void **v, const void *caller);

#endif
