/* cuBLAS for BL_FAST: see large_blas.h.
 *
 * The engine is not linked with cuBLAS, which would load half a gigabyte into programs
 * that never come here. Types and constants are those of its C interface, which is stable
 * since version 4.
 */
#include <dlfcn.h>
#include <mutex>
#include <vector>
#include "large_blas.h"

namespace bl
{

namespace
{

using Handle = void *;
enum { OP_N, OP_T, OP_C };            /* cublasOperation_t */
constexpr int MOST = int(0x7fffffff); /* cuBLAS counts in int */

template <class T>
using Gemm = int (*)(Handle, int, int, int, int, int, const T *, const T *, int,
                     const T *, int, const T *, T *, int);

template <class T>
const char *gemm_name();
template <>
const char *gemm_name<float>()
{
    return "cublasSgemm_v2";
}
template <>
const char *gemm_name<double>()
{
    return "cublasDgemm_v2";
}
template <>
const char *gemm_name<Complex<float>>()
{
    return "cublasCgemm_v2";
}
template <>
const char *gemm_name<Complex<double>>()
{
    return "cublasZgemm_v2";
}

/* The library and the handles that nobody uses at the moment. Never closed: a handle may
 * have work in flight when the process ends. */
class Library
{
  public:
    static Library &get()
    {
        static Library *library = new Library;
        return *library;
    }
    template <class F>
    F find(const char *name) const
    {
        return opened ? (F)dlsym(opened, name) : nullptr;
    }
    /* NULL: there is none to be had. */
    Handle borrow(cudaStream_t stream, void *work)
    {
        Handle handle = nullptr;
        {
            std::lock_guard<std::mutex> lock(mutex);
            if (!idle.empty()) {
                handle = idle.back();
                idle.pop_back();
            }
        }
        if (!handle && (!create || create(&handle) != 0))
            return nullptr;
        if (set_stream(handle, stream) == 0 &&
            set_workspace(handle, work, LARGE_BLAS_BYTES) == 0)
            return handle;
        give_back(handle);
        return nullptr;
    }
    void give_back(Handle handle)
    {
        std::lock_guard<std::mutex> lock(mutex);
        idle.push_back(handle);
    }

  private:
    Library()
    {
        for (const char *name : {"libcublas.so.13", "libcublas.so.12"})
            if (!opened)
                opened = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        set_stream = find<int (*)(Handle, cudaStream_t)>("cublasSetStream_v2");
        set_workspace = find<int (*)(Handle, void *, size_t)>("cublasSetWorkspace_v2");
        if (set_stream && set_workspace)
            create = find<int (*)(Handle *)>("cublasCreate_v2");
    }
    void *opened = nullptr;
    int (*create)(Handle *) = nullptr;
    int (*set_stream)(Handle, cudaStream_t) = nullptr;
    int (*set_workspace)(Handle, void *, size_t) = nullptr;
    std::mutex mutex;
    std::vector<Handle> idle;
};

template <class T>
Gemm<T> gemm_of()
{
    static const Gemm<T> gemm = Library::get().find<Gemm<T>>(gemm_name<T>());
    return gemm;
}

/* C -= op(A) op(B), C m x n. */
template <class T>
bool multiply(int op_a, int op_b, int64_t m, int64_t n, int64_t k, const T *a,
              int64_t lda, const T *b, int64_t ldb, T *c, int64_t ldc, void *work,
              cudaStream_t stream)
{
    for (int64_t size : {m, n, k, lda, ldb, ldc})
        if (size > MOST || size < 1)
            return false;
    const Gemm<T> gemm = gemm_of<T>();
    Handle handle = gemm ? Library::get().borrow(stream, work) : nullptr;
    if (!handle)
        return false;
    const Real<T> minus[2] = {-1, 0}, plus[2] = {1, 0};
    const int failed = gemm(handle, op_a, op_b, int(m), int(n), int(k), (const T *)minus,
                            a, int(lda), b, int(ldb), (const T *)plus, c, int(ldc));
    Library::get().give_back(handle);
    return !failed;
}

} // namespace

template <class T>
bool large_blas_update(const LargeUpdate<T> &u, void *work, cudaStream_t stream)
{
    constexpr int TURN = Traits<T>::complex ? OP_C : OP_T;
    return u.part == WHOLE &&
           multiply(u.of_a == TURNED ? TURN : OP_N, u.of_b == TURNED ? TURN : OP_N, u.m,
                    u.n, u.k, u.a, u.lda, u.b, u.ldb, u.c, u.ldc, work, stream);
}

template <class T>
cudaError_t large_blas_update_rows(const LargeUpdate<T> &u, void *work,
                                   cudaStream_t stream)
{
    if (u.m < 1 || u.n < 1)
        return cudaSuccess;
    return multiply(u.of_b == TURNED ? OP_N : OP_T, OP_T, u.n, u.m, u.k, u.b, u.ldb, u.a,
                    u.lda, u.c, u.ldc, work, stream)
               ? cudaSuccess
               : cudaErrorUnknown;
}

template <class T>
bool has_large_blas()
{
    return gemm_of<T>();
}

#define BL_INSTANCE(T)                                                                   \
    template bool large_blas_update(const LargeUpdate<T> &, void *, cudaStream_t);       \
    template cudaError_t large_blas_update_rows(const LargeUpdate<T> &, void *,          \
                                                cudaStream_t);                           \
    template bool has_large_blas<T>();
BL_FOR_EACH_TYPE(BL_INSTANCE)

} // namespace bl
