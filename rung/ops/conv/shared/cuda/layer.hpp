// SPDX-License-Identifier: Apache-2.0
// Shared by conv's CUDA rungs: kernel arguments, positions of elements, and the epilogue of one
// element.
#pragma once

#include <cmath>
#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/device/activate.hpp"
#include "rung/device/load.hpp"
#include "rung/device/take_axis.hpp"
#include "rung/ops/conv/op/conv.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

// --- in kernels ----------------------------------------------------------------------------------

/// Epilogue of an element: bias and activation.
template <class T>
struct Epilogue {
  View<const T, 1> bias;  // null data: no bias
  Activation activation;

  [[nodiscard]] __device__ __forceinline__ Accumulator<T> bias_of(std::int64_t filter) const {
    return bias.data != nullptr ? convert<Accumulator<T>>(bias(filter)) : Accumulator<T>(0);
  }
  [[nodiscard]] __device__ __forceinline__ T operator()(Accumulator<T> sum,
                                                        std::int64_t filter) const {
    return convert<T>(activate<T>(activation, sum + bias_of(filter)));
  }
};

/// Kernel arguments of a layer.
template <class T>
struct Layer {
  using Sum = Accumulator<T>;
  View<const T, 5> x;
  View<const T, 5> w;
  View<T, 5> y;
  ConvGeometry geometry;
  Epilogue<T> epilogue;
};

/// Position of an element: image, channel, depth, row, column.
struct ElementPosition {
  std::int64_t n, c, d, h, w;
};

/// Splits an axis off an index like take_axis(); the extent may be 2^31 or more.
__device__ __forceinline__ std::int64_t take_channel(std::int64_t& index, std::int64_t channels) {
  if (channels <= 0x7fffffff) return take_axis(index, channels);
  const std::int64_t quotient = index / channels;
  const std::int64_t rest = index - quotient * channels;
  index = quotient;
  return rest;
}

/// Returns the position of element `index` of a tensor. Elements are numbered with channels
/// innermost if these are innermost in memory, else in the order of the axes.
template <class T>
__device__ __forceinline__ ElementPosition position_of(const View<T, 5>& tensor, std::int64_t index,
                                                       bool channels_innermost) {
  ElementPosition at{};
  if (channels_innermost) at.c = take_channel(index, tensor.shape[1]);
  at.w = take_axis(index, tensor.shape[4]);
  at.h = take_axis(index, tensor.shape[3]);
  at.d = take_axis(index, tensor.shape[2]);
  if (!channels_innermost) at.c = take_channel(index, tensor.shape[1]);
  at.n = index;
  return at;
}

// --- on the host ---------------------------------------------------------------------------------

template <class T>
Epilogue<T> epilogue_of(const Conv::Args& args) {
  Epilogue<T> epilogue{.bias = {}, .activation = args.options.activation};
  if (args.has_bias()) epilogue.bias = args.options.bias.view<const T, 1>();
  return epilogue;
}

template <class T>
Layer<T> layer_of(const Conv::Args& args) {
  return {.x = args.x.view<const T, 5>(),
          .w = args.w.view<const T, 5>(),
          .y = args.y.view<T, 5>(),
          .geometry = args.geometry,
          .epilogue = epilogue_of<T>(args)};
}

/// Returns whether images have one or two dimensions.
inline bool is_flat(const ConvGeometry& g) {
  return g.axis[0].in == 1 && g.axis[0].kernel == 1 && g.axis[0].out == 1;
}

/// Returns whether a tensor is C-contiguous in the order N C D H W, ignoring axes of extent 1.
inline bool is_contiguous(const ConstTensorRef& tensor) {
  std::int64_t expected = 1;
  for (int axis = tensor.rank() - 1; axis >= 0; --axis) {
    if (tensor.shape[axis] == 1) continue;
    if (tensor.strides[axis] != expected) return false;
    expected *= tensor.shape[axis];
  }
  return true;
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
