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
#include "rung/device/ptx_cluster.hpp"
#include "rung/device/ptx_hopper.hpp"
#include "rung/ops/gemm/cuda/detail/consume.hpp"
#include "rung/ops/gemm/cuda/detail/tensor_job.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int rows = 64 * consumer_groups;
constexpr int ring_stages = 4;     // of up to 48 KiB
constexpr int cluster_blocks = 2;  // one below the other

template <int Columns>
struct ClusterLayout {
  TileStage<rows, Columns> stages[ring_stages];
  StripBoxes strips[consumer_warps];
  StageRing<ring_stages> ring;
};

/// The raster numbers pairs of tiles.
template <class T, int Columns, bool KMajorA, bool KMajorB>
__global__ void __launch_bounds__(role_threads, 1)
    gemm_cluster_multicast(const __grid_constant__ TensorJob<T> job) {
  using TileA = WgmmaTile<T, rows, KMajorA>;
  using TileB = WgmmaTile<T, Columns, KMajorB, cluster_blocks>;
  auto& layout = shared<ClusterLayout<Columns>>();
  if (threadIdx.x == 0) {
    layout.ring.init(cluster_blocks * consumer_warps);
    ptx::tensor_prefetch_map(job.a);
    ptx::tensor_prefetch_map(job.b);
  }
  ptx::cluster_sync();  // the barriers of both blocks are there
  RingPlace<ring_stages> at;
  const int rank = ptx::cluster_rank();
  const int works = job.raster.total();
  const auto first = static_cast<int>(blockIdx.x) / cluster_blocks;
  const auto clusters = static_cast<int>(gridDim.x) / cluster_blocks;
  const auto row_of = [&](const TileWork& work) {
    return (work.row * cluster_blocks + rank) * rows;
  };

  if (threadIdx.x < producer_threads) {
    ptx::release_registers<producer_registers>();
    for (int number = threadIdx.x == 0 ? first : works; number < works; number += clusters) {
      const TileWork work = job.raster.at(number);
      const int tiles = job.tiles_of_slice(work.slice);
      int k = work.slice * job.slice_tiles * TileA::depth;
      for (int tile = 0; tile < tiles; ++tile, k += TileA::depth, at.advance()) {
        auto& stage = layout.stages[at.stage];
        auto& full = layout.ring.full[at.stage];
        layout.ring.await_empty(at);
        layout.ring.expect(at, TileA::bytes + TileB::bytes);
        TileA::load(stage.a, job.a, work.batch * job.a_moves, row_of(work), k, full);
        TileB::load_multicast(rank, stage.b, job.b, work.batch * job.b_moves, work.column * Columns,
                              k, full, (1 << cluster_blocks) - 1);
      }
    }
  } else {
    ptx::claim_registers<consumer_registers>();
    const int warp = static_cast<int>(threadIdx.x - producer_threads) / 32;
    int turn = 0;
    for (int number = first; number < works; number += clusters) {
      const TileWork work = job.raster.at(number);
      float sums[Columns / 2];
      consume_tiles<TileA, TileB>(sums, layout.stages, layout.ring, at,
                                  job.tiles_of_slice(work.slice), warp / 4 * 64, ReleaseInBoth{});
      write_strip<Columns, T>(job, layout.strips[warp], turn,
                              work.slice * job.raster.batch + work.batch, row_of(work) + 16 * warp,
                              work.column * Columns, [&](int i) { return sums[i]; });
    }
    if (threadIdx.x % 32 == 0) StripBoxes::drain();
  }
  ptx::cluster_sync();  // the other block may still write here, and release stages
}

constexpr TensorTile tiles[] = {{.rows = cluster_blocks * rows,
                                 .columns = 256,
                                 .blocks = cluster_blocks,
                                 .reach = 0.855,
                                 .start_seconds = 2.3e-6},
                                {.rows = cluster_blocks * rows,
                                 .columns = 192,
                                 .blocks = cluster_blocks,
                                 .reach = 0.83,
                                 .start_seconds = 2.3e-6}};

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
