// SPDX-License-Identifier: Apache-2.0
// The kernel of decoupled look-back and how it is launched: for the rung, and for functors of C++
// programs (scan.cuh).
#pragma once

#include "rung/ops/scan/cuda_heads.hpp"
#include "rung/ops/scan/cuda_look_back.hpp"

namespace rung::inline RUNG_TARGET::scan_cuda {

/// 256 threads with 64 bytes each make tiles of 16 KiB. Three blocks a multiprocessor have 48 KiB
/// on their way, about what keeps the memory of an H200 busy.
struct LookBackTuning {
  int threads = 256;
};
inline constexpr LookBackTuning look_back_tuning{};
/// Packs of 16 bytes a thread; half as many where states are wider than elements and fill the
/// registers.
template <class Policy>
inline constexpr int look_back_rows =
    sizeof(typename Policy::State) <= 4 ||
            std::is_same_v<typename Policy::State, typename Policy::Element>
        ? 4
        : 2;
/// As many blocks as the registers hold without spilling.
template <class Policy>
inline constexpr int look_back_blocks =
    sizeof(typename Policy::Element) == 4 && sizeof(typename Policy::State) == 4 ? 3 : 2;

template <class Policy>
using LookBackTile = Tile<Policy, look_back_tuning.threads, look_back_rows<Policy>>;

template <class Policy>
struct LookBackShared {
  typename LookBackTile<Policy>::Scratch scratch;
  typename Policy::State before;
  unsigned ticket;
};

/// `ticket` counts the tiles taken; null where lines have one tile each, which need not wait.
template <class Policy>
__global__ void __launch_bounds__(look_back_tuning.threads, look_back_blocks<Policy>)
    scan_decoupled_look_back(Policy policy, Lines<typename Policy::Element> lines,
                             Tree<typename Policy::State> tree, unsigned* ticket, bool exclusive) {
  using State = typename Policy::State;
  auto& memory = shared<LookBackShared<Policy>>();
  LookBackTile<Policy> tile;
  const bool waits = ticket != nullptr;
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const std::int64_t count = tree.tiles * tree.lines;
  for (std::int64_t id = blockIdx.x; id < count; id += gridDim.x) {
    if (waits) {
      if (threadIdx.x == 0) memory.ticket = atomicAdd(ticket, 1u);
      __syncthreads();
      id = memory.ticket;
    }
    const std::int64_t line = id / tree.tiles;
    const std::int64_t at = id - line * tree.tiles;
    const std::int64_t first = at * LookBackTile<Policy>::elements;
    tile.load(lines.x_of(line), lines.x_stride, first, lines.n, lines.heads);
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
    tile.finish(policy, before, lines.y_of(line), lines.y_stride, first, lines.n, exclusive);
    if (waits) return;
    __syncthreads();  // the scratch is used again
  }
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
  constexpr std::int64_t most_blocks = 0x7fffffff;
  launch(context,
         {.grid = std::min(tiles * tree.lines, most_blocks),
          .block = look_back_tuning.threads,
          .shared_bytes = sizeof(LookBackShared<Policy>)},
         scan_decoupled_look_back<Policy>, policy, lines, tree, waits ? memory : nullptr,
         exclusive);
}

inline double look_back_seconds(const Scan::Args& args, const Context& context) {
  const double rate = nominal_rates(context).bytes_per_second;
  const double strided = args.is_contiguous() ? 1 : 4;
  // A line takes a tile at least.
  const double tile_bytes = 32 << 10;
  const double lines = static_cast<double>(args.lines.size());
  const double bytes = std::max(Scan::cost(args).bytes * strided, lines * tile_bytes);
  return 6e-6 + bytes / (0.9 * rate);
}

}  // namespace rung::inline RUNG_TARGET::scan_cuda
