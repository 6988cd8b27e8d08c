// SPDX-License-Identifier: Apache-2.0
// wmma's products as vectors: each sum equals that of products added in sequence with rounding at
// each step, for every shape and type, on any processor.
#include "rung/simt/fragment_product.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "rung/core/dtype.hpp"
#include "rung/simt/matrix.hpp"

namespace rung::simt {
namespace {

/// A matrix as a warp holds it: element 32 i + lane is element i of the lane.
template <class T>
class Spread {
 public:
  explicit Spread(const std::vector<T>& elements) : each_(elements.size() / warp_lanes) {
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
      for (std::size_t i = 0; i < each_; ++i) parts_.push_back(elements[warp_lanes * i + lane]);
    }
  }
  T* of(std::size_t lane) { return &parts_[lane * each_]; }
  T at(std::size_t element) const {
    return parts_[element % warp_lanes * each_ + element / warp_lanes];
  }

 private:
  std::size_t each_;
  std::vector<T> parts_;
};

template <class T>
std::vector<T> random_elements(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> elements(static_cast<std::size_t>(count));
  for (T& one : elements) {
    if constexpr (std::is_integral_v<T>) {
      one = static_cast<T>(random());
    } else {
      // Values of many magnitudes, so that an addition out of order is visible; doubles with all
      // their bits, so that an unrounded product is visible.
      using Drawn = std::conditional_t<std::is_same_v<T, double>, double, float>;
      const auto magnitude = static_cast<Drawn>(1 << random() % 12);
      one = static_cast<T>(std::uniform_real_distribution<Drawn>(-1, 1)(random) * magnitude);
    }
  }
  return elements;
}

/// Returns the value of a stored element as a product uses it.
template <class Number, class T>
Number seen(FragmentType type, T x) {
  if (type != FragmentType::tf32) return static_cast<Number>(x);
  return static_cast<Number>(truncate_to_tf32(static_cast<float>(x)));
}

template <class T, class Sum, class Number = Sum, class U = T>
void compare(FragmentType left, FragmentType right, int m, int n, int k) {
  const auto a = random_elements<T>(m * k, 1);
  const auto b = random_elements<U>(k * n, 2);
  const auto c = random_elements<Sum>(m * n, 3);
  Spread<T> parts_a(a);
  Spread<U> parts_b(b);
  Spread<Sum> parts_c(c);
  std::array<FragmentProduct, warp_lanes> products;
  std::array<void*, warp_lanes> lanes;
  for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
    products[lane] = {parts_c.of(lane), parts_a.of(lane), parts_b.of(lane), parts_c.of(lane)};
    lanes[lane] = &products[lane];
  }
  multiply_fragments(lanes.data(), {m, n, k, left, right});
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      const auto at = static_cast<std::size_t>(row * n + column);
      volatile Number sum = static_cast<Number>(c[at]);
      for (int p = 0; p < k; ++p) {
        volatile Number product = seen<Number>(left, a[static_cast<std::size_t>(row * k + p)]) *
                                  seen<Number>(right, b[static_cast<std::size_t>(p * n + column)]);
        sum = sum + product;
      }
      const auto expected = static_cast<Sum>(Number{sum});
      const Sum got = parts_c.at(at);
      ASSERT_EQ(std::memcmp(&expected, &got, sizeof(Sum)), 0)
          << m << " x " << n << " x " << k << ", row " << row << ", column " << column;
    }
  }
}

struct Shape {
  int m, n;
};
constexpr Shape shapes[] = {{16, 16}, {32, 8}, {8, 32}};

TEST(FragmentProduct, SmallFloatsAreSummedInOrder) {
  for (const Shape& shape : shapes) {
    compare<f16, float>(FragmentType::f16, FragmentType::f16, shape.m, shape.n, 16);
    compare<bf16, float>(FragmentType::bf16, FragmentType::bf16, shape.m, shape.n, 16);
  }
}

TEST(FragmentProduct, FloatsLoseBitsAndDoublesDoNot) {
  compare<float, float>(FragmentType::tf32, FragmentType::tf32, 16, 16, 8);
  compare<double, double>(FragmentType::f64, FragmentType::f64, 8, 8, 4);
}

TEST(FragmentProduct, BytesHaveSignsOfTheirOwn) {
  for (const Shape& shape : shapes) {
    compare<signed char, int, unsigned>(FragmentType::s8, FragmentType::s8, shape.m, shape.n, 16);
    compare<unsigned char, int, unsigned>(FragmentType::u8, FragmentType::u8, shape.m, shape.n, 16);
    compare<signed char, int, unsigned, unsigned char>(FragmentType::s8, FragmentType::u8, shape.m,
                                                       shape.n, 16);
  }
}

}  // namespace
}  // namespace rung::simt
