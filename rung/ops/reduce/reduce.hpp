// SPDX-License-Identifier: Apache-2.0
// reduce: reductions over a whole tensor, some of its axes, or segments of the last axis.
//
//   y[kept axes] = sum | product | min | max | mean | L2 norm of x over the reduced axes,
//                  or the index of the least (argmin) or greatest (argmax) element
//
// Shapes   x: up to 8 axes. axes: the axes to reduce, in any order, negative ones from the end;
//          empty means all. y: the kept axes in x's order, or all axes with extent 1 for reduced
//          ones (keepdims); any tensor of one element if all axes are reduced.
// Segments offsets (n + 1 ascending numbers, i32 or i64, within the last axis of x) divide the last
//          axis: y's last axis has n elements, element s from x[..., offsets[s] .. offsets[s + 1]).
//          The CPU throws Error for offsets that descend or are outside the axis; a GPU, which
//          would have to synchronize to detect them, clamps them to the axis and treats a
//          descending pair as an empty segment.
// Strides  any, including zero (broadcast) in x; y must not overlap itself.
// Types    x: f32 f64 f16 bf16 i8 u8 u16 i32 i64.
//            sum, product  y as x; also f32 for f16 and bf16; for integers also i32 (x of up to 32
//                          bits) and i64
//            mean          as sum for floating x; f32 or f64 for integers
//            norm          floating x, y as for sum
//            min, max      y as x
//            argmin/max    i32 or i64: the position in C order of the reduced axes; within the
//                          segment if there are segments
// Integers sums and products are exact modulo 2^b, b the bits of y (two's complement: they wrap).
//          The mean is computed from the sum modulo 2^64.
// NaN      argmin and argmax return the first NaN, as NumPy does, and the first of equal elements;
//          other results with a NaN are NaN. Infinities follow IEEE: inf - inf and 0 inf are NaN,
//          the norm of an infinity is inf. -0 equals +0: min and max may return either.
// Overflow floating sums and means whose partial sums overflow may be infinite or NaN even if the
//          result is in range; the partial sums depend on the rung.
// Nothing  the sum of no elements is 0, the product 1, the norm 0. min, max, mean, argmin and
//          argmax of no elements: Error if the shape implies it; an empty segment has the identity
//          for min (+infinity or the largest integer) and max (-infinity or the lowest), NaN for
//          mean (any x) and -1 for argmin and argmax.
// Accuracy u the unit roundoff of f32 (of f64 for f64 and integer means), before rounding to y:
//            sum, mean  |error| <= 80 u sum |x| for any number of terms: at most some 70 dependent
//                       additions, then a wider sum (f64, or two f64 for f64).
//            norm       relative error <= 42 u; squares neither overflow nor underflow for f32 and
//                       the small types; for f64 they must be within 1e-292 to 1e+308.
//            product    relative error <= n u for n terms, if no partial product overflows or
//                       underflows.
//          Rungs marked as teaching and the peers are allowed n u instead of 80 u.
//          [N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 4.2, 4.3]
// Repeats  results are bitwise equal from run to run and for any number of threads, on one machine
//          and for one layout (shape, strides, alignment), except for one teaching rung,
//          float_atomic_per_block.
// Aliasing y must overlap neither x nor offsets. Overlap is determined from address ranges, from
//          the lowest to the highest byte of a tensor, so that tensors whose elements interleave
//          are rejected.
// Errors   Error(invalid_argument) for shapes, axes, types, aliasing, reductions of no elements
//          (see above), an i32 index of more than 2^31 - 1 elements.
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
  Reduction operation = Reduction::sum;  // kind of reduction
  Extents axes = {};                     // empty: all axes
  ConstTensorRef offsets = {};           // absent: no segments
};

/// Reduces x into y. For user-defined functors see rung/ops/reduce/reduce.cuh.
RUNG_API void reduce(Context& context, const ConstTensorRef& x, const TensorRef& y,
                     const ReduceOptions& options = {}, Pick pick = best);

}  // namespace rung
