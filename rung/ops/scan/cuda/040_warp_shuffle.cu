// SPDX-License-Identifier: Apache-2.0
// scan / warp shuffle
//
// Idea     each warp scans its 32 elements by shuffles, without shared memory or barriers; the
//          totals of up to 32 warps are scanned the same way.
// Changes  against kogge_stone_double_buffered: two barriers in all instead of ten.
// Cost     10 shuffles and 10 operations per thread; one value per warp in shared memory.
// Limits   lines of up to 1024 elements, f32 and i32: one element per thread.
// Source   M. Harris & M. Garland, Optimizing Parallel Prefix Operations for the Fermi
//          Architecture, GPU Computing Gems, 2011.
#include "rung/ops/scan/cuda/detail/block.hpp"

namespace rung {
namespace {
using namespace scan_cuda;

constexpr int threads = 1024;

template <class T>
__global__ void __launch_bounds__(threads)
    scan_warp_shuffle(Lines<T> lines, ScanAny combine, T identity, bool exclusive) {
  auto& scratch = shared<WarpValues<T, threads>>();
  const int i = static_cast<int>(threadIdx.x);
  for (std::int64_t line = blockIdx.x; line < lines.lines.size(); line += gridDim.x) {
    const bool exists = i < lines.n;
    const T element = exists ? lines.x_of(line)[i * lines.x_stride] : identity;
    const T before = block_scan<threads>(element, combine, identity, scratch).before;
    if (exists) {
      lines.y_of(line)[i * lines.y_stride] = exclusive ? before : combine(before, element);
    }
  }
}

void run(const Scan::Args& args, Context& context) {
  launch_blocks(
      args, [&]<class T>(const Lines<T>& lines, ScanAny combine, T identity, std::int64_t blocks) {
        launch(context,
               {.grid = blocks, .block = threads, .shared_bytes = sizeof(WarpValues<T, threads>)},
               scan_warp_shuffle<T>, lines, combine, identity, args.exclusive);
      });
}

const Rung<Scan> self{{.name = "warp_shuffle",
                       .step = 40,
                       .after = "brent_kung",
                       .backend = device_backend,
                       .teaching = true,
                       .supports = supports_block<threads>,
                       .passes = {.loads = 1, .stores = 1},
                       .run = run}};
}  // namespace
}  // namespace rung
