// SPDX-License-Identifier: Apache-2.0
// pool_backward: the gradient of pool (ops/pool), without its bias and activation.
//
//   dx[n, c, h, w] = sum over the windows (oh, ow) with a tap (i, j) at (h, w) of
//     max       dy[n, c, oh, ow] where indices[n, c, oh, ow] = h W + w, else 0
//     average   dy[n, c, oh, ow] / number of taps
//     l2        dy[n, c, oh, ow] x[n, c, h, w] / y[n, c, oh, ow], 0 where y is 0
//     weighted  dy[n, c, oh, ow] weights[i, j] / sum of weights
//
// Shapes   dx and x: N x C x H x W; dy, y and indices: N x C x OH x OW, as in pool; channels_last:
//          N x H x W x C and N x OH x OW x C. weights: kh x kw.
// Options  windows, count_padding and weights as given to pool. max takes the indices that pool
//          wrote, l2 its x and y; the other kinds take neither. An index that is not in its window
//          is ignored. dy is the gradient before bias and activation.
// Strides  any, including zero (broadcast) for tensors that are read; dx must not overlap itself.
// Types    dy, dx, x, y, weights: one of f32, f64, f16, bf16. Arithmetic is f32, f64 for f64.
//          indices: i64 or i32.
// Aliasing dx overlaps nothing else. Overlap is decided by address ranges, from the lowest to the
//          highest byte that a tensor touches, so that tensors whose elements interleave are
//          refused.
// Accuracy with u the unit roundoff of the arithmetic, n the number of windows over an element, W
//          sum of weights (for the average 1 each), of kh kw terms:
//            max                |error| <= n u sum |dy|
//            average, l2        |error| <= (n + 4) u sum |term|
//            weighted           |error| <= (n + kh kw + 4) u sum |term| (sum |w| / |W|)
//          plus one rounding to dx's type; terms below the smallest normal number may vanish, and
//          quotients x / y below it count as that number.
// Repeats  the same bits from run to run and for any number of threads.
// Errors   Error(invalid_argument) for shapes, types, windows, aliasing, tensors that the kind does
//          not use.
// Source   the chain rule.
#pragma once

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/per_axis.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/pool/pool.hpp"

namespace rung {

struct PoolBackwardOptions {
  Pooling kind = Pooling::max;  // as given to pool
  PerAxis kernel = 1;           // the window: {3, 2} of height and width, 3 of both
  PerAxis stride = 0;           // 0: as the kernel
  PerAxis padding = 0;          // at both ends of each axis
  PerAxis dilation = 1;         // distance between taps; 1: neighbors
  bool ceil_mode = false;       // as given to pool
  bool count_padding = true;    // as given to pool; for average and weighted
  bool channels_last = false;   // N x H x W x C
  ConstTensorRef indices = {};  // for max
  ConstTensorRef x = {};        // for l2
  ConstTensorRef y = {};        // for l2
  ConstTensorRef weights = {};  // for weighted
  bool operator==(const PoolBackwardOptions&) const = default;
};

RUNG_API void pool_backward(Context& context, const ConstTensorRef& dy, const TensorRef& dx,
                            const PoolBackwardOptions& options = {}, Pick pick = best);

/// Calls pool_backward() with the kind in the name, whatever options.kind is.
RUNG_API void max_pool_backward(Context& context, const ConstTensorRef& dy, const TensorRef& dx,
                                const PoolBackwardOptions& options = {}, Pick pick = best);
RUNG_API void average_pool_backward(Context& context, const ConstTensorRef& dy, const TensorRef& dx,
                                    const PoolBackwardOptions& options = {}, Pick pick = best);

}  // namespace rung
