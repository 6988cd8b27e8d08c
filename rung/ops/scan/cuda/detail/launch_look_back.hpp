// SPDX-License-Identifier: Apache-2.0
// The kernel of decoupled look-back and how it is launched: for the rung, and for functors of C++
// programs (scan.cuh).
#pragma once

#include "rung/core/bounds.hpp"
#include "rung/ops/scan/cuda/detail/heads.hpp"
#include "rung/ops/scan/cuda/detail/look_back.hpp"

namespace rung::inline RUNG_TARGET::scan_cuda {

inline constexpr int look_back_threads = 256;
/// Packs of 16 bytes a thread, and blocks a multiprocessor. What is on its way must outlast the
/// look-back, and registers hold it, beside the states.
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
using LookBackTile = Tile<Policy, look_back_threads, look_back_rows<Policy>>;

template <class Policy>
struct LookBackShared {
  typename LookBackTile<Policy>::Scratch scratch;
  typename Policy::State before;
  unsigned ticket;
};

/// `ticket` counts the tiles taken; null where lines have one tile each, which need not wait: then
/// blocks have the lines from `first_line` on. OneLine, which always waits, does without
/// finding a tile's line: 788 us against 1530 for 2^28 floats on an H200, more than a division
/// explains.
template <class Policy, bool OneLine>
__global__ void __launch_bounds__(look_back_threads, look_back_blocks<Policy>)
    scan_decoupled_look_back(Policy policy, Lines<typename Policy::Element> lines,
                             Tree<typename Policy::State> tree, unsigned* ticket,
                             std::int64_t first_line, bool exclusive) {
  using State = typename Policy::State;
  auto& memory = shared<LookBackShared<Policy>>();
  LookBackTile<Policy> tile;
  const bool waits = OneLine || ticket != nullptr;
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  std::int64_t line = OneLine ? 0 : first_line + blockIdx.x;
  int at = 0;
  if (waits) {
    if (threadIdx.x == 0) memory.ticket = atomicAdd(ticket, 1u);
    __syncthreads();
    at = static_cast<int>(memory.ticket);
    if constexpr (!OneLine) {
      const auto tiles = static_cast<unsigned>(tree.tiles);
      line = memory.ticket / tiles;
      at = static_cast<int>(memory.ticket % tiles);
    }
  }
  tile.load(lines, line, std::int64_t{at} * LookBackTile<Policy>::elements);
  const auto block = tile.scan_block(policy, memory.scratch);
  State before = block.before_warp;
  if (waits) {
    if (warp == 0) {
      const State prefix = look_back(policy, tree, line, at, block.total);
      if (threadIdx.x == 0) memory.before = prefix;
    }
    __syncthreads();
    before = policy.combine(memory.before, before);
  }
  tile.finish(policy, before, lines.y_stride, exclusive);
}

/// mark(words) fills the cleared bitmap of heads, of `head_words` words, if there are any.
template <class Policy, class Mark>
void launch_look_back(Context& context, const Policy& policy, Lines<typename Policy::Element> lines,
                      bool exclusive, std::int64_t head_words, const Mark& mark) {
  using State = typename Policy::State;
  const std::int64_t tiles = ceil_div(lines.n, LookBackTile<Policy>::elements);
  Tree<State> tree{nullptr, tiles, lines.lines.size()};
  const bool waits = tiles > 1;
  const std::int64_t node_words =
      waits ? tree.size() * static_cast<std::int64_t>(sizeof(Published<State>) / 4) : 0;
  // The counter, alone in its line of the cache, then the tree, then the heads.
  const std::int64_t words = 32 + node_words + head_words;
  auto* memory = static_cast<unsigned*>(context.workspace(static_cast<std::size_t>(words) * 4));
  tree.nodes = reinterpret_cast<Published<State>*>(memory + 32);
  if (waits || head_words > 0) clear_words(context, memory, words);
  if (head_words > 0) {
    lines.heads = memory + 32 + node_words;
    mark(memory + 32 + node_words);
  }
  LaunchShape shape{.block = look_back_threads, .shared_bytes = sizeof(LookBackShared<Policy>)};
  if (waits && tree.lines == 1) {
    shape.grid = tiles;
    launch(context, shape, scan_decoupled_look_back<Policy, true>, policy, lines, tree, memory, 0,
           exclusive);
    return;
  }
  constexpr std::int64_t most_blocks = 0x7fffffff;
  const std::int64_t count = tiles * tree.lines;  // where tiles wait, memory holds no more
  for (std::int64_t first_line = 0; first_line < count; first_line += most_blocks) {
    shape.grid = smaller(count - first_line, most_blocks);
    launch(context, shape, scan_decoupled_look_back<Policy, false>, policy, lines, tree,
           waits ? memory : nullptr, first_line, exclusive);
  }
}

/// Elements that do not lie side by side are moved one by one.
inline double look_back_seconds(const Scan::Args& args, const Context& context) {
  const double rate = nominal_rates(context).bytes_per_second;
  const double strided = args.is_contiguous() ? 1 : 8;
  // A line takes a tile at least.
  const double tile_bytes = 2 * (32 << 10);
  const double lines = static_cast<double>(args.lines.size());
  const double bytes = larger(Scan::cost(args).bytes * strided, lines * tile_bytes);
  return 8e-6 + bytes / (0.58 * rate);
}

}  // namespace rung::inline RUNG_TARGET::scan_cuda
