// SPDX-License-Identifier: Apache-2.0
// scan / Kogge-Stone
//
// Idea     one thread per element, all in shared memory. In step d every element is combined with
//          the element d before it; d doubles, so that after log2(n) steps each element holds its
//          prefix.
// Changes  baseline.
// Cost     n log2(n) operations instead of n, and two barriers per step: one between reads and
//          overwrites, one after the overwrites.
// Limits   lines of up to 1024 elements, f32 and i32.
// Source   P. Kogge & H. Stone, IEEE Trans. Computers C-22, 1973; W. Hwu, D. Kirk & I. El Hajj,
//          Programming Massively Parallel Processors, 4th ed., section 11.2.
#include "rung/ops/scan/cuda/detail/block.hpp"

namespace rung {
namespace {
using namespace scan_cuda;

constexpr int most = 1024;

template <class T>
struct Shared {
  T value[most];
};

template <class T>
__global__ void scan_kogge_stone(Lines<T> lines, ScanAny combine, T identity, bool exclusive) {
  T* value = shared<Shared<T>>().value;
  const int i = static_cast<int>(threadIdx.x);
  for (std::int64_t line = blockIdx.x; line < lines.lines.size(); line += gridDim.x) {
    const bool exists = i < lines.n;
    value[i] = exists ? lines.x_of(line)[i * lines.x_stride] : identity;
    for (int distance = 1; distance < static_cast<int>(blockDim.x); distance *= 2) {
      __syncthreads();
      T sum = value[i];
      if (i >= distance) sum = combine(value[i - distance], sum);
      __syncthreads();
      value[i] = sum;
    }
    __syncthreads();
    const T result = !exclusive ? value[i] : i == 0 ? identity : value[i - 1];
    if (exists) lines.y_of(line)[i * lines.y_stride] = result;
    __syncthreads();  // before the next line overwrites elements that a neighbor still reads
  }
}

void run(const Scan::Args& args, Context& context) {
  launch_blocks(
      args, [&]<class T>(const Lines<T>& lines, ScanAny combine, T identity, std::int64_t blocks) {
        launch(context,
               {.grid = blocks, .block = round_up(lines.n, 32), .shared_bytes = sizeof(Shared<T>)},
               scan_kogge_stone<T>, lines, combine, identity, args.exclusive);
      });
}

const Rung<Scan> self{{.name = "kogge_stone",
                       .step = 10,
                       .backend = device_backend,
                       .teaching = true,
                       .supports = supports_block<most>,
                       .passes = {.loads = 1, .stores = 1},
                       .run = run}};
}  // namespace
}  // namespace rung
