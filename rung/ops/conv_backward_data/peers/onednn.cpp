// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / onednn: the peer oneDNN, its convolution primitive, backward by data; see
// conv/shared/peers/onednn_layer.hpp.
//
// Kernels  JIT-compiled for the detected processor.
#include "rung/ops/conv/shared/peers/onednn_layer.hpp"
#include "rung/ops/conv_backward_data/op/conv_backward_data.hpp"

namespace rung {
namespace {

conv_onednn::Tensors tensors_of(const ConvBackwardData::Args& args) {
  return {args.dx, args.w, args.dy};
}
using Peer = conv_onednn::Peer<ConvBackwardData, conv_onednn::backward_data, tensors_of>;

const Rung<ConvBackwardData> self{{.name = "onednn",
                                   .peer = true,
                                   .about = onednn::about,
                                   .present = onednn::present,
                                   .supports = Peer::supports,
                                   .run = Peer::run}};

}  // namespace
}  // namespace rung
