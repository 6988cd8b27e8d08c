// SPDX-License-Identifier: Apache-2.0
// scan / a warp per line
//
// Idea     many lines: each warp walks along its own line, 2 KiB per step, four 16-byte loads per
//          lane. Lanes scan their packs, the warp scans the packs' totals.
// Changes  against coarsened: no shared memory, no barrier, 16-byte loads; lines of 512 bytes fill
//          all lanes.
// Cost     each element read and written once; 20 shuffles per 2 KiB.
// Limits   sums without segments. Parallel over lines only. Lines under 512 bytes leave lanes idle.
// Source   as warp_shuffle.
#include "rung/core/bounds.hpp"
#include "rung/ops/scan/cuda/detail/tile.hpp"

namespace rung {
namespace {
using namespace scan_cuda;

constexpr int warps = 4;  // per block
constexpr int rows = 4;

template <class Policy>
using LineTile = ScanTile<Policy, warp_size, rows>;
/// Blocks per SM; with more, registers spill.
template <class Policy>
constexpr int blocks = sizeof(typename Policy::Element) == 1   ? 4
                       : sizeof(typename Policy::Element) == 2 ? 6
                                                               : 8;

/// Scans a line per warp.
template <class Policy>
__global__ void __launch_bounds__(warp_size* warps, blocks<Policy>)
    scan_warp_a_line(Policy policy, Lines<typename Policy::Element> lines, bool exclusive) {
  LineTile<Policy> tile;
  const std::int64_t step = std::int64_t{gridDim.x} * warps;
  for (std::int64_t line = std::int64_t{blockIdx.x} * warps + threadIdx.y;
       line < lines.lines.size(); line += step) {
    typename Policy::State carry = policy.identity;
    for (std::int64_t first = 0; first < lines.n; first += LineTile<Policy>::elements) {
      tile.load(lines, line, first);
      const auto total = tile.scan_warp(policy);
      tile.finish(policy, carry, lines.y_stride, exclusive);
      carry = policy.combine(carry, total);
    }
  }
}

void run(const Scan::Args& args, Context& context) {
  if (args.y.empty()) return;
  visit_scanned(args.x.dtype, [&]<class T>() {
    using Policy = Sum<T>;
    launch(context,
           {.grid = smaller<std::int64_t>(ceil_div(args.lines.size(), warps), 0x7fffffff),
            .block = {warp_size, warps}},
           scan_warp_a_line<Policy>, sum_policy<T>(), lines_of<T>(args), args.exclusive);
  });
}

Support supports(const Scan::Args& args, const Context&) { return supports_sum(args); }

Work work(const Scan::Args& args, const Context&) {
  return visit_scanned(args.x.dtype, [&]<class T>() {
    return line_work(args, ceil_div(args.lines.size(), warps), warps * warp_size,
                     ceil_div(args.length(), LineTile<Sum<T>>::elements), blocks<Sum<T>>);
  });
}

const Rung<Scan> self{{.name = "warp_a_line",
                       .after = "coarsened",
                       .backend = device_backend,
                       .supports = supports,
                       .passes = {.loads = 1, .stores = 1},
                       .work = work,
                       .run = run}};
}  // namespace
}  // namespace rung
