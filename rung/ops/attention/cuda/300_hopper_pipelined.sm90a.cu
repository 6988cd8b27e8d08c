// SPDX-License-Identifier: Apache-2.0
// attention / hopper pipelined
//
// Idea     Warp specialization: one thread of a producer warpgroup issues TMA loads of Q once and
//          of K and V tile by tile. Consumer warpgroups of 64 queries each issue wgmma: K and V are
//          read from shared memory, P from the registers that hold the softmax.
// Changes  against tensor_cores: consumers spend no instructions or registers on copies, fragments
//          of K and V bypass registers, and one instruction multiplies 64 rows instead of 16.
// Cost     K and V are read once per 128 or 192 queries of a head, from L2 if they fit. Beside the
//          products, each score takes one multiply-add, one exponential and half a conversion.
// Limits   Within a warpgroup, products and softmax are serialized; overlap between warpgroups is
//          not scheduled. Rows that TMA cannot address, and pages, are left to tensor_cores.
// Source   Dao 2023, FlashAttention-2; Shah et al. 2024, FlashAttention-3, "Warp-specialization".
#include "rung/device/ptx/hopper.hpp"
#include "rung/device/stage_ring.hpp"
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
  int producer_registers, consumer_registers;  // all threads: at most 64 Ki
  [[nodiscard]] constexpr int rows() const { return group_rows * groups; }
  [[nodiscard]] constexpr int threads() const { return warpgroup * (groups + 1); }
};
// A consumer thread holds keys / 2 scores, width / 2 sums and keys / 4 registers of P.
template <int Width>
constexpr Tuning tuning = {
    .groups = 2, .keys = 128, .stages = 2, .producer_registers = 40, .consumer_registers = 232};
template <>
constexpr Tuning tuning<64> = {
    .groups = 3, .keys = 128, .stages = 2, .producer_registers = 32, .consumer_registers = 160};
template <>
constexpr Tuning tuning<256> = {
    .groups = 2, .keys = 80, .stages = 2, .producer_registers = 40, .consumer_registers = 232};

template <class T, int Width>
struct Layout {
  using TileQ = PanelTile<T, tuning<Width>.rows(), Width>;  // reused for O at the end
  using TileK = PanelTile<T, tuning<Width>.keys, Width>;    // also for V
  alignas(1024) unsigned char q[TileQ::bytes];
  alignas(1024) unsigned char k[tuning<Width>.stages][TileK::bytes];
  alignas(1024) unsigned char v[tuning<Width>.stages][TileK::bytes];
  ptx::MemoryBarrier q_full;
  StageRing<tuning<Width>.stages> ring_k, ring_v;
};

/// Ruled: scores are more than scaled products.
template <class T, int Width, bool Ruled>
__global__ void __launch_bounds__(tuning<Width>.threads(), 1)
    attention_hopper_pipelined(const __grid_constant__ HopperJob<T> job) {
  constexpr Tuning shape = tuning<Width>;
  using TileQ = typename Layout<T, Width>::TileQ;
  using TileK = typename Layout<T, Width>::TileK;
  auto& layout = shared<Layout<T, Width>>();
  const BlockQueries work = job.template at<shape.rows()>(static_cast<int>(blockIdx.x));
  if (work.queries == 0) return;
  const int tiles = work.tiles(shape.keys);
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(layout.q_full, 1);
    layout.ring_k.init(4 * shape.groups);
    layout.ring_v.init(4 * shape.groups);
    ptx::mbarrier_fence_init();
  }
  __syncthreads();

  RingPlace<shape.stages> at;
  if (threadIdx.x < warpgroup) {
    ptx::release_registers<shape.producer_registers>();
    if (threadIdx.x != 0) return;
    const int shared_head = work.head / job.heads.group;
    ptx::mbarrier_arrive_expect(layout.q_full, TileQ::bytes);
    const auto queries = job.query_origin(work.batch);
    const auto keys = job.key_origin(work.batch);
    TileQ::load(layout.q, job.q, queries.batch, work.head, queries.row + work.first, layout.q_full);
    // Process keys from last to first: the tiles with hidden keys come first.
    for (int tile = tiles - 1; tile >= 0; --tile, at.advance()) {
      const int first = keys.row + work.first_key + tile * shape.keys;
      layout.ring_k.await_empty(at);
      layout.ring_k.expect(at, TileK::bytes);
      TileK::load(layout.k[at.stage], job.k, keys.batch, shared_head, first,
                  layout.ring_k.full[at.stage]);
      layout.ring_v.await_empty(at);
      layout.ring_v.expect(at, TileK::bytes);
      TileK::load(layout.v[at.stage], job.v, keys.batch, shared_head, first,
                  layout.ring_v.full[at.stage]);
    }
    return;
  }

  ptx::claim_registers<shape.consumer_registers>();
  const int thread = static_cast<int>(threadIdx.x) - warpgroup;
  const int group_row = thread / warpgroup * group_rows;
  const int row = thread / 32 * warp_rows;
  const int query = work.first + row + lane_of_thread() / 4;
  const int end_key = job.unclamped_end(work, query);
  const int end_of_first = job.unclamped_end(work, work.first + group_row);

  RowSoftmax softmax;
  float sums[Width / 2] = {};
  ptx::mbarrier_wait(layout.q_full, 0);
  for (int tile = tiles - 1; tile >= 0; --tile, at.advance()) {
    const int first = work.first_key + tile * shape.keys;
    float scores[shape.keys / 2];
    layout.ring_k.await_full(at);
    ptx::wgmma_fence(scores);
#pragma unroll
    for (int step = 0; step < Width / 16; ++step) {
      ptx::wgmma<T>(scores, TileQ::along_columns(layout.q, group_row, step),
                    TileK::along_columns(layout.k[at.stage], 0, step), step > 0);
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>(scores);
    if (thread % 32 == 0) layout.ring_k.release(at.stage);

    if constexpr (Ruled) apply_rule(scores, job, work, query, first);
    if (job.needs_mask(first, shape.keys, end_of_first, group_rows)) {
      hide_scores(scores, first, end_key, job.later_end(), job.window);
    }
    float factor[2];
    softmax.add_tile(scores, job.scale, factor);
    scale_rows(sums, factor);
    std::uint32_t powers[shape.keys / 16][4];
    to_operand<T>(scores, powers);

    layout.ring_v.await_full(at);
    if (first + shape.keys > work.length && work.length < job.keys()) {
      // Keys past the end of this sequence have P = 0, but V may hold NaN there, and 0 * NaN is
      // NaN.
      TileK::clear_rows(layout.v[at.stage], work.length - first, thread, warpgroup * shape.groups);
      ptx::fence_async_proxy();
      ptx::barrier_sync(1, warpgroup * shape.groups);
    }
    ptx::wgmma_fence(powers);
    ptx::wgmma_fence(sums);
#pragma unroll
    for (int step = 0; step < shape.keys / 16; ++step) {
      ptx::wgmma<T, T, ptx::WgmmaOptions{.b = ptx::Major::mn}>(
          sums, powers[step], TileK::along_rows(layout.v[at.stage], step), true);
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>(sums);
    if (thread % 32 == 0) layout.ring_v.release(at.stage);
  }

  ptx::barrier_sync(2 + thread / warpgroup, warpgroup);  // all warps of this warpgroup have read Q
  write_rows<T, TileQ, Width>(job, work, row, layout.q, softmax, sums);
  if (thread % 32 == 0) ptx::bulk_wait_read<0>();
}

/// Fewest queries per block over all widths.
constexpr int min_rows = tuning<128>.rows();

Support supports(const Attention::Args& args, const Context& context) {
  return require_hopper(args, context, min_rows);
}

Work work(const Attention::Args& args, const Context&) {
  return with_width(args, [&]<class, int Width>() {
    return query_work(args, tuning<Width>.rows(), tuning<Width>.keys, Width, 1);
  });
}

void run(const Attention::Args& args, Context& context) {
  with_width(args, [&]<class T, int Width>() {
    using Shared = Layout<T, Width>;
    constexpr Tuning shape = tuning<Width>;
    const HopperJob<T> job =
        hopper_job<T, typename Shared::TileQ, typename Shared::TileK>(args, context, shape.rows());
    launch(context,
           {.grid = job.order.total(), .block = shape.threads(), .shared_bytes = sizeof(Shared)},
           job.ruled ? attention_hopper_pipelined<T, Width, true>
                     : attention_hopper_pipelined<T, Width, false>,
           job);
  });
}

const Rung<Attention> self{{.name = "hopper_pipelined",
                            .step = 300,
                            .after = "tensor_cores",
                            .backend = device_backend,
                            .supports = supports,
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
