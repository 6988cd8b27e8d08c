// SPDX-License-Identifier: Apache-2.0
// gemm / cluster multicast
//
// Idea     the two blocks of a cluster compute vertically adjacent tiles, which need the same
//          columns of B: each block fetches half of them, and TMA multicasts it to both.
// Changes  against persistent: a block reads 128 rows of A and 128 of B's 256 columns from L2 per
//          tile of k, two thirds of what a block of persistent reads. A stage is empty when the
//          warps of both blocks have read it.
// Cost     the L2 traffic of a tile of 256 x 256, in blocks of 128 x 256.
// Limits   as persistent. A C of up to 128 rows leaves half of the blocks idle; the faster block of
//          a cluster waits for the slower one.
// Source   CUTLASS, TMA multicast; fast.cu, where it gained 4 %.
#include "rung/device/collectives.hpp"
#include "rung/device/tile/roles.hpp"
#include "rung/ops/gemm/cuda/detail/finish_boxes.hpp"
#include "rung/ops/gemm/cuda/detail/tensor_job.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int rows = 64 * consumer_groups;
constexpr int cluster_blocks = 2;  // vertically adjacent tiles

template <int Columns>
struct ClusterLayout {
  static constexpr int stage_count = 4;  // of up to 48 KiB
  TileStage<rows, Columns> stages[stage_count];
  StripBoxes strips[consumer_warps];
  BoxArrivals arrivals[consumer_warps];
  StageRing<stage_count> ring;
};

/// Computes C by clusters, each on a pair of vertically adjacent 128-row tiles: the raster numbers
/// the pairs, and a block's rank in its cluster selects its tile.
template <class T, int Columns, bool KMajorA, bool KMajorB>
__global__ void __launch_bounds__(role_threads, 1)
    gemm_cluster_multicast(const __grid_constant__ TensorJob<T> job) {
  using TileA = WgmmaTile<T, rows, KMajorA>;
  using TileB = WgmmaTile<T, Columns, KMajorB, cluster_blocks>;
  auto& layout = shared<ClusterLayout<Columns>>();
  auto& ring = layout.ring;
  set_up_roles<TileB>(layout, job);
  RingPlace<ClusterLayout<Columns>::stage_count> at;
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
        // Half of B's tile, for both blocks; the other block loads the other half.
        TileB::load_multicast(ptx::cluster_rank(), stage.b, job.b, tile.batch * job.b_moves,
                              tile.column, k, full, (1 << cluster_blocks) - 1);
      }
      __syncwarp();  // keeps lanes from prefetching for a later tile
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
      const int lane = lane_of_thread();
      int stage_before = 0;
      for (int step = 0; step < tile.k_tiles; ++step, at.advance()) {
        ring.await_full(at);
        const auto& stage = layout.stages[at.stage];
        ptx::wgmma_fence(sums);
        wgmma_tile<TileA, TileB>(sums, stage.a, warp / 4 * 64, stage.b, step > 0);
        ptx::wgmma_commit();
        ptx::wgmma_wait<1>(sums);
        if (step > 0 && lane < cluster_blocks) ring.release_in(stage_before, lane);
        stage_before = at.stage;
      }
      ptx::wgmma_wait<0>(sums);
      if (lane < cluster_blocks) ring.release_in(stage_before, lane);
      finish.write(job, place, [&](int i) { return sums[i]; });
    });
    if (lane_of_thread() == 0) ptx::bulk_wait_read<0>();  // until its stores have read their boxes
  }
  ptx::cluster_sync();  // the other block still accesses this one's shared memory
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

Work work(const Gemm::Args& args, const Context& context) {
  const TensorPlan plan = plan_tensor(args, context, tiles);
  return tensor_work(args, context, tiles[plan.tile], plan.slices);
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
                       .tile = {.rows = cluster_blocks * rows, .columns = 256},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
