// SPDX-License-Identifier: Apache-2.0
// norm / cluster rows
//
// Idea     a row too long for a multiprocessor is spread over the 2, 4 or 8 blocks of a cluster, 64
//          KiB each. Clusters stay: gamma and beta are in registers for all rows, and rows come
//          through a ring in shared memory by asynchronous copies. Each warp sends what it found to
//          every block, 16 bytes that a barrier there counts; while they are on their way, the row
//          before is finished, read from the ring once more.
// Changes  against registers_single_read: rows of up to 512 KiB, 131072 of f32.
// Cost     what must be; one message from every warp to every block of the cluster a row.
// Limits   compute capability 9; contiguous rows of whole, aligned packs; weights of x's type are
//          kept, others are read anew for each row, and so is a residual when it is due.
// Tried    H200, f32 2048x131072, as trial kernels: this way 3904 GB/s. Two barriers of the cluster
//          a row, the blocks' sums read from each other's shared memory, rows loaded when they are
//          due: 1955. Each row finished before the next is begun: 3585. Rows in registers, weights
//          from the caches: below 3600. 16 blocks a cluster: 3687. Streaming stores: 3822. Branches
//          on the kind of weights for every pack, packs read one by one: 3073.
// Source   W. Guo, T. Dao et al., QuACK, 2025.
#include "rung/device/ptx_cluster.hpp"
#include "rung/device/ptx_cluster_send.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/norm/cuda_cluster.hpp"

namespace rung {
namespace {

using namespace norm_cuda;

template <class T, bool plain>
__global__ void __launch_bounds__(cluster_threads, 1)
    norm_cluster_rows(Call<T> call, RingShape shape) {
  using W = Accumulator<T>;
  auto& scratch = shared<ClusterShared<W>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const int lane = lane_of_thread();
  const int blocks = ptx::cluster_size();
  const int rank = ptx::cluster_rank();
  const int warps = threads / 32;
  const int begin = rank * shape.part + thread;
  const int row_packs = static_cast<int>(call.n / pack_width<T>);
  auto* const ring = reinterpret_cast<Pack<T, pack_width<T>>*>(&scratch + 1);
  ClusterRows<T, plain> mine{
      call, shape, ring + thread, begin, std::min(shape.part - thread, row_packs - begin), threads,
      {},   {}};
  const int rows = static_cast<int>(call.rows);
  const int step = static_cast<int>(gridDim.x) / blocks;
  const int first = static_cast<int>(blockIdx.x) / blocks;
  for (int stage = 0; stage < shape.stages; ++stage) mine.fetch(first + stage * step, stage);
  if (thread == 0) {
    for (ptx::MemoryBarrier& sent : scratch.sent) ptx::mbarrier_init(sent, 1);
    ptx::mbarrier_fence_init();
  }
  mine.keep_weights();
  int elements = 0;
#pragma unroll
  for (int p = 0; p < cluster_packs; ++p) elements += mine.has(p) ? pack_width<T> : 0;
  const auto count = static_cast<W>(warp_reduce(elements, Plus{}));
  ptx::cluster_sync();

  const auto finish = [&](int row, int k, int stage) {
    const int turn = k % turns;
    ptx::mbarrier_wait_cluster(scratch.sent[turn], static_cast<unsigned>(k / turns) & 1);
    W center = 0;
    const Moments<W> moments = join(call, scratch.parts[turn], blocks * warps, center);
    const Scale<W> scale = scale_about(call, center, moments);
    if (begin == 0) write_statistics(call, row, center, moments, scale.rstd);
    mine.write(row, stage, scale);
    mine.fetch(row + shape.stages * step, stage);
  };
  int stage = 0;
  int before = 0;  // the stage of the row before
  for (int k = 0, row = first;; ++k, row += step) {
    if (row < rows) {
      // The last stage but one holds the row before.
      if (shape.stages == 2) {
        ptx::async_wait<0>();
      } else {
        ptx::async_wait<1>();
      }
      if (!plain && call.residual != nullptr) mine.add_residual(row, stage);
      RawPack<T, pack_width<T>> s[cluster_packs];
      mine.read(s, stage);
      const WarpPart<W> part = part_of_lanes<cluster_packs>(
          call.layer, 32, count, [&](int p) { return mine.has(p); },
          [&](int p) { return convert<W>(unpack(s[p])); },
          [&] {
#pragma unroll
            for (auto& raw : s) raw = forget(raw, call.zero & static_cast<unsigned>(row));
          });
      const int turn = k % turns;
      if (lane < blocks) {
        ptx::cluster_send(scratch.parts[turn][rank * warps + thread / 32], part, scratch.sent[turn],
                          lane);
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

void run(const Norm::Args& args, Context& context) {
  std::int64_t blocks = 2;
  while (blocks * cluster_threads * cluster_packs < packs_of(args)) blocks *= 2;
  const std::int64_t part = ceil_div(packs_of(args), blocks);
  const auto threads = static_cast<int>(round_up(
      std::max(ceil_div(part, std::int64_t{cluster_packs}), std::int64_t{1}), std::int64_t{32}));
  with_call(args, [&]<class T>(const Call<T>& call) {
    constexpr std::size_t header = sizeof(ClusterShared<Accumulator<T>>);
    const auto stage_bytes = static_cast<std::size_t>(std::max(part, std::int64_t{1})) * 16;
    const bool three = header + 3 * stage_bytes <= context.info().shared_per_block;
    const RingShape shape{three ? 3 : 2, static_cast<int>(part)};
    const std::size_t shared_bytes = header + static_cast<std::size_t>(shape.stages) * stage_bytes;
    void (*const kernel)(Call<T>, RingShape) = usual(call) == Usual::gamma_and_beta
                                                   ? norm_cluster_rows<T, true>
                                                   : norm_cluster_rows<T, false>;
    const std::int64_t clusters =
        resident_clusters(context, kernel, threads, shared_bytes, static_cast<int>(blocks));
    launch(context,
           {.grid = blocks * std::min(clusters, call.rows),
            .block = threads,
            .shared_bytes = shared_bytes,
            .cluster = blocks},
           kernel, call, shape);
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
