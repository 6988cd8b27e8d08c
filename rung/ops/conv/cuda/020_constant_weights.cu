// SPDX-License-Identifier: Apache-2.0
// conv / constant weights
//
// Idea     All threads of a block need the same weight at the same time. Constant memory broadcasts
//          it to a warp in one transaction, through its own cache, as cheaply as a register
//          operand.
// Changes  Against naive: w is in constant memory. Of the two loads per multiply-add only the one
//          of x is left.
// Cost     a copy of w per call, device to device; one load of x per multiply-add.
// Limits   f32; images of two dimensions, one group, w contiguous and up to 16384 weights (64 KiB);
//          no bias, no activation. A process has one constant array, so calls on two streams at a
//          time would mix their weights: this rung is never chosen automatically.
// Source   W. Hwu, D. Kirk & I. El Hajj, Programming Massively Parallel Processors, 4th ed., 7.3.
#include "rung/ops/conv/cuda/detail/constant_weights.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

constexpr int tile = 16;

__global__ void conv_constant_weights(View<const float, 5> x, View<float, 5> y, ConvAxis rows,
                                      ConvAxis columns, int tiles_along_row) {
  const std::int64_t k = blockIdx.x;
  const std::int64_t oh = std::int64_t{blockIdx.y / tiles_along_row} * tile + threadIdx.y;
  const std::int64_t ow = std::int64_t{blockIdx.y % tiles_along_row} * tile + threadIdx.x;
  if (oh >= rows.out || ow >= columns.out) return;
  const int channels = static_cast<int>(x.shape[1]);
  const int down = static_cast<int>(rows.kernel);
  const int across = static_cast<int>(columns.kernel);
  for (std::int64_t n = blockIdx.z; n < y.shape[0]; n += gridDim.z) {
    float sum = 0;
    int weight = static_cast<int>(k) * channels * down * across;
    for (int c = 0; c < channels; ++c) {
      for (int i = 0; i < down; ++i) {
        const std::int64_t h = rows.source(oh, i);
        for (int j = 0; j < across; ++j, ++weight) {
          const std::int64_t v = columns.source(ow, j);
          if (h < 0 || v < 0) continue;
          sum += x(n, c, 0, h, v) * constant_weights[weight];
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
  if (!is_contiguous(args.w) || args.w.size() > max_constant_weights) {
    return unsupported("w must be contiguous and have up to 16384 elements");
  }
  return tiles_along(g.axis[1]) * tiles_along(g.axis[2]) <= 0xffff
             ? supported
             : unsupported("up to 65535 tiles of 16 x 16 pixels");
}

void run(const Conv::Args& args, Context& context) {
  const ConvGeometry& g = args.geometry;
  const std::int64_t along_row = tiles_along(g.axis[2]);
  load_constant_weights(args, context);
  launch(context,
         {.grid = {g.filters, tiles_along(g.axis[1]) * along_row,
                   smaller(g.images, std::int64_t{0xffff})},
          .block = {tile, tile}},
         conv_constant_weights, args.x.view<const float, 5>(), args.y.view<float, 5>(), g.axis[1],
         g.axis[2], static_cast<int>(along_row));
}

const Rung<Conv> self{{.name = "constant_weights",
                       .step = 20,
                       .after = "naive",
                       .backend = device_backend,
                       .teaching = true,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
