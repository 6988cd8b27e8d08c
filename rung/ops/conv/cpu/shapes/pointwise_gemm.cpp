// SPDX-License-Identifier: Apache-2.0
// conv / pointwise GEMM
//
// Idea     with filters of 1 x 1 an image is the second matrix already: its channels are rows, its
//          pixels columns. Nothing is gathered; gemm is called on views of w, x and y, with
//          bias and activation. With channels last pixels are rows, of all images at once if they
//          lie one behind the other.
// Changes  against threads: x is packed by gemm, in blocks that it multiplies by all filters.
// Cost     as gemm's threads; with up to eight filters as gemm's few_rows or gemv, and with up to
//          64 and channels last as its small, which read x where it is.
// Limits   1 x 1, stride 1, no padding; pixels in one line. Only these rungs of gemm are called,
//          not what gemm would choose: their bits are the same for any number of threads.
// Tried    -
// Source   -
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

double estimate(const Conv::Args& args, const Context& context) {
  return conv_cpu::pointwise_seconds(conv_layer::forward(args), context.threads());
}

void run(const Conv::Args& args, Context& context) {
  if (args.y.empty()) return;
  conv_cpu::multiply_pointwise(context, conv_layer::forward(args), args.x, args.w, args.y,
                               args.has_bias() ? &args.options.bias : nullptr);
}

const Rung<Conv> self{{.name = "pointwise_gemm",
                       .after = "threads",
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
