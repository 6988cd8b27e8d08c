// SPDX-License-Identifier: Apache-2.0
// Shared by gemm's tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "rung/ops/gemm/op/gemm.hpp"

namespace rung::gemm_test {

inline std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(engine);
  return values;
}

inline TensorRef matrix(std::vector<float>& values, std::int64_t rows, std::int64_t columns) {
  return {values.data(), DType::f32, Extents{rows, columns}};
}

/// Fixture for tests of every backend that needs no GPU.
class GemmOn : public testing::TestWithParam<Backend> {
 protected:
  Context context = Context::on(GetParam());
};

inline std::string name_of_backend(const testing::TestParamInfo<Backend>& test) {
  return to_string(test.param);
}

}  // namespace rung::gemm_test
