// SPDX-License-Identifier: Apache-2.0
// A number type that counts its operations: a kernel instantiated with counted<float> instead of
// float on the simulated GPU reports how many additions and multiplications its threads performed.
#pragma once

#include <cstdint>

#include "rung/core/export.hpp"

namespace rung::simt {

struct Operations {
  std::uint64_t additions = 0;  // additions and subtractions
  std::uint64_t multiplications = 0;
  std::uint64_t divisions = 0;

  [[nodiscard]] std::uint64_t total() const { return additions + multiplications + divisions; }
};

/// Returns the operations of all threads since the previous call, and resets the counts.
RUNG_API Operations take_operations();

/// Counts one addition. Defined in librung, which is compiled without hooks, so that counting adds
/// nothing to a kernel's counters.
RUNG_API void count_addition();
RUNG_API void count_multiplication();
RUNG_API void count_division();

template <class T>
struct counted {
  T value;

  counted() = default;
  constexpr counted(T number) : value(number) {}  // NOLINT(google-explicit-constructor)

  friend counted operator+(counted a, counted b) {
    count_addition();
    return a.value + b.value;
  }
  friend counted operator-(counted a, counted b) {
    count_addition();
    return a.value - b.value;
  }
  friend counted operator*(counted a, counted b) {
    count_multiplication();
    return a.value * b.value;
  }
  friend counted operator/(counted a, counted b) {
    count_division();
    return a.value / b.value;
  }
  counted& operator+=(counted other) { return *this = *this + other; }
  counted& operator-=(counted other) { return *this = *this - other; }
  counted& operator*=(counted other) { return *this = *this * other; }
  counted& operator/=(counted other) { return *this = *this / other; }
};

}  // namespace rung::simt
