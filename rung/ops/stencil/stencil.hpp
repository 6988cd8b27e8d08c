// SPDX-License-Identifier: Apache-2.0
// stencil: correlation or convolution of arrays of 1, 2 or 3 axes with a small mask; box filters.
//
//   correlation  y[i] = s sum_k w[k] x[i + k - a]
//   convolution  y[i] = s sum_k w[k] x[i - k + a]      the mask reversed along every axis
//
// for every element i of an array, k over the mask, a the anchor: the index of the mask element at
// i. Indices have as many axes as the mask.
//
// Mask     w has 1, 2 or 3 axes, 1 to 31 elements a side, odd or even, in any layout; finite
//          values. By default its anchor is the middle: extent / 2, rounded down. There are two
//          other forms: one vector per axis, whose product is the mask (stencil_separable), and a
//          window without a mask, all of whose weights are 1 (a box filter; scale = 1 / size gives
//          the mean). A window costs a CPU at most 8 additions per element along rows, and 3 along
//          each other axis.
// Edges    the value of x[j] where j is outside the array, n its extent along an axis:
//            zero    0
//            clamp   the nearest element:            a a a | a b c d | d d d
//            mirror  reflected about the outermost:  d c b | a b c d | c b a
//            wrap    periodic:                       b c d | a b c d | a b c
//          per axis; also where the mask is larger than the array.
// Shapes   x and y of one shape; up to 8 axes. The last axes are the array's, as many as the mask
//          has; the axes before them are a batch of arrays. Empty tensors: nothing is written.
// Strides  any, zero (broadcast) in x and the weights too; y must not overlap itself.
// Types    x f32, f64, f16, bf16 or u8; y the same, or f32 for f16, bf16 and u8. w and sums are
//          f32, for f64 f64. A sum becomes u8 rounded to nearest, ties to even, and clamped to 0
//          to 255 (NaN: 0).
// Iterations  each applies the mask to the result of the previous one. Results are rounded to y's
//          type in between: n iterations equal n calls.
// Aliasing y must not overlap x or a mask: there is no stencil in place. Overlap is decided by
//          address ranges, from the lowest to the highest byte that a tensor touches, so that
//          tensors whose elements interleave are refused.
// Accuracy with u the unit roundoff of the sums' type and K the number of the mask's elements:
//          |error| <= (K + 4) u |s| sum_k |w[k] x[.]|, plus one rounding to y's type. Sums never
//          subtract elements that leave a window, so that an infinity or NaN affects only elements
//          whose window contains it. With several iterations: the same bound for each, plus the
//          error of the previous iteration times |s| sum_k |w[k]|.
// Repeats  the same bits from run to run, and for any number of threads.
// Errors   Error(invalid_argument) for shapes, types, the extents of mask, window and anchor, more
//          than one of mask, vectors and window, iterations < 1, a scale that is not finite,
//          aliasing.
// Source   D. Kirk, W. Hwu and I. El Hajj, Programming Massively Parallel Processors, chapters 7
//          (convolution) and 8 (stencil); edges as SciPy's ndimage names them (clamp: nearest).
#pragma once

#include <cstdint>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/extents.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

enum class StencilEdge : std::uint8_t { zero, clamp, mirror, wrap };

struct StencilOptions {
  Extents window = {};                   // extents of a box filter, instead of a mask
  Extents anchor = {};                   // rank 0: the middle of the mask
  StencilEdge edge = StencilEdge::zero;  // value of x outside the array
  bool convolution = false;
  double scale = 1.0;  // s
  int iterations = 1;  // number of applications; each reads the result of the previous one
};

/// Applies a mask, or options.window without a mask ({}).
RUNG_API void stencil(Context& context, const ConstTensorRef& x, const ConstTensorRef& mask,
                      const TensorRef& y, const StencilOptions& options = {}, Pick pick = best);

/// Applies the mask w[k, j, i] = through[k] down[j] across[i]. For arrays of one or two axes,
/// `through`, or `down` and `through`, are empty ({}).
RUNG_API void stencil_separable(Context& context, const ConstTensorRef& x,
                                const ConstTensorRef& across, const ConstTensorRef& down,
                                const ConstTensorRef& through, const TensorRef& y,
                                const StencilOptions& options = {}, Pick pick = best);

}  // namespace rung
