// SPDX-License-Identifier: Apache-2.0
// Extents: a tensor's shape or strides; up to max_rank numbers, held by value.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "rung/core/export.hpp"

namespace rung {

inline constexpr int max_rank = 8;

namespace detail {

/// One extent of a braced list, of any integer type: std::vector::size() in a list of int64_t would
/// be a narrowing error.
struct ListedExtent {
  template <std::integral T>
  requires(!std::same_as<T, bool>) constexpr ListedExtent(T number)  // NOLINT: converts on purpose
      : value(static_cast<std::int64_t>(number)) {}
  std::int64_t value;
};

}  // namespace detail

struct RUNG_API Extents {
  int rank = 0;
  std::int64_t at[max_rank] = {};

  Extents() = default;
  /// Makes extents from integers of any types: {rows.size(), 3}. Values beyond 63 bits become
  /// negative, which every call rejects. Throws Error(invalid_argument) for more than max_rank
  /// numbers.
  Extents(std::initializer_list<detail::ListedExtent> list);
  /// Makes extents from a span; throws Error(invalid_argument) for more than max_rank numbers.
  explicit Extents(std::span<const std::int64_t> list);

  std::int64_t& operator[](int axis) { return at[axis]; }
  std::int64_t operator[](int axis) const { return at[axis]; }
  bool operator==(const Extents& other) const {
    for (int axis = 0; axis < rank; ++axis) {
      if (at[axis] != other.at[axis]) return false;
    }
    return rank == other.rank;
  }
  /// Returns false for a rank, set by hand, outside 0 to max_rank.
  [[nodiscard]] bool has_valid_rank() const { return rank >= 0 && rank <= max_rank; }
  /// Returns the product; throws Error if it exceeds 63 bits or an extent is negative.
  [[nodiscard]] std::int64_t product() const;
  /// Returns the strides of a C-contiguous tensor of this shape.
  [[nodiscard]] Extents contiguous_strides() const;
};
/// Formats extents as "2x3x4", the spelling of problems.
RUNG_API std::string to_string(const Extents& extents);
/// Formats "1 axis", "2 axes" for messages.
RUNG_API std::string axis_count(int rank);

}  // namespace rung
