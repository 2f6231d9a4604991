/* The way of a test to the controls of the mock engine: those of the copy that the
 * library loads, which BATCHLAPACK_ENGINE names.
 */
#ifndef MOCK_CONTROLS_H
#define MOCK_CONTROLS_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "mock_engine.h"

static void (*mock_order)(const struct mock_order *); /* mock_set */
static void (*mock_counts)(struct mock_counts *);     /* mock_read */

/* Whether it is the mock: else both stay NULL. */
static inline bool find_mock(void)
{
    const char *path = getenv("BATCHLAPACK_ENGINE");
    void *mock = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    *(void **)&mock_order = mock ? dlsym(mock, "mock_set") : NULL;
    *(void **)&mock_counts = mock ? dlsym(mock, "mock_read") : NULL;
    return mock_order && mock_counts;
}

/* For what is no test without it. */
static inline void need_mock(const char *test)
{
    if (!find_mock()) {
        printf("not ok %s - BATCHLAPACK_ENGINE does not name the mock engine\n", test);
        exit(1);
    }
}

#endif
