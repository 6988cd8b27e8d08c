// SPDX-License-Identifier: Apache-2.0
// softmax and log-softmax along an axis. Their gradients: ops/softmax_backward.
//
//   softmax:  y_i = exp(s (x_i - m)) / sum_j exp(s (x_j - m)),     m = max_j x_j
//   log:      y_i = s (x_i - m) - log sum_j exp(s (x_j - m))
//
// Shapes   x and y: any of 1 to 8 axes; a row is the set of elements that differ in the given axis
//          only. Empty tensors: nothing is written.
// Strides  any; inputs may have zero strides (broadcast). Outputs must not overlap themselves.
// Types    x f32, f64, f16 or bf16; y the same, or f32 for f16 and bf16. Arithmetic is f32, f64 for
//          f64.
// Scale    s, finite and above 0; 1 by default. A large s cannot overflow, because the maximum is
//          subtracted first.
// Special  -infinity counts as "masked": y is 0 (log: -infinity). A fully masked row is all 0 (log:
//          all -infinity), where other libraries divide 0 by 0. +infinity or NaN makes its whole
//          row NaN. If x - m overflows the arithmetic, y may be the result for x = -infinity, even
//          for small s.
// Aliasing y may be exactly x (in place); else they must be disjoint. Overlap is decided by address
//          ranges, from the lowest to the highest byte that a tensor touches, so that tensors whose
//          elements interleave are refused.
// Accuracy with u the unit roundoff of the arithmetic, n the length of a row, z = s (x - m):
//          |error| <= (n / 8 + 40 + 8 |z_i|) u y_i, plus one rounding to y's type; log: the same
//          without the factor y_i. Results below the smallest normal number of the arithmetic may
//          be flushed to 0. Teaching rungs, and the first rungs of the GPU ladder, use one or few
//          accumulators: n in place of n / 8.
// Repeats  the same bits from run to run, and for any number of threads.
// Errors   Error(invalid_argument) for shapes, types, axis, scale, aliasing.
// Source   M. Milakov and N. Gimelshein, Online normalizer calculation for softmax, 2018.
#pragma once

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

struct SoftmaxOptions {
  int axis = -1;       // from the front, or from the end when negative
  double scale = 1.0;  // s
  bool log = false;    // log-softmax
};

RUNG_API void softmax(Context& context, const ConstTensorRef& x, const TensorRef& y,
                      const SoftmaxOptions& options = {}, Pick pick = best);

}  // namespace rung
