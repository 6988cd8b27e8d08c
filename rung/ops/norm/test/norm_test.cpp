// SPDX-License-Identifier: Apache-2.0
// Properties of norm that `rung check` does not test: accuracy for a large mean, the fused
// residual, aliasing, special values, bitwise equality for any number of threads, errors, large
// strides.
#include "rung/ops/norm/op/norm.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "rung/ops/norm/shared/oracle.hpp"
#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

/// Returns the largest error of a rung on one row, against extended precision.
double error_of(Context& context, std::vector<float>& x, std::string_view rung) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<float> y(x.size());
  if (rung == "row_per_lane") {  // needs columns: two equal ones
    std::vector<float> both(2 * x.size());
    for (std::size_t i = 0; i < both.size(); ++i) both[i] = x[i / 2];
    layer_norm(context, tensor(both, {n, 2}), tensor(both, {n, 2}), {.axis = 0, .epsilon = 1e-12},
               Pick{rung});
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = both[2 * i];
  } else {
    layer_norm(context, tensor(x, {1, n}), tensor(y, {1, n}), {.epsilon = 1e-12}, Pick{rung});
  }
  long double mean = 0;
  for (const float value : x) mean += value;
  mean /= static_cast<long double>(n);
  long double squares = 0;
  for (const float value : x) squares += (value - mean) * (value - mean);
  const long double rstd = 1 / std::sqrt(squares / static_cast<long double>(n) + 1e-12L);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto error = static_cast<double>(std::abs(y[i] - (x[i] - mean) * rstd));
    worst = std::isnan(error) ? infinity : std::max(worst, error);
  }
  return worst;
}

class NormOn : public OnBackend {};

TEST_P(NormOn, KeepsItsDigitsUnderALargeMean) {
  // 100 +- 1e-3: the spacing of f32 is 7.6e-6 here. The reference uses the rounded values.
  auto x = random_values(1000, 1, 100, 1e-3);
  auto odd = random_values(1001, 1, 100, 1e-3);
  auto long_and_odd = random_values(1027, 1, 100, 1e-3);
  int compared = 0;
  for (const Rung<Norm>* rung = Norm::rungs().first; rung != nullptr; rung = rung->next) {
    if (rung->info.backend != GetParam() || rung->info.peer) continue;
    const bool takes_odd = rung->info.name == "short_rows" || rung->info.name == "unaligned_rows";
    auto& row = takes_odd ? odd : rung->info.name == "ragged_rows" ? long_and_odd : x;
    const double error = error_of(context, row, rung->info.name);
    if (rung->info.name == "sum_of_squares") {
      EXPECT_GT(error, 0.5) << rung->info.name << " is there to fail here";
    } else if (rung->info.name == "welford") {
      // welford's mean has rounding errors of numbers around 100, and rstd is 1000.
      EXPECT_LT(error, 0.3);
    } else {
      EXPECT_LT(error, 1e-4) << rung->info.name;  // the contract: 2 K u (|z| + 1), K = 157
      ++compared;
    }
  }
  EXPECT_GE(compared, 3);
}

TEST_P(NormOn, DoublingTheInputChangesNoBitWithoutEpsilon) {
  auto x = random_values(7 * 515, 2, 3, 2);
  auto doubled = x;
  for (float& value : doubled) value *= 2;
  std::vector<float> y(x.size());
  std::vector<float> z(x.size());
  for (const auto norm : {layer_norm, rms_norm}) {
    norm(context, tensor(x, {7, 515}), tensor(y, {7, 515}), {.epsilon = 0}, best);
    norm(context, tensor(doubled, {7, 515}), tensor(z, {7, 515}), {.epsilon = 0}, best);
    EXPECT_EQ(y, z);
  }
}

TEST_P(NormOn, ResidualIsAddingFirst) {
  const Extents shape{6, 300};
  const std::int64_t count = shape.product();
  auto x = random_values<bf16>(count, 3);
  auto residual = random_values<bf16>(count, 4);
  auto gamma = random_values<float>(300, 5);
  std::vector<bf16> added(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    added[i] = bf16(static_cast<float>(x[i]) + static_cast<float>(residual[i]));
  }
  const auto bits = [](const std::vector<bf16>& values) {
    std::vector<std::uint16_t> all(values.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = values[i].bits;
    return all;
  };
  std::vector<bf16> apart(x.size());
  std::vector<bf16> fused(x.size());
  std::vector<bf16> sum(x.size());
  NormOptions options{.gamma = tensor(gamma, {300})};
  layer_norm(context, tensor(added, shape), tensor(apart, shape), options);
  options.residual = tensor(residual, shape);
  layer_norm(context, tensor(x, shape), tensor(fused, shape), options);
  EXPECT_EQ(bits(fused), bits(apart));
  // In place, as in a transformer block: the residual stream receives the sum, x becomes y.
  options.sum = tensor(residual, shape);
  layer_norm(context, tensor(x, shape), tensor(x, shape), options);
  EXPECT_EQ(bits(x), bits(apart));
  EXPECT_EQ(bits(residual), bits(added));
}

TEST_P(NormOn, SpecialValuesStayInTheirRow) {
  const std::int64_t n = 200;
  auto x = random_values(5 * n, 6);
  x[1 * n + 70] = nan;
  x[2 * n + 199] = infinity;
  for (std::int64_t i = 0; i < n; ++i) x[static_cast<std::size_t>(3 * n + i)] = i % 2 ? 3e30F : 0;
  std::vector<float> y(x.size());
  std::vector<float> beta(static_cast<std::size_t>(n), 0.25F);
  const NormOptions options{.beta = tensor(beta, {n})};
  layer_norm(context, tensor(x, {5, n}), tensor(y, {5, n}), options);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = [&](std::int64_t row) { return y[static_cast<std::size_t>(row * n + i)]; };
    EXPECT_TRUE(std::isfinite(at(0)) && std::isfinite(at(4))) << i;
    EXPECT_TRUE(std::isnan(at(1)) && std::isnan(at(2))) << i;
    EXPECT_EQ(at(3), 0.25F) << i;  // the sum of squares overflows
  }
  rms_norm(context, tensor(x, {5, n}), tensor(y, {5, n}), options);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = [&](std::int64_t row) { return y[static_cast<std::size_t>(row * n + i)]; };
    EXPECT_TRUE(std::isfinite(at(0)) && std::isfinite(at(4))) << i;
    EXPECT_TRUE(std::isnan(at(1))) << i;
    EXPECT_TRUE(i == 199 ? std::isnan(at(2)) : at(2) == 0.25F) << i;
    EXPECT_EQ(at(3), 0.25F) << i;
  }
}

TEST_P(NormOn, EmptyRowsHaveNoStatistics) {
  std::vector<float> none(1);
  std::vector<float> mean(3, 1);
  std::vector<float> rstd(3, 1);
  const TensorRef empty(none.data(), DType::f32, Extents{3, 0});
  layer_norm(context, empty, empty, {.mean = tensor(mean, {3}), .rstd = tensor(rstd, {3})});
  for (const float value : mean) EXPECT_TRUE(std::isnan(value));
  for (const float value : rstd) EXPECT_TRUE(std::isnan(value));
}

TEST_P(NormOn, AnyAxisIsTheLastOneOfATranspose) {
  auto x = random_values(4 * 50 * 6, 7);
  auto gamma = random_values(50, 8);
  std::vector<float> y(x.size());
  std::vector<float> z(x.size());
  layer_norm(context, tensor(x, {4, 50, 6}), tensor(y, {4, 50, 6}),
             {.axis = 1, .gamma = tensor(gamma, {50})});
  const Extents turned{4, 6, 50};
  const Extents strides{300, 1, 6};
  layer_norm(context, TensorRef(x.data(), DType::f32, turned, strides),
             TensorRef(z.data(), DType::f32, turned, strides), {.gamma = tensor(gamma, {50})});
  EXPECT_EQ(y, z);
}

TEST_P(NormOn, RowsFurtherApartThan32BitsReach) {
  const std::int64_t stride = (std::int64_t{1} << 31) + 4;
  const Reservation reserved(2 * stride * static_cast<std::int64_t>(sizeof(float)));
  auto* far = reserved.data<float>();
  if (far == nullptr) GTEST_SKIP() << "no address space";
  auto x = random_values(2 * 40, 9);
  std::vector<float> y(x.size());
  for (std::int64_t i = 0; i < 80; ++i)
    far[i / 40 * stride + i % 40] = x[static_cast<std::size_t>(i)];
  layer_norm(context, tensor(x, {2, 40}), tensor(y, {2, 40}));
  const TensorRef there(far, DType::f32, Extents{2, 40}, Extents{stride, 1});
  layer_norm(context, there, there);
  for (std::int64_t i = 0; i < 80; ++i) {
    EXPECT_NEAR(far[i / 40 * stride + i % 40], y[static_cast<std::size_t>(i)], 1e-6F) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, NormOn, backends, name_of_backend);

TEST(NormSimt, BlocksGoRoundMoreRowsThanFitTheDevice) {
  // 33 packs per row: blocks of 4 rows, 2112 of which are resident.
  const Extents shape{9000, 132};
  auto x = random_values(shape.product(), 10);
  std::vector<float> y(x.size());
  std::vector<float> expected(x.size());
  Context simt = Context::simt();
  Context cpu = Context::cpu();
  layer_norm(simt, tensor(x, shape), tensor(y, shape), {}, Pick{"registers_single_read"});
  layer_norm(cpu, tensor(x, shape), tensor(expected, shape));
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], expected[i], 1e-5F) << i;
}

TEST(NormCpu, SameBitsForAnyNumberOfThreads) {
  // Rows split over threads, long rows split by blocks, adjacent rows, gathered rows.
  const struct {
    Extents shape;
    int axis;
  } cases[] = {{{301, 257}, -1}, {{2, 50001}, -1}, {{130, 700}, 0}, {{1, 9000, 5}, 1}};
  for (const auto& one : cases) {
    auto x = random_values(one.shape.product(), 11);
    std::vector<float> first(x.size());
    std::vector<float> other(x.size());
    Context alone = Context::cpu(1);
    layer_norm(alone, tensor(x, one.shape), tensor(first, one.shape), {.axis = one.axis});
    for (const int threads : {2, 3, 7}) {
      Context context = Context::cpu(threads);
      layer_norm(context, tensor(x, one.shape), tensor(other, one.shape), {.axis = one.axis});
      EXPECT_EQ(first, other) << to_string(one.shape) << " with " << threads << " threads";
    }
  }
}

/// A large y is stored non-temporally by the row pipeline; an in-place y is not.
TEST(NormCpu, SameBitsPastTheCaches) {
  for (const std::int64_t n : {67, 256, 1001, 1029, 2048, 4095, 9001}) {
    const Extents shape{(5 << 20) / n, n};
    auto x = random_values(shape.product(), 15, 3);
    auto gamma = random_values(n, 16);
    auto beta = random_values(n, 17);
    std::vector<float> y(x.size() + 1);
    const TensorRef out(y.data() + 1, DType::f32, shape);
    for (const int threads : {1, 3}) {
      Context context = Context::cpu(threads);
      const auto expect_same = [&](auto norm, const NormOptions& options) {
        auto in_place = x;
        norm(context, tensor(in_place, shape), tensor(in_place, shape), options);
        norm(context, tensor(x, shape), out, options);
        EXPECT_TRUE(std::equal(in_place.begin(), in_place.end(), y.begin() + 1)) << n;
      };
      const auto layer = [](auto&&... given) { layer_norm(given...); };
      const auto rms = [](auto&&... given) { rms_norm(given...); };
      expect_same(layer, {.gamma = tensor(gamma, {n}), .beta = tensor(beta, {n})});
      expect_same(rms, {.gamma = tensor(gamma, {n})});
      expect_same(rms, {});
    }
  }
}

TEST(NormCpu, SecondCallOfAShapeNeedsNoMoreWorkspace) {
  Context context = Context::cpu(2);
  for (const Extents& shape : {Extents{40, 1000}, Extents{2, 60000}}) {
    auto x = random_values<bf16>(shape.product(), 12);
    auto gamma = random_values<bf16>(shape[1], 13);
    const auto call = [&] {
      layer_norm(context, tensor(x, shape), tensor(x, shape), {.gamma = tensor(gamma, {shape[1]})});
    };
    call();
    const std::size_t capacity = context.workspace_capacity();
    call();
    EXPECT_EQ(context.workspace_capacity(), capacity);
  }
}

TEST(NormErrors, NameTheArgumentAndWhatIsAccepted) {
  Context context = Context::cpu();
  auto x = random_values(60, 14);
  std::vector<float> y(60);
  std::vector<float> small(10);
  std::vector<double> wide(10);
  const Extents shape{6, 10};
  const auto message = [&](const NormOptions& options) {
    return message_of([&] { layer_norm(context, tensor(x, shape), tensor(y, shape), options); });
  };
  EXPECT_EQ(message({}), "");
  expect_text(message({.axis = 2}), "axis is 2; accepted: -2 to 1");
  expect_text(message({.axis = 1, .axes = 2}), "axes is 2; accepted: 1 to 1");
  expect_text(message({.epsilon = -1}), "epsilon is -1");
  expect_text(message({.epsilon = nan}), "epsilon is nan");
  expect_text(message({.gamma = tensor(small, {5})}), "gamma is 5; accepted: 10");
  expect_text(message({.gamma = tensor(wide, {10})}), "gamma is f64; accepted: f32");
  expect_text(message({.residual = tensor(small, {10})}), "residual is 10; accepted: 6x10");
  expect_text(message({.sum = tensor(y, shape)}), "sum is given without a residual");
  expect_text(message({.mean = tensor(small, {10})}), "mean is 10; accepted: 6 or 6x1");
  expect_text(message({.beta = tensor(y, {10})}), "y overlaps beta");
  const TensorRef shifted(x.data() + 1, DType::f32, shape, Extents{9, 1});
  expect_text(message_of([&] { layer_norm(context, tensor(x, shape), shifted); }), "overlaps");
  expect_text(message_of([&] {
                rms_norm(context, tensor(x, shape), tensor(y, shape), {.mean = tensor(small, {6})});
              }),
              "rms_norm, which computes none");
  const TensorRef nowhere(nullptr, DType::f32, shape);
  expect_text(message_of([&] { layer_norm(context, nowhere, tensor(y, shape)); }),
              "null data pointer");
}

}  // namespace
}  // namespace rung
