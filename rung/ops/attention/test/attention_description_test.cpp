// SPDX-License-Identifier: Apache-2.0
// attention's Call described as a Problem: the memory order of heads is inferred from strides,
// packed operands from the offsets.
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

/// Returns the problem text of five batch elements of up to 9 queries and 20 keys, with the rows
/// that check's problems have.
std::string described_packing(bool queries, bool keys) {
  void* const nowhere = reinterpret_cast<void*>(4096);  // NOLINT(performance-no-int-to-ptr)
  const TensorRef offsets(nowhere, DType::i32, {6});
  const TensorRef q(nowhere, DType::bf16,
                    queries ? Extents{1, 2, 9 + 4 + 0 + 1 + 9, 64} : Extents{5, 2, 9, 64});
  const TensorRef k(nowhere, DType::bf16,
                    keys ? Extents{1, 2, 7 + 0 + 1 + 20 + 7, 64} : Extents{5, 2, 20, 64});
  Attention::Call call{.q = q, .k = k, .v = k, .o = q};
  if (queries) call.options.query_offsets = offsets;
  if (keys) call.options.key_offsets = offsets;
  static_cast<void>(bind<Attention>(call));
  return Attention::describe(call).to_string();
}

TEST(AttentionDescription, PackedOperandsAreNamed) {
  EXPECT_EQ(described_packing(false, false), "bf16 5x2x9x64,keys=20");
  EXPECT_EQ(described_packing(true, true), "bf16 5x2x9x64,keys=20,packed");
  EXPECT_EQ(described_packing(true, false), "bf16 5x2x9x64,keys=20,packed=queries");
  EXPECT_EQ(described_packing(false, true), "bf16 5x2x9x64,keys=20,packed=keys");
}

}  // namespace
}  // namespace rung
