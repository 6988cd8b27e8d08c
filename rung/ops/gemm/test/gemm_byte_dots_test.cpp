// SPDX-License-Identifier: Apache-2.0
// Products of bytes with few rows or columns: exact in any layout, and chosen by default.
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "rung/ops/gemm/test/gemm_bytes.hpp"

namespace rung::gemm_bytes_test {
namespace {

/// Few rows or columns in C, k beyond the copied depth, every layout.
TEST(GemmByteDots, ExactDotProductsOnACpu) {
  std::mt19937 engine(4);
  std::map<std::string, int> taken;
  for (int round = 0; round < 120; ++round) {
    Context context = Context::cpu(1 + round % 3);
    Case test = random_case(engine, round % 4 != 0, 300);
    const auto few = static_cast<std::int64_t>(1 + engine() % 16);
    (round % 2 == 0 ? test.m : test.n) = few;
    if (round % 5 == 0) test.m = test.n = 1;
    test.k = 1 + static_cast<std::int64_t>(engine() % (round % 3 == 0 ? 1500 : 100));
    run_case(context, test, engine, taken, {"byte_dots", "bytes"});
  }
  EXPECT_EQ(taken["byte_dots"], 90);
  EXPECT_EQ(taken["bytes"], 120);
}

TEST(GemmByteDots, DotProductsOfAnyStrides) {
  Context context = Context::cpu(1);
  std::mt19937 engine(12);
  constexpr std::int64_t rows = 5, k = 700;
  std::vector<std::int8_t> a(rows * k * 3), b(rows * k * 3);
  for (std::int8_t& value : a) value = static_cast<std::int8_t>(engine());
  for (std::int8_t& value : b) value = static_cast<std::int8_t>(engine());
  const std::pair<Extents, Extents> layouts[] = {
      {{2, 10}, {10, 2}}, {{2100, -3}, {-3, 2100}}, {{0, 1}, {1, 0}}, {{3 * k, 0}, {0, 3 * k}}};
  for (const auto& [of_a, of_b] : layouts) {
    const std::int8_t* const first_a = a.data() + (of_a[1] < 0 ? 3 * (k - 1) : 0);
    const std::int8_t* const first_b = b.data() + (of_b[0] < 0 ? 3 * (k - 1) : 0);
    for (const std::int64_t n : {1, 2, 5}) {
      std::vector<std::int32_t> c(rows * n);
      gemm(context, ConstTensorRef(first_a, DType::i8, Extents{rows, k}, of_a),
           ConstTensorRef(first_b, DType::i8, Extents{k, n}, of_b),
           TensorRef(c.data(), DType::i32, Extents{rows, n}), {}, {"byte_dots"});
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          std::int32_t expected = 0;
          for (std::int64_t p = 0; p < k; ++p) {
            expected += first_a[i * of_a[0] + p * of_a[1]] * first_b[p * of_b[0] + j * of_b[1]];
          }
          ASSERT_EQ(c[static_cast<std::size_t>(i * n + j)], expected) << i << ", " << j;
        }
      }
    }
  }
}

TEST(GemmByteDots, DotProductsWrap) {
  Context context = Context::cpu(1);
  const std::vector<std::int8_t> a(200000, -128);
  std::int32_t c = 0;
  gemm(context, ConstTensorRef(a.data(), DType::i8, Extents{1, 200000}),
       ConstTensorRef(a.data(), DType::i8, Extents{200000, 1}),
       TensorRef(&c, DType::i32, Extents{1, 1}), {.alpha = 3}, {"byte_dots"});
  EXPECT_EQ(
      c, static_cast<std::int32_t>(static_cast<std::uint32_t>(std::int64_t{200000} * 16384 * 3)));
}

/// Two operations per pair of bytes read: byte_dots must be chosen over bytes, whose panel of B
/// would have one column.
TEST(GemmByteDots, DotProductsAreChosenForNarrowResults) {
  Context context = Context::cpu(1);
  std::vector<std::int8_t> bytes(1 << 20);
  std::vector<std::int32_t> c(1024);
  for (const auto& [m, n, k] : {std::tuple<std::int64_t, std::int64_t, std::int64_t>{1, 1, 1000},
                                {1, 1, 1000000},
                                {1000, 1, 1000},
                                {1, 1000, 1000},
                                {3, 2, 5000}}) {
    for (const bool turned : {false, true}) {
      const Extents down{1, m}, along{k, 1};
      const Gemm::Call call{
          .a = ConstTensorRef(bytes.data(), DType::i8, Extents{m, k}, turned ? down : along),
          .b = ConstTensorRef(bytes.data(), DType::i8, Extents{k, n}),
          .c = TensorRef(c.data(), DType::i32, Extents{m, n})};
      EXPECT_EQ(choose<Gemm>(bind<Gemm>(call), context).info.name, "byte_dots")
          << m << "x" << n << "x" << k << (turned ? ",ta" : "");
    }
  }
}

}  // namespace
}  // namespace rung::gemm_bytes_test
