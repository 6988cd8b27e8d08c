// SPDX-License-Identifier: Apache-2.0
// Copies of flat tensors (N x C x 1 x H x W, any strides) with channels last, for layers that the
// TMA unrolls: pixels are C elements apart, rounded up to 16 bytes.
//
//   const ChannelsLast x_copy(args.x);                     // memory: x_copy.bytes() bytes
//   copy_to_channels_last(args.x, memory, context);
//   layer.x = x_copy.tensor(args.x, memory);
#pragma once

#include "rung/core/integer.hpp"
#include "rung/ops/conv/shared/cuda/layer.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

/// Copies a tensor of 16-bit elements to `to`, with channels last.
void copy_to_channels_last(const ConstTensorRef& from, void* to, Context& context);
/// Copies `from`, a copy with channels last, to a tensor of 16-bit elements.
void copy_from_channels_last(const void* from, const TensorRef& to, Context& context);

inline constexpr int layout_tile = 64;  // channels, and pixels, per block of a copy

/// Shape of a copy with channels last.
class ChannelsLast {
 public:
  explicit ChannelsLast(const ConstTensorRef& tensor)
      : shape_(tensor.shape),
        element_(static_cast<std::int64_t>(size_of(tensor.dtype))),
        pitch_(round_up(tensor.shape[1], 16 / element_)) {}

  [[nodiscard]] std::int64_t pitch() const { return pitch_; }
  /// Returns the size of the copy, a multiple of 256 bytes. Throws if it exceeds 2^63.
  [[nodiscard]] std::int64_t bytes() const {
    return round_up(Extents{shape_[0], shape_[3], shape_[4], pitch_, element_}.product(),
                    std::int64_t{256});
  }
  /// Returns the copy at `memory` as a tensor.
  [[nodiscard]] TensorRef tensor(const ConstTensorRef& like, void* memory) const {
    const std::int64_t row = shape_[4] * pitch_;
    return {memory, like.dtype, shape_, Extents{shape_[3] * row, 1, shape_[3] * row, row, pitch_},
            like.device};
  }
  /// Returns the number of tiles, one per block.
  [[nodiscard]] std::int64_t tiles() const {
    return shape_[0] * ceil_div(shape_[1], std::int64_t{layout_tile}) *
           ceil_div(shape_[3] * shape_[4], std::int64_t{layout_tile});
  }
  [[nodiscard]] bool fits_a_grid() const { return tiles() <= 0x7fffffff; }

 private:
  Extents shape_;
  std::int64_t element_;
  std::int64_t pitch_;
};

/// Returns an address for memory that is not allocated yet, aligned like workspaces.
inline std::byte* placeholder_memory() {
  return reinterpret_cast<std::byte*>(std::uintptr_t{4096});  // NOLINT(performance-no-int-to-ptr)
}

/// Returns the layout of copies in a workspace, one after another.
class LayoutMemory {
 public:
  /// Returns the offset of the next `bytes` bytes.
  std::int64_t add(std::int64_t bytes) {
    const std::int64_t at = total_;
    total_ += round_up(bytes, std::int64_t{4096});
    return at;
  }
  [[nodiscard]] std::size_t total() const { return static_cast<std::size_t>(total_); }

 private:
  std::int64_t total_ = 0;
};

}  // namespace rung::conv_cuda::inline RUNG_TARGET
