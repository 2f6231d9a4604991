// A program whose own xerbla_ does not return: it leaves by longjmp, by throw, or by
// ending the thread. Usage: xerbla longjmp|throw|exit|cancel. After each such call, legal
// calls are made from deeper stack frames; the report must show them as calls, not as
// nested ones.
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

extern "C" {
void dgetrf_(const int *, const int *, double *, const int *, int *, int *);
void dgesv_(const int *, const int *, double *, const int *, int *, double *, const int *,
            int *);
void xerbla_(const char *, const int *, size_t);
}

static jmp_buf back;
static const char *way;
static int seen;

void xerbla_(const char *, const int *info, size_t)
{
    seen = *info;
    switch (*way) {
    case 'l':
        longjmp(back, 1);
    case 't':
        throw *info;
    case 'e':
        pthread_exit(nullptr);
    default:
        pthread_cancel(pthread_self());
        pthread_testcancel();
    }
}

static void illegal()
{
    double a[4] = {0, 1, 2, 3}, b[2] = {2, 4};
    int n = 2, one = 1, bad = 1, ipiv[2], info;
    dgesv_(&n, &one, a, &bad, ipiv, b, &n, &info);
}

static int legal()
{
    double a[4] = {0, 1, 2, 3};
    int n = 2, ipiv[2] = {0, 0}, info = -99;
    dgetrf_(&n, &n, a, &n, ipiv, &info);
    return info == 0 && ipiv[0] == 2 && ipiv[1] == 2;
}

/* The unwritten room keeps whatever the failed call left on the stack as it was. */
__attribute__((noinline)) static int deeper(int depth)
{
    volatile char room[16384];
    room[0] = 0;
    return (depth == 0 ? legal() : deeper(depth - 1)) + room[0];
}

static void *thread(void *)
{
    illegal();
    return &seen;
}

int main(int, char **argv)
{
    int right = 0;
    way = argv[1];
    for (volatile int i = 0; i < 5; i = i + 1) {
        pthread_t t;
        void *result = nullptr;
        if (*way == 'l') {
            if (!setjmp(back))
                illegal();
        } else if (*way == 't') {
            try {
                illegal();
            } catch (int) {
            }
        } else {
            pthread_create(&t, nullptr, thread, nullptr);
            pthread_join(t, &result);
        }
        right += seen == 4 && result != &seen && deeper(i);
        seen = 0;
    }
    printf("%d\n", right);
    return 0;
}
