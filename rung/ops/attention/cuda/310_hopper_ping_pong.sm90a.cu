// SPDX-License-Identifier: Apache-2.0
// attention / hopper ping pong
//
// Idea     Overlap exponentials with tensor-core products at two levels. Within a warpgroup, the
//          scores of the next tile are multiplied together with P V of the current one, and their
//          softmax runs while P V still does. Between warpgroups, named barriers order the issue of
//          products, so that one warpgroup's softmax overlaps the other's products.
// Changes  against hopper_pipelined: the overlap, and persistent blocks that take query tiles from
//          a counter, those with most keys first. The producer loads the next queries while the
//          consumers store the previous results.
// Cost     Same as hopper_pipelined.
// Limits   Same as hopper_pipelined, and only plain scores (with a soft cap, slopes or a bias the
//          registers spill) and no packed rows.
// Source   Shah et al. 2024, FlashAttention-3, "Pingpong scheduling" and "Intra-warpgroup overlap".
#include "rung/device/block_work.hpp"
#include "rung/device/ptx/hopper.hpp"
#include "rung/device/ptx/memory.hpp"
#include "rung/device/stage_ring.hpp"
#include "rung/device/tickets.hpp"
#include "rung/ops/attention/cuda/detail/facts.hpp"
#include "rung/ops/attention/cuda/detail/hopper_job.hpp"

namespace rung {
namespace {

using namespace attention_cuda;

/// Tile sizes of one padded width of Q, K and V rows.
struct Tuning {
  int groups;                                  // consumer warpgroups of 64 queries each
  int keys;                                    // per tile
  int stages;                                  // of K and of V
  int q_stages;                                // of Q; reused for O
  int producer_registers, consumer_registers;  // all threads: at most 64 Ki
  [[nodiscard]] constexpr int rows() const { return group_rows * groups; }
  [[nodiscard]] constexpr int threads() const { return warpgroup * (groups + 1); }
};
// A consumer thread holds keys / 2 scores, width / 2 sums and keys / 4 registers of P.
template <int Width>
constexpr Tuning tuning = {.groups = 2,
                           .keys = 128,
                           .stages = 2,
                           .q_stages = 2,
                           .producer_registers = 24,
                           .consumer_registers = 240};
template <>
constexpr Tuning tuning<64> = {.groups = 3,
                               .keys = 128,
                               .stages = 2,
                               .q_stages = 2,
                               .producer_registers = 32,
                               .consumer_registers = 160};
template <>
constexpr Tuning tuning<256> = {.groups = 2,
                                .keys = 80,
                                .stages = 2,
                                .q_stages = 1,
                                .producer_registers = 24,
                                .consumer_registers = 240};

template <class T, int Width>
struct Layout {
  using TileQ = PanelTile<T, tuning<Width>.rows(), Width>;  // reused for O at the end
  using TileK = PanelTile<T, tuning<Width>.keys, Width>;    // also for V
  alignas(1024) unsigned char q[tuning<Width>.q_stages][TileQ::bytes];
  alignas(1024) unsigned char k[tuning<Width>.stages][TileK::bytes];
  alignas(1024) unsigned char v[tuning<Width>.stages][TileK::bytes];
  int tile[tuning<Width>.q_stages];  // query tile in each stage of Q
  StageRing<tuning<Width>.q_stages> ring_q;
  StageRing<tuning<Width>.stages> ring_k, ring_v;
};

/// Global counters: `taken`, of query tiles handed out after the blocks' first ones, and `left`, of
/// blocks that have finished. Both are zero between launches.
struct Tickets {
  unsigned taken, left;
};

/// Returns the next query tile; a block's first tile is its block index.
__device__ __forceinline__ int take_tile(Tickets* tickets) {
  return static_cast<int>(gridDim.x + atomicAdd(&tickets->taken, 1U));
}
/// Counts a finished block; the last block resets the tickets. Each block calls it once, after its
/// last tile.
__device__ __forceinline__ void return_tickets(Tickets* tickets) {
  if (ptx::atomic_add_acquire_release(&tickets->left, 1U) + 1 == gridDim.x) *tickets = {};
}

template <class T>
struct PingPongJob : HopperJob<T> {
  Tickets* tickets;
};

/// Turn order of warpgroups that issue products: group 0, 1, ..., and 0 again.
template <int Groups>
struct Turns {
  static constexpr int first_barrier = 1;
  static constexpr int free_barrier = first_barrier + Groups;
  int group;

  /// begin() and end() are called by all threads of all groups, before the first turn and after the
  /// last.
  __device__ __forceinline__ void begin() const {
    if (group == Groups - 1) ptx::barrier_arrive(first_barrier, 2 * warpgroup);
  }
  __device__ __forceinline__ void end() const {
    if (group == 0) await();
  }
  __device__ __forceinline__ void await() const {
    ptx::barrier_sync(first_barrier + group, 2 * warpgroup);
  }
  __device__ __forceinline__ void pass_on() const {
    const int next = group == Groups - 1 ? 0 : group + 1;
    ptx::barrier_arrive(first_barrier + next, 2 * warpgroup);
  }
};

template <class T, int Width>
__global__ void __launch_bounds__(tuning<Width>.threads(), 1)
    attention_hopper_ping_pong(const __grid_constant__ PingPongJob<T> job) {
  constexpr Tuning shape = tuning<Width>;
  constexpr int consumers = warpgroup * shape.groups;
  using TileQ = typename Layout<T, Width>::TileQ;
  using TileK = typename Layout<T, Width>::TileK;
  auto& layout = shared<Layout<T, Width>>();
  if (threadIdx.x == 0) {
    layout.ring_q.init(consumers / 32);
    layout.ring_k.init(consumers / 32);
    layout.ring_v.init(consumers / 32);
  }
  __syncthreads();

  RingPlace<shape.q_stages> at_q;
  RingPlace<shape.stages> at_k;
  if (threadIdx.x < warpgroup) {
    ptx::release_registers<shape.producer_registers>();
    if (threadIdx.x != 0) return;
    int number = static_cast<int>(blockIdx.x);
    for (; number < job.order.total(); number = take_tile(job.tickets)) {
      const BlockQueries work = job.template at<shape.rows(), false>(number);
      const int shared_head = work.head / job.heads.group;
      layout.ring_q.await_empty(at_q);
      layout.tile[at_q.stage] = number;
      layout.ring_q.expect(at_q, TileQ::bytes);
      TileQ::load(layout.q[at_q.stage], job.q, work.batch, work.head, work.first,
                  layout.ring_q.full[at_q.stage]);
      at_q.advance();
      // Process keys from last to first: the tiles with hidden keys come first.
      for (int tile = work.tiles(shape.keys) - 1; tile >= 0; --tile) {
        const int first = work.first_key + tile * shape.keys;
        layout.ring_k.await_empty(at_k);
        layout.ring_k.expect(at_k, TileK::bytes);
        TileK::load(layout.k[at_k.stage], job.k, work.batch, shared_head, first,
                    layout.ring_k.full[at_k.stage]);
        layout.ring_v.await_empty(at_k);
        layout.ring_v.expect(at_k, TileK::bytes);
        TileK::load(layout.v[at_k.stage], job.v, work.batch, shared_head, first,
                    layout.ring_v.full[at_k.stage]);
        at_k.advance();
      }
    }
    layout.ring_q.await_empty(at_q);
    layout.tile[at_q.stage] = number;  // no tile left: the consumers exit, too
    layout.ring_q.expect(at_q, 0);
    return_tickets(job.tickets);
    return;
  }

  ptx::claim_registers<shape.consumer_registers>();
  const int thread = static_cast<int>(threadIdx.x) - warpgroup;
  const Turns<shape.groups> turns{thread / warpgroup};
  const bool leads = thread % 32 == 0;
  const float scale = job.scale;
  RingPlace<shape.stages> at_v;
  turns.begin();
  for (;; at_q.advance()) {
    layout.ring_q.await_full(at_q);
    if (layout.tile[at_q.stage] >= job.order.total()) break;
    const BlockQueries work = job.template at<shape.rows(), false>(layout.tile[at_q.stage]);
    // Computed by a shuffle, which the compiler does not hoist: derived values take no registers
    // outside the loop.
    const int warp = shuffle(thread / 32, 0);
    const int group_row = warp / 4 * group_rows;
    const int row = warp * warp_rows;
    const int query = work.first + row + lane_of_thread() / 4;
    const int end_key = job.unclamped_end(work, query);
    const int end_of_first = job.unclamped_end(work, work.first + group_row);
    const int tiles = work.tiles(shape.keys);
    unsigned char* const q = layout.q[at_q.stage];

    RowSoftmax softmax;
    float sums[Width / 2] = {};
    float scores[shape.keys / 2];
    std::uint32_t powers[shape.keys / 16][4];
    float factor[2];
    // Lambdas that issue products only: scores = Q K^T, and sums += P V, with P in registers.
    const auto multiply_keys = [&] {
#pragma unroll
      for (int step = 0; step < Width / 16; ++step) {
        ptx::wgmma<T>(scores, TileQ::along_columns(q, group_row, step),
                      TileK::along_columns(layout.k[at_k.stage], 0, step), step > 0);
      }
    };
    const auto multiply_values = [&] {
#pragma unroll
      for (int step = 0; step < shape.keys / 16; ++step) {
        ptx::wgmma<T, T, ptx::WgmmaOptions{.b = ptx::Major::mn}>(
            sums, powers[step], TileK::along_rows(layout.v[at_v.stage], step), true);
      }
    };
    const auto soften = [&](int tile) {
      const int first = work.first_key + tile * shape.keys;
      if (job.needs_mask(first, shape.keys, end_of_first, group_rows)) {
        hide_scores(scores, first, end_key, job.later_end(), job.window);
      }
      softmax.add_tile(scores, scale, factor);
    };
    if (tiles > 0) {
      layout.ring_k.await_full(at_k);
      ptx::wgmma_fence(scores);
      multiply_keys();
      ptx::wgmma_commit();
      ptx::wgmma_wait<0>(scores);
      if (leads) layout.ring_k.release(at_k.stage);
      at_k.advance();
      soften(tiles - 1);
      to_operand<T>(scores, powers);
      layout.ring_v.await_full(at_v);
      const int first_key = work.first_key + (tiles - 1) * shape.keys;
      if (first_key + shape.keys > work.length && work.length < job.keys()) {
        // V may hold NaN past the end of this sequence, and 0 * NaN is NaN.
        TileK::clear_rows(layout.v[at_v.stage], work.length - first_key, thread, consumers);
        ptx::fence_async_proxy();
        ptx::barrier_sync(Turns<shape.groups>::free_barrier, consumers);
      }
    }
    for (int tile = tiles - 2; tile >= 0; --tile) {
      layout.ring_k.await_full(at_k);
      turns.await();
      ptx::wgmma_fence(scores);
      multiply_keys();
      ptx::wgmma_commit();
      layout.ring_v.await_full(at_v);
      ptx::wgmma_fence(powers);
      ptx::wgmma_fence(sums);
      multiply_values();
      ptx::wgmma_commit();
      turns.pass_on();
      ptx::wgmma_wait<1>(scores);
      if (leads) layout.ring_k.release(at_k.stage);
      at_k.advance();
      soften(tile);
      ptx::wgmma_wait<0>(sums);
      if (leads) layout.ring_v.release(at_v.stage);
      at_v.advance();
      scale_rows(sums, factor);
      to_operand<T>(scores, powers);
    }
    if (tiles > 0) {
      layout.ring_v.await_full(at_v);
      ptx::wgmma_fence(powers);
      ptx::wgmma_fence(sums);
      multiply_values();
      ptx::wgmma_commit();
      ptx::wgmma_wait<0>(sums);
      if (leads) layout.ring_v.release(at_v.stage);
      at_v.advance();
    }

    // All warps of this warpgroup have read Q.
    ptx::barrier_sync(Turns<shape.groups>::free_barrier + 1 + turns.group, warpgroup);
    write_rows<T, TileQ, Width, false>(job, work, row, q, softmax, sums);
    if (leads) {
      ptx::bulk_wait_read<0>();
      layout.ring_q.release(at_q.stage);
    }
  }
  turns.end();
}

/// Fewest queries per block over all widths.
constexpr int min_rows = tuning<128>.rows();

Support supports(const Attention::Args& args, const Context& context) {
  // The registers of the offsets would spill at a width of 256.
  if (args.is_packed()) return unsupported("query_offsets or key_offsets are given");
  // A rule's registers beside two products in flight would spill.
  if (!args.has_plain_scores()) return unsupported("soft_cap, slopes or bias are given");
  return require_hopper(args, context, min_rows);
}

Work work(const Attention::Args& args, const Context& context) {
  return with_width(args, [&]<class, int Width>() {
    return in_turns(context, query_work(args, tuning<Width>.rows(), tuning<Width>.keys, Width, 1));
  });
}

void run(const Attention::Args& args, Context& context) {
  with_width(args, [&]<class T, int Width>() {
    using Shared = Layout<T, Width>;
    constexpr Tuning shape = tuning<Width>;
    const PingPongJob<T> job{
        hopper_job<T, typename Shared::TileQ, typename Shared::TileK>(args, context, shape.rows()),
        reinterpret_cast<Tickets*>(
            tickets_of<Tickets>(context, sizeof(Tickets) / sizeof(unsigned)))};
    launch(context,
           {.grid = smaller(job.order.total(), context.info().sms),
            .block = shape.threads(),
            .shared_bytes = sizeof(Shared)},
           attention_hopper_ping_pong<T, Width>, job);
  });
}

const Rung<Attention> self{{.name = "hopper_ping_pong",
                            .step = 310,
                            .after = "hopper_pipelined",
                            .backend = device_backend,
                            .supports = supports,
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
