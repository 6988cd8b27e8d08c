// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / onednn: the peer oneDNN, its convolution primitive backward for the
// filters, on images as they lie; the gradient comes in whichever layout it prefers, and each call
// reorders it.
//
// Kernels  generated while running for the processor it finds.
// Limits   f32 and bf16.
#include "rung/ops/conv/peers/onednn_layer.hpp"
#include "rung/ops/conv_backward_filter/conv_backward_filter.hpp"
#include "rung/peers/thread_count.hpp"

namespace rung {
namespace {

using conv_onednn::layer_tensor;

/// One a thread: a repeated call finds its primitive made.
onednn::Primitive& cached() {
  thread_local onednn::Primitive primitive;
  return primitive;
}

bool prepare(const ConvBackwardFilter::Args& args, int threads) {
  return cached().prepare({.kind = onednn::Kind::convolution,
                           .algorithm = onednn::Algorithm::direct,
                           .backward = true,
                           .window = conv_onednn::window_of(args.geometry, args.axes)},
                          {{onednn::source, layer_tensor(args.x, args.axes)},
                           {onednn::gradient_destination, layer_tensor(args.dy, args.axes)},
                           {.role = onednn::gradient_weights,
                            .tensor = layer_tensor(args.dw, args.axes, args.geometry.groups),
                            .any = true}},
                          threads);
}

Support supports(const ConvBackwardFilter::Args& args, const Context& context) {
  if (args.x.empty() || args.dy.empty()) return unsupported("nothing to do");
  if (args.dw.dtype != DType::f32 && args.dw.dtype != DType::bf16) {
    return unsupported("f32 and bf16");
  }
  if (onednn::has_broadcast_axis(args.x) || onednn::has_broadcast_axis(args.dy)) {
    return unsupported("no strides of 0");
  }
  return prepare(args, context.threads()) ? supported : unsupported(conv_onednn::no_primitive);
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  const peer::ThreadCount threads(context.threads());
  prepare(args, context.threads());
  cached().run({args.x.data, args.dy.data, args.dw.data});
}

const Rung<ConvBackwardFilter> self{{.name = "onednn",
                                     .peer = true,
                                     .about = onednn::about,
                                     .present = onednn::present,
                                     .supports = supports,
                                     .run = run}};

}  // namespace
}  // namespace rung
