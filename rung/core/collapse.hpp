// SPDX-License-Identifier: Apache-2.0
// Collapsed<N>: the axes of N tensors of one shape, merged into as few as possible.
//
// Axes of extent 1 are dropped, and adjacent axes are merged if every tensor can index them as one
// axis: a contiguous tensor of any rank has one axis, a transposed matrix two. Kernels iterate over
// the merged axes by a linear index in C order. A reduction has two Collapsed objects, for its kept
// and its reduced axes; an operator along an axis has one, for the other axes (the rows).
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "rung/core/export.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

template <int N>
struct Collapsed {
  int rank = 0;  // 0: a single element
  std::int64_t count = 1;
  std::int64_t shape[max_rank] = {};
  std::int64_t strides[N][max_rank] = {};

  /// Returns the number of elements.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t size() const { return count; }

  /// Computes the offset of element `linear` (C order) of each tensor, in elements from its first.
  RUNG_HD RUNG_ALWAYS_INLINE void offsets(std::int64_t linear, std::int64_t (&at)[N]) const {
    for (int tensor = 0; tensor < N; ++tensor) at[tensor] = 0;
    // 32-bit division is several times cheaper than 64-bit division, on GPUs above all.
    if (count <= 0xffffffff) {
      auto rest = static_cast<std::uint32_t>(linear);
      for (int axis = rank - 1; axis > 0; --axis) {
        const auto extent = static_cast<std::uint32_t>(shape[axis]);
        const std::uint32_t quotient = rest / extent;
        add(axis, rest - quotient * extent, at);
        rest = quotient;
      }
      add(0, rest, at);
    } else {
      std::int64_t rest = linear;
      for (int axis = rank - 1; axis > 0; --axis) {
        add(axis, rest % shape[axis], at);
        rest /= shape[axis];
      }
      add(0, rest, at);
    }
  }

  /// Returns the offset of element `linear` in tensor I.
  template <int I = 0>
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t offset(std::int64_t linear) const {
    if (rank <= 1) return linear * strides[I][0];
    std::int64_t at[N];
    offsets(linear, at);
    return at[I];
  }

  /// Returns true if element i of tensor I is at i * stride, for every i.
  template <int I = 0>
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE bool is_contiguous(std::int64_t stride = 1) const {
    return rank == 0 || (rank == 1 && strides[I][0] == stride);
  }

 private:
  RUNG_HD RUNG_ALWAYS_INLINE void add(int axis, std::int64_t index, std::int64_t (&at)[N]) const {
    for (int tensor = 0; tensor < N; ++tensor) at[tensor] += index * strides[tensor][axis];
  }
};

/// Order of the collapsed axes. `by_stride` moves the axis with the smallest stride in the first
/// tensor last, so that more axes merge; valid only if the order of elements does not matter.
enum class AxisOrder : std::uint8_t { logical, by_stride };

/// Set of axes: bit i represents axis i.
using AxisSet = std::uint32_t;
inline constexpr AxisSet all_axes = ~AxisSet{0};

/// Returns the axes of `shape` that are in `axes`, collapsed. strides[i] holds tensor i's strides.
template <int N>
Collapsed<N> collapse(const Extents& shape, const std::array<Extents, N>& strides,
                      AxisSet axes = all_axes, AxisOrder order = AxisOrder::logical) {
  int kept[max_rank] = {};
  int count = 0;
  Collapsed<N> result;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if ((axes >> axis & 1) == 0) continue;
    result.count *= shape[axis];
    if (shape[axis] != 1) kept[count++] = axis;
  }
  if (order == AxisOrder::by_stride) {
    // Insertion sort: there are few axes, and axes of equal stride keep their order.
    const auto denser = [&](int a, int b) {
      return std::abs(strides[0][a]) < std::abs(strides[0][b]);
    };
    for (int sorted = 1; sorted < count; ++sorted) {
      for (int i = sorted; i > 0 && denser(kept[i - 1], kept[i]); --i) {
        std::swap(kept[i - 1], kept[i]);
      }
    }
  }
  for (int i = 0; i < count; ++i) {
    const int axis = kept[i];
    const int last = result.rank - 1;
    bool merges = last >= 0;
    for (int tensor = 0; merges && tensor < N; ++tensor) {
      merges = result.strides[tensor][last] ==
               strides[static_cast<std::size_t>(tensor)][axis] * shape[axis];
    }
    const int target = merges ? last : result.rank++;
    result.shape[target] = merges ? result.shape[target] * shape[axis] : shape[axis];
    for (int tensor = 0; tensor < N; ++tensor) {
      result.strides[tensor][target] = strides[static_cast<std::size_t>(tensor)][axis];
    }
  }
  return result;
}

}  // namespace rung
