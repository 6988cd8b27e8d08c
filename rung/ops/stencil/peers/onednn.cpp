// SPDX-License-Identifier: Apache-2.0
// stencil / onednn: the peer oneDNN, its convolution primitive with one input and one output
// channel.
//
// Kernels  With one channel oneDNN uses im2col and a matrix multiplication.
// Limits   f32; masks, contiguous; zero edges; no scale; x and y contiguous.
#include "rung/ops/stencil/op/steps.hpp"
#include "rung/peers/onednn.hpp"
#include "rung/peers/thread_count.hpp"

namespace rung {
namespace {

/// Returns a tensor with `axes` spatial axes after two leading axes: arrays (of a mask: output
/// channels) and input channels. With one channel, channels-first and channels-last are the same
/// memory. oneDNN 2.6.3 is faster with channels-last in two axes (4096x4096,mask=5x5: 78 ms, else
/// 3.7 s), with channels-first in three.
ConstTensorRef as_batch(const ConstTensorRef& tensor, std::int64_t arrays, int axes,
                        const Stencil::Axis* axis, bool is_mask) {
  Extents shape;
  shape.rank = axes + 2;
  shape[0] = is_mask ? 1 : arrays;
  shape[1] = 1;
  for (int i = 0; i < axes; ++i) {
    const Stencil::Axis& one = axis[3 - axes + i];
    shape[2 + i] = is_mask ? one.taps : one.extent;
  }
  Extents strides = shape.contiguous_strides();
  if (axes < 3 && !is_mask) strides[1] = 1;
  return {tensor.data, tensor.dtype, shape, strides, tensor.device};
}

/// Returns the thread's primitive: a repeated call reuses it.
onednn::Primitive& cached() {
  thread_local onednn::Primitive primitive;
  return primitive;
}

bool prepare(const Stencil::Args& args, int threads) {
  onednn::Operation operation{.kind = onednn::Kind::convolution,
                              .algorithm = onednn::Algorithm::direct};
  for (int i = 0; i < args.axes; ++i) {
    const Stencil::Axis& axis = args.axis[3 - args.axes + i];
    operation.window.strides[i] = 1;
    operation.window.front[i] = axis.origin;
    operation.window.behind[i] = axis.taps - 1 - axis.origin;
  }
  const auto tensor = [&](const ConstTensorRef& one, bool is_mask) {
    return as_batch(one, args.arrays(), args.axes, args.axis, is_mask);
  };
  return cached().prepare(operation,
                          {{onednn::source, tensor(args.x, false)},
                           {onednn::weights, tensor(args.mask, true)},
                           {onednn::destination, tensor(args.y, false)}},
                          threads);
}

Support supports(const Stencil::Args& args, const Context& context) {
  if (args.y.empty()) return unsupported("nothing to do");
  if (args.weights != Stencil::Weights::mask) return unsupported("full masks only");
  if (args.x.dtype != DType::f32 || args.y.dtype != DType::f32) return unsupported("f32 only");
  if (args.edge != StencilEdge::zero) return unsupported("zero edges only");
  if (args.scale != 1) return unsupported("no scale");
  const auto dense = [](const ConstTensorRef& tensor) {
    const Extents strides = tensor.shape.contiguous_strides();
    for (int axis = 0; axis < tensor.rank(); ++axis) {
      if (tensor.shape[axis] > 1 && tensor.strides[axis] != strides[axis]) return false;
    }
    return true;
  };
  if (!dense(args.x) || !dense(args.y) || !dense(args.mask)) {
    return unsupported("contiguous x, y and mask only");
  }
  return prepare(args, context.threads())
             ? supported
             : unsupported("oneDNN has no such primitive for this processor and shape");
}

void run(const Stencil::Args& args, Context& context) {
  const peer::ThreadCount threads(context.threads());
  prepare(args, context.threads());
  stencil_detail::for_each_step(args, context, 0, [&](const Stencil::Args& step, void*) {
    cached().run({step.x.data, step.mask.data, step.y.data});
  });
}

const Rung<Stencil> self{{.name = "onednn",
                          .peer = true,
                          .about = onednn::about,
                          .present = onednn::present,
                          .supports = supports,
                          .run = run}};

}  // namespace
}  // namespace rung
