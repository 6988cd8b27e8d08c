// SPDX-License-Identifier: Apache-2.0
// Canonical forms of transposes, and the chosen rungs.
#include <gtest/gtest.h>

#include <array>

#include "rung/ops/transpose/test/transpose_test.hpp"

namespace rung {
namespace {

Transpose::Moves moves(const Extents& shape, const Extents& order, DType dtype,
                       std::ptrdiff_t offset = 0) {
  alignas(64) static std::array<std::byte, 64> x;
  alignas(64) static std::array<std::byte, 64> y;
  return bind<Transpose>({.x = {x.data() + offset, dtype, shape},
                          .y = {y.data(), dtype, permuted(shape, order)},
                          .order = order})
      .moves;
}

TEST(TransposeMoves, AxesThatStayTogetherAreMerged) {
  // N x H x W x C to N x C x H x W: H and W merge to one axis.
  const Transpose::Moves m = moves({8, 6, 10, 3}, {0, 3, 1, 2}, DType::f32);
  EXPECT_EQ(m.rows, 60);
  EXPECT_EQ(m.columns, 3);
  EXPECT_EQ(m.matrices(), 8);
  EXPECT_TRUE(m.dense());
}

TEST(TransposeMoves, NeighborsBecomeOneElement) {
  EXPECT_EQ(moves({5, 7, 2}, {1, 0, 2}, DType::f64).element_bytes, 16);
  EXPECT_EQ(moves({5, 7, 4}, {1, 0, 2}, DType::f32).element_bytes, 16);
  EXPECT_EQ(moves({5, 7, 2}, {1, 0, 2}, DType::u8).element_bytes, 2);
  EXPECT_TRUE(moves({5, 7, 4}, {1, 0, 2}, DType::f32).dense());
  // A run of 64 f16 becomes eight 16-byte elements; a run of three f32 stays three elements.
  const Transpose::Moves heads = moves({2, 12, 8, 64}, {0, 2, 1, 3}, DType::f16);
  EXPECT_EQ(heads.element_bytes, 16);
  EXPECT_EQ(heads.run, 8);
  const Transpose::Moves odd = moves({5, 7, 3}, {1, 0, 2}, DType::f32);
  EXPECT_EQ(odd.element_bytes, 4);
  EXPECT_EQ(odd.run, 3);
}

TEST(TransposeMoves, ElementsAreAsWideAsAlignmentAllows) {
  EXPECT_EQ(moves({5, 7, 4}, {1, 0, 2}, DType::f32, 8).element_bytes, 8);
  EXPECT_EQ(moves({5, 7, 4}, {1, 0, 2}, DType::f32, 4).element_bytes, 4);
}

TEST(TransposeMoves, TheIdentityIsOneRun) {
  const Transpose::Moves m = moves({4, 5, 6}, {0, 1, 2}, DType::f32);
  EXPECT_EQ(m.run * m.element_bytes, 4 * 5 * 6 * 4);
  EXPECT_EQ(m.rows * m.columns * m.matrices(), 1);
}

TEST(TransposeChoice, TheFastestKindOfRungIsChosen) {
  Context context = Context::simt();
  const auto chosen = [&](const Extents& shape, DType dtype, std::int64_t row) {
    Extents strides = shape.contiguous_strides();
    strides[0] = row;
    alignas(64) static std::byte x;
    alignas(64) static std::byte y;
    const Transpose::Args args = bind<Transpose>(
        {.x = {&x, dtype, shape, strides}, .y = {&y, dtype, permuted(shape, {1, 0})}});
    return choose<Transpose>(args, context).info.name;
  };
  const std::string_view large = chosen({4096, 4096}, DType::f32, 4096);
  EXPECT_TRUE(large == "vectorized" || large == "tma") << large;
  EXPECT_EQ(chosen({4095, 4097}, DType::f32, 4097), "skewed");
  EXPECT_EQ(chosen({4096, 4096}, DType::u8, 4096), "vectorized");
}

}  // namespace
}  // namespace rung
