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
#include "rung/ops/conv/cuda/detail/layer.hpp"
#include "rung/ops/conv/cuda/detail/matrix.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

using S = Shape<64, 64, false>;

__global__ void __launch_bounds__(block_threads)
    conv_im2col_unroll(View<const float, 5> x, ConvGeometry g, std::int64_t n, float* matrix,
                       std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * block_threads;
  std::int64_t i = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
  for (; i < count; i += step) {
    std::int64_t rest = i;
    const std::int64_t ow = take_axis(rest, g.axis[2].out);
    const std::int64_t oh = take_axis(rest, g.axis[1].out);
    const std::int64_t od = take_axis(rest, g.axis[0].out);
    const std::int64_t v = g.axis[2].source(ow, take_axis(rest, g.axis[2].kernel));
    const std::int64_t h = g.axis[1].source(oh, take_axis(rest, g.axis[1].kernel));
    const std::int64_t d = g.axis[0].source(od, take_axis(rest, g.axis[0].kernel));
    matrix[i] = d < 0 || h < 0 || v < 0 ? 0.0F : x(n, rest, d, h, v);
  }
}

__global__ void __launch_bounds__(block_threads)
    conv_im2col_gemm(const float* w, const float* matrix, float* y, std::int64_t y_filter,
                     std::int64_t filters, std::int64_t terms, std::int64_t pixels,
                     Epilogue<float> epilogue) {
  auto& strips = shared<Strips<float, S>>();
  const std::int64_t first_filter = std::int64_t{blockIdx.y} * S::rows;
  const std::int64_t first_pixel = std::int64_t{blockIdx.x} * S::columns;
  const MatrixSource<S> source{w + first_filter * terms, terms,  filters - first_filter,
                               matrix + first_pixel,     pixels, pixels - first_pixel};
  float sums[S::thread_rows][S::thread_columns] = {};
  multiply_tile<S>(source, strips, 0, terms, sums);
#pragma unroll
  for (int i = 0; i < S::thread_rows; ++i) {
    const std::int64_t filter = first_filter + S::row(i);
    if (filter >= filters) continue;
#pragma unroll
    for (int j = 0; j < S::thread_columns; ++j) {
      const std::int64_t pixel = first_pixel + S::column(j);
      if (pixel < pixels) y[filter * y_filter + pixel] = epilogue(sums[i][j], filter);
    }
  }
}

Support supports(const Conv::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  if (args.x.dtype != DType::f32 || g.groups != 1) return unsupported("f32 and one group");
  if (!is_contiguous(args.w)) return unsupported("w must be contiguous");
  std::int64_t expected = 1;
  for (int axis = 4; axis >= 2; --axis) {
    if (args.y.shape[axis] != 1 && args.y.strides[axis] != expected) {
      return unsupported("the images of y must be contiguous");
    }
    expected *= args.y.shape[axis];
  }
  const bool fits = ceil_div(g.results(), S::columns) <= 0x7fffffff &&
                    ceil_div(g.filters, S::rows) <= 0xffff && g.channels <= 0x7fffffff;
  return fits ? supported : unsupported("more tiles than a grid has blocks");
}

double estimate(const Conv::Args& args, const Context& context) {
  Cost cost = Conv::cost(args);
  cost.bytes += static_cast<double>(args.geometry.images) * static_cast<double>(args.terms()) *
                static_cast<double>(args.geometry.results()) * 8;
  const std::int64_t images = args.geometry.images;
  const double seconds = estimate_seconds(
      cost, {.peak = 0.35, .launches = static_cast<int>(smaller(images, std::int64_t{10000})) * 2},
      context);
  // One image after another, and within it one term after another, on an H100.
  const double waiting =
      static_cast<double>(images) * (7e-6 + 0.075e-6 * static_cast<double>(args.terms()));
  return larger(seconds, waiting);
}

void run(const Conv::Args& args, Context& context) {
  const ConvGeometry& g = args.geometry;
  const std::int64_t pixels = g.results();
  const std::int64_t count = args.terms() * pixels;
  auto* const matrix = static_cast<float*>(
      context.workspace(static_cast<std::size_t>(Extents{count, sizeof(float)}.product())));
  for (std::int64_t n = 0; n < g.images; ++n) {
    launch(context,
           {.grid = smaller(ceil_div(count, block_threads), std::int64_t{0x7fffffff}),
            .block = block_threads},
           conv_im2col_unroll, args.x.view<const float, 5>(), g, n, matrix, count);
    launch(context,
           {.grid = {ceil_div(pixels, S::columns), ceil_div(g.filters, S::rows)},
            .block = block_threads,
            .shared_bytes = sizeof(Strips<float, S>)},
           conv_im2col_gemm, static_cast<const float*>(args.w.data), matrix,
           static_cast<float*>(args.y.data) + n * args.y.strides[0], args.y.strides[1], g.filters,
           args.terms(), pixels, epilogue_of<float>(args));
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
