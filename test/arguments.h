/* The arguments of one LAPACK call by value, and the pointer list that the letters of its
 * row in routines.def ask for. Shared by the mock engine and the tests. */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include "bl.h"

struct arguments {
    char uplo, trans;
    int32_t m, n, nrhs, lda, ldb, lwork, info;
    void *a, *b, *ipiv, *work;
    void *v[BL_MAX_ARGS]; /* filled by pack_arguments; points into this struct */
    unsigned count;
};

static inline void pack_arguments(struct arguments *x, unsigned id)
{
    char matrix = 0;
    x->count = 0;
    for (const char *letter = bl_row(id)->args; *letter; letter++) {
        void **next = &x->v[x->count++];
        switch (*letter) {
        case 'm':
            *next = &x->m;
            break;
        case 'n':
            *next = &x->n;
            break;
        case 'r':
            *next = &x->nrhs;
            break;
        case 'u':
            *next = &x->uplo;
            break;
        case 't':
            *next = &x->trans;
            break;
        case 'a':
        case 'A':
            *next = x->a;
            matrix = 'a';
            break;
        case 'B':
            *next = x->b;
            matrix = 'b';
            break;
        case 'l':
            *next = matrix == 'a' ? &x->lda : &x->ldb;
            break;
        case 'p':
        case 'P':
            *next = x->ipiv;
            break;
        case 'W':
            *next = x->work;
            break;
        case 'q':
            *next = &x->lwork;
            break;
        case 'i':
            *next = &x->info;
            break;
        }
    }
}

#endif
