/* Read what --explain needs from an ELF file: its interpreter, the table's names that it
 * imports, defines or calls, and how it was linked.
 *
 * Not a byte of the file is trusted: every read goes through span().
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <stdio.h>
#include <unistd.h>

#include "launcher.h"

static const char *const routine_names[BL_IDS] = {
#define R_SDCZ(name, NAME, nargs, args) "s" #name, "d" #name, "c" #name, "z" #name,
#define B_SDCZ(name, NAME, OPERATION, nargs, args) R_SDCZ(name, NAME, nargs, args)
#include "routines.def"
};

/* What stands before and after such a name, for LAPACK's rows and for batched ones. */
static const char *const spellings[2][BL_SPELLINGS][2] = {
    {{"", "_"}, {"", "_64_"}, {"scipy_", "_"}, {"scipy_", "_64_"}},
    {{"", ""}, {"", "_"}, {"", "_64"}, {"", "_64_"}}};

static const char *const *spelling_of(int i)
{
    return spellings[i / BL_SPELLINGS >= BL_LAPACK_IDS][i % BL_SPELLINGS];
}

void name_of(char out[BL_SYMBOL_MAX], int i)
{
    const char *const *around = spelling_of(i);
    snprintf(out, BL_SYMBOL_MAX, "%s%s%s", around[0], routine_names[i / BL_SPELLINGS],
             around[1]);
}

const void *span(const struct object *o, uint64_t offset, uint64_t length)
{
    return offset <= o->size && length <= o->size - offset ? o->base + offset : NULL;
}

/* Entry i of a table of the file; by copy, as nothing promises its alignment. */
static bool entry(const struct object *o, uint64_t table, uint64_t i, void *to,
                  size_t size)
{
    const void *from = i > o->size / size ? NULL : span(o, table + i * size, size);
    memset(to, 0, size);
    if (from)
        memcpy(to, from, size);
    return from != NULL;
}

static bool section(const struct object *o, uint64_t i, Elf64_Shdr *to)
{
    return i < o->header.e_shnum && entry(o, o->header.e_shoff, i, to, sizeof *to);
}

/* Symbol i of a table and its name, "" when there is none. */
static const char *symbol(const struct object *o, const Elf64_Shdr *table, uint64_t i,
                          Elf64_Sym *to)
{
    Elf64_Shdr strings;
    if (!entry(o, table->sh_offset, i, to, sizeof *to) ||
        !section(o, table->sh_link, &strings) || to->st_name >= strings.sh_size)
        return "";
    const char *text = span(o, strings.sh_offset, strings.sh_size);
    return text && text[strings.sh_size - 1] == '\0' ? text + to->st_name : "";
}

static int name_index(const char *name)
{
    for (int i = 0; i < NAMES; i++) {
        const char *const *around = spelling_of(i),
                          *base = routine_names[i / BL_SPELLINGS];
        size_t before = strlen(around[0]), n = strlen(base);
        if (strncmp(name, around[0], before) == 0 &&
            strncmp(name + before, base, n) == 0 &&
            strcmp(name + before + n, around[1]) == 0)
            return i;
    }
    return -1;
}

static void note_symbol(struct object *o, const char *name, const Elf64_Sym *s)
{
    int i = name_index(name), seen = ELF64_ST_VISIBILITY(s->st_other);
    bool defined = s->st_shndx != SHN_UNDEF;
    if (!defined && (!strcmp(name, "dlopen") || !strcmp(name, "dlmopen")))
        o->dlopens = true;
    if (!defined && (!strncmp(name, "exec", 4) || !strncmp(name, "posix_spawn", 11) ||
                     !strcmp(name, "system") || !strcmp(name, "popen")))
        o->starts = true;
    if (i >= 0 && !defined)
        o->use[i] |= IMPORTS;
    if (i >= 0 && defined && ELF64_ST_BIND(s->st_info) != STB_LOCAL &&
        (seen == STV_DEFAULT || seen == STV_PROTECTED))
        o->use[i] |= DEFINES;
}

static void read_sections(struct object *o)
{
    Elf64_Shdr s, symbols;
    Elf64_Dyn d;
    Elf64_Sym y;
    Elf64_Rela r;
    for (unsigned i = 0; section(o, i, &s); i++) {
        if (s.sh_type == SHT_DYNAMIC)
            for (uint64_t k = 0; k < s.sh_size / sizeof d; k++) {
                if (!entry(o, s.sh_offset, k, &d, sizeof d) || d.d_tag == DT_NULL)
                    break;
                o->symbolic |= d.d_tag == DT_SYMBOLIC ||
                               (d.d_tag == DT_FLAGS && d.d_un.d_val & DF_SYMBOLIC);
                o->pie |= d.d_tag == DT_FLAGS_1 && d.d_un.d_val & DF_1_PIE;
            }
        if (s.sh_type == SHT_DYNSYM && span(o, s.sh_offset, s.sh_size))
            for (uint64_t k = 1; k < s.sh_size / sizeof y; k++) {
                const char *name = symbol(o, &s, k, &y);
                note_symbol(o, name, &y);
            }
        if (s.sh_type == SHT_RELA && span(o, s.sh_offset, s.sh_size) &&
            section(o, s.sh_link, &symbols) && symbols.sh_type == SHT_DYNSYM)
            for (uint64_t k = 0; k < s.sh_size / sizeof r; k++) {
                entry(o, s.sh_offset, k, &r, sizeof r);
                int n = ELF64_R_SYM(r.r_info)
                            ? name_index(symbol(o, &symbols, ELF64_R_SYM(r.r_info), &y))
                            : -1;
                if (n >= 0 && y.st_shndx != SHN_UNDEF)
                    o->use[n] |= CALLS_OWN;
            }
    }
}

const char *open_object(struct object *o, const char *path)
{
    struct stat st;
    *o = (struct object){.path = join(path, "", ""), .base = (const unsigned char *)""};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0)
        return strerror(errno);
    void *base = MAP_FAILED;
    if (S_ISREG(st.st_mode) && st.st_size > 0)
        base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (base != MAP_FAILED)
        o->base = base, o->size = (uint64_t)st.st_size;
    return S_ISDIR(st.st_mode)    ? strerror(EISDIR)
           : !S_ISREG(st.st_mode) ? "not a regular file"
                                  : NULL;
}

const char *read_elf(struct object *o, const struct object *self)
{
    static const char truncated[] = "a truncated ELF file";
    Elf64_Phdr p;
    if (!span(o, 0, SELFMAG) || memcmp(o->base, ELFMAG, SELFMAG) != 0)
        return "neither an ELF program nor a #! script";
    if (span(o, 0, EI_NIDENT) && o->base[EI_CLASS] == ELFCLASS32)
        return "32-bit";
    Elf64_Ehdr *h = &o->header;
    if (!entry(o, 0, 0, h, sizeof *h))
        return truncated;
    if (self && (h->e_ident[EI_CLASS] != ELFCLASS64 ||
                 h->e_ident[EI_DATA] != self->header.e_ident[EI_DATA] ||
                 h->e_machine != self->header.e_machine))
        return "built for another machine";
    if (h->e_phentsize != sizeof p ||
        (h->e_shnum && h->e_shentsize != sizeof(Elf64_Shdr)))
        return "a damaged ELF file";
    if (h->e_shnum && !span(o, h->e_shoff, h->e_shnum * sizeof(Elf64_Shdr)))
        return truncated;
    for (unsigned i = 0; i < h->e_phnum; i++) {
        if (!entry(o, h->e_phoff, i, &p, sizeof p) || !span(o, p.p_offset, p.p_filesz))
            return truncated;
        if (p.p_type == PT_INTERP && p.p_filesz &&
            o->base[p.p_offset + p.p_filesz - 1] == '\0')
            o->interpreter = (const char *)o->base + p.p_offset;
    }
    if (!h->e_shnum)
        printf("%s: stripped of section headers, its names cannot be read\n", o->path);
    read_sections(o);
    return NULL;
}
