// SPDX-License-Identifier: Apache-2.0
// conv / im2col + GEMM
//
// Idea     One kernel unrolls an image into a matrix, with one row per term and one column per
//          pixel. Another multiplies w, as a matrix, by it: tiles of 64 x 64 in registers, strips
//          of both matrices in shared memory. All techniques of fast products apply to
//          convolutions.
// Changes  Against shared_tile: filters share the staged elements of x, and pixels the staged
//          weights.
// Cost     Per image the matrix, kh kw times the size of x, is written to memory and read again per
//          64 filters; 1/64 of a load per multiply-add and operand.
// Limits   f32, one group, w contiguous, images of y contiguous; two launches per image.
// Source   K. Chellapilla, S. Puri & P. Simard, High performance convolutional neural networks for
//          document processing, 2006.
#include "rung/ops/conv/cuda/detail/im2col.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

/// Unrolls image n to the matrix: `count` elements, one row per term, one column per pixel.
__global__ void __launch_bounds__(block_threads)
    conv_im2col_unroll(View<const float, 5> x, ConvGeometry g, std::int64_t n, float* matrix,
                       std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * block_threads;
  std::int64_t i = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
  for (; i < count; i += step) {
    std::int64_t channel = i;
    const std::int64_t ow = take_axis(channel, g.axis[2].out);
    const std::int64_t oh = take_axis(channel, g.axis[1].out);
    const std::int64_t od = take_axis(channel, g.axis[0].out);
    const std::int64_t v = g.axis[2].source(ow, take_axis(channel, g.axis[2].kernel));
    const std::int64_t h = g.axis[1].source(oh, take_axis(channel, g.axis[1].kernel));
    const std::int64_t d = g.axis[0].source(od, take_axis(channel, g.axis[0].kernel));
    matrix[i] = d < 0 || h < 0 || v < 0 ? 0.0F : x(n, channel, d, h, v);
  }
}

/// Multiplies w by the matrix, 64 x 64 elements per block: rows are filters, columns pixels.
__global__ void __launch_bounds__(block_threads) conv_im2col_gemm(Im2colProduct p) {
  using S = Im2colTile;
  auto& strips = shared<Strips<float, S>>();
  const std::int64_t first_filter = std::int64_t{blockIdx.y} * S::rows;
  const std::int64_t first_pixel = std::int64_t{blockIdx.x} * S::columns;
  MatrixStep<S> step{.a = p.w + first_filter * p.terms,
                     .rows = p.filters - first_filter,
                     .b = p.matrix + first_pixel,
                     .b_row = p.pixels,
                     .columns = p.pixels - first_pixel,
                     .terms = p.terms};
  float sums[S::thread_rows][S::thread_columns] = {};
  step.load(0);
  int stage = 0;
  for (std::int64_t term = 0; term < p.terms; term += S::depth, stage ^= 1) {
    step.store(strips, stage);
    __syncthreads();             // one per step: the next step uses the other stage
    step.load(term + S::depth);  // in flight during the product; zeros beyond the last term
    multiply_strips<S>(strips, stage, sums);
  }
#pragma unroll
  for (int i = 0; i < S::thread_rows; ++i) {
    const std::int64_t filter = first_filter + S::row(i);
    if (filter >= p.filters) continue;
#pragma unroll
    for (int j = 0; j < S::thread_columns; ++j) {
      const std::int64_t pixel = first_pixel + S::column(j);
      if (pixel < p.pixels) p.y[filter * p.y_filter + pixel] = p.epilogue(sums[i][j], filter);
    }
  }
}

Support supports(const Conv::Args& args, const Context&) { return supports_im2col(args); }

void run(const Conv::Args& args, Context& context) {
  const std::int64_t count = matrix_size(args);
  auto* const matrix = static_cast<float*>(
      context.workspace(static_cast<std::size_t>(Extents{count, sizeof(float)}.product())));
  for (std::int64_t n = 0; n < args.geometry.images; ++n) {
    launch(context, unroll_grid(args), conv_im2col_unroll, args.x.view<const float, 5>(),
           args.geometry, n, matrix, count);
    const Im2colProduct product = product_of_image(args, n, matrix);
    launch(context, product_grid(product), conv_im2col_gemm, product);
  }
}

const Rung<Conv> self{{.name = "im2col_gemm",
                       .step = 40,
                       .after = "shared_tile",
                       .backend = device_backend,
                       .supports = supports,
                       .work = im2col_facts,
                       .run = run}};

}  // namespace
}  // namespace rung
