// SPDX-License-Identifier: Apache-2.0
// Properties of scan that `rung check` does not cover: algebra, reproducibility across threads,
// errors.
#include "rung/ops/scan/op/scan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "rung/cpu/isa.hpp"
#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

class ScanOn : public OnBackend {};
INSTANTIATE_TEST_SUITE_P(Backends, ScanOn, backends, name_of_backend);

template <class T>
TensorRef line(std::vector<T>& values) {
  return {values.data(), dtype_of<T>, Extents{static_cast<std::int64_t>(values.size())}};
}

TEST_P(ScanOn, DifferencesUndoSums) {
  for (const std::size_t n : {1, 31, 1000, 5000, 70001}) {
    std::vector<std::int32_t> x(n);
    std::mt19937 engine(static_cast<unsigned>(n));
    for (auto& value : x) value = static_cast<std::int32_t>(engine());  // sums wrap
    std::vector<std::int32_t> y(n);
    scan(context, line(x), line(y));
    auto before = std::uint32_t{0};
    for (std::size_t i = 0; i < n; ++i) {
      const auto sum = static_cast<std::uint32_t>(y[i]);
      ASSERT_EQ(sum - before, static_cast<std::uint32_t>(x[i])) << n << " " << i;
      before = sum;
    }
  }
}

TEST_P(ScanOn, ReverseIsTheScanOfTheReversed) {
  std::vector<std::int64_t> x(6001);
  std::iota(x.begin(), x.end(), -3000);
  std::vector<std::int64_t> turned(x.rbegin(), x.rend());
  std::vector<std::int64_t> y(x.size());
  std::vector<std::int64_t> z(x.size());
  for (const bool exclusive : {false, true}) {
    scan(context, line(x), line(y), {.exclusive = exclusive, .reverse = true});
    scan(context, line(turned), line(z), {.exclusive = exclusive});
    EXPECT_TRUE(std::equal(y.begin(), y.end(), z.rbegin()));
  }
}

TEST_P(ScanOn, SegmentsInAnyOrderTwiceAndOutside) {
  std::vector<std::int32_t> x(100, 1);
  std::vector<std::int32_t> y(x.size());
  std::vector<std::int32_t> offsets{70, 10, 10, -5, 0, 100, 1000, 69};
  scan(context, line(x), line(y), {.offsets = line(offsets)});
  for (std::int32_t i = 0; i < 100; ++i) {
    const std::int32_t start = i >= 70 ? 70 : i >= 69 ? 69 : i >= 10 ? 10 : 0;
    ASSERT_EQ(y[static_cast<std::size_t>(i)], i - start + 1) << i;
  }
  scan(context, line(x), line(y), {.reverse = true, .offsets = line(offsets)});
  for (std::int32_t i = 0; i < 100; ++i) {
    const std::int32_t end = i < 10 ? 10 : i < 69 ? 69 : i < 70 ? 70 : 100;
    ASSERT_EQ(y[static_cast<std::size_t>(i)], end - i) << i;
  }
}

TEST_P(ScanOn, NanStaysToTheEndOfItsSegment) {
  std::vector<float> x{3, -infinity, 5, nan, 7, infinity, 2, 1, 9};
  std::vector<float> y(x.size());
  std::vector<std::int64_t> offsets{0, 6};
  for (const ScanOperation operation :
       {ScanOperation::sum, ScanOperation::min, ScanOperation::max, ScanOperation::product}) {
    scan(context, line(x), line(y), {.operation = operation, .offsets = line(offsets)});
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i >= 3 && i < 6) << i;
  }
  scan(context, line(x), line(y), {.operation = ScanOperation::min, .exclusive = true});
  EXPECT_EQ(y[0], infinity);
  EXPECT_EQ(y[1], 3);
  EXPECT_EQ(y[2], -infinity);
}

TEST_P(ScanOn, SecondCallIsTheSameBits) {
  auto x = random_values(150000);
  std::vector<float> first(x.size());
  std::vector<float> second(x.size());
  scan(context, line(x), line(first));
  scan(context, line(x), line(second));
  EXPECT_EQ(std::memcmp(first.data(), second.data(), x.size() * sizeof(float)), 0);
}

TEST(ScanCpu, SameBitsForAnyNumberOfThreadsAndEveryChunkedRung) {
  auto x = random_values(3000001);  // chunks of 256 KiB, for 300001 of 64 KiB; partial last ones
  for (const std::size_t n : {x.size(), std::size_t{300001}}) {
    for (const bool exclusive : {false, true}) {
      std::vector<float> first;
      for (const char* rung : {"simd", "two_pass_threads", "look_back_threads", ""}) {
        for (const int threads : {1, 2, 3, 7}) {
          Context context = Context::cpu(threads);
          std::vector<float> y(n);
          const ConstTensorRef in(x.data(), DType::f32, Extents{static_cast<std::int64_t>(n)});
          scan(context, in, line(y), {.exclusive = exclusive}, Pick{rung});
          if (first.empty()) first = y;
          ASSERT_EQ(std::memcmp(first.data(), y.data(), n * sizeof(float)), 0)
              << rung << " " << threads << " threads";
        }
      }
    }
  }
}

TEST(ScanCpu, SameBitsWhateverTheAddress) {
  Context context = Context::cpu();
  auto x = random_values(7000001);
  std::vector<float> y(x.size() + 16);
  std::vector<float> first;
  for (const std::int64_t shift : {0, 1, 5}) {
    const auto n = static_cast<std::int64_t>(x.size());
    scan(context, line(x), TensorRef(y.data() + shift, DType::f32, Extents{n}));
    std::vector<float> now(y.begin() + shift, y.begin() + shift + n);
    if (first.empty()) first = now;
    ASSERT_EQ(std::memcmp(first.data(), now.data(), now.size() * sizeof(float)), 0) << shift;
  }
}

/// Checks scan.hpp's error bound for chunked rungs: a sum of equal elements in one chain is off by
/// 1 %.
TEST(ScanCpu, ErrorStaysUnderTheBoundOfChunks) {
  constexpr double n = 1 << 22;
  constexpr double chunk = 65536;
  constexpr double block = 256;
  constexpr double links = n / chunk + 2 * (block + chunk / block);
  constexpr double unit = std::numeric_limits<float>::epsilon() / 2;
  constexpr double bound = links * unit / (1 - links * unit);
  std::vector<float> x(static_cast<std::size_t>(n), 0.1F);
  std::vector<float> y(x.size());
  for (const char* rung : {"simd", "two_pass_threads", "look_back_threads", ""}) {
    Context context = Context::cpu();
    scan(context, line(x), line(y), {}, Pick{rung});
    double worst = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double exact = static_cast<double>(x[i]) * static_cast<double>(i + 1);
      worst = std::max(worst, std::abs(static_cast<double>(y[i]) - exact) / exact);
    }
    EXPECT_LE(worst, bound) << rung << " on " << cpu::to_string(cpu::isa());
  }
}

TEST(ScanCpu, MoreThan32BitsOfElements) {
  const std::int64_t n = (std::int64_t{1} << 32) + 5;
  const Reservation reserved(n);
  auto* y = reserved.data<std::uint8_t>();
  if (y == nullptr) GTEST_SKIP() << "no address space";
  // Two elements far apart, whose distance overflows 32-bit indices.
  const TensorRef far(y, DType::u8, Extents{2, 3}, Extents{n - 3, 1});
  std::memset(y, 1, 3);
  std::memset(y + n - 3, 5, 3);
  Context context = Context::cpu();
  scan(context, far, far, {.axis = 0});
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[n - 1], 6);
}

TEST(ScanErrors, NameTheArgumentAndWhatIsAccepted) {
  Context context = Context::cpu();
  std::vector<float> x(12);
  std::vector<float> y(12);
  const TensorRef x34(x.data(), DType::f32, Extents{3, 4});
  const TensorRef y34(y.data(), DType::f32, Extents{3, 4});
  expect_text(message_of([&] { scan(context, x34, line(y)); }), "y is 12; accepted: 3x4");
  expect_text(message_of([&] { scan(context, x34, y34, {.axis = 2}); }), "axis is 2");
  expect_text(message_of([&] {
                scan(context, TensorRef(static_cast<void*>(x.data()), DType::e4m3, Extents{4}),
                     TensorRef(static_cast<void*>(y.data()), DType::e4m3, Extents{4}));
              }),
              "x is e4m3; accepted: f32");
  expect_text(
      message_of([&] {
        scan(context, TensorRef(static_cast<void*>(x.data()), DType::i32, Extents{3, 4}), y34);
      }),
      "y is f32; accepted: i32");
  expect_text(message_of([&] { scan(context, x34, y34, {.offsets = line(x)}); }),
              "offsets is f32; accepted: i32, i64");
  std::vector<std::int64_t> offsets(12);
  expect_text(
      message_of([&] {
        scan(context, x34, y34, {.offsets = TensorRef(offsets.data(), DType::i64, Extents{3, 4})});
      }),
      "offsets has 2 axes");
  expect_text(message_of([&] {
                scan(context, TensorRef(x.data(), DType::f32, Extents{}),
                     TensorRef(y.data(), DType::f32, Extents{}));
              }),
              "x is a scalar");
  expect_text(message_of([&] {
                scan(context, TensorRef(x.data(), DType::f32, Extents{8}),
                     TensorRef(x.data() + 1, DType::f32, Extents{8}));
              }),
              "y overlaps x");
  expect_text(message_of([&] {
                scan(context, x34, TensorRef(y.data(), DType::f32, Extents{3, 4}, Extents{1, 1}));
              }),
              "overlaps itself");
}

TEST(ScanErrors, AliasingIsSeenOnEveryCallNotOnlyTheFirst) {
  Context context = Context::cpu();
  std::vector<float> x(16);
  std::vector<float> y(8);
  const TensorRef in(x.data(), DType::f32, Extents{8});
  for (const bool reverse : {false, true}) {
    scan(context, in, line(y), {.reverse = reverse});
    // The layout and the alignment are cached from the previous call, but y now overlaps x.
    const TensorRef inside(x.data() + 4, DType::f32, Extents{8});
    expect_text(message_of([&] { scan(context, in, inside, {.reverse = reverse}); }), "y overlaps");
  }
}

TEST(ScanCalls, RememberedCallsSeeNewPointersReversedToo) {
  Context context = Context::cpu();
  for (const bool reverse : {false, true}) {
    for (int round = 0; round < 3; ++round) {
      std::vector<std::int32_t> x(100, round + 1);
      std::vector<std::int32_t> y(100);
      scan(context, line(x), line(y), {.reverse = reverse});
      EXPECT_EQ(reverse ? y.front() : y.back(), 100 * (round + 1));
      EXPECT_EQ(reverse ? y.back() : y.front(), round + 1);
    }
  }
}

}  // namespace
}  // namespace rung
