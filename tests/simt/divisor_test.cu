// SPDX-License-Identifier: Apache-2.0
// Divisor: quotients and remainders at the ends of its range; and the division of short rows.
#include "rung/device/divisor.hpp"
#include "rung/device/row_chunk.hpp"
#include "tests/simt/device_fixture.hpp"

namespace rung::divisor_test {
namespace {

class DivisorTest : public DeviceTest {};

__global__ void divide(const unsigned* dividends, int count, Divisor by, unsigned* quotients,
                       int* rests) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    unsigned rest = dividends[i];
    rests[i] = by.take(rest);
    quotients[i] = rest;
  }
}

TEST_P(DivisorTest, QuotientsAndRestsUpTo2To31) {
  Context c = context();
  constexpr std::int64_t max = Divisor::max;
  for (const std::int64_t d : {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{7},
                               std::int64_t{49}, std::int64_t{641}, std::int64_t{65537},
                               (std::int64_t{1} << 30) - 1, std::int64_t{1} << 30, max - 1, max}) {
    std::vector<unsigned> dividends{0, 1, 2, 1000003};
    // An approximate quotient would be wrong near multiples of d.
    for (const std::int64_t times : {std::int64_t{1}, std::int64_t{2}, max / d / 2, max / d}) {
      for (const std::int64_t beside : {-1, 0, 1}) {
        const std::int64_t n = times * d + beside;
        if (n >= 0 && n <= max) dividends.push_back(static_cast<unsigned>(n));
      }
    }
    const auto count = static_cast<int>(dividends.size());
    Buffer<unsigned> source(dividends), quotients(dividends.size());
    Buffer<int> rests(dividends.size());
    launch(c, {.block = 32}, divide, source.data(), count, Divisor::of(d), quotients.data(),
           rests.data());
    const std::vector<unsigned> whole = quotients.values();
    const std::vector<int> rest = rests.values();
    for (std::size_t i = 0; i < dividends.size(); ++i) {
      ASSERT_EQ(whole[i], dividends[i] / static_cast<unsigned>(d)) << dividends[i] << " / " << d;
      ASSERT_EQ(rest[i], static_cast<int>(dividends[i] % static_cast<unsigned>(d))) << d;
    }
  }
}

TEST_P(DivisorTest, ShortRowsHaveLanesForAllElements) {
  Context c = context();
  for (const int length : {1, 2, 13, 16, 33, 113, 256, 512}) {
    for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{1000}, std::int64_t{1} << 22}) {
      const RowChunks chunks = short_row_chunks(rows, length, 4, 16, 256, 16 << 10, c);
      EXPECT_EQ(chunks.lanes & (chunks.lanes - 1), 0) << length;
      EXPECT_LE(chunks.rounds(), 16) << length << " " << rows;
      EXPECT_EQ(chunks.group % (256 / chunks.lanes), 0) << length << " " << rows;
    }
  }
  // Few rows get many lanes, many rows get few, but without bank conflicts among all lanes.
  EXPECT_EQ(short_row_chunks(1, 13, 4, 16, 256, 16 << 10, c).lanes, 16);
  EXPECT_EQ(short_row_chunks(1 << 22, 13, 4, 16, 256, 16 << 10, c).lanes, 1);
  EXPECT_GT(short_row_chunks(1 << 22, 16, 4, 16, 256, 16 << 10, c).lanes, 1);
  EXPECT_EQ(bank_conflicts(16, 4, 1), 16);
  EXPECT_EQ(bank_conflicts(13, 4, 1), 1);
  EXPECT_EQ(bank_conflicts(16, 2, 1), 8);
  EXPECT_EQ(bank_conflicts(7, 2, 32), 1);
}

INSTANTIATE_TEST_SUITE_P(Orders, DivisorTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::divisor_test
