// SPDX-License-Identifier: Apache-2.0
// Names of element types, and conversions between elements of any type and doubles.
#include "rung/core/dtype.hpp"

#include <bit>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>

namespace rung {
namespace {

constexpr std::string_view names[] = {"f32", "f64", "f16", "bf16", "e4m3", "e5m2",
                                      "i8",  "u8",  "i32", "i64",  "u16"};

/// Converts to float, rounding to odd: the last bit is set if the conversion is inexact. A second
/// rounding, to a type at least two bits shorter, then equals a single rounding from double.
float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value)) return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  // Steps back to the truncated value: the bits of a float minus 1 are the next smaller magnitude.
  // Infinity after an overflow becomes the largest float, which is out of range of every shorter
  // type.
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

/// Converts to the nearest integer in the range of T; NaN gives 0.
template <class T>
T saturate(double value) {
  if (std::isnan(value)) return 0;
  const double whole = std::nearbyint(value);
  // -2^(b-1) is exact as a double; the largest i64 is not, so the upper bound is 2^b, exclusive.
  constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double past_high = static_cast<double>(std::numeric_limits<T>::max() / 2 + 1) * 2.0;
  if (whole <= low) return std::numeric_limits<T>::min();
  if (whole >= past_high) return std::numeric_limits<T>::max();
  return static_cast<T>(whole);
}

template <class T>
T from_double(double value) {
  if constexpr (std::is_class_v<T>) {
    return T(round_to_odd(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    return saturate<T>(value);
  }
}

template <class T>
double to_double(T value) {
  if constexpr (std::is_class_v<T>) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return static_cast<double>(value);
  }
}

}  // namespace

std::string_view to_string(DType dtype) noexcept {
  const auto index = static_cast<std::size_t>(dtype);
  return index < std::size(names) ? names[index] : std::string_view("unknown dtype");
}

const std::string& dtype_names() {
  static const std::string list = [] {
    std::string joined;
    for (const std::string_view name : names) {
      if (!joined.empty()) joined += ", ";
      joined += name;
    }
    return joined;
  }();
  return list;
}

DType parse_dtype(std::string_view text) {
  for (std::size_t index = 0; index < std::size(names); ++index) {
    if (text == names[index]) return static_cast<DType>(index);
  }
  throw Error(ErrorCode::invalid_argument,
              "unknown dtype '" + std::string(text) + "'; accepted: " + dtype_names());
}

void detail::throw_dtype(DType given) {
  throw Error(ErrorCode::unsupported,
              "dtype " + std::string(to_string(given)) + " is not supported here");
}

double load_as_double(DType dtype, const void* element) {
  return visit_any(dtype, [&]<class T>() {
    T value;
    std::memcpy(&value, element, sizeof value);
    return to_double(value);
  });
}

void store_from_double(DType dtype, void* element, double value) {
  visit_any(dtype, [&]<class T>() {
    const T rounded = from_double<T>(value);
    std::memcpy(element, &rounded, sizeof rounded);
  });
}

}  // namespace rung
