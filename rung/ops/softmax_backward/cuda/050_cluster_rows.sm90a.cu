// SPDX-License-Identifier: Apache-2.0
// softmax_backward / a cluster per row
//
// Idea     A row that exceeds a block's registers is spread over a cluster of 2 to 16 blocks; every
//          warp sends its sum to all blocks of the cluster, where an mbarrier counts the bytes.
// Changes  against registers_single_read: rows of up to 131072 f32 are read once.
// Cost     1 load each of y and dy and 1 store per element; one exchange per row. The cluster
//          barrier at the start overlaps the loads; none is needed at the end.
// Limits   Compute capability 9.0; contiguous rows of up to 131072 f32, 262144 f16 or bf16; dx of
//          the type of y. With clusters of more than 8 blocks, fewer blocks are resident at once.
// Source   QuACK (T. Dao and others, 2025); the Hopper tuning guide on distributed shared memory.
#include "rung/core/bounds.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/row/all_reduce.hpp"
#include "rung/device/row/cluster_all_reduce.hpp"
#include "rung/ops/softmax_backward/cuda/detail/register_row.hpp"

namespace rung {
namespace {

using namespace softmax_backward_cuda;

constexpr int max_threads = 1024;
constexpr int packs_per_thread = 2;

template <class T, RowKind kind>
__global__ void __launch_bounds__(max_threads)
    softmax_backward_cluster(Rows<3> rows, GradientCall<T, T> p, int packs) {
  start_dependent();
  auto& packets = shared<ClusterPackets<float>>();
  std::int64_t at[3];
  rows.offsets(ptx::cluster_index(), at);
  const ClusterPart part(rows.length, lead_of_row<kind>(p.y + at[0]), packs, vector_width<T>);
  const GradientRow<GradientCall<T, T>, packs_per_thread, kind> loaded(
      p.y + at[0] + part.first, p.dy + at[1] + part.first, part.length, part.lead);
  cluster_begin(packets);
  const float sum = cluster_all_reduce(loaded.sum(p.log), RowSum<float>{}, packets);
  loaded.store(p, p.dx + at[2] + part.first, part.length, part.lead, sum);
}

struct ClusterLaunch {
  int blocks = 2;  // per cluster
  int packs = 1;   // per block
  int threads = max_threads / 2;
  bool fits = true;
};
/// Returns the smallest cluster that holds a row: two blocks per SM, or one larger block per SM if
/// a row needs more than 8 blocks.
template <class T>
ClusterLaunch launch_of(const SoftmaxBackward::Args& args) {
  const std::int64_t packs = packs_of_row(args.rows, args.y.data, vector_width<T>);
  ClusterLaunch shape;
  const auto fits = [&] {
    return packs <= std::int64_t{shape.blocks} * shape.threads * packs_per_thread;
  };
  while (!fits() && shape.blocks < 8) shape.blocks *= 2;
  if (!fits()) shape.threads = max_threads;
  while (!fits() && shape.blocks < max_blocks_per_cluster) shape.blocks *= 2;
  if (shape.fits = fits(); !shape.fits) return shape;
  shape.packs = static_cast<int>(ceil_div(packs, std::int64_t{shape.blocks}));
  const int warps = ceil_div(shape.packs, packs_per_thread * warp_size);
  shape.threads = larger(warps, 1) * warp_size;
  return shape;
}

Support supports(const SoftmaxBackward::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) return unsupported("clusters need an sm_90");
  if (args.y.dtype == DType::f64) return unsupported("f32, f16 and bf16");
  if (args.y.dtype != args.dx.dtype) return unsupported("the result's type must be that of y");
  if (const Support rows = require_contiguous_rows(args); !rows) return rows;
  constexpr std::int64_t max_rows = 0x7fffffff / max_blocks_per_cluster;
  if (args.count() > max_rows) return unsupported("more rows than a grid has clusters");
  const bool fits =
      visit<float, f16, bf16>(args.y.dtype, [&]<class T>() { return launch_of<T>(args).fits; });
  return fits ? supported : unsupported("the row exceeds a cluster's registers");
}

Work work(const SoftmaxBackward::Args& args, const Context&) {
  const ClusterLaunch shape =
      visit<float, f16, bf16>(args.y.dtype, [&]<class T>() { return launch_of<T>(args); });
  return block_work(args.count() * shape.blocks, shape.threads, 1,
                    pack_path(args.length(), args.y.dtype), 64);
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  visit<float, f16, bf16>(args.y.dtype, [&]<class T>() {
    const ClusterLaunch shape = launch_of<T>(args);
    launch(context,
           {.grid = args.count() * shape.blocks,
            .block = shape.threads,
            .shared_bytes = sizeof(ClusterPackets<float>),
            .cluster = shape.blocks,
            .dependent = can_depend(context)},
           is_regular<T, T>(args)   ? softmax_backward_cluster<T, RowKind::regular>
           : is_shifted<T, T>(args) ? softmax_backward_cluster<T, RowKind::shifted>
                                    : softmax_backward_cluster<T, RowKind::ragged>,
           args.rows, call_of<T, T>(args), shape.packs);
  });
}

const Rung<SoftmaxBackward> self{{.name = "cluster_rows",
                                  .step = 50,
                                  .after = "registers_single_read",
                                  .backend = device_backend,
                                  .supports = supports,
                                  .passes = {.loads = 1, .stores = 1},
                                  .work = work,
                                  .run = run}};

}  // namespace
}  // namespace rung
