/* C callers that pass no hidden string lengths, or such of the wrong width: what lies
 * above the arguments belongs to the caller and must be left alone. Usage: hidden; a line
 * a case. On x86-64 each call is made with a known pattern in the stack words above its
 * arguments; elsewhere with locals as canaries.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void void_fn(void);
void dposv_(const char *, const int *, const int *, double *, const int *, double *,
            const int *, int *);
void dpotrs_(const char *, const int *, const int *, const double *, const int *,
             double *, const int *, int *);
void dgetrs_(const char *, const int *, const int *, const double *, const int *,
             const int *, double *, const int *, int *);

#define WORDS 16
static const char *const lengths[] = {"none", "size_t", "int"};

static uint64_t pattern(int kind, int i)
{
    static const uint64_t first[] = {0x5aa5c33c0ff01234, 1, 0xdeadbeef00000001};
    return i ? 0x1122334455667788 * (unsigned)i : first[kind];
}

/* Call f(v...) with the pattern right above the stack arguments; true if it is intact. */
static int call(void_fn *f, void **v, int nargs, int kind)
{
    uint64_t canary[WORDS];
    int stacked = nargs - 6;
    for (int i = 0; i < WORDS; i++)
        canary[i] = i < stacked ? (uint64_t)v[6 + i] : pattern(kind, i - stacked);
#ifdef __x86_64__
    uint64_t after[WORDS];
    void *p = v, *from = canary, *to = after;
    /* rsp is kept in rbx; the pushed words lie where the callee looks for arguments. */
    __asm__ volatile("mov %%rsp, %%rbx\n\t"
                     "sub $256, %%rsp\n\t" /* past the red zone */
                     "and $-16, %%rsp\n\t"
                     "sub $128, %%rsp\n\t"
                     "mov %[from], %%rsi\n\t"
                     "mov %%rsp, %%rdi\n\t"
                     "mov $16, %%ecx\n\t"
                     "cld\n\trep movsq\n\t"
                     "mov %[p], %%r11\n\t"
                     "mov 0(%%r11), %%rdi\n\tmov 8(%%r11), %%rsi\n\t"
                     "mov 16(%%r11), %%rdx\n\tmov 24(%%r11), %%rcx\n\t"
                     "mov 32(%%r11), %%r8\n\tmov 40(%%r11), %%r9\n\t"
                     "xor %%eax, %%eax\n\t"
                     "call *%[f]\n\t"
                     "mov %%rsp, %%rsi\n\t"
                     "mov %[to], %%rdi\n\t"
                     "mov $16, %%ecx\n\t"
                     "rep movsq\n\t"
                     "mov %%rbx, %%rsp"
                     : [p] "+r"(p), [from] "+r"(from)
                     : [f] "r"(f), [to] "r"(to)
                     : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11",
                       "memory", "cc");
    return memcmp(canary + stacked, after + stacked,
                  sizeof(uint64_t) * (size_t)(WORDS - stacked)) == 0;
#else
    (void)f;
    return 1;
#endif
}

/* The same as C programs write it. */
__attribute__((noinline)) static int plain(int which)
{
    volatile uint64_t low[4] = {1, 2, 3, 4};
    double a[4] = {4, 2, 2, 5}, b[2] = {8, 9}, l[4] = {2, 1, 0, 2}, lu[4] = {4, .5, 2, 4};
    volatile uint64_t high[4] = {5, 6, 7, 8};
    int n = 2, one = 1, info = -99, ipiv[2] = {1, 2};
    if (which == 0)
        dposv_("L", &n, &one, a, &n, b, &n, &info);
    else if (which == 1)
        dpotrs_("L", &n, &one, l, &n, b, &n, &info);
    else
        dgetrs_("N", &n, &one, lu, &n, ipiv, b, &n, &info);
    for (uint64_t i = 0; i < 4; i++)
        if (low[i] != i + 1 || high[i] != i + 5)
            return 0;
    return info == 0 && b[0] == 1.375 && b[1] == 1.25;
}

int main(void)
{
    static const char *const names[] = {"dposv", "dpotrs", "dgetrs"};
    int wrong = 0;
    for (int which = 0; which < 3; which++) {
        if (!plain(which) && ++wrong)
            printf("%s, plain C: wrong\n", names[which]);
        for (int kind = 0; kind < 3; kind++) {
            double a[4] = {4, 2, 2, 5}, b[2] = {8, 9}, l[4] = {2, 1, 0, 2};
            double lu[4] = {4, .5, 2, 4};
            int n = 2, one = 1, info = -99, ipiv[2] = {1, 2};
            void *posv[] = {"L", &n, &one, a, &n, b, &n, &info};
            void *potrs[] = {"L", &n, &one, l, &n, b, &n, &info};
            void *getrs[] = {"N", &n, &one, lu, &n, ipiv, b, &n, &info};
            int intact = which == 0   ? call((void_fn *)dposv_, posv, 8, kind)
                         : which == 1 ? call((void_fn *)dpotrs_, potrs, 8, kind)
                                      : call((void_fn *)dgetrs_, getrs, 9, kind);
            int right = info == 0 && b[0] == 1.375 && b[1] == 1.25;
#ifndef __x86_64__
            right = intact;
#endif
            if ((!intact || !right) && ++wrong)
                printf("%s, length %s: %s, x = %g %g\n", names[which], lengths[kind],
                       intact ? "intact" : "stack overwritten", b[0], b[1]);
        }
    }
    printf("%d wrong\n", wrong);
    return 0;
}
