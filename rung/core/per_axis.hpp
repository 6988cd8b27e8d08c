// SPDX-License-Identifier: Apache-2.0
// PerAxis: one number per axis of an image, such as strides, paddings and windows.
#pragma once

#include <initializer_list>
#include <string_view>

#include "rung/core/export.hpp"

namespace rung {

struct RUNG_API PerAxis {
  static constexpr int most = 3;
  int count = 0;
  int at[most] = {};

  constexpr PerAxis() = default;
  /// Makes one number that holds for all axes: .stride = 2.
  constexpr PerAxis(int all) : count(1), at{all} {}  // NOLINT: converts on purpose
  /// Makes a number per axis, in the image's order: {2, 1} for height and width, {4, 2, 1} for
  /// depth, height and width. One number holds for all. Throws Error(invalid_argument) for more
  /// than three.
  PerAxis(std::initializer_list<int> numbers);
  bool operator==(const PerAxis&) const = default;

  /// Returns the number for axis `axis`, counted from 0; require_per_axis() must have passed.
  [[nodiscard]] constexpr int along(int axis) const { return at[count == 1 ? 0 : axis]; }
};

/// Throws Error(invalid_argument) unless there is one number, or one for each of `axes` axes.
/// Numbers beyond these (arrays in C always have three) must equal `otherwise`, the option's
/// default.
RUNG_API void require_per_axis(std::string_view op, std::string_view name, const PerAxis& numbers,
                               int axes, int otherwise);

/// Parses "3", for all axes, or one number per axis: "3x2". Throws Error(invalid_argument).
RUNG_API PerAxis parse_per_axis(std::string_view op, std::string_view name, std::string_view text,
                                int axes);

}  // namespace rung
