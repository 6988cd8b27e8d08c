// SPDX-License-Identifier: Apache-2.0
// softmax_backward: gradients of softmax and log-softmax along an axis (ops/softmax), from their
// result y and the gradient dy of y.
//
//   softmax:  dx_i = s (dy_i - sum_j dy_j y_j) y_i
//   log:      dx_i = s (dy_i - exp(y_i) sum_j dy_j)
//
// Shapes   y, dy and dx: one shape of 1 to 8 axes; a row is the set of elements that differ in the
//          given axis only. Empty tensors: nothing is written.
// Options  the SoftmaxOptions of the softmax() call that is differentiated: axis, scale s, log.
// Strides  any; inputs may have zero strides (broadcast). Outputs must not overlap themselves.
// Types    y and dy: one of f32, f64, f16, bf16; dx the same, or f16 or bf16 for f32. Arithmetic is
//          f32, f64 for f64.
// Special  masked elements need no special case: y = 0 gives dx = 0; with log, exp(-infinity) = 0
//          gives dx = s dy. A NaN or an infinity in a row of dy, or a NaN in a row of y, makes its
//          dx NaN or infinite, as the formula has it.
// Aliasing dx may be exactly y or dy; else they must be disjoint. Overlap is decided by address
//          ranges, from the lowest to the highest byte that a tensor touches, so that tensors whose
//          elements interleave are refused.
// Accuracy with u the unit roundoff of the arithmetic and n the length of a row:
//            |error| <= (n / 8 + 40) u s |y_i| (|dy_i| + sum_j |dy_j y_j|)
//          and with log
//            |error| <= (n / 8 + 40) u s (|dy_i| + exp(y_i) sum_j |dy_j|)
//                       + 8 (1 + |y_i|) u s exp(y_i) |sum_j dy_j|,
//          plus one rounding to dx's type. An exponential below the smallest normal number of the
//          arithmetic may come out as 0. Teaching rungs keep one sum: n in place of n / 8.
// Repeats  the same bits from run to run, and for any number of threads.
// Errors   Error(invalid_argument) for shapes, types, axis, scale, aliasing.
#pragma once

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/softmax/softmax.hpp"

namespace rung {

/// Computes dx from dy and y, the result of softmax() called with the same options.
RUNG_API void softmax_backward(Context& context, const ConstTensorRef& y, const ConstTensorRef& dy,
                               const TensorRef& dx, const SoftmaxOptions& options = {},
                               Pick pick = best);

}  // namespace rung
