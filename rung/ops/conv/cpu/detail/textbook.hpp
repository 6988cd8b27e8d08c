// SPDX-License-Identifier: Apache-2.0
// The epilogue of one element, shared by conv's portable rungs.
#pragma once

#include <cmath>
#include <numbers>

#include "rung/core/dtype.hpp"
#include "rung/core/view.hpp"
#include "rung/ops/conv/op/conv.hpp"

namespace rung::conv_cpu {

template <class T>
T apply(Activation activation, T x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x < T{0} ? T{0} : x;  // in this order NaN propagates
    case Activation::gelu:
      if (x < -40) return 0;  // underflows in any type; -infinity * 0 would be NaN
      return x * std::erfc(-x / std::numbers::sqrt2_v<T>) / 2;
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
  }
  return x;
}

/// Returns one element of y: bias, activation, conversion.
template <class T>
T finish(const Conv::Args& args, std::int64_t filter, Accumulator<T> sum) {
  if (args.has_bias()) {
    sum += static_cast<Accumulator<T>>(args.options.bias.view<const T, 1>()(filter));
  }
  return static_cast<T>(apply(args.options.activation, sum));
}

}  // namespace rung::conv_cpu
