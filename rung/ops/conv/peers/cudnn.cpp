// SPDX-License-Identifier: Apache-2.0
// conv / cudnn: the peer cuDNN, its convolution of images as they lie, loaded while running.
//
// Limits   f32, f64, f16, bf16; no bias, no activation; contiguous filters; extents and strides of
//          32 bits.
#include "rung/ops/conv/conv.hpp"
#include "rung/ops/conv/peers/cudnn_layer.hpp"

namespace rung {
namespace {

using Layer = conv_cudnn::Layer<cudnn::Pass::forward>;

cudnn::ConvolutionShape shape_of(const Conv::Args& args) {
  return conv_cudnn::shape_of(args.geometry, args.axes, args.options, args.x, args.w, args.y);
}

Support supports(const Conv::Args& args, const Context& context) {
  if (args.has_bias() || args.options.activation != Activation::none) {
    return unsupported("no bias, no activation");
  }
  return Layer::takes(shape_of(args), args.x, args.w, args.y, context);
}

void run(const Conv::Args& args, Context& context) {
  Layer::of_thread().run(shape_of(args), args.x, args.w, args.y, context);
}

const Rung<Conv> self{{.name = "cudnn",
                       .backend = Backend::cuda,
                       .peer = true,
                       .about = cudnn::about,
                       .present = cudnn::present,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
