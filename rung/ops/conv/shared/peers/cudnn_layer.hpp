// SPDX-License-Identifier: Apache-2.0
// The peer cuDNN of conv and its two gradients: cuDNN's convolution, on images in the caller's
// layout.
//
// Limits   f32, f64, f16, bf16; contiguous filters; extents and strides of 32 bits. Sums by the
//          definition: Winograd and FFT only with the option `winograd`.
#pragma once

#include <algorithm>

#include "rung/ops/conv/op/conv.hpp"
#include "rung/peers/cudnn_convolution.hpp"

namespace rung::conv_cudnn {

/// Returns the shape that cuDNN gets. The three tensors have five axes, as in Conv::Args; the
/// caller's had `axes`. cuDNN requires at least two image axes: a missing one has extent 1.
template <class Options>
cudnn::ConvolutionShape shape_of(const ConvGeometry& geometry, int axes, const Options& options,
                                 const ConstTensorRef& x, const ConstTensorRef& w,
                                 const ConstTensorRef& y) {
  const int of_image = std::max(axes - 2, 2);
  const auto without = [&](const Extents& five) {
    Extents fewer{five[0], five[1]};
    for (int axis = 5 - of_image; axis < 5; ++axis) fewer[fewer.rank++] = five[axis];
    return fewer;
  };
  const auto strides_of = [&](const ConstTensorRef& tensor) {
    Extents strides = without(tensor.strides);
    if (axes == 3) strides[2] = tensor.shape[4] * tensor.strides[4];
    return strides;
  };
  cudnn::ConvolutionShape shape;
  shape.dtype = x.dtype;
  shape.x = without(x.shape);
  shape.x_strides = strides_of(x);
  shape.y = without(y.shape);
  shape.y_strides = strides_of(y);
  shape.filter = without(w.shape);
  shape.channels_last = options.channels_last;
  shape.groups = options.groups;
  for (int axis = 3 - of_image; axis < 3; ++axis) {
    const ConvAxis& one = geometry.axis[axis];
    shape.padding[shape.padding.rank++] = one.padding;
    shape.stride[shape.stride.rank++] = one.stride;
    shape.dilation[shape.dilation.rank++] = one.dilation;
  }
  return shape;
}

/// Returns whether filters are contiguous in the caller's order of axes.
inline bool is_dense(const ConstTensorRef& w, bool channels_last) {
  if (!channels_last) return cudnn::is_dense(w);
  const Extents order{0, 2, 3, 4, 1};
  Extents shape;
  Extents strides;
  shape.rank = strides.rank = 5;
  for (int axis = 0; axis < 5; ++axis) {
    shape[axis] = w.shape[static_cast<int>(order[axis])];
    strides[axis] = w.strides[static_cast<int>(order[axis])];
  }
  return cudnn::is_dense({w.data, w.dtype, shape, strides, w.device});
}

/// A cuDNN pass with cached descriptors of the last layer; one per thread.
template <cudnn::Pass pass>
class Layer {
 public:
  static Layer& of_thread() {
    thread_local Layer own;
    return own;
  }

  static Support takes(const cudnn::ConvolutionShape& shape, const ConstTensorRef& x,
                       const ConstTensorRef& w, const ConstTensorRef& y, const Context& context) {
    if (x.empty() || w.empty() || y.empty()) return unsupported("nothing to do");
    if (cudnn::type_of(shape.dtype) < 0) return unsupported("f32, f64, f16, bf16");
    if (!is_dense(w, shape.channels_last)) return unsupported("contiguous filters");
    // Two defects of cuDNN 9.19: an algorithm that its heuristics return fails with
    // CUDNN_STATUS_BAD_PARAM, and filter gradients are accumulated in f16.
    if (shape.dtype == DType::f16 && shape.channels_last && shape.groups > 1 &&
        shape.filter[1] == 1) {
      return unsupported("no depthwise layers of f16 with channels last");
    }
    if (!cudnn::Layout::fits({x.data, x.dtype, shape.x, shape.x_strides, x.device}) ||
        !cudnn::Layout::fits({x.data, x.dtype, shape.y, shape.y_strides, x.device})) {
      return unsupported("extents and strides of 1 to 2^31 - 1");
    }
    try {
      of_thread().prepare(shape, context);
    } catch (const Error&) {
      return unsupported("cuDNN has no algorithm for this type and layout");
    }
    return supported;
  }

  void prepare(const cudnn::ConvolutionShape& shape, const Context& context) {
    session_.open(context);
    convolution_.prepare(session_, shape, pass);
  }

  /// Runs the pass, which writes one of the three tensors.
  void run(const cudnn::ConvolutionShape& shape, const ConstTensorRef& x, const ConstTensorRef& w,
           const ConstTensorRef& y, Context& context) {
    prepare(shape, context);
    convolution_.run(session_, x.data, w.data, y.data, context.workspace(convolution_.workspace()));
  }

 private:
  cudnn::Session session_;
  cudnn::Convolution convolution_;
};

/// Tensors of a layer; the pass writes one of them.
struct Tensors {
  ConstTensorRef x, w, y;
};

/// Functions of a peer's rung, for an operator whose tensors `tensors_of` returns.
template <class Op, cudnn::Pass pass, Tensors (*tensors_of)(const typename Op::Args&)>
struct Peer {
  using Args = typename Op::Args;

  static Support supports(const Args& args, const Context& context) {
    const Tensors t = tensors_of(args);
    return Layer<pass>::takes(shape_of(args, t), t.x, t.w, t.y, context);
  }
  static void run(const Args& args, Context& context) {
    const Tensors t = tensors_of(args);
    Layer<pass>::of_thread().run(shape_of(args, t), t.x, t.w, t.y, context);
  }

 private:
  static cudnn::ConvolutionShape shape_of(const Args& args, const Tensors& t) {
    cudnn::ConvolutionShape shape =
        conv_cudnn::shape_of(args.geometry, args.axes, args.options, t.x, t.w, t.y);
    if constexpr (requires { args.options.winograd; }) shape.transforms = args.options.winograd;
    return shape;
  }
};

}  // namespace rung::conv_cudnn
