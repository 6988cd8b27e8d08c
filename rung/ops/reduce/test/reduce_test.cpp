// SPDX-License-Identifier: Apache-2.0
// Properties of reduce that `rung check` does not cover: algebra, NaN, accuracy, reproducibility,
// the largest sizes.
#include "rung/ops/reduce/test/reduce_test.hpp"

#include <cmath>
#include <cstring>
#include <limits>

namespace rung {
namespace {

using namespace reduce_test;

TEST_P(ReduceOn, AxesOneAfterAnotherAreAllAtOnce) {
  // Integers: every order of additions gives the same sum.
  std::vector<std::int32_t> x = random_values<std::int32_t>(4 * 5 * 6 * 7, 1, 0, 50);
  const TensorRef all = tensor(x, {4, 5, 6, 7});
  std::vector<std::int64_t> once(4 * 6);
  reduce(context, all, tensor(once, {4, 6}), {.axes = {3, 1}});
  std::vector<std::int64_t> rows(4 * 5 * 6);
  std::vector<std::int64_t> twice(4 * 6);
  reduce(context, all, tensor(rows, {4, 5, 6}), {.axes = {-1}});
  reduce(context, tensor(rows, {4, 5, 6}), tensor(twice, {4, 6}), {.axes = {1}});
  EXPECT_EQ(once, twice);
  std::int64_t total = 0;
  for (const std::int32_t value : x) total += value;
  EXPECT_EQ((whole<std::int64_t>(context, x, Reduction::sum)), total);
}

TEST_P(ReduceOn, NarrowRowsOfSeveralBlocksStayWithinThem) {
  // Rows that are grouped into wider rows, in blocks with a gap between them and ungrouped rows in
  // each block.
  for (const std::int64_t rows : {5, 64, 129, 200}) {
    for (const std::int64_t columns : {1, 2, 6, 16, 33}) {
      constexpr std::int64_t blocks = 3;
      const std::int64_t pitch = (rows + 1) * columns;
      std::vector<std::int32_t> x(static_cast<std::size_t>(blocks * pitch), 1000000);
      std::vector<std::int64_t> expected(static_cast<std::size_t>(columns));
      std::vector<std::int64_t> sums(expected.size());
      for (std::int64_t i = 0; i < blocks * rows * columns; ++i) {
        const std::int64_t place = i / (rows * columns) * pitch + i % (rows * columns);
        x[static_cast<std::size_t>(place)] = static_cast<std::int32_t>(i % 101);
        expected[static_cast<std::size_t>(i % columns)] += i % 101;
      }
      const ConstTensorRef blocked(x.data(), Extents{blocks, rows, columns},
                                   Extents{pitch, columns, 1});
      reduce(context, blocked, tensor(sums, {columns}), {.axes = {0, 1}});
      EXPECT_EQ(sums, expected) << rows << " rows of " << columns;
    }
  }
}

TEST_P(ReduceOn, KeptAxesOfExtentOneChangeNothing) {
  std::vector<float> x = random_values(6 * 70 * 3);
  std::vector<float> dropped(6 * 3);
  std::vector<float> kept(6 * 3);
  const TensorRef all = tensor(x, {6, 70, 3});
  reduce(context, all, tensor(dropped, {6, 3}), {.operation = Reduction::mean, .axes = {1}});
  reduce(context, all, tensor(kept, {6, 1, 3}), {.operation = Reduction::mean, .axes = {1}});
  EXPECT_EQ(dropped, kept);
}

TEST_P(ReduceOn, TransposedInputGivesTheSameExtremes) {
  std::vector<float> x = random_values(37 * 53);
  std::vector<std::int64_t> rows(37);
  std::vector<std::int64_t> columns(37);
  reduce(context, tensor(x, {37, 53}), tensor(rows, {37}),
         {.operation = Reduction::argmin, .axes = {1}});
  const ConstTensorRef turned(x.data(), DType::f32, Extents{53, 37}, Extents{1, 53});
  reduce(context, turned, tensor(columns, {37}), {.operation = Reduction::argmin, .axes = {0}});
  EXPECT_EQ(rows, columns);
}

TEST_P(ReduceOn, NanWinsWhereverItStands) {
  for (const std::int64_t n : {1, 7, 33, 200, 5000, 16001}) {
    for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
      for (const float sign : {1.0F, -1.0F}) {
        std::vector<float> x = random_values(n);
        x[0] = infinity;
        x[static_cast<std::size_t>(n - 1)] = -infinity;
        x[static_cast<std::size_t>(at)] = std::copysign(nan, sign);
        EXPECT_TRUE(std::isnan(whole<float>(context, x, Reduction::min))) << n << ' ' << at;
        EXPECT_TRUE(std::isnan(whole<float>(context, x, Reduction::max))) << n << ' ' << at;
        EXPECT_EQ((whole<std::int64_t>(context, x, Reduction::argmin)), at) << n;
        EXPECT_EQ((whole<std::int64_t>(context, x, Reduction::argmax)), at) << n;
      }
    }
  }
}

TEST_P(ReduceOn, InfinitiesThatCancelAreNoNanForExtremes) {
  // The sum, which an implementation might test for NaN, is NaN here without any NaN element.
  std::vector<float> x = random_values(3000);
  x[10] = infinity;
  x[1000] = -infinity;
  EXPECT_EQ((whole<float>(context, x, Reduction::max)), infinity);
  EXPECT_EQ((whole<float>(context, x, Reduction::min)), -infinity);
  EXPECT_EQ((whole<std::int64_t>(context, x, Reduction::argmax)), 10);
  EXPECT_EQ((whole<std::int64_t>(context, x, Reduction::argmin)), 1000);
}

TEST_P(ReduceOn, TheFirstOfEqualElementsIsFound) {
  for (const std::int64_t n : {5, 64, 1000, 20000}) {
    std::vector<float> x(static_cast<std::size_t>(n), 1.0F);
    EXPECT_EQ((whole<std::int64_t>(context, x, Reduction::argmax)), 0) << n;
    x[static_cast<std::size_t>(n / 3)] = x[static_cast<std::size_t>(n / 2)] = 2.0F;
    EXPECT_EQ((whole<std::int64_t>(context, x, Reduction::argmax)), n / 3) << n;
    std::vector<float> infinite(static_cast<std::size_t>(n), infinity);
    EXPECT_EQ((whole<std::int64_t>(context, infinite, Reduction::argmin)), 0) << n;
  }
}

TEST_P(ReduceOn, SumsKeepTheirBoundWhereOneRowOfAdditionsFails) {
  // 0.1 a hundred thousand times: a single f32 accumulator has a relative error of 1e-4.
  std::vector<float> x(100000, 0.1F);
  const double exact = 100000 * static_cast<double>(0.1F);
  const double bound = 80 * 0x1p-24 * exact + 0x1p-24 * exact;
  EXPECT_NEAR((whole<float>(context, x, Reduction::sum)), exact, bound);
  std::vector<double> tiny(30001, 1e-16);
  tiny[0] = 1;
  EXPECT_NEAR((whole<double>(context, tiny, Reduction::sum)), 1 + 30000e-16, 80 * 0x1p-53);
}

TEST_P(ReduceOn, NormsNeitherOverflowNorVanish) {
  for (const float size : {1e30F, 1e-30F, 3e-39F}) {
    std::vector<float> x(40 * 50, size);
    const float row = size * std::sqrt(50.0F);
    const float column = size * std::sqrt(40.0F);
    std::vector<float> rows(40);
    std::vector<float> columns(50);
    reduce(context, tensor(x, {40, 50}), tensor(rows, {40}),
           {.operation = Reduction::norm, .axes = {1}});
    reduce(context, tensor(x, {40, 50}), tensor(columns, {50}),
           {.operation = Reduction::norm, .axes = {0}});
    EXPECT_NEAR(rows[7] / row, 1, 1e-6) << size;
    EXPECT_NEAR(columns[7] / column, 1, 1e-6) << size;
  }
}

TEST_P(ReduceOn, IntegersWrapToTheResultsBits) {
  std::vector<std::int32_t> x = {std::numeric_limits<std::int32_t>::max(), 1};
  EXPECT_EQ((whole<std::int32_t>(context, x, Reduction::sum)),
            std::numeric_limits<std::int32_t>::lowest());
  EXPECT_EQ((whole<std::int64_t>(context, x, Reduction::sum)), std::int64_t{1} << 31);
  std::vector<std::uint8_t> bytes(300, 255);
  EXPECT_EQ((whole<std::uint8_t>(context, bytes, Reduction::sum)), (300 * 255) % 256);
  EXPECT_EQ((whole<std::int64_t>(context, bytes, Reduction::sum)), 300 * 255);
  EXPECT_EQ((whole<std::uint8_t>(context, bytes, Reduction::min)), 255);
  EXPECT_EQ((whole<double>(context, bytes, Reduction::mean)), 255);
}

TEST_P(ReduceOn, NothingGivesTheIdentity) {
  std::vector<float> x(1);
  float y = 7;
  const TensorRef none(x.data(), DType::f32, Extents{0});
  const TensorRef result(&y, DType::f32, Extents{});
  reduce(context, none, result, {.operation = Reduction::sum});
  EXPECT_EQ(y, 0);
  reduce(context, none, result, {.operation = Reduction::product});
  EXPECT_EQ(y, 1);
  reduce(context, none, result, {.operation = Reduction::norm});
  EXPECT_EQ(y, 0);
  // No results: no error, and nothing is written.
  reduce(context, TensorRef(x.data(), DType::f32, Extents{0, 5}),
         TensorRef(&y, DType::f32, Extents{0}), {.operation = Reduction::max, .axes = {1}});
}

TEST_P(ReduceOn, EmptySegmentsGiveWhatTheContractSays) {
  std::vector<float> x = {3, 1, 2};
  std::vector<std::int32_t> offsets = {0, 0, 2, 3, 3};
  const auto of = [&](Reduction operation) {
    std::vector<float> y(4, -7);
    reduce(context, tensor(x, {3}), tensor(y, {4}),
           {.operation = operation, .offsets = tensor(offsets, {5})});
    return y;
  };
  EXPECT_EQ(of(Reduction::sum), (std::vector<float>{0, 4, 2, 0}));
  EXPECT_EQ(of(Reduction::product), (std::vector<float>{1, 3, 2, 1}));
  EXPECT_EQ(of(Reduction::min), (std::vector<float>{infinity, 1, 2, infinity}));
  EXPECT_EQ(of(Reduction::max), (std::vector<float>{-infinity, 3, 2, -infinity}));
  const std::vector<float> means = of(Reduction::mean);
  EXPECT_TRUE(std::isnan(means[0]));
  EXPECT_EQ(means[1], 2);
  std::vector<std::int64_t> positions(4);
  reduce(context, tensor(x, {3}), tensor(positions, {4}),
         {.operation = Reduction::argmax, .offsets = tensor(offsets, {5})});
  EXPECT_EQ(positions, (std::vector<std::int64_t>{-1, 0, 0, -1}));
  std::vector<std::uint8_t> bytes = {3, 1, 2};
  std::vector<std::uint8_t> least(4);
  reduce(context, tensor(bytes, {3}), tensor(least, {4}),
         {.operation = Reduction::min, .offsets = tensor(offsets, {5})});
  EXPECT_EQ(least, (std::vector<std::uint8_t>{255, 1, 2, 255}));
}

TEST_P(ReduceOn, RepeatedCallsFindTheirTicketsAndWorkspaceAgain) {
  // Blocks that share results count tickets; the counter must be 0 again for the next reduction, of
  // any shape.
  std::vector<float> x = random_values(60000);
  const float first = whole<float>(context, x, Reduction::sum);
  std::vector<float> columns(100);
  reduce(context, tensor(x, {600, 100}), tensor(columns, {100}), {.axes = {0}});
  const std::vector<float> before = columns;
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ((whole<float>(context, x, Reduction::sum)), first);
    reduce(context, tensor(x, {600, 100}), tensor(columns, {100}), {.axes = {0}});
    EXPECT_EQ(columns, before);
  }
  const std::size_t capacity = context.workspace_capacity();
  EXPECT_EQ((whole<float>(context, x, Reduction::sum)), first);
  EXPECT_EQ(context.workspace_capacity(), capacity);
}

INSTANTIATE_TEST_SUITE_P(Backends, ReduceOn, backends, name_of_backend);

TEST(ReduceCpu, SameBitsForAnyNumberOfThreads) {
  struct Case {
    Extents shape;
    Extents axes;
    Extents result;
  };
  const Case cases[] = {{{700001}, {}, {}},       {{3, 200003}, {1}, {3}},
                        {{300, 900}, {1}, {300}}, {{4000, 150}, {0}, {150}},
                        {{90000, 3}, {0}, {3}},   {{50, 70, 90}, {0, 2}, {70}}};
  for (const Case& one : cases) {
    std::vector<float> x = random_values(one.shape.product());
    for (const Reduction operation : {Reduction::sum, Reduction::norm, Reduction::product}) {
      std::vector<float> expected;
      for (const int threads : {1, 2, 3, 5, 8}) {
        Context context = Context::cpu(threads);
        std::vector<float> y(static_cast<std::size_t>(one.result.product()), -1);
        reduce(context, tensor(x, one.shape), tensor(y, one.result),
               {.operation = operation, .axes = one.axes});
        if (threads == 1) expected = y;
        EXPECT_EQ(std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)), 0)
            << to_string(one.shape) << ' ' << to_string(operation) << ' ' << threads;
      }
    }
  }
}

/// Checks a row larger than any cache, which has kernels of its own.
template <class T>
void expect_long_row_right() {
  const std::int64_t n = (std::int64_t{20} << 20) / static_cast<std::int64_t>(sizeof(T)) + 4321;
  std::vector<T> x(static_cast<std::size_t>(n));
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    x[static_cast<std::size_t>(i)] = static_cast<T>(i * 7919 % 10007 - 5000);
    sum += static_cast<double>(x[static_cast<std::size_t>(i)]);
  }
  Context context = Context::cpu(2);
  EXPECT_NEAR((whole<T>(context, x, Reduction::sum)), sum, std::abs(sum) * 1e-6);
  EXPECT_EQ((whole<T>(context, x, Reduction::min)), T{-5000});
  EXPECT_EQ((whole<T>(context, x, Reduction::max)), T{5006});
  if constexpr (std::is_floating_point_v<T>) {
    for (const std::int64_t at : {std::int64_t{0}, std::int64_t{200001}, n - 2000, n - 1}) {
      const T before = x[static_cast<std::size_t>(at)];
      x[static_cast<std::size_t>(at)] = std::numeric_limits<T>::quiet_NaN();
      EXPECT_TRUE(std::isnan(whole<T>(context, x, Reduction::min))) << at;
      EXPECT_TRUE(std::isnan(whole<T>(context, x, Reduction::max))) << at;
      EXPECT_EQ((whole<std::int64_t>(context, x, Reduction::argmax)), at);
      x[static_cast<std::size_t>(at)] = before;
    }
    // A NaN in one call does not affect the next.
    EXPECT_EQ((whole<T>(context, x, Reduction::max)), T{5006});
    x[3] = -std::numeric_limits<T>::infinity();
    x[static_cast<std::size_t>(n / 2)] = std::numeric_limits<T>::infinity();
    EXPECT_EQ((whole<T>(context, x, Reduction::min)), x[3]);
    EXPECT_EQ((whole<T>(context, x, Reduction::max)), -x[3]);
  }
}

/// Checks squares that overflow f32 in the tail of a row after whole vector steps, followed by NaN.
TEST(ReduceCpu, NormsOfLongRowsReadNothingBehindThem) {
  Context context = Context::cpu(1);
  for (std::int64_t n = 11648; n < 11648 + 128; ++n) {
    std::vector<float> x(static_cast<std::size_t>(n + 256),
                         std::numeric_limits<float>::quiet_NaN());
    std::fill_n(x.begin(), n, 0.0F);
    double squares = 0;
    for (std::int64_t i = n - 3; i < n; ++i) {
      x[static_cast<std::size_t>(i)] = static_cast<float>(i) * 1e20F;
      squares += std::pow(static_cast<double>(x[static_cast<std::size_t>(i)]), 2);
    }
    float y = -1;
    reduce(context, ConstTensorRef(x.data(), DType::f32, Extents{n}), TensorRef(&y, Extents{}),
           {.operation = Reduction::norm});
    EXPECT_NEAR(y, std::sqrt(squares), 3e-6 * std::sqrt(squares)) << n;
  }
}

/// Checks equal elements, whose sequential sum is always rounded in the same direction.
TEST(ReduceCpu, NormsDownColumnsKeepTheirBound) {
  Context context = Context::cpu(1);
  constexpr std::int64_t columns = 37;
  for (const std::int64_t rows : {7, 255, 490, 512, 5000}) {
    for (const double value : {0.7, 1.0 / 3, 0.668}) {
      const std::vector<double> x(static_cast<std::size_t>(rows * columns), value);
      std::vector<double> y(columns);
      reduce(context, ConstTensorRef(x, {rows, columns}), TensorRef(y, {columns}),
             {.operation = Reduction::norm, .axes = {0}});
      const auto exact = static_cast<double>(std::sqrt(static_cast<long double>(rows)) * value);
      for (const double one : y) EXPECT_NEAR(one, exact, 43 * 0x1p-53 * exact) << rows;
    }
  }
}

TEST(ReduceCpu, LongRowsAreRight) {
  expect_long_row_right<float>();
  expect_long_row_right<double>();
  expect_long_row_right<std::int32_t>();
}

TEST(ReduceCpu, MoreThan32BitsOfElements) {
  // 2 GiB of zeros except for three bytes.
  const std::int64_t n = (std::int64_t{1} << 31) + 9;
  const Reservation reserved(n);
  auto* x = reserved.data<std::uint8_t>();
  if (x == nullptr) GTEST_SKIP() << "no address space";
  x[0] = 200;
  x[n / 2] = 100;
  x[n - 1] = 201;
  Context context = Context::cpu();
  std::int64_t y = 0;
  const ConstTensorRef all(x, DType::u8, Extents{n});
  reduce(context, all, TensorRef(&y, DType::i64, Extents{}));
  EXPECT_EQ(y, 501);
  reduce(context, all, TensorRef(&y, DType::i64, Extents{}), {.operation = Reduction::argmax});
  EXPECT_EQ(y, n - 1);
  std::int32_t narrow = 0;
  const std::string text = message_of([&] {
    reduce(context, all, TensorRef(&narrow, DType::i32, Extents{}),
           {.operation = Reduction::argmax});
  });
  expect_text(text, "i64");
}

}  // namespace
}  // namespace rung
