// SPDX-License-Identifier: Apache-2.0
// Prefetched lines: far enough ahead, not much farther, and without 4K aliasing: not at an address
// that equals, modulo 4096, one that is being written.
#include "rung/cpu/ahead.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace rung::cpu {
namespace {

TEST(ElementsAhead, LieApartFromWhatIsWritten) {
  constexpr std::int64_t page = 4096;
  std::array<double, 4096> memory{};
  for (const std::int64_t bytes : {0, 100, 8192, 12288}) {
    for (std::size_t read = 0; read < 1024; read += 7) {
      for (std::size_t written = 0; written < 1024; written += 13) {
        const std::int64_t ahead = 8 * elements_ahead(bytes, &memory[read], &memory[written], true);
        EXPECT_GT(ahead, bytes - 8);
        EXPECT_LT(ahead, bytes + page);
        const auto to = reinterpret_cast<std::intptr_t>(&memory[read]) + ahead;
        const auto place = reinterpret_cast<std::intptr_t>(&memory[written]);
        const std::int64_t distance = ((to - place) % page + page) % page;
        EXPECT_GE(distance, page / 4);
        EXPECT_LE(distance, page - page / 4);
        EXPECT_EQ(elements_ahead(bytes, &memory[read], &memory[written], false), bytes / 8);
      }
    }
  }
}

TEST(PrefetchedRows, GoOnInTheSecondRow) {
  std::array<float, 40> memory{};
  const PrefetchedRows<float> rows{&memory[0], &memory[20], 3, 10};
  EXPECT_EQ(rows.place(0), &memory[3]);
  EXPECT_EQ(rows.place(6), &memory[9]);
  EXPECT_EQ(rows.place(7), &memory[20]);
  EXPECT_EQ(rows.place(9), &memory[22]);
}

}  // namespace
}  // namespace rung::cpu
