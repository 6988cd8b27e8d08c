// SPDX-License-Identifier: Apache-2.0
// What reduce's tests share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "rung/ops/reduce/reduce.hpp"

namespace rung::reduce_test {

template <class T = float>
std::vector<T> random_values(std::size_t count, unsigned seed = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(normal(engine) * (std::is_integral_v<T> ? 50 : 1));
  return values;
}

template <class T>
TensorRef tensor(std::vector<T>& values, const Extents& shape) {
  return {values.data(), dtype_of<T>, shape};
}

/// The result of a whole reduction.
template <class Y, class T>
Y whole(Context& context, std::vector<T>& x, Reduction operation, Pick pick = best) {
  Y y{};
  reduce(context, tensor(x, {static_cast<std::int64_t>(x.size())}),
         TensorRef(&y, dtype_of<Y>, Extents{}), {.operation = operation}, pick);
  return y;
}

/// The message of the Error that f throws; "" when it throws none.
template <class F>
std::string message_of(F&& f, ErrorCode expected = ErrorCode::invalid_argument) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), expected) << error.what();
    return error.what();
  }
  return "";
}

/// Tests of every backend that needs no GPU.
class ReduceOn : public testing::TestWithParam<Backend> {
 protected:
  Context context = Context::on(GetParam());
};

inline std::string name_of_backend(const testing::TestParamInfo<Backend>& test) {
  return to_string(test.param);
}

}  // namespace rung::reduce_test
