// SPDX-License-Identifier: Apache-2.0
// scan / Brent-Kung
//
// Idea     up a binary tree, then down. On the way up, the last element of each pair of blocks
//          receives the pair's total; on the way down, the middle of each block receives its
//          prefix.
// Changes  against kogge_stone: 2n operations instead of n log2(n), in twice as many steps; half as
//          many threads as elements, since no step needs more.
// Cost     2 log2(n) - 1 barriers. In most steps most threads are idle, and strides of powers of
//          two cause bank conflicts: less work, but rarely less time.
// Limits   lines of up to 2048 elements, f32 and i32.
// Source   R. Brent & H. Kung, A Regular Layout for Parallel Adders, IEEE Trans. Computers C-31,
//          1982; G. Blelloch, Prefix Sums and Their Applications, 1990.
#include "rung/ops/scan/cuda/detail/block.hpp"

namespace rung {
namespace {
using namespace scan_cuda;

constexpr int most = 2048;

template <class T>
struct Shared {
  T value[most];
};

/// Scans lines of up to `size` elements, a power of two, with size / 2 threads per block.
template <class T>
__global__ void scan_brent_kung(Lines<T> lines, ScanAny combine, T identity, bool exclusive,
                                int size) {
  T* value = shared<Shared<T>>().value;
  const int threads = static_cast<int>(blockDim.x);
  const int thread = static_cast<int>(threadIdx.x);
  for (std::int64_t line = blockIdx.x; line < lines.lines.size(); line += gridDim.x) {
    for (int i = thread; i < size; i += threads) {
      value[i] = i < lines.n ? lines.x_of(line)[i * lines.x_stride] : identity;
    }
    for (int half = 1; half < size; half *= 2) {  // up
      __syncthreads();
      const int right = (thread + 1) * 2 * half - 1;
      if (right < size) value[right] = combine(value[right - half], value[right]);
    }
    for (int half = size / 4; half > 0; half /= 2) {  // down
      __syncthreads();
      const int left = (thread + 1) * 2 * half - 1;
      if (left + half < size) value[left + half] = combine(value[left], value[left + half]);
    }
    __syncthreads();
    for (int i = thread; i < lines.n; i += threads) {
      const T result = !exclusive ? value[i] : i == 0 ? identity : value[i - 1];
      lines.y_of(line)[i * lines.y_stride] = result;
    }
    __syncthreads();
  }
}

void run(const Scan::Args& args, Context& context) {
  int size = 64;
  while (size < args.length()) size *= 2;
  launch_blocks(
      args, [&]<class T>(const Lines<T>& lines, ScanAny combine, T identity, std::int64_t blocks) {
        launch(context, {.grid = blocks, .block = size / 2, .shared_bytes = sizeof(Shared<T>)},
               scan_brent_kung<T>, lines, combine, identity, args.exclusive, size);
      });
}

const Rung<Scan> self{{.name = "brent_kung",
                       .step = 30,
                       .after = "kogge_stone_double_buffered",
                       .backend = device_backend,
                       .teaching = true,
                       .supports = supports_block<most>,
                       .passes = {.loads = 1, .stores = 1},
                       .run = run}};
}  // namespace
}  // namespace rung
