// SPDX-License-Identifier: Apache-2.0
// A number that counts what is done with it, for kernels on the simulated GPU: written for
// counted<float> instead of float, a kernel tells how many additions and multiplications its
// threads made.
#pragma once

#include <cstdint>

#include "rung/core/export.hpp"

namespace rung::simt {

struct Operations {
  std::uint64_t additions = 0;  // and subtractions
  std::uint64_t multiplications = 0;
  std::uint64_t divisions = 0;

  [[nodiscard]] std::uint64_t total() const { return additions + multiplications + divisions; }
};

/// Of every thread since the last call.
RUNG_API Operations take_operations();

/// In librung, where no access is recorded: a kernel's counters stay those of its own accesses.
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
