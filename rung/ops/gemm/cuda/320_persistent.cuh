// SPDX-License-Identifier: Apache-2.0
// gemm / persistent: the kernel, compiled once per operand type.
//
// Part of the rung whose Idea, Changes, Cost and Limits are in 320_persistent.sm90a.cu.
#pragma once

#include "rung/device/collectives.hpp"
#include "rung/device/tile/roles.hpp"
#include "rung/ops/gemm/cuda/detail/finish_boxes.hpp"
#include "rung/ops/gemm/cuda/detail/tensor_job.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

constexpr int persistent_rows = 64 * consumer_groups;
/// Returns the tile of `columns` columns: wide tiles read less per product, narrow ones fill the
/// device if C is small.
constexpr TensorTile persistent_tile(int columns, double reach) {
  return {.rows = persistent_rows,
          .columns = columns,
          .reach = reach,
          .start_seconds = 0.5e-6,
          .wave_seconds = 2e-6};
}
constexpr TensorTile persistent_tiles[] = {persistent_tile(256, 0.97), persistent_tile(192, 0.88),
                                           persistent_tile(128, 0.85), persistent_tile(64, 0.95)};

/// Shared memory of a block: up to 192 KiB of stages, and two boxes of C per warp.
template <int Columns>
struct PersistentLayout {
  static constexpr int stage_count =
      (192 << 10) / static_cast<int>(sizeof(TileStage<persistent_rows, Columns>));
  TileStage<persistent_rows, Columns> stages[stage_count];
  StripBoxes strips[consumer_warps];
  BoxArrivals arrivals[consumer_warps];
  StageRing<stage_count> ring;
};

/// Computes C by persistent blocks, each of which loops over every gridDim.x-th tile of C or, with
/// split-K, slice of a tile.
template <class T, int Columns, bool KMajorA, bool KMajorB>
__global__ void __launch_bounds__(role_threads, 1)
    gemm_persistent(const __grid_constant__ TensorJob<T> job) {
  using TileA = WgmmaTile<T, persistent_rows, KMajorA>;
  using TileB = WgmmaTile<T, Columns, KMajorB>;
  auto& layout = shared<PersistentLayout<Columns>>();
  auto& ring = layout.ring;
  set_up_roles<TileB>(layout, job);
  RingPlace<PersistentLayout<Columns>::stage_count> at;
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
        TileB::load(stage.b, job.b, tile.batch * job.b_moves, tile.column, k, full);
      }
      __syncwarp();  // lanes 1 to 31 skip the loop: held here, they do not prefetch ahead of lane 0
    });
  } else if (threadIdx.x >= producer_threads) {
    ptx::claim_registers<consumer_registers>();
    const int warp = consumer_warp();
    BoxTurn turn;
    for_each_tile<TileA, TileB>(job, [&](const BlockTile& tile) {
      BoxFinish<Columns, T> finish(layout.strips[warp], layout.arrivals[warp], turn);
      const StripPlace place{tile.matrix, tile.row + 16 * warp, tile.column};
      finish.begin(job, place);
      float sums[Columns / 2];
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
      finish.write(job, place, [&](int i) { return sums[i]; });
    });
    if (lane_of_thread() == 0) ptx::bulk_wait_read<0>();  // until its stores have read their boxes
  }
}

/// Launches the kernel. `partial`: memory for the partial sums (partial_bytes), or null for the
/// context's workspace. Defined in the rung's file, which is compiled once per type; float operands
/// are rounded to tf32.
void run_persistent(Context& context, const MappedOperands<f16>& operands, const TensorPlan& plan,
                    void* partial = nullptr);
void run_persistent(Context& context, const MappedOperands<bf16>& operands, const TensorPlan& plan,
                    void* partial = nullptr);
void run_persistent(Context& context, const MappedOperands<float>& operands, const TensorPlan& plan,
                    void* partial = nullptr);

/// Implements run_persistent(), in the file that compiles T's kernels.
template <class T>
void launch_persistent(Context& context, const MappedOperands<T>& operands, const TensorPlan& plan,
                       void* memory) {
  with_slices(context, operands.finish, plan.slices, memory, [&](float* partial) {
    with_majors(operands, [&]<bool KMajorA, bool KMajorB>() {
      const auto with_columns = [&]<int Columns>() {
        if (persistent_tiles[plan.tile].columns != Columns) return;
        const TensorJob<T> job =
            tensor_job<WgmmaTile<T, persistent_rows, KMajorA>, WgmmaTile<T, Columns, KMajorB>>(
                operands,
                {.rows = persistent_rows,
                 .columns = Columns,
                 .slices = plan.slices,
                 .at_once = context.info().sms},
                partial);
        const std::int64_t works = job.raster.total();
        launch(context,
               {.grid = smaller<std::int64_t>(works, context.info().sms),
                .block = role_threads,
                .shared_bytes = sizeof(PersistentLayout<Columns>)},
               gemm_persistent<T, Columns, KMajorA, KMajorB>, job);
      };
      with_columns.template operator()<256>();
      with_columns.template operator()<192>();
      with_columns.template operator()<128>();
      with_columns.template operator()<64>();
    });
  });
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
