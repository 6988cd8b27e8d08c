// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / cudnn: the peer cuDNN, its convolution backward by filter; see
// conv/shared/peers/cudnn_layer.hpp.
#include "rung/ops/conv/shared/peers/cudnn_layer.hpp"
#include "rung/ops/conv_backward_filter/op/conv_backward_filter.hpp"

namespace rung {
namespace {

conv_cudnn::Tensors tensors_of(const ConvBackwardFilter::Args& args) {
  return {args.x, args.dw, args.dy};
}
using Peer = conv_cudnn::Peer<ConvBackwardFilter, cudnn::Pass::backward_filter, tensors_of>;

const Rung<ConvBackwardFilter> self{{.name = "cudnn",
                                     .backend = Backend::cuda,
                                     .peer = true,
                                     .about = cudnn::about,
                                     .present = cudnn::present,
                                     .supports = Peer::supports,
                                     .run = Peer::run}};

}  // namespace
}  // namespace rung
