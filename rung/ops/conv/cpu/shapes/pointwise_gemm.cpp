// SPDX-License-Identifier: Apache-2.0
// conv / pointwise GEMM
//
// Idea     With filters of 1 x 1 an image is already the second matrix: its channels are rows, its
//          pixels columns. gemm is called on views of w, x and y, with bias and activation; nothing
//          is gathered. With channels last pixels are rows, of all images at once if they are
//          contiguous.
// Changes  Against threads: gemm packs x, in blocks that it multiplies by all filters.
// Cost     As gemm's threads; with up to eight filters as gemm's few_rows or gemv, and with up to
//          64 filters and channels last as gemm's small, which reads x in place.
// Limits   1 x 1, stride 1, no padding; pixels with one common stride. Only these rungs of gemm are
//          called, whose results have the same bits for any number of threads; gemm's own choice
//          might not.
#include "rung/ops/conv/shared/cpu/pointwise.hpp"
#include "rung/ops/conv/shared/layer.hpp"

namespace rung {
namespace {

Support supports(const Conv::Args& args, const Context&) {
  if (!args.geometry.is_pointwise()) return unsupported("1 x 1, stride 1, no padding");
  return conv_cpu::is_product(conv_layer::forward(args))
             ? supported
             : unsupported("pixels of x and y in one line");
}

Work work(const Conv::Args& args, const Context& context) {
  return conv_cpu::pointwise_facts(conv_layer::forward(args), context.threads());
}

void run(const Conv::Args& args, Context& context) {
  using namespace conv_cpu;
  if (args.y.empty()) return;
  const Gathered g = conv_layer::forward(args);
  const bool rows = pixels_are_rows(g), joined = images_join(g);
  for (std::int64_t group = 0; group < g.groups; ++group) {
    const ConstTensorRef x = channel_matrices(args.x, g.x_strides, g, group, g.q, joined);
    const TensorRef y = channel_matrices(args.y, g.y_strides, g, group, g.m, joined);
    const ConstTensorRef w = weight_matrix(args.w, g, group);
    GemmOptions options{.bias = {}, .activation = g.activation};
    if (args.has_bias()) {
      options.bias =
          rows ? part_of(args.options.bias, group * g.m * g.bias_stride, {g.m}, {g.bias_stride})
               : part_of(args.options.bias, group * g.m * g.bias_stride, {g.m, 1},
                         {g.bias_stride, 1});
    }
    gemm(context, rows ? x : w, rows ? w : x, y, options, {product_rung(g)});
  }
}

const Rung<Conv> self{
    {.name = "pointwise_gemm", .after = "threads", .supports = supports, .work = work, .run = run}};

}  // namespace
}  // namespace rung
