// SPDX-License-Identifier: Apache-2.0
// What softmax's tests share.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "rung/core/tensor_ref.hpp"

namespace rung::softmax_test {

inline std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> values(count);
  for (float& value : values) value = normal(engine);
  return values;
}

template <class... Extent>
TensorRef tensor(std::vector<float>& values, Extent... extents) {
  return {values.data(), DType::f32, Extents{static_cast<std::int64_t>(extents)...}};
}

}  // namespace rung::softmax_test
