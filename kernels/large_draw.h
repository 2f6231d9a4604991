/* Updates whose tiles are drawn: what several launches share; see large_draw.cuh. */
#ifndef BL_LARGE_DRAW_H
#define BL_LARGE_DRAW_H

#include "large.h"

namespace bl
{

/* Tiles are drawn from *drawn on: those from `begin` to `end` are this update's. A block
 * ends with a draw beyond the end, so that after `blocks` blocks in all the counter
 * stands at end + blocks, where the next update may begin.
 * The square of the first `hole` rows and columns, a multiple of a tile's, is left out.
 */
struct LargeDraw {
    unsigned *drawn;
    unsigned begin, end;
    int64_t hole = 0;
};

/* Whether u can be done so on this card: in double precision the update of a triangle. */
template <class T>
bool large_has_draw(const LargeUpdate<T> &u, const Card &card);

/* The number of u's tiles, but for such a square. */
template <class T>
int64_t large_tiles_to_draw(const LargeUpdate<T> &u, int64_t hole = 0);

/* All or a share of an update, by so many multiprocessors; `begun`, if it is not NULL, is
 * recorded when it has them. */
template <class T>
cudaError_t large_draw(const LargeUpdate<T> &u, const LargeDraw &draw, int processors,
                       cudaStream_t stream, cudaEvent_t begun = nullptr);

/* An update by as many blocks as it has tiles; `by_rows`, in single precision: C's rows
 * begin u.ldc after each other, and A and B are plain. */
template <class T>
cudaError_t large_by_tiles(const LargeUpdate<T> &u, bool by_rows, cudaStream_t stream);

} // namespace bl
#endif
