// SPDX-License-Identifier: Apache-2.0
// conv / im2col + GEMM
//
// Idea     one kernel unrolls an image into a matrix - a row per term, a column per pixel -,
//          another multiplies w, as a matrix, by it: tiles of 64 x 64 in registers, strips of both
//          matrices in shared memory. All that is known of fast products serves convolutions.
// Changes  against shared_tile: filters share what is staged of x, and pixels what is staged of w.
// Cost     per image the matrix, kh kw times x, is written to memory and read again for each 64
//          filters; 1/64 of a load per multiply-add and operand.
// Limits   f32, one group, w contiguous, images of y contiguous; two launches per image.
// Tried    -
// Source   K. Chellapilla, S. Puri & P. Simard, High performance convolutional neural networks for
//          document processing, 2006.
#include "rung/ops/conv/cuda/detail/im2col.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

__global__ void __launch_bounds__(block_threads)
    conv_im2col_unroll(View<const float, 5> x, ConvGeometry g, std::int64_t n, float* matrix,
                       std::int64_t count) {
  unroll_image(x, g, n, matrix, count);
}

__global__ void __launch_bounds__(block_threads) conv_im2col_gemm(Im2colProduct p) {
  multiply_image(p);
}

Support supports(const Conv::Args& args, const Context&) { return supports_im2col(args); }

double estimate(const Conv::Args& args, const Context& context) {
  // One image after another, and within it one term after another.
  return larger(im2col_seconds(args, context),
                static_cast<double>(args.geometry.images) * im2col_waiting(args));
}

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
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
