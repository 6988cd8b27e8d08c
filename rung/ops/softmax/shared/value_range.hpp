// SPDX-License-Identifier: Apache-2.0
// Checks of input values, for implementations that do not handle every value: the naive rungs,
// whose exponentials overflow, and peers that return NaN for fully masked rows. The checks read x
// in supports(); rungs that can be picked must not use them.
#pragma once

#include "rung/ops/softmax/op/softmax.hpp"

namespace rung::softmax_values {

/// Returns whether |scale x| < limit for all elements; false if x contains a NaN.
bool are_below(double limit, double scale, const ConstTensorRef& x, const Context& context);
inline bool are_below(double limit, const Softmax::Args& args, const Context& context) {
  return are_below(limit, args.scale, args.x, context);
}

/// Returns whether the naive rungs compute the values of x correctly.
Support supports_naive(const Softmax::Args& args, const Context& context);

}  // namespace rung::softmax_values
