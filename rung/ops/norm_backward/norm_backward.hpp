// SPDX-License-Identifier: Apache-2.0
// norm_backward: gradients of layer norm and RMS norm (ops/norm).
//
//   g = dy gamma,  z = (x - mean) rstd                 (rms: z = x rstd)
//   layer:  dx = rstd (g - mean(g) - z mean(g z))      means over the n elements of a row
//   rms:    dx = rstd (g - z mean(g z))
//   dgamma = sum of dy z over all rows,  dbeta = sum of dy over all rows
//
// Shapes   x, dy, dx: one shape, rank 1 to 8. gamma, dgamma, dbeta: the extents of the normalized
//          axes. mean, rstd: those of the other axes, with or without a 1 for each normalized one.
//          With a residual, x is the sum that norm wrote; the gradient of both terms is dx.
// Options  gamma: absent means ones. mean and rstd: outputs of norm, both given (rms: rstd), or
//          neither: then they are recomputed with epsilon. dgamma, dbeta: written if given.
// Strides  any; inputs may have zero strides (broadcast). Outputs must not overlap themselves.
// Types    x, dy, dx: one of f32, f64, f16, bf16. gamma, and dgamma and dbeta: that type or, for
//          f16 and bf16, f32. mean and rstd: f32, f64 for f64. Arithmetic is f32 (f64 for f64).
// Aliasing dx may be dy or x itself; otherwise outputs overlap no other tensor. Overlap is
//          decided by address ranges, from the lowest to the highest byte that a tensor touches, so
//          that tensors whose elements interleave are refused.
// Special  no rows: dgamma and dbeta are 0. A NaN or an infinity in a row of x makes its dx NaN; it
//          makes dgamma NaN where it makes y NaN in norm. A row of finite elements that overflows
//          (norm.hpp) has rstd = 0 and z = 0: its dx is 0, and it adds nothing to dgamma. The same
//          holds for a row whose given rstd is 0, whatever its mean.
// Accuracy with u the unit roundoff of the arithmetic, K = n / 8 + 32 and R = rows / 8 + 96:
//            |error of dx| <= 3 K u rstd (|g| + mean(|g|) + |z| mean(|g z|)) + rounding to its type
//            |error of dgamma| <= R u sum(|dy z|),  |error of dbeta| <= R u sum(|dy|)
//          and, if mean and rstd are recomputed, norm.hpp's error bound of z times the factor that
//          z is multiplied by.
// Repeats  the same bits from run to run and for every number of threads: the summation order of
//          rows depends only on their number (on a GPU also on the device).
// Errors   Error(invalid_argument) for shapes, axes, types, epsilon, aliasing; Error(unsupported)
//          if no rung of the backend supports the arguments, with every rung's reason.
#pragma once

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

struct NormBackwardOptions {
  int axis = -1;          // first normalized axis; negative: from the end
  int axes = 1;           // number of normalized axes, from `axis` on
  double epsilon = 1e-5;  // as given to norm
  ConstTensorRef gamma = {};
  ConstTensorRef mean = {};
  ConstTensorRef rstd = {};
  TensorRef dgamma = {};
  TensorRef dbeta = {};
};

RUNG_API void layer_norm_backward(Context& context, const ConstTensorRef& dy,
                                  const ConstTensorRef& x, const TensorRef& dx,
                                  const NormBackwardOptions& options = {}, Pick pick = best);
RUNG_API void rms_norm_backward(Context& context, const ConstTensorRef& dy, const ConstTensorRef& x,
                                const TensorRef& dx, const NormBackwardOptions& options = {},
                                Pick pick = best);

}  // namespace rung
