// SPDX-License-Identifier: Apache-2.0
// scan / grid barrier
//
// Idea     one kernel whose blocks are all resident: each sums a tile that it keeps in registers,
//          then waits at a grid barrier, then reads the totals of the tiles before its own.
// Changes  against three_kernel: x is read once, and a barrier of one to two microseconds replaces
//          two launches. No status array has to be cleared first.
// Cost     each element read and written once; every block reads the totals of all tiles before its
//          own.
// Limits   one line; sums without segments. Lines longer than the device holds at once (about 16
//          MiB) take several rounds with a barrier each, during which memory is idle.
// Source   S. Xiao & W. Feng, Inter-block GPU Communication via Fast Barrier Synchronization, 2010.
#include "rung/core/bounds.hpp"
#include "rung/device/grid.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/scan/cuda/detail/tile.hpp"

namespace rung {
namespace {
using namespace scan_cuda;

constexpr int threads = 256;
constexpr int rows = 4;
template <class Policy>
using GridTile = ScanTile<Policy, threads, rows>;
/// Blocks per SM; with more, registers spill.
template <class Policy>
constexpr int blocks = sizeof(typename Policy::Element) == 2 ? 3 : 4;

template <class Policy>
struct Shared {
  typename GridTile<Policy>::Scratch scratch;
  typename Policy::State before;  // total of all tiles before this one
  typename Policy::State round;   // total of this round's tiles and all before it
};

/// Returns carry + totals[0] + ... + totals[count - 1], added 32 at a time in order. Called by one
/// warp.
template <class Policy, class State = typename Policy::State>
__device__ __forceinline__ State add_totals(const Policy& policy, State carry, const State* totals,
                                            std::int64_t count) {
  const auto combine = [&](const State& a, const State& b) { return policy.combine(a, b); };
  for (std::int64_t first = 0; first < count; first += warp_size) {
    const std::int64_t i = first + lane_of_thread();
    carry = combine(carry, warp_reduce(i < count ? totals[i] : policy.identity, combine));
  }
  return carry;
}

template <class Policy>
__global__ void __launch_bounds__(threads, blocks<Policy>)
    scan_grid_barrier(Policy policy, Lines<typename Policy::Element> lines,
                      typename Policy::State* totals, bool exclusive) {
  using State = typename Policy::State;
  auto& memory = shared<Shared<Policy>>();
  GridTile<Policy> tile;
  const std::int64_t tiles = ceil_div(lines.n, GridTile<Policy>::elements);
  State carry = policy.identity;
  for (std::int64_t round = 0; round < tiles; round += gridDim.x) {
    const std::int64_t at = round + blockIdx.x;
    const std::int64_t first = at * GridTile<Policy>::elements;
    // Blocks without a tile load nothing and continue to the barrier.
    tile.load(lines, 0, first);
    const auto block = tile.scan_block(policy, memory.scratch);
    if (threadIdx.x == 0 && at < tiles) totals[at] = block.total;
    grid_sync();
    if (threadIdx.x < warp_size) {
      const std::int64_t here = tiles - round < gridDim.x ? tiles - round : gridDim.x;
      const std::int64_t mine = blockIdx.x < here ? blockIdx.x : here;
      const State before = add_totals(policy, carry, totals + round, mine);
      const bool more = round + gridDim.x < tiles;
      const State all = more ? add_totals(policy, carry, totals + round, here) : before;
      if (threadIdx.x == 0) {
        memory.before = before;
        memory.round = all;
      }
    }
    __syncthreads();
    carry = memory.round;
    tile.finish(policy, policy.combine(memory.before, block.before_warp), lines.y_stride,
                exclusive);
    __syncthreads();
  }
}

Support supports(const Scan::Args& args, const Context&) {
  return args.lines.size() <= 1 ? supports_sum(args) : unsupported("one line only");
}

template <class Policy>
std::int64_t tiles_of(const Scan::Args& args) {
  return ceil_div(args.length(), GridTile<Policy>::elements);
}
template <class Policy>
std::int64_t most_blocks(const Context& context) {
  return resident_blocks(context, scan_grid_barrier<Policy>, threads, sizeof(Shared<Policy>));
}

void run(const Scan::Args& args, Context& context) {
  if (args.y.empty()) return;
  visit_scanned(args.x.dtype, [&]<class T>() {
    using Policy = Sum<T>;
    using State = typename Policy::State;
    const std::int64_t tiles = tiles_of<Policy>(args);
    auto* totals =
        static_cast<State*>(context.workspace(static_cast<std::size_t>(tiles) * sizeof(State)));
    launch(context,
           {.grid = smaller(tiles, most_blocks<Policy>(context)),
            .block = threads,
            .shared_bytes = sizeof(Shared<Policy>),
            .cooperative = true},
           scan_grid_barrier<Policy>, sum_policy<T>(), lines_of<T>(args), totals, args.exclusive);
  });
}

Work work(const Scan::Args& args, const Context& context) {
  return visit_scanned(args.x.dtype, [&]<class T>() {
    return in_turns(most_blocks<Sum<T>>(context),
                    line_work(args, tiles_of<Sum<T>>(args), threads, 1, blocks<Sum<T>>));
  });
}

const Rung<Scan> self{{.name = "grid_barrier",
                       .step = 70,
                       .after = "three_kernel",
                       .backend = device_backend,
                       .supports = supports,
                       .passes = {.loads = 1, .stores = 1},
                       .work = work,
                       .run = run}};
}  // namespace
}  // namespace rung
