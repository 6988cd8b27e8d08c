// SPDX-License-Identifier: Apache-2.0
// Helpers of reduce's tests.
#pragma once

#include "rung/ops/reduce/op/reduce.hpp"
#include "tests/support/operators.hpp"

namespace rung::reduce_test {

using namespace test;

/// Returns the reduction of all elements of x.
template <class Y, class T>
Y whole(Context& context, std::vector<T>& x, Reduction operation, Pick pick = best) {
  Y y{};
  reduce(context, x, TensorRef(&y, Extents{}), {.operation = operation}, pick);
  return y;
}

class ReduceOn : public OnBackend {};

}  // namespace rung::reduce_test
