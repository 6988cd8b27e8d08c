// SPDX-License-Identifier: Apache-2.0
// stencil / window sum through shared memory
//
// Idea     Windows of adjacent elements overlap. A block loads the elements that its windows cover
//          into shared memory, each element once: its own tile, and a halo left and right of it.
//          All further reads are from shared memory.
// Changes  Against constant_memory: one axis, and every weight is 1. An element is loaded from
//          global memory (tile + window - 1) / tile times instead of `window` times. The first
//          threads load the halo with a second load each.
// Cost     A tile of 8 and a window of 5 (small arrays, to be followed by hand): 12 loads instead
//          of 40, each used 3.3 times; 10 instead of 37, 3.7 times, in a tile at one end of the
//          array. A tile of 256: 4.9 times.
// Limits   f32; one axis; a window. Bound by loads from shared memory.
// Source   D. Kirk, W. Hwu and I. El Hajj, Programming Massively Parallel Processors, section 7.4.
#include "rung/ops/stencil/cuda/detail/image.hpp"

namespace rung {
namespace {

using namespace stencil_cuda;

/// Threads per block, one element each; the smaller tile is for arrays small enough to trace by
/// hand.
constexpr int tile = 256;
constexpr int small_tile = 8;

__global__ void stencil_window_sum_shared(Image p) {
  float* const values = &shared<float>();  // x from `origin` before the block's first element on
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const int first = static_cast<int>(blockIdx.x) * threads;
  const int column = first + thread;
  const int left = p.origin_column;
  const int right = p.mask_columns - 1 - p.origin_column;
  if (thread < left && !p.is_ghost(0, column - left)) {
    values[thread] = p.element(0, column - left);
  }
  if (!p.is_ghost(0, column)) values[left + thread] = p.element(0, column);
  if (thread < right && !p.is_ghost(0, column + threads)) {
    values[left + threads + thread] = p.element(0, column + threads);
  }
  __syncthreads();
  if (column >= p.columns) return;
  float sum = 0;
  for (int j = 0; j < p.mask_columns; ++j) {
    if (!p.is_ghost(0, column + j - left)) sum += values[thread + j];
  }
  p.y[column] = p.scale * sum;
}

Support supports(const Stencil::Args& args, const Context&) {
  if (args.weights != Stencil::Weights::ones) return unsupported("takes a window");
  if (args.axes != 1) return unsupported("takes one axis");
  return supports_rows(args);
}

void run(const Stencil::Args& args, Context& context) {
  for_each_image(args, context, [&](const Image& p) {
    const bool is_small = p.columns <= 2 * small_tile && p.mask_columns <= small_tile;
    const int threads = is_small ? small_tile : tile;
    const auto bytes = static_cast<std::size_t>(threads + p.mask_columns - 1) * sizeof(float);
    launch(context, {.grid = ceil_div(p.columns, threads), .block = threads, .shared_bytes = bytes},
           stencil_window_sum_shared, p);
  });
}

const Rung<Stencil> self{{.name = "window_sum_shared",
                          .step = 30,
                          .after = "constant_memory",
                          .backend = device_backend,
                          .teaching = true,
                          .supports = supports,
                          .run = run}};

}  // namespace
}  // namespace rung
