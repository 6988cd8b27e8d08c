// SPDX-License-Identifier: Apache-2.0
// scan / decoupled look-back: the kernel for any policy (sums in this rung, user-defined functors
// in scan.cuh); segmented_look_back uses its parts in a kernel of its own.
//
// Look-back in a fixed order. Merrill and Garland add aggregates until they find an inclusive
// prefix; its position depends on timing, and with it the bits of a sum of floats. In this kernel
// the tiles of a line are the leaves of a tree of degree 32, and each prefix is always combined
// from the same nodes:
//
//   before tile t = carry(t / 1024) + groups before it in its 1024 + tiles before it in its 32
//
// A tile publishes its total; the last of 32 also publishes its group's total, the last of 1024 the
// carry into the next 1024. Each sum of up to 31 nodes is one load per lane and a warp reduction.
// Only the carries form a chain, one step per 1024 tiles (8 to 32 MiB), which runs ahead of the
// data.
//
// Part of the rung whose Idea, Changes, Cost and Limits are in 080_decoupled_look_back.cu.
#pragma once

#include "rung/core/bounds.hpp"
#include "rung/device/ptx/memory.hpp"
#include "rung/ops/scan/cuda/detail/heads.hpp"
#include "rung/ops/scan/cuda/detail/published.hpp"
#include "rung/ops/scan/cuda/detail/tile.hpp"

namespace rung::inline RUNG_TARGET::scan_cuda {

/// Nodes of the trees of all lines, one level after the other.
template <class S>
struct Tree {
  Published<S>* nodes;
  std::int64_t tiles;  // per line
  std::int64_t lines;

  [[nodiscard]] RUNG_HD static std::int64_t up(std::int64_t count) { return (count + 31) / 32; }
  [[nodiscard]] RUNG_HD std::int64_t groups() const { return up(tiles); }
  [[nodiscard]] RUNG_HD std::int64_t carries() const { return up(groups()) + 1; }
  [[nodiscard]] RUNG_HD std::int64_t size() const { return lines * (tiles + groups() + carries()); }
  [[nodiscard]] RUNG_HD Published<S>* tile(std::int64_t line, std::int64_t i) const {
    return nodes + line * tiles + i;
  }
  [[nodiscard]] RUNG_HD Published<S>* group(std::int64_t line, std::int64_t i) const {
    return nodes + lines * tiles + line * groups() + i;
  }
  [[nodiscard]] RUNG_HD Published<S>* carry(std::int64_t line, std::int64_t i) const {
    return nodes + lines * (tiles + groups()) + line * carries() + i;
  }
};

/// Poller of one node per lane, for the whole warp. Lanes from `count` on have no node and give the
/// identity.
template <class Policy, class S = typename Policy::State>
class Watch {
 public:
  /// Polls each node once.
  __device__ __forceinline__ Watch(const Policy& policy, const Published<S>* nodes, int count)
      : node_(nodes + lane_of_thread()),
        value_(policy.identity),
        there_(lane_of_thread() >= count) {
    if (!there_) there_ = node_->look(value_);
  }
  /// Polls until all nodes are published; returns their values, combined in lane order, to every
  /// lane.
  __device__ __forceinline__ S wait(const Policy& policy) {
    while (!__all_sync(all_lanes, there_ ? 1 : 0)) {
      ptx::nanosleep(40);
      if (!there_) there_ = node_->look(value_);
    }
    return warp_reduce(value_, [&](const S& a, const S& b) { return policy.combine(a, b); });
  }

 private:
  const Published<S>* node_;
  S value_;
  bool there_;
};

/// Publishes the total of a tile, and returns the tile's prefix to every lane. Called by a whole
/// warp.
template <class Policy, class S = typename Policy::State>
__device__ __forceinline__ S look_back(const Policy& policy, const Tree<S>& tree, std::int64_t line,
                                       int tile, const S& total) {
  const auto combine = [&](const S& a, const S& b) { return policy.combine(a, b); };
  const int lane = lane_of_thread();
  const int group = tile / 32;
  const int thousand = group / 32;
  const int tiles_before = tile % 32;
  const int groups_before = group % 32;
  if (lane == 0) tree.tile(line, tile)->publish(total);
  if (tile == 0) return policy.identity;
  Watch<Policy> tiles(policy, tree.tile(line, tile - tiles_before), tiles_before);
  Watch<Policy> groups(policy, tree.group(line, group - groups_before), groups_before);
  Watch<Policy> carries(policy, tree.carry(line, thousand), thousand > 0 ? 1 : 0);
  const S before = tiles.wait(policy);
  // Published before this warp waits for anything else: other tiles wait for it.
  const S group_total = combine(before, total);
  const bool last_of_group = tiles_before == 31;
  if (last_of_group && lane == 0) tree.group(line, group)->publish(group_total);
  const S in_thousand = groups.wait(policy);
  const S before_group = combine(carries.wait(policy), in_thousand);
  if (last_of_group && groups_before == 31 && lane == 0) {
    tree.carry(line, thousand + 1)->publish(combine(before_group, group_total));
  }
  return combine(before_group, before);
}

inline constexpr int look_back_threads = 256;
/// 16-byte packs per thread, and blocks per SM. Enough bytes must be in flight to cover the
/// look-back's latency, and registers hold them beside the states.
template <class Policy, class T = typename Policy::Element, class S = typename Policy::State>
inline constexpr int look_back_rows = std::is_same_v<S, T> && sizeof(T) == 4   ? 8
                                      : sizeof(S) <= 4 || std::is_same_v<S, T> ? 4
                                      : sizeof(S) <= 8 && sizeof(T) > 1        ? 4
                                                                               : 2;
template <class Policy, class T = typename Policy::Element, class S = typename Policy::State>
inline constexpr int look_back_blocks = sizeof(T) > 8 || sizeof(S) > 8                       ? 2
                                        : sizeof(T) == 8 || sizeof(T) == 2 && sizeof(S) == 4 ? 4
                                                                                             : 3;

template <class Policy>
using LookBackTile = ScanTile<Policy, look_back_threads, look_back_rows<Policy>>;

template <class Policy>
struct LookBackShared {
  typename LookBackTile<Policy>::Scratch scratch;
  typename Policy::State before;
  unsigned ticket;
};

/// Position of a block's tile.
struct TakenTile {
  std::int64_t line;
  int tile;  // index within the line
};

/// Draws the next tile: `ticket` counts tiles drawn, so all tiles before it have been started. If
/// `ticket` is null, lines have one tile each and nothing waits: block b takes the b-th line from
/// first_line on. With OneLine, tiles are always drawn and need no division to find their line: 788
/// us instead of 1530 for 2^28 floats on an H200, more than a division explains.
template <bool OneLine>
__device__ __forceinline__ TakenTile take_tile(unsigned* ticket, std::int64_t line_tiles,
                                               std::int64_t first_line, unsigned& taken) {
  TakenTile mine{OneLine ? 0 : first_line + blockIdx.x, 0};
  if (OneLine || ticket != nullptr) {
    if (threadIdx.x == 0) taken = atomicAdd(ticket, 1u);
    __syncthreads();
    mine.tile = static_cast<int>(taken);
    if constexpr (!OneLine) {
      const auto tiles = static_cast<unsigned>(line_tiles);
      mine = {taken / tiles, static_cast<int>(taken % tiles)};
    }
  }
  return mine;
}

template <class Policy, bool OneLine>
__global__ void __launch_bounds__(look_back_threads, look_back_blocks<Policy>)
    scan_decoupled_look_back(Policy policy, Lines<typename Policy::Element> lines,
                             Tree<typename Policy::State> tree, unsigned* ticket,
                             std::int64_t first_line, bool exclusive) {
  start_dependent();
  using State = typename Policy::State;
  auto& memory = shared<LookBackShared<Policy>>();
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const TakenTile mine = take_tile<OneLine>(ticket, tree.tiles, first_line, memory.ticket);
  LookBackTile<Policy> tile;
  tile.load(lines, mine.line, std::int64_t{mine.tile} * LookBackTile<Policy>::elements);
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

template <class Policy>
using LookBackKernel = void (*)(Policy, Lines<typename Policy::Element>,
                                Tree<typename Policy::State>, unsigned*, std::int64_t, bool);

/// Launches one of the two kernels: for a single line, or for any number of lines. mark(words)
/// fills the cleared bitmap of heads; it is called only if `head_words` is not 0.
template <class Policy, class Mark>
void launch_look_back(Context& context, LookBackKernel<Policy> one_line,
                      LookBackKernel<Policy> any_lines, const Policy& policy,
                      Lines<typename Policy::Element> lines, bool exclusive,
                      std::int64_t head_words, const Mark& mark) {
  using State = typename Policy::State;
  const std::int64_t tiles = ceil_div(lines.n, LookBackTile<Policy>::elements);
  Tree<State> tree{nullptr, tiles, lines.lines.size()};
  const bool waits = tiles > 1;
  const std::int64_t node_words =
      waits ? tree.size() * static_cast<std::int64_t>(sizeof(Published<State>) / 4) : 0;
  // The counter, alone in its cache line, then the tree, then the heads.
  const std::int64_t words = 32 + node_words + head_words;
  auto* memory = static_cast<unsigned*>(context.workspace(static_cast<std::size_t>(words) * 4));
  tree.nodes = reinterpret_cast<Published<State>*>(memory + 32);
  if (waits || head_words > 0) clear_words(context, memory, words);
  if (head_words > 0) {
    lines.heads = memory + 32 + node_words;
    mark(memory + 32 + node_words);
  }
  LaunchShape shape{.grid = 1,
                    .block = look_back_threads,
                    .shared_bytes = sizeof(LookBackShared<Policy>),
                    .dependent = (waits || head_words > 0) && can_depend(context)};
  if (waits && tree.lines == 1) {
    shape.grid = tiles;
    launch(context, shape, one_line, policy, lines, tree, memory, 0, exclusive);
    return;
  }
  constexpr std::int64_t max_blocks = 0x7fffffff;
  // if tiles wait, the tree's memory bounds their number
  const std::int64_t count = tiles * tree.lines;
  for (std::int64_t first_line = 0; first_line < count; first_line += max_blocks) {
    shape.grid = smaller(count - first_line, max_blocks);
    launch(context, shape, any_lines, policy, lines, tree, waits ? memory : nullptr, first_line,
           exclusive);
  }
}

/// Launches the scan of lines without segments.
template <class Policy>
void launch_look_back(Context& context, const Policy& policy,
                      const Lines<typename Policy::Element>& lines, bool exclusive) {
  launch_look_back(context, LookBackKernel<Policy>(scan_decoupled_look_back<Policy, true>),
                   LookBackKernel<Policy>(scan_decoupled_look_back<Policy, false>), policy, lines,
                   exclusive, 0, [](unsigned*) {});
}

/// Returns the work of a look-back; lines of several tiles add a launch that clears their state.
template <class Policy>
Work look_back_work(const Scan::Args& args) {
  const std::int64_t tiles = ceil_div(args.length(), LookBackTile<Policy>::elements);
  Work work = line_work(args, tiles * args.lines.size(), look_back_threads, look_back_rows<Policy>,
                        look_back_blocks<Policy>);
  if (tiles > 1 && !args.has_segments()) work.launches = 2;
  return work;
}

}  // namespace rung::inline RUNG_TARGET::scan_cuda
