// SPDX-License-Identifier: Apache-2.0
// A layer as tiled rungs see it, on hosts and devices. conv and conv_backward_data have the same
// form: each element written is a sum, over channels and taps, of weights times elements gathered
// from an image.
//
//   y[n, m, place] = epilogue(sum over q, t of w[m, q, t] x[n, q, source(place, t)])
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/core/activation.hpp"
#include "rung/core/dtype.hpp"
#include "rung/core/export.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/conv/shared/window.hpp"

namespace rung::conv_layer {

/// Geometry along one axis: tap t of position o reads image element
/// (o step + start + t between) / divisor, if that is an integer within the image.
struct SourceAxis {
  std::int64_t places = 1;  // of the tensor written
  std::int64_t extent = 1;  // of the image
  std::int64_t kernel = 1;
  std::int64_t step = 1;
  std::int64_t start = 0;
  std::int64_t between = 1;
  std::int64_t divisor = 1;

  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t source(std::int64_t o,
                                                               std::int64_t t) const {
    const std::int64_t at = o * step + start + t * between;
    if (divisor == 1) return at >= 0 && at < extent ? at : -1;
    if (at < 0 || at % divisor != 0) return -1;
    return at / divisor < extent ? at / divisor : -1;
  }
};

inline SourceAxis forward_axis(const ConvAxis& axis) {
  return {.places = axis.out,
          .extent = axis.in,
          .kernel = axis.kernel,
          .step = axis.stride,
          .start = -axis.padding,
          .between = axis.dilation,
          .divisor = 1};
}
inline SourceAxis backward_axis(const ConvAxis& axis) {
  return {.places = axis.in,
          .extent = axis.out,
          .kernel = axis.kernel,
          .step = 1,
          .start = axis.padding,
          .between = -axis.dilation,
          .divisor = axis.stride};
}

struct Gathered {
  DType dtype = DType::f32;
  const void* x = nullptr;
  const void* w = nullptr;
  void* y = nullptr;
  std::int64_t x_strides[5] = {};  // n, channel, depth, height, width
  std::int64_t w_strides[5] = {};  // m, q, taps
  std::int64_t y_strides[5] = {};
  std::int64_t images = 1;
  std::int64_t groups = 1;
  std::int64_t m = 1;        // channels written per group
  std::int64_t q = 1;        // channels read per group
  std::int64_t w_group = 0;  // elements from the weights of one group to those of the next
  SourceAxis axis[3];
  const void* bias = nullptr;
  std::int64_t bias_stride = 0;
  Activation activation = Activation::none;

  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t taps() const {
    return axis[0].kernel * axis[1].kernel * axis[2].kernel;
  }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t terms() const { return q * taps(); }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t places() const {
    return axis[0].places * axis[1].places * axis[2].places;
  }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t pixels() const { return images * places(); }
};

/// Returns the bytes of an array. Throws if packing would exceed the address space, which broadcast
/// weights may do; a thousandth of the address space is left for other memory.
template <class T>
std::size_t bytes_of(const Extents& shape) {
  const Extents all{shape.product(), static_cast<std::int64_t>(sizeof(T)), 1024};
  return static_cast<std::size_t>(all.product() / 1024);
}

template <class Ref>
void set_strides(std::int64_t (&to)[5], const Ref& tensor) {
  for (int axis = 0; axis < 5; ++axis) to[axis] = tensor.strides[axis];
}

}  // namespace rung::conv_layer
