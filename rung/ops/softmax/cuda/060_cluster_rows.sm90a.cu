// SPDX-License-Identifier: Apache-2.0
// softmax / a cluster per row
//
// Idea     A row that exceeds a block is spread over a cluster of 2 to 16 blocks. A thread keeps 16
//          packs in the type of x: 4 in registers, the others in shared memory, loaded in four
//          groups, so that loaded groups are summed while later ones arrive. Every warp sends its
//          partial to all blocks of the cluster, where an mbarrier counts the bytes.
// Changes  against shared_single_read: rows of up to 524288 f32 elements are read once; two blocks
//          fit per SM, and one loads while the other computes.
// Cost     1 load and 1 store per element; two exponentials. One exchange per row. The cluster
//          barrier at the start overlaps the loads; none is needed at the end, because a block that
//          has received all partials is not written to any more.
// Limits   Compute capability 9.0; contiguous rows; f32, f16 and bf16 with results of the same
//          type. With clusters of more than 8 blocks, fewer blocks are resident at once.
// Source   QuACK (T. Dao and others, 2025); the Hopper tuning guide on distributed shared memory.
#include "rung/core/bounds.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/ptx/cluster.hpp"
#include "rung/device/ptx/cluster_send.hpp"
#include "rung/device/ptx/mbarrier.hpp"
#include "rung/device/row/cluster_all_reduce.hpp"
#include "rung/ops/softmax/cuda/detail/packed_row.hpp"
#include "rung/ops/softmax/cuda/detail/registers.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

/// Returns the staged packs, which follow the packets in shared memory.
using Packets = ClusterPackets<Total<float>>;
__device__ __forceinline__ PackedWords* stage_behind(Packets& packets) {
  return reinterpret_cast<PackedWords*>(&packets + 1);
}

constexpr int usual_threads = 512;
/// Packs per thread: in registers, and in shared memory, loaded in `groups` groups.
constexpr int registers = 4;
constexpr int staged = 12;
constexpr int groups = 4;
constexpr int packs_per_thread = registers + staged;

template <class T, RowKind kind>
__global__ void __launch_bounds__(usual_threads, 2)
    softmax_cluster_rows(Rows<2> rows, SoftmaxCall<T, T> p, int packs) {
  start_dependent();
  auto& packets = shared<Packets>();
  const std::int64_t row = ptx::cluster_index();
  const T* x = p.x + rows.template offset<0>(row);
  T* y = p.y + rows.template offset<1>(row);
  const ClusterPart part(rows.length, lead_of_row<kind>(x), packs, vector_width<T>);
  const MergePowers<float> merge{Power<float>(p.scale)};
  packed_row<registers, staged, kind, groups>(
      x + part.first, y + part.first, part.length, part.lead, p, merge.power, stage_behind(packets),
      [&](const Total<float>& mine) { return cluster_all_reduce(mine, merge, packets); },
      [&] { cluster_begin(packets); });
}

struct RowCluster {
  int blocks = 2;  // per cluster
  int packs = 1;   // per block
  int threads = usual_threads;
  std::size_t shared_bytes = sizeof(Packets);
  bool fits = true;
};
/// Returns the cluster with the fewest blocks that hold a row, two blocks per SM.
template <class T>
RowCluster cluster_of(const Softmax::Args& args) {
  const std::int64_t packs = packs_of_row<T>(args);
  RowCluster cluster;
  const auto fits = [&] {
    return packs <= std::int64_t{cluster.blocks} * cluster.threads * packs_per_thread;
  };
  while (!fits() && cluster.blocks < max_blocks_per_cluster) cluster.blocks *= 2;
  if (cluster.fits = fits(); !cluster.fits) return cluster;
  const auto up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  cluster.packs = static_cast<int>(up(packs, cluster.blocks));
  const auto warps =
      static_cast<int>(up(cluster.packs, std::int64_t{packs_per_thread} * warp_size));
  cluster.threads = larger(warps, 1) * warp_size;
  const auto rounds =
      up(cluster.packs, cluster.threads) - registers;  // per thread, in shared memory
  if (rounds > 0) {
    cluster.shared_bytes +=
        static_cast<std::size_t>(rounds * cluster.threads) * sizeof(PackedWords);
  }
  return cluster;
}

Support supports(const Softmax::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) return unsupported("clusters need an sm_90");
  if (args.x.dtype == DType::f64) return unsupported("f32, f16 and bf16");
  if (args.x.dtype != args.y.dtype) return unsupported("the result's type must be that of x");
  if (const Support rows = require_contiguous_rows(args); !rows) return rows;
  if (const Support scale = require_foldable_scale(args); !scale) return scale;
  constexpr std::int64_t max_rows = 0x7fffffff / max_blocks_per_cluster;
  if (args.count() > max_rows) return unsupported("more rows than a grid has clusters");
  const bool fits =
      visit<float, f16, bf16>(args.x.dtype, [&]<class T>() { return cluster_of<T>(args).fits; });
  return fits ? supported : unsupported("the row exceeds a cluster's registers");
}

Work work(const Softmax::Args& args, const Context&) {
  const RowCluster cluster =
      visit<float, f16, bf16>(args.x.dtype, [&]<class T>() { return cluster_of<T>(args); });
  return block_work(args.count() * cluster.blocks, cluster.threads, 1,
                    pack_path(args.length(), args.x.dtype), 64);
}

void run(const Softmax::Args& args, Context& context) {
  visit<float, f16, bf16>(args.x.dtype, [&]<class T>() {
    const RowCluster cluster = cluster_of<T>(args);
    const LaunchShape shape{.grid = args.count() * cluster.blocks,
                            .block = cluster.threads,
                            .shared_bytes = cluster.shared_bytes,
                            .cluster = cluster.blocks,
                            .dependent = can_depend(context)};
    const bool regular = is_regular<T, T>(args);
    const bool whole =
        packs_of_row<T>(args) == std::int64_t{cluster.blocks} * cluster.threads * packs_per_thread;
    launch(context, shape,
           !regular ? is_shifted<T, T>(args) ? softmax_cluster_rows<T, RowKind::shifted>
                                             : softmax_cluster_rows<T, RowKind::ragged>
           : whole ? softmax_cluster_rows<T, RowKind::whole>
                    : softmax_cluster_rows<T, RowKind::regular>,
           args.rows, call_of<T, T>(args), cluster.packs);
  });
}

const Rung<Softmax> self{{.name = "cluster_rows",
                          .step = 60,
                          .after = "shared_single_read",
                          .backend = device_backend,
                          .supports = supports,
                          .passes = {.loads = 1, .stores = 1},
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
