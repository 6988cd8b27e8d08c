// SPDX-License-Identifier: Apache-2.0
// Properties of optimizer that `rung check` does not cover: many consecutive steps against the
// formulas, in every rung; masters keep what bf16 would lose; clipping; threads; errors.
#include "rung/ops/optimizer/op/optimizer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

class OptimizerOn : public OnBackend {
 protected:
  static constexpr std::int64_t size = 131;
};

/// Returns the gradient of a quadratic bowl: sum of a p^2 / 2 with a between 0.5 and 1.5.
std::vector<double> gradient_of(const std::vector<double>& p) {
  std::vector<double> g(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) {
    g[i] = p[i] * (0.5 + static_cast<double>(i) / static_cast<double>(p.size()));
  }
  return g;
}

TEST_P(OptimizerOn, ManyStepsAreThoseOfTheFormulas) {
  std::vector<OptimizerOptions> all{
      {.learning_rate = 0.1},
      {.learning_rate = 0.1, .weight_decay = 0.01, .momentum = 0.9},
      {.learning_rate = 0.1, .momentum = 0.9, .nesterov = true, .max_norm = 2},
      {.kind = OptimizerKind::adam, .learning_rate = 0.05, .weight_decay = 0.1},
      {.kind = OptimizerKind::adam, .learning_rate = 0.05, .weight_decay = 0.1, .decoupled = true},
  };
  for (OptimizerOptions& options : all) {
    std::vector<double> p = random_values<double>(size, 1);
    std::vector<double> g(size);
    std::vector<double> m(size);
    std::vector<double> v(size);
    double norm = 0;
    const bool adam = options.kind == OptimizerKind::adam;
    if (adam || options.momentum != 0) options.first_moment = TensorRef(m);
    if (adam) options.second_moment = TensorRef(v);
    options.norm = TensorRef(&norm, Extents{});
    for (const std::string_view name :
         picks_for<Optimizer>({TensorRef(p), ConstTensorRef(g), options}, context)) {
      p = random_values<double>(size, 1);
      std::fill(m.begin(), m.end(), 0);
      std::fill(v.begin(), v.end(), 0);
      std::vector<double> wanted = p;
      std::vector<double> wanted_m(size);
      std::vector<double> wanted_v(size);
      for (int step = 1; step <= 20; ++step) {
        options.step = step;
        g = gradient_of(p);
        optimizer(context, TensorRef(p), ConstTensorRef(g), options, {name});
        const std::vector<double> slope = gradient_of(wanted);
        double squares = 0;
        for (const double value : slope) squares += value * value;
        ASSERT_NEAR(norm, std::sqrt(squares), 1e-12) << name << ' ' << step;
        const double clip =
            options.max_norm > 0 ? std::min(1.0, options.max_norm / std::sqrt(squares)) : 1;
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          double& q = wanted[i];
          double along = slope[i] * clip;
          if (options.decoupled) {
            q *= 1 - options.learning_rate * options.weight_decay;
          } else {
            along += options.weight_decay * q;
          }
          if (adam) {
            wanted_m[i] = 0.9 * wanted_m[i] + 0.1 * along;
            wanted_v[i] = 0.999 * wanted_v[i] + 0.001 * along * along;
            const double root = std::sqrt(wanted_v[i] / (1 - std::pow(0.999, step)));
            q -= options.learning_rate * (wanted_m[i] / (1 - std::pow(0.9, step))) / (root + 1e-8);
          } else {
            wanted_m[i] = options.momentum * wanted_m[i] + along;
            q -= options.learning_rate *
                 (options.nesterov ? along + options.momentum * wanted_m[i] : wanted_m[i]);
          }
          ASSERT_NEAR(p[i], q, 1e-9) << name << " step " << step << " element " << i;
        }
      }
    }
  }
}

TEST_P(OptimizerOn, AMasterKeepsWhatSmallTypesLose) {
  // 1000 steps of 2^-12 from 1: each is below half a unit in the last place of bf16, so parameters
  // without a master would never change.
  std::vector<bf16> p(3, bf16(1.0F));
  std::vector<bf16> g(3, bf16(1.0F));
  std::vector<float> master(3, 1.0F);
  std::vector<bf16> alone = p;
  for (int step = 0; step < 1000; ++step) {
    optimizer(context, TensorRef(p), ConstTensorRef(g),
              {.learning_rate = 0x1p-12, .master = TensorRef(master)});
    optimizer(context, TensorRef(alone), ConstTensorRef(g), {.learning_rate = 0x1p-12});
  }
  EXPECT_EQ(master[1], 1.0F - 1000 * 0x1p-12F);
  EXPECT_EQ(static_cast<float>(p[1]), static_cast<float>(bf16(master[1])));
  EXPECT_EQ(static_cast<float>(alone[1]), 1.0F);
}

TEST_P(OptimizerOn, NormsOfLargeGradientsDoNotOverflow) {
  std::vector<float> p(40);
  std::vector<float> g(40, 1e25F);  // squares overflow f32
  float norm = 0;
  optimizer(context, TensorRef(p), ConstTensorRef(g),
            {.learning_rate = 1, .max_norm = 1, .norm = TensorRef(&norm, Extents{})});
  EXPECT_NEAR(norm / 1e25F, std::sqrt(40.0), 1e-5);
  EXPECT_NEAR(p[7], -1 / std::sqrt(40.0), 1e-6);
  // The norm of an empty gradient is 0.
  norm = -77;
  optimizer(context, TensorRef(p.data(), {0}), ConstTensorRef(g.data(), {0}),
            {.max_norm = 1, .norm = TensorRef(&norm, Extents{})});
  EXPECT_EQ(norm, 0);
}

TEST_P(OptimizerOn, ErrorsNameWhatWasGiven) {
  std::vector<float> p(6);
  std::vector<float> g(6);
  std::vector<float> m(6);
  std::vector<double> wide(6);
  const auto expect = [&](const OptimizerOptions& options, const std::string& words) {
    expect_text(message_of([&] { optimizer(context, TensorRef(p), ConstTensorRef(g), options); }),
                words);
  };
  expect({.learning_rate = nan}, "learning_rate is nan; accepted: 0 or more");
  expect({.weight_decay = -1}, "weight_decay is -1");
  expect({.momentum = 1}, "momentum is 1");
  expect({.momentum = 0.5}, "first_moment is left out; accepted: given, with adam or a momentum");
  expect({.first_moment = TensorRef(m)}, "first_moment is given; accepted: left out, unless");
  expect({.nesterov = true}, "nesterov");
  expect({.kind = OptimizerKind::adam, .momentum = 0.5}, "momentum is 0.5 and kind adam");
  expect({.kind = OptimizerKind::adam, .step = 0}, "step is 0; accepted: 1 or more");
  expect({.momentum = 0.5, .first_moment = TensorRef(wide)}, "first_moment is f64");
  expect({.momentum = 0.5, .first_moment = TensorRef(m.data(), {5})}, "first_moment");
  expect({.momentum = 0.5, .first_moment = TensorRef(p)}, "overlap");
  expect({.master = TensorRef(m)}, "master is given; accepted: left out, unless parameters are");
  expect({.norm = TensorRef(m)}, "norm is 6");
}

INSTANTIATE_TEST_SUITE_P(Backends, OptimizerOn, backends, name_of_backend);

TEST(OptimizerCpu, AnyNumberOfThreadsGivesTheSameBits) {
  constexpr std::int64_t count = 100003;
  std::vector<float> g(count);
  for (std::size_t i = 0; i < count; ++i) g[i] = std::sin(static_cast<float>(i));
  std::vector<float> one;
  for (const int threads : {1, 2, 3, 7}) {
    Context context = Context::cpu(threads);
    std::vector<float> p(count, 1.0F);
    std::vector<float> m(count);
    optimizer(context, TensorRef(p), ConstTensorRef(g),
              {.momentum = 0.9, .max_norm = 1, .first_moment = TensorRef(m)});
    if (threads == 1) one = p;
    EXPECT_EQ(p, one) << threads;
  }
}

/// Checks rows of three elements that are divided among threads: a share of a single element would,
/// by itself, count as adjacent.
TEST(OptimizerCpu, RowsCutByThreadsGiveTheSameBits) {
  constexpr std::int64_t rows = 62852, width = 3;
  const auto count = static_cast<std::size_t>(rows * width);
  std::vector<float> g(count);
  for (std::size_t i = 0; i < count; ++i) g[i] = std::sin(static_cast<float>(i));
  std::vector<float> one;
  for (const int threads : {1, 2, 3, 7}) {
    Context context = Context::cpu(threads);
    std::vector<float> p(g);
    std::vector<float> m(g);
    std::vector<float> v(count, 0.3F);
    const TensorRef second(v.data(), DType::f32, Extents{rows, width}, Extents{1, rows});
    optimizer(context, TensorRef(p, {rows, width}), ConstTensorRef(g, {rows, width}),
              {.kind = OptimizerKind::adam,
               .weight_decay = 0.01,
               .step = 14,
               .first_moment = TensorRef(m, {rows, width}),
               .second_moment = second});
    p.insert(p.end(), m.begin(), m.end());
    if (threads == 1) one = p;
    EXPECT_EQ(p, one) << threads;
  }
}

}  // namespace
}  // namespace rung
