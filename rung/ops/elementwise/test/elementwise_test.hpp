// SPDX-License-Identifier: Apache-2.0
// Helpers of elementwise's tests.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "rung/ops/elementwise/op/elementwise.hpp"
#include "tests/support/operators.hpp"

namespace rung::elementwise_test {

using namespace test;

class ElementwiseOn : public OnBackend {};

template <class T>
TensorRef vector_of(std::vector<T>& values) {
  return {values.data(), dtype_of<T>, Extents{static_cast<std::int64_t>(values.size())}};
}

/// Returns the operands that the function reads.
inline ElementwiseInputs operands(ElementwiseFunction function, const ConstTensorRef& x,
                                  const ConstTensorRef& y, const ConstTensorRef& w) {
  ElementwiseInputs inputs{x, {}, {}};
  if (arity(function) > 1) inputs.y = y;
  if (arity(function) > 2) inputs.w = w;
  return inputs;
}

/// Returns the arguments as rungs receive them.
inline Elementwise::Args bound(const ElementwiseInputs& inputs, const TensorRef& z,
                               const ElementwiseOptions& options) {
  return bind<Elementwise>({.in = {inputs.x, inputs.y, inputs.w},
                            .z = z,
                            .function = options.function,
                            .alpha = options.alpha});
}

/// Runs every rung of the context's backend that supports the arguments, peers excluded. Returns
/// their number.
inline int for_each_rung(const Elementwise::Args& args, Context& context,
                         const std::function<void(std::string_view)>& look) {
  const auto names = rungs_that_take<Elementwise>(args, context);
  for (const std::string_view name : names) {
    choose<Elementwise>(args, context, Pick{name}).run(args, context);
    context.synchronize();
    look(name);
  }
  return static_cast<int>(names.size());
}

}  // namespace rung::elementwise_test
