// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / pointwise GEMM
//
// Idea     With filters of 1 x 1 dw is dy times the transposed x, summed over pixels: gemm is
//          called on views of dy and x, image by image, adding to dw, or for all images at once if
//          channels are last and pixels have one common stride.
// Changes  Against threads: nothing is gathered; gemm packs x and dy, in blocks that fit in L2.
// Cost     As gemm's threads; dw is read and written once per image.
// Limits   1 x 1, stride 1, no padding; pixels with one common stride. f16 and bf16 only with one
//          image or channels last, since sums would be rounded per image. Only gemm's threads is
//          called, whose bits are the same for any number of threads.
#include <algorithm>

#include "rung/core/integer.hpp"
#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv/shared/cpu/pointwise.hpp"
#include "rung/ops/conv/shared/layer.hpp"
#include "rung/ops/conv_backward_filter/op/layer.hpp"

namespace rung {
namespace {

using conv_cpu::part_of;
using conv_layer::Gathered;

Gathered layer(const ConvBackwardFilter::Args& args) {
  Gathered g = conv_layer::of_filters(args);
  conv_layer::join_axes(g);
  return g;
}

bool is_line(const Gathered& g) {
  return g.axis[0].places == 1 && g.axis[1].places == 1 && g.axis[2].places == g.axis[2].extent;
}
/// Returns whether the pixels of all images have one common stride in x and in dy.
bool is_one_line(const Gathered& g) {
  const std::int64_t pixels = g.axis[2].places;
  return g.images == 1 ||
         (g.x_strides[0] == pixels * g.x_strides[4] && g.y_strides[0] == pixels * g.y_strides[4]);
}

Support supports(const ConvBackwardFilter::Args& args, const Context&) {
  if (!args.geometry.is_pointwise()) return unsupported("1 x 1, stride 1, no padding");
  const Gathered g = layer(args);
  if (!is_line(g)) return unsupported("pixels of x and dy in one line");
  if (size_of(g.dtype) == 2 && !is_one_line(g)) {
    return unsupported("f16 and bf16 of one image, or with channels last");
  }
  return supported;
}

Work work(const ConvBackwardFilter::Args& args, const Context& context) {
  constexpr std::int64_t rows_of_tile = 6;
  const Gathered g = layer(args);
  const std::int64_t columns = round_up(g.q, conv_cpu::vector_lanes());
  return conv_cpu::pixel_facts(g, std::max(g.m, rows_of_tile) * columns, 0, context.threads());
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  const Gathered g = layer(args);
  if (g.m == 0 || g.q == 0) return;
  const bool at_once = is_one_line(g);
  const std::int64_t images = at_once ? std::min<std::int64_t>(g.images, 1) : g.images;
  const std::int64_t pixels = g.axis[2].places * (at_once ? g.images : 1);
  for (std::int64_t group = 0; group < g.groups; ++group) {
    const TensorRef dw =
        part_of(args.dw, group * g.w_group, {g.m, g.q}, {g.w_strides[0], g.w_strides[1]});
    // Without images dw is set to zero by a product over no pixels.
    for (std::int64_t n = 0; n < std::max<std::int64_t>(images, 1); ++n) {
      const std::int64_t some = images == 0 ? 0 : pixels;
      const ConstTensorRef dy = part_of(args.dy, n * g.y_strides[0] + group * g.m * g.y_strides[1],
                                        {g.m, some}, {g.y_strides[1], g.y_strides[4]});
      const ConstTensorRef x = part_of(args.x, n * g.x_strides[0] + group * g.q * g.x_strides[1],
                                       {some, g.q}, {g.x_strides[4], g.x_strides[1]});
      gemm(context, dy, x, dw, {.beta = n == 0 ? 0.0 : 1.0}, {"threads"});
    }
  }
}

const Rung<ConvBackwardFilter> self{
    {.name = "pointwise_gemm", .after = "threads", .supports = supports, .work = work, .run = run}};

}  // namespace
}  // namespace rung
