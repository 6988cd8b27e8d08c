// SPDX-License-Identifier: Apache-2.0
// Shared by the depthwise_walks rungs of conv and conv_backward_filter, whose threads walk down
// adjacent columns of a channel or of a 4-byte word of channels: the columns per thread, and
// whether channels form words.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/core/dtype.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/device/device.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

constexpr int walk_threads = 128;
constexpr int max_walk_words = 32;  // channel words per block

/// Returns the columns per thread, as many as registers hold next to the taps of `lanes` channels.
RUNG_HD constexpr int walk_columns(int kernel, int lanes) { return kernel * lanes > 10 ? 2 : 4; }

/// Returns the channels per 4-byte word, or 0 if channels do not form aligned words in both
/// tensors.
inline std::int64_t lanes_of_words(const ConstTensorRef& x, const ConstTensorRef& y) {
  const auto lanes = static_cast<std::int64_t>(4 / size_of(x.dtype));
  const auto aligned = [&](const ConstTensorRef& tensor) {
    bool whole = tensor.strides[1] == 1 && reinterpret_cast<std::uintptr_t>(tensor.data) % 4 == 0;
    for (const int axis : {0, 3, 4}) {
      whole = whole && (tensor.shape[axis] == 1 || tensor.strides[axis] % lanes == 0);
    }
    return whole;
  };
  const std::int64_t channels = x.shape[1];
  return channels > 1 && channels % lanes == 0 && aligned(x) && aligned(y) ? lanes : 0;
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
