// SPDX-License-Identifier: Apache-2.0
// scan / warp-specialised ring
//
// Idea     four squads of a persistent block pass tiles along a ring of buffers in shared memory.
//          One warp loads, with bulk copies that need no registers and run stages ahead. Four sum
//          tiles and publish the totals. One looks back for what lies before each tile, ahead of
//          those who need it. Eight scan and store. Memory never waits for a look-back, nor a
//          look-back for a store.
// Changes  against decoupled_look_back: loads do not stop while a block waits for its prefix; a
//          tile is summed as soon as it arrives, however many are still to be stored.
// Cost     each element read and written once; each tile is read twice from shared memory.
// Limits   Hopper; sums without segments, contiguous lines that begin on 16 bytes. Short inputs do
//          not fill the ring.
// Tried    not measured on a GPU yet.
// Source   D. Merrill & M. Garland 2016 for the look-back; NVIDIA, CUDA C++ Programming Guide, for
//          bulk copies and asynchronous barriers.
#include "rung/device/resident.hpp"
#include "rung/ops/scan/cuda_heads.hpp"
#include "rung/ops/scan/cuda_ring.hpp"

namespace rung {
namespace {
using namespace scan_cuda;
using namespace scan_cuda::ring;

bool on_16_bytes(const Scan::Args& args) {
  const auto size = static_cast<std::int64_t>(size_of(args.x.dtype));
  bool aligned = reinterpret_cast<std::uintptr_t>(args.x.data) % 16 == 0;
  for (int axis = 0; axis < args.lines.rank; ++axis) {
    aligned = aligned && args.lines.strides[0][axis] * size % 16 == 0;
  }
  return aligned;
}

Support supports(const Scan::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) return unsupported("needs compute capability 9.0");
  if (args.y.empty()) return unsupported("nothing to scan");
  if (const Support sum = supports_sum(args); !sum) return sum;
  if (!args.is_contiguous()) return unsupported("takes contiguous lines, forward");
  if (!on_16_bytes(args)) return unsupported("lines do not begin on 16 bytes");
  return supported;
}

void run(const Scan::Args& args, Context& context) {
  visit_scanned(args.x.dtype, [&]<class T>() {
    using Policy = Sum<T>;
    using State = typename Policy::State;
    const Lines<T> lines = lines_of<T>(args);
    Tree<State> tree{nullptr, ceil_div(lines.n, ScanTile<Policy>::elements), args.lines.size()};
    const std::int64_t words =
        32 + tree.size() * static_cast<std::int64_t>(sizeof(Published<State>) / 4);
    auto* memory = static_cast<unsigned*>(context.workspace(static_cast<std::size_t>(words) * 4));
    tree.nodes = reinterpret_cast<Published<State>*>(memory + 32);
    clear_words(context, memory, words);
    const auto kernel = scan_ring<Policy>;
    const std::int64_t blocks = resident_blocks(context, kernel, threads, sizeof(Shared<State>));
    launch(context,
           {.grid = std::min(tree.tiles * tree.lines, blocks),
            .block = threads,
            .shared_bytes = sizeof(Shared<State>)},
           kernel, sum_policy<T>(), lines, tree, memory, args.exclusive);
  });
}

/// Nothing but estimates: after decoupled_look_back up to some 16 MiB, before it beyond.
double estimate(const Scan::Args& args, const Context& context) {
  const double lines = static_cast<double>(args.lines.size());
  const double bytes = std::max(Scan::cost(args).bytes, lines * 2 * tuning.tile_bytes);
  return 8e-6 + bytes / (0.95 * nominal_rates(context).bytes_per_second);
}

const Rung<Scan> self{{.name = "ring",
                       .step = 100,
                       .after = "decoupled_look_back",
                       .backend = device_backend,
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};
}  // namespace
}  // namespace rung
