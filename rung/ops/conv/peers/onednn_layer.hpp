// SPDX-License-Identifier: Apache-2.0
// A layer as oneDNN is told of it, for conv's peer and those of its gradients.
#pragma once

#include "rung/ops/conv/window.hpp"
#include "rung/peers/onednn.hpp"

namespace rung::conv_onednn {

/// A tensor of five axes with those that its caller gave it, channels first, and of filters the
/// groups in front.
inline ConstTensorRef layer_tensor(const ConstTensorRef& tensor, int axes,
                                   std::int64_t groups = 1) {
  ConstTensorRef made = tensor;
  made.shape = {};
  made.strides = {};
  const auto add = [&](std::int64_t extent, std::int64_t stride) {
    made.shape.at[made.shape.rank++] = extent;
    // A stride of an axis of one element means nothing, and oneDNN takes no zeros.
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
    // What oneDNN computes the extent from is what the last tap reaches, not the padding given.
    window.behind[i] = (axis.out - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1 -
                       axis.in - axis.padding;
  }
  return window;
}

constexpr auto no_primitive = "oneDNN has no such primitive for this processor, type and layout";

}  // namespace rung::conv_onednn
