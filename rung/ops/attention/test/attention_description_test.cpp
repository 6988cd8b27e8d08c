// SPDX-License-Identifier: Apache-2.0
// attention's Call described as a Problem: the memory order of heads is inferred from strides.
#include <gtest/gtest.h>

#include <string>

#include "rung/core/operands.hpp"
#include "rung/harness/problem.hpp"
#include "rung/ops/attention/op/attention.hpp"

namespace rung {
namespace {

/// Returns the problem text of arguments of shape 2 x heads x rows x 64, stored as 2 x rows x heads
/// x 64 if bshd.
std::string described(std::int64_t heads, std::int64_t queries, std::int64_t keys, bool bshd) {
  void* const nowhere = reinterpret_cast<void*>(4096);  // NOLINT(performance-no-int-to-ptr)
  const auto tensor = [&](std::int64_t rows) {
    const Extents strides = bshd ? Extents{rows * heads * 64, 64, heads * 64, 1}
                                 : Extents{rows * heads * 64, rows * 64, 64, 1};
    return TensorRef(nowhere, DType::bf16, {2, heads, rows, 64}, strides);
  };
  const Attention::Call call{
      .q = tensor(queries), .k = tensor(keys), .v = tensor(keys), .o = tensor(queries)};
  static_cast<void>(bind<Attention>(call));
  return Attention::describe(call).to_string();
}

TEST(AttentionDescription, HeadsInsideAreRead) {
  EXPECT_EQ(described(8, 100, 100, false), "bf16 2x8x100x64");
  EXPECT_EQ(described(8, 100, 100, true), "bf16 2x8x100x64,bshd");
  EXPECT_EQ(described(8, 1, 100, true), "bf16 2x8x1x64,keys=100,bshd");
  EXPECT_EQ(described(1, 100, 100, true), "bf16 2x1x100x64");  // one head: both orders coincide
}

}  // namespace
}  // namespace rung
