// SPDX-License-Identifier: Apache-2.0
// gemm / stream k: the kernels, compiled once per operand type.
//
// Part of the rung whose Idea, Changes, Cost and Limits are in 340_stream_k.sm90a.cu.
#pragma once

#include "rung/device/collectives.hpp"
#include "rung/device/dependent.hpp"
#include "rung/ops/gemm/cuda/detail/finish_boxes.hpp"
#include "rung/ops/gemm/cuda/detail/finish_group.hpp"
#include "rung/device/tile/roles.hpp"
#include "rung/ops/gemm/cuda/detail/tensor_job.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

constexpr int stream_rows = 64 * consumer_groups;
constexpr int stream_columns = 256;
/// Tile of a cluster of two blocks that share B, and tile of a single block, which gives more tiles
/// but more L2 traffic.
constexpr TensorTile stream_tiles[] = {{.rows = 2 * stream_rows,
                                        .columns = stream_columns,
                                        .blocks = 2,
                                        .reach = 0.97,
                                        .start_seconds = 1.5e-6,
                                        .wave_seconds = 2e-6,
                                        .slices_last = true},
                                       {.rows = stream_rows,
                                        .columns = stream_columns,
                                        .reach = 0.97,
                                        .start_seconds = 0.5e-6,
                                        .wave_seconds = 2e-6,
                                        .slices_last = true}};

struct StreamLayout {
  static constexpr int stage_count = 4;  // of 48 KiB
  TileStage<stream_rows, stream_columns> stages[stage_count];
  StripBoxes strips[consumer_warps];
  BoxArrivals arrivals[consumer_warps];
  StageRing<stage_count> ring;
};

/// Kernel arguments. Partial sums are stored tile after tile in one matrix that is one tile wide,
/// in the order [slice][split tile][block of the cluster].
template <class T>
struct StreamJob {
  TensorJob<T> tiles;
  TensorMap parts;
};

/// Computes whole tiles of C, then slices of the remaining tiles. `Blocks` is the number of blocks
/// per cluster.
template <class T, int Blocks, bool KMajorA, bool KMajorB>
__global__ void __launch_bounds__(role_threads, 1)
    gemm_stream_k(const __grid_constant__ StreamJob<T> job) {
  using TileA = WgmmaTile<T, stream_rows, KMajorA>;
  using TileB = WgmmaTile<T, stream_columns, KMajorB, Blocks>;
  auto& layout = shared<StreamLayout>();
  auto& ring = layout.ring;
  set_up_roles<TileB>(layout, job.tiles);
  RingPlace<StreamLayout::stage_count> at;
  if (threadIdx.x < producer_threads) ptx::release_registers<producer_registers>();
  if (threadIdx.x < 32) {
    for_each_tile<TileA, TileB>(job.tiles, [&](const BlockTile& tile) {
      prefetch_addends_of<TileA, TileB>(job.tiles, tile);
      for (int step = 0; threadIdx.x == 0 && step < tile.k_tiles; ++step, at.advance()) {
        auto& stage = layout.stages[at.stage];
        auto& full = ring.full[at.stage];
        const int k = (tile.first_step + step) * TileA::depth;
        ring.await_empty(at);
        ring.expect(at, TileA::bytes + TileB::bytes);
        TileA::load(stage.a, job.tiles.a, tile.batch * job.tiles.a_moves, tile.row, k, full);
        load_shared<TileB>(stage.b, job.tiles.b, tile.batch * job.tiles.b_moves, tile.column, k,
                           full);
      }
      __syncwarp();  // keeps lanes from prefetching for a later tile
    });
  } else if (threadIdx.x >= producer_threads) {
    ptx::claim_registers<consumer_registers>();
    const int warp = consumer_warp();
    BoxTurn turn;
    for_each_tile<TileA, TileB>(job.tiles, [&](const BlockTile& tile) {
      const bool whole = tile.part < 0;
      BoxFinish<stream_columns, T> finish(layout.strips[warp], layout.arrivals[warp], turn);
      const StripPlace place{tile.batch, tile.row + 16 * warp, tile.column};
      if (whole) finish.begin(job.tiles, place);
      float sums[stream_columns / 2];
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
      const auto of_lane = [&](int i) { return sums[i]; };
      if (whole) return finish.write(job.tiles, place, of_lane);
      const auto& p = job.tiles.product();
      if (place.row >= p.m()) return;
      const int block = Blocks == 1 ? 0 : ptx::cluster_rank();
      const int row = (tile.part * Blocks + block) * stream_rows + 16 * warp;
      store_strip<float, stream_columns>(job.parts, layout.strips[warp], turn.box, 1.0F, 0, row, 0,
                                         row + 1, static_cast<int>(p.n()) - tile.column, of_lane);
    });
    if (lane_of_thread() == 0) ptx::bulk_wait_read<0>();  // until its stores have read their boxes
  }
  if constexpr (Blocks > 1) ptx::cluster_sync();  // the other block still accesses this one
}

/// Kernel arguments of the second kernel.
template <class T>
struct StreamEnd {
  Finish<T> finish;
  Raster raster;
  const float* parts;
  int blocks;  // per cluster
};
constexpr int end_threads = 256;
constexpr int end_rows = 16;  // per block

/// Combines the slices of the split tiles in order. Each thread computes four adjacent elements of
/// C at a time.
template <class Out, class T>
__global__ void __launch_bounds__(end_threads)
    gemm_stream_k_end(const __grid_constant__ StreamEnd<T> end) {
  start_dependent();
  const Product<T, Out> p = with_output<Out>(end.finish.p);
  const int strips = end.blocks * (stream_rows / end_rows);  // per tile
  const auto number = static_cast<int>(blockIdx.x);
  const TileWork work = end.raster.at(end.raster.whole + number / strips);
  const std::int64_t first_row = (std::int64_t{work.row} * strips + number % strips) * end_rows;
  const std::int64_t first_column = std::int64_t{work.column} * stream_columns;
  const std::int64_t apart =
      std::int64_t{end.raster.tiles() - end.raster.whole} * strips * (end_rows * stream_columns);
  const float* const parts = end.parts + std::int64_t{number} * (end_rows * stream_columns);
  const bool wide = takes_wide_stores<4>(p);
#pragma unroll 1
  for (int at = static_cast<int>(threadIdx.x) * 4; at < end_rows * stream_columns;
       at += end_threads * 4) {
    const std::int64_t row = first_row + at / stream_columns;
    const std::int64_t column = first_column + at % stream_columns;
    if (row >= p.m() || column >= p.n()) continue;
    Pack<float, 4> sum = load_wide<4>(parts + at);
#pragma unroll 4
    for (int slice = 1; slice < end.raster.slices; ++slice) {
      const Pack<float, 4> more = load_wide<4>(parts + slice * apart + at);
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[i] += more[i];
    }
    finish_group(p, wide, work.batch, row, column, sum);
  }
}

/// Launches both kernels. Defined in the rung's file, which is compiled once per type; float
/// operands are rounded to tf32.
void run_stream_k(Context& context, const MappedOperands<f16>& operands, const TensorPlan& plan);
void run_stream_k(Context& context, const MappedOperands<bf16>& operands, const TensorPlan& plan);
void run_stream_k(Context& context, const MappedOperands<float>& operands, const TensorPlan& plan);

/// Launches the second kernel, which combines the slices left by gemm_stream_k.
template <class T>
void end_stream_k(Context& context, const StreamEnd<T>& end) {
  const std::int64_t tiles = end.raster.tiles() - end.raster.whole;
  const LaunchShape shape{.grid = tiles * end.blocks * (stream_rows / end_rows),
                          .block = end_threads,
                          .dependent = can_depend(context)};
  if constexpr (sizeof(T) == 2) {
    if (end.finish.narrow) return launch(context, shape, gemm_stream_k_end<T, T>, end);
  }
  launch(context, shape, gemm_stream_k_end<float, T>, end);
}

/// Implements run_stream_k(), in the file that compiles T's kernels.
template <class T>
void launch_stream_k(Context& context, const MappedOperands<T>& operands, const TensorPlan& plan) {
  const auto with_blocks = [&]<int Blocks>() {
    const std::int64_t at_once = context.info().sms / Blocks;
    with_majors(operands, [&]<bool KMajorA, bool KMajorB>() {
      StreamJob<T> job{.tiles = tensor_job<WgmmaTile<T, stream_rows, KMajorA>,
                                           WgmmaTile<T, stream_columns, KMajorB, Blocks>>(
                           operands,
                           {.rows = Blocks * stream_rows,
                            .columns = stream_columns,
                            .slices = 1,
                            .at_once = at_once},
                           nullptr),
                       .parts = {}};
      Raster& raster = job.tiles.raster;
      job.tiles.slice_tiles = static_cast<int>(tiles_of(job.tiles.k_tiles, plan.slices));
      raster.slices = static_cast<int>(tiles_of(job.tiles.k_tiles, job.tiles.slice_tiles));
      raster.whole = static_cast<int>(raster.slices == 1 ? raster.tiles()
                                                         : raster.tiles() / at_once * at_once);
      const std::int64_t cut = raster.tiles() - raster.whole;
      View<float, 3> parts;
      if (cut > 0) {
        parts.shape[0] = 1;
        parts.shape[1] = cut * raster.slices * Blocks * stream_rows;
        parts.shape[2] = parts.strides[1] = stream_columns;
        parts.strides[0] = parts.shape[1] * stream_columns;
        parts.strides[2] = 1;
        parts.data = static_cast<float*>(
            context.workspace(static_cast<std::size_t>(parts.strides[0]) * sizeof(float)));
        job.parts = make_tensor_map(parts, strip_box<float>, Swizzle::bytes_128);
      }
      launch(context,
             {.grid = Blocks * smaller<std::int64_t>(raster.total(), at_once),
              .block = role_threads,
              .shared_bytes = sizeof(StreamLayout),
              .cluster = Blocks},
             gemm_stream_k<T, Blocks, KMajorA, KMajorB>, job);
      if (cut > 0) {
        end_stream_k<T>(context, {operands.finish, raster, parts.data, Blocks});
      }
    });
  };
  stream_tiles[plan.tile].blocks == 2 ? with_blocks.template operator()<2>()
                                      : with_blocks.template operator()<1>();
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
