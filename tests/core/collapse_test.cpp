// SPDX-License-Identifier: Apache-2.0
// Collapsed axes address exactly the elements that the original axes address.
#include "rung/core/collapse.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <set>

namespace rung {
namespace {

/// Returns the offset of element `linear` (C order) over the axes in `axes`, by plain division.
std::int64_t plain_offset(const Extents& shape, const Extents& strides, AxisSet axes,
                          std::int64_t linear) {
  std::int64_t offset = 0;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    if ((axes >> axis & 1) == 0) continue;
    offset += linear % shape[axis] * strides[axis];
    linear /= shape[axis];
  }
  return offset;
}

TEST(Collapse, MergesWhatIsContiguous) {
  const Extents shape{2, 3, 4};
  const auto contiguous = collapse<1>(shape, {shape.contiguous_strides()});
  EXPECT_EQ(contiguous.rank, 1);
  EXPECT_EQ(contiguous.size(), 24);
  EXPECT_TRUE(contiguous.is_contiguous());
  const auto padded = collapse<1>(shape, {Extents{15, 5, 1}});
  EXPECT_EQ(padded.rank, 2);  // the first two axes merge
  EXPECT_FALSE(padded.is_contiguous());
  const auto one = collapse<1>({1, 1}, {Extents{7, 9}});
  EXPECT_EQ(one.rank, 0);
  EXPECT_EQ(one.size(), 1);
  EXPECT_EQ(one.offset(0), 0);
  EXPECT_EQ(collapse<1>({3, 0, 2}, {Extents{0, 2, 1}}).size(), 0);
}

TEST(Collapse, KeepsApartWhatOneTensorKeepsApart) {
  const Extents shape{4, 6};
  const auto both = collapse<2>(shape, {Extents{6, 1}, Extents{0, 1}});
  EXPECT_EQ(both.rank, 2);
  EXPECT_EQ((collapse<2>(shape, {Extents{6, 1}, Extents{0, 0}}).rank), 1);  // one element for all
  EXPECT_EQ((collapse<2>(shape, {Extents{6, 1}, Extents{12, 2}}).rank), 1);
}

TEST(Collapse, AddressesEveryElementWhereItWas) {
  const Extents shape{3, 1, 4, 2, 5};
  for (const Extents& strides : {Extents{40, 40, 10, 5, 1}, Extents{1, 9, 3, 12, 24},
                                 Extents{0, 1, 10, 5, 1}, Extents{-40, 0, 10, -5, 1}}) {
    for (AxisSet axes = 0; axes < 32; ++axes) {
      const auto collapsed = collapse<2>(shape, {strides, shape.contiguous_strides()}, axes);
      for (std::int64_t i = 0; i < collapsed.size(); ++i) {
        ASSERT_EQ(collapsed.offset<0>(i), plain_offset(shape, strides, axes, i)) << axes;
        ASSERT_EQ(collapsed.offset<1>(i), plain_offset(shape, shape.contiguous_strides(), axes, i));
      }
    }
  }
}

TEST(Collapse, SortedAxesAddressTheSameElements) {
  const Extents shape{3, 4, 5};
  const Extents transposed{1, 15, 3};
  const auto logical = collapse<1>(shape, {transposed});
  const auto sorted = collapse<1>(shape, {transposed}, all_axes, AxisOrder::by_stride);
  EXPECT_EQ(sorted.rank, 1);
  EXPECT_TRUE(sorted.is_contiguous());
  std::set<std::int64_t> one;
  std::set<std::int64_t> other;
  for (std::int64_t i = 0; i < 60; ++i) {
    one.insert(logical.offset(i));
    other.insert(sorted.offset(i));
  }
  EXPECT_EQ(one, other);
}

TEST(Collapse, SortsAllOfTheAxesAndKeepsEqualOnesInOrder) {
  const Extents shape{2, 3, 2, 3, 2, 3, 2, 3};
  const Extents strides = shape.contiguous_strides();
  Extents reversed = strides;  // the densest axis comes first, and every second stride is negative
  for (int axis = 0; axis < max_rank; ++axis) {
    reversed[axis] = strides[max_rank - 1 - axis] * (axis % 2 == 0 ? 1 : -1);
  }
  const auto sorted = collapse<1>(shape, {reversed}, all_axes, AxisOrder::by_stride);
  for (int axis = 1; axis < sorted.rank; ++axis) {
    EXPECT_GE(std::abs(sorted.strides[0][axis - 1]), std::abs(sorted.strides[0][axis])) << axis;
  }
  EXPECT_EQ(std::abs(sorted.strides[0][sorted.rank - 1]), 1);
  // The first tensor is broadcast along every axis, so the second one determines the order.
  const auto broadcast = collapse<2>(shape, {Extents{0, 0, 0, 0, 0, 0, 0, 0}, strides}, all_axes,
                                     AxisOrder::by_stride);
  EXPECT_EQ(broadcast.rank, 1);
}

TEST(Collapse, CountsBeyond32Bits) {
  const std::int64_t rows = std::int64_t{1} << 33;
  const auto tall = collapse<1>({rows, 3}, {Extents{5, 1}});
  EXPECT_EQ(tall.offset(3 * (rows - 1) + 2), 5 * (rows - 1) + 2);
}

}  // namespace
}  // namespace rung
