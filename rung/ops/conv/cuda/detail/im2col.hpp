// SPDX-License-Identifier: Apache-2.0
// The two kernels of im2col, for the rungs that launch them one after another and on several
// streams: an image unrolled into a matrix, a row per term and a column per pixel, and w times it.
#pragma once

#include "rung/ops/conv/cuda/detail/matrix.hpp"
#include "rung/ops/conv/shared/cuda/layer.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

using Im2colTile = Shape<64, 64, false>;

/// `count` elements of the matrix of image n, by all threads of the grid.
__device__ __forceinline__ void unroll_image(const View<const float, 5>& x, const ConvGeometry& g,
                                             std::int64_t n, float* matrix, std::int64_t count) {
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

/// A product of w and an image's matrix, into the image of y.
struct Im2colProduct {
  const float* w;
  const float* matrix;
  float* y;
  std::int64_t y_filter;  // from a filter's image to the next
  std::int64_t filters, terms, pixels;
  Epilogue<float> epilogue;
};

/// The block's 64 x 64 elements of it.
__device__ __forceinline__ void multiply_image(const Im2colProduct& p) {
  using S = Im2colTile;
  auto& strips = shared<Strips<float, S>>();
  const std::int64_t first_filter = std::int64_t{blockIdx.y} * S::rows;
  const std::int64_t first_pixel = std::int64_t{blockIdx.x} * S::columns;
  const MatrixSource<S> source{p.w + first_filter * p.terms, p.terms,  p.filters - first_filter,
                               p.matrix + first_pixel,       p.pixels, p.pixels - first_pixel};
  float sums[S::thread_rows][S::thread_columns] = {};
  multiply_tile<S>(source, strips, 0, p.terms, sums);
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

// --- on the host ---------------------------------------------------------------------------------

inline Support supports_im2col(const Conv::Args& args) {
  using S = Im2colTile;
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

/// Elements of an image's matrix.
inline std::int64_t matrix_size(const Conv::Args& args) {
  return args.terms() * args.geometry.results();
}
inline LaunchShape unroll_grid(const Conv::Args& args) {
  return {.grid = smaller(ceil_div(matrix_size(args), block_threads), std::int64_t{0x7fffffff}),
          .block = block_threads};
}

inline Im2colProduct product_of_image(const Conv::Args& args, std::int64_t n, const float* matrix) {
  return {.w = static_cast<const float*>(args.w.data),
          .matrix = matrix,
          .y = static_cast<float*>(args.y.data) + n * args.y.strides[0],
          .y_filter = args.y.strides[1],
          .filters = args.geometry.filters,
          .terms = args.terms(),
          .pixels = args.geometry.results(),
          .epilogue = epilogue_of<float>(args)};
}
inline LaunchShape product_grid(const Im2colProduct& p) {
  using S = Im2colTile;
  return {.grid = {ceil_div(p.pixels, S::columns), ceil_div(p.filters, S::rows)},
          .block = block_threads,
          .shared_bytes = sizeof(Strips<float, S>)};
}

/// Seconds of both kernels, and launching them, for all images.
inline double im2col_seconds(const Conv::Args& args, const Context& context) {
  Cost cost = Conv::cost(args);
  cost.bytes += static_cast<double>(args.geometry.images) * static_cast<double>(args.terms()) *
                static_cast<double>(args.geometry.results()) * 8;
  return estimate_seconds(
      cost,
      {.peak = 0.35,
       .launches = static_cast<int>(smaller(args.geometry.images, std::int64_t{10000})) * 2},
      context);
}
/// What an image takes at least, one term after another, on an H100.
inline double im2col_waiting(const Conv::Args& args) {
  return 7e-6 + 0.075e-6 * static_cast<double>(args.terms());
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
