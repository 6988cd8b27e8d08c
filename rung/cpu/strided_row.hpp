// SPDX-License-Identifier: Apache-2.0
// A row of any stride, accessed element by element in the arithmetic type.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/core/dtype.hpp"

namespace rung::cpu {

template <class T, class Sum>
struct StridedRow {
  T* first;
  std::int64_t step;
  Sum operator[](std::int64_t i) const {
    return static_cast<Sum>(static_cast<Accumulator<std::remove_const_t<T>>>(first[i * step]));
  }
  void set(std::int64_t i, Sum value) const { first[i * step] = static_cast<T>(value); }
};

}  // namespace rung::cpu
