// SPDX-License-Identifier: Apache-2.0
// Shapes, the bytes that tensors span, and whether tensors overlap themselves, against brute force.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "expect_error.hpp"
#include "random_tensors.hpp"
#include "rung/core/tensor.hpp"

namespace rung {
namespace {

using test::expect_error;
using test::for_each_index;
using test::offset_of;
using test::random_extents;

constexpr std::int64_t huge = std::int64_t{1} << 62;

TEST(Extents, Product) {
  EXPECT_EQ(Extents{}.product(), 1);
  EXPECT_EQ((Extents{2, 3, 4}).product(), 24);
  EXPECT_EQ((Extents{huge, 0, huge}).product(), 0);
  EXPECT_EQ((Extents{INT64_MAX}).product(), INT64_MAX);
  expect_error(ErrorCode::invalid_argument, {"2^63"}, [] { (void)Extents({huge, 2}).product(); });
  expect_error(ErrorCode::invalid_argument, {"negative", "2x-1"},
               [] { (void)Extents({2, -1}).product(); });
  expect_error(ErrorCode::invalid_argument, {"negative"}, [] { (void)Extents({0, -1}).product(); });
}

TEST(Extents, ContiguousStrides) {
  EXPECT_EQ((Extents{2, 3, 4}).contiguous_strides(), (Extents{12, 4, 1}));
  EXPECT_EQ((Extents{2, 0, 4}).contiguous_strides(), (Extents{4, 4, 1}));
  EXPECT_EQ(Extents{}.contiguous_strides(), Extents{});
  expect_error(ErrorCode::invalid_argument, {"2^63"},
               [] { (void)Extents({2, huge, 4}).contiguous_strides(); });
}

TEST(Extents, AreOfAnyIntegerType) {
  const std::size_t rows = 2;
  const unsigned short columns = 3;
  const long long planes = 4;
  EXPECT_EQ((Extents{rows, columns, planes, 5}), (Extents{2, 3, 4, 5}));
  EXPECT_THROW(static_cast<void>(Extents{~std::size_t{0}}.product()), Error);
}

TEST(Extents, RankIsBounded) {
  EXPECT_EQ((Extents{1, 2, 3, 4, 5, 6, 7, 8}).rank, max_rank);
  expect_error(ErrorCode::invalid_argument, {"rank 9"},
               [] { Extents({1, 2, 3, 4, 5, 6, 7, 8, 9}); });
  EXPECT_FALSE((Extents{2, 3}) == (Extents{2, 3, 1}));
  EXPECT_FALSE((Extents{2, 3}) == (Extents{2, 4}));
  EXPECT_EQ(to_string(Extents{2, 3}), "2x3");
  EXPECT_EQ(to_string(Extents{}), "scalar");
}

TEST(ByteRange, SpansTheElements) {
  std::mt19937 random(1);
  std::vector<double> memory(4000);
  double* const middle = memory.data() + 2000;
  for (int round = 0; round < 3000; ++round) {
    const int rank = static_cast<int>(random() % 4);
    const Extents shape = random_extents(random, rank, 0, 4);
    const Extents strides = random_extents(random, rank, -20, 20);
    const ConstTensorRef tensor(middle, DType::f64, shape, strides);
    std::int64_t low = INT64_MAX;
    std::int64_t high = INT64_MIN;
    for_each_index(shape, [&](const Extents& index) {
      low = std::min(low, offset_of(index, strides));
      high = std::max(high, offset_of(index, strides) + 1);
    });
    const ByteRange range = byte_range(tensor);
    if (shape.product() == 0) {
      EXPECT_EQ(range.begin, 0u);
      EXPECT_EQ(range.end, 0u);
    } else {
      EXPECT_EQ(range.begin, reinterpret_cast<std::uintptr_t>(middle + low));
      EXPECT_EQ(range.end, reinterpret_cast<std::uintptr_t>(middle + high));
    }
  }
}

TEST(ByteRange, RefusesWhatWouldWrap) {
  double x = 0;
  for (const std::int64_t stride : {huge, -huge, INT64_MAX, INT64_MIN}) {
    expect_error(ErrorCode::invalid_argument, {"address space"},
                 [&] { byte_range(ConstTensorRef(&x, DType::f64, {4}, {stride})); });
  }
}

TEST(ByteRange, TouchingIsNotOverlapping) {
  const ByteRange a{100, 200};
  EXPECT_FALSE(a.overlaps({200, 300}));
  EXPECT_FALSE(a.overlaps({0, 100}));
  EXPECT_TRUE(a.overlaps({199, 300}));
  EXPECT_TRUE(a.overlaps({120, 130}));
  EXPECT_FALSE(a.overlaps({0, 0}));
}

TEST(SelfOverlaps, AgreesWithBruteForce) {
  std::mt19937 random(2);
  std::uint8_t memory = 0;
  int overlapping = 0;
  for (int round = 0; round < 20000; ++round) {
    const int rank = static_cast<int>(random() % 5);
    const Extents shape = random_extents(random, rank, round % 50 == 0 ? 0 : 1, 4);
    const Extents strides = random_extents(random, rank, -30, 30);
    std::set<std::int64_t> seen;
    bool expected = false;
    for_each_index(shape, [&](const Extents& index) {
      expected |= !seen.insert(offset_of(index, strides)).second;
    });
    overlapping += expected ? 1 : 0;
    ASSERT_EQ(self_overlaps(ConstTensorRef(&memory, DType::u8, shape, strides)), expected)
        << to_string(shape) << " strides " << to_string(strides);
  }
  EXPECT_GT(overlapping, 1000);
  EXPECT_LT(overlapping, 19000);
}

TEST(SelfOverlaps, DecidesLargeTensors) {
  std::uint8_t memory = 0;
  const auto overlaps = [&](const Extents& shape, const Extents& strides) {
    return self_overlaps(ConstTensorRef(&memory, DType::u8, shape, strides));
  };
  EXPECT_FALSE(overlaps({1 << 20, 1 << 20}, {1 << 20, 1}));
  EXPECT_FALSE(overlaps({1 << 20, 1 << 20}, {1, 1 << 20}));
  EXPECT_TRUE(overlaps({1 << 20, 1 << 20}, {(1 << 20) - 1, 1}));
  EXPECT_FALSE(overlaps({1000, 1000}, {1001, 1000}));  // the first overlap would be at 1000 rows
  EXPECT_TRUE(overlaps({1001, 1002}, {1001, 1000}));
  EXPECT_TRUE(overlaps({huge, 2}, {0, 1}));
  EXPECT_FALSE(overlaps({1, 2}, {0, 1}));
  EXPECT_TRUE(overlaps({2}, {INT64_MIN}));
  EXPECT_FALSE(overlaps({0, huge}, {0, 0}));
}

}  // namespace
}  // namespace rung
