// SPDX-License-Identifier: Apache-2.0
// scan / coarsened
//
// Idea     a thread scans 8 elements sequentially; the block scans the threads' totals. The block
//          walks along its line tile by tile and carries the running value.
// Changes  against warp_shuffle: an eighth of the shuffles, and lines of any length.
// Cost     each element read and written once; 2 operations per element in the thread, and a block
//          scan per 2048 elements.
// Limits   f32, f64 and i32. One block per line: a single long line occupies one SM.
// Source   W. Hwu, D. Kirk & I. El Hajj, Programming Massively Parallel Processors, 4th ed.,
//          section 11.5.
#include "rung/core/bounds.hpp"
#include "rung/ops/scan/cuda/detail/coarse.hpp"

namespace rung {
namespace {
using namespace scan_cuda;

template <class T>
__global__ void __launch_bounds__(Coarse<T>::threads)
    scan_coarsened(Lines<T> lines, Segmented<T> policy, bool exclusive) {
  using State = typename Coarse<T>::State;
  auto& memory = shared<typename Coarse<T>::Shared>();
  const auto combine = [&](const State& a, const State& b) { return policy.combine(a, b); };
  Coarse<T> tile;
  for (std::int64_t line = blockIdx.x; line < lines.lines.size(); line += gridDim.x) {
    State carry = policy.identity;
    for (std::int64_t first = 0; first < lines.n; first += Coarse<T>::elements) {
      tile.load_line(memory, lines, policy, line, first);
      const auto block = block_scan<Coarse<T>::threads>(tile.total(policy), combine,
                                                        policy.identity, memory.warps);
      tile.finish_line(memory, lines, policy, line, first, combine(carry, block.before), exclusive);
      carry = combine(carry, block.total);
    }
  }
}

void run(const Scan::Args& args, Context& context) {
  if (args.y.empty()) return;
  visit<float, double, std::int32_t>(args.x.dtype, [&]<class T>() {
    Lines<T> lines = lines_of<T>(args);
    const auto bytes = static_cast<std::size_t>(head_words(args)) * sizeof(unsigned);
    add_heads(context, args, static_cast<unsigned*>(context.workspace(bytes)), lines);
    launch(context,
           {.grid = smaller<std::int64_t>(args.lines.size(), 0x7fffffff),
            .block = Coarse<T>::threads,
            .shared_bytes = sizeof(typename Coarse<T>::Shared)},
           scan_coarsened<T>, lines, segmented_policy<T>(args), args.exclusive);
  });
}

Work work(const Scan::Args& args, const Context&) {
  const std::int64_t tiles = ceil_div(args.length(), Coarse<float>::elements);
  return line_work(args, args.lines.size(), Coarse<float>::threads, tiles);
}

const Rung<Scan> self{{.name = "coarsened",
                       .step = 50,
                       .after = "warp_shuffle",
                       .backend = device_backend,
                       .supports = supports_coarse,
                       .passes = {.loads = 1, .stores = 1},
                       .work = work,
                       .run = run}};
}  // namespace
}  // namespace rung
