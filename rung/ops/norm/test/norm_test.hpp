// SPDX-License-Identifier: Apache-2.0
// What the tests of norm and norm_backward share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "rung/ops/norm/norm.hpp"

namespace rung::norm_test {

template <class T = float>
std::vector<T> random_values(std::int64_t count, unsigned seed, double offset = 0,
                             double spread = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(offset, spread);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = static_cast<T>(normal(engine));
  return values;
}

template <class T>
TensorRef tensor(std::vector<T>& values, const Extents& shape) {
  return {values.data(), dtype_of<T>, shape};
}

/// The message of the Error that f throws; "" when it throws none.
template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
    return error.what();
  }
  return "";
}

/// Tests of every backend that needs no GPU.
class On : public testing::TestWithParam<Backend> {
 protected:
  Context context = Context::on(GetParam());
};

inline std::string name_of_backend(const testing::TestParamInfo<Backend>& test) {
  return to_string(test.param);
}

}  // namespace rung::norm_test
