// SPDX-License-Identifier: Apache-2.0
// What the values of a call are like, for those who cannot take all of them: the naive rungs, whose
// exponentials overflow, and peers, which give NaN for rows of nothing but -infinity. They look
// through x when they decide whether they support a call; no rung that is ever picked may do that.
#pragma once

#include "rung/ops/softmax/op/softmax.hpp"

namespace rung::softmax_values {

/// Returns whether |scale x| is below `limit` throughout: false with a NaN.
bool are_below(double limit, double scale, const ConstTensorRef& x, const Context& context);
inline bool are_below(double limit, const Softmax::Args& args, const Context& context) {
  return are_below(limit, args.scale, args.x, context);
}

/// Accepts the inputs that the naive rungs compute correctly.
Support supports_naive(const Softmax::Args& args, const Context& context);

}  // namespace rung::softmax_values
