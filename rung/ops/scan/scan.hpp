// SPDX-License-Identifier: Apache-2.0
// scan: running sums, products, minima and maxima along one axis, as a whole or per segment.
//
//   inclusive   y[i] = x[s] + ... + x[i]
//   exclusive   y[i] = x[s] + ... + x[i - 1], the identity at i = s
//   reverse     from the other end: y[i] = x[i] + ... + x[e - 1]
//
// where + is sum, product, min or max, and [s, e) is the segment that contains i, or the whole axis
// without offsets. scan.cuh supports user-defined functors, also non-commutative ones.
//
// Shapes   x and y: the same shape, 1 to 8 axes. axis: negative counts from the end.
// Segments offsets (i32 or i64, one axis): positions along the scan axis at which a segment begins.
//          Order and repetition do not matter, and positions outside the axis are ignored: lists of
//          starts and CSR lists (n + 1 numbers, the last one the end) are valid, and no contents of
//          offsets are an error. Elements before the first offset are a segment. All lines along
//          the axis have the same segments.
// Strides  any, including zero (broadcast) in x and offsets; y must not overlap itself.
// Types    x and y have the same type: f32 f64 f16 bf16 i8 u8 u16 i32 i64. f16 and bf16 are
//          combined in f32, and each output is rounded once.
// Integers sums and products are exact modulo 2^b, b the bits of the type (two's complement: they
//          wrap).
// Identity 0 for sum, 1 for product, +infinity or the largest integer for min, -infinity or the
//          lowest integer for max.
// NaN      results are NaN from the first NaN to the end of the segment, also for min and max, and
//          from inf - inf or 0 inf on (IEEE). A zero may have either sign.
// Accuracy u the unit roundoff of f32 (f64 for f64), before rounding to f16 or bf16:
//            sum       |error of y[i]| <= k u / (1 - k u) (|x[s]| + ... + |x[i]|), k = i - s for
//                      any order of additions [N. Higham, Accuracy and Stability, 2nd ed., 4.2].
//                      simd and the threaded CPU rungs, in chunks of c elements (64 KiB; 256 KiB
//                      for lines of 4 MiB or more), have k <= n / c + 2 (256 + c / 256): 6.5e-5 for
//                      2^22 positive f32.
//            product   relative error <= k u / (1 - k u), if no partial product overflows or
//                      underflows.
//            min, max  exact.
// Repeats  results are bitwise equal from run to run and for any number of threads, on one machine
//          and for one layout (shape, strides): chunks have fixed sizes, and the carry into a chunk
//          is combined in a fixed order, independent of the timing of threads or blocks.
// Nothing  an axis or a tensor without elements: nothing is written.
// Aliasing y may be x itself (same address, shape and strides); otherwise they must be disjoint. y
//          must not overlap offsets. Overlap is determined from address ranges, from the lowest to
//          the highest byte of a tensor, so that tensors whose elements interleave are rejected.
// Errors   Error(invalid_argument) for shapes, axis, types, aliasing; Error(unsupported) if no rung
//          of the backend supports the arguments, with every rung's reason.
// Source   G. Blelloch, Prefix Sums and Their Applications, 1990.
#pragma once

#include <cstdint>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

enum class ScanOperation : std::uint8_t { sum, product, min, max };

struct ScanOptions {
  ScanOperation operation = ScanOperation::sum;  // operation that combines elements
  int axis = -1;
  bool exclusive = false;
  bool reverse = false;
  ConstTensorRef offsets = {};  // absent: one segment
};

RUNG_API void scan(Context& context, const ConstTensorRef& x, const TensorRef& y,
                   const ScanOptions& options = {}, Pick pick = best);

}  // namespace rung
