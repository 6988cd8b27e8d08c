// SPDX-License-Identifier: Apache-2.0
// Tiles of a batch: every element is in one tile, panels are in sequence, the last ones are
// smaller.
#include "rung/cpu/tiles.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rung::test {
namespace {

TEST(Tiles, CoverEveryElementOnce) {
  const cpu::Tiles tiles{.arrays = 3, .rows = 7, .columns = 10, .band = 3, .panel = 4};
  ASSERT_EQ(tiles.count(), 3 * 3 * 3);
  std::vector<int> seen(3 * 7 * 10);
  for (std::int64_t index = 0; index < tiles.count(); ++index) {
    const cpu::ArrayTile tile = tiles[index];
    ASSERT_GT(tile.rows, 0);
    ASSERT_GT(tile.columns, 0);
    for (std::int64_t i = tile.first_row; i < tile.first_row + tile.rows; ++i) {
      for (std::int64_t j = tile.first_column; j < tile.first_column + tile.columns; ++j) {
        ++seen.at(static_cast<std::size_t>((tile.array * 7 + i) * 10 + j));
      }
    }
  }
  EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
}

TEST(Tiles, NumberPanelsOfABandInSequence) {
  const cpu::Tiles tiles{.arrays = 2, .rows = 5, .columns = 9, .band = 4, .panel = 8};
  EXPECT_EQ(tiles[1].first_column, 8);
  EXPECT_EQ(tiles[1].columns, 1);
  EXPECT_EQ(tiles[2].first_row, 4);
  EXPECT_EQ(tiles[2].rows, 1);
  EXPECT_EQ(tiles[4].array, 1);
}

TEST(Tiles, NoneOfAnEmptyBatch) {
  const cpu::Tiles tiles{.arrays = 4, .rows = 0, .columns = 9, .band = 4, .panel = 8};
  EXPECT_EQ(tiles.count(), 0);
}

}  // namespace
}  // namespace rung::test
