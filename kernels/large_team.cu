/* The panel of a large LU by a team of blocks in global memory: any height, any card.
 *
 * Called by large.cu where the panel does not fit on the chip. The order of operations
 * and which products are left out are lu.cuh's, netlib's own.
 */
#include "large.h"
#include "lu.cuh"

namespace bl
{

namespace
{

constexpr int TEAM_THREADS = 256;

/* A team of gridDim.x blocks; `control` holds its Control, zeroed. */
template <class T>
__global__ void __launch_bounds__(TEAM_THREADS)
    factor_by_team(const LargePanel<T> p, Control *control)
{
    Team team;
    team.thread = threadIdx.x;
    team.threads = blockDim.x;
    team.block = blockIdx.x;
    team.blocks = gridDim.x;
    team.control = control;
    const Pivots pivots = {p.ipiv, p.int_size, 0};
    const int64_t zero = lu_panel(team, p.m, p.n, p.a, p.lda, pivots);
    team.sync();
    for (int64_t k = team.rank(); k < least(p.m, p.n); k += team.size())
        pivots.set(k, pivots.get(k) + p.base);
    const Pivots info = {p.info, p.int_size, 0};
    if (team.rank() == 0 && zero && info.get(0) < 0)
        info.set(0, p.base + zero - 1);
}

} // namespace

size_t large_team_bytes(const Card &card)
{
    return (sizeof(Control) + 2 * card.processors * sizeof(Best) + 255) / 256 * 256;
}

template <class T>
cudaError_t large_team(const LargePanel<T> &p, void *work, const Card &card,
                       cudaStream_t stream)
{
    LargePanel<T> panel = p;
    Control *control = (Control *)work;
    void *parameters[] = {&panel, &control};
    const void *kernel = (const void *)factor_by_team<T>;
    const int64_t useful = (p.m + 511) / 512, most = card.processors;
    const int blocks = !card.cooperative ? 1 : int(useful < most ? useful : most);
    if (blocks > 1) {
        cudaError_t error = cudaMemsetAsync(work, 0, large_team_bytes(card), stream);
        if (error == cudaSuccess)
            error = cudaLaunchCooperativeKernel(kernel, dim3(unsigned(blocks)),
                                                dim3(TEAM_THREADS), parameters, 0, stream);
        if (error != cudaErrorCooperativeLaunchTooLarge)
            return error;
        (void)cudaGetLastError(); /* part of the card only */
    }
    return cudaLaunchKernel(kernel, dim3(1), dim3(TEAM_THREADS), parameters, 0, stream);
}

#define BL_INSTANCE(T)                                                                   \
    template cudaError_t large_team(const LargePanel<T> &, void *, const Card &,         \
                                    cudaStream_t);
#ifdef ONLY
BL_INSTANCE(ONLY)
#else
BL_INSTANCE(float)
BL_INSTANCE(double)
BL_INSTANCE(Complex<float>)
BL_INSTANCE(Complex<double>)
#endif

} // namespace bl
