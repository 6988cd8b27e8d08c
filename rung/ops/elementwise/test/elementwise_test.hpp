// SPDX-License-Identifier: Apache-2.0
// What elementwise's tests share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "rung/ops/elementwise/elementwise.hpp"

namespace rung::elementwise_test {

inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Tests of every backend that needs no GPU.
class ElementwiseOn : public testing::TestWithParam<Backend> {
 protected:
  Context context = Context::on(GetParam());
};
inline std::string name_of_backend(const testing::TestParamInfo<Backend>& test) {
  return to_string(test.param);
}

inline std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(engine);
  return values;
}

template <class T>
TensorRef vector_of(std::vector<T>& values) {
  return {values.data(), dtype_of<T>, Extents{static_cast<std::int64_t>(values.size())}};
}

/// As many operands as the function reads.
inline ElementwiseInputs operands(ElementwiseFunction function, const ConstTensorRef& x,
                                  const ConstTensorRef& y, const ConstTensorRef& w) {
  ElementwiseInputs inputs{x, {}, {}};
  if (arity(function) > 1) inputs.y = y;
  if (arity(function) > 2) inputs.w = w;
  return inputs;
}

/// The call as rungs see it.
inline Elementwise::Args bound(const ElementwiseInputs& inputs, const TensorRef& z,
                               const ElementwiseOptions& options) {
  return bind<Elementwise>({.in = {inputs.x, inputs.y, inputs.w},
                            .z = z,
                            .function = options.function,
                            .alpha = options.alpha});
}

/// Runs every rung of ours on the context's backend that takes the call; how many did.
inline int for_each_rung(const Elementwise::Args& args, Context& context,
                         const std::function<void(std::string_view)>& look) {
  int count = 0;
  for (const Rung<Elementwise>* rung = Elementwise::rungs().first; rung != nullptr;
       rung = rung->next) {
    if (rung->info.backend != context.backend() || rung->info.peer) continue;
    if (!rung->supports(args, context)) continue;
    rung->run(args, context);
    context.synchronize();
    look(rung->info.name);
    ++count;
  }
  return count;
}

}  // namespace rung::elementwise_test
