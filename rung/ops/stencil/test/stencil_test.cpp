// SPDX-License-Identifier: Apache-2.0
// Properties of stencil that `rung check` does not test: semantics of masks, edges and iterations,
// propagation of infinities, errors, and the counted reuse of the three tile mappings.
#include "rung/ops/stencil/op/stencil.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "rung/core/tensor.hpp"
#include "rung/simt/record.hpp"
#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

constexpr StencilEdge all_edges[] = {StencilEdge::zero, StencilEdge::clamp, StencilEdge::mirror,
                                     StencilEdge::wrap};

/// An array of floats with its shape.
struct Array {
  Extents shape;
  std::vector<float> values;

  explicit Array(const Extents& extents, float value = 0)
      : shape(extents), values(static_cast<std::size_t>(extents.product()), value) {}
  /// Fills the array with whole numbers, whose sums are exact: results must be bitwise equal.
  Array(const Extents& extents, unsigned seed) : Array(extents) {
    std::mt19937 engine(seed);
    for (float& value : values) value = static_cast<float>(static_cast<int>(engine() % 17) - 8);
  }
  operator TensorRef() { return {values.data(), shape}; }             // NOLINT
  operator ConstTensorRef() const { return {values.data(), shape}; }  // NOLINT
  [[nodiscard]] float sum() const {
    float total = 0;
    for (const float value : values) total += value;
    return total;
  }
};

class StencilOn : public OnBackend {
 protected:
  /// Calls f(name) for every rung of the backend that supports the call.
  template <class F>
  void for_each_rung(const Stencil::Call& call, F&& f) {
    for (const std::string_view name : rungs_that_take<Stencil>(bind<Stencil>(call), context)) {
      SCOPED_TRACE(std::string(name));
      f(name);
    }
  }
};

TEST_P(StencilOn, AnImpulseGivesTheMask) {
  for (const Extents& extents : {Extents{3, 5}, Extents{4, 2}, Extents{5, 3}}) {
    const Array mask(extents, 1u);
    Array x({33, 40});
    const std::int64_t row = 20;
    const std::int64_t column = 17;
    x.values[static_cast<std::size_t>(row * 40 + column)] = 1;
    for (const bool convolution : {false, true}) {
      Array y(x.shape, -1.0F);
      const Stencil::Call call{.x = x, .mask = mask, .y = y, .convolution = convolution};
      for_each_rung(call, [&](std::string_view rung) {
        std::fill(y.values.begin(), y.values.end(), -1.0F);
        stencil(context, x, mask, y, {.convolution = convolution}, {rung});
        for (std::int64_t r = 0; r < 33; ++r) {
          for (std::int64_t c = 0; c < 40; ++c) {
            // Convolution places the mask's anchor on the impulse; correlation reverses the mask.
            const int sign = convolution ? 1 : -1;
            const std::int64_t i = extents[0] / 2 + sign * (r - row);
            const std::int64_t j = extents[1] / 2 + sign * (c - column);
            const bool hit = i >= 0 && i < extents[0] && j >= 0 && j < extents[1];
            const float wanted =
                hit ? mask.values[static_cast<std::size_t>(i * extents[1] + j)] : 0.0F;
            ASSERT_EQ(y.values[static_cast<std::size_t>(r * 40 + c)], wanted) << r << ' ' << c;
          }
        }
      });
    }
  }
}

TEST_P(StencilOn, AConstantGivesTheSumOfTheWeights) {
  for (const StencilEdge edge : {StencilEdge::clamp, StencilEdge::mirror, StencilEdge::wrap}) {
    for (const Extents& extents : {Extents{5}, Extents{3, 4}, Extents{7, 1}, Extents{2, 3, 3}}) {
      const Array mask(extents, 2u);
      Array x({5, 19, 37}, 3.0F);
      Array y(x.shape);
      const StencilOptions options{.edge = edge, .scale = 0.5};
      const Stencil::Call call{.x = x, .mask = mask, .y = y, .edge = edge, .scale = 0.5};
      for_each_rung(call, [&](std::string_view rung) {
        stencil(context, x, mask, y, options, {rung});
        EXPECT_EQ(y.values, std::vector<float>(y.values.size(), 1.5F * mask.sum()));
      });
    }
  }
}

TEST_P(StencilOn, SeparableIsTheFullMask) {
  const Array across({5}, 3u);
  const Array down({4}, 4u);
  const Array through({3}, 5u);
  Array x({6, 30, 41}, 6u);
  for (const StencilEdge edge : all_edges) {
    for (const bool convolution : {false, true}) {
      Array mask({3, 4, 5});
      for (std::size_t i = 0; i < mask.values.size(); ++i) {
        mask.values[i] = through.values[i / 20] * down.values[i / 5 % 4] * across.values[i % 5];
      }
      Array full(x.shape);
      const StencilOptions options{.edge = edge, .convolution = convolution};
      stencil(context, x, mask, full, options);
      Array y(x.shape);
      const Stencil::Call call{.x = x,
                               .across = across,
                               .down = down,
                               .through = through,
                               .y = y,
                               .edge = edge,
                               .convolution = convolution};
      for_each_rung(call, [&](std::string_view rung) {
        stencil_separable(context, x, across, down, through, y, options, {rung});
        EXPECT_EQ(y.values, full.values);
      });
    }
  }
}

TEST_P(StencilOn, AWindowIsAMaskOfOnes) {
  Array x({7, 45, 50}, 7u);
  for (const StencilEdge edge : all_edges) {
    for (const Extents& window : {Extents{6}, Extents{1, 9}, Extents{9, 2}, Extents{31, 31},
                                  Extents{5, 4, 7}, Extents{3, 1, 1}}) {
      const Array mask(window, 1.0F);
      Array full(x.shape);
      stencil(context, x, mask, full, {.edge = edge});
      Array y(x.shape);
      for_each_rung({.x = x, .y = y, .window = window, .edge = edge}, [&](std::string_view rung) {
        stencil(context, x, {}, y, {.window = window, .edge = edge}, {rung});
        EXPECT_EQ(y.values, full.values) << to_string(window);
      });
    }
  }
}

TEST_P(StencilOn, WithWrappedEdgesAShiftMayComeFirstOrLast) {
  const Array mask({3, 4}, 8u);
  Array x({21, 34}, 9u);
  Array shifted(x.shape);
  const auto shift = [](const Array& from, Array& to) {
    for (std::size_t r = 0; r < 21; ++r) {
      for (std::size_t c = 0; c < 34; ++c) {
        to.values[(r + 5) % 21 * 34 + (c + 11) % 34] = from.values[r * 34 + c];
      }
    }
  };
  shift(x, shifted);
  Array y(x.shape);
  Array y_shifted(x.shape);
  Array last(x.shape);
  const StencilOptions options{.edge = StencilEdge::wrap};
  for_each_rung({.x = x, .mask = mask, .y = y, .edge = StencilEdge::wrap},
                [&](std::string_view rung) {
                  stencil(context, x, mask, y, options, {rung});
                  stencil(context, shifted, mask, y_shifted, options, {rung});
                  shift(y, last);
                  EXPECT_EQ(y_shifted.values, last.values);
                });
}

TEST_P(StencilOn, IterationsAreCalls) {
  const Array mask({3, 3}, 10u);
  Array x({67, 75}, 11u);
  for (const StencilEdge edge : all_edges) {
    for (const int iterations : {2, 3, 7}) {
      Array one(x.shape);
      Array other(x.shape);
      // Powers of two keep values exact in f32 over seven iterations.
      const StencilOptions once{.edge = edge, .scale = 0.03125};
      stencil(context, x, mask, one, once);
      for (int i = 1; i < iterations; ++i) {
        stencil(context, one, mask, other, once);
        std::swap(one.values, other.values);
      }
      Array y(x.shape);
      StencilOptions options = once;
      options.iterations = iterations;
      const Stencil::Call call{.x = x,
                               .mask = mask,
                               .y = y,
                               .edge = edge,
                               .scale = options.scale,
                               .iterations = iterations};
      for_each_rung(call, [&](std::string_view rung) {
        stencil(context, x, mask, y, options, {rung});
        float largest = 0;
        for (std::size_t i = 0; i < y.values.size(); ++i) {
          largest = std::max(largest,
                             std::abs(y.values[i] - one.values[i]) / (1 + std::abs(one.values[i])));
        }
        EXPECT_LT(largest, 1e-4F) << iterations;
      });
    }
  }
}

TEST_P(StencilOn, AnInfinityReachesItsWindowsAlone) {
  const Array mask({5, 6}, 1.0F);
  Array x({20, 40}, 1.0F);
  x.values[10 * 40 + 20] = infinity;
  Array y(x.shape);
  const auto check = [&] {
    for (int r = 0; r < 20; ++r) {
      for (int c = 0; c < 40; ++c) {
        const bool sees = 10 >= r - 2 && 10 <= r + 2 && 20 >= c - 3 && 20 <= c + 2;
        const float value =
            y.values[static_cast<std::size_t>(r) * 40 + static_cast<std::size_t>(c)];
        ASSERT_EQ(std::isinf(value), sees) << r << ' ' << c << ' ' << value;
        ASSERT_FALSE(std::isnan(value));
      }
    }
  };
  for_each_rung({.x = x, .mask = mask, .y = y}, [&](std::string_view rung) {
    stencil(context, x, mask, y, {}, {rung});
    check();
  });
  for_each_rung({.x = x, .y = y, .window = {5, 6}}, [&](std::string_view rung) {
    stencil(context, x, {}, y, {.window = {5, 6}}, {rung});
    check();
  });
}

TEST_P(StencilOn, BytesAreRoundedToEvenAndClamped) {
  const std::vector<std::uint8_t> x{0, 1, 3, 5, 100, 200, 250};
  std::vector<std::uint8_t> y(7);
  const auto scaled = [&](float weight) {
    const Array mask(Extents{1}, weight);
    stencil(context, ConstTensorRef(x), mask, TensorRef(y));
    return y;
  };
  EXPECT_EQ(scaled(0.5F), (std::vector<std::uint8_t>{0, 0, 2, 2, 50, 100, 125}));
  EXPECT_EQ(scaled(1.5F), (std::vector<std::uint8_t>{0, 2, 4, 8, 150, 255, 255}));
  EXPECT_EQ(scaled(-1.0F), (std::vector<std::uint8_t>{0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(scaled(1e30F), (std::vector<std::uint8_t>{0, 255, 255, 255, 255, 255, 255}));
}

TEST_P(StencilOn, TheNumberOfThreadsChangesNoBit) {
  if (GetParam() != Backend::cpu) GTEST_SKIP() << "threads of a CPU";
  std::mt19937 engine(12);
  std::normal_distribution<float> normal;
  Array x({2, 300, 1500});
  for (float& value : x.values) value = normal(engine);
  const Array mask({5, 7}, 0.3F);
  Context alone = Context::cpu(1);
  Context several = Context::cpu(5);
  Array y(x.shape);
  Array z(x.shape);
  stencil(alone, x, mask, y, {}, {"threads"});
  stencil(several, x, mask, z, {}, {"threads"});
  EXPECT_EQ(y.values, z.values);
  stencil(alone, x, {}, y, {.window = {15, 9}}, {"threads"});
  stencil(several, x, {}, z, {.window = {15, 9}}, {"threads"});
  EXPECT_EQ(y.values, z.values);
}

TEST_P(StencilOn, ResultsLargerThanCachesAreTheSame) {
  if (GetParam() != Backend::cpu) GTEST_SKIP() << "of a CPU: non-temporal stores";
  const Array x({2100, 2064}, 13u);
  const Array mask({3, 5}, 14u);
  const Array across({4}, 15u);
  const Array down({3}, 16u);
  // Tensors begin at cache lines, and so do their rows here.
  Tensor y(DType::f32, x.shape, context.device());
  const auto* const values = static_cast<const float*>(y.ref().data);
  const auto is = [&](const Array& wanted) {
    return std::equal(wanted.values.begin(), wanted.values.end(), values);
  };
  Array wanted(x.shape);
  stencil(context, x, mask, wanted, {}, {"tiled"});
  stencil(context, x, mask, y, {}, {"threads"});
  EXPECT_TRUE(is(wanted));
  stencil(context, x, Array({6, 5}, 1.0F), wanted, {}, {"tiled"});
  stencil(context, x, {}, y, {.window = {6, 5}}, {"threads"});
  EXPECT_TRUE(is(wanted));
  stencil_separable(context, x, across, down, {}, wanted, {}, {"separable"});
  stencil_separable(context, x, across, down, {}, y, {}, {"threads"});
  EXPECT_TRUE(is(wanted));
}

TEST_P(StencilOn, ErrorsNameWhatWasGiven) {
  Array x({4, 6}, 1u);
  Array y({4, 6});
  const Array mask({3, 3}, 1u);
  const auto call = [&](const ConstTensorRef& m, const StencilOptions& options = {}) {
    return message_of([&] { stencil(context, x, m, y, options); });
  };
  expect_text(call({}), "none of mask");
  expect_text(call(mask, {.window = {3, 3}}), "2 of mask");
  expect_text(call(Array({32}, 1u)), "mask is 32");
  expect_text(call(Array({3, 0}, 1u)), "mask is 3x0");
  expect_text(call({}, {.window = {3, 33}}), "window is 3x33");
  expect_text(call(Array({1, 1, 1}, 1u)), "x is 4x6, mask 1x1x1");
  expect_text(call(Array({1, 1, 1, 1}, 1u)), "mask is 1x1x1x1");
  expect_text(call(mask, {.anchor = {1}}), "anchor is 1");
  expect_text(call(mask, {.anchor = {1, 3}}), "anchor is 1x3");
  expect_text(call(mask, {.iterations = 0}), "iterations is 0");
  expect_text(call(mask, {.scale = infinity}), "scale is inf");
  expect_text(call(mask, {.scale = 1e300}), "scale is");
  expect_text(call(mask, {.edge = static_cast<StencilEdge>(9)}), "edge is 9");
  expect_text(message_of([&] { stencil(context, x, mask, x); }), "overlap");
  expect_text(message_of([&] { stencil(context, x, mask, Array({6, 4})); }), "6x4");
  expect_text(message_of([&] { stencil_separable(context, x, mask, {}, {}, y); }), "across is 3x3");
  expect_text(message_of([&] { stencil_separable(context, x, {}, Array({3}, 1u), {}, y); }),
              "down is given, across is not");
  std::vector<double> doubles(24);
  expect_text(message_of([&] {
                stencil(context, x, mask, TensorRef(doubles, {4, 6}));
              }),
              "x is f32 and y");
}

INSTANTIATE_TEST_SUITE_P(Backends, StencilOn, backends, name_of_backend);

// --- published figures of courses, counted -------------------------------------------------------

simt::record::Counters counted(std::string_view rung, const Extents& shape, const Extents& taps,
                               StencilEdge edge) {
  Context context = Context::simt();
  Tensor x(DType::f32, shape, context.device());
  Tensor mask(DType::f32, taps, context.device());
  Tensor y(DType::f32, shape, context.device());
  std::fill_n(static_cast<float*>(x.ref().data), shape.product(), 1.0F);
  std::fill_n(static_cast<float*>(mask.ref().data), taps.product(), 1.0F);
  simt::record::begin();
  if (taps.rank == 1) {
    stencil(context, x, {}, y, {.window = taps, .edge = edge}, {rung});
  } else {
    stencil(context, x, mask, y, {.edge = edge}, {rung});
  }
  const simt::record::Report report = simt::record::end();
  EXPECT_TRUE(report.findings.empty()) << to_text(report.findings.front());
  EXPECT_EQ(report.kernels.size(), 1u);
  return report.kernels.at(0).totals;
}
double reuse(const simt::record::Counters& c) {
  return static_cast<double>(c.shared_load_bytes) / static_cast<double>(c.global_load_bytes);
}

TEST(StencilReuse, IsWhatCoursesPublish) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "nothing is counted under the sanitizers";
#endif
  // One axis, a tile of 8, a window of 5: 40 uses of 12 loads; at an end of the array 37 uses of
  // 10.
  EXPECT_DOUBLE_EQ(reuse(counted("window_sum_shared", {8}, {5}, StencilEdge::clamp)), 40.0 / 12);
  EXPECT_DOUBLE_EQ(reuse(counted("window_sum_shared", {16}, {5}, StencilEdge::zero)), 3.7);
  // Two axes: 37 x 37 uses of 10 x 10 loads.
  EXPECT_DOUBLE_EQ(reuse(counted("tile_output_load_halo", {16, 16}, {5, 5}, StencilEdge::zero)),
                   13.69);
  // Tiles of 16 x 16 under 9 x 9 from 24 x 24 loads, and 40 x 40 from 48 x 48.
  EXPECT_DOUBLE_EQ(reuse(counted("tile_input", {32, 32}, {9, 9}, StencilEdge::clamp)), 36.0);
  EXPECT_DOUBLE_EQ(reuse(counted("tile_input_coarsened", {40, 40}, {9, 9}, StencilEdge::clamp)),
                   56.25);
  const auto cached = counted("halo_from_cache", {16, 16}, {9, 5}, StencilEdge::clamp);
  EXPECT_EQ(cached.shared_load_bytes, 9176 * sizeof(float));
  EXPECT_EQ(cached.global_load_bytes, (2344 + 256) * sizeof(float));
  // Three axes: 8 x 8 x 8 under 3 x 3 x 3 from 10 x 10 x 10 loads; of 24 x 24 x 24 taps, 22 x 22 x
  // 22 are inside the tile.
  const Extents cube = {16, 16, 16};
  for (const char* rung : {"tile_output_3d", "tile_input_3d"}) {
    EXPECT_DOUBLE_EQ(reuse(counted(rung, cube, {3, 3, 3}, StencilEdge::clamp)), 13.824) << rung;
  }
  const auto cube_cached = counted("halo_from_cache_3d", {8, 8, 8}, {3, 3, 3}, StencilEdge::clamp);
  EXPECT_EQ(cube_cached.shared_load_bytes, 10648 * sizeof(float));
  EXPECT_EQ(cube_cached.global_load_bytes, (3176 + 512) * sizeof(float));
}

}  // namespace
}  // namespace rung
