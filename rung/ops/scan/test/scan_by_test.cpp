// SPDX-License-Identifier: Apache-2.0
// scan.cuh: user-defined functors, commutative or not, on the CPU and on the simulated GPU.
#define RUNG_SIMT 1

#include "rung/ops/scan/scan.cuh"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

class ScanByOn : public OnBackend {};
INSTANTIATE_TEST_SUITE_P(Backends, ScanByOn, backends, name_of_backend);

template <class T>
View<T, 2> rows_of(std::vector<T>& values, std::int64_t rows) {
  const auto columns = static_cast<std::int64_t>(values.size()) / rows;
  return {values.data(), {rows, columns}, {columns, 1}};
}

/// The map v -> a v + b modulo 2^32: composition does not commute, and is exact.
struct Affine {
  std::uint32_t a, b;
  bool operator==(const Affine&) const = default;
};
constexpr auto compose = [](Affine f, Affine g) { return Affine{g.a * f.a, g.a * f.b + g.b}; };

std::vector<Affine> maps(std::size_t count) {
  std::vector<Affine> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto word = static_cast<std::uint32_t>(i) * 2654435761u;
    values[i] = {word | 1, word >> 7};
  }
  return values;
}

template <class T, class Combine>
std::vector<T> expected(const std::vector<T>& x, std::size_t rows, T identity, Combine combine,
                        bool exclusive) {
  std::vector<T> y(x.size());
  const std::size_t columns = x.size() / rows;
  for (std::size_t row = 0; row < rows; ++row) {
    T running = identity;
    for (std::size_t i = row * columns; i < (row + 1) * columns; ++i) {
      const T after = combine(running, x[i]);
      y[i] = exclusive ? running : after;
      running = after;
    }
  }
  return y;
}

TEST_P(ScanByOn, CompositionsOfAffineMapsKeepTheirOrder) {
  for (const std::size_t columns : {1, 2, 33, 2049, 9000, 40001}) {
    for (const bool exclusive : {false, true}) {
      auto x = maps(3 * columns);
      std::vector<Affine> y(x.size());
      scan_by<Affine>(context, rows_of(x, 3), rows_of(y, 3), Affine{1, 0}, compose, exclusive);
      EXPECT_TRUE(y == expected(x, 3, Affine{1, 0}, compose, exclusive)) << columns;
    }
  }
}

TEST_P(ScanByOn, EveryLevelOfTheTreeOfTiles) {
  // More than 1024 tiles of 2048 elements of 8 bytes, so that two carries form a chain.
  auto x = maps(2100 * 2048 + 5);
  std::vector<Affine> y(x.size());
  scan_by<Affine>(context, rows_of(x, 1), rows_of(y, 1), Affine{1, 0}, compose);
  EXPECT_TRUE(y == expected(x, 1, Affine{1, 0}, compose, false));
}

/// Last eight letters of a string, and its length: concatenation of 12-byte states, which are
/// published in two pieces.
struct Text {
  char letters[8];
  std::uint32_t length;
  bool operator==(const Text& other) const {
    return length == other.length && std::memcmp(letters, other.letters, 8) == 0;
  }
};
constexpr auto append = [](const Text& a, const Text& b) {
  Text joined{};
  joined.length = a.length + b.length;
  for (int i = 0; i < 8; ++i) {  // from the end
    const auto back = static_cast<std::uint32_t>(i);
    joined.letters[7 - i] = back < b.length        ? b.letters[7 - i]
                            : back < joined.length ? a.letters[7 - (back - b.length)]
                                                   : '\0';
  }
  return joined;
};

TEST_P(ScanByOn, StringsAppendInOrder) {
  std::vector<Text> x(5000);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = Text{};
    x[i].length = i % 3;  // empty ones too
    for (std::size_t k = 0; k < i % 3; ++k) x[i].letters[7 - k] = static_cast<char>('a' + i % 26);
  }
  std::vector<Text> y(x.size());
  scan_by<Text>(context, rows_of(x, 1), rows_of(y, 1), Text{}, append);
  EXPECT_TRUE(y == expected(x, 1, Text{}, append, false));
}

TEST_P(ScanByOn, InPlaceAndStrided) {
  auto x = maps(2 * 3000);
  std::vector<Affine> every_second(3000);
  for (std::size_t i = 0; i < every_second.size(); ++i) every_second[i] = x[2 * i];
  const View<Affine, 2> view{x.data(), {1, 3000}, {6000, 2}};
  const auto untouched = x;
  scan_by<Affine>(context, view, view, Affine{1, 0}, compose);
  const auto result = expected(every_second, 1, Affine{1, 0}, compose, false);
  for (std::size_t i = 0; i < 3000; ++i) {
    ASSERT_EQ(x[2 * i].b, result[i].b) << i;
    ASSERT_EQ(x[2 * i + 1].b, untouched[2 * i + 1].b) << i;
  }
}

TEST(ScanByErrors, NameTheShapes) {
  Context context = Context::cpu();
  auto x = maps(6);
  auto y = maps(8);
  expect_text(message_of([&] {
                scan_by<Affine>(context, rows_of(x, 2), rows_of(y, 2), Affine{1, 0}, compose);
              }),
              "x is 2x3, y 2x4");
}

TEST(ScanByCpu, SameBitsForAnyNumberOfThreads) {
  std::vector<float> x(100003);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1.0F / static_cast<float>(i % 1000 + 1);
  std::vector<float> first;
  for (const int threads : {1, 2, 3, 5}) {
    Context context = Context::cpu(threads);
    std::vector<float> y(x.size());
    scan_by<float>(context, rows_of(x, 1), rows_of(y, 1), 0.0F,
                   [](float a, float b) { return a + b; });
    if (first.empty()) first = y;
    EXPECT_EQ(std::memcmp(first.data(), y.data(), y.size() * sizeof(float)), 0) << threads;
  }
}

}  // namespace
}  // namespace rung
