/* Find the program's own LAPACK and call it.
 *
 * Which library serves a call depends on who calls: the caller's object and what it depends
 * on come first, so a plug-in opened RTLD_LOCAL gets the LAPACK it was linked with. What is
 * found is cached per calling object. No lock is held while the routine runs, and nothing
 * of ours is left to undo, so that it may leave by longjmp or throw.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bl.h"

/* ---- a 64-bit caller, a 32-bit LAPACK ---------------------------------------------- */

static bool fits(int64_t n)
{
    return n >= INT32_MIN && n <= INT32_MAX;
}

/* A 64-bit caller served by a 32-bit routine: scalars through 32-bit copies, IPIV through a
 * 32-bit vector. False when a size does not fit or there is no memory; nothing was called. */
static bool call_narrow(bl_fn *f, unsigned id, void **v)
{
    struct bl_call c;
    bl_decode(&c, id, true, v);
    if (!fits(c.m) || !fits(c.n) || !fits(c.nrhs) || !fits(c.lda) || !fits(c.ldb))
        return false;
    int32_t scalar[BL_MAX_ARGS], info = 0, *ipiv = NULL;
    void *w[BL_MAX_ARGS];
    size_t pivots = c.m > 0 && c.n > 0 ? (size_t)bl_min(c.m, c.n) : 0;
    unsigned nargs = (unsigned)strlen(bl_row(id)->args);
    bool written = false;
    if (c.ipiv) {
        ipiv = malloc((pivots + 1) * sizeof *ipiv);
        if (!ipiv)
            return false;
    }
    for (unsigned i = 0; i < nargs; i++) {
        w[i] = v[i];
        switch (bl_row(id)->args[i]) {
        case 'm':
        case 'n':
        case 'r':
        case 'l':
            scalar[i] = (int32_t) * (int64_t *)v[i];
            w[i] = &scalar[i];
            break;
        case 'q':
            scalar[i] = (int32_t)bl_min(c.lwork, INT32_MAX);
            w[i] = &scalar[i];
            break;
        case 'p':
            for (size_t k = 0; k < pivots; k++)
                ipiv[k] = (int32_t)((int64_t *)v[i])[k];
            w[i] = ipiv;
            break;
        case 'P':
            written = true;
            w[i] = ipiv;
            break;
        case 'i':
            w[i] = &info;
            break;
        }
    }
    bl_call_lapack(f, nargs, w);
    if (written && info >= 0)
        for (size_t k = 0; k < pivots; k++)
            ((int64_t *)c.ipiv)[k] = ipiv[k];
    *(int64_t *)c.info = info;
    free(ipiv);
    return true;
}

/* ---- finding ------------------------------------------------------------------------ */

/* A copy of this library, whatever path it was loaded from, exports this. */
#define MARK "batchlapack_version"

struct target {
    bl_fn *fn;
    bool narrow;
};

static void *handle_of(const char *name)
{
    return dlopen(*name ? name : NULL, RTLD_LAZY | RTLD_NOLOAD);
}

/* Routines that lie in a copy of this library would only come back to us. The library that
 * serves us is kept (its reference is never given back), so a cached pointer stays good
 * after the program has closed it. */
static bl_fn *accept(void *symbol)
{
    Dl_info where;
    struct link_map *map;
    if (!symbol || !dladdr1(symbol, &where, (void **)&map, RTLD_DL_LINKMAP))
        return NULL;
    void *object = handle_of(map->l_name);
    if (!object)
        return NULL;
    Dl_info mark;
    void *ours = dlsym(object, MARK);
    if (ours && dladdr(ours, &mark) && mark.dli_fbase == where.dli_fbase) {
        dlclose(object);
        return NULL;
    }
    bl_fn *fn;
    memcpy(&fn, &symbol, sizeof fn);
    return fn;
}

static bl_fn *in_handle(void *handle, const char *symbol)
{
    return handle ? accept(dlsym(handle, symbol)) : NULL;
}

struct walk {
    char **names;
    size_t count;
};

static int collect(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct walk *w = data;
    char **more = realloc(w->names, (w->count + 1) * sizeof *more);
    if (!more)
        return 1;
    w->names = more;
    w->names[w->count] = strdup(info->dlpi_name);
    if (w->names[w->count])
        w->count++;
    return 0;
}

static bl_fn *in_loaded_objects(const char *symbol)
{
    struct walk w = {NULL, 0};
    bl_fn *fn = NULL;
    dl_iterate_phdr(collect, &w);
    for (size_t i = 0; i < w.count; i++) {
        void *handle = fn ? NULL : handle_of(w.names[i]);
        fn = fn ? fn : in_handle(handle, symbol);
        if (handle)
            dlclose(handle);
        free(w.names[i]);
    }
    free(w.names);
    return fn;
}

enum source { CHOSEN, CALLER, NEXT, LOADED, CONFIGURED, SOURCES };

static bl_fn *find_in(enum source source, const char *symbol, const char *caller)
{
    void *handle = NULL;
    bl_fn *fn = NULL;
    switch (source) {
    case CHOSEN:;
        const char *path = bl_option_text(BL_OPTION_LAPACK);
        return path ? in_handle(dlopen(path, RTLD_LAZY | RTLD_LOCAL), symbol) : NULL;
    case CALLER:
        handle = handle_of(caller);
        fn = in_handle(handle, symbol);
        if (handle)
            dlclose(handle);
        return fn;
    case NEXT:
        return accept(dlsym(RTLD_NEXT, symbol));
    case LOADED:
        return in_loaded_objects(symbol);
    case CONFIGURED:
        return in_handle(dlopen(BL_LAPACK_SONAME, RTLD_LAZY | RTLD_LOCAL), symbol);
    default:
        return NULL;
    }
}

/* The spellings that can serve a call: its own, the other one of its width, and for a
 * 64-bit call the 32-bit ones. A LAPACK chosen by option wins with any of them. */
static struct target find(unsigned id, unsigned spelling, const char *caller)
{
    unsigned other = spelling ^ BL_SCIPY;
    unsigned order[4] = {spelling, other, spelling & ~1u, other & ~1u};
    int spellings = spelling & BL_WIDE ? 4 : 2;
    char symbol[BL_SYMBOL_MAX];
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < spellings; i++) {
            bl_symbol(symbol, id, order[i]);
            for (int s = pass ? CALLER : CHOSEN; s < (pass ? SOURCES : CALLER); s++) {
                bl_fn *fn = find_in((enum source)s, symbol, caller);
                if (fn)
                    return (struct target){fn, (order[i] ^ spelling) & BL_WIDE};
            }
        }
    return (struct target){NULL, false};
}

_Noreturn static void give_up(unsigned id, unsigned spelling, const char *reason)
{
    char symbol[BL_SYMBOL_MAX];
    const char *path = bl_option_text(BL_OPTION_LAPACK);
    bl_symbol(symbol, id, spelling);
    bl_say("%s: %s; tried %s%sthe calling object and its dependencies, the next library in "
           "the search order, every loaded object, and " BL_LAPACK_SONAME
           ". Name one with BATCHLAPACK_LAPACK=FILE",
           symbol, reason, path ? path : "", path ? ", " : "");
    exit(127);
}

/* ---- the cache, an entry a calling object ---------------------------------------------- */

struct object {
    uintptr_t start, end;
    bool permanent;   /* never unloaded */
    uint64_t unloads; /* how often anything had been unloaded when this entry was made */
    struct object *next;
    _Atomic(bl_fn *) fn[BL_IDS * BL_SPELLINGS];
    bool narrow[BL_IDS * BL_SPELLINGS];
};
static _Atomic(struct object *) objects;


static uint64_t loaded_at_start;

struct census {
    const struct dl_find_object *of; /* whose place in the list to look for */
    uint64_t place, loads, unloads;
    bool found;
};

static int count_objects(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct census *s = data;
    s->loads = info->dlpi_adds;
    s->unloads = info->dlpi_subs;
    if (!s->of)
        return 1;
    for (int i = 0; i < info->dlpi_phnum; i++)
        s->found |= info->dlpi_phdr[i].p_type == PT_LOAD &&
                    info->dlpi_addr + info->dlpi_phdr[i].p_vaddr ==
                        (uintptr_t)s->of->dlfo_map_start;
    s->place += !s->found;
    return s->found;
}

/* Objects that the process started with are never unloaded; the loader lists them first.
 * If this library came by a later dlopen, nothing is known of the others. */
__attribute__((constructor)) static void remember_start(void)
{
    struct census now = {0};
    dl_iterate_phdr(count_objects, &now);
    if (now.unloads == 0 && dlsym(RTLD_DEFAULT, MARK))
        loaded_at_start = now.loads;
}

/* The entry of the object that holds `caller`. An object that can be unloaded may have
 * been replaced by another at its address since: its entry holds only while nothing in the
 * process was unloaded. The loop reads a list that only grows. */
static struct object *object_of(const void *caller)
{
    struct dl_find_object of;
    struct census now = {0};
    if (_dl_find_object((void *)caller, &of) != 0)
        of.dlfo_map_start = of.dlfo_map_end = NULL;
    uintptr_t start = (uintptr_t)of.dlfo_map_start;
    for (struct object *o = atomic_load_explicit(&objects, memory_order_acquire); o;
         o = o->next) {
        if (o->start != start || o->end != (uintptr_t)of.dlfo_map_end)
            continue;
        if (o->permanent)
            return o;
        if (!now.loads)
            dl_iterate_phdr(count_objects, &now);
        if (o->unloads == now.unloads)
            return o;
    }
    struct object *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    now = (struct census){.of = &of};
    dl_iterate_phdr(count_objects, &now);
    o->start = start;
    o->end = (uintptr_t)of.dlfo_map_end;
    o->permanent = now.found && now.place < loaded_at_start;
    o->unloads = now.unloads;
    o->next = atomic_load_explicit(&objects, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&objects, &o->next, o,
                                                  memory_order_release,
                                                  memory_order_relaxed))
        ;
    return o;
}

static struct target look_up(unsigned id, unsigned spelling, const void *caller)
{
    Dl_info info;
    struct link_map *map = NULL;
    const char *name = "";
    if (dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) && map && map->l_name)
        name = map->l_name;
    int saved = errno;
    struct target t = find(id, spelling, name);
    errno = saved;
    if (!t.fn)
        give_up(id, spelling, "no LAPACK found behind batchlapack");
    return t;
}

void bl_forward(unsigned id, unsigned spelling, void **v, const void *caller)
{
    unsigned slot = id * BL_SPELLINGS + spelling;
    struct object *o = object_of(caller);
    struct target t = {NULL, false};
    if (o) {
        t.fn = atomic_load_explicit(&o->fn[slot], memory_order_acquire);
        t.narrow = o->narrow[slot];
    }
    if (!t.fn) {
        t = look_up(id, spelling, caller);
        if (o) {
            /* Two threads may both come here; they found the same. */
            o->narrow[slot] = t.narrow;
            atomic_store_explicit(&o->fn[slot], t.fn, memory_order_release);
        }
    }
    if (!t.narrow)
        bl_call_lapack(t.fn, (unsigned)strlen(bl_row(id)->args), v);
    else if (!call_narrow(t.fn, id, v))
        give_up(id, spelling, "only a 32-bit LAPACK found, and the sizes do not fit it");
}
