// SPDX-License-Identifier: Apache-2.0
// Properties of loss that `rung check` does not test: the gradient is the derivative in every rung;
// the gradient of a row sums to zero; ignored rows; threads; errors.
#include "rung/ops/loss/op/loss.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace rung {
namespace {

template <class T>
std::vector<T> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(0, 2);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = static_cast<T>(normal(engine));
  return values;
}

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
    return error.what();
  }
  return "";
}

class LossOn : public testing::TestWithParam<Backend> {
 protected:
  static constexpr std::int64_t rows = 6, classes = 11, size = rows * classes;

  Context context = Context::on(GetParam());
  Extents shape{rows, classes};
  std::vector<double> x = random_values<double>(size, 1);
  std::vector<double> target = random_values<double>(size, 2);
  std::vector<std::int64_t> labels{3, 0, 10, 3, 7, 9};

  /// Returns "" (the public call) and the rungs of this backend that support the arguments.
  std::vector<std::string> rungs_for(const Loss::Call& call) {
    std::vector<std::string> names{""};
    const Loss::Args args = bind<Loss>(call);
    for (const Rung<Loss>* rung = Loss::rungs().first; rung != nullptr; rung = rung->next) {
      const RungInfo& info = rung->info;
      if (info.backend != GetParam() || info.peer || !rung->supports(args, context)) continue;
      names.emplace_back(info.name);
    }
    return names;
  }
  ConstTensorRef target_of(const LossOptions& options) const {
    return options.kind == LossKind::squared ? ConstTensorRef(target, shape)
                                             : ConstTensorRef(labels);
  }
  double loss_of(LossOptions options, std::string_view rung = "") {
    options.dx = {};
    double result = -77;
    loss(context, ConstTensorRef(x, shape), target_of(options), TensorRef(&result, Extents{}),
         options, {rung});
    return result;
  }
  std::vector<LossOptions> all_options() {
    return {{},
            {.reduction = LossReduction::sum, .smoothing = 0.3},
            {.ignored_label = 3},
            {.kind = LossKind::hinge},
            {.kind = LossKind::hinge, .margin = 0, .ignored_label = 3},
            {.kind = LossKind::squared},
            {.kind = LossKind::squared, .reduction = LossReduction::sum}};
  }
};

TEST_P(LossOn, TheGradientIsTheDerivative) {
  for (LossOptions options : all_options()) {
    std::vector<double> wanted;
    for (double& value : x) {
      // No x is so close to a kink of hinge that a step would cross it.
      constexpr double step = 1e-6;
      const double before = value;
      value = before + step;
      const double above = loss_of(options);
      value = before - step;
      wanted.push_back((above - loss_of(options)) / (2 * step));
      value = before;
    }
    std::vector<double> dx(x.size());
    double result = 0;
    options.dx = TensorRef(dx, shape);
    const Loss::Call call{ConstTensorRef(x, shape), target_of(options),
                          TensorRef(&result, Extents{}), options};
    const double alone = loss_of(options);
    for (const std::string& name : rungs_for(call)) {
      std::fill(dx.begin(), dx.end(), -77.0);
      loss(context, call.x, call.target, call.result, options, {name});
      EXPECT_NEAR(result, alone, 1e-12 * (1 + std::abs(alone))) << name;
      for (std::size_t i = 0; i < dx.size(); ++i) {
        ASSERT_NEAR(dx[i], wanted[i], 1e-7)
            << name << " kind " << to_string(options.kind) << ' ' << i;
      }
    }
  }
}

TEST_P(LossOn, GradientsOfARowAddUpToNothing) {
  // The probabilities sum to 1, and so do the weights q.
  for (const double smoothing : {0.0, 0.4, 1.0}) {
    std::vector<double> dx(x.size());
    double result = 0;
    const LossOptions options{.smoothing = smoothing, .dx = TensorRef(dx, shape)};
    const Loss::Call call{ConstTensorRef(x, shape), ConstTensorRef(labels),
                          TensorRef(&result, Extents{}), options};
    for (const std::string& name : rungs_for(call)) {
      loss(context, call.x, call.target, call.result, options, {name});
      for (std::int64_t row = 0; row < rows; ++row) {
        double sum = 0;
        for (std::int64_t c = 0; c < classes; ++c) {
          sum += dx[static_cast<std::size_t>(row * classes + c)];
        }
        EXPECT_NEAR(sum, 0, 1e-15) << name;
      }
    }
  }
}

TEST_P(LossOn, SmoothingIsAMixtureOfTargets) {
  const double sharp = loss_of({});
  const double uniform = loss_of({.smoothing = 1});
  EXPECT_NEAR(loss_of({.smoothing = 0.25}), 0.75 * sharp + 0.25 * uniform, 1e-12);
}

TEST_P(LossOn, IgnoredRowsCountForNothing) {
  // Two rows have label 3: the mean over the other four equals the mean of a call without these
  // two.
  std::vector<double> kept_x;
  std::vector<std::int64_t> kept_labels;
  for (std::size_t row = 0; row < rows; ++row) {
    if (labels[row] == 3) continue;
    kept_labels.push_back(labels[row]);
    const auto first = x.begin() + static_cast<std::ptrdiff_t>(row * classes);
    kept_x.insert(kept_x.end(), first, first + classes);
  }
  double wanted = 0;
  double result = 0;
  loss(context, ConstTensorRef(kept_x, {4, classes}), ConstTensorRef(kept_labels),
       TensorRef(&wanted, Extents{}));
  std::vector<double> dx(x.size(), -77);
  std::vector<double> losses(rows, -77);
  const LossOptions options{
      .ignored_label = 3, .dx = TensorRef(dx, shape), .losses = TensorRef(losses, {rows})};
  loss(context, ConstTensorRef(x, shape), ConstTensorRef(labels), TensorRef(&result, Extents{}),
       options);
  EXPECT_NEAR(result, wanted, 1e-14);
  EXPECT_EQ(losses[0], 0);
  EXPECT_EQ(losses[3], 0);
  for (std::size_t c = 0; c < classes; ++c) EXPECT_EQ(dx[c], 0) << c;
  // The mean over no rows is 0, not 0 / 0.
  labels.assign(rows, 3);
  loss(context, ConstTensorRef(x, shape), ConstTensorRef(labels), TensorRef(&result, Extents{}),
       options);
  EXPECT_EQ(result, 0);
  EXPECT_EQ(std::count(dx.begin(), dx.end(), 0.0), size);
  loss(context, ConstTensorRef(x.data(), {0, classes}), ConstTensorRef(labels.data(), {0}),
       TensorRef(&result, Extents{}));
  EXPECT_EQ(result, 0);
}

TEST_P(LossOn, ALabelThatIsNoClassIsSeenInTheResult) {
  labels[2] = classes;
  std::vector<double> dx(x.size());
  std::vector<double> losses(rows);
  double result = 0;
  const LossOptions options{.dx = TensorRef(dx, shape), .losses = TensorRef(losses, {rows})};
  const Loss::Call call{ConstTensorRef(x, shape), ConstTensorRef(labels),
                        TensorRef(&result, Extents{}), options};
  for (const std::string& name : rungs_for(call)) {
    result = 0;
    loss(context, call.x, call.target, call.result, options, {name});
    EXPECT_TRUE(std::isnan(result)) << name;
    EXPECT_TRUE(std::isnan(losses[2]) && std::isnan(dx[2 * classes + 5])) << name;
    EXPECT_TRUE(std::isfinite(losses[1]) && std::isfinite(dx[1 * classes + 5])) << name;
  }
}

TEST_P(LossOn, LargeNumbersDoNotOverflow) {
  std::vector<float> large{1e30F, -1e30F, 0, 1000, 1001, 999};
  std::vector<std::int64_t> of{1, 0};
  std::vector<float> losses(2);
  float result = 0;
  loss(context, ConstTensorRef(large, {2, 3}), ConstTensorRef(of), TensorRef(&result, Extents{}),
       {.losses = TensorRef(losses, {2})});
  EXPECT_FLOAT_EQ(losses[0], 2e30F);
  EXPECT_NEAR(losses[1], 1 + std::log(1 + std::exp(-1.0) + std::exp(-2.0)), 1e-6);
}

TEST_P(LossOn, AMarginOfZeroIsThePerceptron) {
  // Misclassified outputs, and outputs of 0, have a gradient; correct ones have none.
  std::vector<float> outputs{0.5F, -1, 0, 2, -3, -1};
  std::vector<std::int64_t> of{0, 1};
  std::vector<float> dx(6);
  float result = 0;
  loss(context, ConstTensorRef(outputs, {2, 3}), ConstTensorRef(of), TensorRef(&result, Extents{}),
       {.kind = LossKind::hinge,
        .reduction = LossReduction::sum,
        .margin = 0,
        .dx = TensorRef(dx, {2, 3})});
  EXPECT_EQ(dx, (std::vector<float>{0, 0, 1, 1, -1, 0}));
  EXPECT_EQ(result, 5);
}

TEST_P(LossOn, ErrorsNameWhatWasGiven) {
  double result = 0;
  const auto expect = [&](const LossOptions& options, const std::string& words) {
    const std::string message = message_of([&] {
      loss(context, ConstTensorRef(x, shape), ConstTensorRef(labels), TensorRef(&result, Extents{}),
           options);
    });
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  expect({.smoothing = 1.5}, "smoothing is 1.5; accepted: 0 to 1");
  expect({.smoothing = std::numeric_limits<double>::quiet_NaN()}, "smoothing is nan");
  expect({.kind = LossKind::hinge, .smoothing = 0.5}, "smoothing is 0.5 and kind hinge");
  expect({.kind = LossKind::hinge, .margin = -1}, "margin is -1");
  expect({.kind = LossKind::squared}, "target");
  expect({.kind = LossKind::squared, .ignored_label = 1}, "ignored_label");
  expect({.axis = 2}, "axis is 2");
  expect({.axis = 0}, "target");
  expect({.dx = TensorRef(x.data(), {classes, rows})}, "dx");
  std::vector<float> small(size);
  expect({.dx = TensorRef(small, shape)}, "dx is f32");
  const std::string overlap = message_of([&] {
    loss(context, ConstTensorRef(x, shape), ConstTensorRef(labels), TensorRef(x.data(), Extents{}));
  });
  EXPECT_NE(overlap.find("overlap"), std::string::npos) << overlap;
  const std::string empty = message_of([&] {
    loss(context, ConstTensorRef(x.data(), {rows, 0}), ConstTensorRef(labels),
         TensorRef(&result, Extents{}));
  });
  EXPECT_NE(empty.find("1 class or more"), std::string::npos) << empty;
}

INSTANTIATE_TEST_SUITE_P(Backends, LossOn, testing::Values(Backend::cpu, Backend::simt),
                         [](const auto& test) { return std::string(to_string(test.param)); });

}  // namespace
}  // namespace rung
