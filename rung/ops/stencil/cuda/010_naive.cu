// SPDX-License-Identifier: Apache-2.0
// stencil / naive
//
// Idea     One thread per element of y multiplies the elements of x under the mask by its weights
//          and sums the products.
// Changes  Baseline.
// Cost     Two loads per multiply-add: an element of x and a weight. Adjacent threads load adjacent
//          elements, and K threads load the same element, from L1 if it is still cached.
// Limits   f32; one or two axes, a mask, zero edges. Bound by load instructions: a quarter of an
//          operation per byte loaded.
// Source   D. Kirk, W. Hwu and I. El Hajj, Programming Massively Parallel Processors, section 7.2.
#include "rung/ops/stencil/cuda/detail/image.hpp"

namespace rung {
namespace {

using namespace stencil_cuda;

constexpr int side = 16;

__global__ void stencil_naive(Image p, const float* mask) {
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
      sum += mask[i * p.mask_columns + j] * p.x[from_row * p.x_row + from_column];
    }
  }
  p.y[row * p.y_row + column] = p.scale * sum;
}

Support supports(const Stencil::Args& args, const Context& context) {
  if (args.edge != StencilEdge::zero) return unsupported("takes zero edges");
  return supports_image(args, context);
}

void run(const Stencil::Args& args, Context& context) {
  for_each_image(args, context, [&](const Image& p) {
    launch(context,
           {.grid = {ceil_div(p.columns, side), ceil_div(p.rows, side)}, .block = {side, side}},
           stencil_naive, p, static_cast<const float*>(args.mask.data));
  });
}

const Rung<Stencil> self{{.name = "naive",
                          .step = 10,
                          .backend = device_backend,
                          .teaching = true,
                          .supports = supports,
                          .run = run}};

}  // namespace
}  // namespace rung
