// SPDX-License-Identifier: Apache-2.0
// gemm / int8 wgmma
//
// Idea     i8 on wgmma, with 32-bit sums: the rung `persistent` for integers.
// Changes  against fp8_wgmma: sums are exact, so they stay in the instruction's registers through
//          all of k.
// Cost     as fp8_wgmma, without the additions. C is four times as wide as the operands.
// Limits   as fp8_wgmma: operands whose k is not contiguous are copied first. No split-K. Threads
//          write C if TMA cannot.
// Source   PTX ISA, "Asynchronous warpgroup level matrix multiply-accumulate".
#include "rung/device/collectives.hpp"
#include "rung/device/tile/roles.hpp"
#include "rung/ops/gemm/cuda/detail/byte_operands.hpp"
#include "rung/ops/gemm/cuda/detail/tensor_job.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int tile_rows = 64 * consumer_groups;
constexpr int cluster_blocks = 2;  // vertically adjacent tiles
constexpr TensorTile int8_tiles[] = {
    {.rows = cluster_blocks * tile_rows,
     .columns = 256,
     .blocks = cluster_blocks,
     .reach = 0.72,
     .start_seconds = 2.3e-6,
     .step_seconds = 0.4e-6},
    {.rows = tile_rows, .columns = 256, .reach = 0.7, .step_seconds = 0.4e-6},
    {.rows = tile_rows, .columns = 128, .reach = 0.6, .step_seconds = 0.3e-6},
    {.rows = tile_rows, .columns = 64, .reach = 0.45, .step_seconds = 0.25e-6}};

struct Int8Job {
  TensorMap a, b;
  TensorMap c;  // valid if boxes_of_c
  Product<std::int8_t, std::int32_t> p;
  Raster raster;
  int a_moves, b_moves;
  int k_tiles;
  static constexpr int slice_tiles = 0;  // k is one slice
  bool boxes_of_c;

  [[nodiscard]] __device__ const auto& product() const { return p; }
  [[nodiscard]] static __device__ int out_bytes() { return 4; }
  [[nodiscard]] __device__ int tiles_of_slice(int) const { return k_tiles; }
};

template <int Columns>
struct Int8Layout {
  static constexpr int stage_count =
      (192 << 10) / static_cast<int>(sizeof(TileStage<tile_rows, Columns>));
  TileStage<tile_rows, Columns> stages[stage_count];
  StripBoxes strips[consumer_warps];
  StageRing<stage_count> ring;
};

template <int Columns, int Blocks>
__global__ void __launch_bounds__(role_threads, 1)
    gemm_int8_wgmma(const __grid_constant__ Int8Job job) {
  using TileA = WgmmaTile<std::int8_t, tile_rows, true>;
  using TileB = WgmmaTile<std::int8_t, Columns, true, Blocks>;
  auto& layout = shared<Int8Layout<Columns>>();
  auto& ring = layout.ring;
  set_up_roles<TileB>(layout, job);
  RingPlace<Int8Layout<Columns>::stage_count> at;
  if (threadIdx.x < producer_threads) ptx::release_registers<producer_registers>();
  if (threadIdx.x < 32) {
    for_each_tile<TileA, TileB>(job, [&](const BlockTile& tile) {
      prefetch_addends_of<TileA, TileB>(job, tile);
      for (int step = 0; threadIdx.x == 0 && step < tile.k_tiles; ++step, at.advance()) {
        auto& stage = layout.stages[at.stage];
        auto& full = ring.full[at.stage];
        const int k = (tile.first_step + step) * TileA::depth;
        ring.await_empty(at);
        ring.expect(at, TileA::bytes + TileB::bytes);
        TileA::load(stage.a, job.a, tile.batch * job.a_moves, tile.row, k, full);
        load_shared<TileB>(stage.b, job.b, tile.batch * job.b_moves, tile.column, k, full);
      }
      __syncwarp();  // keeps lanes from prefetching for a later tile
    });
  } else if (threadIdx.x >= producer_threads) {
    ptx::claim_registers<consumer_registers>();
    const int warp = consumer_warp();
    int turn = 0;
    for_each_tile<TileA, TileB>(job, [&](const BlockTile& tile) {
      const int first_row = tile.row + 16 * warp;
      int sums[Columns / 2];
      int stage_before = 0;
      for (int step = 0; step < tile.k_tiles; ++step, at.advance()) {
        ring.await_full(at);
        const auto& stage = layout.stages[at.stage];
        ptx::wgmma_fence(sums);
        wgmma_tile<TileA, TileB>(sums, stage.a, warp / 4 * 64, stage.b, step > 0);
        ptx::wgmma_commit();
        ptx::wgmma_wait<1>(sums);
        if (step > 0) release_stage<TileB>(ring, stage_before);
        stage_before = at.stage;
      }
      ptx::wgmma_wait<0>(sums);
      release_stage<TileB>(ring, stage_before);
      const auto sum = [&](int i) { return sums[i]; };
      if (job.boxes_of_c) {
        store_strip<std::int32_t, Columns>(
            job.c, layout.strips[warp], turn, job.p.alpha, tile.matrix, first_row, tile.column,
            static_cast<int>(job.p.m()), static_cast<int>(job.p.n()), sum);
      } else {
        finish_strip<Columns>(job.p, layout.strips[warp].box[0], tile.matrix, first_row,
                              tile.column, sum);
      }
    });
    if (lane_of_thread() == 0) ptx::bulk_wait_read<0>();  // until its stores have read their boxes
  }
  if constexpr (Blocks > 1) ptx::cluster_sync();  // the other block still accesses this one
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (args.a.dtype != DType::i8) return unsupported("this rung multiplies i8");
  if (const Support sizes = require_mapped_sizes(args, context); !sizes) return sizes;
  return ByteOperands(args).bytes() <= most_packed_bytes ? supported
                                                         : unsupported("copies of more than 1 GiB");
}

/// Returns the plan of the fastest tile, without split-K.
TensorPlan plan_of(const Gemm::Args& args, const Context& context) {
  TensorPlan plan;
  for (int tile = 0; tile < static_cast<int>(std::size(int8_tiles)); ++tile) {
    const double seconds = tensor_seconds(args, context, int8_tiles[tile], 1, true);
    if (tile == 0 || seconds < plan.seconds) plan = {tile, 1, seconds};
  }
  return plan;
}

Work work(const Gemm::Args& args, const Context& context) {
  Work work = tensor_work(args, context, int8_tiles[plan_of(args, context).tile], 1);
  ByteOperands(args).add_to(work);
  return work;
}

void run(const Gemm::Args& args, Context& context) {
  const TensorTile& tile = int8_tiles[plan_of(args, context).tile];
  ByteOperands operands(args);
  operands.pack(context, context.workspace(static_cast<std::size_t>(operands.bytes())));
  const auto p = product<std::int8_t, std::int32_t>(args);
  const auto with_tile = [&]<int Columns, int Blocks>() {
    if (tile.columns != Columns || tile.blocks != Blocks) return;
    const std::int64_t at_once = context.info().sms / Blocks;
    Int8Job job{
        .a = make_tensor_map(operands.a.view, WgmmaTile<std::int8_t, tile_rows, true>::box,
                             Swizzle::bytes_128),
        .b = make_tensor_map(operands.b.view, WgmmaTile<std::int8_t, Columns, true, Blocks>::box,
                             Swizzle::bytes_128),
        .c = {},
        .p = p,
        .raster = {.down = static_cast<int>(tiles_of(p.m(), tile.rows)),
                   .along = static_cast<int>(tiles_of(p.n(), Columns)),
                   .batch = static_cast<int>(p.c.shape[0]),
                   .slices = 1,
                   .band = raster_band(at_once, tile.rows, Columns)},
        .a_moves = operands.a.moves ? 1 : 0,
        .b_moves = operands.b.moves ? 1 : 0,
        .k_tiles = static_cast<int>(tiles_of(p.k(), 128)),
        .boxes_of_c = false};
    job.boxes_of_c = map_c<std::int32_t>(p, job.c);
    launch(context,
           {.grid = Blocks * smaller<std::int64_t>(job.raster.total(), at_once),
            .block = role_threads,
            .shared_bytes = sizeof(Int8Layout<Columns>),
            .cluster = Blocks},
           gemm_int8_wgmma<Columns, Blocks>, job);
  };
  with_tile.template operator()<256, cluster_blocks>();
  with_tile.template operator()<256, 1>();
  with_tile.template operator()<128, 1>();
  with_tile.template operator()<64, 1>();
}

const Rung<Gemm> self{{.name = "int8_wgmma",
                       .after = "fp8_wgmma",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = {.rows = tile_rows, .columns = 256},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
