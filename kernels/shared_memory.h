/* More shared memory than every kernel gets.
 *
 * Used by launches of kernels that ask for more or less of it from call to call.
 */
#ifndef BL_SHARED_MEMORY_H
#define BL_SHARED_MEMORY_H

#include "family.h"

namespace bl
{

/* Let `kernel` have all that a block may ask for, but for what it has of its own, behind
 * which the rest begins at a multiple of 16. Never less: another thread may be between
 * this call and its own launch, which then fails even if what it asks for is below what
 * needs no permission. */
inline cudaError_t allow_all_shared(const void *kernel, const Card &card,
                                    size_t own_bytes = 0)
{
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                int(card.shared_bytes - (own_bytes + 15) / 16 * 16));
}

} // namespace bl
#endif
