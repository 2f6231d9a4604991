/* Host data to the device and back.
 *
 * A batch goes through in chunks, BL_TRACKS of them in flight, each on a queue of its own
 * with its own part of the lane's device memory and of its pinned ring: while the device
 * copies and computes, our workers pack the next chunk and unpack the oldest. A chunk
 * that is a single large problem has the whole lane for itself and goes through the ring
 * in pieces; where the engine can, it works on the first columns of a matrix while the
 * others are on their way (parts.c).
 *
 * The write-back rule: the caller's arrays are first written when the chunk's result has
 * been waited for, found clean and, where it fits the ring, lies in host memory. Until
 * then any failure leaves the caller's data as it was, so that the dispatcher can forward
 * the call. Chunks are written back in their order. So even pinned memory is written by
 * the CPU: a copy from the device can fail half way, when the input is gone already.
 */
#include <stdlib.h>
#include <string.h>

#include "chunk.h"
#include "lane.h"
#include "parts.h"

#define ALIGNMENT ((size_t)256) /* of a piece in the ring */
/* Of pinned memory, of a track. A ring of 48 MiB in all is ahead of one of 64 by 3 %, and
 * of 128 by more: what the device has written there is still in the CPU's cache when it
 * is unpacked. */
#define SLOT_BYTES ((size_t)16 << 20)
#define LEAST_CHUNK ((size_t)2 << 20) /* less is not worth its launches */
#define LEAST_CHUNKS 8                /* the first and the last overlap with nothing */
#define LITTLE_TO_PACK ((size_t)256 << 10)
/* A single problem's pieces: where it fits the ring, and where it does not. */
#define PIECE_BYTES ((size_t)4 << 20)
#define LARGE_PIECE_BYTES ((size_t)8 << 20)
#define PARTS_QUEUE 2 /* the copies have the first two */
/* The ring's sections for pieces that do not all fit, a queue each. On the way in, what
 * is packed is under way piece by piece. On the way out nothing is unpacked before all of
 * a section is there, and nothing is under way beside the last: the more the better. */
#define SECTIONS_IN BL_COPY_QUEUES
#define SECTIONS_OUT BL_QUEUES

struct pipeline {
    const struct bl_engine *e;
    struct bl_job host; /* the caller's, lean when memory is short */
    struct bl_lane *lane;
    struct bl_traffic *traffic;
    bool pinned[BL_REGIONS];
    bool *refused;       /* the device has not read what was taken for pinned */
    int64_t next, *done; /* problems sent, and written back */
    int64_t most;        /* problems a chunk: less than what fits when memory is short */
    int tracks, tracks_allowed;
    size_t slot_bytes, arena_bytes; /* of a track */
    struct bl_chunk flight[BL_TRACKS];
    int oldest, in_flight;
    struct bl_chunk waiting; /* laid out, to be sent next; count 0: none */
    int64_t count;           /* of the last chunk that was laid out */
};

static size_t in_bytes(const struct bl_chunk *c)
{
    return c->in_to - c->in_from;
}

static size_t out_bytes(const struct bl_chunk *c)
{
    return c->out_to - c->out_from;
}

static size_t span_of(const struct bl_chunk *c)
{
    return (size_t)bl_max((int64_t)in_bytes(c), (int64_t)out_bytes(c));
}

static struct bl_move packing(const struct bl_chunk *c, char *at)
{
    return (struct bl_move){.chunk = c, .from = c->in_from, .to = c->in_to, .pinned = at};
}

static struct bl_move unpacking(const struct bl_chunk *c, char *at)
{
    return (struct bl_move){
        .chunk = c, .from = c->out_from, .to = c->out_to, .pinned = at, .unpack = true};
}

/* ---- where the caller's operands are ---- */

#define WORTH_ASKING ((size_t)64 << 10) /* less goes through the ring in any case */

/* Managed memory goes through the ring as ordinary memory does: where a program's CPU has
 * filled it, a copy by the device moves it page by page, at 8 GB/s (dgetrf_ of 4096 then
 * took 26 ms instead of 13 on an H200). */
static bool is_pinned(const struct bl_engine *e, const void *p)
{
    enum bl_memory kind = BL_MEMORY_PAGEABLE;
    return e->memory_kind(p, &kind) == BL_OK && kind == BL_MEMORY_PINNED;
}

/* Both ends are asked for: a program may have registered a part. */
static bool all_pinned(const struct bl_engine *e, const struct bl_job *host,
                       const struct bl_operand *o, int64_t rows, int64_t cols)
{
    int64_t elements = (host->batch - 1) * o->stride + o->ld * (cols - 1) + rows;
    size_t bytes = (size_t)elements * bl_element(host->precision);
    return !host->items && !o->array && o->p && cols > 0 && bytes >= WORTH_ASKING &&
           is_pinned(e, o->p) && is_pinned(e, (char *)o->p + bytes - 1);
}

/* ---- all of it on one queue ---- */

/* Between its ends an operand may not be pinned, for which the device then refuses the
 * copy: bl_pipeline() goes by the ring instead. */
static enum bl_status directly(const struct pipeline *p, enum bl_status status)
{
    *p->refused |= status == BL_FAULT;
    return status;
}

/* What the device reads itself, in pinned memory: an operand without gaps. */
static enum bl_status send_flat(const struct pipeline *p, const struct bl_region *r,
                                char *arena, void *queue)
{
    p->traffic->in += r->bytes;
    return directly(p, p->e->copy_in(queue, arena + r->at, r->flat, r->bytes));
}

/* The next block of a single matrix. */
static enum bl_status send_block(const struct pipeline *p, const struct bl_chunk *c,
                                 char *arena, void *queue, struct bl_walk *walk)
{
    const struct bl_region *a = &c->region[BL_REGION_A];
    const struct bl_problem x = bl_problem_of(c->host, c->first);
    const struct bl_move m = bl_chunk_block(c, walk, LARGE_PIECE_BYTES);
    size_t column = (size_t)m.rows * a->element, cols = (size_t)m.cols,
           pitch = (size_t)x.m * a->element, theirs = (size_t)x.lda * a->element;
    const char *from = x.a + (size_t)m.col * theirs + (size_t)m.row * a->element;
    p->traffic->in += column * cols;
    if (column == theirs)
        return directly(p, p->e->copy_in(queue, arena + m.from, from, column * cols));
    return directly(p, p->e->copy_in_columns(queue, arena + m.from, pitch, from, theirs,
                                             column, cols));
}

static enum bl_status send_direct(const struct pipeline *p, const struct bl_chunk *c,
                                  char *arena, void *queue)
{
    const struct bl_region *a = &c->region[BL_REGION_A], *b = &c->region[BL_REGION_B];
    enum bl_status status = BL_OK;
    if (a->direct && a->flat && !a->blocks)
        status = send_flat(p, a, arena, queue);
    else if (a->direct)
        for (struct bl_walk walk = {0}; walk.complete < c->host->n && status == BL_OK;)
            status = send_block(p, c, arena, queue, &walk);
    return status == BL_OK && b->direct ? send_flat(p, b, arena, queue) : status;
}

static char *arena_of(const struct pipeline *p, int track)
{
    return p->lane->arena + (size_t)track * p->arena_bytes;
}

static char *slot_of(const struct pipeline *p, int track)
{
    return p->lane->ring + (size_t)track * p->slot_bytes;
}

/* The packed chunk of this track: in, run, out. */
static enum bl_status send(const struct pipeline *p, int track)
{
    const struct bl_chunk *c = &p->flight[track];
    char *arena = arena_of(p, track), *slot = slot_of(p, track);
    void *queue = p->lane->queue[track];
    enum bl_status status = send_direct(p, c, arena, queue);
    if (status == BL_OK)
        status = p->e->copy_in(queue, arena + c->in_from, slot, in_bytes(c));
    if (status == BL_OK)
        status = p->e->run(&c->job, queue);
    if (status == BL_OK)
        status = p->e->copy_out(queue, slot, arena + c->out_from, out_bytes(c));
    p->traffic->in += in_bytes(c);
    return status;
}

/* The chunk of this track has come back, and well? */
static enum bl_status receive(struct pipeline *p, int track)
{
    struct bl_chunk *c = &p->flight[track];
    enum bl_status status = p->e->wait(p->lane->queue[track]);
    if (status == BL_OK)
        status = bl_chunk_verdict(c, slot_of(p, track));
    if (status == BL_OK)
        p->traffic->out += out_bytes(c);
    return status;
}

static void written_back(struct pipeline *p, const struct bl_chunk *c)
{
    *p->done += c->count;
    p->traffic->again += (uint64_t)bl_chunk_again(c);
}

/* ---- a chunk that has the lane for itself ---- */

_Noreturn static void lost_in_write_back(void)
{
    bl_say("the device was lost while a result was being written back; the matrix is "
           "incomplete and the process is aborted. BATCHLAPACK_WRITEBACK=staged avoids "
           "this at the price of one more copy in memory");
    abort();
}

/* What of the chunk goes in, or out: its span, then A where that goes in blocks. What
 * fits the ring has a place for each piece, and one queue. Else groups of pieces take
 * turns in the sections of the ring, each with a queue of its own. */
struct pieces {
    const struct pipeline *p;
    const struct bl_chunk *c;
    bool out, fits;
    size_t from;         /* next of the span */
    struct bl_walk walk; /* through A */
    size_t bytes;        /* what the pieces so far take of the ring */
    int groups;          /* so far */
};

/* Pieces that are packed, or unpacked, in one run of our workers: whoever is late with a
 * part of one keeps nobody waiting who has another to do. */
struct group {
    struct bl_move move[BL_MOST_MOVES];
    size_t bytes[BL_MOST_MOVES];
    int count, section;
    size_t at;                       /* `bytes` of all pieces before it */
    int64_t complete[BL_MOST_MOVES]; /* of A with a piece and those before it */
    bool reused;                     /* its section was another group's before */
};

static bool next_piece(struct pieces *all, struct bl_move *m, size_t *bytes)
{
    const struct bl_chunk *c = all->c;
    const struct bl_region *a = &c->region[BL_REGION_A];
    size_t most = all->fits ? PIECE_BYTES : LARGE_PIECE_BYTES;
    size_t to = all->out ? c->out_to : c->in_to;
    *m = (struct bl_move){.chunk = c, .from = all->from};
    if (all->from < to) {
        m->to = bl_min(all->from + most, to);
        *bytes = m->to - m->from;
        all->from = m->to;
    } else if (a->blocks && (all->out ? a->out : !a->direct)) {
        *m = bl_chunk_block(c, &all->walk, most);
        *bytes = (size_t)(m->rows * m->cols) * a->element;
    }
    if (m->to == 0 && m->cols == 0)
        return false;
    m->unpack = all->out;
    all->bytes += (*bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
    return true;
}

/* Columns of A, or rows where it goes by them, that the pieces so far hold. */
static int64_t complete_with(const struct pieces *all)
{
    const struct bl_region *a = &all->c->region[BL_REGION_A];
    size_t column = (size_t)all->c->host->m * a->element;
    return a->blocks            ? all->walk.complete
           : all->from <= a->at ? 0
                                : (int64_t)((all->from - a->at) / column);
}

static bool next_group(struct pieces *all, struct group *g)
{
    const int sections = all->out ? SECTIONS_OUT : SECTIONS_IN;
    const size_t size = BL_RING_BYTES / (size_t)sections,
                 most = all->fits ? SIZE_MAX : size;
    g->count = 0;
    g->section = all->fits ? 0 : all->groups % sections;
    g->reused = !all->fits && all->groups >= sections;
    g->at = all->bytes;
    char *ring = all->p->lane->ring + (all->fits ? g->at : (size_t)g->section * size);
    for (size_t at = 0; g->count < BL_MOST_MOVES && at + LARGE_PIECE_BYTES <= most;) {
        if (!next_piece(all, &g->move[g->count], &g->bytes[g->count]))
            break;
        g->complete[g->count] = complete_with(all);
        g->move[g->count++].pinned = ring + at;
        at = all->bytes - g->at;
    }
    all->groups += g->count > 0;
    return g->count > 0;
}

static struct pieces begin_pieces(const struct pipeline *p, const struct bl_chunk *c,
                                  bool out, bool fits)
{
    size_t from = out ? c->out_from : c->in_from;
    return (struct pieces){.p = p, .c = c, .out = out, .fits = fits, .from = from};
}

/* What they take, all together. */
static size_t all_bytes(const struct pipeline *p, const struct bl_chunk *c, bool out,
                        bool fits)
{
    struct pieces all = begin_pieces(p, c, out, fits);
    struct bl_move move;
    size_t bytes;
    while (next_piece(&all, &move, &bytes))
        continue;
    return all.bytes;
}

static struct pieces pieces_of(const struct pipeline *p, const struct bl_chunk *c,
                               bool out)
{
    return begin_pieces(p, c, out, all_bytes(p, c, out, true) <= p->lane->ring_bytes);
}

static enum bl_status copy_piece(const struct pieces *all, const struct group *g, int i)
{
    const struct bl_engine *e = all->p->e;
    const struct bl_move *m = &g->move[i];
    const struct bl_region *a = &all->c->region[BL_REGION_A];
    void *queue = all->p->lane->queue[g->section];
    char *at = all->p->lane->arena + m->from;
    size_t column = (size_t)m->rows * a->element;
    size_t pitch = (size_t)all->c->host->m * a->element;
    uint64_t *traffic = all->out ? &all->p->traffic->out : &all->p->traffic->in;
    *traffic += g->bytes[i];
    if (m->cols == 0)
        return all->out ? e->copy_out(queue, m->pinned, at, g->bytes[i])
                        : e->copy_in(queue, at, m->pinned, g->bytes[i]);
    return all->out
               ? e->copy_out_columns(queue, m->pinned, at, pitch, column, (size_t)m->cols)
               : e->copy_in_columns(queue, at, pitch, m->pinned, column, column,
                                    (size_t)m->cols);
}

/* Pieces on their way while the others of their group are packed. */
struct sending {
    const struct pieces *all;
    const struct group *g;
    struct bl_parts *parts; /* hears of what is under way; NULL: none */
    enum bl_status status;
};

static void send_piece(void *arg, int i)
{
    struct sending *s = arg;
    if (s->status == BL_OK)
        s->status = copy_piece(s->all, s->g, i);
    if (s->status == BL_OK && s->parts)
        bl_parts_there(s->parts, bl_min(s->g->complete[i], s->all->c->host->n - 1));
}

/* How A goes to the device: work in parts takes an upper triangle by rows. */
static struct bl_walk walk_for(const struct bl_parts *parts, const struct bl_chunk *c)
{
    return (struct bl_walk){.by_rows = parts && c->host->uplo == 'U'};
}

/* What the device reads itself; for work in parts A alone, and of it little at a time: a
 * part waits for all that is under way when it is enqueued. */
static enum bl_status begin_direct(const struct pipeline *p, const struct bl_chunk *c,
                                   struct bl_parts *parts)
{
    char *arena = p->lane->arena;
    struct bl_walk walk = walk_for(parts, c);
    const int64_t n = c->host->n;
    enum bl_status status = BL_OK;
    if (!parts)
        return send_direct(p, c, arena, p->lane->queue[0]);
    if (!c->region[BL_REGION_A].direct)
        return BL_OK;
    for (int64_t i = 0; walk.complete < n && status == BL_OK; i++) {
        void *queue = p->lane->queue[i % BL_COPY_QUEUES];
        if (i >= BL_COPY_QUEUES)
            status = p->e->wait(queue);
        if (status == BL_OK)
            status = send_block(p, c, arena, queue, &walk);
        if (status == BL_OK)
            bl_parts_there(parts, bl_min(walk.complete, n - 1));
    }
    return status;
}

static enum bl_status send_pieces(const struct pipeline *p, const struct bl_chunk *c,
                                  struct bl_parts *parts)
{
    struct pieces all = pieces_of(p, c, false);
    struct group g;
    all.walk = walk_for(parts, c);
    bool direct = c->region[BL_REGION_A].direct; /* then no piece is of A */
    struct sending s = {&all, &g, direct ? NULL : parts, begin_direct(p, c, parts)};
    while (s.status == BL_OK && next_group(&all, &g)) {
        if (g.reused)
            s.status = p->e->wait(p->lane->queue[g.section]);
        if (s.status == BL_OK)
            bl_chunk_move(g.move, g.count, send_piece, &s);
    }
    const struct bl_region *b = &c->region[BL_REGION_B];
    if (s.status == BL_OK && parts && b->direct)
        s.status = send_flat(p, b, p->lane->arena, p->lane->queue[0]);
    if (s.status == BL_OK && parts)
        bl_parts_there(parts, c->host->n);
    else if (s.status == BL_OK && all.groups > 1 &&
             !all.fits) /* the run is on the first */
        s.status = p->e->follow(p->lane->queue[0], p->lane->queue[1]);
    return s.status;
}

/* All of the chunk to the device, and its run. */
static enum bl_status send_and_run(const struct pipeline *p, const struct bl_chunk *c,
                                   bool in_parts)
{
    struct bl_parts parts;
    void *queue = p->lane->queue[in_parts ? PARTS_QUEUE : 0];
    if (in_parts)
        bl_parts_begin(&parts, p->e, &c->job, queue, p->lane->queue);
    enum bl_status status = send_pieces(p, c, in_parts ? &parts : NULL);
    if (!in_parts)
        return status == BL_OK ? p->e->run(&c->job, queue) : status;
    enum bl_status of_parts = bl_parts_end(&parts, status != BL_OK);
    status = status == BL_OK ? of_parts : status;
    return status == BL_OK ? p->e->wait(queue) : status;
}

static enum bl_status copy_out_group(const struct pieces *all, const struct group *g)
{
    enum bl_status status = BL_OK;
    for (int i = 0; i < g->count && status == BL_OK; i++)
        status = copy_piece(all, g, i);
    return status;
}

/* One that fits the ring is in there before the first byte is written. */
static enum bl_status receive_at_once(const struct pipeline *p, struct bl_chunk *c)
{
    struct pieces all = pieces_of(p, c, true);
    struct group g;
    enum bl_status status = BL_OK;
    while (status == BL_OK && next_group(&all, &g))
        status = copy_out_group(&all, &g);
    if (status == BL_OK)
        status = p->e->wait(p->lane->queue[0]);
    if (status == BL_OK)
        status = bl_chunk_verdict(c, p->lane->ring);
    all = pieces_of(p, c, true);
    while (status == BL_OK && next_group(&all, &g))
        bl_chunk_move(g.move, g.count, NULL, NULL);
    return status;
}

/* A larger one is written as it arrives, but for `stage`, which holds all of it first. */
static enum bl_status receive_pieces(const struct pipeline *p, struct bl_chunk *c,
                                     char *stage)
{
    struct pieces all = pieces_of(p, c, true), ahead = all;
    struct group g, next;
    bool begun = false;
    enum bl_status status = p->e->wait(p->lane->queue[0]); /* for the run */
    for (int i = 0; i < SECTIONS_OUT && status == BL_OK && next_group(&ahead, &next); i++)
        status = copy_out_group(&ahead, &next);
    while (status == BL_OK && next_group(&all, &g)) {
        status = p->e->wait(p->lane->queue[g.section]);
        if (status == BL_OK && all.groups == 1)
            status = bl_chunk_verdict(c, g.move[0].pinned);
        if (status != BL_OK)
            break;
        if (stage) {
            memcpy(stage + g.at, g.move[0].pinned, all.bytes - g.at);
        } else {
            begun = true;
            bl_chunk_move(g.move, g.count, NULL, NULL);
        }
        if (next_group(&ahead, &next))
            status = copy_out_group(&ahead, &next);
    }
    if (status != BL_OK && begun)
        lost_in_write_back();
    return status;
}

static enum bl_status receive_staged(const struct pipeline *p, struct bl_chunk *c)
{
    struct pieces all = pieces_of(p, c, true);
    struct group g;
    char *stage = malloc(all_bytes(p, c, true, false));
    enum bl_status status = stage ? receive_pieces(p, c, stage) : BL_NOMEM;
    while (status == BL_OK && next_group(&all, &g)) {
        char *ring = g.move[0].pinned;
        for (int i = 0; i < g.count; i++)
            g.move[i].pinned = stage + g.at + (g.move[i].pinned - ring);
        bl_chunk_move(g.move, g.count, NULL, NULL);
    }
    free(stage);
    return status;
}

static enum bl_status receive_large(const struct pipeline *p, struct bl_chunk *c)
{
    if (pieces_of(p, c, true).fits)
        return receive_at_once(p, c);
    return bl_option(BL_OPTION_WRITEBACK) == BL_WRITEBACK_STAGED
               ? receive_staged(p, c)
               : receive_pieces(p, c, NULL);
}

/* Not inlined: its groups of pieces would be on the stack of every small call. */
static __attribute__((noinline)) enum bl_status run_alone(struct pipeline *p,
                                                          struct bl_chunk *c)
{
    size_t ring = (size_t)bl_max((int64_t)all_bytes(p, c, false, true),
                                 (int64_t)all_bytes(p, c, true, true));
    bool in_parts = ring > BL_RING_BYTES && bl_parts_wanted(p->e, &c->job);
    int queues = ring > BL_RING_BYTES ? BL_QUEUES : 1; /* each has a use for some */
    enum bl_status status = bl_lane_need(p->e, p->lane, queues, ring, c->total);
    if (status != BL_OK)
        return status;
    p->tracks = 0; /* the lane's memory is no longer shared out among tracks */
    bl_chunk_place(c, p->lane->arena);
    status = send_and_run(p, c, in_parts);
    if (status == BL_OK)
        status = receive_large(p, c);
    if (status != BL_OK)
        return status;
    p->next += c->count;
    written_back(p, c);
    return BL_OK;
}

/* ---- the batch ---- */

static size_t power_of_two(size_t bytes)
{
    size_t size = 4096;
    while (size < bytes)
        size *= 2;
    return size;
}

/* Share the lane's memory out among as many tracks as this chunk and those after it make
 * use of. Nothing is in flight. */
static enum bl_status open_tracks(struct pipeline *p, const struct bl_chunk *c)
{
    int64_t chunks = (p->host.batch - c->first + c->count - 1) / c->count;
    p->tracks = (int)bl_min(chunks, p->tracks_allowed);
    p->oldest = 0;
    p->arena_bytes = c->total;
    p->slot_bytes = power_of_two(span_of(c));
    enum bl_status status =
        bl_lane_need(p->e, p->lane, p->tracks, (size_t)p->tracks * p->slot_bytes,
                     (size_t)p->tracks * p->arena_bytes);
    if (status != BL_OK)
        p->tracks = 0;
    return status;
}

/* Whether the engine can do with less work space. */
static bool grows_lean(struct pipeline *p)
{
    if (p->host.lean)
        return false;
    const size_t before = p->e->workspace(&p->host);
    p->host.lean = 1;
    return p->e->workspace(&p->host) < before;
}

/* Less memory: half as many problems a chunk, then one chunk at a time, then little work
 * space. */
static bool ask_for_less(struct pipeline *p)
{
    if (p->count > 1)
        p->most = (p->count + 1) / 2;
    else if (p->host.batch > 1 && p->tracks_allowed > 1)
        p->tracks_allowed = 1;
    else
        return grows_lean(p);
    return true;
}

static size_t chunk_bytes(const struct bl_job *host)
{
    size_t bytes = SLOT_BYTES;
    while (bytes > LEAST_CHUNK &&
           bl_chunk_count(host, 0, bytes / 2) * LEAST_CHUNKS >= host->batch)
        bytes /= 2;
    return bytes;
}

static bool fits_a_track(const struct pipeline *p, const struct bl_chunk *c)
{
    return p->tracks > 0 && c->total <= p->arena_bytes && span_of(c) <= p->slot_bytes;
}

/* Too large for a track; or it is all there is, and worth going in pieces. */
static bool goes_alone(const struct pipeline *p, const struct bl_chunk *c)
{
    return c->region[BL_REGION_A].blocks || span_of(c) > SLOT_BYTES ||
           (c->count == p->host.batch && span_of(c) > PIECE_BYTES);
}

/* One turn: the next chunk is packed and sent, and the oldest written back. Either may be
 * missing. What the device reads itself needs little packing: that is on its way before
 * the oldest is waited for, so that the link in does not run dry meanwhile. */
struct turn {
    struct pipeline *p;
    int sends; /* the track of the chunk that is packed */
    enum bl_status status;
};

static void send_packed(void *arg, int move)
{
    struct turn *t = arg;
    if (move == 0 && t->sends >= 0)
        t->status = send(t->p, t->sends);
}

static enum bl_status turn(struct pipeline *p, bool sends)
{
    struct bl_move move[2] = {{.chunk = NULL}, {.chunk = NULL}};
    bool receives = p->in_flight > 0 && (!sends || p->in_flight + 1 >= p->tracks);
    int old = p->oldest, new = sends ? (old + p->in_flight) % p->tracks : -1;
    struct bl_chunk *o = &p->flight[old];
    struct turn t = {p, new, BL_OK};
    bool early = receives && sends && in_bytes(&p->waiting) <= LITTLE_TO_PACK;
    if (receives && !early)
        t.status = receive(p, old);
    if (sends && t.status == BL_OK) {
        struct bl_chunk *n = &p->flight[new];
        *n = p->waiting;
        p->waiting = (struct bl_chunk){.count = 0};
        bl_chunk_place(n, arena_of(p, new));
        move[0] = packing(n, slot_of(p, new));
        p->next += n->count;
        p->in_flight++;
    }
    if (early) {
        bl_chunk_move(move, 1, send_packed, &t);
        move[0].chunk = NULL;
        t.sends = -1;
        t.status = t.status == BL_OK ? receive(p, old) : t.status;
    }
    if (t.status != BL_OK)
        return t.status;
    if (receives)
        move[1] = unpacking(o, slot_of(p, old));
    bl_chunk_move(move, 2, send_packed, &t);
    if (receives) {
        written_back(p, o);
        bl_chunk_drop(o);
        p->oldest = (old + 1) % p->tracks;
        p->in_flight--;
    }
    return t.status;
}

/* How many problems are next. Matrices that are alike go in chunks that are, too: the
 * engine may have other kernels for few of them, and for many, whose fast bits differ,
 * and a matrix's may not depend on its place. So no chunks are on both sides of a bound.
 */
static int64_t chunk_count(const struct pipeline *p, size_t bytes)
{
    const int64_t batch = p->host.batch, rest = batch - p->next;
    if (p->host.items)
        return bl_min(p->most, bl_chunk_count(&p->host, p->next, bytes));
    int64_t most = bl_min(p->most, bl_chunk_count(&p->host, 0, bytes));
    static const int64_t bounds[] = {BL_MANY, BL_FEW};
    for (int i = 0; i < 2; i++) {
        const int64_t chunks = (batch + most - 1) / most;
        if (batch / chunks <= bounds[i] && (batch + chunks - 1) / chunks > bounds[i])
            most = bounds[i];
    }
    const int64_t chunks = (rest + most - 1) / most;
    return (rest + chunks - 1) / chunks;
}

/* As far as it gets. */
static enum bl_status run_chunks(struct pipeline *p)
{
    const size_t bytes = chunk_bytes(&p->host);
    struct bl_chunk *w = &p->waiting;
    enum bl_status status = BL_OK;
    while (status == BL_OK && *p->done < p->host.batch) {
        if (w->count == 0 && p->next < p->host.batch) {
            p->count = chunk_count(p, bytes);
            if (!bl_chunk_lay_out(w, p->e, &p->host, p->next, p->count, p->pinned))
                return BL_NOMEM;
        }
        if (p->in_flight == 0 && goes_alone(p, w)) {
            status = run_alone(p, w);
            bl_chunk_drop(w);
            continue;
        }
        if (p->in_flight == 0 && !fits_a_track(p, w))
            status = open_tracks(p, w);
        if (status == BL_OK)
            status = turn(p, w->count > 0 && !goes_alone(p, w) && fits_a_track(p, w) &&
                                 p->in_flight < p->tracks);
    }
    return status;
}

static void drop_chunks(struct pipeline *p)
{
    for (int i = 0; i < BL_TRACKS; i++)
        bl_chunk_drop(&p->flight[i]);
    bl_chunk_drop(&p->waiting);
}

enum bl_status bl_pipeline(const struct bl_engine *e, const struct bl_job *host,
                           int64_t *done, struct bl_traffic *traffic)
{
    struct pipeline p = {.e = e,
                         .host = *host,
                         .traffic = traffic,
                         .done = done,
                         .most = host->batch,
                         .tracks_allowed = BL_TRACKS};
    enum bl_status status;
    bool again, refused = false;
    p.refused = &refused;
    p.pinned[BL_REGION_A] = all_pinned(e, host, &host->a, host->m, host->n);
    p.pinned[BL_REGION_B] = all_pinned(e, host, &host->b, host->n, host->nrhs);
    p.lane = bl_lane_take();
    *done = 0;
    do {
        p.next = *done;
        p.tracks = p.oldest = p.in_flight = 0;
        status = run_chunks(&p);
        if (status != BL_OK)
            bl_lane_settle(e, p.lane);
        drop_chunks(&p);
        again = status == BL_NOMEM && ask_for_less(&p);
        if (status == BL_FAULT && refused) {
            p.pinned[BL_REGION_A] = p.pinned[BL_REGION_B] = refused = false;
            again = true;
        }
    } while (again);
    bl_lane_give(p.lane);
    return status;
}
