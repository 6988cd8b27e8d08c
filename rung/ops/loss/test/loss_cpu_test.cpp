// SPDX-License-Identifier: Apache-2.0
// loss on a CPU: results are bitwise equal for any strides of dx and any number of threads; long
// rows keep their bounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "rung/ops/loss/op/loss.hpp"
#include "tests/support/operators.hpp"

namespace rung {
namespace {

using test::random_values;

/// Returns "" (the public call) and the CPU rungs that support the arguments.
std::vector<std::string> cpu_rungs_for(const Loss::Call& call) {
  const Context context = Context::cpu(1);
  const Loss::Args args = bind<Loss>(call);
  std::vector<std::string> names{""};
  for (const Rung<Loss>* rung = Loss::rungs().first; rung != nullptr; rung = rung->next) {
    const RungInfo& info = rung->info;
    if (info.backend != Backend::cpu || info.peer || !rung->supports(args, context)) continue;
    names.emplace_back(info.name);
  }
  return names;
}

/// Calls f for every kind of loss and every class count that selects another code path on a CPU.
template <class F>
void for_each_kind(F&& f) {
  for (const LossKind kind : {LossKind::cross_entropy, LossKind::hinge, LossKind::squared}) {
    for (const std::int64_t classes : {1, 3, 10, 67, 500}) {
      for (const double smoothing : {0.0, 0.2}) {
        if (smoothing != 0 && kind != LossKind::cross_entropy) continue;
        f(kind, classes, smoothing);
      }
    }
  }
}

template <class T>
void expect_strides_of_dx_change_no_bit() {
  using Sum = Accumulator<T>;
  for_each_kind([](LossKind kind, std::int64_t classes, double smoothing) {
    constexpr std::int64_t rows = 67;
    const auto x = random_values<T>(rows * classes, 7);
    const auto targets = random_values<T>(rows * classes, 8);
    std::vector<std::int64_t> labels(rows);
    for (std::int64_t i = 0; i < rows; ++i) labels[static_cast<std::size_t>(i)] = i * 7 % classes;
    const Extents shape{rows, classes};
    const ConstTensorRef target =
        kind == LossKind::squared ? ConstTensorRef(targets, shape) : ConstTensorRef(labels);
    std::vector<T> dx(static_cast<std::size_t>(3 * (rows + 1) * (classes + 1)));
    std::vector<Sum> losses(rows);
    Sum result = 0;
    const Extents layouts[] = {{classes, 1}, {classes + 3, 1}, {2 * classes, 2}, {1, rows}};
    const LossOptions options{.kind = kind,
                              .smoothing = smoothing,
                              .dx = TensorRef(dx.data(), shape),
                              .losses = TensorRef(losses, {rows})};
    const Loss::Call call{ConstTensorRef(x, shape), target, TensorRef(&result, Extents{}), options};
    Context context = Context::cpu(3);
    for (const std::string& name : cpu_rungs_for(call)) {
      std::vector<Sum> plain_dx;
      std::vector<Sum> plain_losses;
      Sum plain = 0;
      for (const Extents& strides : layouts) {
        LossOptions strided = options;
        strided.dx = TensorRef(dx.data(), shape, strides);
        if (name == "naive" && strides[1] != 1 && classes > 1) continue;  // needs contiguous rows
        std::fill(dx.begin(), dx.end(), T(-77.0F));
        loss(context, call.x, target, call.result, strided, {name});
        std::vector<Sum> made;
        for (std::int64_t row = 0; row < rows; ++row) {
          for (std::int64_t c = 0; c < classes; ++c) {
            const auto at = static_cast<std::size_t>(row * strides[0] + c * strides[1]);
            made.push_back(static_cast<Sum>(dx[at]));
            dx[at] = T(-77.0F);
          }
        }
        // Padding between the elements is not written.
        EXPECT_TRUE(
            std::all_of(dx.begin(), dx.end(), [](T v) { return static_cast<Sum>(v) == -77; }));
        if (plain_dx.empty()) {
          plain_dx = made;
          plain_losses = losses;
          plain = result;
        }
        const auto where = [&] {
          return std::string(name) + ' ' + std::string(to_string(kind)) + ' ' +
                 std::to_string(classes) + ", strides " + to_string(strides);
        };
        EXPECT_EQ(result, plain) << where();
        EXPECT_EQ(losses, plain_losses) << where();
        EXPECT_EQ(made, plain_dx) << where();
      }
      LossOptions without = options;
      without.dx = {};
      loss(context, call.x, target, call.result, without, {name});
      EXPECT_EQ(result, plain) << name << ' ' << to_string(kind) << ' ' << classes << " without dx";
      EXPECT_EQ(losses, plain_losses) << name;
    }
  });
}

/// Equal terms: sequential additions all round in the same direction.
TEST(LossCpu, LongStridedRowsKeepTheBound) {
  constexpr std::int64_t rows = 4;
  constexpr double smoothing = 0.125;
  constexpr double unit = 0x1p-53;
  Context context = Context::cpu(1);
  for (const std::int64_t classes : {3000, 40000, 300000}) {
    for (const double below : {1000.0 / 3, 700.7, 1e5 / 7}) {
      std::vector<double> x(static_cast<std::size_t>(classes * rows), -below);
      const std::vector<std::int64_t> labels(rows, classes / 2);
      for (std::int64_t row = 0; row < rows; ++row) {
        x[static_cast<std::size_t>(labels[0] * rows + row)] = 0;
      }
      std::vector<double> losses(rows);
      double result = 0;
      const LossOptions options{
          .axis = 0, .smoothing = smoothing, .losses = TensorRef(losses, {rows})};
      const ConstTensorRef logits(x, {classes, rows});
      const Loss::Call call{logits, ConstTensorRef(labels), TensorRef(&result, Extents{}), options};
      const auto others = static_cast<long double>(classes - 1);
      const long double linear = smoothing / static_cast<long double>(classes) * others * below;
      const long double exact = linear + std::log(1 + others * std::exp(-(long double){below}));
      const double bound =
          (static_cast<double>(classes) / 8 + 48) * unit * (1 + static_cast<double>(exact));
      for (const std::string& name : cpu_rungs_for(call)) {
        if (name == "naive") continue;  // has a wider bound
        loss(context, call.x, call.target, call.result, options, {name});
        for (const double loss : losses) {
          EXPECT_NEAR(loss, static_cast<double>(exact), bound) << name << ' ' << classes;
        }
      }
    }
  }
}

TEST(LossCpu, StridesOfTheGradientChangeNoBit) {
  expect_strides_of_dx_change_no_bit<float>();
  expect_strides_of_dx_change_no_bit<double>();
  expect_strides_of_dx_change_no_bit<f16>();
  expect_strides_of_dx_change_no_bit<bf16>();
}

TEST(LossCpu, AnyNumberOfThreadsGivesTheSameBitsInEveryRung) {
  for_each_kind([](LossKind kind, std::int64_t classes, double smoothing) {
    const std::int64_t rows = 40001 / classes + 1;
    const auto x = random_values<float>(rows * classes, 5);
    const auto targets = random_values<float>(rows * classes, 6);
    std::vector<std::int64_t> labels(static_cast<std::size_t>(rows));
    for (std::int64_t i = 0; i < rows; ++i) {
      labels[static_cast<std::size_t>(i)] = i * 7 % (classes + 1) - 1;
    }
    const Extents shape{rows, classes};
    const ConstTensorRef target =
        kind == LossKind::squared ? ConstTensorRef(targets, shape) : ConstTensorRef(labels);
    std::vector<float> dx(x.size());
    float result = 0;
    LossOptions options{.kind = kind, .smoothing = smoothing, .dx = TensorRef(dx, shape)};
    if (kind != LossKind::squared) options.ignored_label = -1;
    const Loss::Call call{ConstTensorRef(x, shape), target, TensorRef(&result, Extents{}), options};
    for (const std::string& name : cpu_rungs_for(call)) {
      float first = 0;
      std::vector<float> first_dx;
      for (const int threads : {1, 2, 3, 7, 16}) {
        Context context = Context::cpu(threads);
        std::fill(dx.begin(), dx.end(), -77.0F);
        loss(context, call.x, target, call.result, options, {name});
        if (threads == 1) {
          first = result;
          first_dx = dx;
        }
        EXPECT_EQ(result, first) << name << ' ' << to_string(kind) << ' ' << classes << threads;
        EXPECT_EQ(dx, first_dx) << name << ' ' << to_string(kind) << ' ' << classes << threads;
      }
    }
  });
}

}  // namespace
}  // namespace rung
