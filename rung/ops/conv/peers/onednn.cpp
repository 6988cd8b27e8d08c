// SPDX-License-Identifier: Apache-2.0
// conv / onednn: the peer oneDNN, its convolution primitive on images as they lie, and on filters
// in whichever layout it prefers, to which each call reorders them.
//
// Kernels  generated while running for the processor it finds; with `winograd` the choice between
//          direct and Winograd is the library's (2.6: "auto").
// Limits   f32 and bf16; no bias, no activation. With images, too, in its own blocked layouts it is
//          faster, but a program that calls us does not have those; reordering to them and back is
//          not tried here.
#include "rung/ops/conv/conv.hpp"
#include "rung/ops/conv/peers/onednn_layer.hpp"
#include "rung/peers/thread_count.hpp"

namespace rung {
namespace {

using conv_onednn::layer_tensor;

/// One a thread: a repeated call finds its primitive made.
onednn::Primitive& cached() {
  thread_local onednn::Primitive primitive;
  return primitive;
}

bool prepare(const Conv::Args& args, int threads) {
  const onednn::Algorithm algorithm =
      args.options.winograd ? onednn::Algorithm::direct_or_winograd : onednn::Algorithm::direct;
  return cached().prepare({.kind = onednn::Kind::convolution,
                           .algorithm = algorithm,
                           .window = conv_onednn::window_of(args.geometry, args.axes)},
                          {{onednn::source, layer_tensor(args.x, args.axes)},
                           {.role = onednn::weights,
                            .tensor = layer_tensor(args.w, args.axes, args.geometry.groups),
                            .any = true},
                           {onednn::destination, layer_tensor(args.y, args.axes)}},
                          threads);
}

Support supports(const Conv::Args& args, const Context& context) {
  if (args.y.empty() || args.x.empty()) return unsupported("nothing to do");
  if (args.x.dtype != DType::f32 && args.x.dtype != DType::bf16) {
    return unsupported("f32 and bf16");
  }
  if (args.has_bias() || args.options.activation != Activation::none) {
    return unsupported("no bias, no activation");
  }
  if (onednn::has_broadcast_axis(args.x) || onednn::has_broadcast_axis(args.w)) {
    return unsupported("no strides of 0");
  }
  return prepare(args, context.threads()) ? supported : unsupported(conv_onednn::no_primitive);
}

void run(const Conv::Args& args, Context& context) {
  const peer::ThreadCount threads(context.threads());
  prepare(args, context.threads());
  cached().run({args.x.data, args.w.data, args.y.data});
}

const Rung<Conv> self{{.name = "onednn",
                       .peer = true,
                       .about = onednn::about,
                       .present = onednn::present,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
