// SPDX-License-Identifier: Apache-2.0
// Properties of norm_backward that `rung check` does not state: it is norm's derivative, its bits
// do not depend on threads, its errors.
#include "rung/ops/norm_backward/norm_backward.hpp"

#include <gtest/gtest.h>

#include "rung/ops/norm/norm.hpp"
#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

class NormBackwardOn : public OnBackend {};

/// sum(dy y) after norm, a function of x, gamma and beta whose gradients norm_backward gives.
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
    // Central differences: the error of the step is of order 1e-8, that of rounding 1e-9.
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

/// Blocks that stay go round, so that their sums are of rows far apart: more rows than 132 SMs hold
/// blocks for. Every rung that takes the call against the definition, summed in double.
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
