// SPDX-License-Identifier: Apache-2.0
// scan / warp-specialised ring
//
// Idea     one block a multiprocessor, whose squads pass tiles along a ring of buffers in shared
//          memory. One warp loads, with bulk copies that need no registers and run stages ahead.
//          Three sum, a tile each, and publish the totals at once. One adds up what lies before
//          each tile. Sixteen scan and store. Memory never waits for a look-back, nor a look-back
//          for a store.
// Changes  against decoupled_look_back: loads do not stop while a block waits for its prefix; and
//          nobody waits for a prefix that another has to compute first: every block reads the
//          totals of all tiles. That is one step from a total to all who need it, where a tree has
//          three. Tiles are dealt out in advance, and no launch in front clears the totals: the
//          blocks do, and meet at a barrier of the grid while their first tiles are on the way.
// Cost     each element read and written once; each tile is read twice from shared memory. Totals
//          are 8 bytes a tile and block (16 of 8-byte types): under 1 % of the sectors that pass
//          the second level of cache.
// Limits   Hopper; sums without segments, contiguous lines that begin on 16 bytes. Short inputs do
//          not fill the ring.
// Tried    H200, 2^28 floats, 536 us. Totals published by the warp that looks back, after it was
//          done with the tile before: 1590. Groups of 64 tiles instead of 128: 584; of 256: 549.
//          Against the latter: tiles of 16 KiB 581; of 8 KiB in two blocks 738; four buffers
//          instead of six 608; two blocks of 96 KiB 567; results by bulk copies 562. Tiles by a
//          counter instead of in advance: 529 against 531. Streaming stores, and loads that are
//          evicted first: 560 and 577 even without look-back, so no gain.
// Source   D. Merrill & M. Garland 2016 for the look-back; NVIDIA, CUDA C++ Programming Guide, for
//          bulk copies and asynchronous barriers.
#include "rung/core/bounds.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/scan/cuda/detail/ring_squads.hpp"

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
    const std::int64_t tiles = ceil_div(args.length(), Squads<Policy>::tile_elements);
    Totals<State> totals{nullptr, tiles, tiles * args.lines.size()};
    if (tiles > 1) {
      totals.nodes = static_cast<Published<State>*>(
          context.workspace(static_cast<std::size_t>(totals.count) * sizeof(Published<State>)));
    }
    const auto kernel = scan_ring<Policy>;
    constexpr std::size_t shared_bytes = sizeof(ring::Shared<T, State>);
    const std::int64_t resident = resident_blocks(context, kernel, threads, shared_bytes);
    launch(context,
           {.grid = smaller(totals.count, resident),
            .block = threads,
            .shared_bytes = shared_bytes,
            .cooperative = true},
           kernel, sum_policy<T>(), lines_of<T>(args), totals, args.exclusive);
  });
}

/// Fitted to an H200 from 2^16 to 2^30 floats, as those of the other rungs for long lines are.
double estimate(const Scan::Args& args, const Context& context) {
  const double lines = static_cast<double>(args.lines.size());
  const double bytes = larger(Scan::cost(args).bytes, lines * 2 * tile_bytes);
  return 9e-6 + bytes / (0.84 * nominal_rates(context).bytes_per_second);
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
