// SPDX-License-Identifier: Apache-2.0
// smaller, larger and clamped, which replace those of <algorithm> in kernels, give the same
// results, including NaN and signed zeros.
#include "rung/core/bounds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace rung {
namespace {

/// Returns the bits, so that 0 and -0 differ and NaN equals itself.
template <class T>
bool same(T a, T b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

template <class T>
void expect_as_std(const T (&values)[6]) {
  for (const T a : values) {
    for (const T b : values) {
      EXPECT_TRUE(same(smaller(a, b), std::min(a, b))) << a << " " << b;
      EXPECT_TRUE(same(larger(a, b), std::max(a, b))) << a << " " << b;
      if (!(a <= b)) continue;
      for (const T value : values) {
        EXPECT_TRUE(same(clamped(value, a, b), std::clamp(value, a, b)))
            << value << " in " << a << " to " << b;
      }
    }
  }
}

TEST(Bounds, AreThoseOfTheStandardLibrary) {
  expect_as_std<std::int64_t>({0, -1, 7, 7, INT64_MIN, INT64_MAX});
  expect_as_std<std::uint8_t>({0, 1, 7, 7, 128, 255});
  constexpr double infinity = std::numeric_limits<double>::infinity();
  expect_as_std<double>({0.0, -0.0, 1.5, infinity, -infinity, std::nan("")});
}

TEST(Bounds, AreConstantsOfTheirArgumentsType) {
  static_assert(smaller<std::size_t>(16, 24) == 16 && larger(-1, 3) == 3);
  static_assert(clamped(9, 1, 4) == 4 && clamped(0, 1, 4) == 1 && clamped(2, 1, 4) == 2);
  static_assert(std::is_same_v<decltype(smaller(std::int64_t{1}, std::int64_t{2})), std::int64_t>);
}

}  // namespace
}  // namespace rung
