// SPDX-License-Identifier: Apache-2.0
// image: filters of pictures: grey, box and Gaussian blur, unsharp mask, Sobel.
//
// For every pixel (i, j) of every channel, T = 2 radius + 1 and k, l from -radius to radius:
//   grey      y = wr R + wg G + wb B, the weights
//               tenths  3/10, 6/10, 1/10
//               bt601   0.299, 0.587, 0.114     (standard definition television, JPEG)
//               bt709   0.2126, 0.7152, 0.0722  (high definition television, sRGB)
//               tenths_by_term  as tenths; u8 rounds each term down
//   box       y = sum_kl x[i + k, j + l] / T^2
//   gaussian  y = sum_kl g[k] g[l] x[i + k, j + l], g[k] = exp(-k^2 / (2 sigma^2)) divided by the
//             sum over k
//   unsharp   y = x + amount (x - b), b the gaussian blur of x
//   sobel     y = sqrt(h^2 + v^2), h and v the correlation of x with
//             -1 0 1          -1 -2 -1
//             -2 0 2    and    0  0  0
//             -1 0 1           1  2  1
//
// Shapes   x: ... x H x W x C, planar: ... x C x H x W, the leading axes a batch of pictures. C is
//          1 (grey), 2 (grey, alpha), 3 (R G B) or 4 (R G B, alpha). y has the shape of x; for
//          grey, x has 3 or 4 channels, and y has 1, or 2 if x has 4 and alpha is to be kept.
// Alpha    grey, unsharp and sobel copy it. Blurs treat it as one more channel, which is correct at
//          transparent borders only if colors are premultiplied by alpha.
// Edges    outside the picture: the nearest pixel of its border; for box, on request, 0 (edge =
//          zero): such pixels count in T^2, so that the border of y is darker.
// Strides  any, zero (broadcast) in x too; y must not overlap itself.
// Types    u8 or f32, x and y alike.
// u8       Every result is a whole number that does not depend on how it is computed:
//            grey      tenths: (3 R + 6 G + B) / 10, rounded down, as in some courses;
//                      tenths_by_term: 3 R / 10 + 6 G / 10 + B / 10, each rounded down, as in
//                      others: white, 255 255 255, becomes 254. bt601 and bt709:
//                      (wr R + wg G + wb B + 2^14) / 2^15 rounded down; wr wg wb are 9798 19235
//                      3735, and 6966 23436 2366
//            box       the mean rounded to nearest (T^2 is odd: there are no ties), or, with
//                      truncate, rounded down
//            gaussian  (sum_kl w[k] w[l] x + 2^15) / 2^16 rounded down. w are the g in units of
//                      1/256, w[radius] first: w[k] = 256 g[k] plus the rounding error carried
//                      from w[k + 1], rounded to nearest (half up); w[0] is the remainder to 256
//            unsharp   x + ((x - b) round(256 amount) + 2^7) / 2^8 rounded down, b the u8 result of
//                      gaussian, then clamped to 0 to 255
//            sobel     the root rounded to nearest (there are no ties), at most 255
// Accuracy f32, with u the unit roundoff and S the sum of the absolute values of the terms:
//            grey      |error| <= 6 u S
//            blurs     |error| <= (2 T + 8) u S =: E
//            unsharp   |error| <= |amount| E + 4 u (|x| + |amount| (|x| + |b| + E))
//            sobel     |error| <= 8 u (S of h + S of v) + 2^-74. h^2 + v^2 that overflows gives
//                      infinity.
//          A NaN or infinity affects only pixels whose window contains it; where its weight is
//          zero, the result is unspecified.
// Aliasing y must not overlap x. Overlap is decided by address ranges, from the lowest to the
//          highest byte that a tensor touches, so that tensors whose elements interleave are
//          refused.
// Repeats  the same bits from run to run and for any number of threads.
// Errors   Error(invalid_argument) for shapes, types, aliasing, radius < 0 or > 15, a sigma below 0
//          or not finite, an amount beyond -64 to 64, edge = zero or truncate with another filter
//          than box, truncate with f32.
// Source   ITU-R BT.601 and BT.709; I. Sobel & G. Feldman, A 3x3 Isotropic Gradient Operator for
//          Image Processing, 1968; D. Kirk, W. Hwu & I. El Hajj, Programming Massively Parallel
//          Processors, chapter 3 (grey, blur).
#pragma once

#include <cstdint>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

enum class ImageFilter : std::uint8_t { grey, box, gaussian, unsharp, sobel };
enum class GreyWeights : std::uint8_t { tenths, bt601, bt709, tenths_by_term };
enum class ImageEdge : std::uint8_t { clamp, zero };

struct ImageOptions {
  ImageFilter filter = ImageFilter::grey;    // the operation
  GreyWeights weights = GreyWeights::bt601;  // grey
  int radius = 2;                            // box, gaussian, unsharp
  double sigma = 0;                          // gaussian, unsharp; 0: 0.3 (radius - 1) + 0.8
  double amount = 1;                         // unsharp
  bool planar = false;                       // C x H x W
  ImageEdge edge = ImageEdge::clamp;         // box: pixels outside the picture
  bool truncate = false;                     // box of u8: round means down
  bool operator==(const ImageOptions&) const = default;
};

RUNG_API void image(Context& context, const ConstTensorRef& x, const TensorRef& y,
                    const ImageOptions& options = {}, Pick pick = best);

/// Calls image() with the filter named by the function; options.filter is ignored.
RUNG_API void to_grey(Context& context, const ConstTensorRef& x, const TensorRef& y,
                      const ImageOptions& options = {}, Pick pick = best);
RUNG_API void box_blur(Context& context, const ConstTensorRef& x, const TensorRef& y,
                       const ImageOptions& options = {}, Pick pick = best);
RUNG_API void gaussian_blur(Context& context, const ConstTensorRef& x, const TensorRef& y,
                            const ImageOptions& options = {}, Pick pick = best);
RUNG_API void unsharp_mask(Context& context, const ConstTensorRef& x, const TensorRef& y,
                           const ImageOptions& options = {}, Pick pick = best);
RUNG_API void sobel(Context& context, const ConstTensorRef& x, const TensorRef& y,
                    const ImageOptions& options = {}, Pick pick = best);

}  // namespace rung
