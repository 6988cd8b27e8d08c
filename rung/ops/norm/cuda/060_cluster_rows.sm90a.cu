// SPDX-License-Identifier: Apache-2.0
// norm / cluster rows
//
// Idea     a row too long for a multiprocessor is spread over the 2, 4 or 8 blocks of a cluster, 64
//          KiB each, or 32 KiB of 16-bit elements. Clusters stay: gamma and beta are in registers
//          for all rows, and rows come through a ring in shared memory by asynchronous copies. Each
//          warp sends what it found to every block, 16 bytes that a barrier there counts; while
//          they are on their way, the row before is finished, read from the ring once more.
// Changes  against registers_single_read: rows of up to 512 KiB, 131072 of f32.
// Cost     what must be; one message from every warp to every block of the cluster a row.
// Limits   compute capability 9; contiguous rows of whole, aligned packs; weights of x's type are
//          kept, others are read anew for each row, and so is a residual when it is due.
// Tried    H200, copy 4240 GB/s, 2048x131072. f32: this 4044; three stages 3992, streaming stores
//          3964. bf16: this 4019; in 4 blocks of 512 threads 3750, two blocks a multiprocessor with
//          two stages 3940; elements widened one by one 2728. Rows in registers, weights from the
//          caches or shared memory, several blocks a multiprocessor: f32 3395, bf16 3724. As trial
//          kernels, f32: two barriers of the cluster a row, the blocks' sums read from each other's
//          shared memory, rows loaded when they are due: 1955; each row finished before the next is
//          begun: 3585; branches on the kind of weights for every pack: 3073.
// Source   W. Guo, T. Dao et al., QuACK, 2025.
#include "rung/core/bounds.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/ptx_cluster.hpp"
#include "rung/device/ptx_cluster_send.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/norm/cuda/detail/cluster.hpp"

namespace rung {
namespace {

using namespace norm_cuda;

template <class T, ClusterKind kind>
__global__ void __launch_bounds__(cluster_threads, 1)
    norm_cluster_rows(Call<T> call, RingShape shape) {
  start_dependent();
  using W = Accumulator<T>;
  auto& scratch = shared<ClusterShared<W>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const int lane = lane_of_thread();
  const int blocks = ptx::cluster_size();
  const int rank = ptx::cluster_rank();
  const int warps = threads / 32;
  const int warp = thread / 32;
  const int row_packs = static_cast<int>(call.n / pack_width<T>);
  // Of the block's packs each warp has neighbouring ones.
  const int begin = warp * 32 * cluster_packs;
  const int length = smaller(shape.part, row_packs - rank * shape.part);
  auto* const ring = reinterpret_cast<Pack<T, pack_width<T>>*>(&scratch + 1);
  ClusterRows<T, kind> mine{
      call, shape, ring + begin + lane, rank * shape.part + begin + lane, length - begin, {}, {}};
  const int rows = static_cast<int>(call.rows);
  const int step = static_cast<int>(gridDim.x) / blocks;
  const int first = static_cast<int>(blockIdx.x) / blocks;
  // In front of the copies, or compute-sanitizer takes these for writes to the barriers.
  if (thread == 0) {
    for (ptx::MemoryBarrier& sent : scratch.sent) ptx::mbarrier_init(sent, 1);
    ptx::mbarrier_fence_init();
  }
  for (int stage = 0; stage < shape.stages; ++stage) mine.fetch(first + stage * step, stage);
  mine.keep_weights();
  ptx::cluster_sync();

  const auto finish = [&](int row, int k, int stage) {
    const int turn = k % turns;
    ptx::mbarrier_wait_cluster(scratch.sent[turn], static_cast<unsigned>(k / turns) & 1);
    W center = 0;
    const Moments<W> moments = join(call, scratch.parts[turn], blocks * warps, center);
    const Scale<W> scale = scale_about(call, center, moments);
    if (rank == 0 && thread == 0) {
      write_statistics<kind != ClusterKind::any>(call, row, center, moments, scale.rstd);
    }
    mine.write(row, stage, scale);
    mine.fetch(row + shape.stages * step, stage);
  };
  int stage = 0;
  int before = 0;  // the stage of the row before
  for (int k = 0, row = first;; ++k, row += step) {
    if (row < rows) {
      // As many as two stages fewer than there are may still be on their way.
      if (shape.stages == 2) {
        ptx::async_wait<0>();
      } else if (shape.stages == 3) {
        ptx::async_wait<1>();
      } else {
        ptx::async_wait<2>();
      }
      if (kind == ClusterKind::any && call.residual != nullptr) mine.add_residual(row, stage);
      RawPack<T, pack_width<T>> s[cluster_packs];
      mine.read(s, stage);
      const WarpPart<W> part = part_of_lanes<cluster_packs, pack_width<T>, W>(
          call.layer, 32, mine.left, [&](int p) { return mine.has(p); },
          [&](int p) { return widen(s[p]); });
      const int turn = k % turns;
      if (lane < blocks) {
        ptx::cluster_send(scratch.parts[turn][rank * warps + warp], part, scratch.sent[turn], lane);
      }
      if (thread == 0) {
        ptx::mbarrier_arrive_expect(scratch.sent[turn], static_cast<unsigned>(blocks * warps) *
                                                            static_cast<unsigned>(sizeof(part)));
      }
    }
    if (k > 0 && row - step < rows) finish(row - step, k - 1, before);
    if (row >= rows) break;
    before = stage;
    stage = stage + 1 == shape.stages ? 0 : stage + 1;
  }
  ptx::async_wait<0>();
  ptx::cluster_sync();  // shared memory that others still send to must not go away
}

std::int64_t packs_of(const Norm::Args& args) {
  return args.columns() / static_cast<std::int64_t>(16 / size_of(args.x.dtype));
}

Support supports(const Norm::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) {
    return unsupported("clusters need compute capability 9.0");
  }
  if (const Support rows = require_contiguous_rows(args, context); !rows) return rows;
  if (!all_packs_whole(args)) return unsupported("rows of whole, aligned packs of 16 bytes");
  if (args.rows() > 0x3fffffff) return unsupported("more than 2^30 rows");
  if (packs_of(args) > std::int64_t{most_blocks} * cluster_threads * cluster_packs) {
    return unsupported("the row is longer than a cluster holds");
  }
  return supported;
}

double estimate(const Norm::Args& args, const Context& context) {
  return seconds(args, context, 1, args.columns() > 16384 ? 0.81 : 0.7);
}

/// How many threads of how many blocks, and how many stages. Of 16 bits half as many threads as the
/// registers hold are enough, in more blocks; their rings are deeper.
struct Plan {
  std::int64_t blocks = 2;
  int threads = cluster_threads;  // at most
  RingShape shape{};
};
Plan plan_of(const Norm::Args& args) {
  Plan plan;
  const std::int64_t packs = packs_of(args);
  const auto most = [&] { return std::int64_t{plan.threads} * cluster_packs; };
  if (size_of(args.x.dtype) == 2 && packs <= most_blocks * most() / 2) plan.threads /= 2;
  while (plan.blocks * most() < packs) plan.blocks *= 2;
  plan.shape.stages = plan.threads < cluster_threads ? 4 : plan.blocks == most_blocks ? 2 : 3;
  plan.shape.part = static_cast<int>(larger(ceil_div(packs, plan.blocks), std::int64_t{1}));
  plan.threads = static_cast<int>(
      round_up(ceil_div(std::int64_t{plan.shape.part}, std::int64_t{cluster_packs}), 32));
  return plan;
}

void run(const Norm::Args& args, Context& context) {
  Plan plan = plan_of(args);
  const std::int64_t whole_packs = plan.blocks * plan.threads * cluster_packs;
  const bool whole = packs_of(args) == whole_packs;
  with_call(args, [&]<class T>(const Call<T>& call) {
    const auto shared_bytes = [&] {
      return sizeof(ClusterShared<Accumulator<T>>) + static_cast<std::size_t>(plan.shape.stages) *
                                                         static_cast<std::size_t>(plan.shape.part) *
                                                         16;
    };
    while (plan.shape.stages > 2 && shared_bytes() > context.info().shared_per_block) {
      --plan.shape.stages;
    }
    void (*const kernel)(Call<T>, RingShape) = usual(call) != Usual::gamma_and_beta
                                                   ? norm_cluster_rows<T, ClusterKind::any>
                                               : whole ? norm_cluster_rows<T, ClusterKind::whole>
                                                       : norm_cluster_rows<T, ClusterKind::usual>;
    const std::int64_t clusters = resident_clusters(context, kernel, plan.threads, shared_bytes(),
                                                    static_cast<int>(plan.blocks));
    launch(context,
           {.grid = plan.blocks * smaller(clusters, call.rows),
            .block = plan.threads,
            .shared_bytes = shared_bytes(),
            .cluster = plan.blocks,
            .dependent = can_depend(context)},
           kernel, call, plan.shape);
  });
}

const Rung<Norm> self{{.name = "cluster_rows",
                       .step = 60,
                       .after = "registers_single_read",
                       .backend = device_backend,
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
