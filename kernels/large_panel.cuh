/* The panel of a large LU factorisation, on chip across a thread-block cluster.
 *
 * Instantiated by large_panel_{s,d,c,z}.cu, launched by large_panel.cu; code for sm_90
 * and up only; test/host_large_panel.cc runs it too. A block owns rows of the panel, a
 * thread of its first warps R of them, in registers from the one read to the one write;
 * the last warp of a block is its postman. No row moves: a row has a label, its position.
 * Finished columns are stored where their rows came from; at the end the few rows whose
 * place is another go there.
 *
 * One exchange a column. Every block sends every block a letter with its best candidate
 * for the pivot of column j + 1 as soon as that column has taken the products of step j.
 * The letter carries what the next step needs of the row should it be chosen: the
 * reciprocal, the entries of columns j + 2 and j + 3, and the multiplier that the second
 * of these still lacks. The rest of the row follows from its owner alone and has a whole
 * step to arrive: products of step j with the columns from j + 4 on are formed in step j
 * + 1, while its letters travel. Each element still takes its products in ascending
 * order, each rounded.
 *
 * Why a mailbox is free when it is written again: a letter about column j + 4 is sent by
 * someone who has every letter about j + 3, whose senders had all letters about j + 2;
 * these were announced by each block's postman, once he had read those about j + 1. The
 * rows' warps are a column less behind. The rest of row j + 4 comes after every warp's
 * candidate for column j + 4, hence after its use of the rest of row j. A block ends when
 * it has waited for all letters that it is sent.
 */
#ifndef BL_LARGE_PANEL_CUH
#define BL_LARGE_PANEL_CUH

#include "large_panel_common.cuh"
#include "cluster.cuh"
#include "large_fetch.cuh"

namespace bl
{

constexpr int PANEL_TURN = 4; /* steps of a turn of the main loop */

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900

/* A candidate for the pivot of column j and what step j wants of its row. */
template <class T>
struct alignas(16) Letter {
    unsigned high, low; /* its magnitude: images as of tiny.cuh, 0: no candidate */
    int position;
    int scaling;
    T next[2]; /* columns j + 1, complete, and j + 2, without step j - 1's product */
    T last;    /* the row's multiplier of step j - 1 */
    T factor;  /* the reciprocal, or the pivot itself for SCALE_DIVIDE */
};

/* A block's shared memory, but for the finished columns. N columns. */
template <class T, int N>
struct PanelMail {
    Letter<T> letters[PANEL_TURN][32]; /* of a column, from each block or each warp */
    Letter<T> candidates[PANEL_WARPS]; /* of this block's warps */
    alignas(16) T rest[PANEL_TURN][N + PANEL_TURN]; /* of the chosen rows */
    alignas(16) T own[2][N + PANEL_TURN];           /* the same, before it is sent */
    uint64_t arrived[2], rest_arrived[PANEL_TURN], own_ready[2];
};

/* By all threads of a block. `arrivals`: how many threads say that a letter or a row has
 * arrived. */
template <class T, int N>
__device__ __forceinline__ void begin_mail(PanelMail<T, N> &mail, unsigned arrivals = 1)
{
    if (threadIdx.x == 0) {
        for (auto &barrier : mail.arrived)
            cluster::barrier_init(cluster::address(&barrier), arrivals);
        for (auto &barrier : mail.rest_arrived)
            cluster::barrier_init(cluster::address(&barrier), arrivals);
        for (auto &barrier : mail.own_ready)
            cluster::barrier_init(cluster::address(&barrier));
        cluster::barrier_publish();
    }
    for (int k = threadIdx.x; k < N + PANEL_TURN; k += blockDim.x)
        mail.rest[PANEL_TURN - 1][k] = from_real<T>(0); /* step 0 has no step before */
    __syncthreads();
}

/* The best of `count` letters. */
template <class T>
__device__ __forceinline__ int best_letter(const Letter<T> *letters, int count)
{
    const int lane = threadIdx.x % 32;
    uint4 head = {0, 0, ~0u, 0};
    if (lane < count)
        head = *(const uint4 *)&letters[lane];
    return best_lane(head.x, warp_max(head.x), head.y, head.z);
}

template <class T>
__device__ __forceinline__ void fetch_four(const T *p, T (&x)[4])
{
    uint4 raw[sizeof(T) / 4];
    BL_UNROLL
    for (unsigned i = 0; i < sizeof(T) / 4; i++)
        raw[i] = ((const uint4 *)p)[i];
    memcpy(x, raw, sizeof x);
}

/* Where the parts of a letter's rest lie: chunks of 16 bytes. */
template <class T>
__device__ __forceinline__ int first_chunk(int column)
{
    return column * int(sizeof(T)) / 16;
}
template <class T>
__device__ __forceinline__ int end_chunk(int columns)
{
    return (columns * int(sizeof(T)) + 15) / 16;
}

/* Where there are few warps each sends its candidate itself, which saves a meeting. */
__device__ __forceinline__ bool is_direct(int blocks, int warps)
{
    return blocks * warps <= 32;
}

/* A warp that sends: lane l serves block l % blocks, a power of two. */
template <class Mail>
struct PanelSender {
    const int share, shares;   /* lanes that serve one block, and which of them this is */
    const uint32_t own, there; /* the mail here, and in the block that this lane serves */

    __device__ __forceinline__ PanelSender(const Mail &mail, int blocks)
        : share(threadIdx.x % 32 >> cluster::log2_of(blocks)),
          shares(32 >> cluster::log2_of(blocks)), own(cluster::address(&mail)),
          there(cluster::remote(own, threadIdx.x % 32 & (blocks - 1)))
    {
    }

    __device__ __forceinline__ void send_chunk(const void *to, int i, uint4 x,
                                               const uint64_t *barrier) const
    {
        cluster::letter(there + (cluster::address(to) - own) + 16 * i, x,
                        there + (cluster::address(barrier) - own));
    }

    /* Chunks first .. end - 1 of 16 bytes to every block. */
    __device__ __forceinline__ void send(const void *from, const void *to, int first,
                                         int end, const uint64_t *barrier) const
    {
        for (int i = first + share; i < end; i += shares)
            send_chunk(to, i, ((const uint4 *)from)[i], barrier);
    }

    /* All lanes have read the letter before any of them sends: once this block has it,
     * its place may be written again. */
    template <class T>
    __device__ __forceinline__ void send(const Letter<T> &from, const Letter<T> *to,
                                         const uint64_t *barrier) const
    {
        constexpr int CHUNKS = int(sizeof from) / 16, FEWEST = 32 / PANEL_BLOCKS,
                      MOST = (CHUNKS + FEWEST - 1) / FEWEST;
        uint4 x[MOST] = {};
        BL_UNROLL
        for (int k = 0; k < MOST; k++)
            if (share + k * shares < CHUNKS)
                x[k] = ((const uint4 *)&from)[share + k * shares];
        __syncwarp();
        BL_UNROLL
        for (int k = 0; k < MOST; k++)
            if (share + k * shares < CHUNKS)
                send_chunk(to, share + k * shares, x[k], barrier);
    }
};

/* What the threads that own rows must know of how their block hears of others, here in a
 * cluster of `blocks`: letters come to every block, from every other or from all its
 * warps. */
template <class T, int N>
struct ClusterRows {
    const PanelSender<PanelMail<T, N>> sender;
    const bool direct;       /* the warps send themselves */
    const int count, number; /* letters, and of a warp that sends its number */

    __device__ __forceinline__ ClusterRows(const PanelMail<T, N> &mail, int threads,
                                           int blocks)
        : sender(mail, blocks), direct(is_direct(blocks, threads / 32)),
          count(direct ? blocks * (threads / 32) : blocks),
          number(cluster::rank() * (threads / 32) + threadIdx.x / 32)
    {
    }
    __device__ __forceinline__ int rank() const
    {
        return cluster::rank();
    }
    __device__ __forceinline__ void begin() const
    {
        cluster::begin();
    }
    /* Which of a column's letters is the best. */
    __device__ __forceinline__ int best(const Letter<T> *letters) const
    {
        return best_letter(letters, count);
    }
    /* This warp's candidate for column j is written. */
    __device__ __forceinline__ void offer(PanelMail<T, N> &mail, int j, int threads) const
    {
        if (direct)
            sender.send(mail.candidates[threadIdx.x / 32],
                        &mail.letters[j % PANEL_TURN][number], &mail.arrived[j % 2]);
        else
            cluster::come(1, threads + 32);
    }
    /* What any block has stored is there. */
    __device__ __forceinline__ void end(int) const
    {
        __syncwarp();
        cluster::release();
        cluster::acquire();
    }
};

/* The threads that own rows. a[r][k] is column j0 + k in the turn that begins at j0. */
template <class T, int N, int R, class Others>
struct PanelRows {
    PanelMail<T, N> &mail;
    T *done, *column; /* the next finished column, this thread's row 0: in shared memory,
                         `height` elements each, and in the matrix */
    const int64_t lda;
    const int height, w;
    bool finite = true; /* all that is stored */
    const Others others;
    T a[R][N], last[R]; /* last: the multiplier of the step before */
    int position[R];    /* -1: no row */

    __device__ __forceinline__ PanelRows(PanelMail<T, N> &m, T *finished, int threads,
                                         const LargePanel &g, int told)
        : mail(m), done(finished + threadIdx.x), column((T *)g.a), lda(g.lda),
          height(threads * R), w(g.w), others(m, threads, told)
    {
    }

    /* This warp's candidate for column j of the matrix, which is column K here; l are the
     * multipliers of the step before, and `between` is done while the warp searches. */
    template <int K, class F>
    __device__ __forceinline__ void propose(int j, const T (&l)[R], F between)
    {
        unsigned high, low;
        int best = 0, where = position[0];
        image_of(a[0][K], where >= j, where == j, high, low);
        T pivot = a[0][K];
        BL_UNROLL
        for (int r = 1; r < R; r++) {
            unsigned h, k;
            image_of(a[r][K], position[r] >= j, position[r] == j, h, k);
            if (h > high ||
                (h == high && (k > low || (k == low && position[r] < where)))) {
                high = h;
                low = k;
                where = position[r];
                pivot = a[r][K];
                best = r;
            }
        }
        const unsigned top = warp_max(high);
        between();
        ScalingOf<T> s = {quick_reciprocal(pivot), SCALE_MULTIPLY};
        T next0 = a[0][K + 1], next1 = a[0][K + 2], before = l[0];
        BL_UNROLL
        for (int r = 1; r < R; r++) {
            next0 = choose(r == best, a[r][K + 1], next0);
            next1 = choose(r == best, a[r][K + 2], next1);
            before = choose(r == best, l[r], before);
        }
        const bool rare = !is_plain(high, pivot, s.factor);
        const bool mine = int(threadIdx.x) % 32 == best_lane(high, top, low, where);
        if (mine && rare)
            s = careful_scaling(pivot);
        if (mine)
            mail.candidates[threadIdx.x / 32] = {
                high, low, where, s.scaling, {next0, next1}, before, s.factor};
        __syncwarp();
        others.offer(mail, j, height / R);
    }

    /* Step j = j0 + J. Where a row is finished, what is computed for it is thrown away.
     */
    template <int J>
    __device__ __forceinline__ void step(int j0)
    {
        const int j = j0 + J;
        if (j >= w)
            return;
        cluster::wait(cluster::address(&mail.arrived[J % 2]), J / 2 % 2);
        const Letter<T> *letters = mail.letters[J];
        const Letter<T> &chosen = letters[others.best(letters)];
        const int p = chosen.position, scaling = chosen.scaling;
        const T factor = chosen.factor, u1 = chosen.next[0];
        T l[R];
        BL_UNROLL
        for (int r = 0; r < R; r++) {
            l[r] = mul(factor, a[r][J]);
            if (scaling != SCALE_MULTIPLY)
                l[r] = carefully_scaled(a[r][J], factor, scaling);
            position[r] = position[r] == j ? p : position[r] == p ? j : position[r];
            const bool below = position[r] > j;
            a[r][J + 1] = choose(below, sub(a[r][J + 1], mul(l[r], u1)), a[r][J + 1]);
            l[r] = choose(below, l[r], a[r][J]);
        }
        if (j + 1 == w) {
            store(l);
            return;
        }
        /* The products of step j - 1 that are still to come; here for two columns. */
        const T *rest = mail.rest[(J + 3) % 4] + j0;
        propose<J + 1>(
            j + 1, l, [&]() __attribute__((always_inline)) {
                if (j > 0 && j + 2 < w)
                    cluster::wait(cluster::address(&mail.rest_arrived[(J + 3) % 4]),
                                  (j - 1) / 4 % 2);
                const T before2 = rest[J + 2], before3 = rest[J + 3];
                const T u2 = sub(chosen.next[1], mul(chosen.last, before2));
                BL_UNROLL
                for (int r = 0; r < R; r++) {
                    const bool open = position[r] >= j, below = position[r] > j;
                    T a2 = sub(a[r][J + 2], mul(last[r], before2));
                    T a3 = sub(a[r][J + 3], mul(last[r], before3));
                    a2 = choose(below, sub(a2, mul(l[r], u2)), a2);
                    a[r][J + 2] = choose(open, a2, a[r][J + 2]);
                    a[r][J + 3] = choose(open, a3, a[r][J + 3]);
                }
            });
        store(l);
        if (j + 3 < w) {
            BL_UNROLL
            for (int r = 0; r < R; r++)
                if (j > 0 && position[r] >= j)
                    update_from<J + 4>(r, w - j0, rest);
            publish<J>(j0);
        }
        BL_UNROLL
        for (int r = 0; r < R; r++)
            last[r] = l[r];
    }

    /* A finished column: to where the rows were read from, for most are to stay there. */
    __device__ __forceinline__ void store(const T (&l)[R])
    {
        BL_UNROLL
        for (int r = 0; r < R; r++) {
            put(&done[r * (height / R)], l[r]);
            if (position[r] < 0)
                continue;
            put_anywhere(column + r * (height / R), l[r]);
            finite = finite && is_finite(l[r]);
        }
        done += height;
        column += lda;
    }

    /* Columns BEGIN .. END - 1 of row r take their products of the step before. */
    template <int BEGIN, int END>
    __device__ __forceinline__ void update(int r, const T *rest)
    {
        BL_UNROLL
        for (int g = BEGIN / 4 * 4; g < END; g += 4) {
            T u[4];
            fetch_four(rest + g, u);
            BL_UNROLL
            for (int k = 0; k < 4; k++)
                if (g + k >= BEGIN && g + k < END)
                    a[r][g + k] = sub(a[r][g + k], mul(last[r], u[k]));
        }
    }

    /* From BEGIN on, as far as there are columns: they are few at the end. */
    template <int BEGIN>
    __device__ __forceinline__ void update_from(int r, int columns, const T *rest)
    {
        constexpr int END = BEGIN / 16 * 16 + 16 < N ? BEGIN / 16 * 16 + 16 : N;
        update<BEGIN, END>(r, rest);
        if constexpr (END < N)
            if (END < columns)
                update_from<END>(r, columns, rest);
    }

    /* The owner of the chosen row has all of it up to date and hands it to the postman.
     */
    template <int J>
    __device__ __forceinline__ void publish(int j0)
    {
        BL_UNROLL
        for (int r = 0; r < R; r++)
            if (position[r] == j0 + J) {
                T *own = mail.own[J % 2] + j0;
                BL_UNROLL
                for (int g = 0; g < N; g += 4)
                    if (j0 + g < w) {
                        BL_UNROLL
                        for (int k = 0; k < 4; k++)
                            if (g + k >= J + 3)
                                put(&own[g + k], a[r][g + k]);
                    }
                cluster::arrive(cluster::address(&mail.own_ready[J % 2]));
            }
    }

    /* From turn to turn. */
    __device__ __forceinline__ void shift()
    {
        BL_UNROLL
        for (int r = 0; r < R; r++) {
            BL_UNROLL
            for (int k = 0; k < N; k++)
                a[r][k] = k + PANEL_TURN < N ? a[r][k + PANEL_TURN] : from_real<T>(0);
        }
    }

    __device__ __forceinline__ void run(const LargePanel &g)
    {
        const int64_t first = int64_t(others.rank()) * height + threadIdx.x;
        column += first;
        BL_UNROLL
        for (int r = 0; r < R; r++) {
            const int64_t i = first + r * (height / R);
            position[r] = i < g.m ? int(i) : -1;
            last[r] = from_real<T>(0);
            load_row(a[r], column + r * (height / R), lda, w, i < g.m);
        }
        others.begin();
        propose<0>(0, last, [] {});
        for (int j0 = 0; j0 < w; j0 += PANEL_TURN) {
            if (j0 + PANEL_TURN >= w)
                let_next_begin();
            step<0>(j0);
            step<1>(j0);
            step<2>(j0);
            step<3>(j0);
            shift();
        }
        if (!finite)
            *g.odd = 1;
        others.end(height / R);
        done -= w * height;
        BL_UNROLL
        for (int r = 0; r < R; r++) {
            const int64_t i = first + r * (height / R);
            if (position[r] < 0 || position[r] == i)
                continue;
            for (int k = 0; k < w; k++)
                put_anywhere((T *)g.a + position[r] + k * lda,
                             fetch(&done[k * height + r * (height / R)]));
        }
    }
};

/* A block's last warp. It takes its warps' candidates to the other blocks and, where the
 * chosen row is the block's own, the rest of that row. In block 0 it also keeps IPIV. */
template <class T, int N>
struct PanelPostman {
    PanelMail<T, N> &mail;
    const int threads; /* of the block, himself included */
    const int w, blocks, rank, lane;
    const PanelSender<PanelMail<T, N>> sender;
    const bool direct;   /* the warps send themselves */
    const int per_block; /* letters, from each block */
    const int mine;      /* the first of this block's */
    int64_t zero = 0;    /* the column of the first zero pivot */
    unsigned phases = 0; /* bit i: of own_ready[i] */

    __device__ __forceinline__ PanelPostman(PanelMail<T, N> &m, int n, int columns)
        : mail(m), threads(n), w(columns), blocks(cluster::blocks()),
          rank(cluster::rank()), lane(threadIdx.x % 32), sender(m, blocks),
          direct(is_direct(blocks, n / 32 - 1)), per_block(direct ? n / 32 - 1 : 1),
          mine(rank * per_block)
    {
    }

    /* The candidate for column j. */
    __device__ __forceinline__ void carry(int j)
    {
        constexpr int SIZE = int(sizeof(Letter<T>));
        uint64_t *arrived = &mail.arrived[j % 2];
        if (lane == 0)
            cluster::arrive_expecting(cluster::address(arrived),
                                      SIZE * blocks * per_block);
        if (direct)
            return;
        cluster::await(1, threads);
        const int best = best_letter(mail.candidates, threads / 32 - 1);
        sender.send(mail.candidates[best], &mail.letters[j % PANEL_TURN][rank], arrived);
    }

    __device__ __forceinline__ void run(const LargePanel &g)
    {
        const Pivots pivots = {g.pivots, g.int_size, 0};
        cluster::begin();
        carry(0);
        for (int j = 0; j < w; j++) {
            cluster::wait(cluster::address(&mail.arrived[j % 2]), j / 2 % 2);
            const Letter<T> *letters = mail.letters[j % PANEL_TURN];
            const int best = best_letter(letters, blocks * per_block);
            if (rank == 0 && lane == 0) {
                pivots.set(j, g.offset + letters[best].position);
                if (letters[best].scaling == SCALE_ZERO && zero == 0)
                    zero = g.offset + j + 1;
            }
            if (j + 1 == w)
                break;
            const int first = first_chunk<T>(j + 3), end = end_chunk<T>(w);
            if (j + 3 < w && lane == 0)
                cluster::arrive_expecting(
                    cluster::address(&mail.rest_arrived[j % PANEL_TURN]),
                    16 * (end - first));
            carry(j + 1);
            if (j + 3 < w && best >= mine && best < mine + per_block) {
                cluster::wait(cluster::address(&mail.own_ready[j % 2]),
                              phases >> j % 2 & 1);
                phases ^= 1u << j % 2;
                sender.send(mail.own[j % 2], mail.rest[j % PANEL_TURN], first, end,
                            &mail.rest_arrived[j % PANEL_TURN]);
            }
        }
        if (rank == 0 && lane == 0 && zero && *g.info == 0)
            *g.info = zero;
        __syncwarp();
        cluster::release();
        cluster::acquire();
    }
};

#endif

#ifdef __CUDACC__
/* w <= N. Threads: at most WARPS warps of R rows a thread, and a warp more. Dynamic
 * shared memory: the finished columns, w times the rows of the block. */
template <class T, int N, int R, int WARPS>
__global__ void __launch_bounds__(32 * (WARPS + 1), 1) cluster_panel(const LargePanel g)
{
#    if __CUDA_ARCH__ >= 900
    __shared__ PanelMail<T, N> mail;
    extern __shared__ __align__(16) char finished[];
    const int threads = blockDim.x - 32;
    begin_mail(mail);
    await_previous();
    if (int(threadIdx.x) < threads) {
        PanelRows<T, N, R, ClusterRows<T, N>> rows(mail, (T *)finished, threads, g,
                                                   cluster::blocks());
        rows.run(g);
    } else {
        PanelPostman<T, N> postman(mail, blockDim.x, g.w);
        postman.run(g);
    }
#    else
    (void)g;
#    endif
}
#endif

} // namespace bl
#endif
