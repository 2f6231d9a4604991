/* What tests order from the mock engine and read back from it. */
#ifndef MOCK_ENGINE_H
#define MOCK_ENGINE_H

#include "engine.h"

enum mock_step {
    MOCK_QUEUE,
    MOCK_DEVICE_ALLOC,
    MOCK_HOST_ALLOC,
    MOCK_COPY_IN,
    MOCK_RUN,
    MOCK_WAIT,
    MOCK_COPY_OUT,
    MOCK_QUEUE_ALLOC, /* reserve() too */
    MOCK_PUT,
    MOCK_STEPS
};

struct mock_order {
    enum mock_step step; /* MOCK_STEPS: none */
    uint64_t at;         /* the first failing occurrence, from 1, counted from mock_set */
    int always;          /* and all later ones */
    enum bl_status status;
    int lose_launch;  /* run() answers BL_OK and does nothing */
    int hand_back;    /* where the job allows it, run() leaves BL_INFO_REDO in the INFO of
                         every problem, or of every so many */
    int64_t part;     /* one matrix is taken in parts of so many columns; 0: as a whole */
    unsigned slow_us; /* every step takes this long */
    int managed;      /* pinned memory is said to be managed */
    uint64_t memory;  /* device memory limit in bytes; 0: none */
    uint64_t work;    /* bytes of work space that jobs ask for unless they are lean */
    /* And those whose matrices are not pointed to, as if for other kernels. */
    uint64_t strided_work;
};

struct mock_counts {
    uint64_t step[MOCK_STEPS]; /* since mock_set */
    uint64_t faults, problems; /* since the start */
    uint64_t fast;             /* of these problems, in fast arithmetic */
    uint64_t held;             /* device memory now, bytes; queue_free counts when done */
    uint64_t most_under_way;   /* runs enqueued and not waited for, since mock_set */
    uint64_t parts;            /* runs that were not a matrix's last, since the start */
    uint64_t reserved;         /* what reserve() asked for since release() */
};

void mock_set(const struct mock_order *order);
void mock_read(struct mock_counts *counts);

#endif
