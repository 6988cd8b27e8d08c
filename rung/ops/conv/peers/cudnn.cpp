// SPDX-License-Identifier: Apache-2.0
// conv / cudnn: the peer cuDNN; see cudnn_layer.hpp.
//
// Limits   no bias, no activation.
#include "rung/ops/conv/op/conv.hpp"
#include "rung/ops/conv/shared/peers/cudnn_layer.hpp"

namespace rung {
namespace {

conv_cudnn::Tensors tensors_of(const Conv::Args& args) { return {args.x, args.w, args.y}; }
using Peer = conv_cudnn::Peer<Conv, cudnn::Pass::forward, tensors_of>;

Support supports(const Conv::Args& args, const Context& context) {
  if (args.has_bias() || args.options.activation != Activation::none) {
    return unsupported("no bias, no activation");
  }
  return Peer::supports(args, context);
}

const Rung<Conv> self{{.name = "cudnn",
                       .backend = Backend::cuda,
                       .peer = true,
                       .about = cudnn::about,
                       .present = cudnn::present,
                       .supports = supports,
                       .run = Peer::run}};

}  // namespace
}  // namespace rung
