// SPDX-License-Identifier: Apache-2.0
// conv_backward_data: the gradient of conv with respect to its x.
//
//   dx[n, g C/G + c, i] = sum over filters k of group g and taps t that read x[i], of
//                         w[k, c, t] dy[n, k, o],   o s - p + t d = i
//
// Shapes   dx: N x C x H x W, the shape of conv's x; w: K x C/G x kh x kw; dy: N x K x OH x OW, the
//          shape of conv's y; also in one and three dimensions; channels_last as in conv. N or C 0:
//          nothing is written; K 0: dx = 0. dy is the gradient before bias and activation.
// Options  strides, paddings, dilations, groups and channels_last, as given to conv.
// Strides  any, including zero (broadcast) for tensors that are read; dx must not overlap itself.
// Types    dy, w, dx: one of f32, f64, f16, bf16. Sums are kept in f32, f64 for f64.
// Aliasing dx overlaps nothing else. Overlap is decided by address ranges, from the lowest to the
//          highest byte that a tensor touches, so that tensors whose elements interleave are
//          refused.
// Accuracy |error| <= (n + 3) u sum |w dy|, n = K/G times the taps of a filter, u the unit
//          roundoff of the arithmetic, plus one rounding to dx's type; twice that where tensor
//          cores add.
// NaN      NaN and infinities of dy spread to the positions that their filters read, and no
//          further.
//          Taps without a result are multiplied as zeros or skipped: a position with such a tap of
//          infinite weight may or may not be NaN.
// Repeats  the same bits from run to run and, where weights are finite, for any number of threads.
// Errors   Error(invalid_argument) for shapes, types, options, aliasing.
// Source   the chain rule; V. Dumoulin & F. Visin, A guide to convolution arithmetic for deep
//          learning, 2016: the transposed convolution.
#pragma once

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/per_axis.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

struct ConvBackwardDataOptions {
  PerAxis stride = 1;          // filter step: {2, 1} of height and width, 2 of all axes
  PerAxis padding = 0;         // zeros at both ends of each axis
  PerAxis dilation = 1;        // distance between taps; 1: neighbors
  int groups = 1;              // G: channels and filters form as many independent groups
  bool channels_last = false;  // N x H x W x C
  bool operator==(const ConvBackwardDataOptions&) const = default;
};

RUNG_API void conv_backward_data(Context& context, const ConstTensorRef& dy,
                                 const ConstTensorRef& w, const TensorRef& dx,
                                 const ConvBackwardDataOptions& options = {}, Pick pick = best);

}  // namespace rung
