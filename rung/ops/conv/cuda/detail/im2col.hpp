// SPDX-License-Identifier: Apache-2.0
// Host side of im2col, for the rungs that launch its two kernels in sequence and on several
// streams: supported layers, the matrix, the product, its grid and its predicted time.
#pragma once

#include "rung/ops/conv/cuda/detail/matrix.hpp"
#include "rung/ops/conv/shared/cuda/layer.hpp"
#include "rung/ops/conv/shared/cuda/tile_facts.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

using Im2colTile = Shape<64, 64, false>;

/// Product of w and an image's matrix, stored to the image of y.
struct Im2colProduct {
  const float* w;
  const float* matrix;
  float* y;
  std::int64_t y_filter;  // from one filter's plane to the next
  std::int64_t filters, terms, pixels;
  Epilogue<float> epilogue;
};

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

/// Returns the number of elements of an image's matrix.
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

/// Returns the work of two launches per image. The matrix is written and read.
inline Work im2col_facts(const Conv::Args& args, const Context&) {
  using S = Im2colTile;
  const auto images = static_cast<double>(args.geometry.images);
  const LaunchExtent grid = product_grid(product_of_image(args, 0, nullptr)).grid;
  Work work = tile_facts(Conv::cost(args),
                         {static_cast<double>(grid.x * grid.y), S::rows, S::columns, S::depth},
                         args.terms(), 3);
  work.bytes = work.bytes + 8 * images * static_cast<double>(matrix_size(args));
  work.operations = images * work.operations;
  work.launches = 2 * images;
  work.rounds = images * work.rounds;
  return work;
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
