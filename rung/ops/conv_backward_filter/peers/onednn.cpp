// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / onednn: the peer oneDNN, its convolution primitive, backward by weights;
// see conv/shared/peers/onednn_layer.hpp.
//
// Kernels  JIT-compiled for the detected processor.
#include "rung/ops/conv/shared/peers/onednn_layer.hpp"
#include "rung/ops/conv_backward_filter/op/conv_backward_filter.hpp"

namespace rung {
namespace {

conv_onednn::Tensors tensors_of(const ConvBackwardFilter::Args& args) {
  return {args.x, args.dw, args.dy};
}
using Peer = conv_onednn::Peer<ConvBackwardFilter, conv_onednn::backward_filter, tensors_of>;

const Rung<ConvBackwardFilter> self{{.name = "onednn",
                                     .peer = true,
                                     .about = onednn::about,
                                     .present = onednn::present,
                                     .supports = Peer::supports,
                                     .run = Peer::run}};

}  // namespace
}  // namespace rung
