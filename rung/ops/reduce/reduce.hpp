// SPDX-License-Identifier: Apache-2.0
// reduce: reductions over a whole tensor, some of its axes, or segments of the last axis.
//
//   y[kept axes] = sum | product | min | max | mean | L2 norm of x over the reduced axes,
//                  or the index of the least (argmin) or greatest (argmax) of its elements
//
// Shapes   x: up to 8 axes. axes: those to reduce, in any order, negative ones from the end; empty
//          means all. y: the kept axes in x's order, or all axes with those reduced of extent 1
//          (keepdims); any tensor of one element when everything is reduced.
// Segments offsets (n + 1 numbers, i32 or i64, ascending, within the last axis of x) divide the
//          last axis: y's last axis has n elements, and element s is the reduction of
//          x[..., offsets[s] .. offsets[s + 1]). The CPU throws Error for offsets that descend or
//          leave the axis; a GPU, which could detect this only by synchronizing, clamps them to the
//          axis and treats a descending pair as empty.
// Strides  any, zero (broadcast) in x too; y must not overlap itself.
// Types    x: f32 f64 f16 bf16 i8 u8 u16 i32 i64.
//            sum, product  y as x; f32 too for f16 and bf16; i32 (of types up to 32 bits) and i64
//                          too for integers
//            mean          as sum for floating x; f32 or f64 for integers
//            norm          floating x, y as for sum
//            min, max      y as x
//            argmin/max    i32 or i64: the position in C order of the reduced axes, counted within
//                          the segment for segments
// Integers sums and products are exact modulo 2^b, b the bits of y (two's complement: they wrap).
//          The mean is that of the sum modulo 2^64.
// NaN      argmin, argmax give the first NaN, as NumPy does, and the first of equal elements; all
//          others with a NaN are NaN. Infinities are IEEE's: inf - inf and 0 inf are NaN, the
//          norm with one is inf. -0 equals +0: min and max may give either.
// Overflow floating sums and means whose partial sums overflow may be infinite or NaN, though the
//          result itself is in range; which partial sums there are depends on the rung.
// Nothing  the sum of nothing is 0, the product 1, the norm 0. min, max, mean and arg of nothing:
//          Error if it follows from the shape; an empty segment gives +infinity or the largest
//          integer for min, -infinity or the lowest integer for max, NaN for mean (of any x) and -1
//          for argmin and argmax.
// Accuracy u the unit roundoff of f32 (of f64 for f64 and integer means), before rounding to y:
//            sum, mean  |error| <= 80 u sum |x|, whatever the number of terms: never more than some
//                       70 additions in a row, then a wider sum (f64, or two f64 for f64).
//            norm       relative error <= 42 u; squares neither overflow nor vanish for f32 and the
//                       small types; for f64 they must stay within 1e-292 to 1e+308.
//            product    relative error <= n u for n terms, where no product on the way overflows or
//                       underflows.
//          Rungs marked as teaching and the peers are allowed n u instead of 80 u.
//          [N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 4.2, 4.3]
// Repeats  the same bits run to run and for any number of threads, on one machine, for one layout
//          (shape, strides, alignment). One teaching rung, float_atomic_per_block, does not.
// Aliasing y must overlap neither x nor offsets. Overlap is decided by address ranges, from the
//          lowest to the highest byte that a tensor touches, so that tensors whose elements
//          interleave are refused.
// Errors   Error(invalid_argument) for shapes, axes, types, aliasing, reducing nothing (see above),
//          an i32 index of more than 2^31 - 1 elements.
#pragma once

#include <cstdint>
#include <string_view>

#include "rung/core/context.hpp"
#include "rung/core/dtype.hpp"
#include "rung/core/export.hpp"
#include "rung/core/extents.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

enum class Reduction : std::uint8_t { sum, product, min, max, mean, argmin, argmax, norm };
RUNG_API std::string_view to_string(Reduction operation) noexcept;
/// Returns y's type if none is given: x's; i64 for sums and products of integers and for indices,
/// f64 for means of integers.
RUNG_API DType reduced_dtype(Reduction operation, DType x) noexcept;

struct ReduceOptions {
  Reduction operation = Reduction::sum;  // sum, maximum ...
  Extents axes = {};                     // empty: all axes
  ConstTensorRef offsets = {};           // not given: no segments
};

/// Reduces x into y. For user-defined functors see rung/ops/reduce/reduce.cuh.
RUNG_API void reduce(Context& context, const ConstTensorRef& x, const TensorRef& y,
                     const ReduceOptions& options = {}, Pick pick = best);

}  // namespace rung
