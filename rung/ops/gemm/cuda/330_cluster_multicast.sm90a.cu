// SPDX-License-Identifier: Apache-2.0
// gemm / cluster multicast
//
// Idea     two blocks of a cluster work on tiles one below the other. They need the same columns of
//          B: each fetches half and the copy engine writes it to both.
// Changes  against persistent: a block reads 128 rows of A and 128 of B's 256 columns from L2
//          per tile of k, two thirds as much. A stage is empty when the warps of both blocks
//          have read it.
// Cost     bytes from L2 of a tile of 256 x 256, in blocks of 128 x 256.
// Limits   as persistent. C of up to 128 rows leaves half of the blocks without work; two blocks
//          wait for the slower one.
// Tried    -
// Source   CUTLASS, TMA multicast; fast.cu, where it brought 4 %.
#include "rung/ops/gemm/cuda/detail/consume.hpp"
#include "rung/ops/gemm/cuda/detail/finish_boxes.hpp"
#include "rung/ops/gemm/cuda/detail/tensor_job.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int rows = 64 * consumer_groups;
constexpr int cluster_blocks = 2;  // one below the other

template <int Columns>
struct ClusterLayout {
  static constexpr int stage_count = 4;  // of up to 48 KiB
  TileStage<rows, Columns> stages[stage_count];
  StripBoxes strips[consumer_warps];
  BoxArrivals arrivals[consumer_warps];
  StageRing<stage_count> ring;
};

/// The raster numbers pairs of tiles.
template <class T, int Columns, bool KMajorA, bool KMajorB>
__global__ void __launch_bounds__(role_threads, 1)
    gemm_cluster_multicast(const __grid_constant__ TensorJob<T> job) {
  using TileA = WgmmaTile<T, rows, KMajorA>;
  using TileB = WgmmaTile<T, Columns, KMajorB, cluster_blocks>;
  auto& layout = shared<ClusterLayout<Columns>>();
  BoxTurn turn;
  in_roles<TileA, TileB>(layout, job, [&](const BlockTile& tile, auto& at) {
    const int warp = consumer_warp();
    BoxFinish<Columns, T> finish(layout.strips[warp], layout.arrivals[warp], turn);
    const StripPlace place{tile.matrix, tile.row + 16 * warp, tile.column};
    finish.begin(job, place);
    float sums[Columns / 2];
    consume_tiles<TileA, TileB>(sums, layout.stages, layout.ring, at, tile.k_tiles, warp / 4 * 64,
                                ReleaseInBoth{});
    finish.write(job, place, [&](int i) { return sums[i]; });
  });
}

constexpr TensorTile tiles[] = {{.rows = cluster_blocks * rows,
                                 .columns = 256,
                                 .blocks = cluster_blocks,
                                 .reach = 0.97,
                                 .start_seconds = 1.5e-6,
                                 .wave_seconds = 2e-6},
                                {.rows = cluster_blocks * rows,
                                 .columns = 192,
                                 .blocks = cluster_blocks,
                                 .reach = 0.88,
                                 .start_seconds = 1.5e-6,
                                 .wave_seconds = 2e-6}};

double estimate(const Gemm::Args& args, const Context& context) {
  return plan_tensor(args, context, tiles).seconds;
}

template <int Columns, class T>
void launch_clusters(Context& context, const MappedOperands<T>& operands, int slices,
                     float* partial) {
  with_majors(operands, [&]<bool KMajorA, bool KMajorB>() {
    const std::int64_t most = context.info().sms / cluster_blocks;
    const TensorJob<T> job =
        tensor_job<WgmmaTile<T, rows, KMajorA>, WgmmaTile<T, Columns, KMajorB, cluster_blocks>>(
            operands,
            {.rows = cluster_blocks * rows, .columns = Columns, .slices = slices, .at_once = most},
            partial);
    launch(context,
           {.grid = cluster_blocks * smaller<std::int64_t>(job.raster.total(), most),
            .block = role_threads,
            .shared_bytes = sizeof(ClusterLayout<Columns>),
            .cluster = cluster_blocks},
           gemm_cluster_multicast<T, Columns, KMajorA, KMajorB>, job);
  });
}

void run(const Gemm::Args& args, Context& context) {
  const TensorPlan plan = plan_tensor(args, context, tiles);
  visit<float, f16, bf16>(args.a.dtype, [&]<class T>() {
    const MappedOperands<T> operands = mapped_operands<T>(args);
    with_slices(context, operands.finish, plan.slices, nullptr, [&](float* partial) {
      plan.tile == 0 ? launch_clusters<256>(context, operands, plan.slices, partial)
                     : launch_clusters<192>(context, operands, plan.slices, partial);
    });
  });
}

const Rung<Gemm> self{{.name = "cluster_multicast",
                       .step = 330,
                       .after = "persistent",
                       .backend = device_backend,
                       .supports = require_maps,
                       .speed = {.rows = cluster_blocks * rows, .columns = 256},
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
