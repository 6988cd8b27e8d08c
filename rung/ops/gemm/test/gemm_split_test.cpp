// SPDX-License-Identifier: Apache-2.0
// f32 accuracy from tensor cores (Precision::split), on the simulated GPU: exact products of whole
// numbers, errors compared with f32 arithmetic, and no use without the option.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rung/ops/gemm/test/gemm_exact.hpp"
#include "tests/support/long_test.hpp"

namespace rung {
namespace {

using namespace gemm_test;

constexpr const char* split_rung = "split_bf16";

TEST(GemmSplit, ExactProductsOfAnyShapeAndLayout) {
  RUNG_LONG_TEST_IF_SANITIZED();
  Context context = Context::on(Backend::simt);
  std::mt19937 engine(21);
  const auto pick = [&](auto... values) {
    const std::common_type_t<decltype(values)...> all[] = {values...};
    return all[engine() % (sizeof(all) / sizeof(all[0]))];
  };
  const auto up_to = [&](int most) {
    return 1 + static_cast<std::int64_t>(engine() % static_cast<unsigned>(most));
  };
  std::map<std::string, int> taken;
  for (int round = 0; round < 24; ++round) {
    Case test{};
    test.type = test.out = DType::f32;
    test.batch = pick(1, 1, 2);
    test.m = pick(up_to(200), up_to(20));
    test.n = pick(up_to(200), up_to(20));
    test.k = pick(up_to(300), up_to(20), std::int64_t{640});
    test.ta = engine() % 2 == 0;
    test.tb = engine() % 2 == 0;
    test.padding = pick(0, 4, 3);
    test.skip = pick(0, 0, 4, 1);
    test.alpha = pick(1.0F, 0.5F, -2.0F);
    test.beta = pick(0.0F, 0.0F, 1.0F);
    EXPECT_EQ(run_case(context, test, engine, taken, std::span(&split_rung, 1), Precision::split),
              1)
        << describe(test);
  }
}

/// Median and largest error, relative to the sum of the terms' magnitudes.
struct Errors {
  double median, largest;
};
Errors errors_of(const std::vector<float>& a, const std::vector<float>& b,
                 const std::vector<float>& c, std::size_t m, std::size_t n, std::size_t k) {
  std::vector<double> errors;
  for (std::size_t row = 0; row < m; ++row) {
    for (std::size_t column = 0; column < n; ++column) {
      double sum = 0;
      double size = 0;
      for (std::size_t i = 0; i < k; ++i) {
        const double term = static_cast<double>(a[row * k + i]) * b[i * n + column];
        sum += term;
        size += term * term;
      }
      errors.push_back(std::abs(c[row * n + column] - sum) / std::sqrt(size));
    }
  }
  std::sort(errors.begin(), errors.end());
  return {errors[errors.size() / 2], errors.back()};
}

TEST(GemmSplit, ErrorsAreNoLargerThanThoseOfF32) {
  Context context = Context::on(Backend::simt);
  constexpr std::int64_t m = 40;
  constexpr std::int64_t n = 48;
  for (const std::int64_t k : {1024, 2000}) {
    auto a = random_values(static_cast<std::size_t>(m * k), 1);
    auto b = random_values(static_cast<std::size_t>(k * n), 2);
    const auto errors = [&](const char* rung, Precision precision) {
      std::vector<float> c(static_cast<std::size_t>(m * n));
      gemm(context, matrix(a, m, k), matrix(b, k, n), matrix(c, m, n), {.precision = precision},
           {rung});
      return errors_of(a, b, c, m, n, static_cast<std::size_t>(k));
    };
    const Errors split = errors(split_rung, Precision::split);
    const Errors f32 = errors("simt_top", Precision::full);
    EXPECT_LE(split.median, f32.median) << k;
    EXPECT_LE(split.largest, f32.largest) << k;
    // 24 bits meet this bound; two parts would keep 16 bits.
    EXPECT_LE(split.largest, 0x1p-21) << k;
    EXPECT_GT(errors("packed", Precision::tf32).median, 100 * split.median) << k;
  }
}

/// Every bit of an operand counts, at both ends of the range; rounding never produces infinities.
TEST(GemmSplit, KeepsAllBitsOfOneProduct) {
  Context context = Context::on(Backend::simt);
  for (const float x : {16777215.0F, 1.0000001F, std::numeric_limits<float>::max(),
                        -std::numeric_limits<float>::max(), 0x1.fffffep-100F, 0x1.010101p-60F}) {
    float one = 1;
    float a = x;
    float c = 0;
    gemm(context, ConstTensorRef(&a, DType::f32, Extents{1, 1}),
         ConstTensorRef(&one, DType::f32, Extents{1, 1}), TensorRef(&c, DType::f32, Extents{1, 1}),
         {.precision = Precision::split}, {split_rung});
    EXPECT_EQ(c, x);
  }
}

TEST(GemmSplit, OnlyWhereTheCallerAsksForIt) {
  const Context context = Context::on(Backend::simt);
  const TensorRef x(reinterpret_cast<void*>(std::uintptr_t{1} << 20), DType::f32,
                    Extents{4096, 4096});
  const auto chosen = [&](Precision precision) {
    const Gemm::Args args = bind<Gemm>({.a = x, .b = x, .c = x, .precision = precision});
    return choose<Gemm>(args, context).info.name;
  };
  EXPECT_EQ(chosen(Precision::full), "simt_top");
  EXPECT_NE(chosen(Precision::tf32), split_rung);
  EXPECT_EQ(chosen(Precision::split), split_rung);
}

TEST(GemmSplit, OtherTypesAreRejected) {
  Context context = Context::on(Backend::simt);
  bf16 x(1.0F);
  const TensorRef one(&x, DType::bf16, Extents{1, 1});
  bf16 y(0.0F);
  EXPECT_THROW(gemm(context, one, one, TensorRef(&y, DType::bf16, Extents{1, 1}),
                    {.precision = Precision::split}),
               Error);
}

}  // namespace
}  // namespace rung
