// SPDX-License-Identifier: Apache-2.0
// conv / cudnn: the peer cuDNN, its convolution of images as they lie, loaded while running.
//
// Limits   f32, f64, f16, bf16; no bias, no activation; contiguous filters; extents and strides of
//          32 bits.
#include <algorithm>

#include "rung/ops/conv/conv.hpp"
#include "rung/peers/cudnn_convolution.hpp"

namespace rung {
namespace {

/// Args have three axes of an image, of which those that it lacks have one pixel: cuDNN wants two
/// at least.
cudnn::ConvolutionShape shape_of(const Conv::Args& args) {
  const int axes = std::max(args.axes - 2, 2);
  const auto without = [&](const Extents& five) {
    Extents fewer{five[0], five[1]};
    for (int axis = 5 - axes; axis < 5; ++axis) fewer[fewer.rank++] = five[axis];
    return fewer;
  };
  cudnn::ConvolutionShape shape;
  shape.dtype = args.x.dtype;
  shape.x = without(args.x.shape);
  shape.x_strides = without(args.x.strides);
  shape.y = without(args.y.shape);
  shape.y_strides = without(args.y.strides);
  shape.filter = without(args.w.shape);
  shape.channels_last = args.options.channels_last;
  shape.groups = args.options.groups;
  for (int axis = 3 - axes; axis < 3; ++axis) {
    const ConvAxis& one = args.geometry.axis[axis];
    shape.padding[shape.padding.rank++] = one.padding;
    shape.stride[shape.stride.rank++] = one.stride;
    shape.dilation[shape.dilation.rank++] = one.dilation;
  }
  return shape;
}

/// The filters in the order in which the caller gave them.
ConstTensorRef filters_as_given(const Conv::Args& args) {
  const ConstTensorRef& w = args.w;
  if (!args.options.channels_last) return w;
  const Extents order{0, 2, 3, 4, 1};
  Extents shape;
  Extents strides;
  shape.rank = strides.rank = 5;
  for (int axis = 0; axis < 5; ++axis) {
    shape[axis] = w.shape[static_cast<int>(order[axis])];
    strides[axis] = w.strides[static_cast<int>(order[axis])];
  }
  return {w.data, w.dtype, shape, strides, w.device};
}

struct State {
  cudnn::Session session;
  cudnn::Convolution convolution;

  void prepare(const Conv::Args& args, const Context& context) {
    session.open(context);
    convolution.prepare(session, shape_of(args));
  }
};
State& state() {
  thread_local State own;
  return own;
}

Support supports(const Conv::Args& args, const Context& context) {
  if (args.y.empty() || args.w.empty()) return unsupported("nothing to do");
  if (args.has_bias() || args.options.activation != Activation::none) {
    return unsupported("no bias, no activation");
  }
  if (cudnn::type_of(args.x.dtype) < 0) return unsupported("f32, f64, f16, bf16");
  if (!cudnn::is_dense(filters_as_given(args))) return unsupported("contiguous filters");
  if (!cudnn::Layout::fits(args.x) || !cudnn::Layout::fits(args.y)) {
    return unsupported("extents and strides of 1 to 2^31 - 1");
  }
  try {
    state().prepare(args, context);
  } catch (const Error&) {
    return unsupported("cuDNN has no algorithm for this type and layout");
  }
  return supported;
}

void run(const Conv::Args& args, Context& context) {
  state().prepare(args, context);
  const cudnn::Convolution& convolution = state().convolution;
  convolution.run(state().session, args.x.data, args.w.data, args.y.data,
                  context.workspace(convolution.workspace()));
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
