// SPDX-License-Identifier: Apache-2.0
// Properties of histogram that `rung check` does not cover: algebra, memory, threads, edges.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "rung/core/rounding.hpp"
#include "rung/ops/histogram/op/histogram.hpp"
#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

using Counts = std::vector<std::int64_t>;

template <class T>
ConstTensorRef vector_of(const std::vector<T>& values) {
  return {values.data(), dtype_of<T>, Extents{static_cast<std::int64_t>(values.size())}};
}

Counts histogram_of(Context& context, const ConstTensorRef& x, std::int64_t bins,
                    const HistogramOptions& options = {}, Pick pick = best) {
  Counts counts(static_cast<std::size_t>(bins), -1);
  histogram(context, x, TensorRef(counts.data(), DType::i64, Extents{bins}), options, pick);
  return counts;
}

class HistogramOn : public OnBackend {};
INSTANTIATE_TEST_SUITE_P(Backends, HistogramOn, backends, name_of_backend);

TEST_P(HistogramOn, BinsAreAsWritten) {
  const std::vector<float> x = {-1.0F, -0.0F, 0.0F,  0.24F, 0.25F,    0.5F,
                                0.99F, 1.0F,  1.01F, NAN,   INFINITY, -INFINITY};
  EXPECT_EQ(histogram_of(context, vector_of(x), 4, {.low = 0, .high = 1}), (Counts{3, 1, 1, 2}));
  // The same bins as edges, as integers, and as a range whose bins hold 3, 3 and 4 integers.
  const std::vector<float> edges = {0.0F, 0.25F, 0.5F, 0.75F, 1.0F};
  EXPECT_EQ(histogram_of(context, vector_of(x), 4, {.edges = vector_of(edges)}),
            (Counts{3, 1, 1, 2}));
  std::vector<std::int32_t> whole(12);
  std::iota(whole.begin(), whole.end(), -1);
  EXPECT_EQ(histogram_of(context, vector_of(whole), 10), Counts(10, 1));
  EXPECT_EQ(histogram_of(context, vector_of(whole), 3, {.low = 0, .high = 10}), (Counts{4, 3, 3}));
}

TEST_P(HistogramOn, EqualEdgesMakeEmptyBins) {
  const std::vector<std::uint8_t> x = {0, 1, 2, 2, 3, 5, 6};
  const std::vector<std::int64_t> edges = {1, 2, 2, 2, 5, 5};
  EXPECT_EQ(histogram_of(context, vector_of(x), 5, {.edges = vector_of(edges)}),
            (Counts{1, 0, 0, 3, 1}));
}

TEST_P(HistogramOn, OrderAndPartsDoNotMatter) {
  std::vector<float> x = random_values(5001, 1);
  const HistogramOptions options{.low = -2, .high = 3};
  const Counts whole = histogram_of(context, vector_of(x), 77, options);
  const auto inside =
      std::count_if(x.begin(), x.end(), [](float v) { return v >= -2.0F && v <= 3.0F; });
  EXPECT_EQ(std::accumulate(whole.begin(), whole.end(), std::int64_t{0}), inside);

  std::shuffle(x.begin(), x.end(), std::mt19937(7));
  EXPECT_EQ(histogram_of(context, vector_of(x), 77, options), whole);

  Counts counts(77, 0);
  HistogramOptions adding = options;
  adding.accumulate = true;
  for (const auto& [begin, end] : {std::pair{0, 1234}, {1234, 1234}, {1234, 5001}}) {
    histogram(context, ConstTensorRef(x.data() + begin, DType::f32, Extents{end - begin}),
              TensorRef(counts.data(), DType::i64, Extents{77}), adding);
  }
  EXPECT_EQ(counts, whole);
}

TEST_P(HistogramOn, StridesAreWalkedInAnyDirection) {
  const std::vector<float> x = random_values(6 * 70 * 5, 2);
  const HistogramOptions options{.low = -3, .high = 3};
  const Counts plain = histogram_of(context, vector_of(x), 20, options);
  const float* const data = x.data();
  const float* const end = data + x.size() - 1;
  const ConstTensorRef transposed(data, DType::f32, {5, 70, 6}, {1, 5, 350});
  const ConstTensorRef backwards(end, DType::f32, {6, 70, 5}, {-350, -5, -1});
  const ConstTensorRef mixed(data + 350 * 5, DType::f32, {6, 5, 70}, {-350, 1, 5});
  for (const ConstTensorRef& view : {transposed, backwards, mixed}) {
    EXPECT_EQ(histogram_of(context, view, 20, options), plain);
  }
  // An axis of stride 0 counts each element as often as its extent.
  Counts thrice =
      histogram_of(context, ConstTensorRef(data, DType::f32, {70, 3, 30}, {30, 0, 1}), 20, options);
  for (std::int64_t& count : thrice) {
    EXPECT_EQ(count % 3, 0);
    count /= 3;
  }
  EXPECT_EQ(thrice, plain);
  // No axes: one element.
  EXPECT_EQ(histogram_of(context, ConstTensorRef(data, DType::f32, Extents{}), 1,
                         {.low = -100, .high = 100}),
            Counts{1});
}

TEST_P(HistogramOn, EveryRungAgreesAtTheEdgesOfBins) {
  // Rounding decides at each edge and its neighbors, for widths that are not binary fractions.
  constexpr std::int64_t bins = 1000;
  const HistogramOptions options{.low = -0.3, .high = 0.7};
  std::vector<float> x;
  for (std::int64_t b = 0; b <= bins; ++b) {
    const auto edge = static_cast<float>(-0.3 + static_cast<double>(b) / bins);
    x.push_back(std::nextafter(edge, -1.0F));
    x.push_back(edge);
    x.push_back(std::nextafter(edge, 1.0F));
  }
  const auto low = static_cast<float>(nearest_f32(options.low));
  const auto high = static_cast<float>(nearest_f32(options.high));
  const auto scale = static_cast<float>(bins / (nearest_f32(high) - nearest_f32(low)));
  Counts expected(bins, 0);
  for (const float value : x) {
    if (value < low || value > high) continue;
    const volatile float difference = value - low;
    const volatile float place = difference * scale;
    ++expected[static_cast<std::size_t>(std::min<std::int64_t>(bins - 1, place))];
  }
  int asked = 0;
  const Histogram::Args args =
      bind<Histogram>({.x = vector_of(x),
                       .counts = {expected.data(), DType::i64, Extents{bins}},
                       .low = options.low,
                       .high = options.high});
  for (const Rung<Histogram>* rung = Histogram::rungs().first; rung != nullptr; rung = rung->next) {
    if (rung->info.backend != GetParam() || rung->info.peer || !rung->supports(args, context)) {
      continue;
    }
    ++asked;
    EXPECT_EQ(histogram_of(context, vector_of(x), bins, options, Pick{rung->info.name}), expected)
        << rung->info.name;
  }
  EXPECT_GE(asked, 3);
}

/// Checks cells of the guide that overflow, underflow, hold all edges or none; edges that do not
/// ascend have no correct answer, but must not access memory out of bounds.
TEST(HistogramSimt, GuidedEdgesFindTheBinsOfASearch) {
  constexpr float largest = std::numeric_limits<float>::max();
  constexpr float smallest = std::numeric_limits<float>::denorm_min();
  std::vector<std::vector<float>> all = {
      {-INFINITY, -1, 0, 0, 2, INFINITY},
      {-largest, -1, 0, 1, largest},
      {0, smallest, 3 * smallest, 4 * smallest},
      {1, 1, 1},
      {0, 1e-30F, 1e-20F, 1e-10F, 1, 1e10F, 1e30F},
      {-3, -2.5F, 100, 100.00001F, 100.00002F, 100.00003F, 101},
  };
  std::vector<float> crowded;  // all edges in the last cell
  crowded.reserve(300);
  for (int i = 0; i < 300; ++i) crowded.push_back(i == 0 ? -1e6F : 1 + static_cast<float>(i) / 256);
  all.push_back(crowded);
  Context context = Context::simt();
  for (const std::vector<float>& edges : all) {
    std::vector<float> x = random_values(400, 3);
    for (const float edge : edges) {
      x.insert(x.end(), {edge, std::nextafter(edge, -INFINITY), std::nextafter(edge, INFINITY)});
    }
    const auto bins = static_cast<std::int64_t>(edges.size()) - 1;
    const HistogramOptions options{.edges = vector_of(edges)};
    EXPECT_EQ(histogram_of(context, vector_of(x), bins, options, {.rung = "guided_edges"}),
              histogram_of(context, vector_of(x), bins, options, {.rung = "shared_privatized"}))
        << edges[1] << ' ' << bins;
  }
  constexpr auto lowest = std::numeric_limits<std::int64_t>::min();
  constexpr auto highest = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int64_t> whole_edges = {lowest, -5, 0, 7, 8, highest - 1, highest};
  const std::vector<std::int64_t> whole = {lowest, lowest + 1, -6, -5,          -4,     0,
                                           7,      8,          9,  highest - 1, highest};
  const HistogramOptions options{.edges = vector_of(whole_edges)};
  EXPECT_EQ(histogram_of(context, vector_of(whole), 6, options, {.rung = "guided_edges"}),
            (Counts{3, 2, 1, 1, 2, 2}));
  const std::vector<float> unsorted = {0, NAN, -3, 9, 2, -7, 10};
  histogram_of(context, vector_of(random_values(300, 4)), 6, {.edges = vector_of(unsorted)},
               {.rung = "guided_edges"});
}

TEST(Histogram, RangesOfFloatsAreRoundedFirst) {
  // low and high between two floats, rounded in one call: g++ 12 once optimized the two casts away.
  std::vector<std::int64_t> counts(7);
  const std::vector<float> x(3);
  std::mt19937_64 random(20261125);
  std::uniform_real_distribution<double> end(-4.0, 4.0);
  for (int round = 0; round < 200; ++round) {
    const double low = end(random);
    const double high = low + 1 + end(random) / 8;
    const Histogram::Args args = bind<Histogram>(
        {.x = vector_of(x), .counts = {counts.data(), DType::i64, {7}}, .low = low, .high = high});
    const volatile float low_f32 = static_cast<float>(low);
    const volatile float high_f32 = static_cast<float>(high);
    ASSERT_EQ(args.low, static_cast<double>(low_f32)) << low;
    ASSERT_EQ(args.high, static_cast<double>(high_f32)) << high;
  }
}

TEST_P(HistogramOn, WholeNumbersAreDividedExactly) {
  // The widest range and odd numbers of bins: the first and last integer of each bin.
  constexpr std::int64_t low = std::numeric_limits<std::int32_t>::min();
  for (const std::int64_t bins : {3, 7, 641, 40961, 65535}) {
    std::vector<std::int32_t> x;
    Counts expected(static_cast<std::size_t>(bins), 0);
    for (std::int64_t b = 1; b < bins; b += std::max<std::int64_t>(1, bins / 50)) {
      // first integer of bin b: ceil(b 2^32 / bins)
      const std::int64_t first = ((b << 32) + bins - 1) / bins;
      x.push_back(static_cast<std::int32_t>(low + first));
      ++expected[static_cast<std::size_t>(b)];
      x.push_back(static_cast<std::int32_t>(low + first - 1));
      ++expected[static_cast<std::size_t>(b - 1)];
    }
    EXPECT_EQ(histogram_of(context, vector_of(x), bins,
                           {.low = static_cast<double>(low), .high = 0x1p31}),
              expected);
  }
}

TEST(HistogramCpu, BytesInEveryPatternAndByAnyNumberOfThreads) {
  // Each method of counting bytes, and 8-bit counters that wrap thousands of times.
  constexpr std::size_t size = 1'300'003;
  std::mt19937 random(3);
  const auto fill = [&](const auto& value) {
    std::vector<std::uint8_t> x(size);
    for (std::size_t i = 0; i < size; ++i) x[i] = static_cast<std::uint8_t>(value(i));
    return x;
  };
  const std::vector<std::vector<std::uint8_t>> inputs = {
      fill([&](std::size_t) { return random(); }),
      fill([&](std::size_t) { return 100 + random() % 60; }),
      fill([](std::size_t i) { return i % 2 == 0 ? 17 : 200; }),
      fill([](std::size_t i) { return "ACGT"[i * i / 7 % 4]; }),
      fill([](std::size_t) { return 255; }),
      fill([&](std::size_t i) { return random() % 10 != 0 ? 42 : i; }),
      fill([](std::size_t i) { return i / 5100; }),
      fill([&](std::size_t i) { return i < size / 2 ? 3 : random(); }),
  };
  for (std::size_t input = 0; input < inputs.size(); ++input) {
    Counts expected(256, 0);
    for (const std::uint8_t value : inputs[input]) ++expected[value];
    for (const int threads : {1, 2, 3, 7}) {
      Context context = Context::cpu(threads);
      EXPECT_EQ(histogram_of(context, vector_of(inputs[input]), 256), expected)
          << "input " << input << ", " << threads << " threads";
    }
  }
}

TEST(HistogramCpu, MoreThan31BitsOfElementsNeedWideCounts) {
  // x has 2^31 + 2^20 elements, but only 2^20 bytes of memory: its rows have stride 0.
  constexpr std::int64_t row = 1 << 20;
  constexpr std::int64_t rows = 2049;
  const std::vector<std::uint8_t> x(row, 9);
  const ConstTensorRef many(x.data(), DType::u8, {rows, row}, {0, 1});
  Context context = Context::cpu();
  const Counts counts = histogram_of(context, many, 16);
  EXPECT_EQ(counts[9], rows * row);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), rows * row);

  std::vector<std::int32_t> narrow(16);
  const std::string text = message_of(
      [&] { histogram(context, many, TensorRef(narrow.data(), DType::i32, Extents{16})); });
  expect_text(text, "2148532224");
  expect_text(text, "i64");
}

TEST(HistogramCpu, AccumulatingWraps) {
  Context context = Context::cpu();
  const std::vector<std::uint8_t> x = {1, 1, 1};
  std::vector<std::int32_t> counts = {5, std::numeric_limits<std::int32_t>::max()};
  histogram(context, vector_of(x), TensorRef(counts.data(), DType::i32, Extents{2}),
            {.accumulate = true});
  EXPECT_EQ(counts[0], 5);
  EXPECT_EQ(counts[1], std::numeric_limits<std::int32_t>::min() + 2);
}

TEST(HistogramCpu, SecondCallNeedsNoMoreWorkspace) {
  Context context = Context::cpu();
  const std::vector<float> x = random_values(100000, 5);
  (void)histogram_of(context, vector_of(x), 5000, {.low = -4, .high = 4});
  const std::size_t capacity = context.workspace_capacity();
  (void)histogram_of(context, vector_of(x), 5000, {.low = -4, .high = 4});
  EXPECT_EQ(context.workspace_capacity(), capacity);
}

TEST(HistogramErrors, NameTheArgumentAndWhatIsAccepted) {
  Context context = Context::cpu();
  std::vector<float> x(10);
  std::vector<std::int32_t> counts(12);
  const ConstTensorRef values = vector_of(x);
  const TensorRef four(counts.data(), DType::i32, Extents{4});
  const auto expect = [&](const ConstTensorRef& a, const TensorRef& c,
                          const HistogramOptions& options, std::string_view part) {
    expect_text(message_of([&] { histogram(context, a, c, options); }), part);
  };
  const std::vector<double> edges64(5);
  const std::vector<float> edges4(4);
  const std::vector<std::uint8_t> bytes(4);
  expect(values, TensorRef(counts.data(), DType::i32, Extents{2, 2}), {}, "counts has 2 axes");
  expect(values, TensorRef(counts.data(), DType::i32, Extents{0}), {}, "counts has 0 bins");
  expect(values, TensorRef(x.data(), DType::f32, Extents{4}), {}, "counts is f32");
  expect(values, TensorRef(counts.data(), DType::i32, {4}, {0}), {}, "counts");
  expect(TensorRef(static_cast<void*>(counts.data()), DType::e4m3, Extents{4}), four, {},
         "x is e4m3");
  expect(values, four, {.low = 2, .high = 1}, "[2, 1]");
  expect(values, four, {.low = 0, .high = INFINITY}, "[0, inf]");
  expect(values, four, {.low = NAN, .high = 1}, "nan");
  expect(values, four, {.low = -3e38, .high = 3e38}, "overflow");
  expect(values, four, {.low = 0, .high = 1e-42}, "overflow");
  expect(vector_of(bytes), four, {.low = 0.5, .high = 9}, "[0.5, 9)");
  expect(vector_of(bytes), four, {.low = 0, .high = 3}, "4 bins for the 3 whole numbers");
  expect(vector_of(bytes), four, {.low = 0, .high = 0x1p33}, "2^32 apart");
  expect(values, four, {.edges = vector_of(edges4)}, "edges is 4");
  expect(values, four, {.edges = vector_of(edges64)}, "edges is f64");
  expect(ConstTensorRef(nullptr, DType::f32, Extents{10}), four, {}, "x (10) has a null");
  expect(ConstTensorRef(counts.data() + 3, DType::i32, Extents{5}), four, {}, "overlaps");
}

}  // namespace
}  // namespace rung
