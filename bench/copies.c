/* An engine that is another one whose runs can be left out: what remains of a call is its
 * way in and out through the pipeline, piece by piece as it always goes. bench/pipeline
 * has the library load it.
 *
 * COPIES_ENGINE names the other one; without, it is libbatchlapack_cuda.so beside the
 * library that the program is linked with.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "copies.h"
#include "engine.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT extern struct copies copies;
struct copies copies;
EXPORT extern struct bl_engine bl_engine;
static const struct bl_engine *real;

/* All comes at once: parts would run before the last copy is there. */
static int64_t part(const struct bl_job *job, int64_t from)
{
    return copies.only ? job->n : real->part(job, from);
}

static enum bl_status run(const struct bl_job *job, void *queue)
{
    static const int64_t all_is_well = 0;
    struct timespec t;
    copies.runs++;
    if (!copies.only)
        return real->run(job, queue);
    enum bl_status status = real->wait(queue);
    clock_gettime(CLOCK_MONOTONIC, &t);
    copies.arrived = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
    return status == BL_OK
               ? real->put(queue, job->info.p, &all_is_well, (size_t)job->int_size)
               : status;
}

static const char *path_of_real(char *space, size_t size)
{
    const char *path = getenv("COPIES_ENGINE");
    Dl_info library;
    void *symbol = dlsym(RTLD_DEFAULT, "batchlapack_status");
    if ((path && *path) || !symbol || !dladdr(symbol, &library))
        return path;
    const char *name = strrchr(library.dli_fname, '/');
    snprintf(space, size, "%.*slibbatchlapack_cuda.so",
             name ? (int)(name - library.dli_fname + 1) : 0, library.dli_fname);
    return space;
}

static enum bl_status open_real(int ordinal, struct bl_device *device, char *why,
                                size_t len)
{
    char space[4096];
    const char *path = path_of_real(space, sizeof space);
    void *handle = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    real = handle ? dlsym(handle, BL_ENGINE_SYMBOL) : NULL;
    if (!real || real->abi != BL_ENGINE_ABI || real->size != sizeof *real) {
        snprintf(why, len, "no engine in %s", path ? path : "COPIES_ENGINE");
        return BL_UNSUPPORTED;
    }
    bl_engine = *real;
    bl_engine.part = part;
    bl_engine.run = run;
    return real->open(ordinal, device, why, len);
}

struct bl_engine bl_engine = {.abi = BL_ENGINE_ABI,
                              .size = sizeof(struct bl_engine),
                              .name = "copies",
                              .open = open_real};
