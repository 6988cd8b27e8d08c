// SPDX-License-Identifier: Apache-2.0
// Fits of rates: samples made from known rates are predicted again, with noise and outliers or
// without.
#include "rung/workbench/fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "rung/harness/any_operator.hpp"

namespace rung::workbench {
namespace {

constexpr Rates usual = {{1e-6, 2e-6, 1.2, 1, 1, 2, 1e-6, 1e-6, 1e-8, 1e-9}};

/// Returns random work with times by `rates`, off by a factor of up to `noise`.
std::vector<FitSample> samples_of(const Rates& rates, Backend backend, double noise) {
  std::mt19937 random(7);
  const auto between = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution(std::log(low), std::log(high))(random));
  };
  const Context context = Context::on(backend, 1);
  std::vector<FitSample> samples;
  for (int i = 0; i < 200; ++i) {
    const double blocks = std::ceil(between(1, 1e5));
    const Work work{.bytes = between(1e3, 1e9),
                    .operations = between(1e3, 1e12),
                    .launches = 1 + i % 2,
                    .blocks = blocks,
                    .resident = 4,
                    .rounds = between(1, 1e3),
                    .steps = between(1, 1e3)};
    const WorkTerms terms = terms_of(work, context);
    samples.push_back({terms, predict(terms, rates, backend).seconds * between(1 / noise, noise)});
  }
  return samples;
}

double worst_error(const std::vector<FitSample>& samples, const Rates& rates, Backend backend) {
  double worst = 0;
  for (const FitSample& sample : samples) {
    const double error = std::log(predict(sample.terms, rates, backend).seconds / sample.seconds);
    worst = std::max(worst, std::abs(error));
  }
  return worst;
}

class Fits : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << "no such backend in this build";
  }
};

TEST_P(Fits, FindRatesThatPredictWhatWasTimed) {
  const Backend backend = GetParam();
  for (const double slower : {0.3, 1.0, 20.0}) {
    Rates rates = usual;
    for (std::size_t i = 0; i < term_count; i += 2) rates.of[i] *= slower;
    const std::vector<FitSample> samples = samples_of(rates, backend, 1.0000001);
    const Rates found = fit_rates(samples, usual, 1e-6, backend);
    EXPECT_LT(worst_error(samples, found, backend), 0.05) << slower;
  }
}

TEST_P(Fits, AreNotLedAstrayByOutliers) {
  const Backend backend = GetParam();
  const std::vector<FitSample> clean = samples_of(usual, backend, 1.0000001);
  std::vector<FitSample> samples = clean;
  for (std::size_t i = 0; i < samples.size(); i += 20) samples[i].seconds *= 50;
  Rates start = usual;
  for (double& rate : start.of) rate *= 2;
  const Rates found = fit_rates(samples, start, 1e-4, backend);
  EXPECT_LT(worst_error(clean, found, backend), 0.35);
}

TEST_P(Fits, LeaveWhatNoSampleHasAsItWas) {
  const Backend backend = GetParam();
  const std::vector<FitSample> samples = samples_of(usual, backend, 1.1);
  Rates prior = usual;
  const auto near =
      static_cast<std::size_t>(backend == Backend::cpu ? RateTerm::wave : RateTerm::near);
  prior.of[near] = 0.123;
  EXPECT_NEAR(fit_rates(samples, prior, 1e-3, backend).of[near], 0.123, 1e-6);
}

TEST_P(Fits, PredictNineOfTenTimingsLongEnoughWithCaution) {
  const Backend backend = GetParam();
  const std::vector<FitSample> samples = samples_of(usual, backend, 3);
  const Rates cautious = cautious_rates(usual, samples, backend);
  std::size_t enough = 0;
  for (const FitSample& sample : samples) {
    if (predict(sample.terms, cautious, backend).seconds >= sample.seconds) ++enough;
  }
  EXPECT_NEAR(static_cast<double>(enough) / static_cast<double>(samples.size()), 0.9, 0.01);
  EXPECT_EQ(cautious_rates(cautious, samples_of(usual, backend, 1.1), backend).of, cautious.of)
      << "predictions that are too long are not shortened";
}

INSTANTIATE_TEST_SUITE_P(Backends, Fits, testing::Values(Backend::cpu, Backend::simt),
                         [](const auto& one) { return std::string(to_string(one.param)); });

/// Returns a survey with times of "right", and of "one_unit", at half of these times, if
/// has_one_unit.
std::vector<SurveyRow> survey_of(int problems, bool has_one_unit) {
  constexpr double seconds = 0.1;
  std::vector<SurveyRow> rows(static_cast<std::size_t>(problems));
  for (SurveyRow& row : rows) {
    row.problem = "f32 4x64";
    row.times = {{"right", seconds}};
    if (has_one_unit) row.times.emplace_back("one_unit", seconds / 2);
  }
  return rows;
}

TEST(OperatorFits, TakeAKernelThatASurveyLacksForANewerOne) {
  const OperatorFit fit = fit_operator(
      find_operator("fake"), {survey_of(60, false), survey_of(8, true)}, {}, Context::cpu(1));
  EXPECT_EQ(fit.samples.at("one_unit"), 8);
  EXPECT_LT(fit.errors.at("one_unit"), 0.05);
  EXPECT_LT(fit.errors.at("right"), 0.05);
  EXPECT_EQ(fit.fitted.wrong.size(), 0);
}

}  // namespace
}  // namespace rung::workbench
