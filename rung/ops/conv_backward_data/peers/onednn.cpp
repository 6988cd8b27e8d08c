// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / onednn: the peer oneDNN, its convolution primitive backward for the images,
// on images as they lie, and on filters in whichever layout it prefers, to which each call reorders
// them.
//
// Kernels  generated while running for the processor it finds.
// Limits   f32 and bf16.
#include "rung/ops/conv/peers/onednn_layer.hpp"
#include "rung/ops/conv_backward_data/conv_backward_data.hpp"
#include "rung/peers/thread_count.hpp"

namespace rung {
namespace {

using conv_onednn::layer_tensor;

/// One a thread: a repeated call finds its primitive made.
onednn::Primitive& cached() {
  thread_local onednn::Primitive primitive;
  return primitive;
}

bool prepare(const ConvBackwardData::Args& args, int threads) {
  return cached().prepare({.kind = onednn::Kind::convolution,
                           .algorithm = onednn::Algorithm::direct,
                           .backward = true,
                           .window = conv_onednn::window_of(args.geometry, args.axes)},
                          {{onednn::gradient_destination, layer_tensor(args.dy, args.axes)},
                           {.role = onednn::weights,
                            .tensor = layer_tensor(args.w, args.axes, args.geometry.groups),
                            .any = true},
                           {onednn::gradient_source, layer_tensor(args.dx, args.axes)}},
                          threads);
}

Support supports(const ConvBackwardData::Args& args, const Context& context) {
  if (args.dx.empty() || args.dy.empty()) return unsupported("nothing to do");
  if (args.dx.dtype != DType::f32 && args.dx.dtype != DType::bf16) {
    return unsupported("f32 and bf16");
  }
  if (onednn::has_broadcast_axis(args.dy) || onednn::has_broadcast_axis(args.w)) {
    return unsupported("no strides of 0");
  }
  return prepare(args, context.threads()) ? supported : unsupported(conv_onednn::no_primitive);
}

void run(const ConvBackwardData::Args& args, Context& context) {
  const peer::ThreadCount threads(context.threads());
  prepare(args, context.threads());
  cached().run({args.dy.data, args.w.data, args.dx.data});
}

const Rung<ConvBackwardData> self{{.name = "onednn",
                                   .peer = true,
                                   .about = onednn::about,
                                   .present = onednn::present,
                                   .supports = supports,
                                   .run = run}};

}  // namespace
}  // namespace rung
