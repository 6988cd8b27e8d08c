// SPDX-License-Identifier: Apache-2.0
// conv_backward_data: the gradient of conv with respect to its x.
//
//   dx[n, g C/G + c, i] = sum over the filters k of group g and taps t whose place is i of
//                         w[k, c, t] dy[n, k, o],   o s - p + t d = i
//
// Shapes   dx: N x C x H x W, as conv's x was; w: K x C/G x kh x kw; dy: N x K x OH x OW, as conv's
//          y; also of one and three dimensions; channels_last as in conv. N or C 0: nothing is
//          written; K 0: dx = 0. dy is the gradient of what comes before bias and activation.
// Options  strides, paddings, dilations, groups and channels_last as they were given to conv.
// Strides  any, zero (broadcast) in what is read too; dx must not overlap itself.
// Types    dy, w, dx: one of f32, f64, f16, bf16. Sums are kept in f32, f64 for f64.
// Aliasing dx overlaps nothing else. Overlap is decided by address ranges, from the lowest to the
//          highest byte that a tensor touches, so that tensors whose elements interleave are
//          refused.
// Accuracy |error| <= (n + 3) u sum |w dy|, n = K/G times the taps of a filter, u the unit
//          roundoff of the arithmetic, plus one rounding to dx's type; twice that where tensor
//          cores add.
// NaN      and infinities of dy spread to the places that their filters have taps at, and no
//          further. What has no result is zero, or left out: places that an infinite weight would
//          serve there may be NaN or not.
// Repeats  the same bits from run to run and, where weights are finite, for any number of threads.
// Errors   Error(invalid_argument) for shapes, types, options, aliasing.
// Source   the chain rule; V. Dumoulin & F. Visin, A guide to convolution arithmetic for deep
//          learning, 2016: the transposed convolution.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/ops/conv/conv.hpp"

namespace rung {

struct ConvBackwardDataOptions {
  int stride_depth = 1;        // filter step along the depth, of volumes
  int stride_height = 1;       // filter step along the height
  int stride_width = 1;        // filter step along the width
  int padding_depth = 0;       // zeros at both ends of the depth
  int padding_height = 0;      // zeros at both ends of the height
  int padding_width = 0;       // zeros at both ends of the width
  int dilation_depth = 1;      // distance between taps along the depth; 1: neighbors
  int dilation_height = 1;     // distance between taps along the height; 1: neighbors
  int dilation_width = 1;      // distance between taps along the width; 1: neighbors
  int groups = 1;              // G: channels and filters form as many independent groups
  bool channels_last = false;  // N x H x W x C
  bool operator==(const ConvBackwardDataOptions&) const = default;
};

struct RUNG_API ConvBackwardData {
  static constexpr std::string_view name = "conv_backward_data";
  static constexpr std::string_view summary = "dx = w^T * dy, the gradient of conv's x";
  static constexpr std::string_view problem_help =
      "TYPE NxCxHxW[,options], of conv's x: f32 32x64x56x56,out=64,k=3,p=1\n"
      "options: out=K (filters, default C), k, s, p, d (filter, stride, padding, dilation: N for\n"
      "         all axes, or as in 3x2; default 3, 1, 0, 1), g=G (groups), nhwc (channels last)";

  struct Call {
    ConstTensorRef dy = {};
    ConstTensorRef w = {};
    TensorRef dx = {};
    ConvBackwardDataOptions options = {};
    bool operator==(const Call&) const = default;
  };

  /// dy, w and dx have five axes, as in Conv::Args.
  struct Args : Call {
    ConvGeometry geometry;
    int axes = 0;  // that the caller's tensors had
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.dy, "dy"), in(call.w, "w"), out(call.dx, "dx"));
  }
  static RungList<ConvBackwardData>& rungs();
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

RUNG_API void conv_backward_data(Context& context, const ConstTensorRef& dy,
                                 const ConstTensorRef& w, const TensorRef& dx,
                                 const ConvBackwardDataOptions& options = {}, Pick pick = best);

}  // namespace rung
