// SPDX-License-Identifier: Apache-2.0
// softmax / a cluster per row
//
// Idea     a row that exceeds a block spreads over a cluster of 2 to 16 of them. A thread keeps 16
//          packs as read, 4 in registers, the others in shared memory, where they arrive in four
//          groups: what has come is summed meanwhile. Every warp sends what its part comes to to
//          all blocks of the cluster, where a barrier in shared memory counts the bytes.
// Changes  against shared_single_read: rows of up to 524288 f32 are read once; two blocks share a
//          SM, and one loads while the other computes.
// Cost     1 read and 1 write per element; two exponentials. One exchange a row; the barrier of the
//          cluster, which says that all its blocks have begun, passes during the loads, and at the
//          end there is none: a block that has all arrivals is not written to any more.
// Limits   compute capability 9.0; contiguous rows; f32, f16 and bf16 with results of the same
//          type. Beyond 8 blocks a cluster fits fewer places on the chip. Backward: 131072 f32.
// Tried    on an H200, of 4180 GB/s (copy), 2048x131072. Before, with places in shared memory 16
//          bytes past a line, which may be why L2 read half as many sectors again: f32 3800, bf16
//          3722. Trial kernels with aligned places, f32: packs asked for one by one, blocks' totals
//          behind a barrier 3996; whole rows 4021, warps' totals sent by st.async 4047; by the copy
//          engine 3966 to 4022; exponentials kept in registers, 8 blocks, 3962. bf16: 4001, in two
//          groups 3979, by the copy engine 3966. 3, 5, 6 blocks: f32 3802, 3873, 3838. Persistent
//          clusters: 3719.
// Source   QuACK (T. Dao and others, 2025); the Hopper tuning guide on distributed shared memory.
#include "rung/core/bounds.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/ptx/cluster.hpp"
#include "rung/device/ptx/cluster_send.hpp"
#include "rung/device/ptx/mbarrier.hpp"
#include "rung/device/waiting.hpp"
#include "rung/ops/softmax/cuda/detail/packed_row.hpp"
#include "rung/ops/softmax/cuda/detail/registers.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

constexpr int max_blocks_a_cluster = 16;

/// What a warp sends to each block.
struct alignas(16) Sent {
  Total<float> total;
  float unused[2];
};
struct alignas(128) ClusterShared {
  Sent of_warp[max_blocks_a_cluster * max_threads / warp_size];
  ptx::MemoryBarrier met;
  [[nodiscard]] __device__ __forceinline__ Words* stage() {
    return reinterpret_cast<Words*>(this + 1);
  }
};

/// This block's part of a row, from an aligned address on.
struct Part {
  int first = 0;
  int length = 0;
  int lead = 0;
  __device__ __forceinline__ Part(std::int64_t row_length, int row_lead, int packs, int width) {
    const int begin = ptx::cluster_rank() * packs * width - row_lead;
    const int end = begin + packs * width;
    const int all = static_cast<int>(row_length);
    first = begin > 0 ? begin : 0;
    lead = begin > 0 ? 0 : row_lead;
    length = end < all ? end - first : all > first ? all - first : 0;
  }
};

/// Tells the cluster's blocks that this one has begun and may be written to. After its loads.
__device__ __forceinline__ void begin(ClusterShared& memory) {
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(memory.met, 1);
    ptx::mbarrier_fence_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned warps = static_cast<unsigned>(ptx::cluster_size()) * (blockDim.x / warp_size);
    ptx::mbarrier_arrive_expect(memory.met, warps * static_cast<unsigned>(sizeof(Sent)));
  }
  ptx::cluster_arrive_begun();
}

/// The row's total, from each thread's: every warp tells all blocks.
template <class Merge>
__device__ __forceinline__ Total<float> cluster_total(const Total<float>& mine, const Merge& merge,
                                                      ClusterShared& memory) {
  const Sent of_warp{merge(mine, warp_size), {}};
  const int warps = static_cast<int>(blockDim.x) / warp_size;
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const int lane = lane_of_thread();
  const int blocks = ptx::cluster_size();
  ptx::cluster_wait_begun();
  if (lane < blocks) {
    ptx::cluster_send(memory.of_warp[ptx::cluster_rank() * warps + warp], of_warp, memory.met,
                      lane);
  }
  ptx::mbarrier_wait_cluster(memory.met, 0);
  Total<float> all = {no_maximum<float>, 0};
#pragma unroll 1
  for (int i = lane; i < blocks * warps; i += warp_size) all = merge(all, memory.of_warp[i].total);
  return merge(all, warp_size);
}

constexpr int usual_threads = 512;
/// Packs of a thread: in registers, and in shared memory, which is waited for in `groups`.
constexpr int registers = 4;
constexpr int staged = 12;
constexpr int groups = 4;
constexpr int kept_packs = registers + staged;

template <class T, RowKind kind>
__global__ void __launch_bounds__(usual_threads, 2)
    softmax_cluster_rows(Rows<2> rows, Forward<T, T> p, int packs) {
  start_dependent();
  auto& memory = shared<ClusterShared>();
  const std::int64_t row = ptx::cluster_index();
  const T* x = p.x + rows.template offset<0>(row);
  T* y = p.y + rows.template offset<1>(row);
  const Part part(rows.length, kept_lead<kind>(x), packs, pack_width<T>);
  const MergePowers<float> merge{Power<float>(p.scale)};
  forward_packed_row<registers, staged, kind, groups>(
      x + part.first, y + part.first, part.length, part.lead, p, merge.power, memory.stage(),
      [&](const Total<float>& mine) { return cluster_total(mine, merge, memory); },
      [&] { begin(memory); });
}

template <class T, RowKind kind>
__global__ void __launch_bounds__(max_threads)
    softmax_backward_cluster(Rows<3> rows, Backward<T, T> p, int packs) {
  start_dependent();
  auto& memory = shared<ClusterShared>();
  std::int64_t at[3];
  rows.offsets(ptx::cluster_index(), at);
  const Part part(rows.length, kept_lead<kind>(p.y + at[0]), packs, pack_width<T>);
  backward_row<kept_backward_by_block, kind>(
      p.y + at[0] + part.first, p.dy + at[1] + part.first, p.dx + at[2] + part.first, part.length,
      part.lead, p,
      [&](const Total<float>& mine) { return cluster_total(mine, MergeSums<float>{}, memory); },
      [&] { begin(memory); });
}

struct Plan {
  int blocks = 2;  // a cluster
  int packs = 1;   // a block
  int threads = usual_threads;
  std::size_t shared_bytes = sizeof(ClusterShared);
  bool fits = true;
};
/// Two blocks share an SM, unless a row needs more than 8 of them.
template <class T>
Plan plan_of(const Softmax::Args& args) {
  const int kept = args.backward ? kept_backward_by_block : kept_packs;
  const std::int64_t packs = packs_of_row<T>(args);
  Plan plan;
  const auto fits = [&] { return packs <= std::int64_t{plan.blocks} * plan.threads * kept; };
  while (!fits() && plan.blocks < 8) plan.blocks *= 2;
  if (!fits() && args.backward) plan.threads = max_threads;
  while (!fits() && plan.blocks < max_blocks_a_cluster) plan.blocks *= 2;
  if (plan.fits = fits(); !plan.fits) return plan;
  const auto up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  plan.packs = static_cast<int>(up(packs, plan.blocks));
  const auto warps = static_cast<int>(up(plan.packs, std::int64_t{kept} * warp_size));
  plan.threads = larger(warps, 1) * warp_size;
  const auto rounds = up(plan.packs, plan.threads) - registers;  // in shared memory
  if (!args.backward && rounds > 0) {
    plan.shared_bytes += static_cast<std::size_t>(rounds * plan.threads) * sizeof(Words);
  }
  return plan;
}

Support supports(const Softmax::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) return unsupported("clusters need an sm_90");
  if (args.x.dtype == DType::f64) return unsupported("f32, f16 and bf16");
  if (args.x.dtype != args.y.dtype) return unsupported("the result's type must be that of x");
  if (const Support rows = require_contiguous_rows(args); !rows) return rows;
  if (const Support scale = require_foldable_scale(args); !scale) return scale;
  constexpr std::int64_t max_rows = 0x7fffffff / max_blocks_a_cluster;
  if (args.count() > max_rows) return unsupported("more rows than a grid has clusters");
  const bool fits =
      visit<float, f16, bf16>(args.x.dtype, [&]<class T>() { return plan_of<T>(args).fits; });
  return fits ? supported : unsupported("the row exceeds a cluster's registers");
}

double estimate(const Softmax::Args& args, const Context& context) {
  // The blocks of a cluster wait for each other in every row.
  return waiting_seconds(Softmax::cost(args),
                         {.bandwidth = 0.83,
                          .blocks = static_cast<double>(args.count()),
                          .blocks_per_sm = 1e9,
                          .fixed = 3e-6,
                          .busy = 0.9e-6},
                         context);
}

void run(const Softmax::Args& args, Context& context) {
  visit<float, f16, bf16>(args.x.dtype, [&]<class T>() {
    const Plan plan = plan_of<T>(args);
    const LaunchShape shape{.grid = args.count() * plan.blocks,
                            .block = plan.threads,
                            .shared_bytes = plan.shared_bytes,
                            .cluster = plan.blocks,
                            .dependent = can_depend(context)};
    const bool regular = rows_are_regular<T, T>(args);
    if (args.backward) {
      launch(context, shape,
             regular ? softmax_backward_cluster<T, RowKind::regular>
                     : softmax_backward_cluster<T, RowKind::ragged>,
             args.rows, backward_of<T, T>(args), plan.packs);
    } else {
      const bool whole =
          packs_of_row<T>(args) == std::int64_t{plan.blocks} * plan.threads * kept_packs;
      launch(context, shape,
             !regular ? softmax_cluster_rows<T, RowKind::ragged>
             : whole  ? softmax_cluster_rows<T, RowKind::whole>
                      : softmax_cluster_rows<T, RowKind::regular>,
             forward_rows(args), forward_of<T, T>(args), plan.packs);
    }
  });
}

const Rung<Softmax> self{{.name = "cluster_rows",
                          .step = 60,
                          .after = "shared_single_read",
                          .backend = device_backend,
                          .supports = supports,
                          .passes = {.loads = 1, .stores = 1},
                          .estimate = estimate,
                          .run = run}};

}  // namespace
}  // namespace rung
