// SPDX-License-Identifier: Apache-2.0
// Copies of flat tensors (N x C x 1 x H x W, any strides) with channels last, for layers that the
// TMA unrolls: pixels are C elements apart, rounded up to 16 bytes.
//
//   const ChannelsLastCopies<2> copies({args.x, args.w});
//   auto* const memory = static_cast<std::byte*>(context.workspace(copies.bytes()));
//   copies.load(0, memory, context);
//   layer.x = copies.at(0, memory);
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/core/work.hpp"
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

  /// Returns whether a grid has enough blocks for the tiles; false if their number would overflow.
  [[nodiscard]] bool fits_a_grid() const {
    const double pixels = static_cast<double>(shape_[3]) * static_cast<double>(shape_[4]);
    const auto down = static_cast<double>(ceil_div(shape_[1], std::int64_t{layout_tile}));
    return static_cast<double>(shape_[0]) * down * (pixels / layout_tile + 1) < 0x1p31;
  }
  /// Returns the number of tiles, one per block.
  [[nodiscard]] std::int64_t tiles() const {
    return shape_[0] * ceil_div(shape_[1], std::int64_t{layout_tile}) *
           ceil_div(shape_[3] * shape_[4], std::int64_t{layout_tile});
  }
  [[nodiscard]] std::int64_t pitch() const { return pitch_; }
  /// Returns the size of the copy, a multiple of 4096 bytes.
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(
        round_up(shape_[0] * shape_[3] * shape_[4] * pitch_ * element_, std::int64_t{4096}));
  }
  /// Returns the strides of the copy, in elements.
  [[nodiscard]] Extents strides() const {
    const std::int64_t row = shape_[4] * pitch_;
    return {shape_[3] * row, 1, shape_[3] * row, row, pitch_};
  }

 private:
  Extents shape_;
  std::int64_t element_;
  std::int64_t pitch_;
};

/// Copies of N tensors in a workspace, one after another.
template <std::size_t N>
class ChannelsLastCopies {
 public:
  explicit ChannelsLastCopies(const std::array<ConstTensorRef, N>& tensors) : tensors_(tensors) {}

  /// Returns whether every copy fits a grid, which the functions below require.
  [[nodiscard]] bool fit_grids() const {
    return std::ranges::all_of(
        tensors_, [](const ConstTensorRef& tensor) { return ChannelsLast(tensor).fits_a_grid(); });
  }
  [[nodiscard]] std::size_t bytes() const { return offset(N); }
  /// Returns copy `index` of those that begin at `memory`.
  [[nodiscard]] TensorRef at(std::size_t index, std::byte* memory) const {
    const ConstTensorRef& tensor = tensors_[index];
    return {memory + offset(index), tensor.dtype, tensor.shape, ChannelsLast(tensor).strides(),
            tensor.device};
  }
  /// Copies tensor `index` to its place behind `memory`.
  void load(std::size_t index, std::byte* memory, Context& context) const {
    copy_to_channels_last(tensors_[index], at(index, memory).data, context);
  }
  /// Returns the work of a rung that runs on the copies, with their traffic and launches added.
  [[nodiscard]] Work with_copies(Work work) const {
    std::int64_t moved = 0;
    for (const ConstTensorRef& tensor : tensors_) {
      moved += tensor.size() * static_cast<std::int64_t>(size_of(tensor.dtype));
    }
    work.bytes = work.bytes + 2.0 * static_cast<double>(moved);
    work.launches = work.launches + static_cast<double>(N);
    return work;
  }

 private:
  [[nodiscard]] std::size_t offset(std::size_t index) const {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < index; ++i) bytes += ChannelsLast(tensors_[i]).bytes();
    return bytes;
  }

  std::array<ConstTensorRef, N> tensors_;
};

/// Returns an address for memory that is not allocated yet, aligned like workspaces.
inline std::byte* unallocated_memory() {
  return reinterpret_cast<std::byte*>(std::uintptr_t{4096});  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
