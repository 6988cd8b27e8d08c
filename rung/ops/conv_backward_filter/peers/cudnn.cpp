// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / cudnn: the peer cuDNN, its gradient of filters, loaded while running.
//
// Limits   f32, f64, f16, bf16; contiguous filters; extents and strides of 32 bits.
#include "rung/ops/conv/peers/cudnn_layer.hpp"
#include "rung/ops/conv_backward_filter/conv_backward_filter.hpp"

namespace rung {
namespace {

using Layer = conv_cudnn::Layer<cudnn::Pass::backward_filter>;

cudnn::ConvolutionShape shape_of(const ConvBackwardFilter::Args& args) {
  return conv_cudnn::shape_of(args.geometry, args.axes, args.options, args.x, args.dw, args.dy);
}

Support supports(const ConvBackwardFilter::Args& args, const Context& context) {
  return Layer::takes(shape_of(args), args.x, args.dw, args.dy, context);
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  Layer::of_thread().run(shape_of(args), args.x, args.dw, args.dy, context);
}

const Rung<ConvBackwardFilter> self{{.name = "cudnn",
                                     .backend = Backend::cuda,
                                     .peer = true,
                                     .about = cudnn::about,
                                     .present = cudnn::present,
                                     .supports = supports,
                                     .run = run}};

}  // namespace
}  // namespace rung
