// SPDX-License-Identifier: Apache-2.0
// elementwise: facts of the vector kernels, for the choice among the CPU rungs and of the number of
// threads.
#pragma once

#include <algorithm>
#include <string_view>

#include "rung/ops/elementwise/op/elementwise.hpp"

namespace rung::elementwise_cpu {

/// Vector operations per element, roughly.
inline double operations_per_element(ElementwiseFunction function) {
  using enum ElementwiseFunction;
  switch (function) {
    case exp:
    case sigmoid:
    case tanh:
    case silu:
      return 6;
    case gelu:
      return 15;
    default:
      return 1;
  }
}

/// Facts of a call on so many threads.
inline Work vector_work(const Elementwise::Args& args, int threads) {
  const std::size_t size = size_of(args.z.dtype);
  return {.operations = operations_per_element(args.function) * static_cast<double>(args.size()),
          .threads = threads,
          .path = size == 8     ? args.flat() ? "wide" : "wide strided"
                  : size < 4    ? args.flat() ? "narrow" : "narrow strided"
                  : args.flat() ? ""
                                : "strided"};
}

}  // namespace rung::elementwise_cpu
