// SPDX-License-Identifier: Apache-2.0
// Shared by the oracles of norm and norm_backward: element access by index, in long double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "rung/core/dtype.hpp"
#include "rung/ops/norm/op/norm.hpp"
#include "rung/ops/norm/shared/axes.hpp"

namespace rung::norm_oracle {

// Precision of the reference; f64 sums need more digits than double.
using Real = long double;

using Index = Extents;  // one entry per axis

inline std::int64_t offset_of(const Index& index, const Extents& strides) {
  std::int64_t offset = 0;
  for (int axis = 0; axis < strides.rank; ++axis) offset += index[axis] * strides[axis];
  return offset;
}

inline double element(const ConstTensorRef& tensor, const Index& index) {
  const auto at =
      offset_of(index, tensor.strides) * static_cast<std::int64_t>(size_of(tensor.dtype));
  return load_as_double(tensor.dtype, static_cast<const char*>(tensor.data) + at);
}

/// Sets the entries of `index` for axes in the set to element `linear` (C order) of these axes.
inline void place(Index& index, std::int64_t linear, const Extents& shape, AxisSet set) {
  index.rank = shape.rank;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    if (!norm_axes::holds(set, axis)) continue;
    index[axis] = linear % shape[axis];
    linear /= shape[axis];
  }
}

inline std::int64_t linear_of(const Index& index, const Extents& shape, AxisSet set) {
  std::int64_t linear = 0;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (norm_axes::holds(set, axis)) linear = linear * shape[axis] + index[axis];
  }
  return linear;
}

/// Returns the unit roundoff.
inline double unit(DType dtype) { return epsilon(dtype) / 2; }

/// Returns the type in which sums over elements of `type` are computed.
inline DType arithmetic_of(DType type) { return type == DType::f64 ? DType::f64 : DType::f32; }

/// Returns the spacing of the subnormal numbers.
inline double smallest(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 0x1p-24;
    case DType::bf16:
      return 0x1p-133;
    case DType::f64:
      return 0x1p-1074;
    default:
      return 0x1p-149;
  }
}

/// Overflow of a row's sums, see Special in norm.hpp; `maybe`: rungs may differ.
enum class Overflow : std::uint8_t { no, maybe, yes };

/// Reference mean and rstd of a row, and the error bounds of norm.hpp's Accuracy.
struct RowStatistics {
  Real mean = 0;
  // mean = center + rest: a long double has 11 bits more than f64, which a large mean uses up.
  Real center = 0;
  Real rest = 0;
  Real rstd = 0;
  Real size = 0;       // S of the contract: rstd mean(|s|)
  Real ku = 0;         // K u
  Real mean_size = 0;  // mean(|s|)
  Real additions = 0;  // K
  Real least = 0;      // spacing of the arithmetic's subnormal numbers
  Overflow overflow = Overflow::no;

  /// Returns the exact result for an element s, before gamma.
  [[nodiscard]] Real z(Real s) const { return (s - center - rest) * rstd; }
  [[nodiscard]] Real t() const { return ku * size; }
  /// Returns the error bound of z: the smaller of the bounds for all rungs and for rungs that
  /// correct the mean. rstd_error() and mean_error() do the same for rstd and mean.
  [[nodiscard]] Real z_error(Real z) const {
    const Real each = ku * (std::abs(z) + size + std::abs(z) * t() * size);
    const Real corrected = 2 * ku * (std::abs(z) + 1 + t() * (1 + std::abs(z) * t()));
    return bounded(corrects_rstd() ? std::min(each, corrected) : each);
  }
  [[nodiscard]] Real rstd_error() const {
    const Real each = ku * (1 + t() * size) * (1 + t());
    return bounded(rstd * (corrects_rstd() ? std::min(each, 2 * ku * (1 + t() * t())) : each));
  }
  [[nodiscard]] Real mean_error(Real u) const {
    const Real each = ku * mean_size;
    const Real corrected = 2 * ku * (1 + t()) / rstd + u * std::abs(mean);
    return (rstd > 0 ? std::min(each, corrected) : each) + 2 * additions * least;
  }
  /// Returns the largest ratio of the bounds for all rungs to those for rungs that correct the
  /// mean.
  [[nodiscard]] Real uncorrected() const {
    if (!(size > 2) && !(t() * size > 1)) return 1;
    return (1 + size) * (1 + t()) * (1 + t());
  }

 private:
  [[nodiscard]] bool corrects_rstd() const { return 2 * ku * (1 + t() * t()) < 0.25L; }
  [[nodiscard]] Real bounded(Real error) const {
    return overflow == Overflow::maybe ? std::numeric_limits<Real>::infinity() : error;
  }
};

inline RowStatistics row_statistics(const std::vector<double>& values, NormKind kind,
                                    double epsilon, DType arithmetic) {
  RowStatistics row;
  const auto n = static_cast<Real>(values.size());
  row.additions = n / 8 + 32;
  row.ku = row.additions * unit(arithmetic);
  row.least = smallest(arithmetic);
  bool finite = true;
  for (const double value : values) {
    row.mean += value;
    row.mean_size += std::abs(static_cast<Real>(value));
    finite = finite && std::isfinite(value);
  }
  row.mean_size /= n;
  const bool layer = kind == NormKind::layer;
  Real squares = 0;
  if (layer) {
    constexpr Real most = std::numeric_limits<double>::max();
    if (finite) row.center = static_cast<double>(std::clamp(row.mean / n, -most, most));
    for (const double value : values) row.rest += value - row.center;
    row.rest = finite ? row.rest / n : std::numeric_limits<Real>::quiet_NaN();
  }
  row.mean = row.center + row.rest;
  for (const double value : values) {
    const Real distance = value - row.center - row.rest;
    squares += distance * distance;
  }
  row.rstd = 1 / std::sqrt(squares / n + epsilon);
  const bool wide = arithmetic == DType::f64;
  const Real largest =
      wide ? Real{std::numeric_limits<double>::max()} : Real{std::numeric_limits<float>::max()};
  const Real too_large = wide ? 0x1p960L : 0x1p100L;  // for a mean
  const Real rounding = 1 + row.ku;
  // Rungs sum squares about a rounded center, or about the mean of a part of the row.
  const Real off = row.ku * row.mean_size;
  const Real most = layer ? squares * (1 + n / 64) + n * off * off : squares;
  if (squares > largest * rounding || std::abs(row.mean) > too_large * rounding) {
    row.overflow = Overflow::yes;
    row.rstd = 0;
  } else if (most * rounding > largest || std::abs(row.mean) * rounding > too_large) {
    row.overflow = Overflow::maybe;
  }
  row.size = row.rstd * row.mean_size;
  if (row.overflow == Overflow::yes) row.size = 0;
  return row;
}

}  // namespace rung::norm_oracle
