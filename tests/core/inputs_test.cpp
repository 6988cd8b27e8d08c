// SPDX-License-Identifier: Apache-2.0
// Inputs: the promised layouts and values, and the same numbers in every layout.
#include "rung/harness/inputs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "expect_error.hpp"
#include "fake_device.hpp"
#include "input_numbers.hpp"

namespace rung {
namespace {

using test::expect_error;
using test::gpu;
using test::layouts;
using test::numbers;

constexpr DType dtypes[] = {DType::f32,  DType::f64,  DType::f16, DType::bf16,
                            DType::e4m3, DType::e5m2, DType::i8,  DType::u8,
                            DType::i32,  DType::i64,  DType::u16};

std::vector<double> made(Variant variant, DType dtype, const Extents& shape, std::uint64_t seed = 1,
                         const char* name = "x", double scale = 1.0, Device device = {}) {
  Inputs inputs(variant, seed, device);
  inputs.input(name, dtype, shape, scale);
  return numbers(inputs, 0);
}

/// Returns the number of bytes that Linux could give this process now.
std::int64_t free_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    std::int64_t kibibytes = 0;
    if (word == "MemAvailable:" && file >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

TEST(Inputs, ThatAreOnlyLookedAtTakeNoMemoryAndMustFitTogether) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer's shadow of so much is touched";
#endif
  const std::int64_t available = free_memory();
  if (available == 0) GTEST_SKIP() << "not told here";
  Inputs inputs({}, 1, {}, Filling::none);
  const Extents max_of_it{available / 5 * 3};
  EXPECT_EQ(inputs.input("x", DType::u8, max_of_it).shape, max_of_it);
  EXPECT_GT(free_memory(), available / 2);
  expect_error(ErrorCode::out_of_memory, {"tensor 'y'", "GiB are available"},
               [&] { inputs.output("y", DType::u8, max_of_it); });
}

TEST(Inputs, ValuesDependOnSeedNameAndIndexAlone) {
  for (const DType dtype : dtypes) {
    for (const Values values : {Values::normal, Values::integers, Values::adversarial}) {
      const Extents shape{3, 5, 7};
      const std::vector<double> plain = made({Layout::plain, values}, dtype, shape);
      for (const Layout layout : layouts) {
        for (const Device device : {Device{}, gpu}) {
          std::vector<double> other = made({layout, values}, dtype, shape, 1, "x", 1.0, device);
          if (layout == Layout::broadcast) {
            for (std::size_t i = 0; i < other.size(); ++i) ASSERT_EQ(other[i], plain[i % 35]);
          } else {
            ASSERT_EQ(other, plain) << to_string(Variant{layout, values});
          }
        }
      }
      EXPECT_NE(made({Layout::plain, values}, dtype, shape, 2), plain);
      EXPECT_NE(made({Layout::plain, values}, dtype, shape, 1, "y"), plain);
      // A vector and a matrix of the same name begin with the same values: these depend on the
      // index.
      const std::vector<double> vector = made({Layout::plain, values}, dtype, {11});
      EXPECT_TRUE(std::equal(vector.begin(), vector.end(), plain.begin()));
    }
  }
}

TEST(Inputs, LayoutsAreAsPromised) {
  const Extents shape{2, 3, 4};
  const auto input = [&](Layout layout, Inputs& inputs) {
    inputs = Inputs({layout});
    return inputs.input("x", DType::f32, shape);
  };
  Inputs inputs;
  ConstTensorRef x = input(Layout::plain, inputs);
  EXPECT_EQ(x.strides, (Extents{12, 4, 1}));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.data) % 64, 0u);
  x = input(Layout::misaligned, inputs);
  EXPECT_EQ(x.strides, (Extents{12, 4, 1}));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.data) % 64, 4u);
  x = input(Layout::padded, inputs);
  EXPECT_EQ(x.strides, (Extents{27, 9, 1}));
  x = input(Layout::strided, inputs);
  EXPECT_EQ(x.strides, (Extents{24, 8, 2}));
  x = input(Layout::transposed, inputs);
  EXPECT_EQ(x.strides, (Extents{12, 1, 3}));
  x = input(Layout::broadcast, inputs);
  EXPECT_EQ(x.strides, (Extents{0, 4, 1}));
  EXPECT_EQ(inputs.output("y", DType::f32, shape).strides, (Extents{12, 4, 1}));
  EXPECT_EQ(inputs.in_out("z", DType::f32, shape).strides, (Extents{12, 4, 1}));
  EXPECT_EQ(x.shape, shape);
}

TEST(Inputs, EntriesKeepTheirOrderAndRoles) {
  Inputs inputs;
  inputs.input("a", DType::f32, {2});
  inputs.output("b", DType::f64, {3});
  inputs.in_out("c", DType::i8, {4});
  ASSERT_EQ(inputs.entries().size(), 3u);
  const auto& [a, b, c] = std::tie(inputs.entries()[0], inputs.entries()[1], inputs.entries()[2]);
  EXPECT_TRUE(a.read && !a.written && a.name == "a");
  EXPECT_TRUE(!b.read && b.written && b.tensor.dtype == DType::f64);
  EXPECT_TRUE(c.read && c.written && c.tensor.shape == Extents{4});
  const void* data = c.tensor.data;
  const Inputs moved = std::move(inputs);
  EXPECT_EQ(moved.entries()[2].tensor.data, data);
  EXPECT_EQ(moved.damage(), "");
}

TEST(Inputs, NormalValuesAreNormal) {
  const std::vector<double> values = made({}, DType::f32, {1000, 1000});
  double sum = 0, squares = 0, fourth = 0, neighbors = 0;
  std::int64_t within_one = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = values[i];
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    within_one += std::fabs(x) < 1 ? 1 : 0;
    if (i > 0) neighbors += x * values[i - 1];
  }
  const auto count = static_cast<double>(values.size());
  // The tolerances are four standard errors of each statistic.
  EXPECT_NEAR(sum / count, 0, 0.004);
  EXPECT_NEAR(squares / count, 1, 0.006);
  EXPECT_NEAR(fourth / count, 3, 0.04);
  EXPECT_NEAR(static_cast<double>(within_one) / count, 0.682689, 0.002);
  EXPECT_NEAR(neighbors / count, 0, 0.004);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  EXPECT_GT(*most, 4.0);
  EXPECT_LT(*least, -4.0);
  EXPECT_LT(*most, 4.4);
}

TEST(Inputs, DoublesUseTheirWholeSignificand) {
  int short_ones = 0;
  for (const double x : made({}, DType::f64, {1000})) {
    short_ones += static_cast<double>(static_cast<float>(x)) == x ? 1 : 0;
  }
  EXPECT_LT(short_ones, 10);
}

TEST(Inputs, ScaleMultipliesFloatingValues) {
  const std::vector<double> plain = made({}, DType::f32, {100});
  const std::vector<double> scaled = made({}, DType::f32, {100}, 1, "x", 0.25);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(scaled[i], plain[i] * 0.25);
  const Variant integers{Layout::plain, Values::integers};
  EXPECT_EQ(made(integers, DType::f32, {100}, 1, "x", 0.25), made(integers, DType::f32, {100}));
}

TEST(Inputs, IntegersAreSmallAndWhole) {
  for (const DType dtype : dtypes) {
    std::set<double> seen;
    for (const double x : made({Layout::plain, Values::integers}, dtype, {1000})) seen.insert(x);
    const double low = dtype == DType::u8 || dtype == DType::u16 ? 0 : -4;
    EXPECT_EQ(seen.size(), 9u) << to_string(dtype);
    EXPECT_EQ(*seen.begin(), low);
    EXPECT_EQ(*seen.rbegin(), low + 8);
  }
}

TEST(Inputs, AdversarialFloatsAreWildButFinite) {
  const struct {
    DType dtype;
    double min_normal;
    double largest;
  } formats[] = {{DType::f32, 0x1p-126, 0x1.fffffep127},
                 {DType::f64, 0x1p-1022, 0x1p1023},
                 {DType::f16, 0x1p-14, 65504},
                 {DType::bf16, 0x1p-126, 0x1.fep127},
                 {DType::e4m3, 0x1p-6, 448},
                 {DType::e5m2, 0x1p-14, 57344}};
  for (const auto& [dtype, min_normal, largest] : formats) {
    SCOPED_TRACE(to_string(dtype));
    const std::vector<double> values = made({Layout::plain, Values::adversarial}, dtype, {20000});
    int zeros = 0, negative_zeros = 0, subnormals = 0, pairs = 0, negatives = 0;
    double most = 0;
    std::set<int> binades;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double x = values[i];
      ASSERT_TRUE(std::isfinite(x));
      zeros += x == 0 ? 1 : 0;
      negative_zeros += x == 0 && std::signbit(x) ? 1 : 0;
      subnormals += x != 0 && std::fabs(x) < min_normal ? 1 : 0;
      negatives += x < 0 ? 1 : 0;
      if (std::fabs(x) >= min_normal) binades.insert(std::ilogb(x));
      if (i % 2 == 1) pairs += x != 0 && x == -values[i - 1] ? 1 : 0;
      most = std::max(most, std::fabs(x));
    }
    EXPECT_GT(zeros, 500);
    EXPECT_GT(negative_zeros, 200);
    EXPECT_LT(negative_zeros, zeros - 200);
    EXPECT_GT(subnormals, 500);
    EXPECT_GT(pairs, 2000);
    EXPECT_GT(negatives, 8000);
    EXPECT_GE(binades.size(), 8u);
    EXPECT_LT(most * most * 4096,
              dtype == DType::e4m3 || dtype == DType::e5m2 || dtype == DType::f16 ? 70000 : largest)
        << "sums of thousands of products must stay finite";
  }
}

TEST(Inputs, AdversarialIntegersReachTheirLimits) {
  const Variant variant{Layout::plain, Values::adversarial};
  const std::vector<double> i8 = made(variant, DType::i8, {2000});
  EXPECT_GT(std::count(i8.begin(), i8.end(), -128), 50);
  EXPECT_GT(std::count(i8.begin(), i8.end(), 127), 50);
  const std::vector<double> u8 = made(variant, DType::u8, {2000});
  EXPECT_GT(std::count(u8.begin(), u8.end(), 255), 50);
  for (const double x : made(variant, DType::i64, {2000})) EXPECT_LE(std::fabs(x), 0x1p20);
}

TEST(Inputs, OutputsStartAsPoison) {
  Inputs inputs;
  for (const DType dtype : dtypes) inputs.output(to_string(dtype), dtype, {4});
  for (std::size_t entry = 0; entry < inputs.entries().size(); ++entry) {
    const TensorRef& tensor = inputs.entries()[entry].tensor;
    const auto* bytes = static_cast<const unsigned char*>(tensor.data);
    if (is_floating(tensor.dtype)) {
      for (const double x : numbers(inputs, entry)) EXPECT_TRUE(std::isnan(x));
    } else {
      // Counted up, so that all elements of a short row differ.
      for (std::size_t i = 1; i < 4; ++i) {
        const unsigned char low = bytes[i * size_of(tensor.dtype)];
        EXPECT_EQ(low, static_cast<unsigned char>(bytes[0] + i)) << to_string(tensor.dtype);
      }
    }
  }
  // A signaling NaN: the first bit of the significand is 0.
  std::uint32_t word = 0;
  std::memcpy(&word, inputs.entries()[0].tensor.data, 4);
  EXPECT_EQ(word & 0x7fc00000u, 0x7f800000u);
}

TEST(Inputs, PaddingIsNaN) {
  for (const Layout layout : {Layout::padded, Layout::strided}) {
    Inputs inputs({layout});
    const ConstTensorRef x = inputs.input("x", DType::f32, {2, 3});
    const auto* data = static_cast<const float*>(x.data);
    const int gap = layout == Layout::padded ? 3 : 1;
    EXPECT_TRUE(std::isnan(data[gap]));
    EXPECT_FALSE(std::isnan(data[x.strides[0]]));
    EXPECT_TRUE(std::isnan(data[-1])) << "so is the guard";
  }
}

TEST(Inputs, ZeroSizesAndScalars) {
  for (const Layout layout : layouts) {
    for (const Device device : {Device{}, gpu}) {
      Inputs inputs({layout}, 1, device);
      for (const Extents& shape : {Extents{0}, Extents{0, 3}, Extents{3, 0}, Extents{2, 0, 2}}) {
        EXPECT_NE(inputs.input("x", DType::f32, shape).data, nullptr);
        EXPECT_NE(inputs.output("y", DType::f32, shape).data, nullptr);
      }
      inputs.input("scalar", DType::f32, {});
      inputs.in_out("one", DType::f32, {1, 1});
      inputs.input("vector", DType::f32, {3});
      EXPECT_TRUE(std::isfinite(numbers(inputs, 8)[0]));
      inputs.reset();
      EXPECT_EQ(inputs.damage(), "");
    }
  }
}

TEST(Inputs, RefusesWhatCannotBe) {
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  for (const Layout layout : layouts) {
    if (layout == Layout::broadcast) continue;  // stores only one row, which fits
    Inputs inputs({layout});
    expect_error(ErrorCode::invalid_argument, {"2^63"}, [&] {
      inputs.input("x", DType::f32, {2, huge});
    });
    expect_error(ErrorCode::invalid_argument, {"2^63"},
                 [&] { inputs.input("x", DType::f32, {huge}); });
  }
}

TEST(Variant, AreNamedAndComplete) {
  std::set<std::string> names;
  for (const Variant& variant : all_variants()) names.insert(to_string(variant));
  EXPECT_EQ(names, (std::set<std::string>{"plain", "misaligned", "padded", "strided", "transposed",
                                          "broadcast", "plain integers", "plain adversarial"}));
}

}  // namespace
}  // namespace rung
