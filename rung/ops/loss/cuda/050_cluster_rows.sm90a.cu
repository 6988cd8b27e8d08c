// SPDX-License-Identifier: Apache-2.0
// loss / a cluster per row
//
// Idea     A row that exceeds a block is spread over the shared memory of a cluster of 2 to 16
//          blocks, 64 KiB each, three blocks per SM, so that some load while others compute. Every
//          warp computes its maximum and the sums relative to it, and sends them to all blocks in
//          one 16-byte packet, counted by an mbarrier.
// Changes  against shared_single_read: rows of up to 1 MiB are read once, and one exchange per row
//          replaces two: sums are rescaled to the row's maximum when the packets are combined.
// Cost     x is read once and dx written once; two exponentials per element, x is read three times
//          from shared memory.
// Limits   Compute capability 9.0; cross entropy of contiguous rows of f32, f16 or bf16, longer
//          than 64 KiB. With clusters of more than 8 blocks, fewer blocks are resident at once.
// Source   softmax's ladder (ops/softmax/cuda/060_cluster_rows.sm90a.cu).
#include "rung/core/bounds.hpp"
#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/ptx/cluster.hpp"
#include "rung/device/ptx/cluster_send.hpp"
#include "rung/device/ptx/mbarrier.hpp"
#include "rung/device/resident.hpp"
#include "rung/device/row/cluster_all_reduce.hpp"
#include "rung/device/row/register_row.hpp"
#include "rung/ops/loss/cuda/detail/loss.hpp"

namespace rung {
namespace {

using namespace loss_cuda;

constexpr int cluster_threads = 256;
constexpr int cluster_warps = cluster_threads / warp_size;
constexpr int packs_per_block = 16 * cluster_threads;

/// Partial sums of a warp relative to its own maximum. `shares`: sum of the weights q with which
/// this maximum enters `terms`.
struct alignas(16) WarpLoss {
  float maximum;
  float powers;
  float terms;
  float shares;
};

/// Exchange buffers of a block; staged packs follow, aligned to 128 bytes.
struct alignas(128) ClusterShared {
  WarpLoss of_warp[2][max_blocks_per_cluster * cluster_warps];  // of this row and the next
  ptx::MemoryBarrier sent[2];
  double sums[32];
};

/// Returns the sums of a row relative to its maximum and sets `maximum`; valid in every lane.
__device__ __forceinline__ Parts<float> join_warps(const WarpLoss* of_warp, int count,
                                                   float& maximum) {
  maximum = no_maximum<float>;
#pragma unroll 1
  for (int i = lane_of_thread(); i < count; i += warp_size) {
    maximum = Larger{}(maximum, of_warp[i].maximum);
  }
  maximum = warp_reduce(maximum, Larger{});
  Parts<float> sum{0, 0};
#pragma unroll 1
  for (int i = lane_of_thread(); i < count; i += warp_size) {
    const WarpLoss part = of_warp[i];
    sum.powers += part.powers * power(part.maximum - maximum);
    sum.terms += part.terms;
    // The distance may be infinite if nothing was added.
    if (part.shares != 0) sum.terms += part.shares * (maximum - part.maximum);
  }
  return warp_reduce(sum, AddParts{});
}

/// Computes loss and gradient; `packs`: packs of a row per block.
template <class T, RowKind kind>
__global__ void __launch_bounds__(cluster_threads, 3)
    loss_cluster_rows(Rows<4> rows, RowLoss<T> p, int packs) {
  constexpr int w = vector_width<T>;
  auto& scratch = shared<ClusterShared>();
  auto* const staged = reinterpret_cast<PackedWords*>(&scratch + 1);
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = lane_of_thread();
  const int blocks = ptx::cluster_size();
  const int rank = ptx::cluster_rank();
  const LossTerms<float> terms = p.terms.template of_kind<LossKind::cross_entropy>();
  const float factor = p.factor();
  const T outside = convert<T>(-std::numeric_limits<float>::infinity());  // exponential of 0
  if (thread == 0) {
    for (ptx::MemoryBarrier& sent : scratch.sent) ptx::mbarrier_init(sent, 1);
    ptx::mbarrier_fence_init();
  }
  ptx::cluster_sync();

  double total = 0;
  int turn = 0;
  unsigned parity = 0;
  const std::int64_t step = gridDim.x / static_cast<unsigned>(blocks);
  for (std::int64_t number = ptx::cluster_index(); number < rows.count(); number += step) {
    const T* const x = p.x + rows.template offset<Loss::row_x>(number);
    const ClusterPart part(rows.length, lead_of_row<kind>(x), packs, w);
    const RegisterRow<const T, kind> from(x + part.first, part.length, part.lead);
    const auto for_each_pack = [&](auto&& f) {
#pragma unroll 4
      for (int pack = thread; from.has(pack); pack += cluster_threads) f(pack);
    };
    // A thread stages only packs it reads itself, so no barrier is needed. Issue all copies before
    // the label is needed.
    for_each_pack([&](int pack) { from.stage(pack, staged + pack, outside); });
    const Row<T> row(rows, p, number, true);
    // Index of the label's element in this block's part; outside it if another block holds the
    // label.
    const int label = row.works ? static_cast<int>(row.label) - part.first + part.lead : -1;
    ptx::async_wait_all();

    WarpLoss mine{no_maximum<float>, 0, 0, 0};
    for_each_pack([&](int pack) {
      mine.maximum = Larger{}(mine.maximum, largest<float, T>(load_words(staged + pack)));
    });
    mine.maximum = warp_reduce(mine.maximum, Larger{});
    for_each_pack([&](int pack) {
      const Pack<float, w> value = widen<float, T>(load_words(staged + pack));
      float powers = 0;
#pragma unroll
      for (int i = 0; i < w; ++i) powers += power(value[i] - mine.maximum);
      mine.powers += powers;
      if (terms.every_share != 0) {
        float below = 0;
        int count = 0;
#pragma unroll
        for (int i = 0; i < w; ++i) {
          const int element = pack * w + i;
          if (element >= part.lead && element < part.lead + part.length) {
            below += mine.maximum - value[i];
            ++count;
          }
        }
        mine.terms += terms.every_share * below;
        mine.shares += terms.every_share * static_cast<float>(count);
      }
      if (label / w == pack && label >= 0 && terms.label_share != 0) {
        const T at_label = reinterpret_cast<const T*>(staged)[label];
        mine.terms += terms.label_share * (mine.maximum - convert<float>(at_label));
        mine.shares += terms.label_share;
      }
    });
    mine.powers = warp_reduce(mine.powers, Plus{});
    mine.terms = warp_reduce(mine.terms, Plus{});
    mine.shares = warp_reduce(mine.shares, Plus{});

    if (thread == 0) {
      ptx::mbarrier_arrive_expect(
          scratch.sent[turn],
          static_cast<unsigned>(blocks * cluster_warps) * static_cast<unsigned>(sizeof(mine)));
    }
    if (lane < blocks) {
      WarpLoss& to = scratch.of_warp[turn][rank * cluster_warps + thread / warp_size];
      ptx::cluster_send(to, mine, scratch.sent[turn], lane);
    }
    ptx::mbarrier_wait_cluster(scratch.sent[turn], parity);
    float maximum = 0;
    const Parts<float> parts = join_warps(scratch.of_warp[turn], blocks * cluster_warps, maximum);
    __syncthreads();  // a warp's next packet signals that this block has read the packets
    turn ^= 1;
    if (turn == 0) parity ^= 1;

    if (rank == 0 && thread == 0) {
      const float loss = row.works ? Row<T>::loss_of(p, parts) : row.otherwise;
      if (p.losses != nullptr) p.losses[row.at[Loss::row_losses]] = loss;
      total += static_cast<double>(loss);
    }
    if (p.dx == nullptr) continue;

    const RegisterRow<T, kind> to(p.dx + row.at[Loss::row_dx] + part.first, part.length, part.lead);
    const float scale = factor / parts.powers;
    const float every = terms.every_share * factor;
    const float of_label = terms.label_share * factor;
    for_each_pack([&](int pack) {
      Pack<float, w> slopes = widen<float, T>(load_words(staged + pack));
#pragma unroll
      for (int i = 0; i < w; ++i) slopes[i] = power(slopes[i] - maximum) * scale - every;
      if (label >= 0 && pack == label / w) {
#pragma unroll
        for (int i = 0; i < w; ++i) slopes[i] -= pack * w + i == label ? of_label : 0.0F;
      }
      if (!row.works) {
#pragma unroll
        for (int i = 0; i < w; ++i) slopes[i] = row.otherwise;
      }
      to.store(pack, slopes);
    });
  }
  ptx::cluster_sync();  // remote packets may still arrive in shared memory
  leave_sum(total, scratch.sums, p.sums);
}

/// Returns whether rows of x and dx begin and end at pack boundaries.
bool rows_are_whole_packs(const Loss::Args& args) {
  const auto w = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  return rows_are_regular(args.rows.others, args.classes(), Loss::row_x, args.x.data, w) &&
         rows_are_regular(args.rows.others, args.classes(), Loss::row_dx, args.options.dx.data, w);
}

/// Returns the largest number of packs that a row spans.
std::int64_t packs_of_row(const Loss::Args& args) {
  const auto w = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  return ceil_div(args.classes(), w) + (rows_are_whole_packs(args) ? 0 : 1);
}

/// Smallest cluster that holds a row, as returned by cluster_of().
struct LossCluster {
  int blocks = 2;
  int packs = 0;  // per block
  std::size_t shared_bytes = 0;
};
LossCluster cluster_of(const Loss::Args& args) {
  const std::int64_t packs = packs_of_row(args);
  LossCluster cluster;
  while (cluster.blocks < max_blocks_per_cluster &&
         std::int64_t{cluster.blocks} * packs_per_block < packs) {
    cluster.blocks *= 2;
  }
  cluster.packs = static_cast<int>(ceil_div(packs, std::int64_t{cluster.blocks}));
  cluster.shared_bytes = sizeof(ClusterShared) + static_cast<std::size_t>(cluster.packs) * 16;
  return cluster;
}

Support supports(const Loss::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) {
    return unsupported("clusters need compute capability 9.0");
  }
  if (args.x.dtype == DType::f64) return unsupported("f32, f16 and bf16");
  if (args.options.kind != LossKind::cross_entropy) return unsupported("cross entropy");
  if (!args.contiguous()) return unsupported("the rows must be contiguous");
  const std::int64_t packs = packs_of_row(args);
  if (packs <= packs_per_block) return unsupported("rows longer than 64 KiB");
  return packs <= std::int64_t{max_blocks_per_cluster} * packs_per_block
             ? supported
             : unsupported("the row exceeds a cluster's shared memory");
}

Work work(const Loss::Args& args, const Context& context) {
  constexpr int resident = 3;
  const LossCluster cluster = cluster_of(args);
  Work rows = block_work(args.count() * cluster.blocks, cluster_threads,
                         2 + ceil_div(cluster.packs, cluster_threads),
                         rows_are_whole_packs(args) ? "" : "cut");
  rows.resident = resident;
  const std::int64_t blocks = std::int64_t{resident} * context.info().sms;
  return with_result(args, in_turns(blocks / cluster.blocks * cluster.blocks, rows));
}

void run(const Loss::Args& args, Context& context) {
  const LossCluster cluster = cluster_of(args);
  const bool whole = rows_are_whole_packs(args);
  visit<float, f16, bf16>(args.x.dtype, [&]<class T>() {
    const auto kernel =
        whole ? loss_cluster_rows<T, RowKind::regular> : loss_cluster_rows<T, RowKind::ragged>;
    const std::int64_t clusters = smaller(
        resident_clusters(context, kernel, cluster_threads, cluster.shared_bytes, cluster.blocks),
        args.count());
    const std::int64_t blocks = clusters * cluster.blocks;
    run_blocks<T>(args, context, blocks, [&](const RowLoss<T>& p) {
      launch(context,
             {.grid = blocks,
              .block = cluster_threads,
              .shared_bytes = cluster.shared_bytes,
              .cluster = cluster.blocks},
             kernel, args.rows, p, cluster.packs);
    });
  });
}

const Rung<Loss> self{{.name = "cluster_rows",
                       .step = 50,
                       .after = "shared_single_read",
                       .backend = device_backend,
                       .supports = supports,
                       .passes = {.loads = 1, .stores = 1},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
