// SPDX-License-Identifier: Apache-2.0
// norm: layer norm and RMS norm over the last axis, any other axis, or several neighboring ones.
//
//   s = x + residual                             (x alone without a residual)
//   layer:  y = (s - mean) rstd gamma + beta     mean = sum(s) / n,
//                                                rstd = 1 / sqrt(sum((s - mean)^2) / n + epsilon)
//   rms:    y = s rstd gamma + beta              rstd = 1 / sqrt(sum(s^2) / n + epsilon)
//
// for each row: the n elements along the normalized axes, with all other indices fixed.
//
// Shapes   x, residual, y, sum: one shape, rank 1 to 8. gamma, beta: the extents of the normalized
//          axes. mean, rstd: those of the other axes, with or without a 1 for each normalized one.
// Options  gamma, beta, residual: optional. sum, mean, rstd: written if given; mean is for layer
//          norm only.
// Strides  any; inputs may have zero strides (broadcast). Outputs must not overlap themselves.
// Types    x, residual, y, sum: one of f32, f64, f16, bf16. gamma and beta: that type or, for f16
//          and bf16, both f32. mean and rstd: f32, f64 for f64. Arithmetic is f32 (f64 for f64).
// Sum      s is rounded to the type of x, whether sum is requested or not: the fused operation
//          gives, bit for bit, the result of adding first and normalizing afterwards.
// Aliasing y and sum may each be x or residual itself (same data, shape and strides); otherwise
//          outputs overlap no other tensor. Overlap is decided by address ranges, from the lowest
//          to the highest byte that a tensor touches, so that tensors whose elements interleave are
//          refused.
// Special  no rows: nothing is written. n = 0: mean and rstd are NaN.
//          NaN, infinity: layer: one of them makes mean, rstd and y of its row NaN. rms: a NaN
//          makes rstd and y NaN; a row with infinities and no NaN has rstd 0, y is beta where s is
//          finite and NaN where it is not.
//          Overflow: finite elements give no NaN, except that epsilon = 0 makes a row of equal
//          elements NaN. Where sum((s - mean)^2) (rms: sum(s^2)) overflows the arithmetic, or
//          |mean| is 2^100 or more (f64: 2^960), rstd is 0 and y is beta. A rung may also do so
//          where (1 + n / 64) sum((s - mean)^2) + n (K u mean(|s|))^2 overflows, since it may take
//          the sum about a rounded mean, or about the mean of a part of the row. mean is finite and
//          keeps its bound, even where sum(|s|) overflows.
// Accuracy with u the unit roundoff of the arithmetic, K = n / 8 + 32, z the exact result before
//          gamma, S = rstd mean(|s|) and t = K u S, every rung keeps
//            |error of y|    <= K u |gamma| (|z| + S + |z| t S) + 2 u |y|
//            |error of mean| <= K u mean(|s|)
//            |error of rstd| <= K u (1 + t S) (1 + t) rstd
//          plus one rounding to y's type and, for mean, 2 K (on a GPU 4 n) smallest numbers. The
//          default choice uses rungs that are more accurate if the mean is large relative to the
//          deviations. They correct the mean by the mean of the deviations from it, so that
//          rstd mean(|s - mean|), which is at most 1, replaces S, which enters squared:
//            |error of y|    <= 2 K u |gamma| (|z| + 1 + t (1 + |z| t)) + 2 u |y|
//            |error of mean| <= 2 K u (1 + t) / rstd + u |mean|
//            |error of rstd| <= 2 K u (1 + t^2) rstd
//          where 2 K u (1 + t^2) < 1/4 [T. Chan, G. Golub & R. LeVeque, Algorithms for computing
//          the sample variance, 1983]. welford on a CPU has K = n + 32; sum_of_squares guarantees
//          nothing for layer norm. With epsilon = 0 the bounds are infinite for a row of equal
//          elements.
// Repeats  the same bits from run to run and for every number of threads.
// Errors   Error(invalid_argument) for shapes, axes, types, epsilon, aliasing; Error(unsupported)
//          if no rung of the backend supports the arguments, with every rung's reason.
// Source   J. Ba, J. Kiros & G. Hinton, Layer normalization, 2016; B. Zhang & R. Sennrich, Root
//          mean square layer normalization, NeurIPS 2019.
#pragma once

#include <cstdint>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

enum class NormKind : std::uint8_t { layer, rms };

struct NormOptions {
  int axis = -1;          // first normalized axis; negative: from the end
  int axes = 1;           // number of normalized axes, from `axis` on
  double epsilon = 1e-5;  // added to the variance
  ConstTensorRef gamma = {};
  ConstTensorRef beta = {};
  ConstTensorRef residual = {};
  TensorRef sum = {};   // x + residual; needs a residual
  TensorRef mean = {};  // layer norm only
  TensorRef rstd = {};
};

RUNG_API void layer_norm(Context& context, const ConstTensorRef& x, const TensorRef& y,
                         const NormOptions& options = {}, Pick pick = best);
RUNG_API void rms_norm(Context& context, const ConstTensorRef& x, const TensorRef& y,
                       const NormOptions& options = {}, Pick pick = best);

}  // namespace rung
