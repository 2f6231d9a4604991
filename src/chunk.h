/* A chunk: some problems of a job in host memory, where each operand of theirs lies on
 * the device, and how its bytes get from the caller's arrays into pinned memory and back
 * (chunk.c).
 */
#ifndef CHUNK_H
#define CHUNK_H

#include "bl.h"

enum bl_region_name {
    BL_REGION_INFO,
    BL_REGION_A,
    BL_REGION_B,
    BL_REGION_IPIV,
    BL_REGION_X,
    BL_REGION_PHASE,
    BL_REGION_LOGABS,
    BL_REGION_TABLE,
    BL_REGIONS
};

/* One operand of a chunk, packed without gaps. TABLE is what a job with items needs
 * beside its data: the items, then the arrays of pointers. */
struct bl_region {
    size_t element, item_bytes; /* item_bytes: where all items are alike */
    size_t *offset;             /* else where each begins, and the end of the last */
    size_t at, bytes;           /* in the chunk's device memory; all items */
    bool in, out;
    char *flat;  /* where the caller's has no gaps either: its first byte */
    bool direct; /* the device reads the caller's memory itself: flat, or A's columns */
    bool blocks; /* goes in blocks of columns, which the spans are without */
};

struct bl_chunk {
    const struct bl_job *host;
    struct bl_job *alone; /* in its place: one problem of a job with items */
    int64_t first, count; /* problems of the host's job */
    struct bl_region region[BL_REGIONS];
    size_t in_from, in_to, out_from, out_to; /* spans that go through pinned memory */
    size_t work_at, total;                   /* device memory */
    char *table;
    bool *again; /* once the verdict is known: the problems handed back; NULL: none */
    struct bl_job job; /* its device pointers are set by bl_chunk_place() */
};

/* How many problems from `first` on have at most so many bytes in and out; at least 1. */
int64_t bl_chunk_count(const struct bl_job *host, int64_t first, size_t bytes);
/* pinned: of each region, may the device read all of the caller's operand? False: too
 * large for any memory. bl_chunk_drop() in either case. */
bool bl_chunk_lay_out(struct bl_chunk *c, const struct bl_engine *e,
                      const struct bl_job *host, int64_t first, int64_t count,
                      const bool pinned[BL_REGIONS]);
void bl_chunk_place(struct bl_chunk *c, char *arena); /* c->total bytes of the device */
void bl_chunk_drop(struct bl_chunk *c);

/* Bytes [from, to) of a chunk, in its device memory's layout, between the caller's arrays
 * and pinned memory, by as many threads as it is worth. Where `cols` is not 0, a block of
 * A instead, of which the triangle is copied; `from` is its place in device memory. */
struct bl_move {
    const struct bl_chunk *chunk; /* NULL: nothing */
    size_t from, to;
    int64_t col, cols, row, rows;
    char *pinned; /* holds byte `from`, or the block's columns without gaps */
    bool unpack;
};
#define BL_MOST_MOVES 40 /* at a time */
/* moved, where not NULL: called on the calling thread when move i, and all before it, are
 * complete, while others may not be. */
typedef void bl_moved(void *arg, int i);
void bl_chunk_move(const struct bl_move *moves, int count, bl_moved *moved, void *arg);

/* On the way through A block by block: by columns or, of an upper triangle, by rows. Of
 * these so many are complete; the next block begins there, by rows in column `col`. */
struct bl_walk {
    bool by_rows;
    int64_t complete, col;
};

/* The next block of A, of about so many bytes, where A goes in blocks or the device reads
 * it itself; cols is 0 where there is none. */
struct bl_move bl_chunk_block(const struct bl_chunk *c, struct bl_walk *walk,
                              size_t bytes);

/* BL_FAULT where a problem's INFO has not been written. Of those that are handed back,
 * nothing but INFO is unpacked from now on. `pinned` holds the chunk's bytes from
 * out_from on, or as many of them as there is pinned memory for. */
enum bl_status bl_chunk_verdict(struct bl_chunk *c, const char *pinned);
int64_t bl_chunk_again(const struct bl_chunk *c); /* how many are handed back */

#endif
