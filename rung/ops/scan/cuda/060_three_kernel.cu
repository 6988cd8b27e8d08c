// SPDX-License-Identifier: Apache-2.0
// scan / three kernels
//
// Idea     tiles in parallel for any length: the first kernel computes the totals of all tiles, the
//          second scans the totals, the third scans each tile from its prefix.
// Changes  against coarsened: a single long line fills the GPU.
// Cost     x is read twice: 12 bytes per float instead of 8; three launches.
// Limits   f32, f64 and i32; any strides, operations and segments.
// Source   S. Sengupta, M. Harris, Y. Zhang & J. Owens, Scan Primitives for GPU Computing, 2007.
#include "rung/core/bounds.hpp"
#include "rung/ops/scan/cuda/detail/coarse.hpp"

namespace rung {
namespace {
using namespace scan_cuda;

/// Computes the total of each tile; tile i of all lines is tile i % tiles of line i / tiles.
template <class T>
__global__ void __launch_bounds__(Coarse<T>::threads)
    scan_tile_totals(Lines<T> lines, Segmented<T> policy, std::int64_t tiles,
                     typename Coarse<T>::State* totals) {
  using State = typename Coarse<T>::State;
  auto& memory = shared<typename Coarse<T>::Shared>();
  const auto combine = [&](const State& a, const State& b) { return policy.combine(a, b); };
  Coarse<T> tile;
  const std::int64_t count = tiles * lines.lines.size();
  for (std::int64_t i = blockIdx.x; i < count; i += gridDim.x) {
    tile.load_line(memory, lines, policy, i / tiles, i % tiles * Coarse<T>::elements);
    const State total = block_reduce<Coarse<T>::threads>(tile.total(policy), combine,
                                                         policy.identity, memory.warps);
    if (threadIdx.x == 0) totals[i] = total;
    __syncthreads();
  }
}

/// Scans each line's totals exclusively, in place: each tile's total becomes its prefix.
template <class T>
__global__ void __launch_bounds__(Coarse<T>::threads)
    scan_totals(Segmented<T> policy, std::int64_t tiles, std::int64_t lines,
                typename Coarse<T>::State* totals) {
  using State = typename Coarse<T>::State;
  constexpr int threads = Coarse<T>::threads;
  auto& scratch = shared<WarpValues<State, threads>>();
  const auto combine = [&](const State& a, const State& b) { return policy.combine(a, b); };
  for (std::int64_t line = blockIdx.x; line < lines; line += gridDim.x) {
    State carry = policy.identity;
    for (std::int64_t first = 0; first < tiles; first += threads) {
      const std::int64_t i = first + threadIdx.x;
      State& total = totals[line * tiles + (i < tiles ? i : 0)];
      const State value = i < tiles ? total : policy.identity;
      const auto block = block_scan<threads>(value, combine, policy.identity, scratch);
      if (i < tiles) total = combine(carry, block.before);
      carry = combine(carry, block.total);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(Coarse<T>::threads)
    scan_tiles(Lines<T> lines, Segmented<T> policy, std::int64_t tiles,
               const typename Coarse<T>::State* carries, bool exclusive) {
  using State = typename Coarse<T>::State;
  auto& memory = shared<typename Coarse<T>::Shared>();
  const auto combine = [&](const State& a, const State& b) { return policy.combine(a, b); };
  Coarse<T> tile;
  const std::int64_t count = tiles * lines.lines.size();
  for (std::int64_t i = blockIdx.x; i < count; i += gridDim.x) {
    const std::int64_t first = i % tiles * Coarse<T>::elements;
    tile.load_line(memory, lines, policy, i / tiles, first);
    const auto block =
        block_scan<Coarse<T>::threads>(tile.total(policy), combine, policy.identity, memory.warps);
    tile.finish_line(memory, lines, policy, i / tiles, first, combine(carries[i], block.before),
                     exclusive);
  }
}

void run(const Scan::Args& args, Context& context) {
  if (args.y.empty()) return;
  visit<float, double, std::int32_t>(args.x.dtype, [&]<class T>() {
    using State = typename Coarse<T>::State;
    Lines<T> lines = lines_of<T>(args);
    const Segmented<T> policy = segmented_policy<T>(args);
    const std::int64_t tiles = ceil_div(args.length(), Coarse<T>::elements);
    const std::int64_t count = tiles * args.lines.size();
    const auto total_bytes = static_cast<std::size_t>(count) * sizeof(State);
    auto* memory = static_cast<std::byte*>(context.workspace(
        total_bytes + static_cast<std::size_t>(head_words(args)) * sizeof(unsigned)));
    auto* totals = reinterpret_cast<State*>(memory);
    add_heads(context, args, reinterpret_cast<unsigned*>(memory + total_bytes), lines);
    constexpr std::int64_t max_blocks = 0x7fffffff;
    const LaunchShape shape{.grid = smaller(count, max_blocks),
                            .block = Coarse<T>::threads,
                            .shared_bytes = sizeof(typename Coarse<T>::Shared)};
    launch(context, shape, scan_tile_totals<T>, lines, policy, tiles, totals);
    launch(context,
           {.grid = smaller(args.lines.size(), max_blocks),
            .block = Coarse<T>::threads,
            .shared_bytes = sizeof(WarpValues<State, Coarse<T>::threads>)},
           scan_totals<T>, policy, tiles, args.lines.size(), totals);
    launch(context, shape, scan_tiles<T>, lines, policy, tiles, totals, args.exclusive);
  });
}

Work work(const Scan::Args& args, const Context&) {
  const std::int64_t tiles = ceil_div(args.length(), Coarse<float>::elements);
  Work work = line_work(args, tiles * args.lines.size(), Coarse<float>::threads, 1);
  work.bytes = work.bytes * 3 / 2;
  return in_launches(work.launches + 2, work);
}

const Rung<Scan> self{{.name = "three_kernel",
                       .step = 60,
                       .after = "coarsened",
                       .backend = device_backend,
                       .supports = supports_coarse,
                       .passes = {.loads = 2, .stores = 1},
                       .work = work,
                       .run = run}};
}  // namespace
}  // namespace rung
