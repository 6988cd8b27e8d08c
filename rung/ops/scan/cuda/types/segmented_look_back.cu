// SPDX-License-Identifier: Apache-2.0
// scan / segmented look-back
//
// Idea     a value and a flag for the start of a segment: pairs of these combine associatively like
//          the values themselves, so that segments cross tiles, warps and lanes. The operation is a
//          run-time value.
// Changes  against decoupled_look_back: segments and all operations, at the cost of a flag and a
//          switch per step. Offsets become a bitmap first, one bit per element.
// Cost     each element read and written once, and one bit of the bitmap; three small launches.
// Limits   none: this is the general rung.
// Source   G. Blelloch, Prefix Sums and Their Applications, 1990, section 1.5.
#include "rung/ops/scan/cuda/080_decoupled_look_back.cuh"

namespace rung {
namespace {
using namespace scan_cuda;

/// Scans with segments. A tile's heads, one bit of lines.heads per element, are loaded with its
/// elements and become the flags that policy.combine carries.
template <class T, bool OneLine>
__global__ void __launch_bounds__(look_back_threads, look_back_blocks<Segmented<T>>)
    scan_segmented_look_back(Segmented<T> policy, Lines<T> lines, Tree<Flagged<ScanState<T>>> tree,
                             unsigned* ticket, std::int64_t first_line, bool exclusive) {
  start_dependent();
  using State = Flagged<ScanState<T>>;
  auto& memory = shared<LookBackShared<Segmented<T>>>();
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const TakenTile mine = take_tile<OneLine>(ticket, tree.tiles, first_line, memory.ticket);
  LookBackTile<Segmented<T>> tile;
  tile.load(lines, mine.line, std::int64_t{mine.tile} * LookBackTile<Segmented<T>>::elements);
  const auto block = tile.scan_block(policy, memory.scratch);
  State before = block.before_warp;
  if (OneLine || ticket != nullptr) {
    if (warp == 0) {
      const State prefix = look_back(policy, tree, mine.line, mine.tile, block.total);
      if (threadIdx.x == 0) memory.before = prefix;
    }
    __syncthreads();
    before = policy.combine(memory.before, before);
  }
  tile.finish(policy, before, lines.y_stride, exclusive);
}

void run(const Scan::Args& args, Context& context) {
  if (args.y.empty()) return;
  visit_scanned(args.x.dtype, [&]<class T>() {
    using Kernel = LookBackKernel<Segmented<T>>;
    launch_look_back(context, Kernel(scan_segmented_look_back<T, true>),
                     Kernel(scan_segmented_look_back<T, false>), segmented_policy<T>(args),
                     lines_of<T>(args), args.exclusive, head_words(args),
                     [&](unsigned* heads) { mark_heads(context, args, heads); });
  });
}

Work work(const Scan::Args& args, const Context&) {
  return visit_scanned(args.x.dtype, [&]<class T>() { return look_back_work<Segmented<T>>(args); });
}

const Rung<Scan> self{{.name = "segmented_look_back",
                       .after = "decoupled_look_back",
                       .backend = device_backend,
                       .passes = {.loads = 1, .stores = 1},
                       .work = work,
                       .run = run}};
}  // namespace
}  // namespace rung
