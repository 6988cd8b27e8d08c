// SPDX-License-Identifier: Apache-2.0
// scan / a block per line
//
// Idea     lines of a few KiB: a block loads a whole line into registers at once, 64 bytes per
//          thread, scans it with a single barrier, and stores it. Longer lines advance in steps of
//          32 KiB.
// Changes  against warp_a_line: an SM's loads in flight are a few long runs of memory, not one run
//          per warp; a line has only as many threads as it fills.
// Cost     each element read and written once; 35 shuffles per 2 KiB of floats.
// Limits   sums without segments. Parallel over lines only. Lines under 2 KiB leave lanes idle.
// Source   as warp_shuffle.
#include "rung/core/bounds.hpp"
#include "rung/ops/scan/cuda/detail/tile.hpp"

namespace rung {
namespace {
using namespace scan_cuda;

constexpr int rows = 4;
constexpr int max_warps = 16;  // per block
constexpr std::int64_t warp_bytes = rows * warp_size * 16;

template <class Policy>
using WarpTile = ScanTile<Policy, warp_size, rows>;

/// Totals of a block's warps, of this step and of the previous one, which some warps still read.
template <class S>
struct Totals {
  S of_warp[2][max_warps];
};

/// Scans a line per block of 32 to 32 x max_warps threads.
template <class Policy>
__global__ void __launch_bounds__(warp_size* max_warps)
    scan_block_a_line(Policy policy, Lines<typename Policy::Element> lines, bool exclusive) {
  using State = typename Policy::State;
  const auto combine = [&](const State& a, const State& b) { return policy.combine(a, b); };
  auto& totals = shared<Totals<State>>();
  const int lane = lane_of_thread();
  const int warp = static_cast<int>(threadIdx.y);
  const int warps = static_cast<int>(blockDim.y);
  WarpTile<Policy> tile;
  int turn = 0;
  for (std::int64_t line = blockIdx.x; line < lines.lines.size(); line += gridDim.x) {
    State carry = policy.identity;
    for (std::int64_t first = 0; first < lines.n; first += warps * WarpTile<Policy>::elements) {
      tile.load(lines, line, first + warp * WarpTile<Policy>::elements);
      const State total = tile.scan_warp(policy);
      if (lane == 0) totals.of_warp[turn][warp] = total;
      __syncthreads();
      const State of_warp = lane < warps ? totals.of_warp[turn][lane] : policy.identity;
      const State up_to = warp_scan_inclusive(of_warp, combine);
      const State before = shuffle(up_to, warp == 0 ? 0 : warp - 1);
      tile.finish(policy, warp == 0 ? carry : combine(carry, before), lines.y_stride, exclusive);
      carry = combine(carry, shuffle(up_to, warps - 1));
      turn ^= 1;
    }
  }
}

std::int64_t line_bytes(const Scan::Args& args) {
  return args.length() * static_cast<std::int64_t>(size_of(args.x.dtype));
}

/// Returns the number of warps that a line fills, at most max_warps.
std::int64_t warps_for(const Scan::Args& args) {
  return clamped<std::int64_t>(ceil_div(line_bytes(args), warp_bytes), 1, max_warps);
}

void run(const Scan::Args& args, Context& context) {
  if (args.y.empty()) return;
  visit_scanned(args.x.dtype, [&]<class T>() {
    using Policy = Sum<T>;
    launch(context,
           {.grid = smaller<std::int64_t>(args.lines.size(), 0x7fffffff),
            .block = {warp_size, warps_for(args)},
            .shared_bytes = sizeof(Totals<typename Policy::State>)},
           scan_block_a_line<Policy>, sum_policy<T>(), lines_of<T>(args), args.exclusive);
  });
}

Support supports(const Scan::Args& args, const Context&) { return supports_sum(args); }

Work work(const Scan::Args& args, const Context&) {
  const auto warps = static_cast<int>(warps_for(args));
  return line_work(args, args.lines.size(), warps * warp_size,
                   ceil_div(line_bytes(args), warps * warp_bytes), 48 / warps);
}

const Rung<Scan> self{{.name = "block_a_line",
                       .after = "warp_a_line",
                       .backend = device_backend,
                       .supports = supports,
                       .passes = {.loads = 1, .stores = 1},
                       .work = work,
                       .run = run}};
}  // namespace
}  // namespace rung
