/* How a chunk lies on the device, and the copying between the caller's arrays and pinned
 * memory.
 *
 * Called by pipeline.c, which owns the memory, the queues and the write-back rule. Only
 * what the routine reads and writes is touched: the triangle, the rows within the leading
 * dimension, the entries of IPIV that exist. Copies are shared out among our workers.
 */
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#    include <emmintrin.h>
#endif

#include "chunk.h"
#include "workers.h"

#define ALIGNMENT ((size_t)256)

enum {
    INFO = BL_REGION_INFO,
    A = BL_REGION_A,
    B = BL_REGION_B,
    IPIV = BL_REGION_IPIV,
    X = BL_REGION_X,
    PHASE = BL_REGION_PHASE,
    LOGABS = BL_REGION_LOGABS,
    TABLE = BL_REGION_TABLE
};

/* ---- operands ---- */

/* An item of an operand in the caller's memory. */
struct view {
    char *p;
    int64_t rows, cols, ld;
};

static struct view view_in(const struct bl_job *host, int which,
                           const struct bl_problem *p)
{
    switch (which) {
    case A:
        return (struct view){p->a, p->m, p->n, p->lda};
    case B:
        return (struct view){p->b, p->n, host->nrhs, host->b.ld};
    case X:
        return (struct view){p->x, p->n, p->n, p->ldx};
    case IPIV:
        return (struct view){p->ipiv, bl_min(p->m, p->n), 1, 0};
    case PHASE:
        return (struct view){p->phase, 1, 1, 0};
    case LOGABS:
        return (struct view){p->logabs, 1, 1, 0};
    default:
        return (struct view){p->info, 1, 1, 0};
    }
}

static struct view view_of(const struct bl_job *host, int which, int64_t problem)
{
    struct bl_problem p = bl_problem_of(host, problem);
    return view_in(host, which, &p);
}

static const struct bl_operand *operand_of(const struct bl_job *host, int which)
{
    const struct bl_operand *const operands[] = {
        [INFO] = &host->info,     [A] = &host->a, [B] = &host->b,
        [IPIV] = &host->ipiv,     [X] = &host->x, [PHASE] = &host->phase,
        [LOGABS] = &host->logabs, [TABLE] = NULL};
    return operands[which];
}

static size_t element_of(const struct bl_job *host, int which)
{
    size_t element = bl_element(host->precision);
    if (which == INFO || which == IPIV)
        return (size_t)host->int_size;
    return which == LOGABS && host->precision >= BL_C ? element / 2 : element;
}

#define TABLE_BYTES (sizeof(struct bl_item) + 3 * sizeof(void *)) /* an item */

/* Is it copied in, and out? */
static void direction(const struct bl_job *host, int which, bool *in, bool *out)
{
    static const char letter[] = {[A] = 'a',     [B] = 'b',      [IPIV] = 'p', [X] = 'x',
                                  [PHASE] = 'd', [LOGABS] = 'g', [TABLE] = 0};
    *in = which == INFO || (letter[which] && bl_reads(host->routine, letter[which])) ||
          (which == TABLE && host->items);
    *out = which == INFO || (letter[which] && bl_writes(host->routine, letter[which]));
}

/* Which item holds byte `at` of a region? */
static int64_t item_at(const struct bl_chunk *c, const struct bl_region *r, size_t at)
{
    if (!r->offset)
        return (int64_t)(at / r->item_bytes);
    int64_t low = 0, high = c->count;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        *(r->offset[middle] <= at ? &low : &high) = middle;
    }
    return low;
}

/* ---- copying ---- */

/* INFO goes in as this value: if it comes back, the routine never ran. */
#define UNWRITTEN 0x7f

/* Past the caches: nobody reads the caller's arrays again soon, and a line that is
 * written whole need not be read first. */
#define WORTH_STREAMING ((size_t)4096)

static void write_back(char *to, const char *from, size_t bytes)
{
#ifdef __SSE2__
    if (bytes >= WORTH_STREAMING && !((uintptr_t)from % 16) && !((uintptr_t)to % 16)) {
        for (; bytes >= 64; bytes -= 64, from += 64, to += 64) {
            const __m128i *f = (const __m128i *)from;
            __m128i *t = (__m128i *)to, a = _mm_load_si128(f), b = _mm_load_si128(f + 1),
                    c = _mm_load_si128(f + 2), d = _mm_load_si128(f + 3);
            _mm_stream_si128(t, a);
            _mm_stream_si128(t + 1, b);
            _mm_stream_si128(t + 2, c);
            _mm_stream_si128(t + 3, d);
        }
        _mm_sfence();
    }
#endif
    memcpy(to, from, bytes);
}

static void copy(char *theirs, char *ours, size_t bytes, bool unpack)
{
    if (unpack)
        write_back(theirs, ours, bytes);
    else
        memcpy(ours, theirs, bytes);
}

/* Bytes [from, to) of an item, counted in its packed layout, between the caller's memory
 * and `packed`, which holds byte `from`. */
static void move_item(struct view v, size_t element, char triangle, size_t from,
                      size_t to, char *packed, bool unpack)
{
    size_t column_bytes = (size_t)v.rows * element;
    if (!triangle && (v.cols <= 1 || v.ld == v.rows)) {
        copy(v.p + from, packed, to - from, unpack);
        return;
    }
    for (int64_t col = (int64_t)(from / column_bytes); from < to; col++) {
        size_t start = from % column_bytes, end = bl_min(column_bytes, start + to - from);
        size_t first = start, last = end;
        if (triangle == 'L')
            first = bl_max(first, (size_t)bl_min(col, v.rows) * element);
        if (triangle == 'U')
            last = bl_min(last, (size_t)bl_min(col + 1, v.rows) * element);
        if (first < last)
            copy(v.p + (size_t)(col * v.ld) * element + first, packed + (first - start),
                 last - first, unpack);
        packed += end - start;
        from += end - start;
    }
}

/* The same for a region's bytes [from, to). */
static void move_region(const struct bl_chunk *c, int which, size_t from, size_t to,
                        char *packed, bool unpack)
{
    const struct bl_region *r = &c->region[which];
    char triangle = which == A ? c->host->uplo : 0;
    if (which == TABLE) {
        memcpy(packed, c->table + from, to - from);
        return;
    }
    if (r->flat && !triangle && !c->again) {
        copy(r->flat + from, packed, to - from, unpack);
        return;
    }
    for (int64_t item = item_at(c, r, from); from < to; item++) {
        size_t begin = r->offset ? r->offset[item] : (size_t)item * r->item_bytes;
        size_t end = r->offset ? r->offset[item + 1] : begin + r->item_bytes;
        size_t stop = bl_min(to, end);
        if (stop == from)
            continue; /* an empty matrix */
        if (!c->again || !c->again[item] || which == INFO)
            move_item(view_of(c->host, which, c->first + item), r->element, triangle,
                      from - begin, stop - begin, packed, unpack);
        packed += stop - from;
        from = stop;
    }
}

static void move_span(const struct bl_chunk *c, size_t from, size_t to, char *pinned,
                      bool unpack)
{
    for (int i = 0; i < BL_REGIONS; i++) {
        const struct bl_region *r = &c->region[i];
        size_t low = bl_max(from, r->at), high = bl_min(to, r->at + r->bytes);
        if (!(unpack ? r->out : r->in) || low >= high)
            continue;
        if (i == INFO && !unpack)
            memset(pinned + (low - from), UNWRITTEN, high - low);
        else
            move_region(c, i, low - r->at, high - r->at, pinned + (low - from), unpack);
    }
}

/* Columns [from, to) of a block. */
static void move_columns(const struct bl_move *m, int64_t from, int64_t to)
{
    if (m->chunk->again)
        return;
    const struct bl_job *host = m->chunk->host;
    struct view v = view_of(host, A, m->chunk->first);
    size_t element = m->chunk->region[A].element;
    for (int64_t j = from; j < to; j++) {
        int64_t first = m->row, end = m->row + m->rows;
        if (host->uplo == 'L')
            first = bl_max(first, m->col + j);
        else
            end = bl_min(end, m->col + j + 1);
        char *theirs = v.p + (size_t)((m->col + j) * v.ld + first) * element;
        char *ours = m->pinned + (size_t)(j * m->rows + first - m->row) * element;
        copy(theirs, ours, (size_t)(end - first) * element, m->unpack);
    }
}

/* A worker's unit: a multiple of any element and of ALIGNMENT, so that no two write to
 * one element; of a block, whole columns. */
#define UNIT_BYTES ((size_t)128 << 10)
#define UNIT_NS 25000

static int64_t columns_a_unit(const struct bl_move *m)
{
    size_t column = (size_t)m->rows * m->chunk->region[A].element;
    return bl_max(1, (int64_t)(UNIT_BYTES / column));
}

static size_t units(const struct bl_move *m)
{
    if (!m->chunk)
        return 0;
    if (m->cols) {
        int64_t each = columns_a_unit(m);
        return (size_t)((m->cols + each - 1) / each);
    }
    return (m->to - m->from + UNIT_BYTES - 1) / UNIT_BYTES;
}

static void move_unit(const struct bl_move *m, size_t unit)
{
    if (m->cols) {
        int64_t each = columns_a_unit(m), from = (int64_t)unit * each;
        move_columns(m, from, bl_min(m->cols, from + each));
        return;
    }
    size_t from = m->from + unit * UNIT_BYTES;
    move_span(m->chunk, from, bl_min(m->to, from + UNIT_BYTES),
              m->pinned + (from - m->from), m->unpack);
}

struct moving {
    const struct bl_move *moves;
    int count, passed; /* passed on to `moved` */
    bl_moved *moved;
    void *arg;
    _Atomic int64_t left[BL_MOST_MOVES]; /* units */
};

static void move_units(void *arg, int64_t from, int64_t to, int worker)
{
    struct moving *all = arg;
    (void)worker;
    size_t unit = (size_t)from, end = (size_t)to, passed = 0;
    for (int i = 0; unit < end; i++) {
        const struct bl_move *m = &all->moves[i];
        size_t stop = bl_min(end, passed + units(m)), begin = unit;
        for (; unit < stop; unit++)
            move_unit(m, unit - passed);
        atomic_fetch_sub(&all->left[i], (int64_t)(unit - begin));
        passed += units(m);
    }
}

static void pass_on(void *arg)
{
    struct moving *all = arg;
    while (all->passed < all->count && atomic_load(&all->left[all->passed]) == 0)
        all->moved(all->arg, all->passed++);
}

void bl_chunk_move(const struct bl_move *moves, int count, bl_moved *moved, void *arg)
{
    struct moving all = {.moves = moves, .count = count, .moved = moved, .arg = arg};
    int64_t sum = 0;
    for (int i = 0; i < count; i++) {
        int64_t mine = (int64_t)units(&moves[i]);
        atomic_init(&all.left[i], mine);
        sum += mine;
    }
    bl_workers_copy(UNIT_NS, sum, move_units, moved ? pass_on : NULL, &all);
}

enum bl_status bl_chunk_verdict(struct bl_chunk *c, const char *pinned)
{
    const struct bl_region *r = &c->region[INFO];
    const char *info = pinned + (r->at - c->out_from);
    const bool wide = r->element == sizeof(int64_t);
    bool missing = false;
    uint64_t bytes;
    memset(&bytes, UNWRITTEN, sizeof bytes);
    const int64_t unwritten = wide ? (int64_t)bytes : (int32_t)bytes;
    for (int64_t i = 0; i < c->count; i++) {
        const int64_t value =
            wide ? ((const int64_t *)info)[i] : ((const int32_t *)info)[i];
        missing |= value == unwritten;
        if (value != BL_INFO_REDO)
            continue;
        if (!c->again && !(c->again = calloc((size_t)c->count, sizeof *c->again)))
            return BL_NOMEM;
        c->again[i] = true;
    }
    return missing ? BL_FAULT : BL_OK;
}

int64_t bl_chunk_again(const struct bl_chunk *c)
{
    int64_t sum = 0;
    for (int64_t i = 0; c->again && i < c->count; i++)
        sum += c->again[i];
    return sum;
}

/* ---- layout ---- */

#define LIMIT ((size_t)1 << 60)

static bool product(size_t *out, uint64_t a, uint64_t b, uint64_t c)
{
    return !__builtin_mul_overflow(a, b, out) && !__builtin_mul_overflow(*out, c, out) &&
           *out < LIMIT;
}

/* The bytes of a problem that are moved, at most LIMIT. */
static size_t problem_bytes(const struct bl_job *host, const bool moved[BL_REGIONS],
                            int64_t problem)
{
    struct bl_problem p = bl_problem_of(host, problem);
    size_t sum = moved[TABLE] ? TABLE_BYTES : 0;
    for (int i = 0; i < TABLE; i++) {
        struct view v = view_in(host, i, &p);
        size_t bytes;
        if (!moved[i])
            continue;
        if (!product(&bytes, (uint64_t)v.rows, (uint64_t)v.cols, element_of(host, i)))
            return LIMIT;
        sum = bl_min(LIMIT, sum + bytes);
    }
    return sum;
}

/* Among others of other shapes a matrix of a larger order than the engine's kernels for
 * batches take is a chunk, and so a job, of its own: it has faster ones for such a one.
 */
static bool is_alone(const struct bl_job *host, int64_t problem)
{
    const struct bl_problem p = bl_problem_of(host, problem);
    return bl_min(p.m, p.n) > 0 && bl_max(p.m, p.n) > BL_LARGEST_TOGETHER;
}

int64_t bl_chunk_count(const struct bl_job *host, int64_t first, size_t bytes)
{
    int64_t most = host->batch - first, count = 1;
    bool moved[BL_REGIONS];
    for (int i = 0; i < BL_REGIONS; i++) {
        bool in, out;
        direction(host, i, &in, &out);
        moved[i] = in || out;
    }
    size_t sum = problem_bytes(host, moved, first);
    bytes -= bl_min(bytes, BL_REGIONS * ALIGNMENT); /* what lies between regions */
    if (!host->items)
        return bl_max(1, bl_min(most, (int64_t)(bytes / sum)));
    if (is_alone(host, first))
        return 1;
    while (count < most && !is_alone(host, first + count) &&
           (sum += problem_bytes(host, moved, first + count)) <= bytes)
        count++;
    return count;
}

/* A problem of a job as a job, which has it at any index. */
static struct bl_job *job_of_one(const struct bl_job *host, int64_t problem)
{
    struct bl_job *one = malloc(sizeof *one);
    if (!one)
        return NULL;
    const struct bl_problem p = bl_problem_of(host, problem);
    *one = *host;
    one->items = NULL;
    one->batch = 1;
    one->m = p.m;
    one->n = p.n;
    one->a = (struct bl_operand){p.a, NULL, p.lda, 0};
    one->b = (struct bl_operand){p.b, NULL, host->b.ld, 0};
    one->x = (struct bl_operand){p.x, NULL, p.ldx, 0};
    one->ipiv = (struct bl_operand){p.ipiv, NULL, 0, 0};
    one->info = (struct bl_operand){p.info, NULL, 0, 0};
    one->phase = (struct bl_operand){p.phase, NULL, 0, 0};
    one->logabs = (struct bl_operand){p.logabs, NULL, 0, 0};
    return one;
}

/* The caller's bytes of a region, where they lie there as they do on the device. */
static char *flat_of(const struct bl_chunk *c, int which)
{
    const struct bl_operand *o = operand_of(c->host, which);
    const struct bl_region *r = &c->region[which];
    if (!o || c->host->items || o->array || !o->p)
        return NULL;
    struct view v = view_of(c->host, which, c->first);
    bool columns = v.cols <= 1 || v.ld == v.rows;
    bool items = c->count == 1 || (size_t)o->stride * r->element == r->item_bytes;
    return columns && items ? v.p : NULL;
}

/* The bytes of a region; false when they are too many, or there is no memory. */
static bool measure(struct bl_chunk *c, int which)
{
    struct bl_region *r = &c->region[which];
    if (!r->in && !r->out)
        return true;
    if (which == TABLE)
        return product(&r->bytes, (uint64_t)c->count, TABLE_BYTES, 1);
    struct view v = view_of(c->host, which, c->first);
    if (!c->host->items || which == INFO) {
        bool good =
            product(&r->item_bytes, (uint64_t)v.rows, (uint64_t)v.cols, r->element) &&
            product(&r->bytes, r->item_bytes, (uint64_t)c->count, 1);
        r->flat = flat_of(c, which);
        return good;
    }
    r->offset = malloc(((size_t)c->count + 1) * sizeof *r->offset);
    if (!r->offset)
        return false;
    for (int64_t i = 0; i < c->count; i++) {
        size_t bytes;
        v = view_of(c->host, which, c->first + i);
        r->offset[i] = r->bytes;
        if (!product(&bytes, (uint64_t)v.rows, (uint64_t)v.cols, r->element) ||
            (r->bytes += bytes) >= LIMIT)
            return false;
    }
    r->offset[c->count] = r->bytes;
    return true;
}

void bl_chunk_drop(struct bl_chunk *c)
{
    for (int i = 0; i < BL_REGIONS; i++)
        free(c->region[i].offset);
    free(c->table);
    free(c->again);
    free(c->alone);
    memset(c, 0, sizeof *c);
}

/* One matrix, whose columns the device can read itself whatever lies between them: CUDA
 * has them less than 2 GiB apart. */
static bool is_single(const struct bl_job *host, const struct bl_region *a)
{
    return host->batch == 1 && host->a.ld <= INT32_MAX / (int64_t)a->element;
}

/* A triangle this large goes in blocks that hold little more than the triangle. */
#define WORTH_BLOCKS ((size_t)8 << 20)

static bool goes_in_blocks(const struct bl_job *host, const struct bl_region *a)
{
    return host->batch == 1 && host->uplo && a->in && a->bytes >= WORTH_BLOCKS;
}

/* Of a column that goes by rows, at once: a copy of less would be short runs. */
#define RUN_BYTES 4096

static int64_t as_many(size_t bytes, size_t each, int64_t most)
{
    return bl_min(most, bl_max(1, (int64_t)(bytes / each)));
}

struct bl_move bl_chunk_block(const struct bl_chunk *c, struct bl_walk *walk,
                              size_t bytes)
{
    const struct bl_region *a = &c->region[A];
    struct view v = view_of(c->host, A, c->first);
    const int64_t done = walk->complete;
    struct bl_move m = {.chunk = c};
    if ((!a->blocks && !a->direct) || done >= v.cols)
        return m;
    size_t column = (size_t)v.rows * a->element;
    if (walk->by_rows) {
        m.row = done;
        m.rows = as_many(RUN_BYTES, a->element, v.rows - done);
        m.col = bl_max(walk->col, done);
        m.cols = as_many(bytes, (size_t)m.rows * a->element, v.cols - m.col);
        walk->col = m.col + m.cols;
        if (walk->col == v.cols) {
            walk->col = 0;
            walk->complete += m.rows;
        }
    } else {
        char uplo = a->blocks ? c->host->uplo : 0;
        m.col = done;
        m.cols = as_many(bytes, column, v.cols - done);
        m.row = uplo == 'L' ? done : 0;
        m.rows = uplo == 'L' ? v.rows - done : uplo == 'U' ? done + m.cols : v.rows;
        walk->complete += m.cols;
    }
    m.from = a->at + (size_t)m.col * column + (size_t)m.row * a->element;
    return m;
}

/* Regions in the order: read by the device itself; read only; read and written; written
 * only; in blocks. So one span goes in through pinned memory and one comes out, and INFO
 * is first in what comes out. What the device reads itself and writes, too, is in the
 * group of what is written only. */
static void order(struct bl_chunk *c)
{
    size_t at = 0;
    for (int group = 0; group < 5; group++) {
        if (group == 1)
            c->in_from = at;
        if (group == 2)
            c->out_from = at;
        for (int i = 0; i < BL_REGIONS; i++) {
            struct bl_region *r = &c->region[i];
            int own = r->blocks   ? 4
                      : r->direct ? (r->out ? 3 : 0)
                      : r->out    ? (r->in ? 2 : 3)
                                  : 1;
            if ((!r->in && !r->out) || own != group)
                continue;
            r->at = at;
            at += (r->bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
        }
        if (group == 2)
            c->in_to = at;
        if (group == 3)
            c->out_to = at;
    }
    c->work_at = at;
}

static struct bl_operand on_device(const struct bl_chunk *c, int which, int64_t ld,
                                   char *arena)
{
    const struct bl_region *r = &c->region[which];
    return (struct bl_operand){arena + r->at, NULL, ld,
                               (int64_t)(r->item_bytes / r->element)};
}

/* The job's operands, in the arena. */
static void point(struct bl_chunk *c, char *arena)
{
    c->job.a = on_device(c, A, c->host->m, arena);
    c->job.b = on_device(c, B, c->host->n, arena);
    c->job.x = on_device(c, X, c->host->n, arena);
    c->job.ipiv = on_device(c, IPIV, 0, arena);
    c->job.info = on_device(c, INFO, 0, arena);
    c->job.phase = on_device(c, PHASE, 0, arena);
    c->job.logabs = on_device(c, LOGABS, 0, arena);
    c->job.work = arena + c->work_at;
}

bool bl_chunk_lay_out(struct bl_chunk *c, const struct bl_engine *e,
                      const struct bl_job *host, int64_t first, int64_t count,
                      const bool pinned[BL_REGIONS])
{
    memset(c, 0, sizeof *c);
    if (host->items && count == 1 && is_alone(host, first)) {
        host = c->alone = job_of_one(host, first);
        if (!host)
            return false;
    }
    c->host = host;
    c->first = first;
    c->count = count;
    for (int i = 0; i < BL_REGIONS; i++) {
        struct bl_region *r = &c->region[i];
        r->element = element_of(host, i);
        direction(host, i, &r->in, &r->out);
        if (!measure(c, i))
            return false;
        r->blocks = i == A && goes_in_blocks(host, r);
        r->direct =
            r->in && pinned[i] && r->bytes && (r->flat || (i == A && is_single(host, r)));
    }
    order(c);
    c->job = *host;
    c->job.redo = 1;
    c->job.batch = count;
    /* As it will run: what the caller has pointers to may be for other kernels. */
    char *anywhere = (char *)ALIGNMENT;
    point(c, anywhere);
    if (host->items)
        c->job.a.array = c->job.x.array = c->job.ipiv.array = (void *const *)anywhere;
    size_t work = e->workspace(&c->job);
    c->total = (c->work_at + work + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
    if (host->items)
        c->table = malloc(c->region[TABLE].bytes);
    return work < LIMIT && (c->table || !host->items);
}

/* The table of a job with items: their shapes as packed, and pointers into the arena. */
static void fill_table(struct bl_chunk *c, char *arena)
{
    static const int with_pointers[] = {A, X, IPIV};
    struct bl_operand *const operands[] = {&c->job.a, &c->job.x, &c->job.ipiv};
    struct bl_item *items = (struct bl_item *)c->table;
    void **pointers = (void **)(items + c->count);
    char *on_arena = arena + c->region[TABLE].at;
    for (int64_t i = 0; i < c->count; i++) {
        struct bl_problem p = bl_problem_of(c->host, c->first + i);
        items[i] = (struct bl_item){i, p.m, p.n, bl_max(1, p.m), bl_max(1, p.n)};
    }
    c->job.items = (const struct bl_item *)on_arena;
    for (int k = 0; k < 3; k++) {
        const struct bl_region *r = &c->region[with_pointers[k]];
        for (int64_t i = 0; r->offset && i < c->count; i++)
            pointers[k * c->count + i] = arena + r->at + r->offset[i];
        operands[k]->array =
            (void *const *)(on_arena + ((char *)(pointers + k * c->count) - c->table));
    }
}

void bl_chunk_place(struct bl_chunk *c, char *arena)
{
    point(c, arena);
    if (c->table)
        fill_table(c, arena);
}
