/* The family of kernels beyond the tiny ones: which jobs it takes, which kernels they
 * get, and their launch.
 *
 * Called by engine.cu. The choice depends on the shape, the precision and the card alone.
 */
#include "family.h"
#include "large_side.h"
#include "mid.h"
#include "shared_memory.h"

namespace bl
{
namespace
{

const MidKernel *const kernels[BL_PRECISIONS] = {mid_lu_s, mid_lu_d, mid_lu_c, mid_lu_z};
const MidKernel *const scaled[BL_PRECISIONS] = {mid_scaled_s, mid_scaled_d, mid_scaled_c,
                                                mid_scaled_z};
const BlockedKernels *const blocked[BL_PRECISIONS] = {&mid_blocked_s, &mid_blocked_d,
                                                      &mid_blocked_c, &mid_blocked_z};
const SolveKernels *const solvers[BL_PRECISIONS] = {&mid_solve_s, &mid_solve_d,
                                                    &mid_solve_c, &mid_solve_z};
const size_t element[BL_PRECISIONS] = {4, 8, 8, 16};

constexpr int WIDTH = MID_WIDTH; /* also of the columns that a block solves for */

/* Right-hand sides from which on they are solved for by 64 at a time. */
constexpr int MANY = 9;

/* Columns of the widest panel of the kernels that invert. */
constexpr int MOST_COLUMNS = 128;

/* Bytes of matrices in the work space that are enough; from there on a job goes by parts.
 */
constexpr size_t ENOUGH = size_t(1) << 30, LEAN = size_t(64) << 20; /* or must be */

/* What lu_solve may keep of B in shared memory: for three blocks a multiprocessor, or
 * two. */
constexpr size_t KEPT_BYTES = size_t(100) << 10;

size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Bytes of shared memory that a block may ask for. */
constexpr size_t OWN_BYTES = 1024; /* of shared memory, that a kernel has of its own */

size_t shared_limit(const Card &card)
{
    return card.shared_bytes - OWN_BYTES;
}

/* The kernel that keeps m x n on the chip; NULL: none. `of` begins a list of them.
 * `heads`: it may have one. */
const MidKernel *on_chip(const MidKernel *of, int m, int n, const Card &card,
                         bool heads = false)
{
    for (const MidKernel *k = of; k->kernel; k++)
        if (m <= k->rows && (!k->head || (heads && m > k->head && n > k->head)))
            return k->shared_bytes(m, n) <= shared_limit(card) ? k : nullptr;
    return nullptr;
}

const MidKernel *on_chip(const struct bl_job *job, const Card &card, bool heads = false)
{
    const bool plain = job->routine == BL_GETRFSP;
    return on_chip((plain ? scaled : kernels)[job->precision], int(job->m), int(job->n),
                   card, heads);
}

/* Launches on a stream, until one fails. */
class Launcher
{
  public:
    Launcher(const Card &c, cudaStream_t s) : card(c), stream(s)
    {
    }

    void start(const void *kernel, int64_t blocks, int threads, size_t bytes,
               void **parameters)
    {
        if (error == cudaSuccess && blocks > INT32_MAX)
            error = cudaErrorInvalidConfiguration;
        if (error == cudaSuccess && bytes > 0)
            error = allow_all_shared(kernel, card, OWN_BYTES);
        if (error == cudaSuccess)
            error = cudaLaunchKernel(kernel, dim3(unsigned(blocks)), dim3(threads),
                                     parameters, bytes, stream);
    }

    void clear(void *p, size_t bytes)
    {
        if (error == cudaSuccess)
            error = cudaMemsetAsync(p, 0, bytes, stream);
    }

    /* What has been done besides, and must be even after a failure. */
    void then(cudaError_t result)
    {
        if (error == cudaSuccess)
            error = result;
    }

    const Card &card;
    const cudaStream_t stream;
    cudaError_t error = cudaSuccess;
};

/* Whether strips are brought up to date in fast arithmetic. What fits the chip never is:
 * there the pivots take the time. */
bool is_fast(const struct bl_job *job, const Card &card)
{
    const auto &strip = blocked[job->precision]->fast_strip;
    const int order = int(job->m < job->n ? job->m : job->n);
    return job->arithmetic == BL_FAST && order >= strip.order &&
           card.capability >= strip.capability && strip.bytes <= shared_limit(card);
}

/* What kernels are told of a job, and what else `g` asks for. */
MidArguments arguments_of(const struct bl_job *job, MidArguments g = {})
{
    g.a = job->a;
    g.ipiv = job->ipiv;
    g.info = job->info;
    g.items = job->items;
    g.m = job->m;
    g.n = job->n;
    g.int_size = job->int_size;
    return g;
}

void launch_panels(const struct bl_job *job, Launcher &launcher, const MidArguments &more)
{
    const BlockedKernels *k = blocked[job->precision];
    MidArguments g = arguments_of(job, more);
    const bool scaled = job->routine == BL_GETRFSP;
    const auto &to_right = scaled                        ? k->plain_strip
                           : is_fast(job, launcher.card) ? k->fast_strip
                                                         : k->strip;
    const int m = int(job->m), n = int(job->n);
    /* Of items one may be square where the largest sides are not. */
    const int order = m < n ? m : n;
    g.moves = (Moves *)job->work;
    for (int first = 0; first < order; first += WIDTH) {
        g.first = first;
        /* Of items another may be wider there. */
        const int width = job->items || order - first > WIDTH ? WIDTH : order - first;
        const MidKernel *chip =
            scaled ? nullptr
                   : on_chip(kernels[job->precision], m - first, width, launcher.card);
        void *parameters[] = {&g, &first, &g.moves};
        const auto *panel = scaled ? k->scaled_panel : k->panel;
        while (m - first > panel->rows)
            panel++;
        if (chip)
            launcher.start(chip->kernel, job->batch, chip->threads,
                           chip->shared_bytes(m - first, width), parameters);
        else
            launcher.start(panel->kernel, job->batch, panel->threads, k->panel_bytes,
                           parameters);
        int strips = (n - first - 1) / WIDTH;
        if (order - first < WIDTH) /* a last, narrow panel */
            strips = (n - order + WIDTH - 1) / WIDTH;
        if (job->items) /* whose own last panel is narrow earlier */
            strips = (n - first + WIDTH - 1) / WIDTH;
        void *strip[] = {&g, &first, &strips, &g.moves};
        if (strips > 0)
            launcher.start(to_right.kernel, job->batch * strips, k->strip_threads,
                           to_right.bytes, strip);
    }
    int panels = (order - 1) / WIDTH;
    void *arrange[] = {&g, &panels};
    if (panels > 0 && job->routine != BL_GEDET) /* which has no use for L */
        launcher.start(k->arrange, job->batch * panels, k->strip_threads, 0, arrange);
}

/* Whether GETRF of the job's shape has kernels here. */
bool factors(const struct bl_job *job, const Card &card)
{
    return on_chip(job, card) ||
           (job->m > WIDTH && blocked[job->precision]->strip.bytes <= shared_limit(card));
}

/* Bytes of work space that factor() needs for `batch` matrices: moves, then scales. */
size_t moves_bytes(const struct bl_job *job, int64_t batch, const Card &card)
{
    if (on_chip(job, card))
        return 0;
    if (job->routine == BL_GETRFSP)
        return scales_at(batch) + batch * job->m * element[job->precision];
    return batch * sizeof(Moves);
}

/* Problems `first` to `first + count - 1` of a job that has no work space but moves. */
struct bl_job some_of(const struct bl_job *job, int64_t first, int64_t count)
{
    struct bl_job some = *job;
    some.batch = count;
    some.work = (Moves *)job->work + first;
    auto begin = [&](struct bl_operand &o, size_t size) {
        if (o.array)
            o.array += first;
        else
            o.p = (char *)o.p + first * o.stride * int64_t(size);
    };
    if (job->items) { /* they say where their operands are */
        some.items += first;
        return some;
    }
    begin(some.a, element[job->precision]);
    begin(some.ipiv, job->int_size);
    begin(some.info, job->int_size);
    return some;
}

/* By panels, half of a large batch beside the other: where one waits for its pivots the
 * other's strips have the units. On an H100 that gains a tenth to order 512; at 1024 the
 * matrices drive each other out of the cache. */
void launch_blocked(const struct bl_job *job, Launcher &launcher,
                    const MidArguments &more)
{
    constexpr int64_t HALVES_TO = 512;
    const bool worth = job->routine != BL_GETRFSP && job->m <= HALVES_TO &&
                       job->n <= HALVES_TO && job->batch >= 3 * launcher.card.processors;
    LargeSide *const side = worth ? LargeSide::borrow(launcher.stream) : nullptr;
    if (!side)
        return launch_panels(job, launcher, more);
    const int64_t half = job->batch / 2;
    const struct bl_job one = some_of(job, 0, half),
                        other = some_of(job, half, job->batch - half);
    Launcher beside(launcher.card, side->stream());
    launcher.then(side->fork());
    beside.error = launcher.error;
    MidArguments more_of_other = more;
    more_of_other.number += half;
    launch_panels(&one, launcher, more);
    launch_panels(&other, beside, more_of_other);
    launcher.then(beside.error);
    launcher.then(side->join());
    side->give_back();
}

/* Whether a kernel with a head may factor, of a job that asks for nothing else. */
constexpr bool HEADS = true;

/* The factors of job->a, or of what `more` says they come from. Only where a kernel keeps
 * the matrix on the chip may it ask for something else too; one with a head may take only
 * what is in job->a. */
void factor(const struct bl_job *job, Launcher &launcher, const MidArguments &more = {},
            bool heads = false)
{
    const MidKernel *k = on_chip(job, launcher.card, heads);
    if (!k)
        return launch_blocked(job, launcher, more);
    MidArguments g = arguments_of(job, more);
    void *parameters[] = {&g};
    launcher.start(k->kernel, job->batch, k->threads,
                   k->shared_bytes(int(job->m), int(job->n)), parameters);
}

/* What solving is told of the job, one slot being one problem. */
MidSolve solve_of(const struct bl_job *job)
{
    MidSolve g = {};
    g.lu = job->a;
    g.b = job->b;
    g.ipiv = job->ipiv;
    g.info = job->info;
    g.items = job->items;
    g.n = int(job->n);
    g.nrhs = int(job->nrhs);
    g.rows = (g.n + WIDTH - 1) / WIDTH * WIDTH;
    g.int_size = g.ipiv_size = g.lu_info_size = job->int_size;
    return g;
}

/* Start `kernel` for `columns` columns a matrix. */
void start_many(const SolveKernels *k, const void *kernel, MidSolve g, int64_t slots,
                int64_t columns, Launcher &launcher)
{
    g.strips = int((columns + WIDTH - 1) / WIDTH);
    g.kept = g.rows / WIDTH;
    if (k->many_bytes(g.kept, g.rows) > KEPT_BYTES)
        g.kept = 1;
    void *parameters[] = {&g};
    launcher.start(kernel, slots * g.strips, 256, k->many_bytes(g.kept, g.rows),
                   parameters);
}

void solve(const struct bl_job *job, Launcher &launcher)
{
    const SolveKernels *k = solvers[job->precision];
    MidSolve g = solve_of(job);
    if (job->routine == BL_GESV) { /* INFO is there */
        g.lu_info = g.info;
        g.info = {};
    }
    if (job->nrhs >= MANY)
        return start_many(k, k->many, g, job->batch, job->nrhs, launcher);
    const int which = job->nrhs > 1, columns = which ? 4 : 1;
    g.strips = (g.nrhs + columns - 1) / columns;
    void *parameters[] = {&g};
    const int threads = g.n <= 64 ? 32 : g.n <= 128 ? 64 : g.n <= 256 ? 128 : 256;
    launcher.start(k->few[which], job->batch * g.strips, threads,
                   k->few_bytes[which](g.rows), parameters);
}

/* Inverses, on the tensor cores where there are kernels for that. */
void invert(const SolveKernels *k, MidSolve g, int64_t slots, Launcher &launcher)
{
    const InvertKernel *i = k->invert;
    if (!i || launcher.card.capability < 90)
        return start_many(k, k->inverse, g, slots, g.n, launcher);
    const int panels = (g.n + MOST_COLUMNS - 1) / MOST_COLUMNS;
    while (i->columns * panels < g.n)
        i++;
    const int warps = (g.n + ROWS_A_WARP - 1) / ROWS_A_WARP;
    g.strips = (g.n + i->rows - 1) / i->rows;
    void *parameters[] = {&g};
    launcher.start(i->kernel, slots * g.strips, 32 * ((warps + g.strips - 1) / g.strips),
                   i->shared_bytes(g.n), parameters);
}

/* The work space of a job that needs matrices beside its own, a part of the batch at a
 * time; POTRI needs two each. Offsets into it. */
struct Room {
    int64_t slots; /* of a part */
    int again_blocks;
    size_t ipiv, info, strange, items, moves, again, bytes; /* the matrices come first */
};

/* Its columns begin at whole 16 bytes. */
int64_t own_ld(const struct bl_job *job)
{
    return (job->n + 3) / 4 * 4;
}

Room room_of(const struct bl_job *job, const Card &card)
{
    const size_t matrix = own_ld(job) * job->n * element[job->precision] *
                          (job->routine == BL_POTRI ? 2 : 1);
    Room r = {};
    r.slots = ENOUGH / matrix > 16 ? int64_t(ENOUGH / matrix) : 16;
    if (job->lean)
        r.slots = LEAN / matrix > 1 ? int64_t(LEAN / matrix) : 1;
    if (r.slots > job->batch)
        r.slots = job->batch;
    r.again_blocks = int(r.slots < 2 * card.processors ? r.slots : 2 * card.processors);
    size_t at = aligned(r.slots * matrix);
    auto take = [&](size_t bytes) {
        size_t begin = at;
        at += aligned(bytes);
        return begin;
    };
    r.ipiv = take(r.slots * job->n * sizeof(int64_t));
    r.info = take(r.slots * sizeof(int32_t));
    r.strange = take(r.slots * sizeof(int));
    r.items = take(job->items ? r.slots * sizeof(struct bl_item) : 0);
    r.moves = take(moves_bytes(job, r.slots, card));
    r.again = take(job->routine == BL_GEDET
                       ? 0
                       : r.again_blocks * job->n * WIDTH * element[job->precision]);
    r.bytes = at;
    return r;
}

/* GEINV, GETRI, GETRI_OOP and GEDET: the factors lie in the work space, where they are
 * copied or made, of GEDET's no more than it needs. */
void with_copies(const struct bl_job *job, Launcher &launcher)
{
    const SolveKernels *k = solvers[job->precision];
    const Room room = room_of(job, launcher.card);
    char *const work = (char *)job->work;
    const bool to_factor = job->routine == BL_GEINV || job->routine == BL_GEDET;
    MidSolve g = solve_of(job);
    g.packed = true;
    g.lu = {work, nullptr, own_ld(job), own_ld(job) * job->n};
    g.strange = (int *)(work + room.strange);
    g.b = job->routine == BL_GETRI ? job->a : job->x;
    g.ld_of_b = job->routine == BL_GETRI ? g.OF_A : g.OF_X;
    if (to_factor) {
        g.own_pivots = true;
        g.ipiv = {work + room.ipiv, nullptr, 0, job->n};
        g.lu_info = {work + room.info, nullptr, 0, 1};
        g.ipiv_size = g.lu_info_size = sizeof(int32_t);
    }
    for (g.first = 0; g.first < job->batch; g.first += room.slots) {
        const int64_t slots =
            job->batch - g.first < room.slots ? job->batch - g.first : room.slots;
        const bool direct = to_factor && !job->items;
        struct bl_item *own_items =
            job->items ? (struct bl_item *)(work + room.items) : nullptr;
        MidCopy c = {job->a, g.lu, g.first, job->items, own_items, g.n};
        void *copy[] = {&c};
        if (!direct)
            launcher.start(k->copy, slots, 256, 0, copy);
        if (to_factor) {
            struct bl_job sub = *job;
            sub.routine = job->routine == BL_GEDET ? BL_GEDET : BL_GETRF;
            sub.a = g.lu;
            sub.ipiv = g.ipiv;
            sub.info = g.lu_info;
            sub.int_size = sizeof(int32_t);
            sub.items = own_items;
            sub.batch = slots;
            sub.work = work + room.moves;
            MidArguments more = {};
            if (direct) {
                more.from = job->a;
                more.number = g.first;
            }
            if (direct && job->routine == BL_GEDET && on_chip(job, launcher.card)) {
                more.phase = job->phase;
                more.logabs = job->logabs;
                sub.info = job->info;
                sub.int_size = job->int_size;
            }
            factor(&sub, launcher, more);
            if (more.phase.p || more.phase.array)
                continue;
        }
        if (job->routine == BL_GEDET) {
            MidDeterminant d = {g, job->phase, job->logabs};
            void *parameters[] = {&d};
            launcher.start(k->determinant, slots, 32, 0, parameters);
            continue;
        }
        launcher.clear(g.strange, slots * sizeof(int));
        invert(k, g, slots, launcher);
        MidAgain again = {g, slots, job->routine == BL_GETRI ? job->block : WIDTH,
                          work + room.again};
        void *parameters[] = {&again};
        launcher.start(k->again, room.again_blocks, 256, 0, parameters);
    }
}

/* POTRI: the same with the factors of an LU factorisation that are made of Cholesky's. */
void with_triangles(const struct bl_job *job, Launcher &launcher)
{
    constexpr int EDGE = 32; /* of a strip of the triangle */
    const SolveKernels *k = solvers[job->precision];
    const Room room = room_of(job, launcher.card);
    char *const work = (char *)job->work;
    const int64_t ld = own_ld(job);
    MidDefinite d = {};
    d.a = job->a;
    d.info = job->info;
    d.items = job->items;
    d.own_items = job->items ? (struct bl_item *)(work + room.items) : nullptr;
    d.strips = int((job->n + EDGE - 1) / EDGE);
    d.uplo = job->uplo;
    d.work = work + room.again;
    MidSolve &g = d.solve = solve_of(job);
    g.info = {};
    g.items = d.own_items;
    g.packed = g.own_pivots = true;
    g.lu = {work, nullptr, ld, ld * job->n};
    g.b = g.lu;
    g.b.p = work + room.slots * ld * job->n * element[job->precision];
    g.ipiv = {work + room.ipiv, nullptr, 0, job->n};
    g.lu_info = {work + room.info, nullptr, 0, 1};
    g.ipiv_size = g.lu_info_size = sizeof(int32_t);
    g.strange = (int *)(work + room.strange);
    for (d.first = 0; d.first < job->batch; d.first += room.slots) {
        d.slots = job->batch - d.first < room.slots ? job->batch - d.first : room.slots;
        void *parameters[] = {&d};
        launcher.start(k->definite_as_lu, d.slots * d.strips, 256, 0, parameters);
        invert(k, g, d.slots, launcher);
        launcher.start(k->definite_triangle, d.slots * d.strips, 256, 0, parameters);
        launcher.start(k->definite_again, room.again_blocks, 256, 0, parameters);
    }
}

bool takes(const struct bl_job *job, const Card &card)
{
    const SolveKernels *k = solvers[job->precision];
    const int rows = int((job->n + WIDTH - 1) / WIDTH * WIDTH);
    if (job->batch < 1 || job->m < 1 || job->n < 1 || job->n > MID_COLUMNS ||
        job->m > MID_ROWS)
        return false;
    const bool can_solve = k->many_bytes(1, rows) <= shared_limit(card) &&
                           k->few_bytes[1](rows) <= shared_limit(card);
    switch (job->routine) {
    case BL_GETRFSP:
    case BL_GETRF:
    case BL_GEDET:
        return factors(job, card);
    case BL_GESV:
    case BL_GEINV:
        return factors(job, card) && can_solve;
    case BL_GETRI:
    case BL_GETRI_OOP:
    case BL_POTRI:
        return can_solve;
    case BL_GETRS:
        return job->trans == 'N' && job->nrhs > 0 && can_solve;
    default:
        return false;
    }
}

size_t workspace(const struct bl_job *job, const Card &card)
{
    switch (job->routine) {
    case BL_GETRF:
    case BL_GETRFSP:
    case BL_GESV:
        return moves_bytes(job, job->batch, card);
    case BL_GETRS:
        return 0;
    default:
        return room_of(job, card).bytes;
    }
}

cudaError_t launch(const struct bl_job *job, const Card &card, cudaStream_t stream)
{
    Launcher launcher(card, stream);
    switch (job->routine) {
    case BL_GETRF:
        factor(job, launcher, {}, HEADS && !job->items);
        break;
    case BL_GETRFSP:
        factor(job, launcher);
        break;
    case BL_GESV: {
        const MidKernel *chip = on_chip(job, card);
        MidArguments more = {};
        if (chip && chip->solves && job->nrhs <= chip->threads / 32) {
            more.b = job->b;
            more.nrhs = int(job->nrhs);
        }
        factor(job, launcher, more);
        if (job->nrhs > more.nrhs)
            solve(job, launcher);
        break;
    }
    case BL_GETRS:
        solve(job, launcher);
        break;
    case BL_POTRI:
        with_triangles(job, launcher);
        break;
    default:
        with_copies(job, launcher);
    }
    return launcher.error;
}

} // namespace

const Family mid = {takes, workspace, launch};

} // namespace bl
