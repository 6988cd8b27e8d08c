// SPDX-License-Identifier: Apache-2.0
// Calls of gemm described as problems: a call that no problem produces maps to the nearest problem.
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "rung/core/operands.hpp"
#include "rung/harness/problem.hpp"
#include "rung/ops/gemm/op/gemm.hpp"

namespace rung {
namespace {

/// Address that describe() must never access.
const void* const nowhere = reinterpret_cast<const void*>(4096);  // NOLINT(performance-*)

ConstTensorRef given(const Extents& shape, DType dtype = DType::f32) {
  return {nowhere, dtype, shape};
}
TensorRef written(const Extents& shape, DType dtype = DType::f32) {
  return {const_cast<void*>(nowhere), dtype, shape};
}
std::string described(const Gemm::Call& call) {
  static_cast<void>(bind<Gemm>(call));
  return Gemm::describe(call).to_string();
}

TEST(GemmDescription, OperandsSharedByABatchAreBatches) {
  EXPECT_EQ(described({.a = given({4, 8}), .b = given({5, 8, 6}), .c = written({5, 4, 6})}),
            "f32 4x6x8,batch=5");
  EXPECT_EQ(described({.a = given({1, 8, 4}),
                       .b = given({5, 6, 8}),
                       .c = written({5, 4, 6}),
                       .transpose_a = true,
                       .transpose_b = true}),
            "f32 4x6x8,ta,tb,batch=5");
}

TEST(GemmDescription, BiasesAreRowsOrColumns) {
  Gemm::Call call{.a = given({4, 8}), .b = given({8, 6}), .c = written({4, 6})};
  call.bias = given({6});
  EXPECT_EQ(described(call), "f32 4x6x8,bias");
  call.bias = given({4, 1});
  EXPECT_EQ(described(call), "f32 4x6x8,bias_rows");
  call.bias = given({4, 6});
  EXPECT_EQ(described(call), "f32 4x6x8,bias");
}

TEST(GemmDescription, LeavesOutWhatIsNotFinite) {
  EXPECT_EQ(described({.a = given({4, 8}),
                       .b = given({8, 6}),
                       .c = written({4, 6}),
                       .alpha = std::numeric_limits<double>::quiet_NaN(),
                       .beta = 0.1}),
            "f32 4x6x8,beta=0.1");
}

}  // namespace
}  // namespace rung
