/* What the launcher's files share: messages, names, and an ELF object as far as --explain
 * looks at it. */
#ifndef LAUNCHER_H
#define LAUNCHER_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bl.h"
#include "command.h"

#define LIBRARY "libbatchlapack.so"
#define LENGTH(a) (sizeof(a) / sizeof *(a))

/* ---- batchlapack-run.c ---- */

char *join(const char *a, const char *b, const char *c);
const char *base_name(const char *path);
bool is_ours(const char *path); /* any build of the library, under any version */

/* ---- explain.c ---- */

/* Say whether `name` can be served, without running it. 0 yes, 1 no, 2 cannot say. */
int explain(const char *name);

/* ---- elf_object.c ---- */

/* Every name that the library exports for a routine: the table's rows in four precisions
 * and, as in entries.c, four spellings. */
enum { NAMES = BL_IDS * BL_SPELLINGS };
void name_of(char out[BL_SYMBOL_MAX], int i);

/* How an object uses a name. CALLS_OWN: it exports the name and its own relocations name
 * it, so that its own calls go through the loader although nothing is undefined. */
enum { IMPORTS = 1, DEFINES = 2, CALLS_OWN = 4 };

struct object {
    char *path;
    const unsigned char *base; /* the mapped file */
    uint64_t size;
    Elf64_Ehdr header;
    const char *interpreter; /* PT_INTERP */
    bool symbolic, pie, dlopens;
    bool starts; /* other programs */
    unsigned char use[NAMES];
};

/* Map a file. NULL, or why not. */
const char *open_object(struct object *o, const char *path);

/* Read a mapped file. NULL, or why a program like `self` (if any) cannot load it. */
const char *read_elf(struct object *o, const struct object *self);

/* Bytes of the file, NULL beyond its end: every read goes through this. */
const void *span(const struct object *o, uint64_t offset, uint64_t length);

#endif
