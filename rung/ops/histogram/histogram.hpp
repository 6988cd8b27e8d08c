// SPDX-License-Identifier: Apache-2.0
// histogram: counts of the values in each bin.
//
//   counts[b] = number of elements of x in bin b        (accumulate: plus its previous value)
//
// Shapes   x: any shape, also none (a scalar) and empty; counts: n bins, 1 <= n <= 2^30; edges:
//          n + 1.
// Strides  any, zero (broadcast) and negative in x too; counts must not overlap itself.
// Types    x: u8, u16, i32, i64, f32, f64, f16 or bf16. counts: i32 or i64.
// Bins     n bins of equal width over a range. low = high (the default) means [0, n): whole
//          numbers are then their own bins.
//          Integers: low <= x < high, bin floor((x - low) n / (high - low)), exactly. low and high
//          are whole numbers of at most 53 bits, n <= high - low <= 2^32.
//          Floats: low <= x <= high - the last bin includes its upper edge -
//            bin = min(n - 1, trunc((x - low) * scale)),  scale = n / (high - low)
//          in f32 (f64 for f64): low and high are rounded to that type first, scale is computed in
//          f64 and rounded once, difference and product are rounded to nearest, each. This is the
//          definition, not an approximation of one: every backend gives the same counts. Values
//          within 3 u (high - low) of an inner edge, u = 2^-24 (2^-53 for f64), may go to the
//          neighbor of the bin that real arithmetic would find.
//          edges: bin b is edges[b] <= x < edges[b + 1], the last one with its upper edge too; by
//          comparison alone, without rounding. edges are f32 for f32, f16 and bf16, f64 for f64,
//          i64 for integers, and ascending (equal neighbors: an empty bin). That they ascend is
//          not checked; where they do not, counts are unspecified. low and high are not given
//          with edges.
// Outside  values out of the range, and NaN, are not counted. Infinities are outside of an even
//          range.
// Zero     an empty x gives zeros (accumulate: changes nothing).
// Overflow x of more than 2^31 - 1 elements needs i64 counts: Error otherwise. With accumulate, a
//          sum with the previous value that exceeds the type wraps.
// Aliasing counts must not overlap x or edges. Overlap is decided by address ranges, from the
//          lowest to the highest byte that a tensor touches, so that tensors whose elements
//          interleave are refused.
// Accuracy exact: whole numbers, the same whatever the order, the rung and the number of threads.
// Errors   Error(invalid_argument) for shapes, types, ranges, aliasing; Error(unsupported) if no
//          rung of the backend supports the arguments, with every rung's reason.
// Source   NumPy's histogram (definition of bins). NumPy also compares each float with computed
//          edges; pass its edges to get equal counts where they differ.
#pragma once

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

struct HistogramOptions {
  double low = 0.0;
  double high = 0.0;          // low == high: the range is [0, n)
  ConstTensorRef edges = {};  // not given: bins of equal width
  bool accumulate = false;    // add to the values in counts
};

RUNG_API void histogram(Context& context, const ConstTensorRef& x, const TensorRef& counts,
                        const HistogramOptions& options = {}, Pick pick = best);

}  // namespace rung
