// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / cudnn: the peer cuDNN, its convolution backward by data; see
// conv/shared/peers/cudnn_layer.hpp.
#include "rung/ops/conv/shared/peers/cudnn_layer.hpp"
#include "rung/ops/conv_backward_data/op/conv_backward_data.hpp"

namespace rung {
namespace {

conv_cudnn::Tensors tensors_of(const ConvBackwardData::Args& args) {
  return {args.dx, args.w, args.dy};
}
using Peer = conv_cudnn::Peer<ConvBackwardData, cudnn::Pass::backward_data, tensors_of>;

const Rung<ConvBackwardData> self{{.name = "cudnn",
                                   .backend = Backend::cuda,
                                   .peer = true,
                                   .about = cudnn::about,
                                   .present = cudnn::present,
                                   .supports = Peer::supports,
                                   .run = Peer::run}};

}  // namespace
}  // namespace rung
