/* The panel of a large LU factorisation, on chip across the whole card.
 *
 * Instantiated by large_panel_{s,d,c,z}.cu, launched cooperatively by large_panel.cu;
 * code for sm_90 and up only. Rows are treated as in large_panel.cuh, whose comment comes
 * first: what is here is how blocks that share no cluster hear of each other. A block's
 * last two warps, the postman and his mate, are its only ones that do.
 *
 * Its block's best candidate for column j goes out as a head, by which all choose, and a
 * body, which only the chosen one's is read of: this is the postman's. The rest of the
 * chosen row follows when its owner has it up to date, which the others do not wait for:
 * this is his mate's. Both hand the block what they read, and then only look for more.
 * All is written in COPIES, that not all blocks read the same line.
 *
 * Why a packet is read when it is written again, two columns later: a block writes head
 * and body of column j + 2 once its warps have offered their candidates for it, hence
 * when it has read all heads of j + 1, whose writers had read head and body of j. The
 * rest of j
 * + 2 comes after all heads of j + 2, whose writers had used the rest of j.
 */
#ifndef BL_LARGE_PANEL_CARD_CUH
#define BL_LARGE_PANEL_CARD_CUH

#include "large_panel.cuh"

namespace bl
{

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900

/* Packets of 12 bytes for what takes `bytes`. */
__host__ __device__ constexpr int packets_of(int bytes)
{
    return (bytes + 11) / 12;
}

/* Bytes 12 i .. 12 i + 11 of what lies at `from` and takes `bytes`, and back. */
__device__ __forceinline__ Packet packed(const void *from, int i, int bytes,
                                         unsigned number)
{
    Packet p = {{0, 0, 0}, number};
    BL_UNROLL
    for (int k = 0; k < 3; k++)
        if (12 * i + 4 * k < bytes)
            memcpy(&p.x[k], (const char *)from + 12 * i + 4 * k, 4);
    return p;
}
__device__ __forceinline__ void unpack(const Packet &p, void *to, int i, int bytes)
{
    BL_UNROLL
    for (int k = 0; k < 3; k++)
        if (12 * i + 4 * k < bytes)
            memcpy((char *)to + 12 * i + 4 * k, &p.x[k], 4);
}

/* Where the packets about column j are. */
template <class T, int N>
struct CardBoard {
    static constexpr int COPIES = CARD_COPIES, BODY = packets_of(4 * sizeof(T)),
                         REST = packets_of(N * sizeof(T)),
                         BLOCK = 2 * COPIES * (1 + BODY);
    static_assert(BODY <= 6 && REST <= 32, "a lane has one of them; card_bytes()");
    Packet *packets;
    int blocks;

    __device__ __forceinline__ Packet *head(int j, int copy, int block) const
    {
        return packets + (2 * copy + j % 2) * blocks + block;
    }
    __device__ __forceinline__ Packet *body(int j, int copy, int block) const
    {
        return packets + (2 * COPIES + (2 * copy + j % 2) * BODY) * blocks + block * BODY;
    }
    __device__ __forceinline__ Packet *rest(int j, int copy) const
    {
        return packets + BLOCK * blocks + (2 * copy + j % 2) * REST;
    }
};

/* For the threads of a block that own rows: there is one letter a column, which the
 * postman has chosen. */
template <class T, int N>
struct CardRows {
    const int block;

    __device__ __forceinline__ CardRows(const PanelMail<T, N> &, int, int number)
        : block(number)
    {
    }
    __device__ __forceinline__ int rank() const
    {
        return block;
    }
    __device__ __forceinline__ void begin() const
    {
    }
    __device__ __forceinline__ int best(const Letter<T> *) const
    {
        return 0;
    }
    __device__ __forceinline__ void offer(PanelMail<T, N> &, int, int threads) const
    {
        cluster::come(1, threads + 32);
    }
    /* The postman meets the other blocks in between. */
    __device__ __forceinline__ void end(int threads) const
    {
        cluster::await(2, threads + 32);
        cluster::await(2, threads + 32);
    }
};

template <class T, int N>
struct CardPostman {
    using Board = CardBoard<T, N>;
    PanelMail<T, N> &mail;
    const Board board;
    const int threads, w, block, lane, copy;
    int64_t zero = 0; /* the column of the first zero pivot */

    __device__ __forceinline__ CardPostman(PanelMail<T, N> &m, int n, const LargePanel &g,
                                           int number, int blocks)
        : mail(m), board{(Packet *)g.work, blocks}, threads(n), w(g.w), block(number),
          lane(threadIdx.x % 32), copy(block % Board::COPIES)
    {
    }

    /* The block's candidate for column j goes to all. */
    __device__ __forceinline__ void carry(int j)
    {
        cluster::await(1, threads);
        const int best = best_letter(mail.candidates, threads / 32 - 1);
        const Letter<T> &x = mail.candidates[best];
        constexpr int ALL = 1 + Board::BODY;
        BL_UNROLL
        for (int k = 0; k < Board::COPIES * ALL; k += 32) {
            const int which = (k + lane) / ALL, i = (k + lane) % ALL;
            if (which >= Board::COPIES)
                continue;
            if (i == Board::BODY)
                send(board.head(j, which, block),
                     {{x.high, x.low, unsigned(x.position) << 2 | unsigned(x.scaling)},
                      unsigned(j + 1)});
            else
                send(board.body(j, which, block) + i,
                     packed(x.next, i, 4 * sizeof(T), unsigned(j + 1)));
        }
    }

    /* All heads about column j: the best one's third word, and whose it is. */
    __device__ __forceinline__ unsigned choose(int j, int &of)
    {
        constexpr int SHARE = CARD_BLOCKS / 32;
        Packet p[SHARE] = {};
        until([&] {
            bool whole = true;
            BL_UNROLL
            for (int i = 0; i < SHARE; i++) {
                const int b = lane + 32 * i;
                if (b < board.blocks && p[i].number != unsigned(j + 1))
                    p[i] = look(board.head(j, copy, b));
            }
            BL_UNROLL
            for (int i = 0; i < SHARE; i++)
                whole = whole &&
                        (lane + 32 * i >= board.blocks || p[i].number == unsigned(j + 1));
            return whole;
        });
        auto image = [](const Packet &x) { return uint64_t(x.x[0]) << 32 | x.x[1]; };
        int best = lane;
        Packet q = p[0];
        BL_UNROLL
        for (int i = 1; i < SHARE; i++) {
            const bool better = (image(p[i]) > image(q)) |
                                ((image(p[i]) == image(q)) & (p[i].x[2] < q.x[2]));
            q = better ? p[i] : q;
            best = better ? lane + 32 * i : best;
        }
        __syncwarp();
        const int from = best_lane(q.x[0], warp_max(q.x[0]), q.x[1], q.x[2]);
        of = from_lane(best, from);
        return from_lane(q.x[2], from);
    }

    /* The letter about column j reaches the block; its first word says whether the chosen
     * row is the block's own. */
    __device__ __forceinline__ void receive(int j, const Pivots &pivots, int64_t offset)
    {
        int of;
        const unsigned head = choose(j, of);
        const bool has_body = lane < Board::BODY;
        const Packet *const at = board.body(j, copy, of) + (has_body ? lane : 0);
        Packet body = {};
        until([&] {
            if (has_body)
                body = look(at);
            return !has_body || body.number == unsigned(j + 1);
        });
        Letter<T> &letter = mail.letters[j % PANEL_TURN][0];
        const int position = int(head >> 2), scaling = int(head & 3);
        if (has_body)
            unpack(body, letter.next, lane, 4 * sizeof(T));
        if (lane == 0) {
            letter.high = of == block;
            letter.position = position;
            letter.scaling = scaling;
        }
        /* Every lane, which costs no time and which racecheck understands. */
        cluster::arrive(cluster::address(&mail.arrived[j % 2]));
        if (block == 0 && lane == 0) {
            pivots.set(j, offset + position);
            if (scaling == SCALE_ZERO && zero == 0)
                zero = offset + j + 1;
        }
    }

    /* What any block has stored is there. */
    __device__ __forceinline__ void meet_all()
    {
        cluster::await(2, threads);
        __threadfence();
        __syncwarp();
        if (lane < Board::COPIES)
            send(board.head(w, lane, block), {{0, 0, 0}, unsigned(w + 1)});
        int of;
        choose(w, of);
        __threadfence();
        cluster::await(2, threads);
    }

    __device__ __forceinline__ void run(const LargePanel &g)
    {
        const Pivots pivots = {g.pivots, g.int_size, 0};
        for (int j = 0; j < w; j++) {
            carry(j);
            receive(j, pivots, g.offset);
        }
        if (block == 0 && lane == 0 && zero && *g.info == 0)
            *g.info = zero;
        meet_all();
    }
};

/* Columns j + 3 .. w - 1 of the row that was chosen for column j. */
template <class T, int N>
struct CardMate {
    using Board = CardBoard<T, N>;
    PanelMail<T, N> &mail;
    const Board board;
    const int w, lane, copy;
    unsigned phases = 0; /* bit i: of own_ready[i] */

    __device__ __forceinline__ CardMate(PanelMail<T, N> &m, const LargePanel &g,
                                        int block, int blocks)
        : mail(m), board{(Packet *)g.work, blocks}, w(g.w), lane(threadIdx.x % 32),
          copy(block % Board::COPIES)
    {
    }

    __device__ __forceinline__ void carry(int j)
    {
        cluster::wait(cluster::address(&mail.own_ready[j % 2]), phases >> j % 2 & 1);
        phases ^= 1u << j % 2;
        if (lane < Board::REST)
            BL_UNROLL
        for (int which = 0; which < Board::COPIES; which++)
            send(board.rest(j, which) + lane,
                 packed(mail.own[j % 2], lane, w * int(sizeof(T)), unsigned(j + 1)));
    }

    __device__ __forceinline__ void receive(int j)
    {
        const bool waits = lane >= (j + 3) * int(sizeof(T)) / 12 &&
                           lane < packets_of(w * int(sizeof(T)));
        Packet rest = {};
        until([&] {
            if (waits)
                rest = look(board.rest(j, copy) + lane);
            return !waits || rest.number == unsigned(j + 1);
        });
        if (waits)
            unpack(rest, mail.rest[j % PANEL_TURN], lane, w * int(sizeof(T)));
        cluster::arrive(cluster::address(&mail.rest_arrived[j % PANEL_TURN]));
    }

    __device__ __forceinline__ void run()
    {
        for (int j = 0; j + 3 < w; j++) {
            cluster::wait(cluster::address(&mail.arrived[j % 2]), j / 2 % 2);
            if (mail.letters[j % PANEL_TURN][0].high)
                carry(j);
            receive(j);
        }
    }
};

#endif

#ifdef __CUDACC__
/* w <= N. Threads: at most WARPS warps of R rows a thread, and two warps more. Dynamic
 * shared memory: the finished columns, w times the rows of the block. */
template <class T, int N, int R, int WARPS>
__global__ void __launch_bounds__(32 * (WARPS + CARD_POSTMEN), 1)
    card_panel(const LargePanel g)
{
#    if __CUDA_ARCH__ >= 900
    __shared__ PanelMail<T, N> mail;
    extern __shared__ __align__(16) char finished[];
    const int threads = blockDim.x - 32 * CARD_POSTMEN, me = threadIdx.x,
              block = blockIdx.x;
    begin_mail(mail, 32);
    if (me < threads) {
        PanelRows<T, N, R, CardRows<T, N>> rows(mail, (T *)finished, threads, g, block);
        rows.run(g);
    } else if (me < threads + 32) {
        CardPostman<T, N> postman(mail, threads + 32, g, block, gridDim.x);
        postman.run(g);
    } else {
        CardMate<T, N> mate(mail, g, block, gridDim.x);
        mate.run();
    }
#    else
    (void)g;
#    endif
}
#endif

} // namespace bl
#endif
