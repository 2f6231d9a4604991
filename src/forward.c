/* Find the program's own LAPACK and call it.
 *
 * Which library serves a call is the one that the loader would have bound without us: the
 * next in the global scope, else what the caller's object depends on, so a plug-in opened
 * RTLD_LOCAL gets the LAPACK it was linked with. What is found is cached per calling
 * object. No lock is held while the routine
 * runs, and nothing of ours is left to undo, so that it may leave by longjmp or throw.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bl.h"
#include "guard.h"

/* ---- a 64-bit caller, a 32-bit LAPACK ---- */

/* A size that is too negative for 32 bits is as illegal as the least that is not. */
static int32_t narrowed(int64_t n)
{
    return (int32_t)bl_max(n, INT32_MIN);
}

/* A 64-bit caller served by a 32-bit routine: scalars through 32-bit copies, IPIV through
 * a 32-bit vector. False when a size does not fit or there is no memory; nothing was
 * called. */
static bool call_narrow(bl_fn *f, unsigned id, void **v)
{
    struct bl_call c;
    bl_decode(&c, id, true, v);
    if (bl_max(bl_max(c.m, c.n), bl_max(c.nrhs, bl_max(c.lda, c.ldb))) > INT32_MAX)
        return false;
    int32_t scalar[BL_MAX_ARGS], info = 0, *ipiv = NULL;
    void *w[BL_MAX_ARGS];
    size_t pivots = c.m > 0 && c.n > 0 ? (size_t)bl_min(c.m, c.n) : 0;
    bool written = false;
    if (c.ipiv) {
        ipiv = malloc((pivots + 1) * sizeof *ipiv);
        if (!ipiv)
            return false;
    }
    for (unsigned i = 0; i < bl_row(id)->nargs; i++) {
        w[i] = v[i];
        switch (bl_row(id)->args[i]) {
        case 'm':
        case 'n':
        case 'r':
        case 'l':
            scalar[i] = narrowed(*(int64_t *)v[i]);
            w[i] = &scalar[i];
            break;
        case 'q':
            scalar[i] = narrowed(bl_min(c.lwork, INT32_MAX));
            w[i] = &scalar[i];
            break;
        case 'p':
            for (size_t k = 0; k < pivots && c.legal && !c.query && !c.empty; k++)
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
    bl_call_lapack(f, bl_row(id)->nargs, w);
    if (written && info >= 0)
        for (size_t k = 0; k < pivots; k++)
            ((int64_t *)c.ipiv)[k] = ipiv[k];
    *(int64_t *)c.info = info;
    free(ipiv);
    return true;
}

/* ---- finding ---- */

/* A copy of this library, whatever path it was loaded from, exports this. */
#define MARK "batchlapack_version"

/* Routines that lie in a copy of this library would only come back to us. The library
 * that serves us is kept (its reference is never given back), so a cached pointer stays
 * good after the program has closed it. */
static bl_fn *accept(void *symbol)
{
    Dl_info where;
    struct link_map *map;
    if (!symbol || !dladdr1(symbol, &where, (void **)&map, RTLD_DL_LINKMAP))
        return NULL;
    /* The entry that a program with fixed addresses keeps for a routine of another object
     * only leads back to us. */
    const ElfW(Sym) *entry = NULL;
    if (dladdr1(symbol, &where, (void **)&entry, RTLD_DL_SYMENT) && entry &&
        entry->st_shndx == SHN_UNDEF)
        return NULL;
    void *object = bl_handle_of(map->l_name);
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
        void *handle = fn ? NULL : bl_handle_of(w.names[i]);
        fn = fn ? fn : in_handle(handle, symbol);
        if (handle)
            dlclose(handle);
        free(w.names[i]);
    }
    free(w.names);
    return fn;
}

/* What decides which LAPACK an object gets: its path and the libraries that it names. An
 * object that was closed may have been replaced by another one at the same address. No
 * loader function is asked, since they lock (a child forked meanwhile finds it locked).
 */
struct names {
    const char *path, *strings;
    const ElfW(Dyn) * needed;
};

static struct names names_of(const struct link_map *map)
{
    struct names n = {map ? map->l_name : "", NULL, map ? map->l_ld : NULL};
    for (const ElfW(Dyn) *d = n.needed; d && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_STRTAB) {
            n.strings =
                (const char *)(d->d_un.d_ptr < map->l_addr ? map->l_addr + d->d_un.d_ptr
                                                           : d->d_un.d_ptr);
            break;
        }
    return n;
}

/* The linkers put DT_NEEDED first: what follows DT_STRTAB is not looked at. */
static const char *next_name(struct names *n)
{
    const char *name = n->path;
    n->path = NULL;
    if (name)
        return name;
    for (; n->strings && n->needed->d_tag != DT_STRTAB; n->needed++)
        if (n->needed->d_tag == DT_NEEDED)
            return n->strings + n->needed++->d_un.d_val;
    return NULL;
}

/* Behind ourselves: an object that links this library before its LAPACK. */
static bl_fn *in_needed(void *handle, const char *symbol)
{
    struct link_map *map;
    bl_fn *fn = NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
        return NULL;
    struct names n = names_of(map);
    n.path = NULL;
    for (const char *name; !fn && (name = next_name(&n));) {
        void *needed = bl_handle_of(name);
        fn = in_handle(needed, symbol);
        if (needed)
            dlclose(needed);
    }
    return fn;
}

/* BATCHLAPACK_LAPACK, opened once; called under the loader's lock. */
static void *chosen(void)
{
    static void *handle;
    static bool tried;
    const char *path = bl_option_text(BL_OPTION_LAPACK);
    if (path && !tried) {
        handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
        if (!handle)
            bl_say("option BATCHLAPACK_LAPACK ignored: %s", dlerror());
    }
    tried = true;
    return handle;
}

enum source { CHOSEN, GLOBAL, CALLER, NEXT, LOADED, CONFIGURED, SOURCES };

static bool in_global_scope(void)
{
    void *program = bl_handle_of("");
    bool found = program && dlsym(program, MARK);
    if (program)
        dlclose(program);
    return found;
}

static bl_fn *find_in(enum source source, const char *symbol, const char *caller)
{
    void *handle = NULL;
    bl_fn *fn = NULL;
    switch (source) {
    case CHOSEN:
        return in_handle(chosen(), symbol);
    case CALLER:
        handle = bl_handle_of(caller);
        fn = in_handle(handle, symbol);
        if (handle && !fn)
            fn = in_needed(handle, symbol);
        if (handle)
            dlclose(handle);
        return fn;
    case GLOBAL: /* what the loader would have bound, if we stand before it */
        if (!in_global_scope())
            return NULL;
        /* fall through */
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
static struct bl_target find(unsigned id, unsigned spelling, const char *caller)
{
    unsigned other = spelling ^ BL_SCIPY;
    unsigned order[4] = {spelling, other, spelling & ~1u, other & ~1u};
    int spellings = spelling & BL_WIDE ? 4 : 2;
    char symbol[BL_SYMBOL_MAX];
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < spellings; i++) {
            bl_symbol(symbol, id, order[i]);
            for (int s = pass ? GLOBAL : CHOSEN; s < (pass ? SOURCES : GLOBAL); s++) {
                bl_fn *fn = find_in((enum source)s, symbol, caller);
                if (fn) {
                    struct bl_target t = bl_provider_of(fn);
                    t.wide |= order[i] & BL_WIDE;
                    t.narrow = (spelling & BL_WIDE) && !t.wide;
                    return t;
                }
            }
        }
    return (struct bl_target){NULL, false, false, false};
}

_Noreturn static void give_up(unsigned id, unsigned spelling, const char *reason)
{
    char symbol[BL_SYMBOL_MAX];
    const char *path = bl_option_text(BL_OPTION_LAPACK);
    bl_symbol(symbol, id, spelling);
    bl_say("%s: %s; tried %s%sthe next library in the search order, the calling object "
           "and its "
           "dependencies, every loaded object, and " BL_LAPACK_SONAME
           ". Name one with BATCHLAPACK_LAPACK=FILE",
           symbol, reason, path ? path : "", path ? ", " : "");
    exit(127);
}

/* ---- the cache, an entry a calling object ---- */

struct object {
    uintptr_t start, end;
    char *identity;
    struct object *next;
    struct found {
        _Atomic bool known;
        struct bl_target target;
    } found[BL_LAPACK_IDS * BL_SPELLINGS];
};
static _Atomic(struct object *) objects;

static bool same(const char *identity, const struct link_map *map)
{
    if (!map || !*map->l_name)
        return true; /* the program itself stays */
    struct names n = names_of(map);
    for (const char *name; (name = next_name(&n)); identity++)
        for (; *name || *identity; name++, identity++)
            if (*name != *identity)
                return false;
    return !*identity;
}

static char *identity_of(const struct link_map *map)
{
    struct names n = names_of(map), again = n;
    size_t length = 1;
    for (const char *name; (name = next_name(&n));)
        length += strlen(name) + 1;
    char *identity = malloc(length), *end = identity;
    for (const char *name; identity && (name = next_name(&again)); end++)
        end = stpcpy(end, name);
    if (identity)
        *end = 0;
    return identity;
}

/* The entry of the object that holds `caller`, or NULL. The list only grows. */
static struct object *known_object(const struct dl_find_object *of)
{
    for (struct object *o = atomic_load_explicit(&objects, memory_order_acquire); o;
         o = o->next)
        if (o->start == (uintptr_t)of->dlfo_map_start &&
            o->end == (uintptr_t)of->dlfo_map_end && same(o->identity, of->dlfo_link_map))
            return o;
    return NULL;
}

static struct object *new_object(const struct dl_find_object *of)
{
    struct object *o = calloc(1, sizeof *o);
    char *identity = o ? identity_of(of->dlfo_link_map) : NULL;
    if (!identity) {
        free(o);
        return NULL;
    }
    o->start = (uintptr_t)of->dlfo_map_start;
    o->end = (uintptr_t)of->dlfo_map_end;
    o->identity = identity;
    o->next = atomic_load_explicit(&objects, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        &objects, &o->next, o, memory_order_release, memory_order_relaxed))
        ;
    return o;
}

/* Look it up and write it down. No signal handler may come in between: it might make a
 * call of its own, and neither the loader nor malloc could be entered a second time. */
static struct bl_target look_up(unsigned id, unsigned spelling, const void *caller,
                                const struct dl_find_object *of)
{
    struct bl_guard guard;
    Dl_info info;
    struct link_map *map = NULL;
    const char *name = "";
    bl_guard_enter(&guard);
    bl_loader_lock();
    struct object *o = known_object(of);
    o = o ? o : new_object(of);
    if (dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) && map && map->l_name)
        name = map->l_name;
    struct bl_target t = find(id, spelling, name);
    /* Another thread may have been here before; readers may be copying what it wrote. */
    struct found *found = o ? &o->found[id * BL_SPELLINGS + spelling] : NULL;
    if (found && t.fn && !atomic_load(&found->known)) {
        found->target = t;
        atomic_store_explicit(&found->known, true, memory_order_release);
    }
    bl_loader_unlock();
    bl_guard_leave(&guard);
    return t;
}

struct bl_target bl_find(unsigned id, unsigned spelling, const void *caller)
{
    struct dl_find_object of;
    if (_dl_find_object((void *)caller, &of) != 0)
        memset(&of, 0, sizeof of);
    struct object *o = known_object(&of);
    unsigned slot = id * BL_SPELLINGS + spelling;
    if (o && atomic_load_explicit(&o->found[slot].known, memory_order_acquire))
        return o->found[slot].target;
    return look_up(id, spelling, caller, &of);
}

void bl_forward(struct bl_target t, unsigned id, unsigned spelling, void **v)
{
    if (!t.fn)
        give_up(id, spelling, "no LAPACK found behind batchlapack");
    if (!t.narrow)
        bl_call_lapack(t.fn, bl_row(id)->nargs, v);
    else if (!call_narrow(t.fn, id, v))
        give_up(id, spelling, "only a 32-bit LAPACK found, and the sizes do not fit it");
}
