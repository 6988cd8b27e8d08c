// SPDX-License-Identifier: Apache-2.0
// gemm / persistent: the kernel, compiled for a type of operands a file.
//
// Idea, Changes, Cost and Limits stand in 320_persistent.sm90a.cu, whose rung this is a part of.
#pragma once

#include "rung/ops/gemm/cuda/detail/consume.hpp"
#include "rung/ops/gemm/cuda/detail/finish_boxes.hpp"
#include "rung/ops/gemm/cuda/detail/tensor_job.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

constexpr int persistent_rows = 64 * consumer_groups;
/// Widths of the tile: large ones read less per product, small ones fill the device where C is
/// small.
constexpr TensorTile persistent_tile(int columns, double reach) {
  return {.rows = persistent_rows,
          .columns = columns,
          .reach = reach,
          .start_seconds = 0.5e-6,
          .wave_seconds = 2e-6};
}
constexpr TensorTile persistent_tiles[] = {persistent_tile(256, 0.97), persistent_tile(192, 0.88),
                                           persistent_tile(128, 0.85), persistent_tile(64, 0.95)};

/// Up to 192 KiB of stages, and two boxes of C per warp.
template <int Columns>
struct PersistentLayout {
  static constexpr int stage_count =
      (192 << 10) / static_cast<int>(sizeof(TileStage<persistent_rows, Columns>));
  TileStage<persistent_rows, Columns> stages[stage_count];
  StripBoxes strips[consumer_warps];
  BoxArrivals arrivals[consumer_warps];
  StageRing<stage_count> ring;
};

/// Blocks that stay take every gridDim.x-th tile of C, or of a slice of k.
template <class T, int Columns, bool KMajorA, bool KMajorB>
__global__ void __launch_bounds__(role_threads, 1)
    gemm_persistent(const __grid_constant__ TensorJob<T> job) {
  using TileA = WgmmaTile<T, persistent_rows, KMajorA>;
  using TileB = WgmmaTile<T, Columns, KMajorB>;
  auto& layout = shared<PersistentLayout<Columns>>();
  BoxTurn turn;
  in_roles<TileA, TileB>(layout, job, [&](const BlockTile& tile, auto& at) {
    const int warp = consumer_warp();
    BoxFinish<Columns, T> finish(layout.strips[warp], layout.arrivals[warp], turn);
    const StripPlace place{tile.matrix, tile.row + 16 * warp, tile.column};
    finish.begin(job, place);
    float sums[Columns / 2];
    consume_tiles<TileA, TileB>(sums, layout.stages, layout.ring, at, tile.k_tiles, warp / 4 * 64,
                                ReleaseHere{});
    finish.write(job, place, [&](int i) { return sums[i]; });
  });
}

/// `partial`: memory for the sums of slices (partial_bytes), or null: the context's workspace.
/// In the rung's file, which is compiled once per type. Float operands are tf32.
void run_persistent(Context& context, const MappedOperands<f16>& operands, const TensorPlan& plan,
                    void* partial = nullptr);
void run_persistent(Context& context, const MappedOperands<bf16>& operands, const TensorPlan& plan,
                    void* partial = nullptr);
void run_persistent(Context& context, const MappedOperands<float>& operands, const TensorPlan& plan,
                    void* partial = nullptr);

/// Its definition, for the file that compiles T's kernels.
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
