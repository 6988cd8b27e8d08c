// SPDX-License-Identifier: Apache-2.0
// Properties of norm_backward that `rung check` does not test: it is the derivative of norm,
// overflowing rows add nothing, bitwise equal results for any number of threads, errors.
#include "rung/ops/norm_backward/op/norm_backward.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "rung/ops/norm/op/norm.hpp"
#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

class NormBackwardOn : public OnBackend {};

/// Returns sum(dy y) after norm, a function of x, gamma and beta whose gradients norm_backward
/// computes.
double loss(Context& context, NormKind kind, std::vector<double>& x, std::vector<double>& gamma,
            std::vector<double>& beta, const std::vector<double>& dy, const Extents& shape) {
  std::vector<double> y(x.size());
  const Extents columns{shape[1]};
  const NormOptions options{.gamma = tensor(gamma, columns), .beta = tensor(beta, columns)};
  if (kind == NormKind::layer) {
    layer_norm(context, tensor(x, shape), tensor(y, shape), options);
  } else {
    rms_norm(context, tensor(x, shape), tensor(y, shape), options);
  }
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i];
  return sum;
}

TEST_P(NormBackwardOn, IsTheDerivativeOfNorm) {
  const Extents shape{5, 24};
  const Extents columns{24};
  auto x = random_values<double>(120, 1);
  auto gamma = random_values<double>(24, 2);
  auto beta = random_values<double>(24, 3);
  auto dy = random_values<double>(120, 4);
  for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
    std::vector<double> dx(x.size());
    std::vector<double> dgamma(gamma.size());
    std::vector<double> dbeta(beta.size());
    const NormBackwardOptions options{.gamma = tensor(gamma, columns),
                                      .dgamma = tensor(dgamma, columns),
                                      .dbeta = tensor(dbeta, columns)};
    if (kind == NormKind::layer) {
      layer_norm_backward(context, tensor(dy, shape), tensor(x, shape), tensor(dx, shape), options);
    } else {
      rms_norm_backward(context, tensor(dy, shape), tensor(x, shape), tensor(dx, shape), options);
    }
    // Central differences: truncation error of order 1e-8, rounding error 1e-9.
    const auto check = [&](std::vector<double>& variable, const std::vector<double>& gradient) {
      for (const std::size_t i : {std::size_t{0}, variable.size() / 2, variable.size() - 1}) {
        constexpr double step = 1e-5;
        const double before = variable[i];
        variable[i] = before + step;
        const double above = loss(context, kind, x, gamma, beta, dy, shape);
        variable[i] = before - step;
        const double below = loss(context, kind, x, gamma, beta, dy, shape);
        variable[i] = before;
        EXPECT_NEAR(gradient[i], (above - below) / (2 * step), 1e-7) << i;
      }
    };
    check(x, dx);
    check(gamma, dgamma);
    check(beta, dbeta);
  }
}

TEST_P(NormBackwardOn, StatisticsOfNormGiveWhatComputingThemAgainDoes) {
  const Extents shape{9, 128};
  auto x = random_values(shape.product(), 5, 2);
  auto dy = random_values(shape.product(), 6);
  std::vector<float> y(x.size());
  std::vector<float> mean(9);
  std::vector<float> rstd(9);
  layer_norm(context, tensor(x, shape), tensor(y, shape),
             {.mean = tensor(mean, {9, 1}), .rstd = tensor(rstd, {9})});
  std::vector<float> dx(x.size());
  std::vector<float> again(x.size());
  layer_norm_backward(context, tensor(dy, shape), tensor(x, shape), tensor(dx, shape),
                      {.mean = tensor(mean, {9}), .rstd = tensor(rstd, {9})});
  layer_norm_backward(context, tensor(dy, shape), tensor(x, shape), tensor(again, shape));
  for (std::size_t i = 0; i < dx.size(); ++i) EXPECT_NEAR(dx[i], again[i], 1e-5F) << i;
  // In place of dy, and of x.
  const auto expected = again;
  auto dy_copy = dy;
  layer_norm_backward(context, tensor(dy_copy, shape), tensor(x, shape), tensor(dy_copy, shape));
  EXPECT_EQ(dy_copy, expected);
  layer_norm_backward(context, tensor(dy, shape), tensor(x, shape), tensor(x, shape));
  EXPECT_EQ(x, expected);
}

TEST_P(NormBackwardOn, NoRowsHaveZeroGradients) {
  std::vector<float> none(1);
  std::vector<float> dgamma(4, 7);
  std::vector<float> dbeta(4, 7);
  const TensorRef empty(none.data(), DType::f32, Extents{0, 4});
  layer_norm_backward(context, empty, empty, empty,
                      {.dgamma = tensor(dgamma, {4}), .dbeta = tensor(dbeta, {4})});
  EXPECT_EQ(dgamma, std::vector<float>(4, 0));
  EXPECT_EQ(dbeta, std::vector<float>(4, 0));
}

/// A row of finite elements whose sums overflow has rstd 0: its dx is 0, and it adds nothing to
/// dgamma, whether mean and rstd are given or recomputed.
TEST_P(NormBackwardOn, RowsThatOverflowAddNothing) {
  const auto check = [&]<class T>(std::int64_t n, bool adjacent) {
    constexpr std::int64_t count = 9;
    const Extents shape = adjacent ? Extents{n, count} : Extents{count, n};
    const int axis = adjacent ? 0 : 1;
    const auto place = [&](std::int64_t row, std::int64_t i) {
      return static_cast<std::size_t>(adjacent ? i * count + row : row * n + i);
    };
    auto x = random_values<T>(count * n, 31);
    auto dy = random_values<T>(count * n, 32);
    const T most = std::numeric_limits<T>::max();
    const T large = sizeof(T) == 8 ? T(1e200) : T(1e30F);
    for (std::int64_t i = 0; i < n; ++i) {
      x[place(1, i)] = i % 2 == 0 ? most : -most;
      x[place(3, i)] *= large;
      x[place(4, i)] = large * (100 + x[place(4, i)]);
      x[place(6, i)] = i == 0 ? -most : most / 2;
      x[place(7, i)] = most;
    }
    const auto overflows = [](std::int64_t row) {
      return row == 1 || row == 3 || row == 4 || row == 6 || row == 7;
    };
    for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
      std::vector<T> dx(x.size());
      std::vector<T> dgamma(static_cast<std::size_t>(n));
      std::vector<T> dbeta(dgamma);
      std::vector<T> mean(count);
      std::vector<T> rstd(count);
      const bool layer = kind == NormKind::layer;
      const auto norm = layer ? layer_norm : rms_norm;
      NormOptions statistics{.axis = axis, .rstd = tensor(rstd, {count})};
      if (layer) statistics.mean = tensor(mean, {count});
      norm(context, tensor(x, shape), tensor(dx, shape), statistics, best);
      for (const bool given : {false, true}) {
        NormBackward::Call call;
        call.kind = kind;
        call.axis = axis;
        call.x = tensor(x, shape);
        call.dy = tensor(dy, shape);
        call.dx = tensor(dx, shape);
        call.dgamma = tensor(dgamma, {n});
        call.dbeta = tensor(dbeta, {n});
        if (given && layer) call.mean = tensor(mean, {count});
        if (given) call.rstd = tensor(rstd, {count});
        for (const std::string_view rung : picks_for<NormBackward>(call, context)) {
          dx.assign(dx.size(), 7);
          const auto backward = layer ? layer_norm_backward : rms_norm_backward;
          backward(context, call.dy, call.x, call.dx,
                   {.axis = axis,
                    .mean = call.mean,
                    .rstd = call.rstd,
                    .dgamma = call.dgamma,
                    .dbeta = call.dbeta},
                   {rung});
          const auto where = [&] {
            return std::string(rung) + ' ' + std::string(to_string(dtype_of<T>)) + ' ' +
                   to_string(shape) + (layer ? " layer" : " rms") +
                   (given ? " given" : " computed");
          };
          for (std::int64_t i = 0; i < n; ++i) {
            double of_gamma = 0;
            for (std::int64_t row = 0; row < count; ++row) {
              if (overflows(row)) {
                ASSERT_EQ(dx[place(row, i)], 0) << where() << " row " << row;
                continue;
              }
              ASSERT_TRUE(std::isfinite(dx[place(row, i)])) << where() << " row " << row;
              const auto at = static_cast<std::size_t>(row);
              of_gamma += static_cast<double>(dy[place(row, i)]) *
                          (static_cast<double>(x[place(row, i)]) - static_cast<double>(mean[at])) *
                          static_cast<double>(rstd[at]);
            }
            ASSERT_NEAR(dgamma[static_cast<std::size_t>(i)], of_gamma, 1e-3) << where();
            ASSERT_TRUE(std::isfinite(dbeta[static_cast<std::size_t>(i)])) << where();
          }
        }
      }
    }
  };
  for (const std::int64_t n : {5, 8, 33, 256, 1000, 4100, 9001}) {
    if (GetParam() == Backend::simt && n > 5000) continue;
    check.operator()<float>(n, false);
    check.operator()<double>(n, false);
    if (n < 2000) check.operator()<float>(n, true);
  }
}

/// Recomputed mean and rstd stay accurate past a CPU block of 4096 elements: dx agrees with the dx
/// of the exact mean and rstd.
TEST_P(NormBackwardOn, KeepsItsDigitsUnderALargeMeanPastEveryBlock) {
  for (const std::int64_t n : {1000, 4097, 9001}) {
    const Extents shape{2, n};
    auto x = random_values<double>(2 * n, 33, 1e6, 1);
    auto dy = random_values<double>(2 * n, 34);
    NormBackward::Call call;
    std::vector<double> dx(x.size());
    std::vector<double> shifted(x.size());
    std::vector<double> expected(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = std::ldexp(std::nearbyint(std::ldexp(x[i], 30)), -30);  // x - 1e6 is exact
      shifted[i] = x[i] - 1e6;
    }
    layer_norm_backward(context, tensor(dy, shape), tensor(shifted, shape),
                        tensor(expected, shape));
    call.x = tensor(x, shape);
    call.dy = tensor(dy, shape);
    call.dx = tensor(dx, shape);
    for (const std::string_view rung : picks_for<NormBackward>(call, context)) {
      layer_norm_backward(context, call.dy, call.x, call.dx, {}, {rung});
      double worst = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        worst = std::max(worst, std::abs(dx[i] - expected[i]));
      }
      EXPECT_LT(worst, 1e-12) << rung << ' ' << n;  // 3 K u of values of order 1 at n = 9001: 4e-13
    }
  }
}

/// Persistent blocks loop over rows, so their sums cover distant rows; the problems have more rows
/// than 132 SMs hold at once. Compares every rung that supports the arguments with the definition,
/// summed in double.
class NormBackwardRounds : public testing::TestWithParam<std::string_view> {};

TEST_P(NormBackwardRounds, SumsAreOfAllRows) {
  const bool adjacent = GetParam() == "adjacent_rows";
  const bool staged = GetParam() == "staged_rows";  // fewer blocks than rows, as each has its sums
  const std::int64_t rows = adjacent ? 34000 : staged ? 40 : 1300;
  const std::int64_t n = adjacent ? 2 : staged ? 2049 : 33;
  const Extents shape = adjacent ? Extents{n, rows} : Extents{rows, n};
  const auto place = [&](std::int64_t row, std::int64_t i) {
    return static_cast<std::size_t>(adjacent ? i * rows + row : row * n + i);
  };
  auto x = random_values(shape.product(), 11);
  auto dy = random_values(shape.product(), 12);
  auto rstd = random_values(rows, 13, 2);
  std::vector<float> dx(x.size());
  std::vector<float> dgamma(static_cast<std::size_t>(n));
  std::vector<float> dbeta(static_cast<std::size_t>(n));
  Context context = Context::simt();
  rms_norm_backward(context, tensor(dy, shape), tensor(x, shape), tensor(dx, shape),
                    {.axis = adjacent ? 0 : 1,
                     .rstd = tensor(rstd, {rows}),
                     .dgamma = tensor(dgamma, {n}),
                     .dbeta = tensor(dbeta, {n})},
                    {.rung = GetParam()});
  for (std::int64_t i = 0; i < n; ++i) {
    double of_gamma = 0;
    double of_beta = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      const double gradient = dy[place(row, i)];
      of_beta += gradient;
      of_gamma += gradient * x[place(row, i)] * rstd[static_cast<std::size_t>(row)];
    }
    const double bound = 1e-6 * static_cast<double>(rows);
    EXPECT_NEAR(dgamma[static_cast<std::size_t>(i)], of_gamma, bound) << i;
    EXPECT_NEAR(dbeta[static_cast<std::size_t>(i)], of_beta, bound) << i;
  }
}

TEST(NormBackwardSimt, WhatIsBesideARowInItsPacksDoesNotOverflow) {
  // With 0 in place of x, (0 - mean) * rstd is not finite.
  constexpr float large = 0x1p122F;
  const Extents shape{3, 4097};
  std::vector<float> x(static_cast<std::size_t>(shape.product()), large);
  auto dy = random_values(shape.product(), 14);
  std::vector<float> dx(x.size());
  std::vector<float> mean(3, large);
  std::vector<float> rstd(3, 316);
  Context context = Context::simt();
  layer_norm_backward(context, tensor(dy, shape), tensor(x, shape), tensor(dx, shape),
                      {.mean = tensor(mean, {3}), .rstd = tensor(rstd, {3})},
                      {.rung = "cluster_rows"});
  for (std::int64_t row = 0; row < 3; ++row) {
    double sum = 0;
    for (std::int64_t i = 0; i < 4097; ++i) sum += dy[static_cast<std::size_t>(row * 4097 + i)];
    for (const std::int64_t i : {0, 4096}) {
      const auto at = static_cast<std::size_t>(row * 4097 + i);
      EXPECT_NEAR(dx[at], 316 * (dy[at] - sum / 4097), 1e-2) << row << ' ' << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rungs, NormBackwardRounds,
                         testing::Values("adjacent_rows", "split_rows", "staged_rows"),
                         [](const auto& test) { return std::string(test.param); });

INSTANTIATE_TEST_SUITE_P(Backends, NormBackwardOn, testing::Values(Backend::cpu, Backend::simt),
                         name_of_backend);

TEST(NormBackwardCpu, SameBitsForAnyNumberOfThreads) {
  const Extents shape{2100, 70};
  auto x = random_values(shape.product(), 7);
  auto dy = random_values(shape.product(), 8);
  std::vector<float> results[2][3];
  for (const int threads : {1, 2, 3, 7}) {
    auto& [dx, dgamma, dbeta] = results[threads == 1 ? 0 : 1];
    dx.assign(x.size(), 0);
    dgamma.assign(70, 0);
    dbeta.assign(70, 0);
    Context context = Context::cpu(threads);
    layer_norm_backward(context, tensor(dy, shape), tensor(x, shape), tensor(dx, shape),
                        {.dgamma = tensor(dgamma, {70}), .dbeta = tensor(dbeta, {70})});
    if (threads == 1) continue;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(results[0][i], results[1][i]) << threads << ' ' << i;
  }
}

TEST(NormBackwardCpu, EveryRungHasTheSameBitsForAnyNumberOfThreads) {
  const auto check = [&]<class T>(std::int64_t rows, std::int64_t n, bool given) {
    const Extents shape{rows, n};
    auto x = random_values<T>(shape.product(), 35);
    // A row whose squares overflow.
    for (std::int64_t i = 0; i < n && !given; ++i) x[static_cast<std::size_t>(n + i)] *= T(1e30F);
    auto dy = random_values<T>(shape.product(), 36);
    auto mean = random_values<T>(rows, 37);
    auto rstd = random_values<T>(rows, 38, 1, 0.1);
    struct Results {
      std::vector<T> dx, dgamma, dbeta;
      bool operator==(const Results&) const = default;
    };
    Results first;
    Results other;
    const auto call_of = [&](Results& to) {
      to.dx.assign(x.size(), 0);
      to.dgamma.assign(static_cast<std::size_t>(n), 0);
      to.dbeta = to.dgamma;
      NormBackward::Call call;
      call.x = tensor(x, shape);
      call.dy = tensor(dy, shape);
      call.dx = tensor(to.dx, shape);
      if (given) call.mean = tensor(mean, {rows});
      if (given) call.rstd = tensor(rstd, {rows});
      call.dgamma = tensor(to.dgamma, {n});
      call.dbeta = tensor(to.dbeta, {n});
      return call;
    };
    const auto run = [&](const NormBackward::Call& call, int threads, std::string_view rung) {
      Context context = Context::cpu(threads);
      layer_norm_backward(
          context, call.dy, call.x, call.dx,
          {.mean = call.mean, .rstd = call.rstd, .dgamma = call.dgamma, .dbeta = call.dbeta},
          {rung});
    };
    Context alone = Context::cpu(1);
    const NormBackward::Call call = call_of(first);
    const NormBackward::Call same = call_of(other);
    for (const std::string_view rung : picks_for<NormBackward>(call, alone)) {
      run(call, 1, rung);
      for (const int threads : {2, 3, 7, 16}) {
        run(same, threads, rung);
        EXPECT_TRUE(first == other) << rung << ' ' << to_string(shape) << ' ' << threads;
      }
    }
  };
  for (const bool given : {false, true}) {
    check.operator()<float>(600, 70, given);
    check.operator()<float>(3, 20001, given);
    check.operator()<double>(5, 9001, given);
    check.operator()<double>(70, 513, given);
  }
}

TEST(NormBackwardErrors, NameTheArgumentAndWhatIsAccepted) {
  Context context = Context::cpu();
  auto x = random_values(60, 9);
  auto dy = random_values(60, 10);
  std::vector<float> dx(60);
  std::vector<float> rows(6);
  std::vector<double> wide(10);
  const Extents shape{6, 10};
  const auto message = [&](const NormBackwardOptions& options) {
    return message_of([&] {
      layer_norm_backward(context, tensor(dy, shape), tensor(x, shape), tensor(dx, shape), options);
    });
  };
  EXPECT_EQ(message({}), "");
  expect_text(message({.mean = tensor(rows, {6})}), "mean is given alone");
  expect_text(message({.gamma = tensor(rows, {6})}), "gamma is 6; accepted: 10");
  expect_text(message({.dgamma = tensor(wide, {10})}), "dgamma is f64; accepted: f32");
  expect_text(message({.dbeta = tensor(dx, {10})}), "dx overlaps dbeta");
  expect_text(message({.epsilon = -1}), "epsilon is -1");
  expect_text(message_of([&] {
                layer_norm_backward(context, tensor(dy, shape), tensor(x, {60}), tensor(dx, shape));
              }),
              "dy is 6x10; accepted: 60");
}

}  // namespace
}  // namespace rung
