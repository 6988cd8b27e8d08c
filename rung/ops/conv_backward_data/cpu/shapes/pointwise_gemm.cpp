// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / pointwise GEMM
//
// Idea     With filters of 1 x 1 an image of dx is the transposed filters times an image of dy:
//          gemm is called on views of w, dy and dx, and nothing is gathered.
// Changes  Against threads: gemm packs dy, in blocks that it multiplies by all channels; if dx has
//          few channels, dy is read in place.
// Cost     As gemm's threads; with up to eight channels as gemm's few_rows or gemv.
// Limits   1 x 1, stride 1, no padding; pixels with one common stride. As conv's pointwise_gemm it
//          calls rungs of gemm whose bits are the same for any number of threads.
#include "rung/ops/conv/shared/cpu/pointwise.hpp"
#include "rung/ops/conv/shared/layer.hpp"
#include "rung/ops/conv_backward_data/op/layer.hpp"

namespace rung {
namespace {

conv_layer::Gathered layer(const ConvBackwardData::Args& args) {
  conv_layer::Gathered g = conv_layer::transposed(args);
  conv_layer::join_axes(g);
  return g;
}

Support supports(const ConvBackwardData::Args& args, const Context&) {
  if (!args.geometry.is_pointwise()) return unsupported("1 x 1, stride 1, no padding");
  return conv_cpu::is_product(layer(args)) ? supported
                                           : unsupported("pixels of dx and dy in one line");
}

Work work(const ConvBackwardData::Args& args, const Context& context) {
  return conv_cpu::pointwise_facts(layer(args), context.threads());
}

void run(const ConvBackwardData::Args& args, Context& context) {
  using namespace conv_cpu;
  if (args.dx.empty()) return;
  const Gathered g = layer(args);
  const bool rows = pixels_are_rows(g), joined = images_join(g);
  for (std::int64_t group = 0; group < g.groups; ++group) {
    const ConstTensorRef dy = channel_matrices(args.dy, g.x_strides, g, group, g.q, joined);
    const TensorRef dx = channel_matrices(args.dx, g.y_strides, g, group, g.m, joined);
    const ConstTensorRef w = weight_matrix(args.w, g, group);
    gemm(context, rows ? dy : w, rows ? w : dy, dx, {}, {product_rung(g)});
  }
}

const Rung<ConvBackwardData> self{
    {.name = "pointwise_gemm", .after = "threads", .supports = supports, .work = work, .run = run}};

}  // namespace
}  // namespace rung
