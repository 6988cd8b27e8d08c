// SPDX-License-Identifier: Apache-2.0
// The oracle of stencil: selected rows, and many iterations.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "rung/harness/inputs.hpp"
#include "rung/ops/stencil/op/stencil.hpp"

namespace rung {
namespace {

std::vector<float> whole_numbers(const Extents& shape, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<float> values(static_cast<std::size_t>(shape.product()));
  for (float& value : values) value = static_cast<float>(static_cast<int>(engine() % 17) - 8);
  return values;
}

Oracle::Output reference_of(const Stencil::Call& call, std::vector<std::int64_t> rows) {
  const Stencil::Args args = bind<Stencil>(call);
  Oracle oracle;
  Oracle::Output output;
  output.length = call.y.shape[call.y.rank() - 1];
  output.rows = std::move(rows);
  output.value.resize(output.rows.size() * static_cast<std::size_t>(output.length));
  output.magnitude.resize(output.value.size());
  oracle.outputs.push_back(output);
  Stencil::reference(args, oracle);
  return oracle.outputs.front();
}

/// Recursion with a frame per iteration would overflow the stack.
TEST(StencilReference, TakesAnyNumberOfIterations) {
  const std::vector<double> x(5 * 4, 3.0);
  std::vector<double> y(x.size());
  for (const StencilEdge edge : {StencilEdge::wrap, StencilEdge::clamp, StencilEdge::mirror}) {
    const Stencil::Call call{.x = ConstTensorRef(x.data(), {5, 4}),
                             .y = TensorRef(y.data(), {5, 4}),
                             .window = {2, 2},
                             .edge = edge,
                             .scale = 0.25,
                             .iterations = 300000};
    const Oracle::Output output = reference_of(call, {0, 4});
    for (const double value : output.value) EXPECT_DOUBLE_EQ(value, 3.0);
  }
}

TEST(StencilReference, OfSomeRowsIsThatOfAll) {
  const Extents shape{2, 6, 9, 5}, taps{3, 4, 2};
  const std::vector<float> x = whole_numbers(shape, 3), mask = whole_numbers(taps, 4);
  std::vector<float> y(x.size());
  std::vector<std::int64_t> all(2 * 6 * 9);
  std::iota(all.begin(), all.end(), 0);
  for (const StencilEdge edge :
       {StencilEdge::zero, StencilEdge::clamp, StencilEdge::mirror, StencilEdge::wrap}) {
    for (const int iterations : {1, 2, 5}) {
      const Stencil::Call call{.x = ConstTensorRef(x.data(), shape),
                               .mask = ConstTensorRef(mask.data(), taps),
                               .y = TensorRef(y.data(), shape),
                               .anchor = {2, 0, 1},
                               .edge = edge,
                               .convolution = iterations == 2,
                               .iterations = iterations};
      const std::vector<std::int64_t> some{0, 17, 58, 107};
      const Oracle::Output of_all = reference_of(call, all);
      const Oracle::Output of_some = reference_of(call, some);
      for (std::size_t i = 0; i < some.size() * 5; ++i) {
        const std::size_t at = static_cast<std::size_t>(some[i / 5]) * 5 + i % 5;
        EXPECT_EQ(of_some.value[i], of_all.value[at]);
        EXPECT_EQ(of_some.magnitude[i], of_all.magnitude[at]);
      }
    }
  }
}

}  // namespace
}  // namespace rung
