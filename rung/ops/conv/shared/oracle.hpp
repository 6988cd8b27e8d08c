// SPDX-License-Identifier: Apache-2.0
// Shared by the references of conv, conv_backward_data and conv_backward_filter: sums by the
// definition, in a wider type than the arithmetic's, and iteration over the requested elements.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "rung/core/dtype.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/harness/inputs.hpp"
#include "rung/ops/conv/shared/window.hpp"

namespace rung::conv_oracle {

/// Type of the reference: double is not precise enough to check double.
template <class T>
using Real = std::conditional_t<std::is_same_v<T, double>, long double, double>;

template <class T>
Real<T> wide(T value) {
  return static_cast<Real<T>>(static_cast<Accumulator<T>>(value));
}

/// Sum, and the sum of its terms' absolute values.
template <class R>
struct Sum {
  R value = 0;
  R magnitude = 0;
  void add(R term) {
    value += term;
    magnitude += std::abs(term);
  }
};

/// Calls f(value, magnitude, place) for each requested element: `place` has the five axes of a
/// tensor converted by to_five(), `rank` is the rank of the caller's tensor.
template <class F>
void for_each(Oracle::Output& output, const Extents& five, int rank, bool channels_last, F&& f) {
  // Position of each of the caller's axes among the five.
  int axis_of[5] = {0, 1, 2, 3, 4};
  for (int axis = 1; axis < rank; ++axis) {
    const bool channels = channels_last ? axis == rank - 1 : axis == 1;
    axis_of[axis] = channels ? 1 : 5 - rank + axis + (channels_last ? 1 : 0);
  }
  std::size_t judged = 0;
  for (const std::int64_t row : output.rows) {
    for (std::int64_t i = 0; i < output.length; ++i, ++judged) {
      std::int64_t place[5] = {};
      place[axis_of[rank - 1]] = i;
      std::int64_t rest = row;
      for (int axis = rank - 2; axis >= 0; --axis) {
        const std::int64_t extent = five[axis_of[axis]];
        place[axis_of[axis]] = rest % extent;
        rest /= extent;
      }
      f(output.value[judged], output.magnitude[judged], place);
    }
  }
}

/// Calls f(t, at) for each tap whose position, `where(axis, tap)`, exists on all axes.
template <class Where, class F>
void for_each_tap(const ConvGeometry& g, Where&& where, F&& f) {
  std::int64_t at[3];
  for (std::int64_t t0 = 0; t0 < g.axis[0].kernel; ++t0) {
    at[0] = where(0, t0);
    if (at[0] < 0) continue;
    for (std::int64_t t1 = 0; t1 < g.axis[1].kernel; ++t1) {
      at[1] = where(1, t1);
      if (at[1] < 0) continue;
      for (std::int64_t t2 = 0; t2 < g.axis[2].kernel; ++t2) {
        at[2] = where(2, t2);
        if (at[2] < 0) continue;
        const std::int64_t t[3] = {t0, t1, t2};
        f(t, at);
      }
    }
  }
}

/// Returns the error bound of a sum of `terms` products.
inline Tolerance sum_tolerance(DType type, double terms, Values values, const RungInfo& rung) {
  const double unit = epsilon(type == DType::f64 ? DType::f64 : DType::f32) / 2;
  Tolerance tolerance;
  tolerance.relative = epsilon(type) / 2 * 1.01;
  // Sums of small integers are exact.
  if (values != Values::integers) tolerance.magnitude = (terms + 3) * unit;
  const bool truncates = rung.name.find("tensor_cores") != std::string_view::npos ||
                         rung.name.find("tma") != std::string_view::npos;
  if (truncates) tolerance.magnitude *= 2;
  // Results and products below the smallest normal number are rounded to a fixed step.
  const double smallest = type == DType::f16    ? 0x1p-24
                          : type == DType::bf16 ? 0x1p-133
                          : type == DType::f64  ? 0x1p-1074
                                                : 0x1p-149;
  tolerance.absolute = 2 * smallest + (terms + 1) * (type == DType::f64 ? 0x1p-1074 : 0x1p-149);
  // oneDNN's bf16 kernels flush subnormal numbers.
  if (rung.peer) tolerance.absolute += (terms + 1) * 0x1p-126;
  return tolerance;
}

/// Returns the cost of a layer: each tensor's bytes once, and two operations per term.
inline Cost layer_cost(const ConvGeometry& g, DType type, const ConstTensorRef& written,
                       const ConstTensorRef& one, const ConstTensorRef& other) {
  const auto element = static_cast<double>(size_of(type));
  const double made = static_cast<double>(written.size()) * element;
  const double read =
      (static_cast<double>(one.size()) + static_cast<double>(other.size())) * element;
  const double results = static_cast<double>(g.images) * static_cast<double>(g.filters) *
                         static_cast<double>(g.results());
  return {.bytes = read + made,
          .operations =
              2 * results * static_cast<double>(g.group_channels()) * static_cast<double>(g.taps()),
          .written = made};
}

}  // namespace rung::conv_oracle
