// SPDX-License-Identifier: Apache-2.0
// conv / naive
//
// Idea     One thread per pixel of y, as in textbooks: blocks of 16 x 16 pixels, and a grid over
//          filters, tiles of the image and images; each thread sums over channels and taps.
// Changes  baseline.
// Cost     Two loads per multiply-add: w is the same for all threads of a block, elements of x are
//          neighbors. Each element of x is loaded K kh kw times, from the L1 cache or from memory.
// Limits   f32, images of two dimensions, one group; no bias, no activation.
// Source   W. Hwu, D. Kirk & I. El Hajj, Programming Massively Parallel Processors, 4th ed., 16.4.
#include "rung/ops/conv/shared/cuda/layer.hpp"
#include "rung/ops/conv/shared/cuda/tile_facts.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int tile = 16;

__global__ void conv_naive(View<const float, 5> x, View<const float, 5> w, View<float, 5> y,
                           ConvAxis rows, ConvAxis columns, int tiles_along_row) {
  const std::int64_t k = blockIdx.x;
  const std::int64_t oh = std::int64_t{blockIdx.y / tiles_along_row} * tile + threadIdx.y;
  const std::int64_t ow = std::int64_t{blockIdx.y % tiles_along_row} * tile + threadIdx.x;
  if (oh >= rows.out || ow >= columns.out) return;
  for (std::int64_t n = blockIdx.z; n < y.shape[0]; n += gridDim.z) {
    float sum = 0;
    for (std::int64_t c = 0; c < x.shape[1]; ++c) {
      for (std::int64_t i = 0; i < rows.kernel; ++i) {
        for (std::int64_t j = 0; j < columns.kernel; ++j) {
          const std::int64_t h = oh * rows.stride - rows.padding + i * rows.dilation;
          const std::int64_t v = ow * columns.stride - columns.padding + j * columns.dilation;
          if (h < 0 || h >= rows.in || v < 0 || v >= columns.in) continue;
          sum += x(n, c, 0, h, v) * w(k, c, 0, i, j);
        }
      }
    }
    y(n, k, 0, oh, ow) = sum;
  }
}

std::int64_t tiles_along(const ConvAxis& axis) { return ceil_div(axis.out, tile); }

Support supports(const Conv::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  if (args.x.dtype != DType::f32) return unsupported("f32 only");
  if (!is_flat(g) || g.groups != 1) return unsupported("two dimensions and one group");
  if (args.has_bias() || args.options.activation != Activation::none) {
    return unsupported("no bias, no activation");
  }
  return tiles_along(g.axis[1]) * tiles_along(g.axis[2]) <= 0xffff && g.filters <= 0x7fffffff
             ? supported
             : unsupported("up to 65535 tiles of 16 x 16 pixels");
}

LaunchExtent grid_of(const ConvGeometry& g) {
  return {g.filters, tiles_along(g.axis[1]) * tiles_along(g.axis[2]),
          smaller(g.images, std::int64_t{0xffff})};
}

void run(const Conv::Args& args, Context& context) {
  const ConvGeometry& g = args.geometry;
  const std::int64_t along_row = tiles_along(g.axis[2]);
  launch(context, {.grid = grid_of(g), .block = {tile, tile}}, conv_naive,
         args.x.view<const float, 5>(), args.w.view<const float, 5>(), args.y.view<float, 5>(),
         g.axis[1], g.axis[2], static_cast<int>(along_row));
}

Work work(const Conv::Args& args, const Context&) {
  const ConvGeometry& g = args.geometry;
  const LaunchExtent grid = grid_of(g);
  const std::int64_t pixel = args.x.strides[4] * g.axis[2].stride;
  const std::int64_t images = ceil_div(g.images, grid.z);
  return term_facts(grid, images * args.terms(), images * args.terms() / g.axis[2].kernel,
                    pixel * std::int64_t{sizeof(float)});
}

const Rung<Conv> self{{.name = "naive",
                       .step = 10,
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
