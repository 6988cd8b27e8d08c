// SPDX-License-Identifier: Apache-2.0
// stencil / constant memory
//
// Idea     The mask is small and read-only, and all threads read the same weight at the same time:
//          the access pattern of constant memory. A warp receives a weight in one broadcast, as
//          cheap as a register operand, and x has L1 to itself.
// Changes  Against naive: half as many loads.
// Cost     One load per multiply-add.
// Limits   f32; one or two axes, a contiguous mask, zero edges. One constant array per process:
//          concurrent launches on two streams would overwrite each other's mask, so the library
//          never chooses this rung.
// Source   D. Kirk, W. Hwu and I. El Hajj, Programming Massively Parallel Processors, section 7.3.
#include "rung/ops/stencil/cuda/detail/constant_mask.hpp"

namespace rung {
namespace {

using namespace stencil_cuda;

constexpr int side = 16;

__global__ void stencil_constant_memory(Image p) {
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= p.rows || column >= p.columns) return;
  float sum = 0;
  for (int i = 0; i < p.mask_rows; ++i) {
    for (int j = 0; j < p.mask_columns; ++j) {
      const int from_row = row + i - p.origin_row;
      const int from_column = column + j - p.origin_column;
      if (from_row < 0 || from_row >= p.rows) continue;
      if (from_column < 0 || from_column >= p.columns) continue;
      sum += constant_mask[i * p.mask_columns + j] * p.x[from_row * p.x_row + from_column];
    }
  }
  p.y[row * p.y_row + column] = p.scale * sum;
}

Support supports(const Stencil::Args& args, const Context& context) {
  if (args.edge != StencilEdge::zero) return unsupported("takes zero edges");
  return supports_image(args, context);
}

void run(const Stencil::Args& args, Context& context) {
  load_constant_mask(args, context);
  for_each_image(args, context, [&](const Image& p) {
    launch(context,
           {.grid = {ceil_div(p.columns, side), ceil_div(p.rows, side)}, .block = {side, side}},
           stencil_constant_memory, p);
  });
}

const Rung<Stencil> self{{.name = "constant_memory",
                          .step = 20,
                          .after = "naive",
                          .backend = device_backend,
                          .teaching = true,
                          .supports = supports,
                          .run = run}};

}  // namespace
}  // namespace rung
