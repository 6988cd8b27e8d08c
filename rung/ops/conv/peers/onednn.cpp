// SPDX-License-Identifier: Apache-2.0
// conv / onednn: the peer oneDNN: oneDNN's convolution primitive; see onednn_layer.hpp.
//
// Kernels  JIT-compiled for the detected processor; with `winograd` oneDNN (2.6: "auto") chooses
//          between direct and Winograd.
// Limits   no bias, no activation.
#include "rung/ops/conv/op/conv.hpp"
#include "rung/ops/conv/shared/peers/onednn_layer.hpp"

namespace rung {
namespace {

conv_onednn::Tensors tensors_of(const Conv::Args& args) { return {args.x, args.w, args.y}; }
using Peer = conv_onednn::Peer<Conv, conv_onednn::forward, tensors_of>;

Support supports(const Conv::Args& args, const Context& context) {
  if (args.has_bias() || args.options.activation != Activation::none) {
    return unsupported("no bias, no activation");
  }
  return Peer::supports(args, context);
}

const Rung<Conv> self{{.name = "onednn",
                       .peer = true,
                       .about = onednn::about,
                       .present = onednn::present,
                       .supports = supports,
                       .run = Peer::run}};

}  // namespace
}  // namespace rung
