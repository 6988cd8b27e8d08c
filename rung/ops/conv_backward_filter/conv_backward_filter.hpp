// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter: the gradient of conv with respect to its filters.
//
//   dw[k, c, t] = sum over images n and results o of dy[n, k, o] x[n, g C/G + c, o s - p + t d],
//                 g = k / (K/G)
//
// Shapes   dw: K x C/G x kh x kw, the shape of conv's w; x: N x C x H x W; dy: N x K x OH x OW, the
//          shape of conv's y; also in one and three dimensions; channels_last as in conv, dw: K x
//          kh x kw x C/G. K or C 0: nothing is written; N 0: dw = 0. dy is the gradient before bias
//          and activation; the bias's gradient is the sum of dy over N and the image (reduce).
// Options  strides, paddings, dilations, groups and channels_last, as given to conv.
// Strides  any, including zero (broadcast) for tensors that are read; dw must not overlap itself.
// Types    x, dy, dw: one of f32, f64, f16, bf16. Sums are kept in f32, f64 for f64.
// Aliasing dw overlaps nothing else. Overlap is decided by address ranges, from the lowest to the
//          highest byte that a tensor touches, so that tensors whose elements interleave are
//          refused.
// Accuracy |error| <= (n + 3) u sum |dy x|, n the number of results of all images per filter, u the
//          unit roundoff of the arithmetic, plus one rounding to dw's type; twice that where tensor
//          cores add. Sums are split into slices, so that in practice n becomes
//          n / slices + slices.
// NaN      NaN and infinities of x spread to the taps that read them, and no further. Padding is
//          multiplied as zeros or skipped: a tap that reads padding for an infinite dy may or may
//          not be NaN.
// Repeats  the same bits from run to run and, where dy is finite, for any number of threads.
// Errors   Error(invalid_argument) for shapes, types, options, aliasing.
// Source   the chain rule.
#pragma once

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/per_axis.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

struct ConvBackwardFilterOptions {
  PerAxis stride = 1;          // filter step: {2, 1} of height and width, 2 of all axes
  PerAxis padding = 0;         // zeros at both ends of each axis
  PerAxis dilation = 1;        // distance between taps; 1: neighbors
  int groups = 1;              // G: channels and filters form as many independent groups
  bool channels_last = false;  // N x H x W x C
  bool operator==(const ConvBackwardFilterOptions&) const = default;
};

RUNG_API void conv_backward_filter(Context& context, const ConstTensorRef& x,
                                   const ConstTensorRef& dy, const TensorRef& dw,
                                   const ConvBackwardFilterOptions& options = {}, Pick pick = best);

}  // namespace rung
