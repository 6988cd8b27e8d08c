// SPDX-License-Identifier: Apache-2.0
// pool: windows over the last two axes of images, each reduced to one number.
//
//   y[n, c, oh, ow] = act(P + bias[c]), P over the taps (i, j) of the window,
//   v(i, j) = x[n, c, oh sh - ph + i dh, ow sw - pw + j dw],   0 <= i < kh, 0 <= j < kw:
//     max       P = max v            and, if requested, its position h W + w in the image
//     average   P = sum v / number of taps
//     l2        P = sqrt(sum v^2)
//     weighted  P = sum weights[i, j] v / sum weights[i, j]
//
// Shapes   x: N x C x H x W, the product H W from 1 to 2^31 - 1; y and indices: N x C x OH x OW,
//          with OH and OW from pooled_extent(), PyTorch's formula. channels_last: N x H x W x C and
//          N x OH x OW x C. weights: kh x kw; bias: C. One dimension: H = kh = 1.
// Windows  stride 0, the default, is the kernel's extent. Taps outside of the image are left out of
//          max, sums and counts; count_padding counts those within the padded image (v = 0) in the
//          average's number of taps and the weighted one's sum of weights, but never those beyond
//          it, which ceil mode admits. As in PyTorch the padding is at most half of the extent
//          d (k - 1) + 1 that a window spans; and no window may be wholly outside of the image.
// Strides  any, including zero (broadcast) for tensors that are read; written tensors must not
//          overlap themselves.
// Types    x, y, weights, bias: one of f32, f64, f16, bf16. Arithmetic is f32, f64 for f64.
//          indices: i64 or i32.
// NaN      a window with a NaN gives NaN, and as its maximum's index the last NaN of the window in
//          row-major order. The index of equal maxima is the first; if all taps are -infinity, that
//          of the first tap, as in PyTorch. +0 and -0 are equal: a maximum may be either.
// Aliasing y and indices overlap no other tensor. Overlap is decided by address ranges, from the
//          lowest to the highest byte that a tensor touches, so that tensors whose elements
//          interleave are refused.
// Accuracy max without bias and activation: exact. Else with u the unit roundoff of the arithmetic,
//          n = kh kw, W the sum of weights (for the average 1 each):
//            average, weighted  |error| <= (n + 4) u (sum |w v| + |P| sum |w|) / |W|
//            l2                 |error| <= (n / 2 + 4) u P + sqrt(n s), s the smallest number of
//                               the arithmetic: squares of f32 below 2^-63 may vanish. A sum v^2
//                               that overflows gives infinity.
//          plus 2 u |bias|, plus one rounding to y's type. Activations add a few units in the last
//          place, as in gemm. W = 0 gives the result of dividing by zero.
// Repeats  the same bits from run to run and for any number of threads.
// Scratch  on a CPU at most 2 MiB per thread (f64: 3), and, in the arithmetic type, up to 2^17
//          weights.
// Errors   Error(invalid_argument) for shapes, types, windows, aliasing, weights or indices that
//          the kind does not use.
// Source   PyTorch, torch.nn.MaxPool2d, AvgPool2d; I. Goodfellow, Y. Bengio & A. Courville, Deep
//          Learning, section 9.3.
#pragma once

#include <cstdint>

#include "rung/core/activation.hpp"
#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/per_axis.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

enum class Pooling : std::uint8_t { max, average, l2, weighted };

struct PoolOptions {
  Pooling kind = Pooling::max;  // maximum, average, L2 norm or weighted mean
  PerAxis kernel = 1;           // the window: {3, 2} of height and width, 3 of both
  PerAxis stride = 0;           // 0: as the kernel
  PerAxis padding = 0;          // at both ends of each axis
  PerAxis dilation = 1;         // distance between taps; 1: neighbors
  bool ceil_mode = false;       // adds a last window that exceeds the padded image
  bool count_padding = true;    // of average and weighted
  bool channels_last = false;   // N x H x W x C
  ConstTensorRef weights = {};
  ConstTensorRef bias = {};
  Activation activation = Activation::none;
  TensorRef indices = {};  // written: positions of maxima
  bool operator==(const PoolOptions&) const = default;
};

RUNG_API void pool(Context& context, const ConstTensorRef& x, const TensorRef& y,
                   const PoolOptions& options = {}, Pick pick = best);

/// Calls pool() with the kind in the name, whatever options.kind is.
RUNG_API void max_pool(Context& context, const ConstTensorRef& x, const TensorRef& y,
                       const PoolOptions& options = {}, Pick pick = best);
RUNG_API void average_pool(Context& context, const ConstTensorRef& x, const TensorRef& y,
                           const PoolOptions& options = {}, Pick pick = best);

/// Returns the number of windows along an axis of x, the extent of y, as in PyTorch: with ceil_mode
/// the last window may reach beyond the padded image, but must begin within the image or the
/// padding before it. A stride of 0 means the kernel's extent. Throws Error(invalid_argument) if
/// there is no window.
RUNG_API std::int64_t pooled_extent(std::int64_t extent, int kernel, int stride = 0,
                                    int padding = 0, int dilation = 1, bool ceil_mode = false);

}  // namespace rung
