// SPDX-License-Identifier: Apache-2.0
// The peer oneDNN of conv and its two gradients: oneDNN's convolution primitive, on images in the
// caller's layout and on filters in the layout that oneDNN prefers. Each call reorders filters to
// or from that layout.
//
// Limits   f32 and bf16; no strides of 0. oneDNN is faster on images in its own blocked layouts,
//          but callers' tensors do not have these; reordering images is not tried here.
#pragma once

#include "rung/core/operator.hpp"
#include "rung/ops/conv/shared/window.hpp"
#include "rung/peers/onednn.hpp"
#include "rung/peers/thread_count.hpp"

namespace rung::conv_onednn {

/// Returns a tensor of five axes with the caller's axes, channels first; filters get a leading axis
/// of groups.
inline ConstTensorRef layer_tensor(const ConstTensorRef& tensor, int axes,
                                   std::int64_t groups = 1) {
  ConstTensorRef made = tensor;
  made.shape = {};
  made.strides = {};
  const auto add = [&](std::int64_t extent, std::int64_t stride) {
    made.shape.at[made.shape.rank++] = extent;
    // The stride of an axis of one element is unused, but oneDNN rejects zero.
    made.strides.at[made.strides.rank++] = stride == 0 ? 1 : stride;
  };
  if (groups > 1) add(groups, tensor.shape[0] / groups * tensor.strides[0]);
  add(tensor.shape[0] / groups, tensor.strides[0]);
  add(tensor.shape[1], tensor.strides[1]);
  for (int axis = 7 - axes; axis < 5; ++axis) add(tensor.shape[axis], tensor.strides[axis]);
  return made;
}

inline onednn::Window window_of(const ConvGeometry& geometry, int axes) {
  onednn::Window window;
  for (int i = 0; i < axes - 2; ++i) {
    const ConvAxis& axis = geometry.axis[5 - axes + i];
    window.strides[i] = axis.stride;
    window.dilation[i] = axis.dilation - 1;
    window.front[i] = axis.padding;
    // oneDNN computes the extent from the reach of the last tap, not from the padding given.
    window.behind[i] = (axis.out - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1 -
                       axis.in - axis.padding;
  }
  return window;
}

/// Roles of conv's x, w and y, or of their gradients, in the primitive.
struct Pass {
  onednn::Role x, w, y;
  bool backward;
};
constexpr Pass forward{onednn::source, onednn::weights, onednn::destination, false};
constexpr Pass backward_data{onednn::gradient_source, onednn::weights, onednn::gradient_destination,
                             true};
constexpr Pass backward_filter{onednn::source, onednn::gradient_weights,
                               onednn::gradient_destination, true};

/// Tensors of a layer; the pass writes one of them.
struct Tensors {
  ConstTensorRef x, w, y;
};

/// Functions of a peer's rung, for an operator whose tensors `tensors_of` returns.
template <class Op, Pass pass, Tensors (*tensors_of)(const typename Op::Args&)>
struct Peer {
  using Args = typename Op::Args;

  static Support supports(const Args& args, const Context& context) {
    const Tensors t = tensors_of(args);
    if (t.x.empty() || t.w.empty() || t.y.empty()) return unsupported("nothing to do");
    if (t.x.dtype != DType::f32 && t.x.dtype != DType::bf16) return unsupported("f32 and bf16");
    for (const ConstTensorRef* tensor : {&t.x, &t.w, &t.y}) {
      if (onednn::has_broadcast_axis(*tensor)) return unsupported("no strides of 0");
    }
    return prepare(args, context.threads())
               ? supported
               : unsupported("oneDNN has no such primitive for this processor, type and layout");
  }

  static void run(const Args& args, Context& context) {
    const peer::ThreadCount threads(context.threads());
    prepare(args, context.threads());
    const Tensors t = tensors_of(args);
    cached().run({t.x.data, t.w.data, t.y.data});
  }

 private:
  /// Returns the thread's primitive, which repeated calls reuse.
  static onednn::Primitive& cached() {
    thread_local onednn::Primitive primitive;
    return primitive;
  }

  static bool prepare(const Args& args, int threads) {
    onednn::Algorithm algorithm = onednn::Algorithm::direct;
    if constexpr (requires { args.options.winograd; }) {
      if (args.options.winograd) algorithm = onednn::Algorithm::direct_or_winograd;
    }
    const Tensors t = tensors_of(args);
    return cached().prepare({.kind = onednn::Kind::convolution,
                             .algorithm = algorithm,
                             .backward = pass.backward,
                             .window = window_of(args.geometry, args.axes)},
                            {{pass.x, layer_tensor(t.x, args.axes)},
                             {.role = pass.w,
                              .tensor = layer_tensor(t.w, args.axes, args.geometry.groups),
                              .any = true},
                             {pass.y, layer_tensor(t.y, args.axes)}},
                            threads);
  }
};

}  // namespace rung::conv_onednn
