// SPDX-License-Identifier: Apache-2.0
// gemm on a CPU sums in one order for any number of threads: every rung, and the public call, which
// must choose the same rung, on shapes of every family and layout.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "rung/ops/gemm/op/gemm.hpp"
#include "tests/support/operators.hpp"

namespace rung {
namespace {

using test::random_values;

struct Shape {
  std::int64_t batch, m, n, k;
};

/// Returns the public call's pick (an empty name) and the rungs that it chooses from.
std::vector<std::string_view> picks(const Gemm::Args& args, const Context& context) {
  std::vector<std::string_view> names{""};
  for (const Rung<Gemm>* rung = Gemm::rungs().first; rung != nullptr; rung = rung->next) {
    const RungInfo& info = rung->info;
    if (info.backend != Backend::cpu || info.peer || info.teaching) continue;
    if (rung->supports(args, context)) names.push_back(info.name);
  }
  return names;
}

/// Shapes around each family: square, few rows, few columns, short k, vectors, long sums, batches.
Shape draw_shape(std::mt19937& engine, int round) {
  const auto up_to = [&](int most) {
    return 1 + static_cast<std::int64_t>(engine() % static_cast<unsigned>(most));
  };
  switch (round % 8) {
    case 0:
      return {1, up_to(300), up_to(300), up_to(300)};
    case 1:
      return {1, up_to(20), up_to(3000), up_to(700)};
    case 2:
      return {1, up_to(3000), up_to(20), up_to(700)};
    case 3:
      return {1, up_to(700), up_to(700), up_to(12)};
    case 4:
      return {1, 1, up_to(4000), up_to(1500)};
    case 5:
      return {1, up_to(24), up_to(24), up_to(40000)};
    case 6:
      return {up_to(9), up_to(90), up_to(90), up_to(90)};
    default:
      return {1, up_to(200), up_to(200), 1000 + up_to(3000)};  // several pieces of k
  }
}

template <class T, class Out>
void expect_same_bits(int rounds, unsigned seed) {
  std::mt19937 engine(seed);
  for (int round = 0; round < rounds; ++round) {
    const Shape s = draw_shape(engine, round);
    const GemmOptions options{.beta = engine() % 3 == 0 ? 0.5 : 0.0,
                              .transpose_a = engine() % 2 == 0,
                              .transpose_b = engine() % 2 == 0};
    const std::vector<T> a = random_values<T>(s.batch * s.m * s.k, seed + 1);
    const std::vector<T> b = random_values<T>(s.batch * s.k * s.n, seed + 2);
    const std::vector<Out> before = random_values<Out>(s.batch * s.m * s.n, seed + 3);
    std::vector<Out> c = before;
    const auto view = [&](const auto& from, std::int64_t rows, std::int64_t columns) {
      using Element = std::remove_cvref_t<decltype(from[0])>;
      return ConstTensorRef(from.data(), dtype_of<Element>, Extents{s.batch, rows, columns});
    };
    const ConstTensorRef a_view = options.transpose_a ? view(a, s.k, s.m) : view(a, s.m, s.k);
    const ConstTensorRef b_view = options.transpose_b ? view(b, s.n, s.k) : view(b, s.k, s.n);
    const TensorRef c_view(c.data(), dtype_of<Out>, Extents{s.batch, s.m, s.n});
    Context one = Context::cpu(1);
    const auto args = bind<Gemm>({.a = a_view,
                                  .b = b_view,
                                  .c = c_view,
                                  .beta = options.beta,
                                  .transpose_a = options.transpose_a,
                                  .transpose_b = options.transpose_b});
    for (const std::string_view pick : picks(args, one)) {
      c = before;
      gemm(one, a_view, b_view, c_view, options, {pick});
      const std::vector<Out> expected = c;
      for (const int threads : {2, 3, 7, 16}) {
        Context some = Context::cpu(threads);
        c = before;
        gemm(some, a_view, b_view, c_view, options, {pick});
        ASSERT_EQ(std::memcmp(c.data(), expected.data(), c.size() * sizeof(Out)), 0)
            << (pick.empty() ? "the public call" : pick) << " with " << threads
            << " threads: " << to_string(dtype_of<T>) << ' ' << s.batch << " of " << s.m << 'x'
            << s.n << 'x' << s.k << (options.transpose_a ? ",ta" : "")
            << (options.transpose_b ? ",tb" : "") << (options.beta != 0 ? ",beta" : "");
      }
    }
  }
}

TEST(GemmRepeats, SameBitsForAnyNumberOfThreadsInEveryRung) {
  expect_same_bits<float, float>(48, 1);
  expect_same_bits<double, double>(24, 2);
  expect_same_bits<bf16, float>(24, 3);
  expect_same_bits<f16, f16>(24, 4);
}

}  // namespace
}  // namespace rung
