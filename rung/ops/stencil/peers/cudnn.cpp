// SPDX-License-Identifier: Apache-2.0
// stencil / cudnn: the peer cuDNN, its convolution with one input and one output channel, loaded at
// run time.
//
// Limits   f32; masks of odd extents, anchored in the middle, contiguous; zero edges; no scale;
//          extents and strides of 32 bits.
#include <algorithm>

#include "rung/ops/stencil/op/steps.hpp"
#include "rung/peers/cudnn_convolution.hpp"

namespace rung {
namespace {

/// Returns the arrays as N x 1 x ... rows x columns. cuDNN requires two spatial axes: a line is an
/// image of one row.
cudnn::ConvolutionShape shape_of(const Stencil::Args& args) {
  const int axes = std::max(args.axes, 2);
  cudnn::ConvolutionShape shape;
  shape.dtype = args.x.dtype;
  shape.x = {args.arrays(), 1};
  shape.filter = {1, 1};
  for (int axis = 3 - axes; axis < 3; ++axis) {
    const Stencil::Axis& one = args.axis[axis];
    shape.x[shape.x.rank++] = one.extent;
    shape.filter[shape.filter.rank++] = one.taps;
    shape.padding[shape.padding.rank++] = one.origin;
    shape.stride[shape.stride.rank++] = 1;
  }
  shape.dilation = shape.stride;
  shape.y = shape.x;
  shape.x_strides = shape.y_strides = shape.x.contiguous_strides();
  return shape;
}

Support supports(const Stencil::Args& args, const Context&) {
  if (args.y.empty()) return unsupported("nothing to do");
  if (args.weights != Stencil::Weights::mask) return unsupported("full masks only");
  if (args.x.dtype != DType::f32 || args.y.dtype != DType::f32) return unsupported("f32 only");
  if (args.edge != StencilEdge::zero) return unsupported("zero edges only");
  if (args.scale != 1) return unsupported("no scale");
  for (const Stencil::Axis& axis : args.axis) {
    if (axis.taps % 2 == 0 || axis.origin != axis.taps / 2) {
      return unsupported("masks of odd extents, anchored in the middle");
    }
  }
  if (!cudnn::is_dense(args.x) || !cudnn::is_dense(args.y) || !cudnn::is_dense(args.mask)) {
    return unsupported("contiguous x, y and mask only");
  }
  const cudnn::ConvolutionShape shape = shape_of(args);
  if (!cudnn::Layout::fits({args.x.data, shape.dtype, shape.x, shape.x_strides, args.x.device})) {
    return unsupported("extents and strides of 1 to 2^31 - 1");
  }
  return supported;
}

void run(const Stencil::Args& args, Context& context) {
  thread_local cudnn::Session session;
  thread_local cudnn::Convolution convolution;
  session.open(context);
  convolution.prepare(session, shape_of(args));
  stencil_detail::for_each_step(
      args, context, convolution.workspace(), [&](const Stencil::Args& step, void* scratch) {
        convolution.run(session, step.x.data, step.mask.data, step.y.data, scratch);
      });
}

const Rung<Stencil> self{{.name = "cudnn",
                          .backend = Backend::cuda,
                          .peer = true,
                          .about = cudnn::about,
                          .present = cudnn::present,
                          .supports = supports,
                          .run = run}};

}  // namespace
}  // namespace rung
