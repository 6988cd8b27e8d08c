// SPDX-License-Identifier: Apache-2.0
// transpose: a permutation of a tensor's axes.
//
//   y[i_0, ..., i_(r-1)] = x[j_0, ..., j_(r-1)]   where j_(order[a]) = i_a
//
// Shapes   x: any, of up to 8 axes; y: axis a of y is axis order[a] of x. Without an order the last
//          two axes are exchanged: the transpose of a matrix, or of each matrix of a batch.
// Strides  any, in elements, negative ones too; zero (broadcast) in x; y must not overlap itself.
// Types    all: elements are moved as opaque bits, NaNs, signs of zero and subnormals as they are.
// Zero     an empty tensor: nothing is read or written. No axes (order empty, rank 0): one element.
// Aliasing x and y must not overlap; there is no transpose in place. Overlap is decided by address
//          ranges, from the lowest to the highest byte that a tensor touches, so that tensors whose
//          elements interleave are refused.
// Accuracy exact, and so the same on every backend and with any number of threads.
// Errors   Error(invalid_argument) for shapes, types, an order that is not a permutation, aliasing.
// Source   NumPy's transpose (definition); README.md describes the algorithms.
#pragma once

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/extents.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

struct TransposeOptions {
  /// order[a] is the axis of x that becomes axis a of y; rank 0: the last two axes are exchanged.
  Extents order = {};
};

RUNG_API void transpose(Context& context, const ConstTensorRef& x, const TensorRef& y,
                        const TransposeOptions& options = {}, Pick pick = best);

}  // namespace rung
