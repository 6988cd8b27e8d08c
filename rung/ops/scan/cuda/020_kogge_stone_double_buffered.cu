// SPDX-License-Identifier: Apache-2.0
// scan / Kogge-Stone, double-buffered
//
// Idea     double buffering: each step reads one array and writes another, so that no thread
//          overwrites an element that another still has to read.
// Changes  against kogge_stone: one barrier per step instead of two, for twice the shared memory.
// Cost     n log2(n) operations, log2(n) barriers.
// Limits   lines of up to 1024 elements, f32 and i32.
// Source   W. Hwu, D. Kirk & I. El Hajj, Programming Massively Parallel Processors, 4th ed.,
//          section 11.2.
#include "rung/ops/scan/cuda/detail/block.hpp"

namespace rung {
namespace {
using namespace scan_cuda;

constexpr int most = 1024;

template <class T>
struct Shared {
  T value[2][most];
};

template <class T>
__global__ void scan_kogge_stone_double_buffered(Lines<T> lines, ScanAny combine, T identity,
                                                 bool exclusive) {
  Shared<T>& buffers = shared<Shared<T>>();
  const int i = static_cast<int>(threadIdx.x);
  for (std::int64_t line = blockIdx.x; line < lines.lines.size(); line += gridDim.x) {
    const bool exists = i < lines.n;
    int from = 0;
    buffers.value[0][i] = exists ? lines.x_of(line)[i * lines.x_stride] : identity;
    __syncthreads();
    for (int distance = 1; distance < static_cast<int>(blockDim.x); distance *= 2) {
      const T* value = buffers.value[from];
      const T sum = value[i];
      from = 1 - from;
      buffers.value[from][i] = i >= distance ? combine(value[i - distance], sum) : sum;
      __syncthreads();
    }
    const T* value = buffers.value[from];
    const T result = !exclusive ? value[i] : i == 0 ? identity : value[i - 1];
    if (exists) lines.y_of(line)[i * lines.y_stride] = result;
    __syncthreads();
  }
}

void run(const Scan::Args& args, Context& context) {
  launch_blocks(
      args, [&]<class T>(const Lines<T>& lines, ScanAny combine, T identity, std::int64_t blocks) {
        launch(context,
               {.grid = blocks, .block = round_up(lines.n, 32), .shared_bytes = sizeof(Shared<T>)},
               scan_kogge_stone_double_buffered<T>, lines, combine, identity, args.exclusive);
      });
}

const Rung<Scan> self{{.name = "kogge_stone_double_buffered",
                       .step = 20,
                       .after = "kogge_stone",
                       .backend = device_backend,
                       .teaching = true,
                       .supports = supports_block<most>,
                       .passes = {.loads = 1, .stores = 1},
                       .run = run}};
}  // namespace
}  // namespace rung
