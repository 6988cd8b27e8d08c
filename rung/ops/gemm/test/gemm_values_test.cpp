// SPDX-License-Identifier: Apache-2.0
// gemm of NaN and infinity: checks to which elements of C they propagate.
#include "rung/ops/gemm/test/gemm_test.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace rung {
namespace {

using namespace gemm_test;

class GemmValuesOn : public GemmOn {};

TEST_P(GemmValuesOn, BetaZeroDoesNotReadC) {
  auto a = random_values(12, 1);
  auto b = random_values(20, 2);
  std::vector<float> c(15, std::numeric_limits<float>::quiet_NaN());
  gemm(context, matrix(a, 3, 4), matrix(b, 4, 5), matrix(c, 3, 5));
  for (const float value : c) EXPECT_TRUE(std::isfinite(value));
}

TEST_P(GemmValuesOn, AlphaZeroDoesNotReadAOrB) {
  std::vector<float> a(12, std::numeric_limits<float>::quiet_NaN());
  std::vector<float> b(20, std::numeric_limits<float>::infinity());
  std::vector<float> c(15, 2.0F);
  gemm(context, matrix(a, 3, 4), matrix(b, 4, 5), matrix(c, 3, 5), {.alpha = 0, .beta = 3});
  for (const float value : c) EXPECT_EQ(value, 6.0F);
}

/// Expects exact elements of C, or +infinity in the row and column of a planted infinity, from
/// every rung.
void expect_infinity_in(const std::vector<float>& c, std::int64_t n, std::int64_t row,
                        std::int64_t column, float ordinary, const std::string& what) {
  for (std::size_t at = 0; at < c.size(); ++at) {
    const auto i = static_cast<std::int64_t>(at) / n;
    const auto j = static_cast<std::int64_t>(at) % n;
    const float expected =
        i == row || j == column ? std::numeric_limits<float>::infinity() : ordinary;
    ASSERT_EQ(c[at], expected) << what << " at " << i << ", " << j;
  }
}

TEST_P(GemmValuesOn, InfinityAtTheEndOfKStaysInItsRowAndColumnInEveryRung) {
  // A kernel that pads k with zeros, or reads beyond its operands, computes 0 * infinity = NaN.
  for (const auto& [m, n, k] : {std::tuple{1, 37, 13},
                                {13, 1, 29},
                                {20, 30, 11},
                                {5, 300, 37},
                                {300, 7, 45},
                                {40, 40, 40},
                                {70, 90, 83},
                                {16, 64, 16}}) {
    std::vector<float> a(static_cast<std::size_t>(m) * static_cast<std::size_t>(k), 1.0F);
    std::vector<float> b(static_cast<std::size_t>(k) * static_cast<std::size_t>(n), 1.0F);
    const std::int64_t row = m / 2;
    const std::int64_t column = n / 3;
    a[static_cast<std::size_t>(row * k + k - 1)] = std::numeric_limits<float>::infinity();
    b[static_cast<std::size_t>((k - 1) * n + column)] = std::numeric_limits<float>::infinity();
    std::vector<float> c(static_cast<std::size_t>(m) * static_cast<std::size_t>(n));
    const Gemm::Args args =
        bind<Gemm>({.a = matrix(a, m, k), .b = matrix(b, k, n), .c = matrix(c, m, n)});
    for (const Rung<Gemm>* rung = Gemm::rungs().first; rung != nullptr; rung = rung->next) {
      if (rung->info.backend != GetParam() || rung->info.peer) continue;
      if (!rung->supports(args, context)) continue;
      std::fill(c.begin(), c.end(), -1.0F);
      rung->run(args, context);
      expect_infinity_in(c, n, row, column, static_cast<float>(k),
                         std::string(rung->info.name) + " " + to_string(args.c.shape));
    }
  }
}

TEST_P(GemmValuesOn, ActivationsOfNanAndInfinityInEveryRung) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  struct Expected {
    Activation activation;
    float at_infinity, at_minus_infinity, at_zero;
  };
  for (const Expected& expected : {Expected{Activation::relu, infinity, 0, 0},
                                   {Activation::sigmoid, 1, 0, 0.5F},
                                   {Activation::tanh, 1, -1, 0},
                                   {Activation::gelu, infinity, 0, 0}}) {
    constexpr std::int64_t m = 20;
    constexpr std::int64_t n = 24;
    std::vector<float> a(m, 1.0F);
    std::vector<float> b(n, 0.0F);
    b[3] = nan;
    b[7] = infinity;
    b[20] = -infinity;
    std::vector<float> c(m * n);
    const Gemm::Args args = bind<Gemm>({.a = matrix(a, m, 1),
                                        .b = matrix(b, 1, n),
                                        .c = matrix(c, m, n),
                                        .activation = expected.activation});
    for (const Rung<Gemm>* rung = Gemm::rungs().first; rung != nullptr; rung = rung->next) {
      if (rung->info.backend != GetParam() || rung->info.peer) continue;
      if (!rung->supports(args, context)) continue;
      rung->run(args, context);
      const std::string what = std::string(rung->info.name) + ", activation " +
                               std::to_string(static_cast<int>(expected.activation));
      EXPECT_TRUE(std::isnan(c[3])) << what;
      EXPECT_EQ(c[7], expected.at_infinity) << what;
      EXPECT_EQ(c[20], expected.at_minus_infinity) << what;
      EXPECT_EQ(c[21], expected.at_zero) << what;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, GemmValuesOn, testing::Values(Backend::cpu, Backend::simt),
                         name_of_backend);

}  // namespace
}  // namespace rung
