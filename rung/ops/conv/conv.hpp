// SPDX-License-Identifier: Apache-2.0
// conv: the convolution layer of neural networks, with bias and activation.
//
//   y[n, k, o] = act(bias[k] + sum over channels c of k's group and taps t of
//                    w[k, c, t] x[n, g C/G + c, o s - p + t d]),   g = k / (K/G)
//
// in one, two or three dimensions: o, t, s (stride), p (padding) and d (dilation) have one entry
// per axis of the image. It is a cross-correlation, as in all frameworks: the filter is not
// flipped. Taps outside of the image count as zero.
//
// Shapes   x: N x C x W, N x C x H x W or N x C x D x H x W, extents of an image from 1 to
//          2^31 - 1; w: K x C/G x its extents; y: N x K x its extents as convolved_extent() gives
//          them, PyTorch's formula; bias: K. channels_last: N x ... x C, K x ... x C/G and
//          N x ... x K. groups G divides C and K; G = C is the depthwise layer. N or K 0: nothing
//          is written. C 0: y = act(bias).
// Options  one entry per axis of the image; entries of missing axes must keep their defaults.
// Strides  any, including zero (broadcast) for tensors that are read; y must not overlap itself.
// Types    x, w, y, bias: one of f32, f64, f16, bf16. Sums are kept in f32, f64 for f64.
// Aliasing y overlaps nothing else. Overlap is decided by address ranges, from the lowest to the
//          highest byte that a tensor touches, so that tensors whose elements interleave are
//          refused.
// Accuracy |error| <= (n + 3) u (sum |w x| + |bias|), n = C/G times the taps of a filter, u the
//          unit roundoff of the arithmetic, plus one rounding to y's type; twice that where tensor
//          cores add (f16, bf16), for they truncate. Activations add a few units in the last place,
//          as in gemm. With `winograd`, layers of 3 x 3, stride 1, dilation 1 may be transformed,
//          and rounding errors then come from the whole tile of a pixel:
//            |error| <= (C/G + 24) u 3000 sum over c of max |w[k, c]| max |x[n, c]|,
//          the maximum of x over the pixels within a distance of 5. That is the worst case of
//          F(4x4, 3x3); ordinary numbers lose about four bits.
// NaN      NaN and infinities of x spread to the pixels whose filters have a tap there, and no
//          further; with `winograd` also to the other pixels of their tiles. Padding is multiplied
//          as zeros or skipped: a pixel with an infinite weight over padding may or may not be NaN.
// Zeros    an empty sum, and a sum whose products are all zero, are +0 before the activation, even
//          with a bias of -0. A sum that underflows may be either zero.
// Repeats  the same bits from run to run and, where weights are finite, for any number of threads.
// Scratch  see docs/reliability.md: on a CPU at most three times the tensors' bytes (with
//          `winograd` four times), plus 32 MiB, plus 32 MiB per thread.
// Errors   Error(invalid_argument) for shapes, types, options, aliasing.
// Source   PyTorch, torch.nn.Conv1d to Conv3d; V. Dumoulin & F. Visin, A guide to convolution
//          arithmetic for deep learning, 2016; A. Lavin & S. Gray, Fast algorithms for
//          convolutional neural networks, 2015.
#pragma once

#include <cstdint>

#include "rung/core/activation.hpp"
#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/per_axis.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

struct ConvOptions {
  PerAxis stride = 1;          // filter step: {2, 1} of height and width, 2 of all axes
  PerAxis padding = 0;         // zeros at both ends of each axis
  PerAxis dilation = 1;        // distance between taps; 1: neighbors
  int groups = 1;              // G: channels and filters form as many independent groups
  bool channels_last = false;  // N x H x W x C
  bool winograd = false;       // may lose digits, see Accuracy
  ConstTensorRef bias = {};
  Activation activation = Activation::none;
  bool operator==(const ConvOptions&) const = default;
};

RUNG_API void conv(Context& context, const ConstTensorRef& x, const ConstTensorRef& w,
                   const TensorRef& y, const ConvOptions& options = {}, Pick pick = best);

/// Returns the number of positions of a filter along an axis of x: the extent of y. Throws
/// Error(invalid_argument) if there are none.
RUNG_API std::int64_t convolved_extent(std::int64_t extent, std::int64_t kernel, int stride = 1,
                                       int padding = 0, int dilation = 1);

}  // namespace rung
