/* How Cholesky's jobs of order n <= 32 come to kernels of their own.
 *
 * engine.cu asks the family in tiny_cholesky.cu, which picks one of the kernels that
 * tiny_potrf.cu, tiny_posv.cu and tiny_potri.cu instantiate. None of them needs a work
 * space.
 */
#ifndef BL_TINY_CHOLESKY_H
#define BL_TINY_CHOLESKY_H

#include "family.h"

namespace bl
{

/* What such a kernel is told: a job, as far as it concerns one. */
struct TinyCholeskyArguments {
    struct bl_operand a, b, info;
    const struct bl_item *items;
    int64_t batch, nrhs;
    int n, int_size;
    char uplo;
    bool factored; /* A holds the factor already */
};

struct TinyCholeskyKernel {
    const void *kernel;
    int threads;  /* a block */
    int problems; /* a block */
    int lanes;    /* a problem */
    int packed;   /* bytes of shared memory a block has for them */
    int bytes;    /* and needs besides for each of its right-hand sides */
};

/* The kernel for order n, from the files of its instances. */
TinyCholeskyKernel tiny_potrf(int precision, int n, bool upper);
TinyCholeskyKernel tiny_posv(int precision, int n, bool upper);
TinyCholeskyKernel tiny_potri(int precision, int n);

/* The order the code for order n is written for. */
int tiny_cholesky_class(int64_t n);

} // namespace bl
#endif
