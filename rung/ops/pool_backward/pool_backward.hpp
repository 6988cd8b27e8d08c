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
// Options  windows, count_padding and weights as they were given to pool. max takes the indices
//          that pool wrote, l2 its x and y; the other kinds neither. An index that is not in its
//          window counts for nothing. Bias and activation: dy is the gradient of what comes before
//          them.
// Strides  any, zero (broadcast) in what is read too; dx must not overlap itself.
// Types    dy, dx, x, y, weights: one of f32, f64, f16, bf16. Arithmetic is f32, f64 for f64.
//          indices: i64 or i32.
// Aliasing dx overlaps nothing else. Overlap is decided by address ranges, from the lowest to the
//          highest byte that a tensor touches, so that tensors whose elements interleave are
//          refused.
// Accuracy with u the unit roundoff of the arithmetic, n the number of windows over a place, W the
//          sum of weights (for the average 1 each), of kh kw terms:
//            max                |error| <= n u sum |dy|
//            average, l2        |error| <= (n + 4) u sum |term|
//            weighted           |error| <= (n + kh kw + 4) u sum |term| (sum |w| / |W|)
//          plus one rounding to dx's type; terms below the smallest normal number may vanish, and
//          quotients x / y below it count as that number.
// Repeats  the same bits from run to run and for any number of threads.
// Errors   Error(invalid_argument) for shapes, types, windows, aliasing, tensors without the kind
//          that takes them.
// Source   the chain rule.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/ops/pool/pool.hpp"

namespace rung {

struct PoolBackwardOptions {
  Pooling kind = Pooling::max;  // as given to pool
  int kernel_height = 1;        // height of the window
  int kernel_width = 1;         // width of the window
  int stride_height = 0;  // 0: as the kernel
  int stride_width = 0;   // 0: as the kernel
  int padding_height = 0;       // at both ends of the height
  int padding_width = 0;        // at both ends of the width
  int dilation_height = 1;      // distance between taps along the height; 1: neighbors
  int dilation_width = 1;       // distance between taps along the width; 1: neighbors
  bool ceil_mode = false;       // as given to pool
  bool count_padding = true;    // as given to pool; of average and weighted
  bool channels_last = false;   // N x H x W x C
  ConstTensorRef indices = {};  // of max
  ConstTensorRef x = {};        // of l2
  ConstTensorRef y = {};        // of l2
  ConstTensorRef weights = {};  // of weighted
  bool operator==(const PoolBackwardOptions&) const = default;
};

struct RUNG_API PoolBackward {
  static constexpr std::string_view name = "pool_backward";
  static constexpr std::string_view summary = "dx = sum over windows of dy times dy / dx of pool";
  static constexpr std::string_view problem_help =
      "TYPE NxCxHxW[,options]: f32 64x64x112x112,k=3,s=2,p=1   f16 8x64x56x56,average,k=2,nhwc\n"
      "options: max (default) | average | l2 | weighted, k=N or k=NxM (window, default 2),\n"
      "         s=N or NxM (stride, default k), p=N or NxM (padding), d=N or NxM (dilation), "
      "ceil,\n"
      "         valid (padding is not counted), nhwc (tensors are N x H x W x C), indices=i32";

  struct Call {
    ConstTensorRef dy = {};
    TensorRef dx = {};
    PoolBackwardOptions options = {};
    bool operator==(const Call&) const = default;
  };

  /// All tensors but weights have their axes in the order N, C, H, W, whichever it was.
  struct Args : Call {
    PoolAxis rows;     // along H
    PoolAxis columns;  // along W

    [[nodiscard]] Pooling kind() const { return options.kind; }
    [[nodiscard]] std::int64_t images() const { return dx.shape[0]; }
    [[nodiscard]] std::int64_t channels() const { return dx.shape[1]; }
    [[nodiscard]] std::int64_t taps() const { return rows.kernel * columns.kernel; }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.dy, "dy"), optional_in(call.options.indices, "indices"),
          optional_in(call.options.x, "x"), optional_in(call.options.y, "y"),
          optional_in(call.options.weights, "weights"), out(call.dx, "dx"));
  }
  static RungList<PoolBackward>& rungs();
  static void bind(Args& args);

  static Cost cost(const Args& args);
  static void reference(const Args& args, Oracle& oracle);
  static Tolerance tolerance(const Args& args, const RungInfo& rung, Values values);
  static std::vector<Problem> check_problems(Backend backend);
  static std::vector<Problem> bench_problems(Backend backend);
  static Call make(const Problem& problem, Inputs& inputs);
  static std::span<const ArgumentSpec> arguments();
  static void invoke(Context& context, Invocation& invocation, Pick pick);
};

RUNG_API void pool_backward(Context& context, const ConstTensorRef& dy, const TensorRef& dx,
                            const PoolBackwardOptions& options = {}, Pick pick = best);

}  // namespace rung
