// SPDX-License-Identifier: Apache-2.0
// stmatrix in all forms, and mma.sync of 8-bit integers.
#include <type_traits>

#include "rung/device/ptx/store_matrix.hpp"
#include "tests/simt/hopper_fixture.hpp"

namespace rung::fragments_test {
namespace {

class FragmentsTest : public HopperTest {};

struct Rows {
  alignas(16) std::uint16_t row[6][32][8];
};

/// Stores out[form][row][i]: x1, x2, x4, then the same transposed. Register i of a lane has 2
/// numbers.
__global__ void store_forms(std::uint16_t* out) {
  Rows& rows = shared<Rows>();
  const int lane = static_cast<int>(threadIdx.x);
  for (int form = 0; form < 6; ++form) {
    for (int i = 0; i < 8; ++i) rows.row[form][lane][i] = 0;
  }
  unsigned four[4];
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned first = 64 * i + 2 * threadIdx.x;
    four[i] = (first + 1) << 16 | first;
  }
  const unsigned one[1] = {four[0]}, two[2] = {four[0], four[1]};
  __syncwarp();
  ptx::store_matrix(&rows.row[0][lane % 8], one);
  ptx::store_matrix(&rows.row[1][lane % 16], two);
  ptx::store_matrix(&rows.row[2][lane], four);
  ptx::store_matrix<1, true>(&rows.row[3][lane % 8], one);
  ptx::store_matrix<2, true>(&rows.row[4][lane % 16], two);
  ptx::store_matrix<4, true>(&rows.row[5][lane], four);
  __syncwarp();
  for (int form = 0; form < 6; ++form) {
    for (int i = 0; i < 8; ++i) out[form * 256 + lane * 8 + i] = rows.row[form][lane][i];
  }
}

TEST_P(FragmentsTest, StmatrixPutsRowsAndColumns) {
  Context c = context();
  Buffer<std::uint16_t> out(6 * 256);
  launch(c, {.block = 32, .shared_bytes = sizeof(Rows)}, store_forms, out.data());
  const std::vector<std::uint16_t> got = out.values();
  for (int form = 0; form < 6; ++form) {
    for (int row = 0; row < 32; ++row) {
      for (int i = 0; i < 8; ++i) {
        const int matrix = row / 8, r = row % 8;
        // Element (a, b) of a matrix is number 8 a + b of its lanes' pairs.
        int want = 64 * matrix + (form < 3 ? 8 * r + i : 8 * i + r);
        if (matrix >= 1 << form % 3) want = 0;
        ASSERT_EQ(got[static_cast<std::size_t>(form * 256 + row * 8 + i)], want)
            << "form " << form << ", row " << row << ", element " << i;
      }
    }
  }
}

template <class A, class B>
__global__ void multiply_bytes(const A* a, const B* b, int* d) {
  const int lane = static_cast<int>(threadIdx.x), group = lane / 4, four = 4 * (lane % 4);
  const auto word = [](const auto* p) {
    std::uint32_t packed = 0;
    for (int i = 0; i < 4; ++i) packed |= std::uint32_t{static_cast<std::uint8_t>(p[i])} << (8 * i);
    return packed;
  };
  const std::uint32_t fa[4] = {word(a + group * 32 + four), word(a + (group + 8) * 32 + four),
                               word(a + group * 32 + four + 16),
                               word(a + (group + 8) * 32 + four + 16)};
  const std::uint32_t fb[2] = {word(b + group * 32 + four), word(b + group * 32 + four + 16)};
  int sums[4] = {1, 2, 3, 4};
  ptx::mma_m16n8k32<A, B>(sums, fa, fb, sums);
  for (int i = 0; i < 4; ++i) d[(group + 8 * (i / 2)) * 8 + 2 * (lane % 4) + i % 2] = sums[i];
}

template <class T>
std::vector<T> bytes(std::size_t count, unsigned seed) {
  std::vector<T> values;
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values.push_back(static_cast<T>(seed >> 24));
  }
  return values;
}

template <class A, class B>
void expect_bytes(Context& c) {
  const auto a = bytes<A>(16 * 32, 1);
  const auto b = bytes<B>(8 * 32, 2);
  Buffer<A> da(a);
  Buffer<B> db(b);
  Buffer<int> dd(128);
  launch(c, {.block = 32}, multiply_bytes<A, B>, da.data(), db.data(), dd.data());
  const std::vector<int> got = dd.values();
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      int want = static_cast<int>(1 + row / 8 * 2 + column % 2);
      for (std::size_t k = 0; k < 32; ++k) want += a[row * 32 + k] * b[column * 32 + k];
      ASSERT_EQ(got[row * 8 + column], want) << row << ", " << column;
    }
  }
}

TEST_P(FragmentsTest, BytesMultiply) {
  Context c = context();
  expect_bytes<std::int8_t, std::int8_t>(c);
  expect_bytes<std::int8_t, std::uint8_t>(c);
  expect_bytes<std::uint8_t, std::int8_t>(c);
  expect_bytes<std::uint8_t, std::uint8_t>(c);
}

INSTANTIATE_TEST_SUITE_P(Orders, FragmentsTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::fragments_test
